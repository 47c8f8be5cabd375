/* The entries on a machine whose CPUs or memory come and go, or are reserved from now on. */
#include "ledger_state.h"

#include <numafit/leases.h>
#include <numafit/number.h>
#include <numafit/shares.h>

#include <assert.h>

static void take_away(struct holding *h, const struct cpuset *left)
{
	h->decision.cpus = cpuset_and(h->decision.cpus, left);
	h->decision.exclusive = !cpuset_empty(&h->decision.cpus);
}

static void count_held(struct ledger *l)
{
	l->now.held = (struct cpuset){0};
	for (size_t i = 0; i < l->by[BY_ID].nr; i++)
		if (l->by[BY_ID].at[i].h->decision.exclusive &&
			holding_is_booked(l->by[BY_ID].at[i].h))
			l->now.held = cpuset_or(l->now.held, &l->by[BY_ID].at[i].h->decision.cpus);
}

/* What a pod has not as one any more its containers have no part of. */
static void follow_pods(struct ledger *l)
{
	for (size_t i = 0; i < l->by[BY_ID].nr; i++) {
		struct holding *h = l->by[BY_ID].at[i].h;
		const struct holding *pod =
			h->decision.within_pod ? ledger_pod_of(l, &h->request) : NULL;

		if (pod && h->decision.exclusive)
			take_away(h, pod->decision.exclusive ? &pod->decision.cpus
							     : &(const struct cpuset){0});
	}
}

/* Containers have what the shares have that they came with. */
static void follow_shares(struct ledger *l)
{
	for (size_t i = 0; i < l->by[BY_ID].nr; i++) {
		struct holding *h = l->by[BY_ID].at[i].h;

		if (!h->decision.within_claims)
			continue;
		h->decision.cpus = shares_cpus(l, h->request.shares);
		h->decision.exclusive = !cpuset_empty(&h->decision.cpus);
	}
}

/* Who holds most CPUs; NULL: nobody holds any. */
static struct holding *widest(const struct ledger *l)
{
	struct holding *w = NULL;

	for (size_t i = 0; i < l->by[BY_ID].nr; i++) {
		struct holding *h = l->by[BY_ID].at[i].h;

		if (h->decision.exclusive && holding_is_booked(h) &&
			(!w || cpuset_count(&h->decision.cpus) > cpuset_count(&w->decision.cpus)))
			w = h;
	}
	return w;
}

/* The pool as it was, without what is gone, with what is new; never empty: reserved CPUs may have
 * gone, and all others be held. */
static struct cpuset pool_on(struct ledger *l, const struct cpuset *new_cpus)
{
	struct cpuset shareable = ledger_shareable_cpus(l);
	struct cpuset reserved = cpuset_and(l->s->reserved_cpus, &shareable);
	struct cpuset more = cpuset_or(*new_cpus, &reserved), pool = ledger_pool_of(l, &more);
	struct holding *w;

	if (!cpuset_empty(&pool))
		return pool;
	while (pool = cpuset_minus(shareable, &l->now.held),
		cpuset_empty(&pool) && (w = widest(l))) {
		take_away(w, &pool);
		count_held(l);
	}
	follow_pods(l);
	follow_shares(l);
	return pool;
}

/* What is to be booked if it is there: when there was too little for a while, what was asked for.
 * What parts of a pod leave to each other is in their blocks only. */
static uint64_t wanted_of_block(
	const struct ledger *l, const struct holding *h, const struct memory_block *b)
{
	uint64_t bytes = b->bytes;

	for (unsigned i = 0; i < h->request.ask.nr_memory && !holding_is_kept(h); i++)
		if (h->request.ask.memory[i].page_bytes == l->now.topo->page_bytes[b->kind])
			bytes = h->request.ask.memory[i].bytes;
	return bytes;
}

/* Book what is there of what is wanted. */
static void book_again(struct ledger *l)
{
	memory_init(&l->now.memory, l->now.topo, l->s);
	l->now.memory.keep_groups = true;
	for (size_t i = 0; i < l->by[BY_ID].nr; i++) {
		struct holding *h = l->by[BY_ID].at[i].h;

		for (unsigned k = 0; holding_is_booked(h) && k < h->decision.nr_blocks; k++) {
			struct memory_block *b = &h->decision.blocks[k];
			uint64_t left = 0;

			nodeset_each (n, b->nodes)
				left += l->now.memory.node[n].free[b->kind];
			b->bytes = number_min(wanted_of_block(l, h, b), left);
			memory_hold(&l->now.memory, b, 1);
		}
	}
}

/* What is booked for each of its blocks, for the one that is being moved. */
static void book_as(struct decision *end, const struct decision *booked)
{
	for (unsigned i = 0; i < end->nr_blocks; i++)
		for (unsigned k = 0; k < booked->nr_blocks; k++)
			if (booked->blocks[k].kind == end->blocks[i].kind &&
				nodeset_equal(booked->blocks[k].nodes, end->blocks[i].nodes))
				end->blocks[i].bytes = booked->blocks[k].bytes;
}

static void follow_booking(struct ledger *l)
{
	struct moving *m = l->now.moving;
	const struct holding *h = m ? ledger_find(l, m->container_id) : NULL;

	if (!h)
		return;
	book_as(&m->from, &h->decision);
	book_as(&m->to, &h->decision);
}

void ledger_set_topo(struct ledger *l, const struct topo *t)
{
	const struct cpuset shareable = ledger_shareable_cpus(l);
	struct cpuset new_cpus, pool;
	struct cpuset left = cpuset_minus(t->cpus, &l->s->reserved_cpus);

	assert(t->ids.nr == l->now.topo->ids.nr && t->nr_kinds == l->now.topo->nr_kinds);
	l->now.topo = t;
	new_cpus = ledger_shareable_cpus(l);
	new_cpus = cpuset_minus(new_cpus, &shareable);
	leases_set_topo(l->now.leases, t);
	for (size_t i = 0; i < l->by[BY_ID].nr; i++)
		if (l->by[BY_ID].at[i].h->decision.exclusive)
			take_away(l->by[BY_ID].at[i].h, &left);
	count_held(l);
	pool = pool_on(l, &new_cpus);
	l->now.pool = pool;
	ledger_bound_all(l);
	book_again(l);
	follow_booking(l);
}

void ledger_move(struct ledger *l, const char *container_id, const struct decision *d)
{
	struct holding *h = ledger_take_up(l, container_id);

	assert(h && d->admit && decision_is_booked(d) == decision_is_booked(&h->decision) &&
		!(d->exclusive && cpuset_intersects(&l->now.pool, &d->cpus)));
	if (holding_is_booked(h)) {
		memory_release(&l->now.memory, h->decision.blocks, h->decision.nr_blocks);
		memory_hold(&l->now.memory, d->blocks, d->nr_blocks);
	}
	h->decision = *d;
	h->decision.reasons = NULL;
	if (!d->exclusive)
		h->decision.cpus = (struct cpuset){0};
	l->now.left = ledger_left_by_others(l, NULL);
	count_held(l);
	ledger_put_down(l, h);
}
