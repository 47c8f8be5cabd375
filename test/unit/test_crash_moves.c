/* Moves of running containers through kill -9: the daemon dies before, between and behind the
 * records of a move and its writes of cgroups, that of cpuset.mems on a thread among them, and at
 * any moment, and is started again. Dead or alive, nobody runs on CPUs of another one, and who is
 * being moved runs on what the journal has for it. The next life ends the move, one way or the
 * other, and nobody else is touched. Meanwhile containers end and start, with the daemon and
 * without. The daemon is the real program; this test is its container runtime, its kernel, and the
 * operator who asks for moves. CRASH_ROUNDS=n changes how often, SEED=n how. */
#include <codec/fields_json.h>

#include "crash_moves_rig.h"

enum {
	ROUNDS = 36,
	MANY = 500,
	CALLS = 16,
	PASSES = 24,
	MEMS_PASSES = 3,
	KILL_US = 8000,
	AMID_MS = 90,
	MEMS_MS = 12,
	REST_POLL_MS = 3,
	LINE_BYTES = 600,
	ARENA_BYTES = 1 << 20
};

static void next_call(struct rig *r);

/* The runtime */

static void apply(struct rig *r, const struct nri_update *updates, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		EACH_BOX(r, b)
	if (text_equal(b->c.id, updates[i].container_id)) {
		fake_container_update(&b->c, &updates[i]);
		set_cpuset(r, b);
	}
}

static bool on_set(void *ctx, const struct nri_update *updates, size_t nr)
{
	apply(ctx, updates, nr);
	containers_are_apart(ctx);
	return true;
}

static struct nri_container shown(const struct box *b, struct key_value annotation[2])
{
	struct nri_container c = fake_container_shown(&b->c, annotation);

	c.cgroup_parent = b->pod;
	c.cgroups_path = b->cgroup;
	return c;
}

static void call(struct rig *r, enum nri_call what, struct box *b)
{
	struct key_value annotation[2];
	const struct nri_container c = shown(b, annotation);

	fake_runtime_call(&r->crash.runtime, what, &c);
	crash_perhaps_kill(&r->crash);
}

static void name_box(struct rig *r, struct box *b)
{
	static const unsigned milli[] = {1000, 1000, 2000, 2000, 2000, 3000, 3000, 4000, 0, 0};

	*b = (struct box){
		.c.cpu_milli = milli[random_below(&r->crash.random, sizeof milli / sizeof *milli)],
		.c.created_ns = ++r->crash.next};
	(void)snprintf(b->c.id, sizeof b->c.id, "c%u", r->crash.next);
	(void)snprintf(b->pod, sizeof b->pod, "%s/pod%u", b->c.cpu_milli ? "/kubepods" : burstable,
		r->crash.next);
	(void)snprintf(b->cgroup, sizeof b->cgroup, "%.200s/%s", b->pod, b->c.id);
	(void)text_copy(b->dir, sizeof b->dir, b->cgroup);
}

static void created(struct rig *r, const struct nri_answer *a)
{
	struct box *b = r->created;

	r->created = NULL;
	r->creates++;
	if (a->status)
		return;
	fake_container_start(&b->c, a);
	b->c.exclusive = b->c.cpu_milli;
	r->owners += b->c.exclusive;
	make_cgroup(r, b);
	call(r, NRI_CALL_POST_START, b);
}

static void end_box(struct rig *r, struct box *b)
{
	b->stays = false;
	b->c.runs = false;
	made_remove(&r->made, b->pod);
}

/* The operator */

static void hang_up(struct asked *a)
{
	stream_close(steal(a->stream));
	vec_fini(&a->document);
	memset(&a->document, 0, sizeof a->document);
}

static void wait_for_rest(void *ctx);

static struct box *any_box(struct rig *r)
{
	unsigned from = random_below(&r->crash.random, BOXES);

	for (unsigned i = 0; i < BOXES; i++)
		if (r->box[(from + i) % BOXES].c.runs)
			return &r->box[(from + i) % BOXES];
	return NULL;
}

/* It waits until the runtime has done what it was answered, which an event of any container says.
 */
static void let_it_begin(struct rig *r)
{
	struct box *b = any_box(r);

	r->amid_plan = b;
	if (b)
		call(r, NRI_CALL_POST_START, b);
	else
		next_call(r);
}

/* Others are called while it is made, or not; or the daemon is killed. */
static void go_on_amid(void *ctx)
{
	struct rig *r = ctx;

	if (r->crash.dead)
		return;
	if (r->crash.fault == NR_DEATHS && random_chance(&r->crash.random, 50))
		r->crash.calls = 1;
	crash_perhaps_kill(&r->crash);
	if (random_chance(&r->crash.random, 40))
		wait_for_rest(r);
	else
		next_call(r);
}

static void take_document(struct rig *r)
{
	struct asked *a = &r->asked;
	struct arena arena;
	bool moves = false;
	struct moves m;
	struct err e;

	arena_init(&arena, ARENA_BYTES);
	if (moves_json_parse(a->document.at, a->document.nr, &arena, &m, &e)) {
		r->errors++; /* others are being made */
	} else {
		r->plans += m.nr > 0;
		moves = m.state == MOVES_UNDER_WAY;
		r->moves += m.state == MOVES_UNDER_WAY;
	}
	arena_fini(&arena);
	hang_up(a);
	remember_files(r);
	if (moves)
		let_it_begin(r);
	else
		next_call(r);
}

static void on_document(void *ctx, const void *data, size_t len)
{
	struct asked *a = ctx;

	for (size_t i = 0; i < len; i++)
		*vec_push(&a->document) = ((const char *)data)[i];
}

static void on_document_end(void *ctx, int error)
{
	struct asked *a = ctx;
	struct rig *r = a->rig;

	a->stream = NULL;
	if (r->crash.dead || error || !a->document.nr)
		return; /* it has died */
	take_document(r);
}

static void on_connected(void *ctx, struct stream *s, int error)
{
	struct asked *a = ctx;

	if (error)
		return;
	a->stream = s;
	(void)stream_write(s, a->question, strlen(a->question));
}

/* For a pod of one container with so many CPUs. */
static void ask_for_moves(struct rig *r, unsigned cpus)
{
	static const struct node_ids none;
	const struct ask container = {.name = "main",
		.cpu_milli = (uint64_t)cpus * FAKE_MILLI_PER_CPU,
		.nr_memory = 1,
		.memory = {{0, 1 << 20}}};
	const struct pod pod = {.sandbox_id = "s",
		.uid = "new",
		.ns = "default",
		.name = "new",
		.qos = QOS_GUARANTEED,
		.nr = 1,
		.container = &container};
	struct asked *a = &r->asked;
	char path[CGROUP_FILE_BYTES];
	int n = snprintf(a->question, sizeof a->question, "defrag apply 3 ");
	int len = journal_json_refused(
		NULL, &pod, &none, a->question + n, sizeof a->question - (size_t)n - 2, NULL);

	assert_true(len > 0);
	if (a->question[n + len - 1] != '\n')
		(void)text_copy(a->question + n + len, 2, "\n");
	(void)snprintf(path, sizeof path, "%.3000s/numafitd.sock", r->crash.daemon.run);
	const struct stream_events events = {a, on_document, on_document_end};
	r->asks++;
	assert_int_equal(stream_connect(r->crash.loop, path, &events, on_connected), 0);
}

/* Events */

static void some_box(struct rig *r)
{
	struct box *b = &r->box[random_below(&r->crash.random, BOXES)];

	if (!b->c.runs) {
		name_box(r, b);
		r->created = b;
		call(r, NRI_CALL_CREATE, b);
		return;
	}
	end_box(r, b);
	call(r, NRI_CALL_STOP, b);
}

static void next_call(struct rig *r)
{
	if (!r->crash.calls || r->crash.dead)
		return;
	const unsigned cpus = random_chance(&r->crash.random, 60) ? cpus_that_need_room(r) : 0;
	if (cpus)
		ask_for_moves(r, cpus);
	else
		some_box(r);
}

static void wait_for_rest(void *ctx)
{
	struct rig *r = ctx;

	if (r->crash.dead)
		return;
	remember_files(r);
	containers_are_apart(r);
	if (!is_at_rest(r)) {
		loop_timer_set(r->poll, REST_POLL_MS);
		return;
	}
	r->rests++;
	if (r->looks)
		the_move_has_ended_and_others_are_untouched(r);
	r->looks = false;
	next_call(r);
}

static void answered(void *ctx, enum nri_call what, const struct nri_answer *a)
{
	struct rig *r = ctx;

	apply(r, a->updates, a->nr_updates);
	remember_files(r);
	if (what == NRI_CALL_SYNCHRONIZE) {
		wait_for_rest(r);
		return;
	}
	if (what == NRI_CALL_CREATE)
		created(r, a);
	containers_are_apart(r);
	if (what == NRI_CALL_CREATE && !a->status)
		return; /* it is reported to run */
	if (r->amid_plan && !r->crash.dead)
		loop_timer_set(r->later, random_below(&r->crash.random, AMID_MS));
	else
		next_call(r);
	r->amid_plan = false;
}

static void configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct rig *r = ctx;
	struct nri_container list[BOXES];
	struct key_value annotation[BOXES][2];
	size_t nr = 0;

	(void)name, (void)index, (void)events;
	EACH_BOX(r, b)
	{
		list[nr] = shown(b, annotation[nr]);
		nr++;
	}
	nri_runtime_synchronize(r->crash.runtime.nri, list, nr);
}

/* Lives */

static void perhaps_over(void *ctx)
{
	struct rig *r = ctx;

	if (r->crash.dead && !r->crash.runtime.stream)
		loop_stop(r->crash.loop);
}

static void died(void *ctx)
{
	struct rig *r = ctx;

	if (!r->crash.killed || r->crash.fault == NR_DEATHS)
		r->deaths[r->crash.fault]++;
	loop_timer_stop(r->poll);
	loop_timer_stop(r->later);
	r->amid_plan = false;
	perhaps_over(r);
}

static void too_slow(void *ctx)
{
	const struct rig *r = ctx;

	fail_msg("nothing happens any more; %s", r->unrest);
}

/* Without the daemon containers end, the one that is being moved among them, and others start, on
 * all CPUs. */
static void time_passes(struct rig *r)
{
	if (r->created && random_chance(&r->crash.random, 50)) {
		r->created->c.runs = r->created->loose = true;
		make_cgroup(r, r->created);
		r->came_away++;
	}
	r->created = NULL;
	EACH_BOX(r, b)
	if (random_chance(&r->crash.random, b->was.moving ? 15 : 4)) {
		r->ended_amid += b->was.moving;
		r->went_away++;
		end_box(r, b);
	}
	struct box *b = &r->box[random_below(&r->crash.random, BOXES)];
	if (!b->c.runs && random_chance(&r->crash.random, 25)) {
		name_box(r, b);
		b->c.runs = b->loose = true;
		make_cgroup(r, b);
		r->came_away++;
	}
}

#ifdef NUMAFIT_FAULTS
static void choose_fault(struct rig *r, unsigned round)
{
	static const enum fault points[] = {FAULT_TO_WRITE_CGROUP, FAULT_TO_WRITE_MEMS,
		FAULT_CGROUP_WRITTEN, FAULT_MEMS_WRITTEN, FAULT_TO_APPEND, FAULT_HALF_LINE,
		FAULT_APPENDED, FAULT_COMMITTED, FAULT_BETWEEN_LINES, NR_DEATHS, NR_DEATHS,
		NR_DEATHS};
	struct crash_rig *c = &r->crash;

	c->fault = points[round % (sizeof points / sizeof *points)];
	c->daemon.fault = NULL;
	c->daemon.line = c->fault == FAULT_BETWEEN_LINES ? LINE_BYTES : 0;
	if (c->fault == NR_DEATHS)
		return;
	const bool mems = c->fault == FAULT_TO_WRITE_MEMS || c->fault == FAULT_MEMS_WRITTEN;
	(void)snprintf(c->fault_text, sizeof c->fault_text, "%s:%u", fault_name(c->fault),
		1 + random_below(&c->random, mems ? MEMS_PASSES : PASSES));
	c->daemon.fault = c->fault_text;
}
#else
static void choose_fault(struct rig *r, unsigned round)
{
	(void)round;
	r->crash.fault = NR_DEATHS; /* any moment: there is no other one */
}
#endif

static void one_life(struct rig *r, unsigned round)
{
	struct crash_rig *c = &r->crash;

	c->dead = c->killed = false;
	r->looks = true;
	choose_fault(r, round);
	EACH_BOX(r, stays)
	let_it_stay(r, stays, random_chance(&c->random, 7));
	c->calls = c->fault < NR_DEATHS ? 2 * CALLS : 1 + random_below(&c->random, CALLS);
	c->daemon.mems_ms = random_below(&c->random, MEMS_MS);
	c->daemon.setting[2] = random_chance(&c->random, 60) ? "topologyManagerPolicy=restricted"
							     : "topologyManagerPolicy=best-effort";
	crash_begin(c);
	crash_live(c);
	hang_up(&r->asked);
	remember_files(r);
	look_at_what_is_left(r);
	EACH_BOX(r, b)
	if (b->stays) { /* its memory may be where the journal has none for it: a sweep rewrites it
			 */
		b->loose = true;
		b->was.known = false;
		let_it_stay(r, b, false);
	}
	time_passes(r);
	crash_assert_no_journal_set_aside(c);
}

static struct rig *rig_new(void)
{
	struct rig *r = calloc(1, sizeof *r);
	struct crash_rig *c = &r->crash;

	crash_init(c, r, died, too_slow);
	(void)snprintf(r->root, sizeof r->root, "%s/root", c->daemon.dir);
	(void)snprintf(c->daemon.machine, sizeof c->daemon.machine, "%.*s/four.machine", TEXT,
		c->daemon.dir);
	r->made.root = c->daemon.root = r->root;
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		cpuset_add(&r->made.all, cpu);
	make_system(r);
	r->asked.rig = r;
	c->daemon.setting[0] = "logLevel=info";
	c->daemon.setting[1] = "sweepInterval=10ms";
	c->daemon.setting[3] = "defragment.mode=on-demand";
	c->daemon.setting[4] = "defragment.minInterval=0s";
	c->daemon.setting[5] = "sharedPoolStep=0";
	c->kill_us = KILL_US;
	c->nr_faults = NR_DEATHS;
	crash_log_to_file(c);
	r->poll = loop_timer_new(c->loop, wait_for_rest, r);
	r->later = loop_timer_new(c->loop, go_on_amid, r);
	c->runtime = (struct fake_runtime){.loop = c->loop,
		.options = {.name = "crash", .version = "1"},
		.events = {.ctx = r, .configured = configured, .answered = answered},
		.nri_version = "v0.12.5",
		.on_update = on_set,
		.on_closed = perhaps_over};
	return r;
}

static void a_move_survives_kill_9_between_its_steps(void **state)
{
	const unsigned rounds = crash_rounds(ROUNDS);
	struct rig *r = rig_new();

	(void)state;
	for (unsigned i = 0; i < rounds; i++)
		one_life(r, i);
	print_message("%u lives, %u creates answered, %u with CPUs of their own; %u times moves "
		      "were asked for, %u plans, %u made, %u errors; %u times at rest; %u came "
		      "and %u went without it\n",
		rounds, r->creates, r->owners, r->asks, r->plans, r->moves, r->errors, r->rests,
		r->came_away, r->went_away);
	print_message("it died %u times amid a move: %u of these containers ended then, %u came "
		      "where they were to go, %u back; %u times another one had kept its place\n",
		r->amid, r->ended_amid, r->ended_there, r->ended_back, r->kept);
#ifdef NUMAFIT_FAULTS
	for (unsigned f = 0; f < NR_DEATHS; f++)
		if (r->deaths[f])
			print_message("%s: %u\n", fault_name((enum fault)f), r->deaths[f]);
#endif
	/* a few rounds may all die before what is rare */
	assert_true(r->amid > rounds / 36 && r->moves > rounds / 8 && r->rests > rounds / 4);
	if (rounds > MANY)
		assert_true(r->ended_there && r->ended_back && r->ended_amid && r->kept);
	crash_fini(&r->crash);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_move_survives_kill_9_between_its_steps),
	};

	json_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
