#include <numafit/verbs.h>

#include <codec/decide_json.h>
#include <errno.h>
#include <getopt.h>
#include <host/discover.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

/* Memory for one question; a merge of all combinations of wide masks needs some. */
enum { QUESTION_BYTES_MAX = 256 << 20, NAME_TEXT_MAX = 128, READ_BYTES = 64 << 10 };

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

static void print_line(char *line)
{
	(void)puts(line);
	(void)fflush(stdout); /* whoever asks line by line waits for this one */
	free(line);
}

static int load_machine(const char *name, struct topo *out, struct err *e)
{
	return machine_load(name, out, NULL, NULL, e);
}

static void answer(struct run *run, const struct decide_items *d, size_t i, size_t line)
{
	char name[NAME_TEXT_MAX];
	struct json_t *result = NULL;
	struct arena a;
	struct err e;

	run->name = decide_item_name(d, i, line, name, sizeof name);
	arena_init(&a, QUESTION_BYTES_MAX);
	if (decide_item_answer(d, i, load_machine, &a, &result, &e) < 0) {
		run->failed++;
		print_line(decide_item_error(d, i, line, e.text));
	} else if (run->check) {
		check(run, d, i, result);
	} else {
		run->passed++;
		print_line(decide_item_print(d, i, line, result));
	}
	decide_result_free(result);
	arena_fini(&a);
}

static void answer_text(struct run *run, const char *text, size_t len, size_t line)
{
	struct decide_items *d = NULL;
	struct err e;

	if (decide_items_parse(text, len, &d, &e)) {
		run->failed++;
		print_line(decide_item_error(NULL, 0, line, e.text));
		return;
	}
	for (size_t i = 0; i < decide_items_count(d); i++)
		answer(run, d, i, line);
	decide_items_free(d);
}

static bool is_blank(const char *s)
{
	return s[strspn(s, " \t\r\n")] == '\0';
}

static void answer_lines(struct run *run, FILE *in, size_t line)
{
	auto_free char *text = NULL;
	size_t cap = 0;
	ssize_t len;

	for (; (len = getline(&text, &cap, in)) >= 0; line++)
		if (!is_blank(text))
			answer_text(run, text, (size_t)len, line);
}

static void answer_array(struct run *run, FILE *in, size_t line)
{
	auto_free char *text = NULL;
	size_t len = 0, got;

	do {
		text = xrealloc(text, len + READ_BYTES, 1);
		got = fread(text + len, 1, READ_BYTES, in);
		len += got;
	} while (got);
	answer_text(run, text, len, line);
}

/* A text that starts with '[' is one array, any other has one question on each line. */
static int answer_all(struct run *run, FILE *in)
{
	size_t line = 1;
	int c;

	while ((c = getc(in)) == ' ' || c == '\t' || c == '\r' || c == '\n')
		line += c == '\n';
	(void)ungetc(c, in);
	if (c == '[')
		answer_array(run, in, line);
	else
		answer_lines(run, in, line);
	return ferror(in) ? -errno : 0;
}

static int answer_file(struct run *run, const char *path)
{
	bool is_stdin = text_equal(path, "-");
	FILE *in = is_stdin ? stdin : fopen(path, "re");
	int rc = in ? answer_all(run, in) : -errno;

	if (rc)
		(void)fprintf(stderr, "numafit decide: %s: %s\n", path, strerror(-rc));
	if (in && !is_stdin)
		(void)fclose(in);
	return rc;
}

int verb_decide(int argc, char **argv)
{
	static const struct option options[] = {
		{"check", no_argument, NULL, 'c'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct run run = {0};
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
	int rc = answer_file(&run, optind < argc ? argv[optind] : "-");
	if (run.check)
		(void)printf("%u passed, %u failed\n", run.passed, run.failed);
	return rc || run.failed ? EXIT_FAILED : EXIT_DONE;
}
