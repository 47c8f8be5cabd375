/* Resources that change while the container runs, and containers that never came. */
#include "engine_state.h"

#include <numafit/mem.h>
#include <numafit/resize.h>
#include <numafit/text.h>

static void record_resize(
	struct engine *g, int64_t now_ms, const struct request *req, struct decision *d)
{
	const struct holding *h = ledger_find(g->ledger, req->container_id);
	struct cpuset released = ledger_held_alone_by(g->ledger, h);
	struct record r = {
		.time_ms = now_ms,
		.op = RECORD_GRANT,
		.cause = "resize",
		.container_id = req->container_id,
		.request = req,
		.decision = d,
		.pool = *ledger_pool(g->ledger),
	};
	bool live = h->state == HOLDING_LIVE;
	struct err e;

	if (d->exclusive)
		released = cpuset_minus(released, &d->cpus);
	r.pool = cpuset_empty(&released) ? r.pool : ledger_pool_grown(g->ledger, &released);
	if (d->exclusive)
		r.pool =
			cpuset_empty(&released) ? ledger_pool_without(g->ledger, &d->cpus) : r.pool;
	else
		d->cpus = r.pool;
	if (engine_change(g, &r, false, &e) < 0)
		decision_refuse_unrecorded(d, &e);
	else if (live)
		engine_mark_live(g, now_ms, req->container_id);
}

static void record_refusal(
	struct engine *g, int64_t now_ms, const struct request *req, const struct decision *d)
{
	struct record r = {
		.time_ms = now_ms,
		.op = RECORD_REFUSE,
		.cause = "resize",
		.container_id = req->container_id,
		.request = req,
		.decision = d,
		.pool = *ledger_pool(g->ledger),
	};

	(void)engine_change(g, &r, false, NULL); /* kept for explain, if it can be */
}

bool engine_update(struct engine *g, int64_t now_ms, const struct request *req, struct decision *d,
	struct update_list *ups)
{
	const struct holding *h = ledger_find(g->ledger, req->container_id);
	struct cpuset before = *ledger_pool(g->ledger);
	struct request known = *req;

	if (!h)
		return false;
	*d = h->decision;
	known.kind = h->kind;
	known.place = h->place;
	if (!holding_suits(h, req)) {
		arena_init_fixed(&g->arena, g->work, ADMIT_ARENA_BYTES);
		resize(g->ledger, g->s, h, req, &g->arena, d);
		if (d->admit)
			record_resize(g, now_ms, &known, d);
		else
			record_refusal(g, now_ms, &known, d);
	}
	if (d->admit)
		engine_collect_updates(g, &before, req->container_id, ups);
	return true;
}

unsigned engine_expire(struct engine *g, int64_t now_ms)
{
	struct cpuset before = *ledger_pool(g->ledger);
	unsigned nr = 0;

	for (size_t i = ledger_count(g->ledger); i-- > 0;) {
		const struct holding *h = ledger_at(g->ledger, i);

		if (!h || h->state != HOLDING_TENTATIVE || !ledger_age(g->ledger, h->container_id))
			continue;
		engine_drop(g, now_ms, "expired", h->container_id, true);
		nr++;
	}
	engine_tell_later(g, &before);
	return nr;
}
