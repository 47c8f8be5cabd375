/* A search through sequences of moves. First what lies on one NUMA node goes wherever there is
 * room, which on a large machine is all that there are steps for; then every sequence that may cost
 * less. One more move is allowed in each round, so that what few moves can do bounds what more of
 * them may cost. */
#include "engine_state.h"

#include <numafit/answer.h>
#include <numafit/defrag.h>
#include <numafit/mem.h>
#include <numafit/number.h>

#include <stdlib.h>
#include <string.h>

#define uthash_malloc(bytes)  xrealloc(NULL, 1, bytes)
#define uthash_fatal(message) abort() /* never: xrealloc() does not fail */
#include <uthash.h>

/* One that may move. */
struct mover {
	size_t entry; /* its place in both ledgers */
	const struct holding *from;
	struct request request; /* the same, with the NUMA node to try as advice */
	struct advice_ask advice;
	struct nodeset nodes; /* that it is on */
	struct defrag_cost cost;
	uint64_t memory; /* that it has booked */
	unsigned at;     /* NUMA node that it was moved to, and 1 more; 0: where it was */
};

/* A state that was looked at; its key is where each mover is, which also says how many moves it
 * took, as none moves twice, and what they cost. */
struct seen_state {
	UT_hash_handle hh;
	unsigned char where[];
};

struct planner {
	const struct defrag_question *q;
	struct engine *copy;
	struct ledger *ledger; /* the copy's, which moves are tried on */
	struct mover *mover;   /* the cheapest first */
	size_t nr;
	bool *gone;
	unsigned char *where;
	void *work; /* of one decision */
	struct seen_state *seen;
	bool one_node;   /* the pod fits on one NUMA node of an empty machine */
	struct ask need; /* of such a pod */
	unsigned moves;  /* of this round */
	bool is_quick;   /* only what is on `target` moves, to the first NUMA node that has room */
	unsigned target;
	uint64_t trials; /* at most, by now */
	struct defrag_move path[DEFRAG_MOVES_MAX];
	struct defrag_cost cost;
	struct defrag_plan *out;
};

static int compare_costs(const struct defrag_cost *a, const struct defrag_cost *b)
{
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	if (a->cpus != b->cpus)
		return a->cpus < b->cpus ? -1 : 1;
	return a->moves < b->moves ? -1 : a->moves > b->moves;
}

static struct defrag_cost cost_with(const struct defrag_cost *a, const struct defrag_cost *b)
{
	return (struct defrag_cost){a->bytes + b->bytes, a->cpus + b->cpus, a->moves + b->moves};
}

/* Who may move */

/* NUMA nodes that were asked for, and given; a wish of which nobody knows what became was perhaps
 * followed. */
static bool is_where_it_was_sent(const struct holding *h)
{
	const struct advice_result *a = &h->decision.advice;
	bool followed = a->verdict == ADVICE_ACCEPTED || a->verdict == ADVICE_ACCEPTED_STALE;

	return (a->looked_at && followed && a->mode == ADVICE_REQUIRE) ||
	       (h->request.ask.wishes_nodes && (!a->looked_at || followed));
}

bool defrag_can_move(const struct holding *h)
{
	const struct request *r = &h->request;
	const struct decision *d = &h->decision;

	for (unsigned i = 0; i < d->nr_blocks; i++)
		if (d->blocks[i].kind)
			return false; /* huge pages are where they are reserved */
	return d->exclusive && decision_is_booked(d) && !d->left && !d->lease &&
	       h->state != HOLDING_WAITING && !holding_is_share(h) && !r->ask.whole_pod &&
	       !r->ask.has_devices && !r->ask.tokens && !is_where_it_was_sent(h) &&
	       r->ask.wishes.isolated == WISH_ISOLATED_UNSAID && !r->shares && !r->allocated &&
	       r->ask.kind != CONTAINER_INIT;
}

bool defrag_may_move(
	const struct holding *h, const struct settings *s, int64_t now_ms, bool by_itself)
{
	const enum wish_movable wish = h->request.ask.wishes.movable;
	const int64_t moved = h->decision.moved_ms;
	const uint64_t ago = moved < now_ms ? (uint64_t)now_ms - (uint64_t)moved : 0;

	if (!defrag_can_move(h) || h->state != HOLDING_LIVE || wish == WISH_MOVABLE_NO)
		return false;
	if (moved && ago < s->defrag.min_interval_ms)
		return false;
	return !by_itself || wish == WISH_MOVABLE_YES || s->defrag.movable == MOVABLE_ALL;
}

static uint64_t booked_memory(const struct holding *h)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < h->decision.nr_blocks; i++)
		bytes += h->decision.blocks[i].bytes;
	return bytes;
}

static int by_cost(const void *a, const void *b)
{
	const struct mover *x = a, *y = b;
	int order = compare_costs(&x->cost, &y->cost);

	return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

static void list_movers(struct planner *p)
{
	const struct defrag_question *q = p->q;
	const struct ledger *l = engine_ledger(q->engine);

	p->mover = xcalloc(ledger_count(l) + 1, sizeof *p->mover);
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (!defrag_can_move(h) || (q->may_move && !q->may_move(q->ctx, h)))
			continue;
		struct mover *m = &p->mover[p->nr++];
		*m = (struct mover){.entry = i,
			.from = h,
			.request = h->request,
			.nodes = decision_nodes_used(q->topo, &h->decision),
			.memory = booked_memory(h)};
		m->cost = (struct defrag_cost){q->bytes_of ? q->bytes_of(q->ctx, h) : m->memory,
			cpuset_count(&h->decision.cpus), 1};
	}
	if (p->nr)
		qsort(p->mover, p->nr, sizeof *p->mover, by_cost);
	p->where = xcalloc(p->nr + 1, 1);
}

/* Moves */

/* false: the shared pool cannot do without these CPUs as long as it has what it leaves, too. */
static bool enter(struct planner *p, const struct mover *m, const struct decision *d)
{
	struct cpuset pool = ledger_pool_without(p->ledger, &d->cpus);

	if (ledger_set_pool(p->ledger, &pool, NULL))
		return false;
	ledger_commit(p->ledger, &m->from->request, d);
	return true;
}

/* It goes to that NUMA node, where there is room for it now. */
static bool move_to(struct planner *p, struct mover *m, unsigned node, struct decision *d)
{
	struct admit_question q = {
		.ledger = p->ledger, .settings = p->q->settings, .container = &m->request};
	struct budget b = budget_of(p->q->settings->merge_visit_budget);
	struct arena a;

	m->advice = (struct advice_ask){
		.so_far = ADVICE_ACCEPTED, .mode = ADVICE_REQUIRE, .asked = nodeset_of(node)};
	m->request.ask.advice = &m->advice;
	p->gone[m->entry] = true;
	q.suppose.gone = p->gone;
	arena_init_fixed(&a, p->work, ADMIT_ARENA_BYTES);
	admit(&q, &b, &a, d, NULL);
	p->gone[m->entry] = false;
	if (!d->admit || !d->exclusive || !d->preferred ||
		!nodeset_equal(decision_nodes_used(p->q->topo, d), nodeset_of(node)))
		return false;
	d->source = m->from->decision.source;
	d->reasons = NULL;
	d->advice = (struct advice_result){0};
	if (!enter(p, m, d))
		return false;
	m->at = node + 1;
	return true;
}

static void move_back(struct planner *p, struct mover *m, const struct cpuset *pool)
{
	(void)enter(p, m, &m->from->decision); /* CPUs that it had are in no pool by now */
	(void)ledger_set_pool(p->ledger, pool, NULL);
	m->at = 0;
}

/* The pod */

static bool is_admitted_as_preferred(
	const struct planner *p, bool on_empty_machine, struct nodeset *nodes)
{
	struct admit_question q = {
		.ledger = p->ledger, .settings = p->q->settings, .pod = p->q->pod};
	struct budget b = budget_of(p->q->settings->merge_visit_budget);
	struct answer answer;
	struct arena a;

	q.suppose.empty = on_empty_machine;
	arena_init_fixed(&a, p->work, ADMIT_ARENA_BYTES);
	answer_pod(&q, &b, &a, &answer);
	*nodes = (struct nodeset){0};
	if (!answer.decision.admit)
		return false;
	for (size_t i = 0; i < answer.record.nr_parts; i++) {
		const struct decision *d = &answer.record.parts[i].decision;

		*nodes = nodeset_or(*nodes, decision_nodes_used(p->q->topo, d));
		if (!d->preferred)
			return false;
	}
	return answer.record.nr_parts;
}

/* Whether that NUMA node may have so many CPUs and so much memory for one container, when `going`
 * has left it. Memory that is booked on several NUMA nodes together is of each
 * of them. */
static bool may_have_room(const struct planner *p, unsigned node, unsigned cpus, uint64_t memory,
	const struct mover *going)
{
	const struct memory_node *m = &ledger_view(p->ledger)->memory.node[node];
	const struct cpuset all = ledger_free_cpus(p->ledger);
	unsigned free = cpuset_count_and(&p->q->topo->node[node].cpus, &all);
	uint64_t left = m->free[0];

	if (nodeset_has(going->nodes, node)) {
		free += going->cost.cpus;
		left += going->memory;
	}
	return free >= cpus && (left >= memory || nodeset_count(m->group) > 1);
}

/* Whether its going can be the last move before a pod is admitted that fits on one NUMA node: then
 * that NUMA node is one that it leaves, and has room enough without it. */
static bool can_be_the_last(const struct planner *p, const struct mover *m)
{
	if (!p->one_node)
		return true;
	nodeset_each (n, m->nodes)
		if (may_have_room(p, n, (unsigned)(p->need.cpu_milli / MILLI_PER_CPU),
			    p->need.nr_memory ? p->need.memory[0].bytes : 0, m))
			return true;
	return false;
}

/* The search */

static bool was_seen(struct planner *p)
{
	struct seen_state *s = NULL;

	for (size_t i = 0; i < p->nr; i++)
		p->where[i] = (unsigned char)p->mover[i].at;
	HASH_FIND(hh, p->seen, p->where, p->nr, s);
	if (s)
		return true;
	s = xcalloc(1, sizeof *s + p->nr);
	memcpy(s->where, p->where, p->nr);
	HASH_ADD(hh, p->seen, where, p->nr, s);
	return false;
}

static void forget_seen(struct planner *p)
{
	struct seen_state *s, *next;

	HASH_ITER(hh, p->seen, s, next)
	{
		HASH_DEL(p->seen, s);
		free(s);
	}
}

static void keep_plan(struct planner *p, unsigned depth)
{
	struct defrag_plan *out = p->out;

	out->found = true;
	out->nr = depth;
	out->cost = p->cost;
	memcpy(out->move, p->path, depth * sizeof *p->path);
}

static void search(struct planner *p, unsigned depth);

/* The mover goes to each other NUMA node, and the search on from there. */
static void try_moves(struct planner *p, struct mover *m, unsigned depth)
{
	const struct cpuset pool = ledger_view(p->ledger)->pool;
	const struct defrag_cost before = p->cost;
	struct defrag_move *step = &p->path[depth];

	for (unsigned n = 0; n < p->q->topo->ids.nr && !p->out->cut; n++) {
		if (nodeset_equal(m->nodes, nodeset_of(n)) ||
			!may_have_room(p, n, m->cost.cpus, m->memory, m))
			continue;
		p->out->cut = p->out->trials++ >= p->trials;
		if (p->out->cut || !move_to(p, m, n, &step->to))
			continue;
		step->from = m->from;
		step->cost = m->cost;
		p->cost = cost_with(&before, &m->cost);
		search(p, depth + 1);
		p->cost = before;
		move_back(p, m, &pool);
		if (p->is_quick)
			return;
	}
}

static void search(struct planner *p, unsigned depth)
{
	struct nodeset nodes;

	if (was_seen(p))
		return;
	if (is_admitted_as_preferred(p, false, &nodes)) {
		keep_plan(p, depth);
		return;
	}
	for (size_t i = 0; i < p->nr && depth < p->moves && !p->out->cut; i++) {
		struct mover *m = &p->mover[i];
		const struct defrag_cost cost = cost_with(&p->cost, &m->cost);

		if (p->out->found && compare_costs(&cost, &p->out->cost) >= 0)
			return; /* the others cost as much, or more */
		if (p->is_quick && !nodeset_has(m->nodes, p->target))
			continue;
		if (!m->at && (depth + 1 < p->moves || can_be_the_last(p, m)))
			try_moves(p, m, depth);
	}
}

/* A pod of one container, which asks for ordinary memory alone, and fits on one NUMA node. */
static void look_at_pod(struct planner *p, struct nodeset nodes)
{
	const struct pod *pod = p->q->pod;

	p->one_node = pod->nr == 1 && !pod->own && nodeset_count(nodes) == 1 &&
		      pod->container->cpu_milli % MILLI_PER_CPU == 0 && pod->qos == QOS_GUARANTEED;
	if (p->one_node)
		p->need = *pod->container;
	for (unsigned i = 0; p->one_node && i < p->need.nr_memory; i++)
		p->one_node = !p->need.memory[i].page_bytes;
}

/* A pod that fits on one NUMA node: each is tried, with a part of the trials. */
static void search_quickly(struct planner *p)
{
	const uint64_t all = p->q->trials, each = all / 2 / p->q->topo->ids.nr;

	p->moves = (unsigned)number_min(p->q->moves, DEFRAG_MOVES_MAX);
	p->is_quick = true;
	for (unsigned n = 0; p->one_node && n < p->q->topo->ids.nr; n++) {
		p->target = n;
		p->trials = p->out->trials + each;
		search(p, 0);
		p->out->cut = false;
		forget_seen(p);
	}
	p->is_quick = false;
	p->trials = all;
}

static void plan_in_rounds(struct planner *p)
{
	struct nodeset nodes;

	if (!is_admitted_as_preferred(p, true, &nodes))
		return;
	look_at_pod(p, nodes);
	search_quickly(p);
	for (p->moves = 0; p->moves <= p->q->moves && p->moves <= DEFRAG_MOVES_MAX; p->moves++) {
		search(p, 0);
		forget_seen(p);
		if (p->out->cut || (p->out->found && !p->out->nr))
			return;
	}
}

int defrag_plan(const struct defrag_question *q, struct defrag_plan *out, struct err *e)
{
	struct planner p = {.q = q, .out = out};

	*out = (struct defrag_plan){0};
	p.copy = engine_copy(q->engine, q->topo, q->settings, e);
	if (!p.copy)
		return -e->code;
	p.ledger = p.copy->ledger;
	p.work = xcalloc(1, ADMIT_ARENA_BYTES);
	p.gone = xcalloc(ledger_count(p.ledger) + 1, sizeof *p.gone);
	list_movers(&p);
	plan_in_rounds(&p);
	engine_free(p.copy);
	free(p.mover);
	free(p.where);
	free(p.gone);
	free(p.work);
	return 0;
}
