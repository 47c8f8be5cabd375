/* How far a node's free CPUs lie apart, and what of a cluster's pods of 8 CPUs on one NUMA node
 * cannot have. */
#include <numafit/fragmentation.h>

#include "core_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { NUMA_NODES = 8, NO_LIMIT = 1024 };

static void a_node_is_as_fragmented_as_its_largest_container_is_small(void **state)
{
	static const struct {
		unsigned free[NUMA_NODES], all, spare;
		unsigned nr;
		unsigned is_free, largest, possible, milli;
	} rows[] = {
		{{8, 8, 8, 8}, 8, NO_LIMIT, 4, 32, 8, 8, 0}, /* empty */
		{{0, 0, 0, 0}, 8, NO_LIMIT, 4, 0, 0, 0, 0},  /* full */
		{{2, 2, 2, 2}, 8, NO_LIMIT, 4, 8, 2, 8, 750},
		{{8, 0, 0, 0}, 8, NO_LIMIT, 4, 8, 8, 8, 0},
		{{3, 1}, 8, NO_LIMIT, 2, 4, 3, 4, 250},
		{{7, 7, 7, 7}, 8, NO_LIMIT, 4, 28, 7, 8, 125},
		{{1, 1, 1}, 64, NO_LIMIT, 3, 3, 1, 3, 666}, /* rounded down */
		{{1, 1}, 64, NO_LIMIT, 2, 2, 1, 2, 500},
		{{16}, 16, 15, 1, 15, 15, 15, 0}, /* empty, and one is the shared pool's */
		{{8, 8}, 8, 5, 2, 5, 5, 5, 0},    /* no container could have more anyway */
		{{2, 2, 2}, 8, 5, 3, 5, 2, 5, 600},
		{{2, 2, 2}, 8, 1, 3, 1, 1, 1, 0},
		{{8, 8}, 8, 0, 2, 0, 0, 0, 0},
		{{0}, 0, NO_LIMIT, 0, 0, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const uint64_t memory[NUMA_NODES] = {5, 9, 7};
		unsigned all[NUMA_NODES];

		for (unsigned n = 0; n < NUMA_NODES; n++)
			all[n] = n + 1 == rows[i].nr ? rows[i].all : rows[i].all / 2;
		const struct node_fragmentation f =
			node_fragmentation_of(rows[i].free, all, memory, rows[i].nr, rows[i].spare);
		if (f.free != rows[i].is_free || f.largest != rows[i].largest ||
			f.possible != rows[i].possible ||
			node_fragmentation_milli(&f) != rows[i].milli)
			fail_msg("row %zu: %llu of %llu, %llu free, %u", i,
				(unsigned long long)f.largest, (unsigned long long)f.possible,
				(unsigned long long)f.free, node_fragmentation_milli(&f));
		assert_true(f.memory == (rows[i].nr > 1 ? 9 : rows[i].nr ? 5 : 0));
	}
}

static void an_empty_node_is_not_fragmented_whatever_its_shape(void **state)
{
	enum { ROUNDS = 20000, CPUS = 40, PERCENT = 30 };
	struct random r = {.state = 1};

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned nr = random_below(&r, NUMA_NODES + 1), all[NUMA_NODES], left[NUMA_NODES];
		unsigned spare = random_below(&r, 2 * CPUS);
		const uint64_t memory[NUMA_NODES] = {0};

		for (unsigned n = 0; n < nr; n++) {
			all[n] = random_chance(&r, PERCENT) ? 0 : random_below(&r, CPUS);
			left[n] = random_below(&r, all[n] + 1);
		}
		struct node_fragmentation f = node_fragmentation_of(all, all, memory, nr, spare);
		assert_int_equal(node_fragmentation_milli(&f), 0);
		f = node_fragmentation_of(left, all, memory, nr, spare);
		assert_true(f.largest <= f.possible && f.possible <= f.free && f.free <= spare);
		assert_true(node_fragmentation_milli(&f) < 1000);
		assert_true(!f.largest == !f.free);
	}
}

static void more_free_than_there_can_be_is_no_fragmentation(void **state)
{
	const unsigned free[] = {4, 0}, all[] = {2, 2};
	const uint64_t memory[] = {0, 0};
	const struct node_fragmentation f = node_fragmentation_of(free, all, memory, 2, NO_LIMIT);

	(void)state;
	assert_int_equal(node_fragmentation_milli(&f), 0);
}

static void the_ratio_is_printed_without_needless_digits(void **state)
{
	static const struct {
		unsigned milli;
		const char *text;
	} rows[] = {{0, "0"}, {750, "0.75"}, {666, "0.666"}, {500, "0.5"}, {5, "0.005"},
		{999, "0.999"}, {1000, "1"}, {10000, "10"}, {UINT32_MAX, "4294967.295"}};
	char buf[FRAGMENTATION_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_string_equal(node_fragmentation_text(buf, rows[i].milli), rows[i].text);
}

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
		struct cluster_fragmentation f = {0};

		cluster_fragmentation_add(&f, rows[i].free, rows[i].nr, rows[i].left);
		if (f.left != rows[i].left || f.lost != rows[i].lost)
			fail_msg("row %zu: %llu of %llu", i, (unsigned long long)f.lost,
				(unsigned long long)f.left);
	}
}

static void a_clusters_share_is_that_of_all_nodes_together(void **state)
{
	const uint64_t whole[] = {16, 16}, apart[] = {4, 4};
	struct cluster_fragmentation f = {0};

	(void)state;
	assert_true(cluster_fragmentation_share(&f) == 0);
	cluster_fragmentation_add(&f, apart, 2, 8);
	assert_true(cluster_fragmentation_share(&f) == 1);
	cluster_fragmentation_add(&f, whole, 2, 24);
	assert_true(cluster_fragmentation_share(&f) == 0.25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_is_as_fragmented_as_its_largest_container_is_small),
		cmocka_unit_test(an_empty_node_is_not_fragmented_whatever_its_shape),
		cmocka_unit_test(more_free_than_there_can_be_is_no_fragmentation),
		cmocka_unit_test(the_ratio_is_printed_without_needless_digits),
		cmocka_unit_test(free_cpus_that_make_no_pod_of_8_on_one_numa_node_are_lost),
		cmocka_unit_test(a_clusters_share_is_that_of_all_nodes_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
