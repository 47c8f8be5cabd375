/* A daemon that comes back to a machine with fewer CPUs, or with less memory to give: what
 * containers keep, and what is no longer booked. */
#include "restart_rig.h"

static void a_container_has_fewer_cpus_until_lost_ones_can_be_replaced(void **state)
{
	struct world *w = world_new();
	const struct settings before = w->d.settings;
	struct settings s = before;
	const struct ledger *l;

	(void)state;
	s.topology_policy = POLICY_SINGLE_NUMA_NODE;
	s.reserved_cpus = list("0-7,32-39"); /* two whole nodes: "big" has one of them */
	restart_with(w, &s);
	l = engine_ledger(w->d.engine);
	const struct holding *big = ledger_find(l, "big");
	struct cpuset reserved = cpuset_and(big->decision.cpus, &s.reserved_cpus);
	assert_true(cpuset_empty(&reserved));
	assert_non_null(strstr(big->decision.message, "CPUs are reserved now: "));
	restart_with(w, &before);
	big = ledger_find(engine_ledger(w->d.engine), "big");
	assert_true(big->decision.exclusive);
	assert_int_equal(cpuset_count(&big->decision.cpus), 8);
	world_free(w);
}

/* All is as the journal has it, and somebody has ended meanwhile. */
static void a_container_that_lacks_cpus_gets_them_at_a_restart_once_some_are_free(void **state)
{
	struct world *w = world_new();
	struct settings s = w->d.settings;
	struct update_list ups = {0};
	struct cpuset free;

	(void)state;
	free = ledger_free_cpus(engine_ledger(w->d.engine));
	const struct request rest =
		ask("rest", QOS_GUARANTEED, 1000 * (cpuset_count(&free) - 4), GIB(1));
	assert_true(create(w, &rest).exclusive);
	s.reserved_cpus = cpuset_or(
		s.reserved_cpus, &ledger_find(engine_ledger(w->d.engine), "own")->decision.cpus);
	restart_with(w, &s);
	const struct holding *own = ledger_find(engine_ledger(w->d.engine), "own");
	assert_true(!own->decision.exclusive || cpuset_count(&own->decision.cpus) < 4);
	engine_release(w->d.engine, NOW_MS, "stop", "rest", &ups);
	w->nr--;
	apply(w, &ups);
	restart_with(w, &s);
	own = ledger_find(engine_ledger(w->d.engine), "own");
	assert_true(own->decision.exclusive);
	assert_int_equal(cpuset_count(&own->decision.cpus), 4);
	world_free(w);
}

static void newly_reserved_memory_is_no_longer_booked(void **state)
{
	struct world *w = world_new();
	const struct settings before = w->d.settings;
	struct settings s = before;

	(void)state;
	assert_int_equal(settings_set(&s, "reservedMemory.0.numaNode", "0", NULL), 0);
	assert_int_equal(settings_set(&s, "reservedMemory.0.limits.memory", "30Gi", NULL), 0);
	restart_with(w, &s);
	const struct holding *own = ledger_find(engine_ledger(w->d.engine), "own");
	assert_int_equal(own->decision.blocks[0].bytes, GIB(25)); /* of 56, and the pod has 1 */
	assert_updated(w, "");
	restart_with(w, &before);
	own = ledger_find(engine_ledger(w->d.engine), "own");
	assert_int_equal(own->decision.blocks[0].bytes, GIB(40));
	world_free(w);
}

static void memory_of_devices_is_no_longer_booked_once_it_is_excluded(void **state)
{
	struct world *w = world_new();
	struct settings s = w->d.settings;
	const struct holding *own;

	(void)state;
	s.device_memory = DEVICE_MEMORY_INCLUDE;
	restart_with(w, &s);
	own = ledger_find(engine_ledger(w->d.engine), "own");
	w->d.topo.device_memory = own->decision.blocks[0].nodes;
	restart_with(w, &s);
	own = ledger_find(engine_ledger(w->d.engine), "own");
	assert_int_equal(own->decision.blocks[0].bytes, GIB(40));
	s.device_memory = DEVICE_MEMORY_EXCLUDE;
	restart_with(w, &s);
	own = ledger_find(engine_ledger(w->d.engine), "own");
	assert_int_equal(own->decision.blocks[0].bytes, 0);
	assert_true(own->decision.exclusive);
	world_free(w);
}

static void strict_reservation_with_all_else_held_takes_from_the_widest(void **state)
{
	struct world *w = world_new();
	struct settings s = w->d.settings;
	const struct request rest = ask("rest", QOS_GUARANTEED, 42000, GIB(1));
	struct update_list ups = {0};

	(void)state;
	assert_lease_is_kept(w);
	w->running[5] = w->running[--w->nr]; /* the one that is left has ended */
	w->running[5].req.cpus = w->running[5].cpus;
	w->running[5].req.mems = w->running[5].mems;
	engine_release(w->d.engine, NOW_MS, "stop", "left", &ups);
	apply(w, &ups);
	assert_true(create(w, &rest).exclusive); /* the pool has the reserved CPUs alone */
	assert_int_equal(cpuset_count(&ledger_view(engine_ledger(w->d.engine))->pool), 2);
	s.cpu_options.strict_cpu_reservation = true;
	end(w);
	w->d.settings = s;
	start(w);
	assert_int_equal(set_aside, 0);
	synchronize(w);
	assert_false(cpuset_empty(&ledger_view(engine_ledger(w->d.engine))->pool));
	assert_string_equal(w->running[0].req.container_id, "shared");
	assert_int_equal(w->running[0].updates, 1);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_has_fewer_cpus_until_lost_ones_can_be_replaced),
		cmocka_unit_test(
			a_container_that_lacks_cpus_gets_them_at_a_restart_once_some_are_free),
		cmocka_unit_test(newly_reserved_memory_is_no_longer_booked),
		cmocka_unit_test(memory_of_devices_is_no_longer_booked_once_it_is_excluded),
		cmocka_unit_test(strict_reservation_with_all_else_held_takes_from_the_widest),
	};

	json_seed();
	log_set_sink(look_at_log);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
