#include <codec/machine_text.h>
#include <dirent.h>
#include <host/discover.h>
#include <numafit/mem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The machines that come with the source: each loads, is what it is meant to be, and can be written
 * as text. */

#define NR(a)    (sizeof(a) / sizeof *(a))
#define RECORDED "test/machines/recorded/" /* found by their path alone */
enum { GIB_SHIFT = 30 };

static const struct shape {
	const char *name;
	unsigned nodes, sockets, cores, cpus, uncores;
	unsigned gib[2];                /* of all nodes: memory, hugepages-1Gi */
	unsigned no_cpus, no_memory;    /* so many nodes have none */
	unsigned from, to, there, back; /* two nodes by their ids, their distances */
} shapes[] = {
	{"laptop", 1, 1, 4, 8, 1, {16, 0}, 0, 0, 0, 0, 10, 10},
	{"kep3545-4", 4, 1, 32, 64, 4, {256, 16}, 0, 0, 0, 1, 11, 11},
	{"kep3545-8", 8, 2, 64, 128, 16, {512, 32}, 0, 0, 3, 4, 30, 30},
	{"snc4-2s", 8, 2, 112, 224, 2, {512, 64}, 0, 0, 3, 4, 21, 21},
	{"epyc-nps2", 4, 2, 16, 32, 4, {128, 8}, 0, 0, 0, 1, 12, 12},
	{"sparse-nodes", 4, 2, 4, 7, 2, {36, 3}, 2, 0, 2, 8, 17, 17},
	{"epyc-l3numa", 24, 2, 192, 384, 24, {768, 24}, 0, 0, 2, 3, 12, 12},
	{"gb200", 34, 2, 144, 144, 2, {1704, 32}, 32, 28, 0, 18, 120, 120},
	{"altix-64", 64, 128, 256, 256, 128, {256, 64}, 0, 0, 31, 32, 34, 34},
	{"hbm-flat", 16, 2, 112, 224, 2, {1152, 64}, 8, 0, 5, 13, 13, 13},
	{"cxl", 4, 2, 64, 128, 2, {768, 16}, 2, 0, 1, 2, 24, 24},
	{"power9", 8, 2, 40, 160, 20, {608, 8}, 6, 0, 8, 255, 80, 80},
	{"asymmetric", 4, 4, 16, 32, 4, {128, 8}, 0, 0, 0, 3, 20, 16},
	{"offline", 2, 2, 15, 28, 2, {32, 2}, 0, 0, 0, 1, 20, 20},
	{RECORDED "power9-v100", 8, 2, 4, 16, 2, {346, 4}, 6, 0, 8, 255, 80, 80},
	{RECORDED "gpu-memory.xml", 8, 2, 4, 16, 2, {346, 4}, 6, 0, 0, 250, 80, 80},
	{RECORDED "gb200-mig", 34, 2, 8, 8, 2, {1696, 4}, 32, 28, 0, 18, 120, 120},
	{RECORDED "node0-offline", 1, 1, 4, 4, 1, {64, 2}, 0, 0, 1, 1, 10, 10},
	{RECORDED "fake-numa", 4, 1, 6, 8, 1, {32, 4}, 3, 0, 0, 3, 10, 10},
	{RECORDED "kvm-a", 2, 2, 8, 8, 2, {16, 0}, 0, 0, 0, 1, 20, 20},
	{RECORDED "kvm-a.xml", 2, 2, 8, 8, 2, {16, 0}, 1, 0, 0, 1, 20, 20},
	{RECORDED "l3-b", 2, 1, 16, 16, 2, {16, 0}, 0, 0, 0, 1, 20, 20},
	{RECORDED "fake-hybrid", 6, 2, 8, 10, 2, {24, 1}, 1, 0, 3, 4, 20, 20},
};

static void load(const char *name, struct topo *t)
{
	struct err e = {0};

	if (machine_load(name, t, NULL, NULL, &e))
		fail_msg("%s: %s", name, e.text);
}

static void every_machine_file_has_the_expected_nodes_cpus_and_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR(shapes); i++) {
		const struct shape *s = &shapes[i];
		struct topo t;

		load(s->name, &t);
		int giant = topo_kind_of_page(&t, UINT64_C(1) << GIB_SHIFT);
		assert_non_null(strstr(s->name, t.name));
		assert_false(t.this_machine);
		assert_int_equal(t.ids.nr, s->nodes);
		assert_int_equal(t.nr_sockets, s->sockets);
		assert_int_equal(t.nr_cores, s->cores);
		assert_int_equal(t.nr_cpus, s->cpus);
		assert_int_equal(t.nr_uncores, s->uncores);
		assert_int_equal(topo_memory_of(&t, t.nodes, 0) >> GIB_SHIFT, s->gib[0]);
		assert_true(giant > 0);
		assert_int_equal(
			topo_memory_of(&t, t.nodes, (unsigned)giant) >> GIB_SHIFT, s->gib[1]);
		assert_int_equal(s->nodes - nodeset_count(t.nodes_with_cpus), s->no_cpus);
		assert_int_equal(s->nodes - nodeset_count(t.nodes_with_memory), s->no_memory);
		int from = node_index(&t.ids, s->from), to = node_index(&t.ids, s->to);
		assert_true(from >= 0 && to >= 0);
		assert_int_equal(t.distance[from][to], s->there);
		assert_int_equal(t.distance[to][from], s->back);
	}
}

static void export_and_read(const char *path, char *buf)
{
	struct topo before, after;
	struct text out;

	load(path, &before);
	text_init(&out, buf, MACHINE_TEXT_MAX);
	machine_text_write(&before, &out);
	assert_int_equal(machine_text_parse(buf, out.len, &after, NULL), 0);
	assert_string_equal(after.name, before.name);
	assert_int_equal(topo_fingerprint(&after), topo_fingerprint(&before));
	assert_true(nodeset_equal(after.device_memory, before.device_memory));
}

static size_t export_folder(const char *folder, char *buf)
{
	DIR *d = opendir(folder);
	const struct dirent *entry;
	size_t found = 0;

	assert_non_null(d);
	while ((entry = readdir(d))) {
		char path[sizeof entry->d_name + 32];

		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "recorded") == 0)
			continue;
		(void)snprintf(path, sizeof path, "%s%s", folder, entry->d_name);
		export_and_read(path, buf);
		found++;
	}
	assert_int_equal(closedir(d), 0);
	return found;
}

static void every_machine_in_the_folders_can_be_exported_as_text(void **state)
{
	auto_free char *buf = xcalloc(MACHINE_TEXT_MAX, 1);
	size_t found = export_folder("test/machines/", buf) + export_folder(RECORDED, buf);

	(void)state;
	assert_int_equal(found, NR(shapes)); /* each has its row above */
}

/* The averages that KEP-3545 works out, the leftmost bit of its masks being node 0. Its last one,
 * 11100000, it divides by 6 and gets 16.7, but there are 9 pairs: 100 / 9. */
static void average_distances_of_both_kep_machines_are_those_of_the_kep(void **state)
{
	static const struct {
		const char *machine, *nodes;
		unsigned sum, pairs;
	} cases[] = {
		{"kep3545-4", "0,1", 42, 4},  /* 1100: 10.5 */
		{"kep3545-4", "0,2", 44, 4},  /* 1010: 11 */
		{"kep3545-4", "0,3", 44, 4},  /* 1001: 11 */
		{"kep3545-4", "2-3", 42, 4},  /* 0011: 10.5 */
		{"kep3545-4", "1-2", 44, 4},  /* 0110: 11 */
		{"kep3545-8", "0,4", 80, 4},  /* 10001000: 20 */
		{"kep3545-8", "3,7", 80, 4},  /* the same bits read from the right */
		{"kep3545-8", "0-2", 100, 9}, /* 11100000: 11.1 */
		{"kep3545-8", "5-7", 100, 9}, /* the same bits read from the right */
		{"kep3545-8", "6", 10, 1},
	};

	(void)state;
	for (size_t i = 0; i < NR(cases); i++) {
		struct topo t;
		struct nodeset nodes;

		load(cases[i].machine, &t);
		assert_int_equal(
			nodeset_parse(&nodes, &t.ids, cases[i].nodes, strlen(cases[i].nodes), NULL),
			0);
		assert_int_equal(topo_distance_sum(&t, nodes), cases[i].sum);
		assert_true(
			topo_distance_average(&t, nodes) == (double)cases[i].sum / cases[i].pairs);
	}
}

static void the_laptop_numbers_threads_next_to_each_other(void **state)
{
	struct topo t;

	(void)state;
	load("laptop", &t);
	assert_int_equal(t.cpu[1].core, 0);
	assert_int_equal(t.cpu[7].core, 6);
}

static void an_hwloc_xml_keeps_cores_caches_and_distances(void **state)
{
	struct topo t;

	(void)state;
	load("epyc-nps2", &t);
	assert_int_equal(t.cpu[25].core, 9);
	assert_int_equal(t.cpu[25].node, 2);
	assert_int_equal(t.cpu[25].socket, 1);
	assert_int_equal(t.cpu[25].uncore, 2);
	assert_int_equal(t.distance[0][1], 12);
	assert_int_equal(t.distance[0][2], 32);
	assert_int_equal(t.nr_kinds, 3);
	assert_int_equal(t.node[3].memory[1], UINT64_C(1) << GIB_SHIFT);
}

/* Nodes 1 and 8 have memory only: 8 is nearest to node 2, and 1 as near to 0 as to 2; hwloc would
 * give them those nodes' CPUs. CPU 5 is offline, the other thread of its core is not. */
static void a_recorded_tree_keeps_gaps_and_memory_only_nodes(void **state)
{
	static const struct {
		unsigned id, gib;
		const char *cpus;
	} nodes[] = {{0, 8, "0-3"}, {1, 4, ""}, {2, 8, "4,6-7"}, {8, 16, ""}};
	struct topo t;

	(void)state;
	load("sparse-nodes", &t);
	assert_int_equal(t.ids.nr, NR(nodes));
	for (unsigned n = 0; n < NR(nodes); n++) {
		char cpus[CPUSET_TEXT_MAX];

		assert_int_equal(t.ids.id[n], nodes[n].id);
		assert_int_equal(t.node[n].memory[0] >> GIB_SHIFT, nodes[n].gib);
		assert_string_equal(
			cpuset_format(&t.node[n].cpus, cpus, sizeof cpus), nodes[n].cpus);
	}
	assert_int_equal(t.node[0].memory[1], UINT64_C(512) << 20);
	assert_int_equal(t.cpu[4].core, 4);
	assert_int_equal(t.cpu[7].core, 6);
	assert_int_equal(t.cpu[4].socket, 3);
	assert_int_equal(t.distance[2][3], 17);
	assert_int_equal(t.distance[3][1], 50);
}

static void a_cluster_shares_its_sockets_cache(void **state)
{
	struct topo t;

	(void)state;
	load("snc4-2s", &t);
	assert_int_equal(t.cpu[13].node, 0);
	assert_int_equal(t.cpu[14].node, 1);
	assert_int_equal(t.cpu[112].core, 0);
	assert_int_equal(t.cpu[13].uncore, t.cpu[55].uncore);
	assert_int_not_equal(t.cpu[55].uncore, t.cpu[56].uncore);
}

/* Of cores 3, 5 and 12 both threads, the first and the second one are offline. */
static void offline_cpus_are_left_out_and_isolated_ones_are_kept(void **state)
{
	char list[CPUSET_TEXT_MAX];
	struct topo t;

	(void)state;
	load("offline", &t);
	assert_string_equal(cpuset_format(&t.cpus, list, sizeof list), "0-2,4,6-18,20-27,29-31");
	assert_int_equal(t.cpu[21].core, 21);
	assert_int_equal(t.cpu[12].core, 12);
	assert_int_equal(t.cpu[22].core, 6);
}

static void the_threads_of_a_power_core_are_neighbours(void **state)
{
	struct topo t;

	(void)state;
	load("power9", &t);
	assert_int_equal(t.cpu[7].core, 4);
	assert_int_equal(t.cpu[83].core, 80);
	assert_int_equal(t.cpu[7].uncore, t.cpu[0].uncore);
	assert_int_not_equal(t.cpu[8].uncore, t.cpu[0].uncore);
}

/* As the driver says (numa_status), as hwloc's XML says (GPUMemory), as firmware says (generic
 * initiators: the nodes of a GPU's parts have no memory until it is divided), and as a text says.
 */
static void memory_of_gpus_is_marked_and_that_of_expanders_is_not(void **state)
{
	static const struct {
		const char *machine, *nodes;
	} cases[] = {
		{RECORDED "power9-v100", "250-255"},
		{RECORDED "gpu-memory.xml", "250-255"},
		{RECORDED "gb200-mig", "2-33"},
		{"power9", "250-255"},
		{"gb200", "2-33"},
		{"sparse-nodes", ""},
		{"cxl", ""},
		{"hbm-flat", ""},
		{RECORDED "fake-numa", ""},
	};

	(void)state;
	for (size_t i = 0; i < NR(cases); i++) {
		char list[NODESET_TEXT_MAX];
		struct topo t;

		load(cases[i].machine, &t);
		assert_string_equal(
			nodeset_format(t.device_memory, &t.ids, list, sizeof list), cases[i].nodes);
	}
}

/* What cadvisor makes of these trees (GetNodesInfo of v0.56.2, run with them as its /sys): CPUs
 * that no node has do not exist, one that several nodes list belongs to the smallest. */
static void nodes_have_the_cpus_that_the_kubelet_sees(void **state)
{
	static const struct {
		const char *machine, *cpus[6], *nodeless;
	} cases[] = {
		{RECORDED "node0-offline", {"1,3,5,7"}, "0,2,4,6"},
		{RECORDED "fake-numa", {"0-7", "", "", ""}, ""},
		{RECORDED "fake-hybrid", {"0-1", "4-5", "", "10-11", "8-9", "6-7"}, "2-3"},
		{"sparse-nodes", {"0-3", "", "4,6-7", ""}, ""},
		{RECORDED "kvm-a", {"0-1,4-5", "2-3,6-7"}, ""},
		{RECORDED "l3-b", {"0,2,4,6,8,10,12,14", "1,3,5,7,9,11,13,15"}, ""},
	};

	(void)state;
	for (size_t i = 0; i < NR(cases); i++) {
		char list[CPUSET_TEXT_MAX];
		struct topo t;

		load(cases[i].machine, &t);
		nodeset_each (n, t.nodes)
			assert_string_equal(cpuset_format(&t.node[n].cpus, list, sizeof list),
				cases[i].cpus[n]);
		assert_string_equal(
			cpuset_format(&t.nodeless, list, sizeof list), cases[i].nodeless);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_machine_file_has_the_expected_nodes_cpus_and_memory),
		cmocka_unit_test(every_machine_in_the_folders_can_be_exported_as_text),
		cmocka_unit_test(average_distances_of_both_kep_machines_are_those_of_the_kep),
		cmocka_unit_test(the_laptop_numbers_threads_next_to_each_other),
		cmocka_unit_test(an_hwloc_xml_keeps_cores_caches_and_distances),
		cmocka_unit_test(a_recorded_tree_keeps_gaps_and_memory_only_nodes),
		cmocka_unit_test(a_cluster_shares_its_sockets_cache),
		cmocka_unit_test(offline_cpus_are_left_out_and_isolated_ones_are_kept),
		cmocka_unit_test(the_threads_of_a_power_core_are_neighbours),
		cmocka_unit_test(memory_of_gpus_is_marked_and_that_of_expanders_is_not),
		cmocka_unit_test(nodes_have_the_cpus_that_the_kubelet_sees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
