#ifndef NUMAFIT_FAMILY_H
#define NUMAFIT_FAMILY_H

#include <numafit/hint.h>

/* All hints of one resource by the rule that they follow, and merging such rules. The kubelet's
 * providers list up to 2^n - 1 masks each and try every combination; a rule says the same in a few
 * numbers for each NUMA node. */

/* `count` devices that lie on the same NUMA nodes: a mask has them when it has one of the nodes. */
struct family_cover {
	struct nodeset nodes;
	uint64_t count;
};

/* One demand of a family: mask m satisfies it when base and what m brings are at least need. It
 * brings the sum of weight[node in m]; or, with weight NULL, the devices that touch m. */
struct family_demand {
	const uint64_t *weight; /* by dense node, NODES_MAX of them */
	const struct family_cover *cover;
	size_t nr_covers;
	uint64_t base, need;
};

enum family_kind {
	FAMILY_ANY,     /* no preference: one hint (any, preferred) */
	FAMILY_NONE,    /* cannot be satisfied: one hint (any, not preferred) */
	FAMILY_CAPACITY /* as the other members say */
};
enum { FAMILY_DEMANDS = 2 * TOPO_KINDS, FAMILY_EXTRA = 2 * NODES_MAX };

/* The hints of one resource by their rule: every non-empty subset of ground that contains
 * required and satisfies all demands, and the extra masks besides; a mask is preferred when it
 * has exactly preferred_size nodes, or touches exactly preferred_sockets sockets (the CPU manager's
 * align-by-socket; 0: no such rule). Families that are merged share one such rule at most. */
struct family {
	char resource[48];
	enum family_kind kind;
	struct nodeset ground, required;
	unsigned nr_demands;
	struct family_demand demand[FAMILY_DEMANDS];
	unsigned nr_extra;
	struct nodeset extra[FAMILY_EXTRA];
	unsigned preferred_size;
	unsigned preferred_sockets;
	const uint8_t *socket_of_node; /* by dense node, below NODES_MAX; only with such a rule */
};

/* Whether the mask satisfies the demand. */
bool family_demand_met(const struct family_demand *d, struct nodeset mask);
/* Whether the mask follows the rule: within ground, with all of required, every demand met. */
bool family_in_rule(const struct family *f, struct nodeset mask);
/* Whether mask is one of the family's (FAMILY_CAPACITY only). */
bool family_has(const struct family *f, struct nodeset mask);
/* Whether a mask of the family is preferred. */
bool family_prefers(const struct family *f, struct nodeset mask);
/* The size of the smallest mask; 0 when there is none, or when *a is too small to find out. */
unsigned family_smallest(const struct family *f, struct arena *a);

/* Exactly what hint_merge_lists() gives for the families written out as lists, without writing
 * them out. 0; 1 when the visit budget ran out and *out is the best found until then (the same
 * one each time); -ENOMEM when the arena's limit is reached. */
int hint_merge_families(const struct hint_space *space, const struct family *families, size_t nr,
	struct arena *a, struct hint *out);

#endif
