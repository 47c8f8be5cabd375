#ifndef NUMAFIT_QUESTIONS_POLICY_JSON_H
#define NUMAFIT_QUESTIONS_POLICY_JSON_H

#include <numafit/kubernetes.h>
#include <numafit/policy.h>

struct json_t; /* jansson's */

/* What the questions put to a Topology Manager share: its machine and configuration
 *   {"nodes": [ids], "policy": ..., "options": {...}, "distances": {id: row}}
 * and its answer {"affinity": [ids]|null, "preferred": bool, "admit": bool}, or {"error": ...}
 * where the kubelet would not start. A row of distances has one entry for each node, in the order
 * of nodes. */

struct policy_question {
	enum topology_policy policy;
	struct node_ids ids;
	unsigned max_nodes;                     /* max-allowable-numa-nodes; 0: not set, no limit */
	bool closest;                           /* prefer-closest-numa-nodes */
	uint8_t distance[NODES_MAX][NODES_MAX]; /* dense; only with closest */
};

/* Which kubelet is asked for: the key that a question of any form may have. */
#define VERSION_KEY "kubernetesVersion"
/* What it says, AUTO when it is not there. 0 or -EINVAL. */
int policy_json_version(const struct json_t *item, enum kubernetes_version *version, struct err *e);

/* A whole number from 0 to max. 0; -EINVAL, -ERANGE. */
int json_number(const struct json_t *v, uint64_t max, uint64_t *out, struct err *e);
/* The text as a JSON string (new reference), also when it quotes half a character. */
struct json_t *json_message(const char *text);

/* Nodes and distances into *q, all zeros before. 0; -EINVAL, -ERANGE with the place. */
int policy_json_machine(const struct json_t *item, struct policy_question *q, struct err *e);
/* Policy and options, as a kubelet that starts on that machine reads them. 0; 1: it does not
 * start, its words are in *e; -EINVAL, -ERANGE: cannot be read. */
int policy_json_start(const struct json_t *item, struct policy_question *q, struct err *e);

/* Where the hints are merged; borrows *q. */
struct hint_space policy_question_space(const struct policy_question *q);
/* The answer, and the refusal to start (new references). */
struct json_t *policy_json_result(const struct policy_question *q, const struct policy_answer *p);
struct json_t *policy_json_refusal(const char *why);

#endif
