#ifndef NUMAFIT_CLI_QUESTIONS_H
#define NUMAFIT_CLI_QUESTIONS_H

#include <command/command.h>
#include <questions/decide_json.h>
#include <numafit/steps.h>

/* Files of questions, one JSON object on each line or one JSON array of them, answered one after
 * the other: a program that asks line by line gets each answer before the next line. */

/* What a verb of them does with a question. */
struct question_verb {
	/* Question i of d; steps is NULL without --explain. *result needs decide_result_free(). 0,
	 * or below 0 with the reason in *e. */
	int (*answer)(const struct decide_items *d, size_t i, const struct steps *steps,
		struct arena *a, struct json_t **result, struct err *e);
	/* As decide_item_check(). */
	int (*check)(const struct decide_items *d, size_t i, struct json_t *result,
		void (*differs)(void *ctx, const char *path, const char *wanted, const char *got),
		void *ctx);
};

/* The options of such a verb. */
struct question_options {
	bool check, explain;
	const char *file; /* "-" or NULL: the standard input */
};
#define QUESTION_CHECK_ROW                                                                         \
	{                                                                                          \
		.name = "check",                                                                   \
		.help = "compare with the \"expected\" of each question: print the differences "   \
			"and the count",                                                           \
		.read = option_flag, .at = offsetof(struct question_options, check)                \
	}
#define QUESTION_OPERAND                                                                           \
	{                                                                                          \
		"FILE|-", 0, 1, option_text, offsetof(struct question_options, file),              \
			COMPLETE_FILE                                                              \
	}
#define QUESTION_EXITS                                                                             \
	{                                                                                          \
		[EXIT_DONE] = "every question was answered, and as expected",                      \
		[EXIT_NO] = "a question could not be answered, or an answer was not the expected " \
			    "one",                                                                 \
		[EXIT_CANNOT] = "the file cannot be read",                                         \
	}

/* Run the verb. Without a FILE, when the standard input is a terminal, its help is printed: nobody
 * types questions. Returns the exit code. */
int questions_run(const struct question_verb *verb, const struct call *c);

#endif
