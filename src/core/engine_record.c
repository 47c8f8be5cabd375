/* Every change of the ledger goes the same way: a record is made to last, then it is applied;
 * whoever reads the records again arrives at the same ledger. */
#include "engine_state.h"

#include <errno.h>
#include <stdlib.h>

static const char *const op_names[NR_RECORD_OPS] = {
	[RECORD_GRANT] = "grant",
	[RECORD_HOLD] = "hold",
	[RECORD_REFUSE] = "refuse",
	[RECORD_RELEASE] = "release",
	[RECORD_LIVE] = "live",
};

const char *record_op_name(enum record_op op)
{
	return op_names[op];
}

static int apply_grant(struct engine *g, const struct record *r, struct err *e)
{
	ledger_make_way(g->ledger, r->request, r->decision);
	int rc = ledger_set_pool(g->ledger, &r->pool, e);
	if (!rc)
		ledger_commit(g->ledger, r->request, r->decision);
	if (!rc && r->decision->source == SOURCE_ADOPTED) /* it runs: that is how it was found */
		ledger_set_live(g->ledger, r->container_id);
	return rc;
}

static int apply_hold(struct engine *g, const struct record *r, struct err *e)
{
	int rc = ledger_set_pool(g->ledger, &r->pool, e);

	for (size_t i = 0; i < r->nr_parts && !rc; i++) {
		rc = ledger_may_hold(g->ledger, &r->parts[i].request, &r->parts[i].decision, e);
		if (!rc)
			ledger_hold(g->ledger, &r->parts[i].request, &r->parts[i].decision);
	}
	return rc;
}

static int apply_release(struct engine *g, const struct record *r, struct err *e)
{
	(void)ledger_release(g->ledger, r->container_id);
	return ledger_set_pool(g->ledger, &r->pool, e);
}

static int apply_live(struct engine *g, const struct record *r, struct err *e)
{
	(void)e;
	ledger_set_live(g->ledger, r->container_id);
	return 0;
}

static int apply_nothing(struct engine *g, const struct record *r, struct err *e)
{
	(void)g;
	(void)r;
	(void)e;
	return 0;
}

static int (*const apply_op[NR_RECORD_OPS])(
	struct engine *g, const struct record *r, struct err *e) = {
	[RECORD_GRANT] = apply_grant,
	[RECORD_HOLD] = apply_hold,
	[RECORD_REFUSE] = apply_nothing,
	[RECORD_RELEASE] = apply_release,
	[RECORD_LIVE] = apply_live,
};

/* What the record's containers would have for themselves must not be in its pool. */
static int pool_is_apart(const struct record *r, struct err *e)
{
	struct cpuset own = {0};

	if (r->decision && r->decision->admit && r->decision->exclusive)
		own = r->decision->cpus;
	for (size_t i = 0; i < r->nr_parts; i++)
		if (r->parts[i].decision.exclusive)
			own = cpuset_or(own, &r->parts[i].decision.cpus);
	return cpuset_intersects(&r->pool, &own)
		       ? err_set(e, EINVAL, "the shared pool has CPUs that the container holds")
		       : 0;
}

int engine_replay(struct engine *g, const struct record *r, struct err *e)
{
	int rc = pool_is_apart(r, e);

	if (!rc && r->op == RECORD_GRANT)
		rc = ledger_fits(g->ledger, r->request, r->decision, e);
	if (!rc)
		rc = apply_op[r->op](g, r, e);
	if (rc)
		return err_add(e, rc, "record %llu, container %s", (unsigned long long)r->seq,
			r->container_id);
	g->seq = r->seq;
	return 0;
}

int engine_change(struct engine *g, struct record *r, bool must, struct err *e)
{
	r->seq = g->seq + 1;
	int rc = g->hooks.record(g->hooks.ctx, r, e);
	if (!rc)
		g->seq = r->seq;
	if (rc && !must)
		return rc;
	if (apply_op[r->op](g, r, NULL))
		abort(); /* what is recorded was decided from this very ledger */
	if (g->hooks.done)
		g->hooks.done(g->hooks.ctx, r);
	return rc;
}

/* The records of one entry: held with its pod, granted, live, as far as it came. */
static int dump_entry(struct engine *g, const struct holding *h, struct record *r,
	int (*record)(void *ctx, const struct record *r, struct err *e), void *ctx, struct err *e)
{
	const struct record_part part = {holding_request(h), h->decision};
	const struct record ops[] = {
		{.op = RECORD_HOLD, .container_id = h->sandbox_id, .parts = &part, .nr_parts = 1},
		{.op = RECORD_GRANT,
			.container_id = h->container_id,
			.request = &part.request,
			.decision = &part.decision},
		{.op = RECORD_LIVE, .container_id = h->container_id},
	};
	const bool wanted[] = {h->decision.source == SOURCE_HELD, h->state != HOLDING_WAITING,
		h->state == HOLDING_LIVE && h->decision.source != SOURCE_ADOPTED};
	int rc = 0;

	for (size_t i = 0; i < sizeof ops / sizeof *ops && !rc; i++) {
		struct record one = ops[i];

		if (!wanted[i])
			continue;
		one.seq = ++g->seq;
		one.time_ms = r->time_ms;
		one.cause = r->cause;
		one.pool = r->pool;
		rc = record(ctx, &one, e);
	}
	return rc;
}

int engine_dump(struct engine *g, int64_t now_ms,
	int (*record)(void *ctx, const struct record *r, struct err *e), void *ctx, struct err *e)
{
	struct record common = {
		.time_ms = now_ms, .cause = "snapshot", .pool = *ledger_pool(g->ledger)};
	int rc = 0;

	for (size_t i = 0; i < ledger_count(g->ledger) && !rc; i++)
		rc = dump_entry(g, ledger_at(g->ledger, i), &common, record, ctx, e);
	return rc;
}
