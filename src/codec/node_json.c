#include <codec/node_json.h>

#include <codec/fields_json.h>
#include <codec/pod_json.h>
#include <codec/policy_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <string.h>

enum {
	KUBELET_MAX_NODES = 8,
	WORK_BYTES = 2 << 20,
	KEY_MAX = 256,
	DEVICES_MAX = 4096,
	CPU_FIELDS = 5
};

/* One question, as far as it was read. */
struct question {
	struct topo topo;
	struct settings settings;
	struct reserved_memory node_allocatable[TOPO_KINDS];
	unsigned nr_node_allocatable, nr_resources;
	struct device_resource resource[POD_DEVICES_MAX];
};

/* The machine */

static int read_hugepages(json_t *pages, unsigned node, struct topo *t, struct err *e)
{
	static const char prefix[] = "hugepages-";

	for (void *it = json_object_iter(pages); it; it = json_object_iter_next(pages, it)) {
		const char *type = json_object_iter_key(it);
		bool ours = strncmp(type, prefix, sizeof prefix - 1) == 0;
		uint64_t size = ours ? page_bytes_from_name(type + sizeof prefix - 1) : 0, nr;
		int rc = size ? json_number(json_object_iter_value(it), INT64_MAX / size, &nr, e)
			      : err_set(e, EINVAL, "no size of huge pages");

		if (!rc)
			rc = topo_set_memory(t, node, size, nr * size, e);
		if (rc)
			return err_add(e, rc, "hugepages: %.64s", type);
	}
	return 0;
}

static int read_node(json_t *v, struct topo *t, struct err *e)
{
	static const char *const keys[] = {"id", "memory", "hugepages", NULL};
	uint64_t id, bytes = 0;
	int rc = json_only_keys(v, keys, e);

	if (!rc)
		rc = json_number(json_object_get(v, "id"), NODE_ID_MAX, &id, e);
	if (!rc && json_object_get(v, "memory"))
		rc = json_number(json_object_get(v, "memory"), INT64_MAX, &bytes, e);
	int node = rc ? rc : topo_add_node(t, (unsigned)id, e);
	if (node < 0)
		return node;
	rc = topo_set_memory(t, (unsigned)node, 0, bytes, e);
	return rc ? rc : read_hugepages(json_object_get(v, "hugepages"), (unsigned)node, t, e);
}

/* [cpu, core, socket, numa, uncore] */
static int read_cpu(const json_t *row, struct topo *t, struct err *e)
{
	uint64_t n[CPU_FIELDS];

	if (json_array_size(row) != CPU_FIELDS)
		return json_want("a list of 5 numbers", row, e);
	for (unsigned i = 0; i < CPU_FIELDS; i++) {
		int rc = json_number(json_array_get(row, i), NODE_ID_MAX, &n[i], e);

		if (rc)
			return rc;
	}
	int node = node_index(&t->ids, (unsigned)n[3]);
	if (node < 0)
		return err_set(e, EINVAL, "there is no NUMA node %u", (unsigned)n[3]);
	return topo_add_cpu(t, (unsigned)n[0], (unsigned)node, (unsigned)n[1], (unsigned)n[2],
		(unsigned)n[4], e);
}

static int read_distances(json_t *table, struct topo *t, struct err *e)
{
	for (void *it = json_object_iter(table); it; it = json_object_iter_next(table, it)) {
		const char *id = json_object_iter_key(it);
		json_t *row = json_object_iter_value(it);
		uint64_t from, d;
		int rc = text_u64(id, strlen(id), NODE_ID_MAX, &from, e);
		int node = rc ? -1 : node_index(&t->ids, (unsigned)from);

		if (node < 0 || json_array_size(row) != t->ids.nr)
			return err_set(e, EINVAL,
				"distances: \"%.16s\" should be a NUMA node with one number for "
				"each",
				id);
		for (unsigned to = 0; to < t->ids.nr && !rc; to++) {
			rc = json_number(json_array_get(row, to), DISTANCE_MAX, &d, e);
			if (!rc)
				rc = topo_set_distance(t, (unsigned)node, to, (unsigned)d, e);
		}
		if (rc)
			return err_add(e, rc, "distances: %.16s", id);
	}
	return 0;
}

static int each(const json_t *list, int (*read)(json_t *v, struct topo *t, struct err *e),
	const char *what, struct topo *t, struct err *e)
{
	if (!json_is_array(list))
		return err_add(e, json_want("a list", list, e), "%s", what);
	for (size_t i = 0; i < json_array_size(list); i++) {
		int rc = read(json_array_get(list, i), t, e);

		if (rc)
			return err_add(e, rc, "%s: element %zu", what, i);
	}
	return 0;
}

static int read_cpu_row(json_t *v, struct topo *t, struct err *e)
{
	return read_cpu(v, t, e);
}

static int read_topo(const json_t *m, struct topo *t, struct err *e)
{
	topo_init(t, "machine");
	t->made_up = true;
	int rc = each(json_object_get(m, "nodes"), read_node, "nodes", t, e);
	if (!rc)
		rc = each(json_object_get(m, "cpus"), read_cpu_row, "cpus", t, e);
	if (!rc)
		rc = read_distances(json_object_get(m, "distances"), t, e);
	return rc ? rc : topo_seal(t, e);
}

/* Devices */

static int read_device_nodes(
	const json_t *nodes, const struct topo *t, struct device *d, struct err *e)
{
	uint64_t id;

	d->has_topology = json_is_array(nodes);
	if (!d->has_topology && !json_is_null(nodes))
		return json_want("a list of NUMA nodes or null", nodes, e);
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		int rc = json_number(json_array_get(nodes, i), NODE_ID_MAX, &id, e);
		int node = rc ? -1 : node_index(&t->ids, (unsigned)id);

		if (rc)
			return rc;
		d->placed = true;
		if (node >= 0)
			d->nodes = nodeset_or(d->nodes, nodeset_of((unsigned)node));
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct device *)a)->id, ((const struct device *)b)->id);
}

static int read_resource(const char *name, const json_t *list, const struct topo *t,
	struct arena *a, struct device_resource *r, struct err *e)
{
	size_t nr = json_array_size(list);
	struct device *d = nr <= DEVICES_MAX ? arena_array(a, nr, sizeof *d) : NULL;

	if (!json_is_array(list))
		return json_want("a list", list, e);
	if (!d)
		return err_set(e, ENOMEM, "too many devices");
	for (size_t i = 0; i < nr; i++) {
		const json_t *v = json_array_get(list, i);

		d[i].id = json_string_value(json_object_get(v, "id"));
		d[i].healthy = json_is_true(json_object_get(v, "healthy"));
		if (!d[i].id)
			return json_want("an object with an id", v, e);
		int rc = read_device_nodes(json_object_get(v, "nodes"), t, &d[i], e);
		if (rc)
			return err_add(e, rc, "%.64s: nodes", d[i].id);
	}
	qsort(d, nr, sizeof *d, by_id);
	*r = (struct device_resource){.name = name, .nr = (unsigned)nr, .device = d};
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct device_resource *)a)->name,
		((const struct device_resource *)b)->name);
}

static int read_devices(json_t *devices, struct arena *a, struct question *q, struct err *e)
{
	for (void *it = json_object_iter(devices); it; it = json_object_iter_next(devices, it)) {
		const char *name = json_object_iter_key(it);

		if (q->nr_resources == POD_DEVICES_MAX)
			return err_set(
				e, ERANGE, "devices: more than %d resources", POD_DEVICES_MAX);
		int rc = read_resource(name, json_object_iter_value(it), &q->topo, a,
			&q->resource[q->nr_resources++], e);
		if (rc)
			return err_add(e, rc, "devices: %.64s", name);
	}
	qsort(q->resource, q->nr_resources, sizeof *q->resource, by_name);
	return 0;
}

static int read_machine(json_t *m, struct arena *a, struct question *q, struct err *e)
{
	static const char *const keys[] = {"nodes", "distances", "cpus_fields", "cpus", "num_cores",
		"num_sockets", "devices", NULL};

	if (!json_is_object(m))
		return json_want("an object", m, e);
	int rc = json_only_keys(m, keys, e);
	if (!rc)
		rc = read_topo(m, &q->topo, e);
	return rc ? rc : read_devices(json_object_get(m, "devices"), a, q, e);
}

/* Settings: every value under its path, as a config file would have it */

static int set_value(struct question *q, const char *path, const json_t *v, struct err *e)
{
	char number[TEXT_SIZE_MAX];
	const char *text = json_string_value(v);
	struct text t;

	text_init(&t, number, sizeof number);
	if (json_is_integer(v))
		text_add(&t, "%lld", (long long)json_integer_value(v));
	else if (json_is_boolean(v))
		text_add(&t, "%s", json_is_true(v) ? "true" : "false");
	else if (!text)
		return err_add(
			e, json_want("a string, a number or a boolean", v, e), "%.64s", path);
	return settings_set(&q->settings, path, text ? text : number, e);
}

static int set_under(struct question *q, const char *path, json_t *v, struct err *e)
{
	char key[KEY_MAX];
	struct text t;
	int rc = 0;

	for (size_t i = 0; i < json_array_size(v) && !rc; i++) {
		text_init(&t, key, sizeof key);
		text_add(&t, "%s.%zu", path, i);
		rc = set_under(q, key, json_array_get(v, i), e);
	}
	for (void *it = json_object_iter(v); it && !rc; it = json_object_iter_next(v, it)) {
		text_init(&t, key, sizeof key);
		text_add(&t, "%s%s%s", path, *path ? "." : "", json_object_iter_key(it));
		rc = set_under(q, key, json_object_iter_value(it), e);
	}
	return rc || json_is_object(v) || json_is_array(v) ? rc : set_value(q, path, v, e);
}

/* systemReserved and kubeReserved: CPUs are a setting, memory is what reservedMemory must add up
 * to. */
static int read_reservation(struct question *q, const char *key, json_t *v, struct err *e)
{
	for (void *it = json_object_iter(v); it; it = json_object_iter_next(v, it)) {
		const char *type = json_object_iter_key(it);
		char path[KEY_MAX];
		struct text t;
		uint64_t bytes;
		unsigned i = 0;
		int rc;

		text_init(&t, path, sizeof path);
		text_add(&t, "%s.%s", key, type);
		if (text_equal(type, "cpu")) {
			rc = set_value(q, path, json_object_iter_value(it), e);
			if (rc)
				return rc;
			continue;
		}
		rc = quantity_json_read(json_object_iter_value(it), false, &bytes, e);
		if (rc)
			return err_add(e, rc, "%.64s", path);
		while (i < q->nr_node_allocatable && !text_equal(q->node_allocatable[i].type, type))
			i++;
		if (i == TOPO_KINDS)
			return err_set(e, ERANGE, "%.64s: more than %d types", path, TOPO_KINDS);
		(void)text_copy(
			q->node_allocatable[i].type, sizeof q->node_allocatable[i].type, type);
		q->node_allocatable[i].bytes += bytes;
		q->nr_node_allocatable =
			i == q->nr_node_allocatable ? i + 1 : q->nr_node_allocatable;
	}
	return 0;
}

static int read_settings(json_t *settings, struct question *q, struct err *e)
{
	if (!json_is_object(settings))
		return json_want("an object", settings, e);
	settings_init(&q->settings);
	q->settings.topology_policy = POLICY_NONE; /* the kubelet's defaults */
	q->settings.cpu_manager_policy = q->settings.memory_manager_policy = MANAGER_NONE;
	for (void *it = json_object_iter(settings); it; it = json_object_iter_next(settings, it)) {
		const char *key = json_object_iter_key(it);
		bool reservation =
			text_equal(key, "systemReserved") || text_equal(key, "kubeReserved");
		int rc = reservation ? read_reservation(q, key, json_object_iter_value(it), e)
				     : set_under(q, key, json_object_iter_value(it), e);

		if (rc)
			return rc;
	}
	if (!q->settings.max_allowable_numa_nodes)
		q->settings.max_allowable_numa_nodes = KUBELET_MAX_NODES;
	return 0;
}

/* Answers */

static json_t *list_of_nodes(const struct topo *t, struct nodeset nodes)
{
	json_t *list = json_array();

	nodeset_each (n, nodes)
		(void)json_array_append_new(list, json_integer(t->ids.id[n]));
	return list;
}

static json_t *list_of_cpus(const struct cpuset *cpus)
{
	json_t *list = json_array();

	cpuset_each (cpu, cpus)
		(void)json_array_append_new(list, json_integer(cpu));
	return list;
}

/* Kinds of memory in the order of their names: "memory" is last, huge pages as text. */
static unsigned kinds_by_name(const struct topo *t, unsigned kind[TOPO_KINDS])
{
	char name[TOPO_KINDS][TOPO_NAME_MAX];

	for (unsigned k = 0; k < t->nr_kinds; k++) {
		unsigned at = k;

		(void)topo_kind_name(t, k, name[k], sizeof name[k]);
		for (; at > 0 && strcmp(name[kind[at - 1]], name[k]) > 0; at--)
			kind[at] = kind[at - 1];
		kind[at] = k;
	}
	return t->nr_kinds;
}

static json_t *bytes_by_type(const struct topo *t, const uint64_t bytes[TOPO_KINDS])
{
	json_t *by_type = json_object();
	char name[TOPO_NAME_MAX];

	for (unsigned k = 0; k < t->nr_kinds; k++)
		(void)json_object_set_new(by_type, topo_kind_name(t, k, name, sizeof name),
			json_integer((json_int_t)bytes[k]));
	return by_type;
}

static json_t *memory_result(const struct question *q, const struct node *n)
{
	const struct memory_state *m = node_memory(n);
	json_t *nodes = json_object();

	nodeset_each (i, q->topo.nodes) {
		const struct memory_node *node = &m->node[i];
		char id[TEXT_SIZE_MAX];
		struct text t;

		text_init(&t, id, sizeof id);
		text_add(&t, "%u", q->topo.ids.id[i]);
		(void)json_object_set_new(nodes, id,
			json_pack("{s:i, s:o, s:o, s:o}", "assignments", (int)node->assignments,
				"cells", list_of_nodes(&q->topo, node->group), "free",
				bytes_by_type(&q->topo, node->free), "reserved",
				bytes_by_type(&q->topo, node->reserved)));
	}
	return nodes;
}

static json_t *blocks_result(const struct question *q, const struct memory_container *c)
{
	unsigned kind[TOPO_KINDS] = {0}, nr = kinds_by_name(&q->topo, kind);
	json_t *blocks = json_array();

	for (unsigned k = 0; k < nr; k++)
		for (unsigned b = 0; b < c->nr_blocks; b++) {
			char name[TOPO_NAME_MAX];

			if (c->blocks[b].kind != kind[k])
				continue;
			(void)json_array_append_new(blocks,
				json_pack("{s:s, s:o, s:I}", "type",
					topo_kind_name(&q->topo, kind[k], name, sizeof name),
					"nodes", list_of_nodes(&q->topo, c->blocks[b].nodes),
					"size", (json_int_t)c->blocks[b].bytes));
		}
	return blocks;
}

static json_t *devices_result(const struct question *q, const struct node_container *c)
{
	json_t *devices = json_object();

	for (unsigned r = 0; r < q->nr_resources; r++) {
		json_t *ids = c->device[r] ? json_array() : NULL;

		for (unsigned i = 0; ids && i < q->resource[r].nr; i++)
			if (c->device[r][i])
				(void)json_array_append_new(
					ids, json_string(q->resource[r].device[i].id));
		if (ids && json_array_size(ids))
			(void)json_object_set(devices, q->resource[r].name, ids);
		json_decref(ids);
	}
	return devices;
}

static json_t *containers_result(const struct question *q, const struct node_pod *p)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < p->nr; i++) {
		const struct node_container *c = &p->container[i];
		json_t *devices = devices_result(q, c);
		json_t *v = json_pack("{s:s, s:o, s:b, s:o, s:o}", "name", c->name, "affinity",
			c->affinity.any ? json_null() : list_of_nodes(&q->topo, c->affinity.mask),
			"preferred", c->affinity.preferred, "cpus",
			cpuset_empty(&c->cpus) ? json_null() : list_of_cpus(&c->cpus), "memory",
			p->memory[i].nr_blocks ? blocks_result(q, &p->memory[i]) : json_null());

		if (json_object_size(devices))
			(void)json_object_set(v, "devices", devices);
		json_decref(devices);
		(void)json_array_append_new(list, v);
	}
	return list;
}

/* Steps */

struct run {
	const struct question *q;
	struct node *node;
	struct arena *arena; /* what is read */
	void *work;          /* what a decision needs */
	json_t *result;      /* of this step */
};

static int step_admit(struct run *r, const json_t *step, struct err *e)
{
	struct pod_ask pod;
	struct refusal why;
	struct arena work;
	int rc = pod_json_read(json_object_get(step, "pod"), r->q->resource, r->q->nr_resources,
		r->arena, &pod, e);

	if (rc)
		return err_add(e, rc, "pod");
	arena_init_fixed(&work, r->work, WORK_BYTES);
	rc = node_admit(r->node, &pod, &work, &why);
	(void)json_object_set_new(r->result, "admit", json_boolean(!rc));
	if (rc) {
		(void)json_object_set_new(r->result, "reason", json_string(why.reason));
		(void)json_object_set_new(r->result, "message", json_message(why.message));
	} else {
		(void)json_object_set_new(r->result, "containers",
			containers_result(r->q, node_find(r->node, pod.uid)));
	}
	return 0;
}

static int step_start(struct run *r, const json_t *step, struct err *e)
{
	const char *uid = json_string_value(json_object_get(step, "uid"));
	const json_t *names = json_object_get(step, "containers");

	if (!uid || !json_is_array(names))
		return json_want("an object with uid and containers", step, e);
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));

		if (!name)
			return err_add(e, json_want("a string", json_array_get(names, i), e),
				"containers");
		node_start(r->node, uid, name);
	}
	return 0;
}

static int step_remove(struct run *r, const json_t *step, struct err *e)
{
	const char *uid = json_string_value(json_object_get(step, "uid"));

	if (!uid)
		return json_want("an object with uid", step, e);
	node_remove(r->node, uid);
	return 0;
}

static const struct {
	const char *op;
	int (*run)(struct run *r, const json_t *step, struct err *e);
} ops[] = {{"admit", step_admit}, {"start", step_start}, {"remove", step_remove}};

static int run_step(struct run *r, json_t *step, struct err *e)
{
	const char *op = json_string_value(json_object_get(step, "op"));
	struct cpuset shared;

	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		if (!text_equal(op, ops[i].op))
			continue;
		int rc = ops[i].run(r, step, e);

		shared = node_shared_cpus(r->node);
		(void)json_object_set_new(r->result, "shared_cpus", list_of_cpus(&shared));
		if (r->q->settings.memory_manager_policy == MANAGER_STATIC)
			(void)json_object_set_new(
				r->result, "memory", memory_result(r->q, r->node));
		return rc;
	}
	return err_set(e, EINVAL, "op \"%.32s\" is not one of admit, start, remove", op ? op : "");
}

static int run_steps(struct run *r, const json_t *steps, json_t *results, struct err *e)
{
	if (!json_is_array(steps))
		return json_want("a list", steps, e);
	for (size_t i = 0; i < json_array_size(steps); i++) {
		r->result = json_object();
		int rc = run_step(r, json_array_get(steps, i), e);

		(void)json_array_append_new(results, r->result);
		if (rc)
			return err_add(e, rc, "element %zu", i);
	}
	return 0;
}

static int answer(const struct question *q, const json_t *steps, struct arena *a, json_t **result,
	struct err *e)
{
	auto_free void *work = xcalloc(1, WORK_BYTES);
	struct run r = {.q = q, .arena = a, .work = work};
	struct err why;

	r.node = node_new(&q->topo, &q->settings, q->resource, q->nr_resources, &why);
	if (r.node && q->settings.memory_manager_policy == MANAGER_STATIC &&
		memory_check_reserved(&q->topo, &q->settings, q->node_allocatable,
			q->nr_node_allocatable, &why)) {
		node_free(r.node);
		r.node = NULL;
	}
	if (!r.node) {
		*result = policy_json_refusal(why.text);
		return 0;
	}
	struct cpuset reserved = node_reserved_cpus(r.node);
	json_t *results = json_array();
	int rc = run_steps(&r, steps, results, e);
	node_free(r.node);
	if (rc) {
		json_decref(results);
		return err_add(e, rc, "steps");
	}
	*result =
		json_pack("{s:o, s:o}", "reserved_cpus", list_of_cpus(&reserved), "steps", results);
	return 0;
}

int node_json_answer(json_t *item, struct arena *a, json_t **result, struct err *e)
{
	static const char *const keys[] = {
		"name", "expected", "machine", "settings", "steps", "reasons", NULL};
	auto_free struct question *q = xcalloc(1, sizeof *q);
	int rc = json_only_keys(item, keys, e);

	if (rc)
		return rc;
	rc = read_machine(json_object_get(item, "machine"), a, q, e);
	if (rc)
		return err_add(e, rc, "machine");
	rc = read_settings(json_object_get(item, "settings"), q, e);
	if (rc)
		return err_add(e, rc, "settings");
	return answer(q, json_object_get(item, "steps"), a, result, e);
}
