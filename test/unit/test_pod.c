#include <numafit/pod.h>
#include <numafit/text.h>

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
		assert_string_equal(qos_words[(enum qos)q], names[q]);
		assert_int_equal(text_index(qos_words, NR_QOS, names[q]), q);
	}
	assert_int_equal(text_index(qos_words, NR_QOS, "guaranteed"), -1);
	assert_int_equal(text_index(qos_words, NR_QOS, ""), -1);
	assert_int_equal(text_index(qos_words, NR_QOS, NULL), -1);
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

static void init_containers_need_theirs_one_after_the_other(void **state)
{
	static const struct ask part[] = {
		{.kind = CONTAINER_INIT, .cpu_milli = 9000, .nr_memory = 1, .memory = {{0, 10}}},
		{.kind = CONTAINER_SIDECAR, .cpu_milli = 1000, .nr_memory = 1, .memory = {{0, 3}}},
		{.kind = CONTAINER_INIT, .cpu_milli = 500, .nr_memory = 1, .memory = {{0, 20}}},
		{.cpu_milli = 2000, .nr_memory = 2, .memory = {{0, 4}, {2048, 6}}},
		{.cpu_milli = 2500, .nr_memory = 2, .memory = {{2048, 1}, {2048, 1}}},
	};
	const struct pod pod = {.qos = QOS_GUARANTEED,
		.nr = COUNT(part),
		.container = part,
		.totals = {true, 99000, 99}};
	const struct ask sum = pod_ask(&pod);

	(void)state;
	assert_int_equal(pod_needs_at_once(&pod, (struct pod_resource){.kind = POD_CPUS}), 9);
	assert_int_equal(sum.cpu_milli, 9000);
	assert_int_equal(sum.nr_memory, 2);
	assert_int_equal(sum.memory[0].bytes, 23);
	assert_int_equal(sum.memory[1].page_bytes, 2048);
	assert_int_equal(sum.memory[1].bytes, 8);
}

static void a_pod_whose_containers_are_not_known_asks_for_its_sandboxes_sums(void **state)
{
	const struct pod pod = {.totals = {true, 1500, 99}}, nothing = {.totals = {false, 1, 1}};

	(void)state;
	assert_int_equal(pod_ask(&pod).cpu_milli, 1500);
	assert_int_equal(pod_ask(&pod).memory[0].bytes, 99);
	assert_int_equal(pod_ask(&nothing).cpu_milli, 0);
	assert_int_equal(pod_ask(&nothing).nr_memory, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_have_kubernetes_names),
		cmocka_unit_test(the_qos_class_is_read_from_the_cgroup_path),
		cmocka_unit_test(annotations_are_found_by_their_key),
		cmocka_unit_test(init_containers_need_theirs_one_after_the_other),
		cmocka_unit_test(a_pod_whose_containers_are_not_known_asks_for_its_sandboxes_sums),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
