/* make gain's statistics, its arms on recorded machines, its table and words, and its drawing. */
#include "../gain/arms.h"

#include <errno.h>
#include <host/discover.h>
#include <numafit/mem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void a_spread_has_the_middle_of_the_values_and_their_ends(void **state)
{
	static const double odd[] = {9, 1, 4}, even[] = {4, 1, 9, 6};
	struct spread s = spread_of(odd, COUNT(odd)), t = spread_of(even, COUNT(even));

	(void)state;
	assert_true(s.median == 4 && s.min == 1 && s.max == 9 && s.n == 3);
	assert_true(t.median == 5 && t.min == 1 && t.max == 9 && t.n == 4);
	assert_int_equal(spread_of(NULL, 0).n, 0);
}

static void a_rank_is_the_smallest_value_that_so_many_do_not_exceed(void **state)
{
	float v[1000];

	(void)state;
	for (unsigned i = 0; i < COUNT(v); i++)
		v[i] = (float)(i + 1);
	assert_true(rank_of(v, COUNT(v), 0.5) == 500);
	assert_true(rank_of(v, COUNT(v), 0.999) == 999);
	assert_true(rank_of(v, COUNT(v), 1) == 1000);
	assert_true(rank_of(v, 1, 0.5) == 1);
}

static void a_difference_is_named_where_the_ranges_are_apart_and_the_runs_are_enough(void **state)
{
	static const struct {
		struct spread ours, theirs;
		bool more;
		const char *want;
	} cases[] = {
		{{12.3, 12, 13, 5}, {10, 9, 11, 5}, true, "23 % more: better"},
		{{12.3, 12, 13, 5}, {10, 9, 11, 5}, false, "23 % more: worse"},
		{{9.5, 9, 9.6, 5}, {10, 9.7, 11, 5}, false, "5.0 % less: better"},
		{{9.5, 9, 9.7, 5}, {10, 9.7, 11, 5}, false, "no difference"},
		{{10, 1, 20, 5}, {12, 11, 13, 5}, true, "no difference"},
		{{12, 12, 13, 3}, {10, 9, 11, 5}, true, "too few runs"},
		{{12, 12, 13, 5}, {0, 0, 0, 0}, true, "too few runs"},
		{{2, 1, 3, 4}, {25, 20, 30, 4}, false, "12 times less: better"},
		{{5, 4, 6, 4}, {2, 1, 3, 4}, true, "2.5 times more: better"},
		{{0, 0, 0, 4}, {2, 1, 3, 4}, false, "less: better"},
	};
	char text[VERDICT_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(
			verdict_text(text, &cases[i].ours, &cases[i].theirs, cases[i].more),
			cases[i].want);
}

static void a_number_has_three_digits_that_say_something(void **state)
{
	static const struct {
		double value;
		const char *want;
	} cases[] = {{0.2134, "0.213"}, {0.99951, "1.00"}, {9.994, "9.99"}, {9.996, "10.0"},
		{99.96, "100"}, {2130.4, "2130"}, {0, "0.000"}};
	char text[NUMBER_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(number_text(text, cases[i].value), cases[i].want);
}

/* A container on a recorded machine, decided. */
static void decide_on(struct gain *g, struct topo *t, const char *machine)
{
	struct err e;

	*g = (struct gain){
		.machine = machine, .topo = t, .runs = 5, .bytes = 1 << 30, .seconds = 1};
	if (machine_load(machine, t, NULL, NULL, &e))
		fail_msg("%s", e.text);
	arms_size(g);
	if (arms_decide(g, &e))
		fail_msg("%s", e.text);
}

static void numafit_is_on_one_node_where_the_kubelets_order_takes_what_is_left_of_two(void **state)
{
	static struct topo t;
	static struct gain g;

	(void)state;
	decide_on(&g, &t, "epyc-nps2"); /* four nodes of eight CPUs */
	assert_int_equal(g.ask_cpus, 6);
	assert_int_equal(g.held_cpus, 4);
	const struct arm *a = g.arm;
	assert_int_equal(nodeset_count(topo_nodes_of(&t, &a[ARM_STATIC].cpus)), 2);
	assert_int_equal(nodeset_count(topo_nodes_of(&t, &a[ARM_NUMAFIT].cpus)), 1);
	assert_true(nodeset_equal(topo_nodes_of(&t, &a[ARM_NUMAFIT].cpus), a[ARM_NUMAFIT].mems));
	assert_int_equal(nodeset_count(a[ARM_STATIC].mems), 4);
	assert_true(a[ARM_STATIC].quota && !a[ARM_NUMAFIT].quota && !a[ARM_FAR].quota);
}

static void alone_on_an_empty_machine_the_kubelets_order_stays_on_one_node_too(void **state)
{
	static struct topo t;
	static struct gain g;
	struct err e;

	(void)state;
	decide_on(&g, &t, "epyc-nps2");
	g = (struct gain){
		.machine = "epyc-nps2", .topo = &t, .bytes = 1, .ask_cpus = 8, .alone = true};
	arms_size(&g);
	assert_int_equal(g.held_cpus, 0);
	assert_int_equal(arms_decide(&g, &e), 0);
	assert_true(cpuset_equal(&g.arm[ARM_STATIC].cpus, &g.arm[ARM_NUMAFIT].cpus));
	auto_free char *text = arms_question(&g, false);
	assert_null(strstr(text, "neighbour"));
}

static void no_arms_pool_has_a_cpu_of_its_container_or_of_the_other_one(void **state)
{
	static const char *const machines[] = {
		"epyc-nps2", "kep3545-8", "laptop", "snc4-2s", "cxl"};
	static struct topo t;
	static struct gain g;

	(void)state;
	for (size_t m = 0; m < COUNT(machines); m++) {
		decide_on(&g, &t, machines[m]);
		for (unsigned i = ARM_STATIC; i < NR_ARMS; i++) {
			const struct arm *a = &g.arm[i];

			if (!a->there)
				continue;
			assert_false(cpuset_intersects(&a->cpus, &a->pool));
			assert_int_equal(cpuset_count(&a->cpus), g.ask_cpus);
			assert_int_equal(cpuset_count(&a->cpus) + cpuset_count(&a->pool),
				t.nr_cpus - g.held_cpus);
			assert_true(cpuset_within(&g.reserved, &a->pool));
		}
	}
}

static void the_worst_arm_has_its_memory_on_the_farthest_node(void **state)
{
	static struct topo t;
	static struct gain g;

	(void)state;
	decide_on(&g, &t, "epyc-nps2");
	const struct arm *far = &g.arm[ARM_FAR];
	unsigned from = nodeset_next(topo_nodes_of(&t, &far->cpus), 0),
		 to = nodeset_next(far->mems, 0);
	assert_true(far->there && far->binds_memory);
	assert_int_equal(nodeset_count(far->mems), 1);
	nodeset_each (n, t.nodes)
		assert_true(t.distance[from][n] <= t.distance[from][to]);
	decide_on(&g, &t, "laptop");
	assert_false(g.arm[ARM_FAR].there);
	assert_non_null(strstr(g.note[0], "left out: \"worst: memory far\""));
}

static void a_container_that_does_not_fit_is_refused_in_words(void **state)
{
	static struct topo t;
	static struct gain g = {.machine = "laptop", .topo = &t, .bytes = 1, .ask_cpus = 1000};
	struct err e;

	(void)state;
	assert_int_equal(machine_load("laptop", &t, NULL, NULL, &e), 0);
	arms_size(&g);
	assert_int_equal(arms_decide(&g, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "1000 CPUs do not fit"));
}

/* Five runs of triad: numafit 20 to 24, another arm 10 to 14. */
static void measured(struct gain *g, struct topo *t, const char *machine)
{
	decide_on(g, t, machine);
	g->cgroups = g->runs_load[LOAD_TRIAD] = true;
	for (unsigned arm = 0; arm < NR_ARMS; arm++) {
		struct outcome *o = &g->of[LOAD_TRIAD][arm];

		for (; o->nr < g->runs; o->nr++)
			o->value[0][o->nr] = (arm == ARM_NUMAFIT ? 20 : 10) + o->nr;
		o->remote = o->nr_remote = arm == ARM_NUMAFIT ? 0 : g->runs;
		o->throttled = arm == ARM_STATIC ? 7 : 0;
	}
}

static char *printed(const struct gain *g, void (*print)(const struct gain *, FILE *))
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	print(g, f);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void the_table_has_a_row_for_each_arm_and_words_name_what_gained(void **state)
{
	static const char *const wanted[] = {
		"triad, bandwidth, GB/s (more is better)",
		"  static, as a kubelet       12.0  10.0 .. 14.0                 7   100 %  83 % more: better\n",
		"  numafit                    22.0  20.0 .. 24.0                 0       -  \n",
		"Stopped for the CFS quota: no pinning 0 times, static, as a kubelet 7 times, numafit 0 times",
		"numafit against \"no pinning\": triad, bandwidth: 83 % more: better; nothing was worse.",
	};
	static struct topo t;
	static struct gain g;

	(void)state;
	measured(&g, &t, "epyc-nps2");
	auto_free char *text = printed(&g, gain_print);
	for (size_t i = 0; i < COUNT(wanted); i++)
		if (!strstr(text, wanted[i]))
			fail_msg("\"%s\" is not in %s", wanted[i], text);
	assert_null(strstr(text, "one NUMA node: all memory"));
	assert_null(strstr(text, "chase"));
}

static void what_lies_within_the_runs_of_one_arm_is_no_gain(void **state)
{
	static struct topo t;
	static struct gain g;

	(void)state;
	measured(&g, &t, "epyc-nps2");
	g.of[LOAD_TRIAD][ARM_STATIC].value[0][0] = 20;
	auto_free char *text = printed(&g, gain_print);
	assert_non_null(
		strstr(text, "numafit against \"static, as a kubelet\": nothing differs by more"));
	g.runs = 1;
	for (unsigned arm = 0; arm < NR_ARMS; arm++)
		g.of[LOAD_TRIAD][arm].nr = 1;
	auto_free char *few = printed(&g, gain_print);
	assert_non_null(strstr(few, "Fewer than 4 runs: nothing is said of differences."));
	assert_null(strstr(few, "better;"));
}

static void a_machine_of_one_node_has_nothing_to_gain_by_memory_in_words(void **state)
{
	static struct topo t;
	static struct gain g;

	(void)state;
	measured(&g, &t, "laptop");
	auto_free char *text = printed(&g, gain_print);
	assert_non_null(strstr(text, "This machine has one NUMA node"));
	assert_null(strstr(text, "worst: memory far  "));
	g.cgroups = false;
	auto_free char *blind = printed(&g, gain_print);
	assert_non_null(strstr(blind, "Throttling was not measured"));
}

static void the_drawing_has_an_axis_by_the_data_and_a_bar_for_each_arm(void **state)
{
	static struct topo t;
	static struct gain g;
	unsigned bars = 0;

	(void)state;
	measured(&g, &t, "epyc-nps2");
	auto_free char *svg = printed(&g, gain_draw);
	for (const char *at = svg; (at = strstr(at, "<rect class=")); at++)
		bars++;
	assert_int_equal(bars, NR_ARMS);
	assert_non_null(strstr(svg, ">40</text>")); /* the axis' end: above 24 */
	assert_non_null(strstr(svg, "GB/s (more is better)"));
	assert_non_null(strstr(svg, "</svg>\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_spread_has_the_middle_of_the_values_and_their_ends),
		cmocka_unit_test(a_rank_is_the_smallest_value_that_so_many_do_not_exceed),
		cmocka_unit_test(
			a_difference_is_named_where_the_ranges_are_apart_and_the_runs_are_enough),
		cmocka_unit_test(a_number_has_three_digits_that_say_something),
		cmocka_unit_test(
			numafit_is_on_one_node_where_the_kubelets_order_takes_what_is_left_of_two),
		cmocka_unit_test(
			alone_on_an_empty_machine_the_kubelets_order_stays_on_one_node_too),
		cmocka_unit_test(no_arms_pool_has_a_cpu_of_its_container_or_of_the_other_one),
		cmocka_unit_test(the_worst_arm_has_its_memory_on_the_farthest_node),
		cmocka_unit_test(a_container_that_does_not_fit_is_refused_in_words),
		cmocka_unit_test(the_table_has_a_row_for_each_arm_and_words_name_what_gained),
		cmocka_unit_test(what_lies_within_the_runs_of_one_arm_is_no_gain),
		cmocka_unit_test(a_machine_of_one_node_has_nothing_to_gain_by_memory_in_words),
		cmocka_unit_test(the_drawing_has_an_axis_by_the_data_and_a_bar_for_each_arm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
