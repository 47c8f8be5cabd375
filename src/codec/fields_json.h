#ifndef NUMAFIT_CODEC_FIELDS_JSON_H
#define NUMAFIT_CODEC_FIELDS_JSON_H

#include <codec/fields.h>
#include <numafit/arena.h>

/* Reading JSON: structs by their table of fields, and the little that every reader needs. Strict in
 * types; keys that the table does not have are passed over. */

struct json_t; /* jansson's */

/* Seed jansson's hash; once, by main(), before any JSON is read. */
void json_seed(void);
/* Parse len bytes of JSON: any value; keys that come twice are refused. The caller gives it back
 * with json_decref(). 0 or -EINVAL with the place. */
int json_parse(const char *text, size_t len, struct json_t **out, struct err *e);
/* -EINVAL: "should be WANTED, is a string"; for NULL: "is nothing". */
int json_want(const char *wanted, const struct json_t *got, struct err *e);

/* What reading needs besides the table. */
struct fields_context {
	const struct node_ids *ids; /* for FIELD_NODES */
	struct arena *arena;        /* strings and lists live here; NULL when the table has none */
};
/* Fill *to, all zeros before, from the object. 0; -EINVAL, -ERANGE, -ENOENT (a NUMA node that is
 * not in ids), -ENOMEM (the arena's limit); the text leads to the key. *to is half filled then. */
int fields_read(const struct json_t *object, const struct fields *f, void *to,
	const struct fields_context *c, struct err *e);

/* The same from the len bytes at text, which hold one object and nothing else. */
int fields_parse(const char *text, size_t len, const struct fields *f, void *to,
	const struct fields_context *c, struct err *e);

#endif
