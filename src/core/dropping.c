/* Packing the nodes to drop into what the families can spare. Nodes that no family misses are free,
 * a bound on the sum refuses most of the rest at once, and what is left is tried, the costliest
 * nodes first. */
#include "dropping.h"

/* The steps bound one question; costs are in units of 2^-COST_BITS of a family's slack. */
enum { DROP_STEPS = 1000000, COST_BITS = 20 };

static bool may_drop_node(const struct slack *s, unsigned node)
{
	if (nodeset_has(s->family->required, node))
		return false;
	for (unsigned i = 0; i < s->family->nr_demands; i++) {
		const struct family_demand *d = &s->family->demand[i];

		if (d->weight && !d->cores
				? d->weight[node] > s->spare[i]
				: !family_demand_met(d, nodeset_minus(s->kept, nodeset_of(node))))
			return false;
	}
	return true;
}

/* Drop the node, or (back) take it in again. */
static void drop_node(struct slack *s, unsigned node, bool back)
{
	s->kept.bits ^= nodeset_of(node).bits;
	for (unsigned i = 0; i < s->family->nr_demands; i++) {
		const uint64_t *weight = s->family->demand[i].weight;

		if (weight)
			s->spare[i] += back ? weight[node] : -weight[node];
	}
}

/* Whether each of the nodes, from the i-th in order on, can be dropped by some family, all at
 * once. */
static bool can_drop_nodes(struct dropping *d, unsigned i, struct nodeset nodes)
{
	while (i < d->nr_ordered && !nodeset_has(nodes, d->order[i]))
		i++;
	if (i == d->nr_ordered)
		return true;
	if (!d->steps || !search_spend(d->search, d->cost_of_step)) {
		d->unsure = true;
		return false;
	}
	d->steps--;
	for (unsigned f = 0; f < d->nr; f++) {
		if (!may_drop_node(&d->slack[f], d->order[i]))
			continue;
		drop_node(&d->slack[f], d->order[i], false);
		bool rest = can_drop_nodes(d, i + 1, nodes);
		drop_node(&d->slack[f], d->order[i], true);
		if (rest)
			return true;
	}
	return false;
}

bool dropping_reaches(void *ctx, struct nodeset mask)
{
	struct dropping *d = ctx;
	struct nodeset dropped = nodeset_minus(nodeset_minus(d->common, mask), d->free);
	uint64_t cost = 0;

	if (nodeset_within(dropped, d->could))
		return true;
	nodeset_each (node, dropped)
		cost += d->cost[node];
	if (cost > (uint64_t)d->nr << COST_BITS)
		return false; /* more than all of all families' slack */
	d->steps = DROP_STEPS;
	if (!can_drop_nodes(d, 0, dropped))
		return false;
	d->could = dropped;
	return true;
}

void dropping_begin(struct dropping *d, struct search *search, struct nodeset mask,
	const struct family *const *family, uint64_t which)
{
	d->search = search;
	d->nr = 0;
	d->common = mask;
	for (; which; which &= which - 1) {
		const struct family *f = family[__builtin_ctzll(which)];
		struct slack *s = &d->slack[d->nr++];

		*s = (struct slack){.family = f, .kept = f->ground};
		d->common = nodeset_and(d->common, f->ground);
		for (unsigned r = 0; r < f->nr_demands; r++) {
			s->spare[r] = f->demand[r].base - f->demand[r].need;
			if (f->demand[r].weight)
				nodeset_each (node, f->ground)
					s->spare[r] += f->demand[r].weight[node];
		}
	}
}

/* The part of the family's slack that the node takes: the mean over its demands by weight. More
 * than all of it when it cannot be dropped at all. */
static uint64_t cost_of_dropping(const struct slack *s, unsigned node)
{
	const uint64_t all = UINT64_C(1) << COST_BITS;
	uint64_t sum = 0;

	if (!may_drop_node(s, node))
		return NODES_MAX * all;
	for (unsigned i = 0; i < s->family->nr_demands; i++) {
		const struct family_demand *d = &s->family->demand[i];

		if (d->weight && d->weight[node])
			sum += (uint64_t)((unsigned __int128)d->weight[node] * all / s->spare[i]);
	}
	return s->family->nr_demands ? sum / s->family->nr_demands : 0;
}

/* Whether the family would have less of anything without the node. */
static bool misses_node(const struct family *f, unsigned node)
{
	if (nodeset_has(f->required, node))
		return true;
	for (unsigned i = 0; i < f->nr_demands; i++) {
		if (f->demand[i].weight && f->demand[i].weight[node])
			return true;
		for (size_t c = 0; c < f->demand[i].nr_covers; c++)
			if (nodeset_has(f->demand[i].cover[c].nodes, node))
				return true;
	}
	return false;
}

void dropping_prepare(struct dropping *d)
{
	enum { FAMILIES_PER_STEP = 8, COVERS_PER_STEP = 16 };
	uint64_t covers = 0, all = 0;

	d->nr_ordered = 0;
	d->free = d->could = (struct nodeset){0};
	for (unsigned f = 0; f < d->nr; f++)
		for (unsigned i = 0; i < d->slack[f].family->nr_demands; i++)
			covers += d->slack[f].family->demand[i].nr_covers;
	d->cost_of_step = 1 + d->nr / FAMILIES_PER_STEP + covers / COVERS_PER_STEP;

	nodeset_each (node, d->common) {
		unsigned at = d->nr_ordered++;

		d->cost[node] = UINT64_MAX;
		for (unsigned f = 0; f < d->nr; f++) {
			uint64_t cost = cost_of_dropping(&d->slack[f], node);

			d->cost[node] = cost < d->cost[node] ? cost : d->cost[node];
			if (!misses_node(d->slack[f].family, node))
				d->free = nodeset_or(d->free, nodeset_of(node));
		}
		for (; at > 0 && d->cost[d->order[at - 1]] < d->cost[node]; at--)
			d->order[at] = d->order[at - 1];
		d->order[at] = (uint8_t)node;
	}
	nodeset_each (node, d->free)
		d->cost[node] = 0;
	nodeset_each (node, d->common)
		all += d->cost[node];
	uint64_t slack = (uint64_t)d->nr << COST_BITS;
	d->kept = (struct family_demand){.weight = d->cost, .need = all > slack ? all - slack : 0};
}
