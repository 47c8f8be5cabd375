#ifndef NUMAFIT_CORE_DROPPING_H
#define NUMAFIT_CORE_DROPPING_H

#include <numafit/search.h>

/* Which sets come out of intersecting one mask of each of several families: a set does when each
 * node outside it can be dropped by one of the families, which has enough without it. */

enum { MERGE_FAMILIES = 64 };

/* What a family can still do without, while nodes are dropped. */
struct slack {
	const struct family *family;
	uint64_t spare[FAMILY_DEMANDS]; /* of demands by weight */
	struct nodeset kept;
};
struct dropping {
	struct search *search;
	unsigned nr;
	struct slack slack[MERGE_FAMILIES];
	struct nodeset common;     /* of the pattern's mask and all grounds */
	struct nodeset free;       /* nodes that some family can drop without missing them */
	uint64_t cost[NODES_MAX];  /* the least part of a family's slack that a node takes, in units
				      of 2^-20 */
	struct family_demand kept; /* what every set that is reached satisfies: the costs of all
				      other nodes together are no more than all slack */
	uint8_t order[NODES_MAX];  /* costly nodes first */
	unsigned nr_ordered;
	struct nodeset could;  /* all that could be dropped when last asked: so can less */
	unsigned steps;        /* left for one question */
	uint64_t cost_of_step; /* in steps of the budget */
	bool unsure;           /* they ran out: a yes is always right, such a no may be wrong */
};

/* Start with the nodes of mask and those families of family[] whose bits `which` has (at most
 * MERGE_FAMILIES, each satisfied by its whole ground): d->nr of them, and d->common, are known
 * then. The search counts the steps. */
void dropping_begin(struct dropping *d, struct search *search, struct nodeset mask,
	const struct family *const *family, uint64_t which);
/* What dropping_reaches() needs besides. */
void dropping_prepare(struct dropping *d);

/* Whether the families (ctx: a struct dropping) reach the set: for search_limit(). */
bool dropping_reaches(void *ctx, struct nodeset mask);

#endif
