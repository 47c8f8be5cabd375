#include <cluster-sim/node.h>

#include <assert.h>
#include <numafit/admit.h>
#include <numafit/report.h>
#include <stdio.h>

enum {
	CORES = 8,
	THREADS = 2,
	HUGE_2MI_PAGES = 1024,
	HUGE_1GI_PAGES = 4,
	MEMORY_GI = 64,
	MAX_NUMA_USUAL = 8, /* of readers, where nothing is said */
	HEXADECIMAL = 16
};
/* As NPS4 machines have them: a neighbour, the same socket, the other one. */
enum { DISTANCE_PAIR = 11, DISTANCE_SOCKET = 12, DISTANCE_OTHER = 32 };
#define GI (UINT64_C(1) << 30)

/* The machine */

static unsigned simulated_distance(unsigned from, unsigned to, unsigned nr)
{
	unsigned in_socket = nr % 2 ? nr : nr / 2;

	if (from == to)
		return DISTANCE_MIN;
	if (from / in_socket != to / in_socket)
		return DISTANCE_OTHER;
	return from / 2 == to / 2 ? DISTANCE_PAIR : DISTANCE_SOCKET;
}

static int add_numa_node(struct topo *t, unsigned n, unsigned nr, struct err *e)
{
	unsigned socket = nr % 2 ? 0 : n / (nr / 2);
	int rc = 0;

	for (unsigned c = 0; c < CORES && rc >= 0; c++)
		for (unsigned thread = 0; thread < THREADS && rc >= 0; thread++)
			rc = topo_add_cpu(
				t, (thread * nr + n) * CORES + c, n, n * CORES + c, socket, n, e);
	if (rc >= 0)
		rc = topo_set_memory(t, n, 0, MEMORY_GI * GI, e);
	for (enum pod_memory m = POD_HUGE_2MI; m < NR_POD_MEMORIES && rc >= 0; m++) {
		uint64_t page = pod_memory_page(m);

		rc = topo_set_memory(t, n, page,
			page * (m == POD_HUGE_2MI ? HUGE_2MI_PAGES : HUGE_1GI_PAGES), e);
	}
	for (unsigned to = 0; to < nr && rc >= 0; to++)
		rc = topo_set_distance(t, n, to, simulated_distance(n, to, nr), e);
	return rc;
}

static int build_topo(struct topo *t, unsigned nr, struct err *e)
{
	int rc = 0;

	topo_init(t, "simulated");
	for (unsigned n = 0; n < nr && rc >= 0; n++)
		rc = topo_add_node(t, n, e);
	for (unsigned n = 0; n < nr && rc >= 0; n++)
		rc = add_numa_node(t, n, nr, e);
	return rc < 0 ? rc : topo_seal(t, e);
}

static int set_cluster_settings(
	struct settings *s, unsigned nr, enum topology_policy policy, struct err *e)
{
	char cores[2 * TEXT_SIZE_MAX], nodes[TEXT_SIZE_MAX];
	const char *const values[][2] = {
		{"topologyManagerPolicy", topology_policy_words[policy]},
		{"topologyManagerPolicyOptions.prefer-closest-numa-nodes", "true"},
		{"topologyManagerPolicyOptions.max-allowable-numa-nodes", nodes},
		{"reservedSystemCPUs", cores},
		{"reservedMemory.0.numaNode", "0"},
		{"reservedMemory.0.limits.memory", "1Gi"},
		{"nodeResourceTopology.podsFingerprint", "with-exclusive-resources"},
	};
	int rc = 0;

	(void)snprintf(cores, sizeof cores, "0,%u", nr * CORES);
	(void)snprintf(nodes, sizeof nodes, "%d", NODES_MAX);
	settings_init(s);
	for (size_t i = 0; i < sizeof values / sizeof *values && !rc; i++)
		rc = settings_set(s, values[i][0], values[i][1], e);
	return rc;
}

int cluster_machine_init(
	struct cluster_machine *m, unsigned nr_numa, enum topology_policy policy, struct err *e)
{
	int rc = build_topo(&m->topo, nr_numa, e);

	if (!rc)
		rc = set_cluster_settings(&m->settings, nr_numa, policy, e);
	if (!rc)
		rc = settings_check(&m->settings, &m->topo, e);
	resource_table_init(&m->names);
	for (enum pod_memory i = POD_MEMORY; i < NR_POD_MEMORIES && !rc; i++) {
		char name[TEXT_SIZE_MAX + sizeof "hugepages-"];
		int kind = topo_kind_of_page(&m->topo, pod_memory_page(i));

		assert(kind >= 0);
		m->memory_name[i] = resource_number(
			&m->names, topo_kind_name(&m->topo, (unsigned)kind, name, sizeof name));
	}
	return rc;
}

void cluster_work_init(struct cluster_work *w)
{
	w->bytes = xcalloc(1, ADMIT_ARENA_BYTES);
}

void cluster_work_fini(struct cluster_work *w)
{
	free(w->bytes);
}

static struct arena *work_anew(struct cluster_work *w)
{
	arena_init_fixed(&w->arena, w->bytes, ADMIT_ARENA_BYTES);
	return &w->arena;
}

void cluster_node_init(struct cluster_node *n, const struct cluster_machine *m, unsigned number)
{
	(void)snprintf(n->name, sizeof n->name, "node-%05u", number);
	n->ledger = ledger_new(&m->topo, &m->settings);
	n->generation = 1;
}

void cluster_node_fini(struct cluster_node *n)
{
	ledger_free(n->ledger);
}

/* Pods */

void asked_pod_init(struct asked_pod *a, const struct cluster_pod *pod)
{
	const struct pod_shape *s = pod->shape;

	for (unsigned c = 0; c < s->nr_containers; c++) {
		struct ask *to = &a->container[c];

		(void)snprintf(a->name[c], sizeof a->name[c], "c%u", c);
		to->name = a->name[c];
		to->cpu_milli = s->cpu_milli;
		for (enum pod_memory m = POD_MEMORY; m < NR_POD_MEMORIES; m++)
			if (s->bytes[m])
				to->memory[to->nr_memory++] =
					(struct memory_ask){pod_memory_page(m), s->bytes[m]};
	}
	a->is = (struct pod){.sandbox_id = pod->uid,
		.uid = pod->uid,
		.ns = s->family,
		.name = pod->uid,
		.qos = s->qos,
		.nr = s->nr_containers,
		.container = a->container};
}

/* What numafitd does with advice before the merge. */
static void ask_by_advice(const struct cluster_node *n, const struct cluster_machine *m,
	const struct advice *advice, int64_t now_ms, struct asked_pod *a)
{
	const struct cpuset foreign =
		cpuset_or(m->settings.reserved_cpus, &ledger_view(n->ledger)->held);
	const struct advice_facts facts = {.node = n->name,
		.uid = a->is.uid,
		.now_ms = now_ms,
		.skew_ms = (int64_t)m->settings.advice_skew_ms,
		.generation = n->generation,
		.t = &m->topo,
		.foreign = &foreign};
	enum advice_verdict so_far = advice_check(advice, &facts, NULL);

	for (unsigned c = 0; c < a->is.nr; c++) {
		const struct advice_container *of = advice_for(advice, a->name[c]);

		if (!of)
			continue;
		a->advice[c] = (struct advice_ask){.so_far = so_far,
			.mode = advice_mode_of(m->settings.advice_mode, advice->mode),
			.repair = m->settings.advice_repair,
			.asked = of->nodes};
		a->container[c].advice = &a->advice[c];
	}
}

/* The pool moves out of the way of all parts at once (engine_run_pod()), then each is held. */
static void hold_pod_parts(struct cluster_node *n, const struct asked_pod *a, struct decision *part)
{
	struct cpuset own = {0};

	for (unsigned c = 0; c < a->is.nr; c++)
		if (part[c].exclusive)
			own = cpuset_or(own, &part[c].cpus);
	const struct cpuset pool = ledger_pool_without(n->ledger, &own);
	int rc = ledger_set_pool(n->ledger, &pool, NULL);
	assert(!rc);
	for (unsigned c = 0; c < a->is.nr; c++) {
		const struct request req = request_of_part(&a->is, c);

		if (!part[c].exclusive)
			part[c].cpus = pool;
		ledger_hold(n->ledger, &req, &part[c]);
	}
	n->generation++;
}

/* Nothing is held. The parts are in the working memory until it is used again. */
static struct decision *decide_pod(const struct cluster_node *n, const struct cluster_machine *m,
	const struct asked_pod *a, struct cluster_work *w, struct node_answer *out)
{
	struct budget budget = budget_of(m->settings.merge_visit_budget);
	struct decision whole, *part;

	admit(&(struct admit_question){n->ledger, &m->settings, .pod = &a->is}, &budget,
		work_anew(w), &whole, &part);
	*out = (struct node_answer){.admit = whole.admit,
		.preferred = whole.admit,
		.nr = a->is.nr,
		.advice = whole.advice.verdict};
	for (unsigned c = 0; c < a->is.nr && whole.admit; c++) {
		if (part[c].exclusive || part[c].nr_blocks)
			out->on[c] = decision_nodes_used(&m->topo, &part[c]);
		if (out->advice == ADVICE_NONE)
			out->advice = part[c].advice.verdict;
		out->preferred = out->preferred && part[c].preferred;
	}
	return part;
}

void cluster_node_run(struct cluster_node *n, const struct cluster_machine *m,
	const struct cluster_pod *pod, const struct advice *advice, int64_t now_ms,
	struct cluster_work *w, struct node_answer *out)
{
	struct asked_pod a = {0};

	asked_pod_init(&a, pod);
	if (advice)
		ask_by_advice(n, m, advice, now_ms, &a);
	struct decision *part = decide_pod(n, m, &a, w, out);
	if (out->admit)
		hold_pod_parts(n, &a, part);
}

void cluster_node_ask(const struct cluster_node *n, const struct cluster_machine *m,
	const struct cluster_pod *pod, struct cluster_work *w, struct node_answer *out)
{
	struct asked_pod a = {0};

	asked_pod_init(&a, pod);
	(void)decide_pod(n, m, &a, w, out);
}

void cluster_node_stop(struct cluster_node *n, const char *uid)
{
	for (const struct holding *h; (h = ledger_find_of_pod(n->ledger, uid));) {
		const struct cpuset released = ledger_released_by(n->ledger, h);
		auto_free char *id = xstrdup(h->request.container_id);
		const struct cpuset pool = ledger_pool_grown(n->ledger, &released);

		(void)ledger_release(n->ledger, id);
		int rc = ledger_set_pool(n->ledger, &pool, NULL);
		assert(!rc);
	}
	n->generation++;
}

/* The report */

static void take_node_report(const struct cluster_node *n, const struct cluster_machine *m,
	struct cluster_work *w, struct report *r)
{
	const struct report_facts facts = {
		.node_name = n->name, .node_uid = n->name, .generation = n->generation};
	int rc = report_take(r, n->ledger, &m->settings, &facts, work_anew(w));

	assert(!rc);
}

/* The number of a resource that is in the table: threads share it, so nothing is entered. */
static unsigned resource_number_of(const struct cluster_machine *m, const char *name)
{
	unsigned i = 0;

	while (i < m->names.nr && strcmp(m->names.at[i].name, name) != 0)
		i++;
	assert(i < m->names.nr);
	return i;
}

static struct quantity whole_amount(uint64_t amount)
{
	return quantity_of((int64_t)amount);
}

/* What codec/nrt_write_json.c writes and codec/nrt_json.c reads. */
static struct sched_topology *topology_of(const struct cluster_machine *m, const struct report *r)
{
	const struct topo *t = r->topo;
	uint8_t zone_id[ZONES_MAX];
	char limit[TEXT_SIZE_MAX];

	for (unsigned z = 0; z < t->ids.nr; z++)
		zone_id[z] = (uint8_t)z;
	struct sched_topology *s = sched_topology_new(zone_id, t->ids.nr);
	const char *const attributes[][2] = {
		{"topologyManagerPolicy", topology_policy_words[r->policy.policy]},
		{"topologyManagerScope", topology_scope_words[r->policy.scope]},
		{"topologyManagerMaxNUMANodes", limit},
		{"topologyManagerOptionPreferClosestNumaNodes",
			r->policy.prefer_closest_numa_nodes ? "true" : "false"},
		{"nodeTopologyPodsFingerprint", r->fingerprint},
		{"nodeTopologyPodsFingerprintMethod", "with-exclusive-resources"},
	};

	(void)snprintf(
		limit, sizeof limit, "%u", t->ids.nr > MAX_NUMA_USUAL ? t->ids.nr : MAX_NUMA_USUAL);
	for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
		sched_topology_attribute(s, attributes[i][0], attributes[i][1]);
	for (unsigned z = 0; z < t->ids.nr; z++)
		for (unsigned to = 0; to < t->ids.nr; to++)
			sched_topology_cost(s, z, to, t->distance[z][to]);
	for (size_t i = 0; i < r->nr_resources; i++) {
		unsigned number = resource_number_of(m, r->resource[i].name);

		for (unsigned z = 0; z < t->ids.nr; z++) {
			const struct report_amounts *on = &r->resource[i].on[z];

			sched_topology_resource(s, z, number,
				&(struct zone_amounts){whole_amount(on->capacity),
					whole_amount(on->allocatable),
					whole_amount(on->available)});
		}
	}
	return s;
}

void cluster_node_report(const struct cluster_node *n, const struct cluster_machine *m,
	struct cluster_work *w, struct sched_report *r)
{
	struct report taken;

	take_node_report(n, m, w, &taken);
	size_t nr = strlen(taken.pods) / REPORT_POD_DIGITS;
	uint64_t *list = arena_array(&w->arena, nr, sizeof *list);

	assert(list || !nr);
	for (size_t i = 0; i < nr; i++) {
		char digits[REPORT_POD_DIGITS + 1] = {0};

		memcpy(digits, taken.pods + i * REPORT_POD_DIGITS, REPORT_POD_DIGITS);
		list[i] = strtoull(digits, NULL, HEXADECIMAL);
	}
	*r = (struct sched_report){.topology = topology_of(m, &taken),
		.generation = taken.generation,
		.names_pods = true,
		.pod = list,
		.nr_pods = nr};
}

struct amounts cluster_node_allocatable(
	const struct cluster_node *n, const struct cluster_machine *m, struct cluster_work *w)
{
	enum { PODS_USUAL = 110 };
	struct report r;

	take_node_report(n, m, w, &r);
	struct amount *list = arena_array(&w->arena, r.nr_resources + 1, sizeof *list);
	assert(list);
	for (size_t i = 0; i < r.nr_resources; i++) {
		uint64_t sum = 0;

		nodeset_each (z, r.topo->nodes)
			sum += r.resource[i].on[z].allocatable;
		list[i] = (struct amount){
			resource_number_of(m, r.resource[i].name), whole_amount(sum)};
	}
	list[r.nr_resources] = (struct amount){RESOURCE_PODS, whole_amount(PODS_USUAL)};
	return (struct amounts){list, (unsigned)r.nr_resources + 1};
}
