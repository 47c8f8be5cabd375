/* The daemon is killed (SIGKILL) at every step between a request's bytes and those of its answer,
 * and at random moments, and started again: every container that was answered keeps its CPUs, no
 * CPU is given twice, and the ledger has what runs and nothing else. Between two lives containers
 * are resized, and some come that nobody has placed; onAdopt is place or leave, the journal or the
 * annotations are lost, or both, and other CPUs are reserved. The daemon is the real program; this
 * test is its container runtime. CRASH_ROUNDS=n changes how often, SEED=n how.
 */
#include <codec/fields_json.h>
#include <codec/placement_json.h>
#include <io/fault.h>
#include <io/loop.h>
#include <nri/runtime.h>
#include <nri/session.h>
#include <numafit-cli/journal_fold.h>

#include "core_random.h"
#include "daemon_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum {
	ROUNDS = 330,
	CONTAINERS = 24,
	CALLS = 12,
	ID_MAX = 24,
	LIST_MAX = 512,
	CPUS = 64,
	STARTUP_MS = 20000,
	LINE = 300,
	KILL_US = 700,
	MORE = 4
};

struct box {
	bool runs, exclusive;
	bool stray; /* came while nobody listened, and nothing was told of it since */
	bool lacks; /* it was resized, or lost CPUs, and has not what it asks for yet */
	char id[ID_MAX], pod[ID_MAX], cpus[LIST_MAX], mems[LIST_MAX], placement[PLACEMENT_JSON_MAX];
	unsigned cpu_milli;
	int64_t created;
};

/* From where a life may know of earlier ones. */
enum memory { JOURNAL_AND_ANNOTATIONS, JOURNAL_ONLY, ANNOTATIONS_ONLY, NEITHER, NR_MEMORIES };

struct rig {
	struct daemon_rig daemon;
	struct loop *loop;
	struct loop_timer *watchdog;
	struct stream *stream;
	struct nri_runtime *runtime;
	struct random random;
	enum memory memory;
	bool dead, killed;  /* killed: by us */
	bool leaves;        /* onAdopt */
	bool rearranged;    /* other CPUs are reserved than when it was told last what runs */
	unsigned reserved;  /* which ones: an index */
	bool journal_whole; /* it tells of all that were placed; else it was lost and is being made
			     */
	unsigned fault;     /* where it dies; NR_FAULTS: at any moment */
	char fault_text[64];
	unsigned hits[NR_FAULTS + 1];
	unsigned calls, next, answers, adjusted, unpinned, left, resized;
	enum nri_call last;
	struct box box[CONTAINERS];
	struct box *asked; /* its create is unanswered */
};

static unsigned min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static void flush(struct rig *r)
{
	const void *data;
	size_t len;

	while (r->stream && (len = nri_runtime_take(r->runtime, &data)) > 0)
		(void)stream_write(r->stream, data, len);
}

static struct cpuset list_of(const char *text)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, text, strlen(text), NULL), 0);
	return cpus;
}

static void no_cpu_is_given_twice(const struct rig *r)
{
	for (unsigned i = 0; i < CONTAINERS; i++)
		for (unsigned j = 0; j < CONTAINERS; j++) {
			const struct box *a = &r->box[i], *b = &r->box[j];

			if (i == j || !a->runs || !b->runs || !a->exclusive)
				continue;
			struct cpuset x = list_of(a->cpus), y = list_of(b->cpus);
			if (cpuset_intersects(&x, &y))
				fail_msg("%s has %s for itself, %s runs on %s", a->id, a->cpus,
					b->id, b->cpus);
		}
}

static struct box *find(struct rig *r, const char *id)
{
	for (unsigned i = 0; i < CONTAINERS; i++)
		if (r->box[i].runs && strcmp(r->box[i].id, id) == 0)
			return &r->box[i];
	return NULL;
}

static void apply_updates(struct rig *r, const struct nri_answer *a)
{
	for (size_t i = 0; i < a->nr_updates; i++) {
		struct box *b = find(r, a->updates[i].container_id);

		if (!b)
			continue;
		if (b->exclusive && !b->lacks && !r->rearranged &&
			strcmp(b->cpus, a->updates[i].cpus) != 0)
			fail_msg("%s had %s for itself and is moved to %s", b->id, b->cpus,
				a->updates[i].cpus);
		assert_true(text_copy(b->cpus, sizeof b->cpus, a->updates[i].cpus));
		assert_true(text_copy(b->mems, sizeof b->mems, a->updates[i].mems));
	}
}

static struct nri_container shown(
	const struct rig *r, const struct box *b, struct key_value *annotation)
{
	struct nri_container c = {
		.sandbox_id = b->pod,
		.pod_uid = b->pod,
		.pod_ns = "default",
		.pod_name = b->pod,
		.cgroup_parent = b->cpu_milli ? "/kubepods/pod1" : "/kubepods/burstable/pod1",
		.id = b->id,
		.name = "main",
		.cpus = b->cpus,
		.mems = b->mems,
		.created_at_ns = b->created,
	};

	c.resources.has_shares = c.resources.has_memory_limit = true;
	c.resources.cpu_shares = b->cpu_milli ? 1024 * b->cpu_milli / 1000 : 100;
	c.resources.memory_limit = INT64_C(1) << 30;
	if (*b->placement && r->memory != JOURNAL_ONLY && r->memory != NEITHER) {
		*annotation = (struct key_value){NRI_PLACEMENT_ANNOTATION, b->placement};
		c.annotations = annotation;
		c.nr_annotations = 1;
	}
	return c;
}

/* Once it is dead and all that it said was read. */
static void life_ends(struct rig *r)
{
	r->stream = NULL;
	loop_stop(r->loop);
}

static void child_died(void *ctx)
{
	struct rig *r = ctx;

	if (r->dead)
		return;
	int status = rig_end(&r->daemon, 0);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail_msg("the daemon ended by itself (status %#x)", (unsigned)status);
	r->dead = true;
	if (!r->killed && r->last == NRI_CALL_CREATE)
		r->hits[r->fault]++;
	if (!r->stream)
		life_ends(r);
}

/* At the last call of a round the daemon dies before, while or shortly after it works on it, unless
 * it has died before. */
static void call(struct rig *r, enum nri_call what, const struct box *b)
{
	struct key_value annotation;
	struct nri_container c = shown(r, b, &annotation);

	r->last = what;
	nri_runtime_call(r->runtime, what, &c);
	flush(r);
	if (--r->calls > 0)
		return;
	if (r->fault == NR_FAULTS)
		usleep(random_below(&r->random, KILL_US));
	r->killed = true;
	assert_int_equal(kill(r->daemon.pid, SIGKILL), 0);
}

static void next_call(struct rig *r)
{
	struct box *b = &r->box[random_below(&r->random, CONTAINERS)];

	if (!r->calls || r->dead)
		return;
	if (b->runs && random_chance(&r->random, 30)) {
		call(r, NRI_CALL_POST_START, b);
		return;
	}
	if (b->runs) {
		b->runs = false; /* its process has ended, whether the daemon hears of it or not */
		call(r, NRI_CALL_STOP, b);
		return;
	}
	*b = (struct box){.cpu_milli = 1000 * random_below(&r->random, 4), .created = ++r->next};
	b->exclusive = b->cpu_milli > 0;
	(void)snprintf(b->id, sizeof b->id, "c%u", r->next);
	(void)snprintf(b->pod, sizeof b->pod, "p%u", r->next);
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
	assert_true(a->nr_annotations == 1 && *a->cpus && *a->mems);
	assert_true(text_copy(b->cpus, sizeof b->cpus, a->cpus));
	assert_true(text_copy(b->mems, sizeof b->mems, a->mems));
	assert_true(text_copy(b->placement, sizeof b->placement, a->annotations[0].value));
	if (b->exclusive) {
		struct cpuset cpus = list_of(b->cpus);

		assert_int_equal(cpuset_count(&cpus), b->cpu_milli / 1000);
	}
	b->runs = true;
	r->adjusted++;
}

/* Only what nobody has placed, as far as can be known. */
static void is_as_left(struct rig *r, struct box *b, const struct decision *d)
{
	const struct cpuset on = list_of(b->cpus);
	bool known = (*b->placement && r->memory != NEITHER && r->memory != JOURNAL_ONLY) ||
		     (r->journal_whole && !b->stray);

	if (known || !r->leaves)
		fail_msg("%s was placed, and is left on %s", b->id, b->cpus);
	assert_true(cpuset_equal(&on, &d->left_on));
	b->exclusive = false;
	b->stray = true;
	r->left++;
}

static bool has_other_than_it_asks_for(const struct box *b, const struct decision *d)
{
	unsigned own = b->cpu_milli % 1000 ? 0 : b->cpu_milli / 1000;

	return own != (d->exclusive ? cpuset_count(&d->cpus) : 0);
}

static void is_as_held(struct rig *r, struct box *b, const struct journal_fold *f)
{
	const struct holding *h = ledger_find(engine_ledger(f->engine), b->id);
	char cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX];

	if (!h)
		fail_msg("%s runs, and the ledger lacks it", b->id);
	if (h->decision.left) {
		is_as_left(r, b, &h->decision);
		return;
	}
	assert_string_equal(b->cpus, cpuset_format(&h->decision.cpus, cpus, sizeof cpus));
	assert_string_equal(
		b->mems, nodeset_format(h->decision.mems, &f->topo.ids, mems, sizeof mems));
	if (*b->placement && !b->lacks && !b->stray && !r->rearranged)
		assert_int_equal(b->exclusive, h->decision.exclusive);
	b->exclusive = h->decision.exclusive; /* of one that was started unpinned: from now on */
	b->stray = false;
	b->lacks = has_other_than_it_asks_for(b, &h->decision); /* there may be no room yet */
}

/* What the daemon holds, once it was told what runs; it has written down all of it. */
static void the_ledger_is_what_runs(struct rig *r)
{
	struct journal_fold f;
	struct err e = {0};
	unsigned nr = 0;

	if (journal_fold(&f, r->daemon.journal, NULL, NULL, &e) < 0)
		fail_msg("%s", e.text);
	if (ledger_check(engine_ledger(f.engine), &e) < 0)
		fail_msg("%s", e.text);
	for (unsigned i = 0; i < CONTAINERS; i++)
		if (r->box[i].runs) {
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
		r->journal_whole = true;
		r->rearranged = false;
	}
	no_cpu_is_given_twice(r);
	next_call(r);
}

static void configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct rig *r = ctx;
	struct nri_container list[CONTAINERS];
	struct key_value annotation[CONTAINERS];
	size_t nr = 0;

	(void)name, (void)index, (void)events;
	for (unsigned i = 0; i < CONTAINERS; i++)
		if (r->box[i].runs) {
			list[nr] = shown(r, &r->box[i], &annotation[nr]);
			nr++;
		}
	nri_runtime_synchronize(r->runtime, list, nr);
}

static void data_came(void *ctx, const void *data, size_t len)
{
	struct rig *r = ctx;

	if (nri_runtime_feed(r->runtime, data, len) < 0)
		fail_msg("%s", nri_runtime_error(r->runtime));
	flush(r);
}

static void closed(void *ctx, int error)
{
	struct rig *r = ctx;

	(void)error;
	r->stream = NULL;
	if (r->dead)
		life_ends(r);
}

static struct stream_events accepted(void *ctx, struct stream *s)
{
	struct rig *r = ctx;

	r->stream = s;
	return (struct stream_events){.ctx = r, .data = data_came, .closed = closed};
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
	if (!b || random_chance(&r->random, 50))
		return;
	b->runs = b->stray = true;
	b->exclusive = false;
	if (random_chance(&r->random, 30)) { /* somebody else has set its cpuset */
		unsigned from = random_below(&r->random, CPUS);

		(void)snprintf(b->cpus, sizeof b->cpus, "%u-%u", from,
			min(from + random_below(&r->random, 4), CPUS - 1));
		(void)snprintf(b->mems, sizeof b->mems, "3-6");
	}
	r->unpinned++;
}

/* In place, by a kubelet that finds nobody to ask: where they run does not change. */
static void resize_some(struct rig *r)
{
	for (unsigned i = 0; i < CONTAINERS; i++) {
		struct box *b = &r->box[i];

		if (!b->runs || !b->cpu_milli || !random_chance(&r->random, 5))
			continue;
		b->cpu_milli = 500 * (1 + random_below(&r->random, 10));
		b->lacks = true;
		r->resized++;
	}
}

static void choose_memory(struct rig *r)
{
	static const char *const reserved[] = {"reservedSystemCPUs=0", "reservedSystemCPUs=0,32",
		"reservedSystemCPUs=1-3,33-35", "reservedSystemCPUs=8-11,40"};

	r->memory = random_below(&r->random, NR_MEMORIES);
	if (r->memory == ANNOTATIONS_ONLY || r->memory == NEITHER) {
		(void)unlink(r->daemon.journal);
		r->journal_whole = false;
	}
	r->leaves = random_chance(&r->random, 50);
	if (random_chance(&r->random, 10)) {
		r->reserved = random_below(&r->random, sizeof reserved / sizeof *reserved);
		r->rearranged = true;
	}
	r->daemon.setting[3] = reserved[r->reserved];
	r->daemon.setting[2] = r->leaves ? "onAdopt=leave" : "onAdopt=place";
}

#ifdef NUMAFIT_FAULTS
/* At which pass it dies. A life begins with two lines for each that runs: to die in one of these,
 * or in one of a call. */
static unsigned random_pass(struct rig *r)
{
	unsigned lines = 1;

	for (unsigned i = 0; i < CONTAINERS && r->fault == FAULT_HALF_LINE; i++)
		lines += 2 * r->box[i].runs;
	if (lines > 1 && random_chance(&r->random, 25))
		return 1 + random_below(&r->random, lines);
	return lines + random_below(&r->random, lines > 1 ? CALLS / 2 : CALLS);
}

static void choose_fault(struct rig *r, unsigned nr)
{
	r->fault = nr % (NR_FAULTS + 1);
	r->daemon.fault = NULL;
	/* nearly each record has several lines then */
	r->daemon.line = r->fault != FAULT_HALF_LINE && random_chance(&r->random, 30) ? LINE : 0;
	if (r->fault == NR_FAULTS)
		return;
	(void)snprintf(
		r->fault_text, sizeof r->fault_text, "%s:%u", fault_name(r->fault), random_pass(r));
	r->daemon.fault = r->fault_text;
}
#else
static void choose_fault(struct rig *r, unsigned nr)
{
	(void)nr;
	r->fault = NR_FAULTS;
}
#endif

static void no_journal_was_set_aside(const struct rig *r)
{
	char aside[sizeof r->daemon.journal + sizeof ".damaged"];

	(void)snprintf(aside, sizeof aside, "%s.damaged", r->daemon.journal);
	assert_int_equal(access(aside, F_OK), -1);
}

static void one_life(struct rig *r, unsigned nr)
{
	const struct nri_runtime_options options = {
		.name = "crash", .version = "1", .state_change = random_chance(&r->random, 50)};
	const struct nri_runtime_events events = {
		.ctx = r, .configured = configured, .answered = answered};

	r->dead = r->killed = false;
	choose_fault(r, nr);
	r->last = NRI_CALL_SYNCHRONIZE;
	r->calls = r->fault < NR_FAULTS ? CALLS : 1 + random_below(&r->random, CALLS);
	r->runtime = nri_runtime_new(&options, &events);
	/* of its own, lest one that died before it was heard is heard in the next life */
	struct listener *listener =
		listener_new(r->loop, r->daemon.socket, 0600, r, accepted, NULL);
	assert_non_null(listener);
	choose_memory(r);
	rig_start(&r->daemon);
	loop_timer_set(r->watchdog, STARTUP_MS);
	loop_run(r->loop);
	listener_close(listener);
	nri_runtime_free(r->runtime);
	settle_unanswered(r);
	resize_some(r);
	no_journal_was_set_aside(r);
}

/* How many steps nobody has died at yet. A step that is never the last one of a create is not
 * tested, or is no step any more. */
static unsigned steps_missed(const struct rig *r)
{
	unsigned nr = 0;

#ifdef NUMAFIT_FAULTS
	for (unsigned f = 0; f < NR_FAULTS; f++)
		nr += !r->hits[f];
#else
	(void)r;
#endif
	return nr;
}

static void print_hits(const struct rig *r)
{
#ifdef NUMAFIT_FAULTS
	for (unsigned f = 0; f < NR_FAULTS; f++)
		print_message("%s: %u\n", fault_name(f), r->hits[f]);
#else
	(void)r;
#endif
}

static void answered_placements_survive_kill_9_at_every_step(void **state)
{
	const char *rounds_text = getenv("CRASH_ROUNDS"), *seed = getenv("SEED");
	unsigned rounds = rounds_text ? (unsigned)atoi(rounds_text) : ROUNDS;
	struct rig *r = calloc(1, sizeof *r);

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	rig_init(&r->daemon);
	r->daemon.setting[0] = "logLevel=error";
	r->daemon.setting[1] = "sharedPoolStep=2";
	r->random.state = seed ? strtoull(seed, NULL, 0) : 20261121;
	r->journal_whole = true;
	r->loop = loop_new();
	r->watchdog = loop_timer_new(r->loop, too_slow, r);
	assert_int_equal(loop_on_signal(r->loop, SIGCHLD, child_died, r), 0);
	unsigned nr = 0; /* some more where chance has left a step out */
	for (; nr < rounds || (steps_missed(r) && nr < MORE * rounds); nr++)
		one_life(r, nr);
	print_message("%u lives, %u creates answered, %u of them pinned; %u started unpinned, "
		      "%u times one was left so; %u resized while nobody listened\n",
		nr, r->answers, r->adjusted, r->unpinned, r->left, r->resized);
	print_hits(r);
	assert_int_equal(steps_missed(r), 0);
	assert_true(r->adjusted > rounds / 2);
	loop_free(r->loop);
	rig_fini(&r->daemon);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answered_placements_survive_kill_9_at_every_step),
	};

	json_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
