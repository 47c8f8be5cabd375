/* Questions by capacities: what is read becomes the right rule, what cannot be read says where. */
#include <questions/families_json.h>

#include <codec/fields_json.h>
#include <errno.h>
#include <jansson.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ARENA_BYTES = 4 << 20, TEXT_BYTES = 2048 };

/* On nodes 0, 8 and 250: the answer as JSON, or the error's text. */
static char *answer(const char *policy, const char *families)
{
	char question[TEXT_BYTES];
	struct text t;
	struct arena a;
	struct err e;
	json_t *item, *result = NULL;

	text_init(&t, question, sizeof question);
	text_add(&t, "{\"nodes\":[8,0,250],\"policy\":\"%s\",\"families\":%s}", policy, families);
	assert_int_equal(json_parse(question, strlen(question), &item, NULL), 0);
	arena_init(&a, ARENA_BYTES);
	int rc = families_json_answer(item, &a, &result, &e);
	char *text = rc ? strdup(e.text) : json_dumps(result, JSON_COMPACT);
	json_decref(result);
	json_decref(item);
	arena_fini(&a);
	return text;
}

#define CPU(avail, request)                                                                        \
	"{\"kind\":\"cpu\",\"cap\":{\"0\":8,\"8\":8,\"250\":8},\"avail\":" avail                   \
	",\"request\":" request "}"
#define CELL(assign, cells, free)                                                                  \
	"{\"assign\":" assign ",\"cells\":" cells ",\"alloc\":{\"memory\":10},\"free\":{"          \
	"\"memory\":" free "}}"
#define MEM_AND(a, b, c, request, rest)                                                            \
	"{\"kind\":\"mem\",\"state\":{\"0\":" a ",\"8\":" b ",\"250\":" c "},\"request\":"         \
	"{" request "}" rest "}"
#define MEM(a, b, c, request) MEM_AND(a, b, c, request, "")
#define DEVICES(all, avail, request)                                                               \
	"{\"kind\":\"device\",\"all\":" all ",\"avail\":" avail ",\"request\":" request "}"
#define GIVES(affinity, preferred)                                                                 \
	"{\"affinity\":" affinity ",\"preferred\":" preferred ",\"admit\":true}"
#define RULE(rest) "{\"kind\":\"rule\",\"ground\":[0,8,250]," rest "}"
#define SOCKETS    "\"preferred_sockets\":1,\"sockets\":{\"0\":1,\"8\":1,\"250\":0}"
#define IDLE(id)   CELL("0", "[" id "]", "10")

static const struct {
	const char *families, *answer;
} cases[] = {
	{"[]", GIVES("[0,8,250]", "true")},
	{"[" CPU("{\"0\":1,\"8\":8,\"250\":8}", "4") "]", GIVES("[8]", "true")},
	{"[" CPU("{\"0\":1,\"8\":2,\"250\":3}", "5") "]", GIVES("[8,250]", "false")},
	{"[" CPU("{\"0\":1,\"8\":2,\"250\":3}", "7") "]", GIVES("[0,8,250]", "false")},
	{"[" CPU("{\"0\":1}", "0") "]", GIVES("[0,8,250]", "true")},
	{"[" MEM(IDLE("0"), IDLE("8"), IDLE("250"), "\"memory\":15") "]", GIVES("[0,8]", "true")},
	/* a node in use serves alone or with just its group */
	{"[" MEM(CELL("1", "[0]", "9"), IDLE("8"), IDLE("250"), "\"memory\":15") "]",
		GIVES("[8,250]", "true")},
	{"[" MEM(CELL("1", "[0]", "9"), IDLE("8"), IDLE("250"), "\"memory\":9") "]",
		GIVES("[0]", "true")},
	{"[" MEM(IDLE("0"), CELL("2", "[8,250]", "6"), CELL("2", "[8,250]", "6"),
		 "\"memory\":12") "]",
		GIVES("[8,250]", "true")},
	{"[" MEM(CELL("1", "[0]", "3"), CELL("2", "[8,250]", "6"), CELL("2", "[8,250]", "6"),
		 "\"memory\":6") "]",
		GIVES("[8,250]", "false")},
	/* nothing fits: no preference */
	{"[" MEM(IDLE("0"), IDLE("8"), IDLE("250"), "\"memory\":31") "]",
		GIVES("[0,8,250]", "true")},
	{"[" MEM(IDLE("0"), IDLE("8"), IDLE("250"), "") "]", GIVES("[0,8,250]", "true")},
	/* a device on several nodes counts for each of them; one on none is no reason */
	{"[" DEVICES("{\"a\":[0,8],\"b\":[8],\"c\":[250]}", "[\"a\",\"b\"]", "2") "]",
		GIVES("[8]", "true")},
	{"[" DEVICES("{\"a\":[0,8],\"b\":[8],\"c\":[250]}", "[\"a\",\"c\"]", "2") "]",
		GIVES("[0,250]", "false")},
	{"[" DEVICES("{\"a\":null,\"b\":[]}", "[\"a\"]", "1") "]", GIVES("[0,8,250]", "true")},
	{"[" DEVICES("{\"a\":[0],\"b\":[8]}", "[\"a\"]", "2") "]", GIVES("[0,8,250]", "false")},
	{"[" DEVICES("{\"a\":[7],\"b\":[250]}", "[\"b\"]", "1") "]", GIVES("[250]", "true")},
	{"[" DEVICES("{\"a\":[7]}", "[\"a\"]", "1") "]", GIVES("[0,8,250]", "false")},
	/* what an init container holds counts, on masks with all of its nodes */
	{"[" CPU("{\"0\":4,\"8\":4,\"250\":0}", "6,\"reusable\":{\"0\":0,\"250\":2}") "]",
		GIVES("[0,250]", "false")},
	{"[" CPU("{\"0\":4,\"8\":4,\"250\":0}", "2,\"reusable\":{\"250\":2}") "]",
		GIVES("[250]", "true")},
	{"[" MEM_AND(CELL("1", "[0]", "2"), IDLE("8"), IDLE("250"), "\"memory\":5",
		 ",\"reusable\":[{\"nodes\":[0],\"bytes\":{\"memory\":3}}]") "]",
		GIVES("[0]", "true")},
	{"[" DEVICES("{\"a\":[0,8],\"b\":[8],\"c\":[250]}", "[\"b\",\"c\"]",
		 "2,\"reusable\":[\"a\"]") "]",
		GIVES("[8]", "true")},
	{"[" DEVICES("{\"a\":[0],\"b\":[8],\"c\":[250]}", "[\"b\",\"c\"]",
		 "1,\"reusable\":[\"a\"]") "]",
		GIVES("[0]", "true")},
	/* align-by-socket: two of three nodes have enough, and as many sockets as two would fill */
	{"[" CPU("{\"0\":4,\"8\":4,\"250\":4}", "9,\"sockets\":{\"0\":0,\"8\":1,\"250\":1}") "]",
		GIVES("[0,8,250]", "true")},
	{"[" CPU("{\"0\":4,\"8\":4,\"250\":4}", "9,\"sockets\":{\"0\":0,\"8\":1,\"250\":2}") "]",
		GIVES("[0,8,250]", "false")},
	/* a node with CPUs of both sockets touches both, whichever its first CPU is of */
	{"[" CPU("{\"0\":4,\"8\":4,\"250\":4}",
		 "3,\"sockets\":{\"0\":0,\"8\":[0,1],\"250\":0}") ","
								  "{\"kind\":\"rule\",\"ground\":[0,8],\"required\":[0,8],\"preferred_size\":2}]",
		GIVES("[0,8]", "false")},
	{"[" CPU("{\"0\":4,\"8\":4,\"250\":4}",
		 "3,\"sockets\":{\"0\":0,\"8\":[0],\"250\":1}") ","
								"{\"kind\":\"rule\",\"ground\":[0,8],\"required\":[0,8],\"preferred_size\":2}]",
		GIVES("[0,8]", "true")},
	{"[{\"kind\":\"any\"}]", GIVES("[0,8,250]", "true")},
	{"[{\"kind\":\"none\"}," CPU("{\"8\":8}", "1") "]", GIVES("[8]", "false")},
	{"[" RULE("\"preferred_size\":2") "]", GIVES("[0,8]", "true")},
	{"[" RULE("\"preferred_size\":2,\"required\":[250]") "]", GIVES("[0,250]", "true")},
	{"[" RULE("\"preferred_size\":1,\"demands\":[{\"weights\":{\"8\":2,\"0\":1},\"base\":3,"
		  "\"need\":5},{\"covers\":[{\"nodes\":[0,250],\"count\":2}],\"need\":1}]") "]",
		GIVES("[0,8]", "false")},
	{"[" RULE("\"required\":[0,8,250],\"extra\":[[8]],\"preferred_size\":1") "]",
		GIVES("[8]", "true")},
	{"[" RULE("\"demands\":[{\"need\":1}]") "]", GIVES("[0,8,250]", "false")},
	{"[" RULE("\"preferred_sockets\":2,\"sockets\":{\"0\":1,\"8\":1,\"250\":0}") "]",
		GIVES("[0,250]", "true")},
	{"[" RULE("\"preferred_sockets\":1") "]",
		"families: element 0: preferred_sockets: the key sockets is missing"},
	{"[" RULE("\"sockets\":{\"0\":1}") "]",
		"families: element 0: sockets: node 8: should be from 0 to 63, or a list of such "
		"numbers"},
	{"[" RULE("\"sockets\":{\"0\":1,\"8\":[],\"250\":0}") "]",
		"families: element 0: sockets: node 8: should be from 0 to 63, or a list of such "
		"numbers"},
	{"[" RULE("\"sockets\":{\"0\":1,\"7\":0}") "]",
		"families: element 0: sockets: node 7 is not in nodes"},
	{"[" RULE(SOCKETS) "," RULE(SOCKETS) "]",
		"families: more than one prefers a number of sockets"},
	{"[" RULE("\"demands\":[7]") "]",
		"families: element 0: demands: element 0: should be an object, is an integer"},
	{"[" RULE("\"demands\":[{\"weights\":{},\"covers\":[]}]") "]",
		"families: element 0: demands: element 0: either weights or covers"},
	{"[" RULE("\"extra\":[[]]") "]", "families: element 0: extra: element 0: no node"},
	{"[" RULE("\"extra\":7") "]",
		"families: element 0: extra: should be a list, is an integer"},
	{"[{\"kind\":\"rule\"}]",
		"families: element 0: ground: should be a list of node ids, is nothing"},
	{"[" MEM(CELL("0", "[0]", "11"), IDLE("8"), IDLE("250"), "\"memory\":1") "]",
		"families: element 0: state: 0: free: memory: more than alloc"},
	{"[" MEM_AND(IDLE("0"), IDLE("8"), IDLE("250"), "\"memory\":1", ",\"reusable\":[7]") "]",
		"families: element 0: reusable: element 0: should be an object, is an integer"},
	{"7", "families: should be a list, is an integer"},
	{"[7]", "families: element 0: should be an object, is an integer"},
	{"[{\"kind\":\"gpu\"}]", "families: element 0: kind: should be cpu, mem, device, "
				 "rule, any or none"},
	{"[{\"kind\":\"cpu\",\"x\":1}]", "families: element 0: unknown key \"x\""},
	{"[{\"kind\":\"cpu\"}]", "families: element 0: cap: should be an object, is nothing"},
	{"[" CPU("{\"1\":1}", "1") "]", "families: element 0: avail: node 1 is not in nodes"},
	{"[" CPU("{\"0\":1.5}", "1") "]",
		"families: element 0: avail: 0: should be an integer, is a fraction"},
	{"[" CPU("{}", "-1") "]",
		"families: element 0: request: -1 is outside 0..72057594037927936"},
	{"[" MEM(IDLE("0"), IDLE("0"), IDLE("250"), "\"memory\":1") "]",
		"families: element 0: state: 8: cells are other nodes, but assign is 0"},
	{"[" MEM(IDLE("5"), IDLE("8"), IDLE("250"), "\"memory\":1") "]",
		"families: element 0: state: 0: cells: element 0: node 5 is not in nodes"},
	{"[" DEVICES("{\"a\":[0]}", "[\"b\"]", "1") "]",
		"families: element 0: avail: element 0 is no device of all"},
	{"[" DEVICES("{\"a\":7}", "[]", "1") "]",
		"families: element 0: all: a: should be a list of node ids, is an integer"},
};

static void each_kind_of_family_has_its_rule(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *got = answer("best-effort", cases[i].families);

		if (!text_equal(got, cases[i].answer))
			fail_msg("%s: got %s, wanted %s", cases[i].families, got, cases[i].answer);
		free(got);
	}
}

static void the_answer_holds_the_words_of_policy_and_kubelet(void **state)
{
	static const struct {
		const char *policy, *answer;
	} want[] = {
		{"none", "{\"affinity\":null,\"preferred\":false,\"admit\":true}"},
		{"restricted", "{\"affinity\":[8,250],\"preferred\":false,\"admit\":false}"},
		{"single-numa-node", "{\"affinity\":null,\"preferred\":false,\"admit\":false}"},
		{"strict", "{\"error\":\"unknown policy: \\\"strict\\\"\"}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		char *got = answer(want[i].policy, "[" CPU("{\"0\":1,\"8\":2,\"250\":3}", "5") "]");

		assert_string_equal(got, want[i].answer);
		free(got);
	}
}

static void too_many_families_are_refused(void **state)
{
	char list[TEXT_BYTES / 2];
	struct text t;

	(void)state;
	text_init(&t, list, sizeof list);
	for (unsigned i = 0; i < 9; i++)
		text_add(&t, "%c{}", i ? ',' : '[');
	text_add(&t, "]");
	char *got = answer("none", list);
	assert_string_equal(got, "families: 9 families, more than 8");
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_family_has_its_rule),
		cmocka_unit_test(the_answer_holds_the_words_of_policy_and_kubelet),
		cmocka_unit_test(too_many_families_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
