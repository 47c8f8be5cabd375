#include <numafit-extender/extender_json.h>

#include <codec/api_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* What a real kube-scheduler sent, and what its extender of that time answered. */
static json_t *recorded(const char *name, char **request, json_t **response)
{
	char path[128];
	json_error_t e;

	(void)snprintf(path, sizeof path, "test/extender/%s.json", name);
	json_t *v = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
	if (!v)
		fail_msg("%s: %s", path, e.text);
	*request = json_dumps(json_object_get(v, "request"), JSON_COMPACT);
	*response = json_object_get(v, "response");
	return v;
}

static void expect(char *text, size_t len, const json_t *wanted)
{
	json_error_t e;
	json_t *got = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);

	assert_int_equal(strlen(text), len);
	if (!got || !json_equal(got, wanted)) {
		char *other = json_dumps(wanted, JSON_COMPACT | JSON_ENCODE_ANY);
		fail_msg("%s\nwanted: %s", text, other);
	}
	json_decref(got);
	free(text);
}

static void recorded_filters_are_answered_as_they_were(void **state)
{
	static const struct {
		const char *file;
		const char *why; /* of every node */
	} rows[] = {
		{"real_filter_names", NULL},
		{"real_filter_nodes", NULL},
		{"real_filter_reject", "no NUMA node has 2 free CPUs"},
	};
	struct extender_verdict v[2];
	struct extender_args args;
	json_t *response;
	char *request;
	size_t len;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *file = recorded(rows[i].file, &request, &response);

		assert_int_equal(extender_args_read(request, strlen(request), &args, &e), 0);
		assert_int_equal(args.nr, 2);
		assert_string_equal(args.node[0].name, "worker-a");
		assert_string_equal(args.node[1].name, "worker-b");
		v[0] = v[1] = (struct extender_verdict){rows[i].why, false};
		/* that one sent an empty list along with the names, which means nothing */
		if (args.by_name)
			(void)json_object_set_new(response, "Nodes", json_null());
		char *text = extender_filter_write(&args, v, &len);
		expect(text, len, response);
		extender_args_fini(&args);
		json_decref(file);
		free(request);
	}
}

static void nodes_go_back_byte_for_byte(void **state)
{
	static const char request[] =
		"{\"pod\":{}, \"NODES\" : {\"metadata\":{ \"x\":1.50e0 },\"items\":[ "
		"{\"metadata\": {\"name\":\"a\"}, \"n\" : 10000000000000000000001 } , "
		"{\"metadata\":{\"name\":\"b\"}}]},\"NodeNames\":null,\"More\":[]}";
	const struct extender_verdict v[2] = {{NULL, false}, {"it is \"full\"", true}};
	struct extender_args args;
	size_t len;
	struct err e;

	(void)state;
	assert_int_equal(extender_args_read(request, sizeof request - 1, &args, &e), 0);
	auto_free char *text = extender_filter_write(&args, v, &len);
	assert_string_equal(text,
		"{\"Nodes\":{\"metadata\":{ \"x\":1.50e0 },\"items\":[{\"metadata\": "
		"{\"name\":\"a\"}, \"n\" : 10000000000000000000001 }]},\"NodeNames\":null,"
		"\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{\"b\":\"numafit: it is "
		"\\u0022full\\u0022\"},\"Error\":\"\"}");
	extender_args_fini(&args);
}

static void recorded_scores_are_answered_as_they_were(void **state)
{
	static const int64_t score[2] = {5, 10};
	struct extender_args args;
	json_t *response;
	char *request;
	size_t len;
	struct err e;

	(void)state;
	json_t *file = recorded("real_prioritize_names", &request, &response);
	assert_int_equal(extender_args_read(request, strlen(request), &args, &e), 0);
	assert_true(args.by_name);
	char *text = extender_scores_write(&args, score, &len);
	expect(text, len, response);
	extender_args_fini(&args);
	json_decref(file);
	free(request);
}

static void a_recorded_preemption_is_answered_as_it_was(void **state)
{
	struct extender_preempt p;
	json_t *response;
	char *request;
	size_t len;
	struct err e;

	(void)state;
	json_t *file = recorded("real_preempt_names", &request, &response);
	assert_int_equal(extender_preempt_read(request, strlen(request), &p, &e), 0);
	assert_int_equal(p.nr, 2);
	assert_int_equal(p.at[1].nr, 2);
	char *text = extender_preempt_write(&p, &len);
	expect(text, len, response);
	p.at[1].dropped = true;
	(void)json_object_del(json_object_get(response, "NodeNameToMetaVictims"), p.at[1].node);
	text = extender_preempt_write(&p, &len);
	expect(text, len, response);
	extender_preempt_fini(&p);
	json_decref(file);
	free(request);
}

static void preemption_answers_victims_by_their_uids(void **state)
{
	static const char request[] = "{\"Pod\":{},\"NodeNameToVictims\":{\"a\":{\"Pods\":[{"
				      "\"metadata\":{\"uid\":\"u\"}}],"
				      "\"NumPDBViolations\":-3}},\"NodeNameToMetaVictims\":null}";
	struct extender_preempt p;
	size_t len;
	struct err e;

	(void)state;
	assert_int_equal(extender_preempt_read(request, sizeof request - 1, &p, &e), 0);
	auto_free char *text = extender_preempt_write(&p, &len);
	assert_string_equal(text, "{\"NodeNameToMetaVictims\":{\"a\":{\"Pods\":[{\"UID\":\"u\"}],"
				  "\"NumPDBViolations\":-3}}}");
	extender_preempt_fini(&p);
}

static void recorded_bindings_are_answered_as_they_were(void **state)
{
	static const struct {
		const char *file, *error, *name;
	} rows[] = {
		{"real_bind", "", "demo-1"},
		{"real_bind_fail", "numafit: worker-b changed since the decision, try again",
			"demo-3"},
	};
	struct extender_bind b;
	json_t *response;
	char *request;
	size_t len;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *file = recorded(rows[i].file, &request, &response);

		assert_int_equal(extender_bind_read(request, strlen(request), &b, &e), 0);
		assert_string_equal(b.name, rows[i].name);
		assert_string_equal(b.ns, "default");
		assert_string_equal(b.node, "worker-b");
		char *text = extender_bind_write(rows[i].error, &len);
		expect(text, len, response);
		extender_bind_fini(&b);
		json_decref(file);
		free(request);
	}
}

static void an_error_is_escaped(void **state)
{
	size_t len;

	(void)state;
	auto_free char *text = extender_bind_write("a \"b\"\n", &len);
	assert_string_equal(text, "{\"Error\":\"a \\u0022b\\u0022\\u000a\"}");
}

static void odd_requests_are_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"", "byte 0: it ends too early"},
		{"{\"Pod\":{}", "byte 9: it ends too early"},
		{"{\"Pod\":{}} x", "byte 11: something else is expected"},
		{"{\"Pod\":01}", "byte 8"},
		{"{\"Pod\":1.}", "byte 9"},
		{"{\"Pod\":\"\\x\"}", "byte 9"},
		{"{\"Pod\":\"\\u12g4\"}", "something else is expected"},
		{"{\"Pod\":\"\t\"}", "something else is expected"},
		{"{\"Pod\":{},}", "byte 10"},
		{"{\"Pod\":nul}", "byte 7"},
		{"{\"Pod\":{},\"x\":\"\xff\"}", "UTF-8"},
		{"7", "should be an object"},
		{"{}", "Pod: should be an object"},
		{"{\"Pod\":null}", "Pod: should be an object"},
		{"{\"Pod\":[]}", "Pod: should be an object"},
		{"{\"Pod\":{},\"NodeNames\":{}}", "NodeNames: should be a list"},
		{"{\"Pod\":{},\"NodeNames\":[\"a\",null]}", "NodeNames[1]: should be a string"},
		{"{\"Pod\":{},\"NodeNames\":[\"\"]}", "NodeNames[0]: \"\" is no node's name"},
		{"{\"Pod\":{},\"NodeNames\":[\"a\\n\"]}", "is no node's name"},
		{"{\"Pod\":{},\"Nodes\":[]}", "Nodes: should be an object"},
		{"{\"Pod\":{},\"Nodes\":{\"items\":1}}", "Nodes.items: should be a list"},
		{"{\"Pod\":{},\"Nodes\":{\"items\":[[]]}}", "Nodes.items[0]: should be an object"},
		{"{\"Pod\":{},\"Nodes\":{\"items\":[{\"metadata\":{}}]}}", "has no metadata.name"},
	};
	struct extender_args args;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int rc = extender_args_read(rows[i].text, strlen(rows[i].text), &args, &e);

		assert_int_equal(rc, -EINVAL);
		if (!strstr(e.text, rows[i].says))
			fail_msg("row %zu: %s", i, e.text);
	}
}

/* len bytes between begin and end. */
static char *padded(const char *begin, const char *piece, size_t nr, const char *end)
{
	size_t len = strlen(piece);
	char *text = xcalloc(strlen(begin) + nr * len + strlen(end) + 1, 1), *at = text;

	at += sprintf(at, "%s", begin);
	for (size_t i = 0; i < nr; i++)
		at = mempcpy(at, piece, len);
	(void)sprintf(at, "%s", end);
	return text;
}

/* "1," takes 32 bytes as a value. */
static void a_request_with_too_many_values_is_refused(void **state)
{
	auto_free char *pod = padded("{\"Pod\":{\"a\":[", "1,", EXTENDER_POD_TEXT_MAX / 2, "1]}}");
	auto_free char *nodes =
		padded("{\"Pod\":{},\"NodeNames\":[", "\"a\",", EXTENDER_NODES_MAX, "\"a\"]}");
	auto_free char *preempt =
		padded("{\"Pod\":{},\"a\":[", "1,", EXTENDER_PREEMPT_TEXT_MAX / 2, "1]}");
	auto_free char *bind = padded("{\"a\":[", "1,", EXTENDER_BIND_TEXT_MAX / 2, "1]}");
	struct extender_preempt p;
	struct extender_args args;
	struct extender_bind b;
	struct err e;

	(void)state;
	assert_int_equal(extender_args_read(pod, strlen(pod), &args, &e), -EINVAL);
	assert_non_null(strstr(e.text, "Pod: too long"));
	assert_int_equal(extender_args_read(nodes, strlen(nodes), &args, &e), -EINVAL);
	assert_non_null(strstr(e.text, "NodeNames: more than 131072 nodes"));
	assert_int_equal(extender_preempt_read(preempt, strlen(preempt), &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "too long"));
	assert_int_equal(extender_bind_read(bind, strlen(bind), &b, &e), -EINVAL);
	assert_non_null(strstr(e.text, "too long"));
}

static void json_that_go_accepts_is_accepted(void **state)
{
	static const struct {
		const char *text;
		size_t nr;
		bool by_name;
	} rows[] = {
		{"{\"Pod\":{}}", 0, true},
		{"{\"Pod\":{},\"Nodes\":null,\"NodeNames\":null}", 0, true},
		{" { \"Pod\" : { } , \"NodeNames\" : [ ] } ", 0, true},
		{"{\"pod\":{},\"nodenames\":[\"a\",\"b\"]}", 2, true},
		{"{\"Pod\":null,\"NodeNames\":[\"a\"],\"Pod\":{},\"NodeNames\":[\"b\",\"c\"]}", 2,
			true},
		{"{\"Pod\":{},\"Nodes\":{},\"NodeNames\":[\"a\"]}", 0, false},
		{"{\"Pod\":{},\"Nodes\":{\"items\":null}}", 0, false},
		{"{\"Pod\":{\"a\":\"\\u0000\"}}", 0, true},
	};
	struct extender_args args;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (extender_args_read(rows[i].text, strlen(rows[i].text), &args, &e))
			fail_msg("row %zu: %s", i, e.text);
		assert_int_equal(args.nr, rows[i].nr);
		assert_int_equal(args.by_name, rows[i].by_name);
		extender_args_fini(&args);
	}
}

static void depth_is_bounded(void **state)
{
	char text[2 * SPAN_DEPTH_MAX + 4];
	struct span v;
	struct err e;

	(void)state;
	for (size_t deep = SPAN_DEPTH_MAX; deep <= SPAN_DEPTH_MAX + 1; deep++) {
		memset(text, '[', deep);
		memset(text + deep, ']', deep);
		int rc = span_read(text, 2 * deep, &v, &e);

		assert_int_equal(rc, deep > SPAN_DEPTH_MAX ? -EINVAL : 0);
	}
	assert_non_null(strstr(e.text, "too deep"));
}

static void a_walk_visits_each_key_and_value(void **state)
{
	static const char text[] =
		"{\"a\\\"\" : \"}\\\\\" , \"b\":[1,{\"c\":[]},\"]\\\"\",true],\"d\":-1.5e+3}";
	static const char *const wanted[] = {"\"a\\\"\"", "\"}\\\\\"", "\"b\"",
		"[1,{\"c\":[]},\"]\\\"\",true]", "\"d\"", "-1.5e+3"};
	struct span v, key, value;
	size_t nr = 0;

	(void)state;
	assert_int_equal(span_read(text, sizeof text - 1, &v, NULL), 0);
	struct span_walk w = span_walk(v);
	while (span_next(&w, &key, &value)) {
		assert_int_equal(key.len, strlen(wanted[nr]));
		assert_memory_equal(key.at, wanted[nr++], key.len);
		assert_int_equal(value.len, strlen(wanted[nr]));
		assert_memory_equal(value.at, wanted[nr++], value.len);
	}
	assert_int_equal(nr, 6);
	assert_true(span_member(v, "b", &value));
	assert_int_equal(span_count(value), 4);
	assert_false(span_member(v, "a", &value));
	assert_false(span_member(value, "a", &value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_filters_are_answered_as_they_were),
		cmocka_unit_test(nodes_go_back_byte_for_byte),
		cmocka_unit_test(recorded_scores_are_answered_as_they_were),
		cmocka_unit_test(a_recorded_preemption_is_answered_as_it_was),
		cmocka_unit_test(preemption_answers_victims_by_their_uids),
		cmocka_unit_test(recorded_bindings_are_answered_as_they_were),
		cmocka_unit_test(an_error_is_escaped),
		cmocka_unit_test(odd_requests_are_refused),
		cmocka_unit_test(a_request_with_too_many_values_is_refused),
		cmocka_unit_test(json_that_go_accepts_is_accepted),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(a_walk_visits_each_key_and_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
