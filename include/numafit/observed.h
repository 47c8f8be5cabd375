#ifndef NUMAFIT_OBSERVED_H
#define NUMAFIT_OBSERVED_H

#include <numafit/ledger.h>

/* The pod's annotation that says so, for KAI Scheduler's numa plugin. */
#define OBSERVED_ANNOTATION "kai.scheduler/numa-placement-observed"

/* What a pod with CPUs of its own has of each NUMA node, by the ledger: what a scheduler cannot
 * read from the kubelet's PodResources where the kubelet's managers place nothing. */

/* Devices of one resource, by dense NUMA node. */
struct observed_devices {
	const char *resource;
	unsigned on[NODES_MAX];
};

struct observed {
	const struct topo *topo;
	const struct pod *pod; /* whose; borrowed from the ledger */
	/* All CPUs of the pod, once each: containers take over from init containers. */
	struct cpuset cpus;
	/* Bytes of memory that lie on one NUMA node alone, by kind, and those of the claims that
	 * its containers run on. What lies on several together is not in any of them. */
	uint64_t bytes[TOPO_KINDS][NODES_MAX];
	/* what the ledger does not know; ascending by resource, borrowed */
	const struct observed_devices *devices;
	size_t nr_devices;
};

/* The pod whose entries begin at *i (ledger_at_by_pod()); *i becomes the next pod's. Containers
 * that are still to come count as those that run: what is held for them nobody else gets. Devices
 * are left to the caller. False: there is no pod there. */
bool observed_next(struct observed *out, const struct ledger *l, size_t *i);

#endif
