/* Plans of moves on large machines, within few trials, and by figures. */
#include "defrag_rig.h"

/* A machine of 64 NUMA nodes on each of which one CPU is free, and three containers have the
 * others. */
static struct topo *fragmented(struct node *n)
{
	enum { ONE_OF = 4 };
	struct topo *t = machine_of(NODES_MAX);
	unsigned nr = 0;

	begin(n, t, POLICY_RESTRICTED);
	while (create(n, nr, 1, GIB(1)))
		nr++;
	for (unsigned i = 0; i < nr; i += ONE_OF)
		end(n, i);
	return t;
}

static void on_a_large_machine_likely_plans_are_found_and_known_to_be_the_best(void **state)
{
	enum { TRIALS_OF_FEW = 30 };
	struct defrag_plan plan;
	struct asked a;
	struct node n;
	struct topo *t = fragmented(&n);

	(void)state;
	ask_pod(&a, 1, CPUS_PER_NODE, GIB(1));
	const struct defrag_question q = {.engine = n.g,
		.topo = t,
		.settings = &n.s,
		.pod = &a.pod,
		.moves = DEFRAG_MOVES_MAX,
		.trials = TRIALS_OF_FEW};
	assert_int_equal(defrag_plan(&q, &plan, NULL), 0);
	assert_true(plan.found && !plan.cut);
	assert_int_equal(plan.nr, 2); /* one NUMA node has the pool's CPU, too */
	assert_can_be_done(&n, &a.pod, &plan);
	engine_free(n.g);
	free(t);
}

static void a_search_ends_within_its_trials_and_with_what_it_has_found(void **state)
{
	enum { TRIALS_OF_FEW = 300 };
	struct defrag_plan plan;
	struct asked a;
	struct node n;
	struct topo *t = fragmented(&n);

	(void)state;
	ask_pod(&a, 2, 3, GIB(1));
	for (unsigned pod = 0; pod < 2; pod++) {
		const struct defrag_question q = {.engine = n.g,
			.topo = t,
			.settings = &n.s,
			.pod = pod ? &a.pod : NULL,
			.moves = DEFRAG_MOVES_MAX,
			.trials = TRIALS_OF_FEW};

		assert_int_equal(defrag_plan(&q, &plan, NULL), 0);
		assert_true(plan.trials <= TRIALS_OF_FEW);
		assert_int_equal(plan.cut, pod);
		assert_can_be_done(&n, q.pod, &plan);
	}
	engine_free(n.g);
	free(t);
}

static void a_list_of_figures_says_who_may_move_and_what_it_costs(void **state)
{
	enum { FEW = 4 };
	struct topo *t = machine_of(FEW);
	struct defrag_plan plan;
	struct asked a;
	struct node n;

	(void)state;
	begin(&n, t, POLICY_RESTRICTED);
	for (unsigned i = 0; i < FEW; i++) /* one CPU of each NUMA node is free */
		assert_true(create(&n, i, 3, GIB(1 + i)));
	end(&n, 3);
	assert_true(create(&n, 4, 2, GIB(1)));
	ask_pod(&a, 1, CPUS_PER_NODE, GIB(1));
	const struct defrag_figure figures[] = {{"c001", 7}, {"c004", 9}};
	struct defrag_question q = {.engine = n.g,
		.topo = t,
		.settings = &n.s,
		.pod = &a.pod,
		.moves = 1,
		.trials = 1000,
		.figures = figures,
		.nr_figures = 1};
	assert_int_equal(defrag_plan(&q, &plan, NULL), 0);
	assert_false(plan.found); /* nowhere else are 3 CPUs free */
	q.nr_figures = 2;
	assert_int_equal(defrag_plan(&q, &plan, NULL), 0);
	assert_false(plan.found || plan.cut);
	end(&n, 0);
	assert_true(create(&n, 5, 1, GIB(1)));
	assert_int_equal(defrag_plan(&q, &plan, NULL), 0);
	assert_true(plan.found);
	assert_int_equal(plan.nr, 1);
	assert_string_equal(plan.move[0].from->request.container_id, "c001");
	assert_int_equal(plan.cost.bytes, 7);
	q.figures = &figures[1];
	q.nr_figures = 1;
	assert_int_equal(defrag_plan(&q, &plan, NULL), 0);
	assert_int_equal(plan.cost.bytes, 9);
	q.nr_figures = 0;
	assert_int_equal(defrag_plan(&q, &plan, NULL), 0);
	assert_false(plan.found); /* nobody may move */
	engine_free(n.g);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			on_a_large_machine_likely_plans_are_found_and_known_to_be_the_best),
		cmocka_unit_test(a_search_ends_within_its_trials_and_with_what_it_has_found),
		cmocka_unit_test(a_list_of_figures_says_who_may_move_and_what_it_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
