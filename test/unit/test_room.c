/* What a newcomer could be given of each NUMA node, and how far that lies apart: a ledger of a
 * machine with eight NUMA nodes of 8 CPUs. */
#include <numafit/room.h>

#include <numafit/admit.h>
#include <numafit/budget.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core_machine.h"
#include "report_random.h"

enum { CPUS = 64, NUMA_NODES = 8, NUMA_NODE_CPUS = 8 };

struct world {
	struct topo *t;
	struct settings s;
	struct ledger *l;
	struct room room;
	struct node_fragmentation is;
};

static struct cpuset list(const char *text)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, text, strlen(text), NULL), 0);
	return cpus;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	w->t = machine_of_eight();
	w->s = settings_of(POLICY_SINGLE_NUMA_NODE);
	w->l = ledger_new(w->t, &w->s);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	ledger_free(w->l);
	free(w->t);
	free(w);
	return 0;
}

static void look(struct world *w)
{
	room_take(&w->room, w->l, &w->s);
	w->is = room_fragmentation(&w->room, w->t->ids.nr);
}

static void assert_fragmentation(struct world *w, unsigned free, unsigned largest, unsigned milli)
{
	look(w);
	if (w->is.free != free || w->is.largest != largest ||
		node_fragmentation_milli(&w->is) != milli)
		fail_msg("%llu free, %llu on one NUMA node, %u", (unsigned long long)w->is.free,
			(unsigned long long)w->is.largest, node_fragmentation_milli(&w->is));
}

/* A container of its own pod, with CPUs of its own and memory of these NUMA nodes. */
static void hold(struct world *w, const char *id, const char *cpus, uint64_t nodes, uint64_t bytes)
{
	struct decision d = {.admit = true, .exclusive = true, .cpus = list(cpus)};
	struct request req = ask(id, QOS_GUARANTEED, 1000 * cpuset_count(&d.cpus), bytes);
	struct cpuset pool = ledger_pool_without(w->l, &d.cpus);
	struct err e;

	d.nr_blocks = bytes > 0;
	d.blocks[0] = (struct memory_block){.nodes = {nodes}, .bytes = bytes};
	assert_int_equal(ledger_set_pool(w->l, &pool, NULL), 0);
	ledger_commit(w->l, &req, &d);
	if (ledger_check(w->l, &e))
		fail_msg("%s", e.text);
}

static void an_empty_machine_is_not_fragmented(void **state)
{
	struct world *w = *state;

	assert_fragmentation(w, CPUS - 1, NUMA_NODE_CPUS, 0); /* one is the shared pool's */
	for (unsigned n = 0; n < NUMA_NODES; n++)
		assert_true(w->room.cpus[n] == NUMA_NODE_CPUS && w->room.memory[n][0] == GIB(56));
	assert_true(w->is.memory == GIB(56));
	w->s.shared_pool_minimum = 5;
	assert_fragmentation(w, CPUS - 5, NUMA_NODE_CPUS, 0);
	w->s.shared_pool_minimum = 0;
	w->s.reserved_cpus = list("0-1,32-33");
	assert_fragmentation(w, CPUS - 4, NUMA_NODE_CPUS, 0);
	w->s.reserved_cpus = list("0,4,8,12,16,20,24,28"); /* one of each NUMA node */
	assert_fragmentation(w, CPUS - NUMA_NODES, NUMA_NODE_CPUS - 1, 0);
}

static void free_cpus_on_four_numa_nodes_are_three_quarters_fragmented(void **state)
{
	struct world *w = *state;

	w->s.reserved_cpus = list("0-3,32-35");
	hold(w, "apart", "5-7,36-38,9-11,40-42,13-15,44-46,17-19,48-50", 0, 0);
	hold(w, "whole", "20-31,52-63", 0, 0);
	assert_fragmentation(w, 8, 2, 750);
	for (unsigned n = 0; n < NUMA_NODES; n++)
		assert_int_equal(w->room.cpus[n], n > 0 && n < 5 ? 2 : 0);
	assert_true(ledger_release(w->l, "whole"));
	assert_fragmentation(w, 8 + 24, NUMA_NODE_CPUS, 0);
	hold(w, "whole", "20-31,52-63", 0, 0);
	hold(w, "rest", "4,8,12,16,39,43,47,51", 0, 0);
	assert_fragmentation(w, 0, 0, 0);
}

static void what_the_shared_pool_needs_is_not_free(void **state)
{
	struct world *w = *state;

	w->s.shared_pool_minimum = 5;
	hold(w, "one", "0-27,32-59", 0, 0);
	assert_fragmentation(w, 3, 3, 0);
	w->s.mode = MODE_SHADOW; /* the kubelet's gives all */
	assert_fragmentation(w, NUMA_NODE_CPUS, NUMA_NODE_CPUS, 0);
}

static void promised_tokens_are_not_free(void **state)
{
	const struct tokenset tokens = {.nodes = nodeset_of(0), .on = {[0] = list("0-2")}};
	struct world *w = *state;
	uint64_t name;

	w->s.device_plugin = true;
	w->s.reserved_cpus = list("63");
	hold(w, "others", "4-31,36-62", 0, 0);
	assert_fragmentation(w, NUMA_NODE_CPUS, NUMA_NODE_CPUS, 0);
	assert_int_equal(
		leases_may_allocate(ledger_view(w->l)->leases, 1, &tokens, &name, NULL), 0);
	(void)leases_allocate(ledger_view(w->l)->leases, 1, &tokens, name);
	assert_fragmentation(w, NUMA_NODE_CPUS - 3, NUMA_NODE_CPUS - 3, 0);
}

static void cores_that_are_kept_in_part_count_where_all_get_whole_ones(void **state)
{
	struct world *w = *state;

	w->s.cpu_options.full_pcpus_only = true;
	hold(w, "others", "8-31,40-63", 0, 0);
	hold(w, "one", "0-2,4", 0, 0);
	assert_fragmentation(w, 8, 6, 250);
}

static void memory_is_the_most_that_one_numa_node_has(void **state)
{
	struct world *w = *state;

	for (unsigned n = 0; n < NUMA_NODES - 1; n++)
		hold(w, (char[]){'a' + (char)n, 0}, (char[]){'0' + (char)n, 0}, 1u << n,
			GIB(10 + n));
	look(w);
	assert_true(w->is.memory == GIB(56));
	hold(w, "big", "60", 0x80, GIB(50));
	look(w);
	assert_true(w->is.memory == GIB(46)); /* of NUMA node 0 */
}

static bool fits(const struct random_node *w, unsigned cpus)
{
	static char room[1 << 20];
	struct request req = ask("newcomer", QOS_GUARANTEED, 1000 * cpus, 0);
	struct budget b = budget_of(w->s.merge_visit_budget);
	struct decision d;
	struct arena a;

	arena_init_fixed(&a, room, sizeof room);
	admit(&(struct admit_question){engine_ledger(w->g), &w->s, .container = &req}, &b, &a, &d,
		NULL);
	return d.admit;
}

/* What is called the largest container fits, and no larger one does: asked of the decision itself,
 * in random states of random machines. */
static void the_largest_container_fits_and_no_larger_one_does(void **state)
{
	enum { ROUNDS = 500, EVENTS = 40 };
	unsigned nr_fragmented = 0, nr_full = 0;

	(void)state;
	for (unsigned round = 1; round <= ROUNDS; round++) {
		struct random_node *w = random_node_new(round);
		struct room room;

		for (unsigned i = 0; i < EVENTS; i++)
			random_node_event(w);
		w->s.topology_policy = POLICY_SINGLE_NUMA_NODE;
		room_take(&room, engine_ledger(w->g), &w->s);
		const struct node_fragmentation f = room_fragmentation(&room, w->t->ids.nr);
		unsigned step = w->s.cpu_options.full_pcpus_only ? w->threads : 1;
		unsigned largest = (unsigned)f.largest / step * step;

		if ((largest && !fits(w, largest)) || fits(w, largest + step))
			fail_msg("seed %u: %u of %llu free CPUs, steps of %u", round, largest,
				(unsigned long long)f.free, step);
		nr_fragmented += node_fragmentation_milli(&f) > 0;
		nr_full += !f.free;
		random_node_free(w);
	}
	assert_true(nr_fragmented > ROUNDS / 10 && nr_full > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			an_empty_machine_is_not_fragmented, setup, teardown),
		cmocka_unit_test_setup_teardown(
			free_cpus_on_four_numa_nodes_are_three_quarters_fragmented, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			what_the_shared_pool_needs_is_not_free, setup, teardown),
		cmocka_unit_test_setup_teardown(promised_tokens_are_not_free, setup, teardown),
		cmocka_unit_test_setup_teardown(
			cores_that_are_kept_in_part_count_where_all_get_whole_ones, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			memory_is_the_most_that_one_numa_node_has, setup, teardown),
		cmocka_unit_test(the_largest_container_fits_and_no_larger_one_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
