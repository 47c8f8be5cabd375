#include <numafit/devices.h>

#include <numafit/text.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_reusable(const struct device_claim *c, unsigned i)
{
	return c->reusable && c->reusable[i];
}

static bool is_available(const struct device_claim *c, unsigned i)
{
	return c->resource->device[i].healthy && !c->held[i];
}

static bool any_has_node(const struct device_resource *r)
{
	for (unsigned i = 0; i < r->nr; i++)
		if (r->device[i].placed)
			return true;
	return false;
}

/* Devices on the same NUMA nodes, put together: a family counts them, whichever they are. */
struct covers {
	struct family_cover *at;
	size_t nr;
};

static void add_cover(struct covers *c, struct nodeset nodes)
{
	if (!nodeset_empty(nodes))
		c->at[c->nr++] = (struct family_cover){.nodes = nodes, .count = 1};
}

static int by_nodes(const void *a, const void *b)
{
	uint64_t x = ((const struct family_cover *)a)->nodes.bits,
		 y = ((const struct family_cover *)b)->nodes.bits;

	return x < y ? -1 : x > y;
}

/* One cover for all that lie on the same nodes. */
static void join_covers(struct covers *c)
{
	size_t nr = 0;

	qsort(c->at, c->nr, sizeof *c->at, by_nodes);
	for (size_t i = 0; i < c->nr; i++) {
		if (nr && nodeset_equal(c->at[nr - 1].nodes, c->at[i].nodes))
			c->at[nr - 1].count += c->at[i].count;
		else
			c->at[nr++] = c->at[i];
	}
	c->nr = nr;
}

/* Every reusable device must be on one of the mask's nodes, and counts then. False when one is
 * nowhere: no mask will do. */
static bool require_reusable(const struct device_claim *c, struct covers *room, struct family *f)
{
	for (unsigned i = 0; i < c->resource->nr; i++) {
		const struct device *d = &c->resource->device[i];

		if (!is_reusable(c, i) || !d->has_topology)
			continue;
		if (nodeset_empty(d->nodes) || f->nr_demands == FAMILY_DEMANDS)
			return false;
		f->demand[0].base++;
		if (nodeset_count(d->nodes) == 1) {
			f->required = nodeset_or(f->required, d->nodes);
			continue;
		}
		struct family_cover *only = &room->at[room->nr++];
		*only = (struct family_cover){.nodes = d->nodes, .count = 1};
		f->demand[f->nr_demands++] =
			(struct family_demand){.cover = only, .nr_covers = 1, .need = 1};
	}
	return true;
}

int devices_family(const struct device_claim *c, struct nodeset all, struct budget *b,
	struct arena *a, struct family *f)
{
	const struct device_resource *r = c->resource;
	struct covers registered = {arena_array(a, r->nr, sizeof *registered.at), 0};
	struct covers healthy = {arena_array(a, r->nr, sizeof *healthy.at), 0};
	struct covers available = {arena_array(a, 2 * (size_t)r->nr, sizeof *available.at), 0};

	uint64_t usable = 0;

	if (!registered.at || !healthy.at || !available.at)
		return -ENOMEM;
	*f = (struct family){.nr_demands = 1};
	(void)text_copy(f->resource, sizeof f->resource, r->name);
	if (!any_has_node(r))
		return 0; /* FAMILY_ANY is 0 */
	for (unsigned i = 0; i < r->nr; i++) {
		add_cover(&registered, r->device[i].nodes);
		if (r->device[i].healthy)
			add_cover(&healthy, r->device[i].nodes);
		if (is_available(c, i))
			add_cover(&available, r->device[i].nodes);
		usable += is_available(c, i) || is_reusable(c, i);
		f->ground = nodeset_or(f->ground, r->device[i].nodes);
	}
	join_covers(&registered);
	join_covers(&healthy);
	join_covers(&available);
	if (nodeset_empty(f->ground))
		f->ground = all;
	f->kind = FAMILY_CAPACITY;
	f->demand[0] = (struct family_demand){
		.cover = registered.at, .nr_covers = registered.nr, .need = c->count};
	struct arena_mark before = arena_mark(a);
	f->preferred_size = family_smallest(f, b, a);
	arena_release(a, before);
	if (!f->preferred_size)
		f->preferred_size = nodeset_count(f->ground);
	f->demand[0] = (struct family_demand){
		.cover = available.at, .nr_covers = available.nr, .need = c->count};
	f->capacity = (struct family_demand){.cover = healthy.at, .nr_covers = healthy.nr};
	f->unallocated = (struct family_demand){.cover = available.at, .nr_covers = available.nr};
	if (!require_reusable(c, &available, f) || usable < c->count || !family_has(f, f->ground))
		f->kind = FAMILY_NONE;
	return 0;
}

/* How the allocation goes on: from the best class of devices to the worst (kubelet
 * filterByAffinity). */
enum device_class { ALIGNED, UNALIGNED, NOWHERE, NR_DEVICE_CLASSES };

static enum device_class device_class_of(
	const struct device *d, const struct hint *affinity, bool with_nodes)
{
	if (!with_nodes || affinity->any || nodeset_empty(d->nodes))
		return NOWHERE;
	return nodeset_empty(nodeset_and(d->nodes, affinity->mask)) ? UNALIGNED : ALIGNED;
}

int devices_allocate(
	const struct device_claim *c, const struct hint *affinity, bool *chosen, struct err *e)
{
	const struct device_resource *r = c->resource;
	bool with_nodes = any_has_node(r), any_healthy = false;
	uint64_t needed = c->count, available = 0;

	for (unsigned i = 0; i < r->nr; i++) {
		any_healthy = any_healthy || r->device[i].healthy;
		available += is_available(c, i);
	}
	if (!r->nr)
		return err_set(e, ENOSPC, "cannot allocate unregistered device %s", r->name);
	if (!any_healthy)
		return err_set(e, ENOSPC,
			"no healthy devices present; cannot allocate unhealthy devices %s",
			r->name);
	memset(chosen, 0, r->nr);
	for (unsigned i = 0; i < r->nr && needed; i++) {
		chosen[i] = is_reusable(c, i);
		needed -= chosen[i];
	}
	if (available < needed)
		return err_set(e, ENOSPC,
			"requested number of devices unavailable for %s. Requested: %llu, "
			"Available: %llu",
			r->name, (unsigned long long)needed, (unsigned long long)available);
	for (int class = ALIGNED; class < NR_DEVICE_CLASSES; class ++)
		for (unsigned i = 0; i < r->nr && needed; i++)
			if (is_available(c, i) &&
				device_class_of(&r->device[i], affinity, with_nodes) ==
					(enum device_class) class) {
				chosen[i] = true;
				needed--;
			}
	return 0;
}
