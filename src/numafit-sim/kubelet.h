#ifndef NUMAFIT_SIM_KUBELET_H
#define NUMAFIT_SIM_KUBELET_H

#include <numafit/request.h>

/* The kubelet's part: what a pod asks for, in the numbers that a container runtime gets. */

enum { MILLI_PER_CPU = 1000 };

struct asked {
	enum qos qos;
	uint64_t cpu_milli, memory_bytes; /* 0: not asked for */
	unsigned nr_hugepages;
	struct memory_ask hugepages[TOPO_KINDS - 1];
};

/* The cgroup values for a container on that machine: shares, quota of a guaranteed one, its memory
 * limit, and a limit for every huge page size that the machine has. -E2BIG: asks for more
 * different page sizes than fit. */
int kubelet_resources(
	const struct topo *t, const struct asked *a, struct linux_resources *out, struct err *e);

enum { CGROUP_PATH_MAX = 128 };
/* The parent cgroup of the pod's containers, into buf. */
void kubelet_cgroup_parent(char buf[CGROUP_PATH_MAX], enum qos qos, const char *pod_uid);

#endif
