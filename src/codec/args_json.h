#ifndef NUMAFIT_CODEC_ARGS_JSON_H
#define NUMAFIT_CODEC_ARGS_JSON_H

#include <numafit/arena.h>
#include <numafit/text.h>

struct json_t; /* jansson's */

/* The arguments of a scheduler's plugin, read as the scheduler reads them: by Go's strict decoder
 * into a struct of known fields, then checked field by field. What is wrong is reported in
 * the scheduler's words, the place first. */

enum arg_type {
	ARG_INT,     /* int64_t */
	ARG_BOOL,    /* bool */
	ARG_STRING,  /* const char * */
	ARG_STRUCT,  /* pointer to a struct, by the fields in of; NULL where it is not there */
	ARG_STRUCTS, /* pointer to structs, likewise; their number is the unsigned at count */
	ARG_STRINGS  /* pointer to const char *, likewise */
};

struct arg {
	const char *key;
	enum arg_type type;
	size_t at, count;
	const char *go; /* its type there, as errors name it: "int64", "v1.ModeType" */
	int64_t max;    /* ARG_INT: the type's largest, for -max - 1 up to max */
	const struct args *of;
	/* ARG_STRUCTS: {"cpu": 2} does as well as [{first field: "cpu", second field: 2}] */
	bool map;
};
struct args {
	const char *go; /* the struct's type there: "v1.ScoringStrategy" */
	const struct arg *row;
	size_t nr, size;
};

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
int args_json_read(struct json_t *v, const struct args *args, void *to, struct arena *a,
	struct args_problems *p, struct err *e);

#endif
