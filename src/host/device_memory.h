#ifndef NUMAFIT_HOST_DEVICE_MEMORY_H
#define NUMAFIT_HOST_DEVICE_MEMORY_H

#include <numafit/nodeset.h>

/* Which of the NUMA nodes *ids have a device's memory, on the machine whose /sys and /proc are
 * under root ("", or a recorded tree): those that NVIDIA's driver names (/proc/driver/nvidia/gpus/
 * ADDRESS/numa_status; POWER9, GH200, GB200), and those of the firmware's generic initiators
 * (has_generic_initiator, Linux 5.10; ACPI SRAT), as the nodes that a GPU keeps for its parts
 * (MIG) are before they have any memory. A node that has CPUs may be among them: it is none. What
 * cannot be read says nothing. Looks at a few small files; never fails. */
struct nodeset device_memory_read(const char *root, const struct node_ids *ids);

#endif
