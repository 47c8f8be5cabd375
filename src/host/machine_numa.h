#ifndef NUMAFIT_HOST_MACHINE_NUMA_H
#define NUMAFIT_HOST_MACHINE_NUMA_H

#include <numafit/topo.h>

/* This machine a second time, through libnuma: only node ids, their CPUs and the distances; not
 * sealed. 0; -ENOSYS: the kernel has no NUMA calls, or they are not allowed here; others as in
 * topo.h. */
int machine_from_numa(struct topo *t, struct err *e);

/* Fill in the distances of *t, which has none, from *numa where that has the same nodes. */
void machine_borrow_distances(struct topo *t, const struct topo *numa);

/* Call note() with each difference between the two in nodes, CPUs and distances. */
void machine_compare(const struct topo *hwloc, const struct topo *numa,
	void (*note)(void *ctx, const char *text), void *ctx);

#endif
