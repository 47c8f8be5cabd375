/* The daemon is killed (SIGKILL) at random moments between and during creates, 200 times over, and
 * started again: every container that was answered keeps its CPUs, and no CPU is given twice. The
 * daemon is the real program; this test is its container runtime. CRASH_ROUNDS=n changes how often.
 */
#include <codec/fields_json.h>
#include <codec/placement_json.h>
#include <io/loop.h>
#include <nri/runtime.h>
#include <nri/session.h>
#include <numafit/text.h>

#include "core_random.h"

#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum {
	ROUNDS = 200,
	CONTAINERS = 24,
	CALLS = 12,
	ID_MAX = 24,
	LIST_MAX = 512,
	STARTUP_MS = 20000,
	KILL_US = 700
};

struct box {
	bool runs, exclusive;
	char id[ID_MAX], pod[ID_MAX], cpus[LIST_MAX], mems[LIST_MAX], placement[PLACEMENT_JSON_MAX];
	unsigned cpu;
	int64_t created;
};

struct rig {
	char dir[64], socket[128], run[128], program[PATH_MAX], machine[PATH_MAX];
	struct loop *loop;
	struct loop_timer *watchdog;
	struct listener *listener;
	struct stream *stream;
	struct nri_runtime *runtime;
	struct random random;
	pid_t daemon;
	bool killed, journal_only; /* journal_only: the runtime shows no annotations */
	unsigned calls, next, answers, adjusted;
	struct box box[CONTAINERS];
	struct box *asked; /* its create is unanswered */
};

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
		if (b->exclusive && strcmp(b->cpus, a->updates[i].cpus) != 0)
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
		.cgroup_parent = b->cpu ? "/kubepods/pod1" : "/kubepods/burstable/pod1",
		.id = b->id,
		.name = "main",
		.cpus = b->cpus,
		.mems = b->mems,
		.created_at_ns = b->created,
	};

	c.resources.has_shares = c.resources.has_memory_limit = true;
	c.resources.cpu_shares = b->cpu ? 1024 * b->cpu : 100;
	c.resources.memory_limit = INT64_C(1) << 30;
	if (*b->placement && !r->journal_only) {
		*annotation = (struct key_value){NRI_PLACEMENT_ANNOTATION, b->placement};
		c.annotations = annotation;
		c.nr_annotations = 1;
	}
	return c;
}

static void kill_daemon(void *ctx)
{
	struct rig *r = ctx;

	r->killed = true;
	assert_int_equal(kill(r->daemon, SIGKILL), 0);
	assert_int_equal(waitpid(r->daemon, NULL, 0), r->daemon);
	stream_close(r->stream);
	r->stream = NULL;
	loop_stop(r->loop);
}

/* At the last call of a round the daemon dies before, while or shortly after it works on it. */
static void call(struct rig *r, enum nri_call what, const struct box *b)
{
	struct key_value annotation;
	struct nri_container c = shown(r, b, &annotation);

	nri_runtime_call(r->runtime, what, &c);
	flush(r);
	if (--r->calls > 0)
		return;
	usleep(random_below(&r->random, KILL_US));
	kill_daemon(r);
}

static void next_call(struct rig *r)
{
	struct box *b = &r->box[random_below(&r->random, CONTAINERS)];

	if (r->killed)
		return;
	if (b->runs) {
		b->runs = false; /* its process has ended, whether the daemon hears of it or not */
		call(r, NRI_CALL_STOP, b);
		return;
	}
	*b = (struct box){.cpu = random_below(&r->random, 4), .created = ++r->next};
	b->exclusive = b->cpu > 0;
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

		assert_int_equal(cpuset_count(&cpus), b->cpu);
	}
	b->runs = true;
	r->adjusted++;
}

static void answered(void *ctx, enum nri_call what, const struct nri_answer *a)
{
	struct rig *r = ctx;

	apply_updates(r, a);
	if (what == NRI_CALL_CREATE)
		created(r, a);
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
	(void)ctx;
	fail_msg("the daemon closed its connection (%d)", error);
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

static void start_daemon(struct rig *r)
{
	char machine[PATH_MAX + 16], nri[160], run[160];

	(void)snprintf(machine, sizeof machine, "machine=%s", r->machine);
	(void)snprintf(nri, sizeof nri, "nri.socketPath=%s", r->socket);
	(void)snprintf(run, sizeof run, "runDirectory=%s", r->run);
	r->daemon = fork();
	assert_true(r->daemon >= 0);
	if (r->daemon == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failing test leaves nobody behind */
		(void)execl(r->program, r->program, "--set", machine, "--set", nri, "--set", run,
			"--set", "reservedSystemCPUs=0", "--set", "logLevel=error", "--set",
			"sharedPoolStep=2", (char *)NULL);
		_exit(127);
	}
}

static void one_life(struct rig *r)
{
	const struct nri_runtime_options options = {
		.name = "crash", .version = "1", .state_change = random_chance(&r->random, 50)};
	const struct nri_runtime_events events = {
		.ctx = r, .configured = configured, .answered = answered};

	r->killed = false;
	r->asked = NULL;
	r->journal_only = random_chance(&r->random, 50);
	r->calls = 1 + random_below(&r->random, CALLS);
	r->runtime = nri_runtime_new(&options, &events);
	start_daemon(r);
	loop_timer_set(r->watchdog, STARTUP_MS);
	loop_run(r->loop);
	nri_runtime_free(r->runtime);
}

static void find_program(struct rig *r)
{
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

	assert_true(len > 0);
	self[len] = '\0';
	*strrchr(self, '/') = '\0'; /* build/VARIANT/test */
	assert_true(snprintf(r->program, sizeof r->program, "%s/../numafitd", self) < PATH_MAX);
	if (access(r->program, X_OK) != 0)
		fail_msg("%s is not built", r->program);
	assert_non_null(realpath("test/machines/kep3545-4.machine", r->machine));
}

static void answered_placements_survive_kill_9_at_any_moment(void **state)
{
	const char *rounds_text = getenv("CRASH_ROUNDS"), *seed = getenv("SEED");
	unsigned rounds = rounds_text ? (unsigned)atoi(rounds_text) : ROUNDS;
	struct rig *r = calloc(1, sizeof *r);
	char remove[160];

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	find_program(r);
	r->random.state = seed ? strtoull(seed, NULL, 0) : 20261121;
	(void)snprintf(r->dir, sizeof r->dir, "/tmp/numafit-crash.XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	(void)snprintf(r->socket, sizeof r->socket, "%s/nri.sock", r->dir);
	(void)snprintf(r->run, sizeof r->run, "%s/run", r->dir);
	r->loop = loop_new();
	r->watchdog = loop_timer_new(r->loop, too_slow, r);
	r->listener = listener_new(r->loop, r->socket, 0600, r, accepted, NULL);
	assert_non_null(r->listener);
	for (unsigned i = 0; i < rounds; i++)
		one_life(r);
	print_message("%u lives, %u creates answered, %u of them pinned\n", rounds, r->answers,
		r->adjusted);
	assert_true(r->adjusted > rounds / 2);
	loop_free(r->loop);
	(void)snprintf(remove, sizeof remove, "rm -rf %s", r->dir);
	assert_int_equal(system(remove), 0);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answered_placements_survive_kill_9_at_any_moment),
	};

	json_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
