/* Events in random order: the ledger stays sound, the shared pool is always clear of exclusive
 * CPUs, and the records fold into the very same ledger. */
#include "engine_rig.h"

static void check_same_ledger(struct node *n)
{
	const struct ledger *a = engine_ledger(n->g), *b = engine_ledger(n->folded);

	assert_int_equal(ledger_count(a), ledger_count(b));
	assert_true(cpuset_equal(&ledger_view(a)->pool, &ledger_view(b)->pool));
	assert_true(cpuset_equal(&ledger_view(a)->held, &ledger_view(b)->held));
	for (size_t i = 0; i < ledger_count(a); i++) {
		const struct holding *x = ledger_at(a, i), *y = ledger_at(b, i);

		assert_string_equal(x->request.container_id, y->request.container_id);
		assert_string_equal(x->request.pod.name, y->request.pod.name);
		assert_int_equal(x->state, y->state);
		assert_int_equal(x->decision.exclusive, y->decision.exclusive);
		assert_true(cpuset_equal(&x->decision.cpus, &y->decision.cpus));
		assert_int_equal(x->decision.mems.bits, y->decision.mems.bits);
		assert_int_equal(x->decision.nr_blocks, y->decision.nr_blocks);
	}
}

static void forget(struct node *n, unsigned i)
{
	n->run[i] = n->run[--n->nr];
	/* the strings moved with it */
	n->run[i].req.container_id = n->run[i].id;
	n->run[i].req.pod.uid = n->run[i].req.pod.name = n->run[i].req.pod.sandbox_id =
		n->run[i].name;
	n->run[i].req.cpus = n->run[i].cpus;
	n->run[i].req.mems = n->run[i].mems;
}

static void stop(struct node *n, unsigned i)
{
	struct update_list ups = {0};
	char id[ID_MAX];

	memcpy(id, n->run[i].id, sizeof id);
	forget(n, i);
	engine_release(n->g, 0, "stop", id, &ups);
	apply(n, &ups);
}

static void random_event(struct node *n, struct random *r)
{
	unsigned what = random_below(r, 100);
	char pod[ID_MAX];

	(void)snprintf(pod, sizeof pod, "p%u", random_below(r, 40));
	if (what < 55 && n->nr < RUNNING_MAX) {
		for (unsigned i = 0; i < n->nr;
			i++) /* its predecessor is dead: the runtime says so later, or never */
			if (strcmp(n->run[i].name, pod) == 0)
				forget(n, i--);
		(void)create(n, pod, (enum qos)random_below(r, NR_QOS), 500 * random_below(r, 24),
			GIB(random_below(r, 40)));
	} else if (what < 90 && n->nr) {
		stop(n, random_below(r, n->nr));
	} else if (what < 95 && n->nr) {
		engine_live(n->g, 0, &n->run[random_below(r, n->nr)].req, NULL);
	} else {
		synchronize(n);
	}
}

static void random_events_keep_every_invariant_and_fold_to_the_same(void **state)
{
	static const enum topology_policy policies[] = {
		POLICY_NONE, POLICY_BEST_EFFORT, POLICY_RESTRICTED, POLICY_SINGLE_NUMA_NODE};

	(void)state;
	for (unsigned p = 0; p < NR_POLICIES; p++) {
		struct node *n = node_new(policies[p], p * 2);
		struct random r = {20261121 + p};

		for (unsigned i = 0; i < ROUNDS; i++) {
			random_event(n, &r);
			check(n);
			check_same_ledger(n);
		}
		node_free(n);
	}
}

static void most_exclusive_creates_move_no_container_when_the_pool_shrinks_in_steps(void **state)
{
	unsigned updates[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct node *n = node_new(POLICY_SINGLE_NUMA_NODE, i ? 2 : 0);
		char pod[ID_MAX];

		(void)create(n, "web", QOS_BURSTABLE, 1000, 0);
		engine_live(n->g, 0, &n->run[0].req, NULL);
		engine_started(n->g, 0, n->run[0].req.container_id);
		for (unsigned c = 0; c < 16; c++) {
			(void)snprintf(pod, sizeof pod, "x%u", c);
			assert_true(create(n, pod, QOS_GUARANTEED, 1000, GIB(1)).admit);
			check(n);
		}
		updates[i] = n->updates;
		node_free(n);
	}
	assert_int_equal(updates[0], 16);
	assert_in_range(updates[1], 1, 8);
}

static void a_step_is_a_quarter_of_the_node_at_most(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE, 16);

	(void)state;
	(void)create(n, "web", QOS_BURSTABLE, 1000, 0);
	assert_true(create(n, "x", QOS_GUARANTEED, 2000, GIB(1)).admit);
	struct cpuset gone = cpuset_minus(n->t->cpus, &ledger_view(engine_ledger(n->g))->pool);
	assert_int_equal(cpuset_count(&gone), 4); /* its own and 2 of 8 ahead of need */
	node_free(n);
}

static void the_pool_grows_back_once_many_cpus_are_idle(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE, 2);

	(void)state;
	(void)create(n, "web", QOS_BURSTABLE, 1000, 0);
	for (unsigned i = 0; i < 2; i++)
		assert_true(create(n, i ? "x" : "y", QOS_GUARANTEED, 3000, GIB(1)).admit);
	while (n->nr > 1)
		stop(n, 1);
	check(n);
	struct cpuset idle = cpuset_minus(n->t->cpus, &ledger_view(engine_ledger(n->g))->pool);
	assert_in_range(cpuset_count(&idle), 0, 4);
	struct cpuset web = cpus_in_force(&n->run[0]);
	assert_true(cpuset_equal(&web, &ledger_view(engine_ledger(n->g))->pool));
	node_free(n);
}

static void a_restarted_container_keeps_what_its_predecessor_had(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);

	(void)state;
	(void)create(n, "a", QOS_GUARANTEED, 2000, GIB(1));
	struct decision first = create(n, "db", QOS_GUARANTEED, 3000, GIB(1));
	stop(n, 0); /* room that a new decision would prefer */
	struct decision again = create(n, "db", QOS_GUARANTEED, 3000, GIB(1));
	assert_int_equal(again.source, SOURCE_INHERITED);
	assert_true(cpuset_equal(&first.cpus, &again.cpus));
	struct decision larger = create(n, "db", QOS_GUARANTEED, 4000, GIB(1));
	assert_int_equal(larger.source, SOURCE_DECIDED);
	assert_int_equal(ledger_count(engine_ledger(n->g)), 1);
	node_free(n);
}

/* Not every runtime sends a pod's uid or a container's name. */
static void a_container_without_a_name_succeeds_no_other(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct update_list ups = {0};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct request a = ask("a", QOS_GUARANTEED, 2000, GIB(1)),
			       b = ask("b", QOS_GUARANTEED, 2000, GIB(1));
		struct decision first, second;

		if (i)
			a.pod.uid = b.pod.uid = "";
		else
			a.ask.name = b.ask.name = "";
		engine_create(n->g, 0, &a, &first, &ups);
		engine_create(n->g, 0, &b, &second, &ups);
		assert_true(first.admit && second.admit);
		assert_false(cpuset_intersects(&first.cpus, &second.cpus));
		assert_int_equal(ledger_count(engine_ledger(n->g)), 2);
		engine_forget(n->g, 0, "remove", "a");
		engine_forget(n->g, 0, "remove", "b");
	}
	vec_fini(&ups);
	node_free(n);
}

static void a_failed_write_of_a_record_refuses_the_container_and_changes_nothing(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);

	(void)state;
	(void)create(n, "a", QOS_GUARANTEED, 2000, GIB(1));
	n->failing = true;
	struct decision d = create(n, "b", QOS_GUARANTEED, 2000, GIB(1));
	assert_false(d.admit);
	assert_non_null(strstr(d.message, "no space left on device"));
	n->failing = false;
	check_same_ledger(n);
	assert_true(create(n, "b", QOS_GUARANTEED, 2000, GIB(1)).admit);
	check(n);
	node_free(n);
}

static void updates_that_could_not_be_sent_come_with_the_next_reply(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct request stray = ask("stray", QOS_GUARANTEED, 4000, GIB(1));
	struct update_list ups = {0};

	(void)state;
	engine_live(n->g, 0, &stray,
		NULL); /* started while nobody listened; this reply cannot carry updates */
	/* a refusal is an error to the runtime, and carries nothing either */
	assert_false(create(n, "huge", QOS_GUARANTEED, 99000, GIB(1)).admit);
	assert_int_equal(n->updates, 0);
	(void)create(n, "web", QOS_BURSTABLE, 100, 0);
	assert_int_equal(n->updates, 1);
	engine_release(n->g, 0, "stop", "unknown", &ups);
	assert_int_equal(ups.nr, 0);
	vec_fini(&ups);
	node_free(n);
}

/* The pool shrank in an event that cannot carry updates: the others hear of it with the next one.
 */
static void a_container_seen_late_updates_the_others_with_the_next_reply(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED, 0);
	struct request stray = ask("stray", QOS_GUARANTEED, 4000, GIB(1));

	(void)state;
	(void)create(n, "web", QOS_BURSTABLE, 100, 0);
	engine_live(n->g, 0, &stray, NULL);
	assert_int_equal(n->updates, 0);
	(void)create(n, "more", QOS_BURSTABLE, 100, 0);
	assert_int_equal(n->updates, 2); /* web and stray */
	check(n);
	engine_forget(n->g, 0, "remove", "stray");
	assert_null(ledger_find(engine_ledger(n->g), "stray"));
	check_same_ledger(n);
	node_free(n);
}

static void a_dump_is_the_ledger(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT, 2);
	struct random r = {5};
	struct err e;

	(void)state;
	for (unsigned i = 0; i < 200; i++)
		random_event(n, &r);
	engine_free(n->folded);
	n->folded = engine_new(n->t, &n->s, &(const struct engine_hooks){.ctx = n, .record = fold});
	if (engine_dump(n->g, 0, fold, n, &e))
		fail_msg("%s", e.text);
	check_same_ledger(n);
	node_free(n);
}

static void removing_a_pod_removes_its_containers(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT, 2);

	(void)state;
	(void)create(n, "a", QOS_GUARANTEED, 2000, GIB(1));
	(void)create(n, "b", QOS_GUARANTEED, 2000, GIB(1));
	engine_release_pod(n->g, 0, "remove-pod", &(struct pod){.sandbox_id = "a", .uid = ""});
	assert_int_equal(ledger_count(engine_ledger(n->g)), 1);
	assert_string_equal(ledger_at(engine_ledger(n->g), 0)->request.pod.name, "b");
	node_free(n);
}

static void a_record_that_contradicts_the_ones_before_is_refused(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT, 0);
	struct decision d = create(n, "a", QOS_GUARANTEED, 2000, GIB(1));
	struct request other = ask("other", QOS_GUARANTEED, 2000, GIB(1));
	struct record r = {.seq = 9,
		.op = RECORD_GRANT,
		.cause = "create",
		.container_id = "other",
		.request = &other,
		.decision = &d,
		.pool = ledger_view(engine_ledger(n->g))->pool};
	struct err e;

	(void)state;
	assert_int_equal(engine_replay(n->folded, &r, &e), -16);
	assert_non_null(strstr(e.text, "record 9, container other: CPU"));
	assert_non_null(strstr(e.text, "is held by container main of pod default/a"));
	d.cpus = n->t->node[5].cpus;
	r.pool = n->t->cpus;
	assert_int_equal(engine_replay(n->folded, &r, &e), -22);
	check_same_ledger(n);
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_events_keep_every_invariant_and_fold_to_the_same),
		cmocka_unit_test(
			most_exclusive_creates_move_no_container_when_the_pool_shrinks_in_steps),
		cmocka_unit_test(a_step_is_a_quarter_of_the_node_at_most),
		cmocka_unit_test(the_pool_grows_back_once_many_cpus_are_idle),
		cmocka_unit_test(a_restarted_container_keeps_what_its_predecessor_had),
		cmocka_unit_test(a_container_without_a_name_succeeds_no_other),
		cmocka_unit_test(
			a_failed_write_of_a_record_refuses_the_container_and_changes_nothing),
		cmocka_unit_test(updates_that_could_not_be_sent_come_with_the_next_reply),
		cmocka_unit_test(a_container_seen_late_updates_the_others_with_the_next_reply),
		cmocka_unit_test(a_dump_is_the_ledger),
		cmocka_unit_test(removing_a_pod_removes_its_containers),
		cmocka_unit_test(a_record_that_contradicts_the_ones_before_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
