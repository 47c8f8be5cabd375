#ifndef NUMAFIT_FRAGMENTATION_H
#define NUMAFIT_FRAGMENTATION_H

#include <stdint.h>

/* How much of what a cluster has left is of no use to pods that want their CPUs on one NUMA node.
 * The one definition of it: numafit-sim's table and the page of numafit-extender show the same. */

enum { FRAGMENT_CPUS = 8 }; /* of the pods that it is measured by */

/* Zeros: no node yet. */
struct fragmentation {
	uint64_t left; /* CPUs that nobody asks for */
	uint64_t lost; /* those of them that pods of FRAGMENT_CPUS CPUs could not have */
};
/* Count a node in: free[z] whole CPUs are free on its NUMA node z, of nr NUMA nodes; left: the
 * CPUs of the node that nobody asks for, which may be fewer than these (pods without CPUs of their
 * own ask for CPUs, too). */
void fragmentation_add(struct fragmentation *f, const uint64_t *free, unsigned nr, uint64_t left);
/* The share of what is left that is lost, 0 to 1; with nothing left 0. */
double fragmentation_share(const struct fragmentation *f);

#endif
