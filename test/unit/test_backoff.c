#include <io/backoff.h>

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { MIN_MS = 100, MAX_MS = 1000, TRIES = 1000 };

static void delays_double_up_to_the_longest(void **state)
{
	static const unsigned want[] = {100, 200, 400, 800, 1000, 1000, 1000};
	struct backoff b = {.min_ms = MIN_MS, .max_ms = MAX_MS};

	(void)state;
	for (unsigned round = 0; round < TRIES; round++) {
		for (unsigned i = 0; i < sizeof want / sizeof *want; i++)
			assert_in_range(
				backoff_next(&b, 0), want[i] - want[i] / 4, want[i] + want[i] / 4);
		backoff_reset(&b);
	}
}

static void delays_of_two_clients_differ(void **state)
{
	struct backoff b = {.min_ms = MAX_MS, .max_ms = MAX_MS};
	unsigned first = backoff_next(&b, 0), differ = 0;

	(void)state;
	for (unsigned i = 0; i < TRIES; i++)
		differ += backoff_next(&b, 0) != first;
	assert_true(differ > TRIES / 2);
}

/* A server that is too busy answers all of them the same. */
static void delays_differ_also_when_the_server_sets_the_minimum(void **state)
{
	struct backoff b = {.min_ms = MAX_MS, .max_ms = MAX_MS};
	unsigned first = backoff_next(&b, 2 * MAX_MS), differ = 0;

	(void)state;
	for (unsigned i = 0; i < TRIES; i++)
		differ += backoff_next(&b, 2 * MAX_MS) != first;
	assert_true(differ > TRIES / 2);
}

static void a_server_may_lengthen_a_delay_but_not_shorten_it(void **state)
{
	struct backoff b = {.min_ms = MIN_MS, .max_ms = MAX_MS};

	(void)state;
	assert_in_range(backoff_next(&b, 5 * MAX_MS), 5 * MAX_MS, 5 * MAX_MS + MIN_MS / 2);
	assert_in_range(backoff_next(&b, 1), 150, 250);
}

static void extreme_delays_do_not_overflow(void **state)
{
	struct backoff none = {0}, one = {1, 1, 0}, most = {UINT_MAX / 2, UINT_MAX / 2, 0};

	(void)state;
	assert_int_equal(backoff_next(&none, 0), 0);
	assert_int_equal(backoff_next(&one, 0), 1);
	for (unsigned i = 0; i < TRIES; i++)
		assert_true(backoff_next(&most, 0) >= UINT_MAX / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delays_double_up_to_the_longest),
		cmocka_unit_test(delays_of_two_clients_differ),
		cmocka_unit_test(delays_differ_also_when_the_server_sets_the_minimum),
		cmocka_unit_test(a_server_may_lengthen_a_delay_but_not_shorten_it),
		cmocka_unit_test(extreme_delays_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
