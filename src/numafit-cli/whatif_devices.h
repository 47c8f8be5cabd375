#ifndef NUMAFIT_CLI_WHATIF_DEVICES_H
#define NUMAFIT_CLI_WHATIF_DEVICES_H

#include <command/command.h>
#include <numafit/devices.h>
#include <numafit/pod.h>
#include <numafit/topo.h>
#include <numafit/vec.h>

/* Devices that an imagined pod has been given already, as through claims (DRA). */

struct whatif_device {
	const char *name;  /* a driver's, or a resource's */
	const char *nodes; /* a kernel list of NUMA nodes, all equally near: "0-1,4" */
};
struct whatif_devices {
	VEC(struct whatif_device);
};

/* "gpu.example.com/node0-1,4": a device of that name on these NUMA nodes. For the table of options:
 * adds one to the struct whatif_devices at *member. */
int whatif_device_read(const struct option_row *o, void *member, char *value, struct err *e);

/* What the pod's containers are given, for as long as the pod is looked at. */
struct whatif_given {
	struct device_resource resource[POD_DEVICES_MAX];
	struct device *device; /* of all of them */
};

/* Gives the devices to each container of the pod that has claims, by its file, or, with `to_all`,
 * to each. 0; -EINVAL with text: the machine has no such NUMA node, no container has claims, or
 * they are too many. */
int whatif_devices_give(const struct whatif_devices *devices, bool to_all, const struct topo *t,
	struct pod *pod, struct ask *containers, struct whatif_given *given, struct err *e);
void whatif_given_fini(struct whatif_given *given);

#endif
