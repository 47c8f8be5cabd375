/* numa-allocation-strategy: between sets that are equal otherwise, and only there. */
#include <numafit/policy.h>

#include "core_families.h"

#include <numafit/cpus.h>
#include <numafit/devices.h>
#include <numafit/memory.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { SEED = 20261122, WORK_BYTES = 4 << 20, NODES = 6, PRODUCTS_MAX = 30000 };

static struct hint merged(const struct hint_space *s, const struct family *f, size_t nr)
{
	struct budget b = budget_all_of(10000);
	struct arena a;
	struct hint got;

	arena_init(&a, WORK_BYTES);
	assert_int_equal(hint_merge_families(s, f, nr, &b, &a, &got), 0);
	arena_fini(&a);
	return got;
}

/* The mean percentage, node by node and cover by cover; -1: nobody says. */
static int mean_share(const struct families *x, struct nodeset mask)
{
	int sum = 0, nr = 0;

	for (unsigned l = 0; l < x->nr; l++) {
		const struct family *f = &x->family[l];
		const struct backing *b = &x->backing[l];
		int all = 0, unused = 0;

		for (unsigned i = 0; i < x->n && f->kind == FAMILY_CAPACITY; i++) {
			bool here = f->capacity.cover ? b->all[i].nodes.bits & mask.bits
						      : mask.bits >> i & 1;

			if (!here || (!f->capacity.cover && !f->capacity.weight))
				continue;
			all += (int)b->capacity[i];
			unused += (int)b->unallocated[i];
		}
		if (!all)
			continue;
		sum += (all - unused) * 100 / all > 1 ? (all - unused) * 100 / all : 1;
		nr++;
	}
	return nr ? sum / nr : -1;
}

/* Whether a is to be taken before b, both of the same fit. */
static bool wanted_before(const struct families *x, struct nodeset a, struct nodeset b)
{
	int share_a = mean_share(x, a), share_b = mean_share(x, b);

	if (share_a == share_b)
		return a.bits < b.bits;
	if (share_a < 0 || share_b < 0)
		return share_b < 0;
	return x->machine.space.strategy == ALLOCATION_MOST ? share_a > share_b : share_a < share_b;
}

static void the_strategy_decides_among_the_tied_masks_and_no_others(void **state)
{
	static struct families x;
	static struct results all;
	struct random r = {SEED};
	unsigned moved[2] = {0}, checked = 0;

	(void)state;
	for (unsigned round = 0; checked < 6000; round++) {
		random_families(&r, 1 + random_below(&r, NODES), 1 + random_below(&r, 3), &x);
		random_shares(&r, &x);
		if (!x.products || x.products > PRODUCTS_MAX)
			continue;
		checked++;
		struct hint plain = merged(&x.machine.space, x.family, x.nr), want = plain;
		x.machine.space.strategy =
			random_chance(&r, 50) ? ALLOCATION_MOST : ALLOCATION_LEAST;
		all_results(&x, &all);
		for (uint64_t m = 1; m <= x.machine.space.all.bits; m++)
			if (all.is[plain.preferred][m] &&
				!hint_compare_fit(
					&x.machine.space, (struct nodeset){m}, plain.mask) &&
				wanted_before(&x, (struct nodeset){m}, want.mask))
				want.mask.bits = m;
		struct hint got = merged(&x.machine.space, x.family, x.nr);
		if (got.mask.bits != want.mask.bits || got.preferred != want.preferred)
			fail_msg("case %u: want %#llx %d, got %#llx %d", round,
				(unsigned long long)want.mask.bits, want.preferred,
				(unsigned long long)got.mask.bits, got.preferred);
		moved[got.preferred] += got.mask.bits != plain.mask.bits;
	}
	assert_true(moved[false] > 100 && moved[true] > 100);
}

/* 64 nodes and 16 of them wanted: 4.9e14 sets are equal in size. */
static void on_a_large_uniform_machine_the_lowest_nodes_are_found_at_once(void **state)
{
	static uint64_t capacity[NODES_MAX], unallocated[NODES_MAX];
	struct hint_space space = {.all = nodeset_first(64)};
	struct family f = {.kind = FAMILY_CAPACITY,
		.ground = nodeset_first(64),
		.nr_demands = 1,
		.preferred_size = 16,
		.capacity.weight = capacity,
		.unallocated.weight = unallocated};

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		unallocated[i] = capacity[i] = 8;
	f.demand[0] = (struct family_demand){.weight = unallocated, .need = 128};
	for (int s = ALLOCATION_MOST; s <= ALLOCATION_LEAST; s++) {
		space.strategy = (enum allocation_strategy)s;
		assert_int_equal(merged(&space, &f, 1).mask.bits, 0xffff);
	}
}

/* Of sets of five nodes on a machine where all nodes differ not all can be looked at. */
static void without_budget_the_answer_ties_with_the_best_and_is_always_the_same(void **state)
{
	static uint64_t capacity[NODES_MAX], unallocated[NODES_MAX], weight[NODES_MAX];
	struct hint_space space = {.all = nodeset_first(64)};
	struct family f = {.kind = FAMILY_CAPACITY,
		.ground = nodeset_first(64),
		.nr_demands = 1,
		.preferred_size = 5,
		.capacity.weight = capacity,
		.unallocated.weight = unallocated};
	struct random r = {SEED};
	struct hint first, again, plain;

	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		capacity[i] = 100;
		unallocated[i] = random_below(&r, 100);
		weight[i] = 1;
	}
	f.demand[0] = (struct family_demand){.weight = weight, .need = 5};
	plain = merged(&space, &f, 1);
	space.strategy = ALLOCATION_MOST;
	for (unsigned i = 0; i < 2; i++) {
		struct budget b = budget_all_of(4000);
		struct arena a;

		arena_init(&a, WORK_BYTES);
		assert_int_equal(
			hint_merge_families(&space, &f, 1, &b, &a, i ? &again : &first), 1);
		arena_fini(&a);
	}
	assert_int_equal(first.mask.bits, again.mask.bits);
	assert_int_equal(nodeset_count(first.mask), nodeset_count(plain.mask));
	assert_true(first.preferred);
	assert_true(family_share(&f, first.mask) > family_share(&f, plain.mask));
}

static void each_merging_policy_follows_the_strategy(void **state)
{
	static const uint64_t capacity[NODES_MAX] = {8, 8, 8, 8},
			      unallocated[NODES_MAX] = {8, 4, 2, 6};
	static const struct {
		enum allocation_strategy strategy;
		uint64_t preferred; /* one of the nodes with two free */
	} cases[] = {{ALLOCATION_NONE, 1}, {ALLOCATION_MOST, 4}, {ALLOCATION_LEAST, 1}};
	struct family f = {.kind = FAMILY_CAPACITY,
		.ground = {0xf},
		.nr_demands = 1,
		.demand = {{.weight = unallocated, .need = 2}},
		.preferred_size = 1,
		.capacity.weight = capacity,
		.unallocated.weight = unallocated};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int p = POLICY_BEST_EFFORT; p < NR_POLICIES; p++) {
			struct hint_space space = {.all = {0xf}, .strategy = cases[i].strategy};
			struct policy_answer got;
			struct arena a;

			arena_init(&a, WORK_BYTES);
			assert_int_equal(policy_merge_families((enum topology_policy)p, &space, &f,
						 1, &(struct budget){.endless = true}, &a, &got),
				0);
			arena_fini(&a);
			assert_int_equal(got.affinity.mask.bits, cases[i].preferred);
			assert_true(got.admit);
		}
}

static void a_share_is_from_1_to_100_or_0_where_nothing_is_allocated(void **state)
{
	static const uint64_t capacity[NODES_MAX] = {
		0, 1000, 1000, 3, UINT64_MAX / 2, UINT64_MAX / 2};
	static const uint64_t unallocated[NODES_MAX] = {0, 1000, 991, 1, 0, 0};
	static const struct {
		uint64_t mask;
		unsigned share;
	} cases[] = {{1, 0}, {2, 1}, {4, 1}, {8, 66}, {0xe, 1}, {0x30, 100}, {0, 0}};
	struct family f = {.kind = FAMILY_CAPACITY,
		.capacity.weight = capacity,
		.unallocated.weight = unallocated};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(family_share(&f, (struct nodeset){cases[i].mask}), cases[i].share);
	f.kind = FAMILY_ANY;
	assert_int_equal(family_share(&f, (struct nodeset){8}), 0);
}

/* Devices that lie on two nodes count once in both: together the nodes are more allocated than
 * either is. */
static void nodes_that_share_devices_may_rank_higher_together_than_alone(void **state)
{
	static const uint64_t one_each[NODES_MAX] = {1, 1, 1, 1};
	static const struct family_cover all[] = {{{1}, 100}, {{2}, 100}, {{4}, 1}, {{0xc}, 10},
		{{8}, 1}},
					 unused[] = {{{1}, 90}, {{2}, 90}, {{0xc}, 10}};
	struct hint_space space = {.all = {0xf}, .strategy = ALLOCATION_MOST};
	struct family f = {.kind = FAMILY_CAPACITY,
		.ground = {0xf},
		.nr_demands = 1,
		.demand = {{.weight = one_each, .need = 2}},
		.preferred_size = 2,
		.capacity = {.cover = all, .nr_covers = 5},
		.unallocated = {.cover = unused, .nr_covers = 3}};

	(void)state;
	assert_int_equal(merged(&space, &f, 1).mask.bits, 0xc);
}

/* Two NUMA nodes of four CPUs and 4 GiB. */
static void two_nodes(struct topo *t)
{
	topo_init(t, "two");
	for (unsigned n = 0; n < 2; n++)
		assert_true(topo_add_node(t, n, NULL) >= 0);
	for (unsigned c = 0; c < 8; c++)
		assert_int_equal(topo_add_cpu(t, c, c / 4, c, c / 4, c / 4, NULL), 0);
	for (unsigned n = 0; n < 2; n++)
		assert_int_equal(topo_set_memory(t, n, 0, UINT64_C(4) << 30, NULL), 0);
	assert_int_equal(topo_seal(t, NULL), 0);
}

static void check_shares(const struct family *f, unsigned first, unsigned second, unsigned both)
{
	assert_int_equal(family_share(f, (struct nodeset){1}), first);
	assert_int_equal(family_share(f, (struct nodeset){2}), second);
	assert_int_equal(family_share(f, (struct nodeset){3}), both);
}

static void the_allocated_share_is_computed_of_cpus_memory_and_devices(void **state)
{
	static const struct device devices[] = {
		{.id = "a", .has_topology = true, .placed = true, .nodes = {1}, .healthy = true},
		{.id = "b", .has_topology = true, .placed = true, .nodes = {1}, .healthy = true},
		{.id = "c", .has_topology = true, .placed = true, .nodes = {2}},
		{.id = "d", .has_topology = true, .placed = true, .nodes = {2}, .healthy = true}};
	static const struct device_resource resource = {"example.com/gpu", 4, devices};
	static const bool held[] = {true, false, true, false};
	static struct topo t;
	static struct settings s;
	static struct memory_state m;
	static struct memory_rows rows;
	const struct memory_block block = {.nodes = {2}, .bytes = UINT64_C(1) << 30};
	const struct memory_demand demand = {.kinds = 1, .bytes = {1}};
	const struct device_claim claim = {.resource = &resource, .count = 1, .held = held};
	struct family f, memory[TOPO_KINDS];
	struct cpuset available, reserved;
	struct cpus_per_node n;
	static char work[WORK_BYTES];
	struct arena a;

	(void)state;
	two_nodes(&t);
	arena_init_fixed(&a, work, sizeof work);
	assert_int_equal(cpuset_parse(&available, "1-2,7", 5, NULL), 0);
	assert_int_equal(cpuset_parse(&reserved, "0", 1, NULL), 0);
	cpus_family(&t, &s.cpu_options, &available, &(struct cpuset){0}, 1, &n, &f);
	check_shares(&f, 50, 75, 62);
	cpus_set_aside(&t, &reserved, &n);
	check_shares(&f, 33, 75, 57);
	memory_init(&m, &t, &s);
	memory_hold(&m, &block, 1);
	assert_int_equal(memory_families(&t, &m, &demand, NULL, &rows,
				 &(struct budget){.endless = true}, &a, memory),
		1);
	check_shares(&memory[0], 1, 25, 12);
	assert_int_equal(
		devices_family(&claim, t.nodes, &(struct budget){.endless = true}, &a, &f), 0);
	check_shares(&f, 50, 1, 33);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_strategy_decides_among_the_tied_masks_and_no_others),
		cmocka_unit_test(on_a_large_uniform_machine_the_lowest_nodes_are_found_at_once),
		cmocka_unit_test(
			without_budget_the_answer_ties_with_the_best_and_is_always_the_same),
		cmocka_unit_test(each_merging_policy_follows_the_strategy),
		cmocka_unit_test(a_share_is_from_1_to_100_or_0_where_nothing_is_allocated),
		cmocka_unit_test(nodes_that_share_devices_may_rank_higher_together_than_alone),
		cmocka_unit_test(the_allocated_share_is_computed_of_cpus_memory_and_devices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
