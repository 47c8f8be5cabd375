#ifndef NUMAFIT_DEVICES_H
#define NUMAFIT_DEVICES_H

#include <numafit/family.h>
#include <numafit/hint.h>

/* Which devices a container gets: the kubelet's device manager
 * (pkg/kubelet/cm/devicemanager/{manager,topology_hints}.go, as of 1.36). */

struct device {
	const char *id;
	bool has_topology;    /* its plugin says where it is, be it nowhere */
	bool placed;          /* it names a NUMA node, be it one that the machine lacks */
	struct nodeset nodes; /* those of the machine; may be several */
	bool healthy;
};

/* All devices of one resource, ascending by id (byte order), which is also the order in which
 * devices that are alike are given out. The kubelet takes any of them. */
struct device_resource {
	const char *name;
	size_t nr;
	const struct device *device;
};

/* What one container asks for and may use: one flag for each device of the resource. */
struct device_claim {
	const struct device_resource *resource;
	uint64_t count;
	const bool *held;     /* by any container */
	const bool *reusable; /* held by an earlier init container of the pod; NULL: none */
};

/* The hints for the claim (generateDeviceTopologyHints, over the NUMA nodes that have devices of
 * the resource). What the family points to comes from *a. 0, or -ENOMEM. */
int devices_family(const struct device_claim *c, struct nodeset all, struct budget *b,
	struct arena *a, struct family *f);

/* The devices for the claim under that affinity (devicesToAllocate): reusable ones first, then
 * those on the affinity's nodes, others, those without a node. chosen has a flag for each device.
 * 0, or -ENOSPC with the kubelet's words. */
int devices_allocate(
	const struct device_claim *c, const struct hint *affinity, bool *chosen, struct err *e);

#endif
