/* What happens to a container after its creation: resources that change in place, a creation that
 * failed elsewhere, an adoption, a kubelet that decides itself. */
#include "engine_life_rig.h"

static void an_update_that_needs_the_same_keeps_what_it_has(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask("web", QOS_GUARANTEED, 4000, GIB(1)), gone = ask("x", 0, 0, 0);
	struct decision before = create(n, &web), d;

	(void)state;
	web.cpus = "0-63"; /* what a kubelet with managers of its own would have */
	assert_true(engine_update(n->g, 0, &web, &d, &n->ups));
	assert_true(d.admit && cpuset_equal(&d.cpus, &before.cpus));
	assert_int_equal(n->ups.nr, 0);
	assert_false(engine_update(n->g, 0, &gone, &d, &n->ups));
	node_free(n);
}

static void a_container_that_grows_moves_the_others_in_the_same_reply(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask("web", QOS_GUARANTEED, 4000, 0),
		       log = ask("log", QOS_BURSTABLE, 100, 0);
	struct decision before = create(n, &web), d;

	(void)state;
	(void)create(n, &log);
	web.ask.cpu_milli = 6000;
	assert_true(engine_update(n->g, 0, &web, &d, &n->ups));
	assert_true(d.admit);
	assert_int_equal(cpuset_count(&d.cpus), 6);
	assert_true(cpuset_within(&before.cpus, &d.cpus));
	assert_int_equal(n->ups.nr, 1);
	assert_string_equal(n->ups.at[0].container_id, "log");
	assert_false(cpuset_intersects(&n->ups.at[0].cpus, &d.cpus));
	assert_string_equal(n->last_cause, "live");
	assert_int_equal(ledger_find(engine_ledger(n->g), "web")->state, HOLDING_LIVE);
	vec_fini(&n->ups);
	web.ask.cpu_milli = 2000; /* and gives back */
	assert_true(engine_update(n->g, 0, &web, &d, &n->ups));
	assert_int_equal(cpuset_count(&d.cpus), 2);
	assert_int_equal(cpuset_count(&ledger_view(engine_ledger(n->g))->held), 2);
	node_free(n);
}

static void a_refused_change_leaves_all_as_it_was(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	struct request web = ask("web", QOS_GUARANTEED, 4000, 0);
	struct decision before = create(n, &web), d;

	(void)state;
	web.ask.cpu_milli = 12000;
	assert_true(engine_update(n->g, 0, &web, &d, &n->ups));
	assert_false(d.admit);
	assert_string_equal(d.reason, "TopologyAffinityError");
	assert_string_equal(n->last_cause, "resize");
	web.ask.cpu_milli = 6000;
	n->failing = true; /* what cannot be recorded does not happen */
	assert_true(engine_update(n->g, 0, &web, &d, &n->ups));
	assert_false(d.admit);
	assert_non_null(strstr(d.message, "no space left"));
	const struct holding *h = ledger_find(engine_ledger(n->g), "web");
	assert_true(cpuset_equal(&h->decision.cpus, &before.cpus));
	assert_int_equal(n->ups.nr, 0);
	node_free(n);
}

static void a_container_that_never_starts_is_given_up_at_the_second_synchronize(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask("web", QOS_GUARANTEED, 4000, 0),
		       live = ask("live", QOS_GUARANTEED, 4000, 0);
	struct decision d;

	(void)state;
	engine_create(n->g, 0, &web, &d, &n->ups);
	(void)create(n, &live);
	assert_int_equal(engine_expire(n->g, 0), 0);
	assert_non_null(ledger_find(engine_ledger(n->g), "web"));
	assert_int_equal(engine_expire(n->g, 0), 1);
	assert_null(ledger_find(engine_ledger(n->g), "web"));
	assert_non_null(ledger_find(engine_ledger(n->g), "live"));
	assert_int_equal(engine_expire(n->g, 0), 0);
	node_free(n);
}

static void a_container_that_starts_after_it_was_given_up_is_taken_over_as_it_runs(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask("web", QOS_GUARANTEED, 4000, 0);
	struct placement placed = {.exclusive = true, .policy = POLICY_RESTRICTED};
	struct decision d;

	(void)state;
	engine_create(n->g, 0, &web, &d, &n->ups);
	(void)engine_expire(n->g, 0);
	(void)engine_expire(n->g, 0);
	web.cpus = "12-15";
	web.mems = "3";
	engine_live(n->g, 0, &web, &placed);
	const struct holding *h = ledger_find(engine_ledger(n->g), "web");
	struct cpuset want = list("12-15");
	assert_true(h->decision.exclusive && cpuset_equal(&h->decision.cpus, &want));
	node_free(n);
}

static void of_two_containers_on_one_cpu_the_older_keeps_it(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request two[] = {
		ask("young", QOS_GUARANTEED, 2000, 0), ask("old", QOS_GUARANTEED, 2000, 0)};
	struct placement placed = {.exclusive = true, .policy = POLICY_RESTRICTED};
	const struct placement *both[] = {&placed, &placed};
	const struct inventory what = {two, both, 2, NULL, 0, NULL};

	(void)state;
	two[0].created_at_ns = 20;
	two[1].created_at_ns = 10;
	two[0].cpus = two[1].cpus = "4-5";
	two[0].mems = two[1].mems = "1";
	for (unsigned round = 0; round < 3; round++) { /* and nothing twice when reported again */
		engine_synchronize(n->g, 0, &what, &n->ups);
		const struct holding *old = ledger_find(engine_ledger(n->g), "old"),
				     *young = ledger_find(engine_ledger(n->g), "young");
		struct cpuset want = list("4-5");

		assert_true(cpuset_equal(&old->decision.cpus, &want));
		assert_false(cpuset_intersects(&young->decision.cpus, &want));
		assert_non_null(strstr(young->decision.message,
			"what it ran with was not taken over: CPU 4 is held by container main of "
			"pod default/old"));
		assert_int_equal(ledger_count(engine_ledger(n->g)), 2);
		vec_fini(&n->ups);
	}
	node_free(n);
}

static void a_container_resized_while_the_daemon_was_away_keeps_its_new_size(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask("web", QOS_GUARANTEED, 4000, 0);
	struct placement placed = {.exclusive = true, .policy = POLICY_RESTRICTED};
	const struct placement *as_created[] = {&placed};
	const struct inventory what = {&web, as_created, 1, NULL, 0, NULL};
	struct decision d = create(n, &web);

	(void)state;
	assert_true(d.exclusive);
	placed.cpus = d.cpus;
	web.ask.cpu_milli = 6000;
	web.cpus = "0-2,32-34";
	web.mems = "0-7";
	engine_synchronize(n->g, 0, &what, &n->ups);
	const struct holding *h = ledger_find(engine_ledger(n->g), "web");
	struct cpuset want = list("0-2,32-34");
	assert_true(h->decision.exclusive && cpuset_equal(&h->decision.cpus, &want));
	assert_int_equal(n->ups.nr, 0);
	node_free(n);
}

/* Whoever resized it gave it just what the shared pool was. */
static void a_container_resized_to_the_whole_pool_meanwhile_leaves_it_what_it_had(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask("web", QOS_GUARANTEED, 0, 0);
	struct placement placed = {.exclusive = true, .policy = POLICY_RESTRICTED};
	const struct placement *as_created[] = {&placed};
	const struct inventory what = {&web, as_created, 1, NULL, 0, NULL};
	char cpus[CPUSET_TEXT_MAX];

	(void)state;
	web.ask.cpu_milli = (cpuset_count(&n->t->cpus) - 2) * 1000;
	struct decision d = create(n, &web);
	const struct cpuset pool = ledger_view(engine_ledger(n->g))->pool;
	assert_true(d.exclusive && cpuset_count(&pool) == 2);
	placed.cpus = d.cpus;
	web.ask.cpu_milli = 2000;
	web.cpus = cpuset_format(&pool, cpus, sizeof cpus);
	web.mems = "0-7";
	engine_synchronize(n->g, 0, &what, &n->ups);
	const struct holding *h = ledger_find(engine_ledger(n->g), "web");
	assert_true(h->decision.exclusive && cpuset_equal(&h->decision.cpus, &pool));
	assert_true(cpuset_equal(&ledger_view(engine_ledger(n->g))->pool, &d.cpus));
	assert_int_equal(n->ups.nr, 0);
	node_free(n);
}

static void a_running_container_that_would_be_refused_is_recorded_as_unaligned(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	struct request big = ask("big", QOS_GUARANTEED, 12000, 0);
	const struct placement *none[] = {NULL};

	(void)state;
	engine_synchronize(
		n->g, 0, &(const struct inventory){&big, none, 1, NULL, 0, NULL}, &n->ups);
	const struct holding *h = ledger_find(engine_ledger(n->g), "big");
	assert_true(h->decision.admit && !h->decision.exclusive && !h->decision.preferred);
	assert_string_equal(h->decision.message,
		"unaligned: TopologyAffinityError: Resources cannot be allocated with Topology "
		"locality");
	node_free(n);
}

static void with_strict_reservation_the_pool_never_grows_into_the_reserved_cpus(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask("web", QOS_GUARANTEED, 4000, 0);

	(void)state;
	engine_free(n->g);
	engine_free(n->folded);
	(void)cpuset_parse(&n->s.reserved_cpus, "0", 1, NULL);
	n->s.cpu_options.strict_cpu_reservation = true;
	const struct engine_hooks hooks = {.ctx = n, .record = fold};
	n->g = engine_new(n->t, &n->s, &hooks);
	n->folded = engine_new(n->t, &n->s, &hooks);
	assert_true(create(n, &web).admit);
	engine_release(n->g, 0, "stop", "web", &n->ups);
	assert_int_equal(cpuset_count(&ledger_view(engine_ledger(n->g))->pool), 63);
	assert_false(cpuset_has(&ledger_view(engine_ledger(n->g))->pool, 0));
	node_free(n);
}

static void a_container_moved_during_its_creation_is_updated_again_when_it_runs(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request log = ask("log", QOS_BURSTABLE, 100, 0),
		       web = ask("web", QOS_GUARANTEED, 4000, 0);
	struct decision d;

	(void)state;
	engine_create(n->g, 0, &log, &d, &n->ups);
	engine_create(n->g, 0, &web, &d, &n->ups); /* the runtime may pass over "log" here */
	assert_int_equal(n->ups.nr, 1);
	vec_fini(&n->ups);
	engine_live(n->g, 0, &log, NULL);
	assert_updated(n, NULL); /* it exists, but does not run */
	engine_started(n->g, 0, "log");
	assert_updated(n, "log");
	assert_updated(n, NULL);
	node_free(n);
}

static void a_container_found_in_creation_is_updated_again_when_it_runs(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request log = ask("log", QOS_BURSTABLE, 100, 0),
		       web = ask("web", QOS_GUARANTEED, 4000, 0);
	struct request found[] = {log, web};
	const struct placement *none[] = {NULL, NULL};
	struct inventory all = {found, none, 2, NULL, 0, NULL};

	(void)state;
	found[1].in_creation = true;
	engine_synchronize(n->g, 0, &all, &n->ups);
	assert_int_equal(n->ups.nr, 2);
	vec_fini(&n->ups);
	assert_updated(n, NULL);
	engine_started(n->g, 0, "web");
	assert_updated(n, "web");
	engine_started(n->g, 0, "gone"); /* its end has overtaken it */
	assert_null(ledger_find(engine_ledger(n->g), "gone"));
	node_free(n);
}

static void a_container_resized_before_it_runs_is_updated_again_when_it_runs(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask("web", QOS_GUARANTEED, 4000, 0),
		       more = ask("web", QOS_GUARANTEED, 6000, 0);
	struct decision d;

	(void)state;
	engine_create(n->g, 0, &web, &d, &n->ups);
	engine_live(n->g, 0, &web, NULL);
	assert_true(engine_update(n->g, 0, &more, &d, &n->ups));
	assert_true(d.admit);
	assert_updated(n, NULL);
	engine_started(n->g, 0, "web");
	assert_updated(n, "web");
	assert_true(engine_update(n->g, 0, &web, &d, &n->ups));
	assert_updated(n, NULL); /* the answer has carried it */
	node_free(n);
}

static void a_successor_inherits_only_what_was_asked_for(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	struct request full[8], first = ask("x", QOS_GUARANTEED, 4000, 0), second = first;
	const struct placement *none[] = {NULL};
	static const char *const ids[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	struct decision d;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		full[i] = ask(ids[i], QOS_GUARANTEED, i ? 8000 : 7000, 0);
		assert_true(create(n, &full[i]).admit);
	}
	engine_release(n->g, 0, "stop", "h", &n->ups);
	full[7] = ask("h", QOS_GUARANTEED, 6000, 0);
	assert_true(create(n, &full[7]).admit);
	first.container_id = "x1";
	engine_live(n->g, 0, &first, none[0]); /* no node has four left */
	engine_release(n->g, 0, "stop", "b", &n->ups);
	second.container_id = "x2";
	engine_create(n->g, 0, &second, &d, &n->ups);
	assert_true(d.admit && d.exclusive);
	assert_int_equal(d.source, SOURCE_DECIDED);
	node_free(n);
}

static void a_container_that_grew_meanwhile_keeps_its_cpus_and_gets_more_near_them(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask("web", QOS_GUARANTEED, 4000, 0);
	struct placement placed = {.exclusive = true, .policy = POLICY_RESTRICTED};
	const struct placement *as_created[] = {&placed};
	const struct inventory what = {&web, as_created, 1, NULL, 0, NULL};
	char cpus[CPUSET_TEXT_MAX];

	(void)state;
	for (unsigned lost = 0; lost < 2; lost++) { /* with its entry, and without */
		struct request before = ask("web", QOS_GUARANTEED, 4000, 0);
		struct decision d = create(n, &before);

		placed.cpus = d.cpus;
		web.cpus = cpuset_format(&d.cpus, cpus, sizeof cpus);
		web.mems = "0-7";
		web.ask.cpu_milli = 6000;
		if (lost)
			engine_release(n->g, 0, "stop", "web", &n->ups);
		vec_fini(&n->ups);
		engine_synchronize(n->g, 0, &what, &n->ups);
		const struct holding *h = ledger_find(engine_ledger(n->g), "web");
		assert_int_equal(cpuset_count(&h->decision.cpus), 6);
		assert_true(cpuset_within(&d.cpus, &h->decision.cpus));
		assert_int_equal(n->ups.nr, 1);
		vec_fini(&n->ups);
		engine_release(n->g, 0, "stop", "web", &n->ups);
	}
	node_free(n);
}

static void an_update_without_pod_or_name_takes_them_from_the_ledger(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request web = ask("web", QOS_GUARANTEED, 4000, 0);
	struct decision d;

	(void)state;
	(void)create(n, &web);
	web.ask.cpu_milli = 6000;
	web.ask.name = "";
	web.pod = (struct pod){
		.sandbox_id = "", .uid = "", .ns = "", .name = "", .qos = QOS_GUARANTEED};
	assert_true(engine_update(n->g, 0, &web, &d, &n->ups));
	assert_true(d.admit);
	assert_string_equal(ledger_find(engine_ledger(n->g), "web")->request.pod.uid, "web");
	engine_release_pod(n->g, 0, "pod-gone", &(struct pod){.sandbox_id = "web", .uid = ""});
	assert_int_equal(ledger_count(engine_ledger(n->g)), 0);
	node_free(n);
}

static void a_changed_request_is_recorded_although_no_cpu_moves(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request log = ask("log", QOS_BURSTABLE, 100, 0);
	struct decision d;

	(void)state;
	(void)create(n, &log);
	log.ask.cpu_milli = 2500;
	assert_true(engine_update(n->g, 0, &log, &d, &n->ups));
	assert_true(d.admit && !d.exclusive);
	assert_int_equal(n->ups.nr, 0);
	assert_int_equal(ledger_find(engine_ledger(n->folded), "log")->request.ask.cpu_milli, 2500);
	node_free(n);
}

static void all_containers_that_never_started_are_given_up_at_once(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct ask parts[] = {{.name = "p0", .cpu_milli = 1000}, {.name = "p1", .cpu_milli = 1000}};
	struct pod ask_of_pod = {
		.uid = "a-uid", .qos = QOS_GUARANTEED, .nr = 2, .container = parts};
	const struct pod pod = {.sandbox_id = "s",
		.uid = "a-uid",
		.ns = "default",
		.name = "web",
		.qos = QOS_GUARANTEED,
		.pod_level = ask_of_pod.pod_level,
		.nr = ask_of_pod.nr,
		.container = ask_of_pod.container};
	struct decision d;

	(void)state;
	engine_run_pod(n->g, 0, &pod, &d);
	assert_true(d.admit);
	for (unsigned i = 0; i < 2; i++) {
		struct request req = ask(i ? "c" : "b", QOS_GUARANTEED, 1000, 0);

		req.ask.name = i ? "p1" : "p0";
		req.pod = pod;
		engine_create(n->g, 0, &req, &d, &n->ups);
		assert_int_equal(d.source, SOURCE_HELD);
	}
	assert_int_equal(engine_expire(n->g, 0), 0);
	assert_int_equal(engine_expire(n->g, 0), 2);
	node_free(n);
}

static void a_container_of_an_older_sandbox_takes_nothing_of_the_new_one(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct ask part = {.name = "p0", .cpu_milli = 2000};
	struct pod spec = {.uid = "u", .qos = QOS_GUARANTEED, .nr = 1, .container = &part};
	struct pod pod = {.sandbox_id = "s1",
		.uid = "u",
		.ns = "default",
		.name = "web",
		.qos = QOS_GUARANTEED,
		.pod_level = spec.pod_level,
		.nr = spec.nr,
		.container = spec.container};
	struct request req = ask("c1", QOS_GUARANTEED, 2000, 0);
	struct decision d;

	(void)state;
	engine_run_pod(n->g, 0, &pod, &d);
	req.ask.name = "p0";
	req.pod = pod;
	engine_create(n->g, 0, &req, &d, &n->ups);
	pod.sandbox_id = "s2";
	engine_run_pod(n->g, 0, &pod, &d);
	assert_true(d.admit);
	engine_live(n->g, 0, &req, NULL); /* late: its sandbox is gone */
	engine_release_pod(n->g, 0, "pod-gone", &(struct pod){.sandbox_id = "s1", .uid = ""});
	const struct holding *h = ledger_find_waiting(engine_ledger(n->g), "u", "p0");
	assert_non_null(h);
	assert_string_equal(h->request.pod.sandbox_id, "s2");
	node_free(n);
}

static void shadow_compares_and_follows_the_kubelet(void **state)
{
	static const struct {
		const char *cpus, *mems;
		bool compared, agrees;
		const char *says;
	} cases[] = {
		{"", "", false, true, ""},
		{"0-1,32-33", "0", true, true, ""},
		{"4-5,36-37", "", true, false, "CPUs: numafit 0-1,32-33, kubelet 4-5,36-37"},
		{"0-1,32-33", "1", true, false, "NUMA nodes of memory: numafit 0, kubelet 1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct node *n = node_new(POLICY_RESTRICTED);
		struct request web = ask("web", QOS_GUARANTEED, 4000, GIB(1));
		struct decision ours;
		struct comparison c;

		web.cpus = cases[i].cpus;
		web.mems = cases[i].mems;
		engine_shadow(n->g, 0, &web, &ours, &c);
		assert_true(ours.admit);
		assert_int_equal(c.compared, cases[i].compared);
		assert_int_equal(c.agrees, cases[i].agrees);
		assert_string_equal(c.text, cases[i].says);
		if (*cases[i].cpus) {
			struct cpuset theirs = list(cases[i].cpus);

			assert_true(cpuset_equal(&ledger_view(engine_ledger(n->g))->held, &theirs));
		}
		node_free(n);
	}
}

static void shadow_mode_reports_what_it_would_have_refused(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	struct request big = ask("big", QOS_GUARANTEED, 12000, 0);
	struct decision ours;
	struct comparison c;

	(void)state;
	big.cpus = "0-11";
	engine_shadow(n->g, 0, &big, &ours, &c);
	assert_false(ours.admit || c.agrees);
	assert_string_equal(c.text, "numafit would have refused it: TopologyAffinityError");
	assert_int_equal(cpuset_count(&ledger_view(engine_ledger(n->g))->held), 12);
	node_free(n);
}

static void a_pod_whose_sums_cannot_fit_is_refused_when_its_sandbox_starts(void **state)
{
	static const struct {
		enum topology_policy policy;
		enum topology_scope scope;
		enum qos qos;
		uint64_t gib;
		bool admit;
		const char *reason;
	} cases[] = {
		/* eight nodes of 56 GiB beside their huge pages */
		{POLICY_RESTRICTED, SCOPE_CONTAINER, QOS_GUARANTEED, 448, true, NULL},
		{POLICY_RESTRICTED, SCOPE_CONTAINER, QOS_GUARANTEED, 449, false,
			"UnexpectedAdmissionError"},
		{POLICY_RESTRICTED, SCOPE_CONTAINER, QOS_BURSTABLE, 449, true, NULL},
		{POLICY_SINGLE_NUMA_NODE, SCOPE_POD, QOS_GUARANTEED, 56, true, NULL},
		{POLICY_SINGLE_NUMA_NODE, SCOPE_POD, QOS_GUARANTEED, 57, false,
			"TopologyAffinityError"},
		{POLICY_SINGLE_NUMA_NODE, SCOPE_CONTAINER, QOS_GUARANTEED, 57, true, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct node *n = node_new(cases[i].policy);
		const struct pod pod = {.sandbox_id = "s",
			.uid = "u",
			.ns = "default",
			.name = "web",
			.qos = cases[i].qos,
			.totals = {true, 2000, GIB(cases[i].gib)}};
		struct decision d;

		n->s.topology_scope = cases[i].scope;
		engine_run_pod(n->g, 0, &pod, &d);
		if (d.admit != cases[i].admit)
			fail_msg("case %zu: %s", i, d.message);
		if (cases[i].reason)
			assert_string_equal(d.reason, cases[i].reason);
		assert_int_equal(ledger_count(engine_ledger(n->g)), 0);
		node_free(n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_update_that_needs_the_same_keeps_what_it_has),
		cmocka_unit_test(a_container_that_grows_moves_the_others_in_the_same_reply),
		cmocka_unit_test(a_refused_change_leaves_all_as_it_was),
		cmocka_unit_test(
			a_container_that_never_starts_is_given_up_at_the_second_synchronize),
		cmocka_unit_test(
			a_container_that_starts_after_it_was_given_up_is_taken_over_as_it_runs),
		cmocka_unit_test(of_two_containers_on_one_cpu_the_older_keeps_it),
		cmocka_unit_test(a_container_resized_while_the_daemon_was_away_keeps_its_new_size),
		cmocka_unit_test(
			a_container_resized_to_the_whole_pool_meanwhile_leaves_it_what_it_had),
		cmocka_unit_test(
			a_running_container_that_would_be_refused_is_recorded_as_unaligned),
		cmocka_unit_test(
			with_strict_reservation_the_pool_never_grows_into_the_reserved_cpus),
		cmocka_unit_test(
			a_container_moved_during_its_creation_is_updated_again_when_it_runs),
		cmocka_unit_test(a_container_found_in_creation_is_updated_again_when_it_runs),
		cmocka_unit_test(a_container_resized_before_it_runs_is_updated_again_when_it_runs),
		cmocka_unit_test(a_successor_inherits_only_what_was_asked_for),
		cmocka_unit_test(
			a_container_that_grew_meanwhile_keeps_its_cpus_and_gets_more_near_them),
		cmocka_unit_test(an_update_without_pod_or_name_takes_them_from_the_ledger),
		cmocka_unit_test(a_changed_request_is_recorded_although_no_cpu_moves),
		cmocka_unit_test(all_containers_that_never_started_are_given_up_at_once),
		cmocka_unit_test(a_container_of_an_older_sandbox_takes_nothing_of_the_new_one),
		cmocka_unit_test(shadow_compares_and_follows_the_kubelet),
		cmocka_unit_test(shadow_mode_reports_what_it_would_have_refused),
		cmocka_unit_test(a_pod_whose_sums_cannot_fit_is_refused_when_its_sandbox_starts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
