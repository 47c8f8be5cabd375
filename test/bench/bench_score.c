/* What scoring a cluster for one pod costs, in ns for each node: NodeResourceTopologyMatch over
 * 5,000 nodes of 8 NUMA zones that list 5 resources; and what the extender makes of it. */
#include "../unit/core_random.h"
#include "bench.h"

#include <numafit/sched_plan.h>
#include <string.h>

enum {
	NODES = 5000,
	ZONES = 8,
	RESOURCES = 5,
	RUNS = 200,
	SEED = 20261121,
	SOCKET = 4,
	LOCAL = 10,
	NEAR = 12,
	FAR = 32,
	ANSWER_MAX = 64
};

static const char *const names[RESOURCES] = {
	"cpu", "memory", "hugepages-2Mi", "example.com/gpu", "example.com/nic"};
/* What a zone has at most, and what the pod asks for: of one zone, of two, and more than there is.
 */
static const int64_t most[RESOURCES] = {32, INT64_C(128) << 30, INT64_C(8) << 30, 2, 4};
static const int64_t small[RESOURCES] = {4, INT64_C(8) << 30, INT64_C(1) << 30, 1, 1};
static const int64_t two[RESOURCES] = {40, INT64_C(160) << 30, INT64_C(9) << 30, 3, 5};
static const int64_t large[RESOURCES] = {4, INT64_C(8) << 30, INT64_C(1) << 30, 17, 1};

struct cluster {
	struct resource_table table;
	unsigned resource[RESOURCES];
	struct sched_topology *topology[NODES];
	struct sched_node node[NODES];
	struct amount allocatable[RESOURCES];
	struct sched_candidate candidate[NODES];
};

static struct sched_topology *machine(const struct cluster *c, struct random *random)
{
	static const uint8_t id[ZONES] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct sched_topology *t = sched_topology_new(id, ZONES);

	sched_topology_attribute(t, "topologyManagerPolicy", "single-numa-node");
	for (unsigned z = 0; z < ZONES; z++) {
		for (unsigned to = 0; to < ZONES; to++)
			sched_topology_cost(t, z, to,
				z == to                     ? LOCAL
				: z / SOCKET == to / SOCKET ? NEAR
							    : FAR);
		for (unsigned r = 0; r < RESOURCES; r++) {
			struct quantity all = quantity_of(most[r]),
					free = quantity_of(
						most[r] / 4 * (int64_t)random_below(random, 5));

			sched_topology_resource(t, z, c->resource[r],
				&(struct zone_amounts){all, all, most[r] < 4 ? all : free});
		}
	}
	return t;
}

static void cluster_init(struct cluster *c)
{
	struct random random = {SEED};

	resource_table_init(&c->table);
	for (unsigned r = 0; r < RESOURCES; r++)
		c->resource[r] = resource_number(&c->table, names[r]);
	for (unsigned r = 0; r < RESOURCES; r++)
		c->allocatable[r] = (struct amount){c->resource[r], quantity_of(ZONES * most[r])};
	for (unsigned n = 0; n < NODES; n++) {
		c->topology[n] = machine(c, &random);
		c->node[n] = (struct sched_node){
			.topology = c->topology[n], .allocatable = {c->allocatable, RESOURCES}};
		c->candidate[n].node = &c->node[n];
	}
}

static void bench_pod(const struct cluster *c, const char *name, enum nrt_strategy strategy,
	const int64_t *wanted)
{
	struct amount amount[RESOURCES];
	struct sched_container container = {.requests = {amount, RESOURCES}};
	struct sched_pod pod = {.qos = QOS_GUARANTEED, .container = &container, .nr_containers = 1};
	struct nrt_args args = {.strategy = strategy, .compat = true};
	unsigned nodes = bench_counts() ? 1 : NODES;
	struct bench_row row = {.name = name, .unit = "ns", .n = bench_runs(RUNS)};
	char answer[ANSWER_MAX];
	int64_t sum = 0;

	for (unsigned r = 0; r < RESOURCES; r++)
		amount[r] = (struct amount){c->resource[r], quantity_of(wanted[r])};
	row.values = calloc(row.n, sizeof *row.values);
	struct nrt_ask *ask = nrt_ask_new(&pod, &args, &c->table);

	for (size_t i = 0; i < row.n; i++) {
		uint64_t from = bench_begin();

		sum = 0;
		for (unsigned n = 0; n < nodes; n++)
			sum += nrt_score(ask, &c->node[n]);
		row.values[i] = bench_end(name, from) / nodes;
	}
	(void)snprintf(answer, sizeof answer, "sum %lld", (long long)sum);
	row.answer = answer;
	bench_print(&row);
	nrt_ask_free(ask);
	free(row.values);
}

/* What the extender does for a pod: filter all nodes, score those that fit. */
static void bench_plan(struct cluster *c, const char *name, enum topology_policy policy,
	enum nrt_strategy strategy, const int64_t *wanted)
{
	static struct sched_candidate fitting[NODES];
	static int64_t score[NODES];
	struct amount amount[RESOURCES];
	struct sched_container container = {.requests = {amount, RESOURCES}};
	struct sched_pod pod = {.qos = QOS_GUARANTEED, .container = &container, .nr_containers = 1};
	const struct sched_profile profile = {
		.use = {{.plugin = sched_plugin_at(0), .weight = 1, .args.nrt.strategy = strategy}},
		.nr = 1,
		.check_restricted = true};
	unsigned nodes = bench_counts() ? 1 : NODES;
	struct bench_row row = {.name = name, .unit = "ns", .n = bench_runs(RUNS)};
	char answer[ANSWER_MAX];
	const char *why;
	size_t nr = 0;

	for (unsigned r = 0; r < RESOURCES; r++)
		amount[r] = (struct amount){c->resource[r], quantity_of(wanted[r])};
	for (unsigned n = 0; n < NODES; n++)
		c->topology[n]->policy = policy;
	row.values = calloc(row.n, sizeof *row.values);
	for (size_t i = 0; i < row.n; i++) {
		uint64_t from = bench_begin();
		struct sched_plan *plan = sched_plan_new(&profile, &pod, &c->table);

		nr = 0;
		for (unsigned n = 0; n < nodes; n++)
			if (!sched_plan_filter(plan, &c->candidate[n], &why))
				fitting[nr++] = c->candidate[n];
		sched_plan_score(plan, fitting, nr, score);
		sched_plan_free(plan);
		row.values[i] = bench_end(name, from) / nodes;
	}
	(void)snprintf(answer, sizeof answer, "%zu fit", nr);
	row.answer = answer;
	bench_print(&row);
	free(row.values);
}

int main(void)
{
	static struct cluster c;

	cluster_init(&c);
	bench_pod(&c, "score-least-allocated", NRT_LEAST_ALLOCATED, small);
	bench_pod(&c, "score-least-numa-one", NRT_LEAST_NUMA_NODES, small);
	bench_pod(&c, "score-least-numa-none", NRT_LEAST_NUMA_NODES, large);
	bench_plan(&c, "plan-single-least-allocated", POLICY_SINGLE_NUMA_NODE, NRT_LEAST_ALLOCATED,
		small);
	bench_plan(
		&c, "plan-single-least-numa", POLICY_SINGLE_NUMA_NODE, NRT_LEAST_NUMA_NODES, small);
	bench_plan(&c, "plan-restricted-one", POLICY_RESTRICTED, NRT_LEAST_NUMA_NODES, small);
	bench_plan(&c, "plan-restricted-two", POLICY_RESTRICTED, NRT_LEAST_NUMA_NODES, two);
	bench_plan(&c, "plan-best-effort-two", POLICY_BEST_EFFORT, NRT_LEAST_NUMA_NODES, two);
	for (unsigned n = 0; n < NODES; n++)
		sched_topology_free(c.topology[n]);
	resource_table_fini(&c.table);
	return 0;
}
