#include <numafit/nrt.h>

#include <sched/nrt_ask.h>
#include <string.h>

const char *const nrt_reason_texts[NR_NRT_REASONS] = {
	[NRT_FITS] = "",
	[NRT_STALE] = "invalid node topology data",
	[NRT_POD] = "cannot align pod",
	[NRT_CONTAINER] = "cannot align container",
	[NRT_INIT_CONTAINER] = "cannot align init container",
	[NRT_SIDECAR] = "cannot align sidecar container",
};

static enum nrt_reason passes_filter(const struct nrt_ask *ask, const char *why)
{
	steps_add(ask->steps, "fits: %s", why);
	return NRT_FITS;
}

static uint64_t zones_with(const struct nrt_column *c, struct quantity q)
{
	uint64_t zones = 0;

	if (!c->by_amount)
		return c->listed;
	for (uint64_t rest = c->listed; rest; rest &= rest - 1) {
		unsigned zone = (unsigned)__builtin_ctzll(rest);

		if (quantity_compare(c->available[zone], q) >= 0)
			zones |= UINT64_C(1) << zone;
	}
	return zones;
}

static void add_zones_step(const struct nrt_ask *ask, const struct sched_topology *t,
	const struct nrt_part *part, const struct nrt_want *w, uint64_t zones)
{
	const struct nrt_column *c = &ask->column[w->column];
	const char *name = ask->names->at[c->resource].name;
	char amount[QUANTITY_TEXT_MAX], text[NRT_ZONES_TEXT_MAX];

	if (!c->listed)
		nrt_add_step(ask, part, "%s: no zone lists it%s", name,
			c->host_level ? ", it need not be of one" : "");
	else
		nrt_add_step(ask, part, "%s %s: %s on zones %s", name, quantity_text(amount, w->q),
			c->by_amount ? "free" : "listed, which is enough,",
			nrt_zones_text(text, t, zones));
}

/* The zones that have enough of one resource, all 64 bits where it need not be of one. */
static uint64_t zones_for(const struct nrt_ask *ask, const struct sched_node *node,
	const struct nrt_part *part, const struct nrt_want *w)
{
	const struct nrt_column *c = &ask->column[w->column];
	const struct resource_kind *kind = &ask->names->at[c->resource];
	uint64_t zones = zones_with(c, w->q);

	if (quantity_is_zero(w->q))
		return ~UINT64_C(0);
	/* the scheduler has cpu, memory, ephemeral-storage and pods even when the node says nothing
	 * of them (framework.Resource) */
	if (c->resource > RESOURCE_PODS &&
		(!kind->of_nodes || !amounts_find(&node->allocatable, c->resource))) {
		if (ask->steps)
			nrt_add_step(ask, part, "%s: the node has none at all", kind->name);
		return 0;
	}
	if (ask->steps)
		add_zones_step(ask, node->topology, part, w, zones);
	return c->listed || !c->host_level ? zones : ~UINT64_C(0);
}

/* The one with the lowest id: the kubelet's choice among single NUMA nodes. */
static unsigned lowest_zone(const struct sched_topology *t, uint64_t zones)
{
	unsigned best = (unsigned)__builtin_ctzll(zones);

	for (; zones; zones &= zones - 1) {
		unsigned zone = (unsigned)__builtin_ctzll(zones);

		if (t->zone_id[zone] < t->zone_id[best])
			best = zone;
	}
	return best;
}

/* What an app container takes is not there for those behind it; init containers are gone by then,
 * and sidecars are overlooked (upstream's choice). */
static void take_from_zone(struct nrt_ask *ask, const struct sched_topology *t,
	const struct nrt_part *part, unsigned zone)
{
	for (unsigned i = 0; i < part->nr; i++) {
		struct nrt_column *c = &ask->column[part->want[i].column];

		if (!(c->listed >> zone & 1))
			continue;
		struct quantity *own = nrt_own(c, t);

		own[zone] = quantity_sub(own[zone], part->want[i].q);
	}
}

enum nrt_reason nrt_filter(struct nrt_ask *ask, const struct sched_node *node)
{
	const struct sched_topology *t = node->topology;
	const struct nrt_part *part;

	memset(ask->taken, 0, (ask->pod->nr_containers + 1) * sizeof *ask->taken);
	if (ask->passes_anywhere)
		return passes_filter(ask, "BestEffort, and nothing but native resources");
	if (nrt_is_stale(ask, node))
		return NRT_STALE;
	if (!t)
		return passes_filter(ask, "the node has no NodeResourceTopology");
	if (t->policy != POLICY_SINGLE_NUMA_NODE)
		return passes_filter(ask, "the policy is not single-numa-node");
	nrt_ask_of(ask, t);
	for (unsigned i = 0; (part = nrt_part(ask, t->scope, i)); i++) {
		uint64_t zones = ~UINT64_C(0);

		/* filter.go, resourcesAvailableInAnyNUMANodes */
		for (unsigned w = 0; w < part->nr && zones; w++)
			zones &= zones_for(ask, node, part, &part->want[w]);
		if (!zones)
			return part->failure;
		if (zones == ~UINT64_C(0) && t->nr_zones < ZONES_MAX)
			continue;
		unsigned zone = lowest_zone(t, zones);

		ask->taken[i] = UINT64_C(1) << zone;
		if (ask->steps)
			nrt_add_step(ask, part, "takes zone %u", t->zone_id[zone]);
		if (part->failure == NRT_CONTAINER)
			take_from_zone(ask, t, part, zone);
	}
	return NRT_FITS;
}
