#ifndef SHARES_RIG_H
#define SHARES_RIG_H

#include <numafit/shares.h>

#include "engine_rig.h"

/* Claims on the machine of eight NUMA nodes, of which CPUs 0 and 32 are reserved. */

enum { CLAIM_SHARES = 4 };

struct claimed {
	struct resource_claim claim;
	struct claim_share share[CLAIM_SHARES];
	char uid[ID_MAX], device[CLAIM_SHARES][ID_MAX];
	const char *pod[2];
};

/* A claim for that pod with one share on that NUMA node. */
static inline struct claimed *claim_on(struct claimed *c, const char *uid, const char *pod,
	unsigned node, unsigned cpus, uint64_t bytes)
{
	*c = (struct claimed){.pod = {pod}};
	(void)snprintf(c->uid, sizeof c->uid, "%s", uid);
	(void)snprintf(c->device[0], sizeof c->device[0], "numa%u", node);
	c->share[0] = (struct claim_share){.request = "r",
		.pool = "n1",
		.device = c->device[0],
		.cpus = cpus,
		.nr_memory = bytes ? 1 : 0,
		.memory = {{0, bytes}}};
	c->claim = (struct resource_claim){.uid = c->uid,
		.ns = "shop",
		.name = c->uid,
		.nr = 1,
		.share = c->share,
		.nr_pods = 1,
		.pod_uid = c->pod};
	return c;
}

static inline int prepare(struct node *n, const struct claimed *c, struct decision *d)
{
	struct err e = {0};
	int rc = engine_prepare(n->g, 0, &c->claim, d, &e);

	check(n);
	return rc;
}

static inline int unprepare(struct node *n, const char *uid)
{
	int rc = engine_unprepare(n->g, 0, uid, NULL);

	check(n);
	return rc;
}

/* A container of that pod comes with the claims' CDI devices, places 0. */
static inline struct decision create_with(
	struct node *n, const char *pod, const char *name, const char *shares)
{
	struct running *r = &n->run[n->nr];
	struct update_list ups = {0};
	struct decision d;

	assert_true(n->nr < RUNNING_MAX);
	(void)snprintf(r->id, sizeof r->id, "c%u", n->next_id++);
	(void)snprintf(r->name, sizeof r->name, "%s", pod);
	r->req = ask(r->id, QOS_BEST_EFFORT, 0, 0);
	r->req.pod.uid = r->req.pod.name = r->req.pod.sandbox_id = r->name;
	r->req.ask.name = name;
	r->req.shares = shares;
	r->req.cpus = r->cpus;
	r->req.mems = r->mems;
	r->req.created_at_ns = n->next_id;
	r->cpus[0] = r->mems[0] = '\0';
	r->placed = (struct placement){0};
	engine_create(n->g, 0, &r->req, &d, &ups);
	apply(n, &ups);
	if (d.admit) {
		set_cpuset(n, r, &d.cpus, d.mems);
		r->placed.cpus = d.cpus;
		r->placed.mems = d.mems;
		/* the rig's oracle: those that may share a claim's CPUs are no strangers */
		const struct holding *h = ledger_find(engine_ledger(n->g), shares);
		r->placed.exclusive = d.exclusive && !(h && h->request.for_many);
		engine_started(n->g, 0, r->id);
		n->nr++;
	}
	check(n);
	return d;
}

static inline void stop_last(struct node *n)
{
	struct update_list ups = {0};

	engine_release(n->g, 0, "stop", n->run[--n->nr].id, &ups);
	apply(n, &ups);
	check(n);
}

static inline const struct ledger_view *view(const struct node *n)
{
	return ledger_view(engine_ledger(n->g));
}

/* What was recorded leads to the same. */
static inline void assert_folded(const struct node *n)
{
	const struct ledger_view *now = view(n), *folded = ledger_view(engine_ledger(n->folded));

	assert_true(cpuset_equal(&now->held, &folded->held));
	assert_true(cpuset_equal(&now->pool, &folded->pool));
	assert_int_equal(now->nr_shares, folded->nr_shares);
	assert_int_equal(ledger_count(engine_ledger(n->g)), ledger_count(engine_ledger(n->folded)));
	nodeset_each (node, n->t->nodes)
		assert_true(now->memory.node[node].free[0] == folded->memory.node[node].free[0]);
}

#endif
