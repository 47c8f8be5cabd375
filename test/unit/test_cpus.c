/* Packed assignment against recorded answers of the kubelet, and its guards. */
#include <numafit/cpus.h>

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

static void packed_takes_what_the_kubelet_took(void **state)
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
		int rc = cpus_take(t, &free_cpus, (unsigned)atoi(field[3]), &got, NULL);

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

static void what_is_taken_was_free_and_is_as_many_as_wanted(void **state)
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
		int rc = cpus_take(t, &free_cpus, want, &got, NULL);

		assert_int_equal(rc, want > have ? -28 : 0);
		assert_true(cpuset_within(&got, &free_cpus));
		assert_int_equal(cpuset_count(&got), want > have ? 0 : want);
	}
	free(t);
}

/* 5 CPUs on sockets of 3 and 2: the kubelet compares with the average, 2, takes the larger socket
 * for free while CPU 1 of it is busy, and gives that CPU away a second time. */
static void a_socket_is_whole_only_when_all_of_its_own_cpus_are_free(void **state)
{
	char cpus[] = "0,0,0,0,0;1,1,0,0,0;2,2,0,0,0;3,3,1,1,1;4,4,1,1,1";
	struct topo *t = machine_from(cpus);
	struct cpuset free_cpus = list("0,2,3"), got;

	(void)state;
	assert_int_equal(cpus_take(t, &free_cpus, 3, &got, NULL), 0);
	assert_true(cpuset_equal(&got, &free_cpus));
	free(t);
}

static void affinity_comes_first_and_the_rest_from_anywhere(void **state)
{
	struct topo *t = machine_of_eight();
	struct hint on_two = {.mask = nodeset_of(2)};
	struct cpuset got, near;

	(void)state;
	assert_int_equal(cpus_allocate(t, &t->cpus, 10, &on_two, &got, NULL), 0);
	assert_true(cpuset_within(&t->node[2].cpus, &got));
	assert_int_equal(cpuset_count(&got), 10);
	assert_int_equal(cpus_allocate(t, &t->cpus, 4, &on_two, &near, NULL), 0);
	assert_true(cpuset_within(&near, &t->node[2].cpus));
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
		cpus_family(t, &free_cpus, cases[i].count, &n, &f);
		assert_int_equal(f.kind, cases[i].kind);
		assert_int_equal(f.preferred_size, cases[i].size);
	}
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_takes_what_the_kubelet_took),
		cmocka_unit_test(what_is_taken_was_free_and_is_as_many_as_wanted),
		cmocka_unit_test(a_socket_is_whole_only_when_all_of_its_own_cpus_are_free),
		cmocka_unit_test(affinity_comes_first_and_the_rest_from_anywhere),
		cmocka_unit_test(a_family_prefers_the_fewest_nodes_that_could_ever_do),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
