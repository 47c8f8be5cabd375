/* What merging NUMA hints costs, on machines up to 64 nodes. */
#include "../unit/core_random.h"
#include "bench.h"

#include <numafit/family.h>
#include <numafit/settings.h>

#include <stdio.h>
#include <string.h>

enum {
	SMALL_NODES = 8,
	WORK_BYTES = 16 << 20,
	RUNS = 2000,
	FAMILIES = 4,
	MACHINES = 200,
	SEED = 20261121,
	ANSWER_MAX = 64,
	NS_PER_US = 1000,
	NS_PER_MS = 1000 * NS_PER_US
};

static char work[WORK_BYTES];

static const char *answer_of(const struct hint *h)
{
	static char answer[ANSWER_MAX];
	struct node_ids ids = {.nr = SMALL_NODES};
	char nodes[ANSWER_MAX / 2];

	for (unsigned i = 0; i < SMALL_NODES; i++)
		ids.id[i] = i;
	(void)snprintf(answer, sizeof answer, "nodes %s preferred %d",
		nodeset_format(h->mask, &ids, nodes, sizeof nodes), h->preferred);
	return answer;
}

/* A machine, what its nodes have free, and what is asked for. */
struct question {
	struct hint_space space;
	uint8_t distance[NODES_MAX][NODES_MAX];
	uint64_t budget;
	uint64_t weight[FAMILIES][NODES_MAX];
	struct family_cover gpu[2][NODES_MAX];
	struct family family[FAMILIES];
	unsigned nr;
};

static int merge_families(const struct question *q, struct hint *out)
{
	struct budget b = budget_of(q->budget);
	struct arena a;

	arena_init_fixed(&a, work, sizeof work);
	int rc = hint_merge_families(&q->space, q->family, q->nr, &b, &a, out);
	if (rc < 0)
		abort();
	return rc;
}

static struct family *add_family(struct question *q, unsigned preferred_size)
{
	struct family *f = &q->family[q->nr++];

	*f = (struct family){.kind = FAMILY_CAPACITY,
		.ground = q->space.all,
		.nr_demands = 1,
		.preferred_size = preferred_size};
	return f;
}

/* Four resources that any of the 255 sets of eight nodes would satisfy. */
static void bench_all_sets(void)
{
	static struct question q;
	struct hint out;

	for (unsigned preferred = 0; preferred < 2; preferred++) {
		q = (struct question){.space = {.all = nodeset_first(SMALL_NODES)}};
		for (unsigned i = 0; i < SMALL_NODES; i++)
			q.weight[0][i] = 1;
		for (unsigned f = 0; f < FAMILIES; f++)
			add_family(&q, preferred)->demand[0] =
				(struct family_demand){.weight = q.weight[0], .need = 1};
		BENCH_ANSWER(preferred ? "merge-8x4-preferred" : "merge-8x4-nonpreferred", RUNS,
			answer_of(&out), (void)merge_families(&q, &out));
	}
}

/* NVIDIA GB200: 34 nodes. CPUs and memory are on two of them, the others are the GPUs' own; each
 * GPU and each NIC lies on one of the two. */
static void gb200(struct question *q, unsigned cpus, unsigned gpus)
{
	*q = (struct question){.space = {.all = nodeset_first(34)}};
	for (unsigned i = 0; i < 2; i++) {
		q->weight[0][i] = 60;
		q->weight[1][i] = 400;
		q->gpu[0][i] = (struct family_cover){nodeset_of(i), 2};
		q->gpu[1][i] = (struct family_cover){nodeset_of(i), 4};
	}
	struct family *cpu = add_family(q, cpus > 72 ? 2 : 1);
	cpu->ground = nodeset_first(2);
	cpu->demand[0] = (struct family_demand){.weight = q->weight[0], .need = cpus};
	struct family *memory = add_family(q, 1);
	memory->demand[0] = (struct family_demand){.weight = q->weight[1], .need = 200};
	for (unsigned d = 0; d < 2; d++) {
		struct family *device = add_family(q, d || gpus <= 2 ? 1 : 2);

		device->ground = nodeset_first(2);
		device->demand[0] = (struct family_demand){
			.cover = q->gpu[d], .nr_covers = 2, .need = d ? 1 : gpus};
	}
}

static void bench_gb200(void)
{
	static struct question q;
	struct hint out;

	gb200(&q, 32, 2);
	BENCH("merge-gb200", RUNS, (void)merge_families(&q, &out));
	gb200(&q, 32, 4);
	BENCH("merge-gb200-nonpreferred", RUNS, (void)merge_families(&q, &out));
}

/* 64 nodes in a tree of pairs, blades and cabinets; or blades of four at the corners of a cube. */
static unsigned tree_distance(unsigned i, unsigned j)
{
	return i == j ? 10 : i / 2 == j / 2 ? 16 : i / 8 == j / 8 ? 18 : i / 32 == j / 32 ? 25 : 28;
}
static unsigned cube_distance(unsigned i, unsigned j)
{
	unsigned hops = (unsigned)__builtin_popcount((i / 4) ^ (j / 4));

	return i == j ? 10 : hops ? 20 + 4 * hops : 16;
}

static int descending(const void *a, const void *b)
{
	return bench_order(b, a);
}

/* So much that at least k nodes are needed and most sets of k nodes have too little. */
static uint64_t much_of(struct random *r, const uint64_t *weight, unsigned k)
{
	uint64_t sorted[NODES_MAX], best = 0;

	memcpy(sorted, weight, sizeof sorted);
	qsort(sorted, NODES_MAX, sizeof *sorted, descending);
	for (unsigned i = 0; i < k; i++)
		best += sorted[i];
	return best * (60 + random_below(r, 36)) / 100;
}

/* CPUs, memory and one more resource, of which every node has a random rest. */
static void sixty_four(struct random *r, unsigned k, struct question *q)
{
	static unsigned (*const distance[])(unsigned, unsigned) = {tree_distance, cube_distance};
	unsigned shape = random_below(r, 2);

	*q = (struct question){.space = {.all = nodeset_first(NODES_MAX)}};
	for (unsigned i = 0; i < NODES_MAX; i++)
		for (unsigned j = 0; j < NODES_MAX; j++)
			q->distance[i][j] = (uint8_t)distance[shape](i, j);
	q->space.distance = q->distance;
	for (unsigned f = 0; f < 3; f++) {
		for (unsigned i = 0; i < NODES_MAX; i++)
			q->weight[f][i] = 4 + random_below(r, 21);
		add_family(q, k)->demand[0] = (struct family_demand){
			.weight = q->weight[f], .need = much_of(r, q->weight[f], k)};
	}
}

/* Percentiles, and how many took up to each power of two. */
static void print_distribution(const uint64_t *sorted, size_t n)
{
	static const unsigned percent[] = {1, 50, 90, 99};

	(void)printf("    ms ");
	for (size_t i = 0; i < sizeof percent / sizeof *percent; i++)
		(void)printf("  p%u %.3f", percent[i],
			(double)bench_percentile(sorted, n, percent[i]) / NS_PER_MS);
	(void)printf("  max %.3f\n    runs up to", (double)sorted[n - 1] / NS_PER_MS);
	size_t done = 0;
	for (uint64_t us = 1; done < n; us *= 2) {
		size_t upto = done;

		while (upto < n && sorted[upto] <= us * NS_PER_US)
			upto++;
		if (upto > done)
			(void)printf("  %llu us: %zu", (unsigned long long)us, upto - done);
		done = upto;
	}
	(void)printf("\n");
}

/* budget 0: the exact answer, however long it takes. */
static void bench_closest(const char *name, unsigned k, uint64_t budget)
{
	static uint64_t ns[MACHINES];
	static struct question q;
	struct bench_row row = {.name = name,
		.unit = "ns",
		.values = ns,
		.n = bench_runs(MACHINES),
		.has_budget = budget};
	struct random r = {SEED};
	unsigned preferred = 0;
	struct hint out;

	for (size_t i = 0; i < row.n; i++) {
		sixty_four(&r, k, &q);
		q.budget = budget;
		uint64_t from = bench_begin();
		row.incumbents += merge_families(&q, &out) > 0;
		ns[i] = bench_end(name, from);
		preferred += out.preferred;
	}
	bench_print(&row);
	if (bench_counts())
		return;
	print_distribution(ns, row.n);
	(void)printf("    preferred: %u of %zu", preferred, row.n);
	if (budget)
		(void)printf("; by the incumbent, as the budget of %llu steps ran out: %zu",
			(unsigned long long)budget, row.incumbents);
	(void)printf("\n");
}

int main(void)
{
	struct settings s;

	settings_init(&s);
	bench_all_sets();
	bench_gb200();
	bench_closest("merge-64-k4", 4, s.merge_visit_budget);
	bench_closest("merge-64-k9", 9, s.merge_visit_budget);
	bench_closest("merge-64-k12", 12, s.merge_visit_budget);
	bench_closest("merge-64-k32", 32, s.merge_visit_budget);
	if (bench_counts()) /* as with the budget, where that is not hit */
		return 0;
	bench_closest("merge-64-k4-exact", 4, 0);
	bench_closest("merge-64-k9-exact", 9, 0);
	bench_closest("merge-64-k12-exact", 12, 0);
	return 0;
}
