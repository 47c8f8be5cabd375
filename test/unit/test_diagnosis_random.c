/* Refusals at random: the class that each is said to be of is held against one that is found by
 * brute force, on books made here from what the containers were given; each remedy is followed and
 * must help; and where none within the settings is named, none is found by trying them all.
 * REFUSALS and SEED choose how many and which. */
#include "diagnosis_rig.h"

enum { REFUSALS_DEFAULT = 500 };

/* The same by hand: books made of what the entries were given, and no ledger asked. */

enum { NOBODY_GONE = 0, ALL_GONE = 0xff };

struct change {
	unsigned gone; /* by entry, a bit each */
	bool any_pool, no_advice;
	int only; /* this container of the pod alone; -1: all */
};

static void books_by_hand(const struct world *w, const struct change *c, struct books *b)
{
	const struct ledger *l = engine_ledger(w->g);

	*b = (struct books){.t = &w->t,
		.s = &w->s,
		.reserved = w->s.reserved_cpus,
		.shared = w->t.cpus,
		.keep_shared = c->any_pool ? 0 : number_max(w->s.shared_pool_minimum, 1)};
	if (w->s.cpu_options.strict_cpu_reservation)
		b->shared = cpuset_minus(b->shared, &w->s.reserved_cpus);
	memory_init(&b->memory, &w->t, &w->s);
	b->memory.keep_groups = true;
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct decision *d = &ledger_at(l, i)->decision;

		if (c->gone >> i & 1)
			continue;
		if (d->exclusive)
			b->shared = cpuset_minus(b->shared, &d->cpus);
		memory_hold(&b->memory, d->blocks, d->nr_blocks);
	}
}

static bool admits_by_hand(const struct world *w, const struct change *c)
{
	auto_free struct books *b = xcalloc(1, sizeof *b);
	struct pod pod = w->pod;
	struct ask part[PARTS];
	struct budget budget = budget_of(0);
	struct grants grants;
	struct refusal why;
	struct arena a;

	memcpy(part, w->part, sizeof part);
	pod.container = part;
	for (unsigned i = 0; c->no_advice && i < pod.nr; i++)
		part[i].advice = NULL;
	if (c->only >= 0) {
		part[0] = part[c->only];
		pod.nr = 1;
	}
	books_by_hand(w, c, b);
	arena_init_fixed(&a, w->work, ADMIT_ARENA_BYTES);
	return !admission(b, &pod, NULL, &budget, &a, &grants, &why);
}

/* Sums of what is asked for, there, and free */

static uint64_t asked_of(const struct world *w, uint64_t page, bool cpus)
{
	uint64_t lasting = 0, peak = 0;

	for (unsigned i = 0; i < w->pod.nr; i++) {
		const struct ask *a = &w->part[i];
		uint64_t mine = 0;

		if (cpus)
			mine = a->cpu_milli % 1000 ? 0 : a->cpu_milli / 1000;
		for (unsigned k = 0; !cpus && k < a->nr_memory; k++)
			mine += a->memory[k].page_bytes == page ? a->memory[k].bytes : 0;
		if (a->kind == CONTAINER_INIT)
			peak = number_max(peak, lasting + mine);
		else
			lasting += mine;
	}
	return number_max(peak, lasting);
}

static bool exceeds(const struct world *w, unsigned gone)
{
	auto_free struct books *b = xcalloc(1, sizeof *b);
	const struct change c = {.gone = gone, .only = -1};
	uint64_t memory = 0, pages = 0;

	books_by_hand(w, &c, b);
	struct cpuset left = cpuset_minus(b->shared, &b->reserved);
	if (asked_of(w, 0, true) > cpuset_count(&left))
		return true;
	if (w->s.memory_manager_policy != MANAGER_STATIC)
		return false;
	nodeset_each (n, w->t.nodes) {
		memory += b->memory.node[n].free[0];
		pages += w->t.nr_kinds > 1 ? b->memory.node[n].free[1] : 0;
	}
	return asked_of(w, 0, false) > memory || asked_of(w, GIB(1), false) > pages;
}

static bool each_alone(const struct world *w)
{
	for (unsigned i = 0; i < w->pod.nr; i++) {
		const struct change c = {.no_advice = true, .only = (int)i};

		if (!admits_by_hand(w, &c))
			return false;
	}
	return w->pod.nr > 1;
}

static bool by_hand(const struct world *w, unsigned gone, bool any_pool)
{
	const struct change c = {.gone = gone, .any_pool = any_pool, .no_advice = true, .only = -1};

	return admits_by_hand(w, &c);
}

static enum refusal_class class_by_brute_force(const struct world *w)
{
	bool has_advice = false;
	unsigned all = (unsigned)ALL_GONE;

	for (unsigned i = 0; i < w->pod.nr; i++)
		has_advice = has_advice || w->part[i].advice;
	if (exceeds(w, all))
		return REFUSAL_ABSENT;
	if (!by_hand(w, NOBODY_GONE, false) && by_hand(w, NOBODY_GONE, true))
		return REFUSAL_POOL;
	if (!by_hand(w, all, false))
		return by_hand(w, all, true) ? REFUSAL_POOL : REFUSAL_POLICY;
	if (exceeds(w, NOBODY_GONE))
		return REFUSAL_TAKEN;
	if (has_advice && by_hand(w, NOBODY_GONE, false))
		return REFUSAL_HINT;
	return each_alone(w) ? REFUSAL_POD : REFUSAL_NOT_TOGETHER;
}

static void print_question(const struct world *w)
{
	for (unsigned i = 0; i < w->pod.nr; i++)
		print_error("%s%u asks for %" PRIu64 "m CPUs, %" PRIu64 " and %" PRIu64 " GiB\n",
			container_kind_words[w->part[i].kind], i, w->part[i].cpu_milli,
			w->part[i].memory[0].bytes >> 30, w->part[i].memory[1].bytes >> 30);
	nodeset_each (n, w->t.nodes)
		print_error("NUMA node %u has %u CPUs, %" PRIu64 " and %" PRIu64 " GiB\n", n,
			cpuset_count(&w->t.node[n].cpus), w->t.node[n].memory[0] >> 30,
			w->t.node[n].memory[1] >> 30);
}

/* Remedies */

/* Another ledger, of the entries whose pods do not end. */
static struct ledger *ledger_without_pods(const struct world *w, const struct remedy *r)
{
	const struct ledger *l = engine_ledger(w->g);
	struct ledger *other = ledger_new(&w->t, &w->s);

	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);
		bool gone = false;

		if (w->runs && !r->in_place) /* it is started anew */
			gone = text_equal(h->request.container_id, w->req.container_id);
		for (unsigned k = 0; k < r->nr_pods; k++)
			gone = gone ||
			       text_equal(h->request.pod.uid, r->pod[k].entry->request.pod.uid);
		if (gone)
			continue;
		struct cpuset pool = ledger_pool_without(other, &h->decision.cpus);
		if (h->decision.exclusive)
			assert_int_equal(ledger_set_pool(other, &pool, NULL), 0);
		const struct request req = h->request;
		ledger_commit(other, &req, &h->decision);
	}
	return other;
}

static void ask_for_less(struct world *w, const struct remedy *r)
{
	if (w->runs) {
		w->req.ask = r->ask;
		w->req.ask.name = "main";
		return;
	}
	for (unsigned i = 0; i < w->pod.nr; i++)
		if (!r->container || text_equal(r->container, w->part[i].name)) {
			const char *name = w->part[i].name;

			w->part[i] = r->ask;
			w->part[i].name = name;
			w->req.ask = w->part[i];
			return;
		}
	fail_msg("less of a container that there is not");
}

static void is_less(const struct ask *a, const struct ask *than)
{
	assert_true(a->cpu_milli <= than->cpu_milli && a->nr_memory == than->nr_memory);
	assert_true(a->cpu_milli || !than->cpu_milli); /* a container needs some to run */
	bool less = a->cpu_milli < than->cpu_milli;

	for (unsigned k = 0; k < a->nr_memory; k++) {
		assert_true(a->memory[k].bytes && a->memory[k].bytes <= than->memory[k].bytes);
		less = less || a->memory[k].bytes < than->memory[k].bytes;
	}
	assert_true(less);
}

static void change_settings(struct settings *s, const struct remedy *r)
{
	if (r->kind == REMEDY_MINIMUM)
		s->shared_pool_minimum = (unsigned)r->value;
	if (r->kind == REMEDY_SCOPE)
		s->topology_scope = SCOPE_CONTAINER;
	if (r->kind == REMEDY_POLICY)
		s->topology_policy = POLICY_BEST_EFFORT;
}

/* The next whole cores, or the last ones. */
static void round_cpus(struct ask *a, uint64_t threads, bool up)
{
	uint64_t cpus = a->cpu_milli / 1000, rest = cpus % threads;

	if (a->cpu_milli % 1000 || !rest)
		return;
	cpus = up || cpus < threads ? cpus - rest + threads : cpus - rest;
	a->cpu_milli = cpus * 1000;
}

static void ask_for_cores(struct world *w, uint64_t threads, bool up)
{
	for (unsigned i = 0; i < w->pod.nr; i++)
		round_cpus(&w->part[i], threads, up);
	round_cpus(&w->req.ask, threads, up);
}

/* Whether *x is admitted on another ledger, of the pods of *w that do not end. */
static bool follows(const struct world *w, const struct world *x, const struct remedy *r)
{
	struct admit_question q = question_of(x);
	struct ledger *other = r->fewer_pods ? ledger_new(&w->t, &x->s) : ledger_without_pods(w, r);
	struct decision d;

	q.ledger = other;
	bool admits = answer(x, &q, &d);
	ledger_free(other);
	return admits;
}

/* It helps: on another ledger, with another request or settings, nothing being supposed. */
static void follow_remedy(const struct world *w, const struct remedy *r)
{
	auto_free struct world *x = xcalloc(1, sizeof *x);

	*x = *w;
	x->pod.container = x->part;
	change_settings(&x->s, r);
	bool no_hint = r->no_hint || r->kind == REMEDY_NO_HINT;
	for (unsigned i = 0; no_hint && i < x->pod.nr; i++)
		x->part[i].advice = NULL;
	if (no_hint)
		x->req.ask.advice = NULL;
	if (r->kind == REMEDY_LESS)
		ask_for_less(x, r);
	if (r->kind == REMEDY_CORES) {
		ask_for_cores(x, r->value, true);
		if (follows(w, x, r))
			return;
		memcpy(x->part, w->part, sizeof x->part);
		x->req.ask = w->req.ask;
		ask_for_cores(x, r->value, false);
	}
	if (r->kind == REMEDY_NODES_POLICY)
		x->pod.has_policy = x->req.pod.has_policy = false;
	if (!follows(w, x, r))
		fail_msg("remedy %s does not help", remedy_kind_words[r->kind]);
}

static bool reduced_fits(const struct world *w, unsigned gone, unsigned part)
{
	auto_free struct world *x = xcalloc(1, sizeof *x);
	const struct ask *was = &w->part[part];
	const struct change c = {.gone = gone, .only = -1};
	uint64_t bytes = was->nr_memory ? was->memory[0].bytes : GIB(1);
	uint64_t more = was->nr_memory > 1 ? was->memory[1].bytes : GIB(1);

	*x = *w;
	for (uint64_t cpus = was->cpu_milli / 1000 + 1; cpus-- > 0;) {
		x->part[part].cpu_milli = cpus ? cpus * 1000 : was->cpu_milli;
		if (was->cpu_milli % 1000 || !was->cpu_milli)
			x->part[part].cpu_milli = was->cpu_milli;
		for (uint64_t m = GIB(1); m <= bytes; m += GIB(1))
			for (uint64_t k = GIB(1); k <= more; k += GIB(1)) {
				x->part[part].memory[0].bytes = m;
				x->part[part].memory[1].bytes = k;
				if (!admits_by_hand(x, &c))
					continue;
				print_error("without entries %#x: container %u of %" PRIu64
					    " CPUs, %" PRIu64 " and %" PRIu64 " GiB\n",
					gone, part, cpus, m >> 30, k >> 30);
				return true;
			}
	}
	return false;
}

/* Whether ends of pods, less, or both would do. */
static bool some_remedy_within_settings(const struct world *w)
{
	size_t nr = ledger_count(engine_ledger(w->g));

	for (unsigned gone = 0; gone < 1U << nr; gone++) {
		const struct change c = {.gone = gone, .only = -1};

		if (admits_by_hand(w, &c))
			return true;
		for (unsigned i = 0; i < w->pod.nr; i++)
			if (reduced_fits(w, gone, i))
				return true;
	}
	return false;
}

static bool is_within_settings(enum remedy_kind k)
{
	return k == REMEDY_ENDS || k == REMEDY_LESS || k == REMEDY_NO_HINT || k == REMEDY_ANEW ||
	       k == REMEDY_TOKENS || k == REMEDY_NODES_POLICY || k == REMEDY_CORES;
}

static void check_remedies(const struct world *w, const struct diagnosis *d, const char *line)
{
	bool within = false;

	for (unsigned i = 0; i < d->nr_remedies; i++) {
		const struct remedy *r = &d->remedy[i];

		within = within || is_within_settings(r->kind);
		if (r->kind == REMEDY_LESS)
			for (unsigned k = 0; k < w->pod.nr; k++)
				if (!r->container || text_equal(r->container, w->part[k].name))
					is_less(&r->ask, w->alone ? &w->req.ask : &w->part[k]);
		if (r->nr_pods <= REMEDY_PODS)
			follow_remedy(w, r);
	}
	if (!within && !w->runs && some_remedy_within_settings(w)) {
		print_question(w);
		fail_msg("there is a remedy within the settings, and none is named: %s", line);
	}
}

struct tally {
	unsigned class[NR_REFUSAL_CLASSES], remedy[NR_REMEDIES], none;
};

static void check_refusal(struct world *w, const struct decision *refused, struct tally *sum)
{
	const struct admit_question q = question_of(w);
	auto_free struct diagnosis *d = xcalloc(1, sizeof *d);
	char line[DIAGNOSIS_LINE_MAX];
	struct err e;

	diagnose_with_remedies(&q, refused, REMEDIES_THOROUGHLY, NULL, d);
	enum refusal_class should = w->runs ? d->class : class_by_brute_force(w);
	if (d->class != should)
		print_question(w);
	if (d->class != should)
		fail_msg("it is %s, and said to be %s: %s", refusal_class_words[should],
			refusal_class_words[d->class], refused->message);
	assert_non_null(
		strstr(diagnosis_line(d, refused, &q, true, line, sizeof line), refused->reason));
	check_remedies(w, d, line);
	assert_true(strlen(line) < sizeof line && text_is_utf8(line, strlen(line)));
	assert_int_equal(ledger_check(engine_ledger(w->g), &e), 0);
	sum->class[d->class]++;
	sum->none += !d->nr_remedies;
	for (unsigned i = 0; i < d->nr_remedies; i++)
		sum->remedy[d->remedy[i].kind]++;
}

static unsigned long number_from(const char *variable, unsigned long otherwise)
{
	const char *text = getenv(variable);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

static void one_world(struct world *w, unsigned long *left, struct tally *sum)
{
	const struct engine_hooks hooks = {.record = record_nothing};
	struct decision d;

	random_machine(w);
	random_settings(w);
	if (cpuset_within(&w->t.cpus, &w->s.reserved_cpus))
		return;
	w->g = engine_new(&w->t, &w->s, &hooks);
	for (unsigned i = random_below(&w->r, GUESTS + 1); i > 0; i--) {
		(void)snprintf(w->name[i], sizeof w->name[i], "pod%u", i);
		random_guest(w, i);
	}
	for (unsigned tries = 3; tries && *left; tries--) {
		random_question(w);
		if (random_chance(&w->r, 20) && !random_resize(w))
			continue;
		const struct admit_question q = question_of(w);
		if (answer(w, &q, &d))
			continue;
		check_refusal(w, &d, sum);
		--*left;
	}
	engine_free(w->g);
}

static void classes_are_right_and_remedies_help(void **state)
{
	unsigned long left = number_from("REFUSALS", REFUSALS_DEFAULT);
	unsigned long seed = number_from("SEED", 20261123);
	auto_free struct world *w = xcalloc(1, sizeof *w);
	struct tally sum = {0};

	(void)state;
	w->work = xcalloc(1, ADMIT_ARENA_BYTES);
	print_message("%lu refusals of seed %lu\n", left, seed);
	for (uint64_t world = 1; left; world++) {
		w->r.state = seed * UINT64_C(0x9e3779b97f4a7c15) + world;
		w->s = (struct settings){0};
		one_world(w, &left, &sum);
	}
	free(w->work);
	for (unsigned c = 0; c < NR_REFUSAL_CLASSES; c++)
		print_message("%-18s %u\n", refusal_class_words[c], sum.class[c]);
	for (unsigned k = 0; k < NR_REMEDIES; k++)
		print_message("%-18s %u\n", remedy_kind_words[k], sum.remedy[k]);
	print_message("%-18s %u\n", "no remedy", sum.none);
	for (unsigned c = REFUSAL_ABSENT; c < NR_REFUSAL_CLASSES; c++)
		assert_true(sum.class[c] || c == REFUSAL_CUT || c == REFUSAL_STAYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_are_right_and_remedies_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
