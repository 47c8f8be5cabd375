/* Pods with resources of their own (KEP-5526), which are shared out among their containers. */
#include "core_pods.h"

static struct world *world_with_gate(enum topology_scope scope, bool on)
{
	struct world *w = world_new(POLICY_RESTRICTED, scope, 0, false);

	w->s.gates.pod_level_resource_managers = on;
	return w;
}

static void add_guaranteed(struct guest *p, enum container_kind kind, unsigned cpus, unsigned gib)
{
	add(p, kind, cpus, gib);
	p->part[p->pod.nr - 1].guaranteed = true;
}

/* 6 CPUs: a sidecar with one, an application with three, and two that name none. */
static struct guest *team(struct world *w, unsigned i)
{
	struct guest *p = guest(w, i, QOS_GUARANTEED);

	p->pod.pod_level = true;
	p->own = (struct ask){.name = "",
		.cpu_milli = 6000,
		.nr_memory = 1,
		.memory = {{0, GIB(16)}},
		.guaranteed = true,
		.whole_pod = true};
	add_guaranteed(p, CONTAINER_SIDECAR, 1, 1);
	add_guaranteed(p, CONTAINER_APP, 3, 8);
	add(p, CONTAINER_APP, 0, 0);
	add(p, CONTAINER_APP, 0, 0);
	return p;
}

enum { ALONE_SIDECAR, ALONE, SHARES, SHARES_TOO, NR_IN_TEAM };

static void start_all(struct world *w, struct guest *p, struct decision d[NR_IN_TEAM])
{
	for (unsigned i = 0; i < NR_IN_TEAM; i++) {
		d[i] = start(w, p, i);
		assert_true(d[i].admit);
		check(w);
	}
}

static uint64_t booked(const struct world *w)
{
	uint64_t bytes = 0;

	nodeset_each (n, w->t->nodes)
		bytes += ledger_view(engine_ledger(w->g))->memory.node[n].reserved[0];
	return bytes;
}

static void who_is_alone_has_cpus_to_itself_and_the_others_of_the_pod_share_the_rest(void **state)
{
	struct world *w = world_with_gate(SCOPE_POD, true);
	struct guest *p = team(w, 0);
	struct decision d[NR_IN_TEAM];
	struct cpuset held, all;

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	held = ledger_view(engine_ledger(w->g))->held;
	assert_int_equal(cpuset_count(&held), 6);
	assert_true(booked(w) == GIB(16));
	start_all(w, p, d);
	assert_int_equal(cpuset_count(&d[ALONE_SIDECAR].cpus), 1);
	assert_int_equal(cpuset_count(&d[ALONE].cpus), 3);
	assert_int_equal(cpuset_count(&d[SHARES].cpus), 2);
	assert_true(cpuset_equal(&d[SHARES].cpus, &d[SHARES_TOO].cpus));
	all = cpuset_or(d[ALONE_SIDECAR].cpus, &d[ALONE].cpus);
	assert_false(cpuset_intersects(&all, &d[SHARES].cpus));
	all = cpuset_or(all, &d[SHARES].cpus);
	assert_true(cpuset_equal(&all, &held));
	assert_true(booked(w) == GIB(16));
	for (unsigned i = 0; i < NR_IN_TEAM; i++)
		assert_int_equal(
			request_shares_in_pod(
				&ledger_find(engine_ledger(w->g), p->run[i].id)->request, &d[i]),
			i >= SHARES);
	world_free(w);
}

static void a_pod_that_leaves_nothing_to_share_is_refused_for_the_kubelets_reason(void **state)
{
	struct world *w = world_with_gate(SCOPE_POD, true);
	struct guest *p = team(w, 0);

	(void)state;
	w->s.topology_policy = POLICY_BEST_EFFORT;
	p->own.cpu_milli = 4000;
	struct decision d = run_pod(w, p, false);
	assert_false(d.admit);
	assert_string_equal(d.reason, "EmptyPodSharedPoolError");
	world_free(w);
}

static void a_container_that_is_started_again_has_its_part_of_the_pod_again(void **state)
{
	struct world *w = world_with_gate(SCOPE_POD, true);
	struct guest *p = team(w, 0);
	struct decision d[NR_IN_TEAM], again;

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	start_all(w, p, d);
	for (unsigned i = 0; i < NR_IN_TEAM; i++) {
		struct cpuset pool = ledger_view(engine_ledger(w->g))->pool;

		stop(w, p, i);
		check(w);
		assert_true(cpuset_equal(&pool, &ledger_view(engine_ledger(w->g))->pool));
		again = start(w, p, i);
		assert_true(cpuset_equal(&again.cpus, &d[i].cpus));
		assert_int_equal(again.source, SOURCE_HELD);
		check(w);
	}
	world_free(w);
}

static void all_that_the_pod_has_is_free_again_when_it_ends(void **state)
{
	struct world *w = world_with_gate(SCOPE_POD, true);
	struct guest *p = team(w, 0);
	struct decision d[NR_IN_TEAM];

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	start_all(w, p, d);
	gone(w, p);
	assert_true(nothing_of(w, p));
	assert_true(cpuset_empty(&ledger_view(engine_ledger(w->g))->held));
	assert_true(booked(w) == 0);
	world_free(w);
}

static void nobody_outside_the_pod_gets_what_none_of_its_containers_has(void **state)
{
	struct world *w = world_with_gate(SCOPE_POD, true);
	struct guest *p = team(w, 0), *other;
	struct cpuset of_pod;

	(void)state;
	p->pod.nr = 2; /* who would share is not there */
	assert_true(run_pod(w, p, false).admit);
	of_pod = ledger_view(engine_ledger(w->g))->held;
	assert_int_equal(cpuset_count(&of_pod), 6);
	for (unsigned i = 1; i < PODS_MAX; i++) {
		other = guest(w, i, QOS_GUARANTEED);
		add(other, CONTAINER_APP, 5, 1);
		if (!run_pod(w, other, false).admit)
			break;
		const struct cpuset theirs = held(w, other, 0)->decision.cpus;
		assert_false(cpuset_intersects(&theirs, &of_pod));
	}
	world_free(w);
}

static void in_container_scope_who_is_not_alone_shares_the_nodes_cpus(void **state)
{
	struct world *w = world_with_gate(SCOPE_CONTAINER, true);
	struct guest *p = team(w, 0);
	struct decision d[NR_IN_TEAM];

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_int_equal(cpuset_count(&ledger_view(engine_ledger(w->g))->held), 4);
	start_all(w, p, d);
	assert_true(d[ALONE_SIDECAR].exclusive && d[ALONE].exclusive);
	assert_false(d[SHARES].exclusive || d[SHARES_TOO].exclusive);
	assert_int_equal(d[SHARES].nr_blocks, 0);
	assert_true(booked(w) == GIB(9));
	world_free(w);
}

/* The runtime shows a container without limits with those of its pod. */
static void without_the_gate_no_container_of_such_a_pod_has_cpus_to_itself(void **state)
{
	(void)state;
	for (int scope = SCOPE_CONTAINER; scope <= SCOPE_POD; scope++) {
		struct world *w = world_with_gate((enum topology_scope)scope, false);
		struct guest *p = team(w, 0);
		struct decision d[NR_IN_TEAM];

		assert_true(run_pod(w, p, false).admit);
		start_all(w, p, d);
		for (unsigned i = 0; i < NR_IN_TEAM; i++)
			assert_false(d[i].exclusive || d[i].nr_blocks);
		assert_true(cpuset_empty(&ledger_view(engine_ledger(w->g))->held));
		world_free(w);
	}
}

static void containers_of_an_unknown_pod_get_no_more_than_its_sandbox_says(void **state)
{
	(void)state;
	for (int scope = SCOPE_CONTAINER; scope <= SCOPE_POD; scope++) {
		struct world *w = world_with_gate((enum topology_scope)scope, true);
		struct guest *p = team(w, 0);
		unsigned nr = 0;

		p->unknown = true;
		p->pod.totals = (struct pod_totals){true, 6000, GIB(16)};
		assert_true(run_pod(w, p, false).admit);
		for (unsigned i = NR_IN_TEAM; i-- > 0;) {
			struct decision d = start(w, p, i);

			assert_true(d.admit);
			nr += d.exclusive ? cpuset_count(&d.cpus) : 0;
			if (!d.exclusive)
				assert_non_null(strstr(d.message, "was not known"));
			check(w);
		}
		assert_int_equal(nr, 6);
		world_free(w);
	}
}

/* Of 4 CPUs of its pod it has 2: the 4 of another pod are none of these. */
static void of_an_unknown_pod_no_cpus_of_other_pods_count(void **state)
{
	struct world *w = world_with_gate(SCOPE_CONTAINER, true);
	struct guest *other = guest(w, 0, QOS_GUARANTEED), *p = guest(w, 1, QOS_GUARANTEED);

	(void)state;
	add(other, CONTAINER_APP, 1, 0);
	add(other, CONTAINER_APP, 4, 0); /* of another name than the pod's only container */
	assert_true(run_pod(w, other, false).admit);
	assert_true(start(w, other, 1).exclusive);
	add(p, CONTAINER_APP, 2, 0);
	p->unknown = true;
	p->pod.totals = (struct pod_totals){true, 4000, 0};
	assert_true(run_pod(w, p, false).admit);
	assert_true(start(w, p, 0).exclusive);
	assert_false(ledger_find(engine_ledger(w->g), p->run[0].id)->request.pod.pod_level);
	world_free(w);
}

static void a_resize_changes_limits_within_the_pod_and_refuses_other_cpus_or_memory(void **state)
{
	struct world *w = world_with_gate(SCOPE_POD, true);
	struct guest *p = team(w, 0);
	struct decision d[NR_IN_TEAM], now;
	struct request wish;

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	start_all(w, p, d);
	wish = p->run[SHARES].req;
	wish.ask.cpu_milli = wish.ask.cpu_limit_milli = 8000; /* its pod's */
	now = update(w, &p->run[SHARES], &wish);
	assert_true(now.admit && cpuset_equal(&now.cpus, &d[SHARES].cpus));
	check(w);
	wish = p->run[ALONE].req;
	wish.ask.cpu_milli = 2000;
	now = update(w, &p->run[ALONE], &wish);
	assert_false(now.admit);
	assert_non_null(strstr(now.message, "spec.resources"));
	check(w);
	wish = p->run[ALONE].req;
	wish.ask.memory[0].bytes = GIB(9);
	assert_false(update(w, &p->run[ALONE], &wish).admit);
	check(w);
	now = ledger_find(engine_ledger(w->g), p->run[ALONE].id)->decision;
	assert_true(cpuset_equal(&now.cpus, &d[ALONE].cpus));
	world_free(w);
}

static void a_pod_whose_cpus_go_offline_gets_others_and_its_containers_follow(void **state)
{
	struct world *w = world_with_gate(SCOPE_POD, true);
	struct guest *p = team(w, 0);
	struct topo *full = w->t, *less;
	struct decision d[NR_IN_TEAM], now;
	struct cpuset gone_cpus, held;
	struct update_list ups = {0};

	(void)state;
	w->s.topology_policy = POLICY_BEST_EFFORT;
	assert_true(run_pod(w, p, false).admit);
	start_all(w, p, d);
	gone_cpus = cpuset_or(d[ALONE].cpus, &d[SHARES].cpus);
	less = w->t = machine_without(full, &gone_cpus, (struct nodeset){0});
	engine_set_topo(w->g, 0, less);
	engine_take_updates(w->g, &ups);
	assert_int_equal(ups.nr, 3); /* but for the sidecar */
	apply(w, &ups);
	fold_anew(w);
	for (unsigned i = 0; i < NR_IN_TEAM; i++)
		note_exclusive(w, &p->run[i]);
	check(w);
	held = ledger_view(engine_ledger(w->g))->held;
	assert_int_equal(cpuset_count(&held), 6);
	for (unsigned i = 0; i < NR_IN_TEAM; i++) {
		now = ledger_find(engine_ledger(w->g), p->run[i].id)->decision;
		assert_int_equal(cpuset_count(&now.cpus), cpuset_count(&d[i].cpus));
		assert_true(cpuset_within(&now.cpus, &held));
	}
	free(full);
	world_free(w);
}

static void a_lost_journal_gives_no_cpu_of_the_pod_twice(void **state)
{
	struct world *w = world_with_gate(SCOPE_POD, true);
	struct guest *p = team(w, 0);
	struct decision d[NR_IN_TEAM];

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	start_all(w, p, d);
	lose_the_journal(w);
	check(w);
	assert_true(cpuset_count(&ledger_view(engine_ledger(w->g))->held) >= 4);
	world_free(w);
}

/* It was resized after the pod's CPUs were shared out, and before it came: it shares what it was to
 * share, and none of that is its own. */
static void a_part_is_as_it_was_shared_out_whatever_its_container_asks_for_by_then(void **state)
{
	struct world *w = world_with_gate(SCOPE_POD, true);
	struct guest *p = team(w, 0);
	const struct holding *h;

	(void)state;
	p->part[ALONE].cpu_milli = 500;
	assert_true(run_pod(w, p, false).admit);
	p->part[ALONE].cpu_milli = 3000;
	assert_true(start(w, p, SHARES).admit);
	assert_true(start(w, p, ALONE).admit);
	check(w);
	h = ledger_find(engine_ledger(w->g), p->run[ALONE].id);
	assert_true(request_shares_in_pod(&h->request, &h->decision));
	assert_false(holding_has_own_cpus(h)); /* so that its CFS quota stays */
	world_free(w);
}

/* Records that nobody writes: a fold must not come to grief. */
static void a_part_without_its_pod_is_no_record(void **state)
{
	struct world *w = world_with_gate(SCOPE_POD, true);
	struct record_part part = {
		.request = {.container_id = "",
			.ask.name = "a",
			.pod = {.sandbox_id = "s", .uid = "u", .ns = "n", .name = "p"},
			.cpus = "",
			.mems = ""},
		.decision = {.admit = true,
			.source = SOURCE_HELD,
			.exclusive = true,
			.within_pod = true,
			.mems = w->t->nodes}};
	struct record r = {.seq = 1,
		.op = RECORD_HOLD,
		.cause = "run-pod",
		.container_id = "s",
		.parts = &part,
		.nr_parts = 1,
		.pool = ledger_view(engine_ledger(w->g))->pool};
	struct err e;

	(void)state;
	cpuset_add(&part.decision.cpus, 1);
	r.pool = cpuset_minus(r.pool, &part.decision.cpus);
	assert_int_equal(engine_replay(w->folded, &r, &e), -22);
	assert_non_null(strstr(e.text, "its pod n/p has no such CPUs as one"));
	part.decision.source = SOURCE_DECIDED;
	part.request.container_id = r.container_id = "c";
	r.op = RECORD_GRANT;
	r.nr_parts = 0;
	r.request = &part.request;
	r.decision = &part.decision;
	assert_int_equal(engine_replay(w->folded, &r, &e), -22);
	assert_int_equal(ledger_count(engine_ledger(w->folded)), 0);
	fold_anew(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			who_is_alone_has_cpus_to_itself_and_the_others_of_the_pod_share_the_rest),
		cmocka_unit_test(
			a_pod_that_leaves_nothing_to_share_is_refused_for_the_kubelets_reason),
		cmocka_unit_test(a_container_that_is_started_again_has_its_part_of_the_pod_again),
		cmocka_unit_test(
			a_part_is_as_it_was_shared_out_whatever_its_container_asks_for_by_then),
		cmocka_unit_test(all_that_the_pod_has_is_free_again_when_it_ends),
		cmocka_unit_test(nobody_outside_the_pod_gets_what_none_of_its_containers_has),
		cmocka_unit_test(in_container_scope_who_is_not_alone_shares_the_nodes_cpus),
		cmocka_unit_test(without_the_gate_no_container_of_such_a_pod_has_cpus_to_itself),
		cmocka_unit_test(containers_of_an_unknown_pod_get_no_more_than_its_sandbox_says),
		cmocka_unit_test(of_an_unknown_pod_no_cpus_of_other_pods_count),
		cmocka_unit_test(
			a_resize_changes_limits_within_the_pod_and_refuses_other_cpus_or_memory),
		cmocka_unit_test(a_pod_whose_cpus_go_offline_gets_others_and_its_containers_follow),
		cmocka_unit_test(a_part_without_its_pod_is_no_record),
		cmocka_unit_test(a_lost_journal_gives_no_cpu_of_the_pod_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
