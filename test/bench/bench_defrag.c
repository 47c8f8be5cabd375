/* What a plan of moves costs on a large machine that is fragmented, with the trials that the daemon
 * has for it. DEEP=N: how much better plans are with N times as many. */
#include "../unit/core_machine.h"
#include "../unit/core_random.h"
#include "bench.h"

#include <numafit/defrag.h>

enum {
	CPUS_PER_NODE = 16,
	CONTAINERS = 200,
	FULL = 400, /* so many are tried to be created */
	ROUNDS = 4,
	NODES = 60, /* that are measured */
	MOVES = 3,
	TRIALS = 2000,
	SEED = 20261126,
	CONTAINERS_MOST = 8, /* of a pod */
	ID_MAX = 16,
	NS_PER_S = 1000000000
};

/* In blades of four NUMA nodes; 64 GiB each. */
static struct topo *large_machine(void)
{
	struct topo *t = malloc(sizeof *t);

	topo_init(t, "large");
	for (unsigned n = 0; n < NODES_MAX; n++)
		(void)topo_add_node(t, n, NULL);
	for (unsigned n = 0; n < NODES_MAX; n++) {
		for (unsigned c = 0; c < CPUS_PER_NODE; c++) {
			unsigned cpu = CPUS_PER_NODE * n + c;

			(void)topo_add_cpu(t, cpu, n, cpu, n / 4, n, NULL);
		}
		(void)topo_set_memory(t, n, 0, GIB(64), NULL);
		for (unsigned m = 0; m < NODES_MAX; m++)
			(void)topo_set_distance(t, n, m,
				n == m           ? 10
				: n / 4 == m / 4 ? 16
						 : 24,
				NULL);
	}
	if (topo_seal(t, NULL))
		abort();
	return t;
}

static int record(void *ctx, const struct record *r, struct err *e)
{
	(void)ctx, (void)r, (void)e;
	return 0;
}

static void create(struct engine *g, struct random *r, unsigned i)
{
	static const unsigned sizes[] = {1, 2, 4, 4, 4, 6, 8, 8};
	const unsigned cpus = sizes[random_below(r, sizeof sizes / sizeof *sizes)];
	struct update_list ups = {0};
	struct decision d;
	char id[ID_MAX];

	(void)snprintf(id, sizeof id, "c%05u", i);
	struct request req = ask(
		id, QOS_GUARANTEED, cpus * UINT64_C(1000), GIB(cpus) * (1 + random_below(r, 3)));
	engine_create(g, i, &req, &d, &ups);
	vec_fini(&ups);
}

static void end_one(struct engine *g, struct random *r)
{
	const struct ledger *l = engine_ledger(g);
	struct update_list ups = {0};
	char id[ID_MAX];

	(void)snprintf(id, sizeof id, "%s",
		ledger_at(l, random_below(r, (unsigned)ledger_count(l)))->request.container_id);
	engine_release(g, 1, "stop", id, &ups);
	vec_fini(&ups);
}

/* It is full, a third leaves, it is full again, and so on. */
static struct engine *fragmented(const struct topo *t, struct settings *s, struct random *r)
{
	static const struct engine_hooks hooks = {.record = record};
	struct engine *g = engine_new(t, s, &hooks);
	const struct ledger *l = engine_ledger(g);

	for (unsigned i = 1, round = 0; round < ROUNDS; round++) {
		for (unsigned tries = 0; tries < FULL; tries++)
			create(g, r, i++);
		while (ledger_count(l) > CONTAINERS)
			end_one(g, r);
	}
	return g;
}

struct outcome {
	uint64_t ns[NODES], all_ns, trials;
	size_t n, cut, found, with_none, deep_found, deep_cut, better;
	uint64_t gained, deep_gained;
	double bytes, deep_bytes; /* where both have a plan that gains as much */
};

static void look_deeper(
	const struct defrag_question *q, const struct defrag_plan *plan, struct outcome *o)
{
	const char *times = getenv("DEEP");
	struct defrag_question deep = *q;
	struct defrag_plan best;
	unsigned gained, most;

	if (!times || bench_counts())
		return;
	deep.trials *= strtoull(times, NULL, 10);
	if (defrag_plan(&deep, &best, NULL))
		abort();
	gained = plan->not_preferred_before - plan->not_preferred_after;
	most = best.not_preferred_before - best.not_preferred_after;
	o->deep_found += best.found;
	o->deep_cut += best.cut;
	o->gained += gained;
	o->deep_gained += most;
	if (!plan->found || (!q->pod && gained != most))
		return;
	o->better += best.cost.bytes < plan->cost.bytes;
	o->bytes += (double)plan->cost.bytes;
	o->deep_bytes += (double)best.cost.bytes;
}

static void measure(const char *name, const struct defrag_question *q, struct outcome *o)
{
	struct defrag_plan plan;
	uint64_t from = bench_begin();

	if (defrag_plan(q, &plan, NULL))
		abort();
	o->ns[o->n] = bench_end(name, from);
	if (plan.trials > TRIALS / 4) { /* else most of it is to begin with */
		o->all_ns += o->ns[o->n];
		o->trials += plan.trials;
	}
	o->n++;
	o->cut += plan.cut;
	o->found += plan.found;
	o->with_none += plan.found && !plan.nr;
	look_deeper(q, &plan, o);
}

static void print(const char *name, struct outcome *o)
{
	struct bench_row row = {.name = name,
		.unit = "ns",
		.values = o->ns,
		.n = o->n,
		.has_budget = true,
		.incumbents = o->cut};

	if (bench_counts())
		return;
	bench_print(&row);
	(void)printf("  %zu of %zu have a plan, %zu without moves\n", o->found, o->n, o->with_none);
	if (o->trials)
		(void)printf("  %.0f trials/s where many were made\n",
			(double)o->trials * NS_PER_S / (double)o->all_ns);
	if (getenv("DEEP"))
		(void)printf("  with %s times the trials: %zu have one, %zu are cut, %zu cost less "
			     "(%.3f times the bytes in all), %llu gained instead of %llu\n",
			getenv("DEEP"), o->deep_found, o->deep_cut, o->better,
			o->bytes > 0 ? o->deep_bytes / o->bytes : 1,
			(unsigned long long)o->deep_gained, (unsigned long long)o->gained);
}

static void bench_plans(
	const char *name, enum topology_policy policy, unsigned containers, unsigned cpus)
{
	static const char *const names[CONTAINERS_MOST] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	static struct topo *t;
	struct settings s = settings_of(policy);
	struct random r = {SEED};
	struct outcome o = {0};
	struct ask container[CONTAINERS_MOST];
	const struct pod pod = {.sandbox_id = "new",
		.uid = "new",
		.ns = "new",
		.name = "new",
		.qos = QOS_GUARANTEED,
		.nr = containers,
		.container = container};

	for (unsigned i = 0; i < containers; i++) {
		container[i] = ask("", QOS_GUARANTEED, cpus * 1000, GIB(cpus)).ask;
		container[i].name = names[i];
	}
	t = t ? t : large_machine();
	for (size_t i = 0; i < (bench_counts() ? 1 : NODES); i++) {
		struct engine *g = fragmented(t, &s, &r);
		const struct defrag_question q = {.engine = g,
			.topo = t,
			.settings = &s,
			.pod = containers ? &pod : NULL,
			.moves = MOVES,
			.trials = TRIALS};

		measure(name, &q, &o);
		engine_free(g);
	}
	print(name, &o);
}

int main(void)
{
	bench_plans("defrag-64-pod-of-12", POLICY_RESTRICTED, 1, 12);
	bench_plans("defrag-64-pod-of-16", POLICY_RESTRICTED, 1, 16);
	bench_plans("defrag-64-pod-of-2x14", POLICY_RESTRICTED, 2, 14);
	bench_plans("defrag-64-pod-of-8x8", POLICY_RESTRICTED, 8, 8);
	bench_plans("defrag-64-no-pod", POLICY_BEST_EFFORT, 0, 0);
	return 0;
}
