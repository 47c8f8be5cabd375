#ifndef NUMAFIT_TEST_ENGINE_LIFE_RIG_H
#define NUMAFIT_TEST_ENGINE_LIFE_RIG_H

#include <numafit/engine.h>

#include "core_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A node whose engine is asked as a runtime asks it. */

struct node {
	struct topo *t;
	struct settings s;
	struct engine *g, *folded;
	struct update_list ups;
	bool failing;
	char last_cause[32];
};

static inline int fold(void *ctx, const struct record *r, struct err *e)
{
	struct node *n = ctx;

	if (n->failing)
		return err_set(e, 28, "journal: no space left on device");
	(void)strncpy(n->last_cause, r->cause, sizeof n->last_cause - 1);
	return engine_replay(n->folded, r, e);
}

static inline struct node *node_new(enum topology_policy policy)
{
	struct node *n = calloc(1, sizeof *n);
	const struct engine_hooks hooks = {.ctx = n, .record = fold};

	n->t = machine_of_eight();
	n->s = settings_of(policy);
	n->g = engine_new(n->t, &n->s, &hooks);
	n->folded = engine_new(n->t, &n->s, &hooks);
	return n;
}

static inline void node_free(struct node *n)
{
	const struct ledger *a = engine_ledger(n->g), *b = engine_ledger(n->folded);
	struct err e;

	if (ledger_check(a, &e) || ledger_check(b, &e))
		fail_msg("%s", e.text);
	assert_int_equal(ledger_count(a), ledger_count(b));
	assert_true(cpuset_equal(&ledger_view(a)->held, &ledger_view(b)->held));
	assert_true(cpuset_equal(&ledger_view(a)->pool, &ledger_view(b)->pool));
	vec_fini(&n->ups);
	engine_free(n->g);
	engine_free(n->folded);
	free(n->t);
	free(n);
}

static inline struct decision create(struct node *n, const struct request *req)
{
	struct decision d;

	engine_create(n->g, 0, (struct request[]){*req}, &d, &n->ups);
	vec_fini(&n->ups);
	if (d.admit)
		engine_live(n->g, 0, req, NULL);
	return d;
}

static inline struct cpuset list(const char *text)
{
	struct cpuset c;

	assert_int_equal(cpuset_parse(&c, text, strlen(text), NULL), 0);
	return c;
}

static inline void assert_updated(struct node *n, const char *id)
{
	engine_take_updates(n->g, &n->ups);
	assert_int_equal(n->ups.nr, id ? 1 : 0);
	if (id)
		assert_string_equal(n->ups.at[0].container_id, id);
	vec_fini(&n->ups);
}

#endif
