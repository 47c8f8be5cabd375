#include <numafit/nodeset.h>

#include "core_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* POWER9 with GPU memory: gaps, and ids beyond 63. */
static const struct node_ids power9 = {8, {0, 8, 250, 251, 252, 253, 254, 255}};

static void ids_and_indexes_translate(void **state)
{
	(void)state;
	for (unsigned i = 0; i < power9.nr; i++)
		assert_int_equal(node_index(&power9, power9.id[i]), i);
	assert_int_equal(node_index(&power9, 1), -1);
	assert_int_equal(node_index(&power9, 256), -1);
	assert_int_equal(node_index(&(struct node_ids){0}, 0), -1);
}

static void lists_are_of_kernel_ids(void **state)
{
	static const struct {
		const char *in;
		uint64_t bits;
		const char *want;
	} cases[] = {
		{"", 0, ""},
		{"\n", 0, ""},
		{"0", 1, "0"},
		{"0,8", 3, "0,8"},
		{"8,0", 3, "0,8"},
		{"250-255", 0xfc, "250-255"},
		{"0,8,250-255\n", 0xff, "0,8,250-255"},
	};
	char buf[NODESET_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct nodeset s;

		assert_int_equal(
			nodeset_parse(&s, &power9, cases[i].in, strlen(cases[i].in), NULL), 0);
		assert_int_equal(s.bits, cases[i].bits);
		assert_string_equal(nodeset_format(s, &power9, buf, sizeof buf), cases[i].want);
	}
}

static void nodes_that_the_machine_lacks_are_not_written(void **state)
{
	const struct node_ids one = {1, {5}};
	char buf[NODESET_TEXT_MAX];

	(void)state;
	assert_string_equal(nodeset_format(nodeset_first(NODES_MAX), &one, buf, sizeof buf), "5");
}

static void a_refused_list_leaves_the_set_alone(void **state)
{
	static const struct {
		const char *in;
		int rc;
		const char *text;
	} cases[] = {
		{"1", -ENOENT, "there is no NUMA node 1"},
		{"0-8", -ENOENT, "there is no NUMA node 1"},
		{"256", -ENOENT, "there is no NUMA node 256"},
		{"0,", -EINVAL, "list \"0,\": a comma and a number should follow 0"},
		{"x", -EINVAL, "list \"x\": a number is missing"},
		{"4000", -ERANGE, "list \"4000\": 4000 is above 1023"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct nodeset s = {42};
		struct err e = {0};

		assert_int_equal(nodeset_parse(&s, &power9, cases[i].in, strlen(cases[i].in), &e),
			cases[i].rc);
		assert_string_equal(e.text, cases[i].text);
		assert_int_equal(s.bits, 42);
	}
}

static void every_set_comes_back_from_its_text(void **state)
{
	char buf[NODESET_TEXT_MAX];
	struct node_ids ids = {0};
	struct random r = {13};

	(void)state;
	for (unsigned round = 0; round < 500; round++) {
		ids.nr = 0;
		for (unsigned id = random_below(&r, 20); id <= NODE_ID_MAX && ids.nr < NODES_MAX;
			id += 1 + random_below(&r, 30))
			ids.id[ids.nr++] = (uint16_t)id;
		struct nodeset s = {random_next(&r) & nodeset_first(ids.nr).bits}, back;

		(void)nodeset_format(s, &ids, buf, sizeof buf);
		assert_int_equal(nodeset_parse(&back, &ids, buf, strlen(buf), NULL), 0);
		assert_true(nodeset_equal(s, back));
	}
}

static void the_longest_text_fits(void **state)
{
	char buf[2 * NODESET_TEXT_MAX];
	struct node_ids ids = {.nr = NODES_MAX};

	(void)state;
	for (unsigned gap = 1; gap <= 2; gap++) {
		for (unsigned i = 0; i < NODES_MAX; i++) /* the highest ids have the most digits */
			ids.id[NODES_MAX - 1 - i] = (uint16_t)(NODE_ID_MAX - gap * i);
		assert_true(strlen(nodeset_format(nodeset_first(NODES_MAX), &ids, buf,
				    sizeof buf)) < NODESET_TEXT_MAX);
	}
}

static void operations_are_those_on_single_nodes(void **state)
{
	struct random r = {17};

	(void)state;
	for (unsigned round = 0; round < 500; round++) {
		struct nodeset a = {random_next(&r)},
			       b = {random_next(&r) | (random_chance(&r, 50) ? a.bits : 0)};
		struct nodeset and = nodeset_and(a, b), or = nodeset_or(a, b),
			       minus = nodeset_minus(a, b), again = {0};
		unsigned count = 0;

		for (unsigned n = 0; n < NODES_MAX; n++) {
			bool in_a = a.bits >> n & 1, in_b = b.bits >> n & 1;

			assert_int_equal(nodeset_has(a, n), in_a);
			assert_int_equal(nodeset_has(and, n), in_a && in_b);
			assert_int_equal(nodeset_has(or, n), in_a || in_b);
			assert_int_equal(nodeset_has(minus, n), in_a && !in_b);
			count += in_a;
		}
		assert_int_equal(nodeset_count(a), count);
		assert_int_equal(nodeset_within(a, b), nodeset_empty(minus));
		nodeset_each (n, a)
			again = nodeset_or(again, nodeset_of(n));
		assert_true(nodeset_equal(a, again));
	}
}

static void the_first_and_the_last_node_behave_like_others(void **state)
{
	(void)state;
	assert_int_equal(nodeset_first(0).bits, 0);
	assert_int_equal(nodeset_first(1).bits, 1);
	assert_int_equal(nodeset_first(63).bits, UINT64_MAX >> 1);
	assert_int_equal(nodeset_first(64).bits, UINT64_MAX);
	assert_int_equal(nodeset_first(99).bits, UINT64_MAX);
	assert_int_equal(nodeset_next(nodeset_of(63), 0), 63);
	assert_int_equal(nodeset_next(nodeset_of(63), 63), 63);
	assert_int_equal(nodeset_next(nodeset_of(63), 64), NODES_MAX);
	assert_int_equal(nodeset_next(nodeset_of(0), 1), NODES_MAX);
	assert_false(nodeset_has(nodeset_first(64), 64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_and_indexes_translate),
		cmocka_unit_test(lists_are_of_kernel_ids),
		cmocka_unit_test(nodes_that_the_machine_lacks_are_not_written),
		cmocka_unit_test(a_refused_list_leaves_the_set_alone),
		cmocka_unit_test(every_set_comes_back_from_its_text),
		cmocka_unit_test(the_longest_text_fits),
		cmocka_unit_test(operations_are_those_on_single_nodes),
		cmocka_unit_test(the_first_and_the_last_node_behave_like_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
