#ifndef NUMAFIT_REASONS_H
#define NUMAFIT_REASONS_H

#include <numafit/policy.h>

/* Why a merge came out as it did, as data: what each resource had to offer, what was chosen, what
 * would have been next. Made after the merge and beside it: nothing here changes an answer. */

enum { REASONS_BEST = 3, REASONS_RESOURCES = 1 + TOPO_KINDS + 16, REASONS_NAME_MAX = 48 };

/* One resource. */
struct reasons_resource {
	char resource[REASONS_NAME_MAX];
	enum family_kind kind;
	uint64_t masks;    /* how many sets of NUMA nodes would do; with more_masks at least that */
	bool more_masks;   /* counting stopped at its bound */
	unsigned smallest; /* fewest NUMA nodes that have enough of it free; 0: none have. With
			      more_masks perhaps fewer would do */
	unsigned preferred_size; /* fewest that could, were all of it free */
	unsigned nr_best;
	struct nodeset best[REASONS_BEST]; /* its own best masks, best first: of the smallest size,
					      by the space's order without a strategy; with
					      more_masks there may be more than are listed */
};

struct reasons {
	unsigned nr;
	struct reasons_resource resource[REASONS_RESOURCES]; /* in the order of the families */
	struct hint affinity;                                /* what the merge chose */
	bool admit;                                          /* the policy's verdict on it */
	bool cut_short;        /* a search for the decision ran out of mergeVisitBudget */
	bool has_runner_up;    /* false: there is none, or it was not found within the bound */
	struct hint runner_up; /* the best result on other nodes that some combination of hints
				  gives */
};

/* The reasons of that answer, from *a. NULL when the arena's limit is reached, or when the policy
 * merges nothing (none). cut_short: the answer is the best that was found until the
 * budget ran out. Of more families than REASONS_RESOURCES the first ones are described. Each
 * description takes a few thousand of the steps that *b has aside, or as many as are left. Up to 12
 * nodes that is enough to count all masks. */
const struct reasons *reasons_of(enum topology_policy policy, const struct hint_space *space,
	const struct family *families, size_t nr, const struct policy_answer *answer,
	bool cut_short, struct budget *b, struct arena *a);

#endif
