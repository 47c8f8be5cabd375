#ifndef NUMAFIT_QUESTIONS_DECIDE_JSON_H
#define NUMAFIT_QUESTIONS_DECIDE_JSON_H

#include <questions/machine_json.h>

struct json_t; /* jansson's */

/* Recorded decisions and what-if questions: one JSON object each, in the words of Kubernetes, its
 * form shown by its keys; "name" names it. Each form is one codec of its own (families_json.h,
 * ...), and a result has the shape of the question's "expected". */

/* The questions of one text: a single object, or an array of them. */
struct decide_items;

/* Parse len bytes. 0; -EINVAL: not JSON, or neither an object nor an array. The caller frees. */
int decide_items_parse(const char *text, size_t len, struct decide_items **out, struct err *e);
void decide_items_free(struct decide_items *d);
size_t decide_items_count(const struct decide_items *d);
/* Question i as it was parsed; it belongs to d. */
struct json_t *decide_item(const struct decide_items *d, size_t i);

/* Decide question i with working memory from *a: the result into *result, given back with
 * decide_result_free(). load finds machines by name; NULL: they have none. A refusal is a result.
 * 0; -EINVAL, -ERANGE, -ENOMEM, ...: it cannot be read or decided, the text says why. */
int decide_item_answer(const struct decide_items *d, size_t i, machine_loader *load,
	struct arena *a, struct json_t **result, struct err *e);
void decide_result_free(struct json_t *result);

/* {"name": ..., "result": ...}, for a question without a name {"line": ...} or, within an array,
 * {"item": ...}; the caller frees. */
char *decide_item_print(const struct decide_items *d, size_t i, size_t line, struct json_t *result);
/* The same with "error" instead of a result; d is NULL when the line is not JSON at all. */
char *decide_item_error(const struct decide_items *d, size_t i, size_t line, const char *why);
/* The question's name for people, or "line 3". */
const char *decide_item_name(
	const struct decide_items *d, size_t i, size_t line, char *buf, size_t cap);

/* Compare with the question's "expected"; a bare list there is what the result's "cpus" should be.
 * A recorded answer that "takes_unavailable" CPUs is the released code's mistake: it is compared
 * with nothing. differs() gets each difference: the path into the result, and both values as
 * JSON ("nothing" for one that is not there). Returns the number of differences; -ENOENT when
 * nothing is expected. */
int decide_item_check(const struct decide_items *d, size_t i, struct json_t *result,
	void (*differs)(void *ctx, const char *path, const char *wanted, const char *got),
	void *ctx);

#endif
