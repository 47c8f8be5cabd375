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
	struct nodeset group; /* the node itself, or the group it belongs to (Cells) */
	uint64_t allocatable[TOPO_KINDS], free[TOPO_KINDS], reserved[TOPO_KINDS]; /* bytes */
};

/* A plain value: copy, decide on the copy, commit. */
struct memory_state {
	/* Widen one node out of a larger group to the group. The kubelet books such a node alone:
	 * its group falls apart, what is booked then depends on the order of events, and its check
	 * of the state may fail at the next start. A caller that must arrive at one state from
	 * records in any order sets this; false is the kubelet's answer. */
	bool keep_groups;
	struct nodeset usable; /* the nodes that have memory for containers, reserved or not */
	struct memory_node node[NODES_MAX];
};

/* Bytes of one kind, held on these nodes together. */
struct memory_block {
	unsigned kind;
	struct nodeset nodes;
	uint64_t bytes;
};

/* What is asked for. A kind that is asked for with 0 bytes has hints and a block, too. */
struct memory_demand {
	unsigned kinds; /* bit k: kind k is asked for */
	uint64_t bytes[TOPO_KINDS];
};

/* The nr entries of settings' reservedMemory against what Node Allocatable reserves in all (kube,
 * system and eviction reservations, by type; kubelet validateReservedMemory): each type's sums must
 * be equal, and some ordinary memory must be reserved. Of several types that differ the text names
 * the first by name. 0 or -EINVAL with the kubelet's words. */
int memory_check_reserved(const struct topo *t, const struct settings *s,
	const struct reserved_memory *node_allocatable, unsigned nr, struct err *e);

/* A machine on which nothing is held (getDefaultMachineState): allocatable is the total less the
 * reservation, for ordinary memory also less all huge pages. A reservation that exceeds the node
 * leaves 0, where the kubelet's numbers wrap around; nodes that are not usable have 0.
 * keep_groups is off. */
void memory_init(struct memory_state *m, const struct topo *t, const struct settings *s);
/* What is reserved of that kind on that node; of several entries the last counts. */
uint64_t memory_reserved(
	const struct topo *t, const struct settings *s, unsigned node, unsigned kind);

/* The asks by kind of memory (getRequestedResources). -ENOSPC when huge pages of a size are asked
 * for that the machine does not have. */
int memory_demand(const struct topo *t, const struct memory_ask *asks, unsigned nr,
	struct memory_demand *d, struct err *e);

/* What later containers of a pod may take over from its init containers, which have ended by then:
 * bytes of a kind on exactly these nodes (initContainersReusableMemory, for one pod). Zeros are an
 * empty table. What does not fit in is not taken over. */
enum { MEMORY_REUSE_MAX = NODES_MAX };
struct memory_reuse {
	unsigned nr;
	struct memory_block entry[MEMORY_REUSE_MAX];
};

/* What it says of that kind on exactly these nodes (getPodReusableMemory); NULL: nothing. */
uint64_t memory_reusable(const struct memory_reuse *r, struct nodeset nodes, unsigned kind);

/* Rows that families point into while they are in use. */
struct memory_rows {
	uint64_t allocatable[TOPO_KINDS][NODES_MAX];
	uint64_t free[TOPO_KINDS][NODES_MAX];
};
/* The hints for that demand (calculateHints): one family for each kind asked for, all alike; at
 * most TOPO_KINDS of them into f[]. reuse may be NULL: a pod's first container. No set of nodes has
 * room: none at all, which the merge reads as no preference. Returns their number. */
unsigned memory_families(const struct topo *t, const struct memory_state *m,
	const struct memory_demand *d, const struct memory_reuse *reuse, struct memory_rows *rows,
	struct budget *b, struct arena *a, struct family f[TOPO_KINDS]);
/* The hints of a container that has its blocks already (regenerateHints): just where they are.
 * Returns their number; 0, no preference, when the blocks are not what is asked for. */
unsigned memory_families_of_blocks(const struct topo *t, const struct memory_demand *d,
	const struct memory_block *blocks, unsigned nr, struct family f[TOPO_KINDS]);

/* The blocks for that demand under that affinity (Allocate): the affinity's nodes, widened when
 * they have too little free; affinity->any: where memory alone would go. Working memory from *a;
 * when the budget runs out, the best nodes found until then.
 * Returns the number of blocks, written to blocks[TOPO_KINDS] by ascending kind, or -ENOSPC with
 * the kubelet's words. *m is not changed. */
int memory_allocate(const struct topo *t, const struct memory_state *m,
	const struct memory_demand *d, const struct memory_reuse *reuse,
	const struct hint *affinity, struct budget *b, struct arena *a,
	struct memory_block blocks[TOPO_KINDS], struct err *e);

/* Book the blocks, or give them back. Giving back fills the group's nodes in ascending order, so
 * only a group's sums mean something. */
void memory_hold(struct memory_state *m, const struct memory_block *blocks, unsigned nr);
void memory_release(struct memory_state *m, const struct memory_block *blocks, unsigned nr);

/* One container of a pod as the memory manager sees it. */
struct memory_container {
	bool init;        /* an init container */
	bool restartable; /* of those, one that goes on running (a sidecar) */
	struct memory_demand demand;
	unsigned nr_blocks;
	struct memory_block blocks[TOPO_KINDS];
};

/* What the whole pod asks for (getPodRequestedResources), from the demands of its nr containers in
 * order of admission: init containers one after the other beside the sidecars before them, or all
 * that go on running together, whichever is more. A kind that only init containers ask for is left
 * out, as in the kubelet. */
void memory_pod_demand(
	const struct memory_container *pod, unsigned nr, struct memory_demand *total);

/* Book the blocks of the pod's last container, pod[nr - 1], as far as it cannot take them over from
 * earlier init containers, whose blocks are cut by what it takes over; the table follows (Allocate,
 * updatePodReusableMemory, updateInitContainersMemoryBlocks). */
void memory_hold_in_pod(struct memory_state *m, struct memory_reuse *reuse,
	struct memory_container *pod, unsigned nr);
/* The table once the container was found to have its blocks already (updatePodReusableMemory): a
 * plain init container gives, any other takes. */
void memory_reuse_update(struct memory_reuse *reuse, const struct memory_container *c);
/* The pod's container pod[nr - 1] starts: plain init containers before it have ended, and their
 * blocks are given back (manager.go, AddContainer). */
void memory_start(struct memory_state *m, struct memory_container *pod, unsigned nr);

#endif
