#ifndef NUMAFIT_HOST_DEVICE_NODE_H
#define NUMAFIT_HOST_DEVICE_NODE_H

#include <numafit/arena.h>
#include <numafit/request.h>

/* The NUMA nodes of the devices in a container's spec, as the kernel knows them: at once, from
 * sysfs under root ("/"), for those that nobody else says anything of. */

/* The devices that have a place: device nodes by their number (/sys/dev, then up to the first
 * ancestor that has a numa_node; VFIO groups by the devices in them), CDI names with a PCI address
 * in them ("vendor.com/class=0000:81:00.0", "...=pci-0000-81-00-0") by that. A PCI device that is
 * found in both ways is one. Those without a node, or with one that the machine lacks, are left
 * out; and so is what comes after 256 devices, or 4,096 looks at sysfs. Device ids are PCI
 * addresses, or paths below /sys/devices. As one resource with the name "devices", from *a; NULL:
 * there is none, or *a is too small.
 */
const struct device_resource *device_nodes_of(
	const char *root, const struct topo *t, const struct request *req, struct arena *a);

/* The NUMA node (dense index) of the PCI device with that address ("0000:81:00.0"), or of the
 * devices below that PCIe root complex ("pci0000:80"), as the kernel knows it; -1: of neither form,
 * not there, or without a node that the machine has. Looks at 64 files at most. */
int device_node_of_bus(const char *root, const struct topo *t, const char *bus);

#endif
