#ifndef NUMAFIT_CLI_OUTPUT_H
#define NUMAFIT_CLI_OUTPUT_H

#include <command/command.h>
#include <host/correction.h>
#include <stdio.h>

/* Options that several verbs have. */

/* The form of what is printed. */
enum output { OUTPUT_TEXT, OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON };

/* For an enum output: one of the words of o->value ("table|wide|json"). */
int option_output(const struct option_row *o, void *member, char *value, struct err *e);
/* --json: OUTPUT_JSON. */
int option_json(const struct option_row *o, void *member, char *value, struct err *e);

/* uint64_t: ms of "90s", "1h30m", "2d". */
int option_duration(const struct option_row *o, void *member, char *value, struct err *e);

/* -o and --json of the struct's member `output`; words: those forms that the verb has. */
#define OUTPUT_ROWS(type, words)                                                                   \
	{.letter = 'o',                                                                            \
		.name = "output",                                                                  \
		.value = (words),                                                                  \
		.help = "the form of what is printed; the first one is the default",               \
		.read = option_output,                                                             \
		.at = offsetof(type, output),                                                      \
		.completes = COMPLETE_WORDS},                                                      \
	{                                                                                          \
		.name = "json", .help = "the same as --output json", .read = option_json,          \
		.at = offsetof(type, output)                                                       \
	}
#define RUN_DIRECTORY_ROW(type)                                                                    \
	{                                                                                          \
		.name = "run-directory", .value = "DIR",                                           \
		.help = "numafitd's runDirectory (default " RUN_DIRECTORY ")",                     \
		.read = option_text, .at = offsetof(type, directory),                              \
		.completes = COMPLETE_DIRECTORY                                                    \
	}
#define NAMESPACE_ROW(type)                                                                        \
	{                                                                                          \
		.letter = 'n', .name = "namespace", .value = "NS",                                 \
		.help = "only containers of pods in this namespace", .read = option_text,          \
		.at = offsetof(type, ns), .completes = COMPLETE_NAMESPACE                          \
	}
/* -w, a bool `watch`; what: what it does. */
#define WATCH_ROW(type, what)                                                                      \
	{                                                                                          \
		.letter = 'w', .name = "watch", .help = (what), .read = option_flag,               \
		.at = offsetof(type, watch)                                                        \
	}
/* Print a text of lines, made fit to be shown (text_make_shown()); a line of more than `columns`
 * (0: any) is broken at blanks and goes on below, two columns farther right. */
void print_lines(FILE *to, char *text, int columns);

/* Where corrections of a machine go, a line each, and what stands before each. */
struct correction_lines {
	FILE *to;
	const char *before;
};
/* A note() of machine_load(): print the correction to the struct correction_lines at ctx. */
void print_correction(void *ctx, const struct correction *c);

/* Clear the screen, where it is one, before what is printed again. */
void screen_clear(void);
/* What was printed is shown; wait for the next time. False: nobody reads it any more. */
bool watch_wait(void);

#endif
