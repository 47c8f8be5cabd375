#include <command/command.h>
#include <command/print.h>

#include <command/safe_output.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <numafit/nearest.h>
#include <numafit/text.h>
#include <numafit/version.h>
#include <stdarg.h>
#include <string.h>

enum { OPTIONS_MAX = 64, FIRST_LONG = 256, VERBS_TEXT_MAX = 256 };
enum builtin { BUILTIN_HELP, BUILTIN_VERSION, BUILTIN_MAN, BUILTIN_COMPLETION, NR_BUILTINS };

/* What every command has; the last two only one that is a program by itself, or no verb. */
static const struct option_row builtins[NR_BUILTINS] = {
	[BUILTIN_HELP] = {.letter = 'h', .name = "help", .help = "print this text"},
	[BUILTIN_VERSION] = {.letter = 'V', .name = "version", .help = "print the version"},
	[BUILTIN_MAN] = {.name = "man", .help = "print the manual page"},
	[BUILTIN_COMPLETION] = {.name = "completion",
		.value = "bash|zsh|fish",
		.help = "print what that shell needs to complete the command line",
		.completes = COMPLETE_WORDS},
};

const struct option_row *command_option(const struct command *c, unsigned i)
{
	unsigned nr = 0;

	while (c->options && c->options[nr].name)
		nr++;
	if (i < nr)
		return &c->options[i];
	i -= nr;
	return i < (c->name ? BUILTIN_MAN : NR_BUILTINS) ? &builtins[i] : NULL;
}

/* Readers */

int option_flag(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o, (void)value, (void)e;
	*(bool *)member = true;
	return 0;
}

int option_text(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o, (void)e;
	*(const char **)member = value;
	return 0;
}

int option_word(const struct option_row *o, void *member, char *value, struct err *e)
{
	auto_free char *words = xstrdup(o->value);
	struct nearest near;
	unsigned nr = 0;
	char *rest;

	nearest_begin(&near, value);
	for (char *w = strtok_r(words, "|", &rest); w; w = strtok_r(NULL, "|", &rest), nr++) {
		if (text_equal(w, value)) {
			*(unsigned *)member = nr;
			return 0;
		}
		nearest_try(&near, w, w);
	}
	return near.best ? err_set(e, EINVAL, "\"%.64s\" is not one of %s: did you mean %s?", value,
				   o->value, near.best)
			 : err_set(e, EINVAL, "\"%.64s\" is not one of %s", value, o->value);
}

int option_texts(const struct option_row *o, void *member, char *value, struct err *e)
{
	(void)o, (void)e;
	*vec_push((struct texts *)member) = value;
	return 0;
}

int option_assignment(const struct option_row *o, void *member, char *value, struct err *e)
{
	char *equals = strchr(value, '=');

	if (!equals || equals == value)
		return err_set(e, EINVAL, "\"%.64s\": %s is expected", value, o->value);
	*equals = '\0';
	*vec_push((struct assignments *)member) = (struct key_value){value, equals + 1};
	return 0;
}

/* Errors */

static void print_call(const struct call *c, FILE *to)
{
	(void)fputs(c->program->name, to);
	if (c->command && c->command->name)
		(void)fprintf(to, " %s", c->command->name);
}

int call_fail(const struct call *c, enum exit_code code, const struct err *e)
{
	print_call(c, stderr);
	(void)fprintf(stderr, ": %s\n", e->text);
	return code;
}

int call_mistakes(const struct call *c, const struct mistakes *all, const char *file)
{
	char line[PATH_MAX + sizeof all->found.at->text];

	for (size_t i = 0; mistakes_print(all, i, file, line, sizeof line); i++) {
		print_call(c, stderr);
		(void)fprintf(stderr, ": %s\n", line);
	}
	return all->found.nr ? EXIT_USAGE : EXIT_DONE;
}

int call_misused(const struct call *c, const char *fmt, ...)
{
	va_list ap;

	print_call(c, stderr);
	(void)fputs(": ", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputs(" (see ", stderr);
	print_call(c, stderr);
	(void)fputs(" --help)\n", stderr);
	return EXIT_USAGE;
}

void call_help(const struct call *c, FILE *to)
{
	help_print(to, c->program, c->command);
}

/* "chek" may mean "check-config". */
static void nearest_part(struct nearest *near, const char *name)
{
	auto_free char *part = xstrdup(name);

	nearest_try(near, name, name);
	for (char *dash; (dash = strrchr(part, '-'));) {
		*dash = '\0';
		nearest_try(near, part, name);
	}
}

static int unknown_option(const struct call *c, const char *word)
{
	const struct option_row *o;
	const char *dashes = word + strspn(word, "-");
	auto_free char *name = xcalloc(strcspn(dashes, "=") + 1, 1);
	struct nearest near;

	memcpy(name, dashes, strcspn(dashes, "="));
	nearest_begin(&near, name);
	for (unsigned i = 0; (o = command_option(c->command, i)); i++)
		nearest_part(&near, o->name);
	if (near.best)
		return call_misused(c, "unknown option %s, did you mean --%s?", word, near.best);
	return call_misused(c, "unknown option %s", word);
}

/* Reading */

/* The rows of a command as getopt_long() wants them. */
struct rows {
	const struct option_row *row[OPTIONS_MAX];
	struct option longs[OPTIONS_MAX + 1];
	char letters[2 * OPTIONS_MAX + 2];
	unsigned nr;
};

static void rows_of_command(struct rows *r, const struct call *c)
{
	struct option *next = r->longs;
	const struct option_row *o;
	struct text letters;

	text_init(&letters, r->letters, sizeof r->letters);
	text_add(&letters, ":"); /* we say ourselves what is wrong */
	for (; r->nr < OPTIONS_MAX && (o = command_option(c->command, r->nr)); r->nr++) {
		int takes = o->value ? required_argument : no_argument;

		r->row[r->nr] = o;
		if (!o->rest) /* getopt knows whole names only: take_of_family() */
			*next++ = (struct option){o->name, takes, NULL, FIRST_LONG + (int)r->nr};
		if (o->letter)
			text_add(&letters, "%c%s", o->letter, o->value ? ":" : "");
	}
}

static const struct option_row *row_of(const struct rows *r, int c)
{
	if (c >= FIRST_LONG)
		return r->row[c - FIRST_LONG];
	for (unsigned i = 0; i < r->nr; i++)
		if (c && r->row[i]->letter == c)
			return r->row[i];
	return NULL;
}

/* What the program does by itself: done, or an exit code. -1: it is none of these. */
static int run_builtin(const struct call *c, const struct option_row *o, char *value)
{
	unsigned shell;
	struct err e;

	if (o < builtins || o >= builtins + NR_BUILTINS)
		return -1;
	if (o == &builtins[BUILTIN_HELP])
		call_help(c, stdout);
	else if (o == &builtins[BUILTIN_VERSION])
		(void)printf("%s " NUMAFIT_VERSION "\n", c->program->name);
	else if (o == &builtins[BUILTIN_MAN])
		man_print(stdout, c->program);
	else if (option_word(o, &shell, value, &e))
		return call_misused(c, "--completion: %s", e.text);
	else
		completion_print(stdout, c->program, (enum shell)shell);
	return EXIT_DONE;
}

/* --hugepages-1Gi 2Gi or --hugepages-1Gi=2Gi, which getopt cannot know. -1: go on. */
static int take_of_family(const struct call *c, const struct rows *r, void *into, char *word)
{
	for (unsigned i = 0; i < r->nr; i++) {
		const struct option_row *o = r->row[i];
		size_t len = strlen(o->name);
		struct err e = {0};

		if (!o->rest || strncmp(word, "--", 2) != 0 || strncmp(word + 2, o->name, len) != 0)
			continue;
		char *value = strchr(word, '=');
		size_t shown = value ? (size_t)(value - word) : strlen(word);
		if (value)
			value++;
		else if (optind < c->argc)
			value = c->argv[optind++];
		else
			return call_misused(c, "%s: %s is expected", word, o->value);
		auto_free char *both = xcalloc(strlen(word) + strlen(value) + 2, 1);
		(void)sprintf(both, "%.*s=%s", (int)(shown - 2 - len), word + 2 + len, value);
		if (!o->read(o, (char *)into + o->at, both, &e))
			return -1;
		return call_misused(c, "%.*s: %s", (int)shown, word, e.text);
	}
	return unknown_option(c, word);
}

/* What getopt_long() made of one word. -1: go on. */
static int take_option(const struct call *c, const struct rows *r, void *into, int got, char *word)
{
	const struct option_row *o = row_of(r, got == ':' || got == '?' ? optopt : got);
	struct err e = {0};
	char letter[] = {'-', (char)optopt, '\0'};

	if (got == ':' && o)
		return call_misused(c, "%s: %s is expected", word, o->value);
	if (got == '?' && o)
		return call_misused(c, "--%s takes no value", o->name);
	if (got == '?' && optopt)
		return unknown_option(c, letter);
	if (got == '?')
		return take_of_family(c, r, into, word);
	if (!o) /* an option that getopt found is one of the rows */
		return EXIT_USAGE;
	/* -n=shop is -n shop, as for kubectl */
	char *value = optarg && optarg == word + 2 && *optarg == '=' && word[1] != '-' ? optarg + 1
										       : optarg;
	int code = run_builtin(c, o, value);
	if (code >= 0)
		return code;
	if (!o->read(o, (char *)into + o->at, value, &e))
		return -1;
	return call_misused(c, "--%s: %s", o->name, e.text);
}

static int take_operands(const struct call *c, void *into)
{
	const struct operand *op = &c->command->operand;
	const struct option_row as = {.value = op->value};
	unsigned nr = (unsigned)(c->argc - optind);
	struct err e = {0};

	if (nr < op->least)
		return call_misused(c, "%s is expected", op->value);
	if (nr > op->most)
		return call_misused(c,
			op->most ? "\"%s\" is one argument too many"
				 : "\"%s\": only options are expected",
			c->argv[optind + (int)op->most]);
	for (unsigned i = 0; i < nr; i++)
		if (op->read(&as, (char *)into + op->at, c->argv[optind + (int)i], &e))
			return call_misused(c, "%s", e.text);
	return -1;
}

int call_read(const struct call *c, void *into)
{
	struct rows r = {0};
	int got, code = -1;

	rows_of_command(&r, c);
	opterr = 0;
	optind = 0; /* glibc starts over */
	while (code < 0) {
		got = getopt_long(c->argc, c->argv, r.letters, r.longs, NULL);
		if (got == -1)
			return take_operands(c, into);
		code = take_option(c, &r, into, got, c->argv[optind - 1]);
	}
	return code;
}

/* Verbs */

bool command_is_of(const struct command *c, const char *group)
{
	size_t len = strlen(group);

	return c->name && strncmp(c->name, group, len) == 0 && c->name[len] == ' ';
}

/* The command that argv begins with, its name's words taken; NULL: *group is how many begin with
 * that word. */
static const struct command *command_of(
	const struct program *p, int *argc, char ***argv, unsigned *group)
{
	*group = 0;
	for (unsigned i = 0; i < p->nr; i++) {
		const struct command *c = p->commands[i];

		if (text_equal(c->name, (*argv)[0]))
			return c;
		if (!command_is_of(c, (*argv)[0]))
			continue;
		*group += 1;
		if (*argc < 2 || !text_equal(c->name + strlen((*argv)[0]) + 1, (*argv)[1]))
			continue;
		*argc -= 1;
		*argv += 1;
		return c;
	}
	return NULL;
}

static void group_help(const struct program *p, const char *group)
{
	const char *before = "";

	for (unsigned i = 0; i < p->nr; i++)
		if (command_is_of(p->commands[i], group)) {
			(void)fputs(before, stdout);
			help_print(stdout, p, p->commands[i]);
			before = "\n";
		}
}

/* "encode or check": the verbs of a group. */
static const char *verbs_of_group(const struct program *p, const char *group, char *buf, size_t cap)
{
	unsigned nr = 0, left = 0;
	struct text t;

	text_init(&t, buf, cap);
	for (unsigned i = 0; i < p->nr; i++)
		left += command_is_of(p->commands[i], group);
	for (unsigned i = 0; i < p->nr; i++)
		if (command_is_of(p->commands[i], group))
			text_add(&t, "%s%s",
				!nr++        ? ""
				: nr == left ? " or "
					     : ", ",
				p->commands[i]->name + strlen(group) + 1);
	return buf;
}

static int unknown_verb(const struct program *p, const char *group, const char *word)
{
	const struct call c = {.program = p};
	struct nearest near;
	char place[64] = "", verbs[VERBS_TEXT_MAX];

	nearest_begin(&near, word);
	for (unsigned i = 0; i < p->nr; i++) {
		const char *name = p->commands[i]->name;

		if (!group)
			nearest_try(&near, name, name);
		else if (command_is_of(p->commands[i], group))
			nearest_try(&near, name + strlen(group) + 1, name + strlen(group) + 1);
	}
	if (group)
		(void)snprintf(place, sizeof place, "%s: ", group);
	if (near.best)
		return call_misused(&c, "%sthere is no verb \"%s\", did you mean \"%s\"?", place,
			word, near.best);
	if (group)
		return call_misused(&c, "%sthere is no verb \"%s\": %s is expected", place, word,
			verbs_of_group(p, group, verbs, sizeof verbs));
	int code = call_misused(&c, "there is no verb \"%s\"", word);
	verbs_print(stderr, p);
	return code;
}

static int run_verb(const struct program *p, int argc, char **argv)
{
	unsigned group;
	const struct command *command = command_of(p, &argc, &argv, &group);
	const struct call whole = {.program = p};
	char verbs[VERBS_TEXT_MAX];

	if (command) {
		const struct call c = {p, command, argc, argv};

		return command->run(&c);
	}
	if (!group)
		return unknown_verb(p, NULL, argv[0]);
	if (argc < 2)
		return call_misused(&whole, "%s: %s is expected", argv[0],
			verbs_of_group(p, argv[0], verbs, sizeof verbs));
	if (text_equal(argv[1], "--help") || text_equal(argv[1], "-h")) {
		group_help(p, argv[0]);
		return EXIT_DONE;
	}
	return unknown_verb(p, argv[0], argv[1]);
}

static int run_help(const struct call *c)
{
	static char option[] = "--help";
	struct texts words = {0};
	int code = call_read(c, &words);

	if (code < 0 && !words.nr)
		verbs_print(stdout, c->program);
	if (code < 0 && !words.nr)
		code = EXIT_DONE;
	if (code < 0) {
		char *argv[] = {c->argv[1], words.nr > 1 ? c->argv[2] : option, option, NULL};

		code = run_verb(c->program, words.nr > 1 ? 3 : 2, argv);
	}
	vec_fini(&words);
	return code;
}

static int run_version(const struct call *c)
{
	int code = call_read(c, NULL);

	if (code >= 0)
		return code;
	(void)printf("%s " NUMAFIT_VERSION "\n", c->program->name);
	return EXIT_DONE;
}

const struct command command_help = {
	.name = "help",
	.summary = "explain a verb, or list all of them",
	.about = "What a verb does, its options, examples and exit codes; without VERB all verbs.",
	.operand = {"VERB", 0, 2, option_texts, .completes = COMPLETE_VERB},
	.examples = {{"numafit help", "all verbs"}, {"numafit help whatif", "one of them"}},
	.run = run_help,
};
const struct command command_version = {
	.name = "version",
	.summary = "print the version",
	.about = "Program and version, on one line.",
	.examples = {{"numafit version", "the version of this program"},
		{"kubectl -n numafit-system exec ds/numafitd -- numafit version",
			"that of what runs in the cluster"}},
	.run = run_version,
};

static int run_program(const struct program *p, int argc, char **argv)
{
	static const struct command no_verb = {0};
	const struct call whole = {p, p->commands[0]->name ? &no_verb : p->commands[0], argc, argv};

	if (!p->commands[0]->name)
		return p->commands[0]->run(&whole);
	if (argc < 2) {
		verbs_print(stderr, p);
		return EXIT_USAGE;
	}
	if (argv[1][0] != '-')
		return run_verb(p, argc - 1, argv + 1);
	int code = call_read(&whole, NULL);
	return code >= 0 ? code : call_misused(&whole, "a verb is expected");
}

int program_run(const struct program *p, int argc, char **argv)
{
	safe_output_begin();
	int code = run_program(p, argc, argv);
	int rc = safe_output_end();

	if (rc) {
		(void)fprintf(stderr, "%s: standard output: %s\n", p->name, strerror(-rc));
		code = EXIT_CANNOT;
	}
	return code;
}
