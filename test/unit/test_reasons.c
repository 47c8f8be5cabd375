/* Reasons against what is found by writing everything out. */
#include <numafit/reasons.h>

#include "core_families.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { SEED = 20261123, WORK_BYTES = 8 << 20, NODES = 5, PRODUCTS_MAX = 30000 };

static char work[WORK_BYTES];

static const struct reasons *reasons_for(
	enum topology_policy p, const struct hint_space *s, const struct family *f, size_t nr)
{
	struct budget b = {.endless = true};
	struct policy_answer answer;
	struct arena a;

	arena_init_fixed(&a, work, sizeof work);
	assert_int_equal(policy_merge_families(p, s, f, nr, &b, &a, &answer), 0);
	arena_init_fixed(&a, work, sizeof work);
	const struct reasons *r = reasons_of(p, s, f, nr, &answer, false, &b, &a);
	assert_true(!r || (r->admit == answer.admit && !r->cut_short &&
				  r->affinity.mask.bits == answer.affinity.mask.bits));
	return r;
}

/* The resource's part by its list. */
static void check_resource(const struct hint_space *s, const struct family *f,
	const struct hint_list *list, const struct reasons_resource *got)
{
	struct nodeset best[REASONS_BEST] = {{0}};
	unsigned smallest = 0, nr = 0;

	assert_int_equal(got->kind, f->kind);
	if (f->kind != FAMILY_CAPACITY) {
		assert_true(!got->masks && !got->smallest && !got->nr_best);
		return;
	}
	for (size_t i = 0; i < list->nr; i++) {
		unsigned size = nodeset_count(list->hint[i].mask);

		smallest = !smallest || size < smallest ? size : smallest;
	}
	for (; nr < REASONS_BEST; nr++) { /* each time the best of those that come after the last */
		struct nodeset next = {0};

		for (size_t i = 0; i < list->nr; i++) {
			struct nodeset m = list->hint[i].mask;

			if (nodeset_count(m) == smallest &&
				(!nr || hint_compare_masks(s, best[nr - 1], m) < 0) &&
				(nodeset_empty(next) || hint_compare_masks(s, m, next) < 0))
				next = m;
		}
		if (nodeset_empty(next))
			break;
		best[nr] = next;
	}
	assert_int_equal(got->masks, list->nr);
	assert_false(got->more_masks);
	assert_int_equal(got->smallest, smallest);
	assert_int_equal(got->preferred_size, f->preferred_size);
	assert_int_equal(got->nr_best, nr);
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(got->best[i].bits, best[i].bits);
}

static void each_resource_is_described_as_its_list_would_be(void **state)
{
	static struct families x;
	struct random r = {SEED};

	(void)state;
	for (unsigned round = 0; round < 5000; round++) {
		random_families(&r, 1 + random_below(&r, 7), random_below(&r, LISTS_MAX + 1), &x);
		const struct reasons *got =
			reasons_for(POLICY_RESTRICTED, &x.machine.space, x.family, x.nr);
		assert_int_equal(got->nr, x.nr);
		for (unsigned l = 0; l < x.nr; l++)
			check_resource(
				&x.machine.space, &x.family[l], &x.list[l], &got->resource[l]);
	}
}

/* The best result on other nodes than the answer, as the kubelet orders them. */
static bool second_best(const struct families *x, const struct results *all, struct nodeset answer,
	struct hint *second)
{
	const struct hint_space *s = &x->machine.space;
	const struct scoring scoring = {s->strategy, x->family, x->nr};

	*second = (struct hint){0};
	for (int preferred = 1; preferred >= 0 && nodeset_empty(second->mask); preferred--)
		for (uint64_t bits = 1; bits <= s->all.bits; bits++) {
			struct nodeset m = {bits}, now = second->mask;

			if (!all->is[preferred][bits] || bits == answer.bits)
				continue;
			bool better = nodeset_empty(now);
			if (!better && !preferred && nodeset_count(m) != nodeset_count(now))
				better = hint_beats(s, all->aim, m, now);
			else if (!better)
				better = scoring_compare(s, &scoring, m, now) < 0;
			if (better)
				*second = (struct hint){.mask = m, .preferred = preferred};
		}
	return !nodeset_empty(second->mask);
}

static void the_runner_up_is_the_second_best_of_all_combinations(void **state)
{
	static struct families x;
	static struct results all;
	struct random r = {SEED + 1};
	unsigned checked = 0, none = 0, preferred = 0, unknown = 0;

	(void)state;
	for (unsigned round = 0; checked < 8000; round++) {
		struct hint want;

		random_families(
			&r, 1 + random_below(&r, NODES), random_below(&r, LISTS_MAX + 1), &x);
		random_shares(&r, &x);
		x.machine.space.strategy = (enum allocation_strategy)random_below(&r, 3);
		if (!x.products || x.products > PRODUCTS_MAX)
			continue;
		checked++;
		const struct reasons *got =
			reasons_for(POLICY_BEST_EFFORT, &x.machine.space, x.family, x.nr);
		all_results(&x, &all);
		bool found = second_best(&x, &all, got->affinity.mask, &want);
		none += !found;
		if (found && !got->has_runner_up) {
			unknown++;
			continue;
		}
		assert_int_equal(got->has_runner_up, found);
		if (found && (got->runner_up.mask.bits != want.mask.bits ||
				     got->runner_up.preferred != want.preferred))
			fail_msg("case %u: want %#llx %d, got %#llx %d", round,
				(unsigned long long)want.mask.bits, want.preferred,
				(unsigned long long)got->runner_up.mask.bits,
				got->runner_up.preferred);
		preferred += found && want.preferred;
	}
	assert_true(preferred > 300 && checked - none - preferred > 1000 && none > 1000);
	assert_int_equal(unknown, 0);
}

static void single_numa_node_has_only_single_nodes_to_choose_from(void **state)
{
	static const uint64_t weight[NODES_MAX] = {2, 8, 9, 8};
	static const struct {
		uint64_t need, best, second;
	} cases[] = {{1, 1, 2}, {8, 2, 4}, {9, 4, 0}, {10, 0, 0}};
	const struct hint_space space = {.all = {0xf}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct family f = {.kind = FAMILY_CAPACITY,
			.ground = {0xf},
			.nr_demands = 1,
			.demand = {{.weight = weight, .need = cases[i].need}},
			.preferred_size = 1};
		const struct reasons *r = reasons_for(POLICY_SINGLE_NUMA_NODE, &space, &f, 1);

		assert_int_equal(r->affinity.mask.bits, cases[i].best);
		assert_int_equal(r->admit, cases[i].best != 0);
		assert_int_equal(r->has_runner_up, cases[i].second != 0);
		assert_int_equal(r->runner_up.mask.bits, cases[i].second);
	}
}

/* Sets of at least half of n nodes that are alike. */
static uint64_t sets_of_half(unsigned n)
{
	uint64_t choose = 1, sum = 0;

	for (unsigned k = 0; k <= n; k++) {
		sum += k >= n / 2 ? choose : 0;
		choose = choose * (n - k) / (k + 1);
	}
	return sum;
}

static void sets_of_twelve_nodes_are_all_counted_and_sets_of_more_up_to_a_limit(void **state)
{
	static uint64_t weight[NODES_MAX];

	(void)state;
	for (unsigned i = 0; i < NODES_MAX; i++)
		weight[i] = 10;
	for (unsigned n = 12; n <= NODES_MAX; n += 4) {
		const struct hint_space space = {.all = nodeset_first(n)};
		struct family f = {.kind = FAMILY_CAPACITY,
			.ground = space.all,
			.nr_demands = 1,
			.demand = {{.weight = weight, .need = 10 * (n / 2)}},
			.preferred_size = n / 2};
		const struct reasons_resource *r =
			&reasons_for(POLICY_RESTRICTED, &space, &f, 1)->resource[0];

		assert_int_equal(r->more_masks, n > 12);
		assert_true(r->masks == sets_of_half(n) || (n > 12 && r->masks < sets_of_half(n)));
		assert_int_equal(r->smallest, n / 2);
		assert_int_equal(r->nr_best, REASONS_BEST);
		assert_int_equal(r->best[0].bits, nodeset_first(n / 2).bits);
		assert_int_equal(r->best[1].bits, /* the highest one moves up */
			nodeset_first(n / 2 - 1).bits | nodeset_of(n / 2).bits);
	}
}

static void the_number_of_sets_of_64_nodes_can_be_printed(void **state)
{
	static uint64_t weight[NODES_MAX];
	const struct hint_space space = {.all = nodeset_first(NODES_MAX)};
	struct family f = {.kind = FAMILY_CAPACITY,
		.ground = space.all,
		.nr_demands = 1,
		.demand = {{.weight = weight, .need = 1}},
		.preferred_size = 1};

	(void)state;
	for (unsigned i = 0; i < NODES_MAX; i++)
		weight[i] = 1;
	const struct reasons *r = reasons_for(POLICY_BEST_EFFORT, &space, &f, 1);
	assert_true(r->resource[0].masks == UINT64_MAX && !r->resource[0].more_masks);
	assert_true(r->has_runner_up && r->runner_up.preferred);
	assert_int_equal(r->runner_up.mask.bits, 2);
	f.required = nodeset_of(63);
	r = reasons_for(POLICY_BEST_EFFORT, &space, &f, 1);
	assert_true(r->resource[0].masks == UINT64_C(1) << 63);
	assert_int_equal(r->resource[0].nr_best, 1);
}

static void no_reasons_are_given_without_a_merge_or_without_memory(void **state)
{
	const struct hint_space space = {.all = {0xf}};
	const struct policy_answer answer = {.affinity = {.any = true}, .admit = true};
	struct family f = {.kind = FAMILY_ANY};
	char little[64];
	struct arena a;

	(void)state;
	assert_null(reasons_for(POLICY_NONE, &space, &f, 1));
	arena_init_fixed(&a, little, sizeof little);
	assert_null(reasons_of(POLICY_RESTRICTED, &space, &f, 1, &answer, true,
		&(struct budget){.endless = true}, &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_resource_is_described_as_its_list_would_be),
		cmocka_unit_test(the_runner_up_is_the_second_best_of_all_combinations),
		cmocka_unit_test(single_numa_node_has_only_single_nodes_to_choose_from),
		cmocka_unit_test(
			sets_of_twelve_nodes_are_all_counted_and_sets_of_more_up_to_a_limit),
		cmocka_unit_test(the_number_of_sets_of_64_nodes_can_be_printed),
		cmocka_unit_test(no_reasons_are_given_without_a_merge_or_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
