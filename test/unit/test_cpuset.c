#include <numafit/cpuset.h>

#include "core_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct cpuset random_set(struct random *r, unsigned percent)
{
	struct cpuset s = {0};

	for (unsigned cpu = 0; cpu < CPUSET_BITS; cpu++)
		if (random_chance(r, percent))
			cpuset_add(&s, cpu);
	return s;
}

static struct cpuset parsed(const char *text)
{
	struct cpuset s;
	struct err e;

	if (cpuset_parse(&s, text, strlen(text), &e))
		fail_msg("%s", e.text);
	return s;
}

static void a_set_contains_what_was_added(void **state)
{
	struct cpuset s = {0};

	(void)state;
	assert_true(cpuset_empty(&s));
	cpuset_add(&s, 0);
	cpuset_add(&s, 63);
	cpuset_add(&s, 64);
	cpuset_add(&s, CPUSET_BITS - 1);
	assert_int_equal(cpuset_count(&s), 4);
	assert_true(cpuset_has(&s, 63) && cpuset_has(&s, CPUSET_BITS - 1));
	assert_false(cpuset_has(&s, 62) || cpuset_has(&s, CPUSET_BITS) || cpuset_has(&s, ~0u));
	cpuset_del(&s, 63);
	assert_false(cpuset_has(&s, 63));
	assert_int_equal(cpuset_next(&s, 1), 64);
	assert_int_equal(cpuset_next(&s, 65), CPUSET_BITS - 1);
	assert_int_equal(cpuset_next(&s, CPUSET_BITS), CPUSET_BITS);
	assert_int_equal(cpuset_next(&s, ~0u), CPUSET_BITS);
}

static void operations_are_those_on_single_cpus(void **state)
{
	struct random r = {5};

	(void)state;
	for (unsigned round = 0; round < 50; round++) {
		struct cpuset a = random_set(&r, random_below(&r, 101)),
			      b = random_set(&r, random_below(&r, 101));
		struct cpuset and = cpuset_and(a, &b), or = cpuset_or(a, &b),
			      minus = cpuset_minus(a, &b);
		unsigned nr = 0, common = 0, seen = 0;

		for (unsigned cpu = 0; cpu < CPUSET_BITS; cpu++) {
			bool in_a = cpuset_has(&a, cpu), in_b = cpuset_has(&b, cpu);

			assert_int_equal(cpuset_has(&and, cpu), in_a && in_b);
			assert_int_equal(cpuset_has(& or, cpu), in_a || in_b);
			assert_int_equal(cpuset_has(&minus, cpu), in_a && !in_b);
			nr += in_a;
			common += in_a && in_b;
		}
		cpuset_each (cpu, &a)
			seen += cpuset_has(&a, cpu);
		assert_int_equal(seen, nr);
		assert_int_equal(cpuset_count(&a), nr);
		assert_int_equal(cpuset_count_and(&a, &b), common);
		assert_int_equal(cpuset_intersects(&a, &b), common > 0);
		assert_int_equal(cpuset_within(&a, &b), common == nr);
		assert_true(cpuset_within(&and, &b) && cpuset_within(&a, & or));
		assert_true(cpuset_equal(&a, &a));
		assert_int_equal(cpuset_equal(&minus, &a), common == 0);
	}
}

static void each_single_cpu_changes_the_result_of_every_comparison(void **state)
{
	struct cpuset all = parsed("0-1023");

	(void)state;
	for (unsigned cpu = 0; cpu < CPUSET_BITS; cpu++) {
		struct cpuset one = {0}, rest = all;

		cpuset_add(&one, cpu);
		cpuset_del(&rest, cpu);
		assert_true(cpuset_intersects(&one, &all) && !cpuset_intersects(&one, &rest));
		assert_true(cpuset_within(&rest, &all) && !cpuset_within(&all, &rest));
		assert_false(cpuset_equal(&rest, &all) || cpuset_empty(&one));
		assert_int_equal(cpuset_next(&one, 0), cpu);
	}
}

static void lists_are_read_and_written_in_the_kernels_form(void **state)
{
	static const struct {
		const char *in, *want;
	} cases[] = {
		{"", ""},
		{"\n", ""},
		{" \t\n", ""},
		{"0", "0"},
		{"0\n", "0"},
		{" 0-3,8 \n", "0-3,8"},
		{"8,0-3", "0-3,8"},
		{"0,1,2,3", "0-3"},
		{"0-1,2-3", "0-3"},
		{"5-5", "5"},
		{"1,1,1", "1"},
		{"0-3, 8", "0-3,8"},
		{"0-1023", "0-1023"},
		{"1023", "1023"},
		{"007", "7"},
		{"63-64", "63-64"},
	};
	char buf[CPUSET_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cpuset s = parsed(cases[i].in);

		assert_string_equal(cpuset_format(&s, buf, sizeof buf), cases[i].want);
	}
	static const char *const longer[] = {"12,34", "1-3", "1,2", "1 2", "1\n2"};
	for (size_t i = 0; i < COUNT(longer); i++) { /* len counts, not the NUL */
		struct cpuset s;

		assert_int_equal(cpuset_parse(&s, longer[i], 1, NULL), 0);
		assert_string_equal(cpuset_format(&s, buf, sizeof buf), "1");
	}
}

static void a_refused_list_leaves_the_set_alone(void **state)
{
	static const struct {
		const char *in;
		int rc;
		const char *text;
	} cases[] = {
		{"a", -EINVAL, "list \"a\": a number is missing"},
		{"-1", -EINVAL, "list \"-1\": a number is missing"},
		{"1-", -EINVAL, "list \"1-\": a number is missing"},
		{"1-x", -EINVAL, "list \"1-x\": a number is missing"},
		{",", -EINVAL, "list \",\": a number is missing"},
		{"1,,2", -EINVAL, "list \"1,,2\": a number is missing"},
		{"1,", -EINVAL, "list \"1,\": a comma and a number should follow 1"},
		{"1,\n", -EINVAL, "list \"1,\n\": a comma and a number should follow 1"},
		{"1 2", -EINVAL, "list \"1 2\": a comma and a number should follow 1"},
		{"0-3-5", -EINVAL, "list \"0-3-5\": a comma and a number should follow 3"},
		{"0x3", -EINVAL, "list \"0x3\": a comma and a number should follow 0"},
		{"3-1", -EINVAL, "list \"3-1\": 3-1 runs backwards"},
		{"1024", -ERANGE, "list \"1024\": 1024 is above 1023"},
		{"0-1024", -ERANGE, "list \"0-1024\": 1024 is above 1023"},
		{"99999999999999999999", -ERANGE,
			"list \"99999999999999999999\": 99999999999999999999 is above 1023"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cpuset s = parsed("7"), before = s;
		struct err e = {0};

		assert_int_equal(
			cpuset_parse(&s, cases[i].in, strlen(cases[i].in), &e), cases[i].rc);
		assert_string_equal(e.text, cases[i].text);
		assert_true(cpuset_equal(&s, &before));
	}
	struct cpuset s;
	assert_int_equal(cpuset_parse(&s, "1\0002", 3, NULL), -EINVAL);
}

static void every_set_comes_back_from_its_text(void **state)
{
	char buf[CPUSET_TEXT_MAX];
	struct random r = {9};

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		struct cpuset s = random_set(&r, random_below(&r, 101));
		struct cpuset back = parsed(cpuset_format(&s, buf, sizeof buf));

		assert_true(cpuset_equal(&s, &back));
	}
}

/* Runs of any length with gaps of one: which of them is the longest text is for the test to find.
 */
static void the_longest_text_fits(void **state)
{
	char buf[2 * CPUSET_TEXT_MAX];
	size_t longest = 0;

	(void)state;
	for (unsigned run = 1; run <= 5; run++)
		for (unsigned phase = 0; phase <= run; phase++) {
			struct cpuset s = {0};

			for (unsigned cpu = 0; cpu < CPUSET_BITS; cpu++)
				if ((cpu + phase) % (run + 1))
					cpuset_add(&s, cpu);
			size_t len = strlen(cpuset_format(&s, buf, sizeof buf));
			longest = len > longest ? len : longest;
		}
	assert_true(longest > 2000);
	assert_true(longest < CPUSET_TEXT_MAX);
}

static void a_buffer_that_is_too_small_holds_a_string(void **state)
{
	struct cpuset s = parsed("0-3,100-200");
	char buf[16];

	(void)state;
	for (size_t cap = 1; cap <= 12; cap++) {
		memset(buf, 'x', sizeof buf);
		assert_int_equal(strlen(cpuset_format(&s, buf, cap)), cap - 1);
		assert_memory_equal(buf, "0-3,100-200", cap - 1);
		assert_int_equal(buf[cap], 'x');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_contains_what_was_added),
		cmocka_unit_test(operations_are_those_on_single_cpus),
		cmocka_unit_test(each_single_cpu_changes_the_result_of_every_comparison),
		cmocka_unit_test(lists_are_read_and_written_in_the_kernels_form),
		cmocka_unit_test(a_refused_list_leaves_the_set_alone),
		cmocka_unit_test(every_set_comes_back_from_its_text),
		cmocka_unit_test(the_longest_text_fits),
		cmocka_unit_test(a_buffer_that_is_too_small_holds_a_string),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
