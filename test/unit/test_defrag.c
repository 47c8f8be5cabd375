/* Plans of moves: each is what trying every sequence of moves finds, and can be carried out.
 * DEFRAG=N: that many random nodes, and a hundredth of them with twice as many containers that may
 * move. */
#include "core_random.h"
#include "defrag_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

enum {
	NODES = 4,
	MOVERS_FEW = 5,
	MOVERS_MANY = 10,
	MOVES_MOST = 3,
	POOL_MOST = 3,
	TRIALS = 10000000,
	FEW_NODES = 150,
	MANY_IN = 100 /* nodes there is one with many movers */
};

/* One that was found running on any CPUs, with its memory on any NUMA node. */
static void adopt(struct node *n, struct random *r, unsigned i)
{
	struct ledger *l = (struct ledger *)(uintptr_t)engine_ledger(n->g);
	const unsigned cpus = 2 + random_below(r, 2), on = random_below(r, NODES);
	struct cpuset free_cpus = ledger_free_cpus(l);
	struct decision d = {.admit = true,
		.source = SOURCE_ADOPTED,
		.exclusive = true,
		.mems = nodeset_of(on),
		.nr_blocks = 1,
		.blocks = {{0, nodeset_of(on), GIB(1 + random_below(r, 3))}}};
	struct err e;
	char id[ID_MAX];

	while (cpuset_count(&d.cpus) < cpus && !cpuset_empty(&free_cpus)) {
		unsigned cpu = random_below(r, NODES * CPUS_PER_NODE);

		if (cpuset_has(&free_cpus, cpu))
			cpuset_add(&d.cpus, cpu);
		cpuset_del(&free_cpus, cpu);
	}
	(void)snprintf(id, sizeof id, "c%03u", i);
	const struct request req =
		ask(id, QOS_GUARANTEED, cpus * UINT64_C(1000), d.blocks[0].bytes);
	d.preferred = nodeset_count(decision_nodes_used(n->t, &d)) == 1;
	if (cpuset_count(&d.cpus) == cpus && leaves_a_pool(n, l, &d.cpus) &&
		!ledger_fits(l, &req, &d, &e))
		assert_true(give(l, &req, &d));
}

/* Containers come, and some of them go: what is left lies scattered. Some may run anywhere. A few
 * may move. */
static void fill(struct node *n, struct random *r, unsigned movers, bool anywhere)
{
	const struct ledger *l = engine_ledger(n->g);
	const unsigned stay = movers == MOVERS_MANY ? 80 : 60;

	n->s.shared_pool_minimum = 1 + random_below(r, POOL_MOST);
	for (unsigned i = 0; i < CONTAINERS; i++)
		(void)create(n, i,
			1 + random_below(r, 2 + (movers == MOVERS_FEW && random_chance(r, 20))),
			(uint64_t)(1 + random_below(r, 5)) << 30);
	for (unsigned i = 0; i < CONTAINERS; i++)
		if (!random_chance(r, anywhere ? stay / 2 : stay))
			end(n, i);
	for (unsigned i = 0; i < LATER && anywhere; i++)
		adopt(n, r, CONTAINERS + i);
	for (size_t i = 0; i < ledger_count(l) && movers; i++) {
		n->may_move[i] = movers == MOVERS_MANY ||
				 random_chance(r, ledger_at(l, i)->decision.preferred ? 50 : 90);
		movers -= n->may_move[i];
	}
}

static bool may_move(void *ctx, const struct holding *h)
{
	const struct node *n = ctx;

	for (size_t i = 0; i < ledger_count(engine_ledger(n->g)); i++)
		if (ledger_at(engine_ledger(n->g), i) == h)
			return n->may_move[i];
	return false;
}

/* One container that needs a NUMA node or most of one, or two smaller ones. */
static void ask_any_pod(struct asked *a, struct random *r)
{
	const unsigned containers = 1 + random_chance(r, 30);

	ask_pod(a, containers, containers == 1 ? 3U + random_chance(r, 70) : 2 + random_below(r, 2),
		GIB(1 + random_below(r, 8)) / containers);
}

/* Every sequence of moves */

struct brute {
	const struct node *n;
	const struct pod *pod; /* NULL: those that are not preferred */
	struct engine *copy;
	struct ledger *l;
	void *work;
	bool moved[ENTRIES];
	unsigned gained, most; /* containers that have become preferred; or the pod is admitted */
	struct defrag_cost best, now;
};

static int compare(const struct defrag_cost *a, const struct defrag_cost *b)
{
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	if (a->cpus != b->cpus)
		return a->cpus < b->cpus ? -1 : 1;
	return a->moves < b->moves ? -1 : a->moves > b->moves;
}

static bool decide_on(struct brute *x, size_t entry, unsigned node, struct decision *d)
{
	const struct ledger *original = engine_ledger(x->n->g);
	struct request req = ledger_at(original, entry)->request;
	const struct advice_ask advice = {
		.so_far = ADVICE_ACCEPTED, .mode = ADVICE_REQUIRE, .asked = nodeset_of(node)};
	bool gone[ENTRIES] = {false};
	struct admit_question q = {
		.ledger = x->l, .settings = &x->n->s, .container = &req, .suppose = {.gone = gone}};
	struct budget b = budget_of(0);
	struct arena a;

	gone[entry] = true;
	req.ask.advice = &advice;
	arena_init_fixed(&a, x->work, ADMIT_ARENA_BYTES);
	admit(&q, &b, &a, d, NULL);
	d->reasons = NULL;
	return d->admit && d->preferred && d->exclusive &&
	       nodeset_equal(decision_nodes_used(x->n->t, d), nodeset_of(node));
}

static void try_all(struct brute *x, unsigned depth);

static void try_move(struct brute *x, size_t i, unsigned node, unsigned depth)
{
	const struct holding *h = ledger_at(engine_ledger(x->n->g), i);
	const struct cpuset pool = ledger_view(x->l)->pool;
	const struct defrag_cost before = x->now;
	const unsigned gained = x->gained;
	struct decision d;

	if (nodeset_equal(decision_nodes_used(x->n->t, &h->decision), nodeset_of(node)) ||
		!decide_on(x, i, node, &d) || !leaves_a_pool(x->n, x->l, &d.cpus))
		return;
	assert_true(give(x->l, &h->request, &d));
	x->moved[i] = true;
	x->now.bytes += h->request.ask.memory[0].bytes;
	x->now.cpus += cpuset_count(&h->decision.cpus);
	x->now.moves++;
	x->gained += !x->pod && !h->decision.preferred;
	try_all(x, depth + 1);
	x->moved[i] = false;
	x->now = before;
	x->gained = gained;
	assert_true(give(x->l, &h->request, &h->decision));
	(void)ledger_set_pool(x->l, &pool, NULL);
}

static void try_all(struct brute *x, unsigned depth)
{
	const struct ledger *original = engine_ledger(x->n->g);
	const unsigned gained = x->pod ? fits_as_preferred(x->l, &x->n->s, x->pod) : x->gained;

	if (gained > x->most || (gained && gained == x->most && compare(&x->now, &x->best) < 0)) {
		x->most = gained;
		x->best = x->now;
	}
	for (size_t i = 0; i < ledger_count(original) && depth < MOVES_MOST; i++)
		for (unsigned n = 0; n < NODES && !x->moved[i]; n++)
			if (x->n->may_move[i] && ledger_at(original, i)->decision.exclusive)
				try_move(x, i, n, depth);
}

static struct brute brute_force(const struct node *n, const struct pod *pod)
{
	struct brute x = {.n = n, .pod = pod, .work = calloc(1, ADMIT_ARENA_BYTES)};

	x.copy = engine_copy(n->g, n->t, &n->s, NULL);
	assert_non_null(x.copy);
	x.l = (struct ledger *)(uintptr_t)engine_ledger(x.copy);
	try_all(&x, 0);
	engine_free(x.copy);
	free(x.work);
	return x;
}

/* Each move gives what the container would get that came with a hint for that NUMA node. */
static void assert_is_as_merged(const struct node *n, const struct defrag_plan *plan)
{
	struct brute x = {.n = n, .work = calloc(1, ADMIT_ARENA_BYTES)};
	const struct ledger *original = engine_ledger(n->g);

	x.copy = engine_copy(n->g, n->t, &n->s, NULL);
	x.l = (struct ledger *)(uintptr_t)engine_ledger(x.copy);
	for (unsigned i = 0; i < plan->nr; i++) {
		const struct defrag_move *m = &plan->move[i];
		const struct nodeset to = decision_nodes_used(n->t, &m->to);
		struct decision d;
		size_t entry = 0;

		while (ledger_at(original, entry) != m->from)
			entry++;
		assert_true(decide_on(&x, entry, nodeset_next(to, 0), &d));
		assert_true(cpuset_equal(&d.cpus, &m->to.cpus));
		assert_true(nodeset_equal(d.mems, m->to.mems));
		assert_true(nodeset_equal(d.nodes, m->to.nodes));
		assert_int_equal(d.has_affinity, m->to.has_affinity);
		assert_int_equal(d.policy, m->to.policy);
		assert_int_equal(d.nr_blocks, m->to.nr_blocks);
		assert_memory_equal(d.blocks, m->to.blocks, sizeof d.blocks);
		assert_string_equal(d.message, m->to.message);
		assert_true(give(x.l, &m->from->request, &m->to));
	}
	engine_free(x.copy);
	free(x.work);
}

/* What the plans of a test came to. */
struct tally {
	unsigned nodes, with_moves[DEFRAG_MOVES_MAX + 1], none, gained;
	uint64_t trials;
};

static void assert_is_the_best(const struct node *n, const struct pod *pod, struct tally *t)
{
	const struct brute x = brute_force(n, pod);
	const struct defrag_question q = {.engine = n->g,
		.topo = n->t,
		.settings = &n->s,
		.pod = pod,
		.moves = MOVES_MOST,
		.trials = TRIALS,
		.may_move = may_move,
		.ctx = (void *)(uintptr_t)n};
	struct defrag_plan plan;

	assert_int_equal(defrag_plan(&q, &plan, NULL), 0);
	assert_false(plan.cut);
	assert_int_equal(plan.found, x.most > 0);
	if (plan.found && compare(&plan.cost, &x.best) != 0)
		fail_msg("node %u: %u moves of %llu bytes, and %u of %llu are enough", t->nodes,
			plan.nr, (unsigned long long)plan.cost.bytes, x.best.moves,
			(unsigned long long)x.best.bytes);
	if (!pod)
		assert_int_equal(plan.not_preferred_before - plan.not_preferred_after, x.most);
	assert_can_be_done(n, pod, &plan);
	assert_is_as_merged(n, &plan);
	t->nodes++;
	t->trials += plan.trials;
	t->none += !plan.found;
	t->with_moves[plan.nr] += plan.found;
	t->gained += x.most;
}

static struct tally plans_of_random_nodes(bool for_pod, unsigned movers, unsigned nodes)
{
	static const enum topology_policy policies[] = {
		POLICY_RESTRICTED, POLICY_BEST_EFFORT, POLICY_SINGLE_NUMA_NODE};
	const char *seed = getenv("SEED");
	struct topo *t = machine_of(NODES);
	struct random r = {movers + (seed ? strtoull(seed, NULL, 10) : 41)};
	struct tally tally = {0};

	for (unsigned i = 0; i < nodes; i++) {
		struct node n;
		struct asked a;

		begin(&n, t, for_pod ? policies[random_below(&r, 3)] : POLICY_BEST_EFFORT);
		fill(&n, &r, movers, !for_pod || random_chance(&r, 30));
		ask_any_pod(&a, &r);
		assert_is_the_best(&n, for_pod ? &a.pod : NULL, &tally);
		engine_free(n.g);
	}
	print_message(
		"%u nodes: %u by no move, %u by 1, %u by 2, %u by 3, %u not at all; %u gained; "
		"%.1f trials each\n",
		nodes, tally.with_moves[0], tally.with_moves[1], tally.with_moves[2],
		tally.with_moves[3], tally.none, tally.gained,
		(double)tally.trials / (nodes ? nodes : 1));
	free(t);
	return tally;
}

static unsigned nodes_to_try(void)
{
	const char *more = getenv("DEFRAG");

	return more ? (unsigned)strtoul(more, NULL, 10) : FEW_NODES;
}

static void a_plan_for_a_pod_is_the_cheapest_of_all_sequences(void **state)
{
	const struct tally t = plans_of_random_nodes(true, MOVERS_FEW, nodes_to_try());

	(void)state;
	assert_true(t.with_moves[0] && t.with_moves[1] && t.none);
}

static void a_plan_without_a_pod_makes_most_containers_preferred_for_the_least(void **state)
{
	const struct tally t = plans_of_random_nodes(false, MOVERS_FEW, nodes_to_try());

	(void)state;
	assert_true(t.with_moves[1] && t.with_moves[2] && t.with_moves[3] && t.none);
	assert_true(t.gained > t.nodes - t.none);
}

static void so_it_is_where_many_may_move(void **state)
{
	(void)state;
	(void)plans_of_random_nodes(true, MOVERS_MANY, nodes_to_try() / MANY_IN);
	(void)plans_of_random_nodes(false, MOVERS_MANY, nodes_to_try() / MANY_IN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_for_a_pod_is_the_cheapest_of_all_sequences),
		cmocka_unit_test(
			a_plan_without_a_pod_makes_most_containers_preferred_for_the_least),
		cmocka_unit_test(so_it_is_where_many_may_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
