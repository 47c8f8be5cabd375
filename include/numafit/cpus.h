#ifndef NUMAFIT_CPUS_H
#define NUMAFIT_CPUS_H

#include <numafit/family.h>
#include <numafit/topo.h>

/* Which CPUs a container gets for itself: the kubelet's static CPU manager
 * (pkg/kubelet/cm/cpumanager/{policy_static,cpu_assignment}.go). */

/* CPUs by NUMA node, which is all that hints look at. */
struct cpus_per_node {
	uint64_t total[NODES_MAX];
	uint64_t free[NODES_MAX];
};

/* The hints for count exclusive CPUs out of *free (kubelet generateCPUTopologyHints): *f borrows
 * *n, which is filled here. count 0: no preference. */
void cpus_family(const struct topo *t, const struct cpuset *free, unsigned count,
	struct cpus_per_node *n, struct family *f);

/* Take count CPUs out of *free, packed: whole NUMA nodes and sockets first, then whole cores, then
 * threads, always where the least is left (kubelet takeByTopologyNUMAPacked). A node, socket or
 * core is whole when all of its own CPUs are free.
 * 0; -ENOSPC when *free has fewer than count (*out untouched). */
int cpus_take(const struct topo *t, const struct cpuset *free, unsigned count, struct cpuset *out,
	struct err *e);

/* The CPUs for a container with that affinity (kubelet allocateCPUs): from the affinity's nodes
 * first, the rest from anywhere; affinity->any: from anywhere. The error has the kubelet's words.
 */
int cpus_allocate(const struct topo *t, const struct cpuset *free, unsigned count,
	const struct hint *affinity, struct cpuset *out, struct err *e);

#endif
