#include <numafit-cli/verbs.h>

#include <questions/score_json.h>
#include <numafit-cli/questions.h>

static int score_question(const struct decide_items *d, size_t i, const struct steps *steps,
	struct arena *a, struct json_t **result, struct err *e)
{
	return score_json_answer(decide_item(d, i), steps, a, result, e);
}

static int check_score(const struct decide_items *d, size_t i, struct json_t *result,
	void (*differs)(void *ctx, const char *path, const char *wanted, const char *got),
	void *ctx)
{
	return score_json_check(decide_item(d, i), result, differs, ctx);
}

static int run_score(const struct call *c)
{
	static const struct question_verb verb = {score_question, check_score};

	return questions_run(&verb, c);
}

static const struct option_row rows[] = {QUESTION_CHECK_ROW,
	{.name = "explain",
		.help = "print the arithmetic before each answer, one line for each step",
		.read = option_flag,
		.at = offsetof(struct question_options, explain)},
	{0}};

const struct command verb_score = {
	.name = "score",
	.summary = "filter and score nodes as schedulers do, or check recorded answers",
	.about =
		"Answer for a pod what a scheduler's plugin says of nodes: whether it fits, why not, "
		"the score. One JSON object on each line, or one JSON array of them; one JSON line out "
		"for each, in the same order. Without FILE, or with -, they are read from the standard "
		"input.\n"
		"\n"
		"Plugins: NodeResourceTopologyMatch, NodeResourcesFit, NodeResourcesBalancedAllocation, NodeResourcesAllocatable, GenericNodeResources, numa-aware. A question has the \"plugin\", its \"args\" as in kube-scheduler's configuration, the \"pod\" as a v1.Pod, and \"nodes\", each with what the plugin reads: \"node\" (a v1.Node), \"pods\" (those on it), and \"topology\" (its NodeResourceTopology, or Volcano's Numatopology). It may have a \"name\", which is in its answer, and \"expected\", the result that --check compares with:\n"
		"  {\"plugin\": \"NodeResourcesFit\", \"pod\": {\"spec\": {\"containers\":\n"
		"    [{\"name\": \"c\", \"resources\": {\"requests\": {\"cpu\": 1}}}]}},\n"
		"   \"nodes\": [{\"node\": {\"metadata\": {\"name\": \"n\"}, \"status\":\n"
		"    {\"allocatable\": {\"cpu\": 4, \"memory\": \"4Gi\", \"pods\": 2}}}}]}\n"
		"  {\"plugin\": \"NodeResourceTopologyMatch\", \"pod\": {\"spec\": {\"containers\":\n"
		"    [{\"name\": \"c\", \"resources\": {\"limits\": {\"cpu\": 2, \"memory\": \"1Gi\"}}}]}},\n"
		"   \"nodes\": [{\"node\": {\"metadata\": {\"name\": \"n\"}, \"status\":\n"
		"      {\"allocatable\": {\"cpu\": 4, \"memory\": \"4Gi\", \"pods\": 2}}},\n"
		"     \"topology\": {\"metadata\": {\"name\": \"n\"},\n"
		"      \"attributes\": [{\"name\": \"topologyManagerPolicy\", \"value\": \"restricted\"}],\n"
		"      \"zones\": [{\"name\": \"node-0\", \"type\": \"Node\", \"resources\":\n"
		"       [{\"name\": \"cpu\", \"capacity\": 4, \"allocatable\": 4, \"available\": 3},\n"
		"        {\"name\": \"memory\", \"capacity\": \"4Gi\", \"allocatable\": \"4Gi\", \"available\": \"2Gi\"}]}]}}]}\n"
		"\n"
		"An answer has of each node, in the same order, \"fits\", \"code\", \"why\" and \"score\", and \"zones\" where the plugin knows on which NUMA nodes containers would be.",
	.options = rows,
	.operand = QUESTION_OPERAND,
	.examples = {{"numafit score questions.jsonl", "answer each line of a file"},
		{"numafit score --explain questions.jsonl", "and print how each score comes about"},
		{"numafit score --check recorded.jsonl", "compare with what is expected there"}},
	.exits = QUESTION_EXITS,
	.run = run_score,
};
