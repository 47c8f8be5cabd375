/* Random events in the life of a node: after each of them every invariant holds, and what was
 * recorded folds and dumps to the same. */
#include <errno.h>
#include <numafit/engine.h>

#include "core_pods_random.h"

static void some_pod_starts(struct world *w, struct random *r)
{
	struct guest *p = any_guest(w, r);
	bool again = p->there && random_chance(r, 20);

	if (!again) {
		if (p->there)
			gone(w, p);
		p = guest(w, (unsigned)(p - w->guest),
			random_chance(r, 70)   ? QOS_GUARANTEED
			: random_chance(r, 70) ? QOS_BURSTABLE
					       : QOS_BEST_EFFORT);
		random_spec(r, p);
		random_wishes(r, p);
		if (random_chance(r, 20))
			p->unknown = true; /* its spec is not known */
	}
	/* the old sandbox stops first; only a pod that is known as a whole needs no event */
	if (again && (p->unknown || random_chance(r, 50)))
		gone(w, p);
	w->failing = random_chance(r, 3);
	if (!run_pod(w, p, again).admit) {
		w->refused++;
		assert_true(nothing_of(w, p));
	}
	w->failing = false;
}

static void some_container_starts(struct world *w, struct random *r)
{
	struct guest *p = any_guest(w, r);

	if (!p->there)
		return;
	unsigned i = part_to_start(p, r);
	ask_for(w, p, i);
	if (random_chance(r, 5))
		p->run[i].req.ask.cpu_milli = 1000 * (1 + random_below(r, 6));
	w->failing = random_chance(r, 3);
	struct decision d = create_as_asked(w, &p->run[i]);
	w->failing = false;
	if (!d.admit)
		return;
	check(w);
	if (random_chance(r, 90))
		live(w, p, i);
	if (i == p->next)
		p->next++;
	if (p->part[i].kind == CONTAINER_INIT)
		stop(w, p, i);
}

static void some_container_stops(struct world *w, struct random *r)
{
	struct running *c = any_running(w, r);
	struct update_list ups = {0};

	if (!c)
		return;
	c->runs = false;
	if (random_chance(r, 70))
		engine_release(w->g, 0, "stop", c->id, &ups);
	else
		engine_forget(w->g, 0, "remove", c->id);
	apply(w, &ups);
	if (random_chance(r, 30))
		engine_forget(w->g, 0, "remove", c->id);
}

/* Who was given up runs after all, with the cpuset that it had. */
static void some_come_back(struct world *w, struct random *r, struct guest *p)
{
	for (unsigned i = 0; i < p->next && p->there; i++) {
		struct running *c = &p->run[i];
		struct cpuset cpus;

		if (c->runs || p->part[i].kind == CONTAINER_INIT || !*c->cpus ||
			!random_chance(r, 5))
			continue;
		cpus = cpus_of(c);
		cpus = cpuset_and(cpus, &w->t->cpus);
		c->runs = !cpuset_empty(&cpus);
		(void)cpuset_format(&cpus, c->cpus, sizeof c->cpus);
		forget_update_of(w, c);
	}
}

/* Moves */

static struct running *running_of(struct world *w, const char *id)
{
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++)
		if (slot(w, i)->runs && strcmp(slot(w, i)->id, id) == 0)
			return slot(w, i);
	return NULL;
}

/* Its mover sets what the ledger has for it. */
static void set_as_moved(struct world *w, struct running *c)
{
	const struct holding *h = ledger_find(engine_ledger(w->g), c->id);
	const struct cpuset given = ledger_cpus_of(engine_ledger(w->g), h);

	set_cpuset(w, c, &given, h->decision.mems);
}

static void look_after_the_move(struct world *w)
{
	const struct moving *m = ledger_view(engine_ledger(w->g))->moving;

	if (m && running_of(w, m->container_id))
		set_as_moved(w, running_of(w, m->container_id));
}

static void take_updates(struct world *w)
{
	struct update_list ups = {0};

	engine_take_updates(w->g, &ups);
	apply(w, &ups);
}

/* As many free CPUs, and its memory, of one NUMA node; false: there are none. */
static bool another_place(
	const struct world *w, struct random *r, const struct holding *h, struct decision *to)
{
	const struct cpuset free = ledger_free_cpus(engine_ledger(w->g));
	const unsigned node = random_below(r, w->t->ids.nr), nr = cpuset_count(&h->decision.cpus);
	const struct cpuset here = cpuset_and(free, &w->t->node[node].cpus);

	*to = h->decision;
	to->cpus = (struct cpuset){0};
	cpuset_each (cpu, &here)
		if (cpuset_count(&to->cpus) < nr && !cpuset_has(&w->t->isolated, cpu))
			cpuset_add(&to->cpus, cpu);
	to->mems = nodeset_of(node);
	for (unsigned i = 0; i < to->nr_blocks; i++)
		to->blocks[i].nodes = nodeset_of(node);
	return cpuset_count(&to->cpus) == nr;
}

static void a_move_begins(struct world *w, struct random *r)
{
	struct running *c = any_running(w, r);
	const struct holding *h = c ? ledger_find(engine_ledger(w->g), c->id) : NULL;
	const struct wishes none = {0}, *wishes = c ? &c->req.ask.wishes : &none;
	struct decision to;
	struct err e;

	if (!h || !c->seen || h->starting || !h->decision.exclusive || wishes->cores ||
		wishes->isolated || !another_place(w, r, h, &to))
		return;
	const struct decision before = h->decision;
	if (engine_begin_move(w->g, 0, c->id, &to, NULL, &e))
		return;
	take_updates(w);
	h = ledger_find(engine_ledger(w->g), c->id);
	const struct cpuset both = cpuset_or(before.cpus, &to.cpus);
	assert_true(cpuset_equal(&h->decision.cpus, &both));
	set_as_moved(w, c);
	w->moves++;
}

/* The container has the CPUs of that end alone before others may have those of the other one. */
static void a_move_ends(struct world *w, struct random *r)
{
	const struct moving *m = ledger_view(engine_ledger(w->g))->moving;
	const bool back = random_chance(r, 30);
	struct err e;

	if (!m) {
		assert_int_equal(engine_end_move(w->g, 0, back, &e), -ENOENT);
		return;
	}
	struct running *c = running_of(w, m->container_id);
	const struct decision end = back ? m->from : m->to;
	assert_non_null(c);
	assert_int_equal(engine_end_move(w->g, 0, back, &e), 0);
	const struct holding *h = ledger_find(engine_ledger(w->g), c->id);
	assert_true(cpuset_equal(&h->decision.cpus, &end.cpus));
	set_as_moved(w, c);
	take_updates(w);
}

/* Any CPUs, and sometimes just as many as it asks for, as a static kubelet gives them. */
static struct cpuset some_cpus(const struct world *w, struct random *r, const struct request *req)
{
	unsigned nr = request_exclusive_cpus(req), percent = 1 + random_below(r, 60);
	struct cpuset cpus = {0};

	if (!nr || random_chance(r, 50))
		nr = w->t->nr_cpus;
	cpuset_each (cpu, &w->t->cpus)
		if (cpuset_count(&cpus) < nr && random_chance(r, percent))
			cpuset_add(&cpus, cpu);
	return cpuset_empty(&cpus) ? w->t->cpus : cpus;
}

/* Nobody else than us is asked, and nobody has set its cpuset; or somebody has. */
static void run_unasked(struct world *w, struct random *r, struct guest *p, unsigned i)
{
	struct running *c = &p->run[i];
	bool confined = random_chance(r, 40);

	ask_for(w, p, i);
	c->runs = true;
	c->seen = random_chance(r, 50);
	c->exclusive = false;
	c->placed = (struct placement){0};
	const struct cpuset cpus = confined ? some_cpus(w, r, &c->req) : w->t->cpus;
	(void)cpuset_format(&cpus, c->cpus, sizeof c->cpus);
	c->floats = cpuset_within(&w->t->cpus, &cpus);
}

static void change_ask(struct random *r, struct request *req);
static void change_spec(struct world *w, const struct running *c);

/* What it asks for has changed, and where it runs has not; or somebody else has set that, too. */
static void resize_unasked(struct world *w, struct random *r, struct running *c)
{
	const struct cpuset pool = ledger_view(engine_ledger(w->g))->pool;
	bool to_pool = c->seen && random_chance(r, 10); /* just what others share */

	change_ask(r, &c->req);
	if (to_pool)
		c->req.ask.cpu_milli = 1000 * (uint64_t)cpuset_count(&pool);
	c->req.cpus = c->cpus;
	change_spec(w, c);
	if (to_pool || (c->seen && random_chance(r, 20))) {
		const struct cpuset cpus = to_pool ? pool : some_cpus(w, r, &c->req);

		(void)cpuset_format(&cpus, c->cpus, sizeof c->cpus);
		c->floats = cpuset_within(&w->t->cpus, &cpus);
	}
	w->resized_unasked++;
}

/* The daemon was away: some containers and pods went, some came and run unpinned, some ask for
 * something else now. */
static void time_passes_unseen(struct world *w, struct random *r)
{
	for (unsigned i = 0; i < PODS_MAX; i++) {
		struct guest *p = &w->guest[i];

		for (unsigned c = 0; c < PARTS_MAX; c++)
			p->run[c].runs = p->run[c].runs && random_chance(r, 90);
		if (p->there && random_chance(r, 10)) {
			for (unsigned c = 0; c < PARTS_MAX; c++)
				p->run[c].runs = false;
			p->there = false;
		}
		some_come_back(w, r, p);
		if (p->there && p->next < p->pod.nr && random_chance(r, 20) &&
			p->part[p->next].kind != CONTAINER_INIT) {
			run_unasked(w, r, p, p->next++);
		}
		for (unsigned c = 0; c < PARTS_MAX; c++)
			if (p->run[c].runs && random_chance(r, 10))
				resize_unasked(w, r, &p->run[c]);
	}
}

/* With its journal, with annotations or without. */
static void the_runtime_comes_back(struct world *w, struct random *r)
{
	w->without_annotations = coin(r);
	time_passes_unseen(w, r);
	synchronize(w);
	look_after_the_move(w);
	w->without_annotations = false;
}

/* And without its journal. */
static void the_runtime_comes_back_and_the_journal_is_lost(struct world *w, struct random *r)
{
	w->without_annotations = coin(r);
	time_passes_unseen(w, r);
	lose_the_journal(w);
	w->without_annotations = false;
}

static void something_is_live(struct world *w, struct random *r)
{
	struct running *c = any_running(w, r);

	if (c)
		report_start(w, c);
}

/* What somebody asks for a running container: the same once more with another cpuset, as kubelets
 * with static managers do, or more, less, a fraction, other memory, too much. */
static void change_ask(struct random *r, struct request *req)
{
	switch (random_below(r, 6)) {
	case 0:
		req->cpus = "0-63";
		break;
	case 1:
		req->ask.cpu_milli = 60000;
		break;
	case 2:
		req->ask.cpu_milli = 500 + 1000 * random_below(r, 4);
		break;
	case 3:
		if (req->ask.nr_memory)
			req->ask.memory[0].bytes = GIB(1 + random_below(r, 40));
		break;
	default:
		req->ask.cpu_milli = 1000 * (1 + random_below(r, 8));
	}
}

/* The pod's spec has changed as well: what starts anew asks for the same. */
static void change_spec(struct world *w, const struct running *c)
{
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		struct ask *part = &w->guest[i / PARTS_MAX].part[i % PARTS_MAX];

		if (slot(w, i) != c)
			continue;
		part->cpu_milli = c->req.ask.cpu_milli;
		for (unsigned m = 0; m < part->nr_memory && c->req.ask.nr_memory; m++)
			if (part->memory[m].page_bytes == c->req.ask.memory[0].page_bytes)
				part->memory[m].bytes = c->req.ask.memory[0].bytes;
	}
}

static void assert_has_kept(const struct world *w, const char *id, const struct decision *before)
{
	const struct holding *h = ledger_find(engine_ledger(w->g), id);

	assert_non_null(h);
	assert_int_equal(h->decision.exclusive, before->exclusive);
	assert_true(cpuset_equal(&h->decision.cpus, &before->cpus));
	assert_true(nodeset_equal(h->decision.mems, before->mems));
	assert_memory_equal(h->decision.blocks, before->blocks, sizeof before->blocks);
}

static void some_container_is_resized(struct world *w, struct random *r)
{
	struct running *c = any_running(w, r);
	const struct holding *h = c ? ledger_find(engine_ledger(w->g), c->id) : NULL;

	if (!h)
		return;
	struct decision before = h->decision, d;
	struct request wish = c->req;
	change_ask(r, &wish);
	w->failing = random_chance(r, 3);
	d = update(w, c, &wish);
	w->failing = false;
	w->resized += d.admit;
	w->resizes_refused += !d.admit;
	if (d.admit)
		change_spec(w, c);
	else
		assert_has_kept(w, c->id, &before);
}

/* Creations that fail in the runtime, which reports nothing. */
static void some_never_came(struct world *w, struct random *r)
{
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		struct running *c = slot(w, i);

		if (c->runs && !c->seen && random_chance(r, 50))
			report_start(w, c);
		else if (!c->seen)
			c->runs = false;
	}
	(void)engine_expire(w->g, 0);
	check(w);
	(void)engine_expire(w->g, 0);
	for (size_t i = 0; i < ledger_count(engine_ledger(w->g)); i++)
		assert_int_not_equal(ledger_at(engine_ledger(w->g), i)->state, HOLDING_TENTATIVE);
}

/* The sweep: who runs otherwise than it is to is updated. */
static void sweep(struct world *w)
{
	struct update_list ups = {0};
	struct update want;

	look_after_the_move(w);
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		struct running *c = slot(w, i);
		struct cpuset now;

		if (!c->runs || !engine_wants(w->g, c->id, &want))
			continue;
		now = cpus_of(c);
		if (!cpuset_equal(&now, &want.cpus))
			engine_must_update(w->g, c->id);
	}
	engine_take_updates(w->g, &ups);
	apply(w, &ups);
}

static void somebody_sets_a_cpuset(struct world *w, struct random *r)
{
	struct running *c = any_running(w, r);
	const struct holding *h = c ? ledger_find(engine_ledger(w->g), c->id) : NULL;

	if (!h || decision_is_left(&h->decision)) /* nobody heals what is left */
		return;
	report_start(w, c);
	set_cpuset(w, c, &w->t->cpus, w->t->nodes_with_memory);
	sweep(w);
}

/* The kernel takes CPUs that are gone out of every cpuset; an empty one is its parent's. */
static void trim_cpusets(struct world *w)
{
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		struct running *c = slot(w, i);
		const struct holding *h = ledger_find(engine_ledger(w->g), c->id);
		struct cpuset now;

		if (!c->runs)
			continue;
		now = cpus_of(c);
		now = cpuset_and(now, &w->t->cpus);
		c->floats = c->floats || cpuset_empty(&now);
		(void)cpuset_format(c->floats ? &w->t->cpus : &now, c->cpus, sizeof c->cpus);
		c->exclusive = h && h->decision.exclusive;
		c->shares = h && request_shares_in_pod(&h->request, &h->decision);
	}
}

static void cpus_and_memory_come_and_go(struct world *w, struct random *r)
{
	struct topo *full = machine_of_eight(), *old = w->t;
	unsigned percent = random_chance(r, 40) ? 0 : random_below(r, 60);
	struct nodeset halved = {0};
	struct cpuset offline = {0};

	cpuset_each (cpu, &full->cpus)
		if (cpu + 1 < full->nr_cpus && random_chance(r, percent))
			cpuset_add(&offline, cpu);
	nodeset_each (n, full->nodes)
		if (random_chance(r, percent))
			halved = nodeset_or(halved, nodeset_of(n));
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++)
		if (slot(w, i)->runs && !slot(w, i)->seen)
			report_start(w, slot(w, i));
	w->t = machine_without(full, &offline, halved);
	if (random_chance(r, 50))
		cpuset_each (cpu, &full->cpus)
			if (random_chance(r, percent))
				cpuset_add(&w->t->isolated, cpu);
	w->cores_broken = true;
	engine_set_topo(w->g, 0, w->t);
	fold_anew(w);
	trim_cpusets(w);
	sweep(w);
	free(full);
	free(old);
}

/* A container that is being created may have been given CPUs by somebody else, and does not run
 * with those that the daemon answered instead. */
static bool is_claimed_by_another(struct world *w, const struct running *r)
{
	struct cpuset own = cpus_of(r), other;

	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		const struct running *c = slot(w, i);

		if (c == r || !c->runs || c->seen || c->floats)
			continue;
		other = cpus_of(c);
		if (cpuset_intersects(&own, &other))
			return true;
	}
	return false;
}

/* What it runs on does not say by itself which CPUs it holds. */
static bool shows_others_than_it_holds(const struct running *c)
{
	return c->req.ask.wishes.cores || c->req.ask.wishes.cpus == WISH_CPUS_OWN_SHARED;
}

/* Without the journal some container looks as if CPUs of others were its own, perhaps of one that
 * comes later: one of the pool that has by chance as many CPUs, or cores, as it asks for to itself;
 * one that holds others than it runs on, and has an old annotation. */
static bool one_looks_like_the_owner_of_others(struct world *w)
{
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		const struct running *c = slot(w, i);
		const struct cpuset cpus = c->runs ? cpus_of(c) : (struct cpuset){0};
		const unsigned asked = c->runs ? request_exclusive_cpus(&c->req) : 0;

		if (!c->runs || cpuset_empty(&cpus))
			continue;
		const struct cpuset own = own_of(w, c),
				    held = wishes_held_cpus(&c->req.ask.wishes, w->t, &cpus, asked);
		if (c->exclusive ? shows_others_than_it_holds(c) &&
					   !cpuset_equal(&own, &c->placed.cpus)
				 : cpuset_count(&cpus) == asked || cpuset_count(&held) == asked)
			return true;
	}
	return false;
}

/* Of CPUs that a pod has as one, and that nobody was answered with, nothing says that containers
 * share them: the first one has them for itself then. */
static bool shares_unsaid(const struct running *c)
{
	return c->shares && cpuset_empty(&c->placed.cpus);
}

/* What runs with CPUs of its own keeps them; unless nobody is to have any, and its annotation is an
 * old one. */
static void the_journal_is_lost(struct world *w, struct random *r)
{
	struct cpuset before[PODS_MAX * PARTS_MAX] = {{{0}}}, now;
	bool had[PODS_MAX * PARTS_MAX], certain = !one_looks_like_the_owner_of_others(w);

	(void)r;
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		had[i] = certain && slot(w, i)->runs && slot(w, i)->exclusive &&
			 w->s.cpu_manager_policy == MANAGER_STATIC && !shares_unsaid(slot(w, i)) &&
			 !is_claimed_by_another(w, slot(w, i));
		if (had[i])
			before[i] = own_of(w, slot(w, i));
	}
	lose_the_journal(w);
	for (unsigned i = 0; i < PODS_MAX * PARTS_MAX; i++) {
		const struct running *c = slot(w, i);

		if (!c->runs || !had[i] ||
			cpuset_count(&before[i]) != request_exclusive_cpus(&c->req))
			continue;
		/* what is in force does not say which CPUs are its own: its annotation does, unless
		 * it was resized since */
		if (shows_others_than_it_holds(c) && !cpuset_equal(&before[i], &c->placed.cpus))
			continue;
		now = own_of(w, c);
		assert_true(cpuset_equal(&now, &before[i]));
	}
}

static void live_through(const struct event *events)
{
	static const enum topology_policy policies[] = {
		POLICY_NONE, POLICY_BEST_EFFORT, POLICY_RESTRICTED, POLICY_SINGLE_NUMA_NODE};
	unsigned long seed = number_from("SEED", 1),
		      nr = number_from("ENGINE_EVENTS", EVENTS_DEFAULT);
	enum { KINDS = 2 * NR_POLICIES, WORLDS = KINDS + 2 }; /* two with strict reservation */

	print_message("%lu events, SEED=%lu\n", nr, seed);
	for (unsigned c = 0; c < WORLDS; c++) {
		struct world *w = world_new(policies[c / 2 % NR_POLICIES],
			c % 2 ? SCOPE_POD : SCOPE_CONTAINER, c / 2 * 2, c >= KINDS);
		struct random r = {seed * WORLDS + c + 1};

		w->s.gates.pod_level_resource_managers = c % 4 != 3;
		for (unsigned long i = 0; i < nr / WORLDS; i++) {
			random_event(events, w, &r);
			check(w);
		}
		print_message("%s: %u holds, %u grants, %u refusals of pods, %u updates, "
			      "%u resizes and %u refused, %u unasked, %u within pods, %u moves\n",
			topology_policy_words[w->s.topology_policy], w->nr_records[RECORD_HOLD],
			w->nr_records[RECORD_GRANT], w->refused, w->updates, w->resized,
			w->resizes_refused, w->resized_unasked, w->within_pods, w->moves);
		world_free(w);
	}
}

static void random_events_keep_every_invariant_and_fold_to_the_same(void **state)
{
	static const struct event events[] = {
		{6, a_move_begins},
		{4, a_move_ends},
		{16, some_pod_starts},
		{35, some_container_starts},
		{10, some_container_stops},
		{6, some_pod_goes},
		{3, something_is_live},
		{2, the_runtime_comes_back},
		{8, some_container_is_resized},
		{2, some_never_came},
		{2, somebody_sets_a_cpuset},
		{2, cpus_and_memory_come_and_go},
		{2, the_settings_change},
		{1, the_journal_is_lost},
		{1, the_runtime_comes_back_and_the_journal_is_lost},
	};

	(void)state;
	live_through(events);
}

/* While no CPU comes or goes, a core that is a container's as a whole stays so. */
static void whole_cores_stay_whole(void **state)
{
	static const struct event events[] = {
		{30, some_pod_starts},
		{41, some_container_starts},
		{12, some_container_stops},
		{6, some_pod_goes},
		{2, the_runtime_comes_back},
		{8, some_container_is_resized},
		{1, the_journal_is_lost},
	};

	(void)state;
	live_through(events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_events_keep_every_invariant_and_fold_to_the_same),
		cmocka_unit_test(whole_cores_stay_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
