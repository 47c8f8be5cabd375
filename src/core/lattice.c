/* AND-convolution. To count the ways in which masks of two sets intersect to m, count for each m
 * how many masks of each set contain it, multiply, and take off what belongs to larger m. Only
 * whether there is a way matters: counts go back to 0 or 1 after each list. */
#include "lattice.h"

#include <errno.h>
#include <string.h>

/* Counts stay below (2^n)^2. */
_Static_assert(2 * LATTICE_NODES < 32, "counts fit into 32 bits");

/* Each entry becomes the sum over all masks that contain it. */
static void sum_over_larger(uint32_t *f, unsigned n)
{
	for (unsigned bit = 1; bit < 1u << n; bit *= 2)
		for (unsigned base = 0; base < 1u << n; base += 2 * bit)
			for (unsigned m = base; m < base + bit; m++)
				f[m] += f[m + bit];
}

/* And back. */
static void take_off_larger(uint32_t *f, unsigned n)
{
	for (unsigned bit = 1; bit < 1u << n; bit *= 2)
		for (unsigned base = 0; base < 1u << n; base += 2 * bit)
			for (unsigned m = base; m < base + bit; m++)
				f[m] -= f[m + bit];
}

static void mark(const struct hint_list *list, unsigned n, uint32_t *f)
{
	const uint64_t all = (UINT64_C(1) << n) - 1;

	memset(f, 0, sizeof *f << n);
	for (size_t i = 0; i < list->nr; i++)
		f[list->hint[i].any ? all : list->hint[i].mask.bits & all] = 1;
}

int lattice_intersect(
	unsigned n, const struct hint_list *lists, size_t nr, struct arena *a, uint32_t *reached)
{
	const unsigned masks = 1u << n;
	uint32_t *f = arena_array(a, masks, sizeof *f);

	if (!f)
		return -ENOMEM;
	memset(reached, 0, masks * sizeof *reached);
	reached[masks - 1] = 1;
	for (size_t l = 0; l < nr; l++) {
		mark(&lists[l], n, f);
		sum_over_larger(f, n);
		sum_over_larger(reached, n);
		for (unsigned m = 0; m < masks; m++)
			reached[m] *= f[m];
		take_off_larger(reached, n);
		for (unsigned m = 0; m < masks; m++)
			reached[m] = reached[m] != 0;
	}
	return 0;
}
