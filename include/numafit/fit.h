#ifndef NUMAFIT_FIT_H
#define NUMAFIT_FIT_H

#include <numafit/sched.h>

/* What pods ask of a node, as kube-scheduler counts it, and whether one more fits: the filter of
 * NodeResourcesFit (pkg/scheduler/framework/plugins/noderesources and framework/types.go of
 * Kubernetes 1.36, default feature gates). Amounts are int64_t here as there, cpu in thousandths,
 * the rest in whole units, each pod's rounded up; what int64_t cannot hold becomes its end. */

/* One pod on one node; a node's pods are those bound to it. */
struct fit_view {
	const struct resource_table *names;
	const struct sched_node *node;
	const struct sched_pod *pod;
};

/* How a container counts that does not ask for cpu, or memory: as nothing, or, so that such pods
 * do not all end on one node, as 100m and 200Mi (pkg/scheduler/util/pod_resources.go). */
enum fit_missing { FIT_MISSING_IS_NOTHING, FIT_MISSING_IS_SOME };

/* What the pod asks for (component-helpers/resource, PodRequests): its containers and sidecars
 * together, but at least any init container beside the sidecars listed before it; spec.resources in
 * their place; and the overhead. */
int64_t fit_request(const struct resource_table *names, const struct sched_pod *p,
	unsigned resource, enum fit_missing missing);
/* What the node's pods ask for together. */
int64_t fit_allocated(const struct resource_table *names, const struct sched_node *n,
	unsigned resource, enum fit_missing missing);
/* What the node has for pods; 0 also of what schedulers keep no account of (of_nodes). */
int64_t fit_allocatable(
	const struct resource_table *names, const struct sched_node *n, unsigned resource);
/* Whether it is none of cpu, memory and ephemeral-storage: what a pod does not ask for of these
 * says nothing of the node. */
bool fit_is_scalar(const struct resource_table *names, unsigned resource);

/* Extended resources that somebody else looks after. */
struct fit_ignored {
	const unsigned *resource;
	unsigned nr;
	const char *const *group; /* what stands before the '/' of a name */
	unsigned nr_groups;
};

/* Whether the pod fits: SCHED_SUCCESS; SCHED_UNSCHEDULABLE; SCHED_UNRESOLVABLE when some request is
 * more than the node has in all. What it lacks goes into lacks (room for every resource of the
 * table), its number into *nr: RESOURCE_PODS when the node has enough pods, then cpu, memory,
 * ephemeral-storage, the others by name. */
enum sched_code fit_filter(
	const struct fit_view *v, const struct fit_ignored *ignored, unsigned *lacks, unsigned *nr);

#endif
