#ifndef NUMAFIT_TEST_DEFRAG_RIG_H
#define NUMAFIT_TEST_DEFRAG_RIG_H

/* Nodes for tests of plans of moves, and what carries a plan out. */
#include <numafit/answer.h>
#include <numafit/defrag.h>

#include "core_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

enum { CPUS_PER_NODE = 4, CONTAINERS = 14, LATER = 5, ENTRIES = CONTAINERS + LATER, ID_MAX = 16 };

/* NUMA nodes of four CPUs and 16 GiB, two in each socket. */
static inline struct topo *machine_of(unsigned nodes)
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
	bool may_move[ENTRIES]; /* by place in the ledger; of small nodes */
};

static inline int record(void *ctx, const struct record *r, struct err *e)
{
	(void)ctx, (void)r, (void)e;
	return 0;
}

static inline bool create(struct node *n, unsigned i, unsigned cpus, uint64_t memory)
{
	struct update_list ups = {0};
	struct decision d;
	char id[ID_MAX];

	(void)snprintf(id, sizeof id, "c%03u", i);
	struct request req = ask(id, QOS_GUARANTEED, cpus * UINT64_C(1000), memory);
	engine_create(n->g, i + 1, &req, &d, &ups);
	vec_fini(&ups);
	return d.admit;
}

static inline void end(struct node *n, unsigned i)
{
	struct update_list ups = {0};
	char id[ID_MAX];

	(void)snprintf(id, sizeof id, "c%03u", i);
	engine_release(n->g, 1000, "stop", id, &ups);
	vec_fini(&ups);
}

static inline void begin(struct node *n, struct topo *t, enum topology_policy policy)
{
	const struct engine_hooks hooks = {.record = record};

	*n = (struct node){.t = t, .s = settings_of(policy)};
	n->g = engine_new(n->t, &n->s, &hooks);
}

static inline unsigned not_preferred(const struct ledger *l)
{
	unsigned nr = 0;

	for (size_t i = 0; i < ledger_count(l); i++)
		nr += ledger_at(l, i)->decision.exclusive && !ledger_at(l, i)->decision.preferred;
	return nr;
}

/* Whether the shared pool has its minimum without these as well. */
static inline bool leaves_a_pool(
	const struct node *n, const struct ledger *l, const struct cpuset *cpus)
{
	struct cpuset others = cpuset_minus(n->t->cpus, &ledger_view(l)->held);

	others = cpuset_minus(others, cpus);
	return cpuset_count(&others) >= n->s.shared_pool_minimum;
}

static inline bool give(struct ledger *l, const struct request *req, const struct decision *d)
{
	struct cpuset pool = ledger_pool_without(l, &d->cpus);

	if (ledger_set_pool(l, &pool, NULL))
		return false;
	ledger_commit(l, req, d);
	return true;
}

/* The pod in question */

struct asked {
	struct pod pod;
	struct ask container[2];
};

static inline void ask_pod(struct asked *a, unsigned containers, unsigned cpus, uint64_t memory)
{
	for (unsigned i = 0; i < containers; i++)
		a->container[i] = (struct ask){.name = i ? "second" : "main",
			.cpu_milli = cpus * UINT64_C(1000),
			.nr_memory = 1,
			.memory = {{0, memory}}};
	a->pod = (struct pod){.sandbox_id = "new",
		.uid = "new",
		.ns = "new",
		.name = "new",
		.qos = QOS_GUARANTEED,
		.nr = containers,
		.container = a->container};
}

static inline bool fits_as_preferred(
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

/* Carrying a plan out */

/* As the engine makes it: it has both places until its end. */
static inline void make_move(const struct node *n, struct ledger *l, const struct defrag_move *m)
{
	const char *id = m->from->request.container_id;
	const struct cpuset left = cpuset_minus(m->from->decision.cpus, &m->to.cpus);
	struct cpuset pool = ledger_pool_without(l, &m->to.cpus);
	const struct cpuset more = cpuset_minus(m->to.cpus, &m->from->decision.cpus);
	struct err e = {0};

	assert_true(leaves_a_pool(n, l, &more));
	if (ledger_may_move(l, id, &m->to, &e))
		fail_msg("%s", e.text);
	assert_int_equal(ledger_set_pool(l, &pool, &e), 0);
	ledger_begin_move(l, id, &m->to);
	if (ledger_check(l, &e))
		fail_msg("%s", e.text);
	ledger_end_move(l, false, 1);
	pool = ledger_pool_grown(l, &left);
	assert_int_equal(ledger_set_pool(l, &pool, &e), 0);
	if (ledger_check(l, &e))
		fail_msg("%s", e.text);
}

/* The plan, step by step on a copy of the node. */
static inline void assert_can_be_done(
	const struct node *n, const struct pod *pod, const struct defrag_plan *plan)
{
	struct err e = {0};
	struct engine *copy = engine_copy(n->g, n->t, &n->s, &e);
	struct ledger *l = (struct ledger *)(uintptr_t)engine_ledger(copy);

	assert_non_null(copy);
	for (unsigned i = 0; i < plan->nr; i++) {
		const struct defrag_move *m = &plan->move[i];

		assert_int_equal(cpuset_count(&m->to.cpus), cpuset_count(&m->from->decision.cpus));
		make_move(n, l, m);
	}
	assert_int_equal(plan->not_preferred_before, not_preferred(engine_ledger(n->g)));
	assert_int_equal(plan->not_preferred_after, not_preferred(l));
	if (pod && plan->found)
		assert_true(fits_as_preferred(l, &n->s, pod));
	engine_free(copy);
}

#endif
