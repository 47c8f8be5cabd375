#ifndef NUMAFIT_HOST_MACHINE_NUMA_H
#define NUMAFIT_HOST_MACHINE_NUMA_H

#include <numafit/topo.h>

/* This machine a second time, through libnuma: only node ids, their CPUs and the distances; not
 * sealed. 0; -ENOSYS: the kernel has no NUMA calls, or they are not allowed here; others as in
 * topo.h. */
int machine_from_numa(struct topo *t, struct err *e);

#endif
