/* The ledger -> the NUMA nodes of the node's ResourceSlice, in the order in which a scheduler is to
 * fill them. */
#include <dra-driver/driver_state.h>

#include <numafit/shares.h>

#include <stdlib.h>

static unsigned caches_on(const struct topo *t, unsigned node)
{
	bool seen[CPUSET_BITS] = {false};
	unsigned nr = 0;

	cpuset_each (cpu, &t->node[node].cpus) {
		nr += !seen[t->cpu[cpu].uncore];
		seen[t->cpu[cpu].uncore] = true;
	}
	return nr;
}

static struct slice_node node_of(const struct topo *t, const struct settings *s, unsigned node,
	const struct share_offer *offer)
{
	const struct cpuset sockets = topo_sockets_of(t, &t->node[node].cpus);
	struct slice_node out = {
		.node_id = t->ids.id[node],
		.socket = cpuset_count(&sockets) == 1 ? cpuset_next(&sockets, 0) : 0,
		.many_sockets = cpuset_count(&sockets) > 1,
		.nr_caches = caches_on(t, node),
		.threads = cores_step(t, &t->node[node].cpus),
		.cpus = offer->cpus,
		.whole_cores = s->cpu_options.full_pcpus_only,
		.closed = offer->closed,
	};

	for (unsigned k = 0; k < t->nr_kinds; k++)
		if (offer->memory[k])
			out.memory[out.nr_memory++] =
				(struct memory_ask){t->page_bytes[k], offer->memory[k]};
	return out;
}

size_t dra_wanted(void *ctx, struct slice_node *out)
{
	struct dra *v = ctx;
	const struct ledger *l = dra_ledger(v);
	const struct topo *t = ledger_view(l)->topo;
	struct share_offer offer[NODES_MAX];
	size_t nr = 0;

	shares_offer(l, v->o.settings, offer);
	if (!v->nr_order)
		nodeset_each (n, t->nodes)
			v->order[v->nr_order++] = n;
	shares_order(v->o.settings->claims_order, offer, v->order, v->nr_order);
	for (unsigned i = 0; i < v->nr_order; i++)
		if (offer[v->order[i]].cpus)
			out[nr++] = node_of(t, v->o.settings, v->order[i], &offer[v->order[i]]);
	return nr;
}
