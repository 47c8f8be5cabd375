/* The steps that events are made of: what is updated, what is dropped, decided, recorded, entered.
 */
#include "engine_state.h"

#include <numafit/bounds.h>
#include <numafit/shares.h>

#include <numafit/text.h>
#include <numafit/number.h>

#include <string.h>

struct placement placement_in_force(
	const struct topo *t, const struct settings *s, const struct request *req)
{
	struct placement p = {.policy = s->topology_policy};
	unsigned own = request_exclusive_cpus(req);

	if (cpuset_parse(&p.cpus, req->cpus, strlen(req->cpus), NULL))
		p.cpus = (struct cpuset){0};
	p.cpus = wishes_held_cpus(&req->ask.wishes, t, &p.cpus, own);
	if (nodeset_parse(&p.mems, &t->ids, req->mems, strlen(req->mems), NULL))
		p.mems = (struct nodeset){0};
	p.exclusive = own && cpuset_count(&p.cpus) == own;
	return p;
}

struct update engine_placement_of(const struct engine *g, const struct holding *h)
{
	struct update u = {.container_id = h->request.container_id,
		.cpus = ledger_cpus_of(g->ledger, h),
		.mems = h->decision.mems,
		.without_quota = g->s->quota_use == QUOTA_LIFT && holding_has_own_cpus(h) &&
				 !shares_are_for_many(g->ledger, h->request.shares)};
	u.moving = ledger_is_moving(g->ledger, h->request.container_id);
	const bool spread = !nodeset_empty(h->decision.spread);
	bool exact;

	u.untouched =
		decision_is_left(&h->decision) && h->request.ask.wishes.cpus == WISH_CPUS_UNBOUNDED;
	if (ledger_is_bounded(g->ledger, h, &exact) && !exact) {
		u.untouched = wishes_untouched(&h->request.ask.wishes);
		u.in_force = u.cpus;
		u.any_wider = !spread;
		u.cpus = spread ? topo_cpus_of(g->t, h->decision.spread) : g->t->cpus;
	}
	return u;
}

struct update engine_give(struct engine *g, const struct holding *h)
{
	const struct ledger_view *now = ledger_view(g->ledger);

	if (now->bounds)
		bounds_give(now->bounds, h->request.container_id, &now->pool);
	return engine_placement_of(g, h);
}

/* A container that has not come yet cannot be updated; one that is left as it runs is not, nor is
 * one that is being moved. */
static bool can_be_updated(const struct engine *g, const struct holding *h)
{
	const bool moves = ledger_is_moving(g->ledger, h->request.container_id);

	return h->state != HOLDING_WAITING && !decision_is_left(&h->decision) && !moves;
}

/* Whether the pool has moved, and there are containers in it that no cgroup bounds. */
static bool pool_moves_containers(const struct engine *g, const struct cpuset *before)
{
	const struct ledger_view *now = ledger_view(g->ledger);

	return now->nr_unbounded && !cpuset_equal(before, &now->pool);
}

static bool moves_with_pool(const struct engine *g, const struct holding *h)
{
	bool exact;

	return holding_is_in_pool(h) && !ledger_is_bounded(g->ledger, h, &exact);
}

void engine_collect_updates(struct engine *g, const struct cpuset *pool_before,
	const char *not_container_id, struct update_list *ups)
{
	bool moved = pool_moves_containers(g, pool_before);

	if (!moved && !ledger_view(g->ledger)->nr_misplaced)
		return;
	for (size_t i = 0; i < ledger_count(g->ledger); i++) {
		const struct holding *h = ledger_at(g->ledger, i);

		bool concerned = h->misplaced || (moved && moves_with_pool(g, h));

		if (!concerned || !can_be_updated(g, h) ||
			text_equal(h->request.container_id, not_container_id))
			continue;
		const struct update want = engine_placement_of(g, h);
		if (!want.untouched)
			*vec_push(ups) = want;
		/* a runtime may pass over one whose process does not run yet: it is updated once
		 * more
		 */
		ledger_set_misplaced(g->ledger, h->request.container_id, h->starting);
	}
}

void engine_update_later(struct engine *g, const struct cpuset *pool_before)
{
	if (!pool_moves_containers(g, pool_before))
		return;
	for (size_t i = 0; i < ledger_count(g->ledger); i++) {
		const struct holding *h = ledger_at(g->ledger, i);

		if (moves_with_pool(g, h) && can_be_updated(g, h))
			ledger_set_misplaced(g->ledger, h->request.container_id, true);
	}
}

void engine_drop(
	struct engine *g, int64_t now_ms, const char *cause, const char *container_id, bool grow)
{
	const struct holding *h = ledger_find(g->ledger, container_id);

	if (!h)
		return;
	/* the id outlives the entry, whoever passed it */
	auto_free char *id = xstrdup(container_id);
	engine_end_move_of(g, now_ms, cause, id);
	struct record r = engine_record_of(g, now_ms, RECORD_RELEASE, cause, id);
	if (grow) {
		struct cpuset released = ledger_released_by(g->ledger, h);

		r.pool = ledger_pool_grown(g->ledger, &released);
	}
	(void)engine_change(g, &r, true, NULL);
}

void engine_drop_for_good(
	struct engine *g, int64_t now_ms, const char *cause, const struct holding *h)
{
	auto_free char *pod_uid = xstrdup(h->request.pod.uid), *name = xstrdup(h->request.ask.name);
	bool comes_again = h->decision.source == SOURCE_HELD && h->state != HOLDING_WAITING;

	engine_drop(g, now_ms, cause, h->request.container_id, true);
	h = comes_again ? ledger_find_waiting(g->ledger, pod_uid, name) : NULL;
	if (h)
		engine_drop(g, now_ms, cause, h->request.container_id, true);
}

void engine_learn(const struct holding *h, struct request *req)
{
	req->ask.kind = h->request.ask.kind;
	req->ask.place = h->request.ask.place;
	req->ask.guaranteed = h->request.ask.guaranteed;
	ask_keep_devices(&req->ask, &h->request.ask);
	req->ask.wishes = h->request.ask.wishes; /* as they were allowed when it came */
	req->ask.wishes_nodes = h->request.ask.wishes_nodes;
	req->pod.pod_level = h->request.pod.pod_level;
	/* What its pod has as one was shared out as the pod started: with other resources by now it
	 * has still that part, for itself or with others. */
	if (h->decision.within_pod &&
		request_exclusive_cpus(req) != request_exclusive_cpus(&h->request)) {
		req->ask.cpu_milli = h->request.ask.cpu_milli;
		req->ask.cpu_limit_milli = h->request.ask.cpu_limit_milli;
	}
}

bool holding_suits(const struct holding *h, const struct request *of_runtime)
{
	const struct request *held = &h->request;
	struct request known = *of_runtime;
	const struct request *req = &known;

	engine_learn(h, &known);
	bool pinned = request_pins_memory(req);
	if (!decision_is_booked(&h->decision)) /* it has its part, whatever it asks for by now */
		return true;
	if (request_exclusive_cpus(held) != request_exclusive_cpus(req) ||
		request_pins_memory(held) != pinned)
		return false;
	return !pinned || ask_same_memory(&held->ask, &req->ask);
}

bool holding_lacks_cpus(const struct holding *h)
{
	const struct request *req = &h->request;
	unsigned own = h->decision.exclusive ? cpuset_count(&h->decision.cpus) : 0;

	return own < request_exclusive_cpus(req);
}

/* Whether it has what it asked for: one that was found running, or lost CPUs, may not. */
static bool has_what_it_asked_for(const struct engine *g, const struct holding *h)
{
	const struct request *req = &h->request;
	unsigned own = g->s->cpu_manager_policy == MANAGER_STATIC ? request_exclusive_cpus(req) : 0;
	bool pinned = g->s->memory_manager_policy == MANAGER_STATIC && request_pins_memory(req);

	return !decision_is_booked(&h->decision) ||
	       (own == (h->decision.exclusive ? cpuset_count(&h->decision.cpus) : 0) &&
		       pinned == (h->decision.nr_blocks > 0));
}

bool engine_inherit(struct engine *g, int64_t now_ms, struct request *req, struct decision *d)
{
	bool named = *req->pod.uid && *req->ask.name;
	const struct holding *h =
		named ? ledger_find_named(g->ledger, req->pod.uid, req->ask.name, req->container_id)
		      : NULL;

	if (h)
		engine_end_move_of(g, now_ms, "replaced", h->request.container_id);
	/* CPUs of what waits may have gone since, and others may be free by now */
	bool same = h && holding_suits(h, req) && !req->shares && !h->request.shares &&
		    text_equal(h->request.allocated, req->allocated) &&
		    (h->state == HOLDING_WAITING ? !(h->decision.lost_cpus && holding_lacks_cpus(h))
						 : has_what_it_asked_for(g, h));

	if (!h)
		return false;
	engine_learn(h, req);
	*d = h->decision;
	/* what begins anew is not left as it was; this one is */
	same = same && (h->state == HOLDING_WAITING || req->ask.wishes.cpus != WISH_CPUS_UNBOUNDED);
	if (!same)
		engine_drop_for_good(g, now_ms, "replaced", h);
	else if (h->state != HOLDING_WAITING)
		engine_drop(g, now_ms, "replaced", h->request.container_id, false);
	if (d->source != SOURCE_HELD) {
		d->source = SOURCE_INHERITED;
		decision_begin_anew(d);
	}
	return same && (engine_claims(g, req, req->owner, d) || !admit_has_tokens(g->s, req));
}

/* CPUs that containers of the pod have for themselves, but for those of that name. */
static unsigned own_cpus_of_others(const struct ledger *l, const struct request *req)
{
	unsigned nr = 0;

	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (h->decision.exclusive && text_equal(h->request.pod.uid, req->pod.uid) &&
			!text_equal(h->request.ask.name, req->ask.name))
			nr += cpuset_count(&h->decision.cpus);
	}
	return nr;
}

void engine_bound_by_pod(const struct engine *g, struct request *req)
{
	const struct pod_totals *totals = &req->pod.totals;
	uint64_t own = request_exclusive_cpus(req);

	/* a spec has what the sandbox only sums up, and is newer: the sandbox may keep the sums of
	 * the pod's creation through a resize in place */
	if (!g->s->gates.pod_level_resource_managers || !totals->known || !own || req->allocated ||
		req->pod.source != POD_FROM_RUNTIME)
		return;
	own += own_cpus_of_others(g->ledger, req);
	if (own * MILLI_PER_CPU < totals->cpu_milli + MILLI_PER_CPU)
		return;
	req->pod.pod_level = true;
	req->ask.guaranteed = false;
}

struct request engine_request_in(struct arena *a, const struct holding *h, const char *container_id)
{
	struct request req = h->request;
	const char **text[HOLDING_STRINGS];

	holding_strings(&req, text);
	for (size_t i = 0; i < HOLDING_STRINGS; i++) {
		const char *copy = *text[i] ? arena_strndup(a, *text[i], strlen(*text[i])) : NULL;

		*text[i] = *text[i] && !copy ? "" : copy;
	}
	req.container_id = container_id;
	return req;
}

struct request engine_request_of(
	struct engine *g, const struct holding *h, const char *container_id)
{
	arena_init_fixed(&g->arena, g->work, ADMIT_ARENA_BYTES);
	return engine_request_in(&g->arena, h, container_id);
}

enum token_owner engine_owner_of_running(const struct engine *g, const struct request *req)
{
	enum token_owner owner = engine_token_owner(g, req);

	return owner == TOKENS_NOT_SHOWN_YET ? TOKENS_NOT_ASKED : owner;
}

enum token_owner engine_token_owner(const struct engine *g, const struct request *req)
{
	return g->hooks.owner && admit_has_tokens(g->s, req) ? g->hooks.owner(g->hooks.ctx, req)
							     : TOKENS_NOT_ASKED;
}

bool engine_claims(const struct engine *g, const struct request *req, enum token_owner owner,
	struct decision *d)
{
	struct request known = *req;
	struct lease_claim c;

	known.owner = owner;
	bool has = admit_has_tokens(g->s, req) && admit_tokens(g->ledger, &known, &c, NULL) == 0;

	d->lease = has && d->exclusive && d->source != SOURCE_HELD ? c.name : 0;
	return has;
}

void engine_decide(
	struct engine *g, const struct request *req, struct budget *b, struct decision *d)
{
	arena_init_fixed(&g->arena, g->work, ADMIT_ARENA_BYTES);
	admit(&(struct admit_question){g->ledger, g->s, .container = req}, b, &g->arena, d, NULL);
}

/* The pool beside what the container gets for itself, with what it gives up for that: it was
 * resized or put elsewhere while nobody listened. The container may run on all that the pool was:
 * where too few CPUs would be left in the pool, all that it gives up goes there. */
static struct cpuset pool_beside(
	const struct engine *g, const struct request *req, const struct cpuset *cpus)
{
	const struct holding *before = ledger_find(g->ledger, req->container_id);
	const struct cpuset pool = ledger_pool_without(g->ledger, cpus);

	if (!before)
		return pool;
	const struct cpuset had = ledger_released_by(g->ledger, before),
			    given_up = cpuset_minus(had, cpus),
			    shareable = ledger_shareable_cpus(g->ledger),
			    grown = ledger_pool_grown(g->ledger, &given_up);
	const bool few = cpuset_count(&pool) < settings_pool_minimum(g->s);
	const struct cpuset more = cpuset_and(given_up, few ? &shareable : &grown);
	return cpuset_or(pool, &more);
}

/* A decision of a mode that places nothing is in force nowhere. A share of a claim is in force as
 * soon as it is held, and a part of a pod as the whole pod is. */
void engine_say_who_placed(const struct engine *g, const struct request *req, struct decision *d)
{
	const bool share = !nodeset_empty(req->ask.share_of);

	if (!d->admit || share || d->source == SOURCE_HELD || decision_is_left(d))
		return;
	if (!engine_places(g))
		d->placed_by = PLACED_IN_SHADOW;
	else if (d->placed_by == PLACED_IN_SHADOW)
		d->placed_by = PLACED_BY_NUMAFIT;
}

void engine_settle(struct engine *g, int64_t now_ms, const char *cause, const struct request *req,
	struct decision *d, bool must)
{
	struct record r = engine_record_of(
		g, now_ms, d->admit ? RECORD_GRANT : RECORD_REFUSE, cause, req->container_id);
	struct err e;

	engine_say_who_placed(g, req, d);
	r.request = req;
	r.decision = d;
	if (d->admit && d->exclusive)
		r.pool = pool_beside(g, req, &d->cpus);
	if (d->admit && !d->exclusive)
		d->cpus = ledger_common_cpus(g->ledger, &req->ask.wishes, &r.pool);
	if (engine_change(g, &r, must, &e) < 0 && d->admit && !must)
		(void)decision_refuse(
			d, REFUSED_BY_DAEMON, "UnexpectedAdmissionError", "%s", e.text);
}

void engine_mark_live(struct engine *g, int64_t now_ms, const char *container_id)
{
	const struct holding *h = ledger_find(g->ledger, container_id);
	struct record r = engine_record_of(g, now_ms, RECORD_LIVE, "live", container_id);

	if (h && h->state != HOLDING_LIVE)
		(void)engine_change(g, &r, true, NULL);
}
