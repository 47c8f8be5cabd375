/* What the ledger does not let in, from journals and running containers, and how the pool moves. */
#include <numafit/ledger.h>

#include "core_machine.h"

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

static struct cpuset list(const char *text)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, text, strlen(text), NULL), 0);
	return cpus;
}

/* Eight nodes of eight CPUs; 0 and 32 are reserved; "one" holds 4-5 and a group of nodes 2 and 3.
 */
static struct node *node_new(void)
{
	struct node *n = calloc(1, sizeof *n);
	struct request one = ask("one", QOS_GUARANTEED, 2000, GIB(100));
	struct decision d = {.admit = true, .exclusive = true, .nr_blocks = 1};

	n->t = machine_of_eight();
	n->s = settings_of(POLICY_RESTRICTED);
	n->s.reserved_cpus = list("0,32");
	n->l = ledger_new(n->t, &n->s);
	d.cpus = list("4-5");
	d.blocks[0] = (struct memory_block){.nodes = {0x0c}, .bytes = GIB(100)};
	struct cpuset pool = ledger_pool_without(n->l, &d.cpus);
	assert_int_equal(ledger_set_pool(n->l, &pool, NULL), 0);
	ledger_commit(n->l, &one, &d);
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

static void cpus_or_memory_that_are_taken_are_refused_with_the_name_of_their_holder(void **state)
{
	static const struct {
		const char *cpus; /* NULL: not exclusive */
		struct memory_block block;
		int rc;
		const char *says;
	} table[] = {
		{"8-9", {0, {0x02}, GIB(1)}, 0, NULL},
		{"5-6", {0}, -16, "CPU 5 is held by container main of pod default/one"},
		{"0-1", {0}, -16, "CPU 0 is reserved"},
		{"64", {0}, -22, "the machine has no CPU 64"},
		{"", {0}, -22, "none are given"},
		{"1-3,6-31,33-63", {0}, 0, NULL}, /* the reserved ones are left for the pool */
		{NULL, {0, {0x04}, GIB(1)}, -16,
			"memory of NUMA node 2 serves other containers together"},
		{NULL, {0, {0x0c}, GIB(1)}, 0, NULL},
		{NULL, {0, {0x01}, GIB(57)}, -16, "where only"},
		{NULL, {0, {0x100}, GIB(1)}, -22, "that the machine lacks"},
		{NULL, {5, {0x01}, GIB(1)}, -22, "that the machine lacks"},
	};
	struct node *n = node_new();

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct decision d = {.admit = true, .exclusive = table[i].cpus != NULL};
		struct err e = {0};

		d.cpus = list(table[i].cpus ? table[i].cpus : "");
		d.blocks[0] = table[i].block;
		d.nr_blocks = table[i].block.bytes > 0;
		int rc = ledger_fits(n->l, &(const struct request){.container_id = "two"}, &d, &e);
		if (rc != table[i].rc || (rc && !strstr(e.text, table[i].says)))
			fail_msg("case %zu: %d, %s", i, rc, e.text);
	}
	node_free(n);
}

static void an_entry_does_not_conflict_with_itself(void **state)
{
	struct node *n = node_new();
	struct decision again = ledger_find(n->l, "one")->decision;

	(void)state;
	again.nr_blocks = 0;
	assert_int_equal(
		ledger_fits(n->l, &(const struct request){.container_id = "one"}, &again, NULL), 0);
	assert_int_equal(
		ledger_fits(n->l, &(const struct request){.container_id = "other"}, &again, NULL),
		-16);
	node_free(n);
}

static void the_pool_cannot_move_to_held_or_reserved_cpus(void **state)
{
	static const struct {
		const char *pool, *says;
	} table[] = {
		{"0,4,32", "CPUs that containers hold"},
		{"1-3", "lacks reserved CPUs"},
		{"0,32,64", "CPUs that it must not have"},
	};
	struct node *n = node_new();

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct cpuset pool = list(table[i].pool);
		struct err e;

		assert_int_equal(ledger_set_pool(n->l, &pool, &e), -22);
		if (!strstr(e.text, table[i].says))
			fail_msg("%s", e.text);
	}
	node_free(n);
}

static void idle_cpus_come_back_before_the_pool_is_too_small(void **state)
{
	struct node *n = node_new();
	struct cpuset small = list("0,32"), rest = list("1-3,6-31,33-61");

	(void)state;
	n->s.shared_pool_minimum = 4;
	assert_int_equal(ledger_set_pool(n->l, &small, NULL), 0); /* all but two lie idle */
	struct cpuset pool = ledger_pool_without(n->l, &rest);
	struct cpuset want = list("0,32,62-63");
	assert_true(cpuset_equal(&pool, &want));
	node_free(n);
}

/* The pool moves by two CPUs at a time here. Of 61 CPUs that nobody holds 30 stay in the pool. */
static void the_pool_gives_cpus_up_ahead_of_need_while_more_than_half_are_left(void **state)
{
	static const struct {
		const char *pool;
		unsigned left;
	} table[] = {
		{"0-3,6-11,32-55", 31}, /* 33 without CPU 8: two more go */
		{"0-3,6-11,32-53", 30}, /* 31: one more goes */
		{"0-3,6-11,32-52", 30}, /* 30: no more */
		{"0-3,6-11,32-51", 29}, /* fewer than half: only what is asked for */
	};
	struct node *n = node_new();
	const struct cpuset held = list("8");

	(void)state;
	n->s.shared_pool_step = 2;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct cpuset pool = list(table[i].pool);

		assert_int_equal(ledger_set_pool(n->l, &pool, NULL), 0);
		const struct cpuset left = ledger_pool_without(n->l, &held);
		assert_false(cpuset_intersects(&left, &held));
		if (cpuset_count(&left) != table[i].left)
			fail_msg("of the pool %s %u CPUs are left, not %u", table[i].pool,
				cpuset_count(&left), table[i].left);
	}
	node_free(n);
}

/* Twice a step may lie idle on a NUMA node, of eight CPUs here; of more, one step stays idle. */
static void the_pool_takes_cpus_back_once_more_than_two_steps_lie_idle(void **state)
{
	static const struct {
		const char *idle; /* of NUMA node 2 */
		unsigned back;
	} table[] = {{"8", 0}, {"8-10", 0}, {"8-11", 0}, {"8-11,40", 3}, {"8-11,40-41", 4}};
	struct node *n = node_new();
	const struct cpuset all = list("0-3,6-63"), nothing = {0};

	(void)state;
	n->s.shared_pool_step = 2;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct cpuset idle = list(table[i].idle);
		const struct cpuset pool = cpuset_minus(all, &idle);

		assert_int_equal(ledger_set_pool(n->l, &pool, NULL), 0);
		const struct cpuset grown = ledger_pool_grown(n->l, &nothing);
		assert_true(cpuset_within(&pool, &grown));
		if (cpuset_count(&grown) - cpuset_count(&pool) != table[i].back)
			fail_msg("of the idle CPUs %s %u come back, not %u", table[i].idle,
				cpuset_count(&grown) - cpuset_count(&pool), table[i].back);
	}
	node_free(n);
}

/* The pod has come again, with a sandbox of its own, before the end of its old container is seen.
 */
static void a_part_that_ends_beside_one_that_waits_is_gone(void **state)
{
	struct node *n = node_new();
	const struct request req = ask("pod", QOS_GUARANTEED, 2000, 0);
	struct decision d = {
		.admit = true, .exclusive = true, .source = SOURCE_HELD, .cpus = list("8-9")};
	const struct cpuset pool = ledger_pool_without(n->l, &d.cpus);

	(void)state;
	assert_int_equal(ledger_set_pool(n->l, &pool, NULL), 0);
	ledger_hold(n->l, &req, &d);
	ledger_commit(n->l, &req, &d);
	ledger_set_live(n->l, "pod");
	ledger_hold(n->l, &req, &d);
	assert_int_equal(ledger_count(n->l), 3);
	assert_true(ledger_release(n->l, "pod"));
	assert_int_equal(ledger_count(n->l), 2);
	assert_non_null(ledger_find_waiting(n->l, "pod", "main"));
	assert_null(ledger_find(n->l, "pod"));
	node_free(n);
}

static void entries_are_found_by_id_by_name_and_by_pod(void **state)
{
	struct node *n = node_new();

	(void)state;
	assert_non_null(ledger_find(n->l, "one"));
	assert_null(ledger_find(n->l, "on"));
	assert_non_null(ledger_find_named(n->l, "one", "main", "other"));
	assert_null(ledger_find_named(n->l, "one", "main", "one"));
	assert_null(ledger_find_named(n->l, "one", "side", "other"));
	assert_non_null(ledger_find_of_pod(n->l, "one"));
	assert_null(ledger_find_of_pod(n->l, "two"));
	assert_null(ledger_at(n->l, 1));
	assert_true(ledger_release(n->l, "one"));
	assert_false(ledger_release(n->l, "one"));
	ledger_free(NULL);
	node_free(n);
}

/* Sorted by a number, of the first eight characters, and by the rest of them. */
static void entries_whose_names_begin_alike_are_told_apart(void **state)
{
	static const char *const ids[] = {"container-3", "container", "containe", "container-1",
		"contain", "container-2", "c\xc3\xa4", "z"};
	enum { NR = sizeof ids / sizeof *ids };
	const struct decision shared = {.admit = true};
	struct node *n = node_new();
	struct err e;

	(void)state;
	for (size_t i = 0; i < NR; i++) {
		const struct request req = {.container_id = ids[i],
			.ask.name = ids[i],
			.pod = {.uid = "pod-with-many", .sandbox_id = "s", .ns = "", .name = ""},
			.cpus = "",
			.mems = ""};

		ledger_commit(n->l, &req, &shared);
	}
	if (ledger_check(n->l, &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < NR; i++) {
		const struct holding *h = ledger_find(n->l, ids[i]);

		assert_non_null(h);
		assert_string_equal(h->request.container_id, ids[i]);
		assert_ptr_equal(ledger_find_named(n->l, "pod-with-many", ids[i], "other"), h);
	}
	assert_null(ledger_find(n->l, "container-4"));
	assert_null(ledger_find_named(n->l, "pod-with", "z", "other"));
	for (size_t i = 0; i < NR; i++)
		assert_true(ledger_release(n->l, ids[i]));
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			cpus_or_memory_that_are_taken_are_refused_with_the_name_of_their_holder),
		cmocka_unit_test(an_entry_does_not_conflict_with_itself),
		cmocka_unit_test(the_pool_cannot_move_to_held_or_reserved_cpus),
		cmocka_unit_test(idle_cpus_come_back_before_the_pool_is_too_small),
		cmocka_unit_test(
			the_pool_gives_cpus_up_ahead_of_need_while_more_than_half_are_left),
		cmocka_unit_test(the_pool_takes_cpus_back_once_more_than_two_steps_lie_idle),
		cmocka_unit_test(a_part_that_ends_beside_one_that_waits_is_gone),
		cmocka_unit_test(entries_are_found_by_id_by_name_and_by_pod),
		cmocka_unit_test(entries_whose_names_begin_alike_are_told_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
