#ifndef NUMAFIT_SEARCH_H
#define NUMAFIT_SEARCH_H

#include <numafit/arena.h>
#include <numafit/family.h>
#include <numafit/hint.h>

/* The best set of exactly k NUMA nodes that satisfies additive demands: branch and bound over
 * 64 nodes instead of listing all sets. Sets are visited in ascending order of their number
 * (highest node first), so the first one found at the best cost is the lowest of its equals. */

enum { SEARCH_DEMANDS = 32 };

struct search;

/* Room for searches over up to all nodes of the space and SEARCH_DEMANDS demands, from *a; one
 * after another may use it. NULL when the arena's limit is reached. */
struct search *search_new(const struct hint_space *space, struct arena *a);

/* What a set must satisfy, from the start again: subsets of ground. */
void search_begin(struct search *s, struct nodeset ground);
/* Add a demand; one that is there already counts once. false: there are too many. */
bool search_add(struct search *s, const struct family_demand *d);
/* Contain these nodes. false as above. */
bool search_require(struct search *s, struct nodeset nodes);
/* Add all that a family's ground, required and demands say; ground is intersected. */
bool search_add_family(struct search *s, const struct family *f);
/* And besides: possible(ctx, m) is asked of the widest set that is still open (false: no subset of
 * it will do), in the end of the set itself. It must be monotone. */
void search_limit(struct search *s, bool (*possible)(void *ctx, struct nodeset m), void *ctx);

/* The best set of k nodes into *best: the lowest-numbered, or with the space's distances the
 * closest. 0; -ENOENT: there is none; 1: the visit budget ran out, *best is the best so far (empty
 * when none was found). The budget is shared by all searches of one struct search. */
int search_best(struct search *s, unsigned k, struct nodeset *best);
/* The smallest k for which there is a set, 0 when there is none (or the budget ran out). */
unsigned search_smallest(struct search *s);

#endif
