/* Claims: their shares are decided and held as the kubelet prepares them, and given up as it
 * unprepares them. */
#include "engine_state.h"

#include <numafit/shares.h>
#include <numafit/text.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { PLACE_TEXT_MAX = sizeof "31" };

/* Whether what is held is what the request asks for. */
static bool is_same_share(const struct holding *h, const struct request *req)
{
	const struct request *held = &h->request;

	return nodeset_equal(held->ask.share_of, req->ask.share_of) &&
	       held->ask.cpu_milli == req->ask.cpu_milli &&
	       ask_same_memory(&held->ask, &req->ask) &&
	       held->ask.wishes.cores == req->ask.wishes.cores;
}

static bool is_for_the_same(const struct holding *h, const struct request *req)
{
	return text_equal(h->request.for_pods, req->for_pods) &&
	       h->request.for_many == req->for_many && h->request.for_one_pod == req->for_one_pod;
}

static int hold_share(struct engine *g, int64_t now_ms, const struct request *req,
	const struct decision *decision, struct err *e)
{
	const struct record_part part = {*req, *decision};
	struct record r = engine_record_of(g, now_ms, RECORD_HOLD, "prepare", req->container_id);

	r.parts = &part;
	r.nr_parts = 1;
	r.in_one_line = true;
	if (decision->exclusive)
		r.pool = ledger_pool_without(g->ledger, &decision->cpus);
	return engine_change(g, &r, false, e);
}

/* One call, and the texts of the share that it is at. */
struct preparing {
	const struct resource_claim *c;
	const char *for_pods;
	int64_t now_ms;
	char id[SHARE_ID_MAX], name[PLACE_TEXT_MAX];
};

static struct request request_at(const struct engine *g, struct preparing *p, size_t place)
{
	struct text t;

	text_init(&t, p->name, sizeof p->name);
	text_add(&t, "%zu", place);
	return share_request(p->c, place, (unsigned)share_node(g->t, &p->c->share[place]),
		share_id(p->c->uid, place, p->id), p->name, p->for_pods);
}

static int check_devices(const struct engine *g, const struct resource_claim *c, struct err *e)
{
	for (size_t i = 0; i < c->nr; i++)
		if (share_node(g->t, &c->share[i]) < 0)
			return err_set(e, EINVAL, "device %s: this machine has no such NUMA node",
				c->share[i].device);
	return 0;
}

static void drop_shares(struct engine *g, int64_t now_ms, const char *uid, const char *cause)
{
	assert(!shares_user(g->ledger, uid)); /* their containers' entries would go with them */
	for (const struct holding *h; (h = shares_any(g->ledger, uid));)
		engine_drop_for_good(g, now_ms, cause, h);
}

/* What is held is what it was allocated, or nothing. */
static int drop_former(struct engine *g, struct preparing *p, struct err *e)
{
	bool same = true;

	if (!shares_any(g->ledger, p->c->uid))
		return 0;
	for (size_t i = 0; i < CLAIM_SHARES_MAX; i++) {
		const struct holding *h = shares_find(g->ledger, p->c->uid, i);
		struct request req;

		if (!h)
			continue;
		same = same && i < p->c->nr;
		if (!same)
			break;
		req = request_at(g, p, i);
		same = is_same_share(h, &req);
	}
	if (same)
		return 0;
	if (shares_user(g->ledger, p->c->uid))
		return err_set(e, EBUSY,
			"its containers run on what it was allocated before; the kubelet tries again");
	drop_shares(g, p->now_ms, p->c->uid, "replaced");
	return 0;
}

/* Decide one share that is not held, and hold it where that is wanted. -EPERM: *d is refused. */
static int prepare_share(struct engine *g, struct preparing *p, size_t place, bool hold,
	struct decision *d, struct err *e)
{
	const struct request req = request_at(g, p, place);
	const struct holding *h = shares_find(g->ledger, p->c->uid, place);
	struct budget budget =
		budget_all_of(budget_of(g->s->merge_visit_budget).given / p->c->nr + 1);

	if (h) {
		*d = h->decision;
		return !hold || is_for_the_same(h, &req) ? 0 : hold_share(g, p->now_ms, &req, d, e);
	}
	engine_decide(g, &req, &budget, d);
	if (!d->admit)
		return -EPERM;
	d->source = SOURCE_HELD;
	return hold ? hold_share(g, p->now_ms, &req, d, e) : 0;
}

/* All of them, or none that was not held before. Of several each is looked at first, and those of a
 * NUMA node together in numbers: what cannot be had changes nothing, and wakes nobody. */
static int prepare_all(struct engine *g, struct preparing *p, struct decision *d, struct err *e)
{
	bool is_new[CLAIM_SHARES_MAX] = {false};
	int rc = 0;

	for (size_t i = 0; i < p->c->nr && !rc; i++) {
		is_new[i] = !shares_find(g->ledger, p->c->uid, i);
		if (p->c->nr > 1)
			rc = prepare_share(g, p, i, false, d, e);
	}
	if (!rc && p->c->nr > 1 && !shares_fit_now(g->ledger, p->c))
		rc = decision_refuse(d, REFUSED_FOR_CLAIM, "UnexpectedAdmissionError",
			"a NUMA node has not enough for all that the claim is to have of it");
	if (rc)
		return rc;
	for (size_t i = 0; i < p->c->nr && !rc; i++)
		rc = prepare_share(g, p, i, true, d, e);
	for (size_t i = 0; rc && i < p->c->nr; i++) {
		const struct holding *h = is_new[i] ? shares_find(g->ledger, p->c->uid, i) : NULL;

		if (h)
			engine_drop_for_good(g, p->now_ms, "prepare-failed", h);
	}
	return rc;
}

/* A container that runs, came with a share and was not given it: the share was not there then. */
static const struct holding *waiting_user(const struct engine *g)
{
	for (size_t i = 0; ledger_view(g->ledger)->nr_without_shares && i < ledger_count(g->ledger);
		i++) {
		const struct holding *h = ledger_at(g->ledger, i);
		struct decision d = {0};

		if (!holding_lacks_shares(h))
			continue;
		shares_decide(g->ledger, &h->request, &d);
		if (d.admit)
			return h;
	}
	return NULL;
}

static void give_to_users(struct engine *g, int64_t now_ms)
{
	for (const struct holding *h; (h = waiting_user(g));) {
		auto_free char *id = xstrdup(h->request.container_id); /* the entry is replaced */
		const struct request req = engine_request_of(g, h, id);
		bool live = h->state == HOLDING_LIVE;
		struct decision d = {.policy = h->decision.policy};

		shares_decide(g->ledger, &req, &d);
		if (!d.admit) /* there is no memory for its texts */
			return;
		d.source = SOURCE_ADOPTED;
		engine_settle(g, now_ms, "prepare", &req, &d, true);
		if (live)
			engine_mark_live(g, now_ms, req.container_id);
		engine_must_update(g, req.container_id);
	}
}

int engine_prepare(struct engine *g, int64_t now_ms, const struct resource_claim *c,
	struct decision *d, struct err *e)
{
	const struct cpuset before = ledger_view(g->ledger)->pool;
	struct preparing p = {.c = c, .now_ms = now_ms};
	struct arena a;
	int rc;

	*d = (struct decision){.admit = true};
	rc = claim_check_names(c, e);
	if (rc)
		return rc;
	if (c->nr > CLAIM_SHARES_MAX)
		return err_set(e, EINVAL, "no claim has so many devices");
	arena_init(&a, CLAIM_PODS_MAX * CLAIM_UID_MAX);
	p.for_pods = shares_for_pods(c, &a);
	rc = p.for_pods ? check_devices(g, c, e)
			: err_set(e, E2BIG, "it is reserved for more pods than Kubernetes allows");
	if (!rc)
		rc = drop_former(g, &p, e);
	if (!rc)
		rc = prepare_all(g, &p, d, e);
	arena_fini(&a);
	if (!rc)
		give_to_users(g, now_ms);
	engine_update_later(g, &before);
	return rc;
}

static bool would_fit_alone(struct engine *g, const struct resource_claim *c, size_t place)
{
	struct budget budget = budget_of(g->s->merge_visit_budget);
	const int node = share_node(g->t, &c->share[place]);
	char id[SHARE_ID_MAX];
	struct decision d;

	if (node < 0)
		return false;
	const struct request req =
		share_request(c, place, (unsigned)node, share_id(c->uid, place, id), "", "");
	arena_init_fixed(&g->arena, g->work, ADMIT_ARENA_BYTES);
	admit(&(struct admit_question){g->ledger, g->s, .container = &req, .suppose.empty = true},
		&budget, &g->arena, &d, NULL);
	return d.admit;
}

bool engine_could_hold(struct engine *g, const struct resource_claim *c)
{
	for (size_t i = 0; i < c->nr; i++)
		if (!would_fit_alone(g, c, i))
			return false;
	return shares_fit_alone(g->ledger, g->s, c);
}

int engine_may_unprepare(const struct engine *g, const char *claim_uid, struct err *e)
{
	const struct holding *user = shares_user(g->ledger, claim_uid);

	return user ? err_set(e, EBUSY, "container %s of pod %s/%s %s", user->request.ask.name,
			      user->request.pod.ns, user->request.pod.name,
			      user->starting ? "was created on it, and has not ended"
					     : "still runs on it")
		    : 0;
}

int engine_unprepare(struct engine *g, int64_t now_ms, const char *claim_uid, struct err *e)
{
	const struct cpuset before = ledger_view(g->ledger)->pool;
	int rc = engine_may_unprepare(g, claim_uid, e);

	if (rc)
		return rc;
	drop_shares(g, now_ms, claim_uid, "unprepare");
	engine_update_later(g, &before);
	return 0;
}

static const struct holding *unused_share(const struct engine *g)
{
	for (size_t i = 0; ledger_view(g->ledger)->nr_shares && i < ledger_count(g->ledger); i++) {
		const struct holding *h = ledger_at(g->ledger, i);

		if (holding_is_share(h) && !shares_count_users(g->ledger, h->request.container_id))
			return h;
	}
	return NULL;
}

void engine_end_unused_claims(struct engine *g, int64_t now_ms)
{
	const struct cpuset before = ledger_view(g->ledger)->pool;

	for (const struct holding *h; (h = unused_share(g));)
		engine_drop_for_good(g, now_ms, "claims-off", h);
	engine_update_later(g, &before);
}
