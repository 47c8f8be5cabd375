#ifndef NUMAFIT_NRT_H
#define NUMAFIT_NRT_H

#include <numafit/budget.h>
#include <numafit/sched.h>
#include <numafit/steps.h>

/* NodeResourceTopologyMatch: the filter and the scores of sigs.k8s.io/scheduler-plugins
 * (v0.33.5, pkg/noderesourcetopology), bit for bit. A pod is made ready once and then asked of any
 * number of nodes; asking takes no memory from the heap. */

enum nrt_strategy {
	NRT_LEAST_ALLOCATED,
	NRT_MOST_ALLOCATED,
	NRT_BALANCED_ALLOCATION,
	NRT_LEAST_NUMA_NODES,
	NR_NRT_STRATEGIES
};
/* "LeastAllocated", ...: scoringStrategy.type. */
extern const char *const nrt_strategy_words[NR_NRT_STRATEGIES];

enum { NRT_WEIGHT_MAX = INT32_MAX };
/* Upstream's arguments. Zeros are its defaults. */
struct nrt_args {
	enum nrt_strategy strategy;
	/* scoringStrategy.resources: the last entry of a resource counts, a weight below 1 is 1,
	 * as is that of a resource which is not listed; one above NRT_WEIGHT_MAX is that. */
	const struct nrt_weight {
		unsigned resource;
		int64_t weight;
	} * weights;
	unsigned nr_weights;
	bool over_reserve;     /* cacheResyncPeriodSeconds > 0, for nrt_over_reserve() */
	bool discard_reserved; /* discardReservedNodes: a node with any of its pods is stale */
	/* LeastNUMANodes as released: the distance counts on every node, and what a container takes
	 * is taken from the zone whose place in the list is the NUMA node's id. Else it counts
	 * where the node prefers the closest NUMA nodes, and is taken from the very zones. */
	bool compat;
};

/* Why a node does not fit; nrt_reason_texts[] has upstream's words. */
enum nrt_reason {
	NRT_FITS,
	NRT_STALE,
	NRT_POD,
	NRT_CONTAINER,
	NRT_INIT_CONTAINER,
	NRT_SIDECAR,
	NR_NRT_REASONS
};
extern const char *const nrt_reason_texts[NR_NRT_REASONS];

/* A pod made ready. Holds working memory: one node at a time. args, the table and the pod are
 * borrowed and must stay as they are. */
struct nrt_ask;
struct nrt_ask *nrt_ask_new(const struct sched_pod *pod, const struct nrt_args *args,
	const struct resource_table *names);
void nrt_ask_free(struct nrt_ask *ask);
/* Each step of the arithmetic goes there from now on; NULL: nowhere. Borrowed. */
void nrt_ask_listen(struct nrt_ask *ask, const struct steps *steps);

/* Whether the pod fits on the node (Filter). */
enum nrt_reason nrt_filter(struct nrt_ask *ask, const struct sched_node *node);
/* The score of the node, 0 to 100 (Score; there is no NormalizeScore). LeastNUMANodes goes below 0
 * where a pod needs more zones than topologyManagerMaxNUMANodes says: the framework then fails the
 * pod. Where upstream panics there is an answer: zone ids need not be dense; BalancedAllocation of
 * one resource is 100; a container that asks for nothing scores 0. */
int64_t nrt_score(struct nrt_ask *ask, const struct sched_node *node);

/* The NUMA zones that the last nrt_filter() would take for a container, or that an nrt_score()
 * after it found where LeastNUMANodes searches: one for each of the pod's containers, or with scope
 * pod for the whole pod (container 0 alone means anything). Places in the list; 0: none, or it was
 * not looked at. */
uint64_t nrt_taken(const struct nrt_ask *ask, unsigned container);

/* LeastNUMANodes' search by itself: the fewest zones with so much, and of those the closest,
 * of the pod's effective request on this topology; its QoS class is looked at. 0: nothing fits.
 * *closest: no others, as many, are closer. */
uint64_t nrt_required(struct nrt_ask *ask, const struct sched_topology *t, bool *closest);
/* Its score: 100 - count * unit, plus half a unit for the closest; unit is 100 / max_numa_nodes. */
int64_t nrt_least_numa_score(unsigned count, bool closest, unsigned max_numa_nodes);

/* What the over-reserve cache shows of a topology: all that the pods need at once (effective
 * request) taken from every zone, not below 0. A new one; the caller frees. */
struct sched_topology *nrt_over_reserve(
	const struct sched_topology *t, const struct sched_pod *pods, size_t nr_pods);

/* Take an amount from what is available in a zone, or give it back: not below 0, nor above what is
 * allocatable. */
enum zone_change { ZONE_TAKE, ZONE_GIVE_BACK };
void zone_change(
	const struct zone_resource *r, unsigned zone, enum zone_change change, struct quantity q);
/* The same in every zone, for a pod's whole effective request: nobody knows which zone the pod
 * gets. */
void nrt_change_all_zones(
	struct sched_topology *t, const struct sched_pod *pod, enum zone_change change);

/* A pod's effective request: of each resource the larger of any init container's and of the sum
 * over the app containers, and its overhead. Sidecars count as init containers; spec.resources is
 * not seen (scheduler-plugins pkg/util/resource.go). In order of first mention; how many into *nr;
 * the caller frees. */
struct amount *nrt_effective_request(const struct sched_pod *pod, unsigned *nr);

/* Whether the pod counts for a fingerprint by FINGERPRINT_EXCLUSIVE, as schedulers see it since
 * 2026 (v0.33.5 takes any resource that is not native, and init containers, too): a sidecar or app
 * container asks for some of a resource that is not native and listed by a zone; or the pod is
 * Guaranteed and one asks for whole CPUs, memory or huge pages. */
bool nrt_pod_is_exclusive(const struct sched_pod *pod, const struct sched_topology *t,
	const struct resource_table *names);

#endif
