/* The memory of the machine: what may be given out at all, what is booked, what comes back. Which
 * nodes a container gets is decided in memory_hints.c, what containers of one pod take over from
 * each other in memory_pod.c. */
#include <numafit/memory.h>

#include <numafit/number.h>
#include <numafit/text.h>

#include <errno.h>
#include <string.h>

enum { KIND_NAME_MAX = TEXT_SIZE_MAX + 10 };

uint64_t memory_reserved(
	const struct topo *t, const struct settings *s, unsigned node, unsigned kind)
{
	char type[KIND_NAME_MAX];
	uint64_t bytes = 0;

	(void)topo_kind_name(t, kind, type, sizeof type);
	for (unsigned i = 0; i < s->nr_reserved_memory; i++)
		if (s->reserved_memory[i].node_id == t->ids.id[node] &&
			text_equal(s->reserved_memory[i].type, type))
			bytes = s->reserved_memory[i].bytes;
	return bytes;
}

void memory_init(struct memory_state *m, const struct topo *t, const struct settings *s)
{
	/* less devices', unless deviceMemory includes it or no other memory is there */
	struct nodeset own = nodeset_minus(t->nodes_with_memory, t->device_memory);
	bool any = s->device_memory == DEVICE_MEMORY_INCLUDE || nodeset_empty(own);

	memset(m, 0, sizeof *m);
	m->usable = any ? t->nodes_with_memory : own;
	nodeset_each (n, t->nodes)
		m->node[n].group = nodeset_of(n);
	nodeset_each (n, m->usable) {
		struct memory_node *node = &m->node[n];
		uint64_t huge = 0;

		for (unsigned k = 0; k < t->nr_kinds; k++) {
			uint64_t all = t->node[n].memory[k];

			node->allocatable[k] = all - number_min(all, memory_reserved(t, s, n, k));
			huge += k ? all : 0;
		}
		node->allocatable[0] -= number_min(node->allocatable[0], huge);
		memcpy(node->free, node->allocatable, sizeof node->free);
	}
}

int memory_demand(const struct topo *t, const struct memory_ask *asks, unsigned nr,
	struct memory_demand *d, struct err *e)
{
	*d = (struct memory_demand){0};
	for (unsigned i = 0; i < nr; i++) {
		int kind = topo_kind_of_page(t, asks[i].page_bytes);
		char size[TEXT_SIZE_MAX];

		if (kind < 0)
			return err_set(e, ENOSPC, "the machine has no hugepages-%s",
				text_size(size, asks[i].page_bytes));
		d->kinds |= 1u << kind;
		d->bytes[kind] = asks[i].bytes;
	}
	return 0;
}

static uint64_t sum_of_type(const struct reserved_memory *r, unsigned nr, const char *type)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < nr; i++)
		if (text_equal(r[i].type, type))
			sum += number_min(r[i].bytes, UINT64_MAX - sum);
	return sum;
}

/* What each of the two sides says of one type. */
struct reserved_sums {
	const char *type;
	uint64_t configured, allocatable;
};

/* Of the types on list r, the first by name for which the two sides differ, if it comes before
 * *first. */
static void first_difference(const struct settings *s, const struct reserved_memory *allocatable,
	unsigned nr_allocatable, const struct reserved_memory *r, unsigned nr,
	struct reserved_sums *first)
{
	for (unsigned i = 0; i < nr; i++) {
		struct reserved_sums sums = {
			.type = r[i].type,
			.configured =
				sum_of_type(s->reserved_memory, s->nr_reserved_memory, r[i].type),
			.allocatable = sum_of_type(allocatable, nr_allocatable, r[i].type),
		};

		if (sums.configured != sums.allocatable &&
			(!first->type || strcmp(sums.type, first->type) < 0))
			*first = sums;
	}
}

int memory_check_reserved(const struct topo *t, const struct settings *s,
	const struct reserved_memory *node_allocatable, unsigned nr, struct err *e)
{
	struct reserved_sums differ = {0};
	char configured[TEXT_SIZE_MAX], allocatable[TEXT_SIZE_MAX];

	for (unsigned i = 0; i < s->nr_reserved_memory; i++)
		if (node_index(&t->ids, s->reserved_memory[i].node_id) < 0)
			return err_set(e, EINVAL,
				"the reserved memory configuration references a NUMA node %u that "
				"does not exist on this machine",
				s->reserved_memory[i].node_id);
	first_difference(
		s, node_allocatable, nr, s->reserved_memory, s->nr_reserved_memory, &differ);
	first_difference(s, node_allocatable, nr, node_allocatable, nr, &differ);
	if (differ.type)
		return err_set(e, EINVAL,
			"the total amount \"%s\" of type \"%s\" is not equal to the value \"%s\" "
			"determined by Node Allocatable feature",
			text_size(configured, differ.configured), differ.type,
			text_size(allocatable, differ.allocatable));
	nodeset_each (n, t->nodes)
		if (memory_reserved(t, s, n, 0))
			return 0;
	return err_set(e, EINVAL, "[memorymanager] you should specify the system reserved memory");
}

/* kubelet updateMachineState(): a block of 0 bytes is an assignment, too */
void memory_hold(struct memory_state *m, const struct memory_block *blocks, unsigned nr)
{
	for (unsigned b = 0; b < nr; b++) {
		uint64_t left = blocks[b].bytes;

		nodeset_each (n, blocks[b].nodes) {
			struct memory_node *node = &m->node[n];
			uint64_t *free = &node->free[blocks[b].kind],
				 part = number_min(left, *free);

			node->assignments++;
			node->group = blocks[b].nodes;
			*free -= part;
			node->reserved[blocks[b].kind] += part;
			left -= part;
		}
	}
}

/* The node that is as far from the end of the set as `node` is from its beginning. */
static unsigned mirrored(struct nodeset nodes, unsigned node)
{
	unsigned before = nodeset_count(nodeset_and(nodes, nodeset_first(node)));
	unsigned at = NODES_MAX;

	for (unsigned i = nodeset_count(nodes) - before, from = 0; i > 0; i--, from = at + 1)
		at = nodeset_next(nodes, from);
	return at;
}

/* kubelet releaseMemory(). With keep_groups memory comes back from the node that it went to last:
 * what a group's nodes have free is then the same whatever came and went before. */
void memory_release(struct memory_state *m, const struct memory_block *blocks, unsigned nr)
{
	for (unsigned b = 0; b < nr; b++) {
		uint64_t left = blocks[b].bytes;

		nodeset_each (i, blocks[b].nodes) {
			unsigned n = m->keep_groups ? mirrored(blocks[b].nodes, i) : i;
			struct memory_node *node = &m->node[n];
			uint64_t *held = &node->reserved[blocks[b].kind],
				 part = number_min(left, *held);

			if (--node->assignments == 0)
				node->group = nodeset_of(n);
			*held -= part;
			node->free[blocks[b].kind] += part;
			left -= part;
		}
	}
}
