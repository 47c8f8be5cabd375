/* A config file that changes while containers run: they do not notice, who comes later does. The
 * daemon is the real program; this test is its container runtime, the reader of its log, and the
 * kubelet that swaps its ConfigMap. */
#include <codec/fields_json.h>
#include <codec/placement_json.h>
#include <codec/status_json.h>
#include <host/discover.h>
#include <io/loop.h>
#include <nri/runtime.h>
#include <nri/session.h>
#include <numafit-cli/ask.h>
#include <numafitd/cluster.h>
#include <numafitd/config.h>
#include <numafitd/daemon.h>

#include "daemon_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "fake_api.h"

enum {
	BOXES = 12,
	NAME_BYTES = 8,
	LOG_BYTES = 4 << 20,
	PATIENCE_MS = 30000,
	SHARES_PER_CPU = 1024,
	STATUS_BYTES = 4 << 20,
	SET_MAX = PATH_MAX + 128
};

struct box {
	char id[NAME_BYTES], cpus[CPUSET_TEXT_MAX], mems[NODESET_TEXT_MAX],
		placement[PLACEMENT_JSON_MAX];
	bool runs;
	unsigned cpu;
};

struct rig {
	struct daemon_rig daemon;
	struct loop *loop;
	struct loop_timer *watchdog;
	struct listener *listener;
	struct stream *stream, *reader;
	struct nri_runtime *runtime;
	struct box box[BOXES], *asked;
	unsigned updates, swaps;
	bool answered, synchronized;
	size_t log_len, seen; /* seen: where await_log() goes on */
	char log[LOG_BYTES];
	char directory[PATH_MAX], config[PATH_MAX + 32];
	/* The API server, where one is wanted, and what it was asked */
	struct fake_api *api;
	unsigned reports, watches;
	bool knows_us;
	char evicted[128]; /* pods, each after a blank */
	char event[2048], refusal[512];
};

/* The runtime */

static void flush(struct rig *r)
{
	const void *data;
	size_t len;

	while (r->stream && (len = nri_runtime_take(r->runtime, &data)) > 0)
		(void)stream_write(r->stream, data, len);
}

static struct nri_container shown(const struct box *b, struct key_value *annotation)
{
	struct nri_container c = {
		.sandbox_id = b->id,
		.pod_uid = b->id,
		.pod_ns = "default",
		.pod_name = b->id,
		.cgroup_parent = b->cpu ? "/kubepods/pod1" : "/kubepods/burstable/pod1",
		.id = b->id,
		.name = "main",
		.cpus = b->cpus,
		.mems = b->mems,
	};

	c.resources.has_shares = c.resources.has_memory_limit = true;
	c.resources.cpu_shares = b->cpu ? SHARES_PER_CPU * b->cpu : 100;
	c.resources.memory_limit = INT64_C(1) << 30;
	*annotation = (struct key_value){NRI_PLACEMENT_ANNOTATION, b->placement};
	c.annotations = annotation;
	c.nr_annotations = *b->placement != '\0';
	return c;
}

static void apply_updates(struct rig *r, const struct nri_update *u, size_t nr)
{
	r->updates += (unsigned)nr;
	for (size_t i = 0; i < nr; i++)
		for (unsigned k = 0; k < BOXES; k++)
			if (strcmp(r->box[k].id, u[i].container_id) == 0)
				assert_true(text_copy(
					r->box[k].cpus, sizeof r->box[k].cpus, u[i].cpus));
}

static void on_answer(void *ctx, enum nri_call what, const struct nri_answer *a)
{
	struct rig *r = ctx;
	struct box *b = r->asked;

	apply_updates(r, a->updates, a->nr_updates);
	r->answered = true;
	r->synchronized = r->synchronized || what == NRI_CALL_SYNCHRONIZE;
	if (a->status)
		(void)text_copy(r->refusal, sizeof r->refusal, a->message);
	if (what == NRI_CALL_CREATE && !a->status) {
		assert_true(text_copy(b->cpus, sizeof b->cpus, a->cpus));
		assert_true(text_copy(b->mems, sizeof b->mems, a->mems));
		assert_true(text_copy(b->placement, sizeof b->placement, a->annotations[0].value));
		b->runs = true;
	}
	loop_stop(r->loop);
}

static void on_configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct rig *r = ctx;
	struct nri_container list[BOXES];
	struct key_value annotation[BOXES];
	size_t nr = 0;

	(void)name, (void)index, (void)events;
	for (unsigned i = 0; i < BOXES; i++)
		if (r->box[i].runs) {
			list[nr] = shown(&r->box[i], &annotation[nr]);
			nr++;
		}
	nri_runtime_synchronize(r->runtime, list, nr);
}

static bool set_unasked(void *ctx, const struct nri_update *updates, size_t nr)
{
	apply_updates(ctx, updates, nr);
	return true;
}

static void data_came(void *ctx, const void *data, size_t len)
{
	struct rig *r = ctx;

	if (nri_runtime_feed(r->runtime, data, len) < 0)
		fail_msg("%s", nri_runtime_error(r->runtime));
	flush(r);
}

static void hung_up(void *ctx, int error)
{
	struct rig *r = ctx;

	(void)error;
	r->stream = NULL;
}

static struct stream_events accepted(void *ctx, struct stream *s)
{
	static const struct nri_runtime_options options = {.name = "reload", .version = "1"};
	struct rig *r = ctx;
	const struct nri_runtime_events events = {
		.ctx = r, .configured = on_configured, .answered = on_answer};

	nri_runtime_free(r->runtime);
	r->runtime = nri_runtime_new(&options, &events);
	nri_runtime_accept_updates(r->runtime, "0.13.0", set_unasked);
	r->stream = s;
	r->synchronized = false;
	return (struct stream_events){.ctx = r, .data = data_came, .closed = hung_up};
}

/* The log */

static void log_came(void *ctx, const void *data, size_t len)
{
	struct rig *r = ctx;

	assert_true(r->log_len + len < LOG_BYTES);
	memcpy(r->log + r->log_len, data, len);
	r->log_len += len;
	r->log[r->log_len] = '\0';
	loop_stop(r->loop);
}

static void log_ended(void *ctx, int error)
{
	struct rig *r = ctx;

	(void)error;
	r->reader = NULL;
	loop_stop(r->loop);
}

static void too_slow(void *ctx)
{
	struct rig *r = ctx;

	fail_msg("nothing happens any more; the log: %s", r->log + r->seen);
}

static void run_until(struct rig *r, const bool *is)
{
	loop_timer_set(r->watchdog, PATIENCE_MS);
	while (!*is)
		loop_run(r->loop);
	loop_timer_stop(r->watchdog);
}

/* The next line with that text, as a string until the next call. */
static const char *await_log(struct rig *r, const char *text)
{
	static char line[8192];
	const char *at, *end;

	loop_timer_set(r->watchdog, PATIENCE_MS);
	while (!(at = strstr(r->log + r->seen, text)) || !(end = strchr(at, '\n'))) {
		if (!r->reader)
			fail_msg("the daemon ended without a word of %s: %s", text, r->log);
		loop_run(r->loop);
	}
	loop_timer_stop(r->watchdog);
	assert_true((size_t)(end - at) < sizeof line);
	memcpy(line, at, (size_t)(end - at));
	line[end - at] = '\0';
	r->seen = (size_t)(end - r->log);
	return line;
}

static unsigned count_log(const struct rig *r, const char *text)
{
	unsigned nr = 0;

	for (const char *at = r->log; (at = strstr(at, text)); at++)
		nr++;
	return nr;
}

/* The kubelet and its ConfigMap: the file is a link into ..data, which is a link to a directory. */

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	rig_must(f && fputs(text, f) >= 0 && fclose(f) == 0, path);
}

static void swap(struct rig *r, const char *text)
{
	char dir[PATH_MAX + 32], file[PATH_MAX + 64], new[PATH_MAX + 32], data[PATH_MAX + 32],
		old[PATH_MAX + 32], name[32];

	(void)snprintf(name, sizeof name, "..2026_%u", ++r->swaps);
	(void)snprintf(dir, sizeof dir, "%s/%s", r->directory, name);
	(void)snprintf(file, sizeof file, "%s/numafitd.yaml", dir);
	(void)snprintf(new, sizeof new, "%s/..data_tmp", r->directory);
	(void)snprintf(data, sizeof data, "%s/..data", r->directory);
	rig_must(mkdir(dir, 0700) == 0, dir);
	write_text(file, text);
	rig_must(symlink(name, new) == 0, new);
	rig_must(rename(new, data) == 0, data);
	(void)snprintf(old, sizeof old, "%s/..2026_%u", r->directory, r->swaps - 1);
	(void)snprintf(file, sizeof file, "%s/numafitd.yaml", old);
	(void)unlink(file);
	(void)rmdir(old);
}

static void hold_config(struct rig *r, const char *text)
{
	rig_must(mkdir(r->directory, 0700) == 0, r->directory);
	swap(r, text);
	rig_must(symlink("..data/numafitd.yaml", r->config) == 0, r->config);
	r->daemon.config = r->config;
}

/* What tests say */

static void begin(struct rig *r)
{
	const struct stream_events events = {r, log_came, log_ended};
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	r->daemon.log = ends[1];
	rig_start(&r->daemon);
	(void)close(ends[1]);
	r->reader = stream_adopt(r->loop, ends[0], &events, NULL);
	assert_non_null(r->reader);
	run_until(r, &r->synchronized);
}

static void end(struct rig *r, int signum)
{
	int status = rig_end(&r->daemon, signum);

	if (signum == SIGTERM)
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	stream_close(r->stream);
	stream_close(r->reader);
	r->stream = r->reader = NULL;
	r->synchronized = false;
}

static void call(struct rig *r, enum nri_call what, struct box *b)
{
	struct key_value annotation;
	struct nri_container c = shown(b, &annotation);

	r->answered = false;
	r->asked = b;
	nri_runtime_call(r->runtime, what, &c);
	flush(r);
	run_until(r, &r->answered);
}

/* A container with that many CPUs of its own; 0: in the shared pool. NULL: it was refused. */
static struct box *create(struct rig *r, const char *id, unsigned cpu)
{
	struct box *b = r->box;

	while (*b->id)
		b++;
	assert_true(b < r->box + BOXES);
	*b = (struct box){.cpu = cpu};
	assert_true(text_copy(b->id, sizeof b->id, id));
	call(r, NRI_CALL_CREATE, b);
	if (b->runs) {
		call(r, NRI_CALL_POST_CREATE, b);
		call(r, NRI_CALL_POST_START, b);
		return b;
	}
	*b->id = '\0';
	return NULL;
}

static void stop(struct rig *r, struct box *b)
{
	struct box gone = *b;

	*b = (struct box){0};
	call(r, NRI_CALL_STOP, &gone);
}

/* Its answer in *st, from *a. */
static void ask_status(struct rig *r, struct arena *a, struct status *st)
{
	char path[PATH_MAX + 64], *document;
	struct err e = {0};
	size_t len;

	(void)snprintf(path, sizeof path, "%s/numafitd.sock", r->daemon.run);
	if (ask_daemon(path, "status", &document, &len, &e) < 0)
		fail_msg("%s", e.text);
	arena_init(a, STATUS_BYTES);
	if (status_json_parse(document, len, a, st, &e) < 0)
		fail_msg("%s", e.text);
	free(document);
}

static void assert_in_force(struct rig *r, const char *key, const char *value, const char *refused)
{
	struct status st;
	struct arena a;
	bool found = false;

	ask_status(r, &a, &st);
	for (size_t i = 0; i < st.settings.nr; i++)
		if (text_equal(st.settings.at[i].key, key)) {
			assert_string_equal(st.settings.at[i].value, value);
			found = true;
		}
	assert_true(found);
	assert_non_null(st.info.config);
	assert_string_equal(st.info.config->file, r->config);
	if (!refused)
		assert_null(st.info.config->refused);
	else if (!st.info.config->refused || !strstr(st.info.config->refused, refused))
		fail_msg("refused: %s", st.info.config->refused);
	arena_fini(&a);
}

static bool has_policy(const struct box *b, const char *policy)
{
	char text[64];

	(void)snprintf(text, sizeof text, "\"policy\":\"%s\"", policy);
	return strstr(b->placement, text);
}

static bool runs_on_cpu_0(const struct box *b)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(&cpus, b->cpus, strlen(b->cpus), NULL), 0);
	return cpuset_has(&cpus, 0);
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof *r);

	json_seed();
	(void)signal(SIGPIPE, SIG_IGN);
	rig_init(&r->daemon);
	(void)snprintf(
		r->directory, sizeof r->directory, "%.*s/config", PATH_MAX - 16, r->daemon.dir);
	(void)snprintf(r->config, sizeof r->config, "%s/numafitd.yaml", r->directory);
	r->loop = loop_new();
	r->watchdog = loop_timer_new(r->loop, too_slow, r);
	r->listener = listener_new(r->loop, r->daemon.socket, 0600, r, accepted, NULL);
	assert_non_null(r->listener);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	if (r->daemon.pid)
		(void)rig_end(&r->daemon, SIGKILL);
	if (r->api)
		fake_api_fini_on(r->api);
	free(r->api);
	loop_free(r->loop);
	nri_runtime_free(r->runtime);
	rig_fini(&r->daemon);
	free(r);
	return 0;
}

static const struct swapped {
	const char *text;
	const char *policy, *refused; /* in force then; NULL: as before; what is said */
	bool strict;
} texts[] = {
	{"topologyManagerPolicy: restricted\n", "restricted", NULL, false},
	{"topologyManagerPolicy: single\n", NULL, "line 1: topologyManagerPolicy: ", false},
	{"topologyManagerPolicy: none\n"
	 "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true', full-pcpus-only: 'true'}\n",
		"none", NULL, true},
	{"mode: [\n", NULL, "did not find expected", true},
	{"topologyManagerPolicy: best-effort\ncpuManagerPolicy: none\nmemoryManagerPolicy: None\n"
	 "sharedPoolStep: 4\nonAdopt: leave\n",
		"best-effort", NULL, false},
	{"logLevel: info\ncpuManagerPolicyOptions: {align-by-socket: 'true'}\n", NULL,
		"Alpha-level Options not enabled", false},
	{"nodes:\n- names: [other]\n  settings:\n    topologyManagerPolicy: x\n", NULL,
		"line 4: topologyManagerPolicy: ", false},
	{"topologyManagerScope: pod\nunmatchedNodes: as-above\nnodes:\n"
	 "- names: ['*']\n  settings: {topologyManagerPolicy: single-numa-node}\n"
	 "featureGates: {TopologyManagerPolicyAlphaOptions: true}\n"
	 "topologyManagerPolicyOptions: {numa-allocation-strategy: least-allocated}\n"
	 "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n",
		"single-numa-node", NULL, true},
	{"refusalAction: evict\n", NULL, "refusalAction: evict needs", true},
};
enum { NR_TEXTS = sizeof texts / sizeof *texts, SWAPS = 50 };

/* Who comes now is placed by that policy, on reserved CPU 0 or not; nobody else hears of it. */
static void assert_newcomer(struct rig *r, const char *policy, bool strict)
{
	struct box *b = create(r, "new", 0);

	assert_non_null(b);
	if (!has_policy(b, policy))
		fail_msg("wanted %s: %s", policy, b->placement);
	assert_int_equal(runs_on_cpu_0(b), !strict);
	stop(r, b);
	assert_int_equal(r->updates, 0);
}

static void reloaded_settings_apply_to_new_containers_and_not_to_running_ones(void **state)
{
	struct rig *r = *state;
	struct box *shared, before[BOXES];
	const char *policy = "restricted";
	char id[NAME_BYTES];

	hold_config(r, "topologyManagerPolicy: best-effort\n");
	begin(r);
	for (unsigned i = 0; i < 3; i++) {
		(void)snprintf(id, sizeof id, "own%u", i);
		assert_non_null(create(r, id, 2 + i));
		(void)snprintf(id, sizeof id, "any%u", i);
		assert_non_null(create(r, id, 0));
	}
	shared = &r->box[1];
	assert_true(runs_on_cpu_0(shared));
	r->updates = 0;
	memcpy(before, r->box, sizeof before);
	for (unsigned i = 0; i < SWAPS; i++) {
		const struct swapped *s = &texts[i % NR_TEXTS];

		policy = s->policy ? s->policy : policy;
		swap(r, s->text);
		const char *line = await_log(r, "config-re"); /* -loaded or -fused */
		if (s->refused && !strstr(line, s->refused))
			fail_msg("%s: %s", s->text, line);
		if (!s->refused && strncmp(line, "config-reloaded", 15) != 0)
			fail_msg("%s: %s", s->text, line);
		assert_newcomer(r, policy, s->strict);
		if (i < NR_TEXTS)
			assert_in_force(r, "topologyManagerPolicy", policy, s->refused);
	}
	assert_memory_equal(r->box, before, sizeof before);
	assert_int_equal(count_log(r, "updates-sent"), 0);
	assert_int_equal(count_log(r, "config-reloaded") + count_log(r, "config-refused"), SWAPS);

	/* with a container that has CPUs of its own the pool moves, and takes all with it */
	swap(r, "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\nsharedPoolStep: 0\n");
	(void)await_log(r, "config-reloaded");
	assert_true(runs_on_cpu_0(shared));
	assert_non_null(create(r, "last", 20));
	assert_int_equal(r->updates, 3);
	assert_false(runs_on_cpu_0(shared));
}

/* The records of both journals decide the same once more. */
static void assert_replays(const struct rig *r)
{
	char command[3 * PATH_MAX];

	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(command, sizeof command, "%.*snumafit replay %s%s >%s/replay 2>&1",
			(int)(strrchr(r->daemon.program, '/') + 1 - r->daemon.program),
			r->daemon.program, r->daemon.journal, i ? ".1" : "", r->daemon.dir);
		assert_int_equal(system(command), 0);
	}
}

static void journals_replay_and_restarts_fold_across_changes(void **state)
{
	static const char *const changes[] = {
		"cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n",
		"cpuManagerPolicy: none\n",
		"topologyManagerPolicy: single-numa-node\n",
	};
	struct rig *r = *state;
	struct box before[BOXES];

	hold_config(r, "topologyManagerPolicy: restricted\n");
	begin(r);
	assert_non_null(create(r, "own", 2));
	assert_non_null(create(r, "any", 0));
	assert_non_null(create(r, "own2", 3));
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		memcpy(before, r->box, sizeof before);
		r->updates = 0;
		swap(r, changes[i]);
		(void)await_log(r, "config-reloaded");
		assert_newcomer(r, i == 2 ? "single-numa-node" : "best-effort", i == 0);
		assert_replays(r);
		end(r, i % 2 ? SIGKILL : SIGTERM);
		/* the file changes while nobody looks, and back */
		swap(r, i ? changes[i - 1] : "logLevel: info\n");
		begin(r);
		(void)await_log(r, "journal-folded");
		assert_memory_equal(r->box, before, sizeof before);
		assert_int_equal(r->updates, 0);
		assert_newcomer(r, "best-effort", i == 1);
		assert_replays(r);
	}
}

static void mode_release_gives_back_what_was_pinned(void **state)
{
	struct rig *r = *state;
	struct box *own, *any, *other = &r->box[BOXES - 1];

	begin(r);
	own = create(r, "own", 2);
	any = create(r, "any", 0);
	*other = (struct box){.id = "other", .cpus = "3", .mems = "0", .runs = true};
	end(r, SIGKILL);
	assert_int_equal(unlink(r->daemon.journal), 0); /* the annotations are enough */
	r->daemon.setting[0] = "mode=release";
	r->updates = 0;
	begin(r);
	(void)await_log(r, "pins-released");
	assert_int_equal(r->updates, 2);
	assert_string_equal(own->cpus, any->cpus);
	assert_true(runs_on_cpu_0(own)); /* which is reserved */
	assert_string_equal(other->cpus, "3");
	end(r, SIGTERM);
}

static void a_signal_reads_a_file_that_is_written_in_place(void **state)
{
	struct rig *r = *state;
	struct box *own;

	(void)snprintf(r->config, sizeof r->config, "%s.yaml", r->directory);
	r->daemon.config = r->config;
	write_text(r->config, "topologyManagerPolicy: none\n");
	begin(r);
	own = create(r, "own", 2);
	assert_non_null(own);
	assert_true(has_policy(own, "none"));
	assert_int_equal(kill(r->daemon.pid, SIGHUP), 0);
	assert_non_null(strstr(await_log(r, "config-reloaded"), "keys=0 changed=nothing"));
	write_text(
		r->config, "topologyManagerPolicy: restricted\nschedulerHint: {order: volcano}\n");
	assert_int_equal(kill(r->daemon.pid, SIGHUP), 0);
	assert_non_null(strstr(await_log(r, "config-reloaded"),
		"keys=2 changed=\"topologyManagerPolicy: none -> restricted; schedulerHint.order: "
		"numafit,koordinator,katalyst,volcano,crane,godel -> volcano\""));
	assert_newcomer(r, "restricted", false);
	write_text(r->config, "topologyManagerPolicy: none\nnri:\n  socketPath: x\n");
	assert_int_equal(kill(r->daemon.pid, SIGHUP), 0);
	assert_non_null(strstr(await_log(r, "config-refused"), "line 3: nri.socketPath"));
	assert_newcomer(r, "restricted", false);
	assert_in_force(r, "topologyManagerPolicy", "restricted", "line 3: nri.socketPath");
}

static void a_setting_that_needs_a_restart_is_named_and_not_applied(void **state)
{
	struct rig *r = *state;
	struct status st;
	struct arena a;

	hold_config(r, "sharedPoolMinimum: 1\n");
	begin(r);
	swap(r, "mode: shadow\nkubeReserved: {cpu: 4}\ntopologyManagerPolicy: restricted\n");
	assert_non_null(strstr(await_log(r, "config-reloaded"), "keys=1 changed="));
	assert_non_null(
		strstr(await_log(r, "config-needs-restart"), "keys=\"mode, kubeReserved.cpu\""));
	assert_newcomer(r, "restricted", false);
	assert_in_force(r, "mode", "manage", NULL);
	ask_status(r, &a, &st);
	assert_string_equal(st.info.config->restart, "mode, kubeReserved.cpu");
	assert_int_equal(st.info.config->reloads, 1);
	arena_fini(&a);
	swap(r, "topologyManagerPolicy: none\n");
	(void)await_log(r, "config-reloaded");
	assert_newcomer(r, "none", false);
	assert_int_equal(count_log(r, "config-needs-restart"), 1);
}

/* What is right by itself, but not beside what cannot change before a restart. */
static void settings_that_contradict_each_other_are_refused(void **state)
{
	struct rig *r = *state;

	hold_config(r, "devicePlugin: {enabled: true}\nkubeletRootDirectory: /nowhere\n");
	begin(r);
	swap(r, "kubeletRootDirectory: /nowhere\ncpuManagerPolicy: none\nsharedPoolMinimum: 3\n");
	assert_non_null(strstr(await_log(r, "config-refused"),
		"with what needs a restart as it is: devicePlugin.enabled"));
	assert_in_force(r, "sharedPoolMinimum", "1", "devicePlugin.enabled");
}

static void a_file_that_vanishes_is_an_error_and_not_the_defaults(void **state)
{
	struct rig *r = *state;
	char away[PATH_MAX + 64];

	(void)snprintf(away, sizeof away, "%s.away", r->config);
	hold_config(r, "topologyManagerPolicy: none\n");
	begin(r);
	rig_must(rename(r->config, away) == 0, away);
	assert_non_null(strstr(await_log(r, "config-refused"), "No such file or directory"));
	assert_newcomer(r, "none", false);
	rig_must(rename(away, r->config) == 0, away);
	(void)await_log(r, "config-reloaded");
	assert_in_force(r, "topologyManagerPolicy", "none", NULL);
	assert_int_equal(count_log(r, "config-refused"), 1);
}

static void the_pool_keeps_a_cpu_when_all_others_are_held(void **state)
{
	struct rig *r = *state;

	hold_config(r, "sharedPoolStep: 0\n");
	r->daemon.setting[0] = "topologyManagerPolicy=none";
	begin(r);
	assert_non_null(create(r, "most", 31));
	assert_non_null(create(r, "more", 32));
	swap(r, "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n");
	const char *line = await_log(r, "config-re");
	if (!strstr(line, "config-refused") || !strstr(line, "none would be left in it"))
		fail_msg("%s", line);
	assert_in_force(r, "cpuManagerPolicyOptions.strict-cpu-reservation", "", "reserved CPUs");
}

/* The API server */

enum { UNAUTHORIZED = 401, CREATED = 201 };

static void note_eviction(struct rig *r, const char *pod)
{
	struct text t = {r->evicted, sizeof r->evicted, strlen(r->evicted), false};

	text_add(&t, " %.*s", (int)strcspn(pod, "/"), pod);
}

/* Pods p0 to p9, each of which somebody makes again when it goes; one fits on no machine. */
enum { LARGE = 9 };

static void list_pods(struct fake_ask *q)
{
	static const char large[] =
		"{\"name\":\"main\",\"resources\":{\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}}},"
		"{\"name\":\"web\",\"resources\":{\"limits\":{\"cpu\":\"65\",\"memory\":\"1Gi\"}}}";
	char list[8192];
	struct text t;

	text_init(&t, list, sizeof list);
	text_add(&t, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[");
	for (unsigned i = 0; i < 10; i++)
		text_add(&t,
			"%s{\"metadata\":{\"uid\":\"p%u\",\"name\":\"p%u\",\"namespace\":"
			"\"default\",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":"
			"\"ReplicaSet\",\"name\":\"r\",\"uid\":\"r\",\"controller\":true}]},"
			"\"spec\":{\"containers\":[%s]}}",
			i ? "," : "", i, i, i == LARGE ? large : "{\"name\":\"main\"}");
	text_add(&t, "]}");
	assert_false(t.cut);
	fake_api_answer(q, FAKE_OK, NULL, list);
}

static void serve(void *ctx, struct fake_ask *q)
{
	static const char pods[] = "/api/v1/namespaces/default/pods/";
	struct rig *r = ctx;

	if (!r->knows_us) {
		fake_api_answer(q, UNAUTHORIZED, NULL, "{}");
	} else if (strstr(q->path, "watch=1")) {
		r->watches++;
		fake_api_begin(q);
	} else if (strncmp(q->path, "/api/v1/pods?", 13) == 0) {
		list_pods(q);
	} else if (strncmp(q->path, "/api/v1/nodes/", 14) == 0) {
		fake_api_answer(q, FAKE_OK, NULL, "{\"metadata\":{\"uid\":\"n-1\"}}");
	} else if (strncmp(q->path, pods, sizeof pods - 1) == 0 && strstr(q->path, "/eviction")) {
		note_eviction(r, q->path + sizeof pods - 1);
		fake_api_answer(q, CREATED, NULL, "{}");
	} else {
		if (strstr(q->path, "/events"))
			(void)text_copy(r->event, sizeof r->event, q->body);
		r->reports += strstr(q->path, "/noderesourcetopologies/") != NULL;
		fake_api_answer(q, FAKE_OK, NULL, "{}");
	}
}

static void start_api(struct rig *r)
{
	r->api = calloc(1, sizeof *r->api);
	fake_api_init_on(r->api, r->loop);
	r->api->ctx = r;
	r->api->serve = serve;
	r->knows_us = true;
}

#define UNTIL(r, condition)                                                                        \
	do {                                                                                       \
		loop_timer_set((r)->watchdog, PATIENCE_MS);                                        \
		while (!(condition))                                                               \
			loop_run((r)->loop);                                                       \
		loop_timer_stop((r)->watchdog);                                                    \
	} while (0)

/* As a whole, or not yet. */
static void put_file(const struct rig *r, const char *name, const char *text)
{
	char path[PATH_MAX + 64], new[PATH_MAX + 64];

	(void)snprintf(path, sizeof path, "%s/%s", r->daemon.dir, name);
	(void)snprintf(new, sizeof new, "%s/new", r->daemon.dir);
	write_text(new, text);
	rig_must(rename(new, path) == 0, path);
}

/* What `numafit status` says of the credentials: that, or NULL: nothing. */
static void assert_credentials(struct rig *r, const char *unusable, uint64_t failures_min)
{
	struct status st;
	struct arena a;

	ask_status(r, &a, &st);
	assert_non_null(st.info.apiserver);
	assert_true(st.info.apiserver->failures >= failures_min);
	if (!unusable)
		assert_null(st.info.apiserver->unusable);
	else if (!st.info.apiserver->unusable || !strstr(st.info.apiserver->unusable, unusable))
		fail_msg("wanted %s: %s", unusable, st.info.apiserver->unusable);
	arena_fini(&a);
}

#define KUBECONFIG(cluster, user)                                                                  \
	"apiVersion: v1\nkind: Config\ncurrent-context: x\n"                                       \
	"clusters: [{name: x, cluster: {" cluster "}}]\nusers: [{name: x, user: {" user "}}]\n"    \
	"contexts: [{name: x, context: {cluster: x, user: x}}]\n"
#define SERVER "server: 'http://127.0.0.1:%u'"

static void begin_without_credentials(struct rig *r, char set[PATH_MAX + 64])
{
	(void)snprintf(set, PATH_MAX + 64, "apiServer.kubeconfig=%s/kubeconfig", r->daemon.dir);
	r->daemon.setting[0] = set;
	hold_config(r, "nodeResourceTopology: {enabled: true, interval: 20ms}\n");
	start_api(r);
	begin(r);
}

static void unusable_credentials_are_tried_until_they_work(void **state)
{
	static const struct {
		const char *text, *refused;
	} bad[] = {
		{"", "there is no current-context"},
		{"apiVersion: v1\nkind: Con", "there is no current-context"},
		{"a: [\n", "did not find expected"},
		{KUBECONFIG("server: https://x", "exec: {command: aws}"),
			"plugins are not supported"},
		{KUBECONFIG("server: x", ""), "begins with neither"},
		{KUBECONFIG("server: https://x", "tokenFile: none"), "/none: No such file"},
	};
	struct rig *r = *state;
	char set[PATH_MAX + 64], good[1024];

	begin_without_credentials(r, set);
	assert_non_null(strstr(await_log(r, "credentials-unusable"), "/kubeconfig: No such file"));
	assert_newcomer(r, "best-effort", false);
	assert_credentials(r, "/kubeconfig: No such file", 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		put_file(r, "kubeconfig", bad[i].text);
		if (!i || strcmp(bad[i].refused, bad[i - 1].refused))
			assert_non_null(strstr(await_log(r, bad[i].refused), "action=\"mend it"));
		assert_newcomer(r, "best-effort", false);
		assert_credentials(r, bad[i].refused, i + 1);
	}
	/* another setting does not need what is not there */
	swap(r, "nodeResourceTopology: {enabled: true, interval: 30ms}\nlogLevel: debug\n");
	(void)await_log(r, "config-reloaded");
	assert_int_equal(r->api->asked, 0);
	(void)snprintf(good, sizeof good, KUBECONFIG(SERVER ", certificate-authority: ca.crt", ""),
		r->api->port);
	put_file(r, "kubeconfig", good);
	(void)await_log(r, "/ca.crt: No such file");
	put_file(r, "ca.crt", "-----BEGIN CERTIFICATE-----\n"); /* not where it would be seen */
	(void)await_log(r, "credentials-usable");
	UNTIL(r, r->reports);
	assert_credentials(r, NULL, sizeof bad / sizeof *bad);
	assert_newcomer(r, "best-effort", false);
	end(r, SIGTERM);
}

static void credentials_that_became_unreadable_are_logged(void **state)
{
	struct rig *r = *state;
	char set[PATH_MAX + 64], good[1024];

	begin_without_credentials(r, set);
	(void)snprintf(good, sizeof good, KUBECONFIG(SERVER, ""), r->api->port);
	put_file(r, "kubeconfig", good);
	UNTIL(r, r->reports);
	assert_credentials(r, NULL, 1);
	put_file(r, "kubeconfig", "a: [\n");
	r->knows_us = false; /* a 401 has them read anew */
	assert_non_null(create(r, "own", 2));
	(void)await_log(r, "credentials-unreadable");
	assert_credentials(r, "did not find expected", 2);
	assert_newcomer(r, "best-effort", false);
	put_file(r, "kubeconfig", good);
	unsigned asked = r->api->asked;
	UNTIL(r, r->api->asked > asked + 1);
	assert_credentials(r, NULL, 2);
	r->knows_us = true;
	end(r, SIGTERM);
}

/* What asks for labels may come with a reload, too. */
static void labels_are_asked_for_once_the_credentials_are_there(void **state)
{
	struct rig *r = *state;
	char set[PATH_MAX + 64], good[1024];

	(void)snprintf(set, sizeof set, "apiServer.kubeconfig=%s/kubeconfig", r->daemon.dir);
	r->daemon.setting[0] = set;
	hold_config(r, "topologyManagerPolicy: none\n");
	start_api(r);
	begin(r);
	swap(r, "topologyManagerPolicy: none\nnodes:\n- {labels: {pool: a}, settings: {}}\n");
	(void)await_log(r, "/kubeconfig: No such file");
	(void)snprintf(good, sizeof good, KUBECONFIG(SERVER, ""), r->api->port);
	put_file(r, "kubeconfig", good);
	(void)await_log(r, "credentials-usable");
	UNTIL(r, r->api->asked);
	end(r, SIGTERM);
}

static void pods_are_evicted_while_the_settings_say_so(void **state)
{
	static const char text[] = "podsWatch: {enabled: true}\nrefusalAction: %s\n";
	static const char *const actions[] = {"error", "evict", "error", "evict"};
	struct rig *r = *state;
	char set[PATH_MAX + 64], config[256], id[NAME_BYTES];

	start_api(r);
	(void)snprintf(set, sizeof set, "apiServer.kubeconfig=%s", r->api->kubeconfig);
	r->daemon.setting[0] = set;
	for (unsigned i = 0; i < sizeof actions / sizeof *actions; i++) {
		(void)snprintf(config, sizeof config, text, actions[i]);
		if (i) {
			swap(r, config);
			(void)await_log(r, "config-reloaded");
		} else {
			hold_config(r, config);
			begin(r);
			UNTIL(r, r->watches); /* the list is there */
		}
		(void)snprintf(id, sizeof id, "p%u", i);
		assert_null(create(r, id, 65)); /* more CPUs than there are */
		if (i % 2)
			UNTIL(r, strstr(r->evicted, id));
	}
	assert_string_equal(r->evicted, " p1 p3"); /* they go out in the order of refusals */
	assert_int_equal(r->watches, 1);           /* what else there is goes on */
	end(r, SIGTERM);
}

static void a_refusal_names_the_container_that_does_not_fit(void **state)
{
	struct rig *r = *state;
	struct box large = {.id = "p9", .cpu = 66};
	char set[PATH_MAX + 64];

	start_api(r);
	(void)snprintf(set, sizeof set, "apiServer.kubeconfig=%s", r->api->kubeconfig);
	r->daemon.setting[0] = set;
	hold_config(r, "podsWatch: {enabled: true}\nevents: {enabled: true}\n");
	begin(r);
	UNTIL(r, r->watches);
	call(r, NRI_CALL_RUN_POD, &large);
	assert_non_null(strstr(r->refusal, ": container web: "));
	assert_non_null(strstr(await_log(r, "pod-refused"), ": container web: "));
	UNTIL(r, *r->event);
	assert_non_null(strstr(r->event, ": container web: "));
	end(r, SIGTERM);
}

/* Labels: the daemon's parts in this process. */

static unsigned step_of(struct config *c, enum config_match first)
{
	struct config_sections sections;
	struct settings s;
	struct err e;

	if (config_read(c, &s, &sections, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(sections.by_labels);
	assert_int_equal(sections.at[0].match, first);
	return s.shared_pool_step;
}

static void labels_choose_sections_and_outlive_the_daemon(void **state)
{
	static const char text[] =
		"sharedPoolStep: 1\n"
		"nodes:\n"
		"- {labels: {pool: a}, settings: {sharedPoolStep: 2}}\n"
		"- {labels: {pool: b, example.com/x: y}, settings: {sharedPoolStep: 3}}\n";
	static const struct key_value a[] = {{"pool", "a"}, {"kubernetes.io/arch", "amd64"}},
				      again[] = {{"kubernetes.io/arch", "amd64"}, {"pool", "a"}},
				      b[] = {{"example.com/x", "y"}, {"pool", "b"}};
	struct rig *r = *state;
	char set[PATH_MAX + 32], *dir = r->daemon.dir;
	const char *const sets[] = {set};
	const struct config_source from = {.file = r->config, .sets = sets, .nr_sets = 1};
	struct config c = {.from = from}, later = {.from = from}, given = {.from = from};
	struct err e = {0};

	(void)snprintf(set, sizeof set, "runDirectory=%s", dir);
	hold_config(r, text);
	assert_int_equal(config_read_file(&c, &e), 1);
	assert_int_equal(config_read_file(&c, &e), 0);
	assert_int_equal(step_of(&c, CONFIG_NEEDS_LABELS), 1);
	assert_int_equal(config_take_labels(&c, a, 2, dir, &e), 1);
	assert_int_equal(step_of(&c, CONFIG_THIS_NODE), 2);
	assert_int_equal(config_take_labels(&c, again, 2, dir, &e), 0);
	assert_int_equal(config_take_labels(&c, b, 2, dir, &e), 1);
	assert_int_equal(step_of(&c, CONFIG_OTHER_NODES), 3);
	assert_int_equal(config_read_file(&later, &e), 1);
	assert_int_equal(step_of(&later, CONFIG_OTHER_NODES), 3);
	assert_int_equal(config_take_labels(&later, a, 2, "/nowhere", &e), -ENOENT);
	assert_string_equal(e.text, "/nowhere/node-labels: No such file or directory");
	assert_int_equal(step_of(&later, CONFIG_THIS_NODE), 2);
	config_give_labels(&given, a, 2);
	assert_int_equal(config_take_labels(&given, b, 2, dir, &e), 0);
	assert_int_equal(config_read_file(&given, &e), 1);
	assert_int_equal(step_of(&given, CONFIG_THIS_NODE), 2);
	config_fini(&c);
	config_fini(&later);
	config_fini(&given);
}

/* As much of a daemon as settings need, in this process. */
static struct daemon *daemon_of(struct rig *r, struct config *c)
{
	struct daemon *d = calloc(1, sizeof *d);
	struct err e;

	d->loop = r->loop;
	d->configured.config = c;
	if (machine_load(r->daemon.machine, &d->topo, NULL, NULL, &e) < 0 ||
		config_read_file(c, &e) < 0 ||
		config_read(c, &d->settings, &d->configured.sections, &e) < 0)
		fail_msg("%s", e.text);
	d->configured.asked = d->settings;
	(void)snprintf(d->run.journal_path, sizeof d->run.journal_path, "%s/journal",
		d->settings.run_directory);
	if (advice_start(d, &e) < 0 || recorder_start(d, &e) < 0 ||
		reload_start(d, cluster_start, &e) < 0)
		fail_msg("%s", e.text);
	return d;
}

static void daemon_end(struct daemon *d)
{
	reload_stop(d);
	cluster_stop(d);
	recorder_stop(d);
	config_fini(d->configured.config);
	free(d);
}

static void labels_that_need_a_restart_end_the_daemon_when_they_come_first(void **state)
{
	static const char text[] = "nodes:\n"
				   "- {labels: {pool: a}, settings: {mode: shadow}}\n"
				   "- {labels: {pool: b}, settings: {logLevel: error,\n"
				   "  schedulerHint: {order: volcano}}}\n";
	static const struct key_value a[] = {{"pool", "a"}}, b[] = {{"pool", "b"}};
	struct rig *r = *state;
	char set[PATH_MAX + 32];
	const char *const sets[] = {set};
	const struct config_source from = {.file = r->config, .sets = sets, .nr_sets = 1};
	struct config first = {.from = from}, again = {.from = from};
	struct err e;

	(void)snprintf(set, sizeof set, "runDirectory=%s", r->daemon.dir);
	hold_config(r, text);
	struct daemon *d = daemon_of(r, &first);
	assert_true(reload_wants_labels(d));
	reload_set_labels(d, b, 1);
	assert_int_equal(d->settings.log_level, LOG_ERROR);
	assert_int_equal(d->advice.nr, 1);
	assert_int_equal(reload_verdict(d, &e), 0);
	reload_set_labels(d, a, 1); /* it was relabelled: somebody knows of it */
	assert_int_equal(d->settings.log_level, LOG_INFO);
	assert_int_equal(d->settings.mode, MODE_MANAGE);
	assert_int_equal(reload_verdict(d, &e), 0);
	daemon_end(d);

	(void)snprintf(set, sizeof set, "%s/node-labels", r->daemon.dir);
	assert_int_equal(unlink(set), 0);
	(void)snprintf(set, sizeof set, "runDirectory=%s", r->daemon.dir);
	d = daemon_of(r, &again);
	reload_set_labels(d, a, 1);
	assert_int_equal(reload_verdict(d, &e), -EAGAIN);
	assert_non_null(strstr(e.text, "(mode)"));
	daemon_end(d);
}

/* A kubeconfig of an API server that is not there, as a setting. */
static void give_api_server(struct rig *r, char set[SET_MAX])
{
	char path[PATH_MAX + 64];

	(void)snprintf(path, sizeof path, "%s/kubeconfig", r->daemon.dir);
	(void)snprintf(set, SET_MAX, "apiServer.kubeconfig=%s", path);
	r->daemon.setting[0] = set;
	write_text(path, "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
			 "clusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\n"
			 "users: [{name: x, user: {token: x}}]\n"
			 "contexts: [{name: x, context: {cluster: x, user: x}}]\n");
}

static void labels_are_asked_for_when_a_section_first_needs_them(void **state)
{
	struct rig *r = *state;
	char set[SET_MAX];

	give_api_server(r, set);
	hold_config(r, "topologyManagerPolicy: none\n");
	begin(r);
	swap(r, "nodes:\n- labels: {pool: a}\n  settings: {topologyManagerPolicy: none}\n");
	(void)await_log(r, "config-labels-unknown");
	(void)await_log(r, "node-unknown");
}

static void a_daemon_without_credentials_for_labels_logs_that(void **state)
{
	struct rig *r = *state;

	hold_config(r, "topologyManagerPolicy: none\n");
	begin(r);
	swap(r, "nodes:\n- labels: {pool: a}\n  settings: {topologyManagerPolicy: none}\n");
	(void)await_log(r, "config-reloaded");
	(void)await_log(r, "credentials-unusable");
	assert_newcomer(r, "best-effort", false);
}

static void a_daemon_starts_with_the_labels_that_it_remembers(void **state)
{
	struct rig *r = *state;
	char path[PATH_MAX + 64], set[SET_MAX];

	give_api_server(r, set);
	hold_config(r, "nodes:\n- labels: {pool: a}\n  settings: {topologyManagerPolicy: none}\n");
	begin(r);
	(void)await_log(r, "config-labels-unknown");
	end(r, SIGTERM);
	(void)snprintf(path, sizeof path, "%s/node-labels", r->daemon.run);
	write_text(path, "kubernetes.io/arch=amd64\npool=a\n");
	begin(r);
	assert_non_null(strstr(await_log(r, "config-sections"), "all=1 used=1 off=no"));
	assert_newcomer(r, "none", false);
	assert_int_equal(count_log(r, "config-labels-unknown"), 1);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(reloaded_settings_apply_to_new_containers_and_not_to_running_ones),
		CASE(journals_replay_and_restarts_fold_across_changes),
		CASE(mode_release_gives_back_what_was_pinned),
		CASE(a_signal_reads_a_file_that_is_written_in_place),
		CASE(a_setting_that_needs_a_restart_is_named_and_not_applied),
		CASE(settings_that_contradict_each_other_are_refused),
		CASE(a_file_that_vanishes_is_an_error_and_not_the_defaults),
		CASE(the_pool_keeps_a_cpu_when_all_others_are_held),
		CASE(unusable_credentials_are_tried_until_they_work),
		CASE(credentials_that_became_unreadable_are_logged),
		CASE(labels_are_asked_for_once_the_credentials_are_there),
		CASE(pods_are_evicted_while_the_settings_say_so),
		CASE(a_refusal_names_the_container_that_does_not_fit),
		CASE(labels_choose_sections_and_outlive_the_daemon),
		CASE(labels_that_need_a_restart_end_the_daemon_when_they_come_first),
		CASE(labels_are_asked_for_when_a_section_first_needs_them),
		CASE(a_daemon_without_credentials_for_labels_logs_that),
		CASE(a_daemon_starts_with_the_labels_that_it_remembers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
