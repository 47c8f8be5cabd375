#include <io/backoff.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { START = 1000, EVERY = 10, BURST = 3 };

static void a_burst_passes_at_once_and_then_one_in_each_interval(void **state)
{
	struct rate r = {.burst = BURST, .every_ns = EVERY};
	uint64_t now = START;

	(void)state;
	for (unsigned i = 0; i < BURST; i++) {
		assert_int_equal(rate_when(&r, now), now);
		rate_take(&r, now);
	}
	for (unsigned i = 1; i <= 5; i++) {
		now = rate_when(&r, now);
		assert_int_equal(now, START + i * EVERY);
		rate_take(&r, now);
	}
}

static void the_burst_is_restored_with_time_up_to_its_size(void **state)
{
	struct rate r = {.burst = BURST, .every_ns = EVERY};
	uint64_t now = START;

	(void)state;
	for (unsigned i = 0; i < BURST; i++)
		rate_take(&r, now);
	now += 100 * EVERY;
	for (unsigned i = 0; i < BURST; i++) {
		assert_int_equal(rate_when(&r, now), now);
		rate_take(&r, now);
	}
	assert_int_equal(rate_when(&r, now), now + EVERY);
}

static void a_burst_of_zero_allows_one_at_a_time(void **state)
{
	struct rate r = {.burst = 1, .every_ns = EVERY};

	(void)state;
	assert_int_equal(rate_when(&r, START), START);
	rate_take(&r, START);
	assert_int_equal(rate_when(&r, START), START + EVERY);
	assert_int_equal(rate_when(&r, START + EVERY), START + EVERY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_passes_at_once_and_then_one_in_each_interval),
		cmocka_unit_test(the_burst_is_restored_with_time_up_to_its_size),
		cmocka_unit_test(a_burst_of_zero_allows_one_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
