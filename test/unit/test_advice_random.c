/* Whatever stands in a pod's annotations, it gets as much as without them, and nobody else anything
 * else: random annotations of every form, in the way of the daemon, against random states of
 * machines of eight nodes, beside a twin that gets none. HINT_ANNOTATIONS and SEED choose how many
 * and which. */
#include "advice_twin.h"

/* Annotations */

static unsigned free_on(const struct advised *x, unsigned node)
{
	struct cpuset free =
		cpuset_minus(x->w->t->node[node].cpus, &ledger_view(engine_ledger(x->w->g))->held);

	return cpuset_count(&free);
}

/* Few nodes with room, as any that will be accepted has; or others. */
static struct nodeset likely_nodes(struct advised *x)
{
	unsigned a = random_below(&x->r, NODES), b = random_below(&x->r, NODES);
	struct nodeset nodes = nodeset_of(free_on(x, b) > free_on(x, a) ? b : a);

	if (random_chance(&x->r, 15))
		nodes = nodeset_or(nodes, nodeset_of(a ^ 1));
	if (random_chance(&x->r, 20))
		nodes = nodeset_or(nodes, nodeset_of(b));
	if (random_chance(&x->r, 5))
		nodes.bits = 1 + random_below(&x->r, (1 << NODES) - 1);
	return nodes;
}

/* Koordinator may name the CPUs, of all containers of the pod: those of other pods, and reserved
 * ones, are refused. */
static void name_cpus(struct advised *x, const char *uid, struct made *m)
{
	const struct ledger *l = engine_ledger(x->w->g);
	struct cpuset taken = ledger_view(l)->held;

	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (h->decision.exclusive && text_equal(h->request.pod.uid, uid))
			taken = cpuset_minus(taken, &h->decision.cpus);
	}
	taken = cpuset_or(taken, &x->w->s.reserved_cpus);
	struct cpuset cpus = {0};
	char list[CPUSET_TEXT_MAX];

	for (unsigned i = 1 + random_below(&x->r, 4); i; i--)
		cpuset_add(&cpus, random_below(&x->r, x->w->t->nr_cpus + 4));
	struct cpuset wrong = cpuset_minus(cpus, &x->w->t->cpus);
	m->key = "scheduling.koordinator.sh/resource-status";
	m->known = true;
	m->want = cpuset_intersects(&cpus, &taken) || !cpuset_empty(&wrong)
			  ? ADVICE_REJECTED_FOREIGN_CPUSET
			  : ADVICE_ACCEPTED;
	(void)snprintf(m->text, sizeof m->text, "{\"cpuset\":\"%s\"}",
		cpuset_format(&cpus, list, sizeof list));
}

static void unknown_node(struct advised *x, const struct advice_author *by, struct made *m)
{
	m->key = ADVICE_KEY;
	m->known = true;
	m->want = ADVICE_REJECTED_NUMA;
	(void)snprintf(m->text, sizeof m->text,
		"{\"v\":1,\"node\":\"%s\",\"uid\":\"%s\",\"at\":%lld,\"ttl\":%u,"
		"\"containers\":{\"*\":{\"numa\":\"0,%u\"}}}",
		by->node, by->uid, (long long)by->now_ms, by->ttl_s,
		NODES + random_below(&x->r, 50));
}

static void annotate(struct advised *x, struct guest *p)
{
	static const char *const policies[] = {
		"none", "best-effort", "restricted", "single-numa-node", "strict"};
	unsigned i = (unsigned)(p - x->w->guest);
	struct made *m = &x->made[i];
	const struct advice_author by = {.t = x->w->t,
		.node = x->d.node_name,
		.uid = p->uid,
		.container = part_names[random_below(&x->r, p->pod.nr)],
		.now_ms = loop_wall_ms(),
		.skew_ms = (int64_t)x->w->s.advice_skew_ms,
		.generation = GENERATION,
		.ttl_s = HOUR_S};

	if (random_chance(&x->r, 8))
		name_cpus(x, p->uid, m);
	else if (random_chance(&x->r, 4))
		unknown_node(x, &by, m);
	else
		make_annotation(&by, &x->r, likely_nodes(x), m);
	x->note[i][0] = (struct key_value){m->key, m->text};
	x->note[i][1] = (struct key_value){ADVICE_POLICY_KEY,
		policies[random_below(&x->r, sizeof policies / sizeof *policies)]};
	p->pod.annotations = x->note[i];
	p->pod.nr_annotations = x->w->s.advice_policy ? 2 : 1;
	x->tally->annotations++;
}

/* Events */

static struct made *made_for(struct advised *x, const struct guest *p)
{
	return &x->made[p - x->w->guest];
}

/* Both parts of a pod that is known and held as a whole, or neither. */
static void compare_pods(struct advised *x, const struct guest *p, const struct twin *with,
	const struct twin *without, const struct decision *d)
{
	struct cpuset a_cpus = {0}, b_cpus = {0};
	uint64_t left[TOPO_KINDS] = {0};

	if (!d->admit) {
		is_true(x, made_for(x, p), d);
		return;
	}
	for (unsigned i = 0; i < p->pod.nr; i++) {
		const struct holding *a, *b;

		a = ledger_find_waiting(engine_ledger(with->g), p->uid, part_names[i]);
		b = ledger_find_waiting(engine_ledger(without->g), p->uid, part_names[i]);
		assert_true(a && b);
		as_good(x, &a->decision, &b->decision, false);
		is_true(x, made_for(x, p), &a->decision);
		same_advice(&a->decision.advice,
			&ledger_find_waiting(engine_ledger(with->folded), p->uid, part_names[i])
				 ->decision.advice);
		if (a->decision.exclusive) {
			a_cpus = cpuset_or(a_cpus, &a->decision.cpus);
			b_cpus = cpuset_or(b_cpus, &b->decision.cpus);
		}
		for (unsigned k = 0; k < x->w->t->nr_kinds; k++)
			left[k] += bytes_of(&a->decision, k) - bytes_of(&b->decision, k);
	}
	/* what an init container leaves to later ones counts once, in either */
	assert_int_equal(cpuset_count(&a_cpus), cpuset_count(&b_cpus));
	for (unsigned k = 0; k < x->w->t->nr_kinds; k++)
		assert_int_equal(left[k], 0);
}

static void compare_answers(
	struct advised *x, const struct decision *with, const struct decision *without)
{
	if (refused_by_require(with)) {
		x->tally->refused++;
		return;
	}
	assert_int_equal(with->admit, without->admit);
	if (with->admit)
		return;
	assert_true(with->reason == without->reason);
	assert_string_equal(with->message, without->message);
}

/* A policy of the pod's own counts in both: it is no hint. */
static void take_advice(struct pod *pod, struct ask *list)
{
	for (size_t i = 0; i < pod->nr; i++) {
		list[i] = pod->container[i];
		list[i].advice = NULL;
	}
	pod->container = list;
}

static void start_known_pod(struct advised *x, struct guest *p)
{
	struct ask list[PARTS_MAX];
	struct twin with, without;
	struct decision d, d0, d1;
	struct arena a;

	arena_init(&a, ADMIT_ARENA_BYTES);
	struct pod pod = p->pod;
	advice_of_pod(&x->d, &pod, &a);
	struct pod pod0 = pod;
	take_advice(&pod0, list);
	twin_init(&with, x, true);
	twin_init(&without, x, false);
	engine_run_pod(with.g, 0, &pod, &d);
	engine_run_pod(without.g, 0, &pod0, &d0);
	compare_answers(x, &d, &d0);
	if (!refused_by_require(&d))
		compare_pods(x, p, &with, &without, &d);
	others_are_the_same(engine_ledger(with.g), engine_ledger(without.g), p->uid);
	both_are_sound(&with, &without);
	engine_run_pod(x->w->g, 0, &pod, &d1); /* the same once more */
	assert_int_equal(d1.admit, d.admit);
	p->there = d1.admit;
	assert_same_ledger(engine_ledger(x->w->g), engine_ledger(with.g));
	twin_fini(&with);
	twin_fini(&without);
	arena_fini(&a);
}

/* What was there was decided before: it is no matter of this hint. */
static bool is_new(const struct advised *x, const struct request *req)
{
	return !ledger_find_named(
		       engine_ledger(x->w->g), req->pod.uid, req->ask.name, req->container_id) &&
	       !(x->w->s.topology_scope == SCOPE_POD &&
		       ledger_find_of_pod(engine_ledger(x->w->g), req->pod.uid));
}

static void compare_creates(struct advised *x, const struct guest *p, const struct request *req,
	const struct decision *with, const struct decision *without)
{
	compare_answers(x, with, without);
	if (with->admit) {
		as_good(x, with, without, true);
		assert_int_equal(with->preferred, without->preferred);
	}
	if (!is_new(x, req))
		return;
	assert_int_equal(with->advice.looked_at, req->ask.advice != NULL);
	is_true(x, made_for(x, p), with);
	if (!req->ask.advice || !is_conflict(x, req, req->ask.advice->asked))
		return;
	x->tally->conflicts++;
	assert_false(is_accepted(with->advice.verdict));
}

static struct decision start_container(struct advised *x, struct guest *p, struct request *req)
{
	struct update_list ups = {0}, ups0 = {0};
	struct request req0;
	struct twin with, without;
	struct decision d, d0;
	struct arena a;

	arena_init(&a, ADMIT_ARENA_BYTES);
	advice_of_container(&x->d, req, &a);
	req0 = *req;
	req0.ask.advice = NULL;
	twin_init(&with, x, true);
	twin_init(&without, x, false);
	engine_create(with.g, 0, req, &d, &ups);
	engine_create(without.g, 0, &req0, &d0, &ups0);
	compare_creates(x, p, req, &d, &d0);
	only_the_pool_moves(engine_ledger(with.g), &ups);
	others_are_the_same(engine_ledger(with.g), engine_ledger(without.g), p->uid);
	both_are_sound(&with, &without);
	vec_fini(&ups);
	vec_fini(&ups0);
	d = create_as_asked(x->w, &p->run[p->next]);
	assert_same_ledger(engine_ledger(x->w->g), engine_ledger(with.g));
	req->ask.advice = NULL;
	twin_fini(&with);
	twin_fini(&without);
	arena_fini(&a);
	return d;
}

/* Than one NUMA node has. */
static void ask_for_more(struct advised *x, struct ask *c)
{
	c->cpu_milli = 1000 * (9 + random_below(&x->r, 8));
	c->memory[0] = (struct memory_ask){0, GIB(58 + random_below(&x->r, 40))};
	c->nr_memory = 1;
}

static void some_pod_starts(struct advised *x)
{
	struct guest *p = any_guest(x->w, &x->r);

	if (p->there)
		gone(x->w, p);
	p = guest(x->w, (unsigned)(p - x->w->guest),
		random_chance(&x->r, 85) ? QOS_GUARANTEED : QOS_BURSTABLE);
	random_spec(&x->r, p);
	if (random_chance(&x->r, 20))
		ask_for_more(x, &p->part[random_below(&x->r, p->pod.nr)]);
	name_pod(x->w, p, false);
	annotate(x, p);
	if (random_chance(&x->r, 50)) {
		start_known_pod(x, p);
		return;
	}
	p->unknown = true; /* its spec is not known */
	p->there = true;
}

static void some_container_starts(struct advised *x)
{
	struct guest *p = any_guest(x->w, &x->r);

	if (!p->there || p->next == p->pod.nr)
		return;
	if (p->unknown) /* another hint for each: each one is decided alone */
		annotate(x, p);
	ask_for(x->w, p, p->next);
	if (!start_container(x, p, &p->run[p->next].req).admit)
		return;
	live(x->w, p, p->next);
	if (p->part[p->next].kind == CONTAINER_INIT)
		stop(x->w, p, p->next);
	p->next++;
}

static enum advice_mode mode_of_world(unsigned i)
{
	return i % 4 == 3 ? ADVICE_REQUIRE : ADVICE_PREFER;
}

/* Half of the machines have lost CPUs and memory. */
static struct topo *some_machine(unsigned i, struct random *r)
{
	struct topo *full = machine_of_eight(), *t;
	struct cpuset offline = {0};

	if (i % 2)
		return full;
	for (unsigned c = 1; c < full->nr_cpus; c++)
		if (c != 32 && random_chance(r, 15))
			cpuset_add(&offline, c);
	t = machine_without(full, &offline, (struct nodeset){random_below(r, 1 << NODES)});
	free(full);
	return t;
}

static void advised_init(struct advised *x, unsigned i, unsigned long seed, struct tally *tally)
{
	static const char *const orders[] = {"numafit,koordinator,katalyst,volcano,crane,godel",
		"godel,crane,volcano,katalyst,koordinator,numafit"};
	const struct engine_hooks hooks = {.ctx = x, .record = fold};
	struct world *w;

	memset(x, 0, sizeof *x);
	x->tally = tally;
	x->r.state = seed * WORLDS + i + 1;
	x->w = w = world_new((enum topology_policy)(i % NR_POLICIES),
		i / 4 % 2 ? SCOPE_POD : SCOPE_CONTAINER, i % 5, i % 7 == 0);
	engine_free(w->g);
	engine_free(w->folded);
	free(w->t);
	w->t = some_machine(i, &x->r);
	w->s.prefer_closest_numa_nodes = i / 8 % 2;
	w->s.allocation_strategy = i % 3;
	w->s.shared_pool_minimum = 1 + random_below(&x->r, 8);
	w->s.advice_mode = mode_of_world(i / 4);
	w->s.advice_repair = i / 16 % 2;
	w->s.advice_policy = i % 3 == 1;
	w->s.advice_skew_ms = 5000;
	(void)text_copy(w->s.advice_order, sizeof w->s.advice_order, orders[i % 2]);
	(void)text_copy(w->s.node_name, sizeof w->s.node_name, "worker-0");
	w->g = engine_new(w->t, &w->s, &(struct engine_hooks){.ctx = w, .record = hooks.record});
	w->folded =
		engine_new(w->t, &w->s, &(struct engine_hooks){.ctx = w, .record = hooks.record});
	x->d.settings = w->s;
	x->d.topo = *w->t;
	x->d.engine = w->g;
	x->d.recorder.generation = GENERATION;
	assert_int_equal(advice_start(&x->d, NULL), 0);
}

static void no_annotation_changes_an_amount_or_a_neighbour(void **state)
{
	static struct advised x;
	unsigned long seed = number_from("SEED", 1),
		      nr = number_from("HINT_ANNOTATIONS", ANNOTATIONS_DEFAULT);
	struct tally t = {0};

	(void)state;
	log_set_level(LOG_WARN);
	for (unsigned i = 0; i < WORLDS; i++) {
		advised_init(&x, i, seed, &t);
		while (t.annotations < nr * (i + 1) / WORLDS) {
			unsigned what = random_below(&x.r, 100);

			if (what < 35)
				some_pod_starts(&x);
			else if (what < 90)
				some_container_starts(&x);
			else
				some_pod_goes(x.w, &x.r);
			if (what % 10 == 0)
				check(x.w);
		}
		world_free(x.w);
	}
	print_message("%u annotations, SEED=%lu: %u conflicts, none accepted; %u refused as "
		      "required; %u records decided again\n",
		t.annotations, seed, t.conflicts, t.refused, t.records);
	for (unsigned v = 0; v < NR_ADVICE_VERDICTS; v++)
		print_message(
			"%6u %s\n", t.verdict[v], advice_verdict_words[(enum advice_verdict)v]);
	for (unsigned v = 0; v < NR_ADVICE_VERDICTS; v++)
		assert_true(t.verdict[v] > 0 || v == ADVICE_REJECTED_FARTHER); /* rare */
	assert_true(t.conflicts > 0 && t.refused > 0 && t.records > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_annotation_changes_an_amount_or_a_neighbour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
