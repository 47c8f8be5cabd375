#ifndef NUMAFIT_FRAGMENTATION_H
#define NUMAFIT_FRAGMENTATION_H

#include <stdint.h>

/* How much of what is free is of no use to those who want their CPUs on one NUMA node. There are
 * two measures, each with its one definition here. A node's says how much smaller the largest
 * container is that fits than it could be: it goes by no size of pods, and does not add up over
 * nodes. A cluster's says how many CPUs are lost to pods of one size, over all nodes together. */

/* A node's: in metrics, `numafit status`, NodeResourceTopology and the status page of numafitd. */
struct node_fragmentation {
	uint64_t free;     /* CPUs that containers can still be given for their own */
	uint64_t largest;  /* of these on one NUMA node: as much has the largest container there */
	uint64_t possible; /* the same, if as many free CPUs were together as a NUMA node can have
			    */
	uint64_t memory;   /* the most ordinary memory that is free on one NUMA node, in bytes */
};
/* Of a node with nr NUMA nodes: free[n] of the all[n] CPUs that containers may have on NUMA node n
 * are free, memory[n] bytes are, and no more than `spare` CPUs can be given out all in all. An
 * empty node is not fragmented. */
struct node_fragmentation node_fragmentation_of(const unsigned *free, const unsigned *all,
	const uint64_t *memory, unsigned nr, unsigned spare);
/* 1 - largest / possible in thousandths, rounded down: 0 to 999. With nothing free 0. */
unsigned node_fragmentation_milli(const struct node_fragmentation *f);
/* That as a number without needless digits: "0.75", "0"; returns buf. */
enum { FRAGMENTATION_TEXT_MAX = 16 };
char *node_fragmentation_text(char buf[FRAGMENTATION_TEXT_MAX], unsigned milli);

/* A cluster's: in numafit-sim's table and on the page of numafit-extender. */
enum { FRAGMENT_CPUS = 8 }; /* of the pods that it is measured by */

/* Zeros: no node yet. */
struct cluster_fragmentation {
	uint64_t left; /* CPUs that nobody asks for */
	uint64_t lost; /* those of them that pods of FRAGMENT_CPUS CPUs could not have */
};
/* Count a node in: free[z] whole CPUs are free on its NUMA node z, of nr NUMA nodes; left: the
 * CPUs of the node that nobody asks for, which may be fewer than these (pods without CPUs of their
 * own ask for CPUs, too). */
void cluster_fragmentation_add(
	struct cluster_fragmentation *f, const uint64_t *free, unsigned nr, uint64_t left);
/* The share of what is left that is lost, 0 to 1; with nothing left 0. */
double cluster_fragmentation_share(const struct cluster_fragmentation *f);

#endif
