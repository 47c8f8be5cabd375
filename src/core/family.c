/* What a rule says of one mask. */
#include <numafit/family.h>

uint64_t family_demand_sum(const struct family_demand *d, struct nodeset mask)
{
	uint64_t sum = d->base;

	if (d->weight)
		nodeset_each (node, mask)
			sum += d->weight[node];
	for (size_t i = 0; i < d->nr_covers; i++)
		sum += nodeset_empty(nodeset_and(d->cover[i].nodes, mask)) ? 0 : d->cover[i].count;
	return sum;
}

bool family_demand_met(const struct family_demand *d, struct nodeset mask)
{
	return family_demand_sum(d, mask) >= d->need;
}

bool family_in_rule(const struct family *f, struct nodeset mask)
{
	if (nodeset_empty(mask) || !nodeset_within(mask, f->ground) ||
		!nodeset_within(f->required, mask))
		return false;
	for (unsigned i = 0; i < f->nr_demands; i++)
		if (!family_demand_met(&f->demand[i], mask))
			return false;
	return true;
}

bool family_has(const struct family *f, struct nodeset mask)
{
	if (family_in_rule(f, mask))
		return true;
	for (unsigned i = 0; i < f->nr_extra; i++)
		if (nodeset_equal(f->extra[i], mask))
			return true;
	return false;
}

bool family_is_empty(const struct family *f)
{
	return f->kind == FAMILY_CAPACITY && !f->nr_extra && !family_in_rule(f, f->ground);
}

unsigned family_sockets(const uint8_t *socket_of_node, struct nodeset mask)
{
	uint64_t sockets = 0;

	nodeset_each (node, mask)
		sockets |= UINT64_C(1) << socket_of_node[node];
	return (unsigned)__builtin_popcountll(sockets);
}

bool family_prefers(const struct family *f, struct nodeset mask)
{
	if (nodeset_count(mask) == f->preferred_size)
		return true;
	return f->preferred_sockets &&
	       family_sockets(f->socket_of_node, mask) == f->preferred_sockets;
}
