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

static void too_late(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened in %d ms", TIMEOUT_MS);
}

/* The methods. */

static void on_echo(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;

	w->nr_called++;
	rpc_answer(r, request, len);
}

static void on_fail(void *ctx, struct rpc *r, const void *request, size_t len)
{
	(void)ctx;
	(void)request;
	(void)len;
	rpc_end(r, RPC_NOT_FOUND, "pod \xc3\xa4: 100 % of it\nis gone");
}

static void on_hold(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;

	(void)request;
	(void)len;
	assert_true(w->nr_held < NR_HELD);
	w->nr_called++;
	w->held[w->nr_held++] = r;
	loop_stop(w->l);
}

static void on_big(void *ctx, struct rpc *r, const void *request, size_t len)
{
	struct world *w = ctx;
	uint32_t size;

	assert_int_equal(len, sizeof size);
	memcpy(&size, request, sizeof size);
	rpc_answer(r, w->big, size);
}

/* Sends the numbers from 1 to the one that is asked for. */
static void on_count(void *ctx, struct rpc *r, const void *request, size_t len)
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

static void on_count_sendable(void *ctx, struct rpc *r)
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

static void on_hang_sendable(void *ctx, struct rpc *r)
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

static void on_closed(void *ctx, struct rpc *r)
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

static void start_server(struct world *w)
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

static void stop_server(struct world *w)
{
	acceptor_close(w->door);
	w->door = NULL;
	rpc_server_free(w->server);
	w->server = NULL;
}

static int setup(void **state)
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

static int teardown(void **state)
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

static void on_message(void *ctx, const void *data, size_t len)
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

static void on_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct seen *s = ctx;

	s->nr_ended++;
	s->code = (int)code;
	snprintf(s->text, sizeof s->text, "%s", text);
	loop_stop(s->w->l);
}

static void start_request(struct world *w, struct seen *s, const struct rpc_request *request)
{
	struct rpc_call_events events = {s, on_message, on_ended};
	struct err e = {0};

	*s = (struct seen){.w = w, .code = NOT_ENDED, .cancel_in_message = s->cancel_in_message};
	s->call = rpc_call_start(w->pump, request, &events, &e);
	assert_string_equal(e.text, "");
	assert_non_null(s->call);
}

static void start_call(struct world *w, struct seen *s, const char *method, enum rpc_kind kind,
	const void *data, size_t len)
{
	struct rpc_request request = {
		.socket = w->path, .method = method, .kind = kind, .data = data, .len = len};

	start_request(w, s, &request);
}

static struct seen call(
	struct world *w, const char *method, enum rpc_kind kind, const void *data, size_t len)
{
	struct seen s = {0};

	start_call(w, &s, method, kind, data, len);
	UNTIL(w, s.nr_ended);
	return s;
}

static void still_serves(struct world *w)
{
	uint32_t number = 1;
	struct seen s = call(w, "/test.Test/Echo", RPC_UNARY, &number, sizeof number);

	assert_int_equal(s.code, RPC_OK);
	assert_int_equal(s.number, 1);
}

static void a_call_is_answered(void **state)
{
	struct world *w = *state;
	uint32_t number = 12345;
	struct seen s = call(w, "/test.Test/Echo", RPC_UNARY, &number, sizeof number);

	assert_int_equal(s.code, RPC_OK);
	assert_string_equal(s.text, "");
	assert_int_equal(s.nr_messages, 1);
	assert_int_equal(s.number, number);
}

static void messages_may_be_empty(void **state)
{
	struct world *w = *state;
	struct seen s = call(w, "/test.Test/Echo", RPC_UNARY, NULL, 0);

	assert_int_equal(s.code, RPC_OK);
	assert_int_equal(s.nr_messages, 1);
	assert_int_equal(s.len, 0);
}

static void a_call_may_be_answered_later(void **state)
{
	struct world *w = *state;
	struct seen first = {0}, second = {0};

	start_call(w, &first, "/test.Test/Hold", RPC_UNARY, NULL, 0);
	UNTIL(w, w->nr_held == 1);
	start_call(w, &second, "/test.Test/Hold", RPC_UNARY, NULL, 0);
	UNTIL(w, w->nr_held == 2);
	assert_int_equal(first.nr_ended + second.nr_ended, 0);
	rpc_answer(w->held[1], "xy", 2);
	UNTIL(w, second.nr_ended);
	assert_int_equal(first.nr_ended, 0);
	rpc_answer(w->held[0], "x", 1);
	UNTIL(w, first.nr_ended);
	assert_int_equal(first.len, 1);
	assert_int_equal(second.len, 2);
}

static void a_status_arrives_with_its_text(void **state)
{
	struct world *w = *state;
	struct seen s = call(w, "/test.Test/Fail", RPC_UNARY, NULL, 0);

	assert_int_equal(s.code, RPC_NOT_FOUND);
	assert_string_equal(s.text, "pod \xc3\xa4: 100 % of it\nis gone");
	assert_int_equal(s.nr_messages, 0);
}

static void an_unknown_method_is_answered(void **state)
{
	static const char *const unknown[] = {
		"/test.Test/Ech", "/test.Test/Echo2", "/Test/Echo", "/", "//", "/test.Test/echo"};

	for (size_t n = 0; n < sizeof unknown / sizeof unknown[0]; n++) {
		struct seen s = call(*state, unknown[n], RPC_UNARY, "x", 1);

		assert_int_equal(s.code, RPC_UNIMPLEMENTED);
	}
}

static void a_deadline_ends_the_call_and_a_late_answer_is_harmless(void **state)
{
	struct world *w = *state;
	struct seen s = {0};
	struct rpc_request request = {
		.socket = w->path, .method = "/test.Test/Hold", .timeout_ms = 50};

	start_request(w, &s, &request);
	UNTIL(w, s.nr_ended);
	assert_int_equal(s.code, RPC_DEADLINE_EXCEEDED);
	still_serves(w);
	if (w->nr_held) /* it may never have got so far */
		rpc_answer(w->held[0], "x", 1);
	still_serves(w);
}

static void a_stream_delivers_all_messages_and_its_end(void **state)
{
	struct world *w = *state;

	uint32_t count_to = 1000;
	struct seen s = call(w, "/test.Test/Count", RPC_STREAM, &count_to, sizeof count_to);
	assert_int_equal(s.code, RPC_OK);
	assert_int_equal(s.nr_messages, 1000);
	assert_true(s.in_order);
	UNTIL(w, w->nr_closed == 1);
}

static void a_stream_may_end_without_a_message(void **state)
{
	uint32_t none = 0;
	struct seen s = call(*state, "/test.Test/Count", RPC_STREAM, &none, sizeof none);

	assert_int_equal(s.code, RPC_OK);
	assert_int_equal(s.nr_messages, 0);
}

static void a_status_waits_for_the_message_before_it(void **state)
{
	struct world *w = *state;
	struct seen s = {0};

	start_call(w, &s, "/test.Test/Hang", RPC_STREAM, NULL, 0);
	UNTIL(w, w->nr_held);
	assert_int_equal(rpc_send(w->held[0], w->big, 4 << 20), 0);
	rpc_end(w->held[0], RPC_ABORTED, "enough");
	UNTIL(w, s.nr_ended && w->nr_closed);
	assert_int_equal(s.len, 4 << 20);
	assert_int_equal(s.code, RPC_ABORTED);
	assert_string_equal(s.text, "enough");
	assert_int_equal(w->nr_sent, 0);
}

static void many_streams_run_at_once(void **state)
{
	struct world *w = *state;
	static struct seen seen[NR_STREAMS];
	uint32_t count_to = 20;
	unsigned nr_ended = 0;

	memset(seen, 0, sizeof seen);
	for (int n = 0; n < NR_STREAMS; n++)
		start_call(w, &seen[n], "/test.Test/Count", RPC_STREAM, &count_to, sizeof count_to);
	while (nr_ended < NR_STREAMS) {
		loop_run(w->l);
		nr_ended = 0;
		for (int n = 0; n < NR_STREAMS; n++)
			nr_ended += seen[n].nr_ended;
	}
	for (int n = 0; n < NR_STREAMS; n++) {
		assert_int_equal(seen[n].code, RPC_OK);
		assert_int_equal(seen[n].nr_messages, 20);
		assert_true(seen[n].in_order);
	}
	UNTIL(w, w->nr_closed == NR_STREAMS);
}

static void a_client_that_leaves_closes_its_streams(void **state)
{
	struct world *w = *state;
	struct seen s = {0};

	start_call(w, &s, "/test.Test/Hang", RPC_STREAM, NULL, 0);
	UNTIL(w, w->nr_held);
	rpc_call_cancel(s.call);
	UNTIL(w, w->nr_closed);
	assert_int_equal(s.nr_ended, 0);
	still_serves(w);
}

/* Its message is under way, and most often waits in the inbox already. */
static void a_canceled_call_gets_no_more_callbacks(void **state)
{
	struct world *w = *state;

	for (unsigned n = 1; n <= 100; n++) {
		struct seen s = {0};

		start_call(w, &s, "/test.Test/Hang", RPC_STREAM, NULL, 0);
		UNTIL(w, w->nr_held == n);
		assert_int_equal(rpc_send(w->held[n - 1], "x", 1), 0);
		w->to_cancel = &s;
		UNTIL(w, w->nr_closed == n);
		assert_int_equal(s.nr_messages, w->nr_seen);
		assert_int_equal(s.nr_ended, 0);
	}
}

static void a_message_callback_may_cancel_its_call(void **state)
{
	struct world *w = *state;
	struct seen s = {.cancel_in_message = true}, unary = {.cancel_in_message = true};
	uint32_t number = 1, count_to = 1000;

	start_call(w, &s, "/test.Test/Count", RPC_STREAM, &count_to, sizeof count_to);
	start_call(w, &unary, "/test.Test/Echo", RPC_UNARY, &number, sizeof number);
	UNTIL(w, w->nr_closed && unary.nr_messages);
	assert_int_equal(s.nr_messages, 1);
	still_serves(w);
	assert_int_equal(s.nr_ended + unary.nr_ended, 0);
}

static void a_call_canceled_by_the_client_may_still_be_answered(void **state)
{
	struct world *w = *state;
	struct seen s = {0};

	for (unsigned n = 0; n < 4; n++) {
		start_call(w, &s, "/test.Test/Hold", RPC_UNARY, NULL, 0);
		UNTIL(w, w->nr_held == n + 1);
		rpc_call_cancel(s.call);
	}
	rpc_answer(w->held[0], "x", 1); /* before the server heard, perhaps */
	still_serves(w);                /* and after it */
	still_serves(w);
	rpc_answer(w->held[1], "x", 1);
	rpc_end(w->held[2], RPC_ABORTED, "nobody hears it");
	still_serves(w); /* the last is not answered at all */
}

static void a_unary_call_wants_exactly_one_reply(void **state)
{
	struct world *w = *state;
	uint32_t none = 0, count_to = 2;
	struct seen s = call(w, "/test.Test/Count", RPC_UNARY, &none, sizeof none);
	assert_int_equal(s.code, RPC_INTERNAL);
	assert_string_equal(s.text, "there is no reply");
	s = call(w, "/test.Test/Count", RPC_UNARY, &count_to, sizeof count_to);
	assert_int_equal(s.code, RPC_INTERNAL);
	assert_string_equal(s.text, "there is more than one reply");
	assert_int_equal(s.nr_messages, 0);
}

static void messages_of_16_megabytes_pass_and_no_larger_ones(void **state)
{
	struct world *w = *state;
	uint32_t at_limit = RPC_REPLY_MAX, beyond = RPC_REPLY_MAX + 1;
	struct seen s = call(w, "/test.Test/Echo", RPC_UNARY, w->big, REQUEST_MAX);

	assert_int_equal(s.code, RPC_OK);
	assert_int_equal(s.len, REQUEST_MAX);
	assert_int_equal(w->nr_called, 1);
	s = call(w, "/test.Test/Echo", RPC_UNARY, w->big, REQUEST_MAX + 1);
	assert_int_equal(s.code, RPC_RESOURCE_EXHAUSTED);
	assert_int_equal(w->nr_called, 1);
	s = call(w, "/test.Test/Big", RPC_UNARY, &at_limit, sizeof at_limit);
	assert_int_equal(s.len, RPC_REPLY_MAX);
	s = call(w, "/test.Test/Big", RPC_UNARY, &beyond, sizeof beyond);
	assert_int_equal(s.code, RPC_RESOURCE_EXHAUSTED);
	still_serves(w);
}

/* Sockets. */

static void a_call_to_an_absent_server_fails_at_once(void **state)
{
	struct world *w = *state;
	char none[PATH_BYTES], longer[2 * PATH_BYTES];
	struct rpc_call_events events = {w, on_message, on_ended};

	snprintf(none, sizeof none, "%s/none", w->dir);
	memset(longer, 'x', sizeof longer);
	longer[sizeof longer - 1] = '\0';
	struct {
		const char *path;
		int code;
	} cases[] = {{none, ENOENT}, {w->path, ECONNREFUSED}, {longer, ENAMETOOLONG}};
	acceptor_close(w->door);
	w->door = NULL;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	memcpy(a.sun_path, w->path, sizeof a.sun_path);
	assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof a), 0);
	for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
		struct rpc_request request = {.socket = cases[n].path, .method = "/a/b"};
		struct err e = {0};

		assert_null(rpc_call_start(w->pump, &request, &events, &e));
		assert_int_equal(e.code, cases[n].code);
		assert_non_null(strstr(e.text, cases[n].path));
	}
	(void)close(fd);
}

static void calls_go_on_when_their_socket_is_closed(void **state)
{
	struct world *w = *state;
	struct seen s = {0};
	struct err e = {0};

	start_call(w, &s, "/test.Test/Hang", RPC_STREAM, NULL, 0);
	UNTIL(w, w->nr_held);
	acceptor_close(w->door);
	assert_int_equal(access(w->path, F_OK), -1);
	w->door = rpc_server_listen(w->server, w->path, &e);
	assert_non_null(w->door);
	still_serves(w);
	assert_int_equal(rpc_send(w->held[0], "x", 1), 0);
	UNTIL(w, s.nr_messages);
	rpc_end(w->held[0], RPC_OK, NULL);
	UNTIL(w, s.nr_ended);
	assert_int_equal(s.code, RPC_OK);
}

static void a_server_that_ends_closes_its_calls(void **state)
{
	struct world *w = *state;
	struct seen unary = {0}, stream = {0}, sending = {0};

	start_call(w, &unary, "/test.Test/Hold", RPC_UNARY, NULL, 0);
	start_call(w, &stream, "/test.Test/Hang", RPC_STREAM, NULL, 0);
	start_call(w, &sending, "/test.Test/Hang", RPC_STREAM, NULL, 0);
	UNTIL(w, w->nr_held == 3);
	stop_server(w);
	assert_int_equal(w->nr_closed, 0);
	UNTIL(w, unary.nr_ended && stream.nr_ended && sending.nr_ended);
	assert_int_equal(unary.code, RPC_UNAVAILABLE);
	assert_int_equal(stream.code, RPC_UNAVAILABLE);
	assert_string_equal(stream.text, "numafit is going down");
	start_server(w);
	still_serves(w);
}

static void a_server_and_a_client_can_be_started_again(void **state)
{
	struct world *w = *state;
	struct err e = {0};

	still_serves(w);
	stop_server(w);
	rpc_pump_free(w->pump);
	w->pump = rpc_pump_new(w->l, &e);
	assert_non_null(w->pump);
	start_server(w);
	still_serves(w);
}

/* Peers that are none. */

static int connect_raw(const struct world *w)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(a.sun_path, w->path, sizeof a.sun_path);
	assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof a), 0);
	return fd;
}

static void write_all(int fd, const void *data, size_t len)
{
	assert_int_equal(write(fd, data, len), (ssize_t)len);
}

#define PREFACE  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define SETTINGS "\0\0\0\4\0\0\0\0\0"
/* POST, http, a path of 15 characters, an authority, te: trailers, content-type: application/grpc:
 * 62 bytes without Huffman codes. */
#define HEADERS(flags, path)                                                                       \
	"\0\0\x3e\1" flags "\0\0\0\1\x83\x86\x04\x0f" path "\x01\x09localhost"                     \
	"\0\x02te\x08trailers\x0f\x10\x10"                                                         \
	"application/grpc"
#define DATA "\0\0\5\0\1\0\0\0\1\0\0\0\0\0" /* an empty message, and the end of the request */

static void a_handwritten_http2_call_is_answered(void **state)
{
	struct world *w = *state;
	static const char bytes[] = PREFACE SETTINGS HEADERS("\4", "/test.Test/Hold") DATA;
	int fd = connect_raw(w);

	write_all(fd, bytes, sizeof bytes - 1);
	UNTIL(w, w->nr_held);
	rpc_answer(w->held[0], "x", 1);
	still_serves(w);
	(void)close(fd);
}

static void a_request_without_a_message_reaches_no_handler(void **state)
{
	struct world *w = *state;
	static const char bytes[] = PREFACE SETTINGS HEADERS("\5", "/test.Test/Hold");
	int fd = connect_raw(w);

	write_all(fd, bytes, sizeof bytes - 1);
	still_serves(w);
	assert_int_equal(w->nr_held, 0);
	(void)close(fd);
}

#define CALL PREFACE SETTINGS HEADERS("\4", "/test.Test/Hold")
#define GARBAGE(s, calls)                                                                          \
	{                                                                                          \
		s, sizeof(s) - 1, calls                                                            \
	}

static void garbage_only_ends_the_connection_that_sent_it(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *bytes;
		size_t len;
		unsigned calls; /* gRPC 1.51 makes something of it nevertheless */
	} garbage[] = {
		GARBAGE("x", 0),
		GARBAGE("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 0),
		GARBAGE("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 0),
		GARBAGE("PRI * HTTP/2.0\r\n\r\nSM\r\n", 0),
		GARBAGE(PREFACE, 0),
		/* settings of 16 MB, settings of one byte */
		GARBAGE(PREFACE "\xff\xff\xff\4\0\0\0\0\0", 0),
		GARBAGE(PREFACE "\0\0\1\4\0\0\0\0\0x", 0),
		/* bad HPACK, data of no call, an unknown frame */
		GARBAGE(PREFACE SETTINGS "\0\0\4\1\4\0\0\0\1\xff\xff\xff\xff", 0),
		GARBAGE(PREFACE SETTINGS "\0\0\5\0\1\0\0\0\7\0\0\0\0\0", 0),
		GARBAGE(PREFACE SETTINGS "\0\0\4\3\0\0\0\0\1\0\0\0\0\0\0\0\x99\0\0\0\0\1", 0),
		/* a call without its message, with one of 4 GB that does not come or ends early */
		GARBAGE(CALL, 0),
		GARBAGE(CALL "\0\0\5\0\0\0\0\0\1\0\xff\xff\xff\xff", 0),
		GARBAGE(CALL "\0\0\6\0\1\0\0\0\1\0\0\0\1\0x", 0),
		/* a message with an unknown flag: empty; one of unknown compression: as it is */
		GARBAGE(CALL "\0\0\5\0\1\0\0\0\1\7\xff\xff\xff\xff", 1),
		GARBAGE(CALL "\0\0\6\0\1\0\0\0\1\1\0\0\0\1x", 1),
	};
	int fds[sizeof garbage / sizeof garbage[0]];
	unsigned calls = 0;

	for (size_t n = 0; n < sizeof garbage / sizeof garbage[0]; n++) {
		fds[n] = connect_raw(w);
		write_all(fds[n], garbage[n].bytes, garbage[n].len);
		still_serves(w);
		calls += garbage[n].calls;
		assert_in_range(w->nr_held, 0, calls);
	}
	for (size_t n = 0; n < sizeof garbage / sizeof garbage[0]; n++)
		(void)close(fds[n]);
	still_serves(w);
}

static void open_by_hand(struct world *w, int *fd)
{
	static const char bytes[] = PREFACE SETTINGS HEADERS("\4", "/test.Test/Hang") DATA;

	*fd = connect_raw(w);
	write_all(*fd, bytes, sizeof bytes - 1);
	UNTIL(w, w->nr_held);
}

static void calls_beyond_the_most_that_may_be_open_are_refused(void **state)
{
	struct world *w = *state;
	char one[] = HEADERS("\4", "/test.Test/Hold") DATA;
	enum { LEN = sizeof one - 1, ID = 7, DATA_AT = LEN - (int)sizeof DATA + 1 };
	int fds[RPC_OPEN_MAX / RPC_STREAMS_MAX];

	for (size_t n = 0; n < sizeof fds / sizeof fds[0]; n++) {
		fds[n] = connect_raw(w);
		write_all(fds[n], PREFACE SETTINGS, sizeof PREFACE SETTINGS - 1);
		for (int k = 0; k < RPC_STREAMS_MAX; k++) {
			one[ID] = one[DATA_AT + ID] = (char)((2 * k + 1) >> CHAR_BIT);
			one[ID + 1] = one[DATA_AT + ID + 1] = (char)(2 * k + 1);
			write_all(fds[n], one, LEN);
		}
	}
	UNTIL(w, w->nr_held == RPC_OPEN_MAX);
	struct seen s = call(w, "/test.Test/Echo", RPC_UNARY, "x", 1);
	assert_int_equal(s.code, RPC_RESOURCE_EXHAUSTED);
	for (unsigned n = 0; n < RPC_OPEN_MAX; n++)
		rpc_answer(w->held[n], "x", 1);
	do
		s = call(w, "/test.Test/Echo", RPC_UNARY, "x", 1);
	while (s.code == RPC_RESOURCE_EXHAUSTED);
	assert_int_equal(s.code, RPC_OK);
	for (size_t n = 0; n < sizeof fds / sizeof fds[0]; n++)
		(void)close(fds[n]);
}

/* One message waits for it, no second one, and it cannot keep a stream from its end. */
static void a_client_that_never_reads_holds_one_message(void **state)
{
	struct world *w = *state;
	int fd;

	open_by_hand(w, &fd);
	assert_int_equal(rpc_send(w->held[0], w->big, 1 << 20), 0);
	still_serves(w);
	assert_int_equal(rpc_send(w->held[0], w->big, 1), -EBUSY);
	assert_int_equal(w->nr_sent, 0);
	uint64_t before = loop_monotonic_ns();
	rpc_end(w->held[0], RPC_UNAVAILABLE, "not read");
	UNTIL(w, w->nr_closed);
	assert_true(loop_monotonic_ns() - before >= RPC_END_MS * UINT64_C(1000000) / 2);
	(void)close(fd);
}

static void a_client_that_dies_is_noticed_in_the_middle_of_a_message(void **state)
{
	struct world *w = *state;
	int fd;

	open_by_hand(w, &fd);
	assert_int_equal(rpc_send(w->held[0], w->big, 1 << 20), 0);
	still_serves(w);
	(void)close(fd);
	UNTIL(w, w->nr_closed);
}

static void a_server_ends_in_time_although_a_client_never_reads(void **state)
{
	struct world *w = *state;
	int fd;

	open_by_hand(w, &fd);
	assert_int_equal(rpc_send(w->held[0], w->big, 1 << 20), 0);
	stop_server(w);
	(void)close(fd);
}

/* What a client makes of a server that is none. */
struct fake {
	struct world *w;
	const char *bytes;
	size_t len;
};

static void fake_data(void *ctx, const void *data, size_t len)
{
	(void)ctx;
	(void)data;
	(void)len;
}

static void fake_closed(void *ctx, int error)
{
	(void)ctx;
	(void)error;
}

static struct stream_events fake_accepted(void *ctx, struct stream *s)
{
	struct fake *f = ctx;

	if (f->bytes)
		(void)stream_write(s, f->bytes, f->len);
	else
		stream_finish(s);
	return (struct stream_events){.ctx = f, .data = fake_data, .closed = fake_closed};
}

static void a_server_that_does_not_speak_grpc_ends_the_call(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *bytes;
		size_t len;
		int code; /* RPC_OK: any other */
	} cases[] = {
		{NULL, 0, RPC_UNAVAILABLE},
		{"", 0, RPC_DEADLINE_EXCEEDED},
		{"HTTP/1.1 400 Bad Request\r\n\r\n", 28, RPC_INTERNAL},
		{SETTINGS, sizeof SETTINGS - 1, RPC_DEADLINE_EXCEEDED},
		{SETTINGS "\0\0\4\1\4\0\0\0\1\xff\xff\xff\xff", sizeof SETTINGS - 1 + 13, RPC_OK},
	};
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/fake", w->dir);
	for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
		struct fake f = {w, cases[n].bytes, cases[n].len};
		struct err e = {0};
		struct seen s = {0};
		struct rpc_request request = {
			.socket = path, .method = "/test.Test/Echo", .timeout_ms = 200};
		struct listener *ls = listener_new(w->l, path, 0600, &f, fake_accepted, &e);

		assert_non_null(ls);
		start_request(w, &s, &request);
		UNTIL(w, s.nr_ended);
		if (cases[n].code != RPC_OK)
			assert_int_equal(s.code, cases[n].code);
		else
			assert_int_not_equal(s.code, RPC_OK);
		assert_int_equal(s.nr_messages, 0);
		listener_close(ls);
	}
}

/* The process. */

static bool blocks_signals(const char *task)
{
	char path[TEXT_MAX], line[TEXT_MAX];
	uint64_t blocked = 0;

	snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		(void)sscanf(line, "SigBlk: %" SCNx64, &blocked);
	(void)fclose(f);
	uint64_t wanted = 1u << (SIGTERM - 1) | 1u << (SIGINT - 1) | 1u << (SIGHUP - 1);
	return (blocked & wanted) == wanted;
}

static void signals_are_delivered_to_the_thread_of_the_loop(void **state)
{
	struct world *w = *state;
	DIR *tasks = opendir("/proc/self/task");
	unsigned nr_open = 0, nr = 0;

	still_serves(w);
	for (struct dirent *d; (d = readdir(tasks));) {
		if (d->d_name[0] == '.')
			continue;
		nr++;
		nr_open += !blocks_signals(d->d_name);
	}
	(void)closedir(tasks);
	assert_true(nr > 2);
	assert_int_equal(nr_open, 1);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_call_is_answered),
		CASE(messages_may_be_empty),
		CASE(a_call_may_be_answered_later),
		CASE(a_status_arrives_with_its_text),
		CASE(an_unknown_method_is_answered),
		CASE(a_deadline_ends_the_call_and_a_late_answer_is_harmless),
		CASE(a_stream_delivers_all_messages_and_its_end),
		CASE(a_stream_may_end_without_a_message),
		CASE(a_status_waits_for_the_message_before_it),
		CASE(many_streams_run_at_once),
		CASE(a_client_that_leaves_closes_its_streams),
		CASE(a_canceled_call_gets_no_more_callbacks),
		CASE(a_message_callback_may_cancel_its_call),
		CASE(a_call_canceled_by_the_client_may_still_be_answered),
		CASE(a_unary_call_wants_exactly_one_reply),
		CASE(messages_of_16_megabytes_pass_and_no_larger_ones),
		CASE(a_call_to_an_absent_server_fails_at_once),
		CASE(calls_go_on_when_their_socket_is_closed),
		CASE(a_server_that_ends_closes_its_calls),
		CASE(a_server_and_a_client_can_be_started_again),
		CASE(a_handwritten_http2_call_is_answered),
		CASE(a_request_without_a_message_reaches_no_handler),
		CASE(garbage_only_ends_the_connection_that_sent_it),
		CASE(calls_beyond_the_most_that_may_be_open_are_refused),
		CASE(a_client_that_never_reads_holds_one_message),
		CASE(a_client_that_dies_is_noticed_in_the_middle_of_a_message),
		CASE(a_server_ends_in_time_although_a_client_never_reads),
		CASE(a_server_that_does_not_speak_grpc_ends_the_call),
		CASE(signals_are_delivered_to_the_thread_of_the_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
