#ifndef NUMAFIT_SNAPSHOT_H
#define NUMAFIT_SNAPSHOT_H

#include <numafit/room.h>

/* One read-only picture of the node, from which every report is printed. A plain value without
 * pointers but to the machine, cheap to take: per-node sums, no containers. */
struct snapshot_node {
	unsigned cpus, cpus_held, cpus_reserved, cpus_pool;
	unsigned cpus_available; /* that a newcomer could be given of this NUMA node alone */
	uint64_t allocatable[TOPO_KINDS], free[TOPO_KINDS]; /* bytes */
	struct nodeset group; /* nodes whose memory is held together with this one's */
};

struct snapshot {
	const struct topo *topo;
	struct cpuset pool, held, reserved;
	unsigned nr_containers, nr_exclusive, nr_not_preferred;
	unsigned nr_own_not_preferred; /* of these, those with CPUs of their own */
	unsigned nr_waiting;           /* held for containers of their pod that are still to come */
	struct node_fragmentation fragmentation;
	struct snapshot_node node[NODES_MAX];
};

void snapshot_take(struct snapshot *s, const struct ledger *l, const struct settings *settings);

#endif
