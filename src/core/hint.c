/* Merging lists of hints. The kubelet tries every way to take one hint from each list and keeps
 * the best; but the best depends only on two sets, which are far smaller:
 *   - the masks that every list offers as preferred: the best of them wins, if there is one;
 *   - the masks that can come out of intersecting one mask of each list: else the best of those. */
#include <numafit/hint.h>

#include "lattice.h"

#include <errno.h>
#include <string.h>

uint64_t hint_distance_sum(const struct hint_space *space, struct nodeset mask)
{
	uint8_t node[NODES_MAX];
	unsigned nr = 0;
	uint64_t sum = 0;

	if (!space->distance)
		return 0;
	nodeset_each (n, mask)
		node[nr++] = (uint8_t)n;
	for (unsigned i = 0; i < nr; i++)
		for (unsigned j = 0; j < nr; j++)
			sum += space->distance[node[i]][node[j]];
	return sum;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

int hint_compare_fit(const struct hint_space *space, struct nodeset a, struct nodeset b)
{
	int c = compare_u64(nodeset_count(a), nodeset_count(b));

	/* at equal size the average distance orders as its numerator does */
	if (!c && space->distance)
		c = compare_u64(hint_distance_sum(space, a), hint_distance_sum(space, b));
	return c;
}

int hint_compare_masks(const struct hint_space *space, struct nodeset a, struct nodeset b)
{
	int c = hint_compare_fit(space, a, b);

	return c ? c : compare_u64(a.bits, b.bits);
}

/* How far from the size aimed at: 0 on it, then below it, then above it. */
static unsigned size_rank(unsigned count, unsigned best)
{
	return count <= best ? best - count : NODES_MAX + count;
}

bool hint_beats(const struct hint_space *space, unsigned best, struct nodeset a, struct nodeset b)
{
	unsigned ra = size_rank(nodeset_count(a), best), rb = size_rank(nodeset_count(b), best);

	return ra != rb ? ra < rb : hint_compare_masks(space, a, b) < 0;
}

/* The kubelet's bestNonPreferredAffinityCount: of every list its narrowest mask, of these the
 * widest. */
static unsigned size_aimed_at(const struct hint_list *lists, size_t nr)
{
	unsigned best = 0;

	for (size_t l = 0; l < nr; l++) {
		unsigned narrowest = NODES_MAX + 1;

		for (size_t i = 0; i < lists[l].nr; i++) {
			unsigned count = nodeset_count(lists[l].hint[i].mask);

			if (!lists[l].hint[i].any && count < narrowest)
				narrowest = count;
		}
		if (narrowest <= NODES_MAX && narrowest > best)
			best = narrowest;
	}
	return best;
}

/* A set of masks, none of them empty: open addressing, 0 marks a free slot. */
struct mask_set {
	uint64_t *slot;
	size_t cap, nr;
};
enum { MASK_SET_MIN = 64 };

static size_t slot_of(const struct mask_set *s, uint64_t mask)
{
	const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (size_t)(mask * golden >> 32) & (s->cap - 1);

	while (s->slot[i] && s->slot[i] != mask)
		i = (i + 1) & (s->cap - 1);
	return i;
}

static bool mask_set_has(const struct mask_set *s, uint64_t mask)
{
	return s->cap && s->slot[slot_of(s, mask)];
}

static int mask_set_add(struct mask_set *s, uint64_t mask, struct arena *a)
{
	if (!mask)
		return 0;
	if (s->nr >= s->cap / 2) {
		struct mask_set bigger = {.cap = s->cap ? s->cap * 2 : MASK_SET_MIN, .nr = s->nr};

		bigger.slot = arena_array(a, bigger.cap, sizeof *bigger.slot);
		if (!bigger.slot)
			return -ENOMEM;
		for (size_t i = 0; i < s->cap; i++)
			if (s->slot[i])
				bigger.slot[slot_of(&bigger, s->slot[i])] = s->slot[i];
		*s = bigger;
	}
	size_t i = slot_of(s, mask);
	s->nr += !s->slot[i];
	s->slot[i] = mask;
	return 0;
}

/* What one list offers as preferred. */
struct offer {
	struct mask_set masks;
	bool any;
};

static int collect_offer(const struct hint_list *list, struct arena *a, struct offer *o)
{
	*o = (struct offer){0};
	for (size_t i = 0; i < list->nr; i++) {
		const struct hint *h = &list->hint[i];
		int rc = 0;

		if (!h->preferred)
			continue;
		if (h->any)
			o->any = true;
		else
			rc = mask_set_add(&o->masks, h->mask.bits, a);
		if (rc)
			return rc;
	}
	return 0;
}

static bool all_offer(const struct offer *offers, size_t nr, uint64_t mask)
{
	for (size_t l = 0; l < nr; l++)
		if (!offers[l].any && !mask_set_has(&offers[l].masks, mask))
			return false;
	return true;
}

/* The best mask that is preferred everywhere, before hints outside the machine are cut off. */
static int best_preferred(const struct hint_space *space, const struct hint_list *lists, size_t nr,
	struct arena *a, struct nodeset *best)
{
	struct offer *offers = arena_array(a, nr, sizeof *offers);
	bool indifferent = true;

	*best = (struct nodeset){0};
	if (!offers)
		return -ENOMEM;
	for (size_t l = 0; l < nr; l++) {
		int rc = collect_offer(&lists[l], a, &offers[l]);

		if (rc)
			return rc;
		indifferent = indifferent && offers[l].any;
	}
	if (indifferent)
		*best = space->all;
	for (size_t l = 0; l < nr; l++)
		for (size_t i = 0; i < offers[l].masks.cap; i++) {
			uint64_t mask = offers[l].masks.slot[i];
			struct nodeset here = nodeset_and((struct nodeset){mask}, space->all);

			if (nodeset_empty(here) || !all_offer(offers, nr, mask))
				continue;
			if (nodeset_empty(*best) || hint_compare_masks(space, here, *best) < 0)
				*best = here;
		}
	return 0;
}

/* Every mask of *from intersected with every hint of the list. */
static int intersect(const struct mask_set *from, const struct hint_list *list, struct arena *a,
	struct mask_set *to)
{
	for (size_t s = 0; s < from->cap; s++) {
		if (!from->slot[s])
			continue;
		for (size_t i = 0; i < list->nr; i++) {
			const struct hint *h = &list->hint[i];
			int rc = mask_set_add(
				to, h->any ? from->slot[s] : from->slot[s] & h->mask.bits, a);

			if (rc)
				return rc;
		}
	}
	return 0;
}

static void keep_better(
	const struct hint_space *space, unsigned aim, struct nodeset mask, struct nodeset *best)
{
	if (!nodeset_empty(mask) && (nodeset_empty(*best) || hint_beats(space, aim, mask, *best)))
		*best = mask;
}

/* Few hints are intersected one by one. */
static int best_of_products(const struct hint_space *space, const struct hint_list *lists,
	size_t nr, struct arena *a, struct nodeset *best)
{
	unsigned aim = size_aimed_at(lists, nr);
	struct mask_set reached = {0};
	int rc = mask_set_add(&reached, space->all.bits, a);

	for (size_t l = 0; l < nr && !rc; l++) {
		struct mask_set next = {0};

		rc = intersect(&reached, &lists[l], a, &next);
		reached = next;
	}
	for (size_t i = 0; i < reached.cap && !rc; i++)
		keep_better(space, aim, (struct nodeset){reached.slot[i]}, best);
	return rc;
}

/* On few nodes every mask is looked at instead, however many hints there are. */
static int best_of_lattice(const struct hint_space *space, const struct hint_list *lists, size_t nr,
	struct arena *a, struct nodeset *best)
{
	unsigned n = nodeset_count(space->all), aim = size_aimed_at(lists, nr);
	uint32_t *reached = arena_array(a, (size_t)1 << n, sizeof *reached);
	int rc = reached ? lattice_intersect(n, lists, nr, a, reached) : -ENOMEM;

	for (uint64_t m = 1; !rc && m <= space->all.bits; m++)
		if (reached[m])
			keep_better(space, aim, (struct nodeset){m}, best);
	return rc;
}

static bool is_small(const struct hint_space *space)
{
	unsigned n = nodeset_count(space->all);

	return n <= LATTICE_NODES && nodeset_equal(space->all, nodeset_first(n));
}

static int best_intersection(const struct hint_space *space, const struct hint_list *lists,
	size_t nr, struct arena *a, struct nodeset *best)
{
	*best = (struct nodeset){0};
	return (is_small(space) ? best_of_lattice : best_of_products)(space, lists, nr, a, best);
}

int hint_merge_lists(const struct hint_space *space, const struct hint_list *lists, size_t nr,
	struct arena *a, struct hint *out)
{
	struct nodeset best;
	int rc = best_preferred(space, lists, nr, a, &best);

	if (rc)
		return rc;
	if (!nodeset_empty(best)) {
		*out = (struct hint){.mask = best, .preferred = true};
		return 0;
	}
	rc = best_intersection(space, lists, nr, a, &best);
	if (!rc)
		*out = (struct hint){.mask = nodeset_empty(best) ? space->all : best};
	return rc;
}
