#ifndef NUMAFIT_HINT_H
#define NUMAFIT_HINT_H

#include <numafit/arena.h>
#include <numafit/nodeset.h>
#include <numafit/topo.h>

/* Hints say which sets of NUMA nodes would satisfy one resource; merging finds the one set that
 * suits all resources best. Two forms enter, the same answer leaves:
 *   lists    - every set spelled out, as other vendors' providers give them;
 *   families - the rule that the sets follow (capacities), so that 64 nodes cost no 2^64 sets.
 * Rules: Kubernetes 1.36, pkg/kubelet/cm/topologymanager/policy.go. */

struct hint {
	struct nodeset mask;
	bool any;	/* no NUMA preference: the kubelet's nil affinity; mask is then not looked at */
	bool preferred;
};

/* The hints of one resource. No hint at all means that nothing satisfies the resource. */
struct hint_list {
	const struct hint *hint;
	size_t nr;
};

/* Where hints are merged: all NUMA nodes of the machine and how to choose between masks of one
 * size: the lower-numbered one, or with distances (prefer-closest-numa-nodes) the closest. */
struct hint_space {
	struct nodeset all;
	const uint8_t (*distance)[NODES_MAX]; /* NULL: Narrowest; else Closest */
};

/* The best of all ways to take one hint from every list, by the kubelet's compare(); it does not
 * depend on the order of lists or hints. No list at all: all nodes, preferred. Nothing left: all
 * nodes, not preferred. Masks may hold bits outside space->all, as a hint may name a node that the
 * machine lacks; they count until the lists are intersected. Working memory comes from *a.
 * 0; -ENOMEM when the arena's limit is reached. */
int hint_merge_lists(const struct hint_space *space, const struct hint_list *lists, size_t nr,
	struct arena *a, struct hint *out);

/* One additive demand of a family: mask m satisfies it when base + sum of weight[node in m] >= need. */
struct family_demand {
	const uint64_t *weight; /* by dense node, NODES_MAX of them */
	uint64_t base, need;
};

enum family_kind {
	FAMILY_ANY,	/* no preference: one hint (any, preferred) */
	FAMILY_NONE,	/* cannot be satisfied: one hint (any, not preferred) */
	FAMILY_CAPACITY /* as the other members say */
};
enum { FAMILY_DEMANDS = 2 * TOPO_KINDS, FAMILY_EXTRA = 2 * NODES_MAX };

/* The hints of one resource by their rule: every non-empty subset of ground that contains
 * required and satisfies all demands, and the extra masks besides; a mask is preferred when it
 * has exactly preferred_size nodes. */
struct family {
	char resource[48];
	enum family_kind kind;
	struct nodeset ground, required;
	unsigned nr_demands;
	struct family_demand demand[FAMILY_DEMANDS];
	unsigned nr_extra;
	struct nodeset extra[FAMILY_EXTRA];
	unsigned preferred_size;
};

/* Whether mask is one of the family's (FAMILY_CAPACITY only). */
bool family_has(const struct family *f, struct nodeset mask);
/* The size of the smallest mask; 0 when there is none. */
unsigned family_smallest(const struct family *f);

/* Exactly what hint_merge_lists() gives for the families written out as lists. */
int hint_merge_families(const struct hint_space *space, const struct family *families, size_t nr,
	struct arena *a, struct hint *out);

/* The kubelet's order of fitness at equal preference: fewer nodes, then (Closest) the smaller sum
 * of distances, then the smaller number. Negative when a is the better one. */
int hint_compare_masks(const struct hint_space *space, struct nodeset a, struct nodeset b);

#endif
