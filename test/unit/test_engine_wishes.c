/* What wishes do to what containers are given, while the shared pool moves, and after restarts. */
#include "core_pods.h"

#include <numafit/bounds.h>

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

/* A section of the settings says so of their namespace. */
static void containers_on_the_reserved_cpus_are_not_in_the_pool(void **state)
{
	(void)state;
	for (int strict = 0; strict <= 1; strict++) {
		struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, strict);
		struct guest *p = start_one(
			w, 0, QOS_GUARANTEED, 2000, (struct wishes){.cpus = WISH_CPUS_RESERVED});
		struct guest *q = start_one(
			w, 1, QOS_BEST_EFFORT, 0, (struct wishes){.cpus = WISH_CPUS_RESERVED});
		struct cpuset in_force = cpus_of(&p->run[0]);

		assert_true(cpuset_equal(&in_force, &w->s.reserved_cpus));
		in_force = cpus_of(&q->run[0]);
		assert_true(cpuset_equal(&in_force, &w->s.reserved_cpus));
		assert_int_equal(
			decision_of(w, p)->nr_blocks, 1); /* its memory is pinned as ever */
		assert_int_equal(ledger_view(engine_ledger(w->g))->nr_shared, 0);
		for (unsigned i = 2; i < 6; i++)
			(void)start_one(w, i, QOS_GUARANTEED, 8000, (struct wishes){0});
		assert_int_equal(w->updates, 0);
		lose_the_journal(w);
		check(w);
		in_force = cpus_of(&p->run[0]);
		assert_true(cpuset_equal(&in_force, &w->s.reserved_cpus));
		world_free(w);
	}
}

/* Within a pod that has CPUs as one it has its part of them, whatever it wishes for. */
static void a_part_of_its_pods_cpus_that_is_replaced_is_not_on_the_reserved_ones(void **state)
{
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_POD, 0, false);
	struct guest *p = guest(w, 0, QOS_GUARANTEED);
	struct topo *whole = w->t;
	struct update_list ups = {0};

	(void)state;
	w->s.gates.pod_level_resource_managers = true;
	add(p, CONTAINER_APP, 2, 1);
	p->part[0].guaranteed = true;
	p->part[0].wishes.cpus = WISH_CPUS_RESERVED;
	p->pod.pod_level = true;
	p->own = p->part[0];
	p->own.name = "";
	p->own.whole_pod = true;
	assert_true(run_pod(w, p, false).admit && start(w, p, 0).admit);
	const struct decision *d = decision_of(w, p);
	assert_true(d->exclusive && d->within_pod);
	w->t = machine_without(whole, &d->cpus, (struct nodeset){0});
	engine_set_topo(w->g, 0, w->t);
	fold_anew(w);
	engine_take_updates(w->g, &ups);
	apply(w, &ups);
	check(w);
	const struct cpuset in_force = cpus_of(&p->run[0]);
	assert_int_equal(cpuset_count(&decision_of(w, p)->cpus), 2);
	assert_true(cpuset_equal(&in_force, &decision_of(w, p)->cpus));
	free(whole);
	world_free(w);
}

static void reserved_cpus_that_go_offline_are_followed(void **state)
{
	struct world *w = world();
	struct guest *p =
		start_one(w, 0, QOS_BURSTABLE, 100, (struct wishes){.cpus = WISH_CPUS_RESERVED});
	struct topo *whole = w->t, *without[2];
	struct update_list ups = {0};
	struct cpuset in_force, offline = {0};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		cpuset_add(&offline, i ? 32 : 0);
		without[i] = machine_without(whole, &offline, (struct nodeset){0});
		w->t = without[i];
		engine_set_topo(w->g, 0, w->t);
		fold_anew(w);
		engine_take_updates(w->g, &ups);
		apply(w, &ups);
		check(w);
		in_force = cpus_of(&p->run[0]);
		const struct cpuset all = pool(w);
		if (i) /* none is left: it shares the pool, and follows it */
			assert_true(cpuset_equal(&in_force, &all));
		else
			assert_string_equal(p->run[0].cpus, "32");
	}
	(void)start_one(w, 1, QOS_GUARANTEED, 4000, (struct wishes){0});
	in_force = cpus_of(&p->run[0]);
	const struct cpuset all = pool(w);
	assert_true(cpuset_equal(&in_force, &all));
	w->t = whole;
	engine_set_topo(w->g, 0, w->t);
	fold_anew(w);
	engine_take_updates(w->g, &ups);
	apply(w, &ups);
	assert_string_equal(p->run[0].cpus, "0,32");
	free(without[0]);
	free(without[1]);
	world_free(w);
}

/* Nothing keeps it anywhere, and nothing is updated: it is as if it were left (onAdopt). */
static void what_is_left_to_itself_gets_no_cpuset_and_no_update(void **state)
{
	struct world *w = world();
	struct guest *p =
		start_one(w, 0, QOS_GUARANTEED, 4000, (struct wishes){.cpus = WISH_CPUS_UNBOUNDED});
	struct request more = p->run[0].req;

	(void)state;
	assert_true(decision_is_left(decision_of(w, p)));
	assert_int_equal(decision_of(w, p)->nr_blocks, 0);
	assert_string_equal(p->run[0].cpus, "");
	(void)start_one(w, 1, QOS_GUARANTEED, 8000, (struct wishes){0});
	more.ask.cpu_milli = 6000;
	(void)update(w, &p->run[0], &more);
	synchronize(w);
	check(w);
	lose_the_journal(w);
	check(w);
	assert_true(decision_is_left(decision_of(w, p)));
	assert_string_equal(p->run[0].cpus, "");
	assert_true(start(w, p, 0).admit); /* again */
	check(w);
	assert_true(decision_is_left(decision_of(w, p)));
	assert_string_equal(p->run[0].cpus, "");
	assert_int_equal(w->updates, 0);
	world_free(w);
}

/* Where no cgroup bounds the pool it has the pool's cpuset: nothing else would keep it in there. */
static void untouched_containers_are_in_the_pool_where_no_cgroup_bounds_it(void **state)
{
	struct world *w = world();
	struct guest *p =
		start_one(w, 0, QOS_GUARANTEED, 4000, (struct wishes){.cpus = WISH_CPUS_UNTOUCHED});

	(void)state;
	(void)start_one(w, 1, QOS_GUARANTEED, 8000, (struct wishes){0});
	const struct cpuset in_force = cpus_of(&p->run[0]), all = pool(w);
	assert_true(cpuset_equal(&in_force, &all));
	assert_int_equal(decision_of(w, p)->nr_blocks, 0);
	world_free(w);
}

/* A container of a Burstable pod, in its cgroup, where cgroups bound the pool. */
static struct guest *start_below(struct world *w, unsigned i, struct wishes wishes, char cgroup[64])
{
	struct guest *p = pod_of_one(w, i, QOS_BURSTABLE, 100, wishes);

	ask_for(w, p, 0);
	(void)snprintf(cgroup, 64, "/kubepods/burstable/pod%s/%s", p->uid, p->run[0].id);
	p->run[0].req.cgroup = cgroup;
	assert_true(create_as_asked(w, &p->run[0]).admit);
	live(w, p, 0);
	return p;
}

static struct cpuset bound_of(const struct world *w, const char *path)
{
	const struct ledger_view *now = ledger_view(engine_ledger(w->g));
	struct bounds_writes plan = {0};
	struct cpuset last = {0};

	bounds_plan(now->bounds, &now->pool, &w->t->cpus, &plan);
	for (size_t i = 0; i < plan.nr; i++)
		if (strcmp(plan.at[i].path, path) == 0)
			last = plan.at[i].cpus;
	vec_fini(&plan);
	return last;
}

/* Untouched ones are kept in the pool by the cgroup above them. One that nothing keeps there has
 * its class's cgroup wide, and then each of its neighbours is bounded by itself; so it is with the
 * reserved CPUs, where they are not the pool's. */
static void cgroups_bound_what_has_no_cpuset_from_us(void **state)
{
	static const char burstable[] = "/kubepods/burstable";
	char cgroup[4][64], above[64];
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, true);
	struct cpuset got;

	(void)state;
	w->s.pool_enforced = POOL_BY_CGROUPS;
	assert_int_equal(engine_settings_changed(w->g, NULL), 0);
	assert_int_equal(engine_settings_changed(w->folded, NULL), 0);
	struct guest *still =
		start_below(w, 0, (struct wishes){.cpus = WISH_CPUS_UNTOUCHED}, cgroup[0]);
	(void)start_one(w, 4, QOS_GUARANTEED, 8000, (struct wishes){0});
	assert_string_equal(still->run[0].cpus, "");
	struct cpuset all = pool(w);
	got = bound_of(w, burstable);
	assert_true(cpuset_equal(&got, &all));
	synchronize(w);
	assert_string_equal(still->run[0].cpus, "");

	struct guest *reserved =
		start_below(w, 1, (struct wishes){.cpus = WISH_CPUS_RESERVED}, cgroup[1]);
	struct cpuset wide = cpuset_or(all, &w->s.reserved_cpus);
	assert_string_equal(reserved->run[0].cpus, "0,32");
	got = bound_of(w, burstable);
	assert_true(cpuset_equal(&got, &wide));
	(void)snprintf(above, sizeof above, "/kubepods/burstable/pod%s", still->uid);
	got = bound_of(w, above);
	assert_true(cpuset_equal(&got, &all));

	struct guest *anywhere =
		start_below(w, 2, (struct wishes){.cpus = WISH_CPUS_UNBOUNDED}, cgroup[2]);
	assert_string_equal(anywhere->run[0].cpus, "");
	got = bound_of(w, burstable);
	assert_true(cpuset_within(&w->t->cpus, &got));
	got = bound_of(w, above);
	assert_true(cpuset_equal(&got, &all));
	assert_int_equal(w->updates, 0);
	check(w);
	world_free(w);
}

/* The same machine, with those CPUs isolated. */
static void isolate(struct world *w, const char *list)
{
	struct topo *t = machine_without(w->t, &(const struct cpuset){0}, (struct nodeset){0});
	struct update_list ups = {0};

	assert_int_equal(cpuset_parse(&t->isolated, list, strlen(list), NULL), 0);
	engine_set_topo(w->g, 0, t);
	free(w->t);
	w->t = t;
	fold_anew(w);
	engine_take_updates(w->g, &ups);
	apply(w, &ups);
	check(w);
}

static bool is_isolated(const struct world *w, const struct guest *p)
{
	return cpuset_within(&decision_of(w, p)->cpus, &w->t->isolated);
}

static bool has_isolated(const struct world *w, const struct guest *p)
{
	return cpuset_intersects(&decision_of(w, p)->cpus, &w->t->isolated);
}

static void isolated_cpus_are_never_in_the_pool_and_come_last(void **state)
{
	struct world *w = world();
	struct guest *log = start_one(w, 0, QOS_BURSTABLE, 100, (struct wishes){0}), *p;

	(void)state;
	isolate(w, "4-7,36-39"); /* a NUMA node of the eight */
	struct cpuset in_force = cpus_of(&log->run[0]), all = pool(w);
	assert_false(cpuset_intersects(&all, &w->t->isolated));
	assert_true(cpuset_equal(&in_force, &all));
	for (unsigned i = 1; i <= 7; i++) {
		p = start_one(w, i, QOS_GUARANTEED, 6000, (struct wishes){0});
		assert_false(has_isolated(w, p));
		all = pool(w);
		assert_false(cpuset_intersects(&all, &w->t->isolated));
	}
	p = start_one(w, 8, QOS_GUARANTEED, 8000, (struct wishes){0});
	assert_true(is_isolated(w, p)); /* nothing else is left */
	gone(w, p);
	all = pool(w);
	assert_false(cpuset_intersects(&all, &w->t->isolated));
	world_free(w);
}

static void isolated_cpus_are_given_to_who_wishes_for_them(void **state)
{
	const struct wishes prefer = {.isolated = WISH_ISOLATED_PREFER},
			    require = {.isolated = WISH_ISOLATED_REQUIRE};
	struct world *w = world();

	(void)state;
	isolate(w, "4-7,36-39");
	struct guest *a = start_one(w, 0, QOS_GUARANTEED, 4000, prefer),
		     *b = start_one(w, 1, QOS_GUARANTEED, 2000, require),
		     *c = start_one(w, 2, QOS_GUARANTEED, 4000, prefer);
	assert_true(is_isolated(w, a));
	assert_true(is_isolated(w, b));
	assert_false(has_isolated(w, c)); /* too few are left */
	struct guest *d = pod_of_one(w, 3, QOS_GUARANTEED, 4000, require);
	const struct decision refused = create(w, d, 0);
	assert_false(refused.admit);
	assert_string_equal(refused.message,
		"annotation numafit.io/isolated is require: it asks for 4 CPUs, of 8 isolated CPUs 2 "
		"are left");
	gone(w, d);
	struct request more = b->run[0].req; /* in place */
	more.ask.cpu_milli = 4000;
	assert_true(update(w, &b->run[0], &more).admit);
	assert_true(is_isolated(w, b));
	check(w);
	more.ask.cpu_milli = 5000;
	assert_false(update(w, &b->run[0], &more).admit);
	more = c->run[0].req;
	more.ask.cpu_milli = 6000;
	assert_true(update(w, &c->run[0], &more).admit);
	assert_false(has_isolated(w, c));
	gone(w, a);
	struct guest *e = start_one(w, 4, QOS_GUARANTEED, 4000, require);
	assert_true(is_isolated(w, e));
	world_free(w);
}

static void a_pods_containers_are_given_isolated_cpus_each_by_its_wish(void **state)
{
	struct world *w = world();

	(void)state;
	isolate(w, "4-7,36-39");
	struct guest *p = guest(w, 0, QOS_GUARANTEED);
	add(p, CONTAINER_APP, 4, 1);
	add(p, CONTAINER_APP, 4, 1);
	p->part[0].wishes.isolated = WISH_ISOLATED_REQUIRE;
	assert_true(run_pod(w, p, false).admit);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(start(w, p, i).admit);
		const struct cpuset in_force = cpus_of(&p->run[i]);
		assert_int_equal(cpuset_within(&in_force, &w->t->isolated), i == 0);
		assert_int_equal(cpuset_intersects(&in_force, &w->t->isolated), i == 0);
	}
	world_free(w);
}

static void partitions_that_come_and_go_move_the_pool(void **state)
{
	struct world *w = world();
	struct guest *own = start_one(w, 0, QOS_GUARANTEED, 2000, (struct wishes){0}),
		     *log = start_one(w, 1, QOS_BURSTABLE, 100, (struct wishes){0});
	const struct cpuset had = decision_of(w, own)->cpus;
	struct cpuset all;

	(void)state;
	isolate(w, "1-8");
	assert_true(cpuset_equal(&decision_of(w, own)->cpus, &had));
	all = cpus_of(&log->run[0]);
	assert_false(cpuset_intersects(&all, &w->t->isolated));
	isolate(w, "63");
	all = cpus_of(&log->run[0]);
	assert_true(cpuset_has(&all, 8));
	assert_false(cpuset_has(&all, 63));
	isolate(w, "0-63"); /* all there are: then none is for itself */
	all = pool(w);
	assert_true(cpuset_has(&all, 63));
	world_free(w);
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

/* It runs, so it is taken over; what was wrong with its wish was the event's. */
static void a_container_that_runs_with_such_a_wish_keeps_nothing_of_the_event(void **state)
{
	struct world *w = world();
	struct guest *p = pod_of_one(w, 0, QOS_GUARANTEED, 1000, (struct wishes){0});
	char *text = xstrdup("annotation numafit.io/movable: \"x\" is none of true, false");

	(void)state;
	ask_for(w, p, 0);
	p->run[0].req.ask.odd_wish = text;
	engine_live(w->g, 0, &p->run[0].req, NULL);
	p->run[0].req.ask.odd_wish = NULL;
	free(text);
	const struct holding *h = ledger_find(engine_ledger(w->g), p->run[0].id);
	assert_non_null(h);
	assert_null(h->request.ask.odd_wish);
	check(w);
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
		cmocka_unit_test(containers_on_the_reserved_cpus_are_not_in_the_pool),
		cmocka_unit_test(
			a_part_of_its_pods_cpus_that_is_replaced_is_not_on_the_reserved_ones),
		cmocka_unit_test(reserved_cpus_that_go_offline_are_followed),
		cmocka_unit_test(what_is_left_to_itself_gets_no_cpuset_and_no_update),
		cmocka_unit_test(untouched_containers_are_in_the_pool_where_no_cgroup_bounds_it),
		cmocka_unit_test(cgroups_bound_what_has_no_cpuset_from_us),
		cmocka_unit_test(isolated_cpus_are_never_in_the_pool_and_come_last),
		cmocka_unit_test(isolated_cpus_are_given_to_who_wishes_for_them),
		cmocka_unit_test(a_pods_containers_are_given_isolated_cpus_each_by_its_wish),
		cmocka_unit_test(partitions_that_come_and_go_move_the_pool),
		cmocka_unit_test(a_forged_annotation_gets_no_cpus_of_another_container),
		cmocka_unit_test(a_restarted_container_keeps_its_wishes_and_its_cpus),
		cmocka_unit_test(a_resize_gives_no_part_of_a_whole_core_up),
		cmocka_unit_test(a_wish_that_cannot_be_read_refuses_the_container_or_its_pod),
		cmocka_unit_test(a_container_that_runs_with_such_a_wish_keeps_nothing_of_the_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
