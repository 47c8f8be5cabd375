#ifndef NUMAFIT_TEST_CORE_PODS_RANDOM_H
#define NUMAFIT_TEST_CORE_PODS_RANDOM_H

#include "core_pods.h"
#include "core_random.h"

/* Random pods, and events that happen to them. ENGINE_EVENTS and SEED choose how many and which. */

enum { EVENTS_DEFAULT = 4000 };

static inline void random_part(struct random *r, struct ask *c)
{
	static const unsigned milli[] = {0, 500, 1000, 1000, 2000, 2000, 3000, 4000, 5000, 6000};

	c->cpu_milli = milli[random_below(r, sizeof milli / sizeof *milli)];
	if (random_chance(r, 80))
		c->memory[c->nr_memory++] =
			(struct memory_ask){0, GIB(random_chance(r, 5) ? 70 : random_below(r, 24))};
	if (random_chance(r, 15))
		c->memory[c->nr_memory++] =
			(struct memory_ask){GIB(1), GIB(1 + random_below(r, 4))};
}

/* What its author wishes for, of what the operator allows: nothing for most of its containers. */
static inline void random_wishes(struct random *r, struct guest *p)
{
	for (unsigned i = 0; i < p->pod.nr; i++)
		if (random_chance(r, 30))
			p->part[i].wishes = (struct wishes){
				.cpus = (enum wish_cpus)random_below(r, NR_WISH_CPUS),
				.cores = (enum wish_cores)random_below(r, NR_WISH_CORES),
				.spread = (enum wish_spread)random_below(r, NR_WISH_SPREADS),
				.isolated = (enum wish_isolated)random_below(r, NR_WISH_ISOLATED),
			};
}

/* The pod has resources of its own: some of its containers name none. */
static inline void random_own(struct random *r, struct guest *p)
{
	uint64_t bytes = GIB(random_below(r, 8));

	p->pod.pod_level = true;
	p->own = (struct ask){.name = "", .guaranteed = true, .whole_pod = true};
	for (unsigned i = 0; i < p->pod.nr; i++) {
		struct ask *c = &p->part[i];

		c->guaranteed = c->cpu_milli && c->nr_memory && c->memory[0].bytes;
		if (random_chance(r, 50))
			*c = (struct ask){.name = c->name, .kind = c->kind};
		p->own.cpu_milli += c->cpu_milli;
		bytes += c->nr_memory ? c->memory[0].bytes : 0;
	}
	p->own.cpu_milli += 1000 - p->own.cpu_milli % 1000 + 1000 * random_below(r, 3);
	if (random_chance(r, 10))
		p->own.cpu_milli += 500;
	p->own.nr_memory = 1;
	p->own.memory[0] = (struct memory_ask){0, bytes};
}

static inline void random_spec(struct random *r, struct guest *p)
{
	unsigned nr_init = random_below(r, 3), nr_app = 1 + random_below(r, 3);

	for (unsigned i = 0; i < nr_init + nr_app; i++) {
		add(p,
			i >= nr_init           ? CONTAINER_APP
			: random_chance(r, 50) ? CONTAINER_INIT
					       : CONTAINER_SIDECAR,
			0, 0);
		random_part(r, &p->part[i]);
	}
	if (random_chance(r, 25))
		random_own(r, p);
}

static inline struct guest *any_guest(struct world *w, struct random *r)
{
	return &w->guest[random_below(r, PODS_MAX)];
}

/* The pod's next container, or one of those that run once more. */
static inline unsigned part_to_start(const struct guest *p, struct random *r)
{
	unsigned i = p->next;

	if (i == p->pod.nr)
		do
			i = random_below(r, p->pod.nr);
		while (p->part[i].kind == CONTAINER_INIT);
	return i;
}

static inline struct running *any_running(struct world *w, struct random *r)
{
	unsigned from = random_below(r, PODS_MAX * PARTS_MAX);

	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		struct running *c = slot(w, (from + i) % (PODS_MAX * PARTS_MAX));

		if (c->runs)
			return c;
	}
	return NULL;
}

static inline void some_pod_goes(struct world *w, struct random *r)
{
	struct guest *p = any_guest(w, r);

	if (!p->there)
		return;
	gone(w, p);
	assert_true(nothing_of(w, p));
}

static inline bool coin(struct random *r)
{
	return random_chance(r, 50);
}

/* What may change while the daemon runs on. */
static inline void change_settings(struct settings *s, struct random *r)
{
	s->topology_policy = (enum topology_policy)random_below(r, NR_POLICIES);
	s->topology_scope = coin(r) ? SCOPE_POD : SCOPE_CONTAINER;
	s->prefer_closest_numa_nodes = coin(r);
	s->allocation_strategy = (enum allocation_strategy)random_below(r, 3);
	s->cpu_manager_policy = random_chance(r, 80) ? MANAGER_STATIC : MANAGER_NONE;
	s->memory_manager_policy = random_chance(r, 80) ? MANAGER_STATIC : MANAGER_NONE;
	s->cpu_options.full_pcpus_only = random_chance(r, 20);
	s->cpu_options.distribute_cpus_across_numa = random_chance(r, 20);
	s->cpu_options.strict_cpu_reservation = coin(r);
	s->shared_pool_step = random_below(r, 8);
	s->shared_pool_minimum = random_below(r, 8);
	s->on_adopt = coin(r) ? ADOPT_LEAVE : ADOPT_PLACE;
	s->gates.pod_level_resource_managers = random_chance(r, 70);
}

/* Nobody holds anything else than before; where the pool moves what shares it is to be updated. */
static inline void the_settings_change(struct world *w, struct random *r)
{
	const struct ledger *l = engine_ledger(w->g);
	size_t nr = ledger_count(l), misplaced = ledger_view(l)->nr_misplaced;
	const struct cpuset pool = ledger_view(l)->pool;
	struct decision *before = calloc(nr + 1, sizeof *before);
	const struct settings old = w->s;
	struct err e;

	for (size_t i = 0; i < nr; i++)
		before[i] = ledger_at(l, i)->decision;
	change_settings(&w->s, r);
	if (engine_settings_changed(w->g, &e)) {
		assert_int_equal(e.code, 16); /* EBUSY */
		w->s = old;
	}
	assert_int_equal(ledger_count(l), nr);
	if (cpuset_equal(&pool, &ledger_view(l)->pool))
		assert_int_equal(ledger_view(l)->nr_misplaced, misplaced);
	for (size_t i = 0; i < nr; i++)
		assert_memory_equal(&ledger_at(l, i)->decision, &before[i], sizeof *before);
	free(before);
	fold_anew(w); /* the journal starts anew */
}

struct event {
	unsigned percent;
	void (*happens)(struct world *w, struct random *r);
};

static inline void random_event(const struct event *events, struct world *w, struct random *r)
{
	unsigned what = random_below(r, 100), i = 0;

	for (; what >= events[i].percent; i++)
		what -= events[i].percent;
	events[i].happens(w, r);
}

static inline unsigned long number_from(const char *variable, unsigned long otherwise)
{
	const char *text = getenv(variable);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

#endif
