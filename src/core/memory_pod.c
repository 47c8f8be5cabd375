/* Containers of one pod: what they ask for together, and what later ones take over from init
 * containers (kubelet policy_static.go, manager.go). */
#include <numafit/memory.h>
#include <numafit/number.h>

#include <assert.h>

/* Plain init containers end before the next container starts; what they hold is left to it. */
static bool ends_before_next(const struct memory_container *c)
{
	return c->init && !c->restartable;
}

void memory_pod_demand(const struct memory_container *pod, unsigned nr, struct memory_demand *total)
{
	*total = (struct memory_demand){0};
	for (unsigned i = 0; i < nr; i++)
		if (!pod[i].init)
			total->kinds |= pod[i].demand.kinds;
	for (unsigned k = 0; k < TOPO_KINDS; k++) {
		uint64_t lasting = 0, peak = 0;

		if (!(total->kinds >> k & 1))
			continue;
		for (unsigned i = 0; i < nr; i++) {
			if (ends_before_next(&pod[i]))
				peak = number_max(peak, lasting + pod[i].demand.bytes[k]);
			else
				lasting += pod[i].demand.bytes[k];
		}
		total->bytes[k] = number_max(peak, lasting);
	}
}

static const struct memory_block *find_reusable(
	const struct memory_reuse *r, struct nodeset nodes, unsigned kind)
{
	for (unsigned i = 0; r && i < r->nr; i++)
		if (nodeset_equal(r->entry[i].nodes, nodes) && r->entry[i].kind == kind)
			return &r->entry[i];
	return NULL;
}

uint64_t memory_reusable(const struct memory_reuse *r, struct nodeset nodes, unsigned kind)
{
	const struct memory_block *entry = find_reusable(r, nodes, kind);

	return entry ? entry->bytes : 0;
}

void memory_reuse_update(struct memory_reuse *reuse, const struct memory_container *c)
{
	for (unsigned b = 0; b < c->nr_blocks; b++) {
		struct memory_block now = c->blocks[b];
		const struct memory_block *entry = find_reusable(reuse, now.nodes, now.kind);
		uint64_t old = entry ? entry->bytes : 0;

		now.bytes = ends_before_next(c) ? number_max(old, now.bytes)
						: old - number_min(old, now.bytes);
		if (entry)
			reuse->entry[entry - reuse->entry].bytes = now.bytes;
		else if (now.bytes && reuse->nr < MEMORY_REUSE_MAX)
			reuse->entry[reuse->nr++] = now;
	}
}

/* Cut earlier init containers' blocks by what the block takes over, so that the pod's blocks add up
 * to what is booked. */
static void shrink_earlier(
	struct memory_container *pod, unsigned nr, const struct memory_block *block)
{
	uint64_t left = block->bytes;

	for (unsigned i = 0; i < nr; i++)
		for (unsigned b = 0; ends_before_next(&pod[i]) && b < pod[i].nr_blocks; b++) {
			struct memory_block *old = &pod[i].blocks[b];
			uint64_t part = number_min(left, old->bytes);

			if (old->kind != block->kind || !nodeset_equal(old->nodes, block->nodes))
				continue;
			old->bytes -= part;
			left -= part;
		}
}

void memory_hold_in_pod(struct memory_state *m, struct memory_reuse *reuse,
	struct memory_container *pod, unsigned nr)
{
	assert(nr);
	const struct memory_container *c = &pod[nr - 1];

	for (unsigned b = 0; b < c->nr_blocks; b++) {
		struct memory_block booked = c->blocks[b];

		booked.bytes -=
			number_min(booked.bytes, memory_reusable(reuse, booked.nodes, booked.kind));
		memory_hold(m, &booked, 1);
		shrink_earlier(pod, nr - 1, &c->blocks[b]);
	}
	memory_reuse_update(reuse, c);
}

void memory_start(struct memory_state *m, struct memory_container *pod, unsigned nr)
{
	for (unsigned i = 0; i + 1 < nr; i++) {
		if (!ends_before_next(&pod[i]))
			continue;
		memory_release(m, pod[i].blocks, pod[i].nr_blocks);
		pod[i].nr_blocks = 0;
	}
}
