#ifndef NUMAFIT_VOLCANO_H
#define NUMAFIT_VOLCANO_H

#include <numafit/cpuset.h>
#include <numafit/sched.h>
#include <numafit/steps.h>

/* Volcano's numa-aware plugin (volcano-sh/volcano pkg/scheduler/plugins/numaaware): which nodes
 * would give a pod's containers whole CPUs as its topology policy wants them, and how few NUMA
 * nodes that takes. The scheduler plays the kubelet in advance, with an older version of the
 * kubelet's way of picking CPUs and with mistakes of its own; both are kept, its answers are the
 * reference. The kubelet asks nobody what was played: it admits pods in its own order (drawback of
 * the plugin's design document). */

struct volcano_cpu {
	unsigned cpu, numa, core, socket; /* numa: dense index; core ids may repeat per socket */
};
/* The spec of a Numatopology, nodeinfo.volcano.sh/v1alpha1. */
struct volcano_node {
	const char *cpu_manager_policy, *topology_manager_policy; /* NULL: not known */
	struct node_ids ids;
	const struct volcano_cpu *cpu; /* cpuDetail, ascending by CPU */
	unsigned nr_cpus;
	bool lists_cpus; /* numares has "cpu" */
	struct cpuset
		free; /* its allocatable: CPUs that no container holds, reserved ones among them */
	unsigned reserved; /* resReserved.cpu, rounded up to whole CPUs */
};

struct volcano_answer {
	enum sched_code code;
	char why[240];        /* upstream's words; "" when it fits */
	struct cpuset cpus;   /* what the pod's containers would get; empty: none for themselves */
	struct nodeset nodes; /* where those are */
};

/* Whether the pod fits (the plugin's predicate): a pod that is not Guaranteed always does; one with
 * a policy only where the CPU manager is static, the node's policy is the same and CPUs are free;
 * one without a policy is played, too, where the node has one. node is NULL when it has no
 * Numatopology. */
void volcano_predicate(const struct volcano_node *node, const struct sched_pod *pod,
	struct volcano_answer *out, const struct steps *steps);
/* Whether such a pod's nodes are scored at all: Guaranteed, and with a policy. */
bool volcano_scores(const struct sched_pod *pod);
/* From the NUMA nodes that each fitting node would need (count) to its score, in place:
 * weight * (100 - 100 * count / the largest count), 100 for all when that is 0. */
void volcano_score(int64_t *count, size_t nr, int64_t weight);

#endif
