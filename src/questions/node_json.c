#include <questions/node_json.h>

#include <codec/fields_json.h>
#include <questions/node_events_json.h>
#include <codec/pod_json.h>
#include <questions/policy_json.h>
#include <codec/reasons_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/cpus.h>
#include <numafit/mem.h>
#include <numafit/node.h>
#include <numafit/text.h>
#include <string.h>

enum { KUBELET_MAX_NODES = 8, WORK_BYTES = 2 << 20, KEY_MAX = 256 };

/* One question, as far as it was read. */
struct question {
	struct machine machine;
	struct settings settings;
	struct reserved_memory node_allocatable[TOPO_KINDS];
	unsigned nr_node_allocatable;
	bool reasons; /* asked for, with every decision */
};

/* Settings: every value under its path, as a config file would have it */

static int node_set_value(struct question *q, const char *path, const json_t *v, struct err *e)
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
	return rc || json_is_object(v) || json_is_array(v) ? rc : node_set_value(q, path, v, e);
}

/* systemReserved and kubeReserved: CPUs are a setting, memory is what reservedMemory must add up
 * to. */
static int node_json_read_reservation(struct question *q, const char *key, json_t *v, struct err *e)
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
			rc = node_set_value(q, path, json_object_iter_value(it), e);
			if (rc)
				return rc;
			continue;
		}
		rc = json_quantity_count(json_object_iter_value(it), QUANTITY_WHOLE, &bytes, e);
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

static int node_json_read_settings(json_t *settings, struct question *q, struct err *e)
{
	if (!json_is_object(settings))
		return json_want("an object", settings, e);
	for (void *it = json_object_iter(settings); it; it = json_object_iter_next(settings, it)) {
		const char *key = json_object_iter_key(it);
		bool reservation =
			text_equal(key, "systemReserved") || text_equal(key, "kubeReserved");
		int rc = reservation
				 ? node_json_read_reservation(q, key, json_object_iter_value(it), e)
				 : set_under(q, key, json_object_iter_value(it), e);

		if (rc)
			return rc;
	}
	return 0;
}

/* Who asks waits for the exact answer. */
static int node_json_read_kubelets_settings(json_t *settings, struct question *q, struct err *e)
{
	settings_init(&q->settings);
	q->settings.merge_visit_budget = 0;
	q->settings.topology_policy = POLICY_NONE; /* the kubelet's defaults */
	q->settings.cpu_manager_policy = q->settings.memory_manager_policy = MANAGER_NONE;
	q->settings.device_memory = DEVICE_MEMORY_INCLUDE; /* it knows no difference */
	q->settings.cpu_options.core_rule = CORES_BY_AVERAGE;
	int rc = node_json_read_settings(settings, q, e);
	if (!q->settings.max_allowable_numa_nodes)
		q->settings.max_allowable_numa_nodes = KUBELET_MAX_NODES;
	return rc;
}

/* The daemon's defaults, but the shared pool is all that nobody holds, as in the kubelet. */
static int node_json_read_daemons_settings(json_t *settings, struct question *q, struct err *e)
{
	settings_init(&q->settings);
	q->settings.merge_visit_budget = 0;
	q->settings.shared_pool_step = 0;
	return settings ? node_json_read_settings(settings, q, e) : 0;
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
	const struct memory_state *m = &node_books(n)->memory;
	json_t *nodes = json_object();

	nodeset_each (i, q->machine.topo.nodes) {
		const struct memory_node *node = &m->node[i];
		char id[TEXT_SIZE_MAX];
		struct text t;

		text_init(&t, id, sizeof id);
		text_add(&t, "%u", q->machine.topo.ids.id[i]);
		(void)json_object_set_new(nodes, id,
			json_pack("{s:i, s:o, s:o, s:o}", "assignments", (int)node->assignments,
				"cells", list_of_nodes(&q->machine.topo, node->group), "free",
				bytes_by_type(&q->machine.topo, node->free), "reserved",
				bytes_by_type(&q->machine.topo, node->reserved)));
	}
	return nodes;
}

static json_t *blocks_result(const struct question *q, const struct memory_container *c)
{
	unsigned kind[TOPO_KINDS] = {0}, nr = kinds_by_name(&q->machine.topo, kind);
	json_t *blocks = json_array();

	for (unsigned k = 0; k < nr; k++)
		for (unsigned b = 0; b < c->nr_blocks; b++) {
			char name[TOPO_NAME_MAX];

			if (c->blocks[b].kind != kind[k])
				continue;
			(void)json_array_append_new(blocks,
				json_pack("{s:s, s:o, s:I}", "type",
					topo_kind_name(
						&q->machine.topo, kind[k], name, sizeof name),
					"nodes",
					list_of_nodes(&q->machine.topo, c->blocks[b].nodes), "size",
					(json_int_t)c->blocks[b].bytes));
		}
	return blocks;
}

static json_t *devices_result(const struct question *q, const struct grant *c)
{
	json_t *devices = json_object();

	for (unsigned r = 0; r < q->machine.nr_resources; r++) {
		json_t *ids = c->device[r] ? json_array() : NULL;

		for (unsigned i = 0; ids && i < q->machine.resource[r].nr; i++)
			if (c->device[r][i])
				(void)json_array_append_new(
					ids, json_string(q->machine.resource[r].device[i].id));
		if (ids && json_array_size(ids))
			(void)json_object_set(devices, q->machine.resource[r].name, ids);
		json_decref(ids);
	}
	return devices;
}

static json_t *containers_result(const struct question *q, const struct node_pod *p)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < p->grants.nr; i++) {
		const struct grant *c = &p->grants.of[i];
		const struct memory_container *memory = &p->grants.memory[i];
		json_t *devices = devices_result(q, c);
		json_t *v = json_pack("{s:s, s:o, s:b, s:o, s:o}", "name", p->name[i], "affinity",
			c->affinity.any ? json_null()
					: list_of_nodes(&q->machine.topo, c->affinity.mask),
			"preferred", c->affinity.preferred, "cpus",
			cpuset_empty(&c->cpus) ? json_null() : list_of_cpus(&c->cpus), "memory",
			memory->nr_blocks ? blocks_result(q, memory) : json_null());

		if (json_object_size(devices))
			(void)json_object_set(v, "devices", devices);
		if (q->reasons)
			(void)json_object_set_new(
				v, "reasons", reasons_json(c->reasons, &q->machine.topo));
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

static int node_step_admit(struct run *r, const json_t *step, struct err *e)
{
	struct pod pod;
	struct refusal why;
	struct arena work;
	int rc = pod_json_read_ask(json_object_get(step, "pod"), r->q->machine.resource,
		r->q->machine.nr_resources, r->arena, &r->q->settings, &pod, e);

	if (rc)
		return err_add(e, rc, "pod");
	arena_init_fixed(&work, r->work, WORK_BYTES);
	rc = node_admit(r->node, &pod, &work, &why);
	(void)json_object_set_new(r->result, "admit", json_boolean(!rc));
	if (rc) {
		(void)json_object_set_new(r->result, "reason", json_string(why.reason));
		(void)json_object_set_new(r->result, "message", json_message(why.message));
		if (r->q->reasons)
			(void)json_object_set_new(r->result, "reasons",
				reasons_json(why.reasons, &r->q->machine.topo));
	} else {
		const struct grants *g = &node_find(r->node, pod.uid)->grants;

		(void)json_object_set_new(r->result, "containers",
			containers_result(r->q, node_find(r->node, pod.uid)));
		if (!cpuset_empty(&g->pod_cpus))
			(void)json_object_set_new(
				r->result, "pod_cpus", list_of_cpus(&g->pod_cpus));
		if (g->pod_memory.nr_blocks)
			(void)json_object_set_new(
				r->result, "pod_memory", blocks_result(r->q, &g->pod_memory));
	}
	return 0;
}

static int node_step_start(struct run *r, const json_t *step, struct err *e)
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

static int node_step_remove(struct run *r, const json_t *step, struct err *e)
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
} ops[] = {{"admit", node_step_admit}, {"start", node_step_start}, {"remove", node_step_remove}};
enum { NR_OPS = sizeof ops / sizeof *ops };

static size_t node_find_op(const char *op)
{
	size_t i = 0;

	while (i < NR_OPS && !(op && text_equal(op, ops[i].op)))
		i++;
	return i;
}

static int node_run_step(struct run *r, json_t *step, struct err *e)
{
	const char *op = json_string_value(json_object_get(step, "op"));
	size_t i = node_find_op(op);

	if (i < NR_OPS) {
		int rc = ops[i].run(r, step, e);

		static const struct cpuset no_pool; /* the kubelet's policy none keeps none */
		bool pooled = r->q->settings.cpu_manager_policy == MANAGER_STATIC;

		(void)json_object_set_new(r->result, "shared_cpus",
			list_of_cpus(pooled ? &node_books(r->node)->shared : &no_pool));
		if (r->q->settings.memory_manager_policy == MANAGER_STATIC)
			(void)json_object_set_new(
				r->result, "memory", memory_result(r->q, r->node));
		return rc;
	}
	return node_events_has(op)
		       ? err_set(e, EINVAL, "op \"%.32s\" is a runtime's event among whole pods",
				 op)
		       : err_set(e, EINVAL, "op \"%.32s\" is not one of admit, start, remove",
				 op ? op : "");
}

static int run_steps(struct run *r, const json_t *steps, json_t *results, struct err *e)
{
	if (!json_is_array(steps))
		return json_want("a list", steps, e);
	for (size_t i = 0; i < json_array_size(steps); i++) {
		r->result = json_object();
		int rc = node_run_step(r, json_array_get(steps, i), e);

		(void)json_array_append_new(results, r->result);
		if (rc)
			return err_add(e, rc, "element %zu", i);
	}
	return 0;
}

/* The kubelet's view. */
static int answer_pods(const struct question *q, const json_t *steps, struct arena *a,
	json_t **result, struct err *e)
{
	auto_free void *work = xcalloc(1, WORK_BYTES);
	struct run r = {.q = q, .arena = a, .work = work};
	struct err why;

	if (!settings_check_kubelet(&q->settings, &q->machine.topo, &why))
		r.node = node_new(&q->machine.topo, &q->settings, q->machine.resource,
			q->machine.nr_resources, &why);
	if (r.node && q->settings.memory_manager_policy == MANAGER_STATIC &&
		memory_check_reserved(&q->machine.topo, &q->settings, q->node_allocatable,
			q->nr_node_allocatable, &why)) {
		node_free(r.node);
		r.node = NULL;
	}
	if (!r.node) {
		*result = policy_json_refusal(why.text);
		return 0;
	}
	struct cpuset reserved = node_books(r.node)->reserved;
	json_t *results = json_array();
	int rc = run_steps(&r, steps, results, e);
	node_free(r.node);
	*result =
		json_pack("{s:o, s:o}", "reserved_cpus", list_of_cpus(&reserved), "steps", results);
	return rc;
}

static int events_reserve_cpus(struct settings *s, const struct topo *t, struct err *e)
{
	unsigned count = settings_reserved_cpu_count(s);

	if (!count || !cpuset_empty(&s->reserved_cpus))
		return 0;
	return cpus_reserve(t, &s->cpu_options, count, &s->reserved_cpus, e);
}

/* The daemon's view. */
static int answer_events(
	struct question *q, const json_t *steps, struct arena *a, json_t **result, struct err *e)
{
	const struct topo *t = &q->machine.topo;
	struct err why;

	if (settings_check(&q->settings, t, &why) || events_reserve_cpus(&q->settings, t, &why)) {
		*result = policy_json_refusal(why.text);
		return 0;
	}
	json_t *results = json_array();
	*result = json_pack("{s:o, s:o}", "reserved_cpus", list_of_cpus(&q->settings.reserved_cpus),
		"steps", results);
	return node_events_answer(t, &q->settings, q->reasons, steps, a, results, e);
}

/* Whose view it is: what the first step's op says that only one of the two has. */
static bool are_events(const json_t *steps)
{
	for (size_t i = 0; i < json_array_size(steps); i++) {
		const char *op = json_string_value(json_object_get(json_array_get(steps, i), "op"));

		if (node_find_op(op) == NR_OPS)
			return node_events_has(op);
		if (!node_events_has(op))
			return false;
	}
	return false;
}

/* Who asks may have meant something else. */
static void node_json_warn(json_t *result, const struct idle_setting *idle, unsigned nr)
{
	json_t *warnings = json_array();
	char text[2 * KEY_MAX];

	for (unsigned i = 0; i < nr; i++) {
		(void)snprintf(text, sizeof text, "%s: it changes no decision: %s", idle[i].key,
			idle[i].why);
		(void)json_array_append_new(warnings, json_string(text));
	}
	if (nr)
		(void)json_object_set(result, DECIDE_WARNINGS, warnings);
	json_decref(warnings);
}

static int node_json_answer_item(
	struct question *q, json_t *item, struct arena *a, json_t **result, struct err *e)
{
	const json_t *steps = json_object_get(item, "steps");
	json_t *settings = json_object_get(item, "settings");
	bool events = are_events(steps);
	int rc = events ? node_json_read_daemons_settings(settings, q, e)
			: node_json_read_kubelets_settings(settings, q, e);

	if (rc)
		return err_add(e, rc, "settings");
	if (q->settings.cpu_options.kubernetes == KUBERNETES_AUTO)
		rc = policy_json_version(item, &q->settings.cpu_options.kubernetes, e);
	if (rc)
		return rc;
	struct idle_setting idle[IDLE_SETTINGS_MAX]; /* before reservations become CPUs */
	unsigned nr_idle = settings_idle(&q->settings, idle);
	rc = events ? answer_events(q, steps, a, result, e) : answer_pods(q, steps, a, result, e);
	if (!rc)
		node_json_warn(*result, idle, nr_idle);
	if (!rc)
		return 0;
	json_decref(*result);
	*result = NULL;
	return err_add(e, rc, "steps");
}

int node_json_answer(
	json_t *item, machine_loader *load, struct arena *a, json_t **result, struct err *e)
{
	static const char *const keys[] = {
		"name", VERSION_KEY, "expected", "machine", "settings", "steps", "reasons", NULL};
	auto_free struct question *q = xcalloc(1, sizeof *q);
	int rc = json_only_keys(item, keys, e);

	if (rc)
		return rc;
	q->reasons = json_is_true(json_object_get(item, "reasons"));
	rc = machine_json_read(json_object_get(item, "machine"), load, a, &q->machine, e);
	return rc ? err_add(e, rc, "machine") : node_json_answer_item(q, item, a, result, e);
}
