#include <numafit-extender/extender_watch_json.h>

#include <codec/api_json.h>
#include <codec/advice.h>
#include <codec/nrt_json.h>
#include <codec/numatopology_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <numafit/nrt_fingerprint.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MILLI = 1000 };
static const uint64_t number_factor = 0x9e3779b97f4a7c15; /* odd */

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Pods: the hint */

void extender_every_node(struct topo *t)
{
	topo_init(t, "any");
	for (unsigned id = 0; id < ZONES_MAX; id++)
		(void)topo_add_node(t, id, NULL);
}

/* Its zones, unless one says a resource that is not in r's table; no pod asks for it then. */
static void take_advice(
	const struct advice *h, const struct sched_reader *r, struct extender_pod *out)
{
	struct sched_taken *taken;
	size_t nr = 0;

	for (size_t i = 0; i < h->nr_containers; i++)
		nr += h->container[i].nr_amounts;
	taken = arena_array(r->arena, nr + 1, sizeof *taken);
	if (!taken)
		return;
	out->ours = true;
	nr = 0;
	for (size_t i = 0; i < h->nr_containers; i++)
		for (size_t k = 0; k < h->container[i].nr_amounts; k++) {
			const struct advice_amount *a = &h->container[i].amount[k];
			struct sched_taken *to = &taken[nr++];
			int64_t n = (int64_t)a->amount;

			*to = (struct sched_taken){.zone_id = a->node,
				.q = quantity_of(n),
				.container = h->container[i].name};
			if (text_equal(a->resource, "cpu"))
				to->q = (struct quantity){
					n / MILLI, (uint32_t)(n % MILLI) * QUANTITY_NANOS_OF_MILLI};
			if (!resource_find(r->names, a->resource, &to->resource))
				return;
		}
	out->taken = taken;
	out->nr_taken = nr;
}

static const char *advice_text(const json_t *pod)
{
	const json_t *metadata = json_object_get(pod, "metadata");

	return json_string_value(
		json_object_get(json_object_get(metadata, "annotations"), ADVICE_KEY));
}

bool extender_pod_json_has_hint(const json_t *pod, const char *hint)
{
	const char *has = advice_text(pod);

	return has && hint ? text_equal(has, hint) : has == hint;
}

bool extender_pod_json_same_advice(const json_t *a, const json_t *b)
{
	return extender_pod_json_has_hint(a, advice_text(b));
}

/* One that was copied from another pod says nothing of this one. */
static void watch_read_hint(const json_t *pod, const struct sched_reader *r,
	const struct topo *every_node, struct extender_pod *out)
{
	const char *text = advice_text(pod);
	const struct advice_context c = {.t = every_node, .arena = r->arena};
	struct advice h;

	if (!text || advice_read(advice_source_of(ADVICE_KEY), text, &c, &h, NULL))
		return;
	if (text_equal(h.node, out->node) && text_equal(h.uid, out->pod.uid))
		take_advice(&h, r, out);
}

/* Pods: what became of them */

/* Words of refusals: the kubelet's Topology Manager fails the pod; numafitd's come from the
 * runtime, with which the container waits. */
static const char topology_error[] = "TopologyAffinityError",
		  create_error[] = "CreateContainerError", our_words[] = "numafit: ";

static bool refuses_container(const json_t *statuses)
{
	for (size_t i = 0; i < json_array_size(statuses); i++) {
		const json_t *state = json_object_get(json_array_get(statuses, i), "state");
		const json_t *waiting = json_object_get(state, "waiting");

		if (text_equal(text_of(waiting, "reason"), create_error) &&
			strstr(text_of(waiting, "message"), our_words))
			return true;
	}
	return false;
}

static const char *refusal_of(const json_t *status)
{
	if (text_equal(text_of(status, "reason"), topology_error))
		return topology_error;
	return refuses_container(json_object_get(status, "containerStatuses")) ||
			       refuses_container(json_object_get(status, "initContainerStatuses"))
		       ? create_error
		       : NULL;
}

/* The end of that second; 0: it is no metav1.Time. */
static int64_t ms_of(const char *text)
{
	struct tm tm = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	time_t s = rest && !*rest ? timegm(&tm) : 0;

	return s > 0 ? (int64_t)s * MILLI + MILLI - 1 : 0;
}

/* The binding sets the condition (BindingREST.setPodNodeAndMetadata). A pod that was created with a
 * node is bound from its creation on. */
static int64_t bound_ms_of(const json_t *metadata, const json_t *status)
{
	const json_t *list = json_object_get(status, "conditions");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *condition = json_array_get(list, i);

		if (text_equal(text_of(condition, "type"), "PodScheduled") &&
			text_equal(text_of(condition, "status"), "True"))
			return ms_of(text_of(condition, "lastTransitionTime"));
	}
	return ms_of(text_of(metadata, "creationTimestamp"));
}

static const char *owner_uid_of(const json_t *metadata)
{
	const json_t *owners = json_object_get(metadata, "ownerReferences");

	for (size_t i = 0; i < json_array_size(owners); i++) {
		const json_t *owner = json_array_get(owners, i);

		if (json_is_true(json_object_get(owner, "controller")))
			return text_of(owner, "uid");
	}
	return text_of(metadata, "uid");
}

/* Within its namespace: owners in a pod are its author's to write, and may be another one's. NULL:
 * the arena's limit. */
static const char *workload_of(const json_t *metadata, struct arena *a)
{
	const char *ns = text_of(metadata, "namespace"), *uid = owner_uid_of(metadata);
	size_t size = strlen(ns) + strlen(uid) + sizeof "/";
	char *workload = arena_alloc(a, size);

	if (workload)
		(void)snprintf(workload, size, "%s/%s", ns, uid);
	return workload;
}

const char *extender_pod_json_node(const json_t *v)
{
	return text_of(json_object_get(v, "spec"), "nodeName");
}

const char *extender_node_json_label(const json_t *v, const char *key)
{
	return text_of(json_object_get(json_object_get(v, "metadata"), "labels"), key);
}

/* What numafitd says with it; with the reason nothing is refused, though it is a warning. */
static const char hint_verdict[] = "numafit.io/hint-verdict", wish_reason[] = "NUMAWish";

static uint64_t event_number(const json_t *metadata, const json_t *count)
{
	uint64_t number = xxh64_text(text_of(metadata, "namespace"));

	number = number * number_factor + xxh64_text(text_of(metadata, "name"));
	return number * number_factor + (uint64_t)json_integer_value(count);
}

/* Who may write events may write any: they are believed of pods of their own namespace. */
bool extender_event_json_read(const json_t *v, struct extender_event *out)
{
	const json_t *about = json_object_get(v, "involvedObject");
	const json_t *metadata = json_object_get(v, "metadata");

	*out = (struct extender_event){
		.ns = text_of(metadata, "namespace"),
		.uid = text_of(about, "uid"),
		.pod = text_of(about, "name"),
		.reason = text_of(v, "reason"),
		.verdict = text_of(json_object_get(metadata, "annotations"), hint_verdict),
		.number = event_number(metadata, json_object_get(v, "count")),
		.node = text_of(json_object_get(v, "source"), "host"),
	};
	out->refuses =
		text_equal(text_of(v, "type"), "Warning") && !text_equal(out->reason, wish_reason);
	return text_equal(text_of(about, "kind"), "Pod") &&
	       text_equal(text_of(v, "reportingComponent"), "numafitd") && *out->node;
}

int extender_pod_json_read(json_t *v, const struct sched_reader *r, const struct topo *every_node,
	struct extender_pod *out, struct err *e)
{
	const json_t *metadata = json_object_get(v, "metadata"),
		     *status = json_object_get(v, "status");
	const char *phase = text_of(status, "phase");

	*out = (struct extender_pod){
		.node = extender_pod_json_node(v),
		.workload = workload_of(metadata, r->arena),
		.pending = text_equal(phase, "Pending"),
		.running = text_equal(phase, "Running"),
		.ended = text_equal(phase, "Succeeded") || text_equal(phase, "Failed"),
		.refused = refusal_of(status),
		.bound_ms = bound_ms_of(metadata, status),
	};
	int rc = sched_pod_json_read(v, r, &out->pod, e);

	if (!rc && !out->workload)
		rc = err_set(e, ENOMEM, "too large");
	if (!rc && !*out->pod.uid)
		rc = err_set(e, EINVAL, "metadata: has no uid");
	if (!rc && *out->node)
		watch_read_hint(v, r, every_node, out);
	return rc;
}

/* Pods: keeping one */

static void copy_members(json_t *to, const json_t *from, const char *const *key)
{
	for (; *key; key++)
		if (json_object_get(from, *key))
			(void)json_object_set(to, *key, json_object_get(from, *key));
}

static json_t *watch_copy_containers(const json_t *list)
{
	static const char *const keys[] = {"name", "restartPolicy", "resources", NULL};
	json_t *copy = json_array();

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *one = json_object();

		copy_members(one, json_array_get(list, i), keys);
		(void)json_array_append_new(copy, one);
	}
	return copy;
}

/* Those of them that a plugin looks at. */
static json_t *watch_copy_annotations(json_t *from)
{
	json_t *copy = json_object();

	for (void *it = json_object_iter(from); it; it = json_object_iter_next(from, it))
		if (advice_source_of(json_object_iter_key(it)))
			(void)json_object_set(
				copy, json_object_iter_key(it), json_object_iter_value(it));
	return copy;
}

char *extender_pod_json_keep(const json_t *v)
{
	static const char *const of_metadata[] = {"namespace", "name", "uid", "ownerReferences",
		NULL},
				 *const of_spec[] = {"nodeName", "overhead", "resources", NULL},
				 *const of_status[] = {"phase", "qosClass", NULL};
	const json_t *from = json_object_get(v, "metadata"), *spec = json_object_get(v, "spec");

	if (!json_is_object(from))
		return NULL;
	json_t *metadata = json_object(), *kept = json_object(), *status = json_object();
	copy_members(metadata, from, of_metadata);
	(void)json_object_set_new(metadata, "annotations",
		watch_copy_annotations(json_object_get(from, "annotations")));
	copy_members(kept, spec, of_spec);
	(void)json_object_set_new(kept, "initContainers",
		watch_copy_containers(json_object_get(spec, "initContainers")));
	(void)json_object_set_new(
		kept, "containers", watch_copy_containers(json_object_get(spec, "containers")));
	copy_members(status, json_object_get(v, "status"), of_status);
	json_t *all =
		json_pack("{s:o, s:o, s:o}", "metadata", metadata, "spec", kept, "status", status);
	char *text = json_dumps(all, JSON_COMPACT);
	json_decref(all);
	return text;
}

/* Reports */

enum { PART_DIGITS = 16, HEX = 16 };

/* The first attribute of that name; NULL: it has none. */
static const char *attribute(const json_t *list, const char *name)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);

		if (text_equal(text_of(v, "name"), name))
			return text_of(v, "value");
	}
	return NULL;
}

/* 16 digits for each pod. */
static int watch_read_numbers(
	const char *text, struct arena *a, const uint64_t **out, size_t *nr_out, struct err *e)
{
	size_t nr = strlen(text) / PART_DIGITS;
	char digits[PART_DIGITS + 1] = "";
	uint64_t *number = arena_array(a, nr + 1, sizeof *number);

	if (!number)
		return err_set(e, ENOMEM, "too large");
	if (strlen(text) % PART_DIGITS || strspn(text, "0123456789abcdef") != strlen(text))
		return err_set(
			e, EINVAL, "%d hexadecimal digits for each pod are expected", PART_DIGITS);
	for (size_t i = 0; i < nr; i++) {
		memcpy(digits, text + i * PART_DIGITS, PART_DIGITS);
		number[i] = strtoull(digits, NULL, HEX);
	}
	*out = number;
	*nr_out = nr;
	return 0;
}

int extender_report_json_read(
	json_t *v, const struct sched_reader *r, struct sched_report *out, struct err *e)
{
	const json_t *attributes = json_object_get(v, "attributes");
	const char *generation = attribute(attributes, "numafit.io/generation"),
		   *pods = attribute(attributes, "numafit.io/pods"),
		   *zones = attribute(attributes, "numafit.io/pod-zones");
	int rc = 0;

	*out = (struct sched_report){0};
	if (generation &&
		(rc = text_u64(generation, strlen(generation), UINT64_MAX, &out->generation, e)))
		return err_add(e, rc, "numafit.io/generation");
	out->names_pods = pods;
	if (pods && (rc = watch_read_numbers(pods, r->arena, &out->pod, &out->nr_pods, e)))
		return err_add(e, rc, "numafit.io/pods");
	if (zones) { /* behind the pods */
		size_t nr = 0;

		rc = watch_read_numbers(zones, r->arena, &out->pod_zones, &nr, e);
		if (!rc && nr != out->nr_pods)
			rc = err_set(e, EINVAL, "there are %zu, and %zu pods", nr, out->nr_pods);
		if (rc)
			return err_add(e, rc, "numafit.io/pod-zones");
	}
	return nrt_json_read(v, r, &out->topology, e);
}

/* Numatopologies */

/* A copy of the string within *a, which has room for it. */
static int watch_copy_string(const char **s, struct arena *a, struct err *e)
{
	if (*s)
		*s = arena_strndup(a, *s, strlen(*s));
	else
		return 0;
	return *s ? 0 : err_set(e, ENOMEM, "too large");
}

int extender_numatopology_json_read(
	json_t *v, struct volcano_node **out, void **memory, struct err *e)
{
	enum { REST_BYTES = 4096 }; /* the node itself, its policies, alignment */
	size_t nr = json_object_size(json_object_get(json_object_get(v, "spec"), "cpuDetail"));
	size_t size = (nr < CPUSET_BITS ? nr : CPUSET_BITS) * sizeof(struct volcano_cpu) +
		      sizeof(struct volcano_node) + REST_BYTES;
	auto_free void *block = xcalloc(size, 1);
	struct arena a;

	arena_init_fixed(&a, block, size);
	struct volcano_node *node = arena_alloc(&a, sizeof *node);
	int rc = numatopology_json_read(v, &a, node, e);
	if (!rc)
		rc = watch_copy_string(&node->cpu_manager_policy, &a, e);
	if (!rc)
		rc = watch_copy_string(&node->topology_manager_policy, &a, e);
	if (rc)
		return rc;
	*out = node;
	*memory = steal(block);
	return 0;
}
