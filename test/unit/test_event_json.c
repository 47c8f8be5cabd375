#include <apiserver/event_json.h>

#include <codec/fields_json.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct pod_event refusal = {
	.warning = true,
	.reason = "TopologyAffinityError",
	.message = "Resources cannot be allocated with Topology locality",
	.ns = "ml",
	.pod = "train-0",
	.uid = "u-1",
};
/* 2026-01-02T03:04:05Z and a minute later */
static const struct event_times times = {1767323045000, 1767323105999, 7};

static void an_event_is_written_as_the_kubelet_writes_its_own(void **state)
{
	auto_free char *text = event_json_format(&refusal, &times, "n1", 0xabc);

	(void)state;
	assert_string_equal(text,
		"{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":"
		"\"train-0.0000000000000abc\",\"namespace\":\"ml\"},\"involvedObject\":{"
		"\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"namespace\":\"ml\",\"name\":\"train-0\","
		"\"uid\":\"u-1\"},\"type\":\"Warning\",\"reason\":\"TopologyAffinityError\","
		"\"message\":\"Resources cannot be allocated with Topology locality\",\"source\":{"
		"\"component\":\"numafitd\",\"host\":\"n1\"},\"firstTimestamp\":"
		"\"2026-01-02T03:04:05Z\",\"lastTimestamp\":\"2026-01-02T03:05:05Z\",\"count\":7,"
		"\"reportingComponent\":\"numafitd\",\"reportingInstance\":\"n1\"}");
}

static const char *member(const json_t *object, const char *first, const char *second)
{
	const json_t *v = json_object_get(object, first);
	const char *text = json_string_value(second ? json_object_get(v, second) : v);

	return text ? text : "";
}

static json_t *written(const struct pod_event *event)
{
	auto_free char *text = event_json_format(event, &times, "n1", 1);
	json_t *v = NULL;
	struct err e;

	if (json_parse(text, strlen(text), &v, &e))
		fail_msg("%s", e.text);
	return v;
}

static void an_event_about_a_hint_has_the_verdict_as_its_annotation(void **state)
{
	struct pod_event event = refusal;
	json_t *v = written(&event);

	(void)state;
	assert_null(json_object_get(json_object_get(v, "metadata"), "annotations"));
	json_decref(v);
	event.verdict = ADVICE_REJECTED_NOT_FIT;
	v = written(&event);
	assert_string_equal(
		member(json_object_get(v, "metadata"), "annotations", "numafit.io/hint-verdict"),
		"rejected:not-fit");
	json_decref(v);
}

static void an_event_has_its_type_and_the_path_of_its_container(void **state)
{
	static const struct {
		bool warning;
		const char *container;
		enum container_kind kind;
		const char *type, *path;
	} cases[] = {
		{true, NULL, CONTAINER_APP, "Warning", ""},
		{false, "web", CONTAINER_APP, "Normal", "spec.containers{web}"},
		{true, "setup", CONTAINER_INIT, "Warning", "spec.initContainers{setup}"},
		{true, "proxy", CONTAINER_SIDECAR, "Warning", "spec.initContainers{proxy}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct pod_event event = refusal;

		event.warning = cases[i].warning;
		event.container = cases[i].container;
		event.kind = cases[i].kind;
		json_t *v = written(&event);
		assert_string_equal(member(v, "type", NULL), cases[i].type);
		assert_string_equal(member(v, "involvedObject", "fieldPath"), cases[i].path);
		json_decref(v);
	}
}

static void a_message_fits_and_ends_between_two_characters(void **state)
{
	static const struct {
		const char *last; /* behind as many letters */
		size_t letters, want;
	} cases[] = {
		{"", 0, 0},
		{"x", EVENT_MESSAGE_MAX - 1, EVENT_MESSAGE_MAX},
		{"xx", EVENT_MESSAGE_MAX - 1, EVENT_MESSAGE_MAX},
		{"\xc3\xa4", EVENT_MESSAGE_MAX - 2, EVENT_MESSAGE_MAX},
		{"\xc3\xa4", EVENT_MESSAGE_MAX - 1, EVENT_MESSAGE_MAX - 1},
		{"\xe2\x82\xac", EVENT_MESSAGE_MAX - 3, EVENT_MESSAGE_MAX},
		{"\xe2\x82\xac", EVENT_MESSAGE_MAX - 1, EVENT_MESSAGE_MAX - 1},
		{"\xe2\x82\xac", EVENT_MESSAGE_MAX - 2, EVENT_MESSAGE_MAX - 2},
		{"\xf0\x9f\x98\x80", EVENT_MESSAGE_MAX - 4, EVENT_MESSAGE_MAX},
		{"\xf0\x9f\x98\x80", EVENT_MESSAGE_MAX - 1, EVENT_MESSAGE_MAX - 1},
		{"\xf0\x9f\x98\x80", EVENT_MESSAGE_MAX - 3, EVENT_MESSAGE_MAX - 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[EVENT_MESSAGE_MAX + 8] = "", got[EVENT_MESSAGE_MAX + 1];

		memset(text, 'a', cases[i].letters);
		memcpy(text + cases[i].letters, cases[i].last, strlen(cases[i].last));
		event_message(got, text);
		assert_int_equal(strlen(got), cases[i].want);
		assert_true(text_is_utf8(got, strlen(got)));
		assert_memory_equal(got, text, cases[i].want);
	}
}

static void bytes_that_are_not_utf8_and_control_characters_are_replaced(void **state)
{
	char got[EVENT_MESSAGE_MAX + 1], text[EVENT_MESSAGE_MAX * 2];

	(void)state;
	event_message(got, "caf\xe9: \xc3\xa4");
	assert_string_equal(got, "caf?: \xc3\xa4");
	event_message(got, "a\x1b[31m\x7f\n\xc2\x9b\xe2\x80\xae\t.");
	assert_string_equal(got, "a?[31m????????.");
	memset(text, '\x80', sizeof text);
	text[sizeof text - 1] = '\0';
	event_message(got, text);
	assert_true(text_is_utf8(got, strlen(got)));
	assert_in_range(strlen(got), EVENT_MESSAGE_MAX - 4, EVENT_MESSAGE_MAX);
}

static void the_name_of_an_event_is_a_valid_object_name(void **state)
{
	char pod[EVENT_NAME_MAX + 1];

	(void)state;
	for (size_t at = 220; at < EVENT_NAME_MAX; at++) { /* where it is cut, there is a '-' */
		struct pod_event event = refusal;

		memset(pod, 'a', EVENT_NAME_MAX);
		pod[EVENT_NAME_MAX] = '\0';
		pod[at] = pod[at - 1] = '-';
		event.pod = pod;
		json_t *v = written(&event);
		const char *name = member(v, "metadata", "name"), *dot = strchr(name, '.');
		assert_in_range(strlen(name), 1, EVENT_NAME_MAX);
		assert_non_null(dot);
		assert_true(isalnum((unsigned char)dot[-1]));
		assert_string_equal(dot, ".0000000000000001");
		assert_string_equal(member(v, "involvedObject", "name"), pod);
		json_decref(v);
	}
}

/* What is too long for any object is cut, whatever it does then; nothing overflows. */
static void the_longest_event_fits(void **state)
{
	static char wide[4 * EVENT_MESSAGE_MAX];
	const struct pod_event event = {EVENT_OF_REFUSAL, true, wide, wide, NULL, wide, wide, wide,
		wide, CONTAINER_INIT, ADVICE_REJECTED_FOREIGN_CPUSET};

	(void)state;
	memset(wide, '\1', sizeof wide - 1);
	auto_free char *text = event_json_format(&event, &times, wide, UINT64_MAX);
	json_t *v = NULL;
	assert_int_equal(json_parse(text, strlen(text), &v, NULL), 0);
	json_decref(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_written_as_the_kubelet_writes_its_own),
		cmocka_unit_test(an_event_about_a_hint_has_the_verdict_as_its_annotation),
		cmocka_unit_test(an_event_has_its_type_and_the_path_of_its_container),
		cmocka_unit_test(a_message_fits_and_ends_between_two_characters),
		cmocka_unit_test(bytes_that_are_not_utf8_and_control_characters_are_replaced),
		cmocka_unit_test(the_name_of_an_event_is_a_valid_object_name),
		cmocka_unit_test(the_longest_event_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
