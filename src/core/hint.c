/* The order of sets of NUMA nodes (kubelet HintMerger.compare, CompareNUMAAffinityMasks). */
#include <numafit/hint.h>

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

int hint_compare_fit(const struct hint_space *space, struct nodeset a, struct nodeset b)
{
	uint64_t of_a = nodeset_count(a), of_b = nodeset_count(b);

	/* at equal size the average distance orders as its numerator does */
	if (of_a == of_b && space->distance) {
		of_a = hint_distance_sum(space, a);
		of_b = hint_distance_sum(space, b);
	}
	return (of_a > of_b) - (of_a < of_b);
}

int hint_compare_masks(const struct hint_space *space, struct nodeset a, struct nodeset b)
{
	int c = hint_compare_fit(space, a, b);

	return c ? c : (a.bits > b.bits) - (a.bits < b.bits);
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
