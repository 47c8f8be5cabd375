/* What a branch can still reach of what a strategy wants. The share allocated of several nodes
 * together lies between the least and the most allocated one's, so no set is wanted more than the
 * better one of what is chosen and the best single node that is left. */
#include "search_state.h"

/* Of two shares the one that is wanted more; 0 is none. */
static unsigned wanted(const struct scoring *s, unsigned a, unsigned b)
{
	return scoring_rank_of(s, a) >= scoring_rank_of(s, b) ? a : b;
}

static bool on_several_nodes(const struct family_demand *d)
{
	for (size_t i = 0; i < d->nr_covers; i++)
		if (nodeset_count(d->cover[i].nodes) > 1)
			return true;
	return false;
}

/* The share that the strategy would like best. Devices that lie on several nodes are not the sum of
 * what single nodes have: then there is no better bound. */
static unsigned ideal(const struct scoring *s)
{
	enum { LEAST = 1, MOST = 100 };

	return s->strategy == ALLOCATION_LEAST ? LEAST : MOST;
}

bool search_prepare_scoring(struct search *s)
{
	const struct scoring *by = s->scoring;

	s->share = arena_array(s->arena, s->width * by->nr, sizeof *s->share);
	if (!s->share)
		return false;
	s->rank = scoring_rank(by, s->best);
	for (size_t i = 0; i < by->nr; i++) {
		const struct family *f = &by->family[i];
		uint8_t *share = &s->share[i * s->width];
		unsigned best = on_several_nodes(&f->capacity) || on_several_nodes(&f->unallocated)
					? ideal(by)
					: 0;

		for (unsigned hi = 0; hi <= s->n; hi++) {
			share[hi] = (uint8_t)best;
			if (hi < s->n)
				best = wanted(by, best, family_share(f, nodeset_of(s->node[hi])));
		}
	}
	return true;
}

/* A family that has nothing on the chosen nodes may or may not take part in the mean. */
bool search_promises(const struct search *s, struct nodeset chosen, unsigned hi)
{
	const struct scoring *by = s->scoring;
	unsigned sum = 0, nr = 0, best = 0;
	bool all_say = true;

	for (size_t i = 0; i < by->nr; i++) {
		unsigned now = family_share(&by->family[i], chosen);
		unsigned reach = wanted(by, now, s->share[i * s->width + hi]);

		if (!reach)
			continue;
		all_say = all_say && now;
		best = wanted(by, best, reach);
		sum += reach;
		nr++;
	}
	unsigned rank = scoring_rank_of(by, nr && all_say ? sum / nr : best);

	return rank > s->rank || (rank == s->rank && chosen.bits <= s->best.bits);
}
