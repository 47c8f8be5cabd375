#ifndef NUMAFIT_QUESTIONS_SCORE_JSON_H
#define NUMAFIT_QUESTIONS_SCORE_JSON_H

#include <numafit/arena.h>
#include <numafit/err.h>
#include <numafit/steps.h>

struct json_t; /* jansson's */

/* The question `score`: what a scheduler's plugin says of each node for a pod.
 *   {"plugin": name, "args": {...}, "nodes": [{"node": v1.Node, "topology": ... | null,
 *    "pods": [v1.Pod]}], "pod": v1.Pod}
 * answered, in the order of the nodes, with
 *   {"nodes": [{"name", "fits", "code", "why": [texts], "score": number | null}]}
 * or {"error": ...} when the plugin refuses its arguments; "prescore": "Skip" when it has nothing
 * to say of such a pod. A node's answer also has "zones", the NUMA nodes that each container ("*":
 * the pod as a whole) would take, where the plugin knows; "cpus" of numa-aware; and "raw", the
 * score before it was normalised over all nodes, of NodeResourcesAllocatable.
 * Plugins: NodeResourceTopologyMatch ("compat": true as released), NodeResourcesFit,
 * NodeResourcesBalancedAllocation, NodeResourcesAllocatable, GenericNodeResources, numa-aware. */

/* The answer as *result (a new reference), with working memory from *a; steps, which may be NULL,
 * gets the arithmetic. 0; -EINVAL, -ERANGE, -ENOMEM: cannot be read, the text says where and
 * why. */
int score_json_answer(struct json_t *item, const struct steps *steps, struct arena *a,
	struct json_t **result, struct err *e);

/* Compare with the question's "expected": what it has, the result has to have, except what only
 * informs ("cpus"); of an error the place counts, not the wording. null there is a mistake of the
 * released code, and any answer will do. differs() gets each difference, as json_diff() does.
 * Returns the number of differences; -ENOENT when nothing is expected. */
int score_json_check(struct json_t *item, struct json_t *result,
	void (*differs)(void *ctx, const char *path, const char *wanted, const char *got),
	void *ctx);

#endif
