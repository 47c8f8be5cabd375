#ifndef PODS_RIG_H
#define PODS_RIG_H

#include <kubelet/pods.h>

#include <kubelet/pods_server_pb.h>
#include <numafit/vec.h>

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "kubelet_server.h"

/* The watch against a server of ours that sends what the case wants. */

enum { NEVER_MS = 20 * SERVER_PATIENCE_MS, SLOW_MS = NEVER_MS / 2 };

struct world {
	struct kubelet k;
	struct pods *p;
	struct pods_options options;
	struct pods_handler handler;
	struct arena memory; /* of what is sent */
	struct {
		VEC(struct blob);
	} script;            /* sent to each watcher; it may grow */
	size_t at;           /* the next one of the script */
	struct rpc *watcher; /* NULL: nobody watches */
	bool sending;        /* a message has not left yet */
	enum rpc_code code;  /* not RPC_OK: the watch is refused with it */
	enum rpc_code end;   /* not RPC_OK: it ends so after the script */
	unsigned nr_watched, nr_changed;
	char changed[SERVER_LOG_MAX]; /* uids, each after a blank */
};

static void send_next(struct world *w)
{
	if (!w->watcher || w->sending)
		return;
	if (w->at < w->script.nr) {
		const struct blob *b = &w->script.at[w->at++];

		w->sending = true;
		assert_int_equal(rpc_send(w->watcher, b->data, b->len), 0);
	} else if (w->end != RPC_OK) {
		rpc_end(w->watcher, w->end, "the kubelet's words");
	}
}

static void on_watch(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;

	(void)request;
	assert_int_equal(len, 0);
	w->nr_watched++;
	loop_stop(w->k.loop);
	if (w->code != RPC_OK) {
		rpc_end(r, w->code, "the kubelet's words");
		return;
	}
	w->watcher = r;
	w->sending = false;
	w->at = 0;
	send_next(w);
}

static void on_sendable(void *ctx, struct rpc *r)
{
	struct world *w = ctx;

	if (w->watcher != r)
		return;
	w->sending = false;
	send_next(w);
	loop_stop(w->k.loop);
}

static void on_closed(void *ctx, struct rpc *r)
{
	struct world *w = ctx;

	if (w->watcher == r)
		w->watcher = NULL;
	loop_stop(w->k.loop);
}

static const struct rpc_method methods[] = {
	{PODS_WATCH_PATH, RPC_STREAM, on_watch, on_sendable, on_closed},
};

static void on_changed(void *ctx, const struct known_pod *pod)
{
	struct world *w = ctx;
	size_t len = strlen(w->changed);

	w->nr_changed++;
	assert_ptr_equal(pods_find(w->p, pod->pod.uid), pod);
	if (len + strlen(pod->pod.uid) + 2 < sizeof w->changed)
		(void)snprintf(w->changed + len, sizeof w->changed - len, " %s", pod->pod.uid);
	loop_stop(w->k.loop);
}

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	kubelet_log(&w->k, bad, event, text);
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	kubelet_init(&w->k, methods, sizeof methods / sizeof methods[0], w);
	arena_init(&w->memory, SIZE_MAX);
	w->handler = (struct pods_handler){.ctx = w, .changed = on_changed, .on_event = on_event};
	w->options = (struct pods_options){w->k.path, 1, NEVER_MS};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	pods_close(w->p);
	w->watcher = NULL;
	kubelet_fini(&w->k);
	vec_fini(&w->script);
	arena_fini(&w->memory);
	free(w);
	return 0;
}

static void begin(struct world *w)
{
	w->p = pods_new(w->k.loop, w->k.pump, &w->options, &w->handler);
}

static void send_bytes(struct world *w, struct blob message)
{
	*vec_push(&w->script) = message;
	send_next(w);
}

static void send_event(struct world *w, enum pods_event_type type, struct blob pod)
{
	const struct pods_event event = {type, pod};
	struct blob message;

	assert_int_equal(pods_event_encode(&event, &w->memory, &message, NULL), 0);
	send_bytes(w, message);
}

static const struct key_value annotations[] = {
	{"numafit.io/numa-hint", "{\"v\":1}"}, {"someone.else/says", "a lot"}};

static struct blob encoded(struct world *w, const struct known_pod *pod)
{
	struct blob b;

	assert_int_equal(pods_pod_encode(pod, &w->memory, &b, NULL), 0);
	return b;
}

/* A Guaranteed pod with one container that asks for that many CPUs. */
static void send_pod(struct world *w, enum pods_event_type type, const char *uid, unsigned cpus)
{
	const struct ask app = {.name = "app",
		.kind = CONTAINER_APP,
		.cpu_milli = cpus * UINT64_C(1000),
		.nr_memory = 1,
		.memory = {{0, 1 << 30}}};
	const struct known_pod pod = {.pod = {.uid = uid,
					      .ns = "ml",
					      .name = uid,
					      .qos = QOS_GUARANTEED,
					      .nr = type == PODS_DELETED ? 0 : 1,
					      .container = type == PODS_DELETED ? NULL : &app,
					      .annotations = annotations,
					      .nr_annotations = 2}};

	send_event(w, type, encoded(w, &pod));
}

static void send_synced(struct world *w)
{
	send_event(w, PODS_SYNCED, (struct blob){0});
}

/* The kubelet dies, and has nothing to send when it comes back. */
static inline void die(struct world *w)
{
	kubelet_die(&w->k);
	w->watcher = NULL;
	w->script.nr = 0;
}

static inline uint64_t cpus_of(const struct world *w, const char *uid)
{
	const struct known_pod *pod = pods_find(w->p, uid);

	return pod ? pod->pod.container[0].cpu_milli / 1000 : 0;
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
