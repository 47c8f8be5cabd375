/* Every change of the ledger goes the same way: a record is made to last, then it is applied;
 * whoever reads the records again arrives at the same ledger. */
#include "engine_state.h"

#include <errno.h>
#include <stdlib.h>

const char *const record_op_words[NR_RECORD_OPS] = {
	[RECORD_GRANT] = "grant",
	[RECORD_HOLD] = "hold",
	[RECORD_REFUSE] = "refuse",
	[RECORD_RELEASE] = "release",
	[RECORD_LIVE] = "live",
	[RECORD_ALLOCATE] = "allocate",
	[RECORD_SHOWN] = "shown",
	[RECORD_GIVE_UP] = "give-up",
	[RECORD_LEASE] = "lease",
	[RECORD_POD_GONE] = "pod-gone",
	[RECORD_QUOTA] = "quota",
	[RECORD_MOVE] = "move",
	[RECORD_MOVED] = "moved",
	[RECORD_MOVE_BACK] = "move-back",
	[RECORD_QUIET] = "quiet",
};

void record_parts(const struct pod *pod, const struct decision *decisions, size_t nr,
	struct record_part *parts)
{
	bool shares_out = nr > pod->nr;

	if (shares_out)
		parts[0] = (struct record_part){request_of_part(pod, pod->nr), decisions[pod->nr]};
	for (size_t i = 0; i < pod->nr; i++)
		parts[i + shares_out] = (struct record_part){request_of_part(pod, i), decisions[i]};
}

/* The container has the tokens that its decision names, or none. */
static int apply_claim(struct engine *g, const struct record *r, struct err *e)
{
	struct leases *leases = ledger_view(g->ledger)->leases;
	struct lease_claim c;
	struct lease_user user;

	if (!r->decision->lease) {
		(void)leases_release(leases, r->time_ms, r->container_id);
		return 0;
	}
	if (!r->request->allocated)
		return err_set(e, EINVAL, "it has a lease and no annotation");
	int rc = lease_user_of(r->request, &user, e);
	if (!rc) /* it may have fewer CPUs than tokens: some are offline */
		rc = leases_examine(leases, r->request->allocated, &user, LEASE_ANY_NUMBER, &c, e);
	if (!rc)
		leases_claim(leases, &user, &c);
	return rc;
}

static int apply_grant(struct engine *g, const struct record *r, struct err *e)
{
	const struct holding *before = ledger_find(g->ledger, r->container_id);
	bool runs = before && !before->starting;

	ledger_make_way(g->ledger, r->request, r->decision);
	int rc = ledger_set_pool(g->ledger, &r->pool, e);
	if (!rc)
		rc = apply_claim(g, r, e);
	if (!rc)
		ledger_commit(g->ledger, r->request, r->decision);
	if (!rc && runs)
		ledger_set_starting(g->ledger, r->container_id, false);
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
	(void)leases_release(ledger_view(g->ledger)->leases, r->time_ms, r->container_id);
	(void)ledger_release(g->ledger, r->container_id);
	return ledger_set_pool(g->ledger, &r->pool, e);
}

static int apply_live(struct engine *g, const struct record *r, struct err *e)
{
	(void)e;
	ledger_set_live(g->ledger, r->container_id);
	return 0;
}

static int apply_allocate(struct engine *g, const struct record *r, struct err *e)
{
	struct leases *leases = ledger_view(g->ledger)->leases;
	/* whether a node has as many was looked at before, and its settings may have changed */
	int rc = leases_may_adopt(leases, &r->lease->tokens, e);

	if (!rc)
		(void)leases_allocate(leases, r->time_ms, &r->lease->tokens, r->lease->name);
	return rc;
}

static int apply_shown(struct engine *g, const struct record *r, struct err *e)
{
	return leases_adopt(ledger_view(g->ledger)->leases, r->time_ms, &r->lease->tokens, e);
}

static int apply_give_up(struct engine *g, const struct record *r, struct err *e)
{
	(void)e;
	leases_give_up(ledger_view(g->ledger)->leases, &r->lease->tokens);
	return 0;
}

static int apply_lease(struct engine *g, const struct record *r, struct err *e)
{
	return leases_enter(ledger_view(g->ledger)->leases, r->lease, e);
}

static int apply_pod_gone(struct engine *g, const struct record *r, struct err *e)
{
	(void)e;
	leases_pod_gone(ledger_view(g->ledger)->leases, r->time_ms, r->container_id);
	return 0;
}

static int apply_quota(struct engine *g, const struct record *r, struct err *e)
{
	(void)e;
	ledger_note_kept(g->ledger, KEPT_QUOTAS, r->container_id, r->quota);
	return 0;
}

static int apply_quiet(struct engine *g, const struct record *r, struct err *e)
{
	(void)e;
	ledger_note_kept(g->ledger, KEPT_QUIET, r->container_id, r->quiet);
	return 0;
}

static int apply_move(struct engine *g, const struct record *r, struct err *e)
{
	int rc = ledger_set_pool(g->ledger, &r->pool, e);

	if (!rc)
		ledger_begin_move(g->ledger, r->container_id, r->decision);
	return rc;
}

static int end_move(struct engine *g, const struct record *r, bool back, struct err *e)
{
	ledger_end_move(g->ledger, back, r->time_ms);
	return ledger_set_pool(g->ledger, &r->pool, e);
}

static int apply_moved(struct engine *g, const struct record *r, struct err *e)
{
	return end_move(g, r, false, e);
}

static int apply_move_back(struct engine *g, const struct record *r, struct err *e)
{
	return end_move(g, r, true, e);
}

static int (*const apply_op[NR_RECORD_OPS])(
	struct engine *g, const struct record *r, struct err *e) = {
	[RECORD_GRANT] = apply_grant,
	[RECORD_HOLD] = apply_hold,
	[RECORD_REFUSE] = NULL, /* it is kept for explain */
	[RECORD_RELEASE] = apply_release,
	[RECORD_LIVE] = apply_live,
	[RECORD_ALLOCATE] = apply_allocate,
	[RECORD_SHOWN] = apply_shown,
	[RECORD_GIVE_UP] = apply_give_up,
	[RECORD_LEASE] = apply_lease,
	[RECORD_POD_GONE] = apply_pod_gone,
	[RECORD_QUOTA] = apply_quota,
	[RECORD_MOVE] = apply_move,
	[RECORD_MOVED] = apply_moved,
	[RECORD_MOVE_BACK] = apply_move_back,
	[RECORD_QUIET] = apply_quiet,
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

/* Whether a record from elsewhere can be applied. */
static int record_fits(const struct engine *g, const struct record *r, struct err *e)
{
	if (r->op == RECORD_GRANT)
		return ledger_fits(g->ledger, r->request, r->decision, e);
	if (r->op == RECORD_MOVE)
		return ledger_may_move(g->ledger, r->container_id, r->decision, e);
	if ((r->op == RECORD_MOVED || r->op == RECORD_MOVE_BACK) &&
		!ledger_is_moving(g->ledger, r->container_id))
		return err_set(e, EINVAL, "it is not being moved");
	return 0;
}

int engine_replay(struct engine *g, const struct record *r, struct err *e)
{
	int rc = pool_is_apart(r, e);

	if (!rc)
		rc = record_fits(g, r, e);
	if (!rc && apply_op[r->op])
		rc = apply_op[r->op](g, r, e);
	if (rc)
		return err_add(e, rc, "record %llu, container %s", (unsigned long long)r->seq,
			r->container_id);
	g->seq = r->seq;
	return 0;
}

struct record engine_record_of(const struct engine *g, int64_t now_ms, enum record_op op,
	const char *cause, const char *container_id)
{
	return (struct record){
		.time_ms = now_ms,
		.op = op,
		.cause = cause,
		.container_id = container_id,
		.pool = ledger_view(g->ledger)->pool,
	};
}

int engine_change(struct engine *g, struct record *r, bool must, struct err *e)
{
	r->seq = g->seq + 1;
	int rc = g->hooks.record(g->hooks.ctx, r, e);
	if (!rc)
		g->seq = r->seq;
	if (rc && !must)
		return rc;
	if (apply_op[r->op] && apply_op[r->op](g, r, NULL))
		abort(); /* what is recorded was decided from this very ledger */
	if (g->hooks.done)
		g->hooks.done(g->hooks.ctx, r);
	return rc;
}

void engine_record_kept(
	struct record *r, enum kept_kind kind, const char *key, const struct kept_note *n)
{
	r->op = kind == KEPT_QUOTAS ? RECORD_QUOTA : RECORD_QUIET;
	r->container_id = key;
	r->quota = kind == KEPT_QUOTAS ? n : NULL;
	r->quiet = kind == KEPT_QUIET ? n : NULL;
}

/* The records of one entry: held with its pod, granted, live, as far as it came. */
static int dump_entry(struct engine *g, const struct holding *h, struct record *r,
	int (*record)(void *ctx, const struct record *r, struct err *e), void *ctx, struct err *e)
{
	const bool moves = ledger_is_moving(g->ledger, h->request.container_id);
	const struct record_part part = {h->request,
		moves ? ledger_view(g->ledger)->moving->from : ledger_decision_of(g->ledger, h)};
	const struct record ops[] = {
		{.op = RECORD_HOLD,
			.container_id = h->request.pod.sandbox_id,
			.parts = &part,
			.nr_parts = 1},
		{.op = RECORD_GRANT,
			.container_id = h->request.container_id,
			.request = &part.request,
			.decision = &part.decision},
		{.op = RECORD_LIVE, .container_id = h->request.container_id},
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

static int dump_moving(struct engine *g, const struct record *common,
	int (*record)(void *ctx, const struct record *r, struct err *e), void *ctx, struct err *e)
{
	const struct moving *m = ledger_view(g->ledger)->moving;
	struct record r = *common;

	if (!m)
		return 0;
	r.seq = ++g->seq;
	r.op = RECORD_MOVE;
	r.container_id = m->container_id;
	r.decision = &m->to;
	return record(ctx, &r, e);
}

/* Those that run on them claim theirs once more with their grants. */
static int dump_leases(struct engine *g, const struct record *common,
	int (*record)(void *ctx, const struct record *r, struct err *e), void *ctx, struct err *e)
{
	struct lease part;
	int rc = 0;

	for (size_t at = 0; !rc && leases_next(ledger_view(g->ledger)->leases, &at, &part);) {
		struct record r = *common;

		r.seq = ++g->seq;
		r.op = RECORD_LEASE;
		r.container_id = "";
		r.lease = &part;
		rc = record(ctx, &r, e);
	}
	return rc;
}

static int dump_kept(struct engine *g, enum kept_kind kind, const struct record *common,
	int (*record)(void *ctx, const struct record *r, struct err *e), void *ctx, struct err *e)
{
	const struct kept_list *all = &ledger_view(g->ledger)->kept[kind];
	int rc = 0;

	for (size_t i = 0; i < all->nr && !rc; i++) {
		const struct kept_note note = {all->at[i].place, all->at[i].was};
		struct record r = *common;

		r.seq = ++g->seq;
		engine_record_kept(&r, kind, all->at[i].key, &note);
		rc = record(ctx, &r, e);
	}
	return rc;
}

int engine_dump(struct engine *g, int64_t now_ms,
	int (*record)(void *ctx, const struct record *r, struct err *e), void *ctx, struct err *e)
{
	struct record common = {
		.time_ms = now_ms, .cause = "snapshot", .pool = ledger_view(g->ledger)->pool};
	int rc = dump_leases(g, &common, record, ctx, e);

	for (enum kept_kind kind = 0; kind < NR_KEPT && !rc; kind++)
		rc = dump_kept(g, kind, &common, record, ctx, e);
	for (int parts = 0; parts <= 1; parts++) /* after what they are parts of */
		for (size_t i = 0; i < ledger_count(g->ledger) && !rc; i++)
			if (decision_is_booked(&ledger_at(g->ledger, i)->decision) == !parts)
				rc = dump_entry(
					g, ledger_at(g->ledger, i), &common, record, ctx, e);
	return rc ? rc : dump_moving(g, &common, record, ctx, e);
}

void engine_nothing_was_in_force(struct engine *g)
{
	for (size_t i = 0; i < ledger_count(g->ledger); i++) {
		const struct holding *h = ledger_at(g->ledger, i);
		struct decision d = h->decision;

		if (holding_is_share(h) || decision_is_left(&d))
			continue;
		d.placed_by = PLACED_IN_SHADOW;
		ledger_move(g->ledger, h->request.container_id, &d);
	}
}

static int replay_into(void *ctx, const struct record *r, struct err *e)
{
	return engine_replay(ctx, r, e);
}

struct engine *engine_copy(
	struct engine *g, const struct topo *t, const struct settings *s, struct err *e)
{
	const struct engine_hooks none = {0}; /* what is only entered needs no hook */
	const uint64_t seq = g->seq;
	struct engine *copy = engine_new(t, s, &none);
	/* without entries no record has the pool: one that releases nobody does */
	const struct record pool = {.op = RECORD_RELEASE,
		.cause = "snapshot",
		.container_id = "",
		.pool = ledger_view(g->ledger)->pool};
	int rc = engine_dump(g, 0, replay_into, copy, e);

	if (!rc)
		rc = engine_replay(copy, &pool, e);
	g->seq = seq; /* nothing was recorded */
	if (!rc)
		return copy;
	engine_free(copy);
	return NULL;
}
