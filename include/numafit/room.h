#ifndef NUMAFIT_ROOM_H
#define NUMAFIT_ROOM_H

#include <numafit/fragmentation.h>
#include <numafit/ledger.h>

/* What a newcomer could be given of each NUMA node alone, as the node is now: the one definition
 * for what schedulers read of it and for its fragmentation.
 *
 * CPUs: with the static manager those that nobody holds, that are not reserved, nor promised to
 * tokens, nor is a container left on them; with full-pcpus-only, no core of which any is reserved
 * or held. Memory: with the static manager what is free, but nothing on a NUMA node whose memory is
 * held together with others': there it is given out together only. Without these managers nothing
 * is booked but what claims hold, and all else that is allocatable can be had. */
struct room {
	unsigned cpus[NODES_MAX];     /* by dense NUMA node, whatever the shared pool needs */
	unsigned cpus_all[NODES_MAX]; /* the same if nobody held any */
	/* CPUs that the shared pool can give up, all in all, where numafit decides; no limit in
	 * other modes and without the static manager. */
	unsigned spare;
	uint64_t memory[NODES_MAX][TOPO_KINDS]; /* bytes */
};

void room_take(struct room *r, const struct ledger *l, const struct settings *s);
/* How far what is free lies apart, on a machine of nr NUMA nodes. */
struct node_fragmentation room_fragmentation(const struct room *r, unsigned nr);

#endif
