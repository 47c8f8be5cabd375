/* The policies' table: which hints enter the merge, and what each makes of the result. */
#include <numafit/policy.h>

#include "core_machine.h"
#include "core_random.h"
#include "hint_lists.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define BEST(bits)                                                                                 \
	{                                                                                          \
		.mask = {bits}, .preferred = true                                                  \
	}
#define ALSO(bits)                                                                                 \
	{                                                                                          \
		.mask = { bits }                                                                   \
	}
#define HINTS(...)                                                                                 \
	{                                                                                          \
		(const struct hint[]){__VA_ARGS__}, COUNT(((const struct hint[]){__VA_ARGS__}))    \
	}

enum { WORK_BYTES = 1 << 20, ANY = 0, LISTS_MAX = 3 };

static const struct hint_space four = {.all = {0xf}};

/* An affinity that the policy gives: a mask, or ANY. */
struct verdict {
	uint64_t mask;
	bool preferred, admit;
};

static struct policy_answer merge_families(
	enum topology_policy p, const struct hint_space *s, const struct family *f, size_t nr)
{
	struct policy_answer got;
	struct arena a;

	arena_init(&a, WORK_BYTES);
	assert_int_equal(
		policy_merge_families(p, s, f, nr, &(struct budget){.endless = true}, &a, &got), 0);
	arena_fini(&a);
	return got;
}

static void check(const char *what, enum topology_policy p, const struct policy_answer *got,
	struct verdict want)
{
	if (got->affinity.any != (want.mask == ANY) || got->affinity.mask.bits != want.mask ||
		got->affinity.preferred != want.preferred || got->admit != want.admit)
		fail_msg("%s, %s: got %#llx (any %d) preferred %d admit %d", what,
			topology_policy_words[p], (unsigned long long)got->affinity.mask.bits,
			got->affinity.any, got->affinity.preferred, got->admit);
}

/* The lists, and the rules that say the same: at most one list has none. */
static unsigned check_both(const char *what, enum topology_policy p, const struct hint_space *s,
	const struct hint_list *lists, size_t nr, struct verdict want)
{
	struct policy_answer got = policy_merge_lists(p, s, lists, nr);
	struct family f[LISTS_MAX];

	check(what, p, &got, want);
	for (size_t i = 0; i < nr; i++)
		if (!family_of_list(&lists[i], &f[i]))
			return 0;
	got = merge_families(p, s, f, nr);
	check(what, p, &got, want);
	return 1;
}

static void each_policy_has_its_own_answer(void **state)
{
	unsigned by_rules = 0;
	const struct {
		const char *what;
		size_t nr;
		struct hint_list lists[LISTS_MAX];
		struct verdict best_effort, restricted, single;
	} cases[] = {
		{"no resource asks", 0, {{0}}, {0xf, true, true}, {0xf, true, true},
			{ANY, true, true}},
		{"nobody cares", 1, {HINTS({.any = true, .preferred = true})}, {0xf, true, true},
			{0xf, true, true}, {ANY, true, true}},
		{"nothing satisfies", 1, {HINTS({.any = true})}, {0xf, false, true},
			{0xf, false, false}, {ANY, false, false}},
		{"an empty list", 2, {HINTS(BEST(1)), {0}}, {0xf, false, true}, {0xf, false, false},
			{ANY, false, false}},
		{"one node for all", 2, {HINTS(BEST(2), ALSO(3)), HINTS(BEST(2), ALSO(3))},
			{2, true, true}, {2, true, true}, {2, true, true}},
		{"the lower of two nodes", 1, {HINTS(BEST(4), BEST(2))}, {2, true, true},
			{2, true, true}, {2, true, true}},
		{"no common node", 2, {HINTS(BEST(1), ALSO(3)), HINTS(BEST(2), ALSO(3))},
			{1, false, true}, {1, false, false}, {ANY, false, false}},
		{"two nodes, preferred", 1, {HINTS(BEST(6))}, {6, true, true}, {6, true, true},
			{ANY, false, false}},
		{"two nodes, not preferred", 1, {HINTS(ALSO(6))}, {6, false, true},
			{6, false, false}, {ANY, false, false}},
		{"one node, not preferred", 1, {HINTS(ALSO(2))}, {2, false, true},
			{2, false, false}, {ANY, false, false}},
		{"one cares, one does not", 2,
			{HINTS(BEST(8)), HINTS({.any = true, .preferred = true})}, {8, true, true},
			{8, true, true}, {8, true, true}},
		{"all nodes, preferred", 1, {HINTS(BEST(0xf))}, {0xf, true, true},
			{0xf, true, true}, {ANY, false, false}},
		{"unequal though both preferred", 2, {HINTS(BEST(3)), HINTS(BEST(1))},
			{1, false, true}, {1, false, false}, {ANY, false, false}},
		{"only what is beyond the machine", 1, {HINTS(BEST(0x30))}, {0xf, false, true},
			{0xf, false, false}, {ANY, false, false}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct verdict want[NR_POLICIES] = {
			[POLICY_NONE] = {ANY, false, true},
			[POLICY_BEST_EFFORT] = cases[i].best_effort,
			[POLICY_RESTRICTED] = cases[i].restricted,
			[POLICY_SINGLE_NUMA_NODE] = cases[i].single,
		};
		for (int p = 0; p < NR_POLICIES; p++)
			by_rules += check_both(cases[i].what, (enum topology_policy)p, &four,
				cases[i].lists, cases[i].nr, want[p]);
	}
	/* an empty list is no rule's: the kubelet makes it one hint that is not preferred */
	assert_int_equal(by_rules, (COUNT(cases) - 1) * NR_POLICIES);
}

static void on_a_machine_of_one_node_single_numa_node_gives_no_affinity(void **state)
{
	static const struct hint_space one = {.all = {1}};
	const struct hint_list list = HINTS(BEST(1));

	(void)state;
	assert_true(check_both("one node", POLICY_SINGLE_NUMA_NODE, &one, &list, 1,
		(struct verdict){ANY, true, true}));
	assert_true(check_both(
		"one node", POLICY_RESTRICTED, &one, &list, 1, (struct verdict){1, true, true}));
}

/* Nodes 0 and 1 are far apart, 2 and 3 near; node 3 is nearest to itself. */
static void distances_are_used_by_best_effort_and_restricted_only(void **state)
{
	static const uint8_t distance[NODES_MAX][NODES_MAX] = {
		{20, 40, 40, 40}, {40, 20, 40, 40}, {40, 40, 20, 21}, {40, 40, 21, 10}};
	static const struct hint_space space = {.all = {0xf}, .distance = distance};
	const struct hint_list pairs = HINTS(BEST(3), BEST(0xc)), singles = HINTS(BEST(1), BEST(8));
	static const struct {
		enum topology_policy policy;
		struct verdict pair, single;
	} cases[] = {
		{POLICY_NONE, {ANY, false, true}, {ANY, false, true}},
		{POLICY_BEST_EFFORT, {0xc, true, true}, {8, true, true}},
		{POLICY_RESTRICTED, {0xc, true, true}, {8, true, true}},
		{POLICY_SINGLE_NUMA_NODE, {ANY, false, false}, {1, true, true}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_true(check_both("pairs", cases[i].policy, &space, &pairs, 1, cases[i].pair));
		assert_true(check_both(
			"singles", cases[i].policy, &space, &singles, 1, cases[i].single));
	}
}

/* A rule over n nodes, written out as the list that it stands for. */
static struct hint_list written_out(const struct family *f, struct nodeset all, struct hint *hint)
{
	size_t nr = 0;

	if (f->kind != FAMILY_CAPACITY)
		hint[nr++] = (struct hint){.any = true, .preferred = f->kind == FAMILY_ANY};
	for (uint64_t m = 1; m <= all.bits && f->kind == FAMILY_CAPACITY; m++)
		if (family_has(f, (struct nodeset){m}))
			hint[nr++] = (struct hint){.mask = {m},
				.preferred =
					nodeset_count((struct nodeset){m}) == f->preferred_size};
	return (struct hint_list){hint, nr};
}

static void families_get_the_same_verdict_as_the_lists_they_stand_for(void **state)
{
	enum { NODES = 4, SETS = 1 << NODES, FAMILIES = 2 };
	struct hint hint[FAMILIES][SETS];
	uint64_t weight[FAMILIES][NODES_MAX] = {0};
	struct random r = {31};

	(void)state;
	for (unsigned round = 0; round < 4000; round++) {
		struct family f[FAMILIES] = {0};
		struct hint_list lists[FAMILIES];
		size_t nr = random_below(&r, FAMILIES + 1);

		for (size_t i = 0; i < nr; i++) {
			for (unsigned n = 0; n < NODES; n++)
				weight[i][n] = random_below(&r, 5);
			f[i] = (struct family){
				.kind = random_chance(&r, 80)   ? FAMILY_CAPACITY
					: random_chance(&r, 50) ? FAMILY_ANY
								: FAMILY_NONE,
				.ground = {1 + random_below(&r, SETS - 1)},
				.nr_demands = 1,
				.demand = {{.weight = weight[i], .need = random_below(&r, 8)}},
				.preferred_size = 1 + random_below(&r, 2),
			};
			if (random_chance(&r, 30))
				f[i].extra[f[i].nr_extra++].bits = 1 + random_below(&r, SETS - 1);
			lists[i] = written_out(&f[i], four.all, hint[i]);
		}
		for (int p = 0; p < NR_POLICIES; p++) {
			struct policy_answer want = policy_merge_lists(
						     (enum topology_policy)p, &four, lists, nr),
					     got = merge_families(
						     (enum topology_policy)p, &four, f, nr);

			check("families", (enum topology_policy)p, &got,
				(struct verdict){want.affinity.mask.bits, want.affinity.preferred,
					want.admit});
		}
	}
}

static void too_little_working_memory_is_reported(void **state)
{
	struct family f = {.kind = FAMILY_ANY};
	struct policy_answer got;
	struct arena a;

	(void)state;
	arena_init(&a, 0);
	assert_int_equal(policy_merge_families(POLICY_RESTRICTED, &four, &f, 1,
				 &(struct budget){.endless = true}, &a, &got),
		-ENOMEM);
	assert_int_equal(policy_merge_families(POLICY_NONE, &four, &f, 1,
				 &(struct budget){.endless = true}, &a, &got),
		0);
}

static void the_kubelets_limit_of_nodes_holds_for_all_but_none(void **state)
{
	struct err e;

	(void)state;
	for (int p = POLICY_BEST_EFFORT; p < NR_POLICIES; p++) {
		assert_int_equal(policy_check_nodes((enum topology_policy)p, 8, 8, NULL), 0);
		assert_int_equal(policy_check_nodes((enum topology_policy)p, 64, 0, NULL), 0);
		assert_int_equal(policy_check_nodes((enum topology_policy)p, 9, 8, &e), -E2BIG);
		assert_string_equal(e.text, "unsupported on machines with more than 8 NUMA Nodes");
	}
	assert_int_equal(policy_check_nodes(POLICY_NONE, 64, 8, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_policy_has_its_own_answer),
		cmocka_unit_test(on_a_machine_of_one_node_single_numa_node_gives_no_affinity),
		cmocka_unit_test(distances_are_used_by_best_effort_and_restricted_only),
		cmocka_unit_test(families_get_the_same_verdict_as_the_lists_they_stand_for),
		cmocka_unit_test(too_little_working_memory_is_reported),
		cmocka_unit_test(the_kubelets_limit_of_nodes_holds_for_all_but_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
