/* The checkpoints of the kubelet's managers. */
#include <daemon-files/kubelet_state_json.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void a_static_manager_is_recognised(void **state)
{
	static const struct {
		const char *text;
		int rc;
		bool is_static;
	} cases[] = {
		{"{\"policyName\":\"none\",\"defaultCpuSet\":\"\",\"checksum\":1353318690}", 0,
			false},
		{"{\"policyName\":\"static\",\"defaultCpuSet\":\"0,3-31\",\"entries\":{\"u\":{"
		 "\"c\":"
		 "\"1-2\"}},\"checksum\":1}",
			0, true},
		{"{\"policyName\":\"Static\",\"machineState\":{},\"checksum\":2}", 0, true},
		{"{\"policyName\":\"None\",\"machineState\":{},\"checksum\":3}", 0, false},
		{"{\"checksum\":3}", -EINVAL, false},
		{"", -EINVAL, false},
		{"[]", -EINVAL, false},
		{"{\"policyName\":7}", -EINVAL, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool is_static = false;
		struct err e = {0};

		assert_int_equal(kubelet_state_json_parse(
					 cases[i].text, strlen(cases[i].text), &is_static, &e),
			cases[i].rc);
		assert_int_equal(is_static, cases[i].is_static);
		assert_int_equal(!e.text[0], !cases[i].rc);
	}
	assert_int_equal(
		kubelet_state_json_parse("", KUBELET_STATE_MAX + 1, &(bool){0}, NULL), -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_static_manager_is_recognised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
