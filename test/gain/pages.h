#ifndef NUMAFIT_GAIN_PAGES_H
#define NUMAFIT_GAIN_PAGES_H

#include <numafit/topo.h>

/* Where memory is, as the kernel says. Arrays are by NUMA node, dense indexes of the topo. */

/* From /proc/PID/numa_maps (0: this process) the pages of the mapping that begins at or before that
 * address; NULL: of all anonymous memory. Without NUMA in the kernel nothing is counted. */
void pages_by_maps(const struct topo *t, int pid, const void *at, uint64_t pages[NODES_MAX]);

/* Which share (0 to 1) of the memory is on each node, by move_pages(2) of up to 512 of its pages.
 * False: it cannot be seen. */
bool pages_share(const struct topo *t, const void *at, size_t bytes, double share[NODES_MAX]);

/* The node (dense index) of a CPU; NODES_MAX: it is of none. */
unsigned node_of_cpu(const struct topo *t, int cpu);

/* The share of accesses that go to other nodes, for memory that is used evenly from a thread that
 * was seen that often on each node. */
double pages_remote(const double share[NODES_MAX], const uint64_t seen[NODES_MAX]);

#endif
