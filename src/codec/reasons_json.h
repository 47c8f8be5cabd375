#ifndef NUMAFIT_CODEC_REASONS_JSON_H
#define NUMAFIT_CODEC_REASONS_JSON_H

#include <codec/fields.h>
#include <numafit/reasons.h>
#include <numafit/topo.h>

struct json_t; /* jansson's */

/* The reasons of a decision, in the journal's form and in that of `numafit decide`. */

/* struct reasons as the journal has it: sets of NUMA nodes are kernel lists of ids. */
extern const struct fields reasons_fields;

/* For people and programs that ask (new reference):
 *   {"verdict": "admitted"|"refused", "affinity": [ids]|null, "preferred": bool,
 *    "runner_up": {"affinity": [ids], "preferred": bool}|null, "cut_short": bool,
 *    "resources": [{"resource": "cpu", "kind": "any"|"none"|"capacity", "masks": n,
 *                   "masks_at_least": bool, "smallest": n, "preferred_size": n,
 *                   "best": [[ids], ...]}, ...]}
 * masks is a string of digits where it exceeds what JSON readers bear (INT64_MAX). NULL, nothing
 * was merged, gives null. */
struct json_t *reasons_json(const struct reasons *r, const struct topo *t);

#endif
