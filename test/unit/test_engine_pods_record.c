/* Pods that are decided as a whole: what is on record of them, resizes, and what a restart makes of
 * their parts. */
#include "engine_pods_rig.h"

static void synchronize_keeps_waiting_parts_of_pods_that_exist(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0), *q;

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	assert_true(start(w, p, 2).admit);
	assert_true(start(w, p, 3).admit);
	q = guest(w, 1, QOS_GUARANTEED);
	add(q, CONTAINER_APP, 2, 1);
	assert_true(run_pod(w, q, false).admit);
	assert_true(start(w, q, 0).admit);
	p->run[3].runs = false; /* died while nobody listened; the other pod went altogether */
	q->run[0].runs = q->there = false;
	synchronize(w);
	assert_true(nothing_of(w, q));
	assert_int_equal(ledger_count(engine_ledger(w->g)), 4);
	assert_int_equal(held(w, p, 3)->state, HOLDING_WAITING);
	assert_int_equal(ledger_find(engine_ledger(w->g), p->run[2].id)->state, HOLDING_LIVE);
	world_free(w);
}

static void a_container_created_while_the_daemon_was_away_gets_its_waiting_part(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	for (unsigned i = 2; i < 4; i++) {
		struct cpuset cpus = held(w, p, i)->decision.cpus, now;

		ask_for(w, p, i);
		p->run[i].runs = true;
		p->run[i].seen = i == 2;
		(void)cpuset_format(&w->t->cpus, p->run[i].cpus, CPUSET_TEXT_MAX);
		if (i == 2)
			synchronize(w);
		else
			live(w, p, i);
		const struct holding *h = ledger_find(engine_ledger(w->g), p->run[i].id);
		assert_int_equal(h->decision.source, SOURCE_HELD);
		assert_int_equal(h->state, HOLDING_LIVE);
		assert_true(cpuset_equal(&h->decision.cpus, &cpus));
		if (i == 3)
			(void)shared_guest(w, 1); /* whose reply carries it */
		now = cpus_of(&p->run[i]);
		assert_true(cpuset_equal(&now, &cpus));
	}
	p->run[3].exclusive = true;
	world_free(w);
}

static void a_failed_write_of_a_record_refuses_the_pod_and_changes_nothing(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 2, false);
	struct guest *p = web(w, 0);
	struct cpuset pool = ledger_view(engine_ledger(w->g))->pool;

	(void)state;
	w->failing = true;
	struct decision d = run_pod(w, p, false);
	assert_false(d.admit);
	assert_non_null(strstr(d.message, "no space left on device"));
	assert_int_equal(ledger_count(engine_ledger(w->g)), 0);
	assert_true(cpuset_equal(&pool, &ledger_view(engine_ledger(w->g))->pool));
	w->failing = false;
	assert_true(run_pod(w, p, false).admit);
	w->failing = true;
	assert_false(create(w, p, 0).admit);
	assert_non_null(held(w, p, 0));
	w->failing = false;
	assert_int_equal(create(w, p, 0).source, SOURCE_HELD);
	world_free(w);
}

static void a_running_container_is_held_even_if_the_record_cannot_be_written(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = guest(w, 0, QOS_GUARANTEED);

	(void)state;
	add(p, CONTAINER_APP, 2, 1);
	p->unknown = true;
	assert_true(run_pod(w, p, false).admit);
	ask_for(w, p, 0);
	p->run[0].runs = true;
	w->failing = true;
	synchronize(w);
	assert_int_equal(ledger_find(engine_ledger(w->g), p->run[0].id)->state, HOLDING_LIVE);
	assert_int_equal(cpuset_count(&ledger_view(engine_ledger(w->g))->held), 2);
	assert_int_equal(w->updates, 1);
	w->failing = false;
	fold_anew(w); /* as the journal does once it can be written again */
	world_free(w);
}

static void a_record_that_holds_taken_cpus_is_refused(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0);
	struct record_part part = {0};
	struct record r = {.seq = 7, .op = RECORD_HOLD, .parts = &part, .nr_parts = 1};
	struct err e;

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	struct decision claimed = start(w, p, 2);
	r.pool = ledger_view(engine_ledger(w->g))->pool;
	r.container_id = p->sandbox;
	part.request = held(w, p, 3)->request;
	part.decision = held(w, p, 3)->decision;
	assert_int_equal(engine_replay(w->folded, &r, &e), 0); /* the very same once more */
	part.request.ask.name = "p9";
	part.request.ask.place = 9;
	assert_int_equal(engine_replay(w->folded, &r, &e), -16);
	assert_non_null(strstr(e.text, "is held by container p3"));
	part.request.pod.uid = "elsewhere";
	assert_int_equal(engine_replay(w->folded, &r, &e), -16);
	struct record grant = {.seq = 8, .op = RECORD_GRANT, .pool = r.pool};
	struct request other = p->run[2].req;
	grant.container_id = other.container_id = "other"; /* its part was claimed before */
	grant.request = &other;
	grant.decision = &claimed;
	assert_true(engine_replay(w->folded, &grant, &e) < 0);
	claimed.source = SOURCE_DECIDED;
	assert_int_equal(engine_replay(w->folded, &grant, &e), -16);
	world_free(w);
}

static void a_part_that_shrinks_gives_back_what_no_other_part_holds(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	struct cpuset of_init = held(w, p, 0)->decision.cpus;
	struct cpuset had = start(w, p, 2).cpus;
	assert_true(cpuset_intersects(&had, &of_init));
	struct request wish = p->run[2].req;
	wish.ask.cpu_milli = 1000;
	struct decision d = update(w, &p->run[2], &wish);
	assert_true(d.admit && cpuset_count(&d.cpus) == 1 && cpuset_within(&d.cpus, &had));
	assert_true(cpuset_within(&of_init, &ledger_view(engine_ledger(w->g))->held));
	world_free(w);
}

static void a_refused_resize_is_on_record_and_changes_nothing(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = web(w, 0);

	(void)state;
	assert_true(run_pod(w, p, false).admit);
	struct cpuset had = start(w, p, 2).cpus;
	struct request wish = p->run[2].req;
	wish.ask.cpu_milli = 12000; /* two NUMA nodes, where one could have been enough */
	struct decision d = update(w, &p->run[2], &wish);
	assert_false(d.admit);
	assert_string_equal(d.reason, "TopologyAffinityError");
	assert_true(cpuset_equal(&d.cpus, &had));
	assert_int_equal(w->nr_records[RECORD_REFUSE], 1);
	world_free(w);
}

static void containers_that_can_stay_are_adopted_before_others_are_placed(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *older = guest(w, 0, QOS_GUARANTEED), *p = guest(w, 1, QOS_GUARANTEED);

	(void)state;
	add(older, CONTAINER_APP, 2, 1);
	add(p, CONTAINER_APP, 2, 1);
	older->unknown = p->unknown = true;
	assert_true(run_pod(w, older, false).admit && run_pod(w, p, false).admit);
	ask_for(w, older, 0);
	struct cpuset had = start(w, p, 0).cpus;
	older->run[0].runs = older->run[0].seen = true; /* started while nobody listened */
	(void)cpuset_format(&w->t->cpus, older->run[0].cpus, CPUSET_TEXT_MAX);
	lose_the_journal(w);
	struct cpuset now = cpus_of(&p->run[0]);
	assert_true(cpuset_equal(&now, &had));
	world_free(w);
}

static void a_container_that_got_cpus_by_a_resize_keeps_them_without_a_journal(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct guest *p = guest(w, 0, QOS_GUARANTEED);

	(void)state;
	add(p, CONTAINER_APP, 0, 1);
	p->part[0].cpu_milli = 1500;
	assert_true(run_pod(w, p, false).admit);
	assert_false(start(w, p, 0).exclusive); /* as its annotation says for ever */
	struct request wish = p->run[0].req;
	wish.ask.cpu_milli = 2000;
	struct cpuset had = update(w, &p->run[0], &wish).cpus;
	assert_int_equal(cpuset_count(&had), 2);
	lose_the_journal(w);
	assert_true(cpuset_equal(&had, &ledger_view(engine_ledger(w->g))->held));
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(synchronize_keeps_waiting_parts_of_pods_that_exist),
		cmocka_unit_test(
			a_container_created_while_the_daemon_was_away_gets_its_waiting_part),
		cmocka_unit_test(a_failed_write_of_a_record_refuses_the_pod_and_changes_nothing),
		cmocka_unit_test(a_running_container_is_held_even_if_the_record_cannot_be_written),
		cmocka_unit_test(a_record_that_holds_taken_cpus_is_refused),
		cmocka_unit_test(a_part_that_shrinks_gives_back_what_no_other_part_holds),
		cmocka_unit_test(a_refused_resize_is_on_record_and_changes_nothing),
		cmocka_unit_test(containers_that_can_stay_are_adopted_before_others_are_placed),
		cmocka_unit_test(
			a_container_that_got_cpus_by_a_resize_keeps_them_without_a_journal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
