#include <questions/decide_json.h>

#include <codec/fields_json.h>
#include <questions/families_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ARENA_BYTES = 256 << 20 };

/* One question, answered. */
struct asked {
	struct decide_items *d;
	json_t *result;
	struct arena a;
	struct err e;
	int rc;
};

static struct asked *ask(const char *text)
{
	struct asked *x = xcalloc(1, sizeof *x);

	arena_init(&x->a, ARENA_BYTES);
	x->rc = decide_items_parse(text, strlen(text), &x->d, &x->e);
	if (!x->rc)
		x->rc = decide_item_answer(x->d, 0, NULL, &x->a, &x->result, &x->e);
	return x;
}

static void done(struct asked *x)
{
	decide_result_free(x->result);
	decide_items_free(x->d);
	arena_fini(&x->a);
	free(x);
}

/* One question of the form families, read. */
struct question {
	json_t *item;
	struct families_question q;
	struct arena a;
};

static struct question *read_question(const char *text)
{
	struct question *x = xcalloc(1, sizeof *x);

	arena_init(&x->a, ARENA_BYTES);
	assert_int_equal(json_parse(text, strlen(text), &x->item, NULL), 0);
	assert_int_equal(families_json_read(x->item, &x->a, &x->q, NULL), 0);
	return x;
}

static void forget(struct question *x)
{
	json_decref(x->item);
	arena_fini(&x->a);
	free(x);
}

static void fail_on_difference(void *ctx, const char *path, const char *wanted, const char *got)
{
	fail_msg("%s: %s: wanted %s, got %s", (const char *)ctx, path, wanted, got);
}

/* Every line of the file is answered as it expects. */
static void check_recorded(const char *path, unsigned wanted)
{
	FILE *f = fopen(path, "re");
	auto_free char *line = NULL;
	size_t cap = 0;
	unsigned nr = 0;

	assert_non_null(f);
	for (; getline(&line, &cap, f) > 0; nr++) {
		struct asked *x = ask(line);
		char name[64];

		if (x->rc < 0)
			fail_msg("line %u: %s", nr + 1, x->e.text);
		(void)decide_item_name(x->d, 0, nr + 1, name, sizeof name);
		assert_int_equal(
			decide_item_check(x->d, 0, x->result, fail_on_difference, name), 0);
		done(x);
	}
	assert_int_equal(nr, wanted);
	(void)fclose(f);
}

/* Worked examples, the small ones also tried by the kubelet's way over lists written out. */
static void every_worked_example_of_families_is_decided_again(void **state)
{
	(void)state;
	check_recorded("test/golden/families.jsonl", 9);
}

#define ASK(families) "{\"nodes\":[0,1],\"policy\":\"restricted\",\"families\":" families "}"
#define DEVICE(nodes) "{\"kind\":\"dev\",\"all\":{\"a\":" nodes "},\"avail\":[\"a\"],\"request\":1}"

static void rows_of_distances_are_in_the_order_of_nodes(void **state)
{
	struct question *x =
		read_question("{\"nodes\":[250,0,8],\"policy\":\"restricted\",\"families\":[],"
			      "\"options\":{\"prefer-closest-numa-nodes\":\"true\",\"max-allowable-"
			      "numa-nodes\":12},"
			      "\"distances\":{\"0\":[1,2,3],\"250\":[4,5,6],\"8\":[7,8,9]}}");
	static const uint8_t want[3][3] = {{2, 3, 1}, {8, 9, 7}, {5, 6, 4}};

	(void)state;
	assert_true(x->q.put_to.closest);
	assert_int_equal(x->q.put_to.max_nodes, 12);
	assert_int_equal(x->q.put_to.ids.id[1], 8);
	for (unsigned i = 0; i < 3; i++)
		assert_memory_equal(x->q.put_to.distance[i], want[i], sizeof want[i]);
	forget(x);
}

#define OPTION(name, value)                                                                        \
	"{\"nodes\":[0],\"policy\":\"restricted\",\"families\":[],\"options\":{\"" name            \
	"\":" value "}}"
static const struct {
	const char *text;
	int rc;
	const char *says;
} refused[] = {
	{"{\"nodes\":[0]", -EINVAL, "not JSON: "},
	{"7", -EINVAL, "should be an object, is an integer"},
	{"[7]", -EINVAL, "should be an object, is an integer"},
	{"{\"name\":1}", -EINVAL, "name: should be a string"},
	{"{\"nodes\":[0]}", -EINVAL, "none of the keys families, cpus_fields"},
	{"{\"families\":[]}", -EINVAL, "nodes: should be a list of node ids, is nothing"},
	{"{\"cpus_fields\":[]}", -EINVAL, "mode: should be packed, distributed or policy"},
	{"{\"node_reservation\":{}}", -EINVAL, "nodes: should be a list of nodes, is nothing"},
	{"{\"machine\":{}}", -EINVAL, "machine: nodes: should be a list, is nothing"},
	{"{\"families\":[],\"polcy\":\"none\"}", -EINVAL, "unknown key \"polcy\""},
	{"{\"families\":[]}", -EINVAL, "nodes: should be a list of node ids, is nothing"},
	{"{\"families\":[],\"nodes\":[]}", -EINVAL, "nodes: should be a list of node ids"},
	{"{\"families\":[],\"nodes\":[-1]}", -ERANGE, "nodes: element 0: -1 is outside 0..1023"},
	{"{\"families\":[],\"nodes\":[1024]}", -ERANGE, "1024 is outside"},
	{"{\"families\":[],\"nodes\":[3,3]}", -EINVAL, "node 3 comes twice"},
	{"{\"families\":[],\"nodes\":[0]}", -EINVAL, "policy: should be a string, is nothing"},
	{"{\"families\":[],\"nodes\":[0],\"policy\":\"best\"}", 1, "unknown policy: \"best\""},
	{"{\"families\":{},\"nodes\":[0],\"policy\":\"none\"}", -EINVAL,
		"families: should be a list"},
	{ASK("[[]]"), -EINVAL, "families: element 0: should be an object"},
	{"{\"providers\":[],\"nodes\":[0]}", -EINVAL,
		"providers: lists of hints are not merged; ask what they follow from: "
		"\"families\""},
	{OPTION("prefer-closest-numa-nodes", "[]"), -EINVAL,
		"options: prefer-closest-numa-nodes: should be a string"},
	{OPTION("prefer-closest-numa-nodes", "\"maybe\""), 1,
		"bad value for option \"prefer-closest-numa-nodes\""},
	{OPTION("prefer-closest-numa-nodes", "true"), 1,
		"error getting NUMA distances from cadvisor"},
	{OPTION("max-allowable-numa-nodes", "7"), 1, "should not be less than 8"},
	{OPTION("shiny", "true"), 1, "unknown Topology Manager Policy option: \"shiny\""},
	{"{\"families\":[],\"nodes\":[0,1],\"distances\":{\"0\":[1]}}", -EINVAL,
		"distances: row 0: has 1 entries for 2 nodes"},
	{"{\"families\":[],\"nodes\":[0,1],\"distances\":{\"0\":[1,2]}}", -EINVAL,
		"distances: 1 rows for 2 nodes"},
	{"{\"families\":[],\"nodes\":[0],\"distances\":{\"1\":[1]}}", -EINVAL,
		"distances: row 1: is not in nodes"},
	{"{\"families\":[],\"nodes\":[0],\"distances\":{\"00\":[1],\"0\":[1]}}", -EINVAL,
		"2 rows for 1 nodes"},
	{"{\"families\":[],\"nodes\":[0],\"distances\":{\"x\":[1]}}", -EINVAL,
		"row x: \"x\" is not a number"},
	{"{\"families\":[],\"nodes\":[0],\"distances\":{\"0\":[256]}}", -ERANGE,
		"element 0: 256 is outside 0..255"},
};

/* What the question got: why it has no answer (rc < 0), or the kubelet's refusal to start (1). */
static const char *refusal(struct asked *x)
{
	const char *error = json_string_value(json_object_get(x->result, "error"));

	if (!x->rc && error) {
		x->rc = 1;
		return error;
	}
	return x->rc ? x->e.text : "an answer";
}

static void a_question_without_an_answer_is_an_error_with_place_and_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct asked *x = ask(refused[i].text);
		const char *says = refusal(x);

		if (x->rc != refused[i].rc || !strstr(says, refused[i].says))
			fail_msg("%s: got %d, \"%s\"; wanted \"%s\"", refused[i].text, x->rc, says,
				refused[i].says);
		done(x);
	}
}

static void policy_none_ignores_the_options(void **state)
{
	struct asked *x = ask(
		"{\"nodes\":[0],\"policy\":\"none\",\"families\":[],\"options\":{\"shiny\":1}}");

	(void)state;
	assert_int_equal(x->rc, 0);
	done(x);
}

static void more_than_64_nodes_in_one_question_are_refused(void **state)
{
	char text[4096];
	struct text t;

	(void)state;
	text_init(&t, text, sizeof text);
	text_add(&t, "{\"nodes\":[0");
	for (unsigned id = 1; id < NODES_MAX; id++)
		text_add(&t, ",%u", id);
	text_add(&t, ",64],\"policy\":\"none\",\"families\":[]}");
	struct asked *x = ask(text);
	assert_int_equal(x->rc, -ERANGE);
	assert_non_null(strstr(x->e.text, "65 NUMA nodes, more than 64"));
	done(x);
}

static const struct {
	const char *question, *answer;
} answers[] = {
	{"{\"name\":\"a\\n\xc3\xa9\",\"nodes\":[0],\"policy\":\"none\",\"families\":[]}",
		"{\"name\":\"a\\n\xc3\xa9\",\"result\":{\"affinity\":null,\"preferred\":false,"
		"\"admit\":true}}"},
	{"{\"nodes\":[250,0,8],\"policy\":\"restricted\",\"families\":["
	 "{\"kind\":\"cpu\",\"cap\":{\"0\":4,\"8\":9,\"250\":4},\"avail\":{\"0\":4,\"250\":4},"
	 "\"request\":8}]}",
		"{\"line\":7,\"result\":{\"affinity\":[0,250],\"preferred\":false,\"admit\":false}"
		"}"},
	{"[" ASK("[]") "]",
		"{\"item\":1,\"result\":{\"affinity\":[0,1],\"preferred\":true,\"admit\":true}}"},
	{"{\"name\":\"b\",\"nodes\":[0],\"policy\":\"x\",\"families\":[]}",
		"{\"name\":\"b\",\"result\":{\"error\":\"unknown policy: \\\"x\\\"\"}}"},
	{"{\"machine\":{\"nodes\":[{\"id\":0,\"memory\":1000}],\"distances\":{\"0\":[10]},\"cpus_fiel"
	 "ds\":[\"cpu\",\"core\",\"socket\",\"numa\",\"uncore\"],\"cpus\":[[0,0,0,0,0]],\"num_cores\":1"
	 ",\"num_sockets\":1,\"devices\":{}},\"settings\":{\"topologyManagerScope\":\"pod\"},\"step"
	 "s\":[]}",
		"{\"line\":7,\"warnings\":[\"topologyManagerScope: it changes no decision: topologyM"
		"anagerPolicy is none\"],\"result\":{\"reserved_cpus\":[],\"steps\":[]}}"},
};

static void an_answer_is_one_line_in_fixed_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct asked *x = ask(answers[i].question);

		assert_int_equal(x->rc, 0);
		auto_free char *text = decide_item_print(x->d, 0, 7, x->result);
		assert_string_equal(text, answers[i].answer);
		done(x);
	}
}

static void an_error_that_quotes_half_a_character_is_still_valid_json(void **state)
{
	auto_free char *text = decide_item_error(NULL, 0, 3, "unknown key \"\xc3");

	(void)state;
	assert_string_equal(text, "{\"line\":3,\"error\":\"unknown key \\\"?\"}");
}

static void note_difference(void *ctx, const char *path, const char *wanted, const char *got)
{
	text_add(ctx, "%s %s %s;", path, wanted, got);
}

#define EXPECT(x) "{\"expected\":" x "}"
#define CHECKED   "{\"cpus\":[0,8],\"admit\":true}"
static const struct {
	const char *question;
	int nr;
	const char *printed;
} checks[] = {
	{EXPECT(CHECKED), 0, ""},
	{EXPECT("{\"admit\":true,\"cpus\":[0,8]}"), 0, ""},
	{EXPECT("{\"cpus\":[8],\"admit\":1}"), 3, "cpus[0] 8 0;cpus[1] nothing 8;admit 1 true;"},
	{EXPECT("{\"error\":\"x\"}"), 3,
		"error \"x\" nothing;cpus nothing [0,8];admit nothing true;"},
	{EXPECT("[0,8]"), 0, ""},
	{EXPECT("[0,9]"), 1, "[1] 9 8;"},
	{"{\"expected\":{},\"takes_unavailable\":true}", 0, ""},
	{"{\"expected\":7,\"takes_unavailable\":false}", 1, " 7 " CHECKED ";"},
	{"{}", -ENOENT, ""},
};

static void each_difference_is_printed_with_its_path(void **state)
{
	json_t *result;

	(void)state;
	assert_int_equal(json_parse(CHECKED, sizeof CHECKED - 1, &result, NULL), 0);
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
		struct decide_items *d;
		char printed[512];
		struct text t;

		text_init(&t, printed, sizeof printed);
		assert_int_equal(decide_items_parse(
					 checks[i].question, strlen(checks[i].question), &d, NULL),
			0);
		assert_int_equal(
			decide_item_check(d, 0, result, note_difference, &t), checks[i].nr);
		assert_string_equal(printed, checks[i].printed);
		decide_items_free(d);
	}
	json_decref(result);
}

static void questions_beyond_the_arena_are_refused(void **state)
{
	static const char text[] = ASK("[" DEVICE("[0]") "]");
	struct decide_items *d;
	json_t *result = NULL;

	(void)state;
	assert_int_equal(decide_items_parse(text, sizeof text - 1, &d, NULL), 0);
	for (size_t limit = 0; limit < 512; limit += 16) {
		struct arena a;
		struct err e;

		arena_init(&a, limit);
		assert_int_equal(decide_item_answer(d, 0, NULL, &a, &result, &e), -ENOMEM);
		assert_null(result);
		arena_fini(&a);
	}
	decide_items_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_worked_example_of_families_is_decided_again),
		cmocka_unit_test(rows_of_distances_are_in_the_order_of_nodes),
		cmocka_unit_test(a_question_without_an_answer_is_an_error_with_place_and_reason),
		cmocka_unit_test(policy_none_ignores_the_options),
		cmocka_unit_test(more_than_64_nodes_in_one_question_are_refused),
		cmocka_unit_test(an_answer_is_one_line_in_fixed_order),
		cmocka_unit_test(an_error_that_quotes_half_a_character_is_still_valid_json),
		cmocka_unit_test(each_difference_is_printed_with_its_path),
		cmocka_unit_test(questions_beyond_the_arena_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
