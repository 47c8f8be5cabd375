#ifndef NUMAFIT_TEST_LEASES_RIG_H
#define NUMAFIT_TEST_LEASES_RIG_H

#include <numafit/leases.h>

#include "core_machine.h"
#include "core_random.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Leases of tokens on a machine of eight nodes, and containers that come for them. */

enum { GRACE_MS = 1000, START_MS = 5000 };

struct rig {
	struct topo *t;
	struct settings s;
	struct leases *l;
	int64_t now_ms;
};

static inline struct rig *rig_new(void)
{
	struct rig *g = calloc(1, sizeof *g);

	g->t = machine_of_eight();
	g->s = settings_of(POLICY_RESTRICTED);
	g->l = leases_new(g->t, &g->s);
	g->now_ms = START_MS;
	return g;
}

static inline void sound(const struct rig *g)
{
	struct err e;

	if (leases_check(g->l, &e))
		fail_msg("%s", e.text);
}

static inline void rig_free(struct rig *g)
{
	sound(g);
	leases_free(g->l);
	free(g->t);
	free(g);
}

static inline struct tokenset tokens_of(const struct rig *g, const char *text)
{
	struct tokenset s;

	assert_int_equal(tokenset_parse(&s, &g->t->ids, text, NULL), 0);
	return s;
}

static inline struct lease_user user_of(const char *id, const char *pod, const char *name)
{
	const struct request req = {.container_id = id,
		.ask.name = name,
		.pod = {.uid = pod, .ns = "default", .name = pod}};
	struct lease_user u;

	assert_int_equal(lease_user_of(&req, &u, NULL), 0);
	return u;
}

static inline int give_out(
	struct leases *l, int64_t now_ms, const struct tokenset *tokens, uint64_t *name)
{
	uint64_t fresh;
	int rc = leases_may_allocate(l, now_ms, tokens, &fresh, NULL);

	if (!rc)
		*name = leases_allocate(l, now_ms, tokens, fresh);
	return rc;
}

/* PodResources shows these of the leased ones. */
static inline unsigned give_up(struct leases *l, int64_t now_ms, const struct tokenset *shown)
{
	struct tokenset seen = {0}, leased, claimed, stale;

	leases_tokens(l, &leased, &claimed);
	tokenset_each (k, shown)
		if (tokenset_has(&leased, k))
			tokenset_add(&seen, k);
	seen = leases_news(l, &seen);
	assert_int_equal(leases_adopt(l, now_ms, &seen, NULL), 0);
	stale = leases_stale(l, now_ms, GRACE_MS, shown);
	leases_give_up(l, &stale);
	return tokenset_count(&stale);
}

/* What the kubelet puts on the container. */
static inline const char *allocate(struct rig *g, const char *tokens, char *annotation)
{
	struct tokenset s = tokens_of(g, tokens);
	uint64_t name = 0;

	assert_int_equal(give_out(g->l, g->now_ms, &s, &name), 0);
	sound(g);
	return lease_annotation(name, &s, &g->t->ids, annotation);
}
struct part {
	unsigned nr; /* 0: there is no such container */
	struct tokenset tokens;
	char annotation[LEASE_TEXT_MAX], id[16];
	bool runs;
};

#endif
