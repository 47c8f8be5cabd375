#ifndef NUMAFIT_CORE_LATTICE_H
#define NUMAFIT_CORE_LATTICE_H

#include <numafit/hint.h>

/* Sets of masks over the first n nodes, n small, as one flag for each of the 2^n masks. */

enum { LATTICE_NODES = 10, LATTICE_MASKS = 1 << LATTICE_NODES };

/* All masks that come out of intersecting one hint of each list with each other and with all n
 * nodes, into reached[2^n]: AND-convolution, n * 2^n steps for each list however many hints it has.
 * Working memory from *a. 0 or -ENOMEM. */
int lattice_intersect(
	unsigned n, const struct hint_list *lists, size_t nr, struct arena *a, uint32_t *reached);

#endif
