/* What a rule says of one mask; how much of it is allocated, and which of two equal ones is wanted
 * for it. */
#include <numafit/family.h>

uint64_t family_demand_sum(const struct family_demand *d, struct nodeset mask)
{
	uint64_t sum = d->base;

	if (d->weight)
		nodeset_each (node, mask)
			sum += d->weight[node];
	for (size_t i = 0; i < d->nr_covers; i++)
		sum += nodeset_empty(nodeset_and(d->cover[i].nodes, mask)) ? 0 : d->cover[i].count;
	return sum;
}

bool family_demand_met(const struct family_demand *d, struct nodeset mask)
{
	return family_demand_sum(d, mask) >= d->need &&
	       (!d->cores || cores_of_nodes_have(d->cores, mask));
}

bool family_in_rule(const struct family *f, struct nodeset mask)
{
	if (nodeset_empty(mask) || !nodeset_within(mask, f->ground) ||
		!nodeset_within(f->required, mask))
		return false;
	for (unsigned i = 0; i < f->nr_demands; i++)
		if (!family_demand_met(&f->demand[i], mask))
			return false;
	return true;
}

bool family_has(const struct family *f, struct nodeset mask)
{
	if (family_in_rule(f, mask))
		return true;
	for (unsigned i = 0; i < f->nr_extra; i++)
		if (nodeset_equal(f->extra[i], mask))
			return true;
	return false;
}

bool family_is_empty(const struct family *f)
{
	return f->kind == FAMILY_CAPACITY && !f->nr_extra && !family_in_rule(f, f->ground);
}

unsigned family_sockets(const uint64_t *sockets_of_node, struct nodeset mask)
{
	uint64_t sockets = 0;

	nodeset_each (node, mask)
		sockets |= sockets_of_node[node];
	return (unsigned)__builtin_popcountll(sockets);
}

bool family_prefers(const struct family *f, struct nodeset mask)
{
	if (nodeset_count(mask) == f->preferred_size)
		return true;
	return f->preferred_sockets &&
	       family_sockets(f->sockets_of_node, mask) == f->preferred_sockets;
}

enum { PERCENT = 100 };

unsigned family_share(const struct family *f, struct nodeset mask)
{
	uint64_t capacity, unallocated;

	if (f->kind != FAMILY_CAPACITY)
		return 0;
	capacity = family_demand_sum(&f->capacity, mask);
	if (!capacity)
		return 0;
	unallocated = family_demand_sum(&f->unallocated, mask);
	if (unallocated >= capacity)
		return 1;
	unsigned share =
		(unsigned)((unsigned __int128)(capacity - unallocated) * PERCENT / capacity);
	return share ? share : 1;
}

unsigned scoring_rank_of(const struct scoring *s, unsigned share)
{
	if (!share)
		return 0;
	return s->strategy == ALLOCATION_LEAST ? PERCENT + 1 - share : share;
}

unsigned scoring_rank(const struct scoring *s, struct nodeset mask)
{
	unsigned sum = 0, nr = 0;

	for (size_t i = 0; i < s->nr && s->strategy; i++) {
		unsigned share = family_share(&s->family[i], mask);

		sum += share;
		nr += share > 0;
	}
	return scoring_rank_of(s, nr ? sum / nr : 0);
}

int scoring_compare(
	const struct hint_space *space, const struct scoring *s, struct nodeset a, struct nodeset b)
{
	int c = hint_compare_fit(space, a, b);
	unsigned ra = c || !s->strategy ? 0 : scoring_rank(s, a);
	unsigned rb = c || !s->strategy ? 0 : scoring_rank(s, b);

	if (c)
		return c;
	return ra != rb ? (ra > rb ? -1 : 1) : (a.bits > b.bits) - (a.bits < b.bits);
}
