/* What a decision costs, without any wire: the whole of admit(). test/interop/kubelet/bench.go has
 * the kubelet decide the typical one, too. */
#include "bench.h"

#include <numafit/admit.h>
#include <numafit/shares.h>

#include <stdio.h>
#include <string.h>

#define GIB(n) ((uint64_t)(n) << 30)

enum { PLACED = 60, RUNS = 2000, ANSWER_MAX = 128 };

static char work[ADMIT_ARENA_BYTES];

/* Every allocation from the heap passes here. */
static uint64_t nr_allocations;
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *p, size_t size);
void *malloc(size_t size)
{
	nr_allocations++;
	return __libc_malloc(size);
}
void *calloc(size_t nr, size_t size)
{
	nr_allocations++;
	return __libc_calloc(nr, size);
}
void *realloc(void *p, size_t size)
{
	nr_allocations++;
	return __libc_realloc(p, size);
}

/* Two sockets, eight NUMA nodes, 128 CPUs. */
static void typical_machine(struct topo *t)
{
	topo_init(t, "typical");
	for (unsigned n = 0; n < 8; n++)
		(void)topo_add_node(t, n, NULL);
	for (unsigned n = 0; n < 8; n++) {
		for (unsigned c = 0; c < 8; c++) {
			(void)topo_add_cpu(t, 8 * n + c, n, 8 * n + c, n / 4, n, NULL);
			(void)topo_add_cpu(t, 64 + 8 * n + c, n, 8 * n + c, n / 4, n, NULL);
		}
		(void)topo_set_memory(t, n, 0, GIB(64), NULL);
		for (unsigned m = 0; m < 8; m++)
			(void)topo_set_distance(t, n, m,
				n == m           ? 10
				: n / 4 == m / 4 ? 12
						 : 32,
				NULL);
	}
	if (topo_seal(t, NULL))
		abort();
}

static void decide(const struct ledger *l, const struct settings *s, const struct request *req,
	struct decision *d)
{
	struct budget b = budget_of(s->merge_visit_budget);
	struct arena a;

	arena_init_fixed(&a, work, sizeof work);
	admit(&(struct admit_question){l, s, .container = req}, &b, &a, d, NULL);
}

/* What the same pod gets on the same machine is to be the same wherever it is decided. */
static const char *answer_of(const struct topo *t, const struct decision *d)
{
	static char answer[ANSWER_MAX];
	char nodes[ANSWER_MAX], cpus[ANSWER_MAX];

	(void)snprintf(answer, sizeof answer, "nodes %s preferred %d cpus %s",
		nodeset_format(d->nodes, &t->ids, nodes, sizeof nodes), d->preferred,
		cpuset_format(&d->cpus, cpus, sizeof cpus));
	return answer;
}

static struct request guaranteed(const char *id, unsigned cpus, uint64_t memory)
{
	return (struct request){
		.container_id = id,
		.ask.name = "main",
		.pod = {.sandbox_id = id,
			.uid = id,
			.ns = "bench",
			.name = id,
			.qos = QOS_GUARANTEED},
		.ask.cpu_milli = 1000 * cpus,
		.ask.nr_memory = 1,
		.ask.memory = {{0, memory}},
		.cpus = "",
		.mems = "",
	};
}

static void count_allocations(
	const struct ledger *l, const struct settings *s, const struct request *req)
{
	static uint64_t allocations[RUNS];
	struct bench_row row = {.name = "decide-heap-allocations",
		.unit = "allocations",
		.values = allocations,
		.n = bench_runs(RUNS)};
	struct decision d;

	for (size_t i = 0; i < row.n; i++) {
		uint64_t before = nr_allocations;

		decide(l, s, req, &d);
		allocations[i] = nr_allocations - before;
	}
	bench_print(&row);
}

/* One-CPU containers, every second of them without CPUs of its own. */
static void place(struct ledger *l, const struct settings *s, unsigned nr)
{
	struct decision d;

	for (unsigned i = 0; i < nr; i++) {
		char id[16];

		(void)snprintf(id, sizeof id, "c%02u", i);
		struct request req = guaranteed(id, 1, GIB(2));
		if (i % 2)
			req.pod.qos = QOS_BURSTABLE;
		decide(l, s, &req, &d);
		if (!d.admit)
			abort();
		if (d.exclusive) {
			struct cpuset pool = ledger_pool_without(l, &d.cpus);

			if (ledger_set_pool(l, &pool, NULL))
				abort();
		}
		ledger_commit(l, &req, &d);
	}
}

/* A share of a claim as the kubelet prepares it, and a container that comes with it. */
static void bench_share(struct ledger *l, const struct settings *s)
{
	const struct claim_share share = {.request = "cpus",
		.pool = "node",
		.device = "numa7",
		.cpus = 8,
		.nr_memory = 1,
		.memory = {{0, GIB(8)}}};
	const char *const pod = "pod";
	const struct resource_claim claim = {.uid = "claim",
		.ns = "ns",
		.name = "claim",
		.nr = 1,
		.share = &share,
		.nr_pods = 1,
		.pod_uid = &pod};
	const struct request held = share_request(&claim, 0, 7, "claim/0", "0", pod);
	struct request with = guaranteed("with", 0, GIB(1));
	struct decision d;

	BENCH("decide-share", RUNS, decide(l, s, &held, &d));
	if (!d.admit)
		abort();
	struct cpuset pool = ledger_pool_without(l, &d.cpus);
	if (ledger_set_pool(l, &pool, NULL))
		abort();
	d.source = SOURCE_HELD;
	ledger_hold(l, &held, &d);
	with.shares = "claim/0";
	with.pod.uid = pod;
	BENCH("decide-on-share", RUNS, decide(l, s, &with, &d));
	if (!d.admit || !d.within_claims)
		abort();
}

static void bench_admit(void)
{
	static struct topo t;
	struct settings s = {
		.topology_policy = POLICY_RESTRICTED,
		.cpu_manager_policy = MANAGER_STATIC,
		.memory_manager_policy = MANAGER_STATIC,
		.reserved_memory = {{.has_node = true, .type = "memory", .bytes = GIB(1)}},
		.nr_reserved_memory = 1,
		.shared_pool_minimum = 1,
	};
	const struct request one = guaranteed("one", 8, GIB(16)),
			     two = guaranteed("two", 24, GIB(100));
	struct decision d;

	typical_machine(&t);
	(void)cpuset_parse(&s.reserved_cpus, "0,64", 4, NULL);
	struct ledger *l = ledger_new(&t, &s);
	place(l, &s, PLACED);
	BENCH_ANSWER("decide-typical", RUNS, answer_of(&t, &d), decide(l, &s, &one, &d));
	BENCH("decide-two-nodes", RUNS, decide(l, &s, &two, &d));
	s.prefer_closest_numa_nodes = true;
	BENCH("decide-typical-closest", RUNS, decide(l, &s, &one, &d));
	BENCH("decide-two-nodes-closest", RUNS, decide(l, &s, &two, &d));
	count_allocations(l, &s, &two);
	/* the same pod with all wishes that concern CPUs of its own, where some are isolated */
	struct request wished = one;
	wished.ask.wishes = (struct wishes){.cpus = WISH_CPUS_OWN_SHARED,
		.cores = WISH_CORES_WHOLE,
		.isolated = WISH_ISOLATED_PREFER,
		.memory = WISH_MEMORY_INTERLEAVE};
	s.prefer_closest_numa_nodes = false;
	(void)cpuset_parse(&t.isolated, "48-63,112-127", 13, NULL);
	BENCH("decide-wishes", RUNS, decide(l, &s, &wished, &d));
	if (!d.admit || !cpuset_within(&d.cpus, &t.isolated))
		abort(); /* it was not what is measured */
	t.isolated = (struct cpuset){0};
	bench_share(l, &s);
	ledger_free(l);
}

int main(void)
{
	bench_admit();
	return 0;
}
