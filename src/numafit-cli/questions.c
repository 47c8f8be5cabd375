#include <numafit-cli/questions.h>

#include <errno.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <string.h>

enum { READ_BYTES = 64 << 10 };

void questions_print(char *line)
{
	(void)puts(line);
	(void)fflush(stdout); /* whoever asks line by line waits for this one */
	free(line);
}

static void read_text(const struct question_reader *r, const char *text, size_t len, size_t line)
{
	struct decide_items *d = NULL;
	struct err e;

	if (decide_items_parse(text, len, &d, &e)) {
		r->unreadable(r->ctx, line, e.text);
		return;
	}
	for (size_t i = 0; i < decide_items_count(d); i++)
		r->question(r->ctx, d, i, line);
	decide_items_free(d);
}

static bool is_blank(const char *s)
{
	return s[strspn(s, " \t\r\n")] == '\0';
}

static void read_lines(const struct question_reader *r, FILE *in, size_t line)
{
	auto_free char *text = NULL;
	size_t cap = 0;
	ssize_t len;

	for (; (len = getline(&text, &cap, in)) >= 0; line++)
		if (!is_blank(text))
			read_text(r, text, (size_t)len, line);
}

static void read_array(const struct question_reader *r, FILE *in, size_t line)
{
	auto_free char *text = NULL;
	size_t len = 0, got;

	do {
		text = xrealloc(text, len + READ_BYTES, 1);
		got = fread(text + len, 1, READ_BYTES, in);
		len += got;
	} while (got);
	read_text(r, text, len, line);
}

/* A text that starts with '[' is one array, any other has one question on each line. */
static int read_all(const struct question_reader *r, FILE *in)
{
	size_t line = 1;
	int c;

	while ((c = getc(in)) == ' ' || c == '\t' || c == '\r' || c == '\n')
		line += c == '\n';
	(void)ungetc(c, in);
	if (c == '[')
		read_array(r, in, line);
	else
		read_lines(r, in, line);
	return ferror(in) ? -errno : 0;
}

int questions_read(const char *path, const struct question_reader *r)
{
	FILE *in;
	int rc;

	if (text_equal(path, "-"))
		return read_all(r, stdin);
	in = fopen(path, "re");
	if (!in)
		return -errno;
	rc = read_all(r, in);
	(void)fclose(in);
	return rc;
}
