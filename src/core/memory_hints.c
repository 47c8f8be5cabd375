/* Which NUMA nodes may hold a demand, and which of them do (kubelet policy_static.go). */
#include <numafit/memory.h>

#include <errno.h>

static bool asks_for_kind(const struct memory_demand *d, unsigned kind)
{
	return d->kinds >> kind & 1;
}

/* Whether the rows' sums over mask, and what may be taken over there, cover the demand. */
static bool enough(const struct topo *t, struct nodeset mask, const struct memory_demand *d,
	const uint64_t rows[TOPO_KINDS][NODES_MAX], const struct memory_reuse *reuse)
{
	for (unsigned k = 0; k < t->nr_kinds; k++) {
		uint64_t sum = memory_reusable(reuse, mask, k);

		nodeset_each (n, mask)
			sum += rows[k][n];
		if (asks_for_kind(d, k) && sum < d->bytes[k])
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

static void add_demands(const struct topo *t, const struct memory_demand *d,
	const uint64_t weights[TOPO_KINDS][NODES_MAX], struct family *f)
{
	for (unsigned k = 0; k < t->nr_kinds; k++)
		if (asks_for_kind(d, k) && d->bytes[k])
			f->demand[f->nr_demands++] =
				(struct family_demand){.weight = weights[k], .need = d->bytes[k]};
}

/* Nodes of two groups, or of a group and not the whole of it, must not be joined (kubelet
 * isAffinityViolatingNUMAAllocations). */
static bool breaks_group(const struct memory_state *m, struct nodeset nodes)
{
	if (nodeset_count(nodes) < 2)
		return false;
	nodeset_each (n, nodes)
		if (m->node[n].assignments && !nodeset_equal(m->node[n].group, nodes))
			return true;
	return false;
}

/* Whether that is one node out of a larger group: no hint, but no violation either. */
static bool inside_group(const struct memory_state *m, struct nodeset nodes)
{
	const struct memory_node *node = &m->node[nodeset_next(nodes, 0) % NODES_MAX];

	return nodeset_count(nodes) == 1 && node->assignments && !nodeset_equal(node->group, nodes);
}

/* What one call has to go by. */
struct question {
	const struct topo *t;
	const struct memory_state *m;
	const struct memory_demand *d;
	const struct memory_reuse *reuse;
	struct budget *budget;
	struct arena *arena;
};

/* The mask stands outside the rule: is it a hint all the same? */
static void add_extra_mask(const struct question *q, const struct memory_rows *rows,
	struct nodeset mask, struct family *f)
{
	if (!nodeset_empty(mask) && !family_has(f, mask) && !breaks_group(q->m, mask) &&
		!inside_group(q->m, mask) && enough(q->t, mask, q->d, rows->allocatable, NULL) &&
		enough(q->t, mask, q->d, rows->free, q->reuse))
		f->extra[f->nr_extra++] = mask;
}

_Static_assert(
	NODES_MAX + MEMORY_REUSE_MAX <= FAMILY_EXTRA, "a mask for each group and each reuse");

/* The family that all kinds share; false when no set of nodes has room. Nodes that hold nothing may
 * join any set: that is the rule. One that is in use serves alone, or with just its group; and a
 * set may have enough thanks to what can be taken over just there. */
static bool build_family(const struct question *q, struct memory_rows *rows, struct family *f)
{
	struct family whole = {.kind = FAMILY_CAPACITY, .ground = q->t->nodes};

	*f = (struct family){.kind = FAMILY_CAPACITY};
	fill_rows(q->t, q->m, rows);
	add_demands(q->t, q->d, rows->free, f);
	nodeset_each (n, q->t->nodes)
		if (!q->m->node[n].assignments)
			f->ground = nodeset_or(f->ground, nodeset_of(n));
	nodeset_each (n, q->t->nodes)
		if (q->m->node[n].assignments && nodeset_next(q->m->node[n].group, 0) == n)
			add_extra_mask(q, rows, q->m->node[n].group, f);
	for (unsigned i = 0; q->reuse && i < q->reuse->nr; i++)
		add_extra_mask(q, rows, q->reuse->entry[i].nodes, f);
	if (family_is_empty(f))
		return false;
	/* the fewest nodes that could hold the demand if nothing were held */
	add_demands(q->t, q->d, rows->allocatable, &whole);
	f->preferred_size = family_smallest(&whole, q->budget, q->arena);
	return true;
}

unsigned memory_families(const struct topo *t, const struct memory_state *m,
	const struct memory_demand *d, const struct memory_reuse *reuse, struct memory_rows *rows,
	struct budget *b, struct arena *a, struct family f[TOPO_KINDS])
{
	const struct question q = {t, m, d, reuse, b, a};
	struct family one;
	unsigned nr = 0;

	if (!build_family(&q, rows, &one))
		return 0;
	for (unsigned k = 0; k < t->nr_kinds; k++) {
		if (!asks_for_kind(d, k))
			continue;
		f[nr] = one;
		f[nr].capacity.weight = rows->allocatable[k];
		f[nr].unallocated.weight = rows->free[k];
		(void)topo_kind_name(t, k, f[nr].resource, sizeof f[nr].resource);
		nr++;
	}
	return nr;
}

unsigned memory_families_of_blocks(const struct topo *t, const struct memory_demand *d,
	const struct memory_block *blocks, unsigned nr, struct family f[TOPO_KINDS])
{
	if (nr != (unsigned)__builtin_popcount(d->kinds))
		return 0;
	for (unsigned b = 0; b < nr; b++) {
		if (!asks_for_kind(d, blocks[b].kind) ||
			blocks[b].bytes != d->bytes[blocks[b].kind])
			return 0;
		f[b] = (struct family){
			.kind = FAMILY_CAPACITY,
			.nr_extra = 1,
			.extra = {blocks[b].nodes},
			.preferred_size = nodeset_count(blocks[b].nodes),
		};
		(void)topo_kind_name(t, blocks[b].kind, f[b].resource, sizeof f[b].resource);
	}
	return nr;
}

/* The best of the hints that contain the nodes: preferred before narrow before low (kubelet
 * findBestHint). */
static bool best_hint_around(const struct question *q, struct family *hints,
	struct nodeset containing, struct hint *best)
{
	unsigned nr = 0;

	hints->required = containing;
	for (unsigned i = 0; i < hints->nr_extra; i++)
		if (nodeset_within(containing, hints->extra[i]))
			hints->extra[nr++] = hints->extra[i];
	hints->nr_extra = nr;
	if (family_is_empty(hints))
		return false;
	return hint_merge_families(&(struct hint_space){.all = q->t->nodes}, hints, 1, q->budget,
		       q->arena, best) >= 0;
}

/* The messages for no hint that will do, and for only one that is worse than the affinity. */
struct refusals {
	const char *none, *worse;
};
static const struct refusals default_refusals = {
	"[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory "
	"is available",
	"[memorymanager] failed to find the default preferred hint"};
static const struct refusals extend_refusals = {
	"[memorymanager] failed to find NUMA nodes to extend the current topology hint",
	"[memorymanager] failed to find the extended preferred hint"};

/* The nodes that the demand is held on: what the merge chose, or what the memory alone would
 * (kubelet getDefaultHint, extendTopologyManagerHint). Both look only at the hints for ordinary
 * memory. */
static int choose_memory_nodes(
	const struct question *q, const struct hint *affinity, struct nodeset *nodes, struct err *e)
{
	const struct refusals *why = affinity->any ? &default_refusals : &extend_refusals;
	struct memory_rows *rows = arena_alloc(q->arena, sizeof *rows);
	struct family *f = arena_alloc(q->arena, sizeof *f);
	struct hint best;

	if (!rows || !f)
		return err_set(e, ENOSPC, "the decision needs more working memory than there is");
	fill_rows(q->t, q->m, rows);
	*nodes = affinity->any ? (struct nodeset){0} : affinity->mask;
	if (!affinity->any && enough(q->t, *nodes, q->d, rows->free, NULL) &&
		!(q->m->keep_groups && inside_group(q->m, *nodes)))
		return 0;
	if (!asks_for_kind(q->d, 0) || !build_family(q, rows, f) ||
		!best_hint_around(q, f, *nodes, &best))
		return err_set(e, ENOSPC, "%s", why->none);
	if (affinity->preferred && !best.preferred)
		return err_set(e, ENOSPC, "%s", why->worse);
	*nodes = best.mask;
	return 0;
}

int memory_allocate(const struct topo *t, const struct memory_state *m,
	const struct memory_demand *d, const struct memory_reuse *reuse,
	const struct hint *affinity, struct budget *b, struct arena *a,
	struct memory_block blocks[TOPO_KINDS], struct err *e)
{
	const struct question q = {t, m, d, reuse, b, a};
	struct nodeset nodes = {0};
	int nr = 0, rc = choose_memory_nodes(&q, affinity, &nodes, e);

	if (rc)
		return rc;
	if (breaks_group(m, nodes))
		return err_set(
			e, ENOSPC, "[memorymanager] preferred hint violates NUMA node allocation");
	for (unsigned k = 0; k < t->nr_kinds; k++)
		if (asks_for_kind(d, k))
			blocks[nr++] = (struct memory_block){
				.kind = k, .nodes = nodes, .bytes = d->bytes[k]};
	return nr;
}
