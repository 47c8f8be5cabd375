/* How much of a set of NUMA nodes is allocated, and which of two equal sets is wanted for it. */
#include <numafit/family.h>

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
