/* Events in, decisions out. Every change of the ledger goes the same way: a record is made to
 * last, then it is applied; whoever reads the records again arrives at the same ledger. */
#include <numafit/engine.h>

#include <numafit/admit.h>
#include <numafit/text.h>

#include <errno.h>
#include <string.h>

struct engine {
	const struct topo *t;
	const struct settings *s;
	struct engine_hooks hooks;
	struct ledger *ledger;
	uint64_t seq;
	void *work; /* ADMIT_ARENA_BYTES for one decision */
};

static const char *const op_names[NR_RECORD_OPS] = {
	[RECORD_GRANT] = "grant",
	[RECORD_REFUSE] = "refuse",
	[RECORD_RELEASE] = "release",
	[RECORD_LIVE] = "live",
};

const char *record_op_name(enum record_op op)
{
	return op_names[op];
}

struct engine *engine_new(
	const struct topo *t, const struct settings *s, const struct engine_hooks *hooks)
{
	struct engine *g = xcalloc(1, sizeof *g);

	g->t = t;
	g->s = s;
	g->hooks = *hooks;
	g->ledger = ledger_new(t, s);
	g->work = xcalloc(1, ADMIT_ARENA_BYTES);
	return g;
}

void engine_free(struct engine *g)
{
	if (!g)
		return;
	ledger_free(g->ledger);
	free(g->work);
	free(g);
}

const struct ledger *engine_ledger(const struct engine *g)
{
	return g->ledger;
}

/* What a container is to have now: its own CPUs or the shared pool. */
static struct update placement_of(const struct holding *h)
{
	return (struct update){.container_id = h->container_id,
		.cpus = h->decision.cpus,
		.mems = h->decision.mems};
}

static int apply_grant(struct engine *g, const struct record *r, struct err *e)
{
	(void)ledger_release(g->ledger, r->container_id);
	int rc = ledger_set_pool(g->ledger, &r->pool, e);
	if (!rc)
		ledger_commit(g->ledger, r->request, r->decision);
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
	ledger_set_state(g->ledger, r->container_id, HOLDING_LIVE);
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
	[RECORD_REFUSE] = apply_nothing,
	[RECORD_RELEASE] = apply_release,
	[RECORD_LIVE] = apply_live,
};

int engine_replay(struct engine *g, const struct record *r, struct err *e)
{
	int rc = 0;

	if (r->op == RECORD_GRANT)
		rc = ledger_fits(g->ledger, r->container_id, r->decision, e);
	if (!rc && r->decision && r->decision->exclusive &&
		cpuset_intersects(&r->pool, &r->decision->cpus))
		rc = err_set(e, EINVAL, "the shared pool has CPUs that the container holds");
	if (!rc)
		rc = apply_op[r->op](g, r, e);
	if (rc)
		return err_add(e, rc, "record %llu, container %s", (unsigned long long)r->seq,
			r->container_id);
	g->seq = r->seq;
	return 0;
}

/* Record, then apply. A record that cannot be kept changes nothing, except that a container that
 * is gone is gone: `must` is for those. */
static int change(struct engine *g, struct record *r, bool must, struct err *e)
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

int engine_dump(struct engine *g, int64_t now_ms,
	int (*record)(void *ctx, const struct record *r, struct err *e), void *ctx, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < ledger_count(g->ledger) && !rc; i++) {
		const struct holding *h = ledger_at(g->ledger, i);
		struct request req = holding_request(h);
		struct record r = {
			.seq = ++g->seq,
			.time_ms = now_ms,
			.op = RECORD_GRANT,
			.cause = "snapshot",
			.container_id = h->container_id,
			.request = &req,
			.decision = &h->decision,
			.pool = *ledger_pool(g->ledger),
		};

		rc = record(ctx, &r, e);
		if (rc || h->state != HOLDING_LIVE)
			continue;
		r.seq = ++g->seq;
		r.op = RECORD_LIVE;
		r.request = NULL;
		r.decision = NULL;
		rc = record(ctx, &r, e);
	}
	return rc;
}

/* Every running container but one that must be told its cpuset: those of the shared pool when it
 * has moved, and those that could not be told before. */
static void collect_updates(struct engine *g, const struct cpuset *pool_before,
	const char *not_container_id, struct update_list *ups)
{
	bool moved = !cpuset_equal(pool_before, ledger_pool(g->ledger));

	if (!moved && !ledger_nr_misplaced(g->ledger))
		return;
	for (size_t i = 0; i < ledger_count(g->ledger); i++) {
		const struct holding *h = ledger_at(g->ledger, i);

		if (text_equal(h->container_id, not_container_id) ||
			!(h->misplaced || (moved && !h->decision.exclusive)))
			continue;
		*vec_push(ups) = placement_of(h);
		ledger_set_misplaced(g->ledger, h->container_id, false);
	}
}

static void release(
	struct engine *g, int64_t now_ms, const char *cause, const char *container_id, bool grow)
{
	struct err e;
	const struct holding *h = ledger_find(g->ledger, container_id);

	if (!h)
		return;
	/* the id outlives the entry, whoever passed it */
	auto_free char *id = xstrdup(container_id);
	struct record r = {
		.time_ms = now_ms,
		.op = RECORD_RELEASE,
		.cause = cause,
		.container_id = id,
		.pool = *ledger_pool(g->ledger),
	};
	if (grow && h->decision.exclusive)
		r.pool = ledger_pool_grown(g->ledger, &h->decision.cpus);
	(void)change(g, &r, true, &e);
}

void engine_release(struct engine *g, int64_t now_ms, const char *cause, const char *container_id,
	struct update_list *ups)
{
	struct cpuset before = *ledger_pool(g->ledger);

	release(g, now_ms, cause, container_id, true);
	collect_updates(g, &before, NULL, ups);
}

void engine_forget(struct engine *g, int64_t now_ms, const char *cause, const char *container_id)
{
	release(g, now_ms, cause, container_id, false);
}

void engine_release_pod(struct engine *g, int64_t now_ms, const char *cause, const char *sandbox_id)
{
	for (size_t i = ledger_count(g->ledger); i-- > 0;) {
		const struct holding *h = ledger_at(g->ledger, i);

		if (text_equal(h->sandbox_id, sandbox_id))
			release(g, now_ms, cause, h->container_id, false);
	}
}

static bool asks_the_same(const struct holding *h, const struct request *req)
{
	return h->qos == req->pod.qos && h->cpu_milli == req->cpu_milli &&
	       h->nr_memory == req->nr_memory &&
	       memcmp(h->memory, req->memory, req->nr_memory * sizeof *req->memory) == 0;
}

/* What a dead predecessor leaves to the container that takes its place. Who has no name has none:
 * two nameless containers may well run at once. */
static bool inherit(struct engine *g, int64_t now_ms, const struct request *req, struct decision *d)
{
	bool named = *req->pod.uid && *req->container_name;
	const struct holding *h = named ? ledger_find_named(g->ledger, req->pod.uid,
						  req->container_name, req->container_id)
					: NULL;
	bool same = h && asks_the_same(h, req);

	if (!h)
		return false;
	*d = h->decision;
	d->source = SOURCE_INHERITED;
	release(g, now_ms, "replaced", h->container_id, false);
	return same;
}

static void decide(struct engine *g, const struct request *req, struct decision *d)
{
	struct arena a;

	arena_init_fixed(&a, g->work, ADMIT_ARENA_BYTES);
	admit(g->ledger, g->s, req, &a, d);
}

/* Record the decision and enter it, the pool moved out of its way. */
static void settle(struct engine *g, int64_t now_ms, const char *cause, const struct request *req,
	struct decision *d)
{
	struct record r = {
		.time_ms = now_ms,
		.op = d->admit ? RECORD_GRANT : RECORD_REFUSE,
		.cause = cause,
		.container_id = req->container_id,
		.request = req,
		.decision = d,
		.pool = *ledger_pool(g->ledger),
	};
	struct err e;

	if (d->admit && d->exclusive)
		r.pool = ledger_pool_without(g->ledger, &d->cpus);
	if (d->admit && !d->exclusive)
		d->cpus = r.pool;
	if (change(g, &r, false, &e) < 0 && d->admit) {
		d->admit = false;
		d->reason = decision_reason("UnexpectedAdmissionError");
		(void)text_copy(d->message, sizeof d->message, e.text);
	}
}

void engine_create(struct engine *g, int64_t now_ms, const struct request *req, struct decision *d,
	struct update_list *ups)
{
	struct cpuset before = *ledger_pool(g->ledger);

	release(g, now_ms, "replaced", req->container_id, false);
	if (!inherit(g, now_ms, req, d))
		decide(g, req, d);
	settle(g, now_ms, "create", req, d);
	if (d->admit) /* a refusal is an error to the runtime, and carries no updates */
		collect_updates(g, &before, req->container_id, ups);
}

bool engine_update(struct engine *g, const char *container_id, struct update *keep)
{
	const struct holding *h = ledger_find(g->ledger, container_id);

	if (h)
		*keep = placement_of(h);
	return h;
}

static void mark_live(struct engine *g, int64_t now_ms, const struct holding *h)
{
	struct record r = {
		.time_ms = now_ms,
		.op = RECORD_LIVE,
		.cause = "live",
		.container_id = h->container_id,
		.pool = *ledger_pool(g->ledger),
	};

	if (h->state != HOLDING_LIVE)
		(void)change(g, &r, true, NULL);
}

/* The memory that an adopted container has where it runs, as far as it can be booked there. */
static void adopt_memory(
	const struct engine *g, const struct request *req, struct nodeset mems, struct decision *d)
{
	struct memory_demand demand;

	if (!request_pins_memory(req) ||
		memory_demand(g->t, req->memory, req->nr_memory, &demand, NULL) < 0)
		return;
	for (unsigned k = 0; k < g->t->nr_kinds; k++)
		if (demand.kinds >> k & 1)
			d->blocks[d->nr_blocks++] = (struct memory_block){
				.kind = k, .nodes = mems, .bytes = demand.bytes[k]};
	if (ledger_fits(g->ledger, req->container_id, d, NULL) < 0)
		d->nr_blocks = 0;
}

/* Take over what the container runs with: what is in force counts, its annotation only says what
 * it means. False when that cannot be: another one holds it, or it is not there any more. */
static bool take_over(const struct engine *g, const struct request *req,
	const struct placement *placed, struct decision *d)
{
	struct nodeset mems;
	struct cpuset cpus;

	*d = (struct decision){
		.admit = true,
		.source = SOURCE_ADOPTED,
		.policy = placed->policy,
		.exclusive = placed->exclusive,
		.preferred = placed->preferred,
		.has_affinity = placed->has_nodes,
		.nodes = placed->nodes,
	};
	/* a container author can write annotations, too: none gives more CPUs than were asked for
	 */
	if (cpuset_parse(&cpus, req->cpus, strlen(req->cpus), NULL) < 0 ||
		nodeset_parse(&mems, &g->t->ids, req->mems, strlen(req->mems), NULL) < 0 ||
		(placed->exclusive && cpuset_count(&cpus) > request_exclusive_cpus(req)))
		return false;
	d->cpus = placed->exclusive ? cpus : *ledger_pool(g->ledger);
	d->mems = nodeset_empty(mems) ? g->t->nodes_with_memory : mems;
	if (ledger_fits(g->ledger, req->container_id, d, NULL) < 0)
		return false;
	adopt_memory(g, req, d->mems, d);
	return true;
}

/* A container that runs is never stopped: one that cannot be placed runs in the shared pool. */
static void leave_in_pool(const struct engine *g, struct decision *d)
{
	d->admit = true;
	d->reason = NULL;
	d->preferred = false;
	d->cpus = *ledger_pool(g->ledger);
	d->mems = g->t->nodes_with_memory;
}

static void adopt(
	struct engine *g, int64_t now_ms, const struct request *req, const struct placement *placed)
{
	struct decision d;

	if (!placed || !take_over(g, req, placed, &d)) {
		decide(g, req, &d);
		if (!d.admit)
			leave_in_pool(g, &d);
		d.source = SOURCE_ADOPTED;
	}
	settle(g, now_ms, "adopt", req, &d);
	const struct holding *h = ledger_find(g->ledger, req->container_id);
	if (h)
		mark_live(g, now_ms, h);
}

/* The pool moved during an event whose reply carries no updates. */
static void misplace_shared(struct engine *g)
{
	for (size_t i = 0; i < ledger_count(g->ledger); i++)
		if (!ledger_at(g->ledger, i)->decision.exclusive)
			ledger_set_misplaced(
				g->ledger, ledger_at(g->ledger, i)->container_id, true);
}

void engine_live(struct engine *g, int64_t now_ms, const struct request *req)
{
	struct cpuset before = *ledger_pool(g->ledger);
	const struct holding *h = ledger_find(g->ledger, req->container_id);

	if (h) {
		mark_live(g, now_ms, h);
		return;
	}
	adopt(g, now_ms, req, NULL);
	if (!cpuset_equal(&before, ledger_pool(g->ledger)))
		misplace_shared(g);
	ledger_set_misplaced(g->ledger, req->container_id, true);
}

/* Oldest first, so that of two that claim one CPU the one that had it first keeps it. */
static int by_age(const void *a, const void *b)
{
	const struct request *x = *(const struct request *const *)a,
			     *y = *(const struct request *const *)b;

	if (x->created_at_ns != y->created_at_ns)
		return x->created_at_ns < y->created_at_ns ? -1 : 1;
	return strcmp(x->container_id, y->container_id);
}

static int by_id(const void *a, const void *b)
{
	return strcmp((*(const struct request *const *)a)->container_id,
		(*(const struct request *const *)b)->container_id);
}

static const struct request **pointers_to(
	const struct request *requests, size_t nr, int (*order)(const void *, const void *))
{
	const struct request **list = xcalloc(nr, sizeof *list);

	for (size_t i = 0; i < nr; i++)
		list[i] = &requests[i];
	qsort(list, nr, sizeof *list, order);
	return list;
}

static void release_gone(
	struct engine *g, int64_t now_ms, const struct request *requests, size_t nr)
{
	const struct request **known = pointers_to(requests, nr, by_id);

	for (size_t i = ledger_count(g->ledger); i-- > 0;) {
		struct request key = {.container_id = ledger_at(g->ledger, i)->container_id};
		const struct request *want = &key;

		if (!bsearch(&want, known, nr, sizeof *known, by_id))
			release(g, now_ms, "synchronize", key.container_id, false);
	}
	free(known);
}

static bool runs_as_placed(
	const struct engine *g, const struct request *req, const struct update *want)
{
	struct cpuset cpus;
	struct nodeset mems;

	return !cpuset_parse(&cpus, req->cpus, strlen(req->cpus), NULL) &&
	       !nodeset_parse(&mems, &g->t->ids, req->mems, strlen(req->mems), NULL) &&
	       cpuset_equal(&cpus, &want->cpus) && nodeset_equal(mems, want->mems);
}

void engine_synchronize(struct engine *g, int64_t now_ms, const struct request *requests,
	const struct placement *const *placed, size_t nr, struct update_list *ups)
{
	const struct request **oldest_first = pointers_to(requests, nr, by_age);

	release_gone(g, now_ms, requests, nr);
	for (size_t i = 0; i < nr; i++) {
		const struct request *req = oldest_first[i];
		const struct holding *h = ledger_find(g->ledger, req->container_id);

		if (h)
			mark_live(g, now_ms, h);
		else
			adopt(g, now_ms, req, placed[req - requests]);
	}
	for (size_t i = 0; i < nr; i++) {
		struct update want;

		if (engine_update(g, oldest_first[i]->container_id, &want) &&
			!runs_as_placed(g, oldest_first[i], &want))
			*vec_push(ups) = want;
		ledger_set_misplaced(g->ledger, oldest_first[i]->container_id, false);
	}
	free(oldest_first);
}
