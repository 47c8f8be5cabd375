#ifndef NUMAFIT_NODESET_H
#define NUMAFIT_NODESET_H

#include <numafit/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of NUMA nodes as one word over dense indexes 0..nr-1. Kernel ids may have gaps and may
 * exceed 63 (POWER: 0, 8, 250..255); struct node_ids translates. The renaming keeps the order,
 * so counts, intersections and the numeric order of masks of equal size are those of the ids
 * (kubelet pkg/kubelet/cm/topologymanager/bitmask). */
enum { NODES_MAX = 64, NODE_ID_MAX = 1023 };
struct nodeset {
	uint64_t bits;
};

/* The kernel id of every dense index, ascending. */
struct node_ids {
	unsigned nr;
	uint16_t id[NODES_MAX];
};

static inline struct nodeset nodeset_of(unsigned node)
{
	return (struct nodeset){UINT64_C(1) << node};
}
static inline struct nodeset nodeset_first(unsigned nr)
{
	return (struct nodeset){nr >= NODES_MAX ? ~UINT64_C(0) : (UINT64_C(1) << nr) - 1};
}
static inline bool nodeset_has(struct nodeset s, unsigned node)
{
	return node < NODES_MAX && (s.bits >> node & 1);
}
static inline struct nodeset nodeset_and(struct nodeset a, struct nodeset b)
{
	return (struct nodeset){a.bits & b.bits};
}
static inline struct nodeset nodeset_or(struct nodeset a, struct nodeset b)
{
	return (struct nodeset){a.bits | b.bits};
}
static inline struct nodeset nodeset_minus(struct nodeset a, struct nodeset b)
{
	return (struct nodeset){a.bits & ~b.bits};
}
static inline bool nodeset_equal(struct nodeset a, struct nodeset b)
{
	return a.bits == b.bits;
}
static inline bool nodeset_empty(struct nodeset s)
{
	return s.bits == 0;
}
static inline bool nodeset_within(struct nodeset a, struct nodeset b)
{
	return (a.bits & ~b.bits) == 0;
}
static inline unsigned nodeset_count(struct nodeset s)
{
	return (unsigned)__builtin_popcountll(s.bits);
}
/* The lowest index >= from, or NODES_MAX when there is none. */
static inline unsigned nodeset_next(struct nodeset s, unsigned from)
{
	uint64_t rest = from < NODES_MAX ? s.bits >> from : 0;
	return rest ? from + (unsigned)__builtin_ctzll(rest) : NODES_MAX;
}

/* for each dense index of set, ascending */
#define nodeset_each(node, set)                                                                    \
	for (unsigned node = nodeset_next((set), 0); node < NODES_MAX;                             \
		node = nodeset_next((set), node + 1))

/* NUMA nodes by kernel id, ascending, each once, as another program says them: the machine need not
 * have them, and an id may be no NUMA node's. The ids are borrowed. */
struct node_id_list {
	const int64_t *id;
	size_t nr;
};
/* Those NUMA nodes of the list that are in *ids; empty: the machine has none of them. */
struct nodeset nodeset_of_list(const struct node_ids *ids, struct node_id_list list);
bool node_id_list_equal(struct node_id_list a, struct node_id_list b);

/* The dense index of kernel id, or -1. */
int node_index(const struct node_ids *ids, unsigned id);

/* Parse a kernel list of node ids ("0-3,8") into *out. 0; as cpuset_parse(), or -ENOENT when an
 * id is not a node of *ids (*out untouched). */
int nodeset_parse(
	struct nodeset *out, const struct node_ids *ids, const char *s, size_t len, struct err *e);

enum { NODESET_TEXT_MAX = NODES_MAX * 5 + 1 };
/* The kernel list of s ("0-3,8") into buf of cap bytes. Returns buf; with
 * cap >= NODESET_TEXT_MAX nothing is ever cut. */
const char *nodeset_format(struct nodeset s, const struct node_ids *ids, char *buf, size_t cap);

#endif
