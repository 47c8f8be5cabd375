#ifndef NUMAFIT_NUMAPLACEMENT_H
#define NUMAFIT_NUMAPLACEMENT_H

#include <numafit/arena.h>
#include <numafit/nodeset.h>

/* On which NUMA node each of a node's containers is, packed for schedulers that preempt
 * (k8stopologyawareschedwg/numaplacement, version v001): they know the containers and want to know
 * what comes free where. Names are not in it, only the order of their hashes is; so a reader that
 * has another set of containers in mind can read nothing at all, and takes it for stale. */

struct placed_container {
	uint64_t hash;
	unsigned node; /* dense index */
};
/* XXH64 of the three names with a NUL between them. */
uint64_t numaplacement_hash(const char *ns, const char *pod, const char *container);

enum {
	NUMAPLACEMENT_METADATA_MAX =
		sizeof "npv0v001::ve=leb89::cc=18446744073709551615::nn=64::bn=63"
};
struct numaplacement {
	char metadata[NUMAPLACEMENT_METADATA_MAX];
	/* By dense index: where each of the node's containers stands among all, as distances, in
	 * printable characters. NULL: no container is there, or it is the node that has the most of
	 * them, whose vector is left out. From the arena. */
	const char *vector[NODES_MAX];
};
/* Pack nr containers of a machine with so many NUMA nodes; the list is sorted on the way. 0;
 * -EEXIST: a container is there twice, on different nodes; -ENOMEM: the arena's limit. */
int numaplacement_pack(struct placed_container *list, size_t nr, unsigned nr_nodes, struct arena *a,
	struct numaplacement *out);

#endif
