#include <io/own_address.h>

#include <numafit/text.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static union address address(const char *text)
{
	union address a = {.v4 = {.sin_family = AF_INET}};

	if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1)
		return a;
	a = (union address){.v6 = {.sin6_family = AF_INET6}};
	assert_int_equal(inet_pton(AF_INET6, text, &a.v6.sin6_addr), 1);
	return a;
}

static void loopback_and_configured_addresses_are_own(void **state)
{
	static const struct {
		const char *also, *in;
		bool want;
	} cases[] = {
		{NULL, "127.0.0.1", true},
		{NULL, "127.9.9.9", true},
		{NULL, "::1", true},
		{NULL, "::ffff:127.0.0.1", true},
		{NULL, "198.51.100.1", false}, /* TEST-NET-2: nobody has it */
		{NULL, "2001:db8::1", false},
		{NULL, "0.0.0.0", false},
		{NULL, "::", false},
		{"198.51.100.1", "198.51.100.1", true},
		{"198.51.100.1", "::ffff:198.51.100.1", true},
		{"198.51.100.1", "198.51.100.2", false},
		{"198.51.100.1,2001:db8::1", "2001:db8::1", true},
		{"198.51.100.1, 2001:db8::1", "2001:db8::1", true},
		{"nonsense,,gateway,198.51.100.1", "198.51.100.1", true},
		{"0.0.0.0,::", "::", false},
		{"gateway", "198.51.100.1", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct own_addresses *o = own_addresses_new(cases[i].also);
		union address a = address(cases[i].in);

		if (own_addresses_have(o, &a.any, 1) != cases[i].want)
			fail_msg("%zu: %s", i, cases[i].in);
		own_addresses_free(o);
	}
}

static void the_addresses_of_interfaces_are_own(void **state)
{
	struct own_addresses *o = own_addresses_new(NULL);
	struct ifaddrs *list;
	unsigned nr = 0;

	(void)state;
	assert_int_equal(getifaddrs(&list), 0);
	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		if (i->ifa_addr &&
			(i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6)) {
			assert_true(own_addresses_have(o, i->ifa_addr, 1));
			nr++;
		}
	assert_true(nr > 0);
	freeifaddrs(list);
	own_addresses_free(o);
}

/* Where the default route of this machine leads, if it has one. */
static void gateways_are_own_when_the_setting_says_so(void **state)
{
	struct own_addresses *plain = own_addresses_new(NULL), *o = own_addresses_new("gateway");
	char line[512];
	unsigned to, via;
	FILE *f = fopen("/proc/net/route", "re");

	(void)state;
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%*s %8x %8x", &to, &via) == 2 && !to && via) {
			union address a = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = via}};

			assert_true(own_addresses_have(o, &a.any, 1));
			assert_false(own_addresses_have(plain, &a.any, 1));
		}
	if (f)
		(void)fclose(f);
	own_addresses_free(plain);
	own_addresses_free(o);
}

static void ipv4_has_one_form(void **state)
{
	union address v4 = address("198.51.100.1"), mapped = address("::ffff:198.51.100.1"),
		      unix_one = {.any = {.sa_family = AF_UNIX}};
	struct in6_addr a = address_of(&v4.any), b = address_of(&mapped.any),
			none = address_of(&unix_one.any);

	(void)state;
	assert_memory_equal(&a, &b, sizeof a);
	assert_true(IN6_IS_ADDR_UNSPECIFIED(&none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_and_configured_addresses_are_own),
		cmocka_unit_test(the_addresses_of_interfaces_are_own),
		cmocka_unit_test(gateways_are_own_when_the_setting_says_so),
		cmocka_unit_test(ipv4_has_one_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
