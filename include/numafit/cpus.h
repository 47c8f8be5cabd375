#ifndef NUMAFIT_CPUS_H
#define NUMAFIT_CPUS_H

#include <numafit/family.h>
#include <numafit/settings.h>
#include <numafit/topo.h>

/* Which CPUs a container gets for itself: the kubelet's static CPU manager
 * (pkg/kubelet/cm/cpumanager/{policy_static,policy_options,cpu_assignment}.go). The kubelet's
 * pools are the caller's: available is its shared pool without the reserved CPUs, reusable what
 * earlier init containers of the same pod hold. */

/* Options that exclude each other, and those that exclude this machine or the Topology Manager's
 * policy (kubelet NewStaticPolicyOptions, ValidateStaticPolicyOptions): the kubelet does not start
 * with them. 0 or -EINVAL, in its words. */
int cpus_check_options(const struct topo *t, const struct cpu_options *o,
	enum topology_policy policy, struct err *e);

/* count reserved CPUs into *out, picked like a container's, and with the options in force (kubelet
 * NewStaticPolicy). 0; -EINVAL when there are not as many, or for none at all, with which the
 * kubelet's policy does not start. */
int cpus_reserve(const struct topo *t, const struct cpu_options *o, unsigned count,
	struct cpuset *out, struct err *e);
/* Reserved CPUs that were named instead: as many as count, and all on the machine. 0 or -EINVAL. */
int cpus_check_reserved(
	const struct topo *t, const struct cpuset *reserved, unsigned count, struct err *e);
/* *cpus with all threads of their cores. */
struct cpuset cpus_whole_cores(const struct topo *t, const struct cpuset *cpus);

/* Whether cores are given as they are, whole or not at all: full-pcpus-only with CORES_WHOLE. */
static inline bool cpus_by_core(const struct cpu_options *o)
{
	return o->full_pcpus_only && o->core_rule == CORES_WHOLE;
}
/* Of CPUs that are free those that the options give out: by core those of cores that are free as a
 * whole. */
struct cpuset cpus_usable(
	const struct topo *t, const struct cpu_options *o, const struct cpuset *free_cpus);
/* With full-pcpus-only, whether count is whole cores, and within what is available of cores that
 * have no reserved CPU (kubelet enforceSMTAlignment); by core whether some of the cores that are
 * available as a whole have exactly that many CPUs. 0; -EINVAL with the words that go with the
 * reason SMTAlignmentError. */
int cpus_check_whole_cores(const struct topo *t, const struct cpu_options *o,
	const struct cpuset *available_physical, unsigned count, struct err *e);

/* What hints look at, by dense node, and what a family borrows. */
struct cpus_per_node {
	uint64_t total[NODES_MAX];
	uint64_t free[NODES_MAX];
	uint64_t allocatable[NODES_MAX]; /* total, less those of cpus_set_aside() */
	uint64_t sockets[NODES_MAX];     /* that the node has CPUs of, a bit each, from 0 */
	struct core_rows cores;          /* by core, where cores differ in size: what is free */
};

/* The hints for count exclusive CPUs (kubelet generateCPUTopologyHints) by what the nodes have:
 * *f borrows *n. count 0: no preference. */
struct cpus_wanted {
	uint64_t count;
	struct nodeset nodes;    /* those with CPUs */
	struct nodeset reusable; /* those of CPUs that earlier init containers of the pod hold */
	uint64_t nr_reusable;    /* how many of these; not among n->free */
	unsigned nr_sockets;     /* align-by-socket: of the nodes' CPUs; 0: not asked for */
};
void cpus_family_by_node(
	const struct cpus_wanted *w, const struct cpus_per_node *n, struct family *f);
/* The same of a machine; *n is filled here. By core, where cores differ in size, a mask must have
 * whole cores of exactly that many CPUs: then n->cores.need is that of one container, and may be
 * made larger. */
void cpus_family(const struct topo *t, const struct cpu_options *o, const struct cpuset *available,
	const struct cpuset *reusable, unsigned count, struct cpus_per_node *n, struct family *f);

/* Leave out of *n->allocatable the CPUs that no container can ever have for itself; else they count
 * as allocated where a numa-allocation-strategy looks at the family that borrows *n. */
void cpus_set_aside(const struct topo *t, const struct cpuset *reserved, struct cpus_per_node *n);

/* By core, where cores differ in size: the family prefers as few nodes as could have the whole
 * cores of n->cores.need, were all of them free. Else it stays as it is. 0, or -ENOMEM: the arena's
 * limit is reached. */
int cpus_prefer_by_cores(const struct topo *t, const struct cpu_options *o, struct cpus_per_node *n,
	struct budget *b, struct arena *a, struct family *f);

/* How CPUs are picked. */
struct cpus_how {
	bool distributed;       /* evenly over NUMA nodes, else packed */
	bool spread;            /* over cores: threads one by one in order of their ids */
	bool by_socket;         /* distributed: NUMA nodes of one socket before any others */
	bool uncore;            /* whole uncore caches before whole cores; packed only */
	bool by_core;           /* each core as a whole or not at all */
	unsigned group;         /* distributed: CPUs are given out by so many; at least 1 */
	struct core_need later; /* by core: what is left is to have cores for, where it can be, */
	struct core_stock elsewhere; /* and these */
};
/* What the options ask for (kubelet takeByTopology). */
struct cpus_how cpus_how(const struct topo *t, const struct cpu_options *o);

/* Take count CPUs out of *free. Packed: whole NUMA nodes and sockets first, then whole caches and
 * cores, then threads, always where the least is left (kubelet takeByTopologyNUMAPacked). Whole is
 * what has all of its own CPUs free and, a socket or a core, as many as the average one of the
 * machine has. Distributed: the same number from each of as few NUMA nodes as can be, in the way
 * that leaves the nodes most alike, with by_socket that of nodes of one socket where one can
 * (kubelet takeByTopologyNUMADistributed, as it is meant), or
 * the best way found until the budget runs out; only this spends any of it.
 * By core only cores count that *free has as a whole.
 * 0; -ENOSPC when *free has fewer than count, or no whole cores of exactly as many (*out
 * untouched). */
int cpus_take(const struct topo *t, const struct cpuset *free, unsigned count,
	const struct cpus_how *how, struct budget *b, struct cpuset *out, struct err *e);

/* The same of CPUs that one pod has already, or that no container is given yet: where no whole
 * cores have so many CPUs, parts of cores are taken. */
int cpus_take_in_parts(const struct topo *t, const struct cpuset *free, unsigned count,
	const struct cpus_how *how, struct budget *b, struct cpuset *out, struct err *e);

/* Likewise where all of *free is of one NUMA node: there is nothing to search. */
int cpus_take_on_node(const struct topo *t, const struct cpuset *free, unsigned count,
	const struct cpus_how *how, struct cpuset *out, struct err *e);

/* How many of count CPUs of *all come from *near, which is among them: as many as there are; by
 * core as many as whole cores make of them while those of the others make what is missing. */
unsigned cpus_count_near(const struct topo *t, const struct cpu_options *o,
	const struct cpuset *near, const struct cpuset *all, unsigned count);

/* The CPUs for a container with that affinity (kubelet allocateCPUs): from the affinity's nodes
 * first (align-by-socket: from their sockets), the rest from anywhere; affinity->any: from
 * anywhere. later as in struct cpus_how, or NULL. 0; -ENOSPC in the kubelet's words. */
int cpus_allocate(const struct topo *t, const struct cpu_options *o,
	const struct cpuset *available_and_reusable, unsigned count, const struct core_need *later,
	const struct hint *affinity, struct budget *b, struct cpuset *out, struct err *e);

#endif
