/* Whole admissions as the released kubelet decided them, and questions that cannot be read. */
#include <questions/decide_json.h>
#include <codec/fields_json.h>
#include <questions/node_json.h>
#include <codec/pod_json.h>
#include <host/discover.h>

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ARENA_BYTES = 16 << 20 };

static void print_difference(void *ctx, const char *path, const char *wanted, const char *got)
{
	print_message("%s: %s: wanted %s, got %s\n", (const char *)ctx, path, wanted, got);
}

static int load_machine(const char *name, struct topo *out, struct err *e)
{
	return machine_load(name, out, NULL, NULL, e);
}

static void check_file(const char *path, unsigned wanted)
{
	FILE *f = fopen(path, "r");
	unsigned cases = 0, differ = 0;
	char *line = NULL, name[80];
	size_t cap = 0;

	assert_non_null(f);
	while (getline(&line, &cap, f) > 0) {
		struct decide_items *d;
		json_t *result;
		struct arena a;
		struct err e;

		assert_int_equal(decide_items_parse(line, strlen(line), &d, &e), 0);
		arena_init(&a, ARENA_BYTES);
		(void)decide_item_name(d, 0, 0, name, sizeof name);
		if (decide_item_answer(d, 0, load_machine, &a, &result, &e))
			fail_msg("%s: %s", name, e.text);
		differ += decide_item_check(d, 0, result, print_difference, name) != 0;
		cases++;
		json_decref(result);
		arena_fini(&a);
		decide_items_free(d);
	}
	free(line);
	(void)fclose(f);
	assert_int_equal(differ, 0);
	assert_int_equal(cases, wanted);
}

static void admissions_are_those_of_the_released_kubelet(void **state)
{
	(void)state;
	check_file("test/golden/node.jsonl", 60);
}

/* Worked by hand; "why" is in their names. */
static void events_of_a_runtime_are_answered_as_the_daemon_does(void **state)
{
	(void)state;
	check_file("test/golden/events.jsonl", 10);
	check_file("test/golden/resize.jsonl", 13);
	check_file("test/golden/wishes.jsonl", 37);
}

#define ONE_NODE "\"nodes\":[{\"id\":0,\"memory\":1000}],\"distances\":{\"0\":[10]}"
#define CPUS     "\"cpus\":[[0,0,0,0,0],[1,1,0,0,0]]"
#define MACHINE  "\"machine\":{" ONE_NODE "," CPUS "}"
#define POD      "{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}"
#define STATIC   "\"cpuManagerPolicy\":\"static\","
#define STEPS(x) "{" MACHINE ",\"settings\":{},\"steps\":[" x "]}"

static void an_unreadable_question_is_reported_with_its_place(void **state)
{
	static const struct {
		const char *question, *says;
	} table[] = {
		{"{\"machine\":3}", "machine: should be an object"},
		{"{" MACHINE ",\"surprise\":1}", "surprise"},
		{"{\"machine\":{\"nodes\":[],\"cpus\":[]}}",
			"machine: the machine has no NUMA node"},
		{"{\"machine\":{" ONE_NODE ",\"cpus\":[[0,0,0,7,0]]}}",
			"cpus: element 0: there is no NUMA node 7"},
		{"{\"machine\":{" ONE_NODE ",\"cpus\":[[0,0,0,0]]}}",
			"cpus: element 0: should be a list of 5"},
		{"{\"machine\":{" ONE_NODE "," CPUS ",\"devices\":{\"x\":[{}]}}}",
			"devices: x: should be"},
		{"{" MACHINE ",\"settings\":{\"topologyManagerPolic\":\"none\"}}",
			"topologyManagerPolic"},
		{"{" MACHINE ",\"settings\":{},\"steps\":[{\"op\":\"jump\"}]}",
			"steps: element 0: op \"jump\""},
		{"{" MACHINE ",\"settings\":{},\"steps\":[{\"op\":\"admit\"}]}",
			"steps: element 0: pod: should be a v1.Pod"},
		{"{" MACHINE
		 ",\"settings\":{},\"steps\":[{\"op\":\"admit\",\"pod\":{\"spec\":{\"containers\":"
		 "[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"x\"}}}]}}}]}",
			"pod: spec: containers[0]: a: resources: requests.cpu: \"x\""},
		{"{" MACHINE ",\"settings\":{},\"steps\":[{\"op\":\"remove\"}]}",
			"should be an object with uid"},
		{"{\"machine\":\"kep3545-8\"}", "machine: should be an object, is a string"},
		{STEPS("{\"op\":\"remove\",\"uid\":\"a\"},{\"op\":\"admit\",\"pod\":" POD
		       "},{\"op\":\"create\"}"),
			"steps: element 2: op \"create\" is a runtime's event among whole pods"},
		{STEPS("{\"op\":\"create\"},{\"op\":\"admit\",\"pod\":" POD "}"),
			"steps: element 1: op \"admit\" is not one of a runtime's events: run-pod"},
		{STEPS("{\"op\":\"create\",\"cpu\":2}"), "element 0: unknown key \"cpu\""},
		{STEPS("{\"op\":\"create\",\"cpu_milli\":\"2000m\"}"), "element 0: cpu_milli: "},
		{STEPS("{\"op\":\"create\",\"qos\":\"Best\"}"), "element 0: qos: "},
		{STEPS("{\"op\":\"create\",\"pod\":{}}"), "element 0: pod: should be a v1.Pod"},
		{STEPS("{\"op\":\"create\",\"container_id\":\"a/b\"}"),
			"container_id: \"a/b\": should be a word without '/'"},
		{STEPS("{\"op\":\"run-pod\"}"), "element 0: sandbox_id is missing"},
		{STEPS("{\"op\":\"stop-pod\"}"), "element 0: sandbox_id is missing"},
		{STEPS("{\"op\":\"sync\"}"), "containers: should be a list, is nothing"},
		{STEPS("{\"op\":\"sync\",\"containers\":[{}],\"sandboxes\":[1]}"),
			"sandboxes: element 0: should be a string, is an integer"},
		{STEPS("{\"op\":\"sync\",\"containers\":[{\"placement\":\"{\"}]}"),
			"containers: element 0: "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		json_t *item, *result = NULL;
		struct err e = {0};
		struct arena a;

		assert_int_equal(
			json_parse(table[i].question, strlen(table[i].question), &item, &e), 0);
		arena_init(&a, ARENA_BYTES);
		assert_true(node_json_answer(item, NULL, &a, &result, &e) < 0);
		if (!strstr(e.text, table[i].says))
			fail_msg("case %zu: %s", i, e.text);
		json_decref(item);
		arena_fini(&a);
	}
}

static json_t *answer(const char *question, struct arena *a)
{
	json_t *item, *result = NULL;
	struct err e = {0};

	assert_int_equal(json_parse(question, strlen(question), &item, &e), 0);
	if (node_json_answer(item, load_machine, a, &result, &e))
		fail_msg("%s", e.text);
	json_decref(item);
	return result;
}

static void a_missing_machine_is_an_error_and_a_refused_one_is_an_answer(void **state)
{
	static const char nowhere[] = "{\"machine\":\"nowhere\",\"settings\":{},\"steps\":[]}";
	json_t *item, *result = NULL;
	struct arena a;
	struct err e;

	(void)state;
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(json_parse(nowhere, sizeof nowhere - 1, &item, &e), 0);
	assert_true(node_json_answer(item, load_machine, &a, &result, &e) < 0);
	assert_non_null(strstr(e.text, "machine: "));
	json_decref(item);
	result = answer("{\"machine\":\"kep3545-8\",\"settings\":{\"reservedSystemCPUs\":\"999\"},"
			"\"steps\":[{\"op\":\"create\"}]}",
		&a);
	assert_non_null(
		strstr(json_string_value(json_object_get(result, "error")), "reservedSystemCPUs"));
	json_decref(result);
	arena_fini(&a);
}

/* Whole pods, and settings with which a kubelet refuses to start: decide refuses with the text that
 * the check of numafitd's settings has for them. */
static void settings_that_stop_a_kubelet_are_refused_as_the_check_refuses_them(void **state)
{
	static const struct {
		const char *settings, *says;
	} table[] = {
		{STATIC "\"cpuManagerPolicyOptions\":{\"align-by-socket\":\"true\"}",
			"new static policy error: CPU Manager Policy Alpha-level Options not "
			"enabled, but option \"align-by-socket\" provided"},
		{STATIC "\"cpuManagerPolicyOptions\":{\"align-by-socket\":\"false\"}",
			"new static policy error: CPU Manager Policy Alpha-level Options not "
			"enabled, but option \"align-by-socket\" provided"},
		{STATIC "\"featureGates\":{\"CPUManagerPolicyBetaOptions\":\"false\"},"
			"\"cpuManagerPolicyOptions\":{\"distribute-cpus-across-numa\":\"true\"}",
			"new static policy error: CPU Manager Policy Beta-level Options not "
			"enabled, but option \"distribute-cpus-across-numa\" provided"},
		{"\"topologyManagerPolicy\":\"restricted\",\"topologyManagerPolicyOptions\":"
		 "{\"numa-allocation-strategy\":\"most-allocated\"}",
			"topology manager policy alpha-level options not enabled, but option "
			"\"numa-allocation-strategy\" provided"},
		{"\"cpuManagerPolicy\":\"none\",\"cpuManagerPolicyOptions\":"
		 "{\"strict-cpu-reservation\":\"true\",\"full-pcpus-only\":\"false\"}",
			"new none policy error: None policy: received unsupported "
			"options=map[full-pcpus-only:false strict-cpu-reservation:true]"},
		{STATIC "\"featureGates\":{\"PodLevelResourceManagers\":\"true\","
			"\"PodLevelResources\":\"false\"}",
			"PodLevelResourceManagers is enabled, but depends on features that are "
			"disabled: [PodLevelResources]"},
		{STATIC "\"reservedSystemCPUs\":\"1-2\"", "has no CPU 2"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		char question[1024];
		struct arena a;

		(void)snprintf(question, sizeof question,
			"{" MACHINE ",\"settings\":{%s},"
			"\"steps\":[{\"op\":\"remove\",\"uid\":\"a\"}]}",
			table[i].settings);
		arena_init(&a, ARENA_BYTES);
		json_t *result = answer(question, &a);
		const char *why = json_string_value(json_object_get(result, "error"));

		if (!why || !strstr(why, table[i].says))
			fail_msg("case %zu: %s", i, why ? why : "it starts");
		json_decref(result);
		arena_fini(&a);
	}
}

static void reasons_are_in_the_answer_when_the_question_wants_them(void **state)
{
	static const char *const ask[] = {"", ",\"reasons\":true"};
	static const char *const steps[] = {
		"{\"op\":\"create\",\"cpu_milli\":2000}", "{\"op\":\"admit\",\"pod\":" POD "}"};

	(void)state;
	for (unsigned s = 0; s < 2; s++)
		for (unsigned r = 0; r < 2; r++) {
			char question[512];
			struct arena a;

			(void)snprintf(question, sizeof question,
				"{\"machine\":\"kep3545-8\",\"settings\":"
				"{\"topologyManagerPolicy\":\"restricted\"}%s,\"steps\":[%s]}",
				ask[r], steps[s]);
			arena_init(&a, ARENA_BYTES);
			json_t *result = answer(question, &a);
			char *text = json_dumps(result, JSON_COMPACT);
			assert_int_equal(strstr(text, "\"reasons\":") != NULL, r);
			free(text);
			json_decref(result);
			arena_fini(&a);
		}
}

static void a_pods_class_follows_from_what_it_asks_for(void **state)
{
	static const struct {
		const char *spec;
		enum qos qos;
	} table[] = {
		{"{\"containers\":[{\"name\":\"a\"}]}", QOS_BEST_EFFORT},
		{"{\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{\"cpu\":1,\"memory\":"
		 "\"1Gi\"}}}]}",
			QOS_GUARANTEED},
		{"{\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{\"cpu\":1}}}]}",
			QOS_BURSTABLE},
		{"{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":1},"
		 "\"limits\":{\"cpu\":2,"
		 "\"memory\":1}}}]}",
			QOS_BURSTABLE},
		{"{\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{\"cpu\":1,\"memory\":"
		 "\"1Gi\"}}},"
		 "{\"name\":\"b\"}]}",
			QOS_BURSTABLE},
		{"{\"containers\":[{\"name\":\"a\"}],\"resources\":{\"limits\":{\"cpu\":1,"
		 "\"memory\":1}}}",
			QOS_GUARANTEED},
		/* these are no resources of the pod's own */
		{"{\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{\"cpu\":1,"
		 "\"memory\":1}}}],\"resources\":{\"limits\":{\"ephemeral-storage\":1}}}",
			QOS_GUARANTEED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		json_t *spec, *pod;
		struct pod ask;
		struct arena a;
		struct err e;

		assert_int_equal(json_parse(table[i].spec, strlen(table[i].spec), &spec, &e), 0);
		pod = json_pack("{s:o}", "spec", spec);
		arena_init(&a, ARENA_BYTES);
		if (pod_json_read_ask(pod, NULL, 0, &a, NULL, &ask, &e))
			fail_msg("case %zu: %s", i, e.text);
		if (ask.qos != table[i].qos)
			fail_msg("case %zu: %s", i, qos_words[ask.qos]);
		json_decref(pod);
		arena_fini(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(admissions_are_those_of_the_released_kubelet),
		cmocka_unit_test(events_of_a_runtime_are_answered_as_the_daemon_does),
		cmocka_unit_test(an_unreadable_question_is_reported_with_its_place),
		cmocka_unit_test(a_missing_machine_is_an_error_and_a_refused_one_is_an_answer),
		cmocka_unit_test(
			settings_that_stop_a_kubelet_are_refused_as_the_check_refuses_them),
		cmocka_unit_test(reasons_are_in_the_answer_when_the_question_wants_them),
		cmocka_unit_test(a_pods_class_follows_from_what_it_asks_for),
	};

	json_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
