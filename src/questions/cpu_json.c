#include <questions/cpu_json.h>

#include <codec/fields_json.h>
#include <questions/policy_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/cpus.h>
#include <numafit/text.h>

/* Columns of a row, by their order in cpus_fields. */
enum column { COLUMN_CPU, COLUMN_CORE, COLUMN_SOCKET, COLUMN_NODE, COLUMN_UNCORE, NR_COLUMNS };
static const char *const column_names[NR_COLUMNS] = {"cpu", "core", "socket", "numa", "uncore"};

enum { HINT_NODES_MAX = 16, OPTION_MAX = 128 };

static int cpu_json_read_unsigned(const json_t *item, const char *key, unsigned min, unsigned max,
	unsigned *out, struct err *e)
{
	uint64_t n;
	int rc = json_number(json_object_get(item, key), max, &n, e);

	if (!rc && n < min)
		rc = err_set(e, ERANGE, "%llu is below %u", (unsigned long long)n, min);
	if (rc)
		return err_add(e, rc, "%s", key);
	*out = (unsigned)n;
	return 0;
}

static int cpu_json_read_bool(const json_t *item, const char *key, bool *out, struct err *e)
{
	const json_t *v = json_object_get(item, key);

	if (!json_is_boolean(v))
		return err_add(e, json_want("true or false", v, e), "%s", key);
	*out = json_is_true(v);
	return 0;
}

/* A list of numbers below CPUSET_BITS, of CPUs or of NUMA nodes. */
static int cpu_json_read_ids(const json_t *item, const char *key, struct cpuset *out, struct err *e)
{
	const json_t *list = json_object_get(item, key);

	*out = (struct cpuset){0};
	if (!json_is_array(list))
		return err_add(e, json_want("a list of ids", list, e), "%s", key);
	for (size_t i = 0; i < json_array_size(list); i++) {
		uint64_t id;
		int rc = json_number(json_array_get(list, i), CPUSET_BITS - 1, &id, e);

		if (rc)
			return err_add(e, rc, "%s: element %zu", key, i);
		cpuset_add(out, (unsigned)id);
	}
	return 0;
}

static json_t *cpu_json_list(const struct cpuset *cpus)
{
	json_t *list = json_array();

	cpuset_each (cpu, cpus)
		(void)json_array_append_new(list, json_integer(cpu));
	return list;
}

static int check_columns(const json_t *names, struct err *e)
{
	if (!json_is_array(names) || json_array_size(names) != NR_COLUMNS)
		return json_want("a list of 5 names", names, e);
	for (size_t i = 0; i < NR_COLUMNS; i++)
		if (!text_equal(json_string_value(json_array_get(names, i)), column_names[i]))
			return err_set(e, EINVAL, "element %zu is not \"%s\"", i, column_names[i]);
	return 0;
}

static int cpu_json_read_row(const json_t *row, unsigned column[NR_COLUMNS], struct err *e)
{
	if (!json_is_array(row) || json_array_size(row) != NR_COLUMNS)
		return json_want("a list of 5 numbers", row, e);
	for (size_t i = 0; i < NR_COLUMNS; i++) {
		uint64_t n;
		int rc = json_number(json_array_get(row, i), CPUSET_BITS - 1, &n, e);

		if (rc)
			return err_add(e, rc, "%s", column_names[i]);
		column[i] = (unsigned)n;
	}
	return 0;
}

static int cpu_json_read_rows(const json_t *rows, struct topo *t, struct err *e)
{
	unsigned column[NR_COLUMNS];
	struct cpuset nodes = {0}; /* sorts them */
	int rc = json_is_array(rows) ? 0 : json_want("a list", rows, e);
	size_t i;

	for (i = 0; !rc && i < json_array_size(rows); i++) {
		rc = cpu_json_read_row(json_array_get(rows, i), column, e);
		if (!rc)
			cpuset_add(&nodes, column[COLUMN_NODE]);
	}
	cpuset_each (id, &nodes) {
		int node = rc ? 0 : topo_add_node(t, id, e);

		rc = node < 0 ? node : rc;
	}
	if (rc)
		return rc;
	for (i = 0; !rc && i < json_array_size(rows); i++) {
		(void)cpu_json_read_row(json_array_get(rows, i), column, NULL);
		rc = topo_add_cpu(t, column[COLUMN_CPU],
			(unsigned)node_index(&t->ids, column[COLUMN_NODE]), column[COLUMN_CORE],
			column[COLUMN_SOCKET], column[COLUMN_UNCORE], e);
	}
	return rc;
}

/* The kubelet takes the numbers of cores and sockets as reported, and so does the question. */
static int cpu_json_read_machine(const json_t *item, struct topo *t, struct err *e)
{
	int rc = check_columns(json_object_get(item, "cpus_fields"), e);

	if (rc)
		return err_add(e, rc, "cpus_fields");
	topo_init(t, "cpus");
	rc = cpu_json_read_rows(json_object_get(item, "cpus"), t, e);
	if (!rc)
		rc = topo_seal(t, e);
	if (rc)
		return err_add(e, rc, "cpus");
	rc = cpu_json_read_unsigned(item, "num_cores", 1, t->nr_cpus, &t->nr_cores, e);
	return rc ? rc
		  : cpu_json_read_unsigned(item, "num_sockets", 1, CPUSET_BITS, &t->nr_sockets, e);
}

/* The option that a newer kubelet takes along. */
static int take_by_socket(const json_t *item, struct cpus_how *how, struct err *e)
{
	enum kubernetes_version version;
	bool aligned = false;
	int rc = policy_json_version(item, &version, e);

	if (!rc && json_object_get(item, "align_by_socket"))
		rc = cpu_json_read_bool(item, "align_by_socket", &aligned, e);
	how->by_socket = aligned && kubernetes_has(version, RULE_DISTRIBUTES_IN_SOCKET);
	return rc;
}

static int answer_take(
	const json_t *item, const struct topo *t, unsigned want, json_t **result, struct err *e)
{
	struct cpuset available, got;
	struct cpus_how how = {0};
	int rc = cpu_json_read_ids(item, "available", &available, e);

	how.distributed =
		text_equal(json_string_value(json_object_get(item, "mode")), "distributed");
	if (!rc)
		rc = cpu_json_read_unsigned(item, "cpu_group_size", 1, CPUSET_BITS, &how.group, e);
	if (!rc)
		rc = cpu_json_read_bool(item, "spread", &how.spread, e);
	if (!rc)
		rc = cpu_json_read_bool(item, "uncore", &how.uncore, e);
	if (!rc)
		rc = take_by_socket(item, &how, e);
	if (rc)
		return rc;
	struct budget endless = budget_of(0);
	if (cpus_take(t, &available, want, &how, &endless, &got, e))
		*result = json_pack("{s:o}", "error", json_message(e->text));
	else
		*result = json_pack("{s:o}", "cpus", cpu_json_list(&got));
	return 0;
}

/* One container, and the kubelet's pools. */
struct policy {
	const struct topo *t;
	unsigned want, reserved_count;
	struct settings settings;
	bool names_reserved;
	struct cpuset reserved, assigned, reusable;
	struct cpuset shared; /* the kubelet's default set */
	struct hint affinity;
};

/* An option as the kubelet's config has it, a string, or the JSON value that means it. 1: the
 * kubelet does not start with it. */
static int cpu_json_read_option(
	struct settings *s, const char *name, const json_t *v, struct err *e)
{
	char key[OPTION_MAX];
	struct text t;

	text_init(&t, key, sizeof key);
	text_add(&t, "cpuManagerPolicyOptions.%s", name);
	if (t.cut)
		return err_set(e, ERANGE, "%.32s...: the option's name is too long", name);
	if (!json_is_string(v) && !json_is_boolean(v))
		return err_add(e, json_want("a string, true or false", v, e), "%s", name);
	const char *value = json_is_string(v) ? json_string_value(v)
			    : json_is_true(v) ? "true"
					      : "false";
	return settings_set(s, key, value, e) ? 1 : 0;
}

static int cpu_json_read_options(json_t *options, struct settings *s, struct err *e)
{
	int rc = json_is_object(options) ? 0 : json_want("an object", options, e);

	settings_init(s);
	s->cpu_options.core_rule = CORES_BY_AVERAGE; /* as in the kubelet */
	for (void *it = json_object_iter(options); !rc && it;
		it = json_object_iter_next(options, it))
		rc = cpu_json_read_option(
			s, json_object_iter_key(it), json_object_iter_value(it), e);
	return rc < 0 ? err_add(e, rc, "options") : rc;
}

/* Nodes that the machine lacks have no CPUs, and add nothing. */
static int cpu_json_read_affinity(
	const json_t *item, const struct topo *t, struct hint *affinity, struct err *e)
{
	struct cpuset ids;
	const json_t *v = json_object_get(item, "affinity");

	affinity->any = json_is_null(v);
	int rc = affinity->any ? 0 : cpu_json_read_ids(item, "affinity", &ids, e);
	if (rc || affinity->any)
		return rc;
	cpuset_each (id, &ids)
		if (node_index(&t->ids, id) >= 0)
			affinity->mask = nodeset_or(
				affinity->mask, nodeset_of((unsigned)node_index(&t->ids, id)));
	return 0;
}

static int cpu_json_read_policy(const json_t *item, struct policy *p, struct err *e)
{
	const json_t *name = json_object_get(item, "topology_policy");
	int policy = json_is_string(name) ? text_index(topology_policy_words, NR_POLICIES,
						    json_string_value(name))
					  : -1;
	int rc = policy < 0 ? err_add(e, json_want("a policy's name", name, e), "topology_policy")
			    : 0;

	p->names_reserved = json_object_get(item, "reserved_cpus");
	if (!rc && p->names_reserved)
		rc = cpu_json_read_ids(item, "reserved_cpus", &p->reserved, e);
	if (!rc)
		rc = cpu_json_read_unsigned(
			item, "reserved_count", 0, CPUSET_BITS, &p->reserved_count, e);
	if (!rc)
		rc = cpu_json_read_ids(item, "assigned", &p->assigned, e);
	if (!rc)
		rc = cpu_json_read_ids(item, "reusable", &p->reusable, e);
	if (!rc)
		rc = cpu_json_read_affinity(item, p->t, &p->affinity, e);
	if (!rc)
		rc = cpu_json_read_options(json_object_get(item, "options"), &p->settings, e);
	p->settings.topology_policy = (enum topology_policy)policy;
	return rc ? rc : policy_json_version(item, &p->settings.cpu_options.kubernetes, e);
}

/* 1: the policy does not start. */
static int cpu_json_start_policy(struct policy *p, struct err *e)
{
	const struct cpu_options *o = &p->settings.cpu_options;
	int rc = cpus_check_options(p->t, o, p->settings.topology_policy, e);

	if (!rc)
		rc = p->names_reserved
			     ? cpus_check_reserved(p->t, &p->reserved, p->reserved_count, e)
			     : cpus_reserve(p->t, o, p->reserved_count, &p->reserved, e);
	if (rc)
		return 1;
	p->shared = cpuset_minus(p->t->cpus, &p->assigned);
	if (o->strict_cpu_reservation)
		p->shared = cpuset_minus(p->shared, &p->reserved);
	return 0;
}

/* Those with the chosen nodes and `more` of the open ones, in the order of the kubelet's
 * IterateBitMasks. */
static void add_hints(json_t *hints, const struct family *f, const struct node_ids *ids,
	struct nodeset chosen, struct nodeset open, unsigned more)
{
	if (!more) {
		if (family_has(f, chosen))
			(void)json_array_append_new(
				hints, json_pack("{s:o, s:b}", "mask", json_node_ids(chosen, ids),
					       "preferred", family_prefers(f, chosen)));
		return;
	}
	nodeset_each (node, open) {
		open = nodeset_minus(open, nodeset_of(node));
		if (nodeset_count(open) + 1 < more)
			return;
		add_hints(hints, f, ids, nodeset_or(chosen, nodeset_of(node)), open, more - 1);
	}
}

static int write_hints(
	const struct policy *p, const struct cpuset *available, json_t **hints, struct err *e)
{
	unsigned nr = nodeset_count(p->t->nodes_with_cpus);
	struct cpus_per_node per_node;
	struct family f;

	if (nr > HINT_NODES_MAX)
		return err_set(
			e, E2BIG, "the hints of %u NUMA nodes are too many to be written out", nr);
	cpus_family(
		p->t, &p->settings.cpu_options, available, &p->reusable, p->want, &per_node, &f);
	*hints = f.kind == FAMILY_ANY ? json_null() : json_array();
	for (unsigned size = 1; f.kind == FAMILY_CAPACITY && size <= nr; size++)
		add_hints(*hints, &f, &p->t->ids, (struct nodeset){0}, f.ground, size);
	return 0;
}

/* The container's CPUs (kubelet staticPolicy.Allocate), or the reason of the refusal. */
static const char *cpu_json_allocate(
	const struct policy *p, const struct cpuset *available, struct cpuset *got, struct err *e)
{
	const struct cpu_options *o = &p->settings.cpu_options;
	struct cpuset reserved_cores = cpus_whole_cores(p->t, &p->reserved);
	struct cpuset physical = cpuset_minus(p->shared, &reserved_cores);
	struct cpuset allocatable = cpuset_or(*available, &p->reusable);
	struct budget endless = budget_of(0);

	if (!p->want)
		return NULL;
	if (cpus_check_whole_cores(p->t, o, &physical, p->want, e))
		return "SMTAlignmentError";
	if (cpus_allocate(p->t, o, &allocatable, p->want, NULL, &p->affinity, &endless, got, e)) {
		struct err why = *e;

		(void)err_set(
			e, ENOSPC, "Allocate failed due to %s, which is unexpected", why.text);
		return "UnexpectedAdmissionError";
	}
	return NULL;
}

static int answer_container(const struct policy *p, json_t **result, struct err *e)
{
	struct cpuset available = cpuset_minus(p->shared, &p->reserved), got = {0};
	json_t *hints = NULL;
	int rc = write_hints(p, &available, &hints, e);

	if (rc)
		return rc;
	const char *reason = cpu_json_allocate(p, &available, &got, e);
	struct cpuset after = cpuset_minus(p->shared, &got);

	*result = json_pack("{s:o, s:o, s:o, s:o}", "reserved_cpus", cpu_json_list(&p->reserved),
		"hints", hints, "cpus", reason || !p->want ? json_null() : cpu_json_list(&got),
		"default_after", cpu_json_list(&after));
	if (!reason)
		return 0;
	(void)json_object_set_new(*result, "error", json_message(e->text));
	(void)json_object_set_new(*result, "reason", json_string(reason));
	return 0;
}

static int answer_policy(const json_t *item, const struct topo *t, unsigned want, struct arena *a,
	json_t **result, struct err *e)
{
	struct policy *p = arena_alloc(a, sizeof *p);

	if (!p)
		return err_set(e, ENOMEM, "too large");
	*p = (struct policy){.t = t, .want = want};
	int rc = cpu_json_read_policy(item, p, e);
	if (!rc)
		rc = cpu_json_start_policy(p, e);
	if (rc > 0)
		*result = json_pack("{s:n, s:o}", "cpus", "error", json_message(e->text));
	return rc ? (rc < 0 ? rc : 0) : answer_container(p, result, e);
}

int cpu_json_answer(json_t *item, struct arena *a, json_t **result, struct err *e)
{
	static const char *const take_keys[] = {"name", VERSION_KEY, "expected", "why",
		"takes_unavailable", "cpus_fields", "cpus", "num_cores", "num_sockets", "want",
		"mode", "available", "cpu_group_size", "spread", "uncore", "align_by_socket", NULL};
	static const char *const policy_keys[] = {"name", VERSION_KEY, "expected", "why",
		"takes_unavailable", "cpus_fields", "cpus", "num_cores", "num_sockets", "want",
		"mode", "options", "topology_policy", "reserved_cpus", "reserved_count", "assigned",
		"reusable", "affinity", NULL};
	const json_t *mode = json_object_get(item, "mode");
	bool is_policy = text_equal(json_string_value(mode), "policy");
	struct topo *t = arena_alloc(a, sizeof *t);
	unsigned want;

	if (!t)
		return err_set(e, ENOMEM, "too large");
	if (!is_policy && !text_equal(json_string_value(mode), "packed") &&
		!text_equal(json_string_value(mode), "distributed"))
		return err_add(e, json_want("packed, distributed or policy", mode, e), "mode");
	int rc = json_only_keys(item, is_policy ? policy_keys : take_keys, e);
	if (!rc)
		rc = cpu_json_read_machine(item, t, e);
	if (!rc)
		rc = cpu_json_read_unsigned(item, "want", 0, INT32_MAX, &want, e);
	if (rc)
		return rc;
	return is_policy ? answer_policy(item, t, want, a, result, e)
			 : answer_take(item, t, want, result, e);
}
