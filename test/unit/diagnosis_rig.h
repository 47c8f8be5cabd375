#ifndef DIAGNOSIS_RIG_H
#define DIAGNOSIS_RIG_H

#include <numafit/admission.h>
#include <numafit/diagnosis.h>
#include <numafit/resize.h>
#include <numafit/engine.h>
#include <numafit/mem.h>
#include <numafit/number.h>

#include "core_machine.h"
#include "core_random.h"

#include <inttypes.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { GUESTS = 5, PARTS = 3, NAME_MAX_HERE = 8, NODES_MOST = 4 };

/* A random node, and a question that may be refused on it. */
struct world {
	struct random r;
	struct topo t;
	struct settings s;
	struct engine *g;
	char name[GUESTS + 1][NAME_MAX_HERE];
	/* the question */
	bool alone; /* a container of which its pod's spec is not known */
	bool runs;  /* it is one that runs, and is resized */
	struct request req;
	struct pod pod;
	struct ask part[PARTS];
	char part_name[PARTS][NAME_MAX_HERE];
	struct advice_ask advice;
	void *work;
};

/* A node with some pods */

static void random_machine(struct world *w)
{
	unsigned nr = 1 + random_below(&w->r, NODES_MOST), id = 0;
	unsigned threads = random_chance(&w->r, 60) ? 2 : 1;
	bool pages = random_chance(&w->r, 30);

	topo_init(&w->t, "random");
	for (unsigned n = 0; n < nr; n++)
		(void)topo_add_node(&w->t, n, NULL);
	for (unsigned n = 0; n < nr; n++) {
		unsigned cores = 2 + random_below(&w->r, 4);

		for (unsigned c = 0; c < cores * threads; c++, id++)
			(void)topo_add_cpu(&w->t, id, n, id - c % threads, n / 2, n, NULL);
		(void)topo_set_memory(&w->t, n, 0, GIB(4 + random_below(&w->r, 13)), NULL);
		if (pages)
			(void)topo_set_memory(&w->t, n, GIB(1), GIB(random_below(&w->r, 4)), NULL);
		for (unsigned m = 0; m < nr; m++)
			(void)topo_set_distance(&w->t, n, m,
				n == m           ? 10
				: n / 2 == m / 2 ? 15
						 : 30,
				NULL);
	}
	if (topo_seal(&w->t, NULL))
		abort();
}

static void random_settings(struct world *w)
{
	struct random *r = &w->r;

	settings_init(&w->s);
	w->s.topology_policy = (enum topology_policy)random_below(r, NR_POLICIES);
	w->s.topology_scope = random_chance(r, 30) ? SCOPE_POD : SCOPE_CONTAINER;
	w->s.prefer_closest_numa_nodes = random_chance(r, 30);
	w->s.memory_manager_policy = random_chance(r, 85) ? MANAGER_STATIC : MANAGER_NONE;
	w->s.cpu_options.full_pcpus_only = random_chance(r, 25);
	w->s.cpu_options.distribute_cpus_across_numa = random_chance(r, 15);
	w->s.cpu_options.strict_cpu_reservation = random_chance(r, 20);
	w->s.shared_pool_step = 0;
	w->s.shared_pool_minimum = 1 + random_below(r, 4);
	cpuset_each (cpu, &w->t.cpus)
		if (cpu < 2 && random_chance(r, 40))
			cpuset_add(&w->s.reserved_cpus, cpu);
}

static int record_nothing(void *ctx, const struct record *r, struct err *e)
{
	(void)ctx;
	(void)r;
	(void)e;
	return 0;
}

static void random_ask(struct world *w, struct ask *a, unsigned cpus, unsigned gib)
{
	struct random *r = &w->r;

	*a = (struct ask){.cpu_milli = 1000 * (uint64_t)random_below(r, cpus + 1)};
	if (random_chance(r, 8))
		a->cpu_milli += 500;
	if (random_chance(r, 80))
		a->memory[a->nr_memory++] = (struct memory_ask){0, GIB(1 + random_below(r, gib))};
	if (w->t.nr_kinds > 1 ? random_chance(r, 30) : random_chance(r, 3))
		a->memory[a->nr_memory++] =
			(struct memory_ask){GIB(1), GIB(1 + random_below(r, 4))};
}

static struct pod pod_named(const char *name)
{
	return (struct pod){.sandbox_id = name,
		.uid = name,
		.ns = "default",
		.name = name,
		.qos = QOS_GUARANTEED};
}

static void random_guest(struct world *w, unsigned i)
{
	struct request req = {
		.container_id = w->name[i], .pod = pod_named(w->name[i]), .cpus = "", .mems = ""};
	struct update_list ups = {0};
	struct decision d;

	random_ask(w, &req.ask, 6, 6);
	req.ask.name = "main";
	engine_create(w->g, 0, &req, &d, &ups);
	if (d.admit)
		engine_live(w->g, 0, &req, NULL);
	vec_fini(&ups);
}

static void random_question(struct world *w)
{
	unsigned nr = random_chance(&w->r, 60) ? 1 : 2 + random_below(&w->r, PARTS - 1);
	bool large = random_chance(&w->r, 30);
	unsigned nr_init = 0;

	w->runs = false;
	w->alone = nr == 1 && random_chance(&w->r, 70);
	w->pod = pod_named("asks");
	w->pod.nr = nr;
	w->pod.container = w->part;
	w->pod.policy = (enum topology_policy)random_below(&w->r, NR_POLICIES);
	w->pod.has_policy = w->pod.policy > w->s.topology_policy && random_chance(&w->r, 25);
	for (unsigned i = 0; i < nr; i++) {
		random_ask(w, &w->part[i], large ? 24 : 8, large ? 40 : 10);
		(void)snprintf(w->part_name[i], sizeof w->part_name[i], "c%u", i);
		w->part[i].name = w->part_name[i];
		if (i + 1 < nr && i == nr_init && random_chance(&w->r, 20) && ++nr_init)
			w->part[i].kind = CONTAINER_INIT;
		if (!random_chance(&w->r, 15))
			continue;
		w->advice = (struct advice_ask){.so_far = ADVICE_ACCEPTED,
			.mode = random_chance(&w->r, 80) ? ADVICE_REQUIRE : ADVICE_PREFER,
			.asked = nodeset_of(random_below(&w->r, w->t.ids.nr))};
		w->part[i].advice = &w->advice;
	}
	w->req = (struct request){.container_id = "asks",
		.pod = pod_identity(&w->pod),
		.ask = w->part[0],
		.cpus = "",
		.mems = ""};
	w->req.ask.nr_memory = ask_memory(&w->part[0], w->req.ask.memory);
	w->req.pod.has_policy = w->pod.has_policy;
	w->req.pod.policy = w->pod.policy;
}

/* One of the guests is to have something else. False: there is none. */
static bool random_resize(struct world *w)
{
	const struct ledger *l = engine_ledger(w->g);
	bool large = random_chance(&w->r, 30);

	if (!ledger_count(l))
		return false;
	const struct holding *h = ledger_at(l, random_below(&w->r, (unsigned)ledger_count(l)));
	w->runs = w->alone = true;
	w->pod.nr = 0;
	w->req = h->request;
	random_ask(w, &w->req.ask, large ? 24 : 8, large ? 40 : 10);
	w->req.ask.name = "main";
	w->req.ask.nr_memory = ask_memory(&w->req.ask, w->req.ask.memory);
	return true;
}

static struct admit_question question_of(const struct world *w)
{
	return (struct admit_question){.ledger = engine_ledger(w->g),
		.settings = &w->s,
		.container = w->alone ? &w->req : NULL,
		.pod = w->alone ? NULL : &w->pod};
}

static bool answer(const struct world *w, const struct admit_question *q, struct decision *d)
{
	const struct holding *h =
		w->runs ? ledger_find(q->ledger, q->container->container_id) : NULL;
	struct budget b = budget_of(0);
	struct decision *parts;
	struct arena a;

	arena_init_fixed(&a, w->work, ADMIT_ARENA_BYTES);
	if (h) {
		resize(q->ledger, q->settings, h, q->container, &b, &a, d);
		return d->admit;
	}
	admit(q, &b, &a, d, q->container ? NULL : &parts);
	return d->admit;
}

#endif
