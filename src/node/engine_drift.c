/* What drifts away from the ledger, and is brought back: containers that run otherwise than they
 * are to, and a machine whose CPUs and memory come and go. */
#include "engine_state.h"

#include <numafit/cpus.h>
#include <numafit/number.h>
#include <numafit/resize.h>
#include <numafit/shares.h>
#include <numafit/text.h>

bool engine_wants(const struct engine *g, const char *container_id, struct update *want)
{
	const struct holding *h = ledger_find(g->ledger, container_id);

	if (!h || h->state != HOLDING_LIVE || decision_is_left(&h->decision) ||
		ledger_is_moving(g->ledger, container_id))
		return false;
	*want = engine_placement_of(g, h);
	return true;
}

void engine_must_update(struct engine *g, const char *container_id)
{
	ledger_set_misplaced(g->ledger, container_id, true);
}

static void take_updates_of(struct engine *g, bool exclusive, struct update_list *ups)
{
	for (size_t i = 0; i < ledger_count(g->ledger); i++) {
		const struct holding *h = ledger_at(g->ledger, i);
		struct update want;

		if (!h->misplaced || h->starting || h->decision.exclusive != exclusive ||
			!engine_wants(g, h->request.container_id, &want))
			continue;
		*vec_push(ups) = want;
		ledger_set_misplaced(g->ledger, h->request.container_id, false);
	}
}

void engine_take_updates(struct engine *g, struct update_list *ups)
{
	if (!ledger_view(g->ledger)->nr_misplaced)
		return;
	take_updates_of(g, false, ups);
	take_updates_of(g, true, ups);
}

/* Enter what it is to have instead of what it lost, if that can be; else why not, into *why. */
static bool make_whole(
	struct engine *g, const struct holding *h, struct budget *b, struct decision *why)
{
	const struct request req = h->request;
	struct settings cpus_alone = *g->s; /* memory does not move */
	struct decision d;

	cpus_alone.memory_manager_policy = MANAGER_NONE;
	if (holding_is_share(h))
		cpus_alone.cpu_manager_policy = MANAGER_STATIC;
	arena_init_fixed(&g->arena, g->work, ADMIT_ARENA_BYTES);
	resize(g->ledger, &cpus_alone, h, &req, b, &g->arena, &d);
	*why = d;
	if (!d.admit)
		return false;
	struct cpuset pool = ledger_pool_without(g->ledger, &d.cpus);
	if (ledger_set_pool(g->ledger, &pool, NULL))
		return false; /* resize() has asked for more than an empty pool */
	ledger_move(g->ledger, h->request.container_id, &d);
	return true;
}

/* The CPUs that it had and that are no longer to be had, with the reason. */
static void list_lost(const struct engine *g, const struct cpuset *lost, struct text *t)
{
	struct cpuset offline = cpuset_minus(*lost, &g->t->cpus);
	struct cpuset reserved = cpuset_minus(*lost, &offline);
	char list[CPUSET_TEXT_MAX];

	if (!cpuset_empty(&offline))
		text_add(t, "CPUs are offline: %s", cpuset_format(&offline, list, sizeof list));
	if (!cpuset_empty(&reserved))
		text_add(t, "%sCPUs are reserved now: %s", t->len ? "; " : "",
			cpuset_format(&reserved, list, sizeof list));
	if (!t->len)
		text_add(t, "CPUs are offline: all that the shared pool had");
}

/* Say in the entry what became of the CPUs that it had. */
static void explain_relocation(struct engine *g, const struct holding *h, const struct cpuset *lost,
	const struct decision *why)
{
	struct decision d = h->decision;
	struct text t;

	text_init(&t, d.message, sizeof d.message);
	d.lost_cpus = true;
	list_lost(g, lost, &t);
	if (why)
		text_add(&t, "; not replaced: %s", why->message);
	else if (!cpuset_empty(lost))
		text_add(&t, "; replaced");
	else
		decision_begin_anew(&d); /* all is as it was asked for */
	ledger_move(g->ledger, h->request.container_id, &d);
}

/* The CPUs of one entry, which had *before. Whether they have changed. */
static bool mend_cpus(
	struct engine *g, const struct holding *h, const struct decision *before, struct budget *b)
{
	struct cpuset lost = {0};
	struct decision why;
	bool hit = before->exclusive &&
		   (!h->decision.exclusive || !cpuset_equal(&before->cpus, &h->decision.cpus));
	bool lacks = (hit || h->decision.lost_cpus) && holding_lacks_cpus(h);

	struct cpuset there = cpuset_minus(g->t->cpus, &g->s->reserved_cpus);
	if (hit)
		lost = cpuset_minus(before->cpus, &there);
	if (!hit && !lacks)
		return false;
	bool whole = !lacks || make_whole(g, h, b, &why);
	if (hit || whole)
		explain_relocation(g, h, &lost, whole ? NULL : &why);
	return hit || whole;
}

static bool has_other_memory(const struct decision *a, const struct decision *b)
{
	for (unsigned i = 0; i < a->nr_blocks; i++)
		if (a->blocks[i].bytes != b->blocks[i].bytes)
			return true;
	return false;
}

static void note_moved(struct engine *g, int64_t now_ms, const char *cause, const struct holding *h)
{
	struct record r = engine_record_of(g, now_ms, RECORD_GRANT, cause, h->request.container_id);
	const struct decision d = ledger_decision_of(g->ledger, h);

	r.request = &h->request;
	r.decision = &d;
	if (g->hooks.done)
		g->hooks.done(g->hooks.ctx, &r);
}

/* The CPUs that containers of the pod which run beside it have for themselves; of sidecars alone
 * those that run beside an init container. */
static struct cpuset own_beside(const struct engine *g, const struct holding *h)
{
	bool init = h->request.ask.kind == CONTAINER_INIT;
	struct cpuset cpus = {0};

	for (size_t i = 0; i < ledger_count(g->ledger); i++) {
		const struct holding *o = ledger_at(g->ledger, i);
		enum container_kind kind = o->request.ask.kind;
		bool beside = kind == CONTAINER_SIDECAR || (!init && kind != CONTAINER_INIT);

		if (o != h && beside && o->decision.within_pod && o->decision.exclusive &&
			text_equal(o->request.pod.uid, h->request.pod.uid) &&
			request_exclusive_cpus(&o->request))
			cpus = cpuset_or(cpus, &o->decision.cpus);
	}
	return cpus;
}

/* Give the container its part of the pod's present CPUs, around the CPUs that it still has. */
static void share_out_again(
	struct engine *g, const struct holding *h, const struct holding *pod, struct budget *b)
{
	struct decision d = h->decision;
	struct cpuset own = own_beside(g, h), more = {0}, left = {0};
	struct cpus_how how = cpus_how(g->t, &g->s->cpu_options);
	unsigned want = request_exclusive_cpus(&h->request), has;

	if (pod->decision.exclusive)
		left = cpuset_minus(pod->decision.cpus, &own);
	d.cpus = d.exclusive ? cpuset_and(d.cpus, &left) : (struct cpuset){0};
	has = cpuset_count(&d.cpus);
	left = cpuset_minus(left, &d.cpus);
	if (!want)
		more = left;
	else if (has < want &&
		 cpus_take_in_parts(g->t, &left, number_min(want - has, cpuset_count(&left)), &how,
			 b, &more, NULL))
		more = (struct cpuset){0};
	d.cpus = cpuset_or(d.cpus, &more);
	d.exclusive = !cpuset_empty(&d.cpus);
	ledger_move(g->ledger, h->request.container_id, &d);
}

/* What pods have as one has moved: their containers follow, first those with CPUs for themselves.
 */
static void follow_pod(struct engine *g, const struct holding *pod, struct budget *b)
{
	for (int shares = 0; shares <= 1; shares++)
		for (size_t i = 0; i < ledger_count(g->ledger); i++) {
			const struct holding *h = ledger_at(g->ledger, i);

			if (h->decision.within_pod &&
				text_equal(h->request.pod.uid, pod->request.pod.uid) &&
				(request_exclusive_cpus(&h->request) == 0) == shares)
				share_out_again(g, h, pod, b);
		}
}

static bool has_other_cpus(const struct decision *a, const struct decision *b)
{
	return a->exclusive != b->exclusive || (a->exclusive && !cpuset_equal(&a->cpus, &b->cpus));
}

/* The containers of pods that have other CPUs as one now; before: by entry. */
static void follow_pods(struct engine *g, int64_t now_ms, const char *cause,
	const struct decision *before, struct budget *b)
{
	size_t nr = ledger_count(g->ledger);

	for (size_t i = 0; i < nr; i++) {
		const struct holding *h = ledger_at(g->ledger, i);

		if (h->request.ask.whole_pod && has_other_cpus(&before[i], &h->decision))
			follow_pod(g, h, b);
	}
	for (size_t i = 0; i < nr; i++) {
		const struct holding *h = ledger_at(g->ledger, i);
		struct decision d = h->decision;

		if (!d.within_pod || !has_other_cpus(&before[i], &d))
			continue;
		(void)text_copy(d.message, sizeof d.message,
			"the CPUs of its pod have changed: it has its part of them");
		ledger_move(g->ledger, h->request.container_id, &d);
		if (h->state != HOLDING_WAITING)
			engine_must_update(g, h->request.container_id);
		note_moved(g, now_ms, cause, h);
	}
}

/* The containers that run on shares which have other CPUs now. */
static void follow_shares(
	struct engine *g, int64_t now_ms, const char *cause, const struct decision *before)
{
	for (size_t i = 0; i < ledger_count(g->ledger); i++) {
		const struct holding *h = ledger_at(g->ledger, i);
		struct decision d = h->decision;

		if (!d.within_claims)
			continue;
		d.cpus = shares_cpus(g->ledger, h->request.shares);
		d.exclusive = !cpuset_empty(&d.cpus);
		if (!has_other_cpus(&before[i], &d))
			continue;
		(void)text_copy(d.message, sizeof d.message,
			"the CPUs of its claims have changed: it has them");
		ledger_move(g->ledger, h->request.container_id, &d);
		engine_must_update(g, h->request.container_id);
		note_moved(g, now_ms, cause, h);
	}
}

/* Those that run on the reserved CPUs, as far as these are online. */
static void follow_reserved(struct engine *g, const struct cpuset *before)
{
	const struct cpuset now = cpuset_and(g->s->reserved_cpus, &g->t->cpus);

	for (size_t i = 0; !cpuset_equal(before, &now) && i < ledger_count(g->ledger); i++) {
		const struct holding *h = ledger_at(g->ledger, i);

		if (h->request.ask.wishes.cpus == WISH_CPUS_RESERVED && h->state != HOLDING_WAITING)
			engine_must_update(g, h->request.container_id);
	}
}

/* Whether all NUMA nodes have as much memory as before. */
static bool has_same_memory(const struct topo *a, const struct topo *b)
{
	for (unsigned n = 0; n < a->ids.nr; n++)
		for (unsigned k = 0; k < a->nr_kinds; k++)
			if (a->node[n].memory[k] != b->node[n].memory[k])
				return false;
	return true;
}

/* A move goes on where all that it needs is still there, also for the pool, and where the container
 * lacks no CPUs, which may have come; else the container has what it had before, and loses of that
 * what is gone. */
static void leave_move(struct engine *g, int64_t now_ms, const struct topo *t)
{
	const struct moving *m = ledger_view(g->ledger)->moving;
	const struct cpuset there = cpuset_minus(t->cpus, &g->s->reserved_cpus);

	if (!m || (cpuset_within(&m->from.cpus, &there) && cpuset_within(&m->to.cpus, &there) &&
			  cpuset_intersects(&ledger_view(g->ledger)->pool, &t->cpus) &&
			  !m->from.lost_cpus && has_same_memory(g->t, t)))
		return;
	auto_free char *id = xstrdup(m->container_id);
	ledger_end_move(g->ledger, true, now_ms);
	engine_must_update(g, id);
}

/* Entries stay where they are in the ledger's order: only what they hold changes. */
static void adapt(struct engine *g, int64_t now_ms, const char *cause, const struct topo *t)
{
	size_t nr = ledger_count(g->ledger);
	struct budget budget = budget_of(g->s->merge_visit_budget);
	auto_free struct decision *before = xcalloc(nr, sizeof *before);
	const struct cpuset pool = ledger_view(g->ledger)->pool;
	const struct cpuset reserved = cpuset_and(g->s->reserved_cpus, &g->t->cpus);

	leave_move(g, now_ms, t);
	for (size_t i = 0; i < nr; i++)
		before[i] = ledger_at(g->ledger, i)->decision;
	ledger_set_topo(g->ledger, t);
	g->t = t;
	for (size_t i = 0; i < nr; i++) {
		const struct holding *h = ledger_at(g->ledger, i);
		if (!decision_is_booked(&h->decision))
			continue; /* it follows its pod, or its claims */
		struct budget part = budget_share(&budget, (unsigned)nr, (unsigned)i);
		bool moved = mend_cpus(g, h, &before[i], &part);
		bool booked = has_other_memory(&h->decision, &before[i]);

		budget_return(&budget, &part);
		/* the message names what it lacks until it has it */
		if (!moved && booked && !(h->decision.lost_cpus && holding_lacks_cpus(h))) {
			struct decision d = h->decision;

			(void)text_copy(d.message, sizeof d.message,
				"memory of its NUMA nodes has changed: booked is what there is of "
				"it");
			ledger_move(g->ledger, h->request.container_id, &d);
		}
		if (moved && h->state != HOLDING_WAITING)
			engine_must_update(g, h->request.container_id);
		if (moved || booked)
			note_moved(g, now_ms, cause, h);
	}
	follow_pods(g, now_ms, cause, before, &budget);
	follow_shares(g, now_ms, cause, before);
	follow_reserved(g, &reserved);
	engine_update_later(g, &pool);
}

void engine_set_topo(struct engine *g, int64_t now_ms, const struct topo *t)
{
	adapt(g, now_ms, "hotplug", t);
}

bool engine_lacks_cpus(const struct engine *g)
{
	for (size_t i = 0; i < ledger_count(g->ledger); i++) {
		const struct holding *h = ledger_at(g->ledger, i);

		if (h->decision.lost_cpus && holding_lacks_cpus(h))
			return true;
	}
	return false;
}

void engine_take_effect(struct engine *g, int64_t now_ms, const struct topo *t)
{
	adapt(g, now_ms, "restart", t);
}
