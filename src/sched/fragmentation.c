#include <numafit/fragmentation.h>

#include <numafit/number.h>

void fragmentation_add(struct fragmentation *f, const uint64_t *free, unsigned nr, uint64_t left)
{
	uint64_t pods = 0;

	for (unsigned z = 0; z < nr; z++)
		pods += free[z] / FRAGMENT_CPUS;
	f->left += left;
	f->lost += left - number_min(pods, left / FRAGMENT_CPUS) * FRAGMENT_CPUS;
}

double fragmentation_share(const struct fragmentation *f)
{
	return f->left ? 1 - (double)(f->left - f->lost) / (double)f->left : 0;
}
