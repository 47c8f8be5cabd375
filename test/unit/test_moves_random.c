/* A node that makes room by itself (defragment.mode auto): pods and containers come, go and are
 * resized at random, some are refused, and then a plan is made and its moves begin and end while
 * all that goes on. After each event every invariant holds, and what was recorded folds to the
 * same; the limits are kept; nobody moves who may not, and nobody else is touched by a move. Time
 * is the test's own. MOVES_EVENTS=n and SEED=n choose how many events and which. */
#include <numafit/defrag.h>
#include <numafit/move_limits.h>
#include <numafit/number.h>

#include "core_pods_random.h"

enum {
	EVENTS = 8000,
	MANY = 20000, /* so that what is rare has been */
	WORLDS = 4,
	STEP_MS = 3000, /* at most, between two events */
	TRIALS = 150,
	MOVES_PER_HOUR = 8,
	HOUR_MS = 3600 * 1000,
	MINUTE_MS = 60 * 1000,
	INTERVAL_MS = 10 * MINUTE_MS,
	SLOTS = PODS_MAX * PARTS_MAX
};

/* A plan that is being made come true. */
struct pending {
	unsigned nr, at;
	bool begun;
	uint64_t bytes; /* of all its moves */
	struct {
		char id[ID_MAX];
		struct decision from, to;
		uint64_t bytes;
	} move[DEFRAG_MOVES_MAX];
};

static struct churn {
	int64_t now_ms;
	struct pending plan;
	struct move_uses uses;
	struct { /* what the test knows of moves by itself */
		VEC(struct {
			int64_t ms;
			uint64_t bytes;
		});
	} begun;
	int64_t large_until_ms;
	struct {
		char id[ID_MAX];
		int64_t ms;
	} moved[SLOTS];
	unsigned plans, waited, moves, done, back, dropped, none;
} churn;

static struct running *running_of(struct world *w, const char *id)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (slot(w, i)->runs && strcmp(slot(w, i)->id, id) == 0)
			return slot(w, i);
	return NULL;
}

static void take_updates(struct world *w)
{
	struct update_list ups = {0};

	engine_take_updates(w->g, &ups);
	apply(w, &ups);
}

/* What the test knows */

/* By its spec, and by when it was moved. */
static void assert_may_move(struct world *w, const struct running *c)
{
	const struct ask *a = &c->req.ask;
	const bool all = w->s.defrag.movable == MOVABLE_ALL;

	assert_true(c->runs && c->seen && c->exclusive && !c->shares);
	assert_true(a->wishes.movable == WISH_MOVABLE_YES ||
		    (all && a->wishes.movable == WISH_MOVABLE_UNSAID));
	assert_false(a->has_devices);
	assert_int_equal(a->wishes.isolated, WISH_ISOLATED_UNSAID);
	for (unsigned i = 0; i < a->nr_memory; i++)
		assert_int_equal(a->memory[i].page_bytes, 0);
	for (unsigned i = 0; i < SLOTS; i++)
		if (strcmp(churn.moved[i].id, c->id) == 0)
			assert_true(churn.now_ms - churn.moved[i].ms >= INTERVAL_MS);
}

static void note_moved(const struct running *c)
{
	unsigned oldest = 0;

	for (unsigned i = 0; i < SLOTS; i++)
		if (churn.moved[i].ms < churn.moved[oldest].ms)
			oldest = i;
	memcpy(churn.moved[oldest].id, c->id, sizeof c->id);
	churn.moved[oldest].ms = churn.now_ms;
}

static void limits_are_kept(const struct world *w, uint64_t bytes)
{
	unsigned in_hour = 0;
	uint64_t in_minute = 0;

	*vec_push(&churn.begun) = (__typeof__(*churn.begun.at)){churn.now_ms, bytes};
	for (size_t i = churn.begun.nr; i-- > 0 && churn.begun.at[i].ms > churn.now_ms - HOUR_MS;) {
		in_hour++;
		if (churn.begun.at[i].ms > churn.now_ms - MINUTE_MS)
			in_minute += churn.begun.at[i].bytes;
	}
	assert_true(in_hour <= w->s.defrag.moves_per_hour);
	if (churn.now_ms > churn.large_until_ms)
		assert_true(in_minute <= w->s.defrag.bytes_per_minute);
	if (churn.begun.nr > 4 * MOVES_PER_HOUR)
		vec_remove(&churn.begun, 0);
}

struct place {
	char id[ID_MAX];
	struct cpuset cpus;
	struct nodeset mems;
};

static size_t note_all(const struct world *w, struct place *all)
{
	const struct ledger *l = engine_ledger(w->g);

	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		(void)snprintf(all[i].id, sizeof all[i].id, "%.15s", h->request.container_id);
		all[i].cpus = h->decision.exclusive ? h->decision.cpus : (struct cpuset){0};
		all[i].mems = h->decision.mems;
	}
	return ledger_count(l);
}

static void others_are_untouched(
	const struct world *w, const char *id, const struct place *before, size_t nr)
{
	static struct place after[16 * SLOTS];

	assert_int_equal(note_all(w, after), nr);
	for (size_t i = 0; i < nr; i++) {
		assert_string_equal(before[i].id, after[i].id);
		if (strcmp(before[i].id, id) == 0)
			continue;
		assert_true(cpuset_equal(&before[i].cpus, &after[i].cpus));
		assert_true(nodeset_equal(before[i].mems, after[i].mems));
	}
}

/* Plans */

static uint64_t booked_memory(const struct holding *h)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < h->decision.nr_blocks; i++)
		bytes += h->decision.blocks[i].bytes;
	return bytes;
}

static size_t list_figures(const struct world *w, struct defrag_figure *figures)
{
	const struct ledger *l = engine_ledger(w->g);
	size_t nr = 0;

	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (defrag_may_move(h, &w->s, churn.now_ms, true))
			figures[nr++] =
				(struct defrag_figure){h->request.container_id, booked_memory(h)};
	}
	return nr;
}

static void take_plan(const struct world *w, const struct defrag_plan *plan)
{
	const uint64_t rate = w->s.defrag.bytes_per_minute;
	struct pending *p = &churn.plan;

	*p = (struct pending){.nr = plan->nr, .bytes = plan->cost.bytes};
	for (unsigned i = 0; i < plan->nr; i++) {
		(void)snprintf(p->move[i].id, sizeof p->move[i].id, "%.15s",
			plan->move[i].from->request.container_id);
		p->move[i].from = plan->move[i].from->decision;
		p->move[i].to = plan->move[i].to;
		p->move[i].bytes = plan->move[i].cost.bytes;
	}
	if (plan->cost.bytes > rate)
		churn.large_until_ms = INT64_MAX;
	churn.plans++;
}

/* It was refused: room is made, within the limits. */
static void make_room_for(struct world *w, const struct pod *pod)
{
	static struct defrag_figure figures[16 * SLOTS];
	struct defrag_plan plan;
	struct err e;

	if (churn.plan.nr || ledger_view(engine_ledger(w->g))->moving)
		return;
	const struct defrag_question q = {.engine = w->g,
		.topo = w->t,
		.settings = &w->s,
		.pod = pod,
		.moves = w->s.defrag.moves_per_plan,
		.trials = TRIALS,
		.figures = figures,
		.nr_figures = list_figures(w, figures)};
	assert_int_equal(defrag_plan(&q, &plan, &e), 0);
	if (!plan.found || !plan.nr)
		churn.none++;
	else if (move_uses_allow(&churn.uses, &w->s, (uint64_t)churn.now_ms * NS_PER_MS, plan.nr,
			 plan.cost.bytes))
		take_plan(w, &plan);
	else
		churn.waited++;
}

/* Moves */

static void end_plan(void)
{
	if (churn.large_until_ms == INT64_MAX)
		churn.large_until_ms = churn.now_ms + MINUTE_MS;
	churn.plan = (struct pending){0};
}

/* Its mover sets what the ledger has for it. */
static void set_as_moved(struct world *w, struct running *c)
{
	const struct holding *h = ledger_find(engine_ledger(w->g), c->id);
	const struct cpuset given = ledger_cpus_of(engine_ledger(w->g), h);

	set_cpuset(w, c, &given, h->decision.mems);
}

static void begin_move(struct world *w)
{
	static struct place before[16 * SLOTS];
	struct pending *p = &churn.plan;
	struct running *c = running_of(w, p->move[p->at].id);
	const struct holding *h = c ? ledger_find(engine_ledger(w->g), c->id) : NULL;
	struct err e;

	if (!h || !cpuset_equal(&h->decision.cpus, &p->move[p->at].from.cpus)) {
		churn.dropped++;
		end_plan();
		return;
	}
	const size_t nr = note_all(w, before);
	if (engine_begin_move(w->g, churn.now_ms, c->id, &p->move[p->at].to, NULL, &e)) {
		churn.dropped++;
		end_plan();
		return;
	}
	assert_may_move(w, c);
	others_are_untouched(w, c->id, before, nr);
	move_uses_note(&churn.uses, (uint64_t)churn.now_ms * NS_PER_MS, p->move[p->at].bytes);
	limits_are_kept(w, p->move[p->at].bytes);
	take_updates(w);
	set_as_moved(w, c);
	p->begun = true;
	churn.moves++;
}

static void end_move(struct world *w, struct random *r)
{
	static struct place before[16 * SLOTS];
	struct pending *p = &churn.plan;
	const struct moving *m = ledger_view(engine_ledger(w->g))->moving;
	const bool back = random_chance(r, 10);
	struct err e;

	if (!m) { /* it has ended, or lost CPUs */
		churn.dropped++;
		end_plan();
		return;
	}
	struct running *c = running_of(w, m->container_id);
	assert_non_null(c);
	assert_string_equal(c->id, p->move[p->at].id);
	const size_t nr = note_all(w, before);
	assert_int_equal(engine_end_move(w->g, churn.now_ms, back, &e), 0);
	others_are_untouched(w, c->id, before, nr);
	const struct holding *h = ledger_find(engine_ledger(w->g), c->id);
	const struct decision *end = back ? &p->move[p->at].from : &p->move[p->at].to;
	assert_true(cpuset_equal(&h->decision.cpus, &end->cpus));
	set_as_moved(w, c);
	take_updates(w);
	churn.done += !back;
	churn.back += back;
	if (!back)
		note_moved(c);
	p->begun = false;
	if (back || ++p->at == p->nr)
		end_plan();
}

static void the_mover_goes_on(struct world *w, struct random *r)
{
	if (churn.plan.nr && churn.plan.begun)
		end_move(w, r);
	else if (churn.plan.nr)
		begin_move(w);
}

static void a_move_has_both_places(const struct world *w)
{
	const struct moving *m = ledger_view(engine_ledger(w->g))->moving;
	const struct holding *h = m ? ledger_find(engine_ledger(w->g), m->container_id) : NULL;

	if (!m)
		return;
	assert_non_null(h);
	const struct cpuset cpus = cpuset_or(m->from.cpus, &m->to.cpus);
	const struct nodeset mems = nodeset_or(m->from.mems, m->to.mems);
	assert_true(cpuset_equal(&h->decision.cpus, &cpus));
	assert_true(nodeset_equal(h->decision.mems, mems));
}

/* Pods */

static void random_movable(struct random *r, struct guest *p)
{
	for (unsigned i = 0; i < p->pod.nr; i++) {
		p->part[i].wishes.movable =
			random_chance(r, 60) ? WISH_MOVABLE_YES
					     : (enum wish_movable)random_below(r, NR_WISH_MOVABLE);
		p->part[i].has_devices = random_chance(r, 10);
	}
}

static void some_pod_starts(struct world *w, struct random *r)
{
	struct guest *p = any_guest(w, r);

	if (p->there && random_chance(r, 60))
		return;
	if (p->there)
		gone(w, p);
	p = guest(
		w, (unsigned)(p - w->guest), random_chance(r, 92) ? QOS_GUARANTEED : QOS_BURSTABLE);
	if (random_chance(r, 75)) { /* one that is worth moving, or room for */
		add(p, CONTAINER_APP, 2 + random_below(r, 6), 1 + random_below(r, 9));
	} else {
		random_spec(r, p);
		random_wishes(r, p);
	}
	random_movable(r, p);
	p->unknown = random_chance(r, 10);
	if (run_pod(w, p, false).admit)
		return;
	w->refused++;
	if (!p->unknown)
		make_room_for(w, &p->pod);
}

static void some_container_starts(struct world *w, struct random *r)
{
	struct guest *p = any_guest(w, r);

	if (!p->there)
		return;
	unsigned i = part_to_start(p, r);
	struct running *c = &p->run[i];
	ask_for(w, p, i);
	c->req.ask.has_devices = p->part[i].has_devices;
	if (!create_as_asked(w, c).admit) {
		struct pod pod = c->req.pod;

		c->runs = false;
		pod.container = &c->req.ask;
		pod.nr = 1;
		make_room_for(w, &pod);
		return;
	}
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
	engine_release(w->g, churn.now_ms, "stop", c->id, &ups);
	apply(w, &ups);
}

static void some_container_is_resized(struct world *w, struct random *r)
{
	struct running *c = any_running(w, r);
	const struct holding *h = c ? ledger_find(engine_ledger(w->g), c->id) : NULL;

	if (!h)
		return;
	struct request wish = c->req;
	wish.ask.cpu_milli = 1000 * (1 + random_below(r, 8));
	const bool moves = ledger_is_moving(engine_ledger(w->g), c->id),
		   changes = wish.ask.cpu_milli != c->req.ask.cpu_milli;
	const struct decision d = update(w, c, &wish);
	assert_false(d.admit && moves && changes);
	w->resized += d.admit;
	if (moves) /* its mover sets it, and not the runtime */
		set_as_moved(w, c);
}

static void the_runtime_comes_back(struct world *w, struct random *r)
{
	struct running *c =
		churn.plan.begun ? running_of(w, churn.plan.move[churn.plan.at].id) : NULL;

	(void)r;
	synchronize(w);
	if (c && ledger_is_moving(engine_ledger(w->g), c->id))
		set_as_moved(w, c);
}

static const struct event events[] = {
	{25, the_mover_goes_on},
	{30, some_pod_starts},
	{33, some_container_starts},
	{4, some_container_stops},
	{2, some_pod_goes},
	{5, some_container_is_resized},
	{1, the_runtime_comes_back},
};

static void live_through(unsigned n, unsigned long nr, struct random *r)
{
	static const enum topology_policy policies[WORLDS] = {POLICY_RESTRICTED,
		POLICY_SINGLE_NUMA_NODE, POLICY_RESTRICTED, POLICY_SINGLE_NUMA_NODE};
	struct world *w = world_new(policies[n], n < 2 ? SCOPE_POD : SCOPE_CONTAINER, 0, false);

	memset(&churn, 0, sizeof churn);
	churn.now_ms = INT64_C(100) * HOUR_MS;
	w->s.defrag.mode = DEFRAG_AUTO;
	w->s.defrag.movable = n % 2 ? MOVABLE_ALL : MOVABLE_ANNOTATED;
	w->s.defrag.moves_per_plan = 3;
	w->s.defrag.moves_per_hour = MOVES_PER_HOUR;
	w->s.defrag.bytes_per_minute = GIB(8);
	w->s.defrag.min_interval_ms = INTERVAL_MS;
	w->s.gates.pod_level_resource_managers = true;
	for (unsigned long i = 0; i < nr; i++) {
		churn.now_ms += random_below(r, STEP_MS);
		random_event(events, w, r);
		check(w);
		a_move_has_both_places(w);
	}
	print_message("%s, %s: %u pods refused, %u resized; %u plans, %u beyond the limits, %u "
		      "without one; %u moves begun, %u done, %u back, %u plans given up\n",
		topology_policy_words[w->s.topology_policy],
		w->s.defrag.movable == MOVABLE_ALL ? "all" : "annotated", w->refused, w->resized,
		churn.plans, churn.waited, churn.none, churn.moves, churn.done, churn.back,
		churn.dropped);
	assert_true(churn.plans && churn.done && (nr < MANY || (churn.waited && churn.back)));
	move_uses_fini(&churn.uses);
	vec_fini(&churn.begun);
	world_free(w);
}

static void room_is_made_by_itself_and_every_invariant_and_limit_is_kept(void **state)
{
	const unsigned long seed = number_from("SEED", 1), nr = number_from("MOVES_EVENTS", EVENTS);

	(void)state;
	print_message("%lu events, SEED=%lu\n", nr, seed);
	for (unsigned n = 0; n < WORLDS; n++) {
		struct random r = {seed * WORLDS + n + 1};

		live_through(n, nr / WORLDS, &r);
	}
}

static void limits_count_what_was_begun_within_an_hour_and_within_minutes(void **state)
{
	const uint64_t second = NS_PER_S, minute = 60 * second, start = 1000 * minute;
	struct settings s = {.defrag = {.moves_per_hour = 3, .bytes_per_minute = 100}};
	struct move_uses u = {0};

	(void)state;
	assert_true(move_uses_allow(&u, &s, start, 3, 100));
	assert_false(move_uses_allow(&u, &s, start, 4, 100));
	move_uses_note(&u, start, 60);
	assert_true(move_uses_allow(&u, &s, start + second, 1, 40));
	assert_false(move_uses_allow(&u, &s, start + second, 1, 41));
	assert_true(move_uses_allow(&u, &s, start + minute + 1, 1, 100));
	/* two minutes' worth: with what the last two minutes had it is too much */
	assert_false(move_uses_allow(&u, &s, start + minute + 1, 1, 150));
	assert_true(move_uses_allow(&u, &s, start + 2 * minute + 1, 1, 150));
	assert_true(move_uses_allow(&u, &s, start, 1, 140));
	assert_false(move_uses_allow(&u, &s, start + minute, 3, 1));
	assert_true(move_uses_allow(&u, &s, start + 60 * minute + 1, 3, 1));
	assert_true(move_uses_allow(&u, &s, start + 60 * minute + 1, 1, UINT64_MAX - 100));
	move_uses_fini(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_count_what_was_begun_within_an_hour_and_within_minutes),
		cmocka_unit_test(room_is_made_by_itself_and_every_invariant_and_limit_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
