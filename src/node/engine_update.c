/* Resources that change while the container runs, and containers that never came. */
#include "engine_state.h"

#include <numafit/resize.h>

#include <string.h>

static void record_resize(
	struct engine *g, int64_t now_ms, const struct request *req, struct decision *d)
{
	const struct holding *h = ledger_find(g->ledger, req->container_id);
	struct cpuset released = ledger_held_alone_by(g->ledger, h);
	struct record r = engine_record_of(g, now_ms, RECORD_GRANT, "resize", req->container_id);
	bool live = h->state == HOLDING_LIVE;
	struct err e;

	if (d->placed_by == PLACED_AS_FOUND)
		d->placed_by = PLACED_BY_NUMAFIT;
	engine_say_who_placed(g, req, d);
	r.request = req;
	r.decision = d;
	if (d->exclusive)
		released = cpuset_minus(released, &d->cpus);
	r.pool = cpuset_empty(&released) ? r.pool : ledger_pool_grown(g->ledger, &released);
	if (d->exclusive)
		r.pool =
			cpuset_empty(&released) ? ledger_pool_without(g->ledger, &d->cpus) : r.pool;
	else
		d->cpus = ledger_common_cpus(g->ledger, &req->ask.wishes, &r.pool);
	if (engine_change(g, &r, false, &e) < 0)
		(void)decision_refuse(
			d, REFUSED_BY_DAEMON, "UnexpectedAdmissionError", "%s", e.text);
	else if (live)
		engine_mark_live(g, now_ms, req->container_id);
}

/* The change as asked for; who the container is, and what it does not name, the ledger knows best.
 */
static struct request with_identity_of(
	struct engine *g, const struct holding *h, const struct request *req)
{
	struct request known = engine_request_of(g, h, req->container_id);

	if (!(req->unnamed & REQUEST_CPU))
		known.ask.cpu_milli = req->ask.cpu_milli;
	if (!(req->unnamed & REQUEST_CPU_LIMIT))
		known.ask.cpu_limit_milli = req->ask.cpu_limit_milli;
	if (req->unnamed & REQUEST_MEMORY)
		return known;
	known.ask.nr_memory = req->ask.nr_memory;
	memcpy(known.ask.memory, req->ask.memory, sizeof known.ask.memory);
	return known;
}

bool engine_update(struct engine *g, int64_t now_ms, const struct request *req, struct decision *d,
	struct update_list *ups)
{
	struct budget budget = budget_of(g->s->merge_visit_budget);

	return engine_update_within(g, now_ms, req, &budget, d, ups);
}

bool engine_update_within(struct engine *g, int64_t now_ms, const struct request *req,
	struct budget *b, struct decision *d, struct update_list *ups)
{
	const struct holding *h = ledger_find(g->ledger, req->container_id);
	struct cpuset before = ledger_view(g->ledger)->pool;
	struct request known;

	if (!h || (decision_is_left(&h->decision) &&
			  h->request.ask.wishes.cpus == WISH_CPUS_UNBOUNDED))
		return false;
	known = with_identity_of(g, h, req);
	*d = ledger_decision_of(g->ledger, h);
	bool changes =
		!holding_suits(h, &known) ||
		(request_pins_memory(&known) && !ask_same_memory(&h->request.ask, &known.ask)) ||
		h->request.ask.cpu_milli != known.ask.cpu_milli ||
		h->request.ask.cpu_limit_milli != known.ask.cpu_limit_milli;
	if (decision_is_left(&h->decision) && !changes && !*req->cpus)
		return false;
	if (changes && ledger_is_moving(g->ledger, req->container_id)) {
		(void)decision_refuse(d, REFUSED_WHILE_MOVED, "UnexpectedAdmissionError",
			"Resize failed as the container is being moved to other NUMA nodes; it can be "
			"tried again in some seconds");
		return true;
	}
	if (changes || decision_is_left(&h->decision)) {
		bool whole = budget_of(g->s->merge_visit_budget).given == b->given;
		uint64_t steps = b->given ? b->given : 1;

		if (!whole && !b->given) /* as it is recorded */
			*b = budget_all_of(steps);
		resize(g->ledger, g->s, h, &known, b, &g->arena, d);
		d->steps = whole ? 0 : steps;
		if (d->admit)
			record_resize(g, now_ms, &known, d);
		else
			engine_settle(g, now_ms, "resize", &known, d, false);
	}
	if (d->admit) {
		h = ledger_find(
			g->ledger, req->container_id); /* another entry, when it was resized */
		ledger_set_misplaced(
			g->ledger, req->container_id, h && h->starting); /* updated now */
		engine_collect_updates(g, &before, req->container_id, ups);
	}
	return true;
}

static const struct holding *first_expired(const struct ledger *l)
{
	for (size_t i = 0; i < ledger_count(l); i++)
		if (ledger_at(l, i)->state == HOLDING_TENTATIVE && ledger_at(l, i)->aged)
			return ledger_at(l, i);
	return NULL;
}

unsigned engine_expire(struct engine *g, int64_t now_ms)
{
	struct cpuset before = ledger_view(g->ledger)->pool;
	unsigned nr = 0;

	for (const struct holding *h; (h = first_expired(g->ledger)); nr++)
		engine_drop(g, now_ms, "expired", h->request.container_id, true);
	for (size_t i = 0; i < ledger_count(g->ledger); i++)
		if (ledger_at(g->ledger, i)->state == HOLDING_TENTATIVE)
			ledger_age(g->ledger, ledger_at(g->ledger, i)->request.container_id);
	engine_update_later(g, &before);
	return nr;
}
