/* A hint is accepted exactly when it changes nothing but which one of equals is taken: against all
 * ways to take one hint of each list, on small machines. */
#include <numafit/advice.h>

#include "core_families.h"

#include <codec/machine_text.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "advice_rig.h"

enum { SEED = 20261121, NODES = 6, PRODUCTS_MAX = 20000, ROUNDS = 3000 };
enum { NOW_MS = 1000000, SKEW_MS = 5000 };

static void every_word_is_parsed_to_the_value_that_prints_it(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NR_ADVICE_VERDICTS; i++)
		assert_int_equal(text_index(advice_verdict_words, NR_ADVICE_VERDICTS,
					 advice_verdict_words[(enum advice_verdict)i]),
			i);
	for (unsigned i = 0; i < NR_ADVICE_FORMATS; i++)
		assert_int_equal(text_index(advice_format_words, NR_ADVICE_FORMATS,
					 advice_format_words[(enum advice_format)i]),
			i);
	for (unsigned i = 0; i < NR_ADVICE_MODES; i++)
		assert_int_equal(text_index(advice_mode_words, NR_ADVICE_MODES,
					 advice_mode_words[(enum advice_mode)i]),
			i);
	assert_int_equal(text_index(advice_verdict_words, NR_ADVICE_VERDICTS, "rejected"), -1);
	assert_int_equal(text_index(advice_format_words, NR_ADVICE_FORMATS, ""), -1);
	assert_string_equal(
		advice_verdict_words[ADVICE_REJECTED_FOREIGN_CPUSET], "rejected:foreign-cpuset");
}

static void an_order_of_hints_is_read_as_it_is_written(void **state)
{
	enum advice_format f[NR_ADVICE_FORMATS];

	(void)state;
	assert_int_equal(advice_order_parse("godel,numafit", f, NULL), 2);
	assert_int_equal(f[0], ADVICE_GODEL);
	assert_int_equal(f[1], ADVICE_NUMAFIT);
	assert_int_equal(advice_order_parse("", f, NULL), 0);
	assert_int_equal(advice_order_parse("godel,gode", f, NULL), -EINVAL);
}

static void a_pod_may_ask_for_stricter_and_never_for_looser(void **state)
{
	static const enum advice_mode want[NR_ADVICE_MODES][NR_ADVICE_MODES] = {
		{ADVICE_OFF, ADVICE_OFF, ADVICE_OFF},
		{ADVICE_PREFER, ADVICE_PREFER, ADVICE_REQUIRE},
		{ADVICE_REQUIRE, ADVICE_REQUIRE, ADVICE_REQUIRE},
	};

	(void)state;
	for (unsigned n = 0; n < NR_ADVICE_MODES; n++)
		for (unsigned a = 0; a < NR_ADVICE_MODES; a++)
			assert_int_equal(advice_mode_of((enum advice_mode)n, (enum advice_mode)a),
				want[n][a]);
	assert_int_equal(advice_policy_of(POLICY_BEST_EFFORT, POLICY_SINGLE_NUMA_NODE),
		POLICY_SINGLE_NUMA_NODE);
	assert_int_equal(advice_policy_of(POLICY_RESTRICTED, POLICY_NONE), POLICY_RESTRICTED);
}

/* A machine of two NUMA nodes, 8 and 9, with CPUs 0-3 and 4-7. */
static const struct topo *two_nodes(void)
{
	static const char text[] = "machine two\nnode 8 memory 8Gi cpus 0-3\n"
				   "node 9 memory 8Gi cpus 4-7\n";
	static struct topo t;

	if (!t.nr_cpus)
		assert_int_equal(machine_text_parse(text, sizeof text - 1, &t, NULL), 0);
	return &t;
}

static const struct advice_container on_first = {.name = "*", .nodes = {1}},
				     on_third = {.name = "*", .nodes = {4}},
				     on_unknown = {.name = "*",
					     .nodes = {1},
					     .has_unknown = true,
					     .unknown_id = 7};
static const struct cpuset cpus_own = {{0x3}}, cpus_held = {{0x30}}, cpus_none = {{0x300}};

#define ASKS(c) .container = &(c), .nr_containers = 1
static const struct {
	struct advice h;
	enum advice_verdict want;
	const char *says;
} checked[] = {
	{{0}, ADVICE_NONE, ""},
	{{.version = 1, ASKS(on_first)}, ADVICE_ACCEPTED, ""},
	{{.version = 2, .uid = "no", .node = "no", ASKS(on_first)}, ADVICE_REJECTED_VERSION,
		"version 2 is not known, only 1"},
	{{.version = 0, ASKS(on_first)}, ADVICE_REJECTED_VERSION, "version 0"},
	{{.format = ADVICE_CRANE, ASKS(on_first)}, ADVICE_ACCEPTED, ""},
	{{.version = 1, .uid = "no", .node = "no", ASKS(on_first)}, ADVICE_REJECTED_UID,
		"for the pod with uid \"no\", this one has \"pod-1\""},
	{{.version = 1, .uid = "pod-1", .node = "no", ASKS(on_unknown)}, ADVICE_REJECTED_NODE,
		"for node \"no\", this is \"worker\""},
	{{.version = 1, .uid = "", ASKS(on_first)}, ADVICE_REJECTED_UID, "uid \"\""},
	{{.version = 1, .at_ms = NOW_MS + SKEW_MS, .ttl_s = 1, ASKS(on_first)}, ADVICE_ACCEPTED,
		""},
	{{.version = 1, .at_ms = NOW_MS + SKEW_MS + 1, .ttl_s = 1, ASKS(on_unknown)},
		ADVICE_REJECTED_CLOCK, "made 5001 ms from now, clocks may differ by 5000 ms"},
	{{.version = 1, .at_ms = INT64_MAX, .ttl_s = UINT32_MAX, ASKS(on_first)},
		ADVICE_REJECTED_CLOCK, "from now"},
	{{.version = 1, .at_ms = NOW_MS - 2000, .ttl_s = 2, ASKS(on_first)}, ADVICE_ACCEPTED, ""},
	{{.version = 1, .at_ms = NOW_MS - 2001, .ttl_s = 2, ASKS(on_unknown)},
		ADVICE_REJECTED_EXPIRED, "made 2001 ms ago and was good for 2 s"},
	{{.version = 1, .cpus = &cpus_held, ASKS(on_unknown)}, ADVICE_REJECTED_NUMA,
		"there is no NUMA node 7"},
	{{.version = 1, ASKS(on_third)}, ADVICE_REJECTED_NUMA, "the machine lacks"},
	{{.version = 1, .cpus = &cpus_own, ASKS(on_first)}, ADVICE_ACCEPTED, ""},
	{{.version = 1, .cpus = &cpus_held, ASKS(on_first)}, ADVICE_REJECTED_FOREIGN_CPUSET,
		"CPUs 4-5 are reserved or another container's"},
	{{.version = 1, .cpus = &cpus_none, ASKS(on_first)}, ADVICE_REJECTED_FOREIGN_CPUSET,
		"the machine lacks CPUs 8-9"},
	{{.version = 1, .generation = 5, .fingerprint = "x", ASKS(on_first)}, ADVICE_ACCEPTED, ""},
	{{.version = 1, .generation = 4, ASKS(on_first)}, ADVICE_ACCEPTED_STALE, ""},
	{{.version = 1, .generation = 6, ASKS(on_first)}, ADVICE_ACCEPTED_STALE, ""},
	{{.version = 1, .fingerprint = "x", ASKS(on_first)}, ADVICE_ACCEPTED_STALE, ""},
	{{.version = 1, .fingerprint = "pfp0v001", ASKS(on_first)}, ADVICE_ACCEPTED, ""},
};

static void checks_without_the_ledger_run_in_a_fixed_order(void **state)
{
	const struct advice_facts facts = {.node = "worker",
		.uid = "pod-1",
		.now_ms = NOW_MS,
		.skew_ms = SKEW_MS,
		.generation = 5,
		.fingerprint = "pfp0v001",
		.t = two_nodes(),
		.foreign = &cpus_held};

	(void)state;
	for (size_t i = 0; i < sizeof checked / sizeof *checked; i++) {
		struct err e = {0};
		enum advice_verdict got = advice_check(&checked[i].h, &facts, &e);

		if (got != checked[i].want || !strstr(e.text, checked[i].says))
			fail_msg("case %zu: %s: %s", i, advice_verdict_words[got], e.text);
		assert_int_equal(advice_is_rejection(got), e.code != 0);
	}
}

static void a_hint_with_a_uid_is_rejected_when_our_own_uid_is_unknown(void **state)
{
	const struct advice h = {.version = 1, .uid = "pod-1", ASKS(on_first)};
	const struct advice_facts facts = {.t = two_nodes()};

	(void)state;
	assert_int_equal(advice_check(&h, &facts, NULL), ADVICE_REJECTED_UID);
}

static void an_entry_with_the_containers_name_comes_before_the_entry_for_all(void **state)
{
	static const struct advice_container list[] = {{.name = "a", .nodes = {1}},
		{.name = "*", .nodes = {2}}, {.name = "b", .nodes = {1}}};
	struct advice h = {.container = list, .nr_containers = 3};

	(void)state;
	assert_ptr_equal(advice_for(&h, "b"), &list[2]);
	assert_ptr_equal(advice_for(&h, "other"), &list[1]);
	assert_ptr_equal(advice_for_pod(&h), &list[1]);
	h.nr_containers = 1;
	assert_null(advice_for(&h, "other"));
	assert_ptr_equal(advice_for_pod(&h), &list[0]);
	h = (struct advice){.container = list + 1, .nr_containers = 2};
	assert_ptr_equal(advice_for_pod(&h), &list[1]);
	h = (struct advice){0};
	assert_null(advice_for_pod(&h));
}

static void a_hint_with_different_nodes_for_containers_names_no_place_for_the_pod(void **state)
{
	static const struct advice_container list[] = {
		{.name = "a", .nodes = {1}}, {.name = "b", .nodes = {2}}};
	const struct advice h = {.container = list, .nr_containers = 2};

	(void)state;
	assert_null(advice_for_pod(&h));
}

/* The literal rules. */

struct literal {
	struct families x;
	struct policy_answer without;
	struct results results;
	bool distances; /* they count under this policy */
};

/* Whether one and the same mask can be taken from every list, and what comes out of it. */
static bool offered_by_all(const struct families *x, struct nodeset mask, bool *preferred)
{
	bool by_any = false;

	*preferred = true;
	for (unsigned l = 0; l < x->nr; l++) {
		bool here = false, liked = false;

		for (size_t i = 0; i < x->list[l].nr; i++) {
			const struct hint *h = &x->list[l].hint[i];
			bool equal = !h->any && h->mask.bits == mask.bits;

			by_any = by_any || equal;
			here = here || equal || (h->any && h->preferred);
			liked = liked || ((equal || h->any) && h->preferred);
		}
		if (!here)
			return false;
		*preferred = *preferred && liked;
	}
	return by_any;
}

static bool nobody_cares(const struct families *x)
{
	for (unsigned l = 0; l < x->nr; l++)
		if (x->list[l].nr != 1 || !x->list[l].hint[0].any || !x->list[l].hint[0].preferred)
			return false;
	return true;
}

static double mean_distance(const struct literal *l, struct nodeset mask)
{
	double sum = 0, n = nodeset_count(mask);

	nodeset_each (i, mask)
		nodeset_each (j, mask)
			sum += l->distances ? l->x.machine.distance[i][j] : 0;
	return sum / (n * n);
}

static struct nodeset given_without(const struct literal *l)
{
	return l->without.affinity.any ? l->x.machine.space.all : l->without.affinity.mask;
}

/* Equal to the answer without the hint in all but its number. */
static bool is_equal_result(
	const struct literal *l, enum topology_policy policy, struct nodeset asked)
{
	struct nodeset given = given_without(l);
	bool preferred;

	if (!offered_by_all(&l->x, asked, &preferred))
		return false;
	if (nodeset_equal(asked, given))
		return true;
	if (policy == POLICY_NONE)
		return false;
	assert_true(l->results.is[preferred][asked.bits]);
	if (policy == POLICY_SINGLE_NUMA_NODE && (!preferred || nodeset_count(asked) != 1))
		return false;
	return preferred == l->without.affinity.preferred &&
	       nodeset_count(asked) == nodeset_count(given) &&
	       mean_distance(l, asked) == mean_distance(l, given);
}

static void check_cause(const struct literal *l, const struct advice_ruling *r)
{
	unsigned asked = nodeset_count(r->asked), given = nodeset_count(given_without(l));
	bool preferred, offered = offered_by_all(&l->x, r->asked, &preferred);

	assert_int_equal(r->cause == ADVICE_REJECTED_NOT_FIT, !offered);
	assert_int_equal(r->lacking[0] != '\0', !offered);
	if (r->cause == ADVICE_REJECTED_NOT_NARROWEST)
		assert_true(asked > given);
	if (r->cause == ADVICE_REJECTED_FARTHER)
		assert_true(asked == given &&
			    mean_distance(l, r->asked) > mean_distance(l, given_without(l)));
}

static void check_ruling(const struct literal *l, enum topology_policy policy,
	const struct advice_terms *terms, const struct advice_ruling *r)
{
	struct nodeset without = given_without(l);
	bool narrow = !nodeset_equal(without, r->asked) &&
		      nodeset_count(without) <= nodeset_count(r->asked) &&
		      mean_distance(l, without) <= mean_distance(l, r->asked);

	assert_int_equal(r->answer.admit, l->without.admit);
	if (nobody_cares(&l->x)) {
		assert_int_equal(r->verdict, ADVICE_NONE);
		assert_false(r->refuse);
		return;
	}
	if (l->without.admit && is_equal_result(l, policy, r->asked)) {
		assert_int_equal(r->verdict, terms->so_far);
		assert_false(r->refuse || r->cause);
		assert_int_equal(r->given.bits, r->asked.bits);
		assert_true(
			r->answer.affinity.any || r->answer.affinity.mask.bits == r->asked.bits);
		assert_int_equal(r->answer.affinity.preferred, l->without.affinity.preferred);
		return;
	}
	assert_int_equal(r->verdict,
		l->without.admit && terms->repair && terms->mode == ADVICE_PREFER && narrow
			? ADVICE_REPAIRED
			: r->cause);
	assert_true(advice_is_rejection(r->cause));
	assert_int_equal(r->refuse, terms->mode == ADVICE_REQUIRE);
	assert_true(rig_same_answer(&r->answer, &l->without));
	assert_int_equal(r->given.bits, r->refuse || !l->without.admit ? 0 : without.bits);
	check_cause(l, r);
}

static void judge_all_masks(
	struct random *r, struct literal *l, enum topology_policy policy, unsigned seen[])
{
	const struct advice_merge m = {
		policy, &l->x.machine.space, l->x.family, l->x.nr, l->without};
	struct advice_ruling got, again;

	for (uint64_t bits = 1; bits <= l->x.machine.space.all.bits; bits++) {
		const struct advice_terms terms = {
			.so_far = random_chance(r, 50) ? ADVICE_ACCEPTED : ADVICE_ACCEPTED_STALE,
			.mode = random_chance(r, 80) ? ADVICE_PREFER : ADVICE_REQUIRE,
			.repair = random_chance(r, 50),
		};

		advice_judge(&m, (struct nodeset){bits}, &terms, &got);
		advice_judge(&m, (struct nodeset){bits}, &terms, &again);
		assert_true(rig_same_ruling(&got, &again));
		check_ruling(l, policy, &terms, &got);
		seen[got.verdict] += !nodeset_equal(got.asked, given_without(l));
	}
}

static void a_hint_breaks_ties_and_does_nothing_else(void **state)
{
	static struct literal l;
	unsigned seen[NR_ADVICE_VERDICTS] = {0};
	struct random r = {SEED};

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		enum topology_policy policy = (enum topology_policy)random_below(&r, NR_POLICIES);

		do
			random_families(
				&r, 1 + random_below(&r, NODES), 1 + random_below(&r, 3), &l.x);
		while (l.x.products > PRODUCTS_MAX);
		for (unsigned f = 0; f < l.x.nr; f++)
			(void)text_copy(l.x.family[f].resource, sizeof l.x.family[f].resource, "x");
		all_results(&l.x, &l.results);
		l.distances = l.x.machine.space.distance &&
			      (policy == POLICY_BEST_EFFORT || policy == POLICY_RESTRICTED);
		l.without = policy_merge_lists(policy, &l.x.machine.space, l.x.list, l.x.nr);
		judge_all_masks(&r, &l, policy, seen);
	}
	/* the ties that were broken and everything else did occur */
	assert_true(seen[ADVICE_ACCEPTED] > 100 && seen[ADVICE_ACCEPTED_STALE] > 100);
	assert_true(seen[ADVICE_REPAIRED] && seen[ADVICE_REJECTED_NOT_FIT]);
	assert_true(seen[ADVICE_REJECTED_NOT_NARROWEST] && seen[ADVICE_REJECTED_FARTHER]);
	assert_true(seen[ADVICE_REJECTED_POLICY] && seen[ADVICE_NONE]);
}

/* Some rulings by hand: four NUMA nodes, two of them near each other, 4 CPUs on each, `need` asked
 * for. */
static const uint64_t four_each[NODES_MAX] = {4, 4, 4, 4}, gone[NODES_MAX] = {4, 0, 4, 4};
static const uint8_t near_pairs[NODES_MAX][NODES_MAX] = {
	{10, 11, 20, 20}, {11, 10, 20, 20}, {20, 20, 10, 11}, {20, 20, 11, 10}};

static const struct by_hand {
	const char *what;
	enum topology_policy policy;
	const uint64_t *cpus;
	unsigned need;
	uint64_t asked, without, fixed;
	bool unpreferred, refused;
	enum advice_mode mode;
	enum advice_verdict so_far, want;
	uint64_t given;
	const char *why;
} by_hand[] = {
	{"another pair as close", POLICY_RESTRICTED, four_each, 8, 12, 3, 0, .want = 1, .given = 12,
		.why = "asked for NUMA nodes 2-3, given 2-3"},
	{"the same after a change", POLICY_RESTRICTED, four_each, 8, 12, 3, 0,
		.so_far = ADVICE_ACCEPTED_STALE, .want = ADVICE_ACCEPTED_STALE, .given = 12,
		.why = "asked for NUMA nodes 2-3, given 2-3: the node has changed since, they "
		       "still "
		       "fit"},
	{"a pair farther apart", POLICY_RESTRICTED, four_each, 8, 5, 3, 0, .want = ADVICE_REPAIRED,
		.given = 3,
		.why = "asked for NUMA nodes 0,2, given 0-1: others are closer to each other"},
	{"a pair farther apart, required", POLICY_RESTRICTED, four_each, 8, 5, 3, 0,
		.mode = ADVICE_REQUIRE, .want = ADVICE_REJECTED_FARTHER, .given = 0,
		.why = "asked for NUMA nodes 0,2, given none: others are closer to each other"},
	{"wider than need be", POLICY_RESTRICTED, four_each, 4, 3, 1, 0, .want = ADVICE_REPAIRED,
		.given = 1,
		.why = "asked for NUMA nodes 0-1, given 0: fewer NUMA nodes are enough"},
	{"taken since", POLICY_RESTRICTED, gone, 4, 2, 1, 0, .want = ADVICE_REPAIRED, .given = 1,
		.why = "asked for NUMA nodes 1, given 0: there is not enough of cpu on them"},
	{"too narrow", POLICY_RESTRICTED, four_each, 8, 1, 3, 0, .want = ADVICE_REJECTED_NOT_FIT,
		.given = 3,
		.why = "asked for NUMA nodes 0, given 0-1: there is not enough of cpu on them"},
	{"two nodes where one must do", POLICY_SINGLE_NUMA_NODE, four_each, 4, 3, 1, 0,
		.want = ADVICE_REPAIRED, .given = 1,
		.why = "asked for NUMA nodes 0-1, given 0: the topology policy does not choose "
		       "them"},
	{"a policy that places nothing", POLICY_NONE, four_each, 4, 1, 15, 0,
		.want = ADVICE_REJECTED_POLICY, .given = 15,
		.why = "asked for NUMA nodes 0, given 0-3: the topology policy does not choose "
		       "them"},
	{"nothing is admitted anyway", POLICY_RESTRICTED, gone, 8, 12, 12, 0, .refused = true,
		.want = ADVICE_REJECTED_POLICY, .given = 0,
		.why = "asked for NUMA nodes 2-3, given none: the topology policy does not choose "
		       "them"},
	{"beside CPUs that are fixed", POLICY_RESTRICTED, four_each, 4, 2, 1, 1,
		.want = ADVICE_REPAIRED, .given = 1,
		.why = "asked for NUMA nodes 1, given 0: its CPUs are not the container's to have"},
	{"rejected before", POLICY_RESTRICTED, four_each, 4, 1, 1, 0,
		.so_far = ADVICE_REJECTED_EXPIRED, .want = ADVICE_REJECTED_EXPIRED, .given = 1,
		.why = "asked for NUMA nodes 0, given 0: it is too old"},
	{"could not be read", POLICY_RESTRICTED, four_each, 4, 0, 1, 0,
		.so_far = ADVICE_REJECTED_FORMAT, .want = ADVICE_REJECTED_FORMAT, .given = 1,
		.why = "given 0: it cannot be read"},
	{"rejected before, required", POLICY_RESTRICTED, four_each, 4, 1, 1, 0,
		.mode = ADVICE_REQUIRE, .so_far = ADVICE_REJECTED_UID, .want = ADVICE_REJECTED_UID,
		.given = 0,
		.why = "asked for NUMA nodes 0, given none: it was written for another pod"},
};

static void judge_by_hand(const struct by_hand *c)
{
	const struct hint_space space = {.all = {15}, .distance = near_pairs};
	const struct node_ids ids = {.nr = 4, .id = {0, 1, 2, 3}};
	const struct family f = {.resource = "cpu",
		.kind = FAMILY_CAPACITY,
		.ground = {15},
		.nr_demands = 1,
		.demand = {{.weight = c->cpus, .need = c->need}},
		.preferred_size = (c->need + 3) / 4};
	const struct advice_merge m = {c->policy, &space, &f, 1,
		{{.mask = {c->without}, .preferred = true, .any = c->policy == POLICY_NONE},
			!c->refused}};
	const struct advice_terms terms = {.so_far = c->so_far ? c->so_far : ADVICE_ACCEPTED,
		.mode = c->mode ? c->mode : ADVICE_PREFER,
		.repair = true,
		.fixed = {c->fixed}};
	struct advice_ruling r;
	char why[256];
	struct text t;

	advice_judge(&m, (struct nodeset){c->asked}, &terms, &r);
	text_init(&t, why, sizeof why);
	advice_explain(&r, &ids, &t);
	if (r.verdict != c->want || r.given.bits != c->given || strcmp(why, c->why) != 0)
		fail_msg("%s: %s, %s", c->what, advice_verdict_words[r.verdict], why);
	assert_int_equal(r.refuse, c->mode == ADVICE_REQUIRE && r.cause);
}

static void each_ruling_says_why(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++)
		judge_by_hand(&by_hand[i]);
}

static void a_container_without_cpus_or_memory_of_its_own_ignores_hints(void **state)
{
	const struct hint_space space = {.all = {3}};
	const struct family f = {.resource = "cpu", .kind = FAMILY_ANY};
	const struct advice_merge m = {
		POLICY_RESTRICTED, &space, &f, 1, {{.mask = {3}, .preferred = true}, true}};
	const struct advice_terms terms = {.so_far = ADVICE_ACCEPTED, .mode = ADVICE_REQUIRE};
	struct advice_ruling r;

	(void)state;
	advice_judge(&m, (struct nodeset){1}, &terms, &r);
	assert_int_equal(r.verdict, ADVICE_NONE);
	assert_false(r.refuse);
	assert_int_equal(r.given.bits, 3);
}

/* A search that was cut short answers with what it had; the hint may be what it would have found.
 */
static void a_hint_may_be_better_than_a_search_that_was_cut_short(void **state)
{
	const struct hint_space space = {.all = {15}, .distance = near_pairs};
	const struct family f = {.resource = "cpu",
		.kind = FAMILY_CAPACITY,
		.ground = {15},
		.nr_demands = 1,
		.demand = {{.weight = four_each, .need = 8}},
		.preferred_size = 2};
	struct advice_merge m = {POLICY_BEST_EFFORT, &space, &f, 1, {{.mask = {7}}, true}};
	const struct advice_terms terms = {.so_far = ADVICE_ACCEPTED};
	struct advice_ruling r;

	(void)state;
	advice_judge(&m, (struct nodeset){12}, &terms, &r);
	assert_int_equal(r.verdict, ADVICE_ACCEPTED);
	assert_true(r.answer.affinity.preferred);
	m.policy = POLICY_RESTRICTED; /* but it lets nobody in */
	m.without.admit = false;
	advice_judge(&m, (struct nodeset){12}, &terms, &r);
	assert_int_equal(r.verdict, ADVICE_REJECTED_POLICY);
	assert_false(r.answer.admit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_word_is_parsed_to_the_value_that_prints_it),
		cmocka_unit_test(an_order_of_hints_is_read_as_it_is_written),
		cmocka_unit_test(a_pod_may_ask_for_stricter_and_never_for_looser),
		cmocka_unit_test(checks_without_the_ledger_run_in_a_fixed_order),
		cmocka_unit_test(a_hint_with_a_uid_is_rejected_when_our_own_uid_is_unknown),
		cmocka_unit_test(an_entry_with_the_containers_name_comes_before_the_entry_for_all),
		cmocka_unit_test(
			a_hint_with_different_nodes_for_containers_names_no_place_for_the_pod),
		cmocka_unit_test(a_hint_breaks_ties_and_does_nothing_else),
		cmocka_unit_test(each_ruling_says_why),
		cmocka_unit_test(a_container_without_cpus_or_memory_of_its_own_ignores_hints),
		cmocka_unit_test(a_hint_may_be_better_than_a_search_that_was_cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
