#include <codec/machine_text.h>

#include <errno.h>
#include <numafit/mem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NR(a) (sizeof(a) / sizeof *(a))

static void read_ok(const char *text, struct topo *t)
{
	struct err e = {0};

	if (machine_text_parse(text, strlen(text), t, &e))
		fail_msg("%s\n%s", e.text, text);
}

static void a_machine_is_what_its_lines_say(void **state)
{
	struct topo t;

	(void)state;
	read_ok("# a comment\n"
		"machine  box-1\r\n"
		"\n"
		"node 0 memory 32Gi hugepages-2Mi 512 hugepages-1Gi 4 cpus 0-3,8-11 smt 2 # here "
		"too\n"
		"\tnode 3 socket 5 cpus 4-7,12-15 smt 2 l3 2 memory 16Gi\n"
		"node 7 memory 64Gi\n"
		"distances\n"
		"10 20 30\n"
		"21 10 31\n"
		"\n"
		"22 23 11\n",
		&t);
	assert_string_equal(t.name, "box-1");
	assert_false(t.this_machine);
	assert_int_equal(t.ids.nr, 3);
	assert_int_equal(t.ids.id[1], 3);
	assert_int_equal(t.ids.id[2], 7);
	assert_int_equal(t.nr_cpus, 16);
	assert_int_equal(t.nr_cores, 8);
	assert_int_equal(t.nr_sockets, 2);
	assert_int_equal(t.nr_uncores, 3);
	assert_int_equal(t.cpu[10].core, 2);
	assert_int_equal(t.cpu[10].socket, 0);
	assert_int_equal(t.cpu[10].node, 0);
	assert_int_equal(t.cpu[13].core, 5);
	assert_int_equal(t.cpu[13].socket, 5);
	assert_int_equal(t.cpu[13].uncore, 1);
	assert_int_equal(t.cpu[14].uncore, 2);
	assert_true(cpuset_empty(&t.node[2].cpus));
	assert_int_equal(t.nr_kinds, 3);
	assert_int_equal(t.node[0].memory[0], UINT64_C(32) << 30);
	assert_int_equal(t.node[0].memory[1], UINT64_C(1) << 30);
	assert_int_equal(t.node[0].memory[2], UINT64_C(4) << 30);
	assert_int_equal(t.node[1].memory[1], 0);
	assert_int_equal(t.node[2].memory[0], UINT64_C(64) << 30);
	assert_true(t.has_distances);
	assert_int_equal(t.distance[0][2], 30);
	assert_int_equal(t.distance[2][0], 22);
	assert_int_equal(t.distance[2][2], 11);
}

static void without_a_table_distances_are_10_and_20(void **state)
{
	struct topo t;

	(void)state;
	read_ok("machine m\nnode 0 cpus 0\nnode 1 cpus 1", &t);
	assert_false(t.has_distances);
	assert_int_equal(t.distance[1][1], 10);
	assert_int_equal(t.distance[1][0], 20);
}

static void the_order_of_the_cpu_list_gives_the_cores(void **state)
{
	struct topo t;

	(void)state;
	read_ok("machine m\nnode 0 cpus 0,2,1,3 smt 2\n", &t);
	assert_int_equal(t.cpu[1].core, 0);
	assert_int_equal(t.cpu[3].core, 2);
	read_ok("machine m\nnode 0 cpus 0-3 smt 2\n", &t);
	assert_int_equal(t.cpu[2].core, 0);
	assert_int_equal(t.cpu[3].core, 1);
}

static void a_cache_may_span_nodes_when_it_is_named(void **state)
{
	struct topo t;

	(void)state;
	read_ok("machine m\nnode 0 cpus 0-1 uncore 4\nnode 1 cpus 2-3 uncore 4\nnode 2 cpus 4-5 l3 "
		"1\n",
		&t);
	assert_int_equal(t.cpu[0].uncore, 4);
	assert_int_equal(t.cpu[3].uncore, 4);
	assert_int_equal(t.cpu[4].uncore, 5);
	assert_int_equal(t.cpu[5].uncore, 6);
}

static void more_lines_add_cpus_of_another_kind_to_a_node(void **state)
{
	struct topo t;

	(void)state;
	read_ok("machine m\nnode 0 memory 1Gi cpus 0-3 smt 2 \ncpus 4-7\ncpus 8-9 socket 1\n", &t);
	assert_int_equal(t.ids.nr, 1);
	assert_int_equal(t.nr_cpus, 10);
	assert_int_equal(t.nr_cores, 8);
	assert_int_equal(t.nr_sockets, 2);
	assert_int_equal(t.nr_uncores, 3);
}

static void offline_cpus_are_left_out_and_isolated_ones_are_not(void **state)
{
	struct topo t;
	char list[CPUSET_TEXT_MAX];

	(void)state;
	read_ok("machine m\noffline 0,3,6-7\nisolated 1,7\n"
		"node 0 cpus 0-3 smt 2\nnode 1 cpus 4-7 smt 2\n",
		&t);
	assert_string_equal(cpuset_format(&t.cpus, list, sizeof list), "1-2,4-5");
	assert_int_equal(t.nr_cores, 4);
	assert_int_equal(t.cpu[2].core, 2); /* the other thread, CPU 0, is offline */
	assert_int_equal(t.cpu[4].core, 4);
	assert_int_equal(cpuset_count(&t.node[1].cpus), 2);
	assert_string_equal(cpuset_format(&t.isolated, list, sizeof list), "1,7");
	read_ok("machine m\noffline 2-3\nnode 0 cpus 0-1\nnode 1 cpus 2-3\n", &t);
	assert_true(cpuset_empty(&t.node[1].cpus));
	assert_false(nodeset_has(t.nodes_with_cpus, 1));
}

static void a_machine_that_contradicts_itself_is_refused_with_the_place(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"", "line 1: the end, and no \"machine NAME\""},
		{"node 0 cpus 0", "line 1: \"node\" before \"machine NAME\""},
		{"machine", "line 1: \"machine\" needs a name"},
		{"machine a/b", "line 1: \"machine\" needs a name"},
		{"machine a b", "line 1: \"b\" after the machine's name"},
		{"machine a\nmachine b", "line 2: a second \"machine\" line"},
		{"machine a\nnudes 1",
			"line 2: \"nudes\" is none of machine, offline, isolated, node, cpus, "
			"distances"},
		{"machine a", "machine a: the machine has no NUMA node"},
		{"machine a\nnode 0 memory 1Gi", "machine a: the machine has no CPU"},
		{"machine a\nnode", "line 2: \"node\" needs an id"},
		{"machine a\nnode 0 memory 1Gi device-memory 1Gi",
			"line 2: node 0: \"memory\" and \"device-memory\" exclude each other"},
		{"machine a\nnode 0 device-memory 1Gi cpus 0",
			"line 2: node 0: a node with \"device-memory\" has no CPUs"},
		{"machine a\nnode 0 device-memory 1Gi\ncpus 0",
			"line 3: node 0: a node with \"device-memory\" has no CPUs"},
		{"machine a\nnode 0 device-memory x", "line 2: node 0: device-memory: "},
		{"machine a\nnode 0 cpus 0\ncpus 1 device-memory 1Gi",
			"line 3: node 0: \"device-memory\" belongs on the node's own line"},
		{"machine a\nnode x", "line 2: node: \"x\" is not a number"},
		{"machine a\nnode 1024", "line 2: NUMA node id 1024 is above 1023"},
		{"machine a\nnode 99999999999999999999",
			"line 2: node: 99999999999999999999 is above"},
		{"machine a\nnode 1 cpus 0\nnode 1 cpus 1", "line 3: NUMA node 1 is there twice"},
		{"machine a\nnode 1 cpus 0\nnode 0 cpus 1", "line 3: NUMA node 0 comes after 1"},
		{"machine a\nnode 0 cpus 0\nnode 1 cpus 0", "line 3: node 1: CPU 0 is there twice"},
		{"machine a\nnode 0 cpus 0,0", "line 2: node 0: CPU 0 is there twice"},
		{"machine a\nnode 0 cpus 1024", "line 2: node 0: cpus: 1024 is above 1023"},
		{"machine a\nnode 0 cpus 3-1",
			"line 2: node 0: cpus: the range 3-1 runs backwards"},
		{"machine a\nnode 0 cpus 0-1023,0",
			"line 2: node 0: cpus: a list of more than 1024 CPUs"},
		{"machine a\nnode 0 cpus 1,", "line 2: node 0: cpus: a number is missing"},
		{"machine a\nnode 0 cpus 1-", "line 2: node 0: cpus: a number is missing"},
		{"machine a\nnode 0 cpus ,1", "line 2: node 0: cpus: a number is missing"},
		{"machine a\nnode 0 cpus 1-2-3", "line 2: node 0: cpus: \"2-3\" is not a number"},
		{"machine a\nnode 0 cpus", "line 2: node 0: \"cpus\" has no value"},
		{"machine a\nnode 0 cpus 0 cpus 1", "line 2: node 0: \"cpus\" is given twice"},
		{"machine a\nnode 0 cpus 0 colour 1",
			"line 2: node 0: \"colour\" is none of cpus, socket"},
		{"machine a\nnode 0 cpus 0-2 smt 2", "line 2: node 0: smt: 3 CPUs are not 2 runs"},
		{"machine a\nnode 0 cpus 0 smt 0", "line 2: node 0: smt: 0 is below 1"},
		{"machine a\nnode 0 cpus 0-4 l3 2",
			"line 2: node 0: l3: 5 cores do not share caches by 2"},
		{"machine a\nnode 0 cpus 0 l3 0", "line 2: node 0: l3: 0 is below 1"},
		{"machine a\nnode 0 cpus 0 socket 1024",
			"line 2: node 0: socket: 1024 is above 1023"},
		{"machine a\nnode 0 cpus 0-1 l3 1 uncore 1023",
			"line 2: node 0: CPU 1 (core 1, socket 0, cache 1024)"},
		{"machine a\nnode 0 socket 1", "line 2: node 0: \"socket\" without cpus"},
		{"machine a\nnode 0 cpus 0 memory 1Qi", "line 2: node 0: memory: "},
		{"machine a\nnode 0 cpus 0 memory -1", "line 2: node 0: memory: "},
		{"machine a\nnode 0 cpus 0 memory 111111111111111111111111111111111111",
			"is too long for a quantity"},
		{"machine a\nnode 0 cpus 0 hugepages-3Mi 1",
			"hugepages-3Mi: the size of a page is a power of two"},
		{"machine a\nnode 0 cpus 0 hugepages-2Mi x",
			"hugepages-2Mi: \"x\" is not a number"},
		{"machine a\nnode 0 cpus 0 hugepages-1Gi 99999999999",
			"99999999999 pages are too many"},
		{"machine a\nnode 0 cpus 0 memory 1Gi hugepages-2Mi 1 hugepages-2048Ki 1",
			"line 2: node 0: hugepages-2048Ki: this size is given twice"},
		{"machine a\nnode 0 cpus 0 memory 1Gi hugepages-1Gi 2",
			"machine a: NUMA node 0: its huge pages exceed"},
		{"machine a\nnode 0 cpus 0 hugepages-1 0 hugepages-2 0 hugepages-4 0 hugepages-8 0 "
		 "hugepages-16 0 "
		 "hugepages-32 0 hugepages-64 0 hugepages-128 0",
			"more than 7 sizes of huge pages"},
		{"machine a\nnode 0 cpus 0\noffline 0",
			"line 3: \"offline\" belongs before the first node"},
		{"machine a\nisolated", "line 2: \"isolated\" needs a list"},
		{"machine a\nisolated 1 2", "line 2: \"2\" after the list"},
		{"machine a\noffline 3-1", "line 2: offline: "},
		{"machine a\noffline 1\noffline 2", "line 3: a second \"offline\" line"},
		{"offline 1\nmachine a", "line 1: \"offline\" before \"machine NAME\""},
		{"machine a\noffline 1,3\nnode 0 cpus 0-1",
			"machine a: offline: no node has CPU 3"},
		{"machine a\nisolated 4-5\nnode 0 cpus 0-1",
			"machine a: isolated: no node has CPU 4-5"},
		{"machine a\noffline 1\nnode 0 cpus 0-1\nnode 1 cpus 1",
			"line 4: node 1: CPU 1 is there twice"},
		{"machine a\noffline 0\nnode 0 cpus 0", "machine a: the machine has no CPU"},
		{"machine a\ncpus 0", "line 2: \"cpus\" before any node"},
		{"machine a\nnode 0 cpus 0\ncpus", "line 3: \"cpus\" needs a list"},
		{"machine a\nnode 0 cpus 0\ncpus 1 memory 1",
			"line 3: node 0: \"memory\" belongs on the node's own line"},
		{"machine a\nnode 0 cpus 0\ncpus 1 hugepages-2Mi 1",
			"line 3: node 0: huge pages belong on"},
		{"machine a\nnode 0 cpus 0\ndistances now", "line 3: \"now\" after \"distances\""},
		{"machine a\nnode 0 cpus 0\nnode 5 cpus 1\ndistances\n10 300\n",
			"line 5: distance from NUMA node 0 to 5: 300 is outside 10..254"},
		{"machine a\nnode 0 cpus 0\nnode 5 cpus 1\ndistances\n10 20\n9 10\n",
			"line 6: distance from NUMA node 5 to 0: 9 is outside 10..254"},
		{"machine a\nnode 0 cpus 0\nnode 5 cpus 1\ndistances\n10 1x\n",
			"line 5: node 0, distance to node 5: \"1x\""},
		{"machine a\nnode 0 cpus 0\nnode 5 cpus 1\ndistances\n10\n",
			"line 5: node 0, distances: 1 instead of 2"},
		{"machine a\nnode 0 cpus 0\nnode 5 cpus 1\ndistances\n10 20 30\n",
			"line 5: node 0, distances: more than 2"},
		{"machine a\nnode 0 cpus 0\nnode 5 cpus 1\ndistances\n10 20\n",
			"line 6: the end, and no distances of node 5"},
		{"machine a\nnode 0 cpus 0\ndistances\n10\n10\n",
			"line 5: a row of distances too many: there are 1"},
		{"machine a\nnode 0 cpus 0\nnode 5 cpus 1\ndistances\n30 20\n20 10\n",
			"machine a: NUMA node 0 is farther from itself (30) than from node 5 (20)"},
		{"machine a\nnode 0 cpus 0 # \xff\n", "line 2: not UTF-8 text"},
		{"machine a\nnode 0 \x1b cpus 0\n", "line 2: column 8: a control character"},
	};

	(void)state;
	for (size_t i = 0; i < NR(cases); i++) {
		struct topo t = {.name = "untouched"};
		struct err e = {0};
		int rc = machine_text_parse(cases[i].text, strlen(cases[i].text), &t, &e);

		if (rc >= 0 || rc != -e.code || !strstr(e.text, cases[i].error))
			fail_msg("%s\ngave %d \"%s\"\ninstead of \"%s\"", cases[i].text, rc, e.text,
				cases[i].error);
		assert_string_equal(t.name, "untouched");
	}
}

static void a_file_that_is_no_text_is_refused(void **state)
{
	static const char with_nul[] = "machine a\nnode 0 \0cpus 0\n";
	struct topo t;
	struct err e;

	(void)state;
	assert_int_equal(machine_text_parse(with_nul, sizeof with_nul - 1, &t, &e), -EINVAL);
	assert_string_equal(e.text, "line 2: column 8: a control character: not a text file");
}

static void a_file_beyond_the_limit_is_refused_and_one_at_it_is_not(void **state)
{
	static const char start[] = "machine a\nnode 0 cpus 0\n";
	auto_free char *text = xcalloc(MACHINE_TEXT_MAX + 1, 1);
	struct topo t;

	(void)state;
	memset(text, ' ', MACHINE_TEXT_MAX + 1);
	memcpy(text, start, sizeof start - 1);
	assert_int_equal(machine_text_parse(text, MACHINE_TEXT_MAX, &t, NULL), 0);
	assert_int_equal(machine_text_parse(text, MACHINE_TEXT_MAX + 1, &t, NULL), -EFBIG);
}

/* nr nodes of one CPU each */
static int read_nodes(unsigned nr, struct topo *t, struct err *e)
{
	char buf[NODES_MAX * 64];
	struct text text;

	text_init(&text, buf, sizeof buf);
	text_add(&text, "machine many\n");
	for (unsigned n = 0; n < nr; n++)
		text_add(&text, "node %u cpus %u\n", n, n);
	assert_false(text.cut);
	return machine_text_parse(buf, text.len, t, e);
}

static void more_than_64_nodes_are_refused(void **state)
{
	struct topo t;
	struct err e;

	(void)state;
	assert_int_equal(read_nodes(NODES_MAX, &t, &e), 0);
	assert_int_equal(t.ids.nr, NODES_MAX);
	assert_int_equal(read_nodes(NODES_MAX + 1, &t, &e), -ERANGE);
	assert_non_null(strstr(e.text, "line 66: NUMA node 64 is one too many"));
}

static void a_written_machine_reads_back_as_the_same(void **state)
{
	static const char *const machines[] = {
		"machine one\nnode 0 cpus 0\n",
		"machine adjacent.threads\nnode 0 memory 16Gi cpus 0,2,4,1,3,5 smt 2\n",
		"machine hybrid\nnode 0 memory 1000 cpus 0,2,1,3 smt 2\ncpus 4-9 uncore 0\ncpus "
		"10-13 smt 4\n",
		"machine two-sockets-one-node\nnode 0 cpus 0-3 socket 0 uncore 9\ncpus 4-7 socket "
		"7\n",
		"machine memory_only\nnode 1 cpus 0-1,1000-1001 smt 2 l3 1\nnode 250 memory 8Gi "
		"hugepages-2Mi 3\n"
		"node 255 memory 8Gi hugepages-64Ki 0\ndistances\n10 40 80\n40 10 80\n80 80 10\n",
		"machine gpu\nnode 0 cpus 0 memory 1Gi\nnode 2 device-memory 0\n"
		"node 3 device-memory 16Gi hugepages-2Mi 0\n",
		"machine interleaved\nnode 0 cpus 0,2,4,6 l3 2\nnode 1 cpus 1,3,5,7 l3 2\n",
	};
	auto_free char *buf = xcalloc(MACHINE_TEXT_MAX, 1);

	(void)state;
	for (size_t i = 0; i < NR(machines); i++) {
		struct topo before, after;
		struct text out;

		read_ok(machines[i], &before);
		text_init(&out, buf, MACHINE_TEXT_MAX);
		machine_text_write(&before, &out);
		assert_false(out.cut);
		read_ok(buf, &after);
		assert_string_equal(after.name, before.name);
		assert_int_equal(after.has_distances, before.has_distances);
		assert_int_equal(topo_fingerprint(&after), topo_fingerprint(&before));
		assert_true(nodeset_equal(after.device_memory, before.device_memory));
	}
}

static void the_written_form_is_short(void **state)
{
	static const char want[] =
		"machine m\n"
		"node 0 memory 32Gi hugepages-2Mi 512 cpus 0-3,8-11 socket 0 smt 2 uncore 0\n"
		"cpus 4-5,12-13 socket 1 smt 2 uncore 1\n"
		"node 1 memory 1536Mi hugepages-2Mi 0\n"
		"distances\n"
		"10 17\n"
		"17 10\n";
	char buf[sizeof want + 1];
	struct topo t;
	struct text out;

	(void)state;
	read_ok(want, &t);
	text_init(&out, buf, sizeof buf);
	machine_text_write(&t, &out);
	assert_string_equal(buf, want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_is_what_its_lines_say),
		cmocka_unit_test(without_a_table_distances_are_10_and_20),
		cmocka_unit_test(the_order_of_the_cpu_list_gives_the_cores),
		cmocka_unit_test(a_cache_may_span_nodes_when_it_is_named),
		cmocka_unit_test(more_lines_add_cpus_of_another_kind_to_a_node),
		cmocka_unit_test(offline_cpus_are_left_out_and_isolated_ones_are_not),
		cmocka_unit_test(a_machine_that_contradicts_itself_is_refused_with_the_place),
		cmocka_unit_test(a_file_that_is_no_text_is_refused),
		cmocka_unit_test(a_file_beyond_the_limit_is_refused_and_one_at_it_is_not),
		cmocka_unit_test(more_than_64_nodes_are_refused),
		cmocka_unit_test(a_written_machine_reads_back_as_the_same),
		cmocka_unit_test(the_written_form_is_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
