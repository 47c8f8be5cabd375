#include <numafit/ledger.h>

#include <numafit/cpus.h>
#include <numafit/text.h>
#include <numafit/vec.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

/* What an index sorts by: up to three strings. */
struct key {
	const char *part[3];
};

/* Entries are found by id and by pod and name, each through its own sorted array: a create costs
 * the same on a full node as on an empty one. */
struct index {
	struct key (*key_of)(const struct holding *h);
	VEC(struct holding *);
};

struct ledger {
	const struct topo *t;
	const struct settings *s;
	struct cpuset held, pool;
	struct memory_state memory;
	struct index by_id, by_name;
	size_t nr_misplaced;
};

static struct key id_key(const struct holding *h)
{
	return (struct key){{h->container_id, "", ""}};
}

static struct key name_key(const struct holding *h)
{
	return (struct key){{h->pod_uid, h->container_name, h->container_id}};
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
	free(h->container_id);
	free(h->container_name);
	free(h->sandbox_id);
	free(h->pod_uid);
	free(h->pod_ns);
	free(h->pod_name);
	free(h);
}

static struct holding *holding_new(const struct request *req, const struct decision *d)
{
	struct holding *h = xcalloc(1, sizeof *h);

	h->container_id = xstrdup(req->container_id);
	h->container_name = xstrdup(req->container_name);
	h->sandbox_id = xstrdup(req->pod.sandbox_id);
	h->pod_uid = xstrdup(req->pod.uid);
	h->pod_ns = xstrdup(req->pod.ns);
	h->pod_name = xstrdup(req->pod.name);
	h->qos = req->pod.qos;
	h->cpu_milli = req->cpu_milli;
	h->cpu_limit_milli = req->cpu_limit_milli;
	h->nr_memory = req->nr_memory;
	memcpy(h->memory, req->memory, sizeof h->memory);
	h->created_at_ns = req->created_at_ns;
	h->decision = *d;
	return h;
}

struct request holding_request(const struct holding *h)
{
	struct request req = {
		.container_id = h->container_id,
		.container_name = h->container_name,
		.pod = {.sandbox_id = h->sandbox_id,
			.uid = h->pod_uid,
			.ns = h->pod_ns,
			.name = h->pod_name,
			.qos = h->qos},
		.created_at_ns = h->created_at_ns,
		.cpu_milli = h->cpu_milli,
		.cpu_limit_milli = h->cpu_limit_milli,
		.nr_memory = h->nr_memory,
		.cpus = "",
		.mems = "",
	};

	memcpy(req.memory, h->memory, sizeof req.memory);
	return req;
}

struct ledger *ledger_new(const struct topo *t, const struct settings *s)
{
	struct ledger *l = xcalloc(1, sizeof *l);

	l->t = t;
	l->s = s;
	l->pool = ledger_shareable_cpus(l);
	l->by_id.key_of = id_key;
	l->by_name.key_of = name_key;
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
	free(l);
}

const struct topo *ledger_topo(const struct ledger *l)
{
	return l->t;
}

struct cpuset ledger_free_cpus(const struct ledger *l)
{
	return cpuset_minus(cpuset_minus(l->t->cpus, &l->held), &l->s->reserved_cpus);
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

const struct cpuset *ledger_pool(const struct ledger *l)
{
	return &l->pool;
}

const struct memory_state *ledger_memory(const struct ledger *l)
{
	return &l->memory;
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

	return i < l->by_id.nr && text_equal(l->by_id.at[i]->container_id, container_id)
		       ? l->by_id.at[i]
		       : NULL;
}

const struct holding *ledger_find(const struct ledger *l, const char *container_id)
{
	return find(l, container_id);
}

const struct holding *ledger_find_named(const struct ledger *l, const char *pod_uid,
	const char *container_name, const char *not_container_id)
{
	for (size_t i = index_find(&l->by_name, (struct key){{pod_uid, container_name, ""}});
		i < l->by_name.nr; i++) {
		const struct holding *h = l->by_name.at[i];

		if (!text_equal(h->pod_uid, pod_uid) ||
			!text_equal(h->container_name, container_name))
			break;
		if (!text_equal(h->container_id, not_container_id))
			return h;
	}
	return NULL;
}

const struct holding *ledger_find_of_pod(const struct ledger *l, const char *pod_uid)
{
	size_t i = index_find(&l->by_name, (struct key){{pod_uid, "", ""}});

	return i < l->by_name.nr && text_equal(l->by_name.at[i]->pod_uid, pod_uid)
		       ? l->by_name.at[i]
		       : NULL;
}

bool ledger_release(struct ledger *l, const char *container_id)
{
	struct holding *h = find(l, container_id);

	if (!h)
		return false;
	if (h->decision.exclusive)
		l->held = cpuset_minus(l->held, &h->decision.cpus);
	memory_release(&l->memory, h->decision.blocks, h->decision.nr_blocks);
	l->nr_misplaced -= h->misplaced;
	index_remove(&l->by_id, h);
	index_remove(&l->by_name, h);
	holding_free(h);
	return true;
}

void ledger_commit(struct ledger *l, const struct request *req, const struct decision *d)
{
	struct holding *h = holding_new(req, d);

	assert(d->admit);
	(void)ledger_release(l, req->container_id);
	if (d->exclusive) {
		assert(!cpuset_intersects(&l->held, &d->cpus) &&
			!cpuset_intersects(&l->pool, &d->cpus));
		l->held = cpuset_or(l->held, &d->cpus);
	}
	memory_hold(&l->memory, d->blocks, d->nr_blocks);
	index_add(&l->by_id, h);
	index_add(&l->by_name, h);
}

void ledger_set_state(struct ledger *l, const char *container_id, enum holding_state state)
{
	struct holding *h = find(l, container_id);

	if (h)
		h->state = state;
}

void ledger_set_misplaced(struct ledger *l, const char *container_id, bool misplaced)
{
	struct holding *h = find(l, container_id);

	if (!h || h->misplaced == misplaced)
		return;
	h->misplaced = misplaced;
	l->nr_misplaced += misplaced ? 1 : (size_t)-1;
}

size_t ledger_nr_misplaced(const struct ledger *l)
{
	return l->nr_misplaced;
}

static const struct holding *holder_of(const struct ledger *l, unsigned cpu)
{
	for (size_t i = 0; i < l->by_id.nr; i++)
		if (l->by_id.at[i]->decision.exclusive &&
			cpuset_has(&l->by_id.at[i]->decision.cpus, cpu))
			return l->by_id.at[i];
	return NULL;
}

static int cpus_fit(const struct ledger *l, const struct holding *self, const struct cpuset *cpus,
	struct err *e)
{
	struct cpuset others = self && self->decision.exclusive
				       ? cpuset_minus(l->held, &self->decision.cpus)
				       : l->held;

	cpuset_each (cpu, cpus) {
		if (!cpuset_has(&l->t->cpus, cpu))
			return err_set(e, EINVAL, "the machine has no CPU %u", cpu);
		if (cpuset_has(&l->s->reserved_cpus, cpu))
			return err_set(e, EBUSY, "CPU %u is reserved", cpu);
		if (cpuset_has(&others, cpu)) {
			const struct holding *h = holder_of(l, cpu);

			assert(h);
			return err_set(e, EBUSY, "CPU %u is held by container %s of pod %s/%s", cpu,
				h->container_name, h->pod_ns, h->pod_name);
		}
	}
	if (cpuset_empty(cpus))
		return err_set(e, EINVAL, "exclusive CPUs, but none are given");
	struct cpuset left = cpuset_minus(cpuset_minus(ledger_shareable_cpus(l), &others), cpus);
	return cpuset_empty(&left) ? err_set(e, EBUSY, "no CPU would be left for the shared pool")
				   : 0;
}

static int memory_fits(const struct ledger *l, const struct memory_block *b, struct err *e)
{
	uint64_t free = 0;

	if (b->kind >= l->t->nr_kinds || nodeset_empty(b->nodes) ||
		!nodeset_within(b->nodes, l->t->nodes))
		return err_set(
			e, EINVAL, "memory on NUMA nodes or of a kind that the machine lacks");
	nodeset_each (n, b->nodes) {
		const struct memory_node *node = &l->memory.node[n];

		if (node->assignments && !nodeset_equal(node->group, b->nodes))
			return err_set(e, EBUSY,
				"memory of NUMA node %u serves other containers together",
				l->t->ids.id[n]);
		free += node->free[b->kind];
	}
	if (free < b->bytes)
		return err_set(e, EBUSY, "%llu bytes of memory where only %llu are free",
			(unsigned long long)b->bytes, (unsigned long long)free);
	return 0;
}

int ledger_fits(
	const struct ledger *l, const char *container_id, const struct decision *d, struct err *e)
{
	const struct holding *self = find(l, container_id);
	int rc = d->exclusive ? cpus_fit(l, self, &d->cpus, e) : 0;

	for (unsigned i = 0; i < d->nr_blocks && !rc; i++)
		rc = memory_fits(l, &d->blocks[i], e);
	return rc;
}

static unsigned pool_minimum(const struct ledger *l)
{
	return l->s->shared_pool_minimum ? l->s->shared_pool_minimum : 1;
}

static unsigned min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* CPUs of the node that the pool gives up ahead of need: those that an exclusive container would
 * get next. Half of what nobody holds stays with the shared containers. */
static struct cpuset ahead_of_need(
	const struct ledger *l, const struct cpuset *held, const struct cpuset *pool, unsigned node)
{
	struct cpuset here =
		cpuset_minus(cpuset_and(*pool, &l->t->node[node].cpus), &l->s->reserved_cpus);
	struct cpuset not_held =
			      cpuset_minus(cpuset_minus(ledger_shareable_cpus(l), &l->held), held),
		      ahead = {0};
	unsigned half = cpuset_count(&not_held) / 2, left = cpuset_count(pool);
	struct cpus_how how = cpus_how(l->t, &l->s->cpu_options);
	unsigned step = min(
		min(l->s->shared_pool_step, cpuset_count(&here)), left > half ? left - half : 0);

	if (left >= pool_minimum(l) + step)
		(void)cpus_take(l->t, &here, step, &how, &ahead, NULL);
	return ahead;
}

struct cpuset ledger_pool_without(const struct ledger *l, const struct cpuset *held)
{
	struct cpuset pool = cpuset_minus(l->pool, held);

	nodeset_each (n, l->t->nodes_with_cpus) {
		struct cpuset here = cpuset_and(l->t->node[n].cpus, held);

		if (!cpuset_intersects(&here, &l->pool))
			continue;
		struct cpuset ahead = ahead_of_need(l, held, &pool, n);
		pool = cpuset_minus(pool, &ahead);
	}
	if (cpuset_count(&pool) >= pool_minimum(l))
		return pool;
	/* too few: what lay idle comes back */
	pool = cpuset_minus(ledger_shareable_cpus(l), &l->held);
	return cpuset_minus(pool, held);
}

struct cpuset ledger_pool_grown(const struct ledger *l, const struct cpuset *released)
{
	struct cpuset held = cpuset_minus(l->held, released), pool = l->pool;
	struct cpus_how how = cpus_how(l->t, &l->s->cpu_options);

	nodeset_each (n, l->t->nodes_with_cpus) {
		struct cpuset idle = cpuset_minus(
				      cpuset_minus(l->t->node[n].cpus, &held), &l->pool),
			      kept;

		if (cpuset_count(&idle) <= 2 * l->s->shared_pool_step ||
			cpus_take(l->t, &idle, l->s->shared_pool_step, &how, &kept, NULL))
			continue;
		idle = cpuset_minus(idle, &kept);
		pool = cpuset_or(pool, &idle);
	}
	return pool;
}

static int pool_is_sound(const struct ledger *l, const struct cpuset *pool, struct err *e)
{
	struct cpuset shareable = ledger_shareable_cpus(l);
	struct cpuset reserved = cpuset_and(l->s->reserved_cpus, &shareable);

	if (cpuset_intersects(pool, &l->held))
		return err_set(e, EINVAL, "the shared pool has CPUs that containers hold");
	if (!cpuset_within(pool, &shareable) || !cpuset_within(&reserved, pool))
		return err_set(e, EINVAL,
			"the shared pool lacks reserved CPUs or has CPUs that it must not have");
	return cpuset_empty(pool) ? err_set(e, EINVAL, "the shared pool is empty") : 0;
}

int ledger_set_pool(struct ledger *l, const struct cpuset *pool, struct err *e)
{
	int rc = pool_is_sound(l, pool, e);

	if (rc || cpuset_equal(&l->pool, pool))
		return rc;
	l->pool = *pool;
	for (size_t i = 0; i < l->by_id.nr; i++)
		if (!l->by_id.at[i]->decision.exclusive)
			l->by_id.at[i]->decision.cpus = *pool;
	return 0;
}

/* The memory state that the entries add up to, whatever order they came in. */
static int memory_is_sound(const struct ledger *l, struct err *e)
{
	struct memory_state sum;

	memory_init(&sum, l->t, l->s);
	for (size_t i = 0; i < l->by_id.nr; i++)
		memory_hold(
			&sum, l->by_id.at[i]->decision.blocks, l->by_id.at[i]->decision.nr_blocks);
	nodeset_each (n, l->t->nodes) {
		const struct memory_node *have = &l->memory.node[n], *want = &sum.node[n];

		if (have->assignments != want->assignments)
			return err_set(e, EINVAL,
				"NUMA node %u: %u memory assignments, its containers have %u",
				l->t->ids.id[n], have->assignments, want->assignments);
		for (unsigned k = 0; k < l->t->nr_kinds; k++)
			if (have->free[k] + have->reserved[k] != have->allocatable[k])
				return err_set(e, EINVAL,
					"NUMA node %u: memory of kind %u does not add up",
					l->t->ids.id[n], k);
	}
	for (unsigned k = 0; k < l->t->nr_kinds; k++) {
		uint64_t have = 0, want = 0;

		nodeset_each (n, l->t->nodes) {
			have += l->memory.node[n].reserved[k];
			want += sum.node[n].reserved[k];
		}
		if (have != want)
			return err_set(e, EINVAL,
				"memory of kind %u: %llu bytes booked, containers hold %llu", k,
				(unsigned long long)have, (unsigned long long)want);
	}
	return 0;
}

int ledger_check(const struct ledger *l, struct err *e)
{
	struct cpuset seen = {0};

	for (size_t i = 0; i < l->by_id.nr; i++) {
		const struct holding *h = l->by_id.at[i];

		if (i && compare_keys(id_key(l->by_id.at[i - 1]), id_key(h)) >= 0)
			return err_set(e, EINVAL, "container %s is out of order", h->container_id);
		if (!h->decision.exclusive)
			continue;
		if (cpuset_intersects(&seen, &h->decision.cpus))
			return err_set(e, EINVAL,
				"container %s holds a CPU that another one holds too",
				h->container_id);
		if (cpuset_intersects(&l->s->reserved_cpus, &h->decision.cpus))
			return err_set(
				e, EINVAL, "container %s holds a reserved CPU", h->container_id);
		seen = cpuset_or(seen, &h->decision.cpus);
	}
	if (!cpuset_equal(&seen, &l->held))
		return err_set(e, EINVAL, "the held CPUs are not those that containers hold");
	int rc = pool_is_sound(l, &l->pool, e);
	return rc ? rc : memory_is_sound(l, e);
}
