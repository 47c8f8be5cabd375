#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <host/cgroup_memory.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The machine that c4 and c5 of test/cgroups/v2 were recorded on, by Linux 6.12: on node 1 are 8
 * MiB of anonymous memory, two huge pages and 2 MiB of tmpfs, of which one is mapped; c5 is after
 * cpuset.mems 2. */
static const struct node_ids four = {.nr = 4, .id = {0, 1, 2, 3}};
static const char c4[] = "/kubepods/podu1/c4", c5[] = "/kubepods/podu1/c5";

static struct topo *four_nodes(void)
{
	struct topo *t = calloc(1, sizeof *t);

	t->ids = four;
	t->nr_kinds = 4;
	t->page_bytes[1] = 64 << 10; /* a size that this kernel has no files of */
	t->page_bytes[2] = 2 << 20;
	t->page_bytes[3] = 1 << 30;
	return t;
}

static struct cgroup_tree recorded(void)
{
	struct cgroups c;

	assert_int_equal(cgroups_find("test/cgroups/v2", &c, NULL), 0);
	return c.memory;
}

static void memory_is_read_by_numa_node_and_by_kind(void **state)
{
	struct topo *topo = four_nodes();
	struct cgroup_tree t = recorded();
	struct cgroup_memory m;

	(void)state;
	assert_int_equal(cgroup_memory_read(&t, c4, topo, &m, NULL), 0);
	assert_int_equal(m.node[1].anon, 8441856);
	assert_int_equal(m.node[1].file, 2 << 20);
	assert_int_equal(m.node[1].shmem, 2 << 20);
	assert_int_equal(m.node[1].mapped, 1 << 20);
	assert_int_equal(m.node[1].kernel, 57344 + 3744 + 8888);
	assert_int_equal(m.node[2].kernel, 5328);
	assert_true(m.knows_huge);
	assert_int_equal(m.node[1].huge, 4 << 20);
	assert_int_equal(m.node[0].anon + m.node[2].anon + m.node[3].anon, 0);
	free(topo);
}

static void sums_over_nodes_have_shared_memory_once(void **state)
{
	struct topo *topo = four_nodes();
	struct cgroup_tree t = recorded();
	struct cgroup_memory m;

	(void)state;
	assert_int_equal(cgroup_memory_read(&t, c4, topo, &m, NULL), 0);
	struct cgroup_memory_sum s = cgroup_memory_on(&m, nodeset_of(1));
	assert_int_equal(s.in_use, 8441856 + (2 << 20));
	assert_int_equal(s.moves, 8441856 + (1 << 20));
	assert_int_equal(s.huge, 4 << 20);
	s = cgroup_memory_on(&m, nodeset_or(nodeset_of(0), nodeset_of(2)));
	assert_int_equal(s.in_use + s.moves + s.huge, 0);
	assert_int_equal(s.kernel, 200 + 5328);
	free(topo);
}

/* The rule behind moves: anonymous memory and what is mapped goes, other shared memory stays. */
static void what_a_move_was_to_copy_is_what_the_kernel_has_copied(void **state)
{
	enum { LEFT = 20480 }; /* five pages that somebody else had in his hands */
	struct topo *topo = four_nodes();
	struct cgroup_tree t = recorded();
	struct cgroup_memory before, after;

	(void)state;
	assert_int_equal(cgroup_memory_read(&t, c4, topo, &before, NULL), 0);
	assert_int_equal(cgroup_memory_read(&t, c5, topo, &after, NULL), 0);
	struct cgroup_memory_sum was = cgroup_memory_on(&before, nodeset_of(1)),
				 is = cgroup_memory_on(&after, nodeset_of(2)),
				 left = cgroup_memory_on(&after, nodeset_of(1));
	assert_int_equal(is.in_use, was.moves - LEFT);
	assert_int_equal(left.in_use, was.in_use - was.moves + LEFT);
	assert_int_equal(is.huge, was.huge);
	assert_int_equal(left.huge, 0);
	free(topo);
}

static void a_cgroup_that_is_gone_and_version_1_give_different_errors(void **state)
{
	struct topo *topo = four_nodes();
	struct cgroup_tree t = recorded(), none = {.v2 = true}, v1 = {.root = "/sys"};
	struct cgroup_memory m = {.knows_huge = true};
	struct err e;

	(void)state;
	assert_int_equal(cgroup_memory_read(&t, "/kubepods/podu1/gone", topo, &m, &e), -ENOENT);
	assert_int_equal(cgroup_memory_read(&none, c4, topo, &m, &e), -ENOENT);
	assert_int_equal(cgroup_memory_read(&v1, c4, topo, &m, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.text, "cgroup v2"));
	topo->ids.nr = 1;
	assert_int_equal(cgroup_memory_read(&t, c4, topo, &m, &e), -EINVAL);
	assert_non_null(strstr(e.text, "memory.numa_stat: anon: \"N1=8441856\": "));
	assert_true(m.knows_huge && !m.node[1].anon); /* untouched */
	free(topo);
}

static void without_the_controller_of_huge_pages_nothing_is_known_of_them(void **state)
{
	struct topo *topo = four_nodes();
	struct cgroup_tree t = recorded();
	struct cgroup_memory m;

	(void)state;
	topo->nr_kinds = 2;
	assert_int_equal(cgroup_memory_read(&t, c4, topo, &m, NULL), 0);
	assert_false(m.knows_huge);
	assert_int_equal(cgroup_memory_on(&m, nodeset_first(4)).huge, 0);
	free(topo);
}

static void a_file_that_is_no_such_one_is_refused_and_nothing_is_changed(void **state)
{
	static const struct {
		const char *text, *says; /* NULL: it is one */
	} cases[] = {
		{"anon N0=1\nfile N0=2\n", NULL},
		{"file N0=2\nanon N0=1", NULL},
		{"anon N0=1\nlater N0=not read\nfile N0=2\n", NULL},
		{"anon N0=1 N9=0\nfile N0=2\n", NULL}, /* a node without bytes */
		{"anon N0=1125899906842624\nfile N0=2\n", NULL},
		{"", "are not there"},
		{"anon N0=1\n", "are not there"},
		{"anonymous N0=1\nfile N0=2\n", "are not there"},
		{"anon N0=1\nfile N0=2\nanon N0=3\n", "the line anon is there twice"},
		{"anon N0=1 N0=2\nfile N0=2\n", "\"N0=2\": the line has this NUMA node twice"},
		{"anon N0=1 N9=4096\nfile N0=2\n", "\"N9=4096\": there is no such NUMA node"},
		{"anon N1024=0\nfile N0=2\n", "\"N1024=0\" is no count"},
		{"anon N0=1125899906842625\nfile N0=2\n", "is no count"},
		{"anon N0=-1\nfile N0=2\n", "is no count"},
		{"anon N0\nfile N0=2\n", "is no count"},
		{"anon N=1\nfile N0=2\n", "is no count"},
		{"anon 0=1\nfile N0=2\n", "is no count"},
		{"anon N0=\nfile N0=2\n", "is no count"},
		{"anon  N0=1\nfile N0=2\n", "is no count"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct cgroup_memory m = {0}, none = {0};
		struct err e = {0};
		int rc = cgroup_memory_parse(cases[i].text, strlen(cases[i].text), &four, &m, &e);

		if (rc != (cases[i].says ? -EINVAL : 0) || (rc && !strstr(e.text, cases[i].says)))
			fail_msg("\"%s\": %d %s", cases[i].text, rc, e.text);
		assert_true((memcmp(&m, &none, sizeof m) == 0) == (rc != 0));
	}
}

static void sizes_of_huge_pages_add_up(void **state)
{
	static const char one[] = "total=2097152 N0=0 N1=2097152\n",
			  other[] = "total=1073741824 N1=1073741824\n",
			  *const refused[] = {"", "N0=1\n", "totally N0=1\n", "total=1 N0=x\n",
				  "total=0 N0=0\nhierarchical_total=0 N0=0\n"}; /* v1's */
	struct cgroup_memory m = {0};

	(void)state;
	assert_int_equal(cgroup_memory_parse_huge(one, strlen(one), &four, &m, NULL), 0);
	assert_int_equal(cgroup_memory_parse_huge(other, strlen(other), &four, &m, NULL), 0);
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		assert_int_equal(
			cgroup_memory_parse_huge(refused[i], strlen(refused[i]), &four, &m, NULL),
			-EINVAL);
	assert_true(m.knows_huge);
	assert_int_equal(m.node[1].huge, (1 << 30) + (2 << 20));
	assert_int_equal(m.node[0].huge, 0);
}

/* 64 nodes, each counter at its largest, with as many lines as kernels have: it is read. Twice as
 * much is no such file. */
static void the_largest_machine_fits_and_a_longer_file_is_an_error(void **state)
{
	enum { LINES = 45 };
	char dir[] = "/tmp/numafit-cgroup-XXXXXX", path[64];
	struct topo *topo = calloc(1, sizeof *topo);
	struct cgroup_tree t = {.v2 = true};
	struct cgroup_memory m;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(t.root, sizeof t.root, "%s", dir);
	(void)snprintf(path, sizeof path, "%s/memory.numa_stat", dir);
	topo->ids.nr = NODES_MAX;
	for (unsigned n = 0; n < NODES_MAX; n++)
		topo->ids.id[n] = (uint16_t)(NODE_ID_MAX - NODES_MAX + 1 + n);
	for (int times = 1; times <= 2; times++) {
		FILE *f = fopen(path, "w");

		assert_non_null(f);
		for (int line = 0; line < LINES * times; line++) {
			if (line < 2)
				(void)fputs(line ? "file" : "anon", f);
			else
				(void)fprintf(f, "workingset_something_of_a_long_name_%d", line);
			for (unsigned n = 0; n < NODES_MAX; n++)
				(void)fprintf(f, " N%u=1125899906842624", topo->ids.id[n]);
			(void)fputc('\n', f);
		}
		assert_int_equal(fclose(f), 0);
		assert_int_equal(
			cgroup_memory_read(&t, "", topo, &m, NULL), times == 1 ? 0 : -EFBIG);
	}
	assert_int_equal(cgroup_memory_on(&m, nodeset_first(NODES_MAX)).in_use,
		UINT64_C(1125899906842624) * 2 * NODES_MAX);
	(void)unlink(path);
	(void)rmdir(dir);
	free(topo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_read_by_numa_node_and_by_kind),
		cmocka_unit_test(sums_over_nodes_have_shared_memory_once),
		cmocka_unit_test(what_a_move_was_to_copy_is_what_the_kernel_has_copied),
		cmocka_unit_test(a_cgroup_that_is_gone_and_version_1_give_different_errors),
		cmocka_unit_test(without_the_controller_of_huge_pages_nothing_is_known_of_them),
		cmocka_unit_test(a_file_that_is_no_such_one_is_refused_and_nothing_is_changed),
		cmocka_unit_test(sizes_of_huge_pages_add_up),
		cmocka_unit_test(the_largest_machine_fits_and_a_longer_file_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
