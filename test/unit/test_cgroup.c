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
	struct cpuset told = cpus_of("0-3,8"), effective = cpus_of("0-3");
	assert_true(cpuset_equal(&s.cpus, &told));
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
	struct cpuset told = cpus_of("4-7"), effective = cpus_of("4-6");
	assert_true(cpuset_equal(&s.cpus, &told));
	assert_true(cpuset_equal(&s.effective_cpus, &effective));
	assert_true(nodeset_equal(s.effective_mems, nodeset_of(1)));
	assert_true(cgroup_has_processes(&c, c1));
	assert_int_equal(cgroup_read(&c, c2, &two_nodes, &s, NULL), 0);
	assert_true(cpuset_empty(&s.cpus));
	assert_int_equal(cpuset_count(&s.effective_cpus), 16);
	assert_false(cgroup_has_processes(&c, c2));
}

static void what_is_gone_is_told_from_what_makes_no_sense(void **state)
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

static void without_a_hierarchy_there_is_nothing_to_find(void **state)
{
	struct cgroups c;
	struct err e;

	(void)state;
	assert_int_equal(cgroups_find("test/cgroups", &c, &e), -ENOENT);
	assert_non_null(strstr(e.text, "mountinfo"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_containers_cgroup_is_found_in_both_forms),
		cmocka_unit_test(a_path_that_is_too_long_is_refused),
		cmocka_unit_test(v1_has_the_cpusets_of_a_hybrid_system),
		cmocka_unit_test(v2_is_read_where_the_hosts_mount_lies),
		cmocka_unit_test(what_is_gone_is_told_from_what_makes_no_sense),
		cmocka_unit_test(a_file_that_is_too_long_is_an_error),
		cmocka_unit_test(without_a_hierarchy_there_is_nothing_to_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
