/* ledger_check() sees each invariant break: the faults are planted from inside. */
#include <node/ledger_state.h>

#include "core_machine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct node {
	struct topo *t;
	struct settings s;
	struct ledger *l;
};

static void hold(struct node *n, const char *id, const char *cpus, uint64_t bytes)
{
	struct request req = ask(id, QOS_GUARANTEED, 2000, bytes);
	struct decision d = {.admit = true,
		.exclusive = true,
		.nr_blocks = 1,
		.blocks = {{0, {1}, bytes}},
		.mems = {1}};

	assert_int_equal(cpuset_parse(&d.cpus, cpus, strlen(cpus), NULL), 0);
	struct cpuset pool = ledger_pool_without(n->l, &d.cpus);
	assert_int_equal(ledger_set_pool(n->l, &pool, NULL), 0);
	ledger_commit(n->l, &req, &d);
}

static void node_init(struct node *n)
{
	struct request log = ask("c", QOS_BURSTABLE, 100, 0);
	struct decision shared = {.admit = true};

	n->t = machine_of_eight();
	n->s = settings_of(POLICY_RESTRICTED);
	(void)cpuset_parse(&n->s.reserved_cpus, "0", 1, NULL);
	n->l = ledger_new(n->t, &n->s);
	hold(n, "a", "1-2", GIB(1));
	hold(n, "b", "3-4", GIB(2));
	shared.cpus = ledger_view(n->l)->pool;
	ledger_commit(n->l, &log, &shared);
	assert_int_equal(ledger_check(n->l, NULL), 0);
}

static void node_fini(struct node *n)
{
	ledger_free(n->l);
	free(n->t);
}

static struct decision *decision_of(struct ledger *l, size_t i)
{
	return &l->by[BY_ID].at[i].h->decision;
}

static void two_hold_one(struct ledger *l)
{
	cpuset_add(&decision_of(l, 1)->cpus, 2);
}

static void a_part_of_a_pod_shares_with_a_stranger(struct ledger *l)
{
	two_hold_one(l);
	decision_of(l, 0)->source = decision_of(l, 1)->source = SOURCE_HELD;
	l->by[BY_ID].at[0].h->request.ask.kind = CONTAINER_INIT;
	l->by[BY_ID].at[1].h->request.ask.place = 1;
}

static void a_reserved_one_is_held(struct ledger *l)
{
	cpuset_add(&decision_of(l, 0)->cpus, 0);
}

static void held_by_nobody(struct ledger *l)
{
	cpuset_add(&l->now.held, 9);
}

static void out_of_order(struct ledger *l)
{
	struct ledger_slot first = l->by[BY_ID].at[0];

	l->by[BY_ID].at[0] = l->by[BY_ID].at[1];
	l->by[BY_ID].at[1] = first;
}

static void the_pool_has_a_held_one(struct ledger *l)
{
	cpuset_add(&l->now.pool, 1);
}

static void the_pool_is_empty(struct ledger *l)
{
	l->now.pool = (struct cpuset){0};
}

static void one_runs_beside_the_pool(struct ledger *l)
{
	cpuset_add(&decision_of(l, 2)->cpus, 9);
}

static void an_assignment_too_many(struct ledger *l)
{
	l->now.memory.node[0].assignments++;
}

static void bytes_that_do_not_add_up(struct ledger *l)
{
	l->now.memory.node[0].free[0] -= GIB(1);
}

static void bytes_that_nobody_holds(struct ledger *l)
{
	l->now.memory.node[0].free[0] -= GIB(1);
	l->now.memory.node[0].reserved[0] += GIB(1);
}

static void each_broken_invariant_is_named(void **state)
{
	static const struct {
		void (*plant)(struct ledger *l);
		const char *says;
	} faults[] = {
		{two_hold_one, "container b holds a CPU that another one holds too"},
		{a_part_of_a_pod_shares_with_a_stranger,
			"container b holds a CPU that another one holds too"},
		{a_reserved_one_is_held, "container a holds a reserved CPU"},
		{held_by_nobody, "the held CPUs are not those that containers hold"},
		{out_of_order, "container a is out of order"},
		{the_pool_has_a_held_one, "the shared pool has CPUs that containers hold"},
		{the_pool_is_empty, "the shared pool lacks reserved CPUs"},
		{one_runs_beside_the_pool, "container c has CPUs beside the shared pool's"},
		{an_assignment_too_many,
			"NUMA node 0: 3 memory assignments, its containers have 2"},
		{bytes_that_do_not_add_up, "NUMA node 0: memory of kind 0 does not add up"},
		{bytes_that_nobody_holds, "bytes booked, containers hold"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		struct node n;
		struct err e = {0};

		node_init(&n);
		faults[i].plant(n.l);
		assert_int_equal(ledger_check(n.l, &e), -EINVAL);
		if (!strstr(e.text, faults[i].says))
			fail_msg("fault %zu: %s", i, e.text);
		node_fini(&n);
	}
}

static void cpus_that_a_container_gives_up_count_as_free_for_it(void **state)
{
	struct node n;
	struct decision d;
	struct err e;

	(void)state;
	node_init(&n);
	d = *decision_of(n.l, 0);
	d.blocks[0].bytes = GIB(54); /* 56 on the node, 2 of them held by the other */
	struct request req = ask("a", QOS_GUARANTEED, 2000, 0),
		       other = ask("x", QOS_GUARANTEED, 0, 0);
	assert_int_equal(ledger_fits(n.l, &req, &d, &e), 0);
	d.blocks[0].bytes++;
	assert_int_equal(ledger_fits(n.l, &req, &d, &e), -EBUSY);
	d.exclusive = false;
	d.blocks[0].bytes = GIB(54);
	assert_int_equal(ledger_fits(n.l, &other, &d, &e), -EBUSY);
	node_fini(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_broken_invariant_is_named),
		cmocka_unit_test(cpus_that_a_container_gives_up_count_as_free_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
