/* The entries: who holds what. */
#include "ledger_state.h"

#include <numafit/leases.h>
#include <numafit/text.h>

#include <assert.h>
#include <string.h>

static struct key id_key(const struct holding *h)
{
	return (struct key){{h->request.container_id, "", ""}};
}

static struct key name_key(const struct holding *h)
{
	return (struct key){{h->request.pod.uid, h->request.ask.name, h->request.container_id}};
}

static struct key sandbox_key(const struct holding *h)
{
	return (struct key){{h->request.pod.sandbox_id, h->request.container_id, ""}};
}

static int compare_keys(struct key a, struct key b)
{
	int c = 0;

	for (unsigned i = 0; i < 3 && !c; i++)
		c = strcmp(a.part[i], b.part[i]);
	return c;
}

/* Where the entry with that key stands, or would stand. */
static size_t index_find(const struct index *x, struct key key)
{
	size_t lo = 0, hi = x->nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare_keys(x->key_of(x->at[mid]), key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void index_add(struct index *x, struct holding *h)
{
	struct holding **slot = vec_insert(x, index_find(x, x->key_of(h)));

	*slot = h;
}

static void index_remove(struct index *x, const struct holding *h)
{
	size_t i = index_find(x, x->key_of(h));

	assert(i < x->nr && x->at[i] == h);
	vec_remove(x, i);
}

static void holding_free(struct holding *h)
{
	const char **text[REQUEST_STRINGS];

	request_strings(&h->request, text);
	for (size_t i = 0; i < REQUEST_STRINGS; i++)
		free((void *)(uintptr_t)*text[i]); /* ours since holding_new() */
	free(h);
}

/* An id for what waits for a container: container ids have no slash. */
static char *waiting_id(const char *pod_uid, const char *container_name)
{
	size_t cap = strlen(pod_uid) + strlen(container_name) + sizeof "/";
	char *id = xcalloc(1, cap);
	struct text t;

	text_init(&t, id, cap);
	text_add(&t, "%s/%s", pod_uid, container_name);
	return id;
}

static struct holding *holding_new(
	const char *container_id, const struct request *req, const struct decision *d)
{
	struct holding *h = xcalloc(1, sizeof *h);
	const char **text[REQUEST_STRINGS];

	h->request = request_kept(req);
	h->request.container_id = container_id;
	request_strings(&h->request, text);
	for (size_t i = 0; i < REQUEST_STRINGS; i++)
		*text[i] = *text[i] ? xstrdup(*text[i]) : NULL;
	h->decision = *d;
	h->decision.reasons = NULL; /* they live no longer than the event */
	return h;
}

struct ledger *ledger_new(const struct topo *t, const struct settings *s)
{
	struct ledger *l = xcalloc(1, sizeof *l);

	l->t = t;
	l->s = s;
	l->pool = ledger_shareable_cpus(l);
	l->by_id.key_of = id_key;
	l->by_name.key_of = name_key;
	l->by_sandbox.key_of = sandbox_key;
	l->leases = leases_new(t, s);
	memory_init(&l->memory, t, s);
	l->memory.keep_groups = true; /* records come back in any order */
	return l;
}

void ledger_free(struct ledger *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->by_id.nr; i++)
		holding_free(l->by_id.at[i]);
	vec_fini(&l->by_id);
	vec_fini(&l->by_name);
	vec_fini(&l->by_sandbox);
	leases_free(l->leases);
	free(l);
}

const struct topo *ledger_topo(const struct ledger *l)
{
	return l->t;
}

struct cpuset ledger_free_cpus(const struct ledger *l)
{
	struct cpuset cpus = cpuset_minus(cpuset_minus(l->t->cpus, &l->held), &l->left);

	return cpuset_minus(cpus, &l->s->reserved_cpus);
}

bool ledger_is_of_pool(const struct ledger *l, const struct cpuset *cpus)
{
	struct cpuset here = cpuset_minus(*cpus, &l->s->reserved_cpus);
	struct cpuset pool = cpuset_minus(l->pool, &l->s->reserved_cpus);

	return !cpuset_empty(cpus) && cpuset_equal(&here, &pool);
}

struct cpuset ledger_shareable_cpus(const struct ledger *l)
{
	return l->s->cpu_options.strict_cpu_reservation
		       ? cpuset_minus(l->t->cpus, &l->s->reserved_cpus)
		       : l->t->cpus;
}

const struct cpuset *ledger_held_cpus(const struct ledger *l)
{
	return &l->held;
}

const struct cpuset *ledger_left_cpus(const struct ledger *l)
{
	return &l->left;
}

struct cpuset ledger_left_by_others(const struct ledger *l, const struct holding *self)
{
	struct cpuset cpus = {0};

	for (size_t i = 0; i < l->by_id.nr && !cpuset_empty(&l->left); i++)
		if (l->by_id.at[i] != self)
			cpus = cpuset_or(cpus, &l->by_id.at[i]->decision.left_on);
	return cpus;
}

const struct cpuset *ledger_pool(const struct ledger *l)
{
	return &l->pool;
}

const struct memory_state *ledger_memory(const struct ledger *l)
{
	return &l->memory;
}

struct leases *ledger_leases(const struct ledger *l)
{
	return l->leases;
}

size_t ledger_count(const struct ledger *l)
{
	return l->by_id.nr;
}

const struct holding *ledger_at(const struct ledger *l, size_t i)
{
	return i < l->by_id.nr ? l->by_id.at[i] : NULL;
}

static struct holding *find(const struct ledger *l, const char *container_id)
{
	size_t i = index_find(&l->by_id, (struct key){{container_id, "", ""}});

	return i < l->by_id.nr && text_equal(l->by_id.at[i]->request.container_id, container_id)
		       ? l->by_id.at[i]
		       : NULL;
}

const struct holding *ledger_find(const struct ledger *l, const char *container_id)
{
	return find(l, container_id);
}

const struct holding *ledger_after(const struct ledger *l, const char *container_id)
{
	size_t i = index_find(&l->by_id, (struct key){{container_id, "", ""}});

	if (i < l->by_id.nr && text_equal(l->by_id.at[i]->request.container_id, container_id))
		i++;
	return ledger_at(l, i);
}

const struct holding *ledger_find_named(const struct ledger *l, const char *pod_uid,
	const char *container_name, const char *not_container_id)
{
	for (size_t i = index_find(&l->by_name, (struct key){{pod_uid, container_name, ""}});
		i < l->by_name.nr; i++) {
		const struct holding *h = l->by_name.at[i];

		if (!text_equal(h->request.pod.uid, pod_uid) ||
			!text_equal(h->request.ask.name, container_name))
			break;
		if (!text_equal(h->request.container_id, not_container_id))
			return h;
	}
	return NULL;
}

const struct holding *ledger_find_of_pod(const struct ledger *l, const char *pod_uid)
{
	size_t i = index_find(&l->by_name, (struct key){{pod_uid, "", ""}});

	return i < l->by_name.nr && text_equal(l->by_name.at[i]->request.pod.uid, pod_uid)
		       ? l->by_name.at[i]
		       : NULL;
}

static void enter(struct ledger *l, struct holding *h)
{
	index_add(&l->by_id, h);
	index_add(&l->by_name, h);
	index_add(&l->by_sandbox, h);
}

static void take_out(struct ledger *l, struct holding *h)
{
	index_remove(&l->by_id, h);
	index_remove(&l->by_name, h);
	index_remove(&l->by_sandbox, h);
}

struct cpuset ledger_held_by_pod(
	const struct ledger *l, const char *pod_uid, const struct holding *but)
{
	struct cpuset cpus = {0};

	for (size_t i = index_find(&l->by_name, (struct key){{pod_uid, "", ""}});
		i < l->by_name.nr && text_equal(l->by_name.at[i]->request.pod.uid, pod_uid); i++) {
		const struct holding *h = l->by_name.at[i];

		if (h != but && holding_is_kept(h) && h->decision.exclusive)
			cpus = cpuset_or(cpus, &h->decision.cpus);
	}
	return cpus;
}

struct cpuset ledger_held_alone_by(const struct ledger *l, const struct holding *h)
{
	struct cpuset others = {0};

	if (!h->decision.exclusive)
		return others;
	if (holding_is_kept(h))
		others = ledger_held_by_pod(l, h->request.pod.uid, h);
	return cpuset_minus(h->decision.cpus, &others);
}

static void drop(struct ledger *l, struct holding *h)
{
	struct cpuset cpus = ledger_held_alone_by(l, h);

	l->held = cpuset_minus(l->held, &cpus);
	memory_release(&l->memory, h->decision.blocks, h->decision.nr_blocks);
	l->nr_misplaced -= h->misplaced;
	l->left = ledger_left_by_others(l, h);
	take_out(l, h);
	holding_free(h);
}

struct cpuset ledger_released_by(const struct ledger *l, const struct holding *h)
{
	bool stays = holding_is_kept(h) && h->state != HOLDING_WAITING;

	return stays ? (struct cpuset){0} : ledger_held_alone_by(l, h);
}

static void let_wait(struct ledger *l, struct holding *h)
{
	take_out(l, h);
	free((void *)(uintptr_t)h->request.container_id);
	h->request.container_id = waiting_id(h->request.pod.uid, h->request.ask.name);
	h->state = HOLDING_WAITING;
	l->nr_misplaced -= h->misplaced;
	h->misplaced = false;
	enter(l, h);
}

static struct holding *find_waiting(
	const struct ledger *l, const char *pod_uid, const char *container_name)
{
	auto_free char *id = waiting_id(pod_uid, container_name);

	return find(l, id);
}

const struct holding *ledger_find_in_sandbox(const struct ledger *l, const char *sandbox_id)
{
	size_t i = index_find(&l->by_sandbox, (struct key){{sandbox_id, "", ""}});

	return i < l->by_sandbox.nr &&
			       text_equal(l->by_sandbox.at[i]->request.pod.sandbox_id, sandbox_id)
		       ? l->by_sandbox.at[i]
		       : NULL;
}

bool ledger_release(struct ledger *l, const char *container_id)
{
	struct holding *h = find(l, container_id);

	if (h && holding_is_kept(h) && h->state != HOLDING_WAITING &&
		!find_waiting(l, h->request.pod.uid, h->request.ask.name))
		let_wait(l, h);
	else if (h)
		drop(l, h);
	return h;
}

const struct holding *ledger_find_waiting(
	const struct ledger *l, const char *pod_uid, const char *container_name)
{
	return find_waiting(l, pod_uid, container_name);
}

static void hold(struct ledger *l, struct holding *h)
{
	struct decision *d = &h->decision;

	assert(d->admit);
	if (d->exclusive) {
		struct cpuset pods = {0}, others;

		if (holding_is_kept(h))
			pods = ledger_held_by_pod(l, h->request.pod.uid, h);
		others = cpuset_minus(l->held, &pods);
		assert(!cpuset_intersects(&others, &d->cpus) &&
			!cpuset_intersects(&l->left, &d->cpus) &&
			!cpuset_intersects(&l->pool, &d->cpus));
		l->held = cpuset_or(l->held, &d->cpus);
	} else if (!ledger_is_of_pool(l, &d->cpus)) {
		d->cpus = l->pool;
	}
	assert(!cpuset_intersects(&l->held, &d->left_on));
	l->left = cpuset_or(l->left, &d->left_on);
	memory_hold(&l->memory, d->blocks, d->nr_blocks);
	enter(l, h);
}

void ledger_make_way(struct ledger *l, const struct request *req, const struct decision *d)
{
	struct holding *waiting;

	(void)ledger_release(l, req->container_id);
	waiting = d->source == SOURCE_HELD ? find_waiting(l, req->pod.uid, req->ask.name) : NULL;
	if (waiting)
		drop(l, waiting);
}

void ledger_commit(struct ledger *l, const struct request *req, const struct decision *d)
{
	struct holding *h = holding_new(req->container_id, req, d);

	h->state = HOLDING_TENTATIVE;
	h->starting = true;
	ledger_make_way(l, req, d);
	hold(l, h);
}

void ledger_hold(struct ledger *l, const struct request *req, const struct decision *d)
{
	auto_free char *id = waiting_id(req->pod.uid, req->ask.name);
	struct holding *before = find(l, id);

	if (before)
		drop(l, before);
	hold(l, holding_new(id, req, d));
}

static bool has_ended_before(const struct holding *h, const struct holding *started)
{
	return holding_is_kept(h) && h->request.ask.kind == CONTAINER_INIT &&
	       h->request.ask.place < started->request.ask.place;
}

void ledger_set_live(struct ledger *l, const char *container_id)
{
	struct holding *started = find(l, container_id);

	if (!started || started->state == HOLDING_WAITING)
		return;
	started->state = HOLDING_LIVE;
	for (size_t i = index_find(&l->by_name, (struct key){{started->request.pod.uid, "", ""}});
		i < l->by_name.nr &&
		text_equal(l->by_name.at[i]->request.pod.uid, started->request.pod.uid);
		i++) {
		struct decision *d = &l->by_name.at[i]->decision;

		if (!has_ended_before(l->by_name.at[i], started))
			continue;
		memory_release(&l->memory, d->blocks, d->nr_blocks);
		d->nr_blocks = 0;
	}
}

void ledger_set_misplaced(struct ledger *l, const char *container_id, bool misplaced)
{
	struct holding *h = find(l, container_id);

	if (!h || h->misplaced == misplaced)
		return;
	h->misplaced = misplaced;
	l->nr_misplaced += misplaced ? 1 : (size_t)-1;
}

void ledger_set_starting(struct ledger *l, const char *container_id, bool starting)
{
	struct holding *h = find(l, container_id);

	if (h)
		h->starting = starting;
}

void ledger_age(struct ledger *l, const char *container_id)
{
	struct holding *h = find(l, container_id);

	if (h)
		h->aged = true;
}

size_t ledger_nr_misplaced(const struct ledger *l)
{
	return l->nr_misplaced;
}
