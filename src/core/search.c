/* The best set of NUMA nodes for demands: what it must satisfy, and in which order an answer is
 * looked for. Tables are made (search_prepare.c), most questions are answered at once
 * (search_room.c), a greedy walk finds a good set (search_start.c), so that most branches of the
 * walk through all of them (search_walk.c) never begin. */
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
	s->apart = arena_array(a, s->width, sizeof *s->apart);
	if (space->distance)
		s->near = arena_array(a, s->width * s->width, sizeof *s->near);
	return s->apart && (s->near || !space->distance) ? s : NULL;
}

void search_begin(struct search *s, struct nodeset ground)
{
	s->ground = nodeset_and(ground, s->space->all);
	s->required = (struct nodeset){0};
	s->nr_rows = 0;
	s->possible = NULL;
	s->sockets_of = NULL;
	s->except = (struct nodeset){0};
	s->prepared_for = 0;
}

/* Few searches have more than a few rows, and each of them is large. */
static bool make_room_for_rows(struct search *s)
{
	enum { ROWS_AT_FIRST = 4 };
	unsigned cap = s->rows_cap ? 2 * s->rows_cap : ROWS_AT_FIRST;
	struct row *larger = arena_array(s->arena, cap, sizeof *larger);

	if (!larger)
		return false;
	if (s->rows_cap)
		memcpy(larger, s->row, s->rows_cap * sizeof *larger);
	s->row = larger;
	s->rows_cap = cap;
	return true;
}

static bool search_add_row(struct search *s, const struct family_demand *d)
{
	s->prepared_for = 0;
	for (unsigned i = 0; i < s->nr_rows; i++) {
		struct family_demand *known = &s->row[i].demand;

		if (known->weight == d->weight && known->cover == d->cover &&
			known->cores == d->cores) {
			if (d->need > known->need)
				known->need = d->need;
			return true;
		}
	}
	if (s->nr_rows == SEARCH_DEMANDS)
		return false;
	if (s->nr_rows == s->rows_cap && !make_room_for_rows(s))
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

	if (d->need <= d->base && !d->cores)
		return true;
	bare.need -= d->need < d->base ? d->need : d->base;
	bare.base = 0;
	return search_add_row(s, &bare);
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

bool search_touch(struct search *s, const uint64_t *sockets_of_node, unsigned nr)
{
	if (s->sockets_of && (s->sockets_of != sockets_of_node || s->nr_sockets != nr))
		return false;
	s->sockets_of = sockets_of_node;
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

		if (any.cores) /* more CPUs are not always better cores */
			return false;
		any.need = any.base = 0;
		if (!search_add_row(s, &any))
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

enum { START_FROM = 3 };          /* smaller sets are found at once */
#define NO_LIMIT (UINT64_MAX / 4) /* of a cost; twice as much is still a number */

/* Whether there may be sets of k nodes; *more: how many besides the required ones. */
static bool begin_size(struct search *s, unsigned k, unsigned *more)
{
	unsigned nr = nodeset_count(s->required);
	bool met = true; /* by the required nodes */

	if (!k || k < nr || !nodeset_within(s->required, s->ground))
		return false;
	*more = k - nr;
	search_prepare(s, *more);
	for (unsigned i = 0; i < s->nr_rows; i++)
		met = met && !s->row[i].need;
	return *more <= s->n && (*more || met);
}

int search_best(struct search *s, unsigned k, struct nodeset *best)
{
	struct nodeset start = {0};
	unsigned more;

	*best = s->best = (struct nodeset){0};
	s->limit = NO_LIMIT;
	if (!begin_size(s, k, &more) || search_room(s, s->n, more, best) == ROOM_NONE)
		return s->exhausted ? 1 : -ENOENT;
	if (!s->rows_are_all)
		*best = (struct nodeset){0};
	bool none_known = nodeset_empty(*best);
	if (s->closest && !none_known)
		s->limit = hint_distance_sum(s->space, *best);
	if (s->closest && more >= START_FROM)
		(void)search_start(s, more, &start);
	s->limit++; /* until a set as good is found in order */
	if (!s->exhausted)
		search_walk(s, more);
	if (s->exhausted && none_known && nodeset_empty(s->best) && nodeset_empty(start))
		(void)search_start(s, more, &start);
	if (!nodeset_empty(s->best))
		*best = s->best;
	else if (!nodeset_empty(start))
		*best = start;
	else if (!s->exhausted)
		*best = (struct nodeset){0};
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
			search_walk(s, more);
	}
	s->scoring = NULL;
	s->prepared_for = 0;
	*best = s->best;
	return s->exhausted;
}

/* No set of fewer nodes can have what each row asks for alone. */
static unsigned search_fewest(struct search *s)
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
		room = s->rows_are_all ? search_room(s, s->n, more, &found) : ROOM_UNKNOWN;
	if (room == ROOM_UNKNOWN)
		(void)search_best(s, k, &found);
	return !nodeset_empty(found);
}

unsigned search_smallest(struct search *s)
{
	unsigned low, high = nodeset_count(s->ground) + 1;

	s->any_will_do = true;
	s->prepared_for = 0;
	low = search_fewest(s);
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
