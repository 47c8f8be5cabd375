#ifndef NUMAFIT_CODEC_DECIDE_JSON_H
#define NUMAFIT_CODEC_DECIDE_JSON_H

#include <codec/merge_json.h>

/* Recorded decisions and what-if questions: one JSON object each, in the words of Kubernetes, its
 * form told by its keys; "name" names it. The form merge (merge_json.h) is answered with
 * {"affinity": [ids]|null, "preferred": bool, "admit": bool}, or {"error": ...} where the kubelet
 * would not start. */

/* The questions of one text: a single object, or an array of them. */
struct decide_items;

/* Parse len bytes. 0; -EINVAL: not JSON, or neither an object nor an array. The caller frees. */
int decide_items_parse(const char *text, size_t len, struct decide_items **out, struct err *e);
void decide_items_free(struct decide_items *d);
size_t decide_items_count(const struct decide_items *d);

/* Question i into *q, as merge_json_read() does it; besides, -ENOTSUP: a form that is not decided
 * yet. */
int decide_item_read(const struct decide_items *d, size_t i, struct arena *a,
	struct merge_question *q, struct err *e);

struct merge_result {
	const char *error; /* why the kubelet would not start; NULL: the answer counts */
	struct policy_answer answer;
	struct node_ids ids;
};

/* {"name": ..., "result": ...}, for a question without a name {"line": ...} or, within an array,
 * {"item": ...}; the caller frees. */
char *decide_item_answer(
	const struct decide_items *d, size_t i, size_t line, const struct merge_result *r);
/* The same with "error" instead of a result; d is NULL when the line is not JSON at all. */
char *decide_item_error(const struct decide_items *d, size_t i, size_t line, const char *why);
/* The question's name for people, or "line 3". */
const char *decide_item_name(
	const struct decide_items *d, size_t i, size_t line, char *buf, size_t cap);

/* Compare with the question's "expected". differs() is told each difference: the path into the
 * result, and both values as JSON ("nothing" for one that is not there). Returns the number of
 * differences; -ENOENT when nothing is expected. */
int decide_item_check(const struct decide_items *d, size_t i, const struct merge_result *r,
	void (*differs)(void *ctx, const char *path, const char *wanted, const char *got),
	void *ctx);

#endif
