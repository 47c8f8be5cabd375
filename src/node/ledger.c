/* The entries: who holds what. */
#include "ledger_state.h"

#include <numafit/leases.h>
#include <numafit/text.h>

#include <assert.h>
#include <string.h>

/* What an order sorts by: up to three strings. */
struct key {
	const char *part[3];
};

static struct key ledger_key_of(enum ledger_order order, const struct holding *h)
{
	const struct request *r = &h->request;

	if (order == BY_ID)
		return (struct key){{r->container_id, "", ""}};
	if (order == BY_NAME)
		return (struct key){{r->pod.uid, r->ask.name, r->container_id}};
	return (struct key){{r->pod.sandbox_id, r->container_id, ""}};
}

/* Its first characters, as a number that is as much larger as the text comes later. */
static uint64_t beginning_of(const char *text)
{
	uint64_t first = 0;

	for (size_t i = 0, len = strnlen(text, sizeof first); i < sizeof first; i++)
		first = first << 8 | (i < len ? (unsigned char)text[i] : 0);
	return first;
}

/* Where the entry with that key stands in that order, or would stand. */
static size_t ledger_position(const struct ledger *l, enum ledger_order order, struct key key)
{
	const uint64_t begins = beginning_of(key.part[0]);
	size_t lo = 0, hi = l->by[order].nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct ledger_slot *at = &l->by[order].at[mid];
		int c = (at->begins > begins) - (at->begins < begins);

		for (unsigned i = 0; !c && i < sizeof key.part / sizeof *key.part; i++)
			c = strcmp(ledger_key_of(order, at->h).part[i], key.part[i]);
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool holding_is_in_pool(const struct holding *h)
{
	const struct decision *d = &h->decision;

	if (decision_is_left(d) || h->on_reserved)
		return false;
	return !d->exclusive || (decision_is_booked(d) && !h->request.pod.pod_level &&
					h->request.ask.wishes.cpus == WISH_CPUS_OWN_SHARED);
}

static bool shares_pool(const struct holding *h)
{
	return h->state != HOLDING_WAITING && holding_is_in_pool(h);
}

bool ledger_is_bounded(const struct ledger *l, const struct holding *h, bool *exact)
{
	return l->now.bounds && shares_pool(h) &&
	       bounds_shares(l->now.bounds, h->request.container_id, exact);
}

/* Of those that share the pool, whose number changes by +1 or -1. */
static void count_shared(struct ledger *l, const struct holding *h, int by)
{
	bool exact;

	if (!shares_pool(h))
		return;
	l->now.nr_shared += (size_t)by;
	if (!ledger_is_bounded(l, h, &exact))
		l->now.nr_unbounded += (size_t)by;
}

static struct cpuset reserved_cpus(const struct ledger *l)
{
	return cpuset_and(l->s->reserved_cpus, &l->now.topo->cpus);
}

/* Where no reserved CPU is online it shares the pool. */
static void note_reserved(const struct ledger *l, struct holding *h)
{
	const struct cpuset reserved = reserved_cpus(l);

	h->on_reserved = h->request.ask.wishes.cpus == WISH_CPUS_RESERVED &&
			 !h->decision.exclusive && !decision_is_left(&h->decision) &&
			 !cpuset_empty(&reserved);
}

/* The CPUs that the container has where others of the pool are not to be kept from them, too; NULL:
 * it shares the pool. What is left as it runs may be confined, or run everywhere. */
static const struct cpuset *runs_beside_the_pool(
	const struct ledger *l, const struct holding *h, const struct cpuset *reserved)
{
	const struct decision *d = &h->decision;

	if (decision_is_left(d))
		return cpuset_empty(&d->left_on) ? &l->now.topo->cpus : &d->left_on;
	if (h->on_reserved)
		return reserved;
	return d->exclusive ? &d->cpus : NULL;
}

static void ledger_bound(struct ledger *l, const struct holding *h)
{
	const struct decision *d = &h->decision;
	const struct cpuset within = topo_cpus_of(l->now.topo, d->spread);
	const struct cpuset reserved = reserved_cpus(l);

	if (!l->now.bounds || h->state == HOLDING_WAITING)
		return;
	if (holding_is_in_pool(h))
		bounds_enter_in_part(
			l->now.bounds, &h->request, d->exclusive ? &d->cpus : NULL, &within);
	else
		bounds_enter(l->now.bounds, &h->request, runs_beside_the_pool(l, h, &reserved));
}

void ledger_bound_all(struct ledger *l)
{
	bool by_cgroups = l->s->pool_enforced == POOL_BY_CGROUPS;

	if (by_cgroups && !l->now.bounds)
		l->now.bounds = bounds_new();
	if (!by_cgroups) {
		bounds_free(l->now.bounds);
		l->now.bounds = NULL;
	}
	l->now.nr_shared = l->now.nr_unbounded = 0;
	for (size_t i = 0; i < l->by[BY_ID].nr; i++) {
		note_reserved(l, l->by[BY_ID].at[i].h);
		ledger_bound(l, l->by[BY_ID].at[i].h);
		count_shared(l, l->by[BY_ID].at[i].h, 1);
	}
}

static void ledger_enter(struct ledger *l, struct holding *h)
{
	note_reserved(l, h);
	ledger_bound(l, h);
	count_shared(l, h, 1);
	l->now.nr_shares += holding_is_share(h);
	l->now.nr_without_shares += holding_lacks_shares(h);
	for (enum ledger_order o = 0; o < NR_LEDGER_ORDERS; o++) {
		const struct key key = ledger_key_of(o, h);

		*vec_insert(&l->by[o], ledger_position(l, o, key)) =
			(struct ledger_slot){beginning_of(key.part[0]), h};
	}
}

static void ledger_take_out(struct ledger *l, struct holding *h)
{
	count_shared(l, h, -1);
	l->now.nr_shares -= holding_is_share(h);
	l->now.nr_without_shares -= holding_lacks_shares(h);
	if (l->now.bounds)
		bounds_leave(l->now.bounds, h->request.container_id);
	if (ledger_is_moving(l, h->request.container_id))
		moving_free(steal(l->now.moving));
	for (enum ledger_order o = 0; o < NR_LEDGER_ORDERS; o++) {
		size_t i = ledger_position(l, o, ledger_key_of(o, h));

		assert(i < l->by[o].nr && l->by[o].at[i].h == h);
		vec_remove(&l->by[o], i);
	}
}

void holding_strings(struct request *req, const char **text[HOLDING_STRINGS])
{
	const char **const all[HOLDING_STRINGS] = {&req->container_id, &req->ask.name,
		&req->pod.sandbox_id, &req->pod.uid, &req->pod.ns, &req->pod.name, &req->cgroup,
		&req->allocated, &req->shares, &req->for_pods};

	memcpy(text, all, sizeof all);
}

static void holding_free(struct holding *h)
{
	const char **text[HOLDING_STRINGS];

	holding_strings(&h->request, text);
	for (size_t i = 0; i < HOLDING_STRINGS; i++)
		free((void *)(uintptr_t)*text[i]); /* ours since holding_new() */
	free(h);
}

/* An id for what waits for a container: container ids have no slash. That of what a pod has as one,
 * without a name, comes behind all others: its parts go first. */
static char *waiting_id(const char *pod_uid, const char *container_name)
{
	size_t cap = strlen(pod_uid) + strlen(container_name) + sizeof "~/";
	char *id = xcalloc(1, cap);
	struct text t;

	text_init(&t, id, cap);
	text_add(&t, "%s%s/%s", *container_name ? "" : "~", pod_uid, container_name);
	return id;
}

/* What an entry needs of the request for as long as it lasts: who it is and what it asked for,
 * without what belongs to the event that brought it. */
static struct holding *holding_new(
	const char *container_id, const struct request *req, const struct decision *d)
{
	struct holding *h = xcalloc(1, sizeof *h);
	const char **text[HOLDING_STRINGS];

	h->request = (struct request){
		.container_id = container_id,
		.ask = req->ask,
		.pod = {.sandbox_id = req->pod.sandbox_id,
			.uid = req->pod.uid,
			.ns = req->pod.ns,
			.name = req->pod.name,
			.qos = req->pod.qos,
			.pod_level = req->pod.pod_level},
		.created_at_ns = req->created_at_ns,
		.cpus = "",
		.mems = "",
		.cgroup = req->cgroup,
		.allocated = req->allocated,
		.shares = req->shares,
		.for_pods = req->for_pods,
		.for_many = req->for_many,
		.for_one_pod = req->for_one_pod,
	};
	h->request.ask.has_devices = request_has_devices(req);
	h->request.ask.nr_devices = 0; /* of resources that only the event knows */
	h->request.ask.cpus_on = NULL;
	h->request.ask.advice = NULL;
	h->request.ask.odd_wish = NULL; /* of who was adopted all the same */
	holding_strings(&h->request, text);
	for (size_t i = 0; i < HOLDING_STRINGS; i++)
		*text[i] = *text[i] ? xstrdup(*text[i]) : NULL;
	h->decision = *d;
	h->decision.reasons = NULL; /* they live no longer than the event */
	return h;
}

struct ledger *ledger_new(const struct topo *t, const struct settings *s)
{
	struct ledger *l = xcalloc(1, sizeof *l);

	l->now.topo = t;
	l->s = s;
	l->now.pool = ledger_shareable_cpus(l);
	l->now.leases = leases_new(t, s);
	ledger_bound_all(l);
	memory_init(&l->now.memory, t, s);
	l->now.memory.keep_groups = true; /* records come back in any order */
	return l;
}

void ledger_free(struct ledger *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->by[BY_ID].nr; i++)
		holding_free(l->by[BY_ID].at[i].h);
	for (enum ledger_order o = 0; o < NR_LEDGER_ORDERS; o++)
		vec_fini(&l->by[o]);
	moving_free(l->now.moving);
	leases_free(l->now.leases);
	bounds_free(l->now.bounds);
	for (enum kept_kind kind = 0; kind < NR_KEPT; kind++)
		kept_fini(&l->now.kept[kind]);
	free(l);
}

const struct ledger_view *ledger_view(const struct ledger *l)
{
	return &l->now;
}

struct cpuset ledger_free_cpus(const struct ledger *l)
{
	struct cpuset cpus =
		cpuset_minus(cpuset_minus(l->now.topo->cpus, &l->now.held), &l->now.left);

	return cpuset_minus(cpus, &l->s->reserved_cpus);
}

/* Of the pool what a container has that wishes for one NUMA node's; all of it where that has none
 * by now, or where it is bounded by itself (bounds_enter_in_part()). */
static struct cpuset pool_for(const struct ledger *l, const struct holding *h)
{
	const struct cpuset near = topo_cpus_of(l->now.topo, h->decision.spread),
			    of_pool = cpuset_and(near, &l->now.pool);
	bool exact;

	if (cpuset_empty(&of_pool) || (ledger_is_bounded(l, h, &exact) && exact))
		return l->now.pool;
	return of_pool;
}

struct cpuset ledger_cpus_of(const struct ledger *l, const struct holding *h)
{
	const struct decision *d = &h->decision;

	if (h->on_reserved)
		return reserved_cpus(l);
	if (!d->exclusive)
		return pool_for(l, h);
	if (!decision_is_booked(d))
		return d->cpus;
	const struct cpuset shown =
		wishes_shown_cpus(&h->request.ask.wishes, l->now.topo, &d->cpus);
	return holding_is_in_pool(h) ? cpuset_or(shown, &l->now.pool) : shown;
}

struct cpuset ledger_common_cpus(
	const struct ledger *l, const struct wishes *w, const struct cpuset *pool)
{
	const struct cpuset reserved = reserved_cpus(l);

	return w->cpus == WISH_CPUS_RESERVED && !cpuset_empty(&reserved) ? reserved : *pool;
}

struct decision ledger_decision_of(const struct ledger *l, const struct holding *h)
{
	struct decision d = h->decision;

	if (!d.exclusive)
		d.cpus = ledger_common_cpus(l, &h->request.ask.wishes, &l->now.pool);
	return d;
}

struct cpuset ledger_all_cpus(const struct ledger *l)
{
	return l->s->cpu_options.strict_cpu_reservation
		       ? cpuset_minus(l->now.topo->cpus, &l->s->reserved_cpus)
		       : l->now.topo->cpus;
}

struct cpuset ledger_shareable_cpus(const struct ledger *l)
{
	const struct cpuset all = ledger_all_cpus(l),
			    others = cpuset_minus(all, &l->now.topo->isolated);

	return cpuset_empty(&others) ? all : others;
}

struct cpuset ledger_left_by_others(const struct ledger *l, const struct holding *self)
{
	struct cpuset cpus = {0};

	for (size_t i = 0; i < l->by[BY_ID].nr && !cpuset_empty(&l->now.left); i++)
		if (l->by[BY_ID].at[i].h != self)
			cpus = cpuset_or(cpus, &l->by[BY_ID].at[i].h->decision.left_on);
	return cpus;
}

size_t ledger_count(const struct ledger *l)
{
	return l->by[BY_ID].nr;
}

const struct holding *ledger_at(const struct ledger *l, size_t i)
{
	return i < l->by[BY_ID].nr ? l->by[BY_ID].at[i].h : NULL;
}

const struct holding *ledger_at_by_pod(const struct ledger *l, size_t i)
{
	return i < l->by[BY_NAME].nr ? l->by[BY_NAME].at[i].h : NULL;
}

/* The first entry in that order whose key begins with the text: an id, a pod's uid, a sandbox. */
static struct holding *ledger_first(
	const struct ledger *l, enum ledger_order order, const char *text)
{
	size_t i = ledger_position(l, order, (struct key){{text, "", ""}});
	struct holding *h = i < l->by[order].nr ? l->by[order].at[i].h : NULL;

	return h && text_equal(ledger_key_of(order, h).part[0], text) ? h : NULL;
}

const struct holding *ledger_find(const struct ledger *l, const char *container_id)
{
	return ledger_first(l, BY_ID, container_id);
}

const struct holding *ledger_after(const struct ledger *l, const char *container_id)
{
	size_t i = ledger_position(l, BY_ID, (struct key){{container_id, "", ""}});

	return ledger_at(l, i + (ledger_first(l, BY_ID, container_id) != NULL));
}

const struct holding *ledger_find_named(const struct ledger *l, const char *pod_uid,
	const char *container_name, const char *not_container_id)
{
	for (size_t i = ledger_position(l, BY_NAME, (struct key){{pod_uid, container_name, ""}});
		i < l->by[BY_NAME].nr; i++) {
		const struct holding *h = l->by[BY_NAME].at[i].h;

		if (!text_equal(h->request.pod.uid, pod_uid) ||
			!text_equal(h->request.ask.name, container_name))
			break;
		if (!text_equal(h->request.container_id, not_container_id))
			return h;
	}
	return NULL;
}

struct holding *ledger_take_up(struct ledger *l, const char *container_id)
{
	struct holding *h = ledger_first(l, BY_ID, container_id);

	if (h)
		count_shared(l, h, -1);
	return h;
}

void ledger_put_down(struct ledger *l, struct holding *h)
{
	note_reserved(l, h);
	ledger_bound(l, h);
	count_shared(l, h, 1);
}

size_t ledger_first_of_pod(const struct ledger *l, const char *pod_uid)
{
	return ledger_position(l, BY_NAME, (struct key){{pod_uid, "", ""}});
}

const struct holding *ledger_find_of_pod(const struct ledger *l, const char *pod_uid)
{
	return ledger_first(l, BY_NAME, pod_uid);
}

const struct holding *ledger_find_in_sandbox(const struct ledger *l, const char *sandbox_id)
{
	return ledger_first(l, BY_SANDBOX, sandbox_id);
}

/* CPUs that other parts of the pod than *but (NULL: all) hold, and that one of its parts may hold
 * as well. */
static struct cpuset ledger_held_by_pod(
	const struct ledger *l, const char *pod_uid, const struct holding *but)
{
	struct cpuset cpus = {0};

	for (size_t i = ledger_first_of_pod(l, pod_uid);
		i < l->by[BY_NAME].nr &&
		text_equal(l->by[BY_NAME].at[i].h->request.pod.uid, pod_uid);
		i++) {
		const struct holding *h = l->by[BY_NAME].at[i].h;

		if (h != but && holding_is_kept(h) && holding_is_booked(h) && h->decision.exclusive)
			cpus = cpuset_or(cpus, &h->decision.cpus);
	}
	return cpus;
}

struct cpuset ledger_held_alone_by(const struct ledger *l, const struct holding *h)
{
	struct cpuset others = {0};

	if (!h->decision.exclusive || !holding_is_booked(h))
		return others;
	if (holding_is_kept(h))
		others = ledger_held_by_pod(l, h->request.pod.uid, h);
	return cpuset_minus(h->decision.cpus, &others);
}

static void ledger_drop(struct ledger *l, struct holding *h)
{
	struct cpuset cpus = ledger_held_alone_by(l, h);

	l->now.held = cpuset_minus(l->now.held, &cpus);
	if (holding_is_booked(h))
		memory_release(&l->now.memory, h->decision.blocks, h->decision.nr_blocks);
	l->now.nr_misplaced -= h->misplaced;
	l->now.left = ledger_left_by_others(l, h);
	ledger_take_out(l, h);
	holding_free(h);
}

struct cpuset ledger_released_by(const struct ledger *l, const struct holding *h)
{
	bool stays = holding_is_kept(h) && h->state != HOLDING_WAITING;

	return stays ? (struct cpuset){0} : ledger_held_alone_by(l, h);
}

static struct holding *find_waiting(
	const struct ledger *l, const char *pod_uid, const char *container_name)
{
	auto_free char *id = waiting_id(pod_uid, container_name);
	struct holding *h = ledger_first(l, BY_ID, id);

	/* no container has those */
	return h && (holding_is_pod(h) || holding_is_share(h)) ? NULL : h;
}

const struct holding *ledger_pod_of(const struct ledger *l, const struct request *req)
{
	auto_free char *id = waiting_id(req->pod.uid, "");
	const struct holding *h = ledger_first(l, BY_ID, id);

	return h && holding_is_pod(h) ? h : NULL;
}

bool request_shares_in_pod(const struct request *req, const struct decision *d)
{
	return d->within_pod && d->exclusive && !request_exclusive_cpus(req);
}

static bool is_part_of(const struct holding *h, const struct holding *whole)
{
	if (holding_is_share(whole))
		return h->decision.within_claims &&
		       text_has_word(h->request.shares, whole->request.container_id);
	return h->decision.within_pod && text_equal(h->request.pod.uid, whole->request.pod.uid);
}

/* The containers that have parts of what the pod has as one, or of a share, go with it. */
static void drop_parts(struct ledger *l, const struct holding *whole)
{
	for (size_t i = l->by[BY_ID].nr; i-- > 0;)
		if (is_part_of(l->by[BY_ID].at[i].h, whole))
			ledger_drop(l, l->by[BY_ID].at[i].h);
}

bool ledger_release(struct ledger *l, const char *container_id)
{
	struct holding *h = ledger_first(l, BY_ID, container_id);
	const struct request *req;

	if (!h)
		return false;
	req = &h->request;
	if (holding_is_pod(h) || holding_is_share(h))
		drop_parts(l, h);
	if (!holding_is_kept(h) || h->state == HOLDING_WAITING ||
		find_waiting(l, req->pod.uid, req->ask.name)) {
		ledger_drop(l, h);
		return true;
	}
	ledger_take_out(l, h);
	free((void *)(uintptr_t)req->container_id);
	h->request.container_id = waiting_id(req->pod.uid, req->ask.name);
	h->state = HOLDING_WAITING;
	l->now.nr_misplaced -= h->misplaced;
	h->misplaced = false;
	ledger_enter(l, h);
	return true;
}

const struct holding *ledger_find_waiting(
	const struct ledger *l, const char *pod_uid, const char *container_name)
{
	return find_waiting(l, pod_uid, container_name);
}

static void ledger_take_in(struct ledger *l, struct holding *h)
{
	struct decision *d = &h->decision;

	assert(d->admit);
	if (d->exclusive && !decision_is_booked(d)) {
		assert(cpuset_within(&d->cpus, &l->now.held));
	} else if (d->exclusive) {
		struct cpuset pods = {0}, others;

		if (holding_is_kept(h))
			pods = ledger_held_by_pod(l, h->request.pod.uid, h);
		others = cpuset_minus(l->now.held, &pods);
		assert(!cpuset_intersects(&others, &d->cpus) &&
			!cpuset_intersects(&l->now.left, &d->cpus) &&
			!cpuset_intersects(&l->now.pool, &d->cpus));
		l->now.held = cpuset_or(l->now.held, &d->cpus);
	} else {
		d->cpus = (struct cpuset){0};
	}
	assert(!cpuset_intersects(&l->now.held, &d->left_on));
	l->now.left = cpuset_or(l->now.left, &d->left_on);
	if (holding_is_booked(h))
		memory_hold(&l->now.memory, d->blocks, d->nr_blocks);
	ledger_enter(l, h);
}

void ledger_make_way(struct ledger *l, const struct request *req, const struct decision *d)
{
	struct holding *waiting;

	(void)ledger_release(l, req->container_id);
	waiting = d->source == SOURCE_HELD ? find_waiting(l, req->pod.uid, req->ask.name) : NULL;
	if (waiting)
		ledger_drop(l, waiting);
}

void ledger_commit(struct ledger *l, const struct request *req, const struct decision *d)
{
	struct holding *h = holding_new(req->container_id, req, d);

	h->state = HOLDING_TENTATIVE;
	h->starting = true;
	ledger_make_way(l, req, d);
	ledger_take_in(l, h);
}

void ledger_hold(struct ledger *l, const struct request *req, const struct decision *d)
{
	auto_free char *id = waiting_id(req->pod.uid, req->ask.name);
	struct holding *before = ledger_first(l, BY_ID, id);

	if (before)
		ledger_drop(l, before);
	ledger_take_in(l, holding_new(id, req, d));
}

void ledger_set_live(struct ledger *l, const char *container_id)
{
	struct holding *started = ledger_first(l, BY_ID, container_id);

	if (!started || started->state == HOLDING_WAITING)
		return;
	started->state = HOLDING_LIVE;
	for (size_t i = ledger_first_of_pod(l, started->request.pod.uid);
		i < l->by[BY_NAME].nr &&
		text_equal(l->by[BY_NAME].at[i].h->request.pod.uid, started->request.pod.uid);
		i++) {
		struct holding *earlier = l->by[BY_NAME].at[i].h;
		struct decision *d = &earlier->decision;
		bool has_ended = earlier->request.ask.kind == CONTAINER_INIT &&
				 earlier->request.ask.place < started->request.ask.place;

		if (!holding_is_kept(earlier) || !holding_is_booked(earlier) || !has_ended)
			continue;
		memory_release(&l->now.memory, d->blocks, d->nr_blocks);
		d->nr_blocks = 0;
	}
}

void ledger_set_misplaced(struct ledger *l, const char *container_id, bool misplaced)
{
	struct holding *h = ledger_first(l, BY_ID, container_id);

	if (!h || h->misplaced == misplaced)
		return;
	h->misplaced = misplaced;
	l->now.nr_misplaced += misplaced ? 1 : (size_t)-1;
}

void ledger_set_starting(struct ledger *l, const char *container_id, bool starting)
{
	struct holding *h = ledger_first(l, BY_ID, container_id);

	if (h)
		h->starting = starting;
}

void ledger_note_kept(
	struct ledger *l, enum kept_kind kind, const char *key, const struct kept_note *n)
{
	kept_note(&l->now.kept[kind], key, n);
}

void ledger_age(struct ledger *l, const char *container_id)
{
	struct holding *h = ledger_first(l, BY_ID, container_id);

	if (h)
		h->aged = true;
}
