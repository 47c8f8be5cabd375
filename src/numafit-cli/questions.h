#ifndef NUMAFIT_CLI_QUESTIONS_H
#define NUMAFIT_CLI_QUESTIONS_H

#include <questions/decide_json.h>
#include <numafit/steps.h>

/* Files of questions, one JSON object on each line or one JSON array of them, answered one after
 * the other: a program that asks line by line gets each answer before the next line. */

/* A verb that answers such files: [--check] [--explain] [FILE|-]. */
struct question_verb {
	const char *name, *help;
	bool explains; /* it has --explain */
	/* Question i of d; steps is NULL without --explain. *result needs decide_result_free(). 0,
	 * or below 0 with the reason in *e. */
	int (*answer)(const struct decide_items *d, size_t i, const struct steps *steps,
		struct arena *a, struct json_t **result, struct err *e);
	/* As decide_item_check(). */
	int (*check)(const struct decide_items *d, size_t i, struct json_t *result,
		void (*differs)(void *ctx, const char *path, const char *wanted, const char *got),
		void *ctx);
};

/* Run the verb; "-" or no FILE is the standard input. Returns the exit code. */
int questions_run(const struct question_verb *verb, int argc, char **argv);

#endif
