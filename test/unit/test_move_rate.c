#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <numafit/move_rate.h>
#include <numafit/number.h>

#include <math.h>

static const uint64_t mi = 1 << 20, gb = 1000000000;

static void assert_seconds(const struct move_rate *r, uint64_t bytes, double want)
{
	double s = move_rate_seconds(r, bytes);

	if (fabs(s - want) > 1e-6 * (1 + want))
		fail_msg("%g s, wanted %g", s, want);
}

static void a_gigabyte_takes_a_second_until_something_was_moved(void **state)
{
	struct move_rate r = {0};

	(void)state;
	assert_seconds(&r, gb, 1);
	assert_seconds(&r, 0, 0);
	assert_seconds(&r, 12 * gb, 12);
}

static void the_first_move_counts_alone_and_later_ones_as_a_quarter(void **state)
{
	struct move_rate r = {0};

	(void)state;
	move_rate_note(&r, 4 * gb, 2 * (uint64_t)NS_PER_S);
	assert_int_equal(r.bytes_per_s, 2 * gb);
	move_rate_note(&r, 6 * gb, NS_PER_S);
	assert_int_equal(r.bytes_per_s, 3 * gb);
	assert_seconds(&r, 9 * gb, 3);
	for (int i = 0; i < 100; i++)
		move_rate_note(&r, gb, 2 * (uint64_t)NS_PER_S);
	assert_true(r.bytes_per_s >= gb / 2 && r.bytes_per_s <= gb / 2 + 3);
}

static void moves_of_less_than_a_mebibyte_or_in_no_time_teach_nothing(void **state)
{
	struct move_rate r = {0};

	(void)state;
	move_rate_note(&r, mi - 1, NS_PER_S);
	move_rate_note(&r, 0, NS_PER_S);
	move_rate_note(&r, gb, 0);
	assert_int_equal(r.bytes_per_s, 0);
	move_rate_note(&r, mi, NS_PER_S);
	assert_int_equal(r.bytes_per_s, mi);
}

/* A wrong clock, and memory of a machine that there is not. */
static void no_figure_makes_the_rate_zero_or_overflow(void **state)
{
	static const uint64_t amounts[] = {1 << 20, 1000000000, UINT64_MAX / 2, UINT64_MAX},
			      times[] = {1, NS_PER_S, UINT64_MAX};

	(void)state;
	for (size_t a = 0; a < sizeof amounts / sizeof *amounts; a++)
		for (size_t t = 0; t < sizeof times / sizeof *times; t++) {
			struct move_rate r = {0};

			for (int i = 0; i < 3; i++)
				move_rate_note(&r, amounts[a], times[t]);
			assert_true(
				r.bytes_per_s >= 1000000 && r.bytes_per_s <= 10000000000000);
			assert_true(isfinite(move_rate_seconds(&r, UINT64_MAX)));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gigabyte_takes_a_second_until_something_was_moved),
		cmocka_unit_test(the_first_move_counts_alone_and_later_ones_as_a_quarter),
		cmocka_unit_test(moves_of_less_than_a_mebibyte_or_in_no_time_teach_nothing),
		cmocka_unit_test(no_figure_makes_the_rate_zero_or_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
