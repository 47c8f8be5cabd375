#ifndef NUMAFIT_TEST_REGISTRATION_RIG_H
#define NUMAFIT_TEST_REGISTRATION_RIG_H

#include <kubelet/registration.h>

#include <fcntl.h>
#include <ftw.h>
#include <numafit/mem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "registration_kubelet.h"

/* A kubelet that registers plugins, and our registration with it, on one loop. */

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

static inline void too_late(void *ctx)
{
	struct world *w = ctx;

	fail_msg("still %s after %d ms", registration_state_name(registration_state(w->r)),
		TIMEOUT_MS);
}

static inline void tick(void *ctx)
{
	struct world *w = ctx;

	loop_timer_set(w->tick, TICK_MS);
	loop_stop(w->l);
}

static inline void over(void *ctx)
{
	struct world *w = ctx;

	w->over = true;
}

/* To see what does not happen. */
static inline void run_for(struct world *w, unsigned ms)
{
	struct loop_timer *t = loop_timer_new(w->l, over, w);

	w->over = false;
	loop_timer_set(t, ms);
	UNTIL(w, w->over);
	loop_timer_close(t);
}

/* The plugin. */

static inline void on_options(void *ctx, struct rpc *r, const void *request, size_t len)
{
	(void)ctx, (void)request, (void)len;
	rpc_answer(r, "", 0);
}

static inline void streams_changed(struct world *w, unsigned nr)
{
	w->nr_streams = nr;
	if (w->r)
		registration_watched(w->r, nr);
	loop_stop(w->l);
}

static inline void on_watch(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;

	(void)request, (void)len;
	assert_true(w->nr_streams < PLUGIN_STREAMS);
	w->streams[w->nr_streams] = r;
	streams_changed(w, w->nr_streams + 1);
}

static inline void on_unwatched(void *ctx, struct rpc *r)
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

static inline void end_streams(void *ctx)
{
	struct world *w = ctx;

	for (unsigned n = 0; n < w->nr_streams; n++)
		rpc_end(w->streams[n], RPC_UNAVAILABLE, "registered anew");
}

static inline void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	assert_true(w->nr_logged < NR_EVENTS);
	struct logged *t = &w->logged[w->nr_logged++];
	t->bad = bad;
	t->event = event;
	(void)snprintf(t->text, sizeof t->text, "%s", text);
	loop_stop(w->l);
}

static inline unsigned count(const struct world *w, const char *event)
{
	unsigned nr = 0;

	for (unsigned n = 0; n < w->nr_logged; n++)
		nr += strcmp(w->logged[n].event, event) == 0;
	return nr;
}

static inline const struct logged *last(const struct world *w)
{
	static const struct logged nothing = {.event = ""};

	return w->nr_logged ? &w->logged[w->nr_logged - 1] : &nothing;
}

static inline void start(struct world *w)
{
	w->options.directory = w->dir;
	w->options.endpoint = ENDPOINT;
	w->options.resource = RESOURCE;
	w->r = registration_new(w->l, w->pump, w->plugin, &w->options, &w->handler);
}

static inline bool is(const struct world *w, enum registration_state state)
{
	return registration_state(w->r) == state;
}

static inline void until_up(struct world *w)
{
	UNTIL(w, is(w, REGISTRATION_UP));
	assert_string_equal(last(w)->event, "device-plugin-up");
}

static inline void start_with_kubelet(struct world *w)
{
	kubelet_start(&w->k);
	start(w);
	until_up(w);
}

static inline bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static inline int setup(void **state)
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

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static inline void remove_tree(const char *path)
{
	enum { NR_FDS = 8 };

	assert_int_equal(nftw(path, remove_one, NR_FDS, FTW_DEPTH | FTW_PHYS), 0);
}

static inline int teardown(void **state)
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

/* The loop's clock has whole ms, and stands still during a turn. */
static inline bool paused(const struct world *w)
{
	return w->k.registered_ns - w->k.unwatched_ns >= (w->options.ending_ms - 5) * NS_PER_MS;
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

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
