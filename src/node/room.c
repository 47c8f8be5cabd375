#include <numafit/room.h>

#include <numafit/cpus.h>
#include <numafit/number.h>
#include <numafit/shares.h>

#include <string.h>

/* Where all is gathered from. */
struct looking {
	const struct ledger *l;
	const struct settings *s;
	const struct topo *t;
	struct shares_held claimed;
};

/* All CPUs but these, that a newcomer could be given: of a core that is kept in part nobody gets
 * the rest when all get whole cores. */
static struct cpuset cpus_all_but(const struct looking *q, const struct cpuset *kept)
{
	struct cpuset whole =
		q->s->cpu_options.full_pcpus_only ? cpus_whole_cores(q->t, kept) : *kept;

	return cpuset_minus(q->t->cpus, &whole);
}

static void look_for_cpus(const struct looking *q, struct room *r)
{
	const bool booked = q->s->cpu_manager_policy == MANAGER_STATIC;
	const struct cpuset promised = ledger_promised_cpus(q->l, NULL);
	struct cpuset kept = cpuset_or(q->claimed.cpus, &q->s->reserved_cpus);

	r->spare = CPUSET_BITS; /* whoever shares CPUs, as in the kubelet's pool, gets all */
	if (booked) {
		kept = cpuset_minus(ledger_free_cpus(q->l), &promised);
		kept = cpuset_minus(q->t->cpus, &kept);
	}
	if (booked && q->s->mode == MODE_MANAGE)
		r->spare = ledger_spare_cpus(q->l, &promised);
	const struct cpuset all = cpus_all_but(q, &q->s->reserved_cpus),
			    left = cpus_all_but(q, &kept);

	nodeset_each (n, q->t->nodes) {
		r->cpus[n] = cpuset_count_and(&q->t->node[n].cpus, &left);
		r->cpus_all[n] = cpuset_count_and(&q->t->node[n].cpus, &all);
	}
}

static uint64_t memory_left(const struct looking *q, unsigned node, unsigned kind)
{
	const struct memory_node *m = &ledger_view(q->l)->memory.node[node];

	if (q->s->memory_manager_policy == MANAGER_STATIC) /* in a group it is given out together */
		return m->assignments && !nodeset_equal(m->group, nodeset_of(node)) ? 0
										    : m->free[kind];
	const uint64_t claimed = q->claimed.bytes[node][kind];
	return m->allocatable[kind] - number_min(claimed, m->allocatable[kind]);
}

void room_take(struct room *r, const struct ledger *l, const struct settings *s)
{
	struct looking q = {.l = l, .s = s, .t = ledger_view(l)->topo};

	memset(r, 0, sizeof *r);
	shares_add_up(l, &q.claimed);
	look_for_cpus(&q, r);
	nodeset_each (n, q.t->nodes)
		for (unsigned k = 0; k < q.t->nr_kinds; k++)
			r->memory[n][k] = memory_left(&q, n, k);
}

struct node_fragmentation room_fragmentation(const struct room *r, unsigned nr)
{
	enum { ORDINARY = 0 }; /* the kind of memory */
	uint64_t memory[NODES_MAX];

	for (unsigned n = 0; n < nr; n++)
		memory[n] = r->memory[n][ORDINARY];
	return node_fragmentation_of(r->cpus, r->cpus_all, memory, nr, r->spare);
}
