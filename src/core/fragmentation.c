#include <numafit/fragmentation.h>

#include <numafit/number.h>
#include <numafit/text.h>

enum { MILLI = 1000 };

/* A node's */

struct node_fragmentation node_fragmentation_of(const unsigned *free, const unsigned *all,
	const uint64_t *memory, unsigned nr, unsigned spare)
{
	struct node_fragmentation f = {0};

	for (unsigned n = 0; n < nr; n++) {
		f.free += free[n];
		f.largest = number_max(f.largest, free[n]);
		f.possible = number_max(f.possible, all[n]);
		f.memory = number_max(f.memory, memory[n]);
	}
	/* No container gets what the shared pool cannot do without, wherever it lies. */
	f.free = number_min(f.free, spare);
	f.largest = number_min(f.largest, spare);
	f.possible = number_min(f.possible, f.free);
	return f;
}

unsigned node_fragmentation_milli(const struct node_fragmentation *f)
{
	uint64_t missing = f->possible - number_min(f->largest, f->possible);

	return f->possible ? (unsigned)(missing * MILLI / f->possible) : 0;
}

char *node_fragmentation_text(char buf[FRAGMENTATION_TEXT_MAX], unsigned milli)
{
	struct text t;

	text_init(&t, buf, FRAGMENTATION_TEXT_MAX);
	text_add(&t, "%u.%03u", milli / MILLI, milli % MILLI);
	while (buf[t.len - 1] == '0')
		buf[--t.len] = '\0';
	if (buf[t.len - 1] == '.')
		buf[--t.len] = '\0';
	return buf;
}

/* A cluster's */

void cluster_fragmentation_add(
	struct cluster_fragmentation *f, const uint64_t *free, unsigned nr, uint64_t left)
{
	uint64_t pods = 0;

	for (unsigned z = 0; z < nr; z++)
		pods += free[z] / FRAGMENT_CPUS;
	f->left += left;
	f->lost += left - number_min(pods, left / FRAGMENT_CPUS) * FRAGMENT_CPUS;
}

double cluster_fragmentation_share(const struct cluster_fragmentation *f)
{
	return f->left ? 1 - (double)(f->left - f->lost) / (double)f->left : 0;
}
