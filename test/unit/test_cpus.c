/* Picking CPUs against recorded answers of the kubelet and against plain forms of its loops.
 * (test_cpu_json.c runs the recorded answers of its static policy.) */
#include <numafit/cpus.h>
#include <numafit/settings.h>

#include "core_machine.h"
#include "core_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { LINE_MAX_BYTES = 64 << 10, FIELDS = 5 };
static const struct cpus_how packed = {.group = 1};
static const struct cpu_options plain;

static struct topo *machine_from(char *cpus)
{
	struct topo *t = malloc(sizeof *t);
	struct cpuset nodes = {0};
	struct err e;
	unsigned cpu, core, socket, node, uncore;
	char *rest = cpus;

	topo_init(t, "golden");
	for (const char *c = cpus; c; c = strchr(c, ';') ? strchr(c, ';') + 1 : NULL) {
		assert_int_equal(
			sscanf(c, "%u,%u,%u,%u,%u", &cpu, &core, &socket, &node, &uncore), 5);
		cpuset_add(&nodes, node);
	}
	cpuset_each (id, &nodes)
		assert_true(topo_add_node(t, id, &e) >= 0);
	for (const char *c; (c = strtok_r(rest, ";", &rest));) {
		assert_int_equal(
			sscanf(c, "%u,%u,%u,%u,%u", &cpu, &core, &socket, &node, &uncore), 5);
		assert_int_equal(topo_add_cpu(t, cpu, (unsigned)node_index(&t->ids, node), core,
					 socket, uncore, &e),
			0);
	}
	if (topo_seal(t, &e))
		fail_msg("%s", e.text);
	return t;
}

static struct cpuset list(const char *text)
{
	struct cpuset s;

	assert_int_equal(
		cpuset_parse(&s, *text == '-' ? "" : text, *text == '-' ? 0 : strlen(text), NULL),
		0);
	return s;
}

static void packed_allocation_takes_the_same_cpus_as_the_kubelet(void **state)
{
	FILE *f = fopen("test/golden/cpus_packed.txt", "r");
	char *line = malloc(LINE_MAX_BYTES);
	unsigned cases = 0;

	(void)state;
	assert_non_null(f);
	while (fgets(line, LINE_MAX_BYTES, f)) {
		char *field[FIELDS], *rest = line;

		if (*line == '#')
			continue;
		for (unsigned i = 0; i < FIELDS; i++)
			assert_non_null(field[i] = strtok_r(rest, " \n", &rest));
		struct topo *t = machine_from(field[1]);
		struct cpuset free_cpus = list(field[2]), got = {0};
		int rc = cpus_take(t, &free_cpus, (unsigned)atoi(field[3]), &packed,
			&(struct budget){.endless = true}, &got, NULL);

		if (strcmp(field[4], "error") == 0) {
			assert_int_equal(rc, -28);
		} else {
			struct cpuset want = list(field[4]);
			char a[CPUSET_TEXT_MAX], b[CPUSET_TEXT_MAX];

			if (rc || !cpuset_equal(&want, &got))
				fail_msg("%s: want %s, got %s (%d)", field[0],
					cpuset_format(&want, a, sizeof a),
					cpuset_format(&got, b, sizeof b), rc);
		}
		free(t);
		cases++;
	}
	assert_true(cases >= 30);
	free(line);
	(void)fclose(f);
}

static void taken_cpus_were_free_and_are_as_many_as_wanted(void **state)
{
	struct random r = {7};
	struct topo *t = machine_of_eight();

	(void)state;
	for (unsigned round = 0; round < 5000; round++) {
		struct cpuset free_cpus = {0}, got = {0};

		cpuset_each (cpu, &t->cpus)
			if (random_chance(&r, 60))
				cpuset_add(&free_cpus, cpu);
		unsigned want = random_below(&r, 70), have = cpuset_count(&free_cpus);
		int rc = cpus_take(t, &free_cpus, want, &packed, &(struct budget){.endless = true},
			&got, NULL);

		assert_int_equal(rc, want > have ? -28 : 0);
		assert_true(cpuset_within(&got, &free_cpus));
		assert_int_equal(cpuset_count(&got), want > have ? 0 : want);
	}
	free(t);
}

/* 5 CPUs on sockets of 3 and 2: the kubelet compares with the average, 2, alone, takes the larger
 * socket for free while CPU 1 of it is busy, and gives that CPU away a second time. */
static void a_socket_is_whole_only_when_all_of_its_own_cpus_are_free(void **state)
{
	char cpus[] = "0,0,0,0,0;1,1,0,0,0;2,2,0,0,0;3,3,1,1,1;4,4,1,1,1";
	struct topo *t = machine_from(cpus);
	struct cpuset free_cpus = list("0,2,3"), got;

	(void)state;
	assert_int_equal(
		cpus_take(t, &free_cpus, 3, &packed, &(struct budget){.endless = true}, &got, NULL),
		0);
	assert_true(cpuset_equal(&got, &free_cpus));
	free(t);
}

static void cpus_of_the_affinity_are_taken_before_others(void **state)
{
	struct topo *t = machine_of_eight();
	struct hint on_two = {.mask = nodeset_of(2)};
	struct cpuset got, near;

	(void)state;
	assert_int_equal(cpus_allocate(t, &plain, &t->cpus, 10, NULL, &on_two,
				 &(struct budget){.endless = true}, &got, NULL),
		0);
	assert_true(cpuset_within(&t->node[2].cpus, &got));
	assert_int_equal(cpuset_count(&got), 10);
	assert_int_equal(cpus_allocate(t, &plain, &t->cpus, 4, NULL, &on_two,
				 &(struct budget){.endless = true}, &near, NULL),
		0);
	assert_true(cpuset_within(&near, &t->node[2].cpus));
	free(t);
}

/* A node for each count: as many CPUs, cores of smt threads, `per_socket` nodes on a socket. */
static struct topo *machine_with(
	const unsigned *counts, unsigned nr, unsigned smt, unsigned per_socket)
{
	struct topo *t = malloc(sizeof *t);
	unsigned cpu = 0;

	topo_init(t, "counts");
	for (unsigned n = 0; n < nr; n++)
		assert_true(topo_add_node(t, n, NULL) >= 0);
	for (unsigned n = 0; n < nr; n++)
		for (unsigned i = 0; i < counts[n]; i++, cpu++)
			assert_int_equal(
				topo_add_cpu(t, cpu, n, cpu - i % smt, n / per_socket, n, NULL), 0);
	assert_int_equal(topo_seal(t, NULL), 0);
	return t;
}

static struct cpuset some_of(const struct topo *t, struct random *r, unsigned percent)
{
	struct cpuset s = {0};

	cpuset_each (cpu, &t->cpus)
		if (random_chance(r, percent))
			cpuset_add(&s, cpu);
	return s;
}

/* The deviation that the kubelet compares, in thousandths, by doubles as it does. */
static double deviation(const struct topo *t, const struct cpuset *before, const struct cpuset *got)
{
	double sum = 0, squares = 0, nr = 0;

	nodeset_each (n, topo_nodes_of(t, before)) {
		sum += cpuset_count_and(&t->node[n].cpus, before) -
		       cpuset_count_and(&t->node[n].cpus, got);
		nr++;
	}
	double mean = (double)(long)(sum / nr * 1000 + 0.5) / 1000;
	nodeset_each (n, topo_nodes_of(t, before)) {
		double x = cpuset_count_and(&t->node[n].cpus, before) -
			   cpuset_count_and(&t->node[n].cpus, got) - mean;

		squares += x * x;
	}
	return squares / nr;
}

static unsigned nodes_used(const struct topo *t, const struct cpuset *cpus)
{
	return nodeset_count(topo_nodes_of(t, cpus));
}

static void distribution_takes_as_much_from_each_of_the_fewest_nodes(void **state)
{
	static const unsigned eights[] = {8, 8, 8, 8};
	static const struct {
		const char *free_cpus;
		unsigned want, group;
		const char *got;
	} cases[] = {
		{"0-31", 4, 1, "0-3"}, {"0-31", 12, 1, "0-5,8-13"}, {"0-31", 12, 2, "0-5,8-13"},
		{"0-31", 14, 2, "0-7,8-13"}, {"0-31", 20, 1, "0-6,8-14,16-21"},
		{"0-3,8-15,16-19,24-31", 12, 1, "8-13,24-29"}, /* more even than to empty a node */
		{"0-31", 13, 2, "0-12"},                       /* not whole groups: packed */
		{"0-2,8-10,16-18", 6, 2, "0-1,8-9,16-17"},     /* the kubelet never ends */
	};
	struct topo *t = machine_with(eights, 4, 2, 2);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct cpus_how how = {.distributed = true, .group = cases[i].group};
		struct cpuset from = list(cases[i].free_cpus), want = list(cases[i].got), got;
		char text[CPUSET_TEXT_MAX];

		assert_int_equal(cpus_take(t, &from, cases[i].want, &how,
					 &(struct budget){.endless = true}, &got, NULL),
			0);
		if (!cpuset_equal(&got, &want))
			fail_msg("%zu: got %s", i, cpuset_format(&got, text, sizeof text));
	}
	free(t);
}

/* Every set of CPUs that the rule allows, by the number of CPUs from each node: nothing may be more
 * even with as few nodes. Only what is left over may be uneven, so sums of one group more or less.
 */
static double most_even(
	const struct topo *t, const struct cpuset *from, unsigned want, unsigned width)
{
	unsigned ways = 1, nr = nodeset_count(t->nodes), each = want / width;
	double best = -1;

	for (unsigned n = 0; n < nr; n++)
		ways *= 3;
	for (unsigned way = 0; way < ways; way++) {
		struct cpuset got = {0};
		unsigned used = 0, given = 0, left = way;
		bool fits = true;

		for (unsigned n = 0; n < nr; n++, left /= 3) {
			unsigned nr_cpus = left % 3 ? each + left % 3 - 1 : 0, i = 0;
			struct cpuset here = cpuset_and(t->node[n].cpus, from);

			used += left % 3 != 0;
			given += nr_cpus;
			fits &= cpuset_count(&here) >= nr_cpus;
			cpuset_each (cpu, &here)
				if (i++ < nr_cpus)
					cpuset_add(&got, cpu);
		}
		if (!fits || used != width || given != want)
			continue;
		double d = deviation(t, from, &got);
		if (best < 0 || d < best)
			best = d;
	}
	return best;
}

static void no_other_way_to_give_out_one_by_one_is_more_even(void **state)
{
	struct random r = {11};

	(void)state;
	for (unsigned round = 0; round < 400; round++) {
		unsigned counts[5], nr = 2 + random_below(&r, 4);

		for (unsigned n = 0; n < nr; n++)
			counts[n] = 4 + random_below(&r, 5);
		struct topo *t = machine_with(counts, nr, 1, 1 + random_below(&r, 2));
		struct cpuset from = some_of(t, &r, 70), got;
		unsigned have = cpuset_count(&from), want = have ? 1 + random_below(&r, have) : 0;
		const struct cpus_how how = {.distributed = true, .group = 1};

		assert_int_equal(cpus_take(t, &from, want, &how, &(struct budget){.endless = true},
					 &got, NULL),
			0);
		assert_true(cpuset_within(&got, &from));
		assert_int_equal(cpuset_count(&got), want);
		double best = want ? most_even(t, &from, want, nodes_used(t, &got)) : -1;
		if (best >= 0)
			assert_true(deviation(t, &from, &got) <= best + 1e-6);
		free(t);
	}
}

static void distribution_ends_on_64_uneven_nodes(void **state)
{
	struct random r = {5};
	struct settings s;
	unsigned counts[NODES_MAX];

	(void)state;
	settings_init(&s);
	for (unsigned n = 0; n < NODES_MAX; n++)
		counts[n] = 1 + n % 16;
	struct topo *t = machine_with(counts, NODES_MAX, 1, 8);
	for (unsigned round = 0; round < 20; round++) {
		struct cpuset from = some_of(t, &r, 80), got, again;
		unsigned want = 1 + random_below(&r, cpuset_count(&from));
		const struct cpus_how how = {.distributed = true, .group = 1};
		struct budget first = budget_of(s.merge_visit_budget), second = first;

		assert_int_equal(cpus_take(t, &from, want, &how, &first, &got, NULL), 0);
		assert_true(cpuset_within(&got, &from));
		assert_int_equal(cpuset_count(&got), want);
		assert_int_equal(cpus_take(t, &from, want, &how, &second, &again, NULL), 0);
		assert_true(cpuset_equal(&got, &again));
	}
	free(t);
}

/* The kubelet lists such a cache under both nodes, and counts it twice when it takes it. */
static void a_cache_on_two_nodes_counts_once(void **state)
{
	char cpus[] = "0,0,0,0,0;1,1,0,1,0;2,2,0,0,1;3,3,0,1,1;4,4,0,0,2;5,5,0,1,2;6,6,0,0,3;7,7,0,"
		      "1,3;8,8,0,0,4;9,9,0,1,4";
	struct topo *t = machine_from(cpus);
	struct cpuset free_cpus = list("0-2,5,6,9"), got;
	const struct cpus_how how = {.uncore = true, .group = 1};

	(void)state;
	assert_int_equal(
		cpus_take(t, &free_cpus, 4, &how, &(struct budget){.endless = true}, &got, NULL),
		0);
	assert_int_equal(cpuset_count(&got), 4);
	assert_true(cpuset_within(&got, &free_cpus));
	free(t);
}

static void options_that_exclude_each_other_are_refused(void **state)
{
	static const unsigned twos[] = {2, 2};
	static const struct {
		struct cpu_options o;
		enum topology_policy policy;
		int rc;
	} cases[] = {
		{{0}, POLICY_SINGLE_NUMA_NODE, 0},
		{{.full_pcpus_only = true,
			 .distribute_cpus_across_numa = true,
			 .align_by_socket = true,
			 .strict_cpu_reservation = true},
			POLICY_RESTRICTED, 0},
		{{.full_pcpus_only = true, .prefer_align_cpus_by_uncorecache = true}, POLICY_NONE,
			0},
		{{.full_pcpus_only = true, .distribute_cpus_across_cores = true}, POLICY_NONE, -22},
		{{.distribute_cpus_across_numa = true, .distribute_cpus_across_cores = true},
			POLICY_NONE, -22},
		{{.prefer_align_cpus_by_uncorecache = true, .distribute_cpus_across_cores = true},
			POLICY_NONE, -22},
		{{.prefer_align_cpus_by_uncorecache = true, .distribute_cpus_across_numa = true},
			POLICY_NONE, -22},
		{{.align_by_socket = true}, POLICY_SINGLE_NUMA_NODE, -22},
		{{.align_by_socket = true}, POLICY_BEST_EFFORT, 0},
	};
	char two_sockets[] = "0,0,0,0,0;1,1,1,0,0";
	struct topo *t = machine_with(twos, 2, 1, 1), *split = machine_from(two_sockets);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(
			cpus_check_options(t, &cases[i].o, cases[i].policy, NULL), cases[i].rc);
	assert_int_equal(cpus_check_options(split, &cases[8].o, POLICY_NONE, NULL), -22);
	free(t);
	free(split);
}

static void reserved_cpus_are_picked_as_the_options_say(void **state)
{
	static const unsigned fours[] = {4, 4};
	static const struct {
		unsigned count;
		bool across_numa;
		const char *got; /* NULL: refused */
	} cases[] = {{0, false, NULL}, {1, false, "0"}, {6, false, "0-5"}, {6, true, "0-2,4-6"},
		{8, true, "0-7"}, {9, false, NULL}, {9, true, NULL}};
	struct topo *t = machine_with(fours, 2, 2, 1);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct cpu_options o = {.distribute_cpus_across_numa = cases[i].across_numa};
		struct cpuset got;
		int rc = cpus_reserve(t, &o, cases[i].count, &got, NULL);

		assert_int_equal(rc, cases[i].got ? 0 : -22);
		struct cpuset want = list(cases[i].got ? cases[i].got : "-");
		assert_true(rc || cpuset_equal(&got, &want));
	}
	assert_int_equal(cpus_check_reserved(t, &(struct cpuset){{1}}, 2, NULL), -22);
	assert_int_equal(cpus_check_reserved(t, &(struct cpuset){{1 << 8}}, 1, NULL), -22);
	assert_int_equal(cpus_check_reserved(t, &(struct cpuset){{3}}, 2, NULL), 0);
	free(t);
}

static void full_pcpus_only_takes_whole_cores_or_nothing(void **state)
{
	static const unsigned fours[] = {4, 4};
	static const struct cpu_options full = {.full_pcpus_only = true};
	static const struct {
		unsigned count;
		const char *text;
	} cases[] = {{2, NULL}, {6, NULL},
		{3, "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"},
		{8, "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = "
		    "6, requested CPUs = 8, CPUs per core = 2"}};
	struct topo *t = machine_with(fours, 2, 2, 1);
	struct cpuset reserved = list("1"), cores = cpus_whole_cores(t, &reserved);
	struct cpuset physical = cpuset_minus(t->cpus, &cores);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct err e = {0};
		int rc = cpus_check_whole_cores(t, &full, &physical, cases[i].count, &e);

		assert_int_equal(rc, cases[i].text ? -22 : 0);
		assert_string_equal(e.text, cases[i].text ? cases[i].text : "");
	}
	assert_int_equal(cpus_check_whole_cores(t, &plain, &physical, 9, NULL), 0);
	free(t);
}

/* The kubelet's loop over all masks, for one of them. */
static bool kubelet_has(const struct topo *t, const struct cpuset *available,
	const struct cpuset *reusable, unsigned count, struct nodeset mask)
{
	struct cpuset cpus = topo_cpus_of(t, mask);

	return cpuset_within(reusable, &cpus) &&
	       cpuset_count(reusable) + cpuset_count_and(&cpus, available) >= count;
}

static void a_family_stands_for_the_kubelets_list_also_with_cpus_to_reuse(void **state)
{
	struct random r = {3};

	(void)state;
	for (unsigned round = 0; round < 500; round++) {
		unsigned counts[5], nr = 1 + random_below(&r, 5);

		for (unsigned n = 0; n < nr; n++)
			counts[n] = 1 + random_below(&r, 4);
		struct topo *t = machine_with(counts, nr, 1, 2);
		struct cpuset available = some_of(t, &r, 60), reusable = some_of(t, &r, 10);
		unsigned count = 1 + random_below(&r, t->nr_cpus + 1);
		struct cpus_per_node n;
		struct family f;

		available = cpuset_minus(available, &reusable);
		cpus_family(t, &plain, &available, &reusable, count, &n, &f);
		bool any = false;
		for (uint64_t mask = 1; mask < UINT64_C(1) << nr; mask++) {
			bool has = kubelet_has(
				t, &available, &reusable, count, (struct nodeset){mask});

			any |= has;
			if (f.kind == FAMILY_CAPACITY)
				assert_int_equal(family_has(&f, (struct nodeset){mask}), has);
		}
		assert_int_equal(f.kind, any ? FAMILY_CAPACITY : FAMILY_NONE);
		free(t);
	}
}

static void align_by_socket_prefers_and_takes_whole_sockets(void **state)
{
	static const struct cpu_options aligned = {.align_by_socket = true};
	static const struct {
		unsigned count, nodes, sockets;
	} cases[] = {{8, 1, 1}, {9, 2, 1}, {32, 4, 1}, {33, 5, 2}, {64, 8, 2}};
	struct topo *t = machine_of_eight(); /* 4 nodes on each of 2 sockets */
	const struct hint on_five = {.mask = nodeset_of(5)};
	struct cpus_per_node n;
	struct cpuset got;
	struct family f;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		cpus_family(t, &aligned, &t->cpus, &(struct cpuset){0}, cases[i].count, &n, &f);
		assert_int_equal(f.preferred_size, cases[i].nodes);
		assert_int_equal(f.preferred_sockets, cases[i].sockets);
		assert_int_equal(f.sockets_of_node[3], 1);
		assert_int_equal(f.sockets_of_node[4], 2);
	}
	cpus_family(t, &plain, &t->cpus, &(struct cpuset){0}, 9, &n, &f);
	assert_int_equal(f.preferred_sockets, 0);
	assert_int_equal(cpus_allocate(t, &aligned, &t->cpus, 12, NULL, &on_five,
				 &(struct budget){.endless = true}, &got, NULL),
		0);
	struct cpuset socket = topo_cpus_of(t, (struct nodeset){0xf0});
	assert_true(cpuset_within(&got, &socket));
	free(t);
}

static void a_family_prefers_the_fewest_nodes_that_could_ever_do(void **state)
{
	static const struct {
		unsigned count, size;
		enum family_kind kind;
	} cases[] = {{0, 0, FAMILY_ANY}, {1, 1, FAMILY_CAPACITY}, {8, 1, FAMILY_CAPACITY},
		{9, 2, FAMILY_CAPACITY}, {60, 8, FAMILY_CAPACITY}, {64, 8, FAMILY_NONE},
		{99, 8, FAMILY_NONE}};
	struct topo *t = machine_of_eight();
	struct cpuset free_cpus = t->cpus;
	struct cpus_per_node n;
	struct family f;

	(void)state;
	cpuset_del(&free_cpus, 0); /* 63 are free */
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		cpus_family(t, &plain, &free_cpus, &(struct cpuset){0}, cases[i].count, &n, &f);
		assert_int_equal(f.kind, cases[i].kind);
		assert_int_equal(f.preferred_size, cases[i].size);
	}
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_allocation_takes_the_same_cpus_as_the_kubelet),
		cmocka_unit_test(taken_cpus_were_free_and_are_as_many_as_wanted),
		cmocka_unit_test(a_socket_is_whole_only_when_all_of_its_own_cpus_are_free),
		cmocka_unit_test(cpus_of_the_affinity_are_taken_before_others),
		cmocka_unit_test(distribution_takes_as_much_from_each_of_the_fewest_nodes),
		cmocka_unit_test(no_other_way_to_give_out_one_by_one_is_more_even),
		cmocka_unit_test(distribution_ends_on_64_uneven_nodes),
		cmocka_unit_test(a_cache_on_two_nodes_counts_once),
		cmocka_unit_test(options_that_exclude_each_other_are_refused),
		cmocka_unit_test(reserved_cpus_are_picked_as_the_options_say),
		cmocka_unit_test(full_pcpus_only_takes_whole_cores_or_nothing),
		cmocka_unit_test(a_family_stands_for_the_kubelets_list_also_with_cpus_to_reuse),
		cmocka_unit_test(align_by_socket_prefers_and_takes_whole_sockets),
		cmocka_unit_test(a_family_prefers_the_fewest_nodes_that_could_ever_do),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
