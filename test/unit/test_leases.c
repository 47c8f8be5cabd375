/* Who may come for which tokens, and when they are given up: single rules, then a kubelet at
 * random.
 */
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

enum { GRACE_MS = 1000, START_MS = 5000 };

struct rig {
	struct topo *t;
	struct settings s;
	struct leases *l;
	int64_t now_ms;
};

static struct rig *rig_new(void)
{
	struct rig *g = calloc(1, sizeof *g);

	g->t = machine_of_eight();
	g->s = settings_of(POLICY_RESTRICTED);
	g->l = leases_new(g->t, &g->s);
	g->now_ms = START_MS;
	return g;
}

static void sound(const struct rig *g)
{
	struct err e;

	if (leases_check(g->l, &e))
		fail_msg("%s", e.text);
}

static void rig_free(struct rig *g)
{
	sound(g);
	leases_free(g->l);
	free(g->t);
	free(g);
}

static struct tokenset tokens_of(const struct rig *g, const char *text)
{
	struct tokenset s;

	assert_int_equal(tokenset_parse(&s, &g->t->ids, text, NULL), 0);
	return s;
}

static struct lease_user user_of(const char *id, const char *pod, const char *name)
{
	const struct request req = {.container_id = id,
		.ask.name = name,
		.pod = {.uid = pod, .ns = "default", .name = pod}};
	struct lease_user u;

	assert_int_equal(lease_user_of(&req, &u, NULL), 0);
	return u;
}

static int give_out(struct leases *l, int64_t now_ms, const struct tokenset *tokens, uint64_t *name)
{
	uint64_t fresh;
	int rc = leases_may_allocate(l, now_ms, tokens, &fresh, NULL);

	if (!rc)
		*name = leases_allocate(l, now_ms, tokens, fresh);
	return rc;
}

/* PodResources shows these of the leased ones. */
static unsigned give_up(struct leases *l, int64_t now_ms, const struct tokenset *shown)
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
static const char *allocate(struct rig *g, const char *tokens, char *annotation)
{
	struct tokenset s = tokens_of(g, tokens);
	uint64_t name = 0;

	assert_int_equal(give_out(g->l, g->now_ms, &s, &name), 0);
	sound(g);
	return lease_annotation(name, &s, &g->t->ids, annotation);
}

static int come(struct rig *g, const char *annotation, const char *id, const char *pod,
	const char *name, uint64_t nr, struct err *e)
{
	struct lease_user u = user_of(id, pod, name);
	struct lease_claim c;
	int rc = leases_examine(g->l, annotation, &u, nr, &c, e);

	if (!rc)
		leases_claim(g->l, &u, &c);
	sound(g);
	return rc;
}

static void is_leased(const struct rig *g, const char *leased, const char *claimed)
{
	struct tokenset all, taken;
	char text[TOKENSET_TEXT_MAX];

	leases_tokens(g->l, &all, &taken);
	assert_string_equal(tokenset_format(&all, &g->t->ids, text, sizeof text), leased);
	assert_string_equal(tokenset_format(&taken, &g->t->ids, text, sizeof text), claimed);
}

static unsigned reclaim(struct rig *g, const char *shown)
{
	struct tokenset s = tokens_of(g, shown);
	unsigned nr = give_up(g->l, g->now_ms, &s);

	sound(g);
	return nr;
}

static void a_container_claims_the_lease_that_its_annotation_names(void **state)
{
	struct rig *g = rig_new();
	struct lease_user u = user_of("c1", "pod", "main");
	struct lease_claim c;
	char text[LEASE_TEXT_MAX];

	(void)state;
	allocate(g, "0=0-2;3=5", text);
	assert_string_equal(text, "v1:5000:0=0-2;3=5");
	assert_int_equal(leases_examine(g->l, text, &u, 4, &c, NULL), 0);
	is_leased(g, "0=0-2;3=5", ""); /* to examine changes nothing */
	assert_true(c.nodes.bits == 0x9 && c.on[0] == 3 && c.on[3] == 1 && c.on[1] == 0);
	leases_claim(g->l, &u, &c);
	is_leased(g, "0=0-2;3=5", "0=0-2;3=5");
	assert_int_equal(leases_examine(g->l, text, &u, 4, &c, NULL), 0); /* asked once more */
	assert_true(leases_release(g->l, g->now_ms, "c1"));
	assert_false(leases_release(g->l, g->now_ms, "c1"));
	assert_false(leases_release(g->l, g->now_ms, "c2"));
	is_leased(g, "0=0-2;3=5", "");
	rig_free(g);
}

static void a_wrong_annotation_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *annotation, *id, *pod, *name;
		uint64_t nr;
		int rc;
		const char *says;
	} table[] = {
		{"v1:5000:0=0-1", "c2", "b", "main", 2, -EBUSY,
			"container main of pod default/a runs on CPU token node0-0000"},
		{"v1:5000:0=0-1", "c2", "a", "other", 2, -EBUSY, "runs on"},
		{"v1:5000:0=1", "c2", "b", "main", 1, -EBUSY, "node0-0001"},
		{"v1:5001:0=2-3", "c2", "b", "main", 3, -ERANGE,
			"gave the container 2 of numafit.io/cpu, and it asks for 3 whole CPUs"},
		{"v1:5001:0=2-3", "c2", "b", "main", 0, -ERANGE, "asks for 0"},
		{"v1:5000:0=2-3", "c2", "b", "main", 2, -ENOENT,
			"its tokens are of lease 5001 now"},
		{"v1:5001:0=2-4", "c2", "b", "main", 3, -ENOENT, "node0-0004"},
		{"v1:5002:0=4", "c2", "b", "main", 1, -ENOENT,
			"CPU token node0-0004 is not leased"},
		{"v1:5002:0=2-3", "c2", "b", "main", 2, -ENOENT, "of lease 5001"},
		{"v1:5001:", "c2", "b", "main", 0, -EINVAL, "no tokens"},
		{"v1:5001:0=3,2", "c2", "b", "main", 2, -EINVAL, "are written"},
		{"v1:5001:9=1", "c2", "b", "main", 2, -ENOENT, "NUMA node 9"},
		{"v1:05001:0=2-3", "c2", "b", "main", 2, -EINVAL, "lease"},
		{"v1::0=2-3", "c2", "b", "main", 2, -EINVAL, "lease"},
		{"v1:5001", "c2", "b", "main", 2, -EINVAL, "lease"},
		{"v1:9223372036854775808:0=1", "c2", "b", "main", 1, -EINVAL, "lease"},
		{"v2:5001:0=2-3", "c2", "b", "main", 2, -EINVAL, "numafit.io/allocated"},
		{"", "c2", "b", "main", 2, -EINVAL, "v1:"},
		{"v1:5001:0=2-3", "c2", "b", "main", 2, 0, ""},
		{"v1:5000:0=0-1", "c3", "a", "main", 2, -EBUSY,
			"runs on"}, /* its successor waits */
	};
	struct rig *g = rig_new();
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(come(g, allocate(g, "0=0-1", text), "c1", "a", "main", 2, NULL), 0);
	allocate(g, "0=2-3", text);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct err e = {0};
		int rc = come(g, table[i].annotation, table[i].id, table[i].pod, table[i].name,
			table[i].nr, &e);

		if (rc != table[i].rc || !strstr(e.text, table[i].says))
			fail_msg("case %zu: %d, %s", i, rc, e.text);
	}
	assert_true(leases_release(g->l, g->now_ms, "c1"));
	is_leased(g, "0=0-3", "0=2-3");
	assert_int_equal(come(g, "v1:5000:0=0-1", "c3", "a", "main", 2, NULL), 0);
	is_leased(g, "0=0-3", "0=0-3");
	rig_free(g);
}

static void a_running_container_keeps_its_tokens_when_they_are_allocated_again(void **state)
{
	struct rig *g = rig_new();
	struct tokenset shown = tokens_of(g, "0=0-1");
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(leases_adopt(g->l, g->now_ms, &shown, NULL), 0);
	assert_int_equal(come(g, "v1:4000:0=0-1", "c1", "a", "main", 2, NULL), 0);
	(void)allocate(g, "0=0-1", text); /* a static pod that the kubelet sees twice */
	assert_int_equal(come(g, "v1:4000:0=0-1", "c1", "a", "main", 2, NULL), 0);
	assert_true(leases_release(g->l, g->now_ms, "c1"));
	assert_int_equal(come(g, "v1:4000:0=0-1", "c2", "a", "main", 2, NULL), -ENOENT);
	assert_int_equal(come(g, text, "c2", "a", "main", 2, NULL), 0);
	rig_free(g);
}

static void tokens_that_are_allocated_again_stay_in_their_lease(void **state)
{
	static const struct {
		const char *tokens, *annotation;
	} table[] = {
		{"0=0-3", "v1:5000:0=0-3"},
		{"0=0-3", "v1:5000:0=0-3"},         /* a static pod, seen twice */
		{"0=0,2", "v1:5000:0=0,2"},         /* part of an init container's */
		{"0=1,3;1=0", "v1:5001:0=1,3;1=0"}, /* the rest, and one more */
		{"2=0", "v1:5002:2=0"},
		{"0=1;2=0", "v1:5002:0=1;2=0"},
		{"0=1;1=0", "v1:5001:0=1;1=0"},
		{"0=0", "v1:5000:0=0"},
	};
	struct rig *g = rig_new();
	char text[LEASE_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		assert_string_equal(allocate(g, table[i].tokens, text), table[i].annotation);
	is_leased(g, "0=0-3;1=0;2=0", "");
	assert_int_equal(leases_name_of(g->l, (struct token){0, 3}), 5000);
	assert_int_equal(leases_name_of(g->l, (struct token){1, 0}), 5001);
	assert_int_equal(leases_name_of(g->l, (struct token){2, 0}), 5002);
	assert_int_equal(leases_name_of(g->l, (struct token){5, 0}), 0);
	g->now_ms += 60000;
	assert_string_equal(allocate(g, "5=1", text), "v1:65000:5=1");
	rig_free(g);
}

static void later_containers_may_claim_the_tokens_of_an_init_container(void **state)
{
	struct rig *g = rig_new();
	char init[LEASE_TEXT_MAX], one[LEASE_TEXT_MAX], two[LEASE_TEXT_MAX];

	(void)state;
	allocate(g, "0=0-3", init);
	allocate(g, "0=0,2", one);
	allocate(g, "0=1;1=0", two);
	assert_int_equal(come(g, init, "i", "pod", "init", 4, NULL), 0);
	assert_int_equal(come(g, one, "a", "pod", "one", 2, NULL), -EBUSY);
	assert_true(leases_release(g->l, g->now_ms, "i"));
	assert_int_equal(come(g, one, "a", "pod", "one", 2, NULL), 0);
	assert_int_equal(come(g, two, "b", "pod", "two", 2, NULL), 0);
	is_leased(g, "0=0-3;1=0", "0=0-2;1=0");
	assert_int_equal(come(g, init, "i2", "pod", "init", 4, NULL), -EBUSY);
	/* PodResources never shows what only the init container had: it stays with its pod */
	g->now_ms += 10 * GRACE_MS;
	assert_int_equal(reclaim(g, "0=0-2;1=0"), 0);
	assert_true(leases_release(g->l, g->now_ms, "a"));
	assert_true(leases_release(g->l, g->now_ms, "b"));
	assert_int_equal(come(g, init, "i2", "pod", "init", 4, NULL), 0);
	rig_free(g);
}

static void tokens_that_no_container_has_and_podresources_lacks_are_given_up(void **state)
{
	struct rig *g = rig_new();
	char text[LEASE_TEXT_MAX], kept[LEASE_TEXT_MAX];

	(void)state;
	allocate(g, "0=0-3", text); /* its pod is rejected */
	allocate(g, "0=0-1", kept); /* and some of it goes to another one's container */
	g->now_ms += GRACE_MS;      /* the rest could be an init container's */
	assert_int_equal(reclaim(g, "0=0-1"), 0);
	g->now_ms++;
	assert_int_equal(reclaim(g, "0=0-1"), 2);
	assert_int_equal(come(g, text, "x", "rejected", "main", 4, NULL), -ENOENT);
	assert_int_equal(come(g, kept, "c1", "pod", "main", 2, NULL), 0);
	g->now_ms += 10 * GRACE_MS;
	assert_int_equal(reclaim(g, ""), 0); /* it runs */
	assert_true(leases_release(g->l, g->now_ms, "c1"));
	assert_int_equal(reclaim(g, ""), 0); /* it may come again */
	g->now_ms += 10 * GRACE_MS;
	assert_int_equal(reclaim(g, ""), 0); /* its pod is there, whatever is shown */
	leases_pod_gone(g->l, g->now_ms, "pod");
	g->now_ms += GRACE_MS + 1;
	assert_int_equal(reclaim(g, "0=0"), 1);
	assert_int_equal(reclaim(g, ""), 1); /* shown before, and now no more */
	is_leased(g, "", "");
	rig_free(g);
}

static void a_pod_that_gets_another_sandbox_keeps_its_tokens(void **state)
{
	struct rig *g = rig_new();
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(come(g, allocate(g, "0=0-1", text), "c1", "pod", "main", 2, NULL), 0);
	g->now_ms += 10 * GRACE_MS;
	leases_pod_gone(g->l, g->now_ms, "other");
	is_leased(g, "0=0-1", "0=0-1");
	leases_pod_gone(g->l, g->now_ms, "pod");
	is_leased(g, "0=0-1", "");
	assert_int_equal(reclaim(g, ""), 0);
	assert_int_equal(come(g, text, "c2", "pod", "main", 2, NULL), 0);
	leases_pod_gone(g->l, g->now_ms, "pod");
	g->now_ms += GRACE_MS + 1;
	assert_int_equal(reclaim(g, ""), 2);
	rig_free(g);
}

static void tokens_may_go_to_the_next_pod_before_the_end_of_the_last_one_is_seen(void **state)
{
	struct rig *g = rig_new();
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(come(g, allocate(g, "0=0-1", text), "c1", "old", "main", 2, NULL), 0);
	assert_int_equal(come(g, allocate(g, "0=0-1", text), "c2", "new", "main", 2, NULL), -EBUSY);
	assert_true(leases_release(g->l, g->now_ms, "c1"));
	assert_int_equal(come(g, text, "c2", "new", "main", 2, NULL), 0);
	leases_pod_gone(g->l, g->now_ms, "old");
	is_leased(g, "0=0-1", "0=0-1");
	assert_true(leases_release(g->l, g->now_ms, "c2"));
	(void)allocate(g, "0=0", text); /* for a third pod, which is rejected */
	g->now_ms += GRACE_MS + 1;
	assert_int_equal(reclaim(g, ""), 1);
	is_leased(g, "0=1", "");
	rig_free(g);
}

static void tokens_shown_by_podresources_outlive_a_lost_journal(void **state)
{
	struct rig *g = rig_new();
	struct tokenset shown = tokens_of(g, "0=0-3"), nowhere = {0};
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_string_equal(allocate(g, "0=3", text), "v1:5000:0=3");
	assert_int_equal(leases_adopt(g->l, g->now_ms, &shown, NULL), 0);
	tokenset_add(&nowhere, (struct token){63, 0});
	assert_int_equal(leases_adopt(g->l, g->now_ms, &nowhere, NULL), -ENOENT);
	is_leased(g, "0=0-3", "");
	assert_int_equal(come(g, "v1:4000:0=0-1", "c1", "pod", "main", 2, NULL), 0);
	assert_int_equal(come(g, "v1:4000:0=1-2", "c2", "other", "main", 2, NULL), -EBUSY);
	assert_int_equal(come(g, "v1:4000:0=2-3", "c2", "other", "main", 2, NULL), -ENOENT);
	assert_string_equal(allocate(g, "0=2", text), "v1:5001:0=2"); /* to another one */
	assert_int_equal(come(g, "v1:4000:0=2", "c2", "other", "main", 1, NULL), -ENOENT);
	assert_int_equal(come(g, "v1:5001:0=2", "c2", "other", "main", 1, NULL), 0);
	assert_true(leases_release(g->l, g->now_ms, "c1"));
	leases_pod_gone(g->l, g->now_ms, "pod");
	g->now_ms += GRACE_MS + 1;
	assert_int_equal(reclaim(g, "0=0"), 2); /* 1, and 3, which nobody came for */
	is_leased(g, "0=0,2", "0=2");
	rig_free(g);
}

static void adopted_tokens_wait_as_long_as_they_are_shown(void **state)
{
	struct rig *g = rig_new();
	struct tokenset shown = tokens_of(g, "0=99");

	(void)state;
	assert_int_equal(leases_adopt(g->l, g->now_ms, &shown, NULL), 0);
	assert_int_equal(reclaim(g, "0=99"), 0);
	g->now_ms += 10 * GRACE_MS;
	assert_int_equal(reclaim(g, "0=99"), 0);
	assert_int_equal(reclaim(g, ""), 1); /* its pod went without our knowing of it */
	rig_free(g);
}

static void tokens_that_the_machine_lacks_are_not_leased(void **state)
{
	static const struct {
		const char *tokens;
		int rc;
	} table[] = {{"", -EINVAL}, {"0=8", -ENOENT}, {"0=0;7=7-8", -ENOENT}, {"0=6-7", 0}};
	struct rig *g = rig_new();
	struct topo *fewer = machine_of_eight();

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct tokenset s = tokens_of(g, table[i].tokens);
		uint64_t name = 77;

		assert_int_equal(give_out(g->l, g->now_ms, &s, &name), table[i].rc);
		assert_int_equal(name, table[i].rc ? 77 : START_MS);
	}
	is_leased(g, "0=6-7", ""); /* of the others nothing */
	struct tokenset beyond = {0};
	uint64_t name;
	tokenset_add(&beyond, (struct token){63, 0});
	assert_int_equal(give_out(g->l, g->now_ms, &beyond, &name), -ENOENT);

	cpuset_del(&fewer->node[0].cpus, 35); /* its last one goes offline */
	leases_set_topo(g->l, fewer);
	struct tokenset again = tokens_of(g, "0=6-7"), new = tokens_of(g, "0=5"),
			last = tokens_of(g, "1=7");
	assert_int_equal(give_out(g->l, g->now_ms, &again, &name), 0);
	assert_int_equal(give_out(g->l, g->now_ms, &new, &name), 0);
	leases_give_up(g->l, &again);
	assert_int_equal(give_out(g->l, g->now_ms, &again, &name), -ENOENT);
	assert_int_equal(give_out(g->l, g->now_ms, &last, &name), 0);
	rig_free(g);
	free(fewer);
}

static void leases_read_from_a_journal_are_checked(void **state)
{
	struct rig *g = rig_new();
	struct lease good = {.name = 7,
		.since_ms = 1,
		.claimed = true,
		.user = user_of("c1", "pod", "main"),
		.tokens = tokens_of(g, "0=0-1")};
	struct lease bad[] = {good, good, good, good, good, good, good};
	static const int rc[] = {-EEXIST, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -ENOENT};

	(void)state;
	assert_int_equal(leases_enter(g->l, &good, NULL), 0);
	bad[1].tokens = tokens_of(g, "1=1");
	bad[1].name = (uint64_t)INT64_MAX + 1; /* a time that cannot be */
	bad[2].since_ms = -1;
	bad[3].tokens = tokens_of(g, "");
	bad[4].tokens = tokens_of(g, "1=1");
	bad[4].claimed = false; /* c1 runs */
	bad[5].tokens = tokens_of(g, "1=1");
	bad[5].user = (struct lease_user){0};
	bad[6].tokens = (struct tokenset){0};
	tokenset_add(&bad[6].tokens, (struct token){63, 0});
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(leases_enter(g->l, &bad[i], NULL), rc[i]);
		sound(g);
	}
	is_leased(g, "0=0-1", "0=0-1");
	rig_free(g);
}

static void the_number_of_leases_is_limited(void **state)
{
	struct rig *g = rig_new();
	struct lease part = {.name = 1, .since_ms = 1};
	struct tokenset one = tokens_of(g, "7=7");
	uint64_t name;

	(void)state;
	for (unsigned n = 0; n < LEASES_TOKENS_MAX / CPUSET_BITS; n++)
		for (unsigned i = 0; i < CPUSET_BITS; i++)
			tokenset_add(&part.tokens, (struct token){(uint16_t)n, (uint16_t)i});
	assert_int_equal(leases_enter(g->l, &part, NULL), 0);
	assert_int_equal(give_out(g->l, 1, &one, &name), -ENOSPC);
	assert_int_equal(give_out(g->l, 1, &part.tokens, &name), 0);
	assert_int_equal(leases_adopt(g->l, 1, &one, NULL), -ENOSPC);
	part.tokens = one;
	assert_int_equal(leases_enter(g->l, &part, NULL), -ENOSPC);
	rig_free(g);
}

static void names_longer_than_kubernetes_grants_are_refused(void **state)
{
	char longest[2 * LEASE_NAME_MAX];
	struct request req = {.container_id = "c1", .ask.name = longest};
	struct lease_user u = {.container_id = "before"};

	(void)state;
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_int_equal(lease_user_of(&req, &u, NULL), -ENAMETOOLONG);
	longest[LEASE_NAME_MAX - 1] = '\0';
	req.container_id = "";
	assert_int_equal(lease_user_of(&req, &u, NULL), -EINVAL);
	assert_string_equal(u.container_id, "before");
	req.container_id = "c1";
	assert_int_equal(lease_user_of(&req, &u, NULL), 0);
	assert_string_equal(u.container_name, longest);
	assert_string_equal(u.pod_uid, "");
}

/* Any byte of an annotation changed: never more than was leased, never a crash. */
static void no_other_annotation_gets_any_tokens(void **state)
{
	struct random r = {20261121};
	struct rig *g = rig_new();
	struct lease_user u = user_of("c1", "pod", "main");
	struct tokenset leased = tokens_of(g, "0=0-3;1=2,5"), claimed;
	char good[LEASE_TEXT_MAX], text[LEASE_TEXT_MAX], again[LEASE_TEXT_MAX];
	unsigned admitted = 0;

	(void)state;
	allocate(g, "0=0-3;1=2,5", good);
	for (unsigned i = 0; i < 50000; i++) {
		size_t len = strlen(good);
		struct lease_claim c;

		memcpy(text, good, len + 1);
		for (unsigned k = 1 + random_below(&r, 3); k > 0; k--)
			text[random_below(&r, (unsigned)len + 1)] =
				"0123456789:;=-,v \n\xff"[random_below(&r, 20)];
		text[len] = '\0';
		for (uint64_t nr = 1; nr <= 6; nr++) {
			if (leases_examine(g->l, text, &u, nr, &c, NULL))
				continue;
			admitted++;
			assert_int_equal(tokenset_count(&c.tokens), nr);
			tokenset_each (k, &c.tokens)
				assert_true(tokenset_has(&leased, k));
			assert_string_equal(
				lease_annotation(c.name, &c.tokens, &g->t->ids, again), text);
		}
	}
	assert_true(admitted > 0);
	leases_tokens(g->l, &leased, &claimed);
	assert_int_equal(tokenset_count(&claimed), 0);
	rig_free(g);
}

/* A kubelet at random. It frees tokens without a word, gives an init container's to later ones, and
 * shows no init containers. */
enum { PODS = 6, INIT = 0, APP = 1, PARTS = 2, STEPS = 4000, SEEDS = 12 };
struct part {
	unsigned nr; /* 0: there is no such container */
	struct tokenset tokens;
	char annotation[LEASE_TEXT_MAX], id[16];
	bool runs;
};
struct guest {
	bool there, end_reported;
	bool created; /* one of its containers, once */
	char uid[16];
	int64_t admitted_ms;
	struct part part[PARTS];
};
struct world {
	struct rig *g;
	struct random r;
	struct guest pod[PODS];
	unsigned next_id, rejected, created, reclaimed;
};

static struct tokenset given_out(const struct world *w)
{
	struct tokenset all = {0};

	for (unsigned p = 0; p < PODS; p++)
		for (unsigned i = 0; w->pod[p].there && i < PARTS; i++)
			tokenset_each (k, &w->pod[p].part[i].tokens)
				tokenset_add(&all, k);
	return all;
}

/* Move nr random tokens of *from into *to; how many there were. */
static unsigned take_some(struct random *r, struct tokenset *from, unsigned nr, struct tokenset *to)
{
	unsigned taken = 0;

	for (; taken < nr; taken++) {
		unsigned left = tokenset_count(from);
		unsigned skip = left ? random_below(r, left) : 0;

		if (!left)
			break;
		tokenset_each (k, from) {
			if (skip--)
				continue;
			tokenset_add(to, k);
			cpuset_del(&from->on[k.node], k.number);
			break;
		}
	}
	return taken;
}

static void some_pod_is_admitted(struct world *w)
{
	struct guest *p = &w->pod[random_below(&w->r, PODS)];
	struct tokenset held = given_out(w), free_ones = {0}, reusable;

	if (p->there)
		return;
	if (p->created && !p->end_reported) /* its place is needed */
		leases_pod_gone(w->g->l, w->g->now_ms, p->uid);
	memset(p, 0, sizeof *p);
	(void)snprintf(p->uid, sizeof p->uid, "pod%u", w->next_id++);
	for (uint16_t n = 0; n < 8; n++)
		for (uint16_t i = 0; i < 8; i++)
			if (!tokenset_has(&held, (struct token){n, i}))
				tokenset_add(&free_ones, (struct token){n, i});
	p->part[INIT].nr = random_below(&w->r, 2) * (1 + random_below(&w->r, 12));
	p->part[APP].nr = random_below(&w->r, 8);
	for (unsigned i = 0; i < PARTS; i++) {
		struct part *c = &p->part[i];
		uint64_t name;

		reusable = p->part[INIT].tokens;
		unsigned got = i == APP ? take_some(&w->r, &reusable, c->nr, &c->tokens) : 0;
		got += take_some(&w->r, &free_ones, c->nr - got, &c->tokens);
		c->nr = got;
		if (!got)
			continue;
		assert_int_equal(give_out(w->g->l, w->g->now_ms, &c->tokens, &name), 0);
		(void)lease_annotation(name, &c->tokens, &w->g->t->ids, c->annotation);
	}
	p->admitted_ms = w->g->now_ms;
	p->there = random_chance(&w->r, 70); /* else somebody else refuses it */
	w->rejected += !p->there;
}

static void create(struct world *w, struct guest *p, unsigned i)
{
	struct part *c = &p->part[i];
	struct lease_user u;
	struct lease_claim claim;
	struct err e = {0};

	(void)snprintf(c->id, sizeof c->id, "c%u", w->next_id++);
	u = user_of(c->id, p->uid, i == INIT ? "init" : "app");
	assert_int_equal(
		leases_examine(w->g->l, c->annotation, &u, c->nr + 1, &claim, NULL), -ERANGE);
	if (leases_examine(w->g->l, c->annotation, &u, c->nr, &claim, &e))
		fail_msg("%s of %s: %s", c->id, p->uid, e.text);
	leases_claim(w->g->l, &u, &claim);
	assert_memory_equal(&claim.tokens, &c->tokens, sizeof c->tokens);
	u = user_of("forger", "forger", "main");
	assert_int_equal(leases_examine(w->g->l, c->annotation, &u, c->nr, &claim, NULL), -EBUSY);
	c->runs = p->created = true;
	w->created++;
}

static void end(struct world *w, struct part *c)
{
	if (c->runs)
		assert_true(leases_release(w->g->l, w->g->now_ms, c->id));
	c->runs = false;
}

/* The next container of the pod, or the same one once more. */
static void go_on(struct world *w, struct guest *p)
{
	unsigned i = random_below(&w->r, PARTS);

	if (!p->there)
		return;
	if (!p->created)
		i = p->part[INIT].nr ? INIT : APP;
	if (!p->part[i].nr)
		return;
	if (p->part[i].runs && random_chance(&w->r, 50)) {
		end(w, &p->part[i]);
		return;
	}
	for (unsigned c = 0; c < PARTS; c++)
		end(w, &p->part[c]);
	create(w, p, i);
}

static void some_pod_ends(struct world *w)
{
	struct guest *p = &w->pod[random_below(&w->r, PODS)];

	for (unsigned i = 0; p->there && i < PARTS; i++)
		end(w, &p->part[i]);
	if (p->there || random_chance(&w->r, 30)) {
		p->there = false;
		p->end_reported = random_chance(&w->r, 50);
		if (p->end_reported)
			leases_pod_gone(w->g->l, w->g->now_ms, p->uid);
	}
}

static void some_sandbox_is_replaced(struct world *w)
{
	struct guest *p = &w->pod[random_below(&w->r, PODS)];

	if (!p->there || !p->created)
		return;
	for (unsigned i = 0; i < PARTS; i++)
		p->part[i].runs = false;
	leases_pod_gone(w->g->l, w->g->now_ms, p->uid);
	p->admitted_ms = w->g->now_ms;
	p->created = false; /* comes again, init containers first, within the grace */
}

static void podresources_is_asked(struct world *w)
{
	struct tokenset shown = {0};

	for (unsigned p = 0; p < PODS; p++) {
		struct guest *q = &w->pod[p];

		if (q->there && !q->created && w->g->now_ms - q->admitted_ms >= GRACE_MS)
			go_on(w, q); /* no pod takes longer to its init container */
		if (q->there)
			tokenset_each (k, &q->part[APP].tokens)
				tokenset_add(&shown, k);
	}
	w->reclaimed += give_up(w->g->l, w->g->now_ms, &shown);
}

static void are_same(const struct lease *a, const struct lease *b)
{
	assert_true(a->name == b->name && a->since_ms == b->since_ms);
	assert_true(a->claimed == b->claimed && a->shown == b->shown);
	assert_memory_equal(&a->user, &b->user, sizeof a->user);
	assert_memory_equal(&a->tokens, &b->tokens, sizeof a->tokens);
}

/* We die, and read our journal. */
static void we_start_anew(struct world *w)
{
	struct leases *back = leases_new(w->g->t, &w->g->s);
	struct lease *a = calloc(2, sizeof *a), *b = a + 1;
	size_t at = 0, from = 0;

	while (leases_next(w->g->l, &at, a))
		assert_int_equal(leases_enter(back, a, NULL), 0);
	at = 0;
	while (leases_next(w->g->l, &at, a)) {
		assert_true(leases_next(back, &from, b));
		are_same(a, b);
	}
	assert_false(leases_next(back, &from, b));
	leases_free(w->g->l);
	w->g->l = back;
	free(a);
}

static void world_is_sound(const struct world *w)
{
	struct tokenset leased, claimed, held = given_out(w), running = {0};

	sound(w->g);
	leases_tokens(w->g->l, &leased, &claimed);
	for (unsigned p = 0; p < PODS; p++)
		for (unsigned i = 0; i < PARTS; i++)
			if (w->pod[p].part[i].runs)
				tokenset_each (k, &w->pod[p].part[i].tokens) {
					assert_false(tokenset_has(&running, k));
					tokenset_add(&running, k);
				}
	tokenset_each (k, &held)
		assert_true(tokenset_has(&leased, k));
	tokenset_each (k, &running)
		assert_true(tokenset_has(&claimed, k));
	assert_int_equal(tokenset_count(&claimed), tokenset_count(&running));
}

static void live_on(struct world *w)
{
	unsigned dice = random_below(&w->r, 100);

	w->g->now_ms += random_below(&w->r, 60);
	if (dice < 25)
		some_pod_is_admitted(w);
	else if (dice < 65)
		go_on(w, &w->pod[random_below(&w->r, PODS)]);
	else if (dice < 80)
		some_pod_ends(w);
	else if (dice < 85)
		some_sandbox_is_replaced(w);
	else if (dice < 97)
		podresources_is_asked(w);
	else
		we_start_anew(w);
}

static void a_random_kubelet_neither_loses_nor_leaks_tokens(void **state)
{
	const struct tokenset none = {0};

	(void)state;
	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		struct world *w = calloc(1, sizeof *w);
		struct tokenset leased, claimed;

		w->g = rig_new();
		w->r.state = seed * UINT64_C(0x9e3779b97f4a7c15);
		print_message("seed %u: ", seed);
		for (unsigned i = 0; i < STEPS; i++) {
			live_on(w);
			world_is_sound(w);
		}
		assert_true(w->rejected > 50 && w->created > 200 && w->reclaimed > 50);
		for (unsigned p = 0; p < PODS; p++) {
			for (unsigned i = 0; i < PARTS; i++)
				end(w, &w->pod[p].part[i]);
			leases_pod_gone(w->g->l, w->g->now_ms, w->pod[p].uid);
		}
		(void)give_up(w->g->l, w->g->now_ms + GRACE_MS + 1, &none);
		leases_tokens(w->g->l, &leased, &claimed);
		assert_int_equal(tokenset_count(&leased), 0);
		print_message("%u pods refused elsewhere, %u containers, %u tokens given up\n",
			w->rejected, w->created, w->reclaimed);
		rig_free(w->g);
		free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_claims_the_lease_that_its_annotation_names),
		cmocka_unit_test(a_wrong_annotation_is_refused_with_a_reason),
		cmocka_unit_test(
			a_running_container_keeps_its_tokens_when_they_are_allocated_again),
		cmocka_unit_test(tokens_that_are_allocated_again_stay_in_their_lease),
		cmocka_unit_test(later_containers_may_claim_the_tokens_of_an_init_container),
		cmocka_unit_test(tokens_that_no_container_has_and_podresources_lacks_are_given_up),
		cmocka_unit_test(a_pod_that_gets_another_sandbox_keeps_its_tokens),
		cmocka_unit_test(
			tokens_may_go_to_the_next_pod_before_the_end_of_the_last_one_is_seen),
		cmocka_unit_test(tokens_shown_by_podresources_outlive_a_lost_journal),
		cmocka_unit_test(adopted_tokens_wait_as_long_as_they_are_shown),
		cmocka_unit_test(tokens_that_the_machine_lacks_are_not_leased),
		cmocka_unit_test(leases_read_from_a_journal_are_checked),
		cmocka_unit_test(the_number_of_leases_is_limited),
		cmocka_unit_test(names_longer_than_kubernetes_grants_are_refused),
		cmocka_unit_test(no_other_annotation_gets_any_tokens),
		cmocka_unit_test(a_random_kubelet_neither_loses_nor_leaks_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
