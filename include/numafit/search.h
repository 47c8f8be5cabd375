#ifndef NUMAFIT_SEARCH_H
#define NUMAFIT_SEARCH_H

#include <numafit/arena.h>
#include <numafit/budget.h>
#include <numafit/family.h>
#include <numafit/hint.h>

/* The best set of exactly k NUMA nodes that satisfies demands: branch and bound over 64 nodes
 * instead of listing all sets. Sets are visited in ascending order of their number (highest node
 * first), so the first one found at the best cost is the lowest of its equals. */

enum { SEARCH_DEMANDS = 32 };

struct search;

/* Room for searches over up to all nodes of the space and SEARCH_DEMANDS demands, from *a; one
 * after another may use it, and all of them spend *b. NULL when the arena's limit is reached. */
struct search *search_new(const struct hint_space *space, struct budget *b, struct arena *a);

/* What a set must satisfy, from the start again: subsets of ground. */
void search_begin(struct search *s, struct nodeset ground);
/* Add a demand; one that is there already counts once. What it points to is borrowed. false: there
 * are too many. */
bool search_add(struct search *s, const struct family_demand *d);
/* Contain these nodes, too. */
void search_require(struct search *s, struct nodeset nodes);
/* Add all that a family's ground, required and demands say; ground is intersected. */
bool search_add_family(struct search *s, const struct family *f);
/* Touch exactly nr sockets (sockets_of_node as in struct family; borrowed). At most one
 * such rule for each search; false: there is another one already. */
bool search_touch(struct search *s, const uint64_t *sockets_of_node, unsigned nr);
/* And besides: possible(ctx, m) is asked of the widest set that is still open (false: no subset of
 * it will do), in the end of the set itself. It must be monotone. */
void search_limit(struct search *s, bool (*possible)(void *ctx, struct nodeset m), void *ctx);
/* That limit looks at nothing but what nodes bring to demands of such families: a set that is
 * possible stays so when a node is replaced by one that brings no less to any of them. False: it
 * does look at something else, and then this is not to be relied on. */
bool search_limit_by(struct search *s, const struct family *f);
/* Not this very set; until search_begin(). */
void search_except(struct search *s, struct nodeset set);

/* The best set of k nodes into *best: the lowest-numbered, or with the space's distances the
 * closest. 0; -ENOENT: there is none; 1: the budget ran out, *best is the best so far, or what a
 * greedy walk finds (empty when it finds none). */
int search_best(struct search *s, unsigned k, struct nodeset *best);
/* Replace *best, which no set beats by size and closeness, by the best that equals it there
 * (scoring_compare()). 0; 1: the budget ran out, *best is the best so far. */
int search_tied(struct search *s, const struct scoring *scoring, struct nodeset *best);
/* The smallest k for which a set is found, 0 when there is none. Once the budget has run out it may
 * be larger than need be. */
unsigned search_smallest(struct search *s);

/* Steps of the caller's own, as of possible(), count too. false: the budget has run out. */
bool search_spend(struct search *s, uint64_t steps);

#endif
