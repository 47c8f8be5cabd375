#include <numafit/generic_score.h>

#include "score_questions.h"

#include <math.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <setjmp.h>

#include <cmocka.h>

static json_t *vectors(const char *list)
{
	json_error_t where;
	json_t *all = json_load_file("test/golden/generic_score.json", 0, &where);
	json_t *rows = json_incref(json_object_get(all, list));

	assert_non_null(all);
	assert_true(json_array_size(rows) > 0);
	json_decref(all);
	return rows;
}

/* {"cpu": 8, "memory": 16} as a v1.ResourceList: cpu is in thousandths there. */
static json_t *amounts_of(const json_t *numbers)
{
	json_t *list = json_object(), *value;
	const char *name;

	json_object_foreach((json_t *)(uintptr_t)numbers, name, value)
	{
		if (text_equal(name, "cpu"))
			(void)json_object_set_new(list, name,
				json_sprintf("%lldm", (long long)json_integer_value(value)));
		else
			(void)json_object_set(list, name, value);
	}
	return list;
}

static json_t *pod_of(const json_t *requests)
{
	return json_pack("{s:{s:[{s:s,s:{s:o}}]}}", "spec", "containers", "name", "c", "resources",
		"requests", amounts_of(requests));
}

static json_t *node_of(const char *name, const json_t *allocatable, json_t *pods)
{
	return json_pack("{s:{s:{s:s},s:{s:o}},s:o}", "node", "metadata", "name", name, "status",
		"allocatable", amounts_of(allocatable), "pods", pods);
}

/* The answer to one plugin with these arguments; takes nodes and pod. */
static json_t *ask(const char *plugin, json_t *args, json_t *nodes, json_t *pod)
{
	json_t *question = json_pack(
		"{s:s,s:o,s:o,s:o}", "plugin", plugin, "args", args, "nodes", nodes, "pod", pod);
	json_t *result = answer_question(question, NULL);

	assert_string_equal(refusal_of(result), "");
	json_decref(question);
	return result;
}

static json_t *part_of(
	const char *portion, const char *values, const char *prefer, const json_t *weights)
{
	return json_pack("{s:{s:s,s:s,s:O}}", portion, "values", values, "prefer", prefer,
		"resources", weights);
}

/* "RTCR 0:0,50:10,100:5" as a list of points. */
static json_t *shape_of(const char *name)
{
	json_t *shape = json_array();
	int utilization, score, len;

	name += strcspn(name, " ");
	while (sscanf(name, "%*c%d:%d%n", &utilization, &score, &len) == 2) {
		(void)json_array_append_new(
			shape, json_pack("{s:i,s:i}", "utilization", utilization, "score", score));
		name += len;
	}
	return shape;
}

static json_t *args_of(const char *name, const json_t *weights)
{
	if (text_equal(name, "LeastAllocated"))
		return part_of("left", "RatioToAllocatable", "Most", weights);
	if (text_equal(name, "Balanced(std)"))
		return part_of("allocated", "RatioToAllocatable", "MostBalanced", weights);
	json_t *args = part_of("allocated", "RatioToAllocatable", "Most", weights);
	if (!text_equal(name, "MostAllocated"))
		(void)json_object_set_new(
			json_object_get(args, "allocated"), "shape", shape_of(name));
	return args;
}

static void the_replaced_scorers_give_the_recorded_scores(void **state)
{
	json_t *rows = vectors("fitScorers"), *row, *want;
	const char *name;
	size_t i;

	(void)state;
	json_array_foreach(rows, i, row)
		json_object_foreach(json_object_get(row, "expect"), name, want)
	{
		json_t *nodes = json_pack(
			"[o]", node_of("n", json_object_get(row, "allocatable"), json_array()));
		json_t *result =
			ask("GenericNodeResources", args_of(name, json_object_get(row, "weights")),
				nodes, pod_of(json_object_get(row, "requestedIncludingPod")));

		assert_int_equal(score_of(result, 0), json_integer_value(want));
		json_decref(result);
	}
	json_decref(rows);
}

static json_t *weight_list(const json_t *weights)
{
	json_t *list = json_array(), *weight;
	const char *name;

	json_object_foreach((json_t *)(uintptr_t)weights, name, weight)(void)
		json_array_append_new(list, json_pack("{s:s,s:O}", "name", name, "weight", weight));
	return list;
}

static void allocatable_resources_give_the_recorded_scores(void **state)
{
	json_t *rows = vectors("nodeResourcesAllocatable"), *row, *node;
	const char *name;
	size_t i;

	(void)state;
	json_array_foreach(rows, i, row)
	{
		json_t *nodes = json_array();
		size_t at = 0;

		json_object_foreach(json_object_get(row, "nodes"), name, node)(void)
			json_array_append_new(nodes, node_of(name, node, json_array()));
		json_t *args = json_pack("{s:O,s:o}", "mode", json_object_get(row, "mode"),
			"resources", weight_list(json_object_get(row, "weights")));
		json_t *result = ask("NodeResourcesAllocatable", args, nodes, pod_of(NULL));
		json_object_foreach(json_object_get(row, "nodes"), name, node)
		{
			const json_t *got = json_array_get(json_object_get(result, "nodes"), at);

			assert_true(json_equal(json_object_get(got, "raw"),
				json_object_get(json_object_get(row, "raw"), name)));
			assert_int_equal(score_of(result, at++),
				json_integer_value(
					json_object_get(json_object_get(row, "expect"), name)));
		}
		json_decref(result);
	}
	json_decref(rows);
}

static json_t *minus(const json_t *a, const json_t *b)
{
	json_t *rest = json_object(), *value;
	const char *name;

	json_object_foreach((json_t *)(uintptr_t)a, name, value)(void) json_object_set_new(rest,
		name,
		json_integer(
			json_integer_value(value) - json_integer_value(json_object_get(b, name))));
	return rest;
}

static void balance_is_computed_before_and_after_the_pod(void **state)
{
	json_t *rows = vectors("balancedNewest(2025+)"), *row = json_array_get(rows, 0);
	json_t *before = json_object_get(row, "before");
	json_t *asked = minus(json_object_get(row, "withPod"), before);
	json_t *nodes = json_pack("[o]", node_of("n", json_object_get(row, "allocatable"),
						 json_pack("[o]", pod_of(before))));
	json_t *more = json_incref(nodes);

	(void)state;
	json_t *result =
		ask("NodeResourcesBalancedAllocation", json_object(), nodes, pod_of(asked));
	assert_int_equal(
		score_of(result, 0), json_integer_value(json_object_get(row, "expectNew")));
	json_decref(result);
	result = ask("GenericNodeResources",
		json_pack("{s:{s:s,s:s}}", "allocated", "values", "RatioToAllocatable", "prefer",
			"MostBalanced"),
		more, pod_of(asked));
	assert_int_equal(
		score_of(result, 0), json_integer_value(json_object_get(row, "expectOld")));
	json_decref(result);
	json_decref(asked);
	json_decref(rows);
}

/* One of the user stories, its nodes' allocated resources bound by a pod each. */
static void check_story(const char *name)
{
	json_t *rows = vectors("proposedGeneric"), *row, *node, *term;
	json_t *args = json_object(), *nodes = json_array(), *asked = NULL;
	const char *node_name;
	size_t i, at = 0;

	json_array_foreach(rows, i,
		row) if (strstr(json_string_value(json_object_get(row, "name")), name)) break;
	assert_non_null(row);
	json_object_foreach(json_object_get(row, "nodes"), node_name, node)
	{
		json_t *bound = json_object_get(node, "allocated");

		(void)json_array_append_new(
			nodes, node_of(node_name, json_object_get(node, "allocatable"),
				       json_pack("[o]", pod_of(bound))));
		asked = json_object_get(node, "requesting");
	}
	json_array_foreach(json_object_get(row, "terms"), i, term)
	{
		json_t *part = part_of(json_string_value(json_array_get(term, 0)),
			json_string_value(json_array_get(term, 1)),
			json_string_value(json_array_get(term, 2)), json_array_get(term, 3));

		(void)json_object_update(args, part);
		json_decref(part);
	}
	json_t *result = ask("GenericNodeResources", args, nodes, pod_of(asked));
	json_object_foreach(json_object_get(json_object_get(row, "expect"), "score"), node_name,
		node) assert_int_equal(score_of(result, at++), json_integer_value(node));
	assert_int_equal(at, 3);
	json_decref(result);
	json_decref(rows);
}

/* kep-2143-generic-node-resource.md, story 1: pods to nodes with fewer GPUs left. */
static void seed_kep_2143_story_1_gives_0_57_and_100(void **state)
{
	(void)state;
	check_story("story 1");
}

/* Story 2: "small" nodes full earlier; its weights scaled to the 1 to 100 of its own types. */
static void seed_kep_2143_story_2_gives_100_93_and_0(void **state)
{
	(void)state;
	check_story("story 2");
}

/* Story 2 as it is written: 10000000000000 is no weight. */
static void seed_kep_2143_story_2_has_weights_that_its_types_refuse(void **state)
{
	json_t *result = ask_score(
		"{'plugin':'GenericNodeResources','args':{'allocatable':{'values':'AbsoluteValue',"
		"'prefer':'Least','resources':{'cpu':10000000000000,'memory':10}}},'nodes':[],"
		"'pod':{}}");

	(void)state;
	assert_string_equal(refusal_of(result), "allocatable.resources[0].weight: Invalid value: "
						"10000000000000: resource weight of "
						"cpu not in valid range (0, 100]");
	json_decref(result);
}

#define NODE(name, cpu, memory)                                                                    \
	"{'node':{'metadata':{'name':'" name "'},'status':{'allocatable':{'cpu':'" cpu             \
	"','memory':'" memory "','pods':9}}}}"
#define POD(cpu, memory)                                                                           \
	"{'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':'" cpu                  \
	"','memory':'" memory "'}}}]}}"

/* Each preference of each portion, by hand: 2 of 8 CPUs, 4Gi of 8Gi. */
static void every_portion_has_every_preference(void **state)
{
	static const struct {
		const char *portion, *prefer;
		long long ratio;
	} rows[] = {
		{"allocatable", "Most", 100},
		{"allocatable", "Least", 0},
		{"allocatable", "MostBalanced", 100},
		{"allocatable", "LeastBalanced", 0},
		{"allocated", "Most", 37}, /* (25 + 50) / 2 */
		{"allocated", "Least", 63},
		{"allocated", "MostBalanced", 87}, /* 1 - 0.25 / 2 */
		{"allocated", "LeastBalanced", 12},
		{"left", "Most", 62},
		{"left", "Least", 38},
		{"left", "MostBalanced", 87},
		{"left", "LeastBalanced", 12},
		{"requesting", "Most", 37},
		{"requesting", "Least", 63},
		{"requesting", "MostBalanced", 87},
		{"requesting", "LeastBalanced", 12},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *result =
			ask_score("{'plugin':'GenericNodeResources','args':{'%s':"
				  "{'values':'RatioToAllocatable','prefer':'%s'}},"
				  "'nodes':[" NODE("n", "8", "8Gi") "],'pod':" POD("2", "4Gi") "}",
				rows[i].portion, rows[i].prefer);

		assert_int_equal(score_of(result, 0), rows[i].ratio);
		json_decref(result);
	}
}

static void one_absolute_part_is_normalised_and_equal_ones_are_0(void **state)
{
	static const struct {
		const char *portion, *prefer;
		long long score[3];
	} rows[] = {
		{"allocatable", "Most", {0, 50, 100}},
		{"allocatable", "Least", {100, 50, 0}},
		{"left", "Most", {0, 50, 100}},
		{"requesting", "Most", {0, 0, 0}},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *result = ask_score(
			"{'plugin':'GenericNodeResources','args':{'%s':{'values':'AbsoluteValue',"
			"'prefer':'%s','resources':{'cpu':3}}},'nodes':[" NODE(
				"a", "4", "1Gi") "," NODE("b", "6", "1Gi") "," NODE("c", "8",
				"1Gi") "],'pod':" POD("1", "1Gi") "}",
			rows[i].portion, rows[i].prefer);

		for (size_t n = 0; n < 3; n++)
			assert_int_equal(score_of(result, n), rows[i].score[n]);
		json_decref(result);
	}
}

/* What the node lacks, how many pods it takes, names that nodes keep no account of, and what the
 * pod does not ask for: their weights do not count either. */
static void a_part_without_data_for_the_node_is_left_out(void **state)
{
	static const char *const names[] = {"ephemeral-storage", "pods", "storage", "a.b/c"};

	(void)state;
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		json_t *result = ask_score(
			"{'plugin':'GenericNodeResources','args':{'left':{'values':"
			"'RatioToAllocatable','prefer':'Most','resources':{'cpu':1,'%s':99}}},"
			"'nodes':[{'node':{'status':{'allocatable':{'cpu':4,'pods':9,'storage':9,"
			"'a.b/c':9}}}}],'pod':" POD("1", "1Gi") "}",
			names[i]);

		assert_int_equal(score_of(result, 0), 75);
		json_decref(result);
	}
}

static void note_deviation(void *ctx, const char *line)
{
	const char *number = strstr(line, "standard deviation ");

	if (number && !strncmp(line, "with", 4))
		assert_int_equal(sscanf(number, "standard deviation %lf", (double *)ctx), 1);
}

/* The deviation of three fractions of 1,000 is what math.h makes of them, to the last bit: the core
 * has a square root of its own. */
static void the_standard_deviation_is_that_of_float64(void **state)
{
	double got = -1;
	const struct steps steps = {note_deviation, &got};
	unsigned x = 1;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		double f[3], mean, squares = 0;
		int n[3];

		for (unsigned k = 0; k < 3; k++) {
			x = x * 1103515245 + 12345;
			n[k] = (int)(x >> 16) % 1000 + 1;
			f[k] = n[k] / 1000.0;
		}
		json_t *question = json_pack("{s:s,s:{s:[{s:s},{s:s},{s:s}]},s:[{s:{s:{s:{s:i,s:i,"
					     "s:i}}}}],s:{s:{s:[{s:{s:"
					     "{s:i,s:i,s:i}}}]}}}",
			"plugin", "NodeResourcesBalancedAllocation", "args", "resources", "name",
			"a/x", "name", "b/x", "name", "c/x", "nodes", "node", "status",
			"allocatable", "a/x", 1000, "b/x", 1000, "c/x", 1000, "pod", "spec",
			"containers", "resources", "requests", "a/x", n[0], "b/x", n[1], "c/x",
			n[2]);
		json_decref(answer_question(question, &steps));
		json_decref(question);
		mean = (f[0] + f[1] + f[2]) / 3;
		for (unsigned k = 0; k < 3; k++)
			squares += (f[k] - mean) * (f[k] - mean);
		assert_true(!(got < sqrt(squares / 3)) && !(got > sqrt(squares / 3)));
	}
}

/* More than is there, of more than int64_t holds, is still a score. */
static void no_amount_is_too_large(void **state)
{
	static const char *const portions[] = {"allocatable", "allocated", "left", "requesting"};
	static const char *const values[] = {"AbsoluteValue", "RatioToAllocatable"};

	(void)state;
	for (unsigned p = 0; p < 4; p++)
		for (unsigned v = 0; v < 2; v++) {
			json_t *result = ask_score(
				"{'plugin':'GenericNodeResources','args':{'%s':{'values':'%s',"
				"'prefer':'Most','resources':{'cpu':100,'memory':100}}},'nodes':"
				"[" NODE("a", "8Ei", "8Ei") "," NODE("b", "1", "1") "],'pod':" POD(
					"8Ei", "8Ei") "}",
				portions[p], values[v]);

			for (size_t n = 0; n < 2; n++)
				assert_in_range(score_of(result, n), 0, SCHED_SCORE_MAX);
			json_decref(result);
		}
}

static void least_allocated(unsigned cpus, unsigned used, long long *score)
{
	json_t *result = ask_score("{'plugin':'NodeResourcesFit','args':{'scoringStrategy':{'type':"
				   "'LeastAllocated'}},'nodes':[{'node':{'status':{'allocatable':"
				   "{'cpu':%u,'memory':'64Gi','pods':9}}},'pods':[" POD(
					   "%u", "1Gi") "]}],'pod':" POD("1", "1Gi") "}",
		cpus, used);

	*score = score_of(result, 0);
	json_decref(result);
}

static void free_resources_never_lower_least_allocated(void **state)
{
	(void)state;
	for (unsigned cpus = 4; cpus < 64; cpus++) {
		long long some, more_there, less_used;

		least_allocated(cpus, 2, &some);
		least_allocated(cpus + 1, 2, &more_there);
		least_allocated(cpus, 1, &less_used);
		assert_true(some >= 0 && some <= more_there && some <= less_used);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_replaced_scorers_give_the_recorded_scores),
		cmocka_unit_test(allocatable_resources_give_the_recorded_scores),
		cmocka_unit_test(balance_is_computed_before_and_after_the_pod),
		cmocka_unit_test(seed_kep_2143_story_1_gives_0_57_and_100),
		cmocka_unit_test(seed_kep_2143_story_2_gives_100_93_and_0),
		cmocka_unit_test(seed_kep_2143_story_2_has_weights_that_its_types_refuse),
		cmocka_unit_test(every_portion_has_every_preference),
		cmocka_unit_test(one_absolute_part_is_normalised_and_equal_ones_are_0),
		cmocka_unit_test(a_part_without_data_for_the_node_is_left_out),
		cmocka_unit_test(the_standard_deviation_is_that_of_float64),
		cmocka_unit_test(no_amount_is_too_large),
		cmocka_unit_test(free_resources_never_lower_least_allocated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
