/* Tokens after something was lost: a journal, an event, a kubelet's restart, or an annotation that
 * was forged. */
#include "engine_tokens_cases.h"

static void leases_of_a_lost_journal_come_back_from_podresources(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask_with("web", 2, "v1:4000:0=0-1");

	(void)state;
	web.cpus = "0,32";
	web.mems = "0-7";
	const struct placement placed = {.exclusive = true, .cpus = {{1 | 1ULL << 32}}};
	engine_live(n->g, n->now_ms, &web, &placed); /* found running */
	const struct holding *h = ledger_find(engine_ledger(n->g), "web");
	assert_true(h->decision.exclusive && !h->decision.lease);
	sound(n);
	assert_int_equal(healthy_on(n, 0), 6);
	assert_int_equal(see(n, "0=0-1"), 0);
	h = ledger_find(engine_ledger(n->g), "web");
	assert_int_equal(h->decision.lease, 4000);
	assert_int_equal(healthy_on(n, 0), 6);
	struct request thief = ask_with("thief", 2, "v1:4000:0=0-1");
	assert_false(create(n, &thief).admit);
	node_free(n);
}

static void a_container_that_runs_before_its_tokens_are_known_is_still_placed(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask_with("web", 2, "v1:4000:6=0-1");

	(void)state;
	engine_live(n->g, n->now_ms, &web, NULL); /* created while nobody listened */
	assert_true(ledger_find(engine_ledger(n->g), "web")->decision.exclusive);
	assert_int_equal(see(n, "6=0-1"), 0);
	assert_int_equal(ledger_find(engine_ledger(n->g), "web")->decision.lease, 4000);
	node_free(n);
}

static void tokens_of_pods_that_ended_while_the_daemon_was_away_are_free(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	const char *stays[] = {"stays"};
	char text[LEASE_TEXT_MAX], other[LEASE_TEXT_MAX];
	struct update_list ups = {0};

	(void)state;
	assert_int_equal(allocate(n, "0=0-1", text, NULL), 0);
	assert_int_equal(allocate(n, "1=0-1", other, NULL), 0);
	struct request goes = ask_with("goes", 2, text), stay = ask_with("stays", 2, other);
	assert_true(create(n, &goes).admit && create(n, &stay).admit);
	engine_synchronize(n->g, n->now_ms,
		&(const struct inventory){
			.sandbox_ids = stays, .nr_sandboxes = 1, .pod_uids = stays},
		&ups);
	vec_fini(&ups);
	sound(n);
	n->now_ms += 3 * MINUTE_MS;
	assert_int_equal(see(n, ""), 0); /* one answer may be of a kubelet that knows nobody yet */
	n->now_ms += 2 * MINUTE_MS;
	assert_int_equal(see(n, ""), 2); /* the other one may be started again */
	assert_int_equal(healthy_on(n, 0), PER_NODE);
	assert_int_equal(healthy_on(n, 1), PER_NODE - 2);
	node_free(n);
}

static void a_container_with_fewer_cpus_than_tokens_gets_the_missing_ones(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];
	struct update_list ups = {0};
	struct decision d;

	(void)state;
	assert_int_equal(allocate(n, "0=0-3", text, NULL), 0);
	struct request web = ask_with("web", 4, text);
	web.cpus = "0-2";
	web.mems = "0";
	const struct placement placed = {.exclusive = true, .cpus = {{7}}};
	engine_live(n->g, n->now_ms, &web, &placed); /* it lost a CPU while nobody listened */
	sound(n);
	const struct holding *h = ledger_find(engine_ledger(n->g), "web");
	assert_true(h->decision.exclusive);
	assert_int_equal(h->decision.lease, 5000);
	/* and gets it back */
	assert_true(engine_update(n->g, n->now_ms, &web, &d, &ups));
	if (!d.admit)
		fail_msg("%s", d.message);
	assert_int_equal(cpuset_count(&d.cpus), 4);
	vec_fini(&ups);
	node_free(n);
}

static void a_running_container_keeps_its_lease_when_a_second_allocate_renames_it(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];
	struct update_list ups = {0};
	struct decision d;

	(void)state;
	assert_int_equal(see(n, "0=0-1"), 0);
	struct request web = ask_with("web", 2, "v1:4000:0=0-1");
	assert_true(create(n, &web).admit);
	assert_int_equal(allocate(n, "0=0-1", text, NULL), 0); /* a static pod that is seen twice */
	sound(n);
	comes_back(n);
	web.ask.cpu_limit_milli = 2000;
	assert_true(engine_update(n->g, n->now_ms, &web, &d, &ups));
	assert_true(d.admit);
	sound(n);
	vec_fini(&ups);
	node_free(n);
}

static void of_two_containers_with_the_same_tokens_only_one_gets_them(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];
	struct update_list ups = {0};

	(void)state;
	assert_int_equal(allocate(n, "0=0-1", text, NULL), 0);
	struct request both[2] = {ask_with("a", 2, text), ask_with("b", 2, text)};
	both[0].pod.uid = both[1].pod.uid = "p";
	both[0].pod.sandbox_id = both[1].pod.sandbox_id = "p";
	both[0].cpus = "0,32";
	both[1].cpus = "1,33";
	both[0].mems = both[1].mems = "0";
	const struct placement placed = {.exclusive = true, .cpus = {{1 | 1ULL << 32}}},
			       other = {.exclusive = true, .cpus = {{2 | 2ULL << 32}}};
	const struct placement *const pl[] = {&placed, &other};
	const char *sb[] = {"p"};
	engine_synchronize(n->g, n->now_ms,
		&(const struct inventory){.requests = both,
			.placed = pl,
			.nr = 2,
			.sandbox_ids = sb,
			.nr_sandboxes = 1,
			.pod_uids = sb},
		&ups);
	vec_fini(&ups);
	sound(n);
	comes_back(n);
	see(n, "0=0-1");
	see(n, "0=0-1");
	comes_back(n);
	node_free(n);
}

static void a_lease_outlives_a_kubelet_restart_while_an_image_is_pulled(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "0=0-3", text, NULL), 0);
	assert_int_equal(see(n, "0=0-3"), 0);
	n->now_ms += 4 * MINUTE_MS;
	assert_int_equal(see(n, ""), 0); /* the kubelet has started anew, and has no pods yet */
	n->now_ms += 1000;
	assert_int_equal(see(n, "0=0-3"), 0);
	struct request web = ask_with("web", 4, text);
	assert_true(create(n, &web).admit);
	node_free(n);
}

static void a_container_that_claims_its_lease_late_is_still_updated(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask_with("web", 2, "v1:4000:6=0-1");
	struct update_list ups = {0};

	(void)state;
	engine_live(n->g, n->now_ms, &web, NULL); /* created while nobody listened */
	assert_int_equal(see(n, "6=0-1"), 0);
	engine_take_updates(n->g, &ups);
	assert_int_equal(ups.nr, 1);
	vec_fini(&ups);
	node_free(n);
}

/* The annotation is right to the letter each time: it was forged, or it was not. */
static void a_waiting_lease_goes_to_the_pod_that_podresources_shows(void **state)
{
	static const struct {
		enum token_owner owner;
		const char *says; /* NULL: it is admitted */
	} cases[NR_TOKEN_OWNERS] = {
		[TOKENS_NOT_ASKED] = {TOKENS_NOT_ASKED, NULL},
		[TOKENS_NOT_SHOWN_YET] = {TOKENS_NOT_SHOWN_YET, "the kubelet tries again"},
		[TOKENS_OWN] = {TOKENS_OWN, NULL},
		[TOKENS_NOBODYS] = {TOKENS_NOBODYS, NULL},
		[TOKENS_ANOTHERS] = {TOKENS_ANOTHERS, "these tokens are another container's"},
	};
	char text[LEASE_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < NR_TOKEN_OWNERS; i++) {
		struct node *n = node_new(POLICY_RESTRICTED);

		assert_int_equal(allocate(n, "0=0-3", text, NULL), 0);
		n->owner = cases[i].owner;
		struct request web = ask_with("web", 4, text);
		struct decision d = create(n, &web);
		assert_int_equal(d.admit, !cases[i].says);
		if (cases[i].says && !strstr(d.message, cases[i].says))
			fail_msg("%s", d.message);
		n->owner = TOKENS_OWN; /* the owner comes, or comes again */
		stop(n, "web");
		web = ask_with("owner", 4, text);
		assert_true(create(n, &web).admit);
		node_free(n);
	}
}

static void tokens_that_wait_for_one_pod_are_refused_to_others(void **state)
{
	static const enum token_owner unknown[] = {
		TOKENS_NOT_ASKED, TOKENS_NOT_SHOWN_YET, TOKENS_NOBODYS};
	char text[LEASE_TEXT_MAX], again[LEASE_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
		struct node *n = node_new(POLICY_RESTRICTED);

		assert_int_equal(allocate(n, "0=0-3", text, NULL), 0);
		struct request web = ask_with("web", 4, text), forger = ask_with("forger", 4, text);
		assert_true(create(n, &web).admit);
		stop(n, "web");
		n->owner = unknown[i];
		struct decision d = create(n, &forger);
		assert_false(d.admit);
		assert_non_null(strstr(d.message, "container main of pod default/web is to come for CPU token"));
		forger.pod.ns = "other";
		d = create(n, &forger);
		assert_non_null(strstr(d.message, "a pod of another namespace is to come for"));
		assert_null(strstr(d.message, "web"));
		forger.pod.ns = "default";
		web.container_id = "again"; /* which needs no answer of PodResources */
		assert_true(create(n, &web).admit);
		stop(n, "again");
		forger.pod.uid = "web"; /* as a static pod may say */
		assert_false(create(n, &forger).admit);
		/* the kubelet has given them to somebody else */
		assert_int_equal(allocate(n, "0=0-3", again, NULL), 0);
		n->owner = TOKENS_OWN;
		struct request next = ask_with("next", 4, again);
		assert_true(create(n, &next).admit);
		node_free(n);
	}
}

static void a_forged_claim_on_tokens_ends_when_podresources_shows_their_owner(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	char text[LEASE_TEXT_MAX];

	(void)state;
	assert_int_equal(allocate(n, "0=0-3", text, NULL), 0);
	struct request forger = ask_with("forger", 4, text), web = ask_with("web", 4, text);
	n->owner = TOKENS_NOT_SHOWN_YET;
	engine_live(n->g, n->now_ms, &forger, NULL); /* created while nobody listened */
	assert_true(leases_count_of(ledger_view(engine_ledger(n->g))->leases, "forger"));
	n->owner = TOKENS_ANOTHERS;
	const struct cpuset cpus = ledger_find(engine_ledger(n->g), "forger")->decision.cpus;
	assert_int_equal(see(n, "0=0-3"), 0);
	assert_false(leases_count_of(ledger_view(engine_ledger(n->g))->leases, "forger"));
	const struct holding *h = ledger_find(engine_ledger(n->g), "forger");
	assert_true(h->decision.exclusive && cpuset_equal(&cpus, &h->decision.cpus));
	n->owner = TOKENS_OWN;
	struct decision d = create(n, &web);
	assert_true(d.admit);
	assert_false(cpuset_intersects(&d.cpus, &cpus));
	assert_int_equal(count_on(n, &d.cpus, 0), 4);
	node_free(n);
}

static void a_running_container_never_claims_tokens_of_another_one(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request forger = ask_with("forger", 4, "v1:4000:0=0-3");

	(void)state;
	n->owner = TOKENS_ANOTHERS;
	engine_live(n->g, n->now_ms, &forger, NULL);
	assert_int_equal(see(n, "0=0-3"), 0); /* a journal was lost: they are known from here on */
	assert_false(leases_count_of(ledger_view(engine_ledger(n->g))->leases, "forger"));
	n->owner = TOKENS_OWN;
	assert_int_equal(see(n, "0=0-3"), 0);
	assert_true(leases_count_of(ledger_view(engine_ledger(n->g))->leases, "forger"));
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_waiting_lease_goes_to_the_pod_that_podresources_shows),
		cmocka_unit_test(tokens_that_wait_for_one_pod_are_refused_to_others),
		cmocka_unit_test(a_forged_claim_on_tokens_ends_when_podresources_shows_their_owner),
		cmocka_unit_test(a_running_container_never_claims_tokens_of_another_one),
		cmocka_unit_test(leases_of_a_lost_journal_come_back_from_podresources),
		cmocka_unit_test(a_container_that_runs_before_its_tokens_are_known_is_still_placed),
		cmocka_unit_test(tokens_of_pods_that_ended_while_the_daemon_was_away_are_free),
		cmocka_unit_test(a_container_with_fewer_cpus_than_tokens_gets_the_missing_ones),
		cmocka_unit_test(
			a_running_container_keeps_its_lease_when_a_second_allocate_renames_it),
		cmocka_unit_test(of_two_containers_with_the_same_tokens_only_one_gets_them),
		cmocka_unit_test(a_lease_outlives_a_kubelet_restart_while_an_image_is_pulled),
		cmocka_unit_test(a_container_that_claims_its_lease_late_is_still_updated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
