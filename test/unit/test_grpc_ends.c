/* gRPC when a side goes away, is closed, sends garbage, or does not read. */
#include "grpc_rig.h"

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

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_client_that_leaves_closes_its_streams),
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
