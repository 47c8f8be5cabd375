#ifndef NUMAFIT_CORE_CPUS_PACK_H
#define NUMAFIT_CORE_CPUS_PACK_H

#include <numafit/cpus.h>

/* What the two ways of picking CPUs share; for core/cpus*.c only. */

/* count CPUs of *free, at least as many, where the least is left: whole NUMA nodes and sockets
 * first, then whole uncore caches (how->uncore), whole cores (not with how->spread), then threads
 * (kubelet takeByTopologyNUMAPacked). By core fewer, if no whole cores have so many. */
struct cpuset cpus_pack(const struct topo *t, const struct cpuset *free, unsigned count,
	const struct cpus_how *how);

/* The NUMA nodes that have CPUs of *free, in the order in which CPUs are taken from them (kubelet
 * sortAvailableNUMANodes), into node[]. Returns their number. */
unsigned cpus_order_nodes(const struct topo *t, const struct cpuset *free, uint8_t node[NODES_MAX]);

/* count CPUs of *free, at least as many and whole groups, evenly over as few NUMA nodes as can be
 * (kubelet takeByTopologyNUMADistributed). False: no way to do so. */
bool cpus_distribute(const struct topo *t, const struct cpuset *free, unsigned count,
	const struct cpus_how *how, struct budget *b, struct cpuset *out);

#endif
