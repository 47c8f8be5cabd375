#include <apiserver/slice_write_json.h>

#include <codec/fields_json.h>
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <numafit/request.h>
#include <stdio.h>
#include <string.h>

enum { CAPACITY_NAME_MAX = TEXT_SIZE_MAX + 16, DEVICE_NAME_MAX = 32, PAGE_BYTES = 4096 };

static const struct {
	const char *name;
	size_t at;     /* an unsigned of struct slice_node */
	size_t absent; /* a bool likewise: there is no such attribute; 0: there always is */
} slice_attributes[] = {
	{"resource.kubernetes.io/numaNode", offsetof(struct slice_node, node_id), 0},
	/* those without a domain are the driver's own */
	{"socket", offsetof(struct slice_node, socket), offsetof(struct slice_node, many_sockets)},
	{"l3Caches", offsetof(struct slice_node, nr_caches), 0},
	{"threadsPerCore", offsetof(struct slice_node, threads), 0},
};
enum { NR_ATTRIBUTES = sizeof slice_attributes / sizeof *slice_attributes };

/* What may be asked for of a capacity. */
struct slice_policy {
	uint64_t usual; /* that is meant by a request that does not name it */
	uint64_t min, step;
	bool single; /* nothing but `usual` */
};

/* A range has a min and a step, and both together are not above the value
 * (pkg/apis/resource/validation, validateRequestPolicyRange). */
static struct slice_policy policy_of_cpus(const struct slice_node *node)
{
	const uint64_t step = node->whole_cores && node->threads > 1 ? node->threads : 1;

	return (struct slice_policy){
		.usual = step, .min = step, .step = step, .single = node->cpus < 2 * step};
}

static struct slice_policy policy_of_memory(uint64_t page_bytes)
{
	return (struct slice_policy){.step = page_bytes ? page_bytes : PAGE_BYTES};
}

struct slice_node slice_node_writable(const struct slice_node *node)
{
	struct slice_node out = *node;

	out.whole_cores = node->whole_cores && node->threads > 1;
	if (node->cpus < policy_of_cpus(node).step)
		out.cpus = 0;
	out.nr_memory = 0;
	for (unsigned i = 0; i < node->nr_memory; i++)
		if (node->memory[i].bytes >= policy_of_memory(node->memory[i].page_bytes).step)
			out.memory[out.nr_memory++] = node->memory[i];
	return out;
}

bool slice_node_equal(const struct slice_node *a, const struct slice_node *b)
{
	if (a->many_sockets != b->many_sockets || a->node_id != b->node_id ||
		a->socket != b->socket || a->nr_caches != b->nr_caches ||
		a->threads != b->threads || a->cpus != b->cpus ||
		a->whole_cores != b->whole_cores || a->closed != b->closed ||
		a->nr_memory != b->nr_memory)
		return false;
	for (unsigned i = 0; i < a->nr_memory; i++)
		if (a->memory[i].page_bytes != b->memory[i].page_bytes ||
			a->memory[i].bytes != b->memory[i].bytes)
			return false;
	return true;
}

/* FNV-1a */
static uint64_t slice_hash(const char *s)
{
	const uint64_t prime = UINT64_C(0x100000001b3);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *s; s++)
		hash = (hash ^ (unsigned char)*s) * prime;
	return hash;
}

const char *slice_object_name(char buf[SLICE_OBJECT_NAME_MAX], const char *node_name)
{
	static const char suffix[] = "-" CLAIM_DRIVER;
	enum { HASH_LENGTH = 17 /* "-0123456789abcdef" */ };
	size_t len = strlen(node_name), most = SLICE_OBJECT_NAME_MAX - sizeof suffix;

	if (len <= most) {
		(void)snprintf(buf, SLICE_OBJECT_NAME_MAX, "%s%s", node_name, suffix);
		return buf;
	}
	len = most - HASH_LENGTH;
	while (len && !isalnum((unsigned char)node_name[len - 1])) /* ".-" would be no name */
		len--;
	(void)snprintf(buf, SLICE_OBJECT_NAME_MAX, "%.*s-%016llx%s", (int)len, node_name,
		(unsigned long long)slice_hash(node_name), suffix);
	return buf;
}

static const char *slice_device_name(char buf[DEVICE_NAME_MAX], unsigned node_id)
{
	(void)snprintf(buf, DEVICE_NAME_MAX, CLAIM_DEVICE_PREFIX "%u", node_id);
	return buf;
}

/* Writing */

static json_t *write_quantity(uint64_t amount)
{
	char text[TEXT_SIZE_MAX];

	return json_string(text_size(text, amount));
}

static json_t *write_policy(struct slice_policy p)
{
	if (p.single)
		return json_pack("{s:o,s:[o]}", "default", write_quantity(p.usual), "validValues",
			write_quantity(p.usual));
	return json_pack("{s:o,s:{s:o,s:o}}", "default", write_quantity(p.usual), "validRange",
		"min", write_quantity(p.min), "step", write_quantity(p.step));
}

static void write_capacity(
	json_t *capacities, const char *name, json_t *value, struct slice_policy p)
{
	(void)json_object_set_new(capacities, name,
		json_pack("{s:o,s:o}", "value", value, "requestPolicy", write_policy(p)));
}

static json_t *write_capacities(const struct slice_node *node)
{
	json_t *capacities = json_object();
	char name[CAPACITY_NAME_MAX], size[TEXT_SIZE_MAX], cpus[TEXT_SIZE_MAX];

	(void)snprintf(cpus, sizeof cpus, "%llu", (unsigned long long)node->cpus); /* not "1Ki" */
	write_capacity(capacities, CLAIM_CAPACITY_CPU, json_string(cpus), policy_of_cpus(node));
	for (unsigned i = 0; i < node->nr_memory; i++) {
		const struct memory_ask *m = &node->memory[i];

		(void)snprintf(name, sizeof name, "%s%s",
			m->page_bytes ? CLAIM_CAPACITY_HUGEPAGES : CLAIM_CAPACITY_MEMORY,
			m->page_bytes ? text_size(size, m->page_bytes) : "");
		write_capacity(capacities, name, write_quantity(m->bytes),
			policy_of_memory(m->page_bytes));
	}
	return capacities;
}

static json_t *write_attributes(const struct slice_node *node)
{
	json_t *attributes = json_object();

	for (size_t i = 0; i < NR_ATTRIBUTES; i++) {
		const unsigned *number =
			(const void *)((const char *)node + slice_attributes[i].at);
		const bool *absent =
			(const void *)((const char *)node + slice_attributes[i].absent);

		if (slice_attributes[i].absent && *absent)
			continue;
		(void)json_object_set_new(attributes, slice_attributes[i].name,
			json_pack("{s:I}", "int", (json_int_t)*number));
	}
	return attributes;
}

static json_t *write_devices(const struct slice_to_write *s)
{
	json_t *list = json_array();
	char name[DEVICE_NAME_MAX];

	for (size_t i = 0; i < s->nr; i++) {
		struct slice_node node = slice_node_writable(&s->node[i]);
		json_t *taints = node.closed ? json_pack("[{s:s,s:s}]", "key", SLICE_TAINT_CLOSED,
						       "effect", "NoSchedule")
					     : NULL;

		if (node.cpus)
			(void)json_array_append_new(
				list, json_pack("{s:s,s:b,s:o,s:o,s:o*}", "name",
					      slice_device_name(name, node.node_id),
					      "allowMultipleAllocations", 1, "attributes",
					      write_attributes(&node), "capacity",
					      write_capacities(&node), "taints", taints));
		else
			json_decref(taints);
	}
	return list;
}

static json_t *write_metadata(const struct slice_to_write *s)
{
	json_t *owners = s->node_uid ? json_pack("[{s:s,s:s,s:s,s:s}]", "apiVersion", "v1", "kind",
					       "Node", "name", s->node_name, "uid", s->node_uid)
				     : NULL;

	if (s->node_uid && !owners)
		return NULL;
	return json_pack("{s:s,s:s*,s:o*}", "name", s->name, "resourceVersion", s->resource_version,
		"ownerReferences", owners);
}

char *slice_write_json(const struct slice_to_write *s)
{
	json_t *metadata = write_metadata(s);
	json_t *object = metadata ? json_pack("{s:s,s:s,s:o,s:{s:s,s:s,s:{s:s,s:I,s:i},s:o}}",
					    "apiVersion", "resource.k8s.io/v1", "kind",
					    "ResourceSlice", "metadata", metadata, "spec", "driver",
					    CLAIM_DRIVER, "nodeName", s->node_name, "pool", "name",
					    s->node_name, "generation", (json_int_t)s->generation,
					    "resourceSliceCount", 1, "devices", write_devices(s))
				  : NULL;
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	json_decref(object);
	return text;
}

/* Reading it back */

static const char *slice_text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_member(object, key));

	return s ? s : "";
}

void slice_head_read(const json_t *object, struct slice_head *out)
{
	const json_t *metadata = json_member(object, "metadata"),
		     *spec = json_member(object, "spec");
	const json_t *pool = json_member(spec, "pool");
	json_int_t generation = json_integer_value(json_member(pool, "generation"));

	*out = (struct slice_head){
		.name = slice_text(metadata, "name"),
		.version = slice_text(metadata, "resourceVersion"),
		.driver = slice_text(spec, "driver"),
		.node_name = slice_text(spec, "nodeName"),
		.pool = slice_text(pool, "name"),
		.generation = generation > 0 ? (uint64_t)generation : 0,
	};
}

/* Nothing, or what JSON has for it. */
static bool slice_is_nothing(const json_t *v)
{
	return !v || json_is_null(v) || json_is_false(v) ||
	       (json_is_array(v) && !json_array_size(v)) ||
	       (json_is_object(v) && !json_object_size(v)) ||
	       (json_is_string(v) && !json_string_length(v));
}

/* What these members would say is never written. Others, which Kubernetes may have some day, are
 * passed by: to write the object again and again would change nothing. */
static int want_nothing(const json_t *object, const char *const *keys, struct err *e)
{
	for (; *keys; keys++)
		if (!slice_is_nothing(json_object_get(object, *keys)))
			return err_set(e, EINVAL, "%s: should not be there", *keys);
	return 0;
}

static int want_amount(const json_t *object, const char *key, uint64_t wanted, struct err *e)
{
	struct quantity q;
	int rc = json_quantity(json_object_get(object, key), &q, e);

	if (rc)
		return err_add(e, rc, "%s", key);
	if (quantity_compare(q, quantity_of((int64_t)wanted)))
		return err_set(e, EINVAL, "%s: should be %llu", key, (unsigned long long)wanted);
	return 0;
}

static int want_single_value(const json_t *policy, uint64_t wanted, struct err *e)
{
	const json_t *values = json_member(policy, "validValues");
	struct quantity q;

	if (json_array_size(values) != 1 || json_quantity(json_array_get(values, 0), &q, NULL) ||
		quantity_compare(q, quantity_of((int64_t)wanted)))
		return err_set(
			e, EINVAL, "validValues: should be [\"%llu\"]", (unsigned long long)wanted);
	return 0;
}

static int want_policy(const json_t *capacity, struct slice_policy wanted, struct err *e)
{
	static const char *const range_alone[] = {"validValues", NULL};
	static const char *const value_alone[] = {"validRange", NULL};
	static const char *const no_max[] = {"max", NULL};
	const json_t *policy = json_member(capacity, "requestPolicy");
	const json_t *range = json_member(policy, "validRange");
	int rc = want_amount(policy, "default", wanted.usual, e);

	if (!rc)
		rc = want_nothing(policy, wanted.single ? value_alone : range_alone, e);
	if (!rc && wanted.single)
		rc = want_single_value(policy, wanted.usual, e);
	if (!rc && !wanted.single && !(rc = want_nothing(range, no_max, e)))
		rc = want_amount(range, "min", wanted.min, e);
	if (!rc && !wanted.single)
		rc = want_amount(range, "step", wanted.step, e);
	return rc ? err_add(e, rc, "requestPolicy") : 0;
}

static int add_memory(struct slice_node *node, uint64_t page_bytes, uint64_t bytes, struct err *e)
{
	unsigned i = node->nr_memory;

	if (node->nr_memory == TOPO_KINDS)
		return err_set(e, EINVAL, "more than %d kinds of memory", TOPO_KINDS);
	while (i > 0 && node->memory[i - 1].page_bytes > page_bytes)
		i--;
	if (i > 0 && node->memory[i - 1].page_bytes == page_bytes)
		return err_set(e, EINVAL, "it is there twice");
	memmove(&node->memory[i + 1], &node->memory[i],
		(node->nr_memory++ - i) * sizeof *node->memory);
	node->memory[i] = (struct memory_ask){page_bytes, bytes};
	return 0;
}

/* Its attributes are read by then. */
static bool is_by_cores(const struct slice_node *node, const json_t *capacity)
{
	const json_t *usual = json_member(json_member(capacity, "requestPolicy"), "default");
	struct quantity q;

	return node->threads > 1 && !json_quantity(usual, &q, NULL) &&
	       quantity_compare(q, quantity_of(node->threads)) == 0;
}

static int slice_read_capacity(
	struct slice_node *node, const char *name, const json_t *capacity, struct err *e)
{
	const char *size = text_behind(name, CLAIM_CAPACITY_HUGEPAGES);
	uint64_t page_bytes = size ? page_bytes_from_name(size) : 0;
	struct quantity q;
	int rc = json_quantity(json_object_get(capacity, "value"), &q, e);

	if (!rc && (q.nano || q.whole <= 0))
		return err_set(e, EINVAL, "value: should be a whole number above 0");
	if (rc)
		return err_add(e, rc, "value");
	if (text_equal(name, CLAIM_CAPACITY_CPU)) {
		node->cpus = (uint64_t)q.whole;
		node->whole_cores = is_by_cores(node, capacity);
		return want_policy(capacity, policy_of_cpus(node), e);
	}
	if (!page_bytes && !text_equal(name, CLAIM_CAPACITY_MEMORY))
		return err_set(e, EINVAL, "should not be there");
	rc = add_memory(node, page_bytes, (uint64_t)q.whole, e);
	return rc ? rc : want_policy(capacity, policy_of_memory(page_bytes), e);
}

static int slice_read_capacities(struct slice_node *node, const json_t *device, struct err *e)
{
	json_t *capacities = json_member(device, "capacity");

	for (void *it = json_object_iter(capacities); it;
		it = json_object_iter_next(capacities, it)) {
		const char *name = json_object_iter_key(it);
		int rc = slice_read_capacity(node, name, json_object_iter_value(it), e);

		if (rc)
			return err_add(e, rc, "capacity: %.64s", name);
	}
	return node->cpus ? 0 : err_set(e, EINVAL, "capacity: " CLAIM_CAPACITY_CPU ": is missing");
}

static int slice_read_attributes(struct slice_node *node, const json_t *device, struct err *e)
{
	const json_t *attributes = json_member(device, "attributes");
	size_t nr = NR_ATTRIBUTES;

	for (size_t i = 0; i < NR_ATTRIBUTES; i++) {
		const char *name = slice_attributes[i].name;
		const json_t *attribute = json_member(attributes, name),
			     *v = json_member(attribute, "int");

		if (slice_attributes[i].absent && !attribute) {
			*(bool *)(void *)((char *)node + slice_attributes[i].absent) = true;
			nr--;
			continue;
		}
		if (!json_is_integer(v) || json_integer_value(v) < 0 ||
			json_integer_value(v) > UINT_MAX)
			return err_set(e, EINVAL, "attributes: %s: should be a number", name);
		*(unsigned *)(void *)((char *)node + slice_attributes[i].at) =
			(unsigned)json_integer_value(v);
	}
	if (json_object_size(attributes) != nr)
		return err_set(e, EINVAL, "attributes: %zu of them, not %zu",
			json_object_size(attributes), nr);
	return 0;
}

static int slice_read_taints(struct slice_node *node, const json_t *device, struct err *e)
{
	static const char *const no_value[] = {"value", NULL};
	const json_t *taints = json_object_get(device, "taints"),
		     *taint = json_array_get(taints, 0);

	if (slice_is_nothing(taints))
		return 0;
	if (json_array_size(taints) != 1 ||
		!text_equal(slice_text(taint, "key"), SLICE_TAINT_CLOSED) ||
		!text_equal(slice_text(taint, "effect"), "NoSchedule") ||
		want_nothing(taint, no_value, NULL))
		return err_set(e, EINVAL, "taints: another one than " SLICE_TAINT_CLOSED);
	node->closed = true;
	return 0;
}

static int slice_read_device(const json_t *device, struct slice_node *out, struct err *e)
{
	static const char *const others[] = {"consumesCounters", "nodeName", "nodeSelector",
		"allNodes", "bindsToNode", "bindingConditions", "bindingFailureConditions",
		"nodeAllocatableResources", NULL};
	char name[DEVICE_NAME_MAX];

	if (!json_is_true(json_object_get(device, "allowMultipleAllocations")))
		return err_set(e, EINVAL, "allowMultipleAllocations: should be true");
	int rc = want_nothing(device, others, e);
	if (!rc)
		rc = slice_read_attributes(out, device, e);
	if (!rc)
		rc = slice_read_capacities(out, device, e);
	if (!rc)
		rc = slice_read_taints(out, device, e);
	if (!rc && !text_equal(slice_text(device, "name"), slice_device_name(name, out->node_id)))
		return err_set(e, EINVAL, "name: should be %s", name);
	return rc;
}

static int slice_read_devices(const json_t *spec, struct slice_written *out, struct err *e)
{
	const json_t *list = json_member(spec, "devices");

	out->nr = json_array_size(list);
	if (!out->nr || out->nr > SLICE_DEVICES_MAX)
		return err_set(e, EINVAL, "devices: %zu of them", out->nr);
	for (size_t i = 0; i < out->nr; i++) {
		int rc = slice_read_device(json_array_get(list, i), &out->node[i], e);

		if (rc)
			return err_add(e, rc, "devices[%zu]", i);
	}
	return 0;
}

static int slice_read_owner(const json_t *object, struct slice_written *out, struct err *e)
{
	const json_t *owners = json_member(json_member(object, "metadata"), "ownerReferences");
	const json_t *owner = json_array_get(owners, 0);

	if (slice_is_nothing(owners))
		return 0;
	if (json_array_size(owners) != 1 || !text_equal(slice_text(owner, "kind"), "Node") ||
		!*slice_text(owner, "uid"))
		return err_set(e, EINVAL, "ownerReferences: should be the Node");
	out->owner_uid = slice_text(owner, "uid");
	return 0;
}

int slice_written_read(const json_t *object, struct slice_written *out, struct err *e)
{
	static const char *const others[] = {"nodeSelector", "allNodes", "perDeviceNodeSelection",
		"sharedCounters", "skipNodeOperations", NULL};
	const json_t *spec = json_member(object, "spec"), *pool = json_member(spec, "pool");
	struct slice_head head;

	memset(out, 0, sizeof *out);
	slice_head_read(object, &head);
	if (!text_equal(head.driver, CLAIM_DRIVER))
		return err_set(e, EINVAL, "driver: should be " CLAIM_DRIVER);
	if (!*head.node_name || !text_equal(head.pool, head.node_name))
		return err_set(e, EINVAL, "pool: should have the node's name");
	if (json_integer_value(json_member(pool, "resourceSliceCount")) != 1)
		return err_set(e, EINVAL, "pool: resourceSliceCount: should be 1");
	int rc = want_nothing(spec, others, e);
	if (!rc)
		rc = slice_read_devices(spec, out, e);
	return rc ? rc : slice_read_owner(object, out, e);
}
