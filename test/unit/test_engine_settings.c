/* Settings that change under a running engine: strict-cpu-reservation has left a trace in the
 * ledger, the others have not. */
#include <numafit/engine.h>

#include <errno.h>

#include "core_pods.h"

/* Reserved are CPUs 0 and 32; one container has CPUs of its own, one shares the others. */
static struct world *begin(struct guest **own, struct guest **shared)
{
	struct world *w = world_new(POLICY_BEST_EFFORT, SCOPE_CONTAINER, 0, false);

	*own = guest(w, 0, QOS_GUARANTEED);
	add(*own, CONTAINER_APP, 4, 1);
	*shared = guest(w, 1, QOS_BEST_EFFORT);
	add(*shared, CONTAINER_APP, 0, 0);
	assert_true(run_pod(w, *own, false).admit && start(w, *own, 0).admit);
	assert_true(run_pod(w, *shared, false).admit && start(w, *shared, 0).admit);
	w->updates = 0;
	return w;
}

static void be_strict(struct world *w, bool strict)
{
	w->s.cpu_options.strict_cpu_reservation = strict;
	assert_int_equal(engine_settings_changed(w->g, NULL), 0);
	fold_anew(w);
	check(w);
}

static bool has_cpu_0(const struct cpuset *cpus)
{
	return cpuset_has(cpus, 0);
}

static struct guest *newcomer(struct world *w, unsigned i, enum qos qos, unsigned cpus)
{
	struct guest *p = guest(w, i, qos);

	add(p, CONTAINER_APP, cpus, cpus ? 1 : 0);
	assert_true(run_pod(w, p, false).admit && start(w, p, 0).admit);
	check(w);
	return p;
}

static bool runs_on_cpu_0(const struct guest *p)
{
	const struct cpuset cpus = cpus_of(&p->run[0]);

	return has_cpu_0(&cpus);
}

static void a_new_pool_setting_moves_all_that_share_the_pool(void **state)
{
	struct guest *own, *shared;
	struct world *w = begin(&own, &shared);

	(void)state;
	assert_true(runs_on_cpu_0(shared));
	be_strict(w, true);
	assert_false(has_cpu_0(&ledger_view(engine_ledger(w->g))->pool));
	assert_false(runs_on_cpu_0(newcomer(w, 2, QOS_BEST_EFFORT, 0)));
	assert_false(runs_on_cpu_0(shared));
	assert_int_equal(w->updates, 1);
	be_strict(w, false);
	assert_true(runs_on_cpu_0(newcomer(w, 3, QOS_BEST_EFFORT, 0)));
	assert_true(runs_on_cpu_0(shared));
	assert_int_equal(w->updates, 3);
	world_free(w);
}

static void a_changed_machine_moves_all_containers_to_the_new_pool(void **state)
{
	struct guest *own, *shared;
	struct world *w = begin(&own, &shared);
	struct topo *full = machine_of_eight(), *old = w->t;
	struct cpuset offline = {0};
	struct update_list ups = {0};

	(void)state;
	be_strict(w, true);
	cpuset_add(&offline, 32); /* reserved: the pool does not move */
	w->t = machine_without(full, &offline, (struct nodeset){0});
	engine_set_topo(w->g, 0, w->t);
	fold_anew(w);
	engine_take_updates(w->g, &ups);
	assert_int_equal(ups.nr, 1);
	assert_string_equal(ups.at[0].container_id, shared->run[0].id);
	apply(w, &ups);
	assert_false(runs_on_cpu_0(shared));
	world_free(w);
	free(full);
	free(old);
}

/* Or the ones would get CPUs on which the others still run. */
static void those_that_share_are_updated_before_those_with_cpus_of_their_own(void **state)
{
	struct guest *own, *shared;
	struct world *w = begin(&own, &shared);
	struct guest *later = newcomer(w, 2, QOS_BEST_EFFORT, 0);
	struct update_list ups = {0};

	(void)state;
	engine_must_update(w->g, own->run[0].id);
	engine_must_update(w->g, later->run[0].id);
	engine_must_update(w->g, shared->run[0].id);
	engine_take_updates(w->g, &ups);
	assert_int_equal(ups.nr, 3);
	assert_string_equal(ups.at[2].container_id, own->run[0].id);
	vec_fini(&ups);
	world_free(w);
}

static void the_pool_never_becomes_empty(void **state)
{
	struct guest *own, *shared;
	struct world *w = begin(&own, &shared);
	struct err e;

	(void)state;
	w->s.topology_policy = POLICY_NONE;
	w->s.shared_pool_minimum = 2;
	(void)newcomer(
		w, 2, QOS_GUARANTEED, 58); /* of 64: all that are neither reserved nor held */
	assert_int_equal(cpuset_count(&ledger_view(engine_ledger(w->g))->pool), 2);
	w->s.cpu_options.strict_cpu_reservation = true;
	assert_int_equal(engine_settings_changed(w->g, &e), -EBUSY);
	assert_non_null(strstr(e.text, "strict-cpu-reservation"));
	w->s.cpu_options.strict_cpu_reservation = false;
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_pool_setting_moves_all_that_share_the_pool),
		cmocka_unit_test(a_changed_machine_moves_all_containers_to_the_new_pool),
		cmocka_unit_test(those_that_share_are_updated_before_those_with_cpus_of_their_own),
		cmocka_unit_test(the_pool_never_becomes_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
