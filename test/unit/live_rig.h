#ifndef NUMAFIT_TEST_LIVE_RIG_H
#define NUMAFIT_TEST_LIVE_RIG_H

#include "daemon_rig.h"
#include "fake_runtime.h"

/* The real daemon with all that is around it on a node: this test is its container runtime, the
 * reader of its log, and the kubelet that swaps its ConfigMap. */

enum { BOXES = 12, LOG_BYTES = 4 << 20, LOG_LINE_BYTES = 8192, PATIENCE_MS = 30000 };

struct api_side; /* an API server, in the test that has one */

struct rig {
	struct daemon_rig daemon;
	struct loop *loop;
	struct loop_timer *watchdog;
	struct fake_runtime runtime;
	struct fake_container box[BOXES], *asked;
	unsigned updates, updates_of_own; /* of own: of containers with CPUs of their own */
	bool starts;                      /* what is created is started, too */
	bool answered, synchronized;
	char message[512]; /* of the last answer: why it was refused, or "" */
	struct stream *reader;
	int log_fd;           /* the reading end */
	size_t log_len, seen; /* seen: where await_line() goes on */
	char log[LOG_BYTES];  /* of the daemon that was started last */
	char directory[PATH_MAX], config[PATH_MAX + 32];
	unsigned swaps;
	struct api_side *api;
};

/* The container runtime */

static inline struct fake_container *find(struct rig *r, const char *id)
{
	for (unsigned i = 0; i < BOXES; i++)
		if (r->box[i].runs && strcmp(r->box[i].id, id) == 0)
			return &r->box[i];
	return NULL;
}

static inline void apply_update(struct rig *r, struct fake_container *b, const struct nri_update *u)
{
	r->updates++;
	r->updates_of_own += b->cpu_milli > 0;
	fake_container_update(b, u);
}

static inline void on_answer(void *ctx, enum nri_call what, const struct nri_answer *a)
{
	struct rig *r = ctx;

	for (size_t i = 0; i < a->nr_updates; i++) {
		struct fake_container *b = find(r, a->updates[i].container_id);

		if (!b)
			fail_msg("%s does not run", a->updates[i].container_id);
		else
			apply_update(r, b, &a->updates[i]);
	}
	r->answered = true;
	r->synchronized = r->synchronized || what == NRI_CALL_SYNCHRONIZE;
	(void)text_copy(r->message, sizeof r->message, a->status ? a->message : "");
	if (what == NRI_CALL_CREATE && !a->status)
		fake_container_start(r->asked, a);
	loop_stop(r->loop);
}

/* Updates that the runtime did not ask for: a container may have ended meanwhile. */
static inline bool on_update(void *ctx, const struct nri_update *updates, size_t nr)
{
	struct rig *r = ctx;

	for (size_t i = 0; i < nr; i++) {
		struct fake_container *b = find(r, updates[i].container_id);

		if (b)
			apply_update(r, b, &updates[i]);
	}
	return true;
}

static inline void on_configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct rig *r = ctx;
	struct nri_container list[BOXES];
	struct key_value annotation[BOXES][2];
	size_t nr = 0;

	(void)name, (void)index, (void)events;
	r->synchronized = false;
	for (unsigned i = 0; i < BOXES; i++)
		if (r->box[i].runs) {
			list[nr] = fake_container_shown(&r->box[i], annotation[nr]);
			nr++;
		}
	nri_runtime_synchronize(r->runtime.nri, list, nr);
}

static inline void hang_up(struct rig *r)
{
	listener_close(r->runtime.listener);
	fake_runtime_hang_up(&r->runtime);
	r->synchronized = false;
}

/* The reader of the log */

static inline void on_log(void *ctx, const void *data, size_t len)
{
	struct rig *r = ctx;

	assert_true(r->log_len + len < LOG_BYTES);
	memcpy(r->log + r->log_len, data, len);
	r->log_len += len;
	r->log[r->log_len] = '\0';
	loop_stop(r->loop);
}

static inline void on_log_end(void *ctx, int error)
{
	struct rig *r = ctx;

	(void)error;
	r->reader = NULL;
	loop_stop(r->loop);
}

static inline void read_log(struct rig *r)
{
	const struct stream_events events = {r, on_log, on_log_end};

	r->reader = stream_adopt(r->loop, r->log_fd, &events, NULL);
	assert_non_null(r->reader);
}

static inline unsigned count_log(const struct rig *r, const char *text)
{
	unsigned nr = 0;

	for (const char *at = r->log; (at = strstr(at, text)); at++)
		nr++;
	return nr;
}

static inline void on_watchdog(void *ctx)
{
	struct rig *r = ctx;

	fail_msg("nothing happens any more; the log: %s", r->log + r->seen);
}

/* Run the loop once, and fail when the daemon has ended before it logged the text. */
static inline void run_for_log(struct rig *r, const char *text)
{
	if (!r->reader)
		fail_msg("the daemon ended without a word of %s: %s", text, r->log);
	loop_run(r->loop);
}

/* Until the log has the text anywhere. */
static inline void await_log(struct rig *r, const char *text)
{
	loop_timer_set(r->watchdog, PATIENCE_MS);
	while (!strstr(r->log, text))
		run_for_log(r, text);
	loop_timer_stop(r->watchdog);
}

/* The next line with the text, from it on, as a string until the next call. */
static inline const char *await_line(struct rig *r, const char *text)
{
	static char line[LOG_LINE_BYTES];
	const char *at, *end;

	loop_timer_set(r->watchdog, PATIENCE_MS);
	while (!(at = strstr(r->log + r->seen, text)) || !(end = strchr(at, '\n')))
		run_for_log(r, text);
	loop_timer_stop(r->watchdog);
	assert_true((size_t)(end - at) < sizeof line);
	memcpy(line, at, (size_t)(end - at));
	line[end - at] = '\0';
	r->seen = (size_t)(end - r->log);
	return line;
}

/* The kubelet and its ConfigMap: the file is a link into ..data, which is a link to a directory. */

static inline void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	rig_must(f && fputs(text, f) >= 0 && fclose(f) == 0, path);
}

static inline void swap_config(struct rig *r, const char *text)
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

static inline void hold_config(struct rig *r, const char *text)
{
	rig_must(mkdir(r->directory, 0700) == 0, r->directory);
	swap_config(r, text);
	rig_must(symlink("..data/numafitd.yaml", r->config) == 0, r->config);
	r->daemon.config = r->config;
}

/* What cases do */

static inline void run_until(struct rig *r, const bool *is)
{
	loop_timer_set(r->watchdog, PATIENCE_MS);
	while (!*is)
		loop_run(r->loop);
	loop_timer_stop(r->watchdog);
}

/* Start the daemon, without reading its log. */
static inline void launch(struct rig *r, const char *fault)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	stream_close(r->reader);
	r->log_len = r->seen = 0;
	r->log[0] = '\0';
	r->daemon.fault = fault;
	r->daemon.log = ends[1];
	r->log_fd = ends[0];
	rig_start(&r->daemon);
	(void)close(ends[1]);
}

/* A daemon that knows what runs; fault is NUMAFIT_FAULT, or NULL. */
static inline void begin(struct rig *r, const char *fault)
{
	launch(r, fault);
	read_log(r);
	run_until(r, &r->synchronized);
}

/* Wait for the daemon's end, which signum brings about. */
static inline void end(struct rig *r, int signum)
{
	int status = rig_end(&r->daemon, signum);

	if (signum == SIGTERM)
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	fake_runtime_hang_up(&r->runtime);
	r->synchronized = false;
}

static inline void call(struct rig *r, enum nri_call what, struct fake_container *b)
{
	struct key_value annotation[2];
	const struct nri_container c = fake_container_shown(b, annotation);

	r->answered = false;
	r->asked = b;
	fake_runtime_call(&r->runtime, what, &c);
	run_until(r, &r->answered);
}

/* Create a container with that many CPUs of its own, 0: in the shared pool, in a pod of that
 * namespace. NULL: the container was refused. */
static inline struct fake_container *create_in(
	struct rig *r, const char *ns, const char *id, unsigned cpus)
{
	struct fake_container *b = r->box;

	while (*b->id)
		b++;
	assert_true(b < r->box + BOXES);
	*b = (struct fake_container){.cpu_milli = cpus * FAKE_MILLI_PER_CPU};
	assert_true(text_copy(b->id, sizeof b->id, id));
	assert_true(text_copy(b->ns, sizeof b->ns, ns));
	call(r, NRI_CALL_CREATE, b);
	if (!b->runs) {
		*b->id = '\0';
		return NULL;
	}
	if (r->starts) {
		call(r, NRI_CALL_POST_CREATE, b);
		call(r, NRI_CALL_POST_START, b);
	}
	return b;
}

static inline struct fake_container *create(struct rig *r, const char *id, unsigned cpus)
{
	return create_in(r, "default", id, cpus);
}

static inline void stop(struct rig *r, struct fake_container *b)
{
	struct fake_container gone = *b;

	*b = (struct fake_container){0};
	call(r, NRI_CALL_STOP, &gone);
}

static inline struct rig *rig_new(void)
{
	struct rig *r = calloc(1, sizeof *r);

	(void)signal(SIGPIPE, SIG_IGN);
	rig_init(&r->daemon);
	(void)snprintf(
		r->directory, sizeof r->directory, "%.*s/config", PATH_MAX - 16, r->daemon.dir);
	(void)snprintf(r->config, sizeof r->config, "%s/numafitd.yaml", r->directory);
	r->loop = loop_new();
	r->watchdog = loop_timer_new(r->loop, on_watchdog, r);
	r->runtime = (struct fake_runtime){.loop = r->loop,
		.options = {.name = "fake", .version = "1"},
		.events = {.ctx = r, .configured = on_configured, .answered = on_answer},
		.on_update = on_update};
	fake_runtime_listen(&r->runtime, r->daemon.socket);
	return r;
}

static inline void rig_free(struct rig *r)
{
	if (r->daemon.pid)
		(void)rig_end(&r->daemon, SIGKILL);
	loop_free(r->loop);
	fake_runtime_fini(&r->runtime);
	rig_fini(&r->daemon);
	free(r);
}

#endif
