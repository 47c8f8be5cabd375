#include <command/print.h>

#include <ctype.h>
#include <numafit/version.h>
#include <string.h>

enum { LINE_MOST = 68 }; /* bytes of a line, without what makes them plain */

/* Text with what means something to troff made plain. */
static void put_plain(FILE *to, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		switch (text[i]) {
		case '\\':
			(void)fputs("\\e", to);
			break;
		case '-':
			(void)fputs("\\-", to);
			break;
		case '\'':
			(void)fputs("\\(aq", to);
			break;
		case '`':
			(void)fputs("\\(ga", to);
			break;
		case '^':
			(void)fputs("\\(ha", to);
			break;
		case '~':
			(void)fputs("\\(ti", to);
			break;
		default:
			(void)putc(text[i], to);
		}
}

/* One line of output: one that begins with a dot would be a request. */
static void put_line(FILE *to, const char *text, size_t len)
{
	if (len && *text == '.')
		(void)fputs("\\&", to);
	put_plain(to, text, len);
	(void)putc('\n', to);
}

/* Lines that an editor shows whole: troff fills them anew. */
static void put_filled(FILE *to, const char *text, size_t len)
{
	while (len > LINE_MOST) {
		size_t end = LINE_MOST;

		while (end && text[end] != ' ')
			end--;
		end = end ? end : strcspn(text, " ");
		end = end < len ? end : len;
		put_line(to, text, end);
		end += end < len;
		text += end;
		len -= end;
	}
	if (len)
		put_line(to, text, len);
}

/* A new line for each sentence, as troff wants it. */
static void put_sentences(FILE *to, const char *text, size_t len)
{
	size_t from = 0;

	for (size_t i = 0; i + 2 < len; i++)
		if (strchr(".?!", text[i]) && text[i + 1] == ' ' &&
			isupper((unsigned char)text[i + 2])) {
			put_filled(to, text + from, i + 1 - from);
			from = i + 2;
		}
	put_filled(to, text + from, len - from);
}

void man_text(FILE *to, const char *text)
{
	bool kept = false, any = false;

	for (size_t len; *text; text += len + (text[len] == '\n')) {
		bool blank = *text == ' ';

		len = strcspn(text, "\n");
		if (!len)
			continue;
		if (blank && !kept)
			(void)fprintf(to, "%s.RS 2\n.nf\n", any ? ".PP\n" : "");
		else if (!blank && kept)
			(void)fputs(".fi\n.RE\n.PP\n", to);
		else if (!blank && any)
			(void)fputs(".PP\n", to);
		if (blank)
			put_line(to, text + 1, len - 1);
		else
			put_sentences(to, text, len);
		kept = blank;
		any = true;
	}
	if (kept)
		(void)fputs(".fi\n.RE\n", to);
}

void man_title(FILE *to, const char *name, unsigned section, const char *summary)
{
	(void)fputs(".TH ", to);
	for (const char *c = name; *c; c++)
		(void)(*c == '-' ? fputs("\\-", to) : putc(toupper((unsigned char)*c), to));
	(void)fprintf(to,
		" %u \"" NUMAFIT_DATE "\" \"numafit " NUMAFIT_VERSION
		"\" \"NUMA placement for Kubernetes\"\n",
		section);
	(void)fputs(".SH NAME\n", to);
	put_plain(to, name, strlen(name));
	(void)fputs(" \\- ", to);
	put_plain(to, summary, strlen(summary));
	(void)putc('\n', to);
}

/* ".TP", the tag in bold, its value in italics. */
void man_tag(FILE *to, const char *bold, const char *italic)
{
	(void)fputs(".TP\n\\fB", to);
	put_plain(to, bold, strlen(bold));
	(void)fputs("\\fR", to);
	if (italic) {
		(void)fputs(" \\fI", to);
		put_plain(to, italic, strlen(italic));
		(void)fputs("\\fR", to);
	}
	(void)putc('\n', to);
}

static void man_option(FILE *to, const struct option_row *o)
{
	char names[96];

	if (o->letter)
		(void)snprintf(names, sizeof names, "-%c, --%s", o->letter, o->name);
	else
		(void)snprintf(names, sizeof names, "--%s%s", o->name, o->rest ? o->rest : "");
	man_tag(to, names, o->value);
	man_text(to, o->help);
}

static void man_usage(FILE *to, const struct program *p, const struct command *c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);

	if (!memory)
		return;
	usage_print(memory, p, c, "");
	(void)fclose(memory);
	(void)fputs(".nf\n", to);
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
		put_line(to, line, (size_t)(end - line));
	(void)fputs(".fi\n", to);
	free(text);
}

static void man_exits(FILE *to, const struct command *c)
{
	for (enum exit_code i = EXIT_DONE; i < NR_EXIT_CODES; i++) {
		char number[] = {(char)('0' + i), '\0'};

		if (!command_exit_text(c, i))
			continue;
		man_tag(to, number, NULL);
		man_text(to, command_exit_text(c, i));
	}
}

static void man_examples(FILE *to, const struct command *c)
{
	for (unsigned i = 0; i < EXAMPLES_MAX && c->examples[i].line; i++) {
		man_tag(to, c->examples[i].line, NULL);
		man_text(to, c->examples[i].shows);
	}
}

/* Under a heading of its own, or, of a verb, within the verb's. */
static void man_list(FILE *to, const struct command *c)
{
	struct item item;

	if (!c->list)
		return;
	(void)fputs(c->name ? ".PP\n" : ".SH ", to);
	for (const char *l = c->list_title; *l; l++)
		(void)putc(c->name && l > c->list_title ? *l : toupper((unsigned char)*l), to);
	(void)fputs(c->name ? ":\n" : "\n", to);
	for (unsigned i = 0; c->list(i, &item); i++) {
		man_tag(to, item.name, NULL);
		man_text(to, item.text);
	}
}

static void man_more(FILE *to, const struct command *c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *memory = c->more ? open_memstream(&text, &len) : NULL;

	if (!memory)
		return;
	c->more(memory);
	(void)fclose(memory);
	(void)fputs(".PP\n", to);
	man_text(to, text);
	free(text);
}

static void man_options(FILE *to, const struct command *c)
{
	const struct option_row *o;

	for (unsigned i = 0; (o = command_option(c, i)); i++)
		man_option(to, o);
}

static void man_verb(FILE *to, const struct program *p, const struct command *c)
{
	(void)fprintf(to, ".SS \"%s %s \\- %s\"\n", p->name, c->name, c->summary);
	man_usage(to, p, c);
	(void)fputs(".PP\n", to);
	man_text(to, c->about);
	(void)fputs(".PP\nOptions:\n", to);
	man_options(to, c);
	man_more(to, c);
	man_list(to, c);
	(void)fputs(".PP\nExamples:\n", to);
	man_examples(to, c);
	(void)fputs(".PP\nExit codes:\n", to);
	man_exits(to, c);
}

static void man_single(FILE *to, const struct command *c)
{
	(void)fputs(".SH OPTIONS\n", to);
	man_options(to, c);
	man_more(to, c);
	man_list(to, c);
	(void)fputs(".SH EXIT STATUS\n", to);
	man_exits(to, c);
	(void)fputs(".SH EXAMPLES\n", to);
	man_examples(to, c);
}

static void man_verbs(FILE *to, const struct program *p)
{
	static const struct command none = {0};

	(void)fputs(".SH OPTIONS\n", to);
	man_options(to, &none);
	(void)fputs(".SH VERBS\n", to);
	for (unsigned i = 0; i < p->nr; i++)
		man_verb(to, p, p->commands[i]);
	(void)fputs(".SH EXIT STATUS\nThe same for every verb:\n", to);
	man_tag(to, "0", NULL);
	man_text(to, "done, or the answer is yes");
	man_tag(to, "1", NULL);
	man_text(to, "the answer is no");
	man_tag(to, "2", NULL);
	man_text(to, "wrong usage");
	man_tag(to, "3", NULL);
	man_text(to, "it cannot be asked: no daemon, no journal, a file that cannot be read");
}

void man_sections(FILE *to, const struct section *s)
{
	for (; s && s->title; s++) {
		(void)fprintf(to, ".SH %s\n", s->title);
		man_text(to, s->text);
	}
}

void man_print(FILE *to, const struct program *p)
{
	const struct command *c = p->commands[0];

	man_title(to, p->name, p->man, p->summary);
	(void)fputs(".SH SYNOPSIS\n", to);
	if (c->name)
		(void)fprintf(to, ".nf\n\\fB%s\\fR \\fIVERB\\fR [\\fIOPTIONS\\fR]\n.fi\n", p->name);
	else
		man_usage(to, p, c);
	(void)fputs(".SH DESCRIPTION\n", to);
	man_text(to, c->name ? p->about : c->about);
	if (c->name)
		man_verbs(to, p);
	else
		man_single(to, c);
	man_sections(to, p->sections);
}
