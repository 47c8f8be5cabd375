#ifndef NUMAFIT_BUDGET_H
#define NUMAFIT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* The steps that one event may take to find its answer. The receiver of the event makes one budget
 * and hands it down to every search: however many containers the event is about, and however many
 * searches each of them takes, they end together. A step is about what looking at one set of NUMA
 * nodes takes; what takes longer spends more of them. Steps are counted and time is not, so that
 * the same event on the same state always ends at the same place.
 *
 * A search whose steps are spent answers with the best that it has found, and sets `cut`. Saying
 * why an answer came out as it did has steps of its own, so that neither starves the other. */

struct budget {
	bool endless; /* steps are not counted */
	bool cut;     /* some search had fewer steps than it needed */
	uint64_t given, left;
	uint64_t given_aside, aside; /* the same for saying why */
};

/* A budget of that many steps, an eighth of them set aside for saying why; 0: an endless one. */
struct budget budget_of(uint64_t steps);

/* One without an aside; at least one step. */
struct budget budget_all_of(uint64_t steps);

/* Spend the steps. false, and `cut` is set: there are fewer left, and now none. */
static inline bool budget_spend(struct budget *b, uint64_t steps)
{
	if (b->endless)
		return true;
	if (steps > b->left) {
		b->left = 0;
		b->cut = true;
		return false;
	}
	b->left -= steps;
	return true;
}

/* What the i-th of nr equals that come one after the other may spend: half of the budget is set
 * aside for all of them in equal parts, the other half is for those that need more, first come
 * first served. So one that is hard may have more than half of it all, and the last has its part.
 * Give what is left back with budget_return() before the next is dealt with. */
struct budget budget_share(const struct budget *of, unsigned nr, unsigned i);
/* So many parts of what is left, of which there are `all`. */
struct budget budget_part(const struct budget *of, unsigned parts, unsigned all);
/* Take at most that many of the steps set aside for saying why. */
struct budget budget_take_aside(struct budget *of, uint64_t most);

/* What the part has spent is spent; when it was cut, so is the whole. */
void budget_return(struct budget *of, const struct budget *part);
/* Give back what is left of one from budget_take_aside(); it cuts nothing. */
void budget_return_aside(struct budget *of, const struct budget *part);

#endif
