/* Branch and bound against trying every set. */
#include <numafit/search.h>

#include "core_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { NODES = 8, DEMANDS = 3, COVERS = 4, WORK_BYTES = 4 << 20 };

/* What one search must satisfy. */
struct problem {
	struct hint_space space;
	uint8_t distance[NODES_MAX][NODES_MAX];
	struct nodeset ground, required;
	unsigned nr_demands;
	uint64_t weight[DEMANDS][NODES_MAX];
	struct family_demand demand[DEMANDS];
	struct family_cover cover[COVERS]; /* what the last demand is about instead of weights */
	bool touches;
	unsigned nr_sockets;
	uint64_t sockets_of[NODES_MAX];
};

static void random_distances(struct random *r, struct problem *p)
{
	static const uint8_t steps[] = {11, 12, 20, 30};
	bool tree = random_chance(r, 40), own = random_chance(r, 20);

	for (unsigned i = 0; i < NODES; i++)
		for (unsigned j = 0; j < NODES; j++) {
			unsigned apart = 32 - (unsigned)__builtin_clz((i ^ j) | 1);

			p->distance[i][j] = tree ? steps[apart] : steps[random_below(r, 4)];
			if (i == j)
				p->distance[i][j] = own ? (uint8_t)(10 + random_below(r, 2)) : 10;
		}
	p->space.distance = p->distance;
}

/* Devices that may lie on several nodes, and a number of sockets to touch. */
static void random_extras(struct random *r, unsigned n, struct problem *p)
{
	if (p->nr_demands && random_chance(r, 30)) {
		p->demand[p->nr_demands - 1] = (struct family_demand){.cover = p->cover,
			.nr_covers = COVERS,
			.base = random_below(r, 2),
			.need = random_below(r, 2 * COVERS)};
		for (unsigned c = 0; c < COVERS; c++)
			p->cover[c] = (struct family_cover){
				{random_next(r) & random_next(r) & p->space.all.bits},
				1 + random_below(r, 2)};
	}
	p->touches = random_chance(r, 20);
	p->nr_sockets = 1 + random_below(r, 3);
	for (unsigned i = 0; i < n; i++)
		p->sockets_of[i] = UINT64_C(1) << random_below(r, 4) |
				   (random_chance(r, 30) ? UINT64_C(1) << random_below(r, 4) : 0);
}

static void random_problem(struct random *r, struct problem *p)
{
	unsigned n = 1 + random_below(r, NODES);

	memset(p, 0, sizeof *p);
	p->space.all = nodeset_first(n);
	p->ground.bits = random_chance(r, 60) ? UINT64_MAX : random_next(r);
	if (random_chance(r, 20))
		p->required.bits = random_next(r) & random_next(r) & p->space.all.bits;
	if (random_chance(r, 60))
		random_distances(r, p);
	p->nr_demands = random_below(r, DEMANDS + 1);
	for (unsigned d = 0; d < p->nr_demands; d++) {
		uint64_t sum = 0;

		for (unsigned i = 0; i < n; i++)
			sum += p->weight[d][i] = random_below(r, 7);
		p->demand[d] = (struct family_demand){.weight = p->weight[d],
			.base = random_below(r, 3),
			.need = random_below(r, (unsigned)sum + 3)};
	}
	random_extras(r, n, p);
}

static bool allowed(const struct problem *p, struct nodeset m)
{
	if (!nodeset_within(m, nodeset_and(p->ground, p->space.all)) ||
		!nodeset_within(p->required, m))
		return false;
	for (unsigned d = 0; d < p->nr_demands; d++) {
		uint64_t sum = p->demand[d].base;

		nodeset_each (i, m)
			sum += p->demand[d].weight ? p->weight[d][i] : 0;
		for (unsigned c = 0; c < p->demand[d].nr_covers; c++)
			sum += p->cover[c].nodes.bits & m.bits ? p->cover[c].count : 0;
		if (sum < p->demand[d].need)
			return false;
	}
	uint64_t sockets = 0;
	nodeset_each (i, m)
		sockets |= p->sockets_of[i];
	return !p->touches || (unsigned)__builtin_popcountll(sockets) == p->nr_sockets;
}

/* The best set of k nodes among all; empty when there is none. */
static struct nodeset tried_all(
	const struct problem *p, unsigned k, bool (*possible)(void *, struct nodeset), void *ctx)
{
	struct nodeset best = {0};

	for (uint64_t bits = 1; bits <= p->space.all.bits; bits++) {
		struct nodeset m = {bits};

		if (nodeset_count(m) != k || !allowed(p, m) || (possible && !possible(ctx, m)))
			continue;
		if (nodeset_empty(best) || hint_compare_masks(&p->space, m, best) < 0)
			best = m;
	}
	return best;
}

static struct search *begin(const struct problem *p, struct arena *a)
{
	static struct budget endless = {.endless = true};
	struct search *s = search_new(&p->space, &endless, a);

	assert_non_null(s);
	search_begin(s, p->ground);
	for (unsigned d = 0; d < p->nr_demands; d++)
		assert_true(search_add(s, &p->demand[d]));
	search_require(s, p->required);
	if (p->touches)
		assert_true(search_touch(s, p->sockets_of, p->nr_sockets));
	return s;
}

static void check(const char *what, unsigned round, unsigned k, int rc, struct nodeset got,
	struct nodeset want)
{
	if (rc != (nodeset_empty(want) ? -ENOENT : 0) || !nodeset_equal(got, want))
		fail_msg("%s %u: of %u nodes want %#llx, got %#llx (%d)", what, round, k,
			(unsigned long long)want.bits, (unsigned long long)got.bits, rc);
}

static void the_best_set_is_the_one_that_trying_all_finds(void **state)
{
	struct random r = {41};

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		struct problem p;
		struct arena a;

		random_problem(&r, &p);
		arena_init(&a, WORK_BYTES);
		struct search *s = begin(&p, &a);
		unsigned smallest = 0;
		for (unsigned k = NODES + 1; k > 0; k--) {
			struct nodeset want = tried_all(&p, k, NULL, NULL), got;
			int rc = search_best(s, k, &got);

			check("case", round, k, rc, got, want);
			smallest = nodeset_empty(want) ? smallest : k;
		}
		assert_int_equal(search_smallest(s), smallest);
		/* asking for the size leaves the order of sets as it was */
		struct nodeset want = tried_all(&p, smallest, NULL, NULL), got;
		check("again", round, smallest, search_best(s, smallest, &got), got, want);
		arena_fini(&a);
	}
}

/* Sets that contain one of two given ones. */
struct either {
	struct nodeset a, b;
};

static bool has_either(void *ctx, struct nodeset m)
{
	const struct either *e = ctx;

	return nodeset_within(e->a, m) || nodeset_within(e->b, m);
}

static void a_limit_of_the_callers_own_is_kept(void **state)
{
	struct random r = {43};

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		struct problem p;
		struct arena a;

		random_problem(&r, &p);
		struct either e = {{random_next(&r) & random_next(&r) & p.space.all.bits},
			{random_next(&r) & random_next(&r) & p.space.all.bits}};
		arena_init(&a, WORK_BYTES);
		struct search *s = begin(&p, &a);
		search_limit(s, has_either, &e);
		for (unsigned k = 1; k <= NODES; k++) {
			struct nodeset got;
			int rc = search_best(s, k, &got);

			check("limited", round, k, rc, got, tried_all(&p, k, has_either, &e));
		}
		search_begin(s, p.ground); /* the limit is gone again */
		struct problem bare = {.space = p.space, .ground = p.ground};
		memcpy(bare.distance, p.distance, sizeof p.distance);
		bare.space.distance = p.space.distance ? bare.distance : NULL;
		struct nodeset got;
		int rc = search_best(s, 1, &got);
		check("begun anew", round, 1, rc, got, tried_all(&bare, 1, NULL, NULL));
		arena_fini(&a);
	}
}

static void a_repeated_demand_counts_once_with_its_larger_need(void **state)
{
	static const uint64_t weight[NODES_MAX] = {4, 4, 4, 4};
	const struct hint_space space = {.all = {0xf}};
	struct nodeset got;
	struct arena a;

	(void)state;
	arena_init(&a, WORK_BYTES);
	struct search *s = search_new(&space, &(struct budget){.endless = true}, &a);
	search_begin(s, space.all);
	for (unsigned i = 0; i < 2 * SEARCH_DEMANDS; i++)
		assert_true(
			search_add(s, &(struct family_demand){
					      .weight = weight, .base = i % 2, .need = i % 3 + 6}));
	assert_int_equal(search_smallest(s), 2);
	assert_int_equal(search_best(s, 2, &got), 0);
	assert_int_equal(got.bits, 3);
	assert_true(search_add(s, &(struct family_demand){.weight = weight, .need = 9}));
	assert_int_equal(search_smallest(s), 3);
	arena_fini(&a);
}

static void too_many_demands_are_refused(void **state)
{
	static const uint64_t weight[SEARCH_DEMANDS + 1][NODES_MAX];
	const struct hint_space space = {.all = {0xf}};
	struct arena a;

	(void)state;
	arena_init(&a, WORK_BYTES);
	struct search *s = search_new(&space, &(struct budget){.endless = true}, &a);
	search_begin(s, space.all);
	for (unsigned i = 0; i < SEARCH_DEMANDS; i++)
		assert_true(search_add(s, &(struct family_demand){.weight = weight[i], .need = 1}));
	assert_false(search_add(
		s, &(struct family_demand){.weight = weight[SEARCH_DEMANDS], .need = 1}));
	assert_true(search_add(s,
		&(struct family_demand){.weight = weight[SEARCH_DEMANDS], .base = 1, .need = 1}));
	arena_fini(&a);
}

static void too_little_memory_for_a_search_is_an_error(void **state)
{
	static const uint64_t weight[NODES_MAX];
	const struct hint_space space = {.all = nodeset_first(NODES_MAX)};
	struct arena a;

	(void)state;
	arena_init(&a, 1000);
	assert_null(search_new(&space, &(struct budget){.endless = true}, &a));
	arena_init(&a, WORK_BYTES);
	struct search *s = search_new(&space, &(struct budget){.endless = true}, &a);
	assert_non_null(s);
	a.limit_bytes = a.given;
	search_begin(s, space.all);
	assert_false(search_add(s, &(struct family_demand){.weight = weight, .need = 1}));
	arena_fini(&a);
}

static void a_search_takes_ground_and_demands_from_a_family(void **state)
{
	static const uint64_t weight[NODES_MAX] = {5, 1, 5, 5, 5};
	const struct hint_space space = {.all = {0x1f}};
	const struct family f = {.ground = {0x1e},
		.required = {2},
		.nr_demands = 1,
		.demand = {{.weight = weight, .need = 6}}};
	struct nodeset got;
	struct arena a;

	(void)state;
	arena_init(&a, WORK_BYTES);
	struct search *s = search_new(&space, &(struct budget){.endless = true}, &a);
	search_begin(s, (struct nodeset){0xfb});
	assert_true(search_add_family(s, &f));
	assert_int_equal(search_best(s, 1, &got), -ENOENT);
	assert_int_equal(search_best(s, 2, &got), 0);
	assert_int_equal(
		got.bits, 0xa); /* node 1 is required, 0 not in its ground, 2 not in the search's */
	arena_fini(&a);
}

/* 64 nodes with random distances: trying all is out of the question, and so is finishing. */
static void a_spent_budget_ends_every_search_with_the_best_so_far(void **state)
{
	static struct problem p;
	struct nodeset got, again, first = {0};
	struct random r = {47};
	struct arena a;

	(void)state;
	for (unsigned i = 0; i < NODES_MAX; i++)
		for (unsigned j = 0; j < NODES_MAX; j++)
			p.distance[i][j] = i == j ? 10 : (uint8_t)(11 + random_below(&r, 90));
	p.space = (struct hint_space){.all = nodeset_first(NODES_MAX), .distance = p.distance};
	for (uint64_t budget = 1; budget <= 1 << 17; budget *= 2) {
		struct budget b = budget_all_of(budget);

		arena_init(&a, WORK_BYTES);
		struct search *s = search_new(&p.space, &b, &a);
		search_begin(s, p.space.all);
		assert_int_equal(search_best(s, 24, &got), 1);
		assert_int_equal(nodeset_count(got), 24);
		/* more steps never make it worse */
		assert_true(nodeset_empty(first) || hint_compare_masks(&p.space, got, first) <= 0);
		first = got;
		/* all searches share the budget: the second one has its greedy start only */
		assert_int_equal(search_best(s, 24, &again), 1);
		assert_int_equal(nodeset_count(again), 24);
		assert_true(hint_compare_masks(&p.space, again, got) >= 0);
		assert_int_equal(search_smallest(s), 1);
		arena_fini(&a);

		arena_init(&a, WORK_BYTES); /* the same answer each time */
		b = budget_all_of(budget);
		s = search_new(&p.space, &b, &a);
		search_begin(s, p.space.all);
		assert_int_equal(search_best(s, 24, &again), 1);
		assert_true(nodeset_equal(got, again));
		arena_fini(&a);
	}
}

static void a_search_for_an_impossible_size_finds_nothing(void **state)
{
	const struct hint_space space = {.all = {7}};
	struct nodeset got = {9};
	struct arena a;

	(void)state;
	arena_init(&a, WORK_BYTES);
	struct search *s = search_new(&space, &(struct budget){.endless = true}, &a);
	search_begin(s, space.all);
	assert_int_equal(search_best(s, 0, &got), -ENOENT);
	assert_true(nodeset_empty(got));
	assert_int_equal(search_best(s, 3, &got), 0);
	assert_int_equal(got.bits, 7);
	assert_int_equal(search_best(s, 4, &got), -ENOENT);
	search_begin(s, (struct nodeset){0x30}); /* nothing of the machine */
	assert_int_equal(search_best(s, 1, &got), -ENOENT);
	assert_int_equal(search_smallest(s), 0);
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_best_set_is_the_one_that_trying_all_finds),
		cmocka_unit_test(a_limit_of_the_callers_own_is_kept),
		cmocka_unit_test(a_repeated_demand_counts_once_with_its_larger_need),
		cmocka_unit_test(too_many_demands_are_refused),
		cmocka_unit_test(too_little_memory_for_a_search_is_an_error),
		cmocka_unit_test(a_search_takes_ground_and_demands_from_a_family),
		cmocka_unit_test(a_spent_budget_ends_every_search_with_the_best_so_far),
		cmocka_unit_test(a_search_for_an_impossible_size_finds_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
