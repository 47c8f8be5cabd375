#include <numafit/quantity.h>

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Quantity.Value() and Quantity.MilliValue(), or the errno of a refusal in `refused`. */
static const struct count_case {
	const char *in;
	int refused;
	uint64_t value;
	int milli_refused;
	uint64_t milli;
} counts[] = {
	{"0", 0, 0, 0, 0},
	{"0.0", 0, 0, 0, 0},
	{"0Ei", 0, 0, 0, 0},
	{"1", 0, 1, 0, 1000},
	{"+1", 0, 1, 0, 1000},
	{"007", 0, 7, 0, 7000},
	{"1.", 0, 1, 0, 1000},
	{".5", 0, 1, 0, 500},
	{"1.5", 0, 2, 0, 1500},
	{"500m", 0, 1, 0, 500},
	{"1500m", 0, 2, 0, 1500},
	{"1000m", 0, 1, 0, 1000},
	{"1001m", 0, 2, 0, 1001},
	{"0.1", 0, 1, 0, 100},
	{"0.0001", 0, 1, 0, 1},
	{"0.00000000000000000000000001", 0, 1, 0, 1},
	{"0.0000000000000000000000000000000000000001", 0, 1, 0, 1},
	{"0.00000000000000000000000000000000000000001", 0, 1, 0, 1},
	{"1.000000000000000000000", 0, 1, 0, 1000},
	{"1.0000000000000000000000000000000001", 0, 2, 0, 1001},
	{"00000000000000000000000000000000002", 0, 2, 0, 2000},
	{"1n", 0, 1, 0, 1},
	{"999999999n", 0, 1, 0, 1000},
	{"1000000001n", 0, 2, 0, 1001},
	{"1u", 0, 1, 0, 1},
	{"1000u", 0, 1, 0, 1},
	{"1001u", 0, 1, 0, 2},
	{"1k", 0, 1000, 0, 1000000},
	{"1M", 0, 1000000, 0, 1000000000},
	{"2.5G", 0, INT64_C(2500000000), 0, INT64_C(2500000000000)},
	{"3T", 0, INT64_C(3000000000000), 0, INT64_C(3000000000000000)},
	{"4P", 0, INT64_C(4000000000000000), 0, INT64_C(4000000000000000000)},
	{"9E", 0, INT64_C(9000000000000000000), ERANGE, 0},
	{"1Ki", 0, 1024, 0, 1024000},
	{"1Mi", 0, 1 << 20, 0, INT64_C(1048576000)},
	{"64Gi", 0, INT64_C(64) << 30, 0, (INT64_C(64) << 30) * 1000},
	{"1.5Gi", 0, INT64_C(3) << 29, 0, (INT64_C(3) << 29) * 1000},
	{"0.1Ki", 0, 103, 0, 102400},
	{"0.0001Ki", 0, 1, 0, 103},
	{"1Ti", 0, INT64_C(1) << 40, 0, (INT64_C(1) << 40) * 1000},
	{"1Pi", 0, INT64_C(1) << 50, 0, (INT64_C(1) << 50) * 1000},
	{"7Ei", 0, INT64_C(7) << 60, ERANGE, 0},
	{"1.00000000000000000000000000Ei", 0, INT64_C(1) << 60, ERANGE, 0},
	{"1e3", 0, 1000, 0, 1000000},
	{"1E3", 0, 1000, 0, 1000000},
	{"1e+3", 0, 1000, 0, 1000000},
	{"12.34e2", 0, 1234, 0, 1234000},
	{"1500e-3", 0, 2, 0, 1500},
	{"1e-30", 0, 1, 0, 1},
	{"9223372036854775807", 0, INT64_MAX, ERANGE, 0},
	{"9223372036854775.807", 0, INT64_C(9223372036854776), 0, INT64_MAX},
	{"9223372036854775806.5", 0, INT64_MAX, ERANGE, 0},
	{"9223372036854775807.1", ERANGE, 0, ERANGE, 0},
	{"9223372036854775808", ERANGE, 0, ERANGE, 0},
	{"8Ei", 0, INT64_MAX, ERANGE, 0}, /* as there */
	{"7.9999999999999999999999999999Ei", 0, INT64_MAX, ERANGE, 0},
	{"10E", ERANGE, 0, ERANGE, 0},
	{"1e40", ERANGE, 0, ERANGE, 0},
	{"1e2147483647", ERANGE, 0, ERANGE, 0},
	{"0e2147483647", 0, 0, 0, 0},
	{"1e-2147483647", 0, 1, 0, 1},
	{"999999999999999999999999999Ei", 0, INT64_MAX, ERANGE, 0},
	{"999999999999999999999999999", ERANGE, 0, ERANGE, 0},
	{"-1", ERANGE, 0, ERANGE, 0},
	{"-1Gi", ERANGE, 0, ERANGE, 0},
	{"", EINVAL, 0, EINVAL, 0},
	{".", EINVAL, 0, EINVAL, 0},
	{"+", EINVAL, 0, EINVAL, 0},
	{"+-1", EINVAL, 0, EINVAL, 0},
	{" 1", EINVAL, 0, EINVAL, 0},
	{"1 ", EINVAL, 0, EINVAL, 0},
	{"1.1.M", EINVAL, 0, EINVAL, 0},
	{"1+1.0M", EINVAL, 0, EINVAL, 0},
	{"0.1mi", EINVAL, 0, EINVAL, 0},
	{"0.1am", EINVAL, 0, EINVAL, 0},
	{"aoeu", EINVAL, 0, EINVAL, 0},
	{".5i", EINVAL, 0, EINVAL, 0},
	{"1i", EINVAL, 0, EINVAL, 0},
	{"1ki", EINVAL, 0, EINVAL, 0},
	{"1K", EINVAL, 0, EINVAL, 0},
	{"1GB", EINVAL, 0, EINVAL, 0},
	{"1e", EINVAL, 0, EINVAL, 0},
	{"3.01e-", EINVAL, 0, EINVAL, 0},
	{"1e3Ki", EINVAL, 0, EINVAL, 0},
	{"1e9999999999999999999999", EINVAL, 0, EINVAL, 0},
	{"0x10", EINVAL, 0, EINVAL, 0},
};

static void check_count(const char *in, enum quantity_unit unit, int refused, uint64_t want)
{
	uint64_t got = 7;
	int rc = quantity_parse_count(in, unit, &got, NULL);

	if (rc != -refused || got != (rc ? 7 : want))
		fail_msg("\"%s\": want %" PRIu64 " (%d), got %" PRIu64 " (%d)", in, want, -refused,
			got, rc);
}

static void whole_units_and_thousandths_are_counted_as_kubernetes_counts_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(counts); i++) {
		check_count(counts[i].in, QUANTITY_WHOLE, counts[i].refused, counts[i].value);
		check_count(counts[i].in, QUANTITY_MILLI, counts[i].milli_refused, counts[i].milli);
	}
}

/* Each line: a text, then Value() and MilliValue() of apimachinery's Quantity of it, "negative" or
 * "large" where no count is wanted or int64 does not hold it, or "error". */
static void quantities_count_as_recorded_from_kubernetes(void **state)
{
	FILE *f = fopen("test/golden/quantities.txt", "re");
	char line[256];
	unsigned nr = 0;

	(void)state;
	assert_non_null(f);
	for (; fgets(line, sizeof line, f); nr++) {
		char *column[3] = {line}, text[2][32];
		struct quantity q;

		for (unsigned i = 1; i < 3 && column[i - 1]; i++)
			if ((column[i] = strchr(column[i - 1], '\t')))
				*column[i]++ = '\0';
		column[column[2] ? 2 : 1][strcspn(column[column[2] ? 2 : 1], "\n")] = '\0';
		int rc = quantity_parse(&q, line, NULL);
		if (!column[2]) {
			assert_string_equal(column[1], "error");
			assert_int_equal(rc, -EINVAL);
			continue;
		}
		assert_int_equal(rc, 0);
		for (unsigned unit = 0; unit < 2; unit++) {
			uint64_t count;

			rc = quantity_count(q, (enum quantity_unit)unit, &count, NULL);
			(void)snprintf(text[unit], sizeof text[unit], "%" PRIu64, rc ? 0 : count);
			if (strcmp(column[1 + unit], !rc           ? text[unit]
						     : q.whole < 0 ? "negative"
								   : "large") != 0)
				fail_msg("%s: %s, not %s", line, text[unit], column[1 + unit]);
		}
	}
	(void)fclose(f);
	assert_true(nr > 1000);
}

static void a_refused_quantity_is_quoted(void **state)
{
	static const struct {
		const char *in, *want;
		enum quantity_unit unit;
	} cases[] = {
		{"1GB", "\"1GB\" is not a quantity such as 500m, 2, 1.5 or 16Gi", QUANTITY_WHOLE},
		{"-1Gi", "quantity \"-1Gi\" is negative", QUANTITY_WHOLE},
		{"-500m", "quantity \"-500m\" is negative", QUANTITY_MILLI},
		{"7Ei", "quantity \"7Ei\" is too large", QUANTITY_MILLI},
		{"1e40", "quantity \"1e40\" is too large", QUANTITY_WHOLE},
	};
	uint64_t got;
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_true(quantity_parse_count(cases[i].in, cases[i].unit, &got, &e) < 0);
		assert_string_equal(e.text, cases[i].want);
	}
}

static struct quantity parsed(const char *s)
{
	struct quantity q = {0};
	struct err e;

	if (quantity_parse(&q, s, &e))
		fail_msg("%s", e.text);
	return q;
}

static void an_amount_is_kept_as_exactly_as_kubernetes_keeps_it(void **state)
{
	static const struct {
		const char *text;
		int64_t whole;
		uint32_t nano;
		int64_t value, milli;
	} cases[] = {
		{"0", 0, 0, 0, 0},
		{"2", 2, 0, 2, 2000},
		{"+2", 2, 0, 2, 2000},
		{"500m", 0, 500000000, 1, 500},
		{"1.5", 1, 500000000, 2, 1500},
		{"1.", 1, 0, 1, 1000},
		{".5", 0, 500000000, 1, 500},
		{"1500000u", 1, 500000000, 2, 1500},
		{"1n", 0, 1, 1, 1},
		{"0.0000000001", 0, 1, 1, 1}, /* rounded up to what there is */
		{"1.0000000001", 1, 1, 2, 1001},
		{"16Gi", INT64_C(16) << 30, 0, INT64_C(16) << 30, (INT64_C(16) << 30) * 1000},
		{"1.5Gi", INT64_C(3) << 29, 0, INT64_C(3) << 29, (INT64_C(3) << 29) * 1000},
		{"0.3Ki", 307, 200000000, 308, 307200},
		{"40G", INT64_C(40000000000), 0, INT64_C(40000000000), INT64_C(40000000000000)},
		{"1e3", 1000, 0, 1000, 1000000},
		{"12E-1", 1, 200000000, 2, 1200},
		{"1E", INT64_C(1000000000000000000), 0, INT64_C(1000000000000000000), INT64_MAX},
		{"8Ei", INT64_MAX, 0, INT64_MAX, INT64_MAX},
		{"9223372036854775807.5", INT64_MAX, 500000000, INT64_MAX, INT64_MAX},
		{"9223372036854775808", INT64_MAX, 999999999, INT64_MAX, INT64_MAX},
		{"1e40", INT64_MAX, 999999999, INT64_MAX, INT64_MAX},
		{"123456789012345678901", INT64_MAX, 999999999, INT64_MAX, INT64_MAX},
		{"1.000000000000000000000", 1, 0, 1, 1000},
		{"1.00000000000000000000000000000000000000000000001", 1, 1, 2, 1001},
		{"-1500m", -2, 500000000, -2, -1500},
		{"-1n", -1, 999999999, -1, -1},
		{"-3", -3, 0, -3, -3000},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct quantity q = parsed(cases[i].text);

		if (q.whole != cases[i].whole || q.nano != cases[i].nano ||
			quantity_value(q) != cases[i].value || quantity_milli(q) != cases[i].milli)
			fail_msg("%s: %lld and %u, %lld, %lld", cases[i].text, (long long)q.whole,
				q.nano, (long long)quantity_value(q), (long long)quantity_milli(q));
	}
}

static void a_malformed_amount_is_refused(void **state)
{
	static const char *const cases[] = {"", "-", ".", "m", "1 ", " 1", "1K", "1mi", "1e", "1e+",
		"1e99999999999", "0x10", "1.2.3", "--1", "+-1", "1e5m", "NaN"};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct quantity q = {7, 7};

		if (quantity_parse(&q, cases[i], NULL) != -EINVAL || q.whole != 7)
			fail_msg("\"%s\"", cases[i]);
	}
}

static void amounts_add_subtract_and_compare_with_their_fractions(void **state)
{
	static const struct {
		const char *a, *b, *sum, *difference;
		int order;
	} cases[] = {
		{"1", "2", "3", "-1", -1},
		{"700m", "600m", "1300m", "100m", 1},
		{"2", "500m", "2500m", "1500m", 1},
		{"500m", "2", "2500m", "-1500m", -1},
		{"1.5", "1500m", "3", "0", 0},
		{"8Ei", "1", "9223372036854775808", "9223372036854775806", 1},
		{"1e30", "1e30", "1e30", "0", 0},
		{"1n", "2n", "3n", "-1n", -1},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct quantity a = parsed(cases[i].a), b = parsed(cases[i].b);

		assert_int_equal(quantity_compare(a, b), cases[i].order);
		assert_int_equal(quantity_compare(quantity_add(a, b), parsed(cases[i].sum)), 0);
		assert_int_equal(
			quantity_compare(quantity_sub(a, b), parsed(cases[i].difference)), 0);
	}
	assert_int_equal(quantity_sub(parsed("-8Ei"), parsed("8Ei")).whole, INT64_MIN);
}

static void a_written_amount_can_be_read_back(void **state)
{
	static const char *const cases[] = {"0", "2", "500m", "1500m", "16Gi", "1000", "-3",
		"-1500m", "0.000000001", "-1Ki", "-9223372036854775807.999990000"};
	char buf[QUANTITY_TEXT_MAX];

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(quantity_text(buf, parsed(cases[i])), cases[i]);
	assert_string_equal(quantity_text(buf, parsed("0.5Ki")), "512");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_units_and_thousandths_are_counted_as_kubernetes_counts_them),
		cmocka_unit_test(quantities_count_as_recorded_from_kubernetes),
		cmocka_unit_test(a_refused_quantity_is_quoted),
		cmocka_unit_test(an_amount_is_kept_as_exactly_as_kubernetes_keeps_it),
		cmocka_unit_test(a_malformed_amount_is_refused),
		cmocka_unit_test(amounts_add_subtract_and_compare_with_their_fractions),
		cmocka_unit_test(a_written_amount_can_be_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
