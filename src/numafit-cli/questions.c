#include <numafit-cli/questions.h>

#include <errno.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* QUESTION_BYTES_MAX: memory for one question. */
enum { READ_BYTES = 64 << 10, QUESTION_BYTES_MAX = 256 << 20, NAME_TEXT_MAX = 128 };

struct questions {
	const struct question_verb *verb;
	struct question_options options;
	unsigned passed, failed;
	const char *name; /* of the question at hand */
};

static void print_answer_difference(
	void *ctx, const char *path, const char *wanted, const char *got)
{
	const struct questions *q = ctx;

	(void)printf("%s: %s: wanted %s, got %s\n", q->name, *path ? path : "result", wanted, got);
}

static void print_step(void *ctx, const char *text)
{
	const struct questions *q = ctx;

	(void)printf("%s: %s\n", q->name, text);
}

static void print_json_line(char *line)
{
	(void)puts(line);
	(void)fflush(stdout); /* a program that asks line by line waits for this one */
	free(line);
}

static void answer_question(
	struct questions *q, const struct decide_items *d, size_t i, size_t line)
{
	const struct steps steps = {print_step, q};
	char name[NAME_TEXT_MAX];
	struct json_t *result = NULL;
	struct arena a;
	struct err e;
	int nr = 0; /* of differences */

	q->name = decide_item_name(d, i, line, name, sizeof name);
	arena_init(&a, QUESTION_BYTES_MAX);
	if (q->verb->answer(d, i, q->options.explain ? &steps : NULL, &a, &result, &e)) {
		nr = 1;
		print_json_line(decide_item_error(d, i, line, e.text));
	} else if (q->options.check) {
		nr = q->verb->check(d, i, result, print_answer_difference, q);
		if (nr < 0)
			(void)printf("%s: nothing is expected: the key \"expected\" is missing\n",
				q->name);
	} else {
		print_json_line(decide_item_print(d, i, line, result));
	}
	*(nr ? &q->failed : &q->passed) += 1;
	decide_result_free(result);
	arena_fini(&a);
}

static void answer_text(struct questions *q, const char *text, size_t len, size_t line)
{
	struct decide_items *d = NULL;
	struct err e;

	if (decide_items_parse(text, len, &d, &e)) {
		q->failed++;
		print_json_line(decide_item_error(NULL, 0, line, e.text));
		return;
	}
	for (size_t i = 0; i < decide_items_count(d); i++)
		answer_question(q, d, i, line);
	decide_items_free(d);
}

/* A text that starts with '[' is one array, any other has one question on each line. */
static int answer_file(struct questions *q, FILE *in)
{
	auto_free char *text = NULL;
	size_t line = 1, cap = 0, all = 0;
	ssize_t len;
	int c;

	while ((c = getc(in)) == ' ' || c == '\t' || c == '\r' || c == '\n')
		line += c == '\n';
	(void)ungetc(c, in);
	if (c == '[') {
		do {
			text = xrealloc(text, all + READ_BYTES, 1);
			cap = fread(text + all, 1, READ_BYTES, in);
			all += cap;
		} while (cap);
		answer_text(q, text, all, line);
	} else {
		for (; (len = getline(&text, &cap, in)) >= 0; line++)
			if (text[strspn(text, " \t\r\n")])
				answer_text(q, text, (size_t)len, line);
	}
	return ferror(in) ? -errno : 0;
}

int questions_run(const struct question_verb *verb, const struct call *c)
{
	struct questions q = {.verb = verb};
	int code = call_read(c, &q.options), rc;

	if (code >= 0)
		return code;
	if (!q.options.file && isatty(STDIN_FILENO)) {
		call_help(c, stderr);
		return call_misused(c, "a FILE, or questions on the standard input, are expected");
	}
	const char *path = q.options.file ? q.options.file : "-";
	FILE *in = text_equal(path, "-") ? stdin : fopen(path, "re");
	rc = in ? answer_file(&q, in) : -errno;
	if (in && in != stdin)
		(void)fclose(in);
	if (q.options.check)
		(void)printf("%u passed, %u failed\n", q.passed, q.failed);
	if (!rc)
		return q.failed ? EXIT_NO : EXIT_DONE;
	struct err e;
	(void)err_set(&e, -rc, "%s: %s", path, strerror(-rc));
	return call_fail(c, EXIT_CANNOT, &e);
}
