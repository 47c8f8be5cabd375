/* Pods whose containers are known: decided as a whole when their sandbox starts, held until it
 * goes. */
#include "engine_pods_rig.h"

static uint64_t reserved_bytes(const struct world *w)
{
	uint64_t bytes = 0;

	nodeset_each (n, w->t->nodes)
		bytes += ledger_view(engine_ledger(w->g))->memory.node[n].reserved[0];
	return bytes;
}

static void a_pod_is_decided_as_a_whole_and_each_container_claims_its_part(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_int_equal(w->nr_records[RECORD_HOLD], 1);
	for (unsigned i = 0; i < p->pod.nr; i++) {
		const struct cpuset cpus = held(w, p, i)->decision.cpus;
		struct decision d = start(w, p, i);

		assert_true(d.admit && d.exclusive);
		assert_int_equal(d.source, SOURCE_HELD);
		assert_true(cpuset_equal(&d.cpus, &cpus));
		assert_null(held(w, p, i));
		if (p->part[i].kind == CONTAINER_INIT)
			stop(w, p, i);
		check(w);
	}
	assert_int_equal(w->nr_records[RECORD_HOLD], 1);
	assert_int_equal(ledger_count(engine_ledger(w->g)), p->pod.nr);
	world_free(w);
}

static void later_containers_take_over_from_the_init_container(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_int_equal(cpuset_count(&ledger_view(engine_ledger(w->g))->held), 6); /* not 10 */
	assert_true(cpuset_within(&held(w, p, 1)->decision.cpus, &held(w, p, 0)->decision.cpus));
	world_free(w);
}

static void a_pod_that_does_not_fit_is_refused_at_once_and_holds_nothing(void **state)
{
	struct world *w = world_new(POLICY_SINGLE_NUMA_NODE, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0);
	struct cpuset pool = ledger_view(engine_ledger(w->g))->pool;

	(void)state;
	p->part[3].cpu_milli = 9000;
	struct decision d = run_pod(w, p, false);
	assert_false(d.admit);
	assert_string_equal(d.reason, "TopologyAffinityError");
	assert_string_equal(
		d.message, "container p3: Resources cannot be allocated with Topology locality");
	assert_int_equal(w->nr_records[RECORD_REFUSE], 1);
	assert_int_equal(ledger_count(engine_ledger(w->g)), 0);
	assert_true(cpuset_equal(&pool, &ledger_view(engine_ledger(w->g))->pool));
	assert_int_equal(reserved_bytes(w), 0);
	world_free(w);
}

static void a_refusal_names_the_container_that_does_not_fit(void **state)
{
	static const struct {
		enum topology_scope scope;
		unsigned cpu_milli, page_bytes; /* of the last container */
		const char *message;
	} cases[] = {
		{SCOPE_POD, 9000, 0, "Resources cannot be allocated with Topology locality"},
		{SCOPE_CONTAINER, 9000, 0,
			"container p3: Resources cannot be allocated with Topology locality"},
		{SCOPE_POD, 2000, 8192, "container p3: Allocate failed due to "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world *w = world_new(POLICY_SINGLE_NUMA_NODE, cases[i].scope, 0, false);
		struct guest *p = web(w, 0);

		p->part[3].cpu_milli = cases[i].cpu_milli;
		p->part[3].memory[0].page_bytes = cases[i].page_bytes;
		struct decision d = run_pod(w, p, false);
		assert_false(d.admit);
		if (strncmp(d.message, cases[i].message, strlen(cases[i].message)))
			fail_msg("%s", d.message);
		world_free(w);
	}
}

static void a_container_that_differs_from_its_spec_is_decided_alone(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	ask_for(w, p, 2);
	p->run[2].req.ask.cpu_milli = 5000;
	struct decision d = create_as_asked(w, &p->run[2]);
	assert_true(d.admit);
	assert_int_equal(d.source, SOURCE_DECIDED);
	assert_int_equal(cpuset_count(&d.cpus), 5);
	assert_null(held(w, p, 2));
	assert_int_equal(start(w, p, 3).source, SOURCE_HELD);
	world_free(w);
}

static void a_spec_may_list_memory_in_any_order(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = guest(w, 0, QOS_GUARANTEED);

	(void)state;
	add(p, CONTAINER_APP, 2, 0);
	p->part[0].nr_memory = 2;
	p->part[0].memory[0] = (struct memory_ask){GIB(1), GIB(2)};
	p->part[0].memory[1] = (struct memory_ask){0, GIB(3)};
	assert_true(run_pod(w, p, false).admit);
	ask_for(w, p, 0);
	p->run[0].req.ask.memory[0] = p->part[0].memory[1]; /* as runtimes report it */
	p->run[0].req.ask.memory[1] = p->part[0].memory[0];
	assert_int_equal(create_as_asked(w, &p->run[0]).source, SOURCE_HELD);
	world_free(w);
}

static void memory_of_an_init_container_is_free_once_the_next_one_runs(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_int_equal(reserved_bytes(w), GIB(20));
	assert_true(start(w, p, 0).admit);
	stop(w, p, 0);
	assert_true(create(w, p, 1).admit);
	assert_int_equal(reserved_bytes(w), GIB(20)); /* it might not come to run */
	live(w, p, 1);
	assert_int_equal(reserved_bytes(w), GIB(16));
	check(w);
	world_free(w);
}

/* What a part asked for at first is more than the part has left, once others have taken memory
 * over. */
static void a_machine_that_changes_books_for_each_part_of_a_pod_as_much_as_before(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0);
	struct topo *same = machine_without(w->t, &(const struct cpuset){0}, (struct nodeset){0});

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	engine_set_topo(w->g, 0, same);
	assert_int_equal(
		reserved_bytes(w), GIB(20)); /* the app containers reuse the init container's */
	assert_true(start(w, p, 0).admit);
	stop(w, p, 0);
	assert_true(start(w, p, 1).admit);
	engine_set_topo(w->g, 0, w->t);
	assert_int_equal(reserved_bytes(w), GIB(16));
	world_free(w);
	free(same);
}

static void a_container_that_differs_from_its_spec_ends_the_init_containers_as_well(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	ask_for(w, p, 2);
	p->run[2].req.ask.cpu_milli = 5000;
	assert_true(create_as_asked(w, &p->run[2]).admit);
	live(w, p, 2);
	assert_int_equal(reserved_bytes(w), GIB(16));
	world_free(w);
}

static void a_container_that_stops_and_comes_again_gets_the_same(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = guest(w, 0, QOS_GUARANTEED), *other = guest(w, 1, QOS_GUARANTEED);

	(void)state;
	add(other, CONTAINER_APP, 2, 1);
	assert_true(run_pod(w, other, false).admit);
	add(p, CONTAINER_APP, 3, 10);
	assert_true(run_pod(w, p, false).admit);
	struct decision first = start(w, p, 0);
	gone(w, other); /* room that a new decision would prefer */
	stop(w, p, 0);
	assert_int_equal(held(w, p, 0)->state, HOLDING_WAITING);
	check(w);
	struct decision again = start(w, p, 0);
	assert_int_equal(again.source, SOURCE_HELD);
	assert_true(cpuset_equal(&first.cpus, &again.cpus));
	assert_true(cpuset_equal(&first.cpus, &ledger_view(engine_ledger(w->g))->held));
	again = start(w, p, 0); /* before the runtime has reported that the last one is dead */
	assert_true(cpuset_equal(&first.cpus, &again.cpus));
	world_free(w);
}

static void the_pool_does_not_grow_into_cpus_of_waiting_parts(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_true(start(w, p, 2).admit);
	struct cpuset pool = ledger_view(engine_ledger(w->g))->pool;
	stop(w, p, 2);
	assert_true(cpuset_equal(&pool, &ledger_view(engine_ledger(w->g))->pool));
	gone(w, p);
	assert_true(cpuset_equal(&w->t->cpus, &ledger_view(engine_ledger(w->g))->pool));
	world_free(w);
}

static void a_removed_pod_leaves_nothing_in_the_ledger(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_POD, 2, false);

	(void)state;
	for (unsigned started = 0; started <= 4; started++) {
		struct guest *p = web(w, 0);

		assert_true(run_pod(w, p, false).admit);
		for (unsigned i = 0; i < started; i++) /* live, the last one answered only */
			assert_true((i + 1 < started ? start(w, p, i) : create(w, p, i)).admit);
		p->run[0].runs = false; /* it ends before the others start */
		gone(w, p);
		assert_true(nothing_of(w, p));
		assert_int_equal(ledger_count(engine_ledger(w->g)), 0);
		assert_int_equal(reserved_bytes(w), 0);
		check(w);
	}
	world_free(w);
}

static void a_restarted_sandbox_replaces_the_old_one(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0);
	char old[ID_MAX];

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_true(start(w, p, 0).admit);
	memcpy(old, p->sandbox, sizeof old);
	assert_true(run_pod(w, p, true).admit);
	assert_int_equal(ledger_count(engine_ledger(w->g)), 4);
	assert_int_equal(reserved_bytes(w), GIB(20));
	engine_release_pod(w->g, 0, "pod-gone",
		&(struct pod){.sandbox_id = old, .uid = ""}); /* the runtime removes it later */
	assert_int_equal(ledger_count(engine_ledger(w->g)), 4);
	assert_int_equal(start(w, p, 0).source, SOURCE_HELD);
	world_free(w);
}

static void shared_containers_make_room_before_any_container_of_the_pod_runs(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *web_pod, *shared = shared_guest(w, 0);

	(void)state;
	web_pod = web(w, 1);
	assert_true(run_pod(w, web_pod, false).admit);
	assert_int_equal(w->updates, 0);
	assert_true(create(w, web_pod, 0).admit);
	assert_int_equal(w->updates, 1);
	struct cpuset now = cpus_of(&shared->run[0]);
	assert_true(cpuset_equal(&now, &ledger_view(engine_ledger(w->g))->pool));
	world_free(w);
}

static void shared_containers_get_the_room_of_a_pod_that_has_gone(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *shared = shared_guest(w, 0), *p = web(w, 1);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_true(start(w, p, 0).admit);
	gone(w, p);
	p = shared_guest(w, 1); /* the first reply after it that carries updates */
	struct cpuset now = cpus_of(&shared->run[0]), mine = cpus_of(&p->run[0]);
	assert_true(cpuset_equal(&now, &w->t->cpus));
	assert_true(cpuset_equal(&mine, &w->t->cpus));
	world_free(w);
}

/* No container of it could claim what would be held. */
static void a_known_pod_without_a_uid_is_decided_container_by_container(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	const struct ask app = {.name = "app", .cpu_milli = 2000};
	const struct pod pod = {
		.sandbox_id = "s", .uid = "", .ns = "d", .name = "p", .nr = 1, .container = &app};
	struct decision d;

	(void)state;
	engine_run_pod(w->g, 0, &pod, &d);
	assert_true(d.admit);
	assert_int_equal(ledger_count(engine_ledger(w->g)), 0);
	world_free(w);
}

/* A runtime takes a class from the pod's cgroup, which may say nothing of it. */
static void a_waiting_part_is_claimed_although_the_runtime_reports_another_qos_class(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = guest(w, 0, QOS_BURSTABLE);

	(void)state;
	add(p, CONTAINER_APP, 2, 0);
	p->pod.has_runtime_qos = true;
	p->pod.runtime_qos = QOS_GUARANTEED;
	assert_true(run_pod(w, p, false).admit);
	assert_int_equal(held(w, p, 0)->request.pod.qos, QOS_GUARANTEED);
	struct decision d = create(w, p, 0);
	assert_int_equal(d.source, SOURCE_HELD);
	assert_false(d.exclusive);
	world_free(w);
}

/* What waits is for the sandbox that it was decided with: one of the pod's other lives has no part.
 */
static void a_part_that_waits_is_not_for_a_container_of_another_sandbox(void **state)
{
	(void)state;
	for (int same = 0; same < 2; same++) {
		struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
		struct guest *p = guest(w, 0, QOS_GUARANTEED);

		add(p, CONTAINER_APP, 2, 0);
		assert_true(run_pod(w, p, false).admit);
		ask_for(w, p, 0); /* it is created while nobody listens */
		p->run[0].runs = p->run[0].seen = true;
		if (!same)
			p->run[0].req.pod.sandbox_id = "another";
		synchronize(w);
		const struct holding *h = ledger_find(engine_ledger(w->g), p->run[0].id);
		assert_int_equal(h->decision.source, same ? SOURCE_HELD : SOURCE_ADOPTED);
		world_free(w);
	}
}

static void a_waiting_part_is_dropped_when_the_kubelet_gives_its_cpus_away(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0), *q = guest(w, 1, QOS_GUARANTEED);
	struct running *c = &q->run[0];
	struct comparison cmp;
	struct decision ours;

	(void)state;
	add(q, CONTAINER_APP, 3, 0);
	assert_true(run_pod(w, p, false).admit && run_pod(w, q, false).admit);
	struct cpuset theirs = held(w, p, 2)->decision.cpus;
	ask_for(w, q, 0);
	set_cpuset(w, c, &theirs, (struct nodeset){0});
	c->runs = c->exclusive = true;
	engine_shadow(w->g, 0, &c->req, &ours, &cmp);
	assert_true(cmp.compared && !cmp.agrees);
	const struct holding *h = ledger_find(engine_ledger(w->g), c->id);
	assert_true(h->decision.exclusive && cpuset_equal(&h->decision.cpus, &theirs));
	assert_null(held(w, p, 2));
	assert_non_null(held(w, p, 3));
	world_free(w);
}

static void shared_cpusets_are_compared_only_by_being_shared(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = guest(w, 0, QOS_BURSTABLE);
	struct comparison cmp;
	struct decision ours;

	(void)state;
	add(p, CONTAINER_APP, 1, 0);
	assert_true(run_pod(w, p, false).admit);
	ask_for(w, p, 0);
	(void)text_copy(p->run[0].cpus, CPUSET_TEXT_MAX, "0,20-40");
	engine_shadow(w->g, 0, &p->run[0].req, &ours, &cmp);
	assert_true(cmp.compared && cmp.agrees);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_decided_as_a_whole_and_each_container_claims_its_part),
		cmocka_unit_test(later_containers_take_over_from_the_init_container),
		cmocka_unit_test(a_pod_that_does_not_fit_is_refused_at_once_and_holds_nothing),
		cmocka_unit_test(a_refusal_names_the_container_that_does_not_fit),
		cmocka_unit_test(a_container_that_differs_from_its_spec_is_decided_alone),
		cmocka_unit_test(a_spec_may_list_memory_in_any_order),
		cmocka_unit_test(memory_of_an_init_container_is_free_once_the_next_one_runs),
		cmocka_unit_test(
			a_machine_that_changes_books_for_each_part_of_a_pod_as_much_as_before),
		cmocka_unit_test(
			a_container_that_differs_from_its_spec_ends_the_init_containers_as_well),
		cmocka_unit_test(a_container_that_stops_and_comes_again_gets_the_same),
		cmocka_unit_test(the_pool_does_not_grow_into_cpus_of_waiting_parts),
		cmocka_unit_test(a_removed_pod_leaves_nothing_in_the_ledger),
		cmocka_unit_test(a_restarted_sandbox_replaces_the_old_one),
		cmocka_unit_test(shared_containers_make_room_before_any_container_of_the_pod_runs),
		cmocka_unit_test(shared_containers_get_the_room_of_a_pod_that_has_gone),
		cmocka_unit_test(a_known_pod_without_a_uid_is_decided_container_by_container),
		cmocka_unit_test(
			a_waiting_part_is_claimed_although_the_runtime_reports_another_qos_class),
		cmocka_unit_test(a_part_that_waits_is_not_for_a_container_of_another_sandbox),
		cmocka_unit_test(a_waiting_part_is_dropped_when_the_kubelet_gives_its_cpus_away),
		cmocka_unit_test(shared_cpusets_are_compared_only_by_being_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
