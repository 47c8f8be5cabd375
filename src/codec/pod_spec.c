#include <codec/pod_spec.h>

#include <codec/advice.h>
#include <codec/wishes.h>
#include <errno.h>
#include <numafit/observed.h>
#include <numafit/qos.h>
#include <numafit/request.h>
#include <numafit/text.h>
#include <stdlib.h>
#include <string.h>

static const char hugepages[] = "hugepages-";

static bool spec_starts_with(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

bool resource_is_extended(const char *name)
{
	return strchr(name, '/') && !strstr(name, "kubernetes.io/") &&
	       !spec_starts_with(name, "requests.");
}

enum container_kind container_kind_of(bool init, const char *restart_policy)
{
	if (!init)
		return CONTAINER_APP;
	return text_equal(restart_policy, "Always") ? CONTAINER_SIDECAR : CONTAINER_INIT;
}

int pod_spec_alloc(
	struct pod_spec *s, size_t nr_init, size_t nr_app, struct arena *a, struct err *e)
{
	size_t nr = nr_init + nr_app;

	if (nr > POD_SPEC_CONTAINERS_MAX)
		return err_set(
			e, E2BIG, "%zu containers, more than %d", nr, POD_SPEC_CONTAINERS_MAX);
	s->container = arena_array(a, nr, sizeof *s->container);
	s->nr = (unsigned)nr;
	return s->container ? 0 : err_set(e, ENOMEM, "%zu containers are too many", nr);
}

/* One container's asks. What comes later takes the place of what came earlier: first its limits are
 * put in, then its requests. */

static int put_memory(const struct resource_amount *r, struct ask *c, struct err *e)
{
	bool huge = spec_starts_with(r->name, hugepages);
	uint64_t page = huge ? page_bytes_from_name(r->name + sizeof hugepages - 1) : 0, bytes;
	unsigned i = 0;

	if (huge && !page)
		return err_set(e, EINVAL, "no size of huge pages");
	int rc = quantity_count(r->q, QUANTITY_WHOLE, &bytes, e);
	if (rc)
		return rc;
	while (i < c->nr_memory && c->memory[i].page_bytes != page)
		i++;
	if (i == TOPO_KINDS)
		return err_set(e, ERANGE, "more than %d kinds of memory", TOPO_KINDS);
	c->memory[i] = (struct memory_ask){page, bytes};
	c->nr_memory = i == c->nr_memory ? i + 1 : c->nr_memory;
	return 0;
}

static int put_resources(const struct resource_list *list, struct ask *c, struct err *e)
{
	for (size_t i = 0; i < list->nr; i++) {
		const struct resource_amount *r = &list->at[i];
		int rc = 0;

		if (text_equal(r->name, "cpu"))
			rc = quantity_count(r->q, QUANTITY_MILLI, &c->cpu_milli, e);
		else if (text_equal(r->name, "memory") || spec_starts_with(r->name, hugepages))
			rc = put_memory(r, c, e);
		if (rc)
			return err_add(e, rc, "%.64s", r->name);
	}
	return 0;
}

static int put_device(unsigned resource, struct quantity q, struct ask *c, struct err *e)
{
	unsigned i = c->nr_devices;
	uint64_t count;
	int rc = quantity_count(q, QUANTITY_WHOLE, &count, e);

	if (rc)
		return rc;
	while (i > 0 && c->device[i - 1].resource > resource)
		i--;
	if (i == 0 || c->device[i - 1].resource != resource) {
		if (c->nr_devices == POD_DEVICES_MAX)
			return err_set(e, ERANGE, "more than %d device resources", POD_DEVICES_MAX);
		memmove(&c->device[i + 1], &c->device[i],
			(c->nr_devices++ - i) * sizeof c->device[0]);
		i++;
	}
	c->device[i - 1] = (struct device_ask){resource, count};
	return 0;
}

static int spec_compare_names(const void *key, const void *entry)
{
	return strcmp(key, *(const char *const *)entry);
}

/* The kubelet's device manager goes by the limits (getContainerDeviceRequest). */
static int put_devices(const struct resource_list *limits, const struct resource_names *resources,
	struct ask *c, struct err *e)
{
	for (size_t i = 0; i < limits->nr && resources->nr; i++) {
		const struct resource_amount *r = &limits->at[i];
		const char *const *found = bsearch(r->name, resources->at, resources->nr,
			sizeof *resources->at, spec_compare_names);
		int rc = found ? put_device((unsigned)(found - resources->at), r->q, c, e) : 0;

		if (rc)
			return err_add(e, rc, "%.64s", r->name);
	}
	return 0;
}

/* The amount of that name, or NULL. */
static const struct quantity *find_amount(const struct resource_list *list, const char *name)
{
	const struct quantity *found = NULL;

	for (size_t i = 0; i < list->nr; i++)
		if (text_equal(list->at[i].name, name))
			found = &list->at[i].q;
	return found;
}

static void add_to_qos(const struct resource_spec *s, struct qos_sums *sums)
{
	static const char *const name[NR_QOS_RESOURCES] = {"cpu", "memory"};
	struct qos_said said;

	for (unsigned r = 0; r < NR_QOS_RESOURCES; r++) {
		said.limit[r] = find_amount(&s->limits, name[r]);
		said.request[r] = find_amount(&s->requests, name[r]);
		if (!said.request[r])
			said.request[r] = said.limit[r];
	}
	qos_add(sums, &said);
}

/* What a container or a pod with these resources asks for, into *c, and to the sums. */
static int spec_read_resources(
	const struct resource_spec *r, struct ask *c, struct qos_sums *sums, struct err *e)
{
	int rc = put_resources(&r->limits, c, e);

	if (rc)
		return err_add(e, rc, "limits");
	rc = put_resources(&r->requests, c, e);
	if (rc)
		return err_add(e, rc, "requests");
	add_to_qos(r, sums);
	return 0;
}

/* IsContainerEquivalentQOSGuaranteed; a request that is missing is the limit. */
static bool limits_are_requests(const struct resource_spec *r)
{
	static const char *const name[NR_QOS_RESOURCES] = {"cpu", "memory"};

	for (unsigned i = 0; i < NR_QOS_RESOURCES; i++) {
		const struct quantity *limit = find_amount(&r->limits, name[i]);
		const struct quantity *request = find_amount(&r->requests, name[i]);

		if (!limit || !quantity_compare(*limit, quantity_of(0)) ||
			(request && quantity_compare(*request, *limit)))
			return false;
	}
	return true;
}

static int spec_read_containers(const struct pod_spec *s, const struct resource_names *resources,
	struct ask *ask, struct qos_sums *sums, struct err *e)
{
	for (unsigned i = 0; i < s->nr; i++) {
		const struct container_spec *c = &s->container[i];

		ask[i].name = c->name;
		ask[i].kind = c->kind;
		ask[i].place = i;
		ask[i].guaranteed = limits_are_requests(&c->resources);
		ask[i].has_claims = c->resources.has_claims;
		int rc = spec_read_resources(&c->resources, &ask[i], sums, e);
		if (!rc)
			rc = put_devices(&c->resources.limits, resources, &ask[i], e);
		if (rc)
			return err_add(e, rc, "container %.64s", c->name);
	}
	return 0;
}

static bool has_pod_level(const struct resource_list *list)
{
	for (size_t i = 0; i < list->nr; i++)
		if (text_equal(list->at[i].name, "cpu") || text_equal(list->at[i].name, "memory") ||
			spec_starts_with(list->at[i].name, hugepages))
			return true;
	return false;
}

/* The class of the pod, from the sums of its containers and those of its own resources. */
static enum qos class_of(const struct pod_spec *s, const struct settings *rules, bool pod_level,
	const struct qos_sums *containers, const struct qos_sums *own)
{
	int said = text_index(qos_words, NR_QOS, s->qos);

	if (said >= 0)
		return (enum qos)said;
	if (rules && !rules->gates.pod_level_resources)
		return qos_of(containers);
	if (pod_level || (s->resources.said && rules &&
				 !kubernetes_has(rules->cpu_options.kubernetes,
					 RULE_EMPTY_POD_RESOURCES_ARE_NONE)))
		return qos_of(own);
	return qos_of(containers);
}

bool pod_spec_reads(const char *annotation)
{
	return wishes_is_key(annotation) || advice_source_of(annotation) ||
	       text_equal(annotation, OBSERVED_ANNOTATION);
}

static int keep_annotations(
	const struct pod_spec *s, struct arena *a, struct pod *out, struct err *e)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr_annotations; i++)
		nr += pod_spec_reads(s->annotations[i].key);
	struct key_value *list = arena_array(a, nr, sizeof *list);
	if (!list)
		return err_set(e, ENOMEM, "%zu annotations are too many", nr);
	out->annotations = list;
	for (size_t i = 0; i < s->nr_annotations; i++)
		if (pod_spec_reads(s->annotations[i].key))
			list[out->nr_annotations++] = s->annotations[i];
	return 0;
}

int pod_spec_ask(const struct pod_spec *s, const struct resource_names *resources, struct arena *a,
	const struct settings *rules, struct pod *out, struct err *e)
{
	bool pod_level =
		has_pod_level(&s->resources.requests) || has_pod_level(&s->resources.limits);
	struct ask *ask = arena_array(a, s->nr, sizeof *ask), *own = arena_alloc(a, sizeof *own);
	struct qos_sums sums = {0}, of_pod = {0};

	if (!ask || !own)
		return err_set(e, ENOMEM, "%u containers are too many", s->nr);
	*own = (struct ask){.name = "", .guaranteed = true, .whole_pod = true};
	int rc = spec_read_containers(s, resources, ask, &sums, e);
	if (!rc && pod_level)
		rc = spec_read_resources(&s->resources, own, &of_pod, e);
	if (rc)
		return rc;
	*out = (struct pod){
		.uid = s->uid,
		.ns = s->ns,
		.name = s->name,
		.qos = class_of(s, rules, pod_level, &sums, &of_pod),
		.pod_level = pod_level,
		.own = pod_level ? own : NULL,
		.nr = s->nr,
		.container = ask,
	};
	if (rules)
		pod_obey_gate(rules, out, ask);
	return keep_annotations(s, a, out, e);
}

/* A pod of this node */

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static unsigned spec_sort_once_each(const char **name, unsigned nr)
{
	unsigned kept = 0;

	qsort(name, nr, sizeof *name, compare_strings);
	for (unsigned i = 0; i < nr; i++)
		if (!kept || strcmp(name[kept - 1], name[i]) != 0)
			name[kept++] = name[i];
	return kept;
}

/* All extended resources that containers ask for. */
static int spec_list_resources(
	const struct pod_spec *s, struct arena *a, struct resource_names *out, struct err *e)
{
	size_t room = 0;
	unsigned nr = 0;

	for (unsigned c = 0; c < s->nr; c++)
		room += s->container[c].resources.limits.nr;
	const char **name = arena_array(a, room, sizeof *name);
	if (!name)
		return err_set(e, ENOMEM, "%zu limits are too many", room);
	for (unsigned c = 0; c < s->nr; c++) {
		const struct resource_list *limits = &s->container[c].resources.limits;

		for (size_t i = 0; i < limits->nr; i++)
			if (resource_is_extended(limits->at[i].name))
				name[nr++] = limits->at[i].name;
	}
	*out = (struct resource_names){name, spec_sort_once_each(name, nr)};
	return 0;
}

static int check_lists(const struct resource_spec *s, struct err *e)
{
	size_t nr = s->requests.nr > s->limits.nr ? s->requests.nr : s->limits.nr;

	return nr <= POD_SPEC_RESOURCES_MAX
		       ? 0
		       : err_set(e, E2BIG, "%zu requests or limits, more than %d", nr,
				 POD_SPEC_RESOURCES_MAX);
}

static int check_all_lists(const struct pod_spec *s, struct err *e)
{
	for (unsigned c = 0; c < s->nr; c++) {
		int rc = check_lists(&s->container[c].resources, e);

		if (rc)
			return err_add(e, rc, "container %.64s", s->container[c].name);
	}
	return check_lists(&s->resources, e);
}

int pod_spec_known(const struct pod_spec *s, enum pod_source source, struct arena *a,
	struct known_pod *out, struct err *e)
{
	const char *phase = s->phase;
	struct resource_names resources;
	struct known_pod known = {.owner = s->owner,
		.ended = text_equal(phase, "Succeeded") || text_equal(phase, "Failed")};
	int rc = check_all_lists(s, e);

	if (!rc)
		rc = spec_list_resources(s, a, &resources, e);
	if (!rc)
		rc = pod_spec_ask(s, &resources, a, NULL, &known.pod, e);
	if (rc)
		return rc;
	known.pod.sandbox_id = "";
	known.pod.source = source;
	known.resource = resources.at;
	known.nr_resources = resources.nr;
	*out = known;
	return 0;
}
