#ifndef NUMAFIT_MEMORY_H
#define NUMAFIT_MEMORY_H

#include <numafit/family.h>
#include <numafit/request.h>
#include <numafit/settings.h>
#include <numafit/topo.h>

/* How many bytes of which NUMA nodes a container gets: the kubelet's Static memory manager
 * (pkg/kubelet/cm/memorymanager/policy_static.go). Nodes that serve one container together form a
 * group, and until the last of its containers is gone they serve such containers only. */

struct memory_node {
	unsigned assignments; /* blocks that lie on this node, each kind counted */
	struct nodeset group; /* the node itself, or the group it belongs to */
	uint64_t allocatable[TOPO_KINDS], free[TOPO_KINDS], reserved[TOPO_KINDS]; /* bytes */
};

/* A plain value: copy, decide on the copy, commit. */
struct memory_state {
	struct memory_node node[NODES_MAX];
};

/* Bytes of one kind, held on these nodes together. */
struct memory_block {
	unsigned kind;
	struct nodeset nodes;
	uint64_t bytes;
};

/* A machine on which nothing is held: allocatable is the total less the reservation, for ordinary
 * memory also less all huge pages. A reservation that exceeds the node leaves 0. */
void memory_init(struct memory_state *m, const struct topo *t, const struct settings *s);

/* The request by kind of memory; bytes[kind] 0 where nothing is asked. -ENOSPC when it asks for
 * huge pages of a size that the machine does not have. */
int memory_demand(
	const struct topo *t, const struct request *req, uint64_t bytes[TOPO_KINDS], struct err *e);

/* Rows that families point into while they are in use. */
struct memory_rows {
	uint64_t allocatable[TOPO_KINDS][NODES_MAX];
	uint64_t free[TOPO_KINDS][NODES_MAX];
};
/* The hints for that demand: one family for each kind asked for, all alike (kubelet
 * calculateHints); at most TOPO_KINDS of them into f[]. No set of nodes has room: none at all,
 * which the merge reads as no preference. Returns their number. */
unsigned memory_families(const struct topo *t, const struct memory_state *m,
	const uint64_t bytes[TOPO_KINDS], struct memory_rows *rows, struct arena *a,
	struct family f[TOPO_KINDS]);

/* The blocks for that demand under that affinity (kubelet Allocate): the affinity's nodes, widened
 * when they have too little free or are one node of a group. Working memory from *a. Returns the number of blocks, written to
 * blocks[TOPO_KINDS], or -ENOSPC with the kubelet's words. *m is not changed. */
int memory_allocate(const struct topo *t, const struct memory_state *m,
	const uint64_t bytes[TOPO_KINDS], const struct hint *affinity, struct arena *a,
	struct memory_block blocks[TOPO_KINDS], struct err *e);

/* Book the blocks, or give them back. Giving back fills the group's nodes in ascending order, so
 * only a group's sums mean something. */
void memory_hold(struct memory_state *m, const struct memory_block *blocks, unsigned nr);
void memory_release(struct memory_state *m, const struct memory_block *blocks, unsigned nr);

#endif
