/* Likely plans: somebody is to have a NUMA node, and of what lies there just enough goes elsewhere,
 * each to the fullest NUMA node that has room for it. Which choices are enough is seen from sums,
 * without a trial, and the cheapest is tried first: when it can be done no plan is cheaper, as any
 * plan moves such a choice away. */
#include "defrag_state.h"

#include <numafit/mem.h>
#include <numafit/number.h>

#include <stdlib.h>
#include <string.h>

enum {
	CHOICES_MAX = 2048,
	STEPS_MAX = 1 << 18, /* of putting choices together, in all; some 100 ns each */
	SEATS_MAX = 200,     /* lists of choices for containers of one pod */
	PLACES_MAX = 3,      /* tried for one that goes elsewhere */
	TRIED_MAX = 12       /* choices for one of several guests */
};

/* What may be done for one guest: these leave that NUMA node, then it comes. */
struct choice {
	struct defrag_mover *guest; /* NULL: a container of the pod */
	unsigned node, nr;
	struct defrag_mover *leaves[DEFRAG_MOVES_MAX];
	struct defrag_cost cost;
	unsigned free; /* CPUs of the NUMA node */
};

struct direct {
	struct defrag_search *p;
	struct choice *choice;
	size_t nr;
	unsigned steps, seats;
	bool all;       /* none was left out that is better than the first */
	unsigned guest; /* of the pod, its number */
	/* For one guest and NUMA node: */
	struct defrag_room need,
		most; /* what the guest needs; the most that one of those below leaves */
	struct defrag_mover **there;
	size_t nr_there;
	unsigned may_leave; /* so many */
	struct choice now;
	/* The path: */
	unsigned depth;
	struct defrag_mover *moved[DEFRAG_MOVES_MAX];
	struct cpuset pool[DEFRAG_MOVES_MAX]; /* before */
};

/* Fewer moves come first, as they leave more for other guests; a pod is the only guest. */
static int by_promise(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;
	int order = x->guest && x->nr != y->nr ? (x->nr > y->nr) - (x->nr < y->nr)
					       : defrag_compare(&x->cost, &y->cost);

	if (order)
		return order;
	if (x->free != y->free)
		return x->free < y->free ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

static void add_choice(struct direct *d)
{
	if (d->nr == CHOICES_MAX) { /* what is left out is behind what stays */
		qsort(d->choice, d->nr, sizeof *d->choice, by_promise);
		d->nr /= 2;
	}
	d->choice[d->nr++] = d->now;
}

/* Put choices together, of those that are there from number `from` on. */
static void choose(struct direct *d, size_t from, struct defrag_room gone)
{
	struct choice *now = &d->now;
	const struct defrag_cost before = now->cost;
	const unsigned left = d->may_leave - now->nr;
	const struct defrag_room most = {
		gone.cpus + left * d->most.cpus, gone.memory + (uint64_t)left * d->most.memory};

	if (defrag_has_room(d->p, now->node, &d->need, &gone)) {
		add_choice(d);
		return;
	}
	d->all = d->all && d->steps++ < STEPS_MAX;
	if (!left || !d->all || !defrag_has_room(d->p, now->node, &d->need, &most))
		return;
	for (size_t i = from; i < d->nr_there; i++) {
		struct defrag_mover *m = d->there[i];

		if (m == now->guest)
			continue;
		const struct defrag_room with = {gone.cpus + defrag_cpus_on(d->p, m, now->node),
			gone.memory + defrag_memory_on(m, now->node)};

		now->leaves[now->nr++] = m;
		now->cost = defrag_sum(&before, &m->cost);
		choose(d, i + 1, with);
		now->cost = before;
		now->nr--;
	}
}

/* The choices for that guest on the NUMA node whose movers are known. */
static void choose_for(struct direct *d, struct defrag_mover *guest, unsigned node)
{
	const struct defrag_search *p = d->p;
	struct defrag_room own = {0};

	d->need = p->guest[d->guest];
	d->now = (struct choice){.guest = guest, .node = node, .free = p->free[node]};
	d->may_leave = p->moves - d->depth;
	if (guest) {
		if (nodeset_equal(guest->nodes, nodeset_of(node)))
			return; /* that it is not preferred there nothing changes */
		d->need = (struct defrag_room){guest->cpus, guest->memory};
		own = (struct defrag_room){
			defrag_cpus_on(p, guest, node), defrag_memory_on(guest, node)};
		d->now.cost = guest->cost;
		d->may_leave--;
	}
	choose(d, 0, own);
}

static void list_movers_on(struct direct *d, unsigned node)
{
	const struct defrag_search *p = d->p;

	d->nr_there = 0;
	d->most = (struct defrag_room){0};
	for (size_t i = 0; i < p->nr; i++) {
		struct defrag_mover *m = &p->mover[i];

		if (m->at || !nodeset_has(m->nodes, node))
			continue;
		d->there[d->nr_there++] = m;
		d->most.cpus = (unsigned)number_max(d->most.cpus, defrag_cpus_on(p, m, node));
		d->most.memory = number_max(d->most.memory, defrag_memory_on(m, node));
	}
}

static void list_choices(struct direct *d)
{
	struct defrag_search *p = d->p;

	d->nr = 0;
	d->all = true;
	for (unsigned n = 0; n < p->q->topo->ids.nr; n++) {
		list_movers_on(d, n);
		if (p->q->pod)
			choose_for(d, NULL, n);
		for (size_t i = 0; i < p->nr; i++)
			if (p->mover[i].gains && !p->mover[i].at)
				choose_for(d, &p->mover[i], n);
	}
	if (d->nr)
		qsort(d->choice, d->nr, sizeof *d->choice, by_promise);
}

/* Carrying one out */

static bool go(struct direct *d, struct defrag_mover *m, unsigned node)
{
	d->pool[d->depth] = ledger_view(d->p->ledger)->pool;
	if (!defrag_go(d->p, m, node, d->depth))
		return false;
	d->moved[d->depth++] = m;
	return true;
}

static void go_back_to(struct direct *d, unsigned depth)
{
	while (d->depth > depth) {
		d->depth--;
		defrag_back(d->p, d->moved[d->depth], &d->pool[d->depth]);
	}
}

/* It goes elsewhere. */
static bool leave(struct direct *d, struct defrag_mover *m, unsigned node)
{
	struct nodeset tried = nodeset_of(node);
	const struct defrag_search *p = d->p;

	for (unsigned i = 0; i < PLACES_MAX; i++) {
		unsigned best = NODES_MAX;

		for (unsigned n = 0; n < p->q->topo->ids.nr; n++)
			if (!nodeset_has(tried, n) &&
				(best == NODES_MAX || p->free[n] < p->free[best]) &&
				defrag_may_go(p, m, n))
				best = n;
		if (best == NODES_MAX)
			return false;
		if (go(d, m, best))
			return true;
		tried = nodeset_or(tried, nodeset_of(best));
	}
	return false;
}

/* What is in the guest's way goes elsewhere. */
static bool make_way(struct direct *d, const struct choice *c)
{
	const unsigned began = d->depth;

	for (unsigned i = 0; i < c->nr; i++)
		if (c->leaves[i]->at || !leave(d, c->leaves[i], c->node)) {
			go_back_to(d, began);
			return false;
		}
	return true;
}

/* A mover becomes preferred. */
static bool carry_out(struct direct *d, const struct choice *c)
{
	const unsigned began = d->depth;

	if (!make_way(d, c))
		return false;
	if (!go(d, c->guest, c->node)) {
		go_back_to(d, began);
		return false;
	}
	defrag_look(d->p, d->depth);
	return true;
}

static bool seat(struct direct *d);

/* The pod's next container has that NUMA node, and those behind it have others, or the same. */
static bool seat_on(struct direct *d, const struct choice *c)
{
	struct defrag_search *p = d->p;
	const struct defrag_room aside = p->set_aside[c->node], *need = &p->guest[d->guest];
	const unsigned began = d->depth;
	bool done;

	if (!make_way(d, c))
		return false;
	p->set_aside[c->node] =
		(struct defrag_room){aside.cpus + need->cpus, aside.memory + need->memory};
	d->guest++;
	done = seat(d);
	d->guest--;
	p->set_aside[c->node] = aside;
	if (!done)
		go_back_to(d, began);
	return done;
}

/* The first choice that can be done, after what was done. */
static bool do_one(struct direct *d)
{
	for (size_t i = 0; i < d->nr && !d->p->out->cut; i++)
		if (carry_out(d, &d->choice[i]))
			return true;
	return false;
}

/* What becoming preferred costs those that cost least. */
static struct defrag_cost cheapest_gain(const struct defrag_search *p, unsigned nr)
{
	struct defrag_cost cost = {0};

	for (size_t i = 0; i < p->nr && nr; i++)
		if (p->mover[i].gains) {
			cost = defrag_sum(&cost, &p->mover[i].cost);
			nr--;
		}
	return cost;
}

/* True: each move is a gain, and no others are cheaper. */
static bool search_for_movers(struct direct *d)
{
	const unsigned most = (unsigned)number_min(d->p->moves, d->p->nr_gaining);
	const struct defrag_cost least = cheapest_gain(d->p, most);

	list_choices(d);
	if (!d->nr && d->all)
		return true;
	while (do_one(d) && d->depth < d->p->moves)
		list_choices(d);
	go_back_to(d, 0);
	return d->p->best == most && defrag_compare(&d->p->out->cost, &least) == 0;
}

/* The pod's containers from the next one on are seated: what is in their way is moved. */
static bool seat(struct direct *d)
{
	struct choice tried[TRIED_MAX];
	size_t nr;

	if (d->guest == d->p->nr_guests) {
		struct defrag_room aside[NODES_MAX];

		memcpy(aside, d->p->set_aside, sizeof aside);
		memset(d->p->set_aside, 0, sizeof aside); /* it is the pod that comes now */
		defrag_look(d->p, d->depth);
		memcpy(d->p->set_aside, aside, sizeof aside);
		return d->p->best;
	}
	if (d->seats++ >= SEATS_MAX)
		return false;
	list_choices(d);
	nr = number_min(d->nr, TRIED_MAX);
	memcpy(tried, d->choice, nr * sizeof *tried);
	for (size_t i = 0; i < nr && !d->p->out->cut && d->seats <= SEATS_MAX; i++)
		if (seat_on(d, &tried[i]))
			return true;
	return false;
}

/* One container: each choice is tried. True: none is cheaper than the one that was done, and
 * without a choice nothing can be. */
static bool search_for_one(struct direct *d)
{
	bool done = false;

	list_choices(d);
	for (size_t i = 0; i < d->nr && !done && !d->p->out->cut; i++) {
		struct defrag_search *p = d->p;

		done = make_way(d, &d->choice[i]);
		if (done)
			defrag_look(p, d->depth);
		done = p->best;
		go_back_to(d, 0);
	}
	return d->all &&
	       (!d->nr || (done && defrag_compare(&d->p->out->cost, &d->choice[0].cost) == 0));
}

static bool search_for_pod(struct direct *d)
{
	if (d->p->nr_guests == 1)
		return search_for_one(d);
	(void)seat(d);
	go_back_to(d, 0);
	return false;
}

bool defrag_search_direct(struct defrag_search *p)
{
	struct direct d = {.p = p};
	bool best = false;

	if (p->q->pod && !p->nr_guests)
		return false;
	d.choice = xcalloc(CHOICES_MAX, sizeof *d.choice);
	d.there = xcalloc(p->nr + 1, sizeof *d.there);
	best = p->q->pod ? search_for_pod(&d) : search_for_movers(&d);
	free(d.choice);
	free(d.there);
	return best;
}
