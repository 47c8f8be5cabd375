/* What claims may have of each NUMA node. */
#include <numafit/shares.h>

#include <numafit/cpus.h>
#include <numafit/number.h>

#include <string.h>

enum { PER_CENT = 100 };

/* Two NUMA nodes change places when one has so many CPUs more of the other's than before: else each
 * small pod would have the slice written anew. */
enum { HYSTERESIS_PARTS = 8 };

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

/* Memory that serves containers on several NUMA nodes together is on none of them alone
 * (the kubelet's memory manager). */
static void offer_memory(const struct ledger *l, const struct settings *s, unsigned node,
	const struct shares_held *held, struct share_offer *offer)
{
	const struct memory_node *m = &ledger_view(l)->memory.node[node];
	const unsigned nr_kinds = ledger_view(l)->topo->nr_kinds;

	offer->closed = m->assignments && nodeset_count(m->group) > 1;
	for (unsigned k = 0; k < nr_kinds; k++) {
		const uint64_t all = m->allocatable[k], claimed = held->bytes[node][k];
		uint64_t left = offer->closed ? 0 : m->free[k] + claimed;

		offer->claimed_memory[k] = claimed;
		if (s->claims_capacity == CLAIMS_SHARE)
			left = all / PER_CENT * s->claims_share;
		offer->memory[k] = number_min(left, all);
	}
}

void shares_offer(const struct ledger *l, const struct settings *s, struct share_offer *offer)
{
	const struct topo *t = ledger_view(l)->topo;
	const struct cpuset taken = taken_by_others(l);
	struct shares_held held;

	memset(offer, 0, NODES_MAX * sizeof *offer);
	shares_add_up(l, &held);
	nodeset_each (n, t->nodes) {
		struct cpuset cpus = cpuset_minus(t->node[n].cpus, &s->reserved_cpus);

		offer[n].total = cpuset_count(&cpus);
		if (s->claims_capacity == CLAIMS_DYNAMIC)
			cpus = cpuset_minus(cpus, &taken);
		cpus = cpus_usable(t, &s->cpu_options, &cpus);
		offer[n].cpus = cpuset_count(&cpus);
		if (s->claims_capacity == CLAIMS_SHARE)
			offer[n].cpus = offer[n].total * s->claims_share / PER_CENT;
		offer[n].claimed = cpuset_count_and(&held.cpus, &t->node[n].cpus);
		offer_memory(l, s, n, &held, &offer[n]);
	}
	take_for_pool(l, kept_for_pool(l, s), offer);
}

/* Whether b is to come before a, which has been before it until now. */
static bool should_swap(
	enum claims_order order, const struct share_offer *a, const struct share_offer *b)
{
	const unsigned margin = number_max(a->total, b->total) / HYSTERESIS_PARTS;

	return order == CLAIMS_MOST_ALLOCATED ? left_of(b) + margin < left_of(a)
					      : left_of(b) > left_of(a) + margin;
}

void shares_order(
	enum claims_order order, const struct share_offer *offer, unsigned *nodes, unsigned nr)
{
	for (unsigned end = nr; end > 1; end--)
		for (unsigned i = 0; i + 1 < end; i++) {
			const unsigned here = nodes[i];

			if (!should_swap(order, &offer[here], &offer[nodes[i + 1]]))
				continue;
			nodes[i] = nodes[i + 1];
			nodes[i + 1] = here;
		}
}

bool share_is_offered(
	const struct topo *t, const struct claim_share *s, const struct share_offer *offer)
{
	bool offered = !offer->closed && s->cpus <= left_of(offer);

	for (unsigned i = 0; i < s->nr_memory && offered; i++) {
		const int k = topo_kind_of_page(t, s->memory[i].page_bytes);

		offered = k >= 0 && offer->memory[k] >= offer->claimed_memory[k] &&
			  s->memory[i].bytes <= offer->memory[k] - offer->claimed_memory[k];
	}
	return offered;
}
