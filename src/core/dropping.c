/* Packing the nodes to drop into what the families can spare: nodes that nobody misses are free, a
 * bound on the sum refuses most of the rest at once, and then the costliest nodes are placed first.
 */
#include "dropping.h"

/* The steps bound one question; costs are in units of 2^-COST_BITS of a family's slack. */
enum { DROP_STEPS = 1000000, COST_BITS = 20 };

static bool may_drop(const struct slack *s, unsigned node)
{
	if (nodeset_has(s->family->required, node))
		return false;
	for (unsigned i = 0; i < s->family->nr_demands; i++) {
		const struct family_demand *d = &s->family->demand[i];

		if (d->weight ? d->weight[node] > s->spare[i]
			      : !family_demand_met(d, nodeset_minus(s->kept, nodeset_of(node))))
			return false;
	}
	return true;
}

static void drop(struct slack *s, unsigned node)
{
	s->kept = nodeset_minus(s->kept, nodeset_of(node));
	for (unsigned i = 0; i < s->family->nr_demands; i++)
		if (s->family->demand[i].weight)
			s->spare[i] -= s->family->demand[i].weight[node];
}

static void undrop(struct slack *s, unsigned node)
{
	s->kept = nodeset_or(s->kept, nodeset_of(node));
	for (unsigned i = 0; i < s->family->nr_demands; i++)
		if (s->family->demand[i].weight)
			s->spare[i] += s->family->demand[i].weight[node];
}

/* Whether each of the nodes, from the i-th in order on, can be dropped by some family, all at once.
 */
static bool can_drop(struct dropping *d, unsigned i, struct nodeset nodes)
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
		if (!may_drop(&d->slack[f], d->order[i]))
			continue;
		drop(&d->slack[f], d->order[i]);
		bool rest = can_drop(d, i + 1, nodes);
		undrop(&d->slack[f], d->order[i]);
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
	if (!can_drop(d, 0, dropped))
		return false;
	d->could = dropped;
	return true;
}

/* The part of the family's slack that the node takes: the mean over its demands by weight. More
 * than all of it when it cannot be dropped at all. */
static uint64_t cost_of(const struct slack *s, unsigned node)
{
	const uint64_t all = UINT64_C(1) << COST_BITS;
	uint64_t sum = 0;

	if (!may_drop(s, node))
		return NODES_MAX * all;
	for (unsigned i = 0; i < s->family->nr_demands; i++) {
		const struct family_demand *d = &s->family->demand[i];

		if (d->weight && d->weight[node])
			sum += (uint64_t)((unsigned __int128)d->weight[node] * all / s->spare[i]);
	}
	return s->family->nr_demands ? sum / s->family->nr_demands : 0;
}

static bool misses(const struct family *f, unsigned node)
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

/* Each family is asked. */
static uint64_t cost_of_step(const struct dropping *d)
{
	enum { FAMILIES_PER_STEP = 8, COVERS_PER_STEP = 16 };
	uint64_t covers = 0;

	for (unsigned f = 0; f < d->nr; f++)
		for (unsigned i = 0; i < d->slack[f].family->nr_demands; i++)
			covers += d->slack[f].family->demand[i].nr_covers;
	return 1 + d->nr / FAMILIES_PER_STEP + covers / COVERS_PER_STEP;
}

void dropping_prepare(struct dropping *d)
{
	d->nr_ordered = 0;
	d->free = d->could = (struct nodeset){0};
	d->cost_of_step = cost_of_step(d);
	uint64_t all = 0;

	nodeset_each (node, d->common) {
		unsigned at = d->nr_ordered++;

		d->cost[node] = UINT64_MAX;
		for (unsigned f = 0; f < d->nr; f++) {
			uint64_t cost = cost_of(&d->slack[f], node);

			d->cost[node] = cost < d->cost[node] ? cost : d->cost[node];
			if (!misses(d->slack[f].family, node))
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

/* What a family can spare when it contributes its whole ground set. */
static struct slack slack_of(const struct family *f)
{
	struct slack s = {.family = f, .kept = f->ground};

	for (unsigned r = 0; r < f->nr_demands; r++) {
		s.spare[r] = f->demand[r].base - f->demand[r].need;
		if (f->demand[r].weight)
			nodeset_each (node, f->ground)
				s.spare[r] += f->demand[r].weight[node];
	}
	return s;
}

void dropping_begin(struct dropping *d, struct search *search, struct nodeset mask)
{
	d->search = search;
	d->nr = 0;
	d->common = mask;
}

void dropping_add(struct dropping *d, const struct family *f)
{
	d->slack[d->nr++] = slack_of(f);
	d->common = nodeset_and(d->common, f->ground);
}
