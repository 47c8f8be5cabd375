/* Containers that keep to one NUMA node's part of the shared pool. */
#include "spread.h"

#include <numafit/number.h>

static void add_up_spread(const struct ledger *l, struct spread_load *load)
{
	for (size_t i = 0; i < ledger_count(l) && !load->known; i++) {
		const struct holding *h = ledger_at(l, i);

		nodeset_each (n, h->decision.spread)
			load->milli[n] += h->request.ask.cpu_milli;
	}
	load->known = true;
}

/* What the node has left for one more such container, and of memory, as one number each. */
struct spread_room {
	bool has_memory; /* as much as it asks for */
	int64_t milli;
	uint64_t bytes;
};

static struct spread_room room_on(const struct ledger *l, unsigned node, const struct ask *ask,
	const struct spread_load *load)
{
	const struct ledger_view *now = ledger_view(l);
	const unsigned cpus = cpuset_count_and(&now->topo->node[node].cpus, &now->pool);
	const uint64_t bytes = now->memory.node[node].free[0];
	const bool asks = ask->nr_memory && !ask->memory[0].page_bytes;

	return (struct spread_room){
		.has_memory = !asks || ask->memory[0].bytes <= bytes,
		.milli = (int64_t)cpus * MILLI_PER_CPU - (int64_t)load->milli[node],
		.bytes = bytes,
	};
}

static bool has_more_room(const struct spread_room *a, const struct spread_room *than)
{
	if (a->has_memory != than->has_memory)
		return a->has_memory;
	return a->milli != than->milli ? a->milli > than->milli : a->bytes > than->bytes;
}

void spread_over_pool(
	const struct ledger *l, const struct ask *ask, struct spread_load *load, struct decision *d)
{
	const struct ledger_view *now = ledger_view(l);
	struct nodeset among = topo_nodes_of(now->topo, &now->pool), beside;
	struct spread_room best = {.milli = INT64_MIN};

	if (d->exclusive || ask->wishes.cpus >= WISH_CPUS_UNTOUCHED ||
		ask->wishes.spread < WISH_SPREAD_ONE_NODE || nodeset_empty(among))
		return;
	beside = nodeset_and(among, d->nodes);
	if (d->has_affinity && !nodeset_empty(beside))
		among = beside;
	add_up_spread(l, load);
	nodeset_each (n, among) {
		const struct spread_room room = room_on(l, n, ask, load);

		if (nodeset_empty(d->spread) || has_more_room(&room, &best)) {
			best = room;
			d->spread = nodeset_of(n);
		}
	}
	nodeset_each (n, d->spread)
		load->milli[n] += ask->cpu_milli;
	const struct nodeset memory = nodeset_and(d->spread, now->memory.usable);
	if (ask->wishes.spread == WISH_SPREAD_STRICT && !d->nr_blocks && !nodeset_empty(memory))
		d->mems = memory;
}
