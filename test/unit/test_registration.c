#include <kubelet/registration.h>

#include <fcntl.h>
#include <ftw.h>
#include <numafit/mem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "registration_kubelet.h"

#define ENDPOINT "numafit-1.sock"
#define RESOURCE "numafit.io/cpu"

static const uint64_t NS_PER_MS = 1000000;
enum { TIMEOUT_MS = 120000, NR_EVENTS = 1024, TICK_MS = 1, PLUGIN_STREAMS = 4 };

struct logged {
	bool bad;
	const char *event;
	char text[sizeof((struct err *)0)->text];
};

/* A plugin, its registration, and a kubelet that is not there at first. */
struct world {
	struct loop *l;
	struct loop_timer *deadline, *tick;
	char top[PATH_MAX / 2], dir[PATH_MAX];
	struct rpc_pump *pump;
	struct rpc_server *plugin;
	struct rpc *streams[PLUGIN_STREAMS];
	unsigned nr_streams;
	struct registration_options options;
	struct registration_handler handler;
	struct registration *r;
	struct kubelet k;
	struct logged logged[NR_EVENTS];
	unsigned nr_logged;
	bool over; /* time of run_for() */
};

/* Callbacks and the tick stop the loop, so that the condition is looked at again. */
#define UNTIL(w, condition)                                                                        \
	do {                                                                                       \
		while (!(condition))                                                               \
			loop_run((w)->l);                                                          \
	} while (0)

static void too_late(void *ctx)
{
	struct world *w = ctx;

	fail_msg("still %s after %d ms", registration_state_name(registration_state(w->r)),
		TIMEOUT_MS);
}

static void tick(void *ctx)
{
	struct world *w = ctx;

	loop_timer_set(w->tick, TICK_MS);
	loop_stop(w->l);
}

static void over(void *ctx)
{
	struct world *w = ctx;

	w->over = true;
}

/* To see what does not happen. */
static void run_for(struct world *w, unsigned ms)
{
	struct loop_timer *t = loop_timer_new(w->l, over, w);

	w->over = false;
	loop_timer_set(t, ms);
	UNTIL(w, w->over);
	loop_timer_close(t);
}

/* The plugin. */

static void on_options(void *ctx, struct rpc *r, const void *request, size_t len)
{
	(void)ctx, (void)request, (void)len;
	rpc_answer(r, "", 0);
}

static void streams_changed(struct world *w, unsigned nr)
{
	w->nr_streams = nr;
	if (w->r)
		registration_watched(w->r, nr);
	loop_stop(w->l);
}

static void on_watch(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;

	(void)request, (void)len;
	assert_true(w->nr_streams < PLUGIN_STREAMS);
	w->streams[w->nr_streams] = r;
	streams_changed(w, w->nr_streams + 1);
}

static void on_unwatched(void *ctx, struct rpc *r)
{
	struct world *w = ctx;
	unsigned n = 0;

	while (w->streams[n] != r)
		n++;
	w->streams[n] = w->streams[w->nr_streams - 1];
	streams_changed(w, w->nr_streams - 1);
}

static const struct rpc_method plugin_methods[] = {
	{.path = DEVICE_PLUGIN_PATH("GetDevicePluginOptions"),
		.kind = RPC_UNARY,
		.called = on_options},
	{DEVICE_PLUGIN_PATH("ListAndWatch"), RPC_STREAM, on_watch, NULL, on_unwatched},
};

static void end_streams(void *ctx)
{
	struct world *w = ctx;

	for (unsigned n = 0; n < w->nr_streams; n++)
		rpc_end(w->streams[n], RPC_UNAVAILABLE, "registered anew");
}

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	assert_true(w->nr_logged < NR_EVENTS);
	struct logged *t = &w->logged[w->nr_logged++];
	t->bad = bad;
	t->event = event;
	(void)snprintf(t->text, sizeof t->text, "%s", text);
	loop_stop(w->l);
}

static unsigned count(const struct world *w, const char *event)
{
	unsigned nr = 0;

	for (unsigned n = 0; n < w->nr_logged; n++)
		nr += strcmp(w->logged[n].event, event) == 0;
	return nr;
}

static const struct logged *last(const struct world *w)
{
	static const struct logged nothing = {.event = ""};

	return w->nr_logged ? &w->logged[w->nr_logged - 1] : &nothing;
}

static void start(struct world *w)
{
	w->options.directory = w->dir;
	w->options.endpoint = ENDPOINT;
	w->options.resource = RESOURCE;
	w->r = registration_new(w->l, w->pump, w->plugin, &w->options, &w->handler);
}

static bool is(const struct world *w, enum registration_state state)
{
	return registration_state(w->r) == state;
}

static void until_up(struct world *w)
{
	UNTIL(w, is(w, REGISTRATION_UP));
	assert_string_equal(last(w)->event, "device-plugin-up");
}

static void start_with_kubelet(struct world *w)
{
	kubelet_start(&w->k);
	start(w);
	until_up(w);
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);
	const char *tmp = getenv("TMPDIR");
	struct rpc_server_options options = {.request_max = REQUEST_BYTES};
	struct err e = {0};

	(void)snprintf(w->top, sizeof w->top, "%s/test_registration.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->top));
	(void)snprintf(w->dir, sizeof w->dir, "%s/device-plugins", w->top);
	assert_int_equal(mkdir(w->dir, 0750), 0);
	w->l = loop_new();
	w->deadline = loop_timer_new(w->l, too_late, w);
	loop_timer_set(w->deadline, TIMEOUT_MS);
	w->tick = loop_timer_new(w->l, tick, w);
	loop_timer_set(w->tick, TICK_MS);
	w->pump = rpc_pump_new(w->l, &e);
	assert_non_null(w->pump);
	w->plugin = rpc_server_new(w->pump, &options);
	rpc_server_add(w->plugin, plugin_methods, 2, w);
	kubelet_init(&w->k, w->l, w->pump, w->dir, ENDPOINT);
	w->options = (struct registration_options){.connect_min_ms = 2,
		.connect_max_ms = 40,
		.register_ms = TIMEOUT_MS,
		.watch_ms = TIMEOUT_MS,
		.ending_ms = 60,
		.refused_min_ms = 5,
		.refused_max_ms = 80};
	w->handler = (struct registration_handler){w, end_streams, on_event};
	*state = w;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static void remove_tree(const char *path)
{
	enum { NR_FDS = 8 };

	assert_int_equal(nftw(path, remove_one, NR_FDS, FTW_DEPTH | FTW_PHYS), 0);
}

static int teardown(void **state)
{
	struct world *w = *state;

	registration_close(steal(w->r));
	assert_false(exists(w->k.plugin));
	kubelet_die(&w->k, false);
	rpc_server_free(w->plugin);
	rpc_pump_free(w->pump);
	loop_free(w->l);
	remove_tree(w->top);
	free(w);
	return 0;
}

/* The cases. */

static void a_running_kubelet_gets_our_registration_and_watches(void **state)
{
	struct world *w = *state;

	start_with_kubelet(w);
	assert_int_equal(w->k.nr_registers, 1);
	assert_int_equal(w->nr_logged, 1);
	assert_false(last(w)->bad);
	assert_non_null(memmem(w->k.request, REQUEST_BYTES, "v1beta1", strlen("v1beta1")));
	assert_non_null(memmem(w->k.request, REQUEST_BYTES, ENDPOINT, strlen(ENDPOINT)));
	assert_non_null(memmem(w->k.request, REQUEST_BYTES, RESOURCE, strlen(RESOURCE)));
	registration_close(steal(w->r));
	assert_false(exists(w->k.plugin));
}

static void an_absent_kubelet_is_waited_for(void **state)
{
	struct world *w = *state;

	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-waiting");
	assert_false(last(w)->bad);
	assert_non_null(strstr(last(w)->text, w->k.socket));
	assert_true(is(w, REGISTRATION_WAITING));
	run_for(w, 12 * w->options.connect_max_ms); /* looks again, says nothing */
	assert_int_equal(w->nr_logged, 1);
	kubelet_start(&w->k);
	until_up(w);
	assert_int_equal(w->nr_logged, 2);
}

/* A socket that is bound refuses connects until it listens. */
static int bind_only(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(strlen(path) < sizeof address.sun_path);
	memcpy(address.sun_path, path, strlen(path));
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static void a_refused_connection_is_tried_again(void **state)
{
	struct world *w = *state;

	start(w);
	UNTIL(w, is(w, REGISTRATION_WAITING) && w->nr_logged);
	int fd = bind_only(w->k.socket);
	UNTIL(w, is(w, REGISTRATION_CONNECTING));
	UNTIL(w, w->nr_logged == 2); /* it lasts */
	assert_string_equal(last(w)->event, "device-plugin-waiting");
	assert_false(last(w)->bad);
	assert_non_null(strstr(last(w)->text, "refused"));
	assert_int_equal(listen(fd, 1), 0);
	UNTIL(w, is(w, REGISTRATION_REGISTERING)); /* nobody answers */
	(void)close(fd);
	kubelet_start(&w->k);
	until_up(w);
	assert_int_equal(w->k.nr_registers, 1);
}

static void a_removed_plugin_socket_is_bound_again(void **state)
{
	struct world *w = *state;

	start_with_kubelet(w);
	assert_int_equal(unlink(w->k.plugin), 0);
	UNTIL(w, exists(w->k.plugin));
	run_for(w, w->options.ending_ms);
	assert_true(is(w, REGISTRATION_UP));
	assert_int_equal(w->k.nr_registers, 1);
}

static void a_plugin_socket_removed_during_register_is_bound_and_registered_again(void **state)
{
	struct world *w = *state;

	w->k.behaviour = KUBELET_WIPES;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->k.nr_registers);
	w->k.behaviour = KUBELET_WATCHES;
	until_up(w); /* long before Register's deadline */
	assert_true(exists(w->k.plugin));
	assert_int_equal(w->k.nr_registers, 2);
	assert_int_equal(w->nr_logged, 1);
}

static void a_plugin_socket_removed_during_every_register_is_logged_once(void **state)
{
	struct world *w = *state;

	w->k.behaviour = KUBELET_WIPES;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-no-socket");
	assert_true(last(w)->bad);
	unsigned nr = w->k.nr_registers;
	UNTIL(w, w->k.nr_registers == nr + 3);
	assert_int_equal(w->nr_logged, 1);
	w->k.behaviour = KUBELET_WATCHES;
	until_up(w);
}

static void fifty_restarts_lose_nothing(void **state)
{
	enum { NR_RESTARTS = 50 };
	struct world *w = *state;

	start_with_kubelet(w);
	for (unsigned n = 1; n <= NR_RESTARTS; n++) {
		kubelet_die(&w->k, n % 2);
		if (n % 3) /* it takes a while, or none */
			UNTIL(w, !is(w, REGISTRATION_UP));
		kubelet_start(&w->k);
		UNTIL(w, w->k.nr_registers > n && is(w, REGISTRATION_UP) && w->k.nr_watches == 1);
		assert_int_equal(w->k.nr_registers, n + 1);
		assert_int_equal(count(w, "device-plugin-up"), n + 1);
	}
	assert_int_equal(w->k.nr_overlaps, 0);
	assert_int_equal(count(w, "device-plugin-lost"), NR_RESTARTS);
	assert_int_equal(count(w, "device-plugin-refused"), 0);
}

static void a_refused_registration_is_logged_once_and_tried_again(void **state)
{
	struct world *w = *state;

	w->k.behaviour = KUBELET_REFUSES;
	w->k.words = "the ResourceName is invalid";
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-refused");
	assert_true(last(w)->bad);
	assert_non_null(strstr(last(w)->text, w->k.words));
	assert_true(is(w, REGISTRATION_CONNECTING));
	UNTIL(w, w->k.nr_registers == 8);
	assert_int_equal(w->nr_logged, 1);
	uint64_t before = w->k.registered_ns; /* the longest wait is reached */
	UNTIL(w, w->k.nr_registers == 9);
	assert_true(w->k.registered_ns - before >= (w->options.refused_max_ms - 5) * NS_PER_MS);
	w->k.behaviour = KUBELET_WATCHES;
	until_up(w);
}

static void a_new_kubelet_is_registered_with_although_the_old_one_refused(void **state)
{
	struct world *w = *state;

	w->options.refused_min_ms = w->options.refused_max_ms = TIMEOUT_MS;
	w->k.behaviour = KUBELET_REFUSES;
	w->k.words = "no";
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->nr_logged);
	kubelet_die(&w->k, false);
	w->k.behaviour = KUBELET_WATCHES;
	kubelet_start(&w->k);
	until_up(w);
}

static void delays_for_a_new_kubelet_start_over_after_refusals_of_the_old_one(void **state)
{
	struct world *w = *state;

	w->options.refused_max_ms = TIMEOUT_MS;
	w->k.behaviour = KUBELET_REFUSES;
	w->k.words = "no";
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->k.nr_registers == 7);
	uint64_t long_ago = w->k.registered_ns;
	UNTIL(w, w->k.nr_registers == 8);
	uint64_t wait_ns = w->k.registered_ns - long_ago; /* some 300 ms */
	uint64_t again_ns = 0;
	/* on a busy machine one may be late; the next of an old kubelet would be later each time */
	for (unsigned nr = 8; !again_ns || again_ns >= wait_ns; nr += 2) {
		kubelet_die(&w->k, false);
		kubelet_start(&w->k);
		UNTIL(w, w->k.nr_registers == nr + 1);
		uint64_t first = w->k.registered_ns;
		UNTIL(w, w->k.nr_registers == nr + 2);
		again_ns = w->k.registered_ns - first;
	}
}

static void a_register_call_without_an_answer_times_out(void **state)
{
	struct world *w = *state;

	w->options.register_ms = 50;
	w->k.behaviour = KUBELET_HANGS;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->k.nr_registers == 4);
	assert_int_equal(w->nr_logged, 1);
	assert_string_equal(last(w)->event, "device-plugin-refused");
	assert_true(last(w)->bad);
	assert_non_null(strstr(last(w)->text, "no answer in 50 ms"));
	w->k.behaviour = KUBELET_WATCHES;
	until_up(w);
}

static void a_watch_counts_although_its_register_call_timed_out(void **state)
{
	struct world *w = *state;

	w->options.register_ms = 50;
	w->options.refused_min_ms = w->options.refused_max_ms = TIMEOUT_MS;
	w->k.behaviour = KUBELET_HANGS;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, is(w, REGISTRATION_CONNECTING));
	kubelet_watch(&w->k);
	until_up(w);
	assert_true(w->k.nr_registers <= 1); /* or it was given up before it came */
}

static void a_registration_without_a_watch_is_logged_once_and_tried_again(void **state)
{
	struct world *w = *state;

	w->options.watch_ms = 30;
	w->k.behaviour = KUBELET_NEVER_WATCHES;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, is(w, REGISTRATION_EXPECTING));
	UNTIL(w, w->k.nr_registers == 4);
	assert_int_equal(w->nr_logged, 1);
	assert_string_equal(last(w)->event, "device-plugin-not-watched");
	assert_true(last(w)->bad);
	w->k.behaviour = KUBELET_WATCHES;
	until_up(w);
}

static void a_kubelet_that_dies_before_it_watches_is_registered_with_again(void **state)
{
	struct world *w = *state;

	w->k.behaviour = KUBELET_NEVER_WATCHES;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, is(w, REGISTRATION_EXPECTING));
	kubelet_die(&w->k, true);
	w->k.behaviour = KUBELET_WATCHES;
	kubelet_start(&w->k);
	until_up(w);
}

/* The loop's clock has whole ms, and stands still during a turn. */
static bool paused(const struct world *w)
{
	return w->k.registered_ns - w->k.unwatched_ns >= (w->options.ending_ms - 5) * NS_PER_MS;
}

static void a_watch_that_ends_alone_is_registered_again_after_a_pause(void **state)
{
	struct world *w = *state;

	start_with_kubelet(w);
	kubelet_unwatch(&w->k);
	UNTIL(w, is(w, REGISTRATION_ENDING));
	assert_string_equal(last(w)->event, "device-plugin-lost");
	until_up(w);
	assert_int_equal(w->k.nr_registers, 2);
	assert_true(paused(w));
}

static void a_kubelet_that_ends_its_watch_at_once_is_asked_less_and_less(void **state)
{
	enum { FIRST_MS = 20, LAST_MS = FIRST_MS << 4 };
	struct world *w = *state;

	w->options.ending_ms = 1;
	w->options.refused_min_ms = FIRST_MS;
	w->options.refused_max_ms = TIMEOUT_MS;
	start_with_kubelet(w);
	/* five times, or more: what a busy machine brings too late begins again with the first */
	do {
		unsigned nr = w->k.nr_registers;

		UNTIL(w, is(w, REGISTRATION_UP));
		kubelet_unwatch(&w->k);
		UNTIL(w, w->k.nr_registers == nr + 1);
	} while (w->k.registered_ns - w->k.unwatched_ns < (LAST_MS - 5) * NS_PER_MS);
}

static void a_watch_before_a_refusal_is_ended_before_the_next_register(void **state)
{
	struct world *w = *state;

	w->k.behaviour = KUBELET_HANGS;
	kubelet_start(&w->k);
	start(w);
	UNTIL(w, w->k.nr_registers);
	kubelet_watch(&w->k);
	UNTIL(w, w->nr_streams);
	w->k.behaviour = KUBELET_WATCHES;
	rpc_end(steal(w->k.asked), RPC_UNKNOWN, "too late");
	UNTIL(w, w->k.nr_registers == 2);
	assert_true(paused(w));
	assert_int_equal(w->k.nr_overlaps, 0);
	until_up(w);
}

static void the_old_stream_is_over_before_another_socket_is_used(void **state)
{
	struct world *w = *state;

	start_with_kubelet(w);
	assert_int_equal(unlink(w->k.socket), 0);
	acceptor_close(steal(w->k.door));
	kubelet_listen(&w->k);
	UNTIL(w, is(w, REGISTRATION_ENDING) && !w->nr_streams);
	assert_int_equal(utimensat(AT_FDCWD, w->k.socket, NULL, 0), 0); /* and another one */
	UNTIL(w, w->k.nr_registers == 2);
	assert_true(paused(w));
	until_up(w);
	assert_int_equal(w->k.nr_overlaps, 0);
	/* it is the same kubelet, and may come for a Register that we gave up, too */
	UNTIL(w, w->k.nr_watches >= 1 && w->nr_streams >= 1);
}

static void the_end_of_one_of_two_streams_restarts_the_registration(void **state)
{
	struct world *w = *state;

	start_with_kubelet(w);
	kubelet_watch(&w->k);
	UNTIL(w, w->nr_streams == 2);
	assert_true(is(w, REGISTRATION_UP));
	rpc_end(w->streams[0], RPC_UNAVAILABLE, NULL);
	UNTIL(w, w->k.nr_registers == 2);
	assert_int_equal(w->k.nr_overlaps, 0);
	until_up(w);
	UNTIL(w, w->k.nr_watches == 1 && w->nr_streams == 1);
}

static void a_recreated_directory_is_used(void **state)
{
	struct world *w = *state;

	start_with_kubelet(w);
	kubelet_die(&w->k, true);
	remove_tree(w->dir);
	UNTIL(w, count(w, "device-plugin-no-directory"));
	assert_true(last(w)->bad);
	assert_non_null(strstr(last(w)->text, w->dir));
	kubelet_start(&w->k); /* makes it */
	until_up(w);
	assert_int_equal(count(w, "device-plugin-no-directory"), 1);
}

static void an_empty_directory_may_be_replaced_while_the_kubelet_is_absent(void **state)
{
	struct world *w = *state;
	char aside[PATH_MAX + sizeof ".aside"];

	(void)snprintf(aside, sizeof aside, "%s.aside", w->dir);
	w->options.connect_max_ms = TIMEOUT_MS / 2; /* it is seen, not looked for */
	start(w);
	UNTIL(w, count(w, "device-plugin-waiting"));
	assert_int_equal(rename(w->dir, aside), 0);
	assert_int_equal(mkdir(w->dir, 0750), 0);
	run_for(w, 20); /* what happens now happens in the new one */
	kubelet_start(&w->k);
	until_up(w);
	assert_int_equal(w->nr_logged, 2);
}

static void a_directory_and_its_parents_may_be_missing(void **state)
{
	struct world *w = *state;

	(void)snprintf(w->dir, sizeof w->dir, "%s/kubelet/device-plugins", w->top);
	kubelet_init(&w->k, w->l, w->pump, w->dir, ENDPOINT);
	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-no-directory");
	run_for(w, 3 * w->options.connect_max_ms);
	assert_int_equal(w->nr_logged, 1);
	*strrchr(w->dir, '/') = '\0';
	assert_int_equal(mkdir(w->dir, 0750), 0);
	kubelet_start(&w->k);
	until_up(w);
}

static void a_file_in_place_of_the_directory_is_logged(void **state)
{
	struct world *w = *state;

	assert_int_equal(rmdir(w->dir), 0);
	(void)close(open(w->dir, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-no-directory");
	assert_true(last(w)->bad);
	assert_non_null(strstr(last(w)->text, "not a directory"));
	assert_int_equal(unlink(w->dir), 0);
	kubelet_start(&w->k);
	until_up(w);
}

static void a_path_too_long_for_a_socket_is_logged(void **state)
{
	enum { TOO_LONG = 107 };
	struct world *w = *state;
	size_t len = strlen(w->dir);

	memset(w->dir + len, 'x', TOO_LONG);
	w->dir[len + TOO_LONG] = '\0';
	assert_int_equal(mkdir(w->dir, 0750), 0);
	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-no-socket");
	assert_true(last(w)->bad);
	assert_non_null(strstr(last(w)->text, "107"));
	run_for(w, 3 * w->options.connect_max_ms);
	assert_int_equal(w->nr_logged, 1);
}

static void a_foreign_file_in_place_of_our_socket_is_logged(void **state)
{
	struct world *w = *state;

	kubelet_start(&w->k);
	(void)close(open(w->k.plugin, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	start(w);
	UNTIL(w, w->nr_logged);
	assert_string_equal(last(w)->event, "device-plugin-no-socket");
	assert_true(last(w)->bad);
	assert_int_equal(unlink(w->k.plugin), 0);
	until_up(w);
}

/* As many as on a quiet machine, and what the shortest wait between two allows in the time that it
 * took longer: on a busy one nearly every event may be seen by itself. */
static unsigned registers_allowed(const struct world *w, uint64_t took_ns, unsigned nr_events)
{
	enum { QUIET = 11 };
	uint64_t took_ms = took_ns / NS_PER_MS, quiet_ms = UINT64_C(2) * nr_events * TICK_MS;

	if (took_ms <= quiet_ms)
		return QUIET;
	return QUIET + (unsigned)(took_ms - quiet_ms) / w->options.connect_min_ms;
}

static void many_file_events_cause_few_register_calls(void **state)
{
	enum { NR_EVENTS_OF_STORM = 300 };
	struct world *w = *state;

	w->options.connect_max_ms = 400;
	start_with_kubelet(w);
	uint64_t began_ns = w->k.registered_ns;
	for (unsigned n = 0; n < NR_EVENTS_OF_STORM; n++) {
		assert_int_equal(utimensat(AT_FDCWD, w->k.socket, NULL, 0), 0);
		run_for(w, TICK_MS);
	}
	uint64_t took_ns = loop_monotonic_ns() - began_ns;
	assert_in_range(w->k.nr_registers, 1, registers_allowed(w, took_ns, NR_EVENTS_OF_STORM));
	UNTIL(w, w->k.nr_registers >= 2); /* it seems to be another one */
	/* it is one kubelet all the while, and may come twice: for a Register that we gave up, too
	 */
	UNTIL(w, is(w, REGISTRATION_UP) && w->k.nr_watches >= 1);
}

static void other_files_of_the_directory_cause_no_register_call(void **state)
{
	enum { NR_CHANGES = 100 };
	struct world *w = *state;
	char other[PATH_MAX + sizeof "/kubelet_internal_checkpoint"];

	(void)snprintf(other, sizeof other, "%s/kubelet_internal_checkpoint", w->dir);
	start_with_kubelet(w);
	for (unsigned n = 0; n < NR_CHANGES; n++) {
		(void)close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		assert_int_equal(chmod(w->k.socket, n % 2 ? 0600 : 0660), 0);
		assert_int_equal(unlink(other), 0);
	}
	run_for(w, 2 * w->options.ending_ms);
	assert_int_equal(w->k.nr_registers, 1);
	assert_true(is(w, REGISTRATION_UP));
}

/* What makes it come into each state, with a kubelet or without. */
static const struct {
	bool kubelet;
	enum on_register behaviour;
	bool unwatch;
} ways[NR_REGISTRATION_STATES] = {
	[REGISTRATION_WAITING] = {false, KUBELET_WATCHES, false},
	[REGISTRATION_CONNECTING] = {true, KUBELET_REFUSES, false},
	[REGISTRATION_REGISTERING] = {true, KUBELET_HANGS, false},
	[REGISTRATION_EXPECTING] = {true, KUBELET_NEVER_WATCHES, false},
	[REGISTRATION_UP] = {true, KUBELET_WATCHES, false},
	[REGISTRATION_ENDING] = {true, KUBELET_WATCHES, true},
};

static void a_registration_may_be_closed_in_every_state_and_started_again(void **state)
{
	struct world *w = *state;

	w->options.refused_min_ms = w->options.refused_max_ms = w->options.ending_ms = TIMEOUT_MS;
	for (enum registration_state s = 0; s < NR_REGISTRATION_STATES; s++) {
		w->k.behaviour = ways[s].behaviour;
		w->k.words = "no";
		if (ways[s].kubelet)
			kubelet_start(&w->k);
		start(w);
		if (ways[s].unwatch) {
			until_up(w);
			kubelet_unwatch(&w->k);
		}
		UNTIL(w, is(w, s) && (w->nr_logged || w->k.nr_registers));
		registration_close(steal(w->r));
		assert_false(exists(w->k.plugin));
		kubelet_die(&w->k, false);
		UNTIL(w, !w->nr_streams);
		w->nr_logged = w->k.nr_registers = 0;
	}
	registration_close(NULL);
}

static void each_state_has_a_name(void **state)
{
	(void)state;
	assert_string_equal(registration_state_name(REGISTRATION_WAITING), "waiting");
	assert_string_equal(registration_state_name(REGISTRATION_CONNECTING), "connecting");
	assert_string_equal(registration_state_name(REGISTRATION_REGISTERING), "registering");
	assert_string_equal(registration_state_name(REGISTRATION_EXPECTING), "expecting");
	assert_string_equal(registration_state_name(REGISTRATION_UP), "up");
	assert_string_equal(registration_state_name(REGISTRATION_ENDING), "ending");
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(a_running_kubelet_gets_our_registration_and_watches),
		WITH_WORLD(an_absent_kubelet_is_waited_for),
		WITH_WORLD(a_refused_connection_is_tried_again),
		WITH_WORLD(a_removed_plugin_socket_is_bound_again),
		WITH_WORLD(a_plugin_socket_removed_during_register_is_bound_and_registered_again),
		WITH_WORLD(a_plugin_socket_removed_during_every_register_is_logged_once),
		WITH_WORLD(fifty_restarts_lose_nothing),
		WITH_WORLD(a_refused_registration_is_logged_once_and_tried_again),
		WITH_WORLD(a_new_kubelet_is_registered_with_although_the_old_one_refused),
		WITH_WORLD(delays_for_a_new_kubelet_start_over_after_refusals_of_the_old_one),
		WITH_WORLD(a_register_call_without_an_answer_times_out),
		WITH_WORLD(a_watch_counts_although_its_register_call_timed_out),
		WITH_WORLD(a_registration_without_a_watch_is_logged_once_and_tried_again),
		WITH_WORLD(a_kubelet_that_dies_before_it_watches_is_registered_with_again),
		WITH_WORLD(a_watch_that_ends_alone_is_registered_again_after_a_pause),
		WITH_WORLD(a_kubelet_that_ends_its_watch_at_once_is_asked_less_and_less),
		WITH_WORLD(a_watch_before_a_refusal_is_ended_before_the_next_register),
		WITH_WORLD(the_old_stream_is_over_before_another_socket_is_used),
		WITH_WORLD(the_end_of_one_of_two_streams_restarts_the_registration),
		WITH_WORLD(a_recreated_directory_is_used),
		WITH_WORLD(an_empty_directory_may_be_replaced_while_the_kubelet_is_absent),
		WITH_WORLD(a_directory_and_its_parents_may_be_missing),
		WITH_WORLD(a_file_in_place_of_the_directory_is_logged),
		WITH_WORLD(a_path_too_long_for_a_socket_is_logged),
		WITH_WORLD(a_foreign_file_in_place_of_our_socket_is_logged),
		WITH_WORLD(many_file_events_cause_few_register_calls),
		WITH_WORLD(other_files_of_the_directory_cause_no_register_call),
		WITH_WORLD(a_registration_may_be_closed_in_every_state_and_started_again),
		cmocka_unit_test(each_state_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
