#ifndef NUMAFIT_HOST_MACHINE_DROPPED_H
#define NUMAFIT_HOST_MACHINE_DROPPED_H

#include <host/correction.h>
#include <numafit/topo.h>

/* Packages and last-level caches that hwloc has dropped, as they cross one another, by the kernel's
 * files below /sys/devices/system/cpu under root ("" or a recorded tree; NULL: there are none).
 * They go into t->cpu[], of CPUs without a NUMA node, too; what is added goes to *to. */

/* The sockets of the CPUs *without, for which hwloc has no package, by their numbers in the files;
 * all but those with such a number stay in socket 0. numbered: other CPUs' sockets go by the
 * kernel's numbers. */
void machine_add_packages(const char *root, const struct cpuset *without, bool numbered,
	struct topo *t, const struct correction_sink *to);
/* The last-level caches (`uncore`) of the CPUs *without, for which hwloc has no level-3 cache.
 * Where the files have none either, a socket's CPUs have one together. Afterwards all numbers
 * differ that should. Call it when sockets are known. */
void machine_add_caches(const char *root, const struct cpuset *without, struct topo *t,
	const struct correction_sink *to);

#endif
