#include <numafit/topo.h>

#include "core_machine.h"
#include <numafit/text.h>

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const double TINY = 1e-12;

/* Two nodes with two CPUs each, not sealed. */
static void begin(struct topo *t)
{
	topo_init(t, "two");
	assert_int_equal(topo_add_node(t, 0, NULL), 0);
	assert_int_equal(topo_add_node(t, 4, NULL), 1);
	for (unsigned cpu = 0; cpu < 4; cpu++)
		assert_int_equal(topo_add_cpu(t, cpu, cpu / 2, cpu, cpu / 2, cpu / 2, NULL), 0);
}

static void nothing_at_all(struct topo *t)
{
	topo_init(t, "none");
}
static void no_cpu(struct topo *t)
{
	topo_init(t, "x"), (void)topo_add_node(t, 0, NULL);
}
static void one_distance(struct topo *t)
{
	(void)topo_set_distance(t, 0, 1, 20, NULL);
}
static void far_from_itself(struct topo *t)
{
	for (unsigned i = 0; i < 4; i++)
		(void)topo_set_distance(t, i / 2, i % 2, i == 3 ? 21 : 20, NULL);
}
static void first_far_from_itself(struct topo *t)
{
	for (unsigned i = 0; i < 4; i++)
		(void)topo_set_distance(t, i / 2, i % 2, i == 0 ? 21 : 20, NULL);
}
static void too_many_huge_pages(struct topo *t)
{
	(void)topo_set_memory(t, 1, 0, GIB(4), NULL);
	(void)topo_set_memory(t, 1, GIB(1), GIB(3), NULL);
	(void)topo_set_memory(t, 1, 2 << 20, GIB(2), NULL);
}
static void huge_pages_without_memory(struct topo *t)
{
	(void)topo_set_memory(t, 0, GIB(1), 1, NULL);
}
static void core_on_two_nodes(struct topo *t)
{
	(void)topo_add_cpu(t, 9, 1, 0, 0, 0, NULL);
}
static void core_on_two_sockets(struct topo *t)
{
	(void)topo_add_cpu(t, 9, 0, 0, 1, 0, NULL);
}

static void an_impossible_machine_is_refused(void **state)
{
	static const struct {
		void (*spoil)(struct topo *t);
		const char *text;
	} cases[] = {
		{nothing_at_all, "the machine has no NUMA node"},
		{no_cpu, "the machine has no CPU"},
		{one_distance, "distance from NUMA node 0 to 0 is missing"},
		{far_from_itself, "NUMA node 4 is farther from itself (21) than from node 0 (20)"},
		{first_far_from_itself,
			"NUMA node 0 is farther from itself (21) than from node 4 (20)"},
		{too_many_huge_pages,
			"NUMA node 4: its huge pages exceed its 4294967296 bytes of memory"},
		{huge_pages_without_memory,
			"NUMA node 0: its huge pages exceed its 0 bytes of memory"},
		{core_on_two_nodes,
			"CPUs 0 and 9 are threads of one core, but on two NUMA nodes or sockets"},
		{core_on_two_sockets,
			"CPUs 0 and 9 are threads of one core, but on two NUMA nodes or sockets"},
	};
	struct topo *t = malloc(sizeof *t);

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err e = {0};

		begin(t);
		cases[i].spoil(t);
		assert_int_equal(topo_seal(t, &e), -EINVAL);
		assert_string_equal(e.text, cases[i].text);
	}
	begin(t);
	assert_int_equal(topo_seal(t, NULL), 0);
	free(t);
}

static void nodes_come_in_order_and_within_bounds(void **state)
{
	struct topo *t = malloc(sizeof *t);
	struct err e;

	(void)state;
	topo_init(t, "many");
	assert_int_equal(topo_add_node(t, NODE_ID_MAX + 1, &e), -ERANGE);
	assert_string_equal(e.text, "NUMA node id 1024 is above 1023");
	assert_int_equal(topo_add_node(t, 5, &e), 0);
	assert_int_equal(topo_add_node(t, 5, &e), -EEXIST);
	assert_string_equal(e.text, "NUMA node 5 is there twice");
	assert_int_equal(topo_add_node(t, 3, &e), -EINVAL);
	assert_string_equal(e.text, "NUMA node 3 comes after 5: ids must ascend");
	for (unsigned i = 1; i < NODES_MAX; i++)
		assert_int_equal(topo_add_node(t, NODE_ID_MAX - NODES_MAX + 1 + i, &e), i);
	assert_int_equal(t->ids.id[NODES_MAX - 1], NODE_ID_MAX);
	topo_init(t, "more");
	for (unsigned i = 0; i < NODES_MAX; i++)
		assert_int_equal(topo_add_node(t, i, &e), i);
	assert_int_equal(topo_add_node(t, NODES_MAX, &e), -ERANGE);
	assert_string_equal(e.text, "NUMA node 64 is one too many: 64 are supported");
	free(t);
}

static void cpus_memory_and_distances_are_checked_when_they_are_added(void **state)
{
	struct topo *t = malloc(sizeof *t);
	struct err e;

	(void)state;
	begin(t);
	assert_int_equal(topo_add_cpu(t, 1024, 0, 0, 0, 0, &e), -ERANGE);
	assert_string_equal(e.text, "CPU 1024 (core 0, socket 0, cache 0): ids must be below 1024");
	assert_int_equal(topo_add_cpu(t, 9, 0, 1024, 0, 0, NULL), -ERANGE);
	assert_int_equal(topo_add_cpu(t, 9, 0, 0, 1024, 0, NULL), -ERANGE);
	assert_int_equal(topo_add_cpu(t, 9, 0, 0, 0, 1024, NULL), -ERANGE);
	assert_int_equal(topo_add_cpu(t, 9, 2, 0, 0, 0, &e), -EINVAL);
	assert_string_equal(e.text, "CPU 9 is on NUMA node index 2 of 2");
	assert_int_equal(topo_add_cpu(t, 3, 0, 0, 0, 0, &e), -EEXIST);
	assert_string_equal(e.text, "CPU 3 is there twice");

	assert_int_equal(topo_set_memory(t, 2, 0, 1, &e), -EINVAL);
	assert_string_equal(e.text, "memory is on NUMA node index 2 of 2");
	assert_int_equal(topo_set_memory(t, 1, 0, UINT64_MAX, &e), -ERANGE);
	assert_string_equal(e.text, "NUMA node 4 has 18446744073709551615 bytes of memory");
	for (unsigned k = 1; k < TOPO_KINDS; k++)
		assert_int_equal(topo_set_memory(t, 0, 4096u << k, 0, NULL), 0);
	assert_int_equal(topo_set_memory(t, 1, GIB(1), 0, &e), -ERANGE);
	assert_string_equal(e.text, "NUMA node 4: more than 7 sizes of huge pages");

	assert_int_equal(topo_set_distance(t, 2, 0, 20, NULL), -EINVAL);
	assert_int_equal(topo_set_distance(t, 0, 2, 20, &e), -EINVAL);
	assert_string_equal(e.text, "a distance is between NUMA node indexes 0 and 2 of 2");
	assert_int_equal(topo_set_distance(t, 0, 1, 9, &e), -EINVAL);
	assert_string_equal(e.text, "distance from NUMA node 0 to 4: 9 is outside 10..254");
	assert_int_equal(topo_set_distance(t, 0, 1, 255, NULL), -EINVAL);
	assert_int_equal(topo_seal(t, &e), 0); /* nothing of all this was taken */
	assert_int_equal(t->nr_cpus, 4);
	assert_false(t->has_distances);
	free(t);
}

static void a_sealed_machine_has_its_counts(void **state)
{
	struct topo *t = machine_of_eight();

	(void)state;
	assert_int_equal(t->nr_cpus, 64);
	assert_int_equal(t->nr_cores, 32);
	assert_int_equal(t->nr_sockets, 2);
	assert_int_equal(t->nr_uncores, 8);
	assert_int_equal(t->nodes.bits, 0xff);
	assert_int_equal(t->nodes_with_cpus.bits, 0xff);
	assert_int_equal(t->nodes_with_memory.bits, 0xff);
	assert_int_equal(cpuset_count(&t->cpus), 64);
	cpuset_each (cpu, &t->cpus) {
		assert_int_equal(t->cpu[cpu].node, cpu % 32 / 4);
		assert_int_equal(t->cpu[cpu].core, cpu % 32); /* its lowest thread */
	}
	free(t);
}

static void cores_are_named_after_their_lowest_cpu(void **state)
{
	struct topo *t = malloc(sizeof *t);

	(void)state;
	topo_init(t, "x");
	assert_int_equal(topo_add_node(t, 0, NULL), 0);
	assert_int_equal(topo_add_cpu(t, 7, 0, 500, 0, 0, NULL), 0);
	assert_int_equal(topo_add_cpu(t, 3, 0, 500, 0, 0, NULL), 0);
	assert_int_equal(topo_add_cpu(t, 5, 0, 3, 0, 0, NULL),
		0); /* another core, whose number is a CPU's */
	assert_int_equal(topo_seal(t, NULL), 0);
	assert_int_equal(t->cpu[7].core, 3);
	assert_int_equal(t->cpu[3].core, 3);
	assert_int_equal(t->cpu[5].core, 5);
	assert_int_equal(t->nr_cores, 2);
	free(t);
}

static void a_nodes_threads_are_listed_core_by_core(void **state)
{
	static const char *const want[] = {"3,5", "7", "9", ""};
	static const unsigned core_of[] = {[3] = 0, [5] = 1, [7] = 0, [9] = 0};
	struct topo *t = malloc(sizeof *t);
	char list[CPUSET_TEXT_MAX];

	(void)state;
	topo_init(t, "x");
	assert_int_equal(topo_add_node(t, 0, NULL), 0);
	for (unsigned cpu = 3; cpu <= 9; cpu += 2)
		assert_int_equal(topo_add_cpu(t, cpu, 0, core_of[cpu], 0, 0, NULL), 0);
	assert_int_equal(topo_seal(t, NULL), 0);
	for (unsigned i = 0; i < sizeof want / sizeof *want; i++) {
		struct cpuset cpus = topo_threads_of(t, 0, i);

		assert_string_equal(cpuset_format(&cpus, list, sizeof list), want[i]);
	}
	free(t);
}

static void nodes_may_lack_cpus_or_memory(void **state)
{
	struct topo *t = malloc(sizeof *t);

	(void)state;
	topo_init(t, "cxl");
	for (unsigned n = 0; n < 3; n++)
		assert_int_equal(topo_add_node(t, n, NULL), n);
	assert_int_equal(topo_add_cpu(t, 0, 1, 0, 0, 0, NULL), 0);
	assert_int_equal(topo_set_memory(t, 2, 0, GIB(1), NULL), 0);
	assert_int_equal(topo_seal(t, NULL), 0);
	assert_int_equal(t->nodes.bits, 7);
	assert_int_equal(t->nodes_with_cpus.bits, 2);
	assert_int_equal(t->nodes_with_memory.bits, 4);
	free(t);
}

static void without_a_table_other_nodes_are_twice_as_far(void **state)
{
	struct topo *t = malloc(sizeof *t);

	(void)state;
	begin(t);
	assert_int_equal(topo_seal(t, NULL), 0);
	assert_int_equal(t->distance[0][0], 10);
	assert_int_equal(t->distance[0][1], 20);
	assert_int_equal(t->distance[1][0], 20);
	assert_int_equal(t->distance[0][2], 0);
	free(t);
}

/* KEP-3545's table of average distances, and what follows from it. */
static void average_distances_are_those_of_the_kep(void **state)
{
	static const struct {
		uint64_t nodes;
		uint64_t sum;
		double average;
	} cases[] = {
		{0x00, 0, 0},
		{0x01, 10, 10},
		{0x80, 10, 10},
		{0x03, 42, 10.5},
		{0x05, 44, 11},
		{0x0c, 42, 10.5},
		{0x11, 80, 20},
		{0x81, 80, 20},
		{0x07, 100, 100.0 / 9},
		{0x0f, 180, 11.25},
		{0xf0, 180, 11.25},
		{0xff, 360 + 2 * 16 * 30, 1320.0 / 64},
	};
	struct topo *t = machine_of_eight();

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct nodeset s = {cases[i].nodes};

		assert_int_equal(topo_distance_sum(t, s), cases[i].sum);
		assert_true(fabs(topo_distance_average(t, s) - cases[i].average) < TINY);
	}
	t->distance[0][1] = 31; /* both directions count */
	assert_int_equal(topo_distance_sum(t, (struct nodeset){3}), 62);
	free(t);
}

static void sums_over_nodes_are_those_of_the_nodes(void **state)
{
	struct topo *t = machine_of_eight();
	struct nodeset some = {0x15};
	struct cpuset cpus = topo_cpus_of(t, some), one = {0}, none = {0};

	(void)state;
	assert_int_equal(cpuset_count(&cpus), 24);
	assert_true(nodeset_equal(topo_nodes_of(t, &cpus), some));
	cpuset_add(&one, 35);
	assert_int_equal(topo_nodes_of(t, &one).bits, 1);
	assert_true(nodeset_empty(topo_nodes_of(t, &none)));
	assert_int_equal(topo_memory_of(t, some, 0), GIB(3 * 64));
	assert_int_equal(topo_memory_of(t, some, 1), GIB(3 * 8));
	assert_int_equal(topo_memory_of(t, (struct nodeset){0}, 0), 0);
	free(t);
}

static void kinds_of_memory_ascend_whatever_comes_first(void **state)
{
	struct topo *t = malloc(sizeof *t);
	char buf[TEXT_SIZE_MAX + 10];

	(void)state;
	begin(t);
	assert_int_equal(topo_set_memory(t, 0, GIB(1), GIB(2), NULL), 0);
	assert_int_equal(topo_set_memory(t, 1, 2 << 20, GIB(3), NULL), 0);
	assert_int_equal(topo_set_memory(t, 0, 64 << 10, GIB(4), NULL), 0);
	assert_int_equal(topo_set_memory(t, 0, 0, GIB(32), NULL), 0);
	assert_int_equal(topo_set_memory(t, 1, 0, GIB(32), NULL), 0);
	assert_int_equal(topo_seal(t, NULL), 0);
	assert_int_equal(t->nr_kinds, 4);
	assert_string_equal(topo_kind_name(t, 0, buf, sizeof buf), "memory");
	assert_string_equal(topo_kind_name(t, 1, buf, sizeof buf), "hugepages-64Ki");
	assert_string_equal(topo_kind_name(t, 2, buf, sizeof buf), "hugepages-2Mi");
	assert_string_equal(topo_kind_name(t, 3, buf, sizeof buf), "hugepages-1Gi");
	assert_int_equal(topo_kind_of_page(t, 0), 0);
	assert_int_equal(topo_kind_of_page(t, 2 << 20), 2);
	assert_int_equal(topo_kind_of_page(t, 4 << 20), -1);
	assert_int_equal(t->node[0].memory[0], GIB(32));
	assert_int_equal(t->node[0].memory[1], GIB(4));
	assert_int_equal(t->node[0].memory[2], 0);
	assert_int_equal(t->node[0].memory[3], GIB(2));
	assert_int_equal(t->node[1].memory[2], GIB(3));
	assert_int_equal(t->node[1].memory[3], 0);
	free(t);
}

static void more_node(struct topo *t)
{
	(void)topo_add_node(t, 9, NULL);
}
static void more_cpu(struct topo *t)
{
	(void)topo_add_cpu(t, 9, 1, 9, 1, 1, NULL);
}
static void more_pages(struct topo *t)
{
	(void)topo_set_memory(t, 1, GIB(1), 0, NULL);
}
static void other_socket(struct topo *t)
{
	t->cpu[0].socket = 7;
}
static void other_cache(struct topo *t)
{
	t->cpu[0].uncore = 7;
}
static void other_core(struct topo *t)
{
	t->cpu[1].core = 0;
}
static void other_distances(struct topo *t)
{
	for (unsigned i = 0; i < 4; i++)
		(void)topo_set_distance(t, i / 2, i % 2, i == 0 || i == 3 ? 10 : 21, NULL);
}

static void another_machine_has_another_fingerprint(void **state)
{
	static void (*const change[])(struct topo * t) = {more_node, more_cpu, more_pages,
		other_socket, other_cache, other_core, other_distances};
	struct topo *t = malloc(sizeof *t);
	uint32_t seen[1 + COUNT(change)];

	(void)state;
	begin(t);
	assert_int_equal(topo_seal(t, NULL), 0);
	seen[0] = topo_fingerprint(t);
	for (size_t i = 0; i < COUNT(change); i++) {
		begin(t);
		change[i](t);
		assert_int_equal(topo_seal(t, NULL), 0);
		seen[i + 1] = topo_fingerprint(t);
		for (size_t k = 0; k <= i; k++)
			assert_int_not_equal(seen[i + 1], seen[k]);
	}
	memset(t, 0xee, sizeof *t); /* nor does what was there before count */
	begin(t);
	(void)snprintf(t->name, sizeof t->name, "renamed");
	assert_int_equal(topo_set_memory(t, 1, 0, GIB(1), NULL), 0); /* may change while it runs */
	assert_int_equal(topo_seal(t, NULL), 0);
	assert_int_equal(topo_fingerprint(t), seen[0]);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_impossible_machine_is_refused),
		cmocka_unit_test(nodes_come_in_order_and_within_bounds),
		cmocka_unit_test(cpus_memory_and_distances_are_checked_when_they_are_added),
		cmocka_unit_test(a_sealed_machine_has_its_counts),
		cmocka_unit_test(cores_are_named_after_their_lowest_cpu),
		cmocka_unit_test(a_nodes_threads_are_listed_core_by_core),
		cmocka_unit_test(nodes_may_lack_cpus_or_memory),
		cmocka_unit_test(without_a_table_other_nodes_are_twice_as_far),
		cmocka_unit_test(average_distances_are_those_of_the_kep),
		cmocka_unit_test(sums_over_nodes_are_those_of_the_nodes),
		cmocka_unit_test(kinds_of_memory_ascend_whatever_comes_first),
		cmocka_unit_test(another_machine_has_another_fingerprint),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
