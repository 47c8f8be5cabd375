/* A search through sequences of moves. First those that are likely (defrag_direct.c), which on a
 * large machine is all that there are trials for; then every sequence that may be better. One more
 * move is allowed in each round, so that what few moves can do bounds what more of them may cost.
 */
#include "defrag_state.h"
#include "engine_state.h"

#include <numafit/answer.h>
#include <numafit/mem.h>
#include <numafit/number.h>

#include <stdlib.h>
#include <string.h>

#define uthash_malloc(bytes)  xrealloc(NULL, 1, bytes)
#define uthash_fatal(message) abort() /* never: xrealloc() does not fail */
#include <uthash.h>

enum { MERGE_TRIALS = 10 }; /* that a merge for a container of the pod takes as long as */

/* A state that was looked at; its key is where each mover is, which also says how many moves it
 * took, as none moves twice, and what they cost. */
struct seen_state {
	UT_hash_handle hh;
	unsigned char where[];
};

int defrag_compare(const struct defrag_cost *a, const struct defrag_cost *b)
{
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	if (a->cpus != b->cpus)
		return a->cpus < b->cpus ? -1 : 1;
	return a->moves < b->moves ? -1 : a->moves > b->moves;
}

struct defrag_cost defrag_sum(const struct defrag_cost *a, const struct defrag_cost *b)
{
	return (struct defrag_cost){a->bytes + b->bytes, a->cpus + b->cpus, a->moves + b->moves};
}

unsigned defrag_cpus_on(const struct defrag_search *p, const struct defrag_mover *m, unsigned node)
{
	return cpuset_count_and(&m->from->decision.cpus, &p->q->topo->node[node].cpus);
}

uint64_t defrag_memory_on(const struct defrag_mover *m, unsigned node)
{
	const struct decision *d = &m->from->decision;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < d->nr_blocks; i++)
		bytes += nodeset_has(d->blocks[i].nodes, node) ? d->blocks[i].bytes : 0;
	return bytes;
}

/* Movers */

static bool is_not_preferred(const struct holding *h)
{
	const struct decision *d = &h->decision;

	return d->exclusive && decision_is_booked(d) && !d->preferred;
}

static int by_id(const void *id, const void *figure)
{
	return strcmp(id, ((const struct defrag_figure *)figure)->container_id);
}

/* *bytes: of memory that it uses. False: it is not to move. */
static bool may_move(const struct defrag_question *q, const struct holding *h, uint64_t *bytes)
{
	const struct defrag_figure *figure;

	if (!defrag_can_move(h) || (q->may_move && !q->may_move(q->ctx, h)))
		return false;
	*bytes = q->bytes_of ? q->bytes_of(q->ctx, h) : decision_booked_bytes(&h->decision);
	if (!q->figures)
		return true;
	figure = q->nr_figures ? bsearch(h->request.container_id, q->figures, q->nr_figures,
					 sizeof *q->figures, by_id)
			       : NULL;
	*bytes = figure ? figure->bytes : 0;
	return figure;
}

static int by_cost(const void *a, const void *b)
{
	const struct defrag_mover *x = a, *y = b;
	int order = defrag_compare(&x->cost, &y->cost);

	return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

static void list_movers(struct defrag_search *p)
{
	const struct defrag_question *q = p->q;
	const struct ledger *l = engine_ledger(q->engine);
	uint64_t bytes;

	p->mover = xcalloc(ledger_count(l) + 1, sizeof *p->mover);
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		p->out->not_preferred_before += is_not_preferred(h);
		if (!may_move(q, h, &bytes))
			continue;
		struct defrag_mover *m = &p->mover[p->nr++];
		*m = (struct defrag_mover){.entry = i,
			.from = h,
			.request = h->request,
			.nodes = decision_nodes_used(q->topo, &h->decision),
			.cost = {bytes, cpuset_count(&h->decision.cpus), 1},
			.cpus = request_exclusive_cpus(&h->request),
			.memory = decision_booked_bytes(&h->decision),
			.gains = !q->pod && is_not_preferred(h)};
		p->nr_gaining += m->gains;
	}
	p->out->not_preferred_after = p->out->not_preferred_before;
	if (p->nr)
		qsort(p->mover, p->nr, sizeof *p->mover, by_cost);
	p->where = xcalloc(p->nr + 1, 1);
}

/* Room */

bool defrag_has_room(const struct defrag_search *p, unsigned node, const struct defrag_room *need,
	const struct defrag_room *gone)
{
	const struct memory_node *m = &ledger_view(p->ledger)->memory.node[node];
	const struct defrag_room *aside = &p->set_aside[node];

	return p->free[node] + gone->cpus >= need->cpus + aside->cpus &&
	       (m->free[0] + gone->memory >= need->memory + aside->memory ||
		       nodeset_count(m->group) > 1);
}

bool defrag_may_go(const struct defrag_search *p, const struct defrag_mover *m, unsigned node)
{
	const struct defrag_room need = {m->cpus, m->memory},
				 own = {defrag_cpus_on(p, m, node), defrag_memory_on(m, node)};

	return !nodeset_equal(m->nodes, nodeset_of(node)) && defrag_has_room(p, node, &need, &own);
}

static void count_free(struct defrag_search *p)
{
	const struct cpuset all = ledger_free_cpus(p->ledger);

	for (unsigned n = 0; n < p->q->topo->ids.nr; n++)
		p->free[n] = cpuset_count_and(&p->q->topo->node[n].cpus, &all);
}

/* Moves */

/* Whether the shared pool, and what is promised to tokens, can do without them while the container
 * has what it leaves, too. */
static bool can_be_spared(const struct defrag_search *p, const struct cpuset *cpus)
{
	const struct cpuset promised = ledger_promised_cpus(p->ledger, NULL),
			    shareable = ledger_shareable_cpus(p->ledger);

	return cpuset_count_and(cpus, &shareable) <= ledger_spare_cpus(p->ledger, &promised);
}

static bool enter(struct defrag_search *p, const struct defrag_mover *m, const struct decision *d)
{
	struct cpuset pool = ledger_pool_without(p->ledger, &d->cpus);

	if (ledger_set_pool(p->ledger, &pool, NULL))
		return false;
	ledger_commit(p->ledger, &m->from->request, d);
	return true;
}

/* Whether nothing but its CPUs and memory says whether a container may have a NUMA node, all of
 * which are as good: then to merge would be in vain. */
static bool needs_no_merge(const struct defrag_search *p)
{
	const struct settings *s = p->q->settings;

	return s->topology_policy != POLICY_NONE && s->topology_scope == SCOPE_CONTAINER &&
	       cpuset_empty(&p->q->topo->isolated);
}

/* Whether it could come to that NUMA node now if it were not there yet. */
static bool is_admitted(
	struct defrag_search *p, struct defrag_mover *m, unsigned node, struct decision *d)
{
	const struct decision *from = &m->from->decision;
	const struct hint there = {.mask = nodeset_of(node), .preferred = true};
	struct admit_question q = {
		.ledger = p->ledger, .settings = p->q->settings, .container = &m->request};
	struct budget b = budget_of(p->q->settings->merge_visit_budget);
	struct arena a;

	m->advice = (struct advice_ask){
		.so_far = ADVICE_ACCEPTED, .mode = ADVICE_REQUIRE, .asked = there.mask};
	m->request.ask.advice = &m->advice;
	p->gone[m->entry] = true;
	q.suppose.gone = p->gone;
	q.suppose.settled = needs_no_merge(p) ? &there : NULL;
	arena_init_fixed(&a, p->work, ADMIT_ARENA_BYTES);
	admit(&q, &b, &a, d, NULL);
	p->gone[m->entry] = false;
	d->source = from->source;
	d->apart = from->apart;
	d->reasons = NULL;
	d->advice = (struct advice_result){0};
	return d->admit && d->exclusive && d->preferred &&
	       nodeset_equal(decision_nodes_used(p->q->topo, d), there.mask);
}

static bool spend(struct defrag_search *p, uint64_t trials)
{
	if (p->out->trials + trials > p->trials)
		p->out->cut = true;
	else
		p->out->trials += trials;
	return !p->out->cut;
}

bool defrag_go(struct defrag_search *p, struct defrag_mover *m, unsigned node, unsigned depth)
{
	struct defrag_move *step = &p->path[depth];

	if (!spend(p, 1) || !is_admitted(p, m, node, &step->to))
		return false;
	const struct cpuset others = cpuset_minus(step->to.cpus, &m->from->decision.cpus);
	if (!can_be_spared(p, &others) || !enter(p, m, &step->to))
		return false;
	step->from = m->from;
	step->cost = m->cost;
	p->cost = defrag_sum(&p->cost, &m->cost);
	p->gained += m->gains;
	m->at = node + 1;
	count_free(p);
	return true;
}

void defrag_back(struct defrag_search *p, struct defrag_mover *m, const struct cpuset *pool)
{
	(void)enter(p, m, &m->from->decision); /* CPUs that it had are in no pool by now */
	(void)ledger_set_pool(p->ledger, pool, NULL);
	p->cost.bytes -= m->cost.bytes;
	p->cost.cpus -= m->cost.cpus;
	p->cost.moves -= m->cost.moves;
	p->gained -= m->gains;
	m->at = 0;
	count_free(p);
}

/* The pod */

/* one_each: each of its containers lies on one NUMA node. */
static bool pod_is_admitted(const struct defrag_search *p, bool on_empty_machine, bool *one_each)
{
	struct admit_question q = {
		.ledger = p->ledger, .settings = p->q->settings, .pod = p->q->pod};
	struct budget b = budget_of(p->q->settings->merge_visit_budget);
	struct answer answer;
	struct arena a;

	q.suppose.empty = on_empty_machine;
	arena_init_fixed(&a, p->work, ADMIT_ARENA_BYTES);
	answer_pod(&q, &b, &a, &answer);
	*one_each = true;
	if (!answer.decision.admit)
		return false;
	for (size_t i = 0; i < answer.record.nr_parts; i++) {
		const struct decision *d = &answer.record.parts[i].decision;

		*one_each = *one_each && nodeset_count(decision_nodes_used(p->q->topo, d)) <= 1;
		if (!d->preferred)
			return false;
	}
	return answer.record.nr_parts;
}

static int by_size(const void *a, const void *b)
{
	const struct defrag_room *x = a, *y = b;

	return x->cpus != y->cpus ? (x->cpus < y->cpus) - (x->cpus > y->cpus)
				  : (x->memory < y->memory) - (x->memory > y->memory);
}

/* How many containers of that size may fit when that mover has left; NULL: now. At most so many. */
static unsigned that_may_fit(const struct defrag_search *p, const struct defrag_room *need,
	const struct defrag_mover *going, unsigned most)
{
	unsigned fit = 0;

	for (unsigned n = 0; n < p->q->topo->ids.nr && fit < most; n++) {
		struct defrag_room gone = {0};

		if (going && nodeset_has(going->nodes, n))
			gone = (struct defrag_room){
				defrag_cpus_on(p, going, n), defrag_memory_on(going, n)};
		if (defrag_has_room(p, n, need, &gone))
			fit += need->cpus ? (p->free[n] + gone.cpus) / need->cpus : most;
	}
	return fit;
}

/* Whether the pod may be admitted as preferred then, as far as sums say: of each size there is room
 * for as many containers as are at least as large. */
static bool pod_may_fit(const struct defrag_search *p, const struct defrag_mover *going)
{
	for (unsigned i = 0; i < p->nr_guests; i++) {
		struct defrag_room need = p->guest[i];

		if (i + 1 < p->nr_guests && !by_size(&need, &p->guest[i + 1]))
			continue;                /* one more as large is asked about */
		for (unsigned k = 0; k < i; k++) /* the largest come first, by CPUs */
			need.memory = number_min(need.memory, p->guest[k].memory);
		if (that_may_fit(p, &need, going, i + 1) < i + 1)
			return false;
	}
	return true;
}

/* A pod whose containers ask for ordinary memory alone, and lie on one NUMA node each, as each has
 * room there by itself. */
static void look_at_pod(struct defrag_search *p, bool one_each)
{
	const struct pod *pod = p->q->pod;

	if (!one_each || pod->own || pod->qos != QOS_GUARANTEED || pod->nr > GUESTS_MAX ||
		pod_is_aligned_as_one(p->q->settings, pod))
		return;
	for (unsigned i = 0; i < pod->nr; i++) {
		const struct ask *c = &pod->container[i];

		if (c->nr_memory > 1 || (c->nr_memory && c->memory[0].page_bytes))
			return;
		p->guest[i] = (struct defrag_room){
			pod_exclusive_cpus(pod, i), c->nr_memory ? c->memory[0].bytes : 0};
	}
	p->nr_guests = (unsigned)pod->nr;
	qsort(p->guest, p->nr_guests, sizeof *p->guest, by_size);
}

/* The search */

void defrag_look(struct defrag_search *p, unsigned depth)
{
	struct defrag_plan *out = p->out;
	unsigned gained = p->gained;
	bool one_each;

	if (p->q->pod)
		gained = pod_may_fit(p, NULL) && spend(p, MERGE_TRIALS * p->q->pod->nr) &&
			 pod_is_admitted(p, false, &one_each);
	if (!gained || gained < p->best ||
		(gained == p->best && defrag_compare(&p->cost, &out->cost) >= 0))
		return;
	p->best = gained;
	out->found = true;
	out->nr = depth;
	out->cost = p->cost;
	memcpy(out->move, p->path, depth * sizeof *p->path);
	out->not_preferred_after = out->not_preferred_before;
	for (unsigned i = 0; i < depth; i++)
		out->not_preferred_after -= is_not_preferred(p->path[i].from);
}

static bool was_seen(struct defrag_search *p)
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

static void forget_seen(struct defrag_search *p)
{
	struct seen_state *s, *next;

	HASH_ITER(hh, p->seen, s, next)
	{
		HASH_DEL(p->seen, s);
		free(s);
	}
}

/* Whether nothing that begins with its move, the path's number `depth`, can be better than what was
 * found. */
static bool is_in_vain(const struct defrag_search *p, const struct defrag_mover *m, unsigned depth)
{
	const struct defrag_cost cost = defrag_sum(&p->cost, &m->cost);
	const unsigned left = p->moves - depth - 1;
	unsigned most = p->gained + m->gains;

	most = p->q->pod ? 1 : most + (unsigned)number_min(left, p->nr_gaining - most);
	if (most <= p->gained || most < p->best ||
		(most == p->best && defrag_compare(&cost, &p->out->cost) >= 0))
		return true;
	return p->q->pod && !left && !pod_may_fit(p, m);
}

static void search(struct defrag_search *p, unsigned depth)
{
	const struct cpuset pool = ledger_view(p->ledger)->pool;

	if (was_seen(p))
		return;
	defrag_look(p, depth);
	for (size_t i = 0; i < p->nr && depth < p->moves; i++) {
		struct defrag_mover *m = &p->mover[i];

		if (m->at || is_in_vain(p, m, depth))
			continue;
		for (unsigned n = 0; n < p->q->topo->ids.nr && !p->out->cut; n++) {
			if (!defrag_may_go(p, m, n) || !defrag_go(p, m, n, depth))
				continue;
			search(p, depth + 1);
			defrag_back(p, m, &pool);
		}
	}
}

static void search_in_rounds(struct defrag_search *p, unsigned moves)
{
	for (p->moves = 1; p->moves <= moves && !p->out->cut; p->moves++) {
		search(p, 0);
		forget_seen(p);
	}
}

static void plan(struct defrag_search *p)
{
	const unsigned moves = (unsigned)number_min(p->q->moves, DEFRAG_MOVES_MAX);
	bool one_each;

	if (p->q->pod) {
		if (!pod_is_admitted(p, true, &one_each))
			return;
		look_at_pod(p, one_each);
	}
	p->trials = p->q->trials;
	p->moves = moves;
	defrag_look(p, 0);
	if (p->out->found || !moves)
		return;
	p->trials = p->q->trials / 2;
	if (defrag_search_direct(p))
		return;
	p->out->cut = false;
	p->trials = p->q->trials;
	search_in_rounds(p, moves);
}

int defrag_plan(const struct defrag_question *q, struct defrag_plan *out, struct err *e)
{
	struct defrag_search p = {.q = q, .out = out};
	struct err why = {0};
	struct engine *copy;

	*out = (struct defrag_plan){0};
	copy = engine_copy(q->engine, q->topo, q->settings, &why);
	if (!copy)
		return err_set(e, why.code, "%s", why.text);
	p.ledger = copy->ledger;
	p.work = xcalloc(1, ADMIT_ARENA_BYTES);
	p.gone = xcalloc(ledger_count(p.ledger) + 1, sizeof *p.gone);
	list_movers(&p);
	count_free(&p);
	plan(&p);
	engine_free(copy);
	free(p.mover);
	free(p.where);
	free(p.gone);
	free(p.work);
	return 0;
}
