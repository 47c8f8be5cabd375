#ifndef NUMAFIT_CODEC_MERGE_JSON_H
#define NUMAFIT_CODEC_MERGE_JSON_H

#include <numafit/policy.h>

struct json_t; /* jansson's */

/* The question `merge`: the hints of all providers, for the Topology Manager's policy.
 *   {"nodes": [ids], "policy": ..., "options": {...}, "distances": {id: row},
 *    "providers": [{resource: [{"mask": [ids]|null, "preferred": bool}] | [] | null} | null]}
 * A row of distances has one entry for each node, in the order of nodes. */

struct merge_question {
	enum topology_policy policy;
	struct node_ids ids;
	unsigned max_nodes;                     /* max-allowable-numa-nodes; 0: not set, no limit */
	bool closest;                           /* prefer-closest-numa-nodes */
	uint8_t distance[NODES_MAX][NODES_MAX]; /* dense; only with closest */
	const struct hint_list *lists;
	size_t nr_lists;
};

/* Read it from the object. Lists and hints live in *a; nodes that the machine lacks get bits above
 * those of its own. 0; 1: the kubelet would not start with these options, its words are in *e;
 * -EINVAL, -ERANGE, -ENOMEM: cannot be read, the text leads to the place. *q is written only on 0.
 */
int merge_json_read(struct json_t *item, struct arena *a, struct merge_question *q, struct err *e);

#endif
