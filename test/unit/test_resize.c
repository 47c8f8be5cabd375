/* Containers that grow and shrink in place, on KEP-3545's eight nodes of eight CPUs. */
#include <numafit/resize.h>

#include <numafit/admit.h>
#include <numafit/cpus.h>

#include "core_machine.h"
#include "core_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ROUNDS = 3000 };

struct node {
	struct topo *t;
	struct settings s;
	struct ledger *l;
	char work[ADMIT_ARENA_BYTES];
};

static struct node *node_new(enum topology_policy policy)
{
	struct node *n = calloc(1, sizeof *n);

	n->t = machine_of_eight();
	n->s = settings_of(policy);
	n->l = ledger_new(n->t, &n->s);
	return n;
}

static void node_free(struct node *n)
{
	struct err e;

	if (ledger_check(n->l, &e))
		fail_msg("%s", e.text);
	ledger_free(n->l);
	free(n->t);
	free(n);
}

static void commit(struct node *n, const struct request *req, const struct decision *d)
{
	(void)ledger_release(n->l, req->container_id);
	struct cpuset pool =
		d->exclusive ? ledger_pool_without(n->l, &d->cpus) : ledger_view(n->l)->pool;

	assert_int_equal(ledger_set_pool(n->l, &pool, NULL), 0);
	ledger_commit(n->l, req, d);
}

static struct decision place(struct node *n, const struct request *req)
{
	struct decision d;
	struct budget b = budget_of(n->s.merge_visit_budget);
	struct arena a;

	arena_init_fixed(&a, n->work, sizeof n->work);
	admit(&(struct admit_question){n->l, &n->s, .container = req}, &b, &a, &d, NULL);
	if (d.admit)
		commit(n, req, &d);
	return d;
}

static struct decision change(struct node *n, const struct request *req)
{
	struct budget b = budget_of(n->s.merge_visit_budget);
	struct decision d;
	struct arena a;

	arena_init_fixed(&a, n->work, sizeof n->work);
	resize(n->l, &n->s, ledger_find(n->l, req->container_id), req, &b, &a, &d);
	if (d.admit)
		commit(n, req, &d);
	return d;
}

/* A container with that many CPUs on exactly these: held besides. */
static void occupy(struct node *n, const char *id, struct cpuset cpus)
{
	struct request req = ask(id, QOS_GUARANTEED, cpuset_count(&cpus) * 1000, 0);
	struct decision d = {
		.admit = true, .exclusive = true, .cpus = cpus, .mems = n->t->nodes_with_memory};

	commit(n, &req, &d);
}

static void cpus_grow_and_shrink_around_those_in_use(void **state)
{
	static const struct {
		enum topology_policy policy;
		unsigned from, to, occupied; /* occupied: CPUs of node 0 that another one has */
		bool admit, preferred;
		unsigned nodes; /* bits that the CPUs are on afterwards */
	} cases[] = {
		{POLICY_RESTRICTED, 4, 6, 0, true, true, 1},
		{POLICY_RESTRICTED, 4, 12, 0, true, true, 3},  /* the closest neighbour */
		{POLICY_RESTRICTED, 4, 6, 4, false, false, 0}, /* would need two nodes */
		{POLICY_BEST_EFFORT, 4, 6, 4, true, false, 3},
		{POLICY_SINGLE_NUMA_NODE, 4, 12, 0, false, false, 0},
		{POLICY_RESTRICTED, 12, 8, 0, true, true, 1},
		{POLICY_RESTRICTED, 6, 2, 0, true, true, 1},
		{POLICY_BEST_EFFORT, 4, 63, 0, true, true, 255},
		{POLICY_BEST_EFFORT, 4, 64, 0, false, false, 0}, /* nothing would be left */
		{POLICY_BEST_EFFORT, 4, 65, 0, false, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct node *n = node_new(cases[i].policy);
		struct request req = ask("c", QOS_GUARANTEED, cases[i].from * 1000, 0);
		struct decision before = place(n, &req);
		struct cpuset rest = cpuset_minus(n->t->node[0].cpus, &before.cpus), taken = {0};
		unsigned left = cases[i].occupied;

		cpuset_each (cpu, &rest)
			if (left && left--)
				cpuset_add(&taken, cpu);
		if (cases[i].occupied)
			occupy(n, "other", taken);
		req.ask.cpu_milli = cases[i].to * 1000;
		struct decision d = change(n, &req);
		if (d.admit != cases[i].admit)
			fail_msg("case %zu: %s", i, d.message);
		if (!d.admit) {
			const struct holding *h = ledger_find(n->l, "c");

			assert_non_null(d.reason);
			assert_true(cpuset_equal(&h->decision.cpus, &before.cpus));
		} else {
			assert_int_equal(cpuset_count(&d.cpus), cases[i].to);
			assert_int_equal(topo_nodes_of(n->t, &d.cpus).bits, cases[i].nodes);
			assert_int_equal(d.preferred, cases[i].preferred);
			assert_true(cases[i].to < cases[i].from
					    ? cpuset_within(&d.cpus, &before.cpus)
					    : cpuset_within(&before.cpus, &d.cpus));
		}
		node_free(n);
	}
}

/* As at admission, where every set within as few sockets as can be is preferred then. */
static void align_by_socket_lets_a_container_grow_within_its_socket(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request req = ask("c", QOS_GUARANTEED, 4000, 0);

	(void)state;
	n->s.cpu_options.align_by_socket = true;
	struct decision before = place(n, &req), d;
	struct cpuset on_node = topo_cpus_of(n->t, topo_nodes_of(n->t, &before.cpus));

	occupy(n, "other", cpuset_minus(on_node, &before.cpus));
	req.ask.cpu_milli = 6000;
	d = change(n, &req);
	assert_true(d.admit && d.preferred);
	assert_true(cpuset_within(&before.cpus, &d.cpus));
	assert_int_equal(nodeset_count(topo_nodes_of(n->t, &d.cpus)), 2);
	node_free(n);
}

static void fewer_cpus_keep_the_nodes_that_lie_together(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request req = ask("c", QOS_GUARANTEED, 16000, 0);
	struct cpuset own = {0};

	(void)state;
	/* six on node 0, four on node 1, six on node 7: ten fit on 0 and 1, or 1 and 7 */
	for (unsigned i = 0, nodes[] = {0, 1, 7}, nr[] = {6, 4, 6}; i < 3; i++) {
		unsigned left = nr[i];

		cpuset_each (cpu, &n->t->node[nodes[i]].cpus)
			if (left && left--)
				cpuset_add(&own, cpu);
	}
	occupy(n, "c", own);
	req.ask.cpu_milli = 10000;
	struct decision d = change(n, &req);
	assert_true(d.admit);
	assert_int_equal(topo_nodes_of(n->t, &d.cpus).bits, 3);
	node_free(n);
}

/* Its memory is on node 1. It grew onto node 0, and either node has CPUs enough for what it keeps.
 */
static void fewer_cpus_are_those_beside_the_memory(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request req = ask("a", QOS_GUARANTEED, 4000, GIB(1));

	(void)state;
	occupy(n, "all-of-0", topo_cpus_of(n->t, nodeset_of(0)));
	assert_int_equal(place(n, &req).mems.bits, 2);
	(void)ledger_release(n->l, "all-of-0");
	struct cpuset rest = cpuset_minus(
		topo_cpus_of(n->t, nodeset_of(1)), &ledger_find(n->l, "a")->decision.cpus);
	occupy(n, "rest-of-1", rest);
	req.ask.cpu_milli = 8000;
	const struct decision more = change(n, &req);
	assert_int_equal(topo_nodes_of(n->t, &more.cpus).bits, 3);
	req.ask.cpu_milli = 4000;
	const struct decision d = change(n, &req);
	assert_int_equal(topo_nodes_of(n->t, &d.cpus).bits, 2);
	assert_int_equal(d.mems.bits, 2);
	node_free(n);
}

static void a_container_moves_between_its_own_cpus_and_the_pool(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request req = ask("c", QOS_GUARANTEED, 2500, GIB(4));
	struct decision d = place(n, &req);

	(void)state;
	assert_false(d.exclusive);
	req.ask.cpu_milli = 3000; /* whole CPUs: beside its memory */
	d = change(n, &req);
	assert_true(d.admit && d.exclusive);
	assert_true(nodeset_equal(topo_nodes_of(n->t, &d.cpus), d.mems));
	req.ask.cpu_milli = 3500;
	d = change(n, &req);
	assert_true(d.admit && !d.exclusive);
	assert_true(cpuset_empty(&ledger_view(n->l)->held));
	node_free(n);
}

static void memory_grows_where_it_is_or_not_at_all(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request req = ask("c", QOS_GUARANTEED, 2000, GIB(10));
	struct decision before = place(n, &req), d;

	(void)state;
	req.ask.memory[0].bytes = GIB(50);
	d = change(n, &req);
	assert_true(d.admit);
	assert_true(nodeset_equal(d.mems, before.mems));
	assert_int_equal(d.blocks[0].bytes, GIB(50));
	req.ask.memory[0].bytes = GIB(60); /* a node has 56 beside its huge pages */
	d = change(n, &req);
	assert_false(d.admit);
	assert_string_equal(d.reason, "UnexpectedAdmissionError");
	assert_non_null(strstr(d.message, "bytes more where the container's NUMA nodes have"));
	assert_int_equal(ledger_find(n->l, "c")->decision.blocks[0].bytes, GIB(50));
	req.ask.memory[0].bytes = GIB(1);
	assert_true(change(n, &req).admit);
	req.ask.memory[req.ask.nr_memory++] = (struct memory_ask){GIB(1), GIB(1)};
	assert_false(change(n, &req).admit);
	node_free(n);
}

static void full_pcpus_only_grows_by_whole_cores(void **state)
{
	struct node *n = node_new(POLICY_RESTRICTED);
	struct request req = ask("c", QOS_GUARANTEED, 2000, 0);

	(void)state;
	n->s.cpu_options.full_pcpus_only = true;
	assert_true(place(n, &req).admit);
	req.ask.cpu_milli = 3000;
	struct decision d = change(n, &req);
	assert_false(d.admit);
	assert_string_equal(d.reason, "SMTAlignmentError");
	req.ask.cpu_milli = 4000;
	assert_true(change(n, &req).admit);
	node_free(n);
}

static void full_pcpus_only_never_splits_a_core(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request a = ask("a", QOS_GUARANTEED, 2000, 0), b = ask("b", QOS_GUARANTEED, 6000, 0);

	(void)state;
	n->s.cpu_options.full_pcpus_only = true;
	(void)cpuset_parse(&n->s.reserved_cpus, "0", 1, NULL);
	assert_true(place(n, &a).admit && place(n, &b).admit);
	a.ask.cpu_milli = b.ask.cpu_milli = 8000;
	const struct decision d[] = {change(n, &a), change(n, &b)};
	for (unsigned i = 0; i < 2; i++) {
		struct cpuset cores = cpus_whole_cores(n->t, &d[i].cpus);

		assert_true(d[i].admit);
		assert_true(cpuset_equal(&cores, &d[i].cpus));
	}
	node_free(n);
}

/* Another program has given it parts of cores on one NUMA node, and a core on the other one. */
static void fewer_cpus_are_whole_cores_where_some_were_parts(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request req = ask("c", QOS_GUARANTEED, 2000, 0);
	struct cpuset cpus = {0};
	char list[CPUSET_TEXT_MAX];

	(void)state;
	n->s.cpu_options.full_pcpus_only = true;
	assert_int_equal(cpuset_parse(&cpus, "0-1,4,36", strlen("0-1,4,36"), NULL), 0);
	occupy(n, "c", cpus);
	const struct decision d = change(n, &req);
	assert_true(d.admit);
	assert_string_equal(cpuset_format(&d.cpus, list, sizeof list), "4,36");
	node_free(n);
}

static void random_changes_keep_the_ledger_sound(void **state)
{
	static const enum topology_policy policies[] = {
		POLICY_BEST_EFFORT, POLICY_RESTRICTED, POLICY_SINGLE_NUMA_NODE};
	struct random r = {.state = 7};
	struct node *n = NULL;
	unsigned admitted = 0;
	struct err e;

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		char id[2] = {(char)('a' + random_below(&r, 12)), '\0'};
		struct request req = ask(
			id, QOS_GUARANTEED, 500 * random_below(&r, 40), GIB(random_below(&r, 30)));

		if (i % 500 == 0) {
			if (n)
				node_free(n);
			n = node_new(policies[i / 500 % 3]);
		}
		if (random_below(&r, 6) == 0)
			(void)ledger_release(n->l, id);
		else if (ledger_find(n->l, id))
			admitted += change(n, &req).admit;
		else
			(void)place(n, &req);
		if (ledger_check(n->l, &e))
			fail_msg("step %u: %s", i, e.text);
	}
	assert_in_range(admitted, ROUNDS / 10, ROUNDS);
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpus_grow_and_shrink_around_those_in_use),
		cmocka_unit_test(align_by_socket_lets_a_container_grow_within_its_socket),
		cmocka_unit_test(fewer_cpus_keep_the_nodes_that_lie_together),
		cmocka_unit_test(fewer_cpus_are_those_beside_the_memory),
		cmocka_unit_test(a_container_moves_between_its_own_cpus_and_the_pool),
		cmocka_unit_test(memory_grows_where_it_is_or_not_at_all),
		cmocka_unit_test(full_pcpus_only_grows_by_whole_cores),
		cmocka_unit_test(full_pcpus_only_never_splits_a_core),
		cmocka_unit_test(fewer_cpus_are_whole_cores_where_some_were_parts),
		cmocka_unit_test(random_changes_keep_the_ledger_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
