#ifndef NUMAFIT_CODEC_PLACEMENT_JSON_H
#define NUMAFIT_CODEC_PLACEMENT_JSON_H

#include <numafit/engine.h>

/* The value of the annotation numafit.io/placement, which every container that we placed carries:
 * {"v":1,"policy":"restricted","exclusive":true,"cpus":"8-15","mems":"1","nodes":"1","preferred":true}
 * "nodes" is what the merge chose and is missing when there was no NUMA affinity; "hint" is the
 * verdict on a scheduler's advice, if there was one; "wishes" are those that it was given by, for
 * people, and are not read. Anybody that can create pods can write such a
 * value: what is read is a claim and no more. */

enum {
	PLACEMENT_JSON_MAX = CPUSET_TEXT_MAX + 2 * NODESET_TEXT_MAX + WISHES_TEXT_MAX + 256,
	PLACEMENT_READ_MAX = 16 << 10
};

/* *p as JSON into buf of cap bytes. Returns buf; with cap >= PLACEMENT_JSON_MAX nothing is ever
 * cut. */
const char *placement_json_format(
	const struct placement *p, const struct node_ids *ids, char *buf, size_t cap);

/* Read a value back. Unknown keys are passed over. 0; -EINVAL, -ERANGE: not such a value; -ENOENT:
 * a NUMA node that ids lack; -E2BIG: longer than PLACEMENT_READ_MAX. *out is written only on
 * success. */
int placement_json_parse(
	const char *text, const struct node_ids *ids, struct placement *out, struct err *e);

#endif
