#include <numafit/host_kind.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void a_host_is_a_name_an_address_or_a_loopback_one(void **state)
{
	static const struct {
		const char *text;
		enum host_kind kind;
	} cases[] = {
		{"localhost", HOST_LOOPBACK},
		{"localhost:1", HOST_LOOPBACK},
		{"localhost:65535", HOST_LOOPBACK},
		{"127.0.0.1", HOST_LOOPBACK},
		{"127.0.0.1:9466", HOST_LOOPBACK},
		{"127.255.255.254:80", HOST_LOOPBACK},
		{"[::1]", HOST_LOOPBACK},
		{"[::1]:80", HOST_LOOPBACK},
		{"10.1.2.3", HOST_ADDRESS},
		{"0.0.0.0:80", HOST_ADDRESS},
		{"[::]:80", HOST_ADDRESS},
		{"[fe80::1]", HOST_ADDRESS},
		{"[::ffff:127.0.0.1]:80", HOST_ADDRESS},
		{"example.com", HOST_NAME},
		{"localhost.example.com:80", HOST_NAME},
		{"127.0.0.1.example.com", HOST_NAME},
		{"127.0.0.256", HOST_NAME},
		{"127.1", HOST_NAME},
		{"0127.0.0.1", HOST_NAME},
		{"127.0.0.01", HOST_NAME},
		{"Localhost", HOST_NAME},
		{"", HOST_NONE},
		{":80", HOST_NONE},
		{"localhost:", HOST_NONE},
		{"localhost:65536", HOST_NONE},
		{"localhost:80:80", HOST_NONE},
		{"localhost:x", HOST_NONE},
		{"::1", HOST_NONE},
		{"[::1", HOST_NONE},
		{"[::1]x", HOST_NONE},
		{"[example.com]", HOST_NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (host_kind_of(cases[i].text) != cases[i].kind)
			fail_msg("%s: %d", cases[i].text, (int)host_kind_of(cases[i].text));
}

static void localhost_becomes_an_address_and_nothing_else_changes(void **state)
{
	char buf[32];

	(void)state;
	assert_string_equal(host_as_address("localhost:80", buf, sizeof buf), "127.0.0.1:80");
	assert_string_equal(host_as_address("localhost", buf, sizeof buf), "127.0.0.1");
	assert_string_equal(host_as_address("[::1]:80", buf, sizeof buf), "[::1]:80");
	assert_string_equal(host_as_address("nonsense:x", buf, sizeof buf), "nonsense:x");
	assert_string_equal(host_as_address("", buf, sizeof buf), "");
	assert_string_equal(host_as_address("localhost:80", buf, 4), "localhost:80");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_is_a_name_an_address_or_a_loopback_one),
		cmocka_unit_test(localhost_becomes_an_address_and_nothing_else_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
