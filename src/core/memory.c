#include <numafit/memory.h>

#include <numafit/search.h>
#include <numafit/text.h>

#include <errno.h>
#include <string.h>

static uint64_t reservation(const struct settings *s, unsigned node_id, const char *type)
{
	uint64_t bytes = 0;

	/* of several entries for one node and kind the last counts, as in the kubelet */
	for (unsigned i = 0; i < s->nr_reserved_memory; i++)
		if (s->reserved_memory[i].node_id == node_id &&
			text_equal(s->reserved_memory[i].type, type))
			bytes = s->reserved_memory[i].bytes;
	return bytes;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void memory_init(struct memory_state *m, const struct topo *t, const struct settings *s)
{
	memset(m, 0, sizeof *m);
	nodeset_each (n, t->nodes) {
		struct memory_node *node = &m->node[n];
		uint64_t huge = 0;

		node->group = nodeset_of(n);
		for (unsigned k = 0; k < t->nr_kinds; k++) {
			char type[TEXT_SIZE_MAX * 2];

			topo_kind_name(t, k, type, sizeof type);
			node->allocatable[k] =
				minus(t->node[n].memory[k], reservation(s, t->ids.id[n], type));
			huge += k ? t->node[n].memory[k] : 0;
		}
		node->allocatable[0] = minus(node->allocatable[0], huge);
		memcpy(node->free, node->allocatable, sizeof node->free);
	}
}

int memory_demand(
	const struct topo *t, const struct request *req, uint64_t bytes[TOPO_KINDS], struct err *e)
{
	memset(bytes, 0, TOPO_KINDS * sizeof *bytes);
	for (unsigned i = 0; i < req->nr_memory; i++) {
		int kind = topo_kind_of_page(t, req->memory[i].page_bytes);
		char size[TEXT_SIZE_MAX];

		if (kind < 0)
			return err_set(e, ENOSPC, "the machine has no hugepages-%s",
				text_size(size, req->memory[i].page_bytes));
		bytes[kind] = req->memory[i].bytes;
	}
	return 0;
}

static bool enough(const struct topo *t, struct nodeset mask, const uint64_t bytes[TOPO_KINDS],
	const uint64_t rows[TOPO_KINDS][NODES_MAX])
{
	for (unsigned k = 0; k < t->nr_kinds; k++) {
		uint64_t sum = 0;

		nodeset_each (n, mask)
			sum += rows[k][n];
		if (sum < bytes[k])
			return false;
	}
	return true;
}

static void fill_rows(const struct topo *t, const struct memory_state *m, struct memory_rows *rows)
{
	for (unsigned k = 0; k < t->nr_kinds; k++)
		nodeset_each (n, t->nodes) {
			rows->allocatable[k][n] = m->node[n].allocatable[k];
			rows->free[k][n] = m->node[n].free[k];
		}
}

static void add_demands(const struct topo *t, const uint64_t bytes[TOPO_KINDS],
	const uint64_t weights[TOPO_KINDS][NODES_MAX], struct family *f)
{
	f->nr_demands = 0;
	for (unsigned k = 0; k < t->nr_kinds; k++)
		if (bytes[k])
			f->demand[f->nr_demands++] =
				(struct family_demand){.weight = weights[k], .need = bytes[k]};
}

/* Nodes that hold nothing may join any set; one that is in use serves alone, or with just its
 * group. */
static void add_masks(const struct topo *t, const struct memory_state *m,
	const uint64_t bytes[TOPO_KINDS], const struct memory_rows *rows, struct family *f)
{
	nodeset_each (n, t->nodes) {
		struct nodeset group = m->node[n].group;

		if (!m->node[n].assignments)
			f->ground.bits |= nodeset_of(n).bits;
		else if (nodeset_next(group, 0) == n &&
			 enough(t, group, bytes, rows->free))
			f->extra[f->nr_extra++] = group;
	}
}

/* The fewest nodes that could hold the demand if nothing were held; all of them when none could. */
static unsigned size_by_allocatable(const struct topo *t, const uint64_t bytes[TOPO_KINDS],
	const struct memory_rows *rows, struct arena *a)
{
	struct family f = {.kind = FAMILY_CAPACITY, .ground = t->nodes};

	add_demands(t, bytes, rows->allocatable, &f);
	unsigned k = family_smallest(&f, a);
	return k ? k : t->ids.nr;
}

unsigned memory_families(const struct topo *t, const struct memory_state *m,
	const uint64_t bytes[TOPO_KINDS], struct memory_rows *rows, struct arena *a,
	struct family f[TOPO_KINDS])
{
	struct family one = {.kind = FAMILY_CAPACITY};
	unsigned nr = 0;

	fill_rows(t, m, rows);
	add_masks(t, m, bytes, rows, &one);
	if (!one.nr_extra && !(one.ground.bits && enough(t, one.ground, bytes, rows->free)))
		return 0;
	add_demands(t, bytes, rows->free, &one);
	one.preferred_size = size_by_allocatable(t, bytes, rows, a);
	for (unsigned k = 0; k < t->nr_kinds; k++) {
		if (!bytes[k])
			continue;
		f[nr] = one;
		topo_kind_name(t, k, f[nr].resource, sizeof f[nr].resource);
		nr++;
	}
	return nr;
}

/* The best of the hints that contain the nodes: preferred before narrow before low. */
static bool best_hint(const struct topo *t, const struct family *hints, struct nodeset containing,
	struct arena *a, struct hint *best)
{
	struct family f = *hints;

	f.required = containing;
	f.nr_extra = 0;
	for (unsigned i = 0; i < hints->nr_extra; i++)
		if (nodeset_within(containing, hints->extra[i]))
			f.extra[f.nr_extra++] = hints->extra[i];
	if (!f.nr_extra && !family_has(&f, f.ground))
		return false;
	return hint_merge_families(&(struct hint_space){.all = t->nodes}, &f, 1, a, best) >= 0;
}

/* Whether that is one node out of a larger group. The kubelet gives a container such a node, and
 * the group falls apart: what is booked then depends on the order of events, and its own check of
 * the state may fail at the next start. Here the container joins the group instead. */
static bool inside_group(const struct memory_state *m, struct nodeset nodes)
{
	const struct memory_node *node = &m->node[nodeset_next(nodes, 0) % NODES_MAX];

	return nodeset_count(nodes) == 1 && node->assignments && !nodeset_equal(node->group, nodes);
}

/* The nodes that the demand is held on: what the merge chose, or what the memory alone would. */
static int choose_nodes(const struct topo *t, const struct memory_state *m,
	const uint64_t bytes[TOPO_KINDS], const struct hint *affinity, struct arena *a,
	struct nodeset *nodes, struct err *e)
{
	struct memory_rows *rows = arena_alloc(a, sizeof *rows);
	struct family *f = arena_array(a, TOPO_KINDS, sizeof *f);
	struct hint best;

	if (!rows || !f)
		return err_set(e, ENOSPC, "the decision needs more working memory than there is");
	unsigned nr = memory_families(t, m, bytes, rows, a, f);
	*nodes = affinity->any ? (struct nodeset){0} : affinity->mask;
	if (!affinity->any && enough(t, *nodes, bytes, rows->free) && !inside_group(m, *nodes))
		return 0;
	if (!nr || !best_hint(t, &f[0], *nodes, a, &best))
		return err_set(e, ENOSPC,
			affinity->any ? "[memorymanager] failed to get the default NUMA affinity, "
					"no NUMA nodes with enough memory is available"
				      : "[memorymanager] failed to find NUMA nodes to extend the "
					"current topology hint");
	if (affinity->preferred && !best.preferred)
		return err_set(e, ENOSPC,
			affinity->any
				? "[memorymanager] failed to find the default preferred hint"
				: "[memorymanager] failed to find the extended preferred hint");
	*nodes = best.mask;
	return 0;
}

/* Nodes of two groups, or of a group and not the whole of it, must not be joined. */
static bool breaks_group(const struct memory_state *m, struct nodeset nodes)
{
	if (nodeset_count(nodes) < 2)
		return false;
	nodeset_each (n, nodes)
		if (m->node[n].assignments && !nodeset_equal(m->node[n].group, nodes))
			return true;
	return false;
}

int memory_allocate(const struct topo *t, const struct memory_state *m,
	const uint64_t bytes[TOPO_KINDS], const struct hint *affinity, struct arena *a,
	struct memory_block blocks[TOPO_KINDS], struct err *e)
{
	struct nodeset nodes = {0};
	int nr = 0, rc = choose_nodes(t, m, bytes, affinity, a, &nodes, e);

	if (rc)
		return rc;
	if (breaks_group(m, nodes))
		return err_set(
			e, ENOSPC, "[memorymanager] preferred hint violates NUMA node allocation");
	for (unsigned k = 0; k < t->nr_kinds; k++)
		if (bytes[k])
			blocks[nr++] =
				(struct memory_block){.kind = k, .nodes = nodes, .bytes = bytes[k]};
	return nr;
}

void memory_hold(struct memory_state *m, const struct memory_block *blocks, unsigned nr)
{
	for (unsigned b = 0; b < nr; b++) {
		uint64_t left = blocks[b].bytes;

		nodeset_each (n, blocks[b].nodes) {
			struct memory_node *node = &m->node[n];
			uint64_t *free = &node->free[blocks[b].kind],
				 part = left < *free ? left : *free;

			node->assignments++;
			node->group = blocks[b].nodes;
			*free -= part;
			node->reserved[blocks[b].kind] += part;
			left -= part;
		}
	}
}

void memory_release(struct memory_state *m, const struct memory_block *blocks, unsigned nr)
{
	for (unsigned b = 0; b < nr; b++) {
		uint64_t left = blocks[b].bytes;

		nodeset_each (n, blocks[b].nodes) {
			struct memory_node *node = &m->node[n];
			uint64_t *held = &node->reserved[blocks[b].kind],
				 part = left < *held ? left : *held;

			if (--node->assignments == 0)
				node->group = nodeset_of(n);
			*held -= part;
			node->free[blocks[b].kind] += part;
			left -= part;
		}
	}
}
