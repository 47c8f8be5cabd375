#ifndef NUMAFIT_QUESTIONS_FAMILY_PARTS_JSON_H
#define NUMAFIT_QUESTIONS_FAMILY_PARTS_JSON_H

#include <numafit/arena.h>
#include <numafit/err.h>
#include <numafit/family.h>

struct json_t; /* jansson's */

/* What the kinds of families_json.h are made of. All return 0; -EINVAL, -ERANGE with the place, or
 * -ENOMEM. */

/* What reading needs besides the object. */
struct family_reader {
	struct arena *arena;
	struct node_ids ids;
};

/* Amounts up to that can be added up over all nodes. */
#define FAMILY_AMOUNT_MAX (UINT64_C(1) << 56)

/* The dense index of a node's id as a key. */
int family_node_of_key(const struct family_reader *r, const char *key, struct err *e);
/* Add the nodes of a list of ids to *out; one that the machine lacks is an error if strict, else
 * left out. */
int family_nodes_read(const struct family_reader *r, const struct json_t *list, bool strict,
	struct nodeset *out, struct err *e);
/* {id: amount} as a row by dense node; the nodes that it names are added to *named. */
int family_row_read(const struct family_reader *r, struct json_t *object, uint64_t row[NODES_MAX],
	struct nodeset *named, struct err *e);
/* That key of the item, such a row, which need not be there. */
int family_row_read_of(const struct family_reader *r, const struct json_t *item, const char *key,
	uint64_t row[NODES_MAX], struct nodeset *named, struct err *e);
/* That key of the item, a number, which need not be there. */
int family_amount_read(const struct json_t *item, const char *key, uint64_t *out, struct err *e);
/* The key "sockets", {id: socket, or a list of those that cross the node} of all those nodes, which
 * need not be there: *nr is how many different sockets then, else untouched. socket[]: a bit for
 * each. */
int family_sockets_read(const struct family_reader *r, const struct json_t *item,
	struct nodeset nodes, uint64_t sockets[NODES_MAX], unsigned *nr, struct err *e);

#endif
