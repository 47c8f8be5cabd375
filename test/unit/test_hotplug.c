#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <codec/machine_text.h>
#include <host/device_memory.h>
#include <host/discover.h>
#include <host/hotplug.h>
#include <host/isolated.h>
#include <ftw.h>
#include <numafit/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIB(n) ((uint64_t)(n) << 30)

/* A machine, and the part of its /sys that changes, written anew by each test. */
static const char text[] = "machine two\n"
			   "node 0 memory 8Gi hugepages-2Mi 16 cpus 0-3,8-11 smt 2\n"
			   "node 4 memory 8Gi hugepages-2Mi 0 cpus 4-7,12-15 socket 1 smt 2\n"
			   "distances\n10 21\n21 10\n";

struct tree {
	char dir[64];
	struct topo t;
	struct hotplug now;
};

static void put(const struct tree *tree, const char *name, const char *content)
{
	char path[256];

	(void)snprintf(path, sizeof path, "%s/%s", tree->dir, name);
	for (char *at = strchr(path + strlen(tree->dir) + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)mkdir(path, 0755);
		*at = '/';
	}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(content, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

static void remove_below(const struct tree *tree, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof path, "%s/%s", tree->dir, name);
	(void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int setup(void **state)
{
	struct tree *tree = calloc(1, sizeof *tree);

	*state = tree;
	(void)strcpy(tree->dir, "/tmp/numafit-hotplug-XXXXXX");
	assert_non_null(mkdtemp(tree->dir));
	assert_int_equal(machine_text_parse(text, sizeof text - 1, &tree->t, NULL), 0);
	tree->t.this_machine = true;
	put(tree, "sys/devices/system/cpu/online", "0-15\n");
	put(tree, "sys/devices/system/node/node0/meminfo",
		"Node 0 MemTotal:        8388608 kB\nNode 0 MemFree:  12 kB\n");
	put(tree, "sys/devices/system/node/node4/meminfo", "Node 4 MemTotal: 8388608 kB\n");
	put(tree, "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "16\n");
	put(tree, "sys/devices/system/node/node4/hugepages/hugepages-2048kB/nr_hugepages", "0\n");
	return 0;
}

static int teardown(void **state)
{
	remove_below(*state, "");
	free(*state);
	return 0;
}

static int read_now(struct tree *tree, struct err *e)
{
	int rc = hotplug_read_cpus(tree->dir, &tree->now.online, e);

	for (unsigned n = 0; n < tree->t.ids.nr && !rc; n++)
		rc = hotplug_read_node(tree->dir, &tree->t, n, &tree->now, e);
	return rc;
}

static void an_unchanged_machine_shows_no_difference(void **state)
{
	struct tree *tree = *state;

	assert_int_equal(read_now(tree, NULL), 0);
	assert_false(hotplug_differs(&tree->t, &tree->now));
}

static void offline_cpus_are_those_that_are_present_and_not_online(void **state)
{
	struct tree *tree = *state;
	struct cpuset offline = {{0x55}};
	char list[CPUSET_TEXT_MAX];

	assert_int_equal(hotplug_read_offline(tree->dir, &offline, NULL), -ENOENT);
	assert_int_equal(*offline.w, 0x55);
	put(tree, "sys/devices/system/cpu/present", "0-15\n");
	put(tree, "sys/devices/system/cpu/possible", "0-31\n");
	put(tree, "sys/devices/system/cpu/online", "0-3,5-14\n");
	assert_int_equal(hotplug_read_offline(tree->dir, &offline, NULL), 0);
	assert_string_equal(cpuset_format(&offline, list, sizeof list), "4,15");
}

static void a_cpu_listed_by_another_node_is_a_contradiction(void **state)
{
	struct tree *tree = *state;
	struct cpuset cpus = tree->t.node[0].cpus;
	char list[CPUSET_TEXT_MAX];

	assert_int_equal(read_now(tree, NULL), 0);
	assert_false(hotplug_contradicts(&tree->t, &tree->now)); /* nothing is listed */
	(void)cpuset_format(&cpus, list, sizeof list);
	put(tree, "sys/devices/system/node/node0/cpulist", list);
	put(tree, "sys/devices/system/node/node4/cpulist",
		"\n"); /* they are offline, or not yet there */
	assert_int_equal(read_now(tree, NULL), 0);
	assert_false(hotplug_contradicts(&tree->t, &tree->now));
	put(tree, "sys/devices/system/node/node4/cpulist", list); /* firmware that lists CPUs twice */
	assert_int_equal(read_now(tree, NULL), 0);
	assert_false(hotplug_contradicts(&tree->t, &tree->now));
	put(tree, "sys/devices/system/node/node0/cpulist", "\n");
	assert_int_equal(read_now(tree, NULL), 0);
	assert_true(hotplug_contradicts(&tree->t, &tree->now));
	put(tree, "sys/devices/system/node/node4/cpulist", "0-\n");
	assert_int_equal(read_now(tree, NULL), -EINVAL);
}

static void a_cpu_goes_and_comes_back_as_it_was(void **state)
{
	struct tree *tree = *state;
	struct topo t, again;

	put(tree, "sys/devices/system/cpu/online", "1-9,11-15\n");
	assert_int_equal(read_now(tree, NULL), 0);
	assert_true(hotplug_differs(&tree->t, &tree->now));
	assert_int_equal(hotplug_apply(&tree->t, &tree->now, &t, NULL), 0);
	assert_false(hotplug_differs(&t, &tree->now));
	assert_int_equal(t.nr_cpus, 14);
	assert_true(t.this_machine);
	assert_int_equal(t.cpu[8].core, 8); /* the other thread of CPU 0's core goes on alone */
	assert_int_equal(t.cpu[2].node, 0);
	assert_int_equal(t.distance[0][1], 21);

	put(tree, "sys/devices/system/cpu/online", "0-15\n");
	assert_int_equal(read_now(tree, NULL), 0);
	assert_true(hotplug_differs(&t, &tree->now));
	assert_int_equal(hotplug_apply(&tree->t, &tree->now, &again, NULL), 0);
	assert_memory_equal(&again, &tree->t, sizeof again);
}

static void memory_and_huge_pages_change(void **state)
{
	struct tree *tree = *state;
	struct topo t;

	put(tree, "sys/devices/system/node/node4/meminfo", "Node 4 MemTotal: 4194304 kB\n");
	put(tree, "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "32\n");
	assert_int_equal(read_now(tree, NULL), 0);
	assert_true(hotplug_differs(&tree->t, &tree->now));
	assert_int_equal(hotplug_apply(&tree->t, &tree->now, &t, NULL), 0);
	assert_int_equal(t.node[1].memory[0], GIB(4));
	assert_int_equal(t.node[0].memory[1], 64 << 20);
	assert_int_equal(t.node[0].memory[0], GIB(8));
}

static void a_node_that_goes_offline_has_no_cpus_and_memory(void **state)
{
	struct tree *tree = *state;
	struct topo t;

	remove_below(tree, "sys/devices/system/node/node4");
	put(tree, "sys/devices/system/cpu/online", "0-3,8-11\n");
	assert_int_equal(read_now(tree, NULL), 0);
	assert_int_equal(hotplug_apply(&tree->t, &tree->now, &t, NULL), 0);
	assert_int_equal(t.ids.nr, 2);
	assert_int_equal(t.node[1].memory[0], 0);
	assert_true(cpuset_empty(&t.node[1].cpus));

	/* a kernel without NUMA shows no node at all, and nothing has gone */
	remove_below(tree, "sys/devices/system/node");
	assert_int_equal(read_now(tree, NULL), 0);
	assert_int_equal(tree->now.memory[1][0], GIB(8));
}

/* A driver that is started late brings its device's memory online as a node. */
static void memory_that_a_driver_brings_online_belongs_to_its_device(void **state)
{
	static const char with_gpu[] = "machine gpu\nnode 0 memory 8Gi cpus 0-3\nnode 1 memory 8Gi "
				       "cpus 4-7\nnode 252 memory 0\nnode 253 memory 0\n";
	struct tree *tree = *state;
	struct topo t;

	remove_below(tree, "sys/devices/system/node");
	assert_int_equal(machine_text_parse(with_gpu, sizeof with_gpu - 1, &tree->t, NULL), 0);
	put(tree, "sys/devices/system/cpu/online", "0-7\n");
	put(tree, "sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8388608 kB\n");
	put(tree, "sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 8388608 kB\n");
	put(tree, "sys/devices/system/node/node252/meminfo", "Node 252 MemTotal: 0 kB\n");
	put(tree, "sys/devices/system/node/node253/meminfo", "Node 253 MemTotal: 0 kB\n");
	tree->now.device_memory = device_memory_read(tree->dir, &tree->t.ids);
	assert_true(nodeset_empty(tree->now.device_memory));

	/* one GPU's is a node, another one's is not, a third one names a node that has CPUs */
	put(tree, "proc/driver/nvidia/gpus/0004:05:00.0/numa_status",
		"Node:  252\nStatus: online\n");
	put(tree, "proc/driver/nvidia/gpus/0004:06:00.0/numa_status", "Node:  -1\n");
	put(tree, "proc/driver/nvidia/gpus/0006:00:00.0/numa_status", "Status: offline\nNode: 1\n");
	put(tree, "proc/driver/nvidia/gpus/0007:00:00.0/information", "Model: none\n");
	put(tree, "sys/devices/system/node/has_generic_initiator", "0,253,999\n");
	put(tree, "sys/devices/system/node/node252/meminfo", "Node 252 MemTotal: 8388608 kB\n");
	assert_int_equal(read_now(tree, NULL), 0);
	tree->now.device_memory = device_memory_read(tree->dir, &tree->t.ids);
	assert_true(hotplug_differs(&tree->t, &tree->now));
	assert_int_equal(hotplug_apply(&tree->t, &tree->now, &t, NULL), 0);
	assert_int_equal(t.device_memory.bits, 1 << 2 | 1 << 3);
	assert_int_equal(t.node[2].memory[0], GIB(8));
	assert_false(hotplug_differs(&t, &tree->now));

	/* the driver is gone, its memory is not: once a device's, always a device's */
	remove_below(tree, "proc");
	tree->now.device_memory = device_memory_read(tree->dir, &tree->t.ids);
	assert_false(hotplug_differs(&t, &tree->now));
	struct topo later;
	assert_int_equal(hotplug_apply(&t, &tree->now, &later, NULL), 0);
	assert_int_equal(later.device_memory.bits, 1 << 2 | 1 << 3);
	/* nor does a node become one that only lost its CPUs for a while */
	put(tree, "sys/devices/system/cpu/online", "4-7\n");
	assert_int_equal(read_now(tree, NULL), 0);
	assert_int_equal(hotplug_apply(&t, &tree->now, &later, NULL), 0);
	assert_int_equal(later.device_memory.bits, 1 << 2 | 1 << 3);
}

static void unknown_cpus_need_a_new_discovery(void **state)
{
	struct tree *tree = *state;
	struct topo t;
	struct err e;

	put(tree, "sys/devices/system/cpu/online", "0-16,20\n");
	assert_int_equal(read_now(tree, NULL), 0);
	assert_int_equal(hotplug_apply(&tree->t, &tree->now, &t, &e), -ENXIO);
	assert_string_equal(e.text, "nothing is known of CPUs 16,20");
}

/* Node 4 was offline at the start, its CPUs were not. */
static void cpus_of_no_node_come_and_go_unnoticed(void **state)
{
	struct tree *tree = *state;
	struct topo t;

	for (unsigned cpu = 16; cpu < 20; cpu++)
		cpuset_add(&tree->t.nodeless, cpu);
	put(tree, "sys/devices/system/cpu/online", "0-19\n");
	assert_int_equal(read_now(tree, NULL), 0);
	assert_false(hotplug_differs(&tree->t, &tree->now));
	put(tree, "sys/devices/system/cpu/online", "0-14,17\n");
	assert_int_equal(read_now(tree, NULL), 0);
	assert_true(hotplug_differs(&tree->t, &tree->now));
	assert_int_equal(hotplug_apply(&tree->t, &tree->now, &t, NULL), 0);
	assert_int_equal(t.nr_cpus, 15);
	assert_int_equal(cpuset_count(&t.nodeless), 4);
	put(tree, "sys/devices/system/cpu/online", "0-14,17,20\n");
	assert_int_equal(read_now(tree, NULL), 0);
	assert_int_equal(hotplug_apply(&tree->t, &tree->now, &t, NULL), -ENXIO);
}

static void malformed_files_of_sysfs_are_an_error(void **state)
{
	static const struct {
		const char *file, *content;
		int want;
	} cases[] = {
		{"sys/devices/system/cpu/online", "3-1", -EINVAL},
		{"sys/devices/system/node/node0/meminfo", "Node 0 MemFree: 1 kB\n", -EINVAL},
		{"sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: much\n", -EINVAL},
		{"sys/devices/system/node/node0/meminfo",
			"Node 0 MemTotal: 99999999999999999999 kB\n", -ERANGE},
		{"sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "x",
			-EINVAL},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct err e;

		assert_int_equal(teardown(state), 0);
		assert_int_equal(setup(state), 0);
		put(*state, cases[i].file, cases[i].content);
		assert_int_equal(read_now(*state, &e), cases[i].want);
	}
}

static void a_machine_without_an_online_cpu_is_an_error(void **state)
{
	struct tree *tree = *state;
	struct topo t;

	assert_int_equal(read_now(tree, NULL), 0);
	tree->now.online = (struct cpuset){0};
	assert_true(hotplug_apply(&tree->t, &tree->now, &t, NULL) < 0);
}

/* What discovery finds and what is read from files is the same, or all would change at once. */
static void this_machine_is_as_it_was_discovered(void **state)
{
	struct hotplug now = {0};
	struct topo t;

	(void)state;
	assert_int_equal(machine_load("this", &t, NULL, NULL, NULL), 0);
	assert_int_equal(hotplug_read_cpus("/", &now.online, NULL), 0);
	for (unsigned n = 0; n < t.ids.nr; n++)
		assert_int_equal(hotplug_read_node("/", &t, n, &now, NULL), 0);
	assert_false(hotplug_differs(&t, &now));
}

static void isolated_cpus_are_those_of_the_command_line_and_of_partitions(void **state)
{
	static const struct {
		const char *command_line, *partitions, *want; /* NULL: no such file */
	} table[] = {
		{NULL, NULL, ""},
		{"\n", "\n", ""},
		{"4-7\n", NULL, "4-7"},
		{"4-7\n", "6-9\n", "4-9"},
		{NULL, "1\n", "1"},
		{"nonsense\n", "1\n", "1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		char root[] = "/tmp/numafit-isolated.XXXXXX", list[CPUSET_TEXT_MAX], command[1024];

		assert_non_null(mkdtemp(root));
		(void)snprintf(command, sizeof command,
			"mkdir -p %s/sys/devices/system/cpu %s/sys/fs/cgroup", root, root);
		assert_int_equal(system(command), 0);
		for (int k = 0; k < 2; k++) {
			const char *content = k ? table[i].partitions : table[i].command_line;
			char path[512];

			(void)snprintf(path, sizeof path, "%s/%s", root,
				k ? "sys/fs/cgroup/cpuset.cpus.isolated"
				  : "sys/devices/system/cpu/isolated");
			FILE *f = content ? fopen(path, "w") : NULL;
			if (f)
				(void)fputs(content, f);
			if (f)
				(void)fclose(f);
		}
		const struct cpuset is = isolated_read(root);
		assert_string_equal(cpuset_format(&is, list, sizeof list), table[i].want);
		(void)snprintf(command, sizeof command, "rm -r %s", root);
		assert_int_equal(system(command), 0);
	}
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(an_unchanged_machine_shows_no_difference),
		CASE(offline_cpus_are_those_that_are_present_and_not_online),
		CASE(a_cpu_listed_by_another_node_is_a_contradiction),
		CASE(a_cpu_goes_and_comes_back_as_it_was),
		CASE(memory_and_huge_pages_change),
		CASE(a_node_that_goes_offline_has_no_cpus_and_memory),
		CASE(memory_that_a_driver_brings_online_belongs_to_its_device),
		CASE(unknown_cpus_need_a_new_discovery),
		CASE(cpus_of_no_node_come_and_go_unnoticed),
		CASE(malformed_files_of_sysfs_are_an_error),
		CASE(a_machine_without_an_online_cpu_is_an_error),
		cmocka_unit_test(isolated_cpus_are_those_of_the_command_line_and_of_partitions),
		cmocka_unit_test(this_machine_is_as_it_was_discovered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
