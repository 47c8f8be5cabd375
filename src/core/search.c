/* Branch and bound over sets of NUMA nodes. A set is built from its highest node down; a branch is
 * left when a demand cannot be met any more even by the largest nodes that are left, or when even
 * the nearest nodes that are left would lie farther apart than the best set known so far. The first
 * such set comes from a greedy walk (search_start.c), so that most branches never begin. */
#include "search_state.h"

#include <errno.h>
#include <string.h>

struct search *search_new(const struct hint_space *space, struct budget *b, struct arena *a)
{
	struct search *s = arena_alloc(a, sizeof *s);

	if (!s)
		return NULL;
	s->space = space;
	s->budget = b;
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
	s->required = (struct nodeset){0};
	s->nr_rows = 0;
	s->possible = NULL;
	s->socket_of = NULL;
	s->except = (struct nodeset){0};
	s->prepared_for = 0;
}

static bool add_row(struct search *s, const struct family_demand *d)
{
	s->prepared_for = 0;
	for (unsigned i = 0; i < s->nr_rows; i++) {
		struct family_demand *known = &s->row[i].demand;

		if (known->weight == d->weight && known->cover == d->cover) {
			if (d->need > known->need)
				known->need = d->need;
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
	return add_row(s, &bare);
}

void search_require(struct search *s, struct nodeset nodes)
{
	s->required = nodeset_or(s->required, nodes);
	s->prepared_for = 0;
}

bool search_add_family(struct search *s, const struct family *f)
{
	s->ground = nodeset_and(s->ground, f->ground);
	s->prepared_for = 0;
	for (unsigned i = 0; i < f->nr_demands; i++)
		if (!search_add(s, &f->demand[i]))
			return false;
	search_require(s, f->required);
	return true;
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
	s->limit_by_rows = false;
	s->prepared_for = 0;
}

bool search_limit_by(struct search *s, const struct family *f)
{
	for (unsigned i = 0; i < f->nr_demands; i++) {
		struct family_demand any = f->demand[i];

		any.need = any.base = 0;
		if (!add_row(s, &any))
			return false;
	}
	s->limit_by_rows = true;
	return nodeset_empty(f->required);
}

void search_except(struct search *s, struct nodeset set)
{
	s->except = set;
	s->prepared_for = 0;
}

bool search_spend(struct search *s, uint64_t steps)
{
	if (!budget_spend(s->budget, steps))
		s->exhausted = true;
	return !s->exhausted;
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
	for (unsigned i = 0; i < s->nr_rows; i++) {
		struct row *r = &s->row[i];

		r->sum += by > 0 ? r->weight[t] : -r->weight[t];
		r->parts += by > 0 ? r->part[t] : -r->part[t];
	}
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

/* The lowest position below hi that may be the highest of `left` more. */
static unsigned first_position(struct search *s, unsigned hi, unsigned left, uint64_t owed)
{
	unsigned first = highest(owed), room = left - 1;

	if (s->nr_rows > 1 && !s->closest)
		room = search_lowest_room(s, hi, left);
	return first > room ? first : room;
}

/* Choose `left` more positions below hi. True when the search is over. */
static bool descend(struct search *s, unsigned hi, unsigned left, struct branch b)
{
	if (!left)
		return b.cost < s->limit && accept(s, b.chosen, b.cost);
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
			!search_fits(s, next.chosen, nodeset_or(next.chosen, s->below[t])) ||
			(s->scoring && !search_promises(s, next.chosen, t)))
			continue;
		choose(s, t, 1);
		bool over = false;
		(void)search_spend(s, t * left / BOUND_PER_VISIT);
		if (!s->closest || bound_twice(s, t, left - 1, next.cost) < 2 * s->limit)
			over = descend(s, t, left - 1, next);
		choose(s, t, -1);
		if (over)
			return true;
	}
	return false;
}

enum { START_FROM = 3 };          /* smaller sets are found at once */
#define NO_LIMIT (UINT64_MAX / 4) /* of a cost; twice as much is still a number */

static bool is_met(const struct search *s)
{
	for (unsigned i = 0; i < s->nr_rows; i++)
		if (s->row[i].need)
			return false;
	return true;
}

/* Whether there may be sets of k nodes; *more: how many besides the required ones. */
static bool begin_size(struct search *s, unsigned k, unsigned *more)
{
	unsigned nr = nodeset_count(s->required);

	if (!k || k < nr || !nodeset_within(s->required, s->ground))
		return false;
	*more = k - nr;
	search_prepare(s, *more);
	return *more <= s->n && (*more || is_met(s));
}

static void run(struct search *s, unsigned more)
{
	(void)descend(s, s->n, more, (struct branch){.chosen = s->required, .cost = s->cost});
}

/* Whether the rows are all that a set must satisfy. */
static bool rows_are_all(const struct search *s)
{
	return !s->overlaps && !s->socket_of && !s->possible && nodeset_empty(s->except);
}

/* Some set of so many nodes more that satisfies the rows. */
static enum room find_any(struct search *s, unsigned more, struct nodeset *any)
{
	enum room room = search_room(s, s->n, more, any);

	if (room == ROOM_FOUND)
		*any = nodeset_or(*any, s->required);
	return room;
}

/* The best set by *best, which is any one that is known already, or none. */
static void improve(struct search *s, unsigned more, struct nodeset *best)
{
	struct nodeset start = {0};

	if (s->closest && !nodeset_empty(*best))
		s->limit = hint_distance_sum(s->space, *best);
	if (s->closest && more >= START_FROM)
		(void)search_start(s, more, &start);
	s->limit++; /* until a set as good is found in order */
	if (!s->exhausted)
		run(s, more);
	if (s->exhausted && nodeset_empty(s->best) && nodeset_empty(start) && nodeset_empty(*best))
		(void)search_start(s, more, &start);
	if (!nodeset_empty(s->best))
		*best = s->best;
	else if (!nodeset_empty(start))
		*best = start;
	else if (!s->exhausted)
		*best = (struct nodeset){0};
}

int search_best(struct search *s, unsigned k, struct nodeset *best)
{
	unsigned more;

	*best = (struct nodeset){0};
	s->best = (struct nodeset){0};
	s->limit = NO_LIMIT;
	if (!begin_size(s, k, &more) || find_any(s, more, best) == ROOM_NONE)
		return s->exhausted ? 1 : -ENOENT;
	if (!rows_are_all(s))
		*best = (struct nodeset){0};
	improve(s, more, best);
	return s->exhausted ? 1 : nodeset_empty(*best) ? -ENOENT : 0;
}

int search_tied(struct search *s, const struct scoring *scoring, struct nodeset *best)
{
	unsigned more;

	s->best = *best;
	s->scoring = scoring;
	s->prepared_for = 0;
	if (begin_size(s, nodeset_count(*best), &more)) {
		s->limit = s->closest ? hint_distance_sum(s->space, *best) + 1 : NO_LIMIT;
		if (!search_prepare_scoring(s))
			s->exhausted = true;
		if (!s->exhausted)
			run(s, more);
	}
	s->scoring = NULL;
	s->prepared_for = 0;
	*best = s->best;
	return s->exhausted;
}

/* No set of fewer nodes can have what each row asks for alone. */
static unsigned fewest(struct search *s)
{
	unsigned least = nodeset_count(s->required), n = nodeset_count(s->ground);
	unsigned k = least ? least : 1;

	search_prepare(s, n);
	for (unsigned i = 0; i < s->nr_rows; i++) {
		const struct row *r = &s->row[i];

		while (k - least < s->n && r->top[s->n * s->width + (k - least)] < r->need)
			k++;
	}
	return k;
}

/* Whether sets of k nodes are found; with what steps there are. */
static bool find_size(struct search *s, unsigned k)
{
	struct nodeset found = {0};
	enum room room = ROOM_NONE;
	unsigned more;

	if (begin_size(s, k, &more))
		room = rows_are_all(s) ? find_any(s, more, &found) : ROOM_UNKNOWN;
	if (room == ROOM_UNKNOWN)
		(void)search_best(s, k, &found);
	return !nodeset_empty(found);
}

unsigned search_smallest(struct search *s)
{
	unsigned low, high = nodeset_count(s->ground) + 1;

	s->any_will_do = true;
	s->prepared_for = 0;
	low = fewest(s);
	while (low < high && !s->exhausted && !find_size(s, low))
		low++;
	while (s->exhausted && low < high) { /* no more than a few of them */
		unsigned middle = (low + high) / 2;

		if (find_size(s, middle))
			high = middle;
		else
			low = middle + 1;
	}
	s->any_will_do = false;
	s->prepared_for = 0;
	return low <= nodeset_count(s->ground) ? low : 0;
}
