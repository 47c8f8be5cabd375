/* A plan says of each question what `numafit score` says. */
#include <numafit/sched_plan.h>

#include "score_questions.h"

#include <sched/sched_place.h>
#include <codec/nrt_json.h>
#include <codec/numatopology_json.h>
#include <plugin-args/score_args_json.h>
#include <errno.h>
#include <setjmp.h>

#include <cmocka.h>

enum { NODES_MOST = 64, ARENA_BYTES = 64 << 20 };

/* A question to `numafit score`, as the plan is asked it. */

struct asked {
	struct resource_table names;
	struct arena arena;
	struct sched_reader r;
	struct sched_profile profile;
	int64_t volcano_weight;
	struct sched_pod pod;
	struct sched_node node[NODES_MOST];
	struct sched_topology *topology[NODES_MOST];
	struct sched_candidate candidate[NODES_MOST];
	size_t nr;
};

static int read_args(struct asked *a, json_t *question, struct sched_use *use)
{
	const char *name = json_string_value(json_object_get(question, "plugin"));
	json_t *args = json_object_get(question, "args");
	struct args_problems p = {0};

	use->plugin = sched_plugin_find(name);
	use->weight = 1;
	if (!use->plugin)
		return -ENOENT;
	if (!strcmp(name, "GenericNodeResources"))
		return generic_args_json_read(args, &a->r, &use->args.generic, &p, NULL);
	if (!strcmp(name, "numa-aware"))
		return volcano_args_json_read(args, &a->r, &a->volcano_weight, &p, NULL);
	use->args.nrt.compat = json_is_true(json_object_get(question, "compat"));
	bool compat = use->args.nrt.compat;
	int rc = nrt_args_json_read(args, &a->r, &use->args.nrt, &p, NULL);
	use->args.nrt.compat = compat;
	return rc;
}

static void read_topology(struct asked *a, json_t *v, size_t i)
{
	const struct sched_use *use = &a->profile.use[0];

	if (!json_is_object(v))
		return;
	if (sched_plugin_wants_numatopology(use->plugin)) {
		struct volcano_node *volcano = arena_alloc(&a->arena, sizeof *volcano);

		assert_int_equal(numatopology_json_read(v, &a->arena, volcano, NULL), 0);
		a->candidate[i].volcano = volcano;
		return;
	}
	assert_int_equal(nrt_json_read(v, &a->r, &a->topology[i], NULL), 0);
}

/* Reserved pods are subtracted, or make the node stale: the cluster's part of the arguments. */
static void reserve(struct asked *a, size_t i)
{
	const struct nrt_args *args = &a->profile.use[0].args.nrt;
	struct sched_node *n = &a->node[i];

	if (args->discard_reserved) {
		a->candidate[i].stale = n->nr_pods;
	} else if (a->topology[i] && args->over_reserve) {
		struct sched_topology *left = nrt_over_reserve(a->topology[i], n->pods, n->nr_pods);

		sched_topology_free(a->topology[i]);
		a->topology[i] = left;
	}
}

static void read_node(struct asked *a, json_t *v, size_t i)
{
	json_t *pods = json_object_get(v, "pods");
	struct sched_pod *pod = arena_array(&a->arena, json_array_size(pods) + 1, sizeof *pod);

	assert_int_equal(
		sched_node_json_read(json_object_get(v, "node"), &a->r, &a->node[i], NULL), 0);
	for (size_t p = 0; p < json_array_size(pods); p++)
		assert_int_equal(
			sched_pod_json_read(json_array_get(pods, p), &a->r, &pod[p], NULL), 0);
	a->node[i].pods = pod;
	a->node[i].nr_pods = json_array_size(pods);
	a->candidate[i].node = &a->node[i];
	read_topology(a, json_object_get(v, "topology"), i);
	if (a->profile.use[0].plugin == sched_plugin_find("NodeResourceTopologyMatch"))
		reserve(a, i);
	a->node[i].topology = a->topology[i];
}

/* 0; else the plan is not asked such things. */
static int asked_init(struct asked *a, json_t *question)
{
	json_t *nodes = json_object_get(question, "nodes");

	*a = (struct asked){.profile.nr = 1};
	resource_table_init(&a->names);
	arena_init(&a->arena, ARENA_BYTES);
	a->r = (struct sched_reader){&a->names, &a->arena};
	int rc = read_args(a, question, &a->profile.use[0]);

	if (rc)
		return rc;
	assert_true(json_array_size(nodes) <= NODES_MOST);
	for (a->nr = 0; a->nr < json_array_size(nodes); a->nr++)
		read_node(a, json_array_get(nodes, a->nr), a->nr);
	assert_int_equal(
		sched_pod_json_read(json_object_get(question, "pod"), &a->r, &a->pod, NULL), 0);
	return 0;
}

static void asked_fini(struct asked *a)
{
	for (size_t i = 0; i < a->nr; i++)
		sched_topology_free(a->topology[i]);
	resource_table_fini(&a->names);
	arena_fini(&a->arena);
}

static bool is_string(const json_t *v, const char *text)
{
	return json_is_string(v) && !strcmp(json_string_value(v), text);
}

/* What the plan says beside what `score` said of the node. */
static size_t compare_filter(struct asked *a, struct sched_plan *plan, const json_t *nodes,
	struct sched_candidate *fitting, size_t *index)
{
	size_t nr = 0;

	for (size_t i = 0; i < a->nr; i++) {
		const json_t *want = json_array_get(nodes, i),
			     *code = json_object_get(want, "code");
		const char *why;
		enum sched_code got = sched_plan_filter(plan, &a->candidate[i], &why);

		if (is_string(code, "Error")) /* Volcano's: another node may do */
			assert_int_equal(got, SCHED_UNRESOLVABLE);
		else
			assert_string_equal(sched_code_words[got], json_string_value(code));
		assert_int_equal(got == SCHED_SUCCESS, *why == '\0');
		if (got != SCHED_SUCCESS)
			continue;
		index[nr] = i;
		fitting[nr++] = a->candidate[i];
	}
	return nr;
}

static unsigned compare(struct asked *a, json_t *question)
{
	json_t *answer = answer_question(question, NULL), *nodes = json_object_get(answer, "nodes");
	struct sched_plan *plan = sched_plan_new(&a->profile, &a->pod, &a->names);
	struct sched_candidate fitting[NODES_MOST];
	size_t index[NODES_MOST], nr = compare_filter(a, plan, nodes, fitting, index);
	int64_t score[NODES_MOST];
	unsigned compared = 0;

	sched_plan_score(plan, fitting, nr, score);
	for (size_t i = 0; i < nr; i++) {
		const json_t *want = json_object_get(json_array_get(nodes, index[i]), "score");
		json_int_t value = json_integer_value(want);

		if (!json_is_integer(want))
			continue;
		if (a->volcano_weight)
			score[i] *= a->volcano_weight;
		if (score[i] != (value < 0 ? 0 : value))
			fail_msg("%s: score %lld, not %lld",
				json_string_value(json_object_get(question, "name")),
				(long long)score[i], (long long)value);
		compared++;
	}
	sched_plan_free(plan);
	json_decref(answer);
	return compared;
}

static void one_plugin_gives_the_score_of_the_score_command(void **state)
{
	static struct asked a;
	FILE *f = fopen("test/golden/score.jsonl", "r");
	size_t cap = 0;
	char *line = NULL;
	unsigned questions = 0, scores = 0;

	(void)state;
	assert_non_null(f);
	while (getline(&line, &cap, f) > 0) {
		json_t *question = json_loads(line, 0, NULL);

		assert_non_null(question);
		if (!asked_init(&a, question)) {
			questions++;
			scores += compare(&a, question);
		}
		asked_fini(&a);
		json_decref(question);
	}
	print_message("%u questions, %u scores\n", questions, scores);
	assert_true(questions > 80 && scores > questions);
	free(line);
	(void)fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_plugin_gives_the_score_of_the_score_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
