#include <numafit/pod.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void classes_have_kubernetes_names(void **state)
{
	static const char *const names[NR_QOS] = {"Guaranteed", "Burstable", "BestEffort"};

	(void)state;
	for (int q = 0; q < NR_QOS; q++) {
		assert_string_equal(qos_name((enum qos)q), names[q]);
		assert_int_equal(qos_from_name(names[q]), q);
	}
	assert_int_equal(qos_from_name("guaranteed"), -1);
	assert_int_equal(qos_from_name(""), -1);
	assert_int_equal(qos_from_name(NULL), -1);
}

static void the_qos_class_is_read_from_the_cgroup_path(void **state)
{
	static const struct {
		const char *in;
		enum qos want;
	} cases[] = {
		{"/kubepods/besteffort/pod1234", QOS_BEST_EFFORT},
		{"/kubepods/burstable/pod1234", QOS_BURSTABLE},
		{"/kubepods/pod1234", QOS_GUARANTEED},
		{"kubepods-besteffort-pod1234.slice", QOS_BEST_EFFORT},
		{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234.slice",
			QOS_BURSTABLE},
		{"/kubepods.slice/kubepods-pod1234.slice", QOS_GUARANTEED},
		{"", QOS_GUARANTEED},
		{NULL, QOS_GUARANTEED},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(qos_from_cgroup_parent(cases[i].in), cases[i].want);
}

static void annotations_are_found_by_their_key(void **state)
{
	static const struct key_value annotations[] = {
		{"a", "1"}, {"numafit.io/numa-hint", "{}"}, {"empty", ""}, {"a", "2"}};
	const struct pod p = {.annotations = annotations, .nr_annotations = COUNT(annotations)};

	(void)state;
	assert_string_equal(pod_annotation(&p, "numafit.io/numa-hint"), "{}");
	assert_string_equal(pod_annotation(&p, "a"), "1");
	assert_string_equal(pod_annotation(&p, "empty"), "");
	assert_null(pod_annotation(&p, "numafit.io/numa"));
	assert_null(pod_annotation(&(struct pod){0}, "a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_have_kubernetes_names),
		cmocka_unit_test(the_qos_class_is_read_from_the_cgroup_path),
		cmocka_unit_test(annotations_are_found_by_their_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
