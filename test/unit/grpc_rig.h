#ifndef NUMAFIT_TEST_GRPC_RIG_H
#define NUMAFIT_TEST_GRPC_RIG_H

#include <kubelet/grpc_client.h>
#include <kubelet/grpc_server.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

/* A server and a client of gRPC on one loop, with methods that do what a test wants. */

/* The server and the client of ours against each other, over real sockets, and each against a peer
 * that speaks HTTP/2 badly or not at all. */

enum {
	TIMEOUT_MS = 60000,
	REQUEST_MAX = 16 << 20,
	TEXT_MAX = 256,
	PATH_BYTES = 108,
	NR_STREAMS = 100,
	NR_HELD = RPC_OPEN_MAX,
	NOT_ENDED = -1
};

/* What the caller of one call saw. */
struct seen {
	struct world *w;
	struct rpc_call *call;
	int code;
	char text[TEXT_MAX];
	unsigned nr_messages, nr_ended;
	uint32_t number; /* the last message, if it is one */
	size_t len;
	bool in_order, cancel_in_message;
};

/* A stream of numbers that is at one of them. */
struct counter {
	struct rpc *r;
	uint32_t at, to;
};

/* A loop with pump, server and socket, and what the server's methods saw. */
struct world {
	struct loop *l;
	struct loop_timer *deadline;
	char dir[64], path[PATH_BYTES];
	struct rpc_pump *pump;
	struct rpc_server *server;
	struct acceptor *door;
	struct rpc *held[NR_HELD];
	unsigned nr_held, nr_called, nr_closed, nr_sent;
	struct seen *to_cancel; /* when "Hang" may send again; it had nr_seen messages then */
	unsigned nr_seen;
	struct counter counters[NR_STREAMS];
	unsigned nr_counters;
	char *big;
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

/* The methods. */

static inline void on_echo(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;

	w->nr_called++;
	rpc_answer(r, request, len);
}

static inline void on_fail(void *ctx, struct rpc *r, const void *request, size_t len)
{
	(void)ctx;
	(void)request;
	(void)len;
	rpc_end(r, RPC_NOT_FOUND, "pod \xc3\xa4: 100 % of it\nis gone");
}

static inline void on_hold(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;

	(void)request;
	(void)len;
	assert_true(w->nr_held < NR_HELD);
	w->nr_called++;
	w->held[w->nr_held++] = r;
	loop_stop(w->l);
}

static inline void on_big(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;
	uint32_t size;

	assert_int_equal(len, sizeof size);
	memcpy(&size, request, sizeof size);
	rpc_answer(r, w->big, size);
}

/* Sends the numbers from 1 to the one that is asked for. */
static inline void on_count(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;
	struct counter c = {r, 1, 0};

	assert_int_equal(len, sizeof c.to);
	memcpy(&c.to, request, sizeof c.to);
	if (!c.to) {
		rpc_end(r, RPC_OK, NULL);
		return;
	}
	assert_true(w->nr_counters < NR_STREAMS);
	w->counters[w->nr_counters++] = c;
	assert_int_equal(rpc_send(r, &c.at, sizeof c.at), 0);
	assert_int_equal(rpc_send(r, &c.at, sizeof c.at), -EBUSY);
}

static inline void on_count_sendable(void *ctx, struct rpc *r)
{
	struct world *w = ctx;
	struct counter *c = w->counters;

	while (c->r != r)
		c++;
	if (c->at++ < c->to) {
		assert_int_equal(rpc_send(r, &c->at, sizeof c->at), 0);
		return;
	}
	rpc_end(r, RPC_OK, NULL);
	rpc_end(r, RPC_INTERNAL, "too late");
	assert_int_equal(rpc_send(r, "", 0), -EPIPE);
}

static inline void on_hang_sendable(void *ctx, struct rpc *r)
{
	struct world *w = ctx;

	w->nr_sent++;
	(void)r;
	if (w->to_cancel) {
		w->nr_seen = w->to_cancel->nr_messages;
		rpc_call_cancel(w->to_cancel->call);
		w->to_cancel = NULL;
	}
	loop_stop(w->l);
}

static inline void on_closed(void *ctx, struct rpc *r)
{
	struct world *w = ctx;

	w->nr_closed++;
	for (unsigned n = 0; n < w->nr_counters; n++) {
		if (w->counters[n].r == r)
			w->counters[n].r = NULL; /* another may get the same address */
	}
	loop_stop(w->l);
}

static const struct rpc_method methods[] = {
	{.path = "/test.Test/Echo", .kind = RPC_UNARY, .called = on_echo},
	{.path = "/test.Test/Fail", .kind = RPC_UNARY, .called = on_fail},
	{.path = "/test.Test/Hold", .kind = RPC_UNARY, .called = on_hold},
	{.path = "/test.Test/Big", .kind = RPC_UNARY, .called = on_big},
};
static const struct rpc_method streams[] = {
	{"/test.Test/Count", RPC_STREAM, on_count, on_count_sendable, on_closed},
	{"/test.Test/Hang", RPC_STREAM, on_hold, on_hang_sendable, on_closed},
};

static inline void start_server(struct world *w)
{
	struct rpc_server_options options = {.request_max = REQUEST_MAX};
	struct err e = {0};

	w->server = rpc_server_new(w->pump, &options);
	rpc_server_add(w->server, methods, sizeof methods / sizeof methods[0], w);
	rpc_server_add(w->server, streams, sizeof streams / sizeof streams[0], w);
	w->door = rpc_server_listen(w->server, w->path, &e);
	assert_string_equal(e.text, "");
	assert_non_null(w->door);
}

static inline void stop_server(struct world *w)
{
	acceptor_close(w->door);
	w->door = NULL;
	rpc_server_free(w->server);
	w->server = NULL;
}

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	const char *tmp = getenv("TMPDIR");
	struct err e = {0};

	snprintf(w->dir, sizeof w->dir, "%s/test_grpc.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof w->path, "%s/socket", w->dir);
	w->big = calloc(1, REQUEST_MAX + 2);
	w->l = loop_new();
	w->deadline = loop_timer_new(w->l, too_late, NULL);
	loop_timer_set(w->deadline, TIMEOUT_MS);
	w->pump = rpc_pump_new(w->l, &e);
	assert_non_null(w->pump);
	start_server(w);
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	stop_server(w);
	rpc_pump_free(w->pump);
	loop_free(w->l);
	(void)unlink(w->path);
	assert_int_equal(rmdir(w->dir), 0);
	free(w->big);
	free(w);
	return 0;
}

/* Callers. */

static inline void on_message(void *ctx, const void *data, size_t len)
{
	struct seen *s = ctx;
	uint32_t before = s->number;

	s->nr_messages++;
	s->len = len;
	if (len == sizeof s->number)
		memcpy(&s->number, data, len);
	s->in_order = s->number == before + 1;
	if (s->cancel_in_message)
		rpc_call_cancel(s->call);
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

static inline void start_request(struct world *w, struct seen *s, const struct rpc_request *request)
{
	struct rpc_call_events events = {s, on_message, on_ended};
	struct err e = {0};

	*s = (struct seen){.w = w, .code = NOT_ENDED, .cancel_in_message = s->cancel_in_message};
	s->call = rpc_call_start(w->pump, request, &events, &e);
	assert_string_equal(e.text, "");
	assert_non_null(s->call);
}

static inline void start_call(struct world *w, struct seen *s, const char *method,
	enum rpc_kind kind, const void *data, size_t len)
{
	struct rpc_request request = {
		.socket = w->path, .method = method, .kind = kind, .data = data, .len = len};

	start_request(w, s, &request);
}

static inline struct seen call(
	struct world *w, const char *method, enum rpc_kind kind, const void *data, size_t len)
{
	struct seen s = {0};

	start_call(w, &s, method, kind, data, len);
	UNTIL(w, s.nr_ended);
	return s;
}

static inline void still_serves(struct world *w)
{
	uint32_t number = 1;
	struct seen s = call(w, "/test.Test/Echo", RPC_UNARY, &number, sizeof number);

	assert_int_equal(s.code, RPC_OK);
	assert_int_equal(s.number, 1);
}

#endif
