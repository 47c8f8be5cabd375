#include <kubelet/plugin_registration_pb.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "kubelet_wire.h"

static const char *const versions[] = {
	"v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"};

static void the_plugins_info_is_written_as_go_writes_it(void **state)
{
	static const struct plugin_info info = {"DRAPlugin", "numafit.io",
		"/var/lib/kubelet/plugins/numafit.io/dra.sock", versions, 4};
	struct blob out;

	assert_int_equal(plugin_info_encode(&info, *state, &out, NULL), 0);
	assert_bytes(out, "plugin_info", *state);
}

static void an_endpoint_that_is_not_utf8_is_not_sent(void **state)
{
	static const struct plugin_info info = {.endpoint = "\xff"};
	struct blob out;
	struct err e;

	assert_int_equal(plugin_info_encode(&info, *state, &out, &e), -EILSEQ);
	assert_string_equal(e.text, "PluginInfo.endpoint is not UTF-8");
}

static void gos_yes_and_no_are_read(void **state)
{
	struct plugin_status status;

	assert_int_equal(
		plugin_status_decode(recorded("plugin_registered", *state), *state, &status, NULL),
		0);
	assert_true(status.registered);
	assert_string_equal(status.error, "");
	assert_int_equal(
		plugin_status_decode(recorded("plugin_refused", *state), *state, &status, NULL), 0);
	assert_false(status.registered);
	assert_string_equal(status.error, "no handler");
}

static void a_malformed_status_is_refused(void **state)
{
	static const unsigned char cut[] = {0x12, 5, 'x'};
	struct plugin_status status;
	struct err e;

	assert_int_equal(plugin_status_decode((struct blob){cut, sizeof cut}, *state, &status, &e),
		-EBADMSG);
	assert_string_equal(e.text, "3 bytes are no RegistrationStatus");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ARENA(the_plugins_info_is_written_as_go_writes_it),
		ON_ARENA(an_endpoint_that_is_not_utf8_is_not_sent),
		ON_ARENA(gos_yes_and_no_are_read),
		ON_ARENA(a_malformed_status_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
