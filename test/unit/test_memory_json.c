#include <questions/memory_json.h>

#include <questions/diff_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { ARENA_BYTES = 64 << 20, RECORDED = 60, TEXT_MAX = 4096, QUESTION_MAX = 2 * TEXT_MAX };

static void fail_on_difference(void *ctx, const char *path, const char *wanted, const char *got)
{
	fail_msg("%s: %s: wanted %s, got %s", (const char *)ctx, path, wanted, got);
}

static json_t *parse(const char *text)
{
	json_error_t where;
	json_t *v = json_loads(text, JSON_REJECT_DUPLICATES, &where);

	if (!v)
		fail_msg("%s at %d of %s", where.text, where.position, text);
	return v;
}

/* The answer, NULL with *e when there is none. */
static json_t *answer(const char *question, struct err *e)
{
	json_t *item = parse(question), *result = NULL;
	struct arena a;

	arena_init(&a, ARENA_BYTES);
	*e = (struct err){0};
	int rc = memory_json_answer(item, &a, &result, e);
	assert_int_equal(rc, -e->code);
	assert_true(!rc == (result != NULL));
	arena_fini(&a);
	json_decref(item);
	return result;
}

/* Sequences of pods through the released memory manager, 1.36.3. */
static void every_recorded_sequence_is_answered_as_the_kubelet_did(void **state)
{
	FILE *f = fopen("test/golden/memory.jsonl", "re");
	auto_free char *line = NULL;
	size_t cap = 0;
	unsigned nr = 0;

	(void)state;
	assert_non_null(f);
	for (; getline(&line, &cap, f) > 0; nr++) {
		json_t *item = parse(line);
		const char *name = json_string_value(json_object_get(item, "name"));
		struct err e;
		json_t *result = answer(line, &e);
		char place[64];

		if (!result)
			fail_msg("%s: %s", name, e.text);
		(void)text_copy(place, sizeof place, name);
		assert_int_equal(json_diff(json_object_get(item, "expected"), result,
					 fail_on_difference, place),
			0);
		json_decref(result);
		json_decref(item);
	}
	(void)fclose(f);
	assert_int_equal(nr, RECORDED);
}

/* Two nodes of 8 GiB, 1 GiB of the first reserved; then the steps. */
static const char *with_steps(const char *steps)
{
	static char question[QUESTION_MAX];

	(void)snprintf(question, sizeof question,
		"{\"nodes\": [{\"id\": 8, \"memory\": \"8Gi\"}, {\"id\": 0, \"memory\": "
		"8589934592}],"
		" \"reserved_memory\": [{\"numaNode\": 0, \"limits\": {\"memory\": \"1Gi\"}}],"
		" \"node_reservation\": {\"memory\": \"1Gi\", \"cpu\": 1}, \"steps\": [%s]}",
		steps);
	return question;
}

#define RESOURCES(amount)                                                                          \
	"\"resources\": {\"requests\": {\"cpu\": 1, \"memory\": \"" amount "\"},"                  \
	" \"limits\": {\"cpu\": 1, \"memory\": \"" amount "\"}}"
#define CONTAINER(name, amount) "{\"name\": \"" name "\", " RESOURCES(amount) "}"
#define ADD(uid, scope, spec, affinities)                                                          \
	"{\"op\": \"add\", \"scope\": \"" scope "\", \"affinities\": {" affinities "}, "           \
	"\"pod\": {\"metadata\": {\"uid\": \"" uid "\"}, \"spec\": {" spec "}}}"
#define ONE(amount)     "\"containers\": [" CONTAINER("c", amount) "]"
#define ON(name, nodes) "\"" name "\": {\"mask\": [" nodes "], \"preferred\": true}"

#define BLOCK(node, bytes) "[{\"type\": \"memory\", \"nodes\": [" node "], \"size\": " bytes "}]"
#define ONE_HINT(node)     "{\"memory\": [{\"mask\": [" node "], \"preferred\": true}]}"
#define INIT_AND(containers)                                                                       \
	"\"initContainers\": [" CONTAINER("i", "4Gi") "], \"containers\": [" containers "]"

static void expect(const char *steps, const char *path, const char *want, const json_t *got)
{
	json_t *wanted = want ? json_loads(want, JSON_DECODE_ANY, NULL) : NULL;
	auto_free char *text = json_dumps(got, JSON_ENCODE_ANY);

	if (want ? !json_equal(wanted, got) : got != NULL)
		fail_msg("%s: %s: wanted %s, got %s", steps, path, want, text);
	json_decref(wanted);
}

/* Of the last step: pod_hints, the last container's hints and blocks, what is free on node 8. */
static void a_known_container_keeps_its_nodes_and_has_them_as_hints(void **state)
{
	static const char first[] = ADD("p", "container", ONE("2Gi"), ON("c", "8"));
	static const struct {
		const char *first, *then, *pod_hints, *hints, *blocks, *free;
	} cases[] = {
		{first, ADD("p", "container", ONE("2Gi"), ON("c", "0")), NULL, ONE_HINT("8"),
			BLOCK("8", "2147483648"), "6442450944"},
		{first, ADD("p", "container", ONE("3Gi"), ON("c", "0")), NULL, "null",
			BLOCK("8", "2147483648"), "6442450944"},
		{first, ADD("p", "pod", ONE("2Gi"), ON("c", "0")), ONE_HINT("8"), "null",
			BLOCK("8", "2147483648"), "6442450944"},
		/* its block is not what the whole pod asks for */
		{first,
			ADD("p", "pod",
				"\"containers\": [" CONTAINER("d", "1Gi") ", " CONTAINER(
					"c", "2Gi") "]",
				ON("d", "0")),
			"null", "null", BLOCK("8", "2147483648"), "6442450944"},
		/* app containers are looked at first */
		{ADD("p", "container", INIT_AND(CONTAINER("c", "5Gi")),
			 ON("i", "8") ", " ON("c", "0")),
			ADD("p", "pod", INIT_AND(CONTAINER("c", "5Gi")), ""), ONE_HINT("0"), "null",
			BLOCK("0", "5368709120"), "4294967296"},
		/* a container that is no more gives its block back */
		{first,
			ADD("p", "container", "\"containers\": [" CONTAINER("d", "8Gi") "]",
				ON("d", "8")),
			NULL,
			"{\"memory\": [{\"mask\": [8], \"preferred\": true}, {\"mask\": [0, 8], "
			"\"preferred\": false}]}",
			BLOCK("8", "8589934592"), "0"},
		/* the pod's blocks are still there to be taken over, after another pod came by */
		{ADD("p", "container", INIT_AND(CONTAINER("c", "1Gi")),
			 ON("i", "8") ", " ON("c", "8")) ", " ADD("q", "container", ONE("1Gi"),
			 ON("c", "0")),
			ADD("p", "container",
				INIT_AND(CONTAINER("c", "1Gi") ", " CONTAINER("d", "3Gi")),
				ON("d", "8")),
			NULL,
			"{\"memory\": [{\"mask\": [0], \"preferred\": true}, {\"mask\": [8], "
			"\"preferred\": true}]}",
			BLOCK("8", "3221225472"), "3221225472"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char steps[TEXT_MAX];
		struct err e;

		(void)snprintf(steps, sizeof steps, "%s, %s", cases[i].first, cases[i].then);
		json_t *result = answer(with_steps(steps), &e);
		if (!result)
			fail_msg("%s: %s", steps, e.text);
		const json_t *all = json_object_get(result, "steps");
		const json_t *step = json_array_get(all, json_array_size(all) - 1);
		const json_t *list = json_object_get(step, "containers");
		const json_t *c = json_array_get(list, json_array_size(list) - 1);
		const json_t *node = json_object_get(json_object_get(step, "after"), "8");

		expect(steps, "pod_hints", cases[i].pod_hints, json_object_get(step, "pod_hints"));
		expect(steps, "hints", cases[i].hints, json_object_get(c, "hints"));
		expect(steps, "blocks", cases[i].blocks, json_object_get(c, "blocks"));
		expect(steps, "free", cases[i].free,
			json_object_get(json_object_get(node, "free"), "memory"));
		json_decref(result);
	}
}

/* Burstable, and with resources of its own: the manager looks away. */
static void a_pod_that_is_not_managed_has_no_preference_and_holds_nothing(void **state)
{
	static const char *const pods[] = {
		"\"containers\": [{\"name\": \"c\", \"resources\": {\"requests\": {\"memory\": "
		"\"1Gi\"}}}]",
		"\"resources\": {\"limits\": {\"cpu\": 1, \"memory\": \"1Gi\"}}, " ONE("1Gi"),
	};
	char text[TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(pods); i++) {
		struct err e;

		(void)snprintf(text, sizeof text,
			"{\"op\": \"add\", \"scope\": \"container\", \"affinities\": {}, "
			"\"pod\": {\"metadata\": {\"uid\": \"p\"}, \"spec\": {%s}}}",
			pods[i]);
		json_t *result = answer(with_steps(text), &e);
		assert_non_null(result);
		json_t *step = json_array_get(json_object_get(result, "steps"), 0);
		json_t *c = json_array_get(json_object_get(step, "containers"), 0);
		assert_true(json_is_null(json_object_get(c, "hints")));
		assert_true(json_is_null(json_object_get(c, "blocks")));
		assert_null(json_object_get(c, "error"));
		json_decref(result);
	}
}

/* What the released code does, and the daemon does not (memory.h, keep_groups). */
static void a_single_node_of_a_group_may_be_taken_alone(void **state)
{
	struct err e;
	json_t *result =
		answer(with_steps(ADD("p", "container", ONE("9Gi"), ON("c", "0,8")) ", " ADD(
			       "q", "container", ONE("1Gi"), ON("c", "8"))),
			&e);
	static const char want[] = "[{\"type\": \"memory\", \"nodes\": [8], \"size\": 1073741824}]";

	(void)state;
	assert_non_null(result);
	json_t *step = json_array_get(json_object_get(result, "steps"), 1);
	json_t *c = json_array_get(json_object_get(step, "containers"), 0), *blocks = parse(want);
	assert_true(json_equal(json_object_get(c, "blocks"), blocks));
	json_decref(blocks);
	json_decref(result);
}

static void a_manager_that_would_not_start_is_an_answer(void **state)
{
	struct err e;
	json_t *result = answer("{\"nodes\": [{\"id\": 0, \"memory\": 5}], \"reserved_memory\": [],"
				"\"node_reservation\": {}, \"steps\": []}",
		&e);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(result, "error")),
		"[memorymanager] you should specify the system reserved memory");
	assert_int_equal(json_object_size(result), 1);
	json_decref(result);
}

#define NODES "\"nodes\": [{\"id\": 0, \"memory\": 9000}]"
#define RESERVED                                                                                   \
	"\"reserved_memory\": [{\"numaNode\": 0, \"limits\": {\"memory\": 5}}], "                  \
	"\"node_reservation\": {\"memory\": 5}"
#define STEP(step) "{" NODES ", " RESERVED ", \"steps\": [" step "]}"

static void an_unreadable_question_is_reported_with_its_place(void **state)
{
	static const struct {
		const char *question, *text;
	} cases[] = {
		{"{\"nodez\": []}", "unknown key \"nodez\""},
		{"{}", "nodes: should be a list of nodes, is nothing"},
		{"{\"nodes\": [3]}", "nodes: element 0: id: should be an integer, is nothing"},
		{"{\"nodes\": [{\"id\": 0}]}",
			"nodes: node 0: memory: should be a quantity, is nothing"},
		{"{\"nodes\": [{\"id\": 0, \"memory\": \"65Pi\"}]}",
			"nodes: node 0: memory: is above 64Pi"},
		{"{\"nodes\": [{\"id\": 0, \"memory\": 5, \"x\": 1}]}",
			"nodes: node 0: unknown key \"x\""},
		{"{\"nodes\": [{\"id\": 0, \"memory\": 5, \"hugepages\": []}]}",
			"nodes: node 0: hugepages: should be an object, is a list"},
		{"{\"nodes\": [{\"id\": 0, \"memory\": 5, \"hugepages\": {\"2Mi\": 1}}]}",
			"nodes: node 0: hugepages: \"2Mi\" is no size of huge pages"},
		{"{\"nodes\": [{\"id\": 0, \"memory\": 5, \"hugepages\": {\"hugepages-2Mi\": "
		 "-1}}]}",
			"nodes: node 0: hugepages: hugepages-2Mi: -1 is outside 0..34359738368"},
		{"{\"nodes\": [{\"id\": 0, \"memory\": 5}, {\"id\": 0, \"memory\": 5}]}", NULL},
		{"{\"nodes\": [1,2,3,4,5,6,7,8,9,10,11,12,13]}",
			"nodes: 13 NUMA nodes, hints are listed for at most 12"},
		{"{" NODES "}", "reserved_memory: should be a list, is nothing"},
		{"{" NODES ", \"reserved_memory\": [5]}",
			"reserved_memory: element 0: should be an object, is an integer"},
		{"{" NODES ", \"reserved_memory\": [{\"limits\": {}}]}",
			"reserved_memory: element 0: numaNode: should be an integer, is nothing"},
		{"{" NODES ", \"reserved_memory\": [{\"numaNode\": 0}]}",
			"reserved_memory: element 0: limits: should be an object, is nothing"},
		{"{" NODES ", \"reserved_memory\": [{\"numaNode\": 0, \"limits\": {\"memory\": "
		 "\"x\"}}]}",
			NULL},
		{"{" NODES ", \"reserved_memory\": [{\"numaNode\": 0, \"limits\": "
		 "{\"hugepages-1234567890123456789012\": 1}}]}",
			"reserved_memory: element 0: limits: "
			"\"hugepages-1234567890123456789012\" is too long"},
		{"{" NODES ", \"reserved_memory\": []}",
			"node_reservation: should be an object, is nothing"},
		{"{" NODES ", " RESERVED "}", "steps: should be a list, is nothing"},
		{STEP("1"), "steps: element 0: op: should be \"add\", \"start\" or \"remove\""},
		{STEP("{\"op\": \"remove\"}"),
			"steps: element 0: uid: should be a string, is nothing"},
		{STEP("{\"op\": \"remove\", \"pod\": 1}"), "steps: element 0: unknown key \"pod\""},
		{STEP("{\"op\": \"start\", \"uid\": \"p\"}"),
			"steps: element 0: containers: should be a list, is nothing"},
		{STEP("{\"op\": \"start\", \"uid\": \"p\", \"containers\": [1]}"),
			"steps: element 0: containers: should be a string, is an integer"},
		{STEP("{\"op\": \"add\"}"),
			"steps: element 0: scope: should be \"container\" or \"pod\""},
		{STEP("{\"op\": \"add\", \"scope\": \"pod\"}"),
			"steps: element 0: affinities: should be an object, is nothing"},
		{STEP("{\"op\": \"add\", \"scope\": \"pod\", \"affinities\": {}}"), NULL},
		{STEP(ADD("p", "pod", ONE("5"), ON("c", "7"))),
			"steps: element 0: affinities: c: mask: the machine has no NUMA node 7"},
		{STEP(ADD("p", "pod", ONE("5"), "\"c\": 1")),
			"steps: element 0: affinities: c: should be an object, is an integer"},
		{STEP(ADD("p", "pod", ONE("5"), "\"c\": {\"preferred\": true}")),
			"steps: element 0: affinities: c: mask: should be a list of node ids or "
			"null, is nothing"},
		{STEP(ADD("p", "pod", ONE("5"), "\"c\": {\"mask\": null}")),
			"steps: element 0: affinities: c: preferred: should be true or false, is "
			"nothing"},
		{STEP(ADD("p", "pod",
			 "\"containers\": [{\"name\": \"c\", \"resources\": {\"limits\": {\"cpu\": "
			 "1, \"memory\": 1, \"hugepages-2Mi\": 0}}}]",
			 "")),
			"steps: element 0: pod: container c: the machine has no hugepages-2Mi"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err e;

		if (answer(cases[i].question, &e))
			fail_msg("case %zu is answered: %s", i, cases[i].question);
		assert_true(*e.text);
		if (cases[i].text)
			assert_string_equal(e.text, cases[i].text);
	}
}

static void an_answer_without_enough_working_memory_is_an_error(void **state)
{
	json_t *item = parse(with_steps(ADD("p", "pod", ONE("1Gi"), ""))), *result = NULL;
	unsigned refused = 0;

	(void)state;
	for (size_t bytes = 1 << 10; !result; bytes += bytes / 4) {
		struct arena a;
		struct err e;

		arena_init(&a, bytes);
		if (memory_json_answer(item, &a, &result, &e) < 0) {
			assert_int_equal(e.code, ENOMEM);
			refused++;
		}
		arena_fini(&a);
	}
	assert_true(refused > 2);
	json_decref(result);
	json_decref(item);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_recorded_sequence_is_answered_as_the_kubelet_did),
		cmocka_unit_test(a_known_container_keeps_its_nodes_and_has_them_as_hints),
		cmocka_unit_test(a_pod_that_is_not_managed_has_no_preference_and_holds_nothing),
		cmocka_unit_test(a_single_node_of_a_group_may_be_taken_alone),
		cmocka_unit_test(a_manager_that_would_not_start_is_an_answer),
		cmocka_unit_test(an_unreadable_question_is_reported_with_its_place),
		cmocka_unit_test(an_answer_without_enough_working_memory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
