#include <command/print.h>

#include <numafit/text.h>
#include <string.h>

enum { WIDTH = 80, TEXT_AT = 26, LINE_MAX_BYTES = 512 };

const char *command_exit_text(const struct command *c, enum exit_code code)
{
	static const char *const always[NR_EXIT_CODES] = {
		[EXIT_DONE] = "done",
		[EXIT_USAGE] = "wrong usage",
		[EXIT_CANNOT] = "it cannot be done: the line on the standard error says why",
	};

	return c->exits[code] ? c->exits[code] : always[code];
}

/* One paragraph's words, in lines that begin at `indent`; the first one goes on at column `at`. */
static void help_words(FILE *to, const char *text, size_t len, int indent, int at)
{
	const char *end = text + len;
	bool first = true;

	while (text < end) {
		size_t word = strcspn(text, " \n");

		word = word > (size_t)(end - text) ? (size_t)(end - text) : word;
		if (!first && at + 1 + (int)word > WIDTH) {
			(void)fprintf(to, "\n%*s", indent, "");
			at = indent;
			first = true;
		}
		(void)fprintf(to, "%s%.*s", first ? "" : " ", (int)word, text);
		at += (int)word + !first;
		first = false;
		text += word;
		text += text < end;
	}
	(void)putc('\n', to);
}

/* Paragraphs: lines that begin with a blank stay as they are, others are broken anew. */
static void help_text(FILE *to, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		if (*text == ' ' || !len)
			(void)fprintf(to, "%.*s\n", (int)len, text);
		else
			help_words(to, text, len, 0, 0);
		text += len + (text[len] == '\n');
	}
}

static void add_option_usage(char *buf, size_t cap, const struct option_row *o)
{
	struct text t;

	text_init(&t, buf, cap);
	if (o->letter)
		text_add(&t, "[-%c", o->letter);
	else
		text_add(&t, "[--%s", o->name);
	if (o->rest)
		text_add(&t, "%s", o->rest);
	if (o->value)
		text_add(&t, " %s", o->value);
	text_add(&t, "]%s", o->repeats ? "..." : "");
}

struct line {
	FILE *to;
	int at, indent;
};

static void put_in_line(struct line *l, const char *item)
{
	int len = (int)strlen(item);

	if (l->at + 1 + len > WIDTH && l->at > l->indent) {
		(void)fprintf(l->to, "\n%*s", l->indent, "");
		l->at = l->indent;
	}
	(void)fprintf(l->to, " %s", item);
	l->at += 1 + len;
}

void usage_print(FILE *to, const struct program *p, const struct command *c, const char *lead)
{
	const struct operand *op = &c->operand;
	const struct option_row *o;
	char item[LINE_MAX_BYTES];
	struct line l = {.to = to};

	for (unsigned i = 0; i < sizeof c->forms / sizeof *c->forms && c->forms[i]; i++)
		(void)fprintf(to, "%s%s %s\n", i ? "       " : lead, p->name, c->forms[i]);
	if (c->forms[0])
		return;
	l.indent =
		fprintf(to, "%s%s%s%s", lead, p->name, c->name ? " " : "", c->name ? c->name : "");
	l.at = l.indent;
	for (unsigned i = 0; c->options && (o = &c->options[i])->name; i++) {
		add_option_usage(item, sizeof item, o);
		put_in_line(&l, item);
	}
	if (op->value) {
		(void)snprintf(item, sizeof item, "%s%s%s%s", op->least ? "" : "[", op->value,
			op->least ? "" : "]", op->most > 1 ? "..." : "");
		put_in_line(&l, item);
	}
	(void)putc('\n', to);
}

static void print_option(FILE *to, const struct option_row *o)
{
	char letter[] = {'-', o->letter, ',', '\0'};
	int at = fprintf(to, "  %3s --%s%s%s%s", o->letter ? letter : "", o->name,
		o->rest ? o->rest : "", o->value ? " " : "", o->value ? o->value : "");

	if (at + 2 > TEXT_AT) {
		(void)putc('\n', to);
		at = 0;
	}
	(void)fprintf(to, "%*s", TEXT_AT - at, "");
	help_words(to, o->help, strlen(o->help), TEXT_AT, TEXT_AT);
}

static void print_list(FILE *to, const struct command *c)
{
	struct item item;

	(void)fprintf(to, "\n%s:\n", c->list_title);
	for (unsigned i = 0; c->list(i, &item); i++) {
		(void)fprintf(to, "  %s\n      ", item.name);
		help_words(to, item.text, strlen(item.text), 6, 6);
	}
}

static void print_exits(FILE *to, const struct command *c)
{
	(void)fputs("\nexit codes:\n", to);
	for (enum exit_code i = EXIT_DONE; i < NR_EXIT_CODES; i++) {
		const char *text = command_exit_text(c, i);

		if (!text)
			continue;
		(void)fprintf(to, "  %d  ", i);
		help_words(to, text, strlen(text), 5, 5);
	}
}

void help_print(FILE *to, const struct program *p, const struct command *c)
{
	const struct option_row *o;

	if (!c->run) { /* the program's own, beside its verbs */
		verbs_print(to, p);
		return;
	}
	usage_print(to, p, c, "usage: ");
	(void)putc('\n', to);
	help_text(to, c->about);
	(void)fputs("\noptions:\n", to);
	for (unsigned i = 0; (o = command_option(c, i)); i++)
		print_option(to, o);
	if (c->list)
		print_list(to, c);
	if (c->more)
		c->more(to);
	(void)fputs("\nexamples:\n", to);
	for (unsigned i = 0; i < EXAMPLES_MAX && c->examples[i].line; i++) {
		(void)fprintf(to, "  %s\n      ", c->examples[i].line);
		help_words(to, c->examples[i].shows, strlen(c->examples[i].shows), 6, 6);
	}
	print_exits(to, c);
}

void verbs_print(FILE *to, const struct program *p)
{
	static const struct command none = {0};
	const struct option_row *o;

	(void)fprintf(to, "usage: %s VERB [OPTIONS]\n\n", p->name);
	help_text(to, p->about);
	(void)fputs("\nverbs:\n", to);
	for (unsigned i = 0; i < p->nr; i++)
		(void)fprintf(to, "  %-13s %s\n", p->commands[i]->name, p->commands[i]->summary);
	(void)fputs("\noptions:\n", to);
	for (unsigned i = 0; (o = command_option(&none, i)); i++)
		print_option(to, o);
	(void)fprintf(to, "\n\"%s VERB --help\" explains one of them, with examples.\n", p->name);
}
