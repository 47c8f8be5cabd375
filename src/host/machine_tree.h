#ifndef NUMAFIT_HOST_MACHINE_TREE_H
#define NUMAFIT_HOST_MACHINE_TREE_H

#include <numafit/topo.h>

/* Whether a recorded tree has what it takes. hwloc goes on without what it cannot read: with the
 * CPUs of the machine that it runs on where no CPU is recorded, and silently without a CPU or a
 * NUMA node. Both: 0 or -EINVAL, the text says what is missing. */

/* Before it is read: a folder of CPUs, each online one with its topology. */
int machine_tree_check(const char *path, struct err *e);
/* After: every online CPU and every NUMA node of the tree is in *t, which is not sealed yet. */
int machine_tree_compare(const char *path, const struct topo *t, struct err *e);

#endif
