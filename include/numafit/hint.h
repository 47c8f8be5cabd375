#ifndef NUMAFIT_HINT_H
#define NUMAFIT_HINT_H

#include <numafit/nodeset.h>
#include <numafit/topo.h>

/* A hint is a set of NUMA nodes that would satisfy one resource; merging finds the one set that
 * suits all resources best. All hints of a resource follow one rule (family.h), so that 64 nodes
 * cost no 2^64 sets. Rules: Kubernetes 1.36, pkg/kubelet/cm/topologymanager/policy.go. */

struct hint {
	struct nodeset mask;
	bool any; /* no NUMA preference: the kubelet's nil affinity; mask is then not looked at */
	bool preferred;
};

/* numa-allocation-strategy (KEP-6007), among sets of NUMA nodes that are equal otherwise. */
enum allocation_strategy { ALLOCATION_NONE, ALLOCATION_MOST, ALLOCATION_LEAST };

/* Where hints are merged: all NUMA nodes of the machine and how to choose between masks of one
 * size: the lower-numbered one, or with distances (prefer-closest-numa-nodes) the closest. Of those
 * that are as close, a strategy takes the most or least allocated ones. */
struct hint_space {
	struct nodeset all;
	const uint8_t (*distance)[NODES_MAX]; /* NULL: Narrowest; else Closest */
	enum allocation_strategy strategy;
};

/* The sum of the distances over all ordered pairs of the mask's nodes; 0 without distances. */
uint64_t hint_distance_sum(const struct hint_space *space, struct nodeset mask);
/* The kubelet's order of fitness at equal preference: fewer nodes, then (Closest) the smaller sum
 * of distances. Negative when a is the better one, 0 when nothing but their numbers differs. */
int hint_compare_fit(const struct hint_space *space, struct nodeset a, struct nodeset b);
/* The same, and then the smaller number. */
int hint_compare_masks(const struct hint_space *space, struct nodeset a, struct nodeset b);

/* Whether non-preferred mask a beats b when the narrowest mask of the most demanding resource has
 * `best` nodes: the kubelet aims at that size, then as near below it as can be, then above it
 * (HintMerger.compare and its bestNonPreferredAffinityCount). */
bool hint_beats(const struct hint_space *space, unsigned best, struct nodeset a, struct nodeset b);

#endif
