/* Branch and bound over sets of NUMA nodes. A set is built from its highest node down; a branch is
 * left when a demand cannot be met any more even by the largest nodes that are left, or when even
 * the nearest nodes that are left would lie farther apart than the best set known so far. The first
 * such set comes from a greedy walk (search_start.c), so that most branches never begin. */
#include "search_state.h"

#include <errno.h>
#include <string.h>

struct search *search_new(const struct hint_space *space, struct arena *a)
{
	struct search *s = arena_alloc(a, sizeof *s);

	if (!s)
		return NULL;
	s->space = space;
	s->arena = a;
	s->width = nodeset_count(space->all) + 1;
	if (!space->distance)
		return s;
	s->near = arena_array(a, s->width * s->width * (NEAR_DEPTH + 1), sizeof *s->near);
	return s->near ? s : NULL;
}

void search_begin(struct search *s, struct nodeset ground)
{
	s->ground = nodeset_and(ground, s->space->all);
	s->nr_rows = 0;
	s->possible = NULL;
	s->socket_of = NULL;
	s->except = (struct nodeset){0};
	s->prepared_for = 0;
}

static bool same_source(const struct row *r, const struct family_demand *d, struct nodeset required)
{
	return r->demand.weight == d->weight && r->demand.cover == d->cover &&
	       nodeset_equal(r->required, required);
}

static bool add_row(struct search *s, const struct family_demand *d, struct nodeset required)
{
	s->prepared_for = 0;
	for (unsigned i = 0; i < s->nr_rows; i++) {
		struct row *r = &s->row[i];

		if (same_source(r, d, required)) {
			r->need = d->need > r->need ? d->need : r->need;
			return true;
		}
	}
	if (s->nr_rows == SEARCH_DEMANDS)
		return false;
	struct row *r = &s->row[s->nr_rows];
	if (!r->top)
		r->top = arena_array(s->arena, s->width * s->width, sizeof *r->top);
	if (!r->top)
		return false;
	r->demand = *d;
	r->required = required;
	r->need = d->need;
	s->nr_rows++;
	return true;
}

bool search_add(struct search *s, const struct family_demand *d)
{
	struct family_demand bare = *d;

	if (d->need <= d->base)
		return true;
	bare.need -= d->base;
	bare.base = 0;
	return add_row(s, &bare, (struct nodeset){0});
}

bool search_require(struct search *s, struct nodeset nodes)
{
	const struct family_demand all = {.need = nodeset_count(nodes)};

	return nodeset_empty(nodes) || add_row(s, &all, nodes);
}

bool search_add_family(struct search *s, const struct family *f)
{
	s->ground = nodeset_and(s->ground, f->ground);
	s->prepared_for = 0;
	for (unsigned i = 0; i < f->nr_demands; i++)
		if (!search_add(s, &f->demand[i]))
			return false;
	return search_require(s, f->required);
}

bool search_touch(struct search *s, const uint8_t *socket_of_node, unsigned nr)
{
	if (s->socket_of && (s->socket_of != socket_of_node || s->nr_sockets != nr))
		return false;
	s->socket_of = socket_of_node;
	s->nr_sockets = nr;
	s->prepared_for = 0;
	return true;
}

void search_limit(struct search *s, bool (*possible)(void *ctx, struct nodeset m), void *ctx)
{
	s->possible = possible;
	s->ctx = ctx;
	s->prepared_for = 0;
}

void search_except(struct search *s, struct nodeset set)
{
	s->except = set;
	s->prepared_for = 0;
}

static bool spend(struct search *s, uint64_t visits)
{
	s->visits += visits;
	if (s->space->visit_budget && s->visits > s->space->visit_budget)
		s->exhausted = true;
	return !s->exhausted;
}

bool search_visit(struct search *s)
{
	return spend(s, 1);
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
	const uint16_t *sum = near_row(s, hi, q);
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

		if (c >= cheapest[left - 1])
			continue;
		if (!usable(s, q, lack))
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
static void choose(struct search *s, unsigned t, int by)
{
	for (unsigned i = 0; i < s->nr_rows; i++)
		s->row[i].sum += by > 0 ? s->row[i].weight[t] : -s->row[i].weight[t];
	for (unsigned q = 0; q < t && s->closest; q++)
		s->link[q] += by > 0 ? s->apart[q][t] : -s->apart[q][t];
}

/* Visits come in ascending order: of equally close sets the first one found stays. */
static bool accept(struct search *s, struct nodeset chosen, uint64_t cost)
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
	uint64_t owed; /* positions below that must be chosen too: they are better than one that is
			*/
};

/* The budget stands for time, and a bound takes as much of it as it compares numbers. */
enum { BOUND_PER_VISIT = 64 };

static unsigned highest(uint64_t bits)
{
	return bits ? NODES_MAX - 1 - (unsigned)__builtin_clzll(bits) : 0;
}

/* Choose `left` more positions below hi. True when the search is over. */
static bool descend(struct search *s, unsigned hi, unsigned left, struct branch b)
{
	unsigned lowest = highest(b.owed);

	if (!left)
		return b.cost < s->limit && accept(s, b.chosen, b.cost);
	for (unsigned t = lowest > left - 1 ? lowest : left - 1; t < hi; t++) {
		struct branch next = {
			.chosen = nodeset_or(b.chosen, nodeset_of(s->node[t])),
			.cost = b.cost + s->link[t],
			.owed = (b.owed & ~(UINT64_C(1) << t)) | s->better[t],
		};

		if (!spend(s, s->scoring ? 1 + s->scoring->nr : 1))
			return true;
		if (next.cost >= s->limit ||
			(next.owed && (unsigned)__builtin_popcountll(next.owed) >= left) ||
			!affordable(s, t, left) ||
			!search_fits(s, next.chosen, nodeset_or(next.chosen, s->below[t])) ||
			(s->scoring && !search_promises(s, next.chosen, t)))
			continue;
		choose(s, t, 1);
		bool over = false;
		(void)spend(s, t * left / BOUND_PER_VISIT);
		if (!s->closest || bound_twice(s, t, left - 1, next.cost) < 2 * s->limit)
			over = descend(s, t, left - 1, next);
		choose(s, t, -1);
		if (over)
			return true;
	}
	return false;
}

enum { START_FROM = 3 }; /* smaller sets are found at once */

int search_best(struct search *s, unsigned k, struct nodeset *best)
{
	struct nodeset start = {0};

	s->best = (struct nodeset){0};
	s->limit = UINT64_MAX / 2;
	search_prepare(s, k);
	if (k && k <= s->n) {
		if (s->closest && k >= START_FROM && search_start(s, k, &start))
			s->limit++; /* until a set as good is found in order */
		if (!s->exhausted)
			(void)descend(s, s->n, k, (struct branch){0});
		if (s->exhausted && nodeset_empty(s->best) && nodeset_empty(start))
			(void)search_start(s, k, &start);
	}
	*best = nodeset_empty(s->best) ? start : s->best;
	return s->exhausted ? 1 : nodeset_empty(*best) ? -ENOENT : 0;
}

int search_tied(struct search *s, const struct scoring *scoring, struct nodeset *best)
{
	unsigned k = nodeset_count(*best);

	s->best = *best;
	s->scoring = scoring;
	s->prepared_for = 0;
	search_prepare(s, k);
	s->limit = s->closest ? hint_distance_sum(s->space, *best) + 1 : 1;
	if (!search_prepare_scoring(s))
		s->exhausted = true;
	if (k <= s->n && !s->exhausted)
		(void)descend(s, s->n, k, (struct branch){0});
	s->scoring = NULL;
	s->prepared_for = 0;
	*best = s->best;
	return s->exhausted;
}

unsigned search_smallest(struct search *s)
{
	const unsigned n = nodeset_count(s->ground);
	struct nodeset found = {0};
	unsigned k = 0;

	s->any_will_do = true;
	s->prepared_for = 0;
	while (nodeset_empty(found) && k < n)
		(void)search_best(s, ++k, &found);
	s->any_will_do = false;
	s->prepared_for = 0;
	return nodeset_empty(found) ? 0 : k;
}
