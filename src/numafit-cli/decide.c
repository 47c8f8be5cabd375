#include <numafit-cli/verbs.h>

#include <getopt.h>
#include <host/discover.h>
#include <numafit/mem.h>
#include <numafit-cli/questions.h>
#include <stdio.h>
#include <string.h>

/* Memory for one question. */
enum { QUESTION_BYTES_MAX = 256 << 20, NAME_TEXT_MAX = 128 };

static const char help[] =
	"usage: numafit decide [--check] [FILE|-]\n"
	"\n"
	"Answer placement questions as the kubelet's resource managers would: one JSON object on "
	"each\n"
	"line, or one JSON array of them; one JSON line out for each, in the same order.\n"
	"\n"
	"  --check   compare with the \"expected\" of each question: print the differences and the "
	"count\n"
	"  --help    this text\n"
	"\n"
	"A question has the keys of one of these forms:\n"
	"  a merge of NUMA hints, by what the hints of each resource follow from:\n"
	"    {\"nodes\": [0, 1], \"policy\": \"restricted\", \"options\": {}, "
	"\"distances\": {\"0\": [10, 20], \"1\": [20, 10]},\n"
	"     \"families\": [{\"kind\": \"cpu\", \"cap\": {\"0\": 8, \"1\": 8}, "
	"\"avail\": {\"0\": 6, \"1\": 8}, \"request\": 8},\n"
	"                  {\"kind\": \"device\", \"all\": {\"gpu0\": [0], \"gpu1\": [1]}, "
	"\"avail\": [\"gpu1\"], \"request\": 1}]}\n"
	"  CPUs: cpus_fields, cpus, mode and more; memory: nodes, node_reservation, steps;\n"
	"  a whole node: machine, settings, steps. src/codec/*_json.h has every key.\n"
	"\n"
	"Exit code: 0; 1 when a question could not be answered or an answer was not the expected "
	"one.\n";

struct run {
	bool check;
	unsigned passed, failed;
	const char *name; /* of the question at hand */
};

static void print_difference(void *ctx, const char *path, const char *wanted, const char *got)
{
	const struct run *run = ctx;

	(void)printf(
		"%s: %s: wanted %s, got %s\n", run->name, *path ? path : "result", wanted, got);
}

static void check(struct run *run, const struct decide_items *d, size_t i, struct json_t *result)
{
	int nr = decide_item_check(d, i, result, print_difference, run);

	if (nr < 0)
		(void)printf(
			"%s: nothing is expected: the key \"expected\" is missing\n", run->name);
	if (nr)
		run->failed++;
	else
		run->passed++;
}

static int load_machine(const char *name, struct topo *out, struct err *e)
{
	return machine_load(name, out, NULL, NULL, e);
}

static void answer(void *ctx, const struct decide_items *d, size_t i, size_t line)
{
	struct run *run = ctx;
	char name[NAME_TEXT_MAX];
	struct json_t *result = NULL;
	struct arena a;
	struct err e;

	run->name = decide_item_name(d, i, line, name, sizeof name);
	arena_init(&a, QUESTION_BYTES_MAX);
	if (decide_item_answer(d, i, load_machine, &a, &result, &e) < 0) {
		run->failed++;
		questions_print(decide_item_error(d, i, line, e.text));
	} else if (run->check) {
		check(run, d, i, result);
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

int verb_decide(int argc, char **argv)
{
	static const struct option options[] = {
		{"check", no_argument, NULL, 'c'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct run run = {0};
	const struct question_reader reader = {answer, tell_unreadable, &run};
	int c;

	optind = 0; /* main() hands on its own arguments: start over */
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h') {
			(void)fputs(help, stdout);
			return EXIT_DONE;
		}
		if (c != 'c')
			return EXIT_USAGE;
		run.check = true;
	}
	if (argc - optind > 1) {
		(void)fprintf(stderr, "numafit decide: one FILE at a time, not also \"%s\"\n",
			argv[optind + 1]);
		return EXIT_USAGE;
	}
	const char *path = optind < argc ? argv[optind] : "-";
	int rc = questions_read(path, &reader);
	if (rc)
		(void)fprintf(stderr, "numafit decide: %s: %s\n", path, strerror(-rc));
	if (run.check)
		(void)printf("%u passed, %u failed\n", run.passed, run.failed);
	return rc || run.failed ? EXIT_FAILED : EXIT_DONE;
}
