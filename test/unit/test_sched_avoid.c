#include <numafit/sched_avoid.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { START_MS = 1000000 };

static int setup(void **state)
{
	*state = sched_avoid_new();
	return 0;
}

static int teardown(void **state)
{
	sched_avoid_free(*state);
	return 0;
}

static void a_node_that_refused_is_avoided_for_a_while(void **state)
{
	struct sched_avoid *a = *state;

	assert_false(sched_avoid_is(a, "job", "n1", START_MS));
	sched_avoid_refused(a, "job", "n1", "p1", START_MS);
	assert_true(sched_avoid_is(a, "job", "n1", START_MS + SCHED_AVOID_FIRST_MS - 1));
	assert_false(sched_avoid_is(a, "job", "n1", START_MS + SCHED_AVOID_FIRST_MS));
	assert_false(sched_avoid_is(a, "job", "n2", START_MS));
	assert_false(sched_avoid_is(a, "other", "n1", START_MS));
}

static void a_clock_that_is_set_back_does_not_prolong_it(void **state)
{
	struct sched_avoid *a = *state;

	sched_avoid_refused(a, "job", "n1", "p1", START_MS);
	assert_true(sched_avoid_is(a, "job", "n1", START_MS - SCHED_AVOID_FIRST_MS + 1));
	assert_false(sched_avoid_is(a, "job", "n1", START_MS - SCHED_AVOID_FIRST_MS));
	assert_int_equal(sched_avoid_count(a, START_MS - SCHED_AVOID_MOST_MS), 0);
}

static void each_refusal_doubles_the_time_up_to_a_limit(void **state)
{
	struct sched_avoid *a = *state;
	int64_t delay = SCHED_AVOID_FIRST_MS;
	char pod[16];

	for (unsigned i = 0; i < 20; i++) {
		(void)snprintf(pod, sizeof pod, "p%u", i);
		sched_avoid_refused(a, "job", "n1", pod, START_MS);
		assert_true(sched_avoid_is(a, "job", "n1", START_MS + delay - 1));
		assert_false(sched_avoid_is(a, "job", "n1", START_MS + delay));
		delay = 2 * delay < SCHED_AVOID_MOST_MS ? 2 * delay : SCHED_AVOID_MOST_MS;
	}
	assert_int_equal(sched_avoid_count(a, START_MS), 1);
}

static void repeated_refusals_of_one_pod_count_once(void **state)
{
	struct sched_avoid *a = *state;

	sched_avoid_refused(a, "job", "n1", "p1", START_MS);
	sched_avoid_refused(a, "job", "n1", "p1", START_MS + 1);
	assert_false(sched_avoid_is(a, "job", "n1", START_MS + SCHED_AVOID_FIRST_MS));
}

static void a_node_that_accepts_a_pod_is_no_longer_avoided(void **state)
{
	struct sched_avoid *a = *state;

	sched_avoid_refused(a, "job", "n1", "p1", START_MS);
	sched_avoid_refused(a, "job", "n1", "p2", START_MS);
	sched_avoid_took(a, "job", "n1");
	sched_avoid_took(a, "job", "n2");
	assert_false(sched_avoid_is(a, "job", "n1", START_MS));
	sched_avoid_refused(a, "job", "n1", "p3", START_MS);
	assert_false(sched_avoid_is(a, "job", "n1", START_MS + SCHED_AVOID_FIRST_MS));
}

static void the_oldest_entry_is_dropped_when_there_are_too_many(void **state)
{
	struct sched_avoid *a = *state;
	char node[16];

	sched_avoid_refused(a, "job", "first", "p", START_MS);
	sched_avoid_refused(a, "job", "second", "p", START_MS);
	sched_avoid_refused(a, "job", "first", "q", START_MS); /* younger than the second now */
	for (unsigned i = 0; i < SCHED_AVOID_MAX - 1; i++) {
		(void)snprintf(node, sizeof node, "n%u", i);
		sched_avoid_refused(a, "job", node, "p", START_MS);
	}
	assert_int_equal(sched_avoid_count(a, START_MS), SCHED_AVOID_MAX);
	assert_false(sched_avoid_is(a, "job", "second", START_MS));
	assert_true(sched_avoid_is(a, "job", "first", START_MS));
	assert_true(sched_avoid_is(a, "job", "n0", START_MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_node_that_refused_is_avoided_for_a_while, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_clock_that_is_set_back_does_not_prolong_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			each_refusal_doubles_the_time_up_to_a_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(
			repeated_refusals_of_one_pod_count_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_node_that_accepts_a_pod_is_no_longer_avoided, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_oldest_entry_is_dropped_when_there_are_too_many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
