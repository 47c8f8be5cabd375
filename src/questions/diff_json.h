#ifndef NUMAFIT_QUESTIONS_DIFF_JSON_H
#define NUMAFIT_QUESTIONS_DIFF_JSON_H

struct json_t; /* jansson's */

/* Where two JSON values differ. differs() gets each place in wanted's order, then what only got
 * has: the path ("steps[2].admit", "" for the whole) and both values as JSON, "nothing" for one
 * that is not there. Returns the number of differences. */
int json_diff(struct json_t *wanted, struct json_t *got,
	void (*differs)(void *ctx, const char *path, const char *wanted, const char *got),
	void *ctx);
/* The same for two texts: 0 only when they are equal byte by byte. What is no JSON, or differs in
 * its form alone, is one difference of the whole. */
int json_diff_texts(const char *wanted, const char *got,
	void (*differs)(void *ctx, const char *path, const char *wanted, const char *got),
	void *ctx);

#endif
