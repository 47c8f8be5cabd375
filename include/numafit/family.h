#ifndef NUMAFIT_FAMILY_H
#define NUMAFIT_FAMILY_H

#include <numafit/arena.h>
#include <numafit/budget.h>
#include <numafit/cores.h>
#include <numafit/hint.h>

/* All hints of one resource by the rule that they follow, and merging such rules. In the kubelet
 * each resource names up to 2^n - 1 masks, and every combination of them is tried; a rule says the
 * same in a few numbers for each NUMA node. */

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
	const struct core_rows *cores; /* the mask's cores must have what these need as well; NULL:
					  it has no such rule. With weight */
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
	const uint64_t *sockets_of_node; /* by dense node, a bit for each socket that it has CPUs
					    of; only with such a rule */
	/* What there is of the resource, and what of it is free (on no node more than that), for a
	 * strategy: as a demand's weight or cover. Zeros: the family cannot say. */
	struct family_demand capacity, unallocated;
};

/* What the mask brings. */
uint64_t family_demand_sum(const struct family_demand *d, struct nodeset mask);
/* Whether the mask satisfies the demand. */
bool family_demand_met(const struct family_demand *d, struct nodeset mask);
/* Whether the mask follows the rule: within ground, with all of required, every demand met. */
bool family_in_rule(const struct family *f, struct nodeset mask);
/* Whether mask is one of the family's (FAMILY_CAPACITY only). */
bool family_has(const struct family *f, struct nodeset mask);
/* Whether it is a FAMILY_CAPACITY without any mask. */
bool family_is_empty(const struct family *f);
/* How many sockets the mask touches; sockets_of_node as in struct family. */
unsigned family_sockets(const uint64_t *sockets_of_node, struct nodeset mask);
/* Whether a mask of the family is preferred. */
bool family_prefers(const struct family *f, struct nodeset mask);
/* The size of the smallest mask; 0 when there is none, or when *a is too small to find out. Once
 * the budget has run out it may be larger than need be. */
unsigned family_smallest(const struct family *f, struct budget *b, struct arena *a);

/* numa-allocation-strategy among these families (KEP-6007; Kubernetes has it in 1.38 at the
 * earliest): of sets that are equal in preference, size and, with distances, closeness, the one on
 * which most, or least, is allocated. The KEP scores each hint and then each combination; here the
 * score is that of the set which comes out, the same thing for a preferred one. */
struct scoring {
	enum allocation_strategy strategy;
	const struct family *family;
	size_t nr;
};
/* The share of the family's resource on the mask's nodes that is allocated: 1 to 100 per cent, less
 * than 1 counts as 1. 0: it cannot say, or has nothing there. */
unsigned family_share(const struct family *f, struct nodeset mask);
/* How much the strategy wants a set of which that percentage is allocated: more is better, and 0
 * (no family can say) is the worst. */
unsigned scoring_rank_of(const struct scoring *s, unsigned share);
/* The rank of the mask: by the mean of what the families say, rounded down. */
unsigned scoring_rank(const struct scoring *s, struct nodeset mask);
/* By fit, then rank, then the smaller number. Negative when a is the better one. */
int scoring_compare(const struct hint_space *space, const struct scoring *s, struct nodeset a,
	struct nodeset b);

/* The best of all ways to take one mask of every family, by the kubelet's compare(), without trying
 * them; a strategy decides between equals. The order of the families means nothing. No family at
 * all: all nodes, preferred. Nothing in common: all nodes, not preferred. An extra mask may hold
 * nodes that the space lacks; they count until masks are intersected. 0; MERGE_CUT when the budget
 * ran out and *out is the best found until then (the same one each time), or
 * MERGE_CUT_NOT_PREFERRED when it is certain all the same that nothing preferred comes out; -ENOMEM
 * when the arena's limit is reached. */
enum { MERGE_CUT = 1, MERGE_CUT_NOT_PREFERRED = 2 };
int hint_merge_families(const struct hint_space *space, const struct family *families, size_t nr,
	struct budget *b, struct arena *a, struct hint *out);

/* The best result on other nodes than `taken`: what would have come out had that not been there.
 * -ENOENT: there is none; else as above, but cut *out may be any result, or an empty mask. */
int hint_merge_others(const struct hint_space *space, const struct family *families, size_t nr,
	struct nodeset taken, struct budget *b, struct arena *a, struct hint *out);

#endif
