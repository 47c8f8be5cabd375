#ifndef NUMAFIT_HOST_HOTPLUG_H
#define NUMAFIT_HOST_HOTPLUG_H

#include <numafit/topo.h>

/* What of a machine comes and goes while it runs: CPUs go offline and online, memory and huge pages
 * are added and taken away. NUMA nodes stay: one that goes has no CPU and no memory any more, one
 * that comes is for the next start. */

struct hotplug {
	struct cpuset online;
	struct cpuset isolated;                 /* isolated.h */
	struct cpuset of_node[NODES_MAX];       /* as each NUMA node lists its own */
	uint64_t memory[NODES_MAX][TOPO_KINDS]; /* bytes, as struct topo has them */
	struct nodeset device_memory; /* nodes that are a device's by now (device_memory.h) */
};

/* The CPUs that are online now, on the machine whose /sys is under root ("/", or a recorded tree).
 * 0 or -errno, -EINVAL with text. */
int hotplug_read_cpus(const char *root, struct cpuset *online, struct err *e);
/* Likewise those that the machine has and that are offline. */
int hotplug_read_offline(const char *root, struct cpuset *offline, struct err *e);
/* What one of *t's nodes has now, its memory by *t's kinds, into *now. 0, or as above. */
int hotplug_read_node(
	const char *root, const struct topo *t, unsigned node, struct hotplug *now, struct err *e);

/* Whether *t is not as *now says, by what comes and goes. */
bool hotplug_differs(const struct topo *t, const struct hotplug *now);
/* Whether *t has a CPU on another NUMA node than those that list the CPU: the machine was read
 * wrongly. */
bool hotplug_contradicts(const struct topo *t, const struct hotplug *now);
/* The machine *known, of which all CPUs are known that have been online so far, as it is now. 0;
 * -ENXIO: CPUs are online of which it knows nothing; else as topo_seal(). */
int hotplug_apply(
	const struct topo *known, const struct hotplug *now, struct topo *out, struct err *e);

#endif
