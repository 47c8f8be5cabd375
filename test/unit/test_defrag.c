/* Plans of moves: each is what trying every sequence of moves finds, and can be carried out.
 * DEFRAG=N: that many random nodes. */
#include <numafit/answer.h>
#include <numafit/defrag.h>

#include "core_machine.h"
#include "core_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

enum {
	NODES = 4,
	CPUS_PER_NODE = 4,
	CONTAINERS = 14,
	MOVERS_MOST = 5,
	MOVES_MOST = 3,
	ID_MAX = 16,
	TRIALS = 1000000,
	FEW_NODES = 300
};

/* NUMA nodes of four CPUs and 16 GiB, two in each socket. */
static struct topo *machine_of(unsigned nodes)
{
	struct topo *t = malloc(sizeof *t);

	topo_init(t, "small");
	for (unsigned n = 0; n < nodes; n++)
		(void)topo_add_node(t, n, NULL);
	for (unsigned n = 0; n < nodes; n++) {
		for (unsigned c = 0; c < CPUS_PER_NODE; c++) {
			unsigned cpu = CPUS_PER_NODE * n + c;

			(void)topo_add_cpu(t, cpu, n, cpu, n / 2, n, NULL);
		}
		(void)topo_set_memory(t, n, 0, GIB(16), NULL);
		for (unsigned m = 0; m < nodes; m++)
			(void)topo_set_distance(t, n, m,
				n == m           ? 10
				: n / 2 == m / 2 ? 12
						 : 20,
				NULL);
	}
	if (topo_seal(t, NULL))
		abort();
	return t;
}

struct node {
	struct topo *t;
	struct settings s;
	struct engine *g;
	bool may_move[CONTAINERS]; /* by place in the ledger; of small nodes */
};

static int record(void *ctx, const struct record *r, struct err *e)
{
	(void)ctx, (void)r, (void)e;
	return 0;
}

static bool create(struct node *n, unsigned i, unsigned cpus, uint64_t memory)
{
	struct update_list ups = {0};
	struct decision d;
	char id[ID_MAX];

	(void)snprintf(id, sizeof id, "c%02u", i);
	struct request req = ask(id, QOS_GUARANTEED, cpus * UINT64_C(1000), memory);
	engine_create(n->g, i + 1, &req, &d, &ups);
	vec_fini(&ups);
	return d.admit;
}

static void begin(struct node *n, struct topo *t, enum topology_policy policy)
{
	const struct engine_hooks hooks = {.record = record};

	*n = (struct node){.t = t, .s = settings_of(policy)};
	n->g = engine_new(n->t, &n->s, &hooks);
}

/* Containers come, and some of them go again: what is left lies scattered. A few may move. */
static void fill(struct node *n, struct random *r)
{
	unsigned nr = 0;

	for (; nr < CONTAINERS; nr++)
		(void)create(n, nr, 1 + random_below(r, 2 + random_below(r, 2)),
			(uint64_t)(1 + random_below(r, 5)) << 30);
	for (unsigned i = 0; i < nr; i++) {
		struct update_list ups = {0};
		char id[ID_MAX];

		(void)snprintf(id, sizeof id, "c%02u", i);
		if (random_chance(r, 30))
			engine_release(n->g, 100, "stop", id, &ups);
		vec_fini(&ups);
	}
	for (size_t i = 0, movers = 0; i < ledger_count(engine_ledger(n->g)); i++) {
		n->may_move[i] = movers < MOVERS_MOST && random_chance(r, 70);
		movers += n->may_move[i];
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

/* The pod in question */

struct asked {
	struct pod pod;
	struct ask container;
};

static void ask_pod(struct asked *a, unsigned cpus, uint64_t memory)
{
	a->container = (struct ask){.name = "main",
		.cpu_milli = cpus * UINT64_C(1000),
		.nr_memory = 1,
		.memory = {{0, memory}}};
	a->pod = (struct pod){.sandbox_id = "new",
		.uid = "new",
		.ns = "new",
		.name = "new",
		.qos = QOS_GUARANTEED,
		.nr = 1,
		.container = &a->container};
}

static bool fits_as_preferred(
	const struct ledger *l, const struct settings *s, const struct pod *pod)
{
	const struct admit_question q = {.ledger = l, .settings = s, .pod = pod};
	void *work = calloc(1, ADMIT_ARENA_BYTES);
	struct budget b = budget_of(0);
	struct answer answer;
	struct arena a;
	bool all;

	arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
	answer_pod(&q, &b, &a, &answer);
	all = answer.decision.admit && answer.record.nr_parts;
	for (size_t i = 0; all && i < answer.record.nr_parts; i++)
		all = answer.record.parts[i].decision.preferred;
	free(work);
	return all;
}

/* Every sequence of moves */

struct brute {
	const struct node *n;
	const struct pod *pod;
	struct engine *copy;
	struct ledger *l;
	bool moved[CONTAINERS], found;
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

static bool give(struct ledger *l, const struct request *req, const struct decision *d)
{
	struct cpuset pool = ledger_pool_without(l, &d->cpus);

	if (ledger_set_pool(l, &pool, NULL))
		return false;
	ledger_commit(l, req, d);
	return true;
}

static bool decide_on(struct brute *x, size_t entry, unsigned node, struct decision *d)
{
	const struct ledger *original = engine_ledger(x->n->g);
	struct request req = ledger_at(original, entry)->request;
	const struct advice_ask advice = {
		.so_far = ADVICE_ACCEPTED, .mode = ADVICE_REQUIRE, .asked = nodeset_of(node)};
	bool gone[CONTAINERS] = {false};
	struct admit_question q = {
		.ledger = x->l, .settings = &x->n->s, .container = &req, .suppose = {.gone = gone}};
	void *work = calloc(1, ADMIT_ARENA_BYTES);
	struct budget b = budget_of(0);
	struct arena a;

	gone[entry] = true;
	req.ask.advice = &advice;
	arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
	admit(&q, &b, &a, d, NULL);
	free(work);
	d->reasons = NULL;
	return d->admit && d->preferred && d->exclusive &&
	       nodeset_equal(decision_nodes_used(x->n->t, d), nodeset_of(node));
}

static void try_all(struct brute *x, unsigned depth)
{
	const struct ledger *original = engine_ledger(x->n->g);

	if (fits_as_preferred(x->l, &x->n->s, x->pod) &&
		(!x->found || compare(&x->now, &x->best) < 0)) {
		x->found = true;
		x->best = x->now;
	}
	for (size_t i = 0; i < ledger_count(original) && depth < MOVES_MOST; i++)
		for (unsigned n = 0; n < NODES && !x->moved[i]; n++) {
			const struct holding *h = ledger_at(original, i);
			const struct cpuset pool = ledger_view(x->l)->pool;
			const struct defrag_cost before = x->now;
			struct decision d;

			if (!x->n->may_move[i] || !h->decision.exclusive ||
				nodeset_equal(decision_nodes_used(x->n->t, &h->decision),
					nodeset_of(n)) ||
				!decide_on(x, i, n, &d) || !give(x->l, &h->request, &d))
				continue;
			x->moved[i] = true;
			x->now.bytes += h->request.ask.memory[0].bytes;
			x->now.cpus += cpuset_count(&h->decision.cpus);
			x->now.moves++;
			try_all(x, depth + 1);
			x->moved[i] = false;
			x->now = before;
			assert_true(give(x->l, &h->request, &h->decision));
			(void)ledger_set_pool(x->l, &pool, NULL);
		}
}

/* The plan, step by step on a copy of the node. */
static void assert_can_be_done(
	const struct node *n, const struct pod *pod, const struct defrag_plan *plan)
{
	struct err e = {0};
	struct engine *copy = engine_copy(n->g, n->t, &n->s, &e);
	struct ledger *l = (struct ledger *)(uintptr_t)engine_ledger(copy);

	assert_non_null(copy);
	for (unsigned i = 0; i < plan->nr; i++) {
		const struct defrag_move *m = &plan->move[i];
		struct cpuset others = ledger_view(l)->held;

		others = cpuset_minus(others, &m->from->decision.cpus);
		assert_false(cpuset_intersects(&others, &m->to.cpus)); /* into what is free */
		assert_int_equal(cpuset_count(&m->to.cpus), cpuset_count(&m->from->decision.cpus));
		assert_true(give(l, &m->from->request, &m->to));
		if (ledger_check(l, &e))
			fail_msg("%s", e.text);
	}
	assert_true(fits_as_preferred(l, &n->s, pod));
	engine_free(copy);
}

static void a_plan_is_the_cheapest_of_all_sequences(void **state)
{
	const char *more = getenv("DEFRAG");
	unsigned nodes = more ? (unsigned)strtoul(more, NULL, 10) : FEW_NODES, with_moves[8] = {0},
		 none = 0;
	struct random r = {41};
	struct topo *t = machine_of(NODES);
	uint64_t trials = 0;

	(void)state;
	for (unsigned i = 0; i < nodes; i++) {
		struct node n;
		struct defrag_plan plan;
		struct asked a;
		struct err e = {0};

		begin(&n, t, random_chance(&r, 50) ? POLICY_RESTRICTED : POLICY_BEST_EFFORT);
		fill(&n, &r);
		ask_pod(&a, 3 + random_below(&r, 2), (uint64_t)(1 + random_below(&r, 8)) << 30);
		struct brute x = {.n = &n, .pod = &a.pod};
		x.copy = engine_copy(n.g, n.t, &n.s, &e);
		assert_non_null(x.copy);
		x.l = (struct ledger *)(uintptr_t)engine_ledger(x.copy);
		try_all(&x, 0);
		const struct defrag_question q = {.engine = n.g,
			.topo = n.t,
			.settings = &n.s,
			.pod = &a.pod,
			.moves = MOVES_MOST,
			.trials = TRIALS,
			.may_move = may_move,
			.ctx = &n};
		assert_int_equal(defrag_plan(&q, &plan, &e), 0);
		assert_false(plan.cut);
		assert_int_equal(plan.found, x.found);
		trials += plan.trials;
		if (plan.found) {
			if (compare(&plan.cost, &x.best) != 0)
				fail_msg(
					"node %u: %u moves of %llu bytes, and %u of %llu are enough",
					i, plan.nr, (unsigned long long)plan.cost.bytes,
					x.best.moves, (unsigned long long)x.best.bytes);
			assert_can_be_done(&n, &a.pod, &plan);
			with_moves[plan.nr]++;
		}
		none += !plan.found;
		engine_free(x.copy);
		engine_free(n.g);
	}
	print_message(
		"%u nodes: %u as they are, %u by 1 move, %u by 2, %u by 3, %u not at all; %llu "
		"states each\n",
		nodes, with_moves[0], with_moves[1], with_moves[2], with_moves[3], none,
		(unsigned long long)trials / nodes);
	assert_true(with_moves[0] && with_moves[1] && with_moves[2] && none);
	free(t);
}

static void a_search_ends_within_its_trials_and_with_what_it_has_found(void **state)
{
	enum { TRIALS_OF_FEW = 3000, ONE_OF = 4, FREED = 3 };
	struct topo *t = machine_of(NODES_MAX);
	struct defrag_plan plan;
	struct asked a;
	struct node n;
	unsigned nr = 0;
	char id[ID_MAX];

	(void)state;
	begin(&n, t, POLICY_RESTRICTED);
	while (create(&n, nr, 1, GIB(1)))
		nr++;
	for (unsigned i = 0; i < nr; i += ONE_OF) { /* one CPU of each NUMA node is free */
		struct update_list ups = {0};

		(void)snprintf(id, sizeof id, "c%02u", i);
		engine_release(n.g, 1000, "stop", id, &ups);
		vec_fini(&ups);
	}
	ask_pod(&a, CPUS_PER_NODE, GIB(1));
	const struct defrag_question q = {.engine = n.g,
		.topo = t,
		.settings = &n.s,
		.pod = &a.pod,
		.moves = DEFRAG_MOVES_MAX,
		.trials = TRIALS_OF_FEW};
	assert_int_equal(defrag_plan(&q, &plan, NULL), 0);
	print_message("%u containers: %u moves after %llu states\n", nr - nr / ONE_OF, plan.nr,
		(unsigned long long)plan.trials);
	assert_true(plan.trials <= TRIALS_OF_FEW + t->ids.nr);
	assert_true(plan.found && plan.cut);
	assert_in_range(plan.nr, 1, FREED);
	assert_can_be_done(&n, &a.pod, &plan);
	engine_free(n.g);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plan_is_the_cheapest_of_all_sequences),
		cmocka_unit_test(a_search_ends_within_its_trials_and_with_what_it_has_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
