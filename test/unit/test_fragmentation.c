/* What of a cluster's free CPUs pods of 8 CPUs on one NUMA node cannot have. */
#include <numafit/fragmentation.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void free_cpus_that_make_no_pod_of_8_on_one_numa_node_are_lost(void **state)
{
	static const struct {
		uint64_t free[4], left;
		unsigned nr;
		uint64_t lost;
	} rows[] = {
		{{16, 16}, 32, 2, 0},
		{{7, 7, 7, 7}, 28, 4, 28},
		{{12, 12}, 24, 2, 8},
		{{8, 4, 4}, 16, 3, 8},
		{{0, 0}, 0, 2, 0},
		{{16, 16}, 20, 2, 4}, /* others ask for some of them */
		{{16, 16}, 0, 2, 0},
		{{0}, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fragmentation f = {0};

		fragmentation_add(&f, rows[i].free, rows[i].nr, rows[i].left);
		if (f.left != rows[i].left || f.lost != rows[i].lost)
			fail_msg("row %zu: %llu of %llu", i, (unsigned long long)f.lost,
				(unsigned long long)f.left);
	}
}

static void a_clusters_share_is_that_of_all_nodes_together(void **state)
{
	const uint64_t whole[] = {16, 16}, apart[] = {4, 4};
	struct fragmentation f = {0};

	(void)state;
	assert_true(fragmentation_share(&f) == 0);
	fragmentation_add(&f, apart, 2, 8);
	assert_true(fragmentation_share(&f) == 1);
	fragmentation_add(&f, whole, 2, 24);
	assert_true(fragmentation_share(&f) == 0.25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(free_cpus_that_make_no_pod_of_8_on_one_numa_node_are_lost),
		cmocka_unit_test(a_clusters_share_is_that_of_all_nodes_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
