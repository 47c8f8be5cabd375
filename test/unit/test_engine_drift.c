/* Machines whose CPUs and memory come and go, and containers that must be updated again. */
#include <numafit/engine.h>

#include <numafit/text.h>

#include "core_machine.h"
#include "core_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct node {
	struct topo *whole, *t; /* all CPUs online; as it is now */
	struct settings s;
	struct engine *g;
	struct update_list ups;
	unsigned moved;
};

static int keep(void *ctx, const struct record *r, struct err *e)
{
	(void)ctx, (void)r, (void)e;
	return 0;
}

static void done(void *ctx, const struct record *r)
{
	struct node *n = ctx;

	n->moved += text_equal(r->cause, "hotplug");
}

static struct node *node_new(enum topology_policy policy)
{
	struct node *n = calloc(1, sizeof *n);
	const struct engine_hooks hooks = {.ctx = n, .record = keep, .done = done};

	n->whole = machine_of_eight();
	n->t = machine_of_eight();
	n->s = settings_of(policy);
	n->g = engine_new(n->t, &n->s, &hooks);
	return n;
}

static int fold(void *ctx, const struct record *r, struct err *e)
{
	return engine_replay(ctx, r, e);
}

/* The ledger is sound, and a journal that starts with it on the present machine leads to it. */
static void check(struct node *n)
{
	const struct ledger *a = engine_ledger(n->g), *b;
	const struct engine_hooks hooks = {.ctx = n, .record = keep};
	struct engine *folded = engine_new(n->t, &n->s, &hooks);
	struct err e;

	if (ledger_check(a, &e) || engine_dump(n->g, 0, fold, folded, &e))
		fail_msg("%s", e.text);
	b = engine_ledger(folded);
	assert_int_equal(ledger_count(a), ledger_count(b));
	for (size_t i = 0; i < ledger_count(a); i++) {
		const struct holding *x = ledger_at(a, i), *y = ledger_at(b, i);

		assert_string_equal(x->request.container_id, y->request.container_id);
		assert_int_equal(x->state, y->state);
		assert_true(cpuset_equal(&x->decision.cpus, &y->decision.cpus));
		assert_true(cpuset_within(&x->decision.cpus, &n->t->cpus));
		assert_string_equal(x->decision.message, y->decision.message);
		assert_int_equal(x->decision.lost_cpus, y->decision.lost_cpus);
	}
	assert_true(
		ledger_count(a) == 0 || cpuset_equal(&ledger_view(a)->pool, &ledger_view(b)->pool));
	engine_free(folded);
}

static void node_free(struct node *n)
{
	check(n);
	vec_fini(&n->ups);
	engine_free(n->g);
	free(n->whole);
	free(n->t);
	free(n);
}

static struct cpuset list(const char *text)
{
	struct cpuset c;

	assert_int_equal(cpuset_parse(&c, text, strlen(text), NULL), 0);
	return c;
}

/* The machine, but without those CPUs. */
static void set_offline(struct node *n, struct cpuset offline)
{
	struct topo *t = malloc(sizeof *t), *before = n->t;

	topo_init(t, n->whole->name);
	for (unsigned i = 0; i < n->whole->ids.nr; i++) {
		(void)topo_add_node(t, n->whole->ids.id[i], NULL);
		for (unsigned k = 0; k < n->whole->nr_kinds; k++)
			(void)topo_set_memory(
				t, i, n->whole->page_bytes[k], n->whole->node[i].memory[k], NULL);
	}
	for (unsigned i = 0; i < n->whole->ids.nr; i++)
		for (unsigned m = 0; m < n->whole->ids.nr; m++)
			(void)topo_set_distance(t, i, m, n->whole->distance[i][m], NULL);
	cpuset_each (cpu, &n->whole->cpus)
		if (!cpuset_has(&offline, cpu))
			(void)topo_add_cpu(t, cpu, n->whole->cpu[cpu].node, n->whole->cpu[cpu].core,
				n->whole->cpu[cpu].socket, n->whole->cpu[cpu].uncore, NULL);
	assert_int_equal(topo_seal(t, NULL), 0);
	n->moved = 0;
	n->t = t;
	engine_set_topo(n->g, 0, t);
	free(before);
	check(n);
}

static const struct holding *create(struct node *n, const struct request *req)
{
	struct decision d;

	engine_create(n->g, 0, (struct request[]){*req}, &d, &n->ups);
	vec_fini(&n->ups);
	if (!d.admit)
		return NULL;
	engine_live(n->g, 0, req, NULL);
	engine_started(n->g, 0, req->container_id);
	return ledger_find(engine_ledger(n->g), req->container_id);
}

static unsigned nodes_of(const struct node *n, const struct cpuset *cpus)
{
	return nodeset_count(topo_nodes_of(n->t, cpus));
}

static void a_container_that_loses_a_cpu_gets_another_of_its_node(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	struct request web = ask("web", QOS_GUARANTEED, 4000, GIB(1)),
		       log = ask("log", QOS_BURSTABLE, 100, 0);
	const struct holding *h = create(n, &web);
	struct cpuset before = h->decision.cpus, gone = {0};

	(void)state;
	(void)create(n, &log);
	cpuset_add(&gone, cpuset_next(&before, 0));
	set_offline(n, gone);
	struct cpuset kept = cpuset_minus(before, &gone);
	assert_int_equal(cpuset_count(&h->decision.cpus), 4);
	assert_true(cpuset_within(&kept, &h->decision.cpus));
	assert_int_equal(nodes_of(n, &h->decision.cpus), 1);
	assert_string_equal(h->decision.message, "CPUs are offline: 0; replaced");
	assert_int_equal(n->moved, 1);
	assert_int_equal(h->state, HOLDING_LIVE);
	/* both are updated: the one with its CPUs, the other that the pool has moved */
	engine_take_updates(n->g, &n->ups);
	assert_int_equal(n->ups.nr, 2);
	assert_string_equal(n->ups.at[0].container_id, "log");
	assert_false(cpuset_intersects(&n->ups.at[0].cpus, &h->decision.cpus));
	assert_true(cpuset_equal(&n->ups.at[1].cpus, &h->decision.cpus));
	node_free(n);
}

static void a_container_keeps_its_remaining_cpus_until_the_lost_one_comes_back(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	struct request web = ask("web", QOS_GUARANTEED, 8000, 0); /* all of a NUMA node */
	const struct holding *h = create(n, &web);

	(void)state;
	set_offline(n, list("1,33"));
	assert_int_equal(cpuset_count(&h->decision.cpus), 6);
	assert_true(h->decision.exclusive);
	assert_string_equal(h->decision.message,
		"CPUs are offline: 1,33; not replaced: Resources cannot be allocated with "
		"Topology locality");
	set_offline(n, list("33"));
	assert_int_equal(cpuset_count(&h->decision.cpus), 6); /* restricted to one node still */
	set_offline(n, (struct cpuset){0});
	struct cpuset all = list("0-3,32-35");
	assert_true(cpuset_equal(&h->decision.cpus, &all));
	assert_string_equal(h->decision.message, "");
	assert_int_equal(n->moved, 1);
	node_free(n);
}

static void a_container_that_loses_all_cpus_moves_to_another_node_or_the_pool(void **state)
{
	static const struct {
		enum topology_policy policy;
		const char *offline;
		bool exclusive;
	} cases[] = {
		{POLICY_SINGLE_NUMA_NODE, "0-3,32-35", true},
		{POLICY_SINGLE_NUMA_NODE, "0-3,32-35,4,8,12,16,20,24,28", false},
		{POLICY_BEST_EFFORT, "0-3,32-35,4,8,12,16,20,24,28", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct node *n = node_new(cases[i].policy);
		struct request web = ask("web", QOS_GUARANTEED, 8000, 0);
		const struct holding *h = create(n, &web);

		set_offline(n, list(cases[i].offline));
		assert_int_equal(h->decision.exclusive, cases[i].exclusive);
		if (cases[i].exclusive)
			assert_int_equal(cpuset_count(&h->decision.cpus), 8);
		else
			assert_true(cpuset_empty(&h->decision.cpus));
		set_offline(n, (struct cpuset){0});
		assert_int_equal(cpuset_count(&h->decision.cpus), 8);
		assert_true(h->decision.exclusive);
		node_free(n);
	}
}

static void the_pool_follows_and_is_never_empty(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request log = ask("log", QOS_BURSTABLE, 100, 0), big;
	const struct holding *h = create(n, &log);
	struct cpuset reserved = list("0"), pool;

	(void)state;
	set_offline(n, list("4-31"));
	struct cpuset want = list("0-3,32-63");
	assert_true(cpuset_equal((struct cpuset[]){ledger_cpus_of(engine_ledger(n->g), h)}, &want));
	set_offline(n, (struct cpuset){0});
	assert_true(cpuset_equal(
		(struct cpuset[]){ledger_cpus_of(engine_ledger(n->g), h)}, &n->whole->cpus));
	engine_free(n->g);

	/* all but the reserved CPU are held, and that one goes */
	n->s.reserved_cpus = reserved;
	n->g = engine_new(n->t, &n->s, &(struct engine_hooks){.ctx = n, .record = keep});
	big = ask("big", QOS_GUARANTEED, 63000, 0);
	assert_non_null(create(n, &big));
	pool = ledger_view(engine_ledger(n->g))->pool;
	assert_true(cpuset_equal(&pool, &reserved));
	set_offline(n, reserved);
	assert_false(cpuset_empty(&ledger_view(engine_ledger(n->g))->pool));
	h = ledger_find(engine_ledger(n->g), "big");
	assert_non_null(strstr(h->decision.message,
		"CPUs are offline: all that the shared pool had; not replaced: "));
	set_offline(n, (struct cpuset){0});
	assert_true(h->decision.exclusive);
	assert_int_equal(cpuset_count(&h->decision.cpus), 63);
	node_free(n);
}

static void memory_that_goes_offline_is_not_booked_until_it_comes_back(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	struct request web = ask("web", QOS_GUARANTEED, 2000, GIB(40));
	const struct holding *h = create(n, &web);

	(void)state;
	n->whole->node[0].memory[0] = GIB(32); /* 8 of them huge pages */
	set_offline(n, (struct cpuset){0});
	assert_int_equal(h->decision.blocks[0].bytes, GIB(24));
	assert_non_null(strstr(h->decision.message, "memory of its NUMA nodes has changed"));
	assert_int_equal(n->moved, 1);
	n->whole->node[0].memory[0] = GIB(64);
	set_offline(n, (struct cpuset){0});
	assert_int_equal(h->decision.blocks[0].bytes, GIB(40));
	node_free(n);
}

static void lost_cpus_come_back_although_memory_has_changed_meanwhile(void **state)
{
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	struct request web = ask("web", QOS_GUARANTEED, 8000, GIB(40)); /* all CPUs of a node */
	const struct holding *h = create(n, &web);

	(void)state;
	set_offline(n, list("1,33"));
	assert_int_equal(cpuset_count(&h->decision.cpus), 6);
	n->whole->node[0].memory[0] = GIB(32); /* 8 of them huge pages */
	set_offline(n, list("1,33"));
	assert_int_equal(h->decision.blocks[0].bytes, GIB(24));
	assert_int_equal(cpuset_count(&h->decision.cpus), 6);
	set_offline(n, (struct cpuset){0});
	assert_int_equal(cpuset_count(&h->decision.cpus), 8);
	engine_take_updates(n->g, &n->ups);
	assert_int_equal(n->ups.nr, 1);
	assert_int_equal(cpuset_count(&n->ups.at[0].cpus), 8);
	node_free(n);
}

static void waiting_parts_of_a_pod_also_move_off_offline_cpus(void **state)
{
	static const struct ask containers[] = {
		{.name = "init", .kind = CONTAINER_INIT, .cpu_milli = 4000},
		{.name = "main", .cpu_milli = 6000},
	};
	const struct pod pod = {.sandbox_id = "s1",
		.uid = "u1",
		.ns = "default",
		.name = "web",
		.qos = QOS_GUARANTEED,
		.nr = 2,
		.container = containers};
	struct node *n = node_new(POLICY_SINGLE_NUMA_NODE);
	const struct ledger *l = engine_ledger(n->g);
	struct decision d;

	(void)state;
	engine_run_pod(n->g, 0, &pod, &d);
	assert_true(d.admit);
	const struct holding *init = ledger_find_waiting(l, "u1", "init"),
			     *app = ledger_find_waiting(l, "u1", "main");
	set_offline(n, list("0"));
	assert_int_equal(cpuset_count(&init->decision.cpus), 4);
	assert_int_equal(cpuset_count(&app->decision.cpus), 6);
	assert_int_equal(init->state, HOLDING_WAITING);
	assert_int_equal(ledger_view(l)->nr_misplaced, 0);
	node_free(n);
}

/* The whole machine is held when a CPU goes: its container has no other in its place until somebody
 * ends. The next life of the container gets what it asks for. */
static void a_container_that_restarts_after_it_lost_cpus_gets_others(void **state)
{
	static const struct ask containers[] = {
		{.name = "main", .cpu_milli = 6000, .nr_memory = 1, .memory = {{0, GIB(1)}}},
	};
	const struct pod pod = {.sandbox_id = "s1",
		.uid = "u1",
		.ns = "default",
		.name = "web",
		.qos = QOS_GUARANTEED,
		.nr = 1,
		.container = containers};
	struct node *n = node_new(POLICY_NONE);
	struct request web = ask("web", QOS_GUARANTEED, 6000, GIB(1));
	struct decision d;

	(void)state;
	web.pod = pod;
	web.ask.name = "main";
	engine_run_pod(n->g, 0, &pod, &d);
	assert_true(d.admit);
	char lost[16];
	(void)snprintf(lost, sizeof lost, "%u", cpuset_next(&create(n, &web)->decision.cpus, 0));
	for (unsigned i = 0; i < 2; i++) { /* but for one CPU, which the shared pool needs */
		struct cpuset free = ledger_free_cpus(engine_ledger(n->g));
		unsigned nr = i ? cpuset_count(&free) - 1 : 8;
		struct request other = ask(i ? "rest" : "other", QOS_GUARANTEED, nr * 1000, GIB(1));

		assert_true(create(n, &other)->decision.exclusive);
	}
	set_offline(n, list(lost));
	assert_int_equal(cpuset_count(&ledger_find(engine_ledger(n->g), "web")->decision.cpus), 5);
	engine_release(n->g, 0, "stop", "other", &n->ups);
	engine_release(n->g, 0, "stop", "web", &n->ups);
	web.container_id = "web2";
	assert_int_equal(cpuset_count(&create(n, &web)->decision.cpus), 6);
	node_free(n);
}

static void an_unsolicited_update_is_only_for_containers_that_are_known_to_exist(void **state)
{
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct request log = ask("log", QOS_BURSTABLE, 100, 0),
		       soon = ask("soon", QOS_BURSTABLE, 100, 0);
	struct decision d;
	struct update want;

	(void)state;
	(void)create(n, &log);
	engine_create(n->g, 0, &soon, &d, &n->ups);
	assert_true(engine_wants(n->g, "log", &want));
	assert_false(engine_wants(n->g, "soon", &want));
	assert_false(engine_wants(n->g, "gone", &want));
	engine_must_update(n->g, "log");
	engine_must_update(n->g, "soon");
	engine_must_update(n->g, "gone");
	engine_take_updates(n->g, &n->ups);
	assert_int_equal(n->ups.nr, 1);
	assert_string_equal(n->ups.at[0].container_id, "log");
	vec_fini(&n->ups);
	engine_take_updates(n->g, &n->ups);
	assert_int_equal(n->ups.nr, 0); /* updated already */
	engine_release(n->g, 0, "stop", "log", &n->ups);
	assert_int_equal(n->ups.nr, 1); /* the other one goes out with a reply */
	node_free(n);
}

/* Any CPUs go and come, any containers come and go: the ledger stays sound throughout. */
static void any_cpus_may_go_offline_and_come_back(void **state)
{
	enum { ROUNDS = 400, CONTAINERS = 12 };
	struct node *n = node_new(POLICY_BEST_EFFORT);
	struct random random = {.state = 5};

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		char id[16];
		struct cpuset offline = {0};
		unsigned cpus = 1 + random_below(&random, 9);

		(void)snprintf(id, sizeof id, "c%u", random_below(&random, CONTAINERS));
		struct request req =
			ask(id, random_below(&random, 3) ? QOS_GUARANTEED : QOS_BURSTABLE,
				1000 * cpus, GIB(1 + random_below(&random, 20)));
		if (random_below(&random, 3))
			(void)create(n, &req);
		else
			engine_forget(n->g, 0, "remove", id);
		for (unsigned nr = random_below(&random, 40); nr > 0; nr--)
			cpuset_add(&offline, 1 + random_below(&random, 63));
		if (round % 2 == 0)
			set_offline(n, offline);
		check(n);
	}
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_that_loses_a_cpu_gets_another_of_its_node),
		cmocka_unit_test(
			a_container_keeps_its_remaining_cpus_until_the_lost_one_comes_back),
		cmocka_unit_test(a_container_that_loses_all_cpus_moves_to_another_node_or_the_pool),
		cmocka_unit_test(the_pool_follows_and_is_never_empty),
		cmocka_unit_test(memory_that_goes_offline_is_not_booked_until_it_comes_back),
		cmocka_unit_test(lost_cpus_come_back_although_memory_has_changed_meanwhile),
		cmocka_unit_test(waiting_parts_of_a_pod_also_move_off_offline_cpus),
		cmocka_unit_test(a_container_that_restarts_after_it_lost_cpus_gets_others),
		cmocka_unit_test(
			an_unsolicited_update_is_only_for_containers_that_are_known_to_exist),
		cmocka_unit_test(any_cpus_may_go_offline_and_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
