/* The daemon is killed (SIGKILL) at every step between a request's bytes and those of its answer,
 * and at random moments, and started again: every container that was answered keeps its CPUs, no
 * CPU is given twice, and the ledger has what runs and nothing else. Between two lives containers
 * are resized, and some come that nobody has placed; onAdopt is place or leave, the journal or the
 * annotations are lost, or both, and other CPUs are reserved. The daemon is the real program; this
 * test is its container runtime. CRASH_ROUNDS=n changes how often, SEED=n how.
 */
#include <codec/fields_json.h>

#include "crash_rig.h"

enum { ROUNDS = 300, CONTAINERS = 24, CALLS = 12, CPUS = 64, LINE = 300, KILL_US = 700, MORE = 4 };

struct box {
	struct fake_container c;
	bool stray; /* came while nobody listened, and had no update since */
	bool lacks; /* it was resized, or lost CPUs, and has not what it asks for yet */
};

struct rig {
	struct crash_rig crash;
	bool leaves;       /* onAdopt */
	bool rearranged;   /* other CPUs are reserved than at the last Synchronize */
	unsigned reserved; /* which ones: an index */
	unsigned hits[NR_FAULTS + 1];
	unsigned answers, adjusted, unpinned, left, resized;
	enum nri_call last;
	struct box box[CONTAINERS];
	struct box *asked; /* its create is unanswered */
};

static unsigned min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static void no_cpu_is_given_twice(const struct rig *r)
{
	for (unsigned i = 0; i < CONTAINERS; i++)
		for (unsigned j = 0; j < CONTAINERS; j++)
			fake_container_assert_apart(&r->box[i].c, &r->box[j].c);
}

static struct box *find(struct rig *r, const char *id)
{
	for (unsigned i = 0; i < CONTAINERS; i++)
		if (r->box[i].c.runs && strcmp(r->box[i].c.id, id) == 0)
			return &r->box[i];
	return NULL;
}

static void apply_updates(struct rig *r, const struct nri_answer *a)
{
	for (size_t i = 0; i < a->nr_updates; i++) {
		struct box *b = find(r, a->updates[i].container_id);

		if (!b)
			continue;
		if (b->c.exclusive && !b->lacks && !r->rearranged &&
			strcmp(b->c.cpus, a->updates[i].cpus) != 0)
			fail_msg("%s had %s for itself and is moved to %s", b->c.id, b->c.cpus,
				a->updates[i].cpus);
		fake_container_update(&b->c, &a->updates[i]);
	}
}

static struct nri_container shown(
	const struct rig *r, const struct box *b, struct key_value annotation[2])
{
	struct nri_container c = fake_container_shown(&b->c, annotation);

	if (r->crash.memory == JOURNAL_ONLY || r->crash.memory == NEITHER)
		c.nr_annotations = 0;
	return c;
}

/* Once the daemon is dead and all that it sent was read. */
static void perhaps_over(void *ctx)
{
	struct rig *r = ctx;

	if (r->crash.dead && !r->crash.runtime.stream)
		loop_stop(r->crash.loop);
}

static void died(void *ctx)
{
	struct rig *r = ctx;

	if (!r->crash.killed && r->last == NRI_CALL_CREATE)
		r->hits[r->crash.fault]++;
	perhaps_over(r);
}

static void call(struct rig *r, enum nri_call what, const struct box *b)
{
	struct key_value annotation[2];
	const struct nri_container c = shown(r, b, annotation);

	r->last = what;
	fake_runtime_call(&r->crash.runtime, what, &c);
	crash_perhaps_kill(&r->crash);
}

static void next_call(struct rig *r)
{
	struct box *b = &r->box[random_below(&r->crash.random, CONTAINERS)];

	if (!r->crash.calls || r->crash.dead)
		return;
	if (b->c.runs && random_chance(&r->crash.random, 30)) {
		call(r, NRI_CALL_POST_START, b);
		return;
	}
	if (b->c.runs) {
		b->c.runs =
			false; /* its process has ended, whether the daemon hears of it or not */
		call(r, NRI_CALL_STOP, b);
		return;
	}
	*b = (struct box){.c = {.cpu_milli = FAKE_MILLI_PER_CPU * random_below(&r->crash.random, 4),
				  .created_ns = ++r->crash.next}};
	b->c.exclusive = b->c.cpu_milli > 0;
	(void)snprintf(b->c.id, sizeof b->c.id, "c%u", r->crash.next);
	(void)snprintf(b->c.pod, sizeof b->c.pod, "p%u", r->crash.next);
	r->asked = b;
	call(r, NRI_CALL_CREATE, b);
}

static void created(struct rig *r, const struct nri_answer *a)
{
	struct box *b = r->asked;

	r->asked = NULL;
	r->answers++;
	if (a->status)
		return;
	fake_container_start(&b->c, a);
	if (b->c.exclusive) {
		struct cpuset cpus = fake_container_cpus(&b->c);

		assert_int_equal(cpuset_count(&cpus), b->c.cpu_milli / FAKE_MILLI_PER_CPU);
	}
	r->adjusted++;
}

/* Only what nobody has placed, as far as can be known. */
static void is_as_left(struct rig *r, struct box *b, const struct decision *d)
{
	const struct cpuset on = fake_container_cpus(&b->c);
	bool known = (*b->c.placement && r->crash.memory != NEITHER &&
			     r->crash.memory != JOURNAL_ONLY) ||
		     (r->crash.journal_whole && !b->stray);

	if (known || !r->leaves)
		fail_msg("%s was placed, and is left on %s", b->c.id, b->c.cpus);
	assert_true(cpuset_equal(&on, &d->left_on));
	b->c.exclusive = false;
	b->stray = true;
	r->left++;
}

static bool has_other_than_it_asks_for(const struct box *b, const struct decision *d)
{
	unsigned own = b->c.cpu_milli % 1000 ? 0 : b->c.cpu_milli / 1000;

	return own != (d->exclusive ? cpuset_count(&d->cpus) : 0);
}

static void is_as_held(struct rig *r, struct box *b, const struct journal_fold *f)
{
	const struct holding *h = ledger_find(engine_ledger(f->engine), b->c.id);

	if (!h)
		fail_msg("%s runs, and the ledger lacks it", b->c.id);
	if (decision_is_left(&h->decision)) {
		is_as_left(r, b, &h->decision);
		return;
	}
	crash_assert_as_held(&b->c, h, f);
	if (*b->c.placement && !b->lacks && !b->stray && !r->rearranged)
		assert_int_equal(b->c.exclusive, h->decision.exclusive);
	b->c.exclusive = h->decision.exclusive; /* of one that was started unpinned: from now on */
	b->stray = false;
	b->lacks = has_other_than_it_asks_for(b, &h->decision); /* there may be no room yet */
}

/* What the daemon holds once it has answered Synchronize; all of it is in its journal. */
static void the_ledger_is_what_runs(struct rig *r)
{
	struct journal_fold f;
	unsigned nr = 0;

	crash_read_journal(&r->crash, &f);
	for (unsigned i = 0; i < CONTAINERS; i++)
		if (r->box[i].c.runs) {
			is_as_held(r, &r->box[i], &f);
			nr++;
		}
	assert_int_equal(ledger_count(engine_ledger(f.engine)), nr);
	journal_fold_fini(&f);
}

static void answered(void *ctx, enum nri_call what, const struct nri_answer *a)
{
	struct rig *r = ctx;

	apply_updates(r, a);
	if (what == NRI_CALL_CREATE)
		created(r, a);
	if (what == NRI_CALL_SYNCHRONIZE) {
		the_ledger_is_what_runs(r);
		r->crash.journal_whole = true;
		r->rearranged = false;
	}
	no_cpu_is_given_twice(r);
	next_call(r);
}

static void configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct rig *r = ctx;
	struct nri_container list[CONTAINERS];
	struct key_value annotation[CONTAINERS][2];
	size_t nr = 0;

	(void)name, (void)index, (void)events;
	for (unsigned i = 0; i < CONTAINERS; i++)
		if (r->box[i].c.runs) {
			list[nr] = shown(r, &r->box[i], annotation[nr]);
			nr++;
		}
	nri_runtime_synchronize(r->crash.runtime.nri, list, nr);
}

static void too_slow(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happens any more");
}

/* A runtime goes on without a plugin that is gone: some start the container unpinned, some not. */
static void settle_unanswered(struct rig *r)
{
	struct box *b = r->asked;

	r->asked = NULL;
	if (!b || random_chance(&r->crash.random, 50))
		return;
	b->c.runs = b->stray = true;
	b->c.exclusive = false;
	if (random_chance(&r->crash.random, 30)) { /* somebody else has set its cpuset */
		unsigned from = random_below(&r->crash.random, CPUS);

		(void)snprintf(b->c.cpus, sizeof b->c.cpus, "%u-%u", from,
			min(from + random_below(&r->crash.random, 4), CPUS - 1));
		(void)snprintf(b->c.mems, sizeof b->c.mems, "3-6");
	}
	r->unpinned++;
}

/* In place, by a kubelet that finds nobody to ask: where they run does not change. */
static void resize_some(struct rig *r)
{
	for (unsigned i = 0; i < CONTAINERS; i++) {
		struct box *b = &r->box[i];

		if (!b->c.runs || !b->c.cpu_milli || !random_chance(&r->crash.random, 5))
			continue;
		b->c.cpu_milli = 500 * (1 + random_below(&r->crash.random, 10));
		b->lacks = true;
		r->resized++;
	}
}

static void choose_memory(struct rig *r)
{
	static const char *const reserved[] = {"reservedSystemCPUs=0", "reservedSystemCPUs=0,32",
		"reservedSystemCPUs=1-3,33-35", "reservedSystemCPUs=8-11,40"};

	r->crash.memory = random_below(&r->crash.random, NR_MEMORIES);
	if (r->crash.memory == ANNOTATIONS_ONLY || r->crash.memory == NEITHER) {
		(void)unlink(r->crash.daemon.journal);
		r->crash.journal_whole = false;
	}
	r->leaves = random_chance(&r->crash.random, 50);
	if (random_chance(&r->crash.random, 10)) {
		r->reserved = random_below(&r->crash.random, sizeof reserved / sizeof *reserved);
		r->rearranged = true;
	}
	r->crash.daemon.setting[3] = reserved[r->reserved];
	r->crash.daemon.setting[2] = r->leaves ? "onAdopt=leave" : "onAdopt=place";
}

#ifdef NUMAFIT_FAULTS
/* At which pass it dies. A life begins with two lines for each that runs: to die in one of these,
 * or in one of a call. */
static unsigned random_pass(struct rig *r)
{
	unsigned lines = 1;

	for (unsigned i = 0; i < CONTAINERS && r->crash.fault == FAULT_HALF_LINE; i++)
		lines += 2 * r->box[i].c.runs;
	if (lines > 1 && random_chance(&r->crash.random, 25))
		return 1 + random_below(&r->crash.random, lines);
	return lines + random_below(&r->crash.random, lines > 1 ? CALLS / 2 : CALLS);
}

static void choose_fault(struct rig *r, unsigned fault)
{
	r->crash.fault = fault;
	r->crash.daemon.fault = NULL;
	/* nearly each record has several lines then */
	r->crash.daemon.line =
		r->crash.fault != FAULT_HALF_LINE && random_chance(&r->crash.random, 30) ? LINE : 0;
	if (r->crash.fault == NR_FAULTS)
		return;
	(void)snprintf(r->crash.fault_text, sizeof r->crash.fault_text, "%s:%u",
		fault_name(r->crash.fault), random_pass(r));
	r->crash.daemon.fault = r->crash.fault_text;
}
#else
static void choose_fault(struct rig *r, unsigned fault)
{
	r->crash.fault = fault; /* any moment: there is no other one */
}
#endif

static void one_life(struct rig *r, unsigned fault)
{
	struct crash_rig *c = &r->crash;

	c->runtime.options.state_change = random_chance(&c->random, 50);
	c->dead = c->killed = false;
	choose_fault(r, fault);
	r->last = NRI_CALL_SYNCHRONIZE;
	c->calls = c->fault < NR_FAULTS ? CALLS : 1 + random_below(&c->random, CALLS);
	choose_memory(r);
	crash_begin(c);
	crash_live(c);
	settle_unanswered(r);
	resize_some(r);
	crash_assert_no_journal_set_aside(c);
}

#ifdef NUMAFIT_FAULTS
/* How many steps the daemon has not died at yet. A step that is never the last one of a create is
 * not tested, or is no step any more. */
static unsigned steps_missed(const struct rig *r)
{
	unsigned nr = 0;

	for (unsigned f = 0; f < NR_FAULTS; f++)
		nr += !r->hits[f];
	return nr;
}
#endif

static struct rig *rig_new(void)
{
	struct rig *r = calloc(1, sizeof *r);
	struct crash_rig *c = &r->crash;

	crash_init(c, r, died, too_slow);
	c->daemon.setting[0] = "logLevel=error";
	c->daemon.setting[1] = "sharedPoolStep=2";
	c->kill_us = KILL_US;
	c->nr_faults = NR_FAULTS;
	c->runtime = (struct fake_runtime){.loop = c->loop,
		.options = {.name = "crash", .version = "1"},
		.events = {.ctx = r, .configured = configured, .answered = answered},
		.on_closed = perhaps_over};
	return r;
}

static void rig_free(struct rig *r)
{
	print_message("%u creates answered, %u of them pinned; %u started unpinned, "
		      "%u times one was left so; %u resized while nobody listened\n",
		r->answers, r->adjusted, r->unpinned, r->left, r->resized);
	crash_fini(&r->crash);
	free(r);
}

#ifdef NUMAFIT_FAULTS
static void answered_placements_survive_kill_9_at_every_step(void **state)
{
	unsigned rounds = crash_rounds(ROUNDS), nr = 0;
	struct rig *r = rig_new();

	(void)state;
	/* some more where chance has left a step out */
	for (; nr < rounds || (steps_missed(r) && nr < MORE * rounds); nr++)
		one_life(r, nr % NR_FAULTS);
	print_message("%u lives\n", nr);
	for (unsigned f = 0; f < NR_FAULTS; f++)
		print_message("%s: %u\n", fault_name(f), r->hits[f]);
	assert_int_equal(steps_missed(r), 0);
	assert_true(r->adjusted > rounds / 2);
	rig_free(r);
}
#endif

static void answered_placements_survive_kill_9_at_any_moment(void **state)
{
	unsigned lives = 1 + crash_rounds(ROUNDS) / NR_FAULTS;
	struct rig *r = rig_new();

	(void)state;
	for (unsigned i = 0; i < lives; i++)
		one_life(r, NR_FAULTS);
	assert_true(r->adjusted > 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef NUMAFIT_FAULTS
		cmocka_unit_test(answered_placements_survive_kill_9_at_every_step),
#endif
		cmocka_unit_test(answered_placements_survive_kill_9_at_any_moment),
	};

	json_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
