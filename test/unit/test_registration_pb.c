#include <kubelet/registration_pb.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "kubelet_wire.h"

static void a_registration_is_written_as_go_writes_it(void **state)
{
	static const struct plugin_registration r = {
		"numafit-4711.sock", "numafit.io/cpu", {.preferred_allocation = true}};
	struct blob out;

	assert_int_equal(registration_encode(&r, *state, &out, NULL), 0);
	assert_bytes(out, "register", *state);
}

static void a_name_that_is_not_utf8_is_not_sent(void **state)
{
	static const struct plugin_registration odd[] = {
		{.endpoint = "\xff", .resource = "numafit.io/cpu"},
		{.endpoint = "numafit.sock", .resource = "numafit.io/\xff"},
	};
	struct blob out;
	struct err e;

	for (size_t i = 0; i < 2; i++)
		assert_int_equal(registration_encode(&odd[i], *state, &out, &e), -EILSEQ);
	assert_string_equal(e.text, "RegisterRequest.resource_name is not UTF-8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ARENA(a_registration_is_written_as_go_writes_it),
		ON_ARENA(a_name_that_is_not_utf8_is_not_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
