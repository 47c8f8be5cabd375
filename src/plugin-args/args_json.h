#ifndef NUMAFIT_CODEC_ARGS_JSON_H
#define NUMAFIT_CODEC_ARGS_JSON_H

#include <codec/fields.h>
#include <numafit/arena.h>

struct json_t; /* jansson's */

/* The arguments of a scheduler's plugin, read as the scheduler reads them: by Go's strict decoder
 * into a struct of known fields, then checked field by field. What is wrong is reported in
 * the scheduler's words, the place first. */

/* Tables are those of fields.h: of FIELD_I64 (with max: from -max - 1 up to max), FIELD_BOOL,
 * FIELD_STRING, FIELD_POINTER, FIELD_LIST and FIELD_STRINGS, all with their type in Go as errors
 * name it ("int64", "v1.ModeType"), and the structs with theirs ("v1.ScoringStrategy"). */

/* What is wrong with arguments; zeros: nothing yet. */
enum { ARGS_PROBLEMS_MAX = 8192 };
struct args_problems {
	unsigned nr;
	char text[ARGS_PROBLEMS_MAX]; /* one after the other, what does not fit is cut */
};

/* What kind of mistake it is (apimachinery's field.ErrorType): "Invalid value", "Unsupported
 * value", "Required value", "Forbidden", "Duplicate value". */
enum args_fault { ARGS_INVALID, ARGS_UNSUPPORTED, ARGS_REQUIRED, ARGS_FORBIDDEN, ARGS_DUPLICATE };
/* One more: "place: fault: detail", such as "resources[0].weight", ARGS_INVALID, "0: must be 1".
 * One that is there already is not added. */
void args_problem(struct args_problems *p, const char *place, enum args_fault fault,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* As the scheduler prints several: "[a, b]"; one is just itself. Returns buf. */
const char *args_problems_text(const struct args_problems *p, char *buf, size_t cap);

/* Fill *to, zeros before, from the object; what is null is not there, and v may be NULL. Strings
 * and lists live in *a. 0; 1: it is refused, *p has the whole text; -ENOMEM: the arena's limit. */
int args_json_read(struct json_t *v, const struct fields *args, void *to, struct arena *a,
	struct args_problems *p, struct err *e);

#endif
