#include <numafit/base64.h>

#include <errno.h>
#include <numafit/mem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Into just as much room as is promised to be enough. */
static char *room_for(size_t len)
{
	return xcalloc(BASE64_ROOM(len), 1);
}

/* RFC 4648, section 10, and what it leaves open. */
static void valid_base64_is_decoded(void **state)
{
	static const struct {
		const char *in, *want;
		long len;
	} good[] = {
		{"", "", 0},
		{"Zg==", "f", 1},
		{"Zm8=", "fo", 2},
		{"Zm9v", "foo", 3},
		{"Zm9vYg==", "foob", 4},
		{"Zm9vYmE=", "fooba", 5},
		{"Zm9vYmFy", "foobar", 6},
		{"+/+/", "\xfb\xff\xbf", 3},
		{"AAAA", "\0\0\0", 3},
		{"Zm9v\nYmFy\r\n", "foobar", 6},
		{"Zg=\n=", "f", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		auto_free char *out = room_for(strlen(good[i].in));
		long len = base64_decode(good[i].in, strlen(good[i].in), out);

		if (len != good[i].len)
			fail_msg("\"%s\": %ld bytes", good[i].in, len);
		assert_memory_equal(out, good[i].want, (size_t)len + 1);
	}
}

static void invalid_base64_is_refused(void **state)
{
	static const char *const bad[] = {
		"Z", "Zg", "Zg=", "Zm8", "=", "====", "Zm9v====", "Z===", /* too short, padding */
		"Zg==Zg==", "Zg=g", "=Zm8",                               /* padding inside */
		"Zh==", "Zm9=",                                           /* bits behind the end */
		"Zm 9v", "Zm9-", "Zm9_", "Zm9v\t", "Zm9\xc3",             /* other characters */
	};
	auto_free char *four = room_for(4);

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		auto_free char *out = room_for(strlen(bad[i]));

		if (base64_decode(bad[i], strlen(bad[i]), out) != -EINVAL)
			fail_msg("\"%s\" was taken", bad[i]);
	}
	assert_int_equal(base64_decode("Zm9\0", 4, four), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(valid_base64_is_decoded),
		cmocka_unit_test(invalid_base64_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
