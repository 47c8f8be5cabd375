/* Branch and bound over sets of NUMA nodes. A set is built from its highest node down; a branch is
 * left when a demand cannot be met any more even by the largest nodes that are left, or when even
 * the nearest nodes that are left would lie farther apart than the best set known so far. */
#include "search_state.h"

/* What rows do not see: devices on several nodes, sockets, the caller's own limit. wide: the
 * widest set that a branch can still reach; chosen: what it has for certain. */
static bool may_fit(const struct search *s, struct nodeset chosen, struct nodeset wide)
{
	for (unsigned i = 0; s->overlaps && i < s->nr_rows; i++)
		if (s->row[i].overlaps && !family_demand_met(&s->row[i].demand, wide))
			return false;
	if (s->sockets_of && (family_sockets(s->sockets_of, chosen) > s->nr_sockets ||
				     family_sockets(s->sockets_of, wide) < s->nr_sockets))
		return false;
	return !s->possible || s->possible(s->ctx, wide);
}

bool search_accepts(const struct search *s, struct nodeset m)
{
	return !nodeset_equal(m, s->except) && may_fit(s, m, m);
}

/* Of two shares the one that is wanted more; 0 is none. */
static unsigned wanted_share(const struct scoring *s, unsigned a, unsigned b)
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

bool search_prepare_scoring(struct search *s)
{
	enum { LEAST = 1, MOST = 100 };
	const struct scoring *by = s->scoring;

	s->share = arena_array(s->arena, s->width * by->nr, sizeof *s->share);
	if (!s->share)
		return false;
	s->rank = scoring_rank(by, s->best);
	for (size_t i = 0; i < by->nr; i++) {
		const struct family *f = &by->family[i];
		uint8_t *share = &s->share[i * s->width];
		unsigned best = 0;

		/* devices that lie on several nodes are not the sum of what single nodes have: then
		 * there is no better bound than the share that the strategy would like best */
		if (on_several_nodes(&f->capacity) || on_several_nodes(&f->unallocated))
			best = by->strategy == ALLOCATION_LEAST ? LEAST : MOST;

		for (unsigned hi = 0; hi <= s->n; hi++) {
			share[hi] = (uint8_t)best;
			if (hi < s->n)
				best = wanted_share(
					by, best, family_share(f, nodeset_of(s->node[hi])));
		}
	}
	return true;
}

/* Whether the chosen nodes and some of those at positions below hi may yet beat the best set by the
 * scoring. The share allocated of several nodes together lies between the least and the most
 * allocated one's, so no set is wanted more than the better one of what is chosen and the best
 * single node that is left. A family that has nothing on the chosen nodes may or may not take part
 * in the mean. */
static bool may_outrank(const struct search *s, struct nodeset chosen, unsigned hi)
{
	const struct scoring *by = s->scoring;
	unsigned sum = 0, nr = 0, best = 0;
	bool all_say = true;

	for (size_t i = 0; i < by->nr; i++) {
		unsigned now = family_share(&by->family[i], chosen);
		unsigned reach = wanted_share(by, now, s->share[i * s->width + hi]);

		if (!reach)
			continue;
		all_say = all_say && now;
		best = wanted_share(by, best, reach);
		sum += reach;
		nr++;
	}
	unsigned rank = scoring_rank_of(by, nr && all_say ? sum / nr : best);

	return rank > s->rank || (rank == s->rank && chosen.bits <= s->best.bits);
}

/* Whether position t and left - 1 of those below it can meet every demand. */
static bool affordable(const struct search *s, unsigned t, unsigned left)
{
	for (unsigned i = 0; i < s->nr_rows; i++) {
		const struct row *r = &s->row[i];

		if (r->sum + r->weight[t] + r->top[t * s->width + left - 1] < r->need)
			return false;
	}
	return true;
}

/* Whether position q can be one of `left` positions below hi that complete the chosen ones. */
static bool usable(const struct search *s, unsigned q, const uint64_t *lack)
{
	for (unsigned i = 0; i < s->nr_rows; i++)
		if (s->row[i].weight[q] < lack[i])
			return false;
	return true;
}

/* No more than the distances of position q to `others` positions below hi: beyond the depth of the
 * table each is no nearer than the last one in it. */
static uint32_t near_sum(const struct search *s, unsigned hi, unsigned q, unsigned others)
{
	const uint16_t *sum = s->near[hi * s->width + q];
	unsigned depth = s->near_depth;

	if (others <= depth)
		return sum[others];
	return sum[depth] + (others - depth) * (uint32_t)(sum[depth] - sum[depth - 1]);
}

/* No more than twice what the cost will be once `left` positions below hi have joined the chosen
 * ones: the cheapest by their links to the chosen, and half of their cheapest links to each other.
 * UINT64_MAX: fewer than that can. */
static uint64_t bound_twice(const struct search *s, unsigned hi, unsigned left, uint64_t cost)
{
	uint64_t lack[SEARCH_DEMANDS];
	uint32_t cheapest[NODES_MAX];
	uint64_t sum = 2 * cost;
	unsigned nr = 0;

	if (!left)
		return sum;
	for (unsigned i = 0; i < s->nr_rows; i++) {
		const struct row *r = &s->row[i];
		uint64_t others = r->sum + r->top[hi * s->width + left - 1];

		lack[i] = others < r->need ? r->need - others : 0;
	}
	for (unsigned i = 0; i < left; i++)
		cheapest[i] = UINT32_MAX;
	for (unsigned q = 0; q < hi; q++) {
		uint32_t c = 2 * s->link[q] + near_sum(s, hi, q, left - 1);
		unsigned at = nr;

		if (c >= cheapest[left - 1] || !usable(s, q, lack))
			continue;
		if (nr < left)
			nr++;
		else
			at--;
		for (; at > 0 && cheapest[at - 1] > c; at--)
			cheapest[at] = cheapest[at - 1];
		cheapest[at] = c;
	}
	for (unsigned i = 0; i < nr; i++)
		sum += cheapest[i];
	return nr < left ? UINT64_MAX : sum;
}

/* Put position t among the chosen ones, or (by = -1) take it out again. */
static void choose_position(struct search *s, unsigned t, int by)
{
	for (unsigned i = 0; i < s->nr_rows; i++) {
		struct row *r = &s->row[i];

		r->sum += by > 0 ? r->weight[t] : -r->weight[t];
		r->parts += by > 0 ? r->part[t] : -r->part[t];
	}
	for (unsigned q = 0; q < t && s->closest; q++)
		s->link[q] += by > 0 ? s->apart[q][t] : -s->apart[q][t];
}

/* Visits come in ascending order: of equally close sets the first one found stays. */
static bool accept_set(struct search *s, struct nodeset chosen, uint64_t cost)
{
	if (!search_accepts(s, chosen))
		return false;
	if (s->scoring) {
		if (scoring_compare(s->space, s->scoring, chosen, s->best) < 0) {
			s->best = chosen;
			s->rank = scoring_rank(s->scoring, chosen);
		}
		return false;
	}
	s->best = chosen;
	s->limit = cost;
	return !s->closest;
}

/* A set of chosen positions on its way down. */
struct branch {
	struct nodeset chosen;
	uint64_t cost;
	uint64_t owed; /* positions below that are better than a chosen one, and must be, too */
};

/* The budget stands for time, and a bound takes as much of it as it compares numbers. */
enum { BOUND_PER_VISIT = 64 };

/* No set of `left` positions (at least 1) below hi that has room has its highest one below that;
 * hi: there is no such set. */
static unsigned lowest_room(struct search *s, unsigned hi, unsigned left)
{
	struct nodeset found;
	unsigned none = left - 1, some = hi;

	if (search_room(s, hi, left, &found) == ROOM_NONE)
		return hi;
	while (some - none > 1) {
		unsigned middle = (none + some) / 2;

		if (search_room(s, middle, left, &found) == ROOM_NONE)
			none = middle;
		else
			some = middle;
	}
	return some - 1;
}

/* The lowest position below hi that may be the highest of `left` more. */
static unsigned first_position(struct search *s, unsigned hi, unsigned left, uint64_t owed)
{
	unsigned first = owed ? NODES_MAX - 1 - (unsigned)__builtin_clzll(owed) : 0;
	unsigned room = left - 1;

	if (s->nr_rows > 1 && !s->closest)
		room = lowest_room(s, hi, left);
	return first > room ? first : room;
}

/* Choose `left` more positions below hi. True when the search is over. */
static bool descend(struct search *s, unsigned hi, unsigned left, struct branch b)
{
	if (!left)
		return b.cost < s->limit && accept_set(s, b.chosen, b.cost);
	for (unsigned t = first_position(s, hi, left, b.owed); t < hi; t++) {
		struct branch next = {
			.chosen = nodeset_or(b.chosen, nodeset_of(s->node[t])),
			.cost = b.cost + s->link[t],
			.owed = (b.owed & ~(UINT64_C(1) << t)) | s->better[t],
		};

		if (!search_spend(s, s->visit_steps))
			return true;
		if (next.cost >= s->limit ||
			(next.owed && (unsigned)__builtin_popcountll(next.owed) >= left) ||
			!affordable(s, t, left) ||
			!may_fit(s, next.chosen, nodeset_or(next.chosen, s->below[t])) ||
			(s->scoring && !may_outrank(s, next.chosen, t)))
			continue;
		choose_position(s, t, 1);
		bool over = false;
		(void)search_spend(s, t * left / BOUND_PER_VISIT);
		if (!s->closest || bound_twice(s, t, left - 1, next.cost) < 2 * s->limit)
			over = descend(s, t, left - 1, next);
		choose_position(s, t, -1);
		if (over)
			return true;
	}
	return false;
}

void search_walk(struct search *s, unsigned more)
{
	(void)descend(s, s->n, more, (struct branch){.chosen = s->required, .cost = s->cost});
}
