#include <host/discover.h>

#include <errno.h>
#include <host/machine_find.h>
#include <host/machine_kernel.h>
#include <host/machine_numa.h>
#include <numafit/mem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NR(a) (sizeof(a) / sizeof *(a))

enum { PATH_SPACE = 512 };

/* A folder of our own for every case. */
static char folder[PATH_SPACE];

static int make_folder(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	(void)snprintf(folder, sizeof folder, "%s/numafit-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[PATH_SPACE + 16];

	(void)state;
	(void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

/* A file in it; returns its path, valid until the next call. */
static const char *put(const char *name, const char *content)
{
	static char path[PATH_SPACE * 2];
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(content, f) >= 0);
	assert_int_equal(fclose(f), 0);
	return path;
}

static void load_ok(const char *what, struct topo *t)
{
	struct err e = {0};

	if (machine_load(what, t, NULL, NULL, &e))
		fail_msg("%s: %s", what, e.text);
}

static void no_note(void *ctx, const struct correction *c)
{
	char text[CORRECTION_TEXT_MAX];

	(void)ctx;
	fail_msg("an unexpected correction: %s", correction_text(c, text));
}

static void this_machine_is_what_the_kernel_says(void **state)
{
	struct topo t;
	struct err e = {0};
	char line[CPUSET_TEXT_MAX], cpus[CPUSET_TEXT_MAX];

	(void)state;
	if (machine_load("this", &t, NULL, NULL, &e))
		fail_msg("%s", e.text);
	assert_true(t.this_machine);
	assert_string_equal(t.name, "this");
	FILE *f = fopen("/sys/devices/system/cpu/online", "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof line, f));
	assert_int_equal(fclose(f), 0);
	line[strcspn(line, "\n")] = '\0';
	assert_string_equal(cpuset_format(&t.cpus, cpus, sizeof cpus), line);
	assert_true(t.node[0].memory[0] > 0);
	assert_int_equal(t.distance[0][0], DISTANCE_MIN);
}

static void a_machine_from_a_text_is_named_after_its_file(void **state)
{
	struct topo t;

	(void)state;
	load_ok(put("mine.machine", "machine other\nnode 0 cpus 0-3\n"), &t);
	assert_string_equal(t.name, "mine");
	assert_false(t.this_machine);
	assert_int_equal(t.nr_cpus, 4);
	load_ok(put("no-suffix", "machine other\nnode 0 cpus 0\n"), &t);
	assert_string_equal(t.name, "no-suffix");
}

static void a_machine_that_cannot_be_used_is_refused_with_its_file(void **state)
{
	static const struct {
		const char *file, *content, *error;
		int rc;
	} cases[] = {
		{"bad.machine", "machine bad\nnode 0 cpus 0,0\n",
			"/bad.machine: line 2: node 0: CPU 0 is there twice", -EEXIST},
		{"bad.xml", "<topology>", "/bad.xml: hwloc cannot read this: ", 0},
		{"my machine.machine", "machine m\nnode 0 cpus 0\n",
			"a machine is called like its file", -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < NR(cases); i++) {
		struct topo t = {.name = "untouched"};
		struct err e = {0};
		int rc = machine_load(put(cases[i].file, cases[i].content), &t, no_note, NULL, &e);

		assert_true(cases[i].rc ? rc == cases[i].rc : rc < 0);
		if (!strstr(e.text, cases[i].error))
			fail_msg("\"%s\" instead of \"%s\"", e.text, cases[i].error);
		assert_string_equal(t.name, "untouched");
	}
}

static void a_path_to_nothing_and_a_folder_of_no_machine_are_refused(void **state)
{
	char path[PATH_SPACE * 2];
	struct topo t;
	struct err e = {0};

	(void)state;
	(void)snprintf(path, sizeof path, "%s/nothing.machine", folder);
	assert_int_equal(machine_load(path, &t, NULL, NULL, &e), -ENOENT);
	assert_non_null(strstr(e.text, "nothing.machine: No such file"));
	(void)snprintf(path, sizeof path, "%s/empty", folder);
	assert_int_equal(mkdir(path, S_IRWXU), 0);
	assert_int_equal(machine_load(path, &t, NULL, NULL, &e), -EINVAL);
	assert_non_null(
		strstr(e.text, "/empty: not a recorded tree: sys/devices/system/cpu: No such"));
}

static void run(const char *command);

/* What was done to a copy of a recorded tree, and what is said of it; NULL: it is read. */
static void a_recorded_tree_without_a_part_is_refused_with_the_name_of_that_part(void **state)
{
	static const struct {
		const char *done, *error;
	} cases[] = {
		{"true", NULL},
		{"rm -r sys proc", "not a recorded tree: sys/devices/system/cpu: No such file"},
		{"rm -r sys/devices/system/cpu/cpu*",
			"sys/devices/system/cpu/cpu0/topology: No such file or directory"},
		{"rm -r sys/devices/system/cpu/cpu*/topology",
			"sys/devices/system/cpu/cpu0/topology: No such file or directory"},
		{"rm -r sys/devices/system/cpu/cpu*/topology sys/devices/system/cpu/online",
			"no CPU in sys/devices/system/cpu has a folder topology"},
		{"rm -r sys/devices/system/cpu/cpu6/topology",
			"sys/devices/system/cpu/cpu6/topology: No such file or directory"},
		{"rm sys/devices/system/cpu/cpu6/topology/*",
			"sys/devices/system/cpu/cpu6/topology has none of core_cpus, "
			"thread_siblings, package_cpus, core_siblings"},
		{"mkdir sys/devices/system/cpu/cpu9 && cp -R sys/devices/system/cpu/cpu6/topology "
		 "sys/devices/system/cpu/cpu9 && echo 0-4,6-7,9 >sys/devices/system/cpu/online",
			NULL},
		{"rm -r sys/devices/system/cpu && echo >sys/devices/system/cpu",
			"sys/devices/system/cpu: Not a directory"},
		{"echo 0-x >sys/devices/system/cpu/online",
			"not a recorded tree: sys/devices/system/cpu/online: "},
		{"rm sys/devices/system/node/node2/cpumap",
			"sys/devices/system/node/node2/cpumap: No such file or directory"},
		{"rm sys/devices/system/node/node2/meminfo",
			"sys/devices/system/node/node2/meminfo: No such file or directory"},
		{"echo Node 2 MemFree: 1 kB >sys/devices/system/node/node2/meminfo",
			"sys/devices/system/node/node2/meminfo: there is no MemTotal:"},
		{"echo z >sys/devices/system/node/node2/cpumap",
			"sys/devices/system/node/node2/cpumap: \"z"},
		{"echo 0-2,9 >sys/devices/system/node/online",
			"sys/devices/system/node/node9/cpumap: No such file or directory"},
		{"echo 0-1,8 >sys/devices/system/node/online",
			"sys/devices/system/node/node2: nothing is read there"},
		{"echo 4,6-7 >sys/devices/system/node/node2/cpulist && "
		 "rm sys/devices/system/node/node2/cpumap",
			NULL},
		/* what old kernels do not have, or whole kinds of kernels */
		{"rm sys/devices/system/cpu/online sys/devices/system/node/online", NULL},
		{"rm -r sys/devices/system/node", NULL},
		{"mkdir sys/devices/system/cpu/cpu5", NULL}, /* offline */
	};

	(void)state;
	for (size_t i = 0; i < NR(cases); i++) {
		char command[PATH_SPACE * 6], path[PATH_SPACE * 2];
		struct topo t = {.name = "untouched"};
		struct err e = {0};

		(void)snprintf(path, sizeof path, "%s/tree%zu", folder, i);
		(void)snprintf(command, sizeof command,
			"cp -R test/machines/sparse-nodes '%s' && cd '%s' && %s", path, path,
			cases[i].done);
		run(command);
		int rc = machine_load(path, &t, NULL, NULL, &e);
		if (!cases[i].error) {
			if (rc)
				fail_msg("%s: %s", cases[i].done, e.text);
			continue;
		}
		if (rc != -EINVAL || !strstr(e.text, cases[i].error))
			fail_msg("%s: %d \"%s\" instead of \"%s\"", cases[i].done, rc, e.text,
				cases[i].error);
		assert_string_equal(t.name, "untouched");
	}
}

/* hwloc says on its standard error why it does not read an XML: that is the reason, and nothing of
 * it gets through. */
static void the_reason_of_hwloc_is_in_the_error(void **state)
{
	static const struct {
		const char *command, *error;
	} cases[] = {
		{"sed 's/topology version=\"2.0\"/topology version=\"3.0\"/'",
			"/t.xml: hwloc cannot read this: cannot import XML version 3.0 > 2"},
		{"head -c 2000", "/t.xml: hwloc cannot read this: Failed to parse XML input"},
		{"head -c 0", "/t.xml: hwloc cannot read this: "},
		{"sed 's/type=\"Package\"/type=\"Parcel\"/'", "/t.xml: hwloc cannot read this: "},
		{"sed 's/nodeset=\"/n=\"/'", "/t.xml: hwloc cannot read this: "},
	};

	(void)state;
	for (size_t i = 0; i < NR(cases); i++) {
		char command[PATH_SPACE * 6], path[PATH_SPACE * 2], errors[PATH_SPACE * 2];
		struct topo t;
		struct err e = {0};
		struct stat st;

		(void)snprintf(path, sizeof path, "%s/t.xml", folder);
		(void)snprintf(errors, sizeof errors, "%s/errors", folder);
		(void)snprintf(command, sizeof command, "%s test/machines/epyc-nps2.xml >'%s'",
			cases[i].command, path);
		run(command);
		int ours = dup(STDERR_FILENO);
		assert_non_null(freopen(errors, "w", stderr));
		int rc = machine_load(path, &t, no_note, NULL, &e);
		(void)fflush(stderr);
		assert_int_equal(stat(errors, &st), 0);
		assert_int_equal(dup2(ours, STDERR_FILENO), STDERR_FILENO);
		assert_int_equal(close(ours), 0);
		assert_true(rc < 0);
		if (!strstr(e.text, cases[i].error) || strstr(e.text, "Invalid argument"))
			fail_msg("%s: \"%s\" instead of \"%s\"", cases[i].command, e.text,
				cases[i].error);
		assert_int_equal(st.st_size, 0);
	}
}

static void run(const char *command)
{
	if (system(command) != 0)
		fail_msg("%s", command);
}

/* A copy of this very program, called with a machine's name, says with its exit code whether it
 * found that: see main(). */
static void a_name_is_looked_up_beside_the_program_too(void **state)
{
	static const char *const programs[][2] = {
		{"build/debug", "test/machines"},
		{"bin", "share/numafit/machines"},
	};
	char self[PATH_SPACE], command[PATH_SPACE * 8];
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
	struct topo t;

	(void)state;
	load_ok("laptop", &t);
	assert_string_equal(t.name, "laptop");
	assert_true(len > 0);
	self[len] = '\0';
	for (size_t i = 0; i < NR(programs); i++) {
		const char *bin = programs[i][0], *home = programs[i][1];

		(void)snprintf(command, sizeof command,
			"cd '%s' && mkdir -p %s %s && cp '%s' %s/prog && cd / && ! '%s/%s/prog' "
			"only-there >/dev/null",
			folder, bin, home, self, bin, folder, bin);
		run(command);
		(void)snprintf(command, sizeof command,
			"cp test/machines/laptop.machine '%s/%s/only-there.machine'", folder, home);
		run(command);
		(void)snprintf(command, sizeof command,
			"cd / && '%s/%s/prog' only-there >/dev/null", folder, bin);
		run(command);
	}
	/* here and beside the program are the same folder now: it is listed once */
	(void)snprintf(command, sizeof command,
		"cd '%s' && test $(build/debug/prog nope | grep -o only-there | wc -l) = 1",
		folder);
	run(command);
}

static void an_unknown_machine_name_is_an_error_that_lists_the_known_ones(void **state)
{
	static const char *const names[] = {"nope", "", ".", "..", "kep3545-8.machine"};

	(void)state;
	for (size_t i = 0; i < NR(names); i++) {
		struct topo t;
		struct err e = {0};

		assert_int_equal(machine_load(names[i], &t, NULL, NULL, &e), -ENOENT);
		assert_non_null(strstr(e.text, "this, "));
		assert_non_null(strstr(e.text, "kep3545-4, kep3545-8, laptop, "));
		assert_non_null(strstr(e.text, ", sparse-nodes"));
		assert_non_null(strstr(e.text, "test/machines"));
		assert_null(strstr(e.text, "README"));
	}
}

static void a_name_is_the_last_part_of_the_path_without_suffix(void **state)
{
	static const struct {
		const char *path, *name;
	} cases[] = {
		{"a/b/c.machine", "c"},
		{"./c.xml", "c"},
		{"/x/tree/", "tree"},
		{"/x/tree//", "tree"},
		{"x/v1.2", "v1.2"},
		{"x/.machine", ".machine"},
		{"/", NULL},
		{"x/a b", NULL},
		{"x/a:b", NULL},
		{"x/a123456789a123456789a123456789a123456789a123456789a123456789a123.xml", NULL},
	};

	(void)state;
	for (size_t i = 0; i < NR(cases); i++) {
		char name[TOPO_NAME_MAX] = "";
		int rc = machine_name_from_path(cases[i].path, name, NULL);

		assert_int_equal(rc, cases[i].name ? 0 : -EINVAL);
		assert_string_equal(name, cases[i].name ? cases[i].name : "");
	}
}

static void hwloc_reads_the_given_tree_whatever_its_environment_says(void **state)
{
	struct topo t;

	(void)state;
	assert_int_equal(setenv("HWLOC_FSROOT", "/nowhere", 1), 0);
	assert_int_equal(setenv("HWLOC_SYNTHETIC", "numa:5 pu:1", 1), 0);
	assert_int_equal(unsetenv("HWLOC_XMLFILE"), 0);
	load_ok("sparse-nodes", &t);
	assert_int_equal(t.ids.nr, 4);
	load_ok("this", &t);
	assert_int_not_equal(t.ids.nr, 5);
	assert_string_equal(getenv("HWLOC_FSROOT"), "/nowhere");
	assert_string_equal(getenv("HWLOC_SYNTHETIC"), "numa:5 pu:1");
	assert_null(getenv("HWLOC_XMLFILE"));
	assert_int_equal(unsetenv("HWLOC_FSROOT"), 0);
	assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
}

/* An environment that makes hwloc hide what drivers call a GPU's memory is obeyed; nothing else
 * hides it. */
static void gpu_memory_is_there_unless_the_environment_hides_it(void **state)
{
	static const char name[] = "HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES";
	struct topo t;

	(void)state;
	assert_int_equal(unsetenv(name), 0);
	load_ok("test/machines/recorded/power9-v100", &t);
	assert_int_equal(t.ids.nr, 8);
	assert_int_equal(setenv(name, "0", 1), 0);
	load_ok("test/machines/recorded/power9-v100", &t);
	assert_int_equal(t.ids.nr, 2);
	assert_string_equal(getenv(name), "0");
	assert_int_equal(unsetenv(name), 0);
}

/* A machine as hwloc exports it, with a string of it replaced by another. */
static void load_changed_xml(const char *old, const char *new, int want, const char *error)
{
	auto_free char *xml = NULL;
	size_t cap = 0;
	char path[PATH_SPACE * 2];
	struct topo t;
	struct err e = {0};

	(void)snprintf(path, sizeof path, "%s/changed.xml", folder);
	FILE *in = fopen("test/machines/epyc-nps2.xml", "r"), *out = fopen(path, "w");
	assert_non_null(in);
	assert_non_null(out);
	assert_true(getdelim(&xml, &cap, '\0', in) > 0);
	const char *at = strstr(xml, old);
	assert_non_null(at);
	assert_true(fprintf(out, "%.*s%s%s", (int)(at - xml), xml, new, at + strlen(old)) > 0);
	assert_int_equal(fclose(in), 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(machine_load(path, &t, NULL, NULL, &e), want);
	if (error && !strstr(e.text, error))
		fail_msg("\"%s\" instead of \"%s\"", e.text, error);
}

static void an_xml_with_too_many_nodes_or_cpus_is_refused(void **state)
{
	(void)state;
	load_changed_xml("local_memory=\"34359738368\"", "local_memory=\"34359738369\"", 0, NULL);
	load_changed_xml("size=\"2097152\" count=\"512\"", "size=\"2097152\" count=\"512000000\"",
		-EINVAL, "changed.xml: NUMA node 0: its huge pages exceed its");
	load_changed_xml("size=\"2097152\" count=\"512\"",
		"size=\"2097152\" count=\"18446744073709551615\"", -ERANGE,
		"changed.xml: NUMA node 0: 18446744073709551615 huge pages are too many");
	load_changed_xml("\"30\">10 12 32 32 12 ", "\"31\">10 12 32 300 12 ", -EINVAL,
		"changed.xml: distance from NUMA node 0 to 3: 300 is outside 10..254");
	load_changed_xml("\"30\">10 12 32 32 12 ", "\"38\">10 12 32 4294967306 12 ", -EINVAL,
		"is outside 10..254");
}

/* Their texts, in order; fail where there is another one. */
static void corrections_have(const struct corrections *found, const char *const *want, size_t nr)
{
	char text[CORRECTION_TEXT_MAX];

	for (size_t i = 0; i < found->nr && i < nr; i++)
		assert_string_equal(correction_text(&found->at[i], text), want[i]);
	assert_int_equal(found->nr, nr);
}

static void each_difference_from_another_source_is_one_correction(void **state)
{
	static const char *const want[] = {
		"the distance from NUMA node 0 to 1 is 20 by the kernel's files; libnuma has 21",
		"NUMA node 1 has CPUs 2-3 by the kernel's files; libnuma has 2,4",
		"NUMA node 2 with no CPUs by the kernel's files: libnuma lacks the NUMA node",
		"NUMA node 9: libnuma has the NUMA node, the kernel's files do not",
	};
	static const char *const of_memory[] = {
		"NUMA node 0 has 2Gi of memory by the kernel's files; hwloc has 1Gi",
		"NUMA node 1 has no CPUs by the kernel's files; hwloc has 1",
	};
	struct corrections found = {0};
	const struct correction_sink to = {corrections_add, &found};
	struct topo a, b;

	(void)state;
	load_ok(put("a", "machine a\nnode 0 cpus 0-1\nnode 1 cpus 2-3\nnode 2\n"
			 "distances\n10 20 30\n20 10 30\n30 30 10\n"),
		&a);
	load_ok(put("b", "machine b\nnode 0 cpus 0-1\nnode 1 cpus 2,4\nnode 9\n"
			 "distances\n10 21 30\n20 10 30\n30 30 10\n"),
		&b);
	machine_compare(&a, &b, SOURCE_LIBNUMA, &to);
	corrections_have(&found, want, NR(want));
	assert_int_equal(found.at[1].kind, CORRECTION_CPUS);
	assert_int_equal(found.at[1].source, SOURCE_LIBNUMA);
	assert_int_equal(found.at[1].node, 1);
	assert_true(cpuset_equal(&found.at[1].theirs, &b.node[1].cpus));
	corrections_fini(&found);
	machine_compare(&a, &a, SOURCE_LIBNUMA, &(struct correction_sink){no_note, NULL});

	load_ok(put("a", "machine a\nnode 0 memory 2Gi cpus 0\nnode 1 memory 1Gi\n"), &a);
	load_ok(put("b", "machine b\nnode 0 memory 1Gi cpus 0\nnode 1 memory 1Gi cpus 1\n"), &b);
	machine_compare(&a, &b, SOURCE_HWLOC, &to);
	corrections_have(&found, of_memory, NR(of_memory));
	corrections_fini(&found);
}

/* What is corrected or doubtful in recorded machines, as data. */
static void corrections_of_recorded_machines_are_known(void **state)
{
	static const struct {
		const char *machine;
		size_t nr;
		struct {
			enum correction_kind kind;
			unsigned node;
			const char *cpus, *theirs;
		} want[2];
	} cases[] = {
		{"test/machines/recorded/kvm-a", 2,
			{{CORRECTION_CPUS, 0, "0-1,4-5", "0-7"},
				{CORRECTION_CPUS, 1, "2-3,6-7", ""}}},
		{"test/machines/recorded/kvm-a.xml", 1, {{CORRECTION_DOUBT, 1, "", "0-7"}}},
		{"test/machines/recorded/fake-numa", 1, {{CORRECTION_LISTED_TWICE, 0, "0-7", ""}}},
		{"test/machines/recorded/fake-hybrid", 2,
			{{CORRECTION_LISTED_TWICE, 3, "10-11", ""},
				{CORRECTION_LISTED_TWICE, 4, "8-9", ""}}},
		{"test/machines/recorded/power9-v100", 0, {{0}}},
		{"test/machines/recorded/gb200-mig", 0, {{0}}},
		{"test/machines/recorded/gpu-memory.xml", 0, {{0}}},
		{"test/machines/recorded/node0-offline", 0, {{0}}},
		{"sparse-nodes", 0, {{0}}},
		{"epyc-nps2", 0, {{0}}},
	};

	(void)state;
	for (size_t i = 0; i < NR(cases); i++) {
		struct corrections found = {0};
		struct topo t;
		char list[CPUSET_TEXT_MAX];

		assert_int_equal(
			machine_load(cases[i].machine, &t, corrections_add, &found, NULL), 0);
		if (found.nr != cases[i].nr)
			fail_msg("%s: %zu corrections", cases[i].machine, found.nr);
		for (size_t k = 0; k < found.nr; k++) {
			const struct correction *c = &found.at[k];

			assert_int_equal(c->kind, cases[i].want[k].kind);
			assert_int_equal(c->node, cases[i].want[k].node);
			assert_string_equal(
				cpuset_format(&c->cpus, list, sizeof list), cases[i].want[k].cpus);
			assert_string_equal(cpuset_format(&c->theirs, list, sizeof list),
				cases[i].want[k].theirs);
			assert_int_equal(correction_is_doubt(c), c->kind == CORRECTION_DOUBT);
		}
		corrections_fini(&found);
	}
}

static void an_xml_without_distances_says_so(void **state)
{
	static const char *const want[] = {
		"the distances of NUMA node 0 are missing or no numbers: no distance is used, 10 and "
		"20 are assumed"};
	struct corrections found = {0};
	char path[PATH_SPACE * 2], command[PATH_SPACE * 4];
	struct topo t;

	(void)state;
	(void)snprintf(path, sizeof path, "%s/no-distances.xml", folder);
	(void)snprintf(command, sizeof command,
		"sed '/<distances2 /,/<\\/distances2>/d' test/machines/epyc-nps2.xml >'%s'", path);
	run(command);
	assert_int_equal(machine_load(path, &t, corrections_add, &found, NULL), 0);
	corrections_have(&found, want, NR(want));
	corrections_fini(&found);
}

static void libnuma_knows_this_machines_nodes(void **state)
{
	struct topo numa, t;
	struct err e = {0};
	int rc = machine_from_numa(&numa, &e);

	(void)state;
	if (rc == -ENOSYS) /* a sandbox that forbids get_mempolicy(2) */
		skip();
	assert_int_equal(rc, 0);
	load_ok("this", &t);
	assert_int_equal(numa.ids.nr, t.ids.nr);
	assert_true(cpuset_equal(&numa.cpus, &t.cpus));
	assert_int_equal(numa.distance[0][0], t.distance[0][0]);
}

int main(int argc, char **argv)
{
	struct topo t;
	struct err e = {0};

	if (argc > 1) {
		int rc = machine_load(argv[1], &t, NULL, NULL, &e);

		(void)puts(e.text);
		return rc ? EXIT_FAILURE : EXIT_SUCCESS;
	}
#define CASE(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		CASE(this_machine_is_what_the_kernel_says),
		CASE(a_machine_from_a_text_is_named_after_its_file),
		CASE(a_machine_that_cannot_be_used_is_refused_with_its_file),
		CASE(a_path_to_nothing_and_a_folder_of_no_machine_are_refused),
		CASE(a_recorded_tree_without_a_part_is_refused_with_the_name_of_that_part),
		CASE(the_reason_of_hwloc_is_in_the_error),
		CASE(a_name_is_looked_up_beside_the_program_too),
		CASE(an_unknown_machine_name_is_an_error_that_lists_the_known_ones),
		CASE(a_name_is_the_last_part_of_the_path_without_suffix),
		CASE(hwloc_reads_the_given_tree_whatever_its_environment_says),
		CASE(gpu_memory_is_there_unless_the_environment_hides_it),
		CASE(an_xml_with_too_many_nodes_or_cpus_is_refused),
		CASE(each_difference_from_another_source_is_one_correction),
		CASE(corrections_of_recorded_machines_are_known),
		CASE(an_xml_without_distances_says_so),
		CASE(libnuma_knows_this_machines_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
