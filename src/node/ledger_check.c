/* Would it fit, and is it sound? */
#include "ledger_state.h"

#include <numafit/leases.h>
#include <numafit/shares.h>
#include <numafit/text.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

static int check_is_held(const struct ledger *l, unsigned cpu, struct err *e)
{
	const struct holding *h = NULL;

	for (size_t i = 0; i < l->by[BY_ID].nr && !h; i++)
		if (l->by[BY_ID].at[i].h->decision.exclusive &&
			holding_is_booked(l->by[BY_ID].at[i].h) &&
			cpuset_has(&l->by[BY_ID].at[i].h->decision.cpus, cpu))
			h = l->by[BY_ID].at[i].h;
	assert(h);
	return err_set(e, EBUSY, "CPU %u is held by container %s of pod %s/%s", cpu,
		h->request.ask.name, h->request.pod.ns, h->request.pod.name);
}

/* Whether CPUs are there to be held, when of those that are held only `others` count, and nobody is
 * left on them. */
static int cpus_fit(const struct ledger *l, const struct cpuset *others, const struct cpuset *left,
	const struct cpuset *cpus, struct err *e)
{
	cpuset_each (cpu, cpus) {
		if (!cpuset_has(&l->now.topo->cpus, cpu))
			return err_set(e, EINVAL, "the machine has no CPU %u", cpu);
		if (cpuset_has(&l->s->reserved_cpus, cpu))
			return err_set(e, EBUSY, "CPU %u is reserved", cpu);
		if (cpuset_has(others, cpu))
			return check_is_held(l, cpu, e);
		if (cpuset_has(left, cpu))
			return err_set(
				e, EBUSY, "a container that is left as it runs is on CPU %u", cpu);
	}
	if (cpuset_empty(cpus))
		return err_set(e, EINVAL, "exclusive CPUs, but none are given");
	struct cpuset pool = cpuset_minus(cpuset_minus(ledger_shareable_cpus(l), others), cpus);
	return cpuset_empty(&pool) ? err_set(e, EBUSY, "no CPU would be left for the shared pool")
				   : 0;
}

static int memory_fits(const struct ledger *l, const struct holding *self,
	const struct memory_block *b, struct err *e)
{
	uint64_t free = 0;

	if (b->kind >= l->now.topo->nr_kinds || nodeset_empty(b->nodes) ||
		!nodeset_within(b->nodes, l->now.topo->nodes))
		return err_set(
			e, EINVAL, "memory on NUMA nodes or of a kind that the machine lacks");
	/* what *self holds of that kind on just these nodes it would give up */
	for (unsigned i = 0; self && i < self->decision.nr_blocks; i++) {
		const struct memory_block *own = &self->decision.blocks[i];

		if (own->kind == b->kind && nodeset_equal(own->nodes, b->nodes))
			free += own->bytes;
	}
	nodeset_each (n, b->nodes) {
		const struct memory_node *node = &l->now.memory.node[n];

		if (node->assignments && !nodeset_equal(node->group, b->nodes))
			return err_set(e, EBUSY,
				"memory of NUMA node %u serves other containers together",
				l->now.topo->ids.id[n]);
		free += node->free[b->kind];
	}
	if (free < b->bytes)
		return err_set(e, EBUSY, "%llu bytes of memory where only %llu are free",
			(unsigned long long)b->bytes, (unsigned long long)free);
	return 0;
}

/* Whether one of the two takes over CPUs from the other, whose container has ended by then. */
static bool takes_over(const struct holding *h, enum container_kind kind, unsigned place)
{
	return holding_is_kept(h) && h->request.ask.place != place &&
	       (h->request.ask.place < place ? h->request.ask.kind : kind) == CONTAINER_INIT;
}

/* Whether of the two containers of a pod, neither of which has CPUs of the node for itself, one may
 * run on CPUs of the pod that the other one has as well: both share them; or, as in the kubelet, an
 * init container has them meanwhile, for itself, beside sidecars that share them. */
static bool may_share_in_pod(
	const struct holding *h, const struct request *req, const struct decision *d)
{
	bool alone = request_exclusive_cpus(&h->request), other_alone = request_exclusive_cpus(req);
	bool init = h->request.ask.kind == CONTAINER_INIT || req->ask.kind == CONTAINER_INIT;

	return !cpuset_intersects(&h->decision.cpus, &d->cpus) || (!alone && !other_alone) ||
	       (init && !(alone && other_alone)) || takes_over(h, req->ask.kind, req->ask.place);
}

/* Whether what a container is to have is its pod's, and of that nothing that another one has for
 * itself. */
static int within_pod_fits(const struct ledger *l, const struct holding *self,
	const struct request *req, const struct decision *d, struct err *e)
{
	const struct holding *pod = ledger_pod_of(l, req);

	if (!pod || d->source != SOURCE_HELD ||
		(d->exclusive &&
			!(pod->decision.exclusive && cpuset_within(&d->cpus, &pod->decision.cpus))))
		return err_set(e, EINVAL, "container %s: its pod %s/%s has no such CPUs as one",
			req->ask.name, req->pod.ns, req->pod.name);
	for (size_t i = 0; d->exclusive && i < l->by[BY_ID].nr; i++) {
		const struct holding *h = l->by[BY_ID].at[i].h;

		if (h != self && h->decision.within_pod && h->decision.exclusive &&
			text_equal(h->request.pod.uid, req->pod.uid) &&
			!text_equal(h->request.ask.name, req->ask.name) &&
			!may_share_in_pod(h, req, d))
			return err_set(e, EBUSY,
				"containers %s and %s of pod %s/%s have a CPU that one of them has "
				"for itself",
				req->ask.name, h->request.ask.name, req->pod.ns, req->pod.name);
	}
	return 0;
}

/* Whether the CPUs that a container is to have are those of shares that it comes with, and nothing
 * is booked for it beside them. */
static int within_claims_fits(
	const struct ledger *l, const struct request *req, const struct decision *d, struct err *e)
{
	const struct cpuset shared = shares_cpus(l, req->shares);

	if (!req->shares || d->nr_blocks || (d->exclusive && !cpuset_within(&d->cpus, &shared)))
		return err_set(e, EINVAL, "container %s of pod %s/%s: its claims have no such CPUs",
			req->ask.name, req->pod.ns, req->pod.name);
	return 0;
}

static int within_fits(const struct ledger *l, const struct holding *self,
	const struct request *req, const struct decision *d, struct err *e)
{
	return d->within_claims ? within_claims_fits(l, req, d, e)
				: within_pod_fits(l, self, req, d, e);
}

static int all_fits(const struct ledger *l, const struct holding *self, const struct cpuset *others,
	const struct decision *d, struct err *e)
{
	const struct cpuset left = ledger_left_by_others(l, self);
	const struct cpuset both = cpuset_and(*others, &d->left_on); /* no other may hold any */
	int rc = 0;

	if (d->exclusive)
		rc = cpus_fit(l, others, &left, &d->cpus, e);
	else if (!cpuset_empty(&both))
		rc = check_is_held(l, cpuset_next(&both, 0), e);
	for (unsigned i = 0; i < d->nr_blocks && !rc; i++)
		rc = memory_fits(l, self, &d->blocks[i], e);
	return rc;
}

static bool is_the_same(const struct decision *a, const struct decision *b)
{
	return a->exclusive == b->exclusive && nodeset_equal(a->mems, b->mems) &&
	       (!a->exclusive || cpuset_equal(&a->cpus, &b->cpus)) && a->nr_blocks == b->nr_blocks;
}

/* Whether a part of a pod may hold, beside the pod's entry, what that one holds. */
static bool may_share_with(const struct holding *h, const struct request *req)
{
	bool before = h->state == HOLDING_WAITING && text_equal(h->request.ask.name, req->ask.name);

	return before || takes_over(h, req->ask.kind, req->ask.place);
}

/* All held CPUs but those of *self and those that a part of a pod may hold beside others of it.
 * Entries of different pods have no CPU in common, so that only the pod's are looked at. */
static struct cpuset held_by_others(
	const struct ledger *l, const struct holding *self, const struct request *req)
{
	const struct cpuset alone = self ? ledger_held_alone_by(l, self) : (struct cpuset){0};
	struct cpuset of_pod = {0}, of_its_others = {0};

	for (size_t i = ledger_first_of_pod(l, req->pod.uid); i < l->by[BY_NAME].nr; i++) {
		const struct holding *h = l->by[BY_NAME].at[i].h;

		if (!text_equal(h->request.pod.uid, req->pod.uid))
			break;
		if (!h->decision.exclusive || !holding_is_booked(h))
			continue;
		of_pod = cpuset_or(of_pod, &h->decision.cpus);
		if (h != self && !may_share_with(h, req))
			of_its_others = cpuset_or(of_its_others, &h->decision.cpus);
	}
	const struct cpuset of_other_pods =
		cpuset_minus(cpuset_minus(l->now.held, &of_pod), &alone);
	return cpuset_or(of_other_pods, &of_its_others);
}

int ledger_fits(
	const struct ledger *l, const struct request *req, const struct decision *d, struct err *e)
{
	const struct holding *self = ledger_find(l, req->container_id);
	struct cpuset others =
		d->source == SOURCE_HELD ? held_by_others(l, self, req) : l->now.held;

	if (self) {
		struct cpuset own = ledger_released_by(l, self);
		others = cpuset_minus(others, &own);
	}
	if (!decision_is_booked(d) && (self || d->source != SOURCE_HELD))
		return within_fits(l, self, req, d, e);
	if (self || d->source != SOURCE_HELD)
		return all_fits(l, self, &others, d, e);
	const struct holding *waiting = ledger_find_waiting(l, req->pod.uid, req->ask.name);
	if (!waiting || !is_the_same(&waiting->decision, d))
		return err_set(e, EINVAL, "nothing like it is held for container %s of pod %s/%s",
			req->ask.name, req->pod.ns, req->pod.name);
	return 0;
}

int ledger_may_hold(
	const struct ledger *l, const struct request *req, const struct decision *d, struct err *e)
{
	struct cpuset others = held_by_others(l, NULL, req);
	const struct holding *before = /* what a share's claim is reserved for may change */
		nodeset_empty(req->ask.share_of) ? NULL
						 : shares_find(l, req->pod.uid, req->ask.place);

	if (!decision_is_booked(d))
		return within_fits(l, NULL, req, d, e);
	return all_fits(l, before, &others, d, e);
}

/* The memory state that the entries add up to, whatever order they came in. */
static int memory_is_sound(const struct ledger *l, struct err *e)
{
	struct memory_state sum;

	memory_init(&sum, l->now.topo, l->s);
	for (size_t i = 0; i < l->by[BY_ID].nr; i++)
		if (holding_is_booked(l->by[BY_ID].at[i].h))
			memory_hold(&sum, l->by[BY_ID].at[i].h->decision.blocks,
				l->by[BY_ID].at[i].h->decision.nr_blocks);
	nodeset_each (n, l->now.topo->nodes) {
		const struct memory_node *have = &l->now.memory.node[n], *want = &sum.node[n];

		if (have->assignments != want->assignments)
			return err_set(e, EINVAL,
				"NUMA node %u: %u memory assignments, its containers have %u",
				l->now.topo->ids.id[n], have->assignments, want->assignments);
		for (unsigned k = 0; k < l->now.topo->nr_kinds; k++)
			if (have->free[k] + have->reserved[k] != have->allocatable[k])
				return err_set(e, EINVAL,
					"NUMA node %u: memory of kind %u does not add up",
					l->now.topo->ids.id[n], k);
	}
	for (unsigned k = 0; k < l->now.topo->nr_kinds; k++) {
		uint64_t have = 0, want = 0;

		nodeset_each (n, l->now.topo->nodes) {
			have += l->now.memory.node[n].reserved[k];
			want += sum.node[n].reserved[k];
		}
		if (have != want)
			return err_set(e, EINVAL,
				"memory of kind %u: %llu bytes booked, containers hold %llu", k,
				(unsigned long long)have, (unsigned long long)want);
	}
	return 0;
}

/* Whether whoever holds a CPU beside h is of its pod, and one of the two an init container that
 * leaves it to the other. */
static bool shares_as_a_pod_may(const struct ledger *l, const struct holding *h)
{
	for (size_t i = 0; i < l->by[BY_ID].nr; i++) {
		const struct holding *o = l->by[BY_ID].at[i].h;

		if (o == h || !o->decision.exclusive || !holding_is_booked(o) ||
			!cpuset_intersects(&o->decision.cpus, &h->decision.cpus))
			continue;
		if (!holding_is_kept(h) || !text_equal(o->request.pod.uid, h->request.pod.uid) ||
			!takes_over(o, h->request.ask.kind, h->request.ask.place))
			return false;
	}
	return true;
}

/* Who has a lease runs on its tokens, and nobody else runs on any. */
static int leases_are_sound(const struct ledger *l, struct err *e)
{
	size_t nr = 0;

	for (size_t i = 0; i < l->by[BY_ID].nr; i++) {
		const struct holding *h = l->by[BY_ID].at[i].h;
		bool has = h->decision.lease;

		if (has != !!leases_count_of(l->now.leases, h->request.container_id))
			return err_set(e, EINVAL, "container %s %s", h->request.container_id,
				has ? "has a lease whose tokens it does not run on"
				    : "runs on tokens without a lease");
		nr += has;
	}
	if (nr != leases_nr_running(l->now.leases))
		return err_set(e, EINVAL, "somebody runs on tokens who is not here");
	return leases_check(l->now.leases, e);
}

/* What is left has no CPUs of its own, and nobody has those that it is on. */
static int left_is_sound(const struct ledger *l, struct err *e)
{
	struct cpuset all = {0};

	for (size_t i = 0; i < l->by[BY_ID].nr; i++) {
		const struct decision *d = &l->by[BY_ID].at[i].h->decision;

		if ((decision_is_left(d) && d->exclusive) ||
			(!decision_is_left(d) && !cpuset_empty(&d->left_on)))
			return err_set(e, EINVAL,
				"container %s is left as it runs, and is not at once",
				l->by[BY_ID].at[i].h->request.container_id);
		all = cpuset_or(all, &d->left_on);
	}
	if (!cpuset_equal(&all, &l->now.left))
		return err_set(
			e, EINVAL, "the CPUs that are left are not those that containers run on");
	return cpuset_intersects(&all, &l->now.held)
		       ? err_set(e, EINVAL,
				 "a container holds a CPU that another one is left to run on")
		       : 0;
}

/* Nothing that an entry has is borrowed from an event (holding_new()). */
static int entries_are_their_own(const struct ledger *l, struct err *e)
{
	for (size_t i = 0; i < l->by[BY_ID].nr; i++) {
		const struct request *r = &l->by[BY_ID].at[i].h->request;

		if (r->ask.advice || r->ask.cpus_on || r->ask.nr_devices || r->ask.odd_wish ||
			r->pod.container || r->pod.own || r->pod.attached || r->pod.annotations)
			return err_set(e, EINVAL, "container %s has a part of an event's memory",
				r->container_id);
	}
	return 0;
}

static int moving_is_sound(const struct ledger *l, struct err *e)
{
	const struct moving *m = l->now.moving;
	const struct holding *h = m ? ledger_find(l, m->container_id) : NULL;

	if (!m)
		return 0;
	const struct cpuset both = cpuset_or(m->from.cpus, &m->to.cpus);
	return h && h->state != HOLDING_WAITING && cpuset_equal(&h->decision.cpus, &both)
		       ? 0
		       : err_set(e, EINVAL,
				 "container %s is being moved, and has not what it comes from and "
				 "goes to",
				 m->container_id);
}

static int counts_are_right(const struct ledger *l, struct err *e)
{
	size_t nr_shared = 0, nr_unbounded = 0, nr_shares = 0, nr_without = 0;
	bool exact;

	for (size_t i = 0; i < l->by[BY_ID].nr; i++) {
		const struct holding *h = l->by[BY_ID].at[i].h;
		bool shares = h->state != HOLDING_WAITING && holding_is_in_pool(h);

		nr_shared += shares;
		nr_unbounded += shares && !ledger_is_bounded(l, h, &exact);
		nr_shares += holding_is_share(h);
		nr_without += holding_lacks_shares(h);
	}
	if (nr_shares != l->now.nr_shares || nr_without != l->now.nr_without_shares)
		return err_set(e, EINVAL,
			"there are %zu shares, and %zu containers without theirs; counted are %zu and %zu",
			nr_shares, nr_without, l->now.nr_shares, l->now.nr_without_shares);
	return nr_shared == l->now.nr_shared && nr_unbounded == l->now.nr_unbounded
		       ? 0
		       : err_set(e, EINVAL,
				 "%zu containers share the pool, %zu of them unbounded; counted are %zu and %zu",
				 nr_shared, nr_unbounded, l->now.nr_shared, l->now.nr_unbounded);
}

int ledger_check(const struct ledger *l, struct err *e)
{
	struct cpuset seen = {0};

	for (size_t i = 0; i < l->by[BY_ID].nr; i++) {
		const struct holding *h = l->by[BY_ID].at[i].h;

		if (i && strcmp(l->by[BY_ID].at[i - 1].h->request.container_id,
				 h->request.container_id) >= 0)
			return err_set(
				e, EINVAL, "container %s is out of order", h->request.container_id);
		if (!h->decision.exclusive && !cpuset_empty(&h->decision.cpus))
			return err_set(e, EINVAL, "container %s has CPUs beside the shared pool's",
				h->request.container_id);
		if (!holding_is_booked(h)) {
			int rc = within_fits(l, h, &h->request, &h->decision, e);

			if (rc)
				return rc;
			continue;
		}
		if (!h->decision.exclusive)
			continue;
		if (cpuset_intersects(&seen, &h->decision.cpus) && !shares_as_a_pod_may(l, h))
			return err_set(e, EINVAL,
				"container %s holds a CPU that another one holds too",
				h->request.container_id);
		if (cpuset_intersects(&l->s->reserved_cpus, &h->decision.cpus))
			return err_set(e, EINVAL, "container %s holds a reserved CPU",
				h->request.container_id);
		seen = cpuset_or(seen, &h->decision.cpus);
	}
	if (!cpuset_equal(&seen, &l->now.held))
		return err_set(e, EINVAL, "the held CPUs are not those that containers hold");
	int rc = ledger_pool_is_sound(l, &l->now.pool, e);
	if (!rc)
		rc = entries_are_their_own(l, e);
	if (!rc)
		rc = counts_are_right(l, e);
	if (!rc)
		rc = moving_is_sound(l, e);
	if (!rc)
		rc = left_is_sound(l, e);
	if (!rc)
		rc = memory_is_sound(l, e);
	return rc ? rc : leases_are_sound(l, e);
}
