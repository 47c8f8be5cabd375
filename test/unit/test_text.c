#include <numafit/text.h>

#include "core_random.h"

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
static const struct quantity_case {
	const char *in;
	int refused;
	int64_t value;
	int milli_refused;
	int64_t milli;
} quantities[] = {
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
	{"0.00000000000000000000000000000000000000001", EINVAL, 0, EINVAL, 0},
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
	{"8Ei", ERANGE, 0, ERANGE, 0},
	{"10E", ERANGE, 0, ERANGE, 0},
	{"1e40", ERANGE, 0, ERANGE, 0},
	{"999999999999999999999999999Ei", ERANGE, 0, ERANGE, 0},
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

static void check_quantity(const char *in, int rc, int64_t got, int refused, int64_t want)
{
	if (rc != -refused || (!rc && got != want))
		fail_msg("\"%s\": want %" PRId64 " (%d), got %" PRId64 " (%d)", in, want, -refused,
			got, rc);
}

static void quantities_are_read_as_kubernetes_reads_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(quantities); i++) {
		const struct quantity_case *c = &quantities[i];
		int64_t got = -7;
		int rc = text_quantity(c->in, &got, NULL);

		check_quantity(c->in, rc, got, c->refused, c->value);
		if (rc)
			assert_int_equal(got, -7);
		rc = text_quantity_milli(c->in, &got, NULL);
		check_quantity(c->in, rc, got, c->milli_refused, c->milli);
	}
}

static void a_refused_quantity_is_quoted(void **state)
{
	int64_t got;
	struct err e;

	(void)state;
	(void)text_quantity("1GB", &got, &e);
	assert_string_equal(e.text, "\"1GB\" is not a quantity such as 500m, 2, 1.5 or 16Gi");
	(void)text_quantity("-1Gi", &got, &e);
	assert_string_equal(e.text, "quantity \"-1Gi\" is negative");
	(void)text_quantity("8Ei", &got, &e);
	assert_string_equal(e.text, "quantity \"8Ei\" is too large");
}

static void a_size_is_read_back_as_it_was_written(void **state)
{
	static const struct {
		uint64_t in;
		const char *want;
	} cases[] = {{0, "0"}, {1000, "1000"}, {1023, "1023"}, {1024, "1Ki"}, {1536, "1536"},
		{2 << 20, "2Mi"}, {UINT64_C(3) << 29, "1536Mi"}, {UINT64_C(16) << 30, "16Gi"},
		{UINT64_C(1) << 60, "1Ei"}, {UINT64_C(1) << 63, "8Ei"},
		{UINT64_MAX, "18446744073709551615"}};
	char buf[TEXT_SIZE_MAX];
	struct random r = {3};
	int64_t back;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(text_size(buf, cases[i].in), cases[i].want);
	for (unsigned round = 0; round < 10000; round++) {
		uint64_t bytes = random_next(&r) >> 1 >> random_below(&r, 60);

		bytes &= ~UINT64_C(0) << random_below(&r, 60);
		assert_int_equal(text_quantity(text_size(buf, bytes), &back, NULL), 0);
		assert_int_equal(back, bytes);
	}
}

static void numbers_are_decimal_whole_and_bounded(void **state)
{
	static const struct {
		const char *in;
		uint64_t max;
		int rc;
		uint64_t want;
		const char *text;
	} cases[] = {
		{"0", 9, 0, 0, NULL},
		{"0009", 9, 0, 9, NULL},
		{"18446744073709551615", UINT64_MAX, 0, UINT64_MAX, NULL},
		{"18446744073709551616", UINT64_MAX, -ERANGE, 0,
			"18446744073709551616 is above 18446744073709551615"},
		{"99999999999999999999999", UINT64_MAX, -ERANGE, 0,
			"99999999999999999999999 is above 18446744073709551615"},
		{"10", 9, -ERANGE, 0, "10 is above 9"},
		{"", 9, -EINVAL, 0, "a number is missing"},
		{"-1", 9, -EINVAL, 0, "\"-1\" is not a number"},
		{"+1", 9, -EINVAL, 0, "\"+1\" is not a number"},
		{" 1", 9, -EINVAL, 0, "\" 1\" is not a number"},
		{"1x", 9, -EINVAL, 0, "\"1x\" is not a number"},
		{"99999999999999999999999x", 9, -EINVAL, 0,
			"\"99999999999999999999999x\" is not a number"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t got = 7;
		struct err e = {0};

		assert_int_equal(text_u64(cases[i].in, strlen(cases[i].in), cases[i].max, &got, &e),
			cases[i].rc);
		assert_int_equal(got, cases[i].rc ? 7 : cases[i].want);
		assert_string_equal(e.text, cases[i].text ? cases[i].text : "");
	}
	uint64_t got;
	assert_int_equal(text_u64("123", 2, 99, &got, NULL), 0); /* len counts, not the NUL */
	assert_int_equal(got, 12);
}

static void booleans_are_those_of_go(void **state)
{
	static const char *const words[] = {
		"1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"};
	static const char *const others[] = {
		"", "yes", "no", "on", "off", "tRUE", "2", " 1", "truee"};
	struct err e;
	bool got;

	(void)state;
	for (size_t i = 0; i < COUNT(words); i++) {
		assert_int_equal(text_bool(words[i], &got, NULL), 0);
		assert_int_equal(got, i < 6);
	}
	for (size_t i = 0; i < COUNT(others); i++)
		assert_int_equal(text_bool(others[i], &got, NULL), -EINVAL);
	(void)text_bool("yes", &got, &e);
	assert_string_equal(e.text, "\"yes\" is not true or false");
}

static void a_writer_remembers_that_it_was_cut(void **state)
{
	char buf[8];
	struct text t;

	(void)state;
	text_init(&t, buf, sizeof buf);
	assert_string_equal(buf, "");
	text_add(&t, "%d-%d", 12, 34);
	text_add(&t, "%s", "67");
	assert_string_equal(buf, "12-3467");
	assert_false(t.cut);
	text_add(&t, "%s", "");
	assert_false(t.cut);
	text_add(&t, "8");
	assert_true(t.cut);
	assert_string_equal(buf, "12-3467");
	text_init(&t, buf, sizeof buf);
	text_add(&t, "%s", "longer than that");
	text_add(&t, "more");
	assert_string_equal(buf, "longer ");
	assert_int_equal(t.len, 7);
	text_init(&t, NULL, 0);
	text_add(&t, "x");
	assert_true(t.cut);
}

static void copies_fit_or_are_cut(void **state)
{
	char buf[4];

	(void)state;
	assert_true(text_copy(buf, sizeof buf, "abc"));
	assert_string_equal(buf, "abc");
	assert_false(text_copy(buf, sizeof buf, "abcd"));
	assert_string_equal(buf, "abc");
	assert_true(text_copy(buf, 1, ""));
	assert_true(text_equal(NULL, ""));
	assert_true(text_equal("a", "a"));
	assert_false(text_equal("a", NULL));
}

/* The code point by its definition, 0xffffffff when the bytes are no shortest form of one. */
static uint32_t decode(const unsigned char *s, size_t len)
{
	static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t c = len == 1   ? s[0]
		     : len == 2 ? s[0] & 0x1f
		     : len == 3 ? s[0] & 0x0f
				: s[0] & 0x07;
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0},
				   mask[] = {0, 0x80, 0xe0, 0xf0, 0xf8};

	if ((s[0] & mask[len]) != lead[len])
		return UINT32_MAX;
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return UINT32_MAX;
		c = c << 6 | (s[i] & 0x3f);
	}
	bool good = c >= lowest[len] && c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff);
	return good ? c : UINT32_MAX;
}

static bool utf8_by_definition(const unsigned char *s, size_t len)
{
	if (!len)
		return true;
	for (size_t step = 1; step <= 4 && step <= len; step++)
		if (decode(s, step) != UINT32_MAX && utf8_by_definition(s + step, len - step))
			return true;
	return false;
}

static void utf8_is_what_its_definition_says(void **state)
{
	static const unsigned char bytes[] = {0x00, 'a', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
		0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4,
		0xf5, 0xff};
	enum { NR = sizeof bytes };
	unsigned good = 0;

	(void)state;
	for (unsigned n = 0; n < NR * NR * NR * NR; n++) {
		unsigned char s[4] = {bytes[n % NR], bytes[n / NR % NR], bytes[n / NR / NR % NR],
			bytes[n / NR / NR / NR]};

		for (size_t len = 1; len <= 4; len++) {
			bool want = utf8_by_definition(s, len);

			good += want;
			if (text_is_utf8((const char *)s, len) != want)
				fail_msg("%02x %02x %02x %02x, %zu bytes: want %d", s[0], s[1],
					s[2], s[3], len, want);
		}
	}
	assert_true(good > 1000);
	assert_true(text_is_utf8(NULL, 0));
}

static void the_checksum_is_crc32c(void **state)
{
	unsigned char block[32];

	(void)state;
	assert_int_equal(text_crc32c("", 0), 0);
	assert_int_equal(text_crc32c("123456789", 9), 0xe3069283);
	memset(block, 0, sizeof block); /* RFC 3720, B.4 */
	assert_int_equal(text_crc32c(block, sizeof block), 0x8a9136aa);
	memset(block, 0xff, sizeof block);
	assert_int_equal(text_crc32c(block, sizeof block), 0x62a8ab43);
	for (unsigned i = 0; i < sizeof block; i++)
		block[i] = (unsigned char)i;
	assert_int_equal(text_crc32c(block, sizeof block), 0x46dd794e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantities_are_read_as_kubernetes_reads_them),
		cmocka_unit_test(a_refused_quantity_is_quoted),
		cmocka_unit_test(a_size_is_read_back_as_it_was_written),
		cmocka_unit_test(numbers_are_decimal_whole_and_bounded),
		cmocka_unit_test(booleans_are_those_of_go),
		cmocka_unit_test(a_writer_remembers_that_it_was_cut),
		cmocka_unit_test(copies_fit_or_are_cut),
		cmocka_unit_test(utf8_is_what_its_definition_says),
		cmocka_unit_test(the_checksum_is_crc32c),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
