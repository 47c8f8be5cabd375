#ifndef NUMAFIT_TEST_CORE_FAMILIES_H
#define NUMAFIT_TEST_CORE_FAMILIES_H

#include "core_random.h"
#include "hint_lists.h"

#include <numafit/family.h>

#include <string.h>

/* Random machines and families of hints, and the lists that such families stand for. */

enum { LISTS_MAX = 4 };

struct machine {
	struct hint_space space;
	uint8_t distance[NODES_MAX][NODES_MAX];
};

static inline void random_machine(struct random *r, unsigned n, struct machine *m)
{
	static const uint8_t steps[] = {11, 12, 20, 21, 32};
	unsigned style = random_below(r, 3); /* flat, symmetric, asymmetric */

	memset(m, 0, sizeof *m);
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < n; j++)
			m->distance[i][j] = i == j ? 10 : style ? steps[random_below(r, 5)] : 20;
	for (unsigned i = 0; i < n && style < 2; i++)
		for (unsigned j = 0; j < i; j++)
			m->distance[i][j] = m->distance[j][i];
	m->space.all = nodeset_first(n);
	if (random_chance(r, 50))
		m->space.distance = m->distance;
}

/* What a random family points to. */
struct backing {
	uint64_t weight[2][NODES_MAX];
	struct family_cover cover[4];
	uint64_t sockets_of[NODES_MAX];                       /* the machine's, not the family's */
	uint64_t capacity[NODES_MAX], unallocated[NODES_MAX]; /* random_shares() */
	struct family_cover all[NODES_MAX], unused[NODES_MAX];
};

static inline struct nodeset random_nodes(struct random *r, unsigned n)
{
	return (struct nodeset){1 + random_next(r) % nodeset_first(n).bits};
}

static inline void random_demands(struct random *r, unsigned n, struct backing *b, struct family *f)
{
	f->nr_demands = 1 + random_below(r, 2);
	for (unsigned d = 0; d < f->nr_demands; d++) {
		uint64_t sum = 0;

		for (unsigned i = 0; i < n; i++)
			sum += b->weight[d][i] = random_below(r, 6);
		f->demand[d] = (struct family_demand){
			.weight = b->weight[d],
			.base = random_below(r, 2),
			.need = random_below(r, (unsigned)sum + 2),
		};
	}
	if (random_chance(r, 70))
		return;
	f->demand[f->nr_demands++] = (struct family_demand){
		.cover = b->cover, .nr_covers = 4, .need = 1 + random_below(r, 5)};
	for (unsigned c = 0; c < 4; c++)
		b->cover[c] = (struct family_cover){
			{random_next(r) & random_next(r) & nodeset_first(n).bits},
			1 + random_below(r, 2)};
}

/* The sockets that a node has CPUs of, as bits: mostly one of nr, sometimes several. */
static inline uint64_t random_sockets(struct random *r, unsigned nr)
{
	uint64_t sockets = UINT64_C(1) << random_below(r, nr);

	return random_chance(r, 30) ? sockets | UINT64_C(1) << random_below(r, nr) : sockets;
}

/* The first of the families has the rule about sockets, as the CPU manager's would. */
static inline void random_family(
	struct random *r, unsigned n, bool sockets, struct backing *b, struct family *f)
{
	*f = (struct family){.kind = FAMILY_CAPACITY, .preferred_size = 1 + random_below(r, n)};
	f->ground = random_chance(r, 60) ? nodeset_first(n) : random_nodes(r, n);
	if (random_chance(r, 15))
		f->required.bits = random_next(r) & random_next(r) & f->ground.bits;
	random_demands(r, n, b, f);
	for (unsigned x = random_chance(r, 40) ? 1 + random_below(r, 3) : 0; x > 0; x--)
		f->extra[f->nr_extra++] = random_nodes(r, n);
	if (sockets) {
		for (unsigned i = 0; i < n; i++)
			b->sockets_of[i] = random_sockets(r, 3);
		f->sockets_of_node = b->sockets_of;
		f->preferred_sockets = 1 + random_below(r, 3);
	}
	if (random_chance(r, 10))
		f->kind = random_chance(r, 50) ? FAMILY_ANY : FAMILY_NONE;
}

static inline bool is_preferred(const struct family *f, struct nodeset mask)
{
	bool socket[3] = {false};

	nodeset_each (node, mask)
		for (unsigned i = 0; i < 3 && f->preferred_sockets; i++)
			socket[i] = socket[i] || f->sockets_of_node[node] >> i & 1;
	return nodeset_count(mask) == f->preferred_size ||
	       (f->preferred_sockets &&
		       (unsigned)socket[0] + socket[1] + socket[2] == f->preferred_sockets);
}

/* Whether the mask is one of the family's, node by node. */
static inline bool belongs(const struct family *f, struct nodeset mask)
{
	for (unsigned x = 0; x < f->nr_extra; x++)
		if (f->extra[x].bits == mask.bits)
			return true;
	if (mask.bits & ~f->ground.bits || f->required.bits & ~mask.bits)
		return false;
	for (unsigned d = 0; d < f->nr_demands; d++) {
		const struct family_demand *want = &f->demand[d];
		uint64_t has = want->base;

		for (unsigned i = 0; i < NODES_MAX && want->weight; i++)
			has += mask.bits >> i & 1 ? want->weight[i] : 0;
		for (size_t c = 0; c < want->nr_covers; c++)
			has += want->cover[c].nodes.bits & mask.bits ? want->cover[c].count : 0;
		if (has < want->need)
			return false;
	}
	return true;
}

/* The list that the family stands for. */
static inline struct hint_list written_out(const struct family *f, unsigned n, struct hint *hint)
{
	size_t nr = 0;

	if (f->kind != FAMILY_CAPACITY)
		hint[nr++] = (struct hint){.any = true, .preferred = f->kind == FAMILY_ANY};
	for (uint64_t bits = 1; bits <= nodeset_first(n).bits && f->kind == FAMILY_CAPACITY;
		bits++) {
		struct nodeset mask = {bits};

		if (belongs(f, mask))
			hint[nr++] =
				(struct hint){.mask = mask, .preferred = is_preferred(f, mask)};
	}
	return (struct hint_list){hint, nr};
}

/* Random families and the lists they stand for. */
struct families {
	unsigned n, nr;
	struct machine machine;
	struct family family[LISTS_MAX];
	struct hint_list list[LISTS_MAX];
	size_t products; /* ways to take one hint of each list; 0: a list is empty */
	struct backing backing[LISTS_MAX];
	struct hint hint[LISTS_MAX][1 << NODES_WRITTEN];
};

static inline void random_families(struct random *r, unsigned n, unsigned nr, struct families *x)
{
	bool sockets = random_chance(r, 20);

	x->n = n;
	x->nr = nr;
	x->products = 1;
	random_machine(r, n, &x->machine);
	for (unsigned l = 0; l < nr; l++) {
		random_family(r, n, sockets && l == 0, &x->backing[l], &x->family[l]);
		x->list[l] = written_out(&x->family[l], n, x->hint[l]);
		x->products *= x->list[l].nr;
	}
}

/* How much of each family's resource there is and is not allocated; some cannot say. */
static inline void random_shares(struct random *r, struct families *x)
{
	for (unsigned l = 0; l < x->nr; l++) {
		struct family *f = &x->family[l];
		struct backing *b = &x->backing[l];
		bool covers = random_chance(r, 30);

		f->capacity = f->unallocated = (struct family_demand){0};
		if (random_chance(r, 15))
			continue;
		for (unsigned i = 0; i < x->n; i++) {
			b->capacity[i] = random_below(r, 4);
			b->unallocated[i] = random_below(r, (unsigned)b->capacity[i] + 1);
			b->all[i] = (struct family_cover){random_nodes(r, x->n), b->capacity[i]};
			b->unused[i] = (struct family_cover){b->all[i].nodes, b->unallocated[i]};
		}
		if (covers) {
			f->capacity = (struct family_demand){.cover = b->all, .nr_covers = x->n};
			f->unallocated =
				(struct family_demand){.cover = b->unused, .nr_covers = x->n};
		} else {
			f->capacity.weight = b->capacity;
			f->unallocated.weight = b->unallocated;
		}
	}
}

/* All that taking one hint of each list can give: per mask, not preferred and preferred. */
struct results {
	bool is[2][1 << 8];
	unsigned aim; /* the widest of the lists' narrowest masks */
};

static inline void combine_from(const struct families *x, unsigned l, struct hint so_far,
	struct nodeset first, struct results *out)
{
	if (l == x->nr) {
		out->is[so_far.preferred][so_far.mask.bits] = !nodeset_empty(so_far.mask);
		return;
	}
	for (size_t i = 0; i < x->list[l].nr; i++) {
		const struct hint *h = &x->list[l].hint[i];
		bool equal = h->any || nodeset_empty(first) || nodeset_equal(first, h->mask);
		struct hint next = {
			.mask = h->any ? so_far.mask : nodeset_and(so_far.mask, h->mask),
			.preferred = so_far.preferred && h->preferred && equal};

		combine_from(
			x, l + 1, next, h->any || !nodeset_empty(first) ? first : h->mask, out);
	}
}

static inline void all_results(const struct families *x, struct results *out)
{
	memset(out, 0, sizeof *out);
	for (unsigned l = 0; l < x->nr; l++) {
		unsigned narrowest = 0;

		for (size_t i = 0; i < x->list[l].nr; i++) {
			unsigned size = nodeset_count(x->list[l].hint[i].mask);

			if (!x->list[l].hint[i].any && (!narrowest || size < narrowest))
				narrowest = size;
		}
		out->aim = narrowest > out->aim ? narrowest : out->aim;
	}
	combine_from(x, 0, (struct hint){.mask = x->machine.space.all, .preferred = true},
		(struct nodeset){0}, out);
}

#endif
