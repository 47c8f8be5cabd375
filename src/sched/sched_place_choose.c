/* Which NUMA nodes one part of a pod gets: as few as each of its resources would need on an empty
 * node (a hint is preferred when it has just as many, and a merge when all hints are), and the best
 * of those.
 *
 * The searches and the order of sets are core's; its merge of families is not called, as it answers
 * another question: without a preferred set it intersects hints, which may leave nodes that lack
 * room, where a scheduler asks for the fewest that have it, and it does not say whether an empty
 * node would do. It also holds each kind of memory as a family of its own with up to FAMILY_DEMANDS
 * demands, and pods may ask for more kinds of devices than that. */
#include "sched_place_state.h"

#include <numafit/search.h>

enum { WORK_BYTES = 1 << 20 };

/* How few zones an empty node would need. */

bool walk_is_demand(const struct sched_walk *w, const struct want *want)
{
	return want->need && w->column[want->column].listed;
}

/* The fewest of the nodes that have so much together; none: not even all of them have. */
static struct nodeset fewest_nodes_with(
	const struct sched_walk *w, const uint64_t *have, struct nodeset among, uint64_t need)
{
	struct nodeset chosen = {0};

	while (need) {
		unsigned best = nodeset_next(among, 0);

		nodeset_each (i, among)
			best = have[i] > have[best] ? i : best;
		if (best >= w->n || !have[best])
			return (struct nodeset){0};
		need -= have[best] < need ? have[best] : need;
		chosen = nodeset_or(chosen, nodeset_of(best));
		among = nodeset_minus(among, chosen);
	}
	return chosen;
}

static struct arena *work_of(struct sched_walk *w, struct arena *a)
{
	if (!w->work)
		w->work = xcalloc(1, WORK_BYTES);
	arena_init_fixed(a, w->work, WORK_BYTES);
	return a;
}

static bool is_of_memory(const struct sched_walk *w, const struct want *want)
{
	return walk_is_demand(w, want) && w->column[want->column].way == WAY_MEMORY;
}

/* How many nodes have all its memory at once; where none of its kinds needs more than some and
 * nodes are alike, these have the others, too. */
static unsigned fewest_for_memory(
	struct sched_walk *w, const struct part *p, struct nodeset for_one_kind)
{
	struct family *f = &w->memory;
	struct arena a;

	f->ground = w->space.all;
	f->nr_demands = 0;
	for (unsigned i = 0; i < p->nr; i++) {
		if (!is_of_memory(w, &p->want[i]))
			continue;
		if (f->nr_demands == FAMILY_DEMANDS)
			return 0;
		f->demand[f->nr_demands++] = (struct family_demand){
			.weight = w->column[p->want[i].column].total, .need = p->want[i].need};
	}
	if (family_in_rule(f, for_one_kind))
		return nodeset_count(for_one_kind);
	return family_smallest(f, w->budget, work_of(w, &a));
}

/* What the resources need, each for itself. */
struct sizes {
	unsigned least, most; /* 0, 0: nothing matters */
	bool never;           /* one needs more than there is */
	bool memory;
};

static void add_size(struct sizes *s, unsigned size)
{
	s->never = s->never || !size;
	s->least = !s->least || size < s->least ? size : s->least;
	s->most = size > s->most ? size : s->most;
}

static struct sizes sizes_of(struct sched_walk *w, const struct part *p)
{
	struct nodeset for_memory = {0};
	struct sizes s = {0};

	for (unsigned i = 0; i < p->nr; i++) {
		const struct column *c = &w->column[p->want[i].column];

		if (!walk_is_demand(w, &p->want[i]))
			continue;
		struct nodeset nodes =
			fewest_nodes_with(w, c->total, w->space.all, p->want[i].need);

		if (c->way != WAY_MEMORY || nodeset_empty(nodes))
			add_size(&s, nodeset_count(nodes));
		else if (nodeset_count(nodes) > nodeset_count(for_memory))
			for_memory = nodes;
	}
	s.memory = !nodeset_empty(for_memory);
	if (s.memory && !s.never)
		add_size(&s, fewest_for_memory(w, p, for_memory));
	return s;
}

/* The best set of so many zones. */

bool walk_has_all(const struct sched_walk *w, const struct part *p, struct nodeset mask)
{
	for (unsigned i = 0; i < p->nr; i++) {
		const struct column *c = &w->column[p->want[i].column];
		uint64_t sum = 0;

		if (!walk_is_demand(w, &p->want[i]))
			continue;
		nodeset_each (n, mask)
			sum += c->free[n];
		if (sum < p->want[i].need)
			return false;
	}
	return true;
}

/* Where things are that are to be taken over from init containers. */
static struct nodeset nodes_with_reusable(const struct sched_walk *w, const struct part *p)
{
	struct nodeset nodes = {0};

	for (unsigned i = 0; i < p->nr; i++) {
		const struct column *c = &w->column[p->want[i].column];

		for (unsigned n = 0; n < w->n && walk_is_demand(w, &p->want[i]); n++)
			if (c->reusable[n])
				nodes = nodeset_or(nodes, nodeset_of(n));
	}
	return nodes;
}

static void keep_better_mask(
	struct sched_walk *w, const struct part *p, struct nodeset mask, struct nodeset *best)
{
	if (nodeset_within(nodes_with_reusable(w, p), mask) && walk_has_all(w, p, mask) &&
		(nodeset_empty(*best) || hint_compare_masks(&w->space, mask, *best) < 0))
		*best = mask;
}

/* One zone, or several whose memory serves containers together. */
static void best_group(struct sched_walk *w, const struct part *p, const struct sizes *sizes,
	unsigned size, struct nodeset *best)
{
	for (unsigned n = 0; n < w->n; n++) {
		struct nodeset mask = sizes->memory ? w->group[n] : (struct nodeset){0};

		if (nodeset_empty(mask))
			mask = nodeset_of(n);
		if (nodeset_count(mask) == size)
			keep_better_mask(w, p, mask, best);
	}
}

/* Several zones that may be joined. */
static void best_joined(struct sched_walk *w, const struct part *p, const struct sizes *sizes,
	unsigned size, struct nodeset *best)
{
	struct nodeset ground = {0}, found;
	struct arena a;

	for (unsigned n = 0; n < w->n; n++)
		if (!sizes->memory || nodeset_empty(w->group[n]))
			ground = nodeset_or(ground, nodeset_of(n));
	for (unsigned i = 0; i < p->nr; i++) { /* spares most searches */
		const struct want *want = &p->want[i];
		struct nodeset nodes =
			fewest_nodes_with(w, w->column[want->column].free, ground, want->need);

		if (walk_is_demand(w, want) &&
			(nodeset_empty(nodes) || nodeset_count(nodes) > size))
			return;
	}
	struct search *s = search_new(&w->space, w->budget, work_of(w, &a));
	if (!s)
		return;
	search_begin(s, ground);
	search_require(s, nodes_with_reusable(w, p));
	for (unsigned i = 0; i < p->nr; i++)
		if (walk_is_demand(w, &p->want[i]) &&
			!search_add(s,
				&(struct family_demand){.weight = w->column[p->want[i].column].free,
					.need = p->want[i].need}))
			return;
	(void)search_best(s, size, &found);
	if (!nodeset_empty(found))
		keep_better_mask(w, p, found, best);
}

/* The choice */

static void load_distances(struct sched_walk *w)
{
	for (unsigned a = 0; a < w->n; a++)
		for (unsigned b = 0; b < w->n; b++) {
			int32_t cost = w->t->cost[w->place[a] * w->n + w->place[b]];

			w->distance[a][b] = (uint8_t)(cost < 0                   ? 0
						      : cost > ZONE_COST_UNKNOWN ? ZONE_COST_UNKNOWN
										 : cost);
		}
	w->space.distance = w->distance;
}

enum sched_walk_answer walk_choose(struct sched_walk *w, struct part *p, bool closest)
{
	enum topology_policy policy = w->t->policy;
	const struct sizes sizes = sizes_of(w, p);
	unsigned most = w->n;

	if (!sizes.most && !sizes.never)
		return WALK_FITS;
	if (sizes.never)
		return WALK_NEVER;
	if (policy == POLICY_SINGLE_NUMA_NODE || policy == POLICY_RESTRICTED)
		most = sizes.least;
	if (sizes.most > most || (policy == POLICY_SINGLE_NUMA_NODE && most > 1))
		return WALK_NEVER;
	if (sizes.most > 1 && closest && !w->space.distance)
		load_distances(w);
	for (unsigned size = sizes.most; size <= most && nodeset_empty(p->nodes); size++) {
		best_group(w, p, &sizes, size, &p->nodes);
		if (size > 1)
			best_joined(w, p, &sizes, size, &p->nodes);
	}
	return nodeset_empty(p->nodes) ? WALK_NO_ROOM : WALK_FITS;
}
