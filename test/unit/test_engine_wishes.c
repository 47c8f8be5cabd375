/* What wishes do to what containers are given, while the shared pool moves, and after restarts. */
#include "core_pods.h"

static struct world *world(void)
{
	return world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
}

/* A pod of one container, whose spec is not known, which asks for that and wishes for that. */
static struct guest *pod_of_one(
	struct world *w, unsigned i, enum qos qos, uint64_t milli, struct wishes wishes)
{
	struct guest *p = guest(w, i, qos);

	add(p, CONTAINER_APP, 0, 1);
	p->part[0].cpu_milli = milli;
	p->part[0].wishes = wishes;
	p->unknown = true;
	assert_true(run_pod(w, p, false).admit);
	return p;
}

static struct guest *start_one(
	struct world *w, unsigned i, enum qos qos, uint64_t milli, struct wishes wishes)
{
	struct guest *p = pod_of_one(w, i, qos, milli, wishes);

	assert_true(start(w, p, 0).admit);
	check(w);
	return p;
}

static struct cpuset pool(const struct world *w)
{
	return ledger_view(engine_ledger(w->g))->pool;
}

static const struct decision *decision_of(const struct world *w, const struct guest *p)
{
	return &ledger_find(engine_ledger(w->g), p->run[0].id)->decision;
}

static void
a_guaranteed_container_that_wishes_for_shared_cpus_is_in_the_pool_with_its_memory_pinned(
	void **state)
{
	struct world *w = world();
	struct guest *p =
		start_one(w, 0, QOS_GUARANTEED, 4000, (struct wishes){.cpus = WISH_CPUS_SHARED});
	const struct cpuset in_force = cpus_of(&p->run[0]), all = pool(w);

	(void)state;
	assert_false(decision_of(w, p)->exclusive);
	assert_true(cpuset_equal(&in_force, &all));
	assert_int_equal(decision_of(w, p)->nr_blocks, 1);
	world_free(w);
}

static void own_and_shared_cpus_are_both_in_the_cpuset_and_follow_the_pool(void **state)
{
	struct world *w = world();
	struct guest *p = start_one(
		w, 0, QOS_GUARANTEED, 3500, (struct wishes){.cpus = WISH_CPUS_OWN_SHARED});
	const struct cpuset own = decision_of(w, p)->cpus;

	(void)state;
	assert_int_equal(cpuset_count(&own), 3);
	for (unsigned i = 1; i < 4; i++) {
		struct cpuset in_force, want;

		(void)start_one(w, i, QOS_GUARANTEED, 8000, (struct wishes){0});
		want = pool(w);
		want = cpuset_or(want, &own);
		in_force = cpus_of(&p->run[0]);
		assert_true(cpuset_equal(&in_force, &want));
	}
	gone(w, &w->guest[2]);
	synchronize(w);
	const struct cpuset now = cpus_of(&p->run[0]);
	struct cpuset want = pool(w);
	want = cpuset_or(want, &own);
	assert_true(cpuset_equal(&now, &want));
	assert_false(holding_has_own_cpus(ledger_find(engine_ledger(w->g), p->run[0].id)));
	world_free(w);
}

static void one_thread_of_each_core_runs_and_the_others_are_idle(void **state)
{
	struct world *w = world();
	struct guest *log = start_one(w, 0, QOS_BURSTABLE, 100, (struct wishes){0});
	struct guest *p = start_one(
		w, 1, QOS_GUARANTEED, 8000, (struct wishes){.cores = WISH_CORES_ONE_THREAD});
	const struct cpuset held = decision_of(w, p)->cpus, in_force = cpus_of(&p->run[0]);
	const struct cpuset whole = cpus_whole_cores(w->t, &in_force),
			    others = cpus_of(&log->run[0]);

	(void)state;
	assert_int_equal(cpuset_count(&held), 8);
	assert_int_equal(cpuset_count(&in_force), 4);
	assert_true(cpuset_equal(&whole, &held));
	assert_false(cpuset_intersects(&others, &held));
	world_free(w);
}

static void whole_cores_are_no_part_of_a_core_that_another_container_has(void **state)
{
	struct world *w = world();

	(void)state;
	for (unsigned i = 0; i < 4; i++) /* breaks a core each */
		(void)start_one(w, i, QOS_GUARANTEED, 1000, (struct wishes){0});
	for (unsigned i = 4; i < 8; i++)
		(void)start_one(
			w, i, QOS_GUARANTEED, 2000, (struct wishes){.cores = WISH_CORES_WHOLE});
	struct guest *p =
		pod_of_one(w, 8, QOS_GUARANTEED, 3000, (struct wishes){.cores = WISH_CORES_WHOLE});
	const struct decision d = create(w, p, 0);
	assert_false(d.admit);
	assert_string_equal(d.reason, "SMTAlignmentError");
	world_free(w);
}

/* Two that share the pool, a NUMA node each; a third beside the one that asks for less. */
static void containers_spread_over_the_numa_nodes_of_the_pool(void **state)
{
	struct world *w = world();
	const struct wishes one = {.spread = WISH_SPREAD_ONE_NODE};
	struct guest *big = start_one(w, 0, QOS_BURSTABLE, 6000, one), *p[8];
	struct nodeset seen = decision_of(w, big)->spread;

	(void)state;
	for (unsigned i = 1; i < 8; i++) {
		p[i] = start_one(w, i, QOS_BURSTABLE, 2000, one);
		const struct nodeset on = decision_of(w, p[i])->spread;
		const struct cpuset near = topo_cpus_of(w->t, on),
				    in_force = cpus_of(&p[i]->run[0]);

		assert_int_equal(nodeset_count(on), 1);
		assert_true(nodeset_empty(nodeset_and(seen, on)));
		assert_true(cpuset_within(&in_force, &near));
		seen = nodeset_or(seen, on);
	}
	struct guest *last = start_one(w, 8, QOS_BURSTABLE, 100, one);
	assert_true(nodeset_empty(
		nodeset_and(decision_of(w, last)->spread, decision_of(w, big)->spread)));
	world_free(w);
}

static void spread_memory_is_of_that_numa_node_where_it_is_wished_for(void **state)
{
	struct world *w = world();
	struct guest *wide = start_one(
		w, 0, QOS_BURSTABLE, 1000, (struct wishes){.spread = WISH_SPREAD_ONE_NODE});
	struct guest *strict =
		start_one(w, 1, QOS_BURSTABLE, 1000, (struct wishes){.spread = WISH_SPREAD_STRICT});

	(void)state;
	assert_true(nodeset_equal(decision_of(w, wide)->mems, w->t->nodes_with_memory));
	assert_true(nodeset_equal(decision_of(w, strict)->mems, decision_of(w, strict)->spread));
	world_free(w);
}

static void a_numa_node_without_a_shared_cpu_leaves_the_whole_pool(void **state)
{
	struct world *w = world();
	/* on the first NUMA node, where some CPUs are reserved */
	(void)start_one(w, 2, QOS_BURSTABLE, 6000, (struct wishes){.spread = WISH_SPREAD_ONE_NODE});
	struct guest *p = start_one(
		w, 0, QOS_BURSTABLE, 1000, (struct wishes){.spread = WISH_SPREAD_ONE_NODE});
	const struct nodeset on = decision_of(w, p)->spread;
	const struct cpuset near = topo_cpus_of(w->t, on);
	const struct advice_ask there = {
		.so_far = ADVICE_ACCEPTED, .mode = ADVICE_PREFER, .asked = on};
	struct guest *taker =
		pod_of_one(w, 1, QOS_GUARANTEED, 1000 * cpuset_count(&near), (struct wishes){0});

	(void)state;
	ask_for(w, taker, 0);
	taker->run[0].req.ask.advice = &there;
	assert_true(create_as_asked(w, &taker->run[0]).admit);
	live(w, taker, 0);
	assert_true(cpuset_equal(&decision_of(w, taker)->cpus, &near));
	const struct cpuset in_force = cpus_of(&p->run[0]), all = pool(w);
	assert_true(cpuset_equal(&in_force, &all));
	gone(w, taker);
	synchronize(w);
	const struct cpuset again = cpus_of(&p->run[0]);
	assert_true(cpuset_equal(&again, &near));
	world_free(w);
}

/* The journal is lost: the cpuset in force does not say which CPUs are whose; the annotation does.
 */
static void what_is_its_own_outlasts_the_journal(void **state)
{
	static const struct wishes table[] = {
		{.cpus = WISH_CPUS_OWN_SHARED},
		{.cores = WISH_CORES_ONE_THREAD},
		{.cpus = WISH_CPUS_OWN_SHARED, .cores = WISH_CORES_ONE_THREAD},
		{.cores = WISH_CORES_WHOLE},
		{.cpus = WISH_CPUS_OWN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct world *w = world();
		struct guest *p = start_one(w, 0, QOS_GUARANTEED, 4000, table[i]);
		const struct cpuset own = decision_of(w, p)->cpus, in_force = cpus_of(&p->run[0]);

		(void)start_one(w, 1, QOS_BURSTABLE, 100, (struct wishes){0});
		lose_the_journal(w);
		check(w);
		const struct cpuset now = cpus_of(&p->run[0]);
		assert_true(cpuset_equal(&decision_of(w, p)->cpus, &own));
		assert_true(cpuset_equal(&now, &in_force));
		world_free(w);
	}
}

/* Annotations are anybody's: CPUs that another container holds are not given for one. */
static void a_forged_annotation_gets_no_cpus_of_another_container(void **state)
{
	struct world *w = world();
	struct guest *victim = start_one(w, 0, QOS_GUARANTEED, 4000, (struct wishes){0});
	struct guest *p = start_one(
		w, 1, QOS_GUARANTEED, 4000, (struct wishes){.cpus = WISH_CPUS_OWN_SHARED});
	const struct cpuset theirs = decision_of(w, victim)->cpus;

	(void)state;
	p->run[0].placed.cpus = theirs;
	p->run[0].req.created_at_ns = 0; /* it is looked at first */
	lose_the_journal(w);
	check(w);
	assert_true(cpuset_equal(&decision_of(w, victim)->cpus, &theirs));
	world_free(w);
}

static void a_restarted_container_keeps_its_wishes_and_its_cpus(void **state)
{
	struct world *w = world();
	struct guest *p = start_one(
		w, 0, QOS_GUARANTEED, 4000, (struct wishes){.cpus = WISH_CPUS_OWN_SHARED});
	const struct cpuset own = decision_of(w, p)->cpus;

	(void)state;
	p->part[0].wishes = (struct wishes){0}; /* not allowed any more */
	assert_true(start(w, p, 0).admit);
	check(w);
	assert_true(cpuset_equal(&decision_of(w, p)->cpus, &own));
	assert_int_equal(ledger_find(engine_ledger(w->g), p->run[0].id)->request.ask.wishes.cpus,
		WISH_CPUS_OWN_SHARED);
	world_free(w);
}

static void a_resize_gives_no_part_of_a_whole_core_up(void **state)
{
	struct world *w = world();
	struct guest *p =
		start_one(w, 0, QOS_GUARANTEED, 4000, (struct wishes){.cores = WISH_CORES_WHOLE});
	struct request less = p->run[0].req;

	(void)state;
	less.ask.cpu_milli = 3000;
	assert_false(update(w, &p->run[0], &less).admit);
	less.ask.cpu_milli = 2000;
	assert_true(update(w, &p->run[0], &less).admit);
	check(w);
	world_free(w);
}

static void a_wish_that_cannot_be_read_refuses_the_container_or_its_pod(void **state)
{
	struct world *w = world();
	struct guest *p = pod_of_one(w, 0, QOS_GUARANTEED, 1000, (struct wishes){0});
	struct update_list ups = {0};
	struct decision d;

	(void)state;
	ask_for(w, p, 0);
	p->run[0].req.ask.odd_wish = "annotation numafit.io/cpus: \"x\" is none of own";
	engine_create(w->g, 0, &p->run[0].req, &d, &ups);
	assert_false(d.admit);
	assert_int_equal(d.cause, REFUSED_FOR_WISH);
	assert_string_equal(d.message, "annotation numafit.io/cpus: \"x\" is none of own");
	struct guest *known = guest(w, 1, QOS_GUARANTEED);
	add(known, CONTAINER_APP, 2, 1);
	known->part[0].odd_wish = "annotation numafit.io/cpus: \"x\" is none of own";
	assert_false(run_pod(w, known, false).admit);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_guaranteed_container_that_wishes_for_shared_cpus_is_in_the_pool_with_its_memory_pinned),
		cmocka_unit_test(own_and_shared_cpus_are_both_in_the_cpuset_and_follow_the_pool),
		cmocka_unit_test(one_thread_of_each_core_runs_and_the_others_are_idle),
		cmocka_unit_test(whole_cores_are_no_part_of_a_core_that_another_container_has),
		cmocka_unit_test(containers_spread_over_the_numa_nodes_of_the_pool),
		cmocka_unit_test(spread_memory_is_of_that_numa_node_where_it_is_wished_for),
		cmocka_unit_test(a_numa_node_without_a_shared_cpu_leaves_the_whole_pool),
		cmocka_unit_test(what_is_its_own_outlasts_the_journal),
		cmocka_unit_test(a_forged_annotation_gets_no_cpus_of_another_container),
		cmocka_unit_test(a_restarted_container_keeps_its_wishes_and_its_cpus),
		cmocka_unit_test(a_resize_gives_no_part_of_a_whole_core_up),
		cmocka_unit_test(a_wish_that_cannot_be_read_refuses_the_container_or_its_pod),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
