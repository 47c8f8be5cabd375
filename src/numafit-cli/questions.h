#ifndef NUMAFIT_CLI_QUESTIONS_H
#define NUMAFIT_CLI_QUESTIONS_H

#include <questions/decide_json.h>
#include <stdio.h>

/* Files of questions, one JSON object on each line or one JSON array of them, read one after the
 * other: whoever asks line by line gets each answer before the next line. */

struct question_reader {
	/* Question i of d, which ends after the call; on which line it came. */
	void (*question)(void *ctx, const struct decide_items *d, size_t i, size_t line);
	/* A line that is no JSON. */
	void (*unreadable)(void *ctx, size_t line, const char *why);
	void *ctx;
};

/* All of the file's; "-" is the standard input. 0, or -errno. */
int questions_read(const char *path, const struct question_reader *r);

/* Print the line, and free it. */
void questions_print(char *line);

#endif
