#include <codec/decide_json.h>

#include <errno.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ARENA_BYTES = 256 << 20 };

/* One question, read. */
struct asked {
	struct decide_items *d;
	struct merge_question q;
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
		x->rc = decide_item_read(x->d, 0, &x->a, &x->q, &x->e);
	return x;
}

static void done(struct asked *x)
{
	decide_items_free(x->d);
	arena_fini(&x->a);
	free(x);
}

static void fail_on_difference(void *ctx, const char *path, const char *wanted, const char *got)
{
	fail_msg("%s: %s: wanted %s, got %s", (const char *)ctx, path, wanted, got);
}

static struct merge_result merge(struct asked *x)
{
	const struct hint_space space = {
		nodeset_first(x->q.ids.nr), x->q.closest ? x->q.distance : NULL, 0};
	struct merge_result r = {.ids = x->q.ids};

	if (x->rc == 1 || policy_check_nodes(x->q.policy, x->q.ids.nr, x->q.max_nodes, &x->e))
		r.error = x->e.text;
	else
		assert_int_equal(policy_merge_lists(x->q.policy, &space, x->q.lists, x->q.nr_lists,
					 &x->a, &r.answer),
			0);
	return r;
}

/* Answers of the released kubelet 1.36.3, and worked examples with the reason in "why". */
static void every_recorded_merge_is_decided_again(void **state)
{
	FILE *f = fopen("test/golden/merge.jsonl", "re");
	auto_free char *line = NULL;
	size_t cap = 0;
	unsigned nr = 0;

	(void)state;
	assert_non_null(f);
	for (; getline(&line, &cap, f) > 0; nr++) {
		struct asked *x = ask(line);

		if (x->rc < 0)
			fail_msg("line %u: %s", nr + 1, x->e.text);
		struct merge_result r = merge(x);
		char name[64];
		(void)decide_item_name(x->d, 0, nr + 1, name, sizeof name);
		assert_int_equal(decide_item_check(x->d, 0, &r, fail_on_difference, name), 0);
		done(x);
	}
	assert_int_equal(nr, 237);
	(void)fclose(f);
}

#define HINT(mask)     "{\"mask\":" mask ",\"preferred\":true}"
#define ASK(providers) "{\"nodes\":[0,1],\"policy\":\"restricted\",\"providers\":" providers "}"

/* The kubelet's filterProvidersHints, each list as its hints: any+ any- or a mask. */
static const struct {
	const char *providers;
	const char *lists;
} filtered[] = {
	{"[]", ""},
	{"[null]", "[any+]"},
	{"[{}]", "[any+]"},
	{"[{\"a\":null}]", "[any+]"},
	{"[{\"a\":[]}]", "[any-]"},
	{"[{\"a\":[" HINT("[1]") "," HINT("null") "]}]", "[2+ any+]"},
	{"[{\"a\":[" HINT(
		 "[]") "]},null,{\"b\":null,\"c\":[{\"mask\":[0,1],\"preferred\":false}]}]",
		"[0+] [any+] [any+] [3-]"},
	/* nodes that the machine lacks, each its own bit above the machine's */
	{"[{\"a\":[" HINT("[9,0]") "," HINT("[5]") "," HINT("[9]") "]}]", "[5+ 8+ 4+]"},
};

static void print_lists(const struct merge_question *q, struct text *t)
{
	for (size_t i = 0; i < q->nr_lists; i++) {
		text_add(t, "%s[", i ? " " : "");
		for (size_t k = 0; k < q->lists[i].nr; k++) {
			const struct hint *h = &q->lists[i].hint[k];

			text_add(t, k ? " " : "");
			if (h->any)
				text_add(t, "any");
			else
				text_add(t, "%llx", (unsigned long long)h->mask.bits);
			text_add(t, h->preferred ? "+" : "-");
		}
		text_add(t, "]");
	}
}

static void providers_become_lists_as_in_the_kubelet(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof filtered / sizeof *filtered; i++) {
		char question[1024], lists[256];
		struct text t;

		text_init(&t, question, sizeof question);
		text_add(&t, "{\"nodes\":[1,0],\"policy\":\"restricted\",\"providers\":%s}",
			filtered[i].providers);
		struct asked *x = ask(question);
		assert_int_equal(x->rc, 0);
		text_init(&t, lists, sizeof lists);
		print_lists(&x->q, &t);
		assert_string_equal(lists, filtered[i].lists);
		done(x);
	}
}

static void rows_of_distances_are_in_the_order_of_nodes(void **state)
{
	struct asked *x = ask("{\"nodes\":[250,0,8],\"policy\":\"restricted\",\"providers\":[],"
			      "\"options\":{\"prefer-closest-numa-nodes\":\"true\",\"max-allowable-"
			      "numa-nodes\":12},"
			      "\"distances\":{\"0\":[1,2,3],\"250\":[4,5,6],\"8\":[7,8,9]}}");
	static const uint8_t want[3][3] = {{2, 3, 1}, {8, 9, 7}, {5, 6, 4}};

	(void)state;
	assert_int_equal(x->rc, 0);
	assert_true(x->q.closest);
	assert_int_equal(x->q.max_nodes, 12);
	assert_int_equal(x->q.ids.id[1], 8);
	for (unsigned i = 0; i < 3; i++)
		assert_memory_equal(x->q.distance[i], want[i], sizeof want[i]);
	done(x);
}

#define OPTION(name, value)                                                                        \
	"{\"nodes\":[0],\"policy\":\"restricted\",\"providers\":[],\"options\":{\"" name           \
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
	{"{\"nodes\":[0]}", -EINVAL, "none of the keys providers, families"},
	{"{\"families\":[]}", -ENOTSUP, "not decided yet: the form families"},
	{"{\"cpus_fields\":[]}", -ENOTSUP, "not decided yet: the form cpu"},
	{"{\"node_reservation\":{}}", -ENOTSUP, "not decided yet: the form memory"},
	{"{\"machine\":{}}", -ENOTSUP, "not decided yet: the form node"},
	{"{\"providers\":[],\"polcy\":\"none\"}", -EINVAL, "unknown key \"polcy\""},
	{"{\"providers\":[]}", -EINVAL, "nodes: should be a list of node ids, is nothing"},
	{"{\"providers\":[],\"nodes\":[]}", -EINVAL, "nodes: should be a list of node ids"},
	{"{\"providers\":[],\"nodes\":[-1]}", -ERANGE, "nodes: element 0: -1 is outside 0..1023"},
	{"{\"providers\":[],\"nodes\":[1024]}", -ERANGE, "1024 is outside"},
	{"{\"providers\":[],\"nodes\":[3,3]}", -EINVAL, "node 3 comes twice"},
	{"{\"providers\":[],\"nodes\":[0]}", -EINVAL, "policy: should be a string, is nothing"},
	{"{\"providers\":[],\"nodes\":[0],\"policy\":\"best\"}", 1, "unknown policy: \"best\""},
	{"{\"providers\":{},\"nodes\":[0],\"policy\":\"none\"}", -EINVAL,
		"providers: should be a list"},
	{ASK("[[]]"), -EINVAL, "providers: element 0: should be an object or null"},
	{ASK("[null,{\"a\":{}}]"), -EINVAL,
		"providers: element 1: a: should be a list of hints or null"},
	{ASK("[{\"a\":[null]}]"), -EINVAL, "a: hint 0: should be an object, is null"},
	{ASK("[{\"a\":[{\"mask\":[0]}]}]"), -EINVAL,
		"hint 0: preferred: should be true or false, is nothing"},
	{ASK("[{\"a\":[{\"preferred\":true}]}]"), -EINVAL,
		"hint 0: mask: should be a list of node ids or null, is nothing"},
	{ASK("[{\"a\":[{\"mask\":[0],\"preferred\":true,\"x\":1}]}]"), -EINVAL,
		"hint 0: unknown key \"x\""},
	{ASK("[{\"a\":[" HINT("[0,0.5]") "]}]"), -EINVAL,
		"mask: element 1: should be an integer, is a fraction"},
	{OPTION("prefer-closest-numa-nodes", "[]"), -EINVAL,
		"options: prefer-closest-numa-nodes: should be a string"},
	{OPTION("prefer-closest-numa-nodes", "\"maybe\""), 1,
		"bad value for option \"prefer-closest-numa-nodes\""},
	{OPTION("prefer-closest-numa-nodes", "true"), 1,
		"error getting NUMA distances from cadvisor"},
	{OPTION("max-allowable-numa-nodes", "7"), 1, "should not be less than 8"},
	{OPTION("shiny", "true"), 1, "unknown Topology Manager Policy option: \"shiny\""},
	{"{\"providers\":[],\"nodes\":[0,1],\"distances\":{\"0\":[1]}}", -EINVAL,
		"distances: row 0: has 1 entries for 2 nodes"},
	{"{\"providers\":[],\"nodes\":[0,1],\"distances\":{\"0\":[1,2]}}", -EINVAL,
		"distances: 1 rows for 2 nodes"},
	{"{\"providers\":[],\"nodes\":[0],\"distances\":{\"1\":[1]}}", -EINVAL,
		"distances: row 1: is not in nodes"},
	{"{\"providers\":[],\"nodes\":[0],\"distances\":{\"00\":[1],\"0\":[1]}}", -EINVAL,
		"2 rows for 1 nodes"},
	{"{\"providers\":[],\"nodes\":[0],\"distances\":{\"x\":[1]}}", -EINVAL,
		"row x: \"x\" is not a number"},
	{"{\"providers\":[],\"nodes\":[0],\"distances\":{\"0\":[256]}}", -ERANGE,
		"element 0: 256 is outside 0..255"},
};

static void what_cannot_be_answered_says_where_and_why(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct asked *x = ask(refused[i].text);

		if (x->rc != refused[i].rc || !strstr(x->e.text, refused[i].says))
			fail_msg("%s: got %d, \"%s\"; wanted \"%s\"", refused[i].text, x->rc,
				x->e.text, refused[i].says);
		done(x);
	}
}

static void with_policy_none_the_options_are_not_looked_at(void **state)
{
	struct asked *x = ask(
		"{\"nodes\":[0],\"policy\":\"none\",\"providers\":[],\"options\":{\"shiny\":1}}");

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
	size_t nodes_end = t.len;
	text_add(&t, "],\"policy\":\"none\",\"providers\":[{\"a\":[" HINT("[63,64]") "]}]}");
	struct asked *x = ask(text);
	assert_int_equal(x->rc, -ERANGE);
	assert_non_null(strstr(x->e.text, "64: more than 64 different NUMA nodes"));
	done(x);
	t.len = nodes_end;
	text_add(&t, ",64],\"policy\":\"none\",\"providers\":[]}");
	x = ask(text);
	assert_int_equal(x->rc, -ERANGE);
	assert_non_null(strstr(x->e.text, "65 NUMA nodes, more than 64"));
	done(x);
}

static const struct {
	const char *question;
	struct merge_result r;
	const char *answer;
} answers[] = {
	{"{\"name\":\"a\\n\xc3\xa9\"}", {.answer = {{.any = true}, true}},
		"{\"name\":\"a\\n\xc3\xa9\",\"result\":{\"affinity\":null,\"preferred\":false,"
		"\"admit\":true}}"},
	{"{}", {.answer = {{.mask = {5}, .preferred = true}, false}, .ids = {3, {0, 8, 250}}},
		"{\"line\":7,\"result\":{\"affinity\":[0,250],\"preferred\":true,\"admit\":false}"
		"}"},
	{"[{}]", {.answer = {{.mask = {0}}, true}},
		"{\"item\":1,\"result\":{\"affinity\":[],\"preferred\":false,\"admit\":true}}"},
	{"{\"name\":\"b\"}", {.error = "unsupported"},
		"{\"name\":\"b\",\"result\":{\"error\":\"unsupported\"}}"},
};

static void an_answer_is_one_line_in_fixed_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct decide_items *d;

		assert_int_equal(decide_items_parse(answers[i].question,
					 strlen(answers[i].question), &d, NULL),
			0);
		auto_free char *text = decide_item_answer(d, 0, 7, &answers[i].r);
		assert_string_equal(text, answers[i].answer);
		decide_items_free(d);
	}
}

static void an_error_is_told_even_when_it_quotes_half_a_character(void **state)
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
static const struct {
	const char *question;
	int nr;
	const char *told;
} checks[] = {
	{EXPECT("{\"affinity\":[0,8],\"preferred\":true,\"admit\":true}"), 0, ""},
	{EXPECT("{\"admit\":true,\"affinity\":[0,8],\"preferred\":true}"), 0, ""},
	{EXPECT("{\"affinity\":[8],\"preferred\":true,\"admit\":true}"), 2,
		"affinity[0] 8 0;affinity[1] nothing 8;"},
	{EXPECT("{\"affinity\":null,\"preferred\":1,\"admit\":false}"), 3,
		"affinity null [0,8];preferred 1 true;admit false true;"},
	{EXPECT("{\"error\":\"x\"}"), 4,
		"error \"x\" nothing;affinity nothing [0,8];preferred nothing true;admit nothing "
		"true;"},
	{EXPECT("7"), 1, " 7 {\"affinity\":[0,8],\"preferred\":true,\"admit\":true};"},
	{"{}", -ENOENT, ""},
};

static void each_difference_is_told_with_its_path(void **state)
{
	const struct merge_result r = {
		.answer = {{.mask = {3}, .preferred = true}, true}, .ids = {2, {0, 8}}};

	(void)state;
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
		struct decide_items *d;
		char told[512];
		struct text t;

		text_init(&t, told, sizeof told);
		assert_int_equal(decide_items_parse(
					 checks[i].question, strlen(checks[i].question), &d, NULL),
			0);
		assert_int_equal(decide_item_check(d, 0, &r, note_difference, &t), checks[i].nr);
		assert_string_equal(told, checks[i].told);
		decide_items_free(d);
	}
}

static void questions_beyond_the_arena_are_refused(void **state)
{
	static const char text[] = ASK("[{\"a\":[" HINT("[0]") "]},null,{\"b\":[]}]");
	struct decide_items *d;
	struct merge_question q;

	(void)state;
	assert_int_equal(decide_items_parse(text, sizeof text - 1, &d, NULL), 0);
	for (size_t limit = 0; limit < 128; limit += 16) {
		struct arena a;
		struct err e;

		arena_init(&a, limit);
		assert_int_equal(decide_item_read(d, 0, &a, &q, &e), -ENOMEM);
		arena_fini(&a);
	}
	decide_items_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_recorded_merge_is_decided_again),
		cmocka_unit_test(providers_become_lists_as_in_the_kubelet),
		cmocka_unit_test(rows_of_distances_are_in_the_order_of_nodes),
		cmocka_unit_test(what_cannot_be_answered_says_where_and_why),
		cmocka_unit_test(with_policy_none_the_options_are_not_looked_at),
		cmocka_unit_test(more_than_64_nodes_in_one_question_are_refused),
		cmocka_unit_test(an_answer_is_one_line_in_fixed_order),
		cmocka_unit_test(an_error_is_told_even_when_it_quotes_half_a_character),
		cmocka_unit_test(each_difference_is_told_with_its_path),
		cmocka_unit_test(questions_beyond_the_arena_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
