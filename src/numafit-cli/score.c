#include <numafit-cli/verbs.h>

#include <questions/score_json.h>
#include <errno.h>
#include <getopt.h>
#include <numafit-cli/questions.h>
#include <stdio.h>
#include <string.h>

enum { QUESTION_BYTES_MAX = 256 << 20, NAME_TEXT_MAX = 128 };

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

struct run {
	bool check, explain;
	unsigned passed, failed;
	const char *name; /* of the question at hand */
};

static void print_difference(void *ctx, const char *path, const char *wanted, const char *got)
{
	const struct run *run = ctx;

	(void)printf(
		"%s: %s: wanted %s, got %s\n", run->name, *path ? path : "result", wanted, got);
}

static void print_step(void *ctx, const char *text)
{
	const struct run *run = ctx;

	(void)printf("%s: %s\n", run->name, text);
}

static void check(struct run *run, struct json_t *item, struct json_t *result)
{
	int nr = score_json_check(item, result, print_difference, run);

	if (nr < 0)
		(void)printf(
			"%s: nothing is expected: the key \"expected\" is missing\n", run->name);
	if (nr)
		run->failed++;
	else
		run->passed++;
}

static void answer(void *ctx, const struct decide_items *d, size_t i, size_t line)
{
	struct run *run = ctx;
	const struct steps steps = {print_step, run};
	char name[NAME_TEXT_MAX];
	struct json_t *result = NULL;
	struct arena a;
	struct err e;

	run->name = decide_item_name(d, i, line, name, sizeof name);
	arena_init(&a, QUESTION_BYTES_MAX);
	if (score_json_answer(decide_item(d, i), run->explain ? &steps : NULL, &a, &result, &e)) {
		run->failed++;
		questions_print(decide_item_error(d, i, line, e.text));
	} else if (run->check) {
		check(run, decide_item(d, i), result);
	} else {
		run->passed++;
		questions_print(decide_item_print(d, i, line, result));
	}
	decide_result_free(result);
	arena_fini(&a);
}

static void tell_unreadable(void *ctx, size_t line, const char *why)
{
	struct run *run = ctx;

	run->failed++;
	questions_print(decide_item_error(NULL, 0, line, why));
}

/* The options into *run. Whether to go on; if not, *leave is the exit code. */
static bool read_options(int argc, char **argv, struct run *run, int *leave)
{
	static const struct option options[] = {{"check", no_argument, NULL, 'c'},
		{"explain", no_argument, NULL, 'e'}, {"help", no_argument, NULL, 'h'}, {0}};
	int c;

	*leave = EXIT_USAGE;
	optind = 0; /* main() hands on its own arguments: start over */
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h') {
			(void)fputs(help, stdout);
			*leave = EXIT_DONE;
			return false;
		}
		if (c != 'c' && c != 'e')
			return false;
		run->check = run->check || c == 'c';
		run->explain = run->explain || c == 'e';
	}
	if (argc - optind > 1)
		(void)fprintf(stderr, "numafit score: one FILE at a time, not also \"%s\"\n",
			argv[optind + 1]);
	return argc - optind <= 1;
}

int verb_score(int argc, char **argv)
{
	struct run run = {0};
	const struct question_reader reader = {answer, tell_unreadable, &run};
	int leave;

	if (!read_options(argc, argv, &run, &leave))
		return leave;
	const char *path = optind < argc ? argv[optind] : "-";
	int rc = questions_read(path, &reader);
	if (rc)
		(void)fprintf(stderr, "numafit score: %s: %s\n", path, strerror(-rc));
	if (run.check)
		(void)printf("%u passed, %u failed\n", run.passed, run.failed);
	return rc || run.failed ? EXIT_FAILED : EXIT_DONE;
}
