/* Which kubelet is followed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <numafit/kubernetes.h>

static void a_kubelets_version_is_the_nearest_one_that_is_known(void **state)
{
	static const struct {
		const char *kubelet;
		enum kubernetes_version version;
	} cases[] = {
		{"v1.36.3", KUBERNETES_1_36},
		{"v1.36", KUBERNETES_1_36},
		{"v1.31.14", KUBERNETES_1_36},
		{"v1.9.0", KUBERNETES_1_36},
		{"v1.37.1", KUBERNETES_1_37},
		{"v1.37.0-alpha.1+abc", KUBERNETES_1_37},
		{"v1.38.0", KUBERNETES_NEWEST},
		{"v1.9999.0", KUBERNETES_NEWEST},
		{"v1.99999999999999999999", KUBERNETES_AUTO},
		{"v2.0.0", KUBERNETES_AUTO},
		{"1.36.3", KUBERNETES_AUTO},
		{"v1.", KUBERNETES_AUTO},
		{"", KUBERNETES_AUTO},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(kubernetes_of_kubelet(cases[i].kubelet), cases[i].version);
}

static void the_rules_of_1_37_are_not_those_of_1_36(void **state)
{
	(void)state;
	for (int r = 0; r < NR_KUBERNETES_RULES; r++) {
		assert_false(kubernetes_has(KUBERNETES_1_36, (enum kubernetes_rule)r));
		assert_true(kubernetes_has(KUBERNETES_1_37, (enum kubernetes_rule)r));
		assert_true(kubernetes_has(KUBERNETES_AUTO, (enum kubernetes_rule)r));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kubelets_version_is_the_nearest_one_that_is_known),
		cmocka_unit_test(the_rules_of_1_37_are_not_those_of_1_36),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
