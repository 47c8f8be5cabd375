/* What runs already: taken over as it is, or placed late. */
#include "engine_state.h"

#include <numafit/text.h>
#include <numafit/number.h>

#include <errno.h>
#include <string.h>

/* The memory that an adopted container has where it runs, as far as it can be booked there: that of
 * devices is not in the books where it is excluded. */
static void adopt_memory(
	const struct engine *g, const struct request *req, struct nodeset mems, struct decision *d)
{
	struct nodeset booked = nodeset_and(mems, ledger_view(g->ledger)->memory.usable);
	struct memory_demand demand;

	if (nodeset_empty(booked) || !request_pins_memory(req) ||
		memory_demand(g->t, req->ask.memory, req->ask.nr_memory, &demand, NULL) < 0)
		return;
	for (unsigned k = 0; k < g->t->nr_kinds; k++)
		if (demand.kinds >> k & 1)
			d->blocks[d->nr_blocks++] = (struct memory_block){
				.kind = k, .nodes = booked, .bytes = demand.bytes[k]};
	if (ledger_fits(g->ledger, req, d, NULL) < 0)
		d->nr_blocks = 0;
}

/* What a container holds that runs with those CPUs. With wishes it may hold more than it runs on,
 * or run on the pool's beside: then its annotation says which are its own, if they are in force. */
static struct cpuset held_by_placement(const struct engine *g, const struct request *req,
	const struct placement *placed, const struct cpuset *in_force)
{
	const struct wishes *w = &req->ask.wishes;
	const unsigned own = request_exclusive_cpus(req);
	const struct cpuset said = wishes_shown_cpus(w, g->t, &placed->cpus);
	const struct cpuset own_in_force = cpuset_and(*in_force, &placed->cpus);

	if (cpuset_count(&placed->cpus) <= own && cpuset_within(&said, in_force) &&
		(w->cpus == WISH_CPUS_OWN_SHARED || cpuset_equal(&said, in_force)))
		return placed->cpus;
	if (w->cpus == WISH_CPUS_OWN_SHARED) /* the others are the pool's */
		return own_in_force;
	return wishes_held_cpus(w, g->t, in_force, own);
}

/* Take over what the container runs with: what is in force counts, its annotation only says what
 * it means. 0, or -errno with the reason why that cannot be: another one holds it, or it is not
 * there any more. */
static int adopt_placement(const struct engine *g, const struct request *req,
	const struct placement *placed, struct decision *d, struct err *e)
{
	struct nodeset mems;
	struct cpuset cpus;
	int rc = cpuset_parse(&cpus, req->cpus, strlen(req->cpus), e);

	if (!rc)
		rc = nodeset_parse(&mems, &g->t->ids, req->mems, strlen(req->mems), e);
	if (rc)
		return rc;

	*d = (struct decision){
		.admit = true,
		.source = SOURCE_ADOPTED,
		.placed_by = PLACED_AS_FOUND,
		.policy = placed->policy,
		.exclusive = placed->exclusive,
		.preferred = placed->preferred,
		.has_affinity = placed->has_nodes,
		.nodes = placed->nodes,
	};
	if (placed->exclusive)
		cpus = held_by_placement(g, req, placed, &cpus);
	/* a container author can write annotations, too: none gives more CPUs than were asked for
	 */
	if (placed->exclusive && cpuset_count(&cpus) > request_exclusive_cpus(req))
		return err_set(e, EINVAL, "it runs on more CPUs of its own than it asks for");
	d->cpus = placed->exclusive ? cpus : ledger_view(g->ledger)->pool;
	d->mems = nodeset_empty(mems) ? ledger_view(g->ledger)->memory.usable : mems;
	rc = ledger_fits(g->ledger, req, d, e);
	if (!rc)
		adopt_memory(g, req, d->mems, d);
	return rc;
}

/* A container that runs is never stopped: one that cannot be placed runs in the shared pool. */
static void leave_in_pool(const struct engine *g, struct decision *d)
{
	char refusal[DECISION_MESSAGE_MAX];
	struct text t;

	(void)text_copy(refusal, sizeof refusal, d->message);
	text_init(&t, d->message, sizeof d->message);
	text_add(&t, "unaligned: %s: %s", d->reason, refusal);
	d->admit = true;
	d->reason = NULL;
	d->preferred = false;
	d->cpus = ledger_view(g->ledger)->pool;
	d->mems = ledger_view(g->ledger)->memory.usable;
}

/* What is held for it by its pod, when it was created while nobody listened. */
static bool claim_held(struct engine *g, int64_t now_ms, struct request *req, struct decision *d)
{
	const struct holding *h = ledger_find_waiting(g->ledger, req->pod.uid, req->ask.name);
	bool suits = h && holding_suits(h, req);

	if (!h || !text_equal(h->request.pod.sandbox_id,
			  req->pod.sandbox_id)) /* of another life of the pod */
		return false;
	engine_learn(h, req);
	*d = h->decision;
	if (!suits)
		engine_drop_for_good(g, now_ms, "replaced", h);
	return suits;
}

/* It runs on as it does, and nobody else gets the CPUs that it is confined to. 0, or -EBUSY with
 * text: another one has some of them to itself. */
static int leave_as_it_runs(
	const struct engine *g, const struct request *req, struct decision *d, struct err *e)
{
	const struct placement now = placement_in_force(g->t, g->s, req);

	*d = (struct decision){
		.admit = true,
		.source = SOURCE_ADOPTED,
		.policy = g->s->topology_policy,
		.cpus = ledger_view(g->ledger)->pool,
		.mems = nodeset_empty(now.mems) ? g->t->nodes_with_memory : now.mems,
		.placed_by = PLACED_LEFT,
		.left_on = engine_confined_to(g, req),
		.message = "left as it ran: onAdopt is leave",
	};
	return ledger_fits(g->ledger, req, d, e);
}

/* Decide it as if it came now, but never refuse it. */
static void place_late(struct engine *g, struct request *req, struct budget *b, struct decision *d)
{
	engine_bound_by_pod(g, req);
	struct request entitled = *req;
	if (!engine_claims(g, req, engine_owner_of_running(g, req),
		    d)) /* nobody knows of its tokens yet, and it runs */
		entitled.allocated = NULL;
	engine_decide(g, &entitled, b, d);
	if (!d->admit)
		leave_in_pool(g, d);
	d->source = SOURCE_ADOPTED;
}

/* How the container was placed, as its annotation says; false: nobody has placed it. The annotation
 * is of its creation: who was placed later has none, who was resized an old one. Then a cpuset of
 * just as many CPUs as it asks for to itself says that they are its own. */
static bool how_placed(const struct engine *g, const struct request *req,
	const struct placement *said, struct placement *p)
{
	const struct placement now = placement_in_force(g->t, g->s, req);
	bool own = now.exclusive && g->s->cpu_manager_policy == MANAGER_STATIC;
	bool old = !said || !cpuset_equal(&now.cpus, &said->cpus);

	*p = said ? *said : now;
	p->exclusive = (said && said->exclusive) || (own && old);
	if (said && p->exclusive && old && !said->exclusive)
		p->cpus = now.cpus;
	return said || own;
}

/* It may run with fewer CPUs of its own than it asks for: then that is what it has so far. */
static void count_what_it_has(const struct decision *d, struct request *req)
{
	unsigned nr = d->exclusive ? cpuset_count(&d->cpus) : 0;

	if (nr && nr < request_exclusive_cpus(req))
		req->ask.cpu_milli = (uint64_t)nr * MILLI_PER_CPU;
}

/* Only what nobody here has placed may be left: neither an annotation says so, nor the ledger. */
static bool may_be_left(const struct engine *g, const struct request *req,
	const struct placement *placed, bool ours)
{
	return g->s->on_adopt == ADOPT_LEAVE && !ours && !placed && !req->placement;
}

/* What the runtime does not say of a container whose entry is replaced. Returns when it was last
 * moved; 0: never. */
static int64_t know_what_lasts(
	const struct engine *g, const struct request *req, struct request *known)
{
	const struct holding *h = ledger_find(g->ledger, req->container_id);

	known->ask.has_devices = request_has_devices(req);
	if (h)
		ask_keep_devices(&known->ask, &h->request.ask);
	return h ? h->decision.moved_ms : 0;
}

void engine_adopt(struct engine *g, int64_t now_ms, const char *cause, const struct request *req,
	const struct placement *placed, bool ours, struct budget *b)
{
	struct request known = *req;
	struct placement p;
	bool was_placed = how_placed(g, req, placed, &p);
	struct decision d = {0};
	struct err why = {0};
	struct text t;

	const int64_t moved_ms = know_what_lasts(g, req, &known);
	if (req->shares) { /* what these hold counts, and nothing else */
		place_late(g, &known, b, &d);
	} else if (!claim_held(g, now_ms, &known, &d) &&
		   (!was_placed || adopt_placement(g, req, &p, &d, &why)) &&
		   (!may_be_left(g, req, placed, ours) || leave_as_it_runs(g, req, &d, &why))) {
		place_late(g, &known, b, &d);
		if (why.code && !*d.message) { /* it could have been expected to keep it */
			text_init(&t, d.message, sizeof d.message);
			text_add(&t, "what it ran with was not taken over: %s", why.text);
		}
	}
	d.moved_ms = moved_ms ? moved_ms : d.moved_ms;
	(void)engine_claims(g, req, engine_owner_of_running(g, req), &d);
	count_what_it_has(&d, &known);
	engine_settle(g, now_ms, cause, &known, &d, true);
	engine_mark_live(g, now_ms, req->container_id);
	ledger_set_starting(g->ledger, req->container_id, req->in_creation);
}

/* Whether it was resized while nobody listened, and somebody has seen to its CPUs. What its pod
 * holds for it is not given up for that. */
static bool has_what_it_asks_for_now(const struct engine *g, const struct holding *h,
	const struct request *req, const struct placement *placed)
{
	return !decision_is_left(&h->decision) && h->decision.source != SOURCE_HELD &&
	       !holding_suits(h, req) && !engine_knows_better(g, req, placed) &&
	       placement_in_force(g->t, g->s, req).exclusive;
}

/* The same for who can go on as it runs; others would be placed on CPUs that somebody runs on who
 * is still to be adopted. */
static void adopt_in_place(
	struct engine *g, int64_t now_ms, const struct request *req, const struct placement *placed)
{
	struct request known = *req;
	const struct holding *h = ledger_find(g->ledger, req->container_id);
	struct placement p;
	struct decision d;

	if (req->shares) /* what these hold counts: engine_adopt() */
		return;
	if (h ? !has_what_it_asks_for_now(g, h, req, placed)
	      : ledger_find_waiting(g->ledger, req->pod.uid, req->ask.name) != NULL)
		return;
	if (!how_placed(g, req, placed, &p) || adopt_placement(g, req, &p, &d, NULL) < 0)
		return;
	engine_end_move_of(g, now_ms, "adopt", req->container_id); /* somebody else has moved it */
	d.moved_ms = know_what_lasts(g, req, &known);
	(void)engine_claims(g, req, engine_owner_of_running(g, req), &d);
	count_what_it_has(&d, &known);
	engine_settle(g, now_ms, "adopt", &known, &d, true);
	engine_mark_live(g, now_ms, req->container_id);
}

void engine_started(struct engine *g, int64_t now_ms, const char *container_id)
{
	engine_mark_live(g, now_ms, container_id);
	ledger_set_starting(g->ledger, container_id, false);
}

void engine_live(
	struct engine *g, int64_t now_ms, const struct request *req, const struct placement *placed)
{
	struct cpuset before = ledger_view(g->ledger)->pool;
	struct budget budget = budget_of(g->s->merge_visit_budget);

	if (ledger_find(g->ledger, req->container_id)) {
		engine_mark_live(g, now_ms, req->container_id);
		return;
	}
	if (engine_has_ended(g, req->container_id))
		return;
	engine_adopt(g, now_ms, "adopt", req, placed, false, &budget);
	engine_update_later(g, &before);
	const struct holding *h = ledger_find(g->ledger, req->container_id);
	if (h && !decision_is_left(&h->decision))
		ledger_set_misplaced(g->ledger, req->container_id, true);
}

/* Oldest first: if two containers claim a CPU, the older container keeps the CPU. */
static int by_age(const void *a, const void *b)
{
	const struct request *x = *(const struct request *const *)a,
			     *y = *(const struct request *const *)b;

	if (x->created_at_ns != y->created_at_ns)
		return x->created_at_ns < y->created_at_ns ? -1 : 1;
	return strcmp(x->container_id, y->container_id);
}

static int inventory_by_id(const void *a, const void *b)
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

static int ids_by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char **sorted_copy(const char *const *list, size_t nr)
{
	const char **copy = xcalloc(nr, sizeof *copy);

	if (nr)
		memcpy(copy, list, nr * sizeof *copy);
	qsort(copy, nr, sizeof *copy, ids_by_text);
	return copy;
}

static void release_gone(struct engine *g, int64_t now_ms, const struct inventory *what)
{
	const struct request **known = pointers_to(what->requests, what->nr, inventory_by_id);
	const char **pods = sorted_copy(what->sandbox_ids, what->nr_sandboxes);
	size_t nr = ledger_count(g->ledger);
	char **ids = xcalloc(nr, sizeof *ids); /* of all entries: releasing moves them */

	for (size_t i = 0; i < nr; i++)
		ids[i] = xstrdup(ledger_at(g->ledger, i)->request.container_id);
	for (size_t i = 0; i < nr; i++) {
		const struct holding *h = ledger_find(g->ledger, ids[i]);
		struct request key = {.container_id = ids[i]};
		const struct request *want = &key;
		bool runs = bsearch(&want, known, what->nr, sizeof *known, inventory_by_id);
		bool has_pod = h && bsearch(&h->request.pod.sandbox_id, pods, what->nr_sandboxes,
					    sizeof *pods, ids_by_text);

		bool lasts = h && holding_is_share(h); /* its Unprepare alone ends it */

		if (h && !lasts && !runs && !has_pod)
			engine_drop_for_good(g, now_ms, "synchronize", h);
		else if (h && !lasts && !runs && h->state != HOLDING_WAITING)
			engine_drop(g, now_ms, "synchronize", ids[i], true);
		free(ids[i]);
	}
	free(ids);
	free(pods);
	free(known);
}

/* Tokens that were kept for pods which are not there any more. */
static void release_gone_pods(struct engine *g, int64_t now_ms, const struct inventory *what)
{
	const char **pods = what->pod_uids ? sorted_copy(what->pod_uids, what->nr_sandboxes) : NULL;
	const struct leases *leases = ledger_view(g->ledger)->leases;
	const char *uid;

	for (size_t at = 0; pods && (uid = leases_next_idle_pod(leases, &at));) {
		auto_free char *gone = xstrdup(uid); /* the lease does not outlive it */

		if (bsearch(&gone, pods, what->nr_sandboxes, sizeof *pods, ids_by_text))
			continue;
		engine_pod_is_gone(g, now_ms, "synchronize", gone);
		at -= !leases_has_pod(leases, gone); /* the next one stands there now */
	}
	free(pods);
}

/* A container gets an update when it does not run as it is to, or when its cgroup cannot be read.
 * One that does not run yet gets it once more when it does; one that is still to be read, then. */
static void put_right(struct engine *g, const struct request *req, const struct placement *placed,
	struct update_list *ups)
{
	const struct holding *h = ledger_find(g->ledger, req->container_id);

	if (!h) /* it could not be recorded, and runs on as it is */
		return;
	bool old = engine_knows_better(g, req, placed);
	bool waits = old && req->in_force == IN_FORCE_UNREAD;
	struct update want = engine_placement_of(g, h);
	bool ours = !decision_is_left(&h->decision) && !want.untouched && !want.moving;
	if (ours && !waits && (old || !engine_runs_as(g, req, &want)))
		*vec_push(ups) = want;
	bool later = req->in_creation || (waits && h->misplaced);
	ledger_set_starting(g->ledger, req->container_id, req->in_creation);
	ledger_set_misplaced(
		g->ledger, req->container_id, later && !decision_is_left(&h->decision));
}

/* What is left has other memory nodes by now; its CPUs stay out of the others' reach meanwhile. */
static void note_left_mems(struct engine *g, int64_t now_ms, const struct request *req)
{
	struct decision d = ledger_find(g->ledger, req->container_id)->decision;
	const struct nodeset mems = placement_in_force(g->t, g->s, req).mems;

	if (nodeset_empty(mems) || nodeset_equal(mems, d.mems))
		return;
	d.mems = mems;
	engine_settle(g, now_ms, "adopt", req, &d, true);
}

/* What was left, and is to be left no more or on other CPUs, is adopted anew. */
static void drop_left(struct engine *g, int64_t now_ms, const struct inventory *what)
{
	for (size_t i = 0; i < what->nr; i++) {
		const struct request *req = &what->requests[i];
		const struct holding *h = ledger_find(g->ledger, req->container_id);
		bool stale = engine_knows_better(g, req, what->placed[i]);
		const struct cpuset cpus = engine_confined_to(g, req);

		if (!h || !decision_is_left(&h->decision) ||
			h->request.ask.wishes.cpus == WISH_CPUS_UNBOUNDED)
			continue;
		bool moved = !stale && !cpuset_equal(&cpus, &h->decision.left_on);
		if (moved || !may_be_left(g, req, what->placed[i], false))
			engine_drop(g, now_ms, "synchronize", req->container_id, true);
		else if (!stale)
			note_left_mems(g, now_ms, req);
	}
}

/* What was resized while nobody listened gets what it asks for now: around what it has, if that can
 * be. One record replaces its entry: were it dropped first, and we ended in between, the next life
 * would not know that it is ours. What asks for no CPUs of its own any more keeps none, even where
 * its memory cannot be resized. */
static void resize_late(struct engine *g, int64_t now_ms, const struct request *req,
	const struct placement *placed, struct budget *b)
{
	const struct holding *h = ledger_find(g->ledger, req->container_id);
	struct update_list updated_with_all = {0};
	struct decision d;

	if (!h || decision_is_left(&h->decision) || engine_knows_better(g, req, placed) ||
		holding_suits(h, req))
		return;
	/* a move would have it refused, and nobody asks once more */
	engine_end_move_of(g, now_ms, "resized", req->container_id);
	if (engine_update_within(g, now_ms, req, b, &d, &updated_with_all) && !d.admit &&
		!request_exclusive_cpus(req)) {
		engine_drop(g, now_ms, "resized", req->container_id, true);
		engine_adopt(g, now_ms, "adopt", req, placed, true, b);
	}
	vec_fini(&updated_with_all);
}

static const struct holding *first_in_shadow(const struct engine *g)
{
	for (size_t i = 0; i < ledger_count(g->ledger); i++) {
		const struct holding *h = ledger_at(g->ledger, i);

		if (h->decision.placed_by == PLACED_IN_SHADOW)
			return h;
	}
	return NULL;
}

/* What an earlier mode has entered and put in force nowhere is adopted anew, as by a daemon that
 * has no journal: the containers run with what the kubelet has given them. */
static void drop_shadows(struct engine *g, int64_t now_ms)
{
	for (const struct holding *h; (h = first_in_shadow(g));)
		engine_drop_for_good(g, now_ms, "synchronize", h);
}

/* In a mode that places nothing others give containers CPUs, also those that numafitd has placed
 * before: where such a container runs elsewhere, its entry is in force no more. A part of what its
 * pod has as one stays that. */
static void drop_replaced(struct engine *g, int64_t now_ms, const struct inventory *what)
{
	for (size_t i = 0; i < what->nr; i++) {
		const struct request *req = &what->requests[i];
		const struct holding *h = ledger_find(g->ledger, req->container_id);

		if (!h || !h->decision.exclusive || !decision_is_booked(&h->decision) ||
			h->decision.placed_by == PLACED_IN_SHADOW)
			continue;
		const struct update want = engine_placement_of(g, h);
		if (!engine_runs_as(g, req, &want))
			engine_drop_for_good(g, now_ms, "synchronize", h);
	}
}

static const struct placement *placed_of(const struct inventory *what, const struct request *req)
{
	return what->placed[req - what->requests];
}

void engine_synchronize(
	struct engine *g, int64_t now_ms, const struct inventory *what, struct update_list *ups)
{
	const struct request **oldest_first = pointers_to(what->requests, what->nr, by_age);
	struct budget budget = budget_of(g->s->merge_visit_budget);
	unsigned parts = 2 * (unsigned)what->nr, part = 0; /* each is placed, and resized */

	release_gone(g, now_ms, what);
	release_gone_pods(g, now_ms, what);
	if (engine_places(g))
		drop_shadows(g, now_ms);
	else
		drop_replaced(g, now_ms, what);
	drop_left(g, now_ms, what);
	for (size_t i = 0; i < what->nr; i++)
		adopt_in_place(g, now_ms, oldest_first[i], placed_of(what, oldest_first[i]));
	for (size_t i = 0; i < what->nr; i++) {
		const struct request *req = oldest_first[i];
		struct budget b = budget_share(&budget, parts, part++);

		if (ledger_find(g->ledger, req->container_id))
			engine_mark_live(g, now_ms, req->container_id);
		else
			engine_adopt(g, now_ms, "adopt", req, placed_of(what, req), false, &b);
		budget_return(&budget, &b);
	}
	for (size_t i = 0; i < what->nr; i++) {
		struct budget b = budget_share(&budget, parts, part++);

		resize_late(g, now_ms, oldest_first[i], placed_of(what, oldest_first[i]), &b);
		budget_return(&budget, &b);
	}
	for (size_t i = 0; i < what->nr; i++)
		put_right(g, oldest_first[i], placed_of(what, oldest_first[i]), ups);
	free(oldest_first);
}
