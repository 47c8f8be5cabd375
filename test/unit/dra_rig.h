#ifndef NUMAFIT_TEST_DRA_RIG_H
#define NUMAFIT_TEST_DRA_RIG_H

#include <kubelet/dra_plugin.h>
#include <kubelet/grpc_client.h>

#include <codec/blob.h>
#include <limits.h>
#include <numafit/mem.h>
#include <numafit/vec.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* A loop with a gRPC server, and a kubelet that calls it over a real socket. */

enum { TIMEOUT_MS = 120000, TEXT_MAX = 512, PATH_BYTES = 108, NR_SEEN = 64, NOT_ENDED = -1 };

/* What the caller of one call saw. */
struct seen {
	struct loop *l;
	struct rpc_call *call;
	int code;
	char text[TEXT_MAX];
	unsigned nr_messages, nr_ended;
	struct {
		VEC(unsigned char);
	} message; /* the last one */
};

struct dra_world {
	struct loop *l;
	char dir[64], path[PATH_BYTES];
	struct rpc_pump *pump;
	struct rpc_server *server;
	struct seen seen[NR_SEEN];
	unsigned nr_seen;
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

static inline void dra_world_init(struct dra_world *w)
{
	struct rpc_server_options options = {.request_max = 4 << 20};
	const char *tmp = getenv("TMPDIR");
	struct err e = {0};

	snprintf(w->dir, sizeof w->dir, "%s/test_dra.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof w->path, "%s/socket", w->dir);
	w->l = loop_new();
	loop_timer_set(loop_timer_new(w->l, too_late, NULL), TIMEOUT_MS);
	w->pump = rpc_pump_new(w->l, &e);
	assert_non_null(w->pump);
	w->server = rpc_server_new(w->pump, &options);
}

/* Before rpc_server_free(). */
static inline void dra_world_hang_up(struct dra_world *w)
{
	for (unsigned i = 0; i < w->nr_seen; i++) {
		if (!w->seen[i].nr_ended)
			rpc_call_cancel(w->seen[i].call);
		vec_fini(&w->seen[i].message);
	}
	w->nr_seen = 0;
}

static inline void on_message(void *ctx, const void *data, size_t len)
{
	struct seen *s = ctx;

	s->nr_messages++;
	vec_fini(&s->message);
	s->message.at = xcalloc(len + 1, 1);
	s->message.nr = len;
	if (len)
		memcpy(s->message.at, data, len);
	loop_stop(s->l);
}

static inline void on_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct seen *s = ctx;

	s->nr_ended++;
	s->code = (int)code;
	snprintf(s->text, sizeof s->text, "%s", text);
	loop_stop(s->l);
}

static inline struct seen *start_at(struct dra_world *w, const char *socket, const char *method,
	enum rpc_kind kind, struct blob message)
{
	struct rpc_request request = {.socket = socket,
		.method = method,
		.kind = kind,
		.data = message.data,
		.len = message.len};
	assert_true(w->nr_seen < NR_SEEN);
	struct seen *s = &w->seen[w->nr_seen++];
	struct rpc_call_events events = {s, on_message, on_ended};
	struct err e = {0};

	*s = (struct seen){.l = w->l, .code = NOT_ENDED};
	s->call = rpc_call_start(w->pump, &request, &events, &e);
	assert_string_equal(e.text, "");
	return s;
}

static inline struct seen *start(
	struct dra_world *w, const char *method, enum rpc_kind kind, struct blob message)
{
	return start_at(w, w->path, method, kind, message);
}

static inline struct seen *call_at(
	struct dra_world *w, const char *socket, const char *method, struct blob message)
{
	struct seen *s = start_at(w, socket, method, RPC_UNARY, message);

	UNTIL(w, s->nr_ended);
	return s;
}

static inline struct seen *call(struct dra_world *w, const char *method, struct blob message)
{
	return call_at(w, w->path, method, message);
}

static inline void leave(struct seen *s)
{
	rpc_call_cancel(s->call);
	s->nr_ended++;
}

static inline bool is_message(const struct seen *s, struct blob want)
{
	return s->nr_messages && s->message.nr == want.len &&
	       memcmp(s->message.at, want.data ? want.data : "", want.len) == 0;
}

#endif
