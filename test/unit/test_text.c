#include <numafit/text.h>

#include "core_random.h"

#include <errno.h>
#include <inttypes.h>
#include <numafit/quantity.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void a_printed_size_is_read_back_as_the_same_value(void **state)
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
	uint64_t back;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(text_size(buf, cases[i].in), cases[i].want);
	for (unsigned round = 0; round < 10000; round++) {
		uint64_t bytes = random_next(&r) >> 1 >> random_below(&r, 60);

		bytes &= ~UINT64_C(0) << random_below(&r, 60);
		assert_int_equal(
			quantity_parse_count(text_size(buf, bytes), QUANTITY_WHOLE, &back, NULL),
			0);
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

static void booleans_are_written_as_go_accepts_them(void **state)
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

static void a_text_remembers_that_it_was_cut(void **state)
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

static void what_is_put_into_a_text_is_as_if_it_were_formatted(void **state)
{
	static const uint64_t numbers[] = {0, 7, 10, 1023, UINT32_MAX, UINT64_MAX};
	char buf[16], want[16];
	struct text t, by_format;

	(void)state;
	for (size_t i = 0; i < COUNT(numbers); i++)
		for (size_t cap = 0; cap <= sizeof buf; cap++) {
			memset(buf, 'x', sizeof buf);
			memset(want, 'x', sizeof want);
			text_init(&t, buf, cap);
			text_put(&t, "ab,", 3);
			text_put_u64(&t, numbers[i]);
			text_put(&t, "", 0);
			text_init(&by_format, want, cap);
			text_add(&by_format, "ab,%llu", (unsigned long long)numbers[i]);
			assert_memory_equal(buf, want, sizeof buf);
			assert_int_equal(t.len, by_format.len);
			assert_int_equal(t.cut, by_format.cut);
		}
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

static void utf8_is_checked_as_its_definition_demands(void **state)
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
	for (size_t i = 0; i < 20; i++) { /* wherever it is in a longer text */
		char text[] = "0123456789abcdefghij";

		assert_true(text_is_utf8(text, strlen(text)));
		text[i] = '\xff';
		assert_false(text_is_utf8(text, strlen(text)));
	}
}

static uint32_t crc_by_bits(const unsigned char *data, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < len * 8; i++) {
		crc ^= data[i / 8] >> i % 8 & 1;
		crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
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
	for (size_t len = 0; len <= sizeof block; len++)
		assert_int_equal(text_crc32c(block, len), crc_by_bits(block, len));
}

static void sizes_for_people_have_few_digits(void **state)
{
	static const struct {
		uint64_t in;
		const char *want;
	} cases[] = {
		{0, "0"},
		{9999, "9999"},
		{10000, "9.76Ki"},
		{UINT64_C(139008) << 20, "135.75Gi"},
		{UINT64_C(47616) << 20, "46.5Gi"},
		{UINT64_C(65809624) << 10, "62.76Gi"},
		{UINT64_C(1000) << 20, "1000Mi"},
		{UINT64_C(64) << 30, "64Gi"},
		{(UINT64_C(64) << 30) - 1, "63.99Gi"},
		{(UINT64_C(64) << 30) + 1, "64Gi"},
		{UINT64_C(10000) << 40, "9.76Pi"},
		{UINT64_MAX, "15.99Ei"},
	};
	char buf[TEXT_SIZE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(text_size_rounded(buf, cases[i].in), cases[i].want);
}

static void the_place_in_a_sorted_array_is_that_of_the_text_or_of_the_next_one(void **state)
{
	static char b[] = "b", d[] = "d";
	const struct {
		char *key;
		unsigned number;
	} sorted[] = {{b, 1}, {d, 2}};
	static const struct {
		const char *text;
		size_t at;
	} cases[] = {{"a", 0}, {"b", 0}, {"c", 1}, {"d", 1}, {"e", 2}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(text_position(sorted, 2, sizeof *sorted, cases[i].text), cases[i].at);
	assert_int_equal(text_position(NULL, 0, sizeof *sorted, "a"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_for_people_have_few_digits),
		cmocka_unit_test(a_printed_size_is_read_back_as_the_same_value),
		cmocka_unit_test(numbers_are_decimal_whole_and_bounded),
		cmocka_unit_test(booleans_are_written_as_go_accepts_them),
		cmocka_unit_test(a_text_remembers_that_it_was_cut),
		cmocka_unit_test(what_is_put_into_a_text_is_as_if_it_were_formatted),
		cmocka_unit_test(copies_fit_or_are_cut),
		cmocka_unit_test(utf8_is_checked_as_its_definition_demands),
		cmocka_unit_test(the_checksum_is_crc32c),
		cmocka_unit_test(the_place_in_a_sorted_array_is_that_of_the_text_or_of_the_next_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
