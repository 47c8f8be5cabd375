#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <host/cgroup.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct node_ids two_nodes = {.nr = 2, .id = {0, 1}};

static struct cpuset cpus_of(const char *list)
{
	struct cpuset c;

	assert_int_equal(cpuset_parse(&c, list, strlen(list), NULL), 0);
	return c;
}

static void a_containers_cgroup_is_found_in_both_forms(void **state)
{
	static const struct {
		const char *in, *want; /* NULL: refused */
	} cases[] = {
		{"/kubepods/podu1/c1", "/kubepods/podu1/c1"},
		{"/kubepods/podu1/crio-c1", "/kubepods/podu1/crio-c1"},
		{"kubepods/podu1/c1", "/kubepods/podu1/c1"},
		{"/weird:name:with/colons", "/weird:name:with/colons"},
		{"kubepods-podu1.slice:cri-containerd:c1",
			"/kubepods.slice/kubepods-podu1.slice/cri-containerd-c1.scope"},
		{"kubepods-burstable-pod1_2.slice:crio:c1",
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/"
			"crio-c1.scope"},
		{":cri-containerd:c1", "/system.slice/cri-containerd-c1.scope"},
		{"-.slice:cri-containerd:c1", "/cri-containerd-c1.scope"},
		{"a.slice::c1", "/a.slice/c1.scope"},
		{"a.slice:x:b.slice", "/a.slice/b.slice"},
		{"", NULL},
		{"/kubepods/../../etc", NULL},
		{"..:x:c1", NULL},
		{"a.slice:x:", NULL},
		{"a.slice:x:c/1", NULL},
		{"a.slice:x:../c1", NULL},
		{"a.slice:../x:c1", NULL},
		{"a:x:c1", NULL},
		{"a--b.slice:x:c1", NULL},
		{"-a.slice:x:c1", NULL},
		{"a-.slice:x:c1", NULL},
		{".slice:x:c1", NULL},
		{"a/b.slice:x:c1", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char path[CGROUP_PATH_MAX];
		struct err e = {0};
		int rc = cgroup_path(cases[i].in, path, sizeof path, &e);

		if ((rc == 0) != (cases[i].want != NULL))
			fail_msg("\"%s\": %d %s", cases[i].in, rc, e.text);
		if (cases[i].want)
			assert_string_equal(path, cases[i].want);
		else
			assert_true(rc == -EINVAL && e.code == EINVAL);
	}
}

static void a_path_that_is_too_long_is_refused(void **state)
{
	char in[2 * CGROUP_PATH_MAX], path[CGROUP_PATH_MAX];

	(void)state;
	memset(in, 'a', sizeof in);
	in[0] = '/';
	in[sizeof in - 1] = '\0';
	assert_int_equal(cgroup_path(in, path, sizeof path, NULL), -ENAMETOOLONG);
}

static void v1_has_the_cpusets_of_a_hybrid_system(void **state)
{
	struct cgroup_cpuset s;
	struct cgroups c;

	(void)state;
	assert_int_equal(cgroups_find("test/cgroups/hybrid/", &c, NULL), 0);
	assert_false(c.v2);
	assert_string_equal(c.root, "test/cgroups/hybrid/sys/fs/cgroup/cpuset");
	assert_int_equal(cgroup_read(&c, "/kubepods/podu1/c1", &two_nodes, &s, NULL), 0);
	struct cpuset own = cpus_of("0-3,8"), effective = cpus_of("0-3");
	assert_true(cpuset_equal(&s.cpus, &own));
	assert_true(cpuset_equal(&s.effective_cpus, &effective));
	assert_true(nodeset_equal(s.mems, nodeset_of(0)));
	assert_true(cgroup_has_processes(&c, "/kubepods/podu1/c1"));
	assert_int_equal(cgroup_read(&c, "/kubepods/podu1/c2", &two_nodes, &s, NULL), 0);
	assert_true(cpuset_empty(&s.cpus) && nodeset_empty(s.mems));
	assert_false(cgroup_has_processes(&c, "/kubepods/podu1/c2"));
}

static void v2_is_read_where_the_hosts_mount_lies(void **state)
{
	static const char c1[] = "kubepods-burstable-pod1a_2b.slice:cri-containerd:c1",
			  c2[] = "kubepods-burstable-pod1a_2b.slice:crio:c2";
	struct cgroup_cpuset s;
	struct cgroups c;

	(void)state;
	assert_int_equal(cgroups_find("test/cgroups/v2", &c, NULL), 0);
	assert_true(c.v2);
	assert_string_equal(c.root, "test/cgroups/v2/host/sys/fs/cgroup");
	assert_int_equal(cgroup_read(&c, c1, &two_nodes, &s, NULL), 0);
	struct cpuset own = cpus_of("4-7"), effective = cpus_of("4-6");
	assert_true(cpuset_equal(&s.cpus, &own));
	assert_true(cpuset_equal(&s.effective_cpus, &effective));
	assert_true(nodeset_equal(s.effective_mems, nodeset_of(1)));
	assert_true(cgroup_has_processes(&c, c1));
	assert_int_equal(cgroup_read(&c, c2, &two_nodes, &s, NULL), 0);
	assert_true(cpuset_empty(&s.cpus));
	assert_int_equal(cpuset_count(&s.effective_cpus), 16);
	assert_false(cgroup_has_processes(&c, c2));
}

static void a_missing_cgroup_and_a_malformed_one_give_different_errors(void **state)
{
	struct cgroup_cpuset s;
	struct cgroups v1, v2;
	struct err e;

	(void)state;
	assert_int_equal(cgroups_find("test/cgroups/hybrid", &v1, NULL), 0);
	assert_int_equal(cgroups_find("test/cgroups/v2", &v2, NULL), 0);
	assert_int_equal(cgroup_read(&v1, "/kubepods/podu1/gone", &two_nodes, &s, NULL), -ENOENT);
	assert_false(cgroup_has_processes(&v1, "/kubepods/podu1/gone"));
	assert_int_equal(cgroup_read(&v1, "/kubepods/podu1/c3", &two_nodes, &s, &e), -EINVAL);
	assert_non_null(strstr(e.text, "cpuset.cpus: "));
	/* a NUMA node that the machine lacks is no cgroup that is gone */
	assert_int_equal(cgroup_read(&v2, "/kubepods/podu1/c9", &two_nodes, &s, &e), -EINVAL);
	assert_non_null(strstr(e.text, "cpuset.mems: "));
}

static void a_file_that_is_too_long_is_an_error(void **state)
{
	char dir[] = "/tmp/numafit-cgroup-XXXXXX", path[128];
	struct cgroups c = {0};
	struct cgroup_cpuset s;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(c.root, sizeof c.root, "%s", dir);
	(void)snprintf(path, sizeof path, "%s/cpuset.cpus", dir);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	for (int i = 0; i < 2 * CPUSET_TEXT_MAX; i++)
		(void)fputc('1', f);
	(void)fclose(f);
	assert_int_equal(cgroup_read(&c, "/.", &two_nodes, &s, NULL), -EFBIG);
	(void)unlink(path);
	(void)rmdir(dir);
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[128];

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	(void)unlink(path);
	if (!text)
		return;
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static bool are_the_same(const struct linux_resources *a, const struct linux_resources *b)
{
	return a->has_quota == b->has_quota && a->cpu_quota == b->cpu_quota &&
	       a->has_period == b->has_period && a->cpu_period == b->cpu_period &&
	       a->has_memory_limit == b->has_memory_limit && a->memory_limit == b->memory_limit &&
	       !a->has_shares && !a->nr_hugepages;
}

static void limits_are_read_in_both_forms(void **state)
{
	static const char *const names[2][3] = {
		{"cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes"},
		{"cpu.max", NULL, "memory.max"}};
	static const struct {
		bool v2;
		const char *text[3];
		int rc;
		struct linux_resources want;
	} cases[] = {
		{false, {"600000\n", "100000\n", "67108864\n"}, 0,
			{.has_quota = true,
				.cpu_quota = 600000,
				.has_period = true,
				.cpu_period = 100000,
				.has_memory_limit = true,
				.memory_limit = 64 << 20}},
		{false, {"-1\n", "100000\n", "9223372036854771712\n"}, 0, {0}},
		{false, {"-1\n", "100000\n", "9223372036854710272\n"}, 0, {0}}, /* large pages */
		{false, {NULL, "100000\n", "1\n"}, -ENOENT, {0}},
		{false, {"some\n", "100000\n", "1\n"}, -EINVAL, {0}},
		{false, {"\n", "100000\n", "1\n"}, -EINVAL, {0}},
		{true, {"50000 100000\n", NULL, "max\n"}, 0,
			{.has_quota = true,
				.cpu_quota = 50000,
				.has_period = true,
				.cpu_period = 100000}},
		{true, {"max 100000\n", NULL, "4096\n"}, 0,
			{.has_memory_limit = true, .memory_limit = 4096}},
		{true, {"max\n", NULL, "4096\n"}, -EINVAL, {0}},
		{true, {"max 100000\n", NULL, NULL}, -ENOENT, {0}},
		{true, {"max 100000\n", NULL, "99999999999999999999\n"}, -EINVAL, {0}},
	};
	char dir[] = "/tmp/numafit-cgroup-XXXXXX";
	struct cgroups c = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(c.cpu.root, sizeof c.cpu.root, "%s", dir);
	(void)snprintf(c.memory.root, sizeof c.memory.root, "%s", dir);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct linux_resources r = {0};

		for (unsigned k = 0; k < 3; k++)
			if (names[cases[i].v2][k])
				put(dir, names[cases[i].v2][k], cases[i].text[k]);
		c.cpu.v2 = c.memory.v2 = cases[i].v2;
		if (cgroup_read_limits(&c, "/.", &r, NULL) != cases[i].rc ||
			!are_the_same(&r, &cases[i].want))
			fail_msg("case %zu", i);
	}
	*c.memory.root = '\0'; /* no such controller */
	struct linux_resources r;
	assert_int_equal(cgroup_read_limits(&c, "/.", &r, NULL), -ENOENT);
	for (unsigned k = 0; k < 6; k++)
		if (names[k / 3][k % 3])
			put(dir, names[k / 3][k % 3], NULL);
	(void)rmdir(dir);
}

static void a_quota_is_read_lifted_and_given_back(void **state)
{
	static const struct {
		bool v2;
		const char *quota, *period, *text;
	} cases[] = {
		{true, "200000 50000\n", NULL, "200000 50000"},
		{false, "200000\n", "50000\n", "200000"},
	};
	char dir[] = "/tmp/numafit-cgroup-XXXXXX";
	char none[CGROUP_QUOTA_MAX];
	struct cgroup_quota found;
	struct cgroup_tree t = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(t.root, sizeof t.root, "%s", dir);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		t.v2 = cases[i].v2;
		put(dir, cgroup_quota_file(&t), cases[i].quota);
		put(dir, "cpu.cfs_period_us", cases[i].period);
		assert_int_equal(cgroup_read_quota(&t, "/.", &found, NULL), 0);
		assert_string_equal(found.text, cases[i].text);
		assert_true(found.limited && found.period_us == 50000);
		cgroup_quota_text(&t, CGROUP_NO_QUOTA, found.period_us, none);
		assert_string_equal(none, t.v2 ? "max 50000" : "-1");
		assert_int_equal(cgroup_write_quota(&t, "/.", none, NULL), 0);
		assert_int_equal(cgroup_read_quota(&t, "/.", &found, NULL), 0);
		assert_true(!found.limited && found.period_us == 50000);
		assert_int_equal(cgroup_write_quota(&t, "/.", cases[i].text, NULL), 0);
		assert_int_equal(cgroup_read_quota(&t, "/gone", &found, NULL), -ENOENT);
		put(dir, cgroup_quota_file(&t), NULL);
	}
	put(dir, "cpu.cfs_period_us", NULL);
	(void)rmdir(dir);
}

/* A process of another PID namespace is not in cgroup.procs (v1), and is counted in pids.current.
 */
static void processes_that_cannot_be_seen_are_counted(void **state)
{
	char dir[] = "/tmp/numafit-cgroup-XXXXXX";
	struct cgroups c = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(c.root, sizeof c.root, "%s", dir);
	put(dir, "cgroup.procs", "");
	assert_false(cgroup_has_processes(&c, "/."));
	(void)snprintf(c.pids.root, sizeof c.pids.root, "%s", dir);
	put(dir, "pids.current", "3\n");
	assert_true(cgroup_has_processes(&c, "/."));
	put(dir, "pids.current", "0\n");
	assert_false(cgroup_has_processes(&c, "/."));
	put(dir, "pids.current", NULL);
	put(dir, "cgroup.procs", NULL);
	(void)rmdir(dir);
}

/* v2 lists a hidden process as 0, v1 does not list one at all. */
static void a_cgroup_without_a_process_of_its_own_hides_none(void **state)
{
	static const struct {
		bool v2;
		const char *procs;
		bool has_below;
		int rc;
		uint64_t pid;
	} rows[] = {
		{true, "12\n13\n", false, 0, 12},
		{true, "0\n0\n", true, 0, 0},
		{true, "", true, -ESRCH, 0},
		{true, "", false, -ESRCH, 0},
		{false, "12\n", true, 0, 12},
		{false, "", false, 0, 0},
		{false, "", true, -ESRCH, 0},
	};
	char dir[] = "/tmp/numafit-cgroup-XXXXXX", below[64];
	struct cgroups c = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(c.root, sizeof c.root, "%s", dir);
	(void)snprintf(below, sizeof below, "%s/below", dir);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint64_t pid;

		c.v2 = rows[i].v2;
		put(dir, "cgroup.procs", rows[i].procs);
		if (rows[i].has_below)
			assert_int_equal(mkdir(below, 0700), 0);
		assert_int_equal(cgroup_first_process(&c, "/", &pid, NULL), rows[i].rc);
		assert_int_equal(pid, rows[i].pid);
		if (rows[i].has_below)
			assert_int_equal(rmdir(below), 0);
	}
	put(dir, "cgroup.procs", NULL);
	assert_int_equal(rmdir(dir), 0);
}

static void a_value_is_written_into_the_file_of_a_cgroup(void **state)
{
	char dir[] = "/tmp/numafit-test-XXXXXX", path[CGROUP_PATH_MAX], text[16] = "";
	struct cgroup_tree t = {.v2 = true};
	struct err e;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(t.root, sizeof t.root, "%s", dir);
	put(dir, "cpu.max", "200000 100000\n");
	assert_int_equal(cgroup_write(&t, "/.", "cpu.max", "max", &e), 0);
	(void)snprintf(path, sizeof path, "%s/cpu.max", dir);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof text, f));
	(void)fclose(f);
	assert_memory_equal(text, "max", 3);
	assert_int_equal(cgroup_write(&t, "/gone", "cpu.max", "max", &e), -ENOENT);
	put(dir, "cpu.max", NULL);
	assert_int_equal(cgroup_write(&t, "/.", "cpu.max", "max", &e), -ENOENT);
	*t.root = '\0'; /* no such controller */
	assert_int_equal(cgroup_write(&t, "/.", "cpu.max", "max", &e), -ENOENT);
	(void)rmdir(dir);
}

static void above_a_container_is_its_pod(void **state)
{
	char path[CGROUP_PATH_MAX];

	(void)state;
	assert_int_equal(cgroup_path_above("/kubepods/podu1/c1", path, sizeof path, NULL), 0);
	assert_string_equal(path, "/kubepods/podu1");
	assert_int_equal(cgroup_path_above(
				 "kubepods-podu1.slice:cri-containerd:c1", path, sizeof path, NULL),
		0);
	assert_string_equal(path, "/kubepods.slice/kubepods-podu1.slice");
	assert_int_equal(cgroup_path_above("c1", path, sizeof path, NULL), -EINVAL);
	assert_int_equal(cgroup_path_above("..:x:c1", path, sizeof path, NULL), -EINVAL);
}

static void each_controller_is_found_where_it_is(void **state)
{
	struct cgroups c;

	(void)state;
	assert_int_equal(cgroups_find("test/cgroups/hybrid", &c, NULL), 0);
	assert_false(c.cpu.v2 || c.memory.v2);
	assert_string_equal(c.cpu.root, "test/cgroups/hybrid/sys/fs/cgroup/cpu,cpuacct");
	assert_string_equal(c.memory.root, "test/cgroups/hybrid/sys/fs/cgroup/memory");
	assert_int_equal(cgroups_find("test/cgroups/v2", &c, NULL), 0);
	assert_true(c.cpu.v2 && c.memory.v2);
	assert_string_equal(c.cpu.root, c.root);
	assert_string_equal(c.memory.root, c.root);
}

/* One of an overlay that has that many bytes of folders, or of a cgroup. */
static void put_long_mount(FILE *f, const char *type, int bytes, const char *last)
{
	(void)fprintf(f, "9 1 0:9 / /long rw - %s %s rw,lowerdir=", type, type);
	for (int i = 0; i < bytes; i++)
		(void)fputc('l', f);
	(void)fprintf(f, ",%s\n", last);
}

static void cgroups_are_found_among_any_number_of_mounts(void **state)
{
	enum { MOUNTS = 3000, BYTES = 2000, LONG_BYTES = 65 << 10, AT_LEAST = 5 << 20 };
	char dir[] = "/tmp/numafit-cgroup-XXXXXX", path[128], want[128];
	static const char *const folders[] = {"/proc", "/proc/self"};
	struct cgroups c;
	struct err e = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof path, "%s%s", dir, folders[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	(void)snprintf(path, sizeof path, "%s/proc/self/mountinfo", dir);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	put_long_mount(f, "overlay", 2 * LONG_BYTES, "cpuset");
	for (unsigned i = 0; i < MOUNTS; i++)
		put_long_mount(f, "overlay", BYTES, "cpuset");
	(void)fputs("33 31 0:31 / /cpus rw,relatime shared:11 - cgroup cgroup rw,cpuset\n", f);
	put_long_mount(f, "cgroup", LONG_BYTES, "cpuset");
	(void)fputs("34 31 0:31 / /mem rw,relatime shared:11 - cgroup cgroup rw,memory", f);
	assert_true(ftell(f) > AT_LEAST);
	assert_int_equal(fclose(f), 0);
	if (cgroups_find(dir, &c, &e) != 0)
		fail_msg("%s", e.text);
	(void)snprintf(want, sizeof want, "%s/cpus", dir);
	assert_string_equal(c.root, want);
	(void)snprintf(want, sizeof want, "%s/mem", dir);
	assert_string_equal(c.memory.root, want);
	(void)unlink(path);
	for (unsigned i = 2; i--;) {
		(void)snprintf(path, sizeof path, "%s%s", dir, folders[i]);
		(void)rmdir(path);
	}
	(void)rmdir(dir);
}

/* No such file, and one that cannot be read. */
static void mounts_that_cannot_be_read_are_an_error(void **state)
{
	char dir[] = "/tmp/numafit-cgroup-XXXXXX", path[128];
	static const char *const folders[] = {"/proc", "/proc/self", "/proc/self/mountinfo"};
	struct cgroups c;
	struct err e;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(cgroups_find(dir, &c, &e), -ENOENT);
	assert_non_null(strstr(e.text, "/proc/self/mountinfo: No such file"));
	for (unsigned i = 0; i < 3; i++) {
		(void)snprintf(path, sizeof path, "%s%s", dir, folders[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	assert_int_equal(cgroups_find(dir, &c, &e), -EISDIR);
	for (unsigned i = 3; i--;) {
		(void)snprintf(path, sizeof path, "%s%s", dir, folders[i]);
		(void)rmdir(path);
	}
	(void)rmdir(dir);
}

static void a_system_without_a_cpuset_hierarchy_is_an_error(void **state)
{
	struct cgroups c;
	struct err e;

	(void)state;
	assert_int_equal(cgroups_find("test/cgroups", &c, &e), -ENOENT);
	assert_non_null(strstr(e.text, "mountinfo"));
}

static void cgroups_of_pods_and_classes_are_known_by_the_kubelets_names(void **state)
{
	static const struct {
		const char *directory, *uid;
		bool is_pods, is_class;
	} cases[] = {
		{"/kubepods/burstable/pod12-ab", "12-ab", true, false},
		{"/kubepods.slice/kubepods-pod12_ab.slice", "12-ab", true, false},
		{"/kubepods.slice/kubepods-besteffort-pod12_ab.slice", "12-ab", true, false},
		{"/kubepods/pod12-abc", "12-ab", false, false},
		{"/kubepods/xpod12-ab", "12-ab", false, false},
		{"/kubepods.slice/kubepodspod12_ab.slice", "12-ab", false, false},
		{"/kubepods.slice/kubepods-pod12_ab.scope", "12-ab", false, false},
		{"/kubepods/pod12-ab/c1", "12-ab", false, false},
		{"/kubepods/pod", "", false, false},
		{"", "12-ab", false, false},
		{"/system.slice", "12-ab", false, false},
		{"/kubepods/burstable", "12-ab", false, true},
		{"/kubepods.slice/kubepods-besteffort.slice", "12-ab", false, true},
		{"/kubepods.slice/kubepods-notburstable.slice", "12-ab", false, false},
		{"/kubepods.slice", "12-ab", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(
			cgroup_is_pods(cases[i].directory, cases[i].uid), cases[i].is_pods);
		assert_int_equal(cgroup_is_class(cases[i].directory), cases[i].is_class);
	}
	char uid[2 * CGROUP_PATH_MAX];
	memset(uid, 'u', sizeof uid - 1);
	uid[sizeof uid - 1] = '\0';
	assert_false(cgroup_is_pods("/kubepods/podu", uid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_containers_cgroup_is_found_in_both_forms),
		cmocka_unit_test(a_path_that_is_too_long_is_refused),
		cmocka_unit_test(v1_has_the_cpusets_of_a_hybrid_system),
		cmocka_unit_test(v2_is_read_where_the_hosts_mount_lies),
		cmocka_unit_test(a_missing_cgroup_and_a_malformed_one_give_different_errors),
		cmocka_unit_test(a_file_that_is_too_long_is_an_error),
		cmocka_unit_test(limits_are_read_in_both_forms),
		cmocka_unit_test(a_quota_is_read_lifted_and_given_back),
		cmocka_unit_test(processes_that_cannot_be_seen_are_counted),
		cmocka_unit_test(a_cgroup_without_a_process_of_its_own_hides_none),
		cmocka_unit_test(a_value_is_written_into_the_file_of_a_cgroup),
		cmocka_unit_test(above_a_container_is_its_pod),
		cmocka_unit_test(each_controller_is_found_where_it_is),
		cmocka_unit_test(cgroups_are_found_among_any_number_of_mounts),
		cmocka_unit_test(mounts_that_cannot_be_read_are_an_error),
		cmocka_unit_test(a_system_without_a_cpuset_hierarchy_is_an_error),
		cmocka_unit_test(cgroups_of_pods_and_classes_are_known_by_the_kubelets_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
