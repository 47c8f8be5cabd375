#ifndef NUMAFIT_CODEC_NODE_JSON_H
#define NUMAFIT_CODEC_NODE_JSON_H

#include <numafit/arena.h>
#include <numafit/err.h>

struct json_t; /* jansson's */

/* The question `node`: whole pods that come to a node, start and go.
 *   {"machine": {nodes, distances, cpus_fields, cpus, devices}, "settings": {the kubelet's keys},
 *    "steps": [{"op": "admit", "pod": v1.Pod} | {"op": "start", "uid", "containers": [names]}
 *              | {"op": "remove", "uid"}]}
 * Its answer is {"reserved_cpus", "steps": [...]}, or {"error"} where the kubelet would not start.
 * Without max-allowable-numa-nodes the kubelet's own limit of 8 NUMA nodes counts, as the settings
 * are a kubelet's. */

/* Decide it; *result is a new reference. 0; -EINVAL, -ERANGE, -ENOMEM: it cannot be read, the text
 * leads to the place. */
int node_json_answer(struct json_t *item, struct arena *a, struct json_t **result, struct err *e);

#endif
