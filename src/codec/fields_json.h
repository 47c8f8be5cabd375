#ifndef NUMAFIT_CODEC_FIELDS_JSON_H
#define NUMAFIT_CODEC_FIELDS_JSON_H

#include <codec/fields.h>
#include <numafit/arena.h>
#include <numafit/quantity.h>

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
/* Every key of the object is in keys (NULL ends them), or -EINVAL: a misspelt key would otherwise
 * be one that was never given. */
int json_only_keys(struct json_t *object, const char *const *keys, struct err *e);
/* The same; and it is an object. */
int json_want_object(struct json_t *v, const char *const *keys, struct err *e);

/* The member of that name; NULL when it is not there, or null. *object may be NULL. */
struct json_t *json_member(const struct json_t *object, const char *key);
/* A member of that type into *out, NULL where it is not there. 0; -EINVAL with the key. */
int json_member_string(
	const struct json_t *object, const char *key, const char **out, struct err *e);
int json_member_list(
	const struct json_t *object, const char *key, struct json_t **out, struct err *e);
int json_member_object(
	const struct json_t *object, const char *key, struct json_t **out, struct err *e);

/* A new list of the ids of those NUMA nodes. */
struct json_t *json_node_ids(struct nodeset nodes, const struct node_ids *ids);

/* A resource.Quantity: a string, or any number. 0; -EINVAL. */
int json_quantity(const struct json_t *v, struct quantity *out, struct err *e);
/* The same, counted (quantity.h). 0; -EINVAL, -ERANGE. */
int json_quantity_count(
	const struct json_t *v, enum quantity_unit unit, uint64_t *out, struct err *e);

/* What reading needs besides the table. */
struct fields_context {
	const struct node_ids *ids; /* for FIELD_NODES */
	struct arena *arena;        /* strings and lists live here; NULL when the table has none */
	/* What reads each object within, by another decoder's rules; NULL: fields_read(). The
	 * object is element nr of a list, or that of a member, with nr -1. */
	int (*read)(const struct fields_context *c, struct json_t *v, const struct fields *f,
		void *to, int nr, struct err *e);
	void *reader; /* read()'s own */
};
/* Fill *to, all zeros before, from the object. 0; -EINVAL, -ERANGE, -ENOENT (a NUMA node that is
 * not in ids), -ENOMEM (the arena's limit); the text leads to the key. *to is half filled then. */
int fields_read(const struct json_t *object, const struct fields *f, void *to,
	const struct fields_context *c, struct err *e);

/* The one member of *to that the row is for, from its value. 0, or an error of fields_read(). */
int fields_read_member(struct json_t *v, const struct field *f, void *to,
	const struct fields_context *c, struct err *e);

/* The same as fields_read() from the len bytes at text, which hold one object and nothing else. */
int fields_parse(const char *text, size_t len, const struct fields *f, void *to,
	const struct fields_context *c, struct err *e);

#endif
