#ifndef NUMAFIT_KUBELET_DEVICE_COUNT_H
#define NUMAFIT_KUBELET_DEVICE_COUNT_H

#include <kubelet/pod_resources_pb.h>

/* How many devices there are on each NUMA node, and how many of them somebody has. */

struct device_count_node {
	int64_t id; /* kernel id, as the plugin says; the machine need not have it */
	unsigned allocatable, used;
};
struct device_count {
	const char *resource;
	const struct device_count_node *on; /* ascending by id */
	size_t nr;
};
/* Count them, by resource (ascending, byte order). A device of several NUMA nodes counts on each of
 * them, as the resource-topology-exporter has it, one that is on none nowhere; a resource without
 * any device on a NUMA node is left out. used: of the allocatable ones those that pods hold. All is
 * in *a but the names, which are all's. 0, or -ENOMEM: the arena's limit. */
int devices_count(const struct devices_allocatable *all, const struct pods_held *held,
	struct arena *a, const struct device_count **out, size_t *nr);

#endif
