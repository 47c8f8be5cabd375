#include <codec/api_json.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { DEEP = 3000, NEAR_DEEP = 1000, LONG_MANAGER = 300 };

static struct json_t *parsed(const char *text)
{
	struct json_t *v = NULL;
	struct err e = {0};

	if (api_json_parse(text, strlen(text), &v, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return v;
}

static void a_body_must_be_exactly_one_object(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "not JSON"},
		{"{", "not JSON"},
		{"{} {}", "not JSON"},
		{"[]", "a list"},
		{"7", "not JSON"},
		{"\"text\"", "not JSON"},
		{"<html>", "not JSON"},
		{"{\"a\":\"\xff\"}", "not JSON"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct json_t *v = NULL;
		struct err e = {0};

		assert_int_equal(
			api_json_parse(cases[i].text, strlen(cases[i].text), &v, &e), -EINVAL);
		assert_non_null(strstr(e.text, cases[i].says));
		assert_null(v);
	}
	api_json_free(parsed("{}"));
	api_json_free(NULL);
}

static char *nested(size_t depth)
{
	char *text = calloc(depth, sizeof "{\"a\":}"), *at = text;

	for (size_t i = 0; i < depth; i++)
		at = stpcpy(at, "{\"a\":");
	*at++ = '1';
	memset(at, '}', depth);
	return text;
}

static void json_that_is_nested_too_deeply_is_refused(void **state)
{
	char *text = nested(DEEP);
	struct json_t *v = NULL;
	struct err e;

	(void)state;
	assert_int_equal(api_json_parse(text, strlen(text), &v, &e), -EINVAL);
	assert_non_null(strstr(e.text, "depth"));
	free(text);
	text = nested(NEAR_DEEP);
	assert_int_equal(api_json_parse(text, strlen(text), &v, &e), 0);
	api_json_free(v);
	free(text);
}

/* Anybody who may make a pod may write this, and the whole list would be lost. */
static void a_nul_in_an_annotation_does_not_spoil_the_list(void **state)
{
	struct json_t *v =
		parsed("{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"metadata\":"
		       "{\"name\":\"a\",\"annotations\":{\"k\":\"x\\u0000y\"}}}]}");
	struct api_list list;
	struct api_meta meta;

	(void)state;
	assert_int_equal(api_json_list(v, &list, NULL), 0);
	api_json_meta(api_json_item(v, 0), &meta);
	assert_string_equal(meta.name, "a");
	api_json_free(v);
}

static void metadata_is_read(void **state)
{
	struct json_t *v = parsed("{\"metadata\":{\"name\":\"n\",\"namespace\":\"s\",\"uid\":\"u\","
				  "\"resourceVersion\":\"12\",\"annotations\":{\"a\":\"b\"}}}");
	struct api_meta m;

	(void)state;
	api_json_meta(v, &m);
	assert_string_equal(m.name, "n");
	assert_string_equal(m.ns, "s");
	assert_string_equal(m.uid, "u");
	assert_string_equal(m.version, "12");
	assert_false(m.initial_events_end);
	api_json_free(v);
}

static void a_member_that_is_missing_or_of_another_type_is_empty(void **state)
{
	static const char *const texts[] = {"{}", "{\"metadata\":null}", "{\"metadata\":[]}",
		"{\"metadata\":{\"name\":7,\"namespace\":null,\"resourceVersion\":{}}}"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct json_t *v = parsed(texts[i]);
		struct api_meta m;

		api_json_meta(v, &m);
		assert_string_equal(m.name, "");
		assert_string_equal(m.ns, "");
		assert_string_equal(m.uid, "");
		assert_string_equal(m.version, "");
		assert_false(m.initial_events_end);
		api_json_free(v);
	}
}

static void a_status_has_a_message_and_a_retry_time(void **state)
{
	static const struct {
		const char *text;
		bool is;
		int code;
		const char *reason, *message;
		unsigned retry_after_s;
	} cases[] = {
		{"{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"storage is "
		 "(re)initializing\",\"reason\":\"TooManyRequests\",\"details\":{"
		 "\"retryAfterSeconds\":1},\"code\":429}",
			true, 429, "TooManyRequests", "storage is (re)initializing", 1},
		{"{\"kind\":\"Status\"}", true, 0, "", "", 0},
		{"{\"kind\":\"Status\",\"code\":\"404\",\"reason\":7,\"details\":[]}", true, 0, "",
			"", 0},
		{"{\"kind\":\"Status\",\"code\":-1,\"details\":{\"retryAfterSeconds\":-7}}", true,
			0, "", "", 0},
		{"{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":9999999999999}}", true, 0,
			"", "", UINT32_MAX},
		{.text = "{\"kind\":\"Pod\",\"code\":404}"},
		{.text = "{}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct json_t *v = parsed(cases[i].text);
		struct api_status s;

		assert_int_equal(api_json_status(v, &s), cases[i].is);
		if (cases[i].is) {
			assert_int_equal(s.code, cases[i].code);
			assert_string_equal(s.reason, cases[i].reason);
			assert_string_equal(s.message, cases[i].message);
			assert_int_equal(s.retry_after_s, cases[i].retry_after_s);
		}
		api_json_free(v);
	}
}

#define CONFLICT(causes) "{\"kind\":\"Status\",\"details\":{\"causes\":[" causes "]}}"
#define CAUSE(message)                                                                             \
	"{\"reason\":\"FieldManagerConflict\",\"message\":\"" message "\",\"field\":\".zones\"}"

static void a_conflict_names_the_manager_of_the_field(void **state)
{
	static const struct {
		const char *text, *manager;
	} cases[] = {
		{CONFLICT(CAUSE("conflict with \\\"kubectl\\\" using topology.node.k8s.io/"
				"v1alpha2")),
			"kubectl"},
		{CONFLICT("{\"reason\":\"FieldValueInvalid\",\"message\":\"a \\\"b\\\"\"}," CAUSE(
			 "conflict with \\\"nfd\\\"")),
			"nfd"},
		{CONFLICT(CAUSE("conflict with \\\"\\\"")), ""},
		{CONFLICT(CAUSE("conflict")), NULL},
		{CONFLICT(CAUSE("conflict with \\\"half")), NULL},
		{CONFLICT("7,null,{}"), NULL},
		{"{\"details\":null}", NULL},
		{"{}", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct json_t *v = parsed(cases[i].text);
		struct api_conflict c;

		assert_int_equal(api_json_conflict(v, &c), cases[i].manager != NULL);
		if (cases[i].manager) {
			assert_string_equal(c.manager, cases[i].manager);
			assert_string_equal(c.field, ".zones");
		}
		api_json_free(v);
	}
}

static void a_field_manager_may_be_as_long_as_the_api_server_allows(void **state)
{
	static const struct {
		int len;
		bool fits;
	} cases[] = {{API_MANAGER_MAX, true}, {API_MANAGER_MAX + 1, false}, {LONG_MANAGER, false}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[2 * LONG_MANAGER];
		struct api_conflict c;

		(void)snprintf(
			text, sizeof text, CONFLICT(CAUSE("with \\\"%0*d\\\"")), cases[i].len, 7);
		struct json_t *v = parsed(text);
		assert_int_equal(api_json_conflict(v, &c), cases[i].fits);
		api_json_free(v);
	}
}

static void a_list_has_a_version_items_and_perhaps_more(void **state)
{
	static const struct {
		const char *text;
		size_t nr;
		const char *version, *more, *says;
	} cases[] = {
		{"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}", 0, "5", "", NULL},
		{"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":null}", 0, "5", "", NULL},
		{"{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"c\"},\"items\":[{},{}]}",
			2, "5", "c", NULL},
		{"{\"items\":[]}", 0, NULL, NULL, "resourceVersion is missing"},
		{"{\"metadata\":{\"resourceVersion\":\"\"},\"items\":[]}", 0, NULL, NULL,
			"resourceVersion is missing"},
		{"{\"metadata\":{\"resourceVersion\":\"5\"}}", 0, NULL, NULL, "is nothing"},
		{"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":{}}", 0, NULL, NULL,
			"is an object"},
		{"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{},7]}", 0, NULL, NULL,
			"element 1: should be an object, is an integer"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct json_t *v = parsed(cases[i].text);
		struct api_list list;
		struct err e = {0};

		if (cases[i].says) {
			assert_int_equal(api_json_list(v, &list, &e), -EINVAL);
			assert_non_null(strstr(e.text, cases[i].says));
		} else {
			assert_int_equal(api_json_list(v, &list, &e), 0);
			assert_string_equal(list.version, cases[i].version);
			assert_string_equal(list.more, cases[i].more);
			assert_int_equal(list.nr, cases[i].nr);
		}
		api_json_free(v);
	}
	assert_int_equal(api_json_list(NULL, &(struct api_list){0}, NULL), -EINVAL);
}

static void a_watch_event_has_a_type_and_an_object(void **state)
{
	static const struct {
		const char *type;
		enum api_event_type want;
	} cases[] = {
		{"ADDED", API_ADDED},
		{"MODIFIED", API_MODIFIED},
		{"DELETED", API_DELETED},
		{"BOOKMARK", API_BOOKMARK},
		{"SOMETHING", API_OTHER},
		{"added", API_OTHER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[256];
		struct api_event event;
		struct api_meta meta;

		(void)snprintf(text, sizeof text,
			"{\"type\":\"%s\",\"object\":{\"metadata\":{\"name\":\"a\","
			"\"resourceVersion\":\"9\"}}}",
			cases[i].type);
		struct json_t *v = parsed(text);
		assert_int_equal(api_json_event(v, &event, NULL), 0);
		assert_int_equal(event.type, cases[i].want);
		assert_string_equal(event.meta.version, "9");
		api_json_meta(event.object, &meta);
		assert_string_equal(meta.name, "a");
		api_json_free(v);
	}
}

static void a_bookmark_may_end_the_initial_events(void **state)
{
	struct json_t *v = parsed("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
				  "\"resourceVersion\":\"9\",\"annotations\":{"
				  "\"k8s.io/initial-events-end\":\"true\"}}}}");
	struct api_event event;

	(void)state;
	assert_int_equal(api_json_event(v, &event, NULL), 0);
	assert_true(event.meta.initial_events_end);
	api_json_free(v);
}

static void an_error_event_has_its_status(void **state)
{
	struct json_t *v = parsed("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":"
				  "410,\"reason\":\"Expired\",\"message\":\"too old\"}}");
	struct api_event event;

	(void)state;
	assert_int_equal(api_json_event(v, &event, NULL), 0);
	assert_int_equal(event.type, API_ERROR);
	assert_int_equal(event.status.code, 410);
	assert_string_equal(event.status.reason, "Expired");
	assert_string_equal(event.status.message, "too old");
	api_json_free(v);
}

static void a_malformed_event_is_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"{}", "without a type"},
		{"{\"type\":7,\"object\":{}}", "without a type"},
		{"{\"type\":\"ADDED\"}", "is nothing"},
		{"{\"type\":\"ADDED\",\"object\":[]}", "is a list"},
		{"{\"type\":\"ERROR\",\"object\":{}}", "without a Status"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct json_t *v = parsed(cases[i].text);
		struct api_event event;
		struct err e = {0};

		assert_int_equal(api_json_event(v, &event, &e), -EINVAL);
		assert_non_null(strstr(e.text, cases[i].says));
		api_json_free(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_must_be_exactly_one_object),
		cmocka_unit_test(json_that_is_nested_too_deeply_is_refused),
		cmocka_unit_test(a_nul_in_an_annotation_does_not_spoil_the_list),
		cmocka_unit_test(metadata_is_read),
		cmocka_unit_test(a_member_that_is_missing_or_of_another_type_is_empty),
		cmocka_unit_test(a_status_has_a_message_and_a_retry_time),
		cmocka_unit_test(a_conflict_names_the_manager_of_the_field),
		cmocka_unit_test(a_field_manager_may_be_as_long_as_the_api_server_allows),
		cmocka_unit_test(a_list_has_a_version_items_and_perhaps_more),
		cmocka_unit_test(a_watch_event_has_a_type_and_an_object),
		cmocka_unit_test(a_bookmark_may_end_the_initial_events),
		cmocka_unit_test(an_error_event_has_its_status),
		cmocka_unit_test(a_malformed_event_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
