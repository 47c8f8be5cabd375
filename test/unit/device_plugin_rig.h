#ifndef NUMAFIT_TEST_DEVICE_PLUGIN_RIG_H
#define NUMAFIT_TEST_DEVICE_PLUGIN_RIG_H

#include <kubelet/device_plugin.h>
#include <kubelet/grpc_client.h>

#include <errno.h>
#include <malloc.h>
#include <numafit/mem.h>
#include <numafit/vec.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

/* A loop with a device plugin behind a socket, its handler, whose answers the test sets, and a
 * kubelet. */

/* The device plugin as a kubelet calls it, over a real socket. */

enum {
	TIMEOUT_MS = 120000,
	ARENA_MAX = 256 << 20,
	TEXT_MAX = 512,
	PATH_BYTES = 108,
	ID_BYTES = 32,
	NR_DEVICES_MAX = 150000,
	NR_SEEN = 128,
	NR_CHANGES = 1000,
	NODES = 8,
	NOT_ENDED = -1
};

/* What the caller of one call saw. */
struct seen {
	struct world *w;
	struct rpc_call *call;
	int code;
	char text[TEXT_MAX];
	unsigned nr_messages, nr_ended;
	struct {
		VEC(unsigned char);
	} message; /* the last one */
};

/* A loop with a plugin behind a socket, and its handler, whose answers the test sets. */
struct world {
	struct loop *l;
	char dir[64], path[PATH_BYTES];
	struct rpc_pump *pump;
	struct rpc_server *server;
	struct acceptor *door;
	struct device_plugin *plugin;
	struct device_plugin_handler handler;
	struct arena arena; /* for messages of the test's own */
	struct seen seen[NR_SEEN];
	unsigned nr_seen;

	struct plugin_device *device;
	size_t nr_devices;
	char (*id)[ID_BYTES];
	struct err refuse; /* code: what every function of the handler says */
	unsigned nr_lists, nr_asked;
	size_t nr_ids; /* of all calls */
	char first[ID_BYTES], last[ID_BYTES];
	size_t ask_size, nr_available, nr_must;
	unsigned nr_watching, nr_logged;
	unsigned nr_events;
	char event[TEXT_MAX];
};

/* Every callback stops the loop, so that the condition is looked at again. */
#define UNTIL(w, condition)                                                                        \
	do {                                                                                       \
		while (!(condition))                                                               \
			loop_run((w)->l);                                                          \
	} while (0)

static inline void too_late(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened in %d ms", TIMEOUT_MS);
}

/* The handler. */

static inline int devices(
	void *ctx, struct arena *a, struct plugin_device **out, size_t *nr, struct err *e)
{
	struct world *w = ctx;

	(void)a;
	w->nr_lists++;
	if (w->refuse.code)
		return err_set(e, w->refuse.code, "%s", w->refuse.text);
	*out = w->device;
	*nr = w->nr_devices;
	return 0;
}

static inline void note_ids(struct world *w, const struct device_ids *ids)
{
	w->nr_asked++;
	w->nr_ids += ids->nr;
	if (!ids->nr)
		return;
	snprintf(w->first, sizeof w->first, "%s", ids->id[0]);
	snprintf(w->last, sizeof w->last, "%s", ids->id[ids->nr - 1]);
}

/* The last ones of those available, in their order. */
static inline size_t prefer(
	void *ctx, const struct preferred_ask *ask, struct arena *a, const char **out)
{
	struct world *w = ctx;
	size_t nr = ask->size < ask->available.nr ? ask->size : ask->available.nr;

	(void)a;
	note_ids(w, &ask->available);
	w->ask_size = ask->size;
	w->nr_available = ask->available.nr;
	w->nr_must = ask->must_include.nr;
	for (size_t i = 0; i < nr; i++)
		out[i] = ask->available.id[ask->available.nr - nr + i];
	return nr;
}

/* What a container of these ids gets: their number, the first and the last one. */
static inline struct allocate_answer answer_for(const struct device_ids *ids, struct arena *a)
{
	struct key_value *env = arena_array(a, 2, sizeof *env), *note = env + 1;
	char *nr = arena_alloc(a, ID_BYTES);

	snprintf(nr, ID_BYTES, "%zu", ids->nr);
	*env = (struct key_value){"NR", nr};
	*note = (struct key_value){"first", ids->nr ? ids->id[0] : ""};
	return (struct allocate_answer){env, note, 1, 1};
}

static inline int allocate(void *ctx, const struct device_ids *ids, struct arena *a,
	struct allocate_answer *out, struct err *e)
{
	struct world *w = ctx;

	note_ids(w, ids);
	if (w->refuse.code)
		return err_set(e, w->refuse.code, "%s", w->refuse.text);
	*out = answer_for(ids, a);
	return 0;
}

static inline int pre_start(void *ctx, const struct device_ids *ids, struct err *e)
{
	struct world *w = ctx;

	note_ids(w, ids);
	return w->refuse.code ? err_set(e, w->refuse.code, "%s", w->refuse.text) : 0;
}

static inline void watched(void *ctx, unsigned nr_streams)
{
	struct world *w = ctx;

	w->nr_watching = nr_streams;
	w->nr_logged++;
	loop_stop(w->l);
}

static inline void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	assert_true(bad);
	w->nr_events++;
	snprintf(w->event, sizeof w->event, "%s: %s", event, text);
	loop_stop(w->l);
}

/* nr devices, those of a node together; the last one is what tests change. */
static inline void make_devices(struct world *w, size_t nr)
{
	size_t on_node = nr / NODES + 1;

	w->nr_devices = nr;
	for (size_t i = 0; i < nr; i++) {
		snprintf(w->id[i], ID_BYTES, "node%u-%05u", (unsigned)(i / on_node),
			(unsigned)(i % on_node));
		w->device[i] = (struct plugin_device){w->id[i], true, (int)(i / on_node)};
	}
}

static inline int setup(void **state)
{
	struct rpc_server_options options = {.request_max = DEVICE_PLUGIN_MESSAGE_MAX};
	struct world *w = xcalloc(1, sizeof *w);
	const char *tmp = getenv("TMPDIR");
	struct err e = {0};

	snprintf(w->dir, sizeof w->dir, "%s/test_plugin.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof w->path, "%s/socket", w->dir);
	arena_init(&w->arena, ARENA_MAX);
	w->device = xcalloc(NR_DEVICES_MAX, sizeof *w->device);
	w->id = xcalloc(NR_DEVICES_MAX, sizeof *w->id);
	make_devices(w, 16);
	w->handler = (struct device_plugin_handler){
		w, devices, prefer, allocate, pre_start, watched, on_event};
	w->l = loop_new();
	loop_timer_set(loop_timer_new(w->l, too_late, NULL), TIMEOUT_MS);
	w->pump = rpc_pump_new(w->l, &e);
	assert_non_null(w->pump);
	w->server = rpc_server_new(w->pump, &options);
	w->plugin = device_plugin_new(w->server, &w->handler);
	w->door = rpc_server_listen(w->server, w->path, &e);
	assert_string_equal(e.text, "");
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i < w->nr_seen; i++) {
		if (!w->seen[i].nr_ended)
			rpc_call_cancel(w->seen[i].call);
		vec_fini(&w->seen[i].message);
	}
	acceptor_close(w->door);
	rpc_server_free(w->server);
	device_plugin_free(w->plugin);
	rpc_pump_free(w->pump);
	loop_free(w->l);
	assert_int_equal(rmdir(w->dir), 0);
	arena_fini(&w->arena);
	free(w->device);
	free(w->id);
	free(w);
	return 0;
}

/* The kubelet's side. */

static inline void on_message(void *ctx, const void *data, size_t len)
{
	struct seen *s = ctx;

	s->nr_messages++;
	vec_fini(&s->message);
	s->message.at = xcalloc(len + 1, 1);
	s->message.nr = len;
	if (len)
		memcpy(s->message.at, data, len);
	loop_stop(s->w->l);
}

static inline void on_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct seen *s = ctx;

	s->nr_ended++;
	s->code = (int)code;
	snprintf(s->text, sizeof s->text, "%s", text);
	loop_stop(s->w->l);
}

static inline struct seen *start(
	struct world *w, const char *method, enum rpc_kind kind, struct blob message)
{
	struct rpc_request request = {.socket = w->path,
		.method = method,
		.kind = kind,
		.data = message.data,
		.len = message.len};
	assert_true(w->nr_seen < NR_SEEN);
	struct seen *s = &w->seen[w->nr_seen++];
	struct rpc_call_events events = {s, on_message, on_ended};
	struct err e = {0};

	*s = (struct seen){.w = w, .code = NOT_ENDED};
	s->call = rpc_call_start(w->pump, &request, &events, &e);
	assert_string_equal(e.text, "");
	return s;
}

static inline struct seen *call(struct world *w, const char *method, struct blob message)
{
	struct seen *s = start(w, method, RPC_UNARY, message);

	UNTIL(w, s->nr_ended);
	return s;
}

#define OPTIONS   DEVICE_PLUGIN_PATH("GetDevicePluginOptions")
#define PREFERRED DEVICE_PLUGIN_PATH("GetPreferredAllocation")
#define ALLOCATE  DEVICE_PLUGIN_PATH("Allocate")
#define PRE_START DEVICE_PLUGIN_PATH("PreStartContainer")

static inline bool is_message(const struct seen *s, struct blob want)
{
	return s->nr_messages && s->message.nr == want.len &&
	       memcmp(s->message.at, want.data ? want.data : "", want.len) == 0;
}

/* Requests, byte by byte (protobuf.dev/programming-guides/encoding). */

struct bytes {
	VEC(unsigned char);
};

static inline struct blob blob(const struct bytes *b)
{
	return (struct blob){b->at, b->nr};
}

#endif
