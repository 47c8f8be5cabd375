#ifndef NUMAFIT_TEST_CORE_TOKENS_H
#define NUMAFIT_TEST_CORE_TOKENS_H

#include <numafit/engine.h>

#include "core_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* An engine whose kubelet gives out tokens; what it records is folded into a second one, which must
 * come to the same. */

enum { MINUTE_MS = 60 * 1000, NODES = 8, PER_NODE = 8 };

struct node {
	struct topo *t;
	struct settings s;
	struct engine *g, *folded;
	int64_t now_ms;
	bool failing;
	enum token_owner owner; /* of whatever somebody comes with, by PodResources */
	unsigned records[NR_RECORD_OPS];
};

static inline int fold(void *ctx, const struct record *r, struct err *e)
{
	struct node *n = ctx;

	if (n->failing && r->op != RECORD_RELEASE && r->op != RECORD_LIVE &&
		r->op != RECORD_POD_GONE)
		return err_set(e, 28, "journal: no space left on device");
	n->records[r->op]++;
	return engine_replay(n->folded, r, e);
}

static inline enum token_owner owner_of(void *ctx, const struct request *req)
{
	const struct node *n = ctx;

	(void)req;
	return n->owner;
}

static inline struct node *node_new(enum topology_policy policy)
{
	struct node *n = calloc(1, sizeof *n);
	const struct engine_hooks hooks = {.ctx = n, .record = fold, .owner = owner_of};

	n->t = machine_of_eight();
	n->s = settings_of(policy);
	n->s.device_plugin = true;
	n->s.reclaim_after_ms = 2 * MINUTE_MS;
	n->now_ms = 5000;
	n->g = engine_new(n->t, &n->s, &hooks);
	n->folded = engine_new(n->t, &n->s, &hooks);
	return n;
}

static inline void same_leases(const struct ledger *a, const struct ledger *b)
{
	struct lease x, y;
	size_t at = 0, bt = 0;

	while (leases_next(ledger_view(a)->leases, &at, &x)) {
		assert_true(leases_next(ledger_view(b)->leases, &bt, &y));
		assert_memory_equal(&x, &y, sizeof x);
	}
	assert_false(leases_next(ledger_view(b)->leases, &bt, &y));
}

static inline void sound(const struct node *n)
{
	const struct ledger *a = engine_ledger(n->g), *b = engine_ledger(n->folded);
	struct err e;

	if (ledger_check(a, &e) || ledger_check(b, &e))
		fail_msg("%s", e.text);
	assert_int_equal(ledger_count(a), ledger_count(b));
	assert_true(cpuset_equal(&ledger_view(a)->held, &ledger_view(b)->held));
	assert_true(cpuset_equal(&ledger_view(a)->pool, &ledger_view(b)->pool));
	same_leases(a, b);
}

static inline int into(void *ctx, const struct record *r, struct err *e)
{
	return engine_replay(ctx, r, e);
}

/* What a journal that starts anew would lead to. */
static inline void comes_back(struct node *n)
{
	struct engine *again = engine_new(n->t, &n->s, &(const struct engine_hooks){0});
	struct err e;

	if (engine_dump(n->g, n->now_ms, into, again, &e))
		fail_msg("%s", e.text);
	same_leases(engine_ledger(n->g), engine_ledger(again));
	assert_int_equal(ledger_check(engine_ledger(again), NULL), 0);
	engine_free(again);
}

static inline void node_free(struct node *n)
{
	sound(n);
	comes_back(n);
	engine_free(n->g);
	engine_free(n->folded);
	free(n->t);
	free(n);
}

static inline struct tokenset tokens_of(const struct node *n, const char *text)
{
	struct tokenset s;

	assert_int_equal(tokenset_parse(&s, &n->t->ids, text, NULL), 0);
	return s;
}

static inline int allocate(struct node *n, const char *tokens, char *annotation, struct err *e)
{
	struct tokenset s = tokens_of(n, tokens);
	int rc = engine_allocate(n->g, n->now_ms, &s, annotation, e);

	sound(n);
	return rc;
}

static inline struct decision create(struct node *n, const struct request *req)
{
	struct update_list ups = {0};
	struct request known = *req;
	struct decision d;

	known.owner = req->allocated ? n->owner : TOKENS_NOT_ASKED;
	engine_create(n->g, n->now_ms, &known, &d, &ups);
	vec_fini(&ups);
	if (d.admit) {
		engine_live(n->g, n->now_ms, req, NULL);
		engine_started(n->g, n->now_ms, req->container_id);
	}
	sound(n);
	return d;
}

static inline void stop(struct node *n, const char *id)
{
	struct update_list ups = {0};

	engine_release(n->g, n->now_ms, "stop", id, &ups);
	vec_fini(&ups);
	sound(n);
}

static inline void pod_gone(struct node *n, const char *uid)
{
	engine_release_pod(n->g, n->now_ms, "pod-gone",
		&(const struct pod){.sandbox_id = uid, .uid = uid, .ns = "", .name = ""});
	sound(n);
}

static inline unsigned see(struct node *n, const char *shown)
{
	struct tokenset s = tokens_of(n, shown);
	unsigned nr = engine_see_tokens(n->g, n->now_ms, &s);

	sound(n);
	return nr;
}

/* A Guaranteed container that has come with that annotation. */
static inline struct request ask_with(const char *id, unsigned cpus, const char *annotation)
{
	struct request r = ask(id, QOS_GUARANTEED, cpus * 1000, 0);

	r.allocated = annotation;
	return r;
}

static inline unsigned count_on(const struct node *n, const struct cpuset *cpus, unsigned node)
{
	return cpuset_count_and(cpus, &n->t->node[node].cpus);
}

#endif
