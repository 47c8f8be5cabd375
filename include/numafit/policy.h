#ifndef NUMAFIT_POLICY_H
#define NUMAFIT_POLICY_H

#include <numafit/family.h>
#include <numafit/settings.h>

/* The Topology Manager's policies: one row each in policy.c, which says what hints enter the merge
 * and what result is let in (kubelet policy_{none,best_effort,restricted,single_numa_node}.go). */

struct policy_answer {
	struct hint affinity; /* any: no NUMA affinity, as the policies none and single-numa-node
				 may give */
	bool admit;
};

/* The space as the policy sees it: distances count only where it honours
 * prefer-closest-numa-nodes. */
struct hint_space policy_space(enum topology_policy policy, const struct hint_space *space);

/* Hints in, one affinity and a verdict out: the seam between what offers hints and what allocates.
 * prefer-closest-numa-nodes counts for best-effort and restricted only; pass the machine's
 * distances in *space when the option is on. numa-allocation-strategy counts for single-numa-node
 * too (the KEP's first examples are of it). 0, or as hint_merge_families(). */
int policy_merge_families(enum topology_policy policy, const struct hint_space *space,
	const struct family *families, size_t nr, struct budget *b, struct arena *a,
	struct policy_answer *out);

/* What the policy would have chosen if best, its affinity for these families, had not been there.
 * 0; -ENOENT: nothing; 1: not known, the budget ran out; -ENOMEM. */
int policy_runner_up(enum topology_policy policy, const struct hint_space *space,
	const struct family *families, size_t nr, const struct hint *best, struct budget *b,
	struct arena *a, struct hint *out);

/* Whether the policy may run on a machine of nr_nodes: the kubelet does not start with more nodes
 * than max-allowable-numa-nodes (limit; 0: none), except with policy none. 0, or -E2BIG with the
 * kubelet's words. */
int policy_check_nodes(
	enum topology_policy policy, unsigned nr_nodes, unsigned limit, struct err *e);

#endif
