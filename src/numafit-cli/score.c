#include <numafit-cli/verbs.h>

#include <questions/score_json.h>
#include <numafit-cli/questions.h>

static const char help[] =
	"usage: numafit score [--check] [--explain] [FILE|-]\n"
	"\n"
	"Answer for a pod what a scheduler's plugin says of nodes: whether it fits, why not, the "
	"score.\n"
	"One JSON object on each line, or one JSON array of them; one JSON line out for each, in "
	"the\n"
	"same order. Plugins: NodeResourceTopologyMatch, NodeResourcesFit,\n"
	"NodeResourcesBalancedAllocation, NodeResourcesAllocatable, GenericNodeResources, "
	"numa-aware.\n"
	"\n"
	"  --check    compare with the \"expected\" of each question: print the differences and "
	"the "
	"count\n"
	"  --explain  print the arithmetic before each answer, one line for each step\n"
	"  --help     this text\n"
	"\n"
	"Exit code: 0; 1 when a question could not be answered or an answer was not the expected "
	"one.\n";

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

int verb_score(int argc, char **argv)
{
	static const struct question_verb verb = {"score", help, true, score_question, check_score};

	return questions_run(&verb, argc, argv);
}
