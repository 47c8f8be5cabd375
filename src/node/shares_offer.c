/* What claims may have of each NUMA node. */
#include <numafit/shares.h>

#include <numafit/cpus.h>
#include <numafit/number.h>

#include <string.h>

enum { PER_CENT = 100 };

/* CPUs that claims cannot have: what others hold, are left on, or have been promised. */
static struct cpuset taken_by_others(const struct ledger *l)
{
	struct cpuset taken = ledger_promised_cpus(l, NULL);

	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (!holding_is_share(h) && h->decision.exclusive &&
			decision_is_booked(&h->decision))
			taken = cpuset_or(taken, &h->decision.cpus);
	}
	return taken;
}

/* How many CPUs beside the reserved ones the shared pool is to keep. */
static unsigned kept_for_pool(const struct ledger *l, const struct settings *s)
{
	const struct cpuset shareable = ledger_shareable_cpus(l);
	const unsigned kept = settings_pool_minimum(s),
		       has = cpuset_count_and(&shareable, &s->reserved_cpus);

	return kept > has ? kept - has : 0;
}

static unsigned left_of(const struct share_offer *o)
{
	return o->cpus > o->claimed ? o->cpus - o->claimed : 0;
}

/* The pool's are where most is left that no claim has, that of the higher number first. */
static void take_for_pool(const struct ledger *l, unsigned kept, struct share_offer *offer)
{
	for (; kept; kept--) {
		unsigned most = 0;

		nodeset_each (n, ledger_view(l)->topo->nodes)
			if (left_of(&offer[n]) >= left_of(&offer[most]))
				most = n;
		if (!left_of(&offer[most]))
			return;
		offer[most].cpus--;
	}
}

/* Memory of each NUMA node and kind. */
struct claimed_memory {
	uint64_t bytes[NODES_MAX][TOPO_KINDS];
};

static void add_blocks(struct claimed_memory *all, const struct decision *d)
{
	for (unsigned b = 0; b < d->nr_blocks; b++)
		nodeset_each (n, d->blocks[b].nodes)
			all->bytes[n][d->blocks[b].kind] += d->blocks[b].bytes;
}

/* What claims hold, in one walk: there may be a share for each CPU. */
static void add_claimed(
	const struct ledger *l, struct share_offer *offer, struct claimed_memory *memory)
{
	for (size_t i = 0; ledger_view(l)->nr_shares && i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (!holding_is_share(h))
			continue;
		offer[nodeset_next(h->request.ask.share_of, 0)].claimed +=
			cpuset_count(&h->decision.cpus);
		add_blocks(memory, &h->decision);
	}
}

/* Memory that serves containers on several NUMA nodes together is nobody's on one of them alone
 * (the kubelet's memory manager). */
static void offer_memory(const struct ledger *l, const struct settings *s, unsigned node,
	const struct claimed_memory *claimed, struct share_offer *offer)
{
	const struct memory_node *m = &ledger_view(l)->memory.node[node];
	const unsigned nr_kinds = ledger_view(l)->topo->nr_kinds;

	offer->closed = m->assignments && nodeset_count(m->group) > 1;
	for (unsigned k = 0; k < nr_kinds; k++) {
		uint64_t all = m->allocatable[k];
		uint64_t left = offer->closed ? 0 : m->free[k] + claimed->bytes[node][k];

		if (s->claims_capacity == CLAIMS_SHARE)
			left = all / PER_CENT * s->claims_share;
		offer->memory[k] = number_min(left, all);
	}
}

void shares_offer(const struct ledger *l, const struct settings *s, struct share_offer *offer)
{
	const struct topo *t = ledger_view(l)->topo;
	const struct cpuset taken = taken_by_others(l);
	struct claimed_memory memory = {0};

	memset(offer, 0, NODES_MAX * sizeof *offer);
	add_claimed(l, offer, &memory);
	nodeset_each (n, t->nodes) {
		struct cpuset cpus = cpuset_minus(t->node[n].cpus, &s->reserved_cpus);

		offer[n].total = cpuset_count(&cpus);
		if (s->claims_capacity == CLAIMS_DYNAMIC)
			cpus = cpuset_minus(cpus, &taken);
		if (s->cpu_options.full_pcpus_only)
			cpus = cpus_whole_cores(t, &cpus);
		offer[n].cpus = cpuset_count(&cpus);
		if (s->claims_capacity == CLAIMS_SHARE)
			offer[n].cpus = offer[n].total * s->claims_share / PER_CENT;
		offer_memory(l, s, n, &memory, &offer[n]);
	}
	take_for_pool(l, kept_for_pool(l, s), offer);
}
