/* Who may come for which tokens, and when they are given up: single rules, then a kubelet at
 * random.
 */
#include "leases_rig.h"

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

static uint64_t name_of(const struct leases *l, struct token k)
{
	struct tokenset one = {0};

	tokenset_add(&one, k);
	return leases_latest(l, &one);
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
		{"2=0", "v1:5002:2=0"}, {"0=1;2=0", "v1:5002:0=1;2=0"},
		{"0=1;1=0", "v1:5001:0=1;1=0"}, {"0=0", "v1:5000:0=0"}, {"0=4", "v1:5003:0=4"},
		{"0=4;2=0", "v1:5003:0=4;2=0"}, /* the latest, wherever its token is */
	};
	struct rig *g = rig_new();
	char text[LEASE_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		assert_string_equal(allocate(g, table[i].tokens, text), table[i].annotation);
	is_leased(g, "0=0-4;1=0;2=0", "");
	assert_int_equal(name_of(g->l, (struct token){0, 3}), 5000);
	assert_int_equal(name_of(g->l, (struct token){1, 0}), 5001);
	assert_int_equal(name_of(g->l, (struct token){2, 0}), 5002);
	assert_int_equal(name_of(g->l, (struct token){5, 0}), 0);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
