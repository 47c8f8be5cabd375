#include <questions/score_json.h>

#include "score_questions.h"

#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

/* What the plugins say of arguments that are wrong: the scheduler's own words where it has some. */
static void wrong_arguments_are_refused_with_the_place(void **state)
{
#define SHAPED(shape)                                                                              \
	"'scoringStrategy':{'type':'RequestedToCapacityRatio','requestedToCapacityRatio':{'shape'" \
	":[" shape "]}}"
	static const char fit[] = "NodeResourcesFit",
			  balanced[] = "NodeResourcesBalancedAllocation",
			  allocatable[] = "NodeResourcesAllocatable",
			  generic[] = "GenericNodeResources", match[] = "NodeResourceTopologyMatch",
			  volcano[] = "numa-aware";
	static const struct {
		const char *plugin, *args, *want;
	} rows[] = {
		{fit, "'foo':1", "strict decoding error: unknown field \"foo\""},
		{fit,
			"'scoringStrategy':{'type':'LeastAllocated','resources':[{'name':'cpu',"
			"'wieght':1}],'typ':''},'x':null",
			"strict decoding error: unknown field "
			"\"scoringStrategy.resources[0].wieght\", unknown field "
			"\"scoringStrategy.typ\", unknown field \"x\""},
		{fit, "'scoringStrategy':{'resources':[{'name':'cpu','weight':'1'}]},'x':1",
			"json: cannot unmarshal string into Go struct field "
			"ResourceSpec.scoringStrategy.resources.weight of type int64"},
		{fit, "'scoringStrategy':{'resources':[{'weight':1.5}]}",
			"json: cannot unmarshal number 1.5 into Go struct field "
			"ResourceSpec.scoringStrategy.resources.weight of type int64"},
		{fit, "'scoringStrategy':7",
			"json: cannot unmarshal number into Go struct field "
			"NodeResourcesFitArgs.scoringStrategy of type v1.ScoringStrategy"},
		{fit, "'scoringStrategy':{'resources':[{'name':'cpu'},3]}",
			"json: cannot unmarshal number into Go struct field "
			"ScoringStrategy.scoringStrategy.resources of type v1.ResourceSpec"},
		{fit, "'ignoredResources':'a'",
			"json: cannot unmarshal string into Go struct field "
			"NodeResourcesFitArgs.ignoredResources of type []string"},
		{fit, SHAPED("{'utilization':3000000000,'score':1}"),
			"json: cannot unmarshal number 3000000000 into Go struct field "
			"UtilizationShapePoint.scoringStrategy.requestedToCapacityRatio.shape."
			"utilization of type int32"},
		{fit, "'scoringStrategy':{}",
			"scoringStrategy.type: Unsupported value: \"\": supported values: "
			"\"LeastAllocated\", \"MostAllocated\", \"RequestedToCapacityRatio\""},
		{fit,
			"'scoringStrategy':{'type':'LeastAllocated','resources':[{'name':'cpu',"
			"'weight':101},{'name':'memory'},{'name':'x','weight':-1}]}",
			"[scoringStrategy.resources[0].weight: Invalid value: 101: resource weight "
			"of cpu not in valid range (0, 100], scoringStrategy.resources[2].weight: "
			"Invalid value: -1: resource weight of x not in valid range (0, 100]]"},
		{fit, "'scoringStrategy':{'type':'RequestedToCapacityRatio'}",
			"scoringStrategy.requestedToCapacityRatio: Required value: must be "
			"specified when type is RequestedToCapacityRatio"},
		{fit, "'scoringStrategy':{'type':'MostAllocated','requestedToCapacityRatio':{}}",
			"scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when "
			"type "
			"is not RequestedToCapacityRatio"},
		{fit, SHAPED(""),
			"scoringStrategy.requestedToCapacityRatio.shape: Required value: at least "
			"one point must be specified"},
		{fit,
			SHAPED("{'utilization':10,'score':1},{'utilization':10,'score':11},"
			       "{'utilization':101}"),
			"[scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid "
			"value: 10: values must be sorted in increasing order, "
			"scoringStrategy.requestedToCapacityRatio.shape[1].score: Invalid value: "
			"11: not in valid range [0, 10], "
			"scoringStrategy.requestedToCapacityRatio.shape[2].utilization: Invalid "
			"value: 101: not in valid range [0, 100]]"},
		{fit, "'ignoredResourceGroups':['a/b']",
			"ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name "
			"can't "
			"contain '/'"},
		{fit, "'ignoredResources':['a.b/c','-']",
			"ignoredResources[1]: Invalid value: \"-\": a qualified name must consist "
			"of "
			"alphanumeric characters, '-', '_' or '.', and must start and end with an "
			"alphanumeric character, with an optional DNS subdomain prefix and '/'"},
		{balanced, "'resources':[{'name':'cpu','weight':2},{'name':'cpu'}]",
			"[resources[0].weight: Invalid value: 2: must be 1, resources[1].name: "
			"Duplicate value: \"cpu\"]"},
		{allocatable, "'mode':'Best','resources':[{'name':'cpu'}]",
			"[resources[0].weight: Invalid value: 0: resource weight of cpu should be "
			"a "
			"positive value, got :0, mode: Invalid value: \"Best\": invalid support "
			"ModeType]"},
		{match, "'scoringStrategy':{'resources':[]}",
			"scoringStrategy.type: Invalid value: \"\": invalid ScoringStrategyType"},
		{match, "'scoringStrategy':{'type':'LeastAllocated','requestedToCapacityRatio':{}}",
			"strict decoding error: unknown field "
			"\"scoringStrategy.requestedToCapacityRatio\""},
		{match, "'discardReservedNodes':1",
			"json: cannot unmarshal number into Go struct field "
			"NodeResourceTopologyMatchArgs.discardReservedNodes of type bool"},
		{volcano, "'weight':'x'",
			"json: cannot unmarshal string into Go struct field Arguments.weight of "
			"type "
			"int"},
		{generic, "",
			"allocatable, allocated, left, requesting: Required value: at least one "
			"must "
			"be specified"},
		{generic, "'left':{}",
			"[left.values: Required value: one of \"AbsoluteValue\", "
			"\"RatioToAllocatable\", left.prefer: Required value: one of \"Most\", "
			"\"Least\", \"MostBalanced\", \"LeastBalanced\"]"},
		{generic, "'left':{'values':'Ratio','prefer':'Most'}",
			"left.values: Unsupported value: \"Ratio\": supported values: "
			"\"AbsoluteValue\", \"RatioToAllocatable\""},
		{generic,
			"'left':{'values':'AbsoluteValue','prefer':'Most','resources':{'cpu':'x'}}",
			"json: cannot unmarshal string into Go struct field "
			"ResourceSpec.left.resources.weight of type int64"},
		{generic, "'left':{'values':'AbsoluteValue','prefer':'Most','shape':[{}]}",
			"left.shape: Forbidden: goes with RatioToAllocatable and Most alone"},
		{generic, "'left':{'values':'RatioToAllocatable','prefer':'Most','shape':[]}",
			"left.shape: Required value: at least one point must be specified"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *result = ask_score("{'plugin':'%s','args':{%s},'nodes':[],'pod':{}}",
			rows[i].plugin, rows[i].args);

		assert_string_equal(refusal_of(result), rows[i].want);
		assert_int_equal(json_object_size(result), 1);
		json_decref(result);
	}
}

static void arguments_that_are_missing_or_null_are_the_defaults(void **state)
{
	static const struct {
		const char *args;
	} rows[] = {
		{""},
		{"'args':null,"},
		{"'args':{},"},
		{"'args':{'scoringStrategy':null,'kind':'NodeResourcesFitArgs','apiVersion':''},"},
		{"'args':{'scoringStrategy':{'type':'LeastAllocated','resources':[{'name':'cpu',"
		 "'weight':0},{'name':'memory'}]}},"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *result =
			ask_score("{'plugin':'NodeResourcesFit',%s'nodes':[{'node':{"
				  "'status':{'allocatable':{'cpu':1,'memory':'400Mi','pods'"
				  ":1}}},'pods':null,'topology':null}],'pod':{'spec':{"
				  "'containers':[{'name':'c'}]}}}",
				rows[i].args);

		assert_int_equal(score_of(result, 0), 70); /* (90 + 50) / 2 */
		json_decref(result);
	}
}

static void an_unreadable_question_is_reported_with_the_place(void **state)
{
#define ASK(nodes, pod) "{'plugin':'NodeResourcesFit','nodes':" nodes ",'pod':" pod "}"
	static const struct {
		const char *question, *want;
	} rows[] = {
		{"7", "should be an object, is an integer"},
		{"{}", "plugin: should be a string, is nothing"},
		{"{'plugin':'Fit'}", "plugin: there is no \"Fit\""},
		{"{'plugin':'NodeResourcesFit','node':[]}", "unknown key \"node\""},
		{"{'plugin':'NodeResourcesFit','compat':1}",
			"compat: should be true or false, is an integer"},
		{ASK("{}", "{}"), "nodes: should be a list, is an object"},
		{ASK("[]", "7"), "pod: should be a v1.Pod, is an integer"},
		{ASK("[{'node':{}},{}]", "{}"), "nodes[1]: node: should be a v1.Node, is nothing"},
		{ASK("[{'node':{},'Pods':[]}]", "{}"), "nodes[0]: unknown key \"Pods\""},
		{ASK("[{'node':{'status':{'allocatable':{'cpu':'x'}}}}]", "{}"),
			"nodes[0]: node: status: allocatable.cpu: \"x\" is not a quantity"},
		{ASK("[{'node':{},'pods':[{},{'spec':7}]}]", "{}"),
			"nodes[0]: pods[1]: spec: should be an object, is an integer"},
		{ASK("[]", "{'spec':{'containers':[{'resources':{'requests':{'cpu':[]}}}]}}"),
			"pod: spec: containers[0]: resources: requests.cpu: should be a quantity, "
			"is a list"},
		{ASK("[]", "{'spec':{'initContainers':[{'name':7}]}}"),
			"pod: spec: initContainers[0]: name: should be a string, is an integer"},
		{ASK("[]", "{'metadata':{'annotations':{'a':1}}}"),
			"pod: metadata: annotations.a: should be a string, is an integer"},
		{ASK("[]", "{'status':{'qosClass':'Best'}}"),
			"pod: status: qosClass: there is no \"Best\""},
		{"{'plugin':'NodeResourceTopologyMatch','nodes':[{'node':{},'topology':{'zones':["
		 "{'type':'Node','name':'node-0','resources':[{'name':'cpu'}]}]}}],'pod':{}}",
			"nodes[0]: topology: zones[0]: resources[0]: available: should be a "
			"quantity, is nothing"},
		{"{'plugin':'NodeResourceTopologyMatch','nodes':[{'node':{},'topology':{'kind':"
		 "'Numatopology'}}],'pod':{}}",
			"nodes[0]: topology: kind: should be NodeResourceTopology, is "
			"Numatopology"},
		{"{'plugin':'numa-aware','nodes':[{'node':{},'topology':{'kind':"
		 "'NodeResourceTopology'}}],'pod':{}}",
			"nodes[0]: topology: kind: should be Numatopology, is "
			"NodeResourceTopology"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *result = ask_score("%s", rows[i].question);

		assert_non_null(json_object_get(result, "unreadable"));
		if (strncmp(refusal_of(result), rows[i].want, strlen(rows[i].want)))
			assert_string_equal(refusal_of(result), rows[i].want);
		json_decref(result);
	}
}

static void a_pod_that_asks_for_nothing_is_not_balanced(void **state)
{
	json_t *result =
		ask_score("{'plugin':'NodeResourcesBalancedAllocation','nodes':[{'node':{}}],"
			  "'pod':{'spec':{'containers':[{'name':'c'}]}}}");

	(void)state;
	assert_string_equal(json_string_value(json_object_get(result, "prescore")), "Skip");
	assert_int_equal(score_of(result, 0), -1);
	json_decref(result);
}

#define ZONE(id, costs, resources)                                                                 \
	"{'type':'Node','name':'node-" id "','costs':[" costs "],'resources':[" resources "]}"
#define HAS(name, n) "{'name':'" name "','capacity':" n ",'allocatable':" n ",'available':" n "}"
#define GUARANTEED(resources)                                                                      \
	"{'status':{'qosClass':'Guaranteed'},'spec':{'containers':[{'name':'c','resources':{'"     \
	"requests"                                                                                 \
	"':{" resources "}}}]}}"

/* Pods that the scheduler has reserved since the topology was read: of no matter, taken from every
 * zone, or a reason to wait. */
static void reserved_pods_count_as_the_arguments_say(void **state)
{
	static const struct {
		const char *args, *why;
	} rows[] = {
		{"", ""},
		{"'cacheResyncPeriodSeconds':0", ""},
		{"'cacheResyncPeriodSeconds':5", "cannot align container"},
		{"'discardReservedNodes':true", "invalid node topology data"},
		{"'discardReservedNodes':true,'cacheResyncPeriodSeconds':5",
			"invalid node topology data"},
	};

	static const char reserved[] = GUARANTEED("'cpu':2,'memory':1"),
			  asking[] = GUARANTEED("'cpu':3,'memory':1"),
			  first[] = ZONE("0", "", HAS("cpu", "4") "," HAS("memory", "4")),
			  second[] = ZONE("1", "", HAS("cpu", "4") "," HAS("memory", "4"));

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *result = ask_score(
			"{'plugin':'NodeResourceTopologyMatch','args':{%s},'nodes':[{'node':{"
			"'status':{'allocatable':{'cpu':8,'memory':8}}},'pods':[%s],'topology':{"
			"'topologyPolicies':['SingleNUMANodeContainerLevel'],'zones':[%s,%s]}}],"
			"'pod':%s}",
			rows[i].args, reserved, first, second, asking);
		json_t *node = json_array_get(json_object_get(result, "nodes"), 0);
		const char *why =
			json_string_value(json_array_get(json_object_get(node, "why"), 0));

		assert_string_equal(why ? why : "", rows[i].why);
		json_decref(result);
	}
}

/* Two of four NUMA nodes, close ones or not (least-numa-nodes-scoring.md): 76 and, where no two are
 * closer, 6 more. */
static void costs_of_zones_are_read(void **state)
{
#define COSTS(a, b, c, d)                                                                          \
	"{'name':'node-0','value':" a "},{'name':'node-1','value':" b                              \
	"},{'name':'node-2','value':" c "},{'name':'node-3','value':" d "}"
#define FOUR(gpus0, gpus1, gpus2)                                                                  \
	ZONE("0", COSTS("10", "12", "20", "20"), gpus0 HAS("cpu", "4") "," HAS("memory", "4"))     \
	"," ZONE("1", COSTS("12", "10", "20", "20"),                                               \
		gpus1 HAS("cpu", "4") "," HAS("memory", "4")) "," ZONE("2",                        \
		COSTS("20", "20", "10", "12"),                                                     \
		gpus2 HAS("cpu", "4") "," HAS("memory", "4")) "," ZONE("3",                        \
		COSTS("20", "20", "12", "10"),                                                     \
		HAS("gpu", "0") "," HAS("cpu", "4") "," HAS("memory", "4"))
#define ONE  HAS("gpu", "1") ","
#define NONE HAS("gpu", "0") ","
	static const struct {
		const char *zones, *taken;
		long long score;
	} rows[] = {
		{FOUR(ONE, ONE, NONE), "[0,1]", 82},
		{FOUR(ONE, NONE, ONE), "[0,2]", 76},
	};

	static const char asking[] = GUARANTEED("'cpu':1,'memory':1,'gpu':2");

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *result = ask_score(
			"{'plugin':'NodeResourceTopologyMatch','compat':true,'args':{"
			"'scoringStrategy':{'type':'LeastNUMANodes'}},'nodes':[{'node':{'status':{"
			"'allocatable':{'cpu':16,'memory':16,'gpu':2}}},'topology':{'zones':[%s]}}"
			"],'pod':%s}",
			rows[i].zones, asking);
		json_t *node = json_array_get(json_object_get(result, "nodes"), 0);
		char *taken = json_dumps(
			json_object_get(json_object_get(node, "zones"), "c"), JSON_COMPACT);

		assert_int_equal(score_of(result, 0), rows[i].score);
		assert_string_equal(taken, rows[i].taken);
		free(taken);
		json_decref(result);
	}
}

/* Whatever scores: the zone of a single-numa-node is the filter's choice. */
static void every_strategy_reports_the_zone_of_each_container(void **state)
{
	static const char *const strategies[] = {
		"LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes"};

	(void)state;
	for (unsigned i = 0; i < sizeof strategies / sizeof *strategies; i++) {
		json_t *result = ask_score(
			"{'plugin':'NodeResourceTopologyMatch','args':{'scoringStrategy':{'type':"
			"'%s'}},'nodes':[{'node':{'status':{'allocatable':{'cpu':8,'memory':8}}},"
			"'topology':{'topologyPolicies':['SingleNUMANodeContainerLevel'],'zones':"
			"[" ZONE("0", "", HAS("cpu", "2") "," HAS("memory", "4")) "," ZONE(
				"1", "", HAS("cpu", "4") "," HAS("memory", "4")) "]}}],'pod':%s}",
			strategies[i], GUARANTEED("'cpu':3,'memory':1"));
		json_t *node = json_array_get(json_object_get(result, "nodes"), 0);
		char *zones = json_dumps(json_object_get(node, "zones"), JSON_COMPACT);

		assert_string_equal(zones, "{\"c\":[1]}");
		free(zones);
		json_decref(result);
	}
}

/* --check does not compare them, as they only inform. */
static void the_cpus_are_those_that_the_plugin_gives(void **state)
{
	FILE *in = fopen("test/golden/score.jsonl", "re");
	unsigned nr = 0;
	json_t *question;

	(void)state;
	assert_non_null(in);
	while ((question = json_loadf(in, JSON_DISABLE_EOF_CHECK, NULL))) {
		json_t *expected = json_object_get(json_object_get(question, "expected"), "nodes");
		json_t *result = answer_question(question, NULL), *node;
		size_t i;

		json_array_foreach(expected, i, node)
		{
			const json_t *cpus = json_object_get(node, "cpus");
			const json_t *got = json_object_get(
				json_array_get(json_object_get(result, "nodes"), i), "cpus");

			nr += cpus != NULL;
			assert_true(cpus == got || json_equal(cpus, got));
		}
		json_decref(result);
		json_decref(question);
	}
	assert_int_equal(nr, 15);
	(void)fclose(in);
}

/* Lines of the arithmetic, one below the other. */
struct lines {
	char text[2048];
};

static void add_line(void *ctx, const char *line)
{
	struct lines *l = ctx;
	size_t len = strlen(l->text);

	(void)snprintf(l->text + len, sizeof l->text - len, "%s\n", line);
}

__attribute__((format(printf, 1, 2))) static const char *explained(const char *fmt, ...)
{
	static struct lines l;
	const struct steps steps = {add_line, &l};
	va_list args;

	va_start(args, fmt);
	json_t *question = question_of(fmt, args);
	va_end(args);
	l.text[0] = '\0';
	json_decref(answer_question(question, &steps));
	json_decref(question);
	return l.text;
}

static void the_arithmetic_is_printed_step_by_step(void **state)
{
#define OBJECTS                                                                                    \
	"'nodes':[{'node':{'metadata':{'name':'n'},'status':{'allocatable':{'cpu':4,'memory':'"    \
	"1Gi',"                                                                                    \
	"'pods':9}}}}],'pod':{'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':1," \
	"'memory':'512Mi'}}}]}}}"

	(void)state;
	assert_string_equal(
		explained("{'plugin':'NodeResourcesFit','args':{'scoringStrategy':{'type':"
			  "'LeastAllocated','resources':[{'name':'cpu','weight':3},{"
			  "'name':'a.b/c'},{'name':'memory'}]}}," OBJECTS),
		"node n\n"
		"cpu: left 3000 of 4000: 75, weight 3\n"
		"a.b/c: left out\n"
		"memory: left 536870912 of 1073741824: 50, weight 1\n"
		"left, RatioToAllocatable, Most: 68\n"
		"score 68\n");
	assert_string_equal(explained("{'plugin':'NodeResourcesBalancedAllocation'," OBJECTS),
		"node n\n"
		"with the pod: standard deviation 0.125: balance 87\n"
		"before the pod: standard deviation 0: balance 100\n"
		"50 + (50 + 87 - 100) / 2 = 68\n"
		"score 68\n");
	assert_string_equal(
		explained(
			"{'plugin':'numa-aware','nodes':[{'node':{'metadata':{'name':'n'}},"
			"'topology':{'spec':{'policies':{'CPUManagerPolicy':'static',"
			"'TopologyManagerPolicy':'restricted'},'numares':{'cpu':{'allocatable':"
			"'0-1'}},'cpuDetail':{'0':{},'1':{'core':1}}}}}],'pod':{'metadata':{"
			"'annotations':{'volcano.sh/numa-topology-policy':'restricted'}},'status':{"
			"'qosClass':'Guaranteed'},'spec':{'containers':[{'name':'c','resources':{"
			"'requests':{'cpu':1}}}]}}}"),
		"node n\n"
		"container c: 1 CPU: NUMA nodes 0, preferred: CPUs 0\n"
		"node n\n"
		"score 0\n");
}

struct difference {
	unsigned nr;
	char first[256];
};

static void note(void *ctx, const char *path, const char *wanted, const char *got)
{
	struct difference *d = ctx;

	if (!d->nr++)
		(void)snprintf(d->first, sizeof d->first, "%s: %s, %s", path, wanted, got);
}

static void a_recorded_answer_is_compared_with_the_computed_one(void **state)
{
#define ANSWERED(expected)                                                                         \
	"{'plugin':'NodeResourcesAllocatable','args':{%s},'nodes':[{'node':{'metadata':{'name':'"  \
	"n'}}}],"                                                                                  \
	"'pod':{}" expected "}"
#define NODE(score) "{'name':'n','fits':true,'code':'Success','why':[],'score':" score "}"
	static const struct {
		const char *args, *expected;
		int rc;
		const char *first;
	} rows[] = {
		{"", "", -ENOENT, ""},
		{"", ",'expected':null", 0, ""},
		{"", ",'expected':{'nodes':[" NODE("0") "]}", 0, ""},
		{"", ",'expected':{'nodes':[" NODE("1") "]}", 1, "nodes[0].score: 1, 0"},
		{"", ",'expected':{'nodes':[" NODE("0") "," NODE("0") "]}", 1, NULL},
		{"", ",'expected':{'nodes':[]}", 1, NULL},
		{"", ",'expected':{'nodes':[" NODE("0") "],'prescore':'Skip'}", 1,
			"prescore: \"Skip\", nothing"},
		{"", ",'expected':{'error':'x'}", 1, "error: \"x\", nothing"},
		{"'mode':'x'", ",'expected':{'error':'mode: Invalid value: \\u0022x\\u0022: no'}",
			0, ""},
		{"'mode':'x'", ",'expected':{'error':'mode: Required value: no'}", 1, NULL},
		{"'mode':'x'", ",'expected':{'nodes':[]}", 1, NULL},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *question = NULL;
		struct difference d = {0};
		char text[1024];

		(void)snprintf(text, sizeof text, ANSWERED("%s"), rows[i].args, rows[i].expected);
		for (char *c = text; *c; c++)
			*c = *c == '\'' ? '"' : *c;
		assert_int_equal(json_parse(text, strlen(text), &question, NULL), 0);
		json_t *result = answer_question(question, NULL);
		assert_int_equal(score_json_check(question, result, note, &d), rows[i].rc);
		if (rows[i].first)
			assert_string_equal(d.first, rows[i].first);
		json_decref(result);
		json_decref(question);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_arguments_are_refused_with_the_place),
		cmocka_unit_test(arguments_that_are_missing_or_null_are_the_defaults),
		cmocka_unit_test(an_unreadable_question_is_reported_with_the_place),
		cmocka_unit_test(a_pod_that_asks_for_nothing_is_not_balanced),
		cmocka_unit_test(reserved_pods_count_as_the_arguments_say),
		cmocka_unit_test(costs_of_zones_are_read),
		cmocka_unit_test(every_strategy_reports_the_zone_of_each_container),
		cmocka_unit_test(the_cpus_are_those_that_the_plugin_gives),
		cmocka_unit_test(the_arithmetic_is_printed_step_by_step),
		cmocka_unit_test(a_recorded_answer_is_compared_with_the_computed_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
