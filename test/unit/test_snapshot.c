#include <numafit/snapshot.h>

#include "core_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { CPUS = 64, NODE_CPUS = 8, FOUR_CPUS = 4 };

static void reserve_cpus(struct settings *s, const char *list)
{
	assert_int_equal(cpuset_parse(&s->reserved_cpus, list, strlen(list), NULL), 0);
}

/* Enter a container as the engine would: the pool out of its way first. */
static void hold(struct ledger *l, const char *id, const char *cpus,
	const struct memory_block *block, bool preferred)
{
	struct request r = ask(id, cpus ? QOS_GUARANTEED : QOS_BURSTABLE, 0, 0);
	struct decision d = {.admit = true, .policy = POLICY_BEST_EFFORT, .preferred = preferred};
	struct err e = {0};

	if (cpus) {
		d.exclusive = true;
		assert_int_equal(cpuset_parse(&d.cpus, cpus, strlen(cpus), &e), 0);
		struct cpuset pool = ledger_pool_without(l, &d.cpus);
		assert_int_equal(ledger_set_pool(l, &pool, &e), 0);
	} else {
		d.cpus = ledger_view(l)->pool;
	}
	if (block)
		d.blocks[d.nr_blocks++] = *block;
	ledger_commit(l, &r, &d);
	assert_int_equal(ledger_check(l, &e), 0);
}

static void an_idle_node_is_all_pool_and_all_free(void **state)
{
	struct settings s = settings_of(POLICY_BEST_EFFORT);
	struct topo *t = machine_of_eight();
	struct ledger *l = ledger_new(t, &s);
	struct snapshot snap;

	(void)state;
	memset(&snap, 0xee, sizeof snap); /* what was there before does not count */
	snapshot_take(&snap, l, &s);
	assert_ptr_equal(snap.topo, t);
	assert_true(cpuset_equal(&snap.pool, &t->cpus));
	assert_true(cpuset_empty(&snap.held) && cpuset_empty(&snap.reserved));
	assert_int_equal(snap.nr_containers + snap.nr_exclusive + snap.nr_not_preferred, 0);
	nodeset_each (n, t->nodes) {
		assert_int_equal(snap.node[n].cpus, NODE_CPUS);
		assert_int_equal(snap.node[n].cpus_pool, NODE_CPUS);
		assert_int_equal(snap.node[n].cpus_held + snap.node[n].cpus_reserved, 0);
		assert_int_equal(snap.node[n].allocatable[0], GIB(56));
		assert_int_equal(snap.node[n].free[0], GIB(56));
		assert_int_equal(snap.node[n].free[1], GIB(8));
		assert_int_equal(snap.node[n].group.bits, 1u << n);
	}
	ledger_free(l);
	free(t);
}

static void held_cpus_and_memory_are_counted_on_their_nodes(void **state)
{
	const struct memory_block pair = {0, {0x0c}, GIB(60)};
	struct settings s = settings_of(POLICY_BEST_EFFORT);
	struct topo *t = machine_of_eight();
	struct snapshot snap;

	(void)state;
	s.shared_pool_step = 0;
	reserve_cpus(&s, "0,32,1000"); /* a CPU that is not there reserves nothing */
	struct ledger *l = ledger_new(t, &s);
	hold(l, "one", "8-11", NULL, true);
	hold(l, "two", "12-13,44", &pair, false);
	hold(l, "shared", NULL, NULL, false);
	snapshot_take(&snap, l, &s);
	assert_int_equal(snap.nr_containers, 3);
	assert_int_equal(snap.nr_exclusive, 2);
	assert_int_equal(snap.nr_not_preferred, 2);
	assert_int_equal(snap.nr_own_not_preferred, 1);
	assert_true(
		snap.fragmentation.largest == NODE_CPUS && snap.fragmentation.free == CPUS - 7 - 2);
	assert_true(snap.fragmentation.memory == GIB(56));
	assert_int_equal(snap.node[0].cpus_available, NODE_CPUS - 2);
	assert_int_equal(snap.node[2].cpus_available, FOUR_CPUS);
	assert_int_equal(cpuset_count(&snap.reserved), 2);
	assert_int_equal(cpuset_count(&snap.held), 7);
	assert_int_equal(cpuset_count(&snap.pool), CPUS - 7);
	assert_int_equal(snap.node[0].cpus_reserved, 2);
	assert_int_equal(snap.node[2].cpus_held, FOUR_CPUS);
	assert_int_equal(snap.node[2].cpus_pool, NODE_CPUS - FOUR_CPUS);
	assert_int_equal(snap.node[3].cpus_held, 3);
	assert_int_equal(snap.node[2].free[0] + snap.node[3].free[0], GIB(2 * 56 - 60));
	assert_int_equal(snap.node[2].allocatable[0], GIB(56));
	assert_int_equal(snap.node[2].group.bits, 0x0c);
	assert_int_equal(snap.node[3].group.bits, 0x0c);
	assert_int_equal(snap.node[4].group.bits, 0x10);

	/* a picture: it does not change with the ledger */
	struct snapshot before = snap;
	assert_true(ledger_release(l, "two"));
	assert_memory_equal(&snap, &before, sizeof snap);
	snapshot_take(&snap, l, &s);
	assert_int_equal(snap.nr_exclusive, 1);
	assert_int_equal(snap.node[3].cpus_held, 0);
	assert_int_equal(snap.node[3].free[0], GIB(56));
	assert_int_equal(snap.node[3].group.bits, 0x08);
	ledger_free(l);
	free(t);
}

static void the_nodes_add_up_to_the_machine(void **state)
{
	struct settings s = settings_of(POLICY_BEST_EFFORT);
	struct topo *t = machine_of_eight();
	unsigned cpus = 0, held = 0, pool = 0, reserved = 0;
	struct snapshot snap;

	(void)state;
	s.shared_pool_step = FOUR_CPUS; /* the pool gives up more than is held at once */
	reserve_cpus(&s, "0-1,33");
	struct ledger *l = ledger_new(t, &s);
	hold(l, "one", "8-11", NULL, true);
	hold(l, "two", "20-23,52-55", NULL, true);
	snapshot_take(&snap, l, &s);
	for (unsigned n = 0; n < NODES_MAX; n++) {
		cpus += snap.node[n].cpus;
		held += snap.node[n].cpus_held;
		pool += snap.node[n].cpus_pool;
		reserved += snap.node[n].cpus_reserved;
	}
	assert_int_equal(cpus, CPUS);
	assert_int_equal(held, cpuset_count(&snap.held));
	assert_int_equal(held, 12);
	assert_int_equal(pool, cpuset_count(&snap.pool));
	assert_true(pool < CPUS - held);
	assert_int_equal(reserved, 3);
	ledger_free(l);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_node_is_all_pool_and_all_free),
		cmocka_unit_test(held_cpus_and_memory_are_counted_on_their_nodes),
		cmocka_unit_test(the_nodes_add_up_to_the_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
