/* The command line of a made-up program: what is read, and what an error says. */
#include <command/command.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <numafit/text.h>
#include <stdlib.h>
#include <unistd.h>

struct got {
	bool flag;
	const char *file, *operand[3];
	unsigned word, nr_operands;
	struct texts sets;
	struct assignments pages;
};
static struct got got;

static int read_operand(const struct option_row *o, void *member, char *value, struct err *e)
{
	struct got *g = member;

	(void)o, (void)e;
	g->operand[g->nr_operands++] = value;
	return 0;
}

static int run_made_up(const struct call *c)
{
	int code = call_read(c, &got);

	return code >= 0 ? code : EXIT_NO;
}

#define AT(member) offsetof(struct got, member)
static const struct option_row rows[] = {
	{.letter = 'f', .name = "flag", .help = "f", .read = option_flag, .at = AT(flag)},
	{.letter = 'c',
		.name = "config-file",
		.value = "FILE",
		.help = "c",
		.read = option_text,
		.at = AT(file)},
	{.name = "word", .value = "no|yes", .help = "w", .read = option_word, .at = AT(word)},
	{.letter = 's',
		.name = "set",
		.value = "X",
		.help = "s",
		.read = option_texts,
		.at = AT(sets)},
	{.name = "page-",
		.rest = "SIZE",
		.value = "N",
		.help = "p",
		.read = option_assignment,
		.at = AT(pages)},
	{0},
};
static const struct command run = {.name = "run",
	.summary = "s",
	.about = "a",
	.options = rows,
	.operand = {"THING", 1, 2, read_operand, 0, COMPLETE_NOTHING},
	.run = run_made_up};
static const struct command group_one = {
	.name = "group one", .summary = "s", .about = "a", .run = run_made_up};
static const struct command *const commands[] = {&run, &group_one, &command_help, &command_version};
static const struct program program = {
	.name = "made-up", .summary = "s", .about = "a", .man = 1, .commands = commands, .nr = 4};

/* Runs words parted by blanks; what goes to stderr is in said. */
static char said[4096];
static char line[256];
static int made_up(const char *words)
{
	char *argv[16] = {line}, *rest;
	int argc = 1, saved = dup(2);
	FILE *f = tmpfile();

	vec_fini(&got.sets);
	vec_fini(&got.pages);
	got = (struct got){0};
	(void)snprintf(line, sizeof line, "made-up %s", words);
	(void)strtok_r(line, " ", &rest);
	while ((argv[argc] = strtok_r(NULL, " ", &rest)))
		argc++;
	(void)fflush(stderr);
	(void)dup2(fileno(f), 2);
	int code = program_run(&program, argc, argv);
	(void)fflush(stderr);
	(void)dup2(saved, 2);
	(void)close(saved);
	rewind(f);
	said[fread(said, 1, sizeof said - 1, f)] = '\0';
	(void)fclose(f);
	return code;
}

static void options_are_read_wherever_they_stand(void **state)
{
	(void)state;
	assert_int_equal(
		made_up("run a --page-2Mi 4 -fc file b --word yes -s 1 --set=2 --page-1Gi=8"),
		EXIT_NO);
	assert_string_equal(said, "");
	assert_true(got.flag);
	assert_string_equal(got.file, "file");
	assert_int_equal(got.word, 1);
	assert_int_equal(got.sets.nr, 2);
	assert_string_equal(got.sets.at[1], "2");
	assert_int_equal(got.pages.nr, 2);
	assert_string_equal(got.operand[0], "a");
	assert_string_equal(got.operand[1], "b");
	assert_int_equal(got.nr_operands, 2);
}

static void a_part_of_a_group_is_a_verb(void **state)
{
	(void)state;
	assert_int_equal(made_up("group one"), EXIT_NO);
	assert_string_equal(said, "");
}

static void an_error_names_verb_word_and_what_was_meant(void **state)
{
	static const struct {
		const char *words, *text;
	} cases[] = {
		{"rum", "made-up: there is no verb \"rum\", did you mean \"run\"? (see made-up --help)\n"},
		{"run --flog a",
			"made-up run: unknown option --flog, did you mean --flag? (see made-up run --help)\n"},
		{"run --conf=3 -z a", "made-up run: unknown option -z (see made-up run --help)\n"},
		{"run --cofnig a",
			"made-up run: unknown option --cofnig, did you mean --config-file? (see made-up run --help)\n"},
		{"run --frobnicate a",
			"made-up run: unknown option --frobnicate (see made-up run --help)\n"},
		{"run --flag=3 a", "made-up run: --flag takes no value (see made-up run --help)\n"},
		{"run a --set", "made-up run: --set: X is expected (see made-up run --help)\n"},
		{"run a -s", "made-up run: -s: X is expected (see made-up run --help)\n"},
		{"run a --page-2Mi",
			"made-up run: --page-2Mi: N is expected (see made-up run --help)\n"},
		{"run a --page-=2",
			"made-up run: --page-: \"=2\": N is expected (see made-up run --help)\n"},
		{"run --word yse",
			"made-up run: --word: \"yse\" is not one of no|yes: did you mean yes? (see made-up run --help)\n"},
		{"run", "made-up run: THING is expected (see made-up run --help)\n"},
		{"run a b c",
			"made-up run: \"c\" is one argument too many (see made-up run --help)\n"},
		{"group noe",
			"made-up: group: there is no verb \"noe\", did you mean \"one\"? (see made-up --help)\n"},
		{"group", "made-up: group: one is expected (see made-up --help)\n"},
		{"group one x",
			"made-up group one: \"x\": only options are expected (see made-up group one --help)\n"},
		{"--hepl",
			"made-up: unknown option --hepl, did you mean --help? (see made-up --help)\n"},
		{"--completion tcsh",
			"made-up: --completion: \"tcsh\" is not one of bash|zsh|fish: did you mean bash? (see made-up --help)\n"},
		{"version 3",
			"made-up version: \"3\": only options are expected (see made-up version --help)\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(made_up(cases[i].words), EXIT_USAGE);
		assert_string_equal(said, cases[i].text);
	}
}

static void nothing_at_all_lists_the_verbs(void **state)
{
	(void)state;
	assert_int_equal(made_up(""), EXIT_USAGE);
	assert_non_null(strstr(said, "  group one "));
	assert_int_equal(made_up("frobnicate"), EXIT_USAGE);
	assert_non_null(strstr(said, "  group one "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_read_wherever_they_stand),
		cmocka_unit_test(a_part_of_a_group_is_a_verb),
		cmocka_unit_test(an_error_names_verb_word_and_what_was_meant),
		cmocka_unit_test(nothing_at_all_lists_the_verbs),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	vec_fini(&got.sets);
	vec_fini(&got.pages);
	return failed;
}
