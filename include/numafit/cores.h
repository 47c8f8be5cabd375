#ifndef NUMAFIT_CORES_H
#define NUMAFIT_CORES_H

#include <numafit/topo.h>

/* Cores as they are: each is given as a whole or not at all (CORES_WHOLE of settings.h). Where the
 * cores of a machine differ in size (P and E cores; a thread that is offline) not every number of
 * CPUs can be made of whole cores: three CPUs can not be made of cores of two. */

/* Cores by their size, which is their number of CPUs. No hardware has cores of more than eight; a
 * larger core than CORE_SIZE_MAX is never given. */
enum { CORE_SIZE_MAX = 16, CORE_LEVELS = 5 };
struct core_stock {
	uint16_t of[CORE_SIZE_MAX + 1]; /* by size */
};

/* CPUs that containers are to have at the same time, of different cores each. */
struct core_need {
	unsigned count;             /* of all of them */
	unsigned first;             /* of the first one, or of a pod as a whole */
	unsigned rest[CORE_LEVELS]; /* by k: the sum of what each container's number is modulo 2^k:
				       so many CPUs come from cores smaller than 2^k, at least */
};
/* One more container that needs count CPUs. */
void core_need_add(struct core_need *n, unsigned count);
/* The larger one of both in each respect, of containers that run at different times. */
struct core_need core_need_max(struct core_need a, const struct core_need *b);

/* Whether some of the cores have exactly n->first CPUs and, where all sizes are powers of two,
 * others of them what the other containers need: then this is exact for all of them. */
bool cores_have(const struct core_stock *s, const struct core_need *n);
/* The most CPUs, up to count, that cores of *near have while cores of *rest have all others of
 * count; 0 also when nothing does. */
unsigned cores_most_near(
	const struct core_stock *near, const struct core_stock *rest, unsigned count);

/* Of the CPUs those of cores that are among them as a whole. */
struct cpuset cores_within(const struct topo *t, const struct cpuset *cpus);
/* The cores that are among the CPUs as a whole. */
struct core_stock cores_among(const struct topo *t, const struct cpuset *cpus);
/* For each NUMA node with CPUs, by dense node, the cores whose CPUs on that NUMA node are all among
 * the CPUs. Other elements of on[] stay as they are. */
void cores_of_nodes(
	const struct topo *t, const struct cpuset *cpus, struct core_stock on[NODES_MAX]);
struct core_stock cores_plus(struct core_stock a, const struct core_stock *b);
struct core_stock cores_less(struct core_stock a, const struct core_stock *b);
/* Whether the machine's cores differ in size. */
bool cores_differ(const struct topo *t);
/* The number of CPUs by which containers with whole cores are best sized: the largest core's, of
 * those that have CPUs of the set. */
unsigned cores_step(const struct topo *t, const struct cpuset *cpus);

/* What a demand for whole cores looks at (family.h), by dense node. */
struct core_rows {
	struct core_need need;
	struct core_stock reusable; /* beside those of any nodes */
	struct core_stock on[NODES_MAX];
};
/* Whether the cores of the nodes have what is needed. More nodes never have less. */
bool cores_of_nodes_have(const struct core_rows *r, struct nodeset nodes);

#endif
