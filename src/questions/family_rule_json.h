#ifndef NUMAFIT_QUESTIONS_FAMILY_RULE_JSON_H
#define NUMAFIT_QUESTIONS_FAMILY_RULE_JSON_H

#include <questions/family_parts_json.h>

/* A family of the kind "rule": struct family itself, as any manager could make it. Beside "kind"
 * and "ground": [ids] it may have "required": [ids], "extra": [[ids]], "preferred_size": nodes,
 * "preferred_sockets": nr, "sockets": {id: socket or [socket]}, "demands": [{"weights": {id:
 * amount}, "base": amount, "need": amount}], where "covers": [{"nodes": [ids], "count": nr}] may be
 * the weights. */

/* Read it into *f, all zeros before. 0; -EINVAL, -ERANGE, -ENOMEM with the place. */
int family_rule_json_read(
	const struct family_reader *r, struct json_t *v, struct family *f, struct err *e);

#endif
