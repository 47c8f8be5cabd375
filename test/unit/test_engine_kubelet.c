/* Random pods beside a kubelet: placed as its own managers place them; and in shadow, where it
 * places them. */
#include <numafit/engine.h>

#include <numafit/admit.h>
#include <numafit/node.h>

#include "core_pods_random.h"

enum { COMPARED_PODS = 3, COMPARED_CASES = 3000, SHADOW_SHARE = 4 };

/* Against the kubelet's way */

static void assert_same_part(const struct world *w, const struct decision *d, const struct grant *g,
	const struct memory_container *m)
{
	assert_int_equal(d->exclusive, !cpuset_empty(&g->cpus));
	if (d->exclusive)
		assert_true(cpuset_equal(&d->cpus, &g->cpus));
	assert_int_equal(d->has_affinity, !g->affinity.any);
	if (d->has_affinity)
		assert_true(nodeset_equal(d->nodes, g->affinity.mask));
	assert_int_equal(d->preferred, g->affinity.preferred);
	assert_int_equal(d->nr_blocks, m->nr_blocks);
	for (unsigned b = 0; b < d->nr_blocks; b++) {
		assert_int_equal(d->blocks[b].kind, m->blocks[b].kind);
		assert_int_equal(d->blocks[b].bytes, m->blocks[b].bytes);
		assert_true(nodeset_equal(d->blocks[b].nodes, m->blocks[b].nodes));
	}
	if (!nodeset_empty(g->mems))
		assert_true(nodeset_equal(d->mems, g->mems));
	else
		assert_true(nodeset_equal(d->mems, w->t->nodes_with_memory));
}

static bool has_group(const struct grants *g)
{
	for (unsigned c = 0; c < g->nr; c++)
		for (unsigned b = 0; b < g->memory[c].nr_blocks; b++)
			if (nodeset_count(g->memory[c].blocks[b].nodes) > 1)
				return true;
	return false;
}

/* The engine names the container before the kubelet's words. */
static const char *words_of(const struct decision *d, const struct refusal *why)
{
	const char *colon = strstr(d->message, ": ");

	if (why->of_pod || strncmp(d->message, "container ", strlen("container ")) != 0 || !colon)
		return d->message;
	return colon + strlen(": ");
}

/* Returns whether the two can be compared further: groups of nodes the engine keeps together, as
 * the kubelet does not. */
static bool compare_pod(struct world *w, struct node *n, struct guest *p, struct arena *a)
{
	struct decision d = run_pod(w, p, false);
	struct refusal why;
	int rc = node_admit(n, &p->pod, a, &why);

	if (!rc && has_group(&node_find(n, p->uid)->grants))
		return false;
	if (d.admit != !rc)
		fail_msg("%s: the engine: %s %s; the kubelet's way: %s", p->uid,
			d.admit ? "admitted" : d.reason, d.message, rc ? why.message : "admitted");
	if (rc) {
		assert_string_equal(d.reason, why.reason);
		assert_string_equal(words_of(&d, &why), why.message);
		return false; /* what the kubelet gives back may not be what it took */
	}
	for (unsigned i = 0; i < p->pod.nr; i++) {
		const struct grants *g = &node_find(n, p->uid)->grants;
		const struct decision of_part = held(w, p, i)->decision;
		struct decision claimed;

		assert_same_part(w, &of_part, &g->of[i], &g->memory[i]);
		claimed = start(w, p, i);
		node_start(n, p->uid, part_names[i]);
		assert_int_equal(claimed.source, SOURCE_HELD);
		assert_same_part(w, &claimed, &g->of[i], &g->memory[i]);
		if (p->part[i].kind == CONTAINER_INIT)
			stop(w, p, i);
	}
	for (unsigned i = 0; i < w->t->ids.nr; i++)
		assert_memory_equal(ledger_view(engine_ledger(w->g))->memory.node[i].free,
			node_books(n)->memory.node[i].free,
			sizeof node_books(n)->memory.node[i].free);
	return true;
}

static void pods_are_placed_as_the_kubelet_places_them(void **state)
{
	static const enum topology_policy policies[] = {
		POLICY_NONE, POLICY_BEST_EFFORT, POLICY_RESTRICTED, POLICY_SINGLE_NUMA_NODE};
	struct random r = {20261121};
	unsigned same = 0;

	(void)state;
	for (unsigned c = 0; c < COMPARED_CASES; c++) {
		struct world *w = world_new(policies[c % NR_POLICIES],
			c / NR_POLICIES % 2 ? SCOPE_POD : SCOPE_CONTAINER, 0, false);
		struct node *n;
		struct arena a;
		void *work = calloc(1, ADMIT_ARENA_BYTES);
		bool more = true;

		n = node_new(w->t, &w->s, NULL, 0, NULL);
		assert_non_null(n);
		for (unsigned i = 0; more && i < COMPARED_PODS; i++) {
			struct guest *p =
				guest(w, i, random_chance(&r, 85) ? QOS_GUARANTEED : QOS_BURSTABLE);

			random_spec(&r, p);
			arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
			more = compare_pod(w, n, p, &a);
			same += more;
		}
		free(work);
		node_free(n);
		world_free(w);
	}
	assert_in_range(same, COMPARED_CASES, COMPARED_CASES * COMPARED_PODS);
}

/* Shadow: a kubelet decides, often as we would, and often not */

static struct cpuset cpus_of_their_own(struct world *w)
{
	struct cpuset own = {0};

	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++)
		if (slot(w, i)->runs && slot(w, i)->exclusive) {
			struct cpuset cpus = cpus_of(slot(w, i));

			own = cpuset_or(own, &cpus);
		}
	return own;
}

/* All that share CPUs have all but those that are somebody's own. */
static void kubelet_moves_its_pool(struct world *w)
{
	struct cpuset own = cpus_of_their_own(w), pool = cpuset_minus(w->t->cpus, &own);

	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++)
		if (slot(w, i)->runs && !slot(w, i)->exclusive)
			(void)cpuset_format(&pool, slot(w, i)->cpus, CPUSET_TEXT_MAX);
}

static struct cpuset any_of(struct cpuset from, unsigned nr, struct random *r)
{
	struct cpuset got = {0};

	while (cpuset_count(&got) < nr) {
		unsigned cpu = random_below(r, CPUSET_BITS);

		if (cpuset_has(&from, cpu))
			cpuset_add(&got, cpu);
	}
	return got;
}

/* The cpuset that the container is created with. False: the kubelet has no room for it. */
static bool kubelet_decides(struct world *w, struct random *r, struct running *c)
{
	static char work[ADMIT_ARENA_BYTES];
	unsigned own = request_exclusive_cpus(&c->req);
	struct cpuset taken = cpus_of_their_own(w);
	struct cpuset left = cpuset_minus(cpuset_minus(w->t->cpus, &taken), &w->s.reserved_cpus);
	struct cpuset shared = cpuset_minus(w->t->cpus, &taken), got;
	struct nodeset mems = nodeset_of(random_below(r, w->t->ids.nr));
	struct decision d;
	struct budget b = budget_of(w->s.merge_visit_budget);
	struct arena a;

	arena_init_fixed(&a, work, sizeof work);
	admit(&(struct admit_question){engine_ledger(w->g), &w->s, .container = &c->req}, &b, &a,
		&d, NULL);
	if (own > cpuset_count(&left))
		return false;
	if (d.admit && d.exclusive && cpuset_within(&d.cpus, &left) && random_chance(r, 60)) {
		got = d.cpus;
		mems = d.mems;
	} else {
		got = own ? any_of(left, own, r) : shared;
	}
	c->exclusive = own > 0;
	(void)cpuset_format(&got, c->cpus, sizeof c->cpus);
	if (request_pins_memory(&c->req))
		(void)nodeset_format(mems, &w->t->ids, c->mems, sizeof c->mems);
	return true;
}

/* The ledger has what is in force, whatever we would have done. */
static void assert_ledger_follows(struct world *w)
{
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		const struct running *c = slot(w, i);
		const struct holding *h = ledger_find(engine_ledger(w->g), c->id);
		struct cpuset cpus;

		if (!c->runs)
			continue;
		assert_non_null(h);
		cpus = cpus_of(c);
		if (c->exclusive != h->decision.exclusive ||
			(c->exclusive && !cpuset_equal(&cpus, &h->decision.cpus)))
			fail_msg("%s has %s: %s", c->id, c->cpus, h->decision.message);
	}
}

static void a_pod_starts_in_shadow(struct world *w, struct random *r)
{
	struct guest *p = any_guest(w, r);

	if (p->there)
		gone(w, p);
	p = guest(
		w, (unsigned)(p - w->guest), random_chance(r, 70) ? QOS_GUARANTEED : QOS_BURSTABLE);
	random_spec(r, p);
	if (random_chance(r, 40))
		p->unknown = true;
	(void)run_pod(w, p, false);
	p->there = true; /* we say no, the kubelet has said yes */
}

static void a_container_starts_in_shadow(struct world *w, struct random *r)
{
	struct guest *p = any_guest(w, r);
	struct comparison cmp;
	struct decision ours;

	if (!p->there)
		return;
	unsigned i = part_to_start(p, r);
	struct running *c = &p->run[i];
	c->runs = false;
	ask_for(w, p, i);
	if (!kubelet_decides(w, r, c))
		return;
	c->runs = true;
	engine_shadow(w->g, 0, &c->req, &ours, &cmp);
	assert_true(cmp.compared);
	if (c->exclusive && ours.admit) {
		struct cpuset theirs = cpus_of(c);

		assert_true(cpuset_equal(&theirs, &ours.cpus) || !cmp.agrees);
	}
	w->agreed += cmp.agrees;
	w->disagreed += !cmp.agrees;
	if (random_chance(r, 90))
		live(w, p, i);
	if (i == p->next)
		p->next++;
	if (p->part[i].kind == CONTAINER_INIT) {
		c->runs = false;
		engine_forget(w->g, 0, "stop", c->id);
	}
}

static void a_container_stops_in_shadow(struct world *w, struct random *r)
{
	struct running *c = any_running(w, r);

	if (!c)
		return;
	c->runs = false;
	engine_forget(w->g, 0, "stop", c->id);
}

static void the_runtime_comes_back_in_shadow(struct world *w, struct random *r)
{
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		struct running *c = slot(w, i);

		c->runs = c->runs && random_chance(r, 90);
		if (c->runs)
			c->placed = placement_in_force(w->t, &w->s, &c->req);
	}
	synchronize(w);
}

static void shadow_follows_whatever_the_kubelet_does(void **state)
{
	static const struct event events[] = {
		{20, a_pod_starts_in_shadow},
		{50, a_container_starts_in_shadow},
		{15, a_container_stops_in_shadow},
		{8, some_pod_goes},
		{4, the_runtime_comes_back_in_shadow},
		{3, the_settings_change},
	};
	unsigned long seed = number_from("SEED", 1),
		      nr = number_from("ENGINE_EVENTS", EVENTS_DEFAULT) / SHADOW_SHARE;
	struct world *w = world_new(POLICY_RESTRICTED, SCOPE_CONTAINER, 0, false);
	struct random r = {seed + 1};

	(void)state;
	w->shadow = true;
	for (unsigned long i = 0; i < nr; i++) {
		random_event(events, w, &r);
		kubelet_moves_its_pool(w);
		check(w);
		assert_ledger_follows(w);
	}
	print_message("%lu events in shadow, SEED=%lu: agreed %u times, disagreed %u times\n", nr,
		seed, w->agreed, w->disagreed);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pods_are_placed_as_the_kubelet_places_them),
		cmocka_unit_test(shadow_follows_whatever_the_kubelet_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
