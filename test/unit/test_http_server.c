#include <io/http_server.h>

#include <io/http_server_listen.h>
#include <io/own_address.h>
#include <io/inbox.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* The server runs on the test's thread; its clients, with plain sockets, on another one. What they
 * are told is looked at when they are through. */

enum {
	TIMEOUT_MS = 20000,
	HUNDRED = 100,
	FEW = 4,
	LARGE = 64 << 20,
	SOME_LARGE = 16 << 20, /* more than sockets take */
	GOT_MAX = 64 << 10,
	TINY_BODY = 1000
};

struct world {
	struct loop *l;
	struct inbox *in;
	struct loop_timer *deadline;
	struct http_server *server;
	struct http_server_options o;
	unsigned port;
	/* the server's side */
	struct http_exchange *held[HUNDRED + 1];
	unsigned nr_held, nr_gone, nr_handled;
	bool local;
	size_t body_len;
	uint32_t body_sum;
	/* the clients' */
	void (*script)(struct world *w);
	size_t len;
	char got[GOT_MAX];
	char dir[64];
};

static void too_late(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened in %d ms", TIMEOUT_MS);
}

static void script_ended(void *ctx, void *what, int value)
{
	struct world *w = ctx;

	(void)what, (void)value;
	loop_stop(w->l);
}

/* Everything that was asked, as an answer. */
static void say(struct http_exchange *x, const struct http_request *r)
{
	char text[512];
	int len = snprintf(text, sizeof text, "%s %s query=%s type=%s body=%.100s len=%zu\n",
		r->method, r->path, r->query, r->type, r->body, r->len);

	http_answer_send(x, 200, "text/plain", text, (size_t)len, "X-Extra: yes");
}

static void answer_held(struct world *w)
{
	while (w->nr_held)
		http_answer_send(w->held[--w->nr_held], 200, "text/plain", "late\n", 5, NULL);
}

/* What the server is to be from the next "/change" on. */
static struct {
	const char *cert, *key, *client_ca;
	struct err e;
} change;

/* "/hold" waits until somebody asks for "/release". */
static void handle(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	struct world *w = ctx;

	__atomic_add_fetch(&w->nr_handled, 1, __ATOMIC_RELEASE);
	w->local = r->local;
	w->body_len = r->len;
	w->body_sum = text_crc32c(r->body, r->len);
	if (text_equal(r->path, "/hold")) {
		w->held[w->nr_held++] = x;
		return;
	}
	if (text_equal(r->path, "/large")) {
		auto_free char *large = xcalloc(SOME_LARGE, 1);

		http_answer_send(x, 200, "text/plain", large, SOME_LARGE, NULL);
		return;
	}
	if (text_equal(r->path, "/change"))
		(void)http_server_set_tls(
			w->server, change.cert, change.key, change.client_ca, &change.e);
	say(x, r);
	if (text_equal(r->path, "/release"))
		answer_held(w);
}

static void gone(void *ctx, struct http_exchange *x)
{
	struct world *w = ctx;

	__atomic_add_fetch(&w->nr_gone, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < w->nr_held; i++)
		if (w->held[i] == x)
			w->held[i] = w->held[--w->nr_held];
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	w->l = loop_new();
	w->in = inbox_new(w->l, 1, script_ended, w);
	w->deadline = loop_timer_new(w->l, too_late, NULL);
	loop_timer_set(w->deadline, TIMEOUT_MS);
	w->o = (struct http_server_options){
		.address = "127.0.0.1:0", .ctx = w, .handle = handle, .gone = gone};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	char command[128];

	http_server_free(w->server);
	inbox_close(w->in);
	loop_free(w->l);
	if (*w->dir) {
		(void)snprintf(command, sizeof command, "rm -rf %s", w->dir);
		assert_int_equal(system(command), 0);
	}
	free(w);
	return 0;
}

static void serve(struct world *w)
{
	struct err e = {0};

	w->server = http_server_new(w->l, &w->o, &e);
	if (!w->server)
		fail_msg("%s", e.text);
	w->port = http_server_port(w->server);
	assert_true(w->port > 0);
}

static void *run_script(void *arg)
{
	struct world *w = arg;

	w->script(w);
	inbox_put(w->in, NULL, 0);
	return NULL;
}

/* Serve while the script runs; what it got. */
static const char *play(struct world *w, void (*script)(struct world *w))
{
	pthread_t thread;

	w->script = script;
	w->len = 0;
	assert_int_equal(pthread_create(&thread, NULL, run_script, w), 0);
	loop_run(w->l);
	assert_int_equal(pthread_join(thread, NULL), 0);
	w->got[w->len] = '\0';
	return w->got;
}

/* Clients: these run on the other thread. */

static void must(bool is, const char *what)
{
	if (is)
		return;
	(void)fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
	abort();
}

/* From 127.0.0.host. */
static int dial_from(const struct world *w, unsigned host)
{
	const struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)w->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in from = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && bind(fd, (const struct sockaddr *)&from, sizeof from) == 0, "bind");
	must(connect(fd, (const struct sockaddr *)&a, sizeof a) == 0, "connect");
	return fd;
}

static int dial(const struct world *w)
{
	return dial_from(w, 1);
}

static bool put(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

static void ask(int fd, const char *text)
{
	must(put(fd, text, strlen(text)), "send");
}

/* Read on until text has come, or to the end: what came is added to w->got. Whether it has come. */
static bool hear(struct world *w, int fd, const char *text)
{
	size_t from = w->len;

	for (;;) {
		w->got[w->len] = '\0';
		if (text && strstr(w->got + from, text))
			return true;
		ssize_t n = recv(fd, w->got + w->len, sizeof w->got - 1 - w->len, 0);

		if (n <= 0)
			return false;
		w->len += (size_t)n;
	}
}

static void hear_all(struct world *w, int fd)
{
	(void)hear(w, fd, NULL);
	(void)close(fd);
}

/* One request in a connection of its own. */
static void ask_once(struct world *w, const char *text)
{
	int fd = dial(w);

	ask(fd, text);
	hear_all(w, fd);
}

static void await(const unsigned *counter, unsigned nr)
{
	while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < nr)
		(void)poll(NULL, 0, 1);
}

static void await_handled(const struct world *w, unsigned nr)
{
	await(&w->nr_handled, nr);
}

static const char *plain_request; /* of the script that follows */
static void one_request(struct world *w)
{
	ask_once(w, plain_request);
}

static unsigned count(const char *text, const char *what)
{
	unsigned nr = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		nr++;
	return nr;
}

#define END "Host: x\r\nConnection: close\r\n\r\n"

static void the_request_reaches_the_handler(void **state)
{
	static const struct {
		const char *in, *want;
	} cases[] = {
		{"GET /a HTTP/1.1\r\n" END, "\r\n\r\nGET /a query= type= body= len=0\n"},
		{"GET /a?verbose HTTP/1.1\r\n" END, "\nGET /a query=verbose type="},
		{"GET /a%62?x=%20y&z HTTP/1.1\r\n" END, "\nGET /ab query=x=%20y&z type="},
		{"POST /f HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 3\r\n" END
		 "abc",
			"POST /f query= type=application/json body=abc len=3\n"},
		{"POST /f HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END
		 "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n",
			"body=abcde len=5\n"},
		{"DELETE /a HTTP/1.1\r\n" END, "\nDELETE /a "},
		{"GET /a HTTP/1.0\r\n\r\n", "\nGET /a "},
		{"GET /a HTTP/1.1\r\n" END, "\r\nX-Extra: yes\r\n"},
		{"GET /a HTTP/1.1\r\n" END, "\r\nContent-Type: text/plain\r\n"},
	};
	struct world *w = *state;

	serve(w);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		plain_request = cases[i].in;
		const char *got = play(w, one_request);
		if (!strstr(got, cases[i].want) || strncmp(got, "HTTP/1.1 200 ", 13) != 0)
			fail_msg("asked %s\ngot %s", cases[i].in, got);
	}
	assert_true(w->local);
}

static void a_malformed_http_request_is_refused(void **state)
{
	static char long_uri[96 << 10], long_header[96 << 10];
	const struct {
		const char *in, *want;
	} cases[] = {
		{"nonsense\r\n\r\n", ""},                    /* closed */
		{"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "}, /* no Host */
		{"GET / HTTP/9.1\r\n" END, "HTTP/1."},
		{long_uri, "HTTP/1.1 414 "},
		{long_header, "HTTP/1.1 431 "},
		{"POST /f HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END "zz\r\n",
			"HTTP/1.1 400 "},
	};
	struct world *w = *state;

	memset(long_uri, 'a', sizeof long_uri - 1);
	memcpy(long_uri, "GET /", 5);
	memset(long_header, 'a', sizeof long_header - 1);
	memcpy(long_header, "GET / HTTP/1.1\r\nX: ", 19);
	serve(w);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		plain_request = cases[i].in;
		const char *got = play(w, one_request);
		if (strncmp(got, cases[i].want, strlen(cases[i].want)) != 0 || w->nr_handled)
			fail_msg("asked %.100s\ngot %s", cases[i].in, got);
	}
}

static void head_gets_no_body(void **state)
{
	struct world *w = *state;

	serve(w);
	plain_request = "HEAD /a HTTP/1.1\r\n" END;
	const char *got = play(w, one_request);
	assert_non_null(strstr(got, "HTTP/1.1 200 "));
	assert_non_null(strstr(got, "Content-Length: "));
	assert_string_equal(strstr(got, "\r\n\r\n"), "\r\n\r\n");
}

static void pipeline(struct world *w)
{
	ask_once(w, "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\n"
		    "Content-Length: 2\r\n\r\nhiGET /3 HTTP/1.1\r\n" END);
}

static void several_requests_may_arrive_at_once(void **state)
{
	struct world *w = *state;

	serve(w);
	const char *got = play(w, pipeline);
	const char *one = strstr(got, "GET /1 "), *two = strstr(got, "POST /2 "),
		   *three = strstr(got, "GET /3 ");
	assert_true(one && two && three && one < two && two < three);
	assert_non_null(strstr(two, "body=hi len=2"));
}

static void byte_by_byte(struct world *w)
{
	static const char text[] = "POST /slow HTTP/1.1\r\nContent-Length: 5\r\n" END "12345";
	const int on = 1;
	int fd = dial(w);

	(void)setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);
	for (size_t i = 0; i < sizeof text - 1; i++)
		must(put(fd, text + i, 1), "send");
	hear_all(w, fd);
}

static void a_request_may_arrive_byte_by_byte(void **state)
{
	struct world *w = *state;

	serve(w);
	assert_non_null(strstr(play(w, byte_by_byte), "POST /slow query= type= body=12345 len=5"));
}

static void connections_are_kept(struct world *w)
{
	int fd = dial(w);

	for (int i = 0; i < HUNDRED; i++) {
		ask(fd, "GET /again HTTP/1.1\r\nHost: x\r\n\r\n");
		must(hear(w, fd, "len=0\n"), "an answer");
	}
	(void)close(fd);
}

static void a_hundred_requests_go_through_one_connection(void **state)
{
	struct world *w = *state;

	serve(w);
	assert_int_equal(count(play(w, connections_are_kept), "GET /again"), HUNDRED);
}

static void announced(struct world *w)
{
	ask_once(w, "POST /f HTTP/1.1\r\nContent-Length: 1001\r\n" END);
}

static void chunked(struct world *w)
{
	char chunk[TINY_BODY + 1];
	int fd = dial(w);

	memset(chunk, 'x', sizeof chunk);
	ask(fd, "POST /f HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END "3e9\r\n");
	must(put(fd, chunk, sizeof chunk), "send");
	ask(fd, "\r\n0\r\n\r\n");
	hear_all(w, fd);
}

static void never_ending(struct world *w)
{
	char chunk[TINY_BODY];
	int fd = dial(w);

	memset(chunk, 'x', sizeof chunk);
	ask(fd, "POST /f HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END "ffffffff\r\n");
	while (put(fd, chunk, sizeof chunk))
		;
	hear_all(w, fd);
}

static void fits(struct world *w)
{
	char body[TINY_BODY];
	int fd = dial(w);

	memset(body, 'x', sizeof body);
	ask(fd, "POST /f HTTP/1.1\r\nContent-Length: 1000\r\n" END);
	must(put(fd, body, sizeof body), "send");
	hear_all(w, fd);
}

static void bodies_have_a_limit(void **state)
{
	struct world *w = *state;

	w->o.body_max = TINY_BODY;
	serve(w);
	assert_non_null(strstr(play(w, announced), "HTTP/1.1 413 "));
	assert_non_null(strstr(play(w, chunked), "HTTP/1.1 413 "));
	assert_string_equal(play(w, never_ending), "");
	assert_int_equal(w->nr_handled, 0);
	assert_non_null(strstr(play(w, fits), "len=1000\n"));
}

static void send_never(struct world *w)
{
	ask_once(w, "POST /f HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END "ff");
}

static void a_get_request_does_not_wait_for_a_body(void **state)
{
	struct world *w = *state;

	w->o.no_body = true;
	serve(w);
	assert_non_null(strstr(play(w, announced), "POST /f query= type= body= len=0\n"));
	assert_non_null(strstr(play(w, send_never), "POST /f query= type= body= len=0\n"));
	plain_request = "GET /a HTTP/1.1\r\nContent-Length: 0\r\n" END;
	assert_non_null(strstr(play(w, one_request), "GET /a "));
}

static void send_large(struct world *w)
{
	auto_free char *body = xcalloc(LARGE, 1);
	char head[128];

	for (size_t i = 0; i < LARGE; i++)
		body[i] = (char)(i % 251);
	int fd = dial(w); /* only now: who is silent for 2 s is let go */
	(void)snprintf(head, sizeof head, "POST /f HTTP/1.1\r\nContent-Length: %d\r\n" END, LARGE);
	ask(fd, head);
	must(put(fd, body, LARGE), "send");
	hear_all(w, fd);
}

static void a_body_of_64_mib_arrives_whole(void **state)
{
	auto_free char *body = xcalloc(LARGE, 1);
	struct world *w = *state;

	for (size_t i = 0; i < LARGE; i++)
		body[i] = (char)(i % 251);
	w->o.body_max = LARGE;
	w->o.request_ms = TIMEOUT_MS;
	serve(w);
	uint64_t from = loop_monotonic_ns();
	(void)play(w, send_large);
	print_message("64 MiB took %llu ms\n",
		(unsigned long long)(loop_monotonic_ns() - from) / 1000000);
	assert_int_equal(w->body_len, LARGE);
	assert_int_equal(w->body_sum, text_crc32c(body, LARGE));
}

static void crowd(struct world *w)
{
	int fd[HUNDRED];

	for (int i = 0; i < HUNDRED; i++)
		fd[i] = dial(w);
	for (int i = 0; i < HUNDRED; i++)
		ask(fd[i], "GET /all HTTP/1.1\r\n" END);
	for (int i = 0; i < HUNDRED; i++)
		hear_all(w, fd[i]);
}

static void a_hundred_clients_are_served_at_once(void **state)
{
	struct world *w = *state;

	w->o.clients_max = HUNDRED;
	serve(w);
	assert_int_equal(count(play(w, crowd), "GET /all"), HUNDRED);
}

static void more_clients_than_there_may_be_wait(void **state)
{
	struct world *w = *state;

	w->o.clients_max = FEW;
	serve(w);
	assert_int_equal(count(play(w, crowd), "GET /all"), HUNDRED);
}

static void hold_then_release(struct world *w)
{
	int fd[HUNDRED];

	for (int i = 0; i < HUNDRED; i++) {
		fd[i] = dial(w);
		ask(fd[i], "GET /hold HTTP/1.1\r\n" END);
	}
	/* who asks to release them is not to come before they do */
	await_handled(w, HUNDRED);
	ask_once(w, "GET /release HTTP/1.1\r\n" END);
	for (int i = 0; i < HUNDRED; i++)
		hear_all(w, fd[i]);
}

static void answers_may_come_in_a_later_turn(void **state)
{
	struct world *w = *state;

	w->o.clients_max = 2 * HUNDRED;
	serve(w);
	const char *got = play(w, hold_then_release);
	assert_int_equal(count(got, "late\n"), HUNDRED);
	assert_int_equal(count(got, "HTTP/1.1 200 "), HUNDRED + 1);
	assert_int_equal(w->nr_gone, 0);
}

static void pipelined_holds(struct world *w)
{
	int fd = dial(w);

	ask(fd, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\nGET /after HTTP/1.1\r\n" END);
	await_handled(w, 1);
	ask_once(w, "GET /release HTTP/1.1\r\n" END);
	hear_all(w, fd);
}

static void a_request_behind_an_unanswered_one_waits_for_it(void **state)
{
	struct world *w = *state;

	serve(w);
	const char *got = play(w, pipelined_holds);
	const char *late = strstr(got, "late\n"), *after = strstr(got, "GET /after ");
	assert_true(late && after && late < after);
}

static void hang_up(struct world *w)
{
	int fd = dial(w);

	ask(fd, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
	await_handled(w, 1);
	(void)close(fd);
	if (w->o.gone)
		await(&w->nr_gone, 1);
}

static void a_client_that_hangs_up_is_reported_to_the_handler(void **state)
{
	struct world *w = *state;

	serve(w);
	(void)play(w, hang_up);
	assert_int_equal(w->nr_gone, 1);
	assert_int_equal(w->nr_held, 0);
	plain_request = "GET /next HTTP/1.1\r\n" END;
	assert_non_null(strstr(play(w, one_request), "GET /next "));
}

static void the_hangup_callback_is_optional(void **state)
{
	struct world *w = *state;

	w->o.gone = NULL;
	serve(w);
	(void)play(w, hang_up);
	assert_int_equal(w->nr_held, 1);
	answer_held(w);
	plain_request = "GET /next HTTP/1.1\r\n" END;
	assert_non_null(strstr(play(w, one_request), "GET /next "));
}

static void hold(struct world *w)
{
	int fd = dial(w);

	ask(fd, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\nGET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
	await_handled(w, 1);
	/* fd is left open: its other side is closed by the server's end, or by the process's */
}

static void a_server_may_end_before_it_has_answered(void **state)
{
	struct world *w = *state;

	serve(w);
	(void)play(w, hold);
	http_server_free(w->server);
	w->server = NULL;
	assert_int_equal(w->nr_gone, 0);
	w->o.address = "127.0.0.1:0";
	serve(w);
	plain_request = "GET /next HTTP/1.1\r\n" END;
	assert_non_null(strstr(play(w, one_request), "GET /next "));
}

static void say_half(struct world *w)
{
	int fd = dial(w);

	ask(fd, "GET /half HTTP/1.1\r\nHost:");
	hear_all(w, fd);
}

static void drip(struct world *w)
{
	struct pollfd p = {.fd = dial(w), .events = POLLIN};
	uint64_t from = loop_monotonic_ns();

	/* a byte at a time, never still for as long as a connection may idle */
	ask(p.fd, "GET /");
	while (put(p.fd, "a", 1) && poll(&p, 1, 50) == 0)
		;
	(void)close(p.fd);
	w->len = (size_t)snprintf(w->got, sizeof w->got, "%llu",
		(unsigned long long)(loop_monotonic_ns() - from) / 1000000);
}

static void an_incomplete_request_times_out(void **state)
{
	struct world *w = *state;

	w->o.idle_s = 1;
	serve(w);
	const char *got = play(w, say_half);
	assert_true(!*got || strstr(got, " 408 "));
	assert_int_equal(w->nr_handled, 0);
}

static void a_client_that_sends_a_byte_now_and_then_times_out(void **state)
{
	struct world *w = *state;

	w->o.idle_s = 1;
	serve(w);
	unsigned long took_ms = strtoul(play(w, drip), NULL, 10);
	assert_in_range(took_ms, 1000, 10000);
	assert_int_equal(w->nr_handled, 0);
}

/* Without descriptors nobody can be let in: the loop must not spin for it. */
static uint64_t cpu_ms(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static void stop_loop(void *ctx)
{
	loop_stop(ctx);
}

static void without_file_descriptors_the_server_waits_to_accept(void **state)
{
	enum { SOME_MS = 300, MOST_CPU_MS = 150 };
	struct world *w = *state;
	struct rlimit before, none;
	struct loop_timer *timer = loop_timer_new(w->l, stop_loop, w->l);

	serve(w);
	int fd = dial(w);
	ask(fd, "GET /first HTTP/1.1\r\n" END);
	(void)getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	loop_timer_set(timer, SOME_MS);
	uint64_t from = cpu_ms();
	loop_run(w->l);
	uint64_t took = cpu_ms() - from;
	(void)setrlimit(RLIMIT_NOFILE, &before);
	loop_timer_close(timer);
	(void)close(fd);
	assert_true(took < MOST_CPU_MS);
	plain_request = "GET /next HTTP/1.1\r\n" END;
	assert_non_null(strstr(play(w, one_request), "GET /next "));
}

/* Slow clients. They come from addresses of the loopback, of which a test may say that they are no
 * own ones; what the script sees of them goes into w->got. */

static struct {
	const char *says;  /* each of them, at first */
	size_t len;        /* 0: up to its NUL */
	unsigned nr, from; /* the first one's host; 0: each has the host of its number */
	int fd[HUNDRED];
} crowded;

static bool nobody_is_own(const struct sockaddr *a)
{
	(void)a;
	return false;
}

static bool first_host_is_own(const struct sockaddr *a)
{
	struct sockaddr_in v4;

	memcpy(&v4, a, sizeof v4);
	return v4.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

static void come_slowly(struct world *w)
{
	for (unsigned i = 0; i < crowded.nr; i++) {
		crowded.fd[i] = dial_from(w, crowded.from ? crowded.from : i + 2);
		if (crowded.says)
			(void)put(crowded.fd[i], crowded.says,
				crowded.len ? crowded.len : strlen(crowded.says));
	}
}

static bool is_open(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) == 0;
}

/* One letter each: o for open, and a dot. Then they go. */
static void note_and_leave(struct world *w)
{
	for (unsigned i = 0; i < crowded.nr; i++)
		w->got[w->len++] = is_open(crowded.fd[i]) ? 'o' : '.';
	for (unsigned i = 0; i < crowded.nr; i++)
		(void)close(crowded.fd[i]);
}

static void ask_among_slow_ones(struct world *w)
{
	come_slowly(w);
	ask_once(w, "GET /among HTTP/1.1\r\n" END);
	note_and_leave(w);
}

static void a_silent_connection_gives_way_to_one_that_asks(void **state)
{
	static const char *const says[] = {NULL, "G", "GET / HTTP/1.1\r\nHost: x\r\n"};
	struct world *w = *state;

	w->o.clients_max = FEW;
	serve(w);
	crowded.nr = HUNDRED;
	crowded.from = 1;
	for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
		crowded.says = says[i];
		const char *got = play(w, ask_among_slow_ones);
		assert_non_null(strstr(got, "GET /among "));
		assert_null(strchr(strstr(got, "len=0\n"), '.')); /* at nobody's expense */
	}
	assert_int_equal(http_server_counts(w->server).crowded, 0);
}

static void the_oldest_silent_client_makes_room(void **state)
{
	enum { WAITING = 16, KEPT = 2 };
	struct world *w = *state;

	w->o.waiting_max = WAITING;
	w->o.is_own = nobody_is_own;
	serve(w);
	crowded.says = NULL;
	crowded.nr = HUNDRED;
	crowded.from = 0;
	const char *got = play(w, ask_among_slow_ones);
	assert_non_null(strstr(got, "GET /among "));
	const char *slow = strstr(got, "len=0\n") + strlen("len=0\n");
	size_t gone = strspn(slow, "."), left = strspn(slow + gone, "o");
	assert_int_equal(gone + left, HUNDRED); /* in the order of their coming */
	assert_in_range(left, WAITING - KEPT - 1, WAITING - KEPT); /* one, if the asker's bytes
								      came behind itself */
	assert_int_equal(http_server_counts(w->server).crowded, gone);
}

static void come_after_another_source(struct world *w)
{
	int first = dial_from(w, HUNDRED + 50);

	come_slowly(w);
	ask_once(w, "GET /among HTTP/1.1\r\n" END);
	w->got[w->len++] = is_open(first) ? '+' : '-';
	(void)close(first);
	note_and_leave(w);
}

static void connections_of_one_address_do_not_push_out_those_of_another(void **state)
{
	enum { WAITING = 16, OF_ONE = 8 };
	struct world *w = *state;

	w->o.waiting_max = WAITING;
	w->o.is_own = nobody_is_own;
	serve(w);
	crowded.says = NULL;
	crowded.nr = HUNDRED;
	crowded.from = 2;
	const char *got = play(w, come_after_another_source);
	const char *slow = strstr(got, "len=0\n") + strlen("len=0\n");
	assert_int_equal(*slow, '+');
	assert_int_equal(count(slow, "o"), OF_ONE);
}

static void come_after_this_host(struct world *w)
{
	int first[2] = {dial(w), dial(w)};

	come_slowly(w);
	ask_once(w, "GET /among HTTP/1.1\r\n" END);
	w->got[w->len++] = is_open(first[0]) && is_open(first[1]) ? '+' : '-';
	(void)close(first[0]);
	(void)close(first[1]);
	note_and_leave(w);
}

static void others_hold_all_they_may(struct world *w)
{
	come_slowly(w);
	await_handled(w, FEW - 1);
	ask_once(w, "GET /own HTTP/1.1\r\n" END);
	w->got[w->len++] = (char)('0' + w->nr_held);
	ask_once(w, "GET /release HTTP/1.1\r\n" END);
	note_and_leave(w);
}

static void some_connections_are_reserved_for_this_host(void **state)
{
	enum { WAITING = 16 };
	struct world *w = *state;

	w->o.waiting_max = WAITING;
	w->o.clients_max = FEW;
	w->o.is_own = first_host_is_own;
	serve(w);
	crowded.says = NULL;
	crowded.nr = HUNDRED;
	crowded.from = 0;
	const char *got = play(w, come_after_this_host);
	assert_int_equal(strstr(got, "len=0\n")[strlen("len=0\n")], '+');
	w->nr_handled = 0;
	crowded.says = "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n";
	crowded.nr = FEW + 2;
	got = play(w, others_hold_all_they_may);
	assert_non_null(strstr(got, "GET /own "));
	assert_int_equal(strstr(got, "len=0\n")[strlen("len=0\n")], '0' + FEW - 1);
}

static void wait_for_the_end(struct world *w)
{
	come_slowly(w);
	for (unsigned i = 0; i < crowded.nr; i++)
		hear_all(w, crowded.fd[i]);
}

static void a_client_that_asks_for_nothing_is_disconnected(void **state)
{
	static const char *const says[] = {NULL, "G", "GET / HTTP/1.1\r\nHost: x\r\n"};
	struct world *w = *state;

	w->o.first_ms = 50;
	serve(w);
	crowded.nr = FEW;
	crowded.from = 1;
	for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
		crowded.says = says[i];
		assert_string_equal(play(w, wait_for_the_end), "");
	}
	assert_int_equal(w->nr_handled, 0);
	assert_int_equal(http_server_counts(w->server).slow, FEW * 3);
}

static void an_unfinished_body_times_out(void **state)
{
	struct world *w = *state;

	w->o.request_ms = 50;
	serve(w);
	crowded.nr = FEW;
	crowded.says = "POST /f HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab";
	crowded.from = 1;
	assert_string_equal(play(w, wait_for_the_end), "");
	assert_int_equal(w->nr_handled, 0);
	assert_int_equal(http_server_counts(w->server).slow, FEW);
}

static void send_bodies(struct world *w)
{
	char rest[TINY_BODY] = {0};

	memset(rest, 'x', sizeof rest - 1);
	come_slowly(w);
	for (unsigned i = 0; i < crowded.nr; i++) /* the announced counts, not what has come */
		must(hear(w, crowded.fd[i], "HTTP/1.1 100 Continue\r\n\r\n"), "to go on");
	ask_once(w, "POST /more HTTP/1.1\r\nContent-Length: 1000\r\n" END);
	ask_once(w, "GET /none HTTP/1.1\r\n" END);
	ask(crowded.fd[0], rest);
	ask(crowded.fd[0], "x");
	must(hear(w, crowded.fd[0], "len=1000\n"), "an answer");
	int fd = dial(w);
	ask(fd, "POST /again HTTP/1.1\r\nContent-Length: 1000\r\n" END);
	ask(fd, rest);
	ask(fd, "x");
	hear_all(w, fd);
	note_and_leave(w);
}

static void all_request_bodies_share_one_budget(void **state)
{
	struct world *w = *state;

	w->o.body_max = TINY_BODY;
	w->o.held_max = FEW * (TINY_BODY + 1);
	serve(w);
	crowded.nr = FEW;
	crowded.says = "POST /f HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
		       "Expect: 100-continue\r\n\r\n";
	crowded.from = 1;
	const char *got = play(w, send_bodies);
	assert_non_null(strstr(got, "HTTP/1.1 503 "));
	assert_non_null(strstr(got, "Retry-After: 1\r\n"));
	assert_null(strstr(got, "POST /more "));
	assert_non_null(strstr(got, "GET /none "));
	assert_non_null(strstr(got, "POST /again "));
	assert_int_equal(http_server_counts(w->server).refused, 1);
}

static void send_chunks(struct world *w)
{
	char chunk[TINY_BODY] = {0};

	memset(chunk, 'x', sizeof chunk);
	come_slowly(w);
	int fd = dial(w);
	ask(fd, "POST /more HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END);
	for (unsigned i = 0; i < 16; i++) {
		(void)put(fd, "3e8\r\n", 5);
		(void)put(fd, chunk, sizeof chunk);
		(void)put(fd, "\r\n", 2);
	}
	(void)put(fd, "0\r\n\r\n", 5);
	hear_all(w, fd);
	note_and_leave(w);
}

static void a_body_of_no_known_length_counts_as_it_grows(void **state)
{
	struct world *w = *state;

	w->o.body_max = 16 * TINY_BODY;
	w->o.held_max = 16 * TINY_BODY + 1;
	serve(w);
	crowded.nr = 0;
	assert_non_null(strstr(play(w, send_chunks), "POST /more "));
	crowded.nr = 1;
	crowded.says = "POST /f HTTP/1.1\r\nHost: x\r\nContent-Length: 6000\r\n\r\nab";
	crowded.from = 1;
	assert_non_null(strstr(play(w, send_chunks), "HTTP/1.1 503 "));
	assert_int_equal(http_server_counts(w->server).refused, 1);
}

static void do_not_read(struct world *w)
{
	come_slowly(w);
	await_handled(w, crowded.nr);
	ask_once(w, "GET /small HTTP/1.1\r\n" END);
	note_and_leave(w);
}

/* What they do not take is held for them, within the same budget. */
static void unread_answers_share_one_budget(void **state)
{
	enum { HELD = 3 };
	struct world *w = *state;

	w->o.held_max = HELD * SOME_LARGE + SOME_LARGE / 2;
	serve(w);
	crowded.nr = HUNDRED / 2;
	crowded.says = "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
	crowded.from = 1;
	const char *got = play(w, do_not_read);
	assert_non_null(strstr(got, "GET /small "));
	assert_int_equal(http_server_counts(w->server).refused, HUNDRED / 2 - HELD);
}

/* Addresses */

static void addresses_are_read_strictly(void **state)
{
	static const struct {
		const char *in;
		int want;
	} cases[] = {
		{"", -EINVAL},
		{"9465", -EINVAL},
		{"127.0.0.1", -EINVAL},
		{"127.0.0.1:", -EINVAL},
		{"127.0.0.1:65536", -EINVAL},
		{"127.0.0.1:-1", -EINVAL},
		{"127.0.0.1: 80", -EINVAL},
		{"127.0.0.1:80x", -EINVAL},
		{"localhost:9465", -EINVAL},
		{"127.1:80", -EINVAL},
		{"::1:80", -EINVAL},
		{"[::1:80", -EINVAL},
		{"[127.0.0.1]:80", -EINVAL},
		{"[]:80", -EINVAL},
		{"[::1%lo]:80", -EINVAL},
		{"1111:2222:3333:4444:5555:6666:7777:8888:9999:80", -EINVAL},
		{"192.0.2.1:0", -EADDRNOTAVAIL}, /* TEST-NET-1: nobody has it */
		{"127.0.0.1:0", 0},
		{"127.9.9.9:0", 0},
		{":0", 0},
		{"[::]:0", 0},
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct err e = {0};
		int fd = http_listen(cases[i].in, &e);

		if ((fd < 0 ? fd : 0) != cases[i].want)
			fail_msg("%s: %d %s", cases[i].in, fd, e.text);
		if (fd < 0)
			assert_true(e.code == -fd && strstr(e.text, cases[i].in));
		if (fd >= 0) {
			assert_true(http_port_of(fd) > 0);
			(void)close(fd);
		}
	}
}

static void a_second_server_on_an_address_is_refused(void **state)
{
	struct world *w = *state;
	struct http_server_options o = w->o;
	char address[32];
	struct err e = {0};

	serve(w);
	(void)snprintf(address, sizeof address, "127.0.0.1:%u", w->port);
	o.address = address;
	assert_null(http_server_new(w->l, &o, &e));
	assert_int_equal(e.code, EADDRINUSE);
	assert_non_null(strstr(e.text, address));
	http_server_free(w->server);
	w->server = http_server_new(w->l, &o, &e);
	assert_non_null(w->server);
}

static void a_wildcard_address_also_serves_ipv4(void **state)
{
	struct world *w = *state;

	w->o.address = ":0";
	serve(w);
	plain_request = "GET /a HTTP/1.1\r\n" END;
	assert_non_null(strstr(play(w, one_request), "GET /a "));
	assert_true(w->local); /* ::ffff:127.0.0.1 */
}

static void loopback_addresses_are_recognised_as_local(void **state)
{
	static const struct {
		const char *in;
		bool want;
	} cases[] = {
		{"127.0.0.1", true},
		{"127.255.0.3", true},
		{"10.0.0.1", false},
		{"128.0.0.1", false},
		{"::1", true},
		{"::2", false},
		{"::", false},
		{"::ffff:127.0.0.1", true},
		{"::ffff:10.0.0.127", false},
		{"::127.0.0.1", false},
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct sockaddr_in v4 = {.sin_family = AF_INET};
		struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
		bool is_v6 = inet_pton(AF_INET, cases[i].in, &v4.sin_addr) != 1;

		if (is_v6)
			assert_int_equal(inet_pton(AF_INET6, cases[i].in, &v6.sin6_addr), 1);
		if (address_is_loopback(is_v6 ? (void *)&v6 : (void *)&v4) != cases[i].want)
			fail_msg("%s", cases[i].in);
	}
}

/* TLS, with openssl as the client */

struct hello {
	char bytes[GOT_MAX];
	size_t len;
};

static const char make_certificates[] =
	"cd %s && exec >log 2>&1 && "
	"ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
	"-subj /CN=$1 -keyout $1.key -out $1.pem; } && "
	"cert() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$2 "
	"-keyout $2.key -out $2.csr && "
	"{ [ -z \"$3\" ] || echo extendedKeyUsage=$3; "
	"echo subjectAltName=IP:127.0.0.1; } >$2.ext && "
	"openssl x509 -req -days 2 -in $2.csr -CA $1.pem -CAkey $1.key -CAcreateserial "
	"-extfile $2.ext -out $2.pem; } && "
	"ca ca && ca other && cert ca server serverAuth && cert ca client clientAuth && "
	"cert other stranger clientAuth && cert ca bare '' && cert ca any anyExtendedKeyUsage && "
	"cert ca both serverAuth,clientAuth && cert ca code codeSigning";

static char *read_file(const struct world *w, const char *name)
{
	char path[128];
	char *text = xcalloc(GOT_MAX, 1);

	(void)snprintf(path, sizeof path, "%s/%s", w->dir, name);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	assert_in_range(fread(text, 1, GOT_MAX - 1, f), 1, GOT_MAX - 1);
	(void)fclose(f);
	return text;
}

static void make_directory(struct world *w)
{
	const char *tmp = getenv("TMPDIR");
	char command[sizeof make_certificates + sizeof w->dir];

	(void)snprintf(w->dir, sizeof w->dir, "%s/test_http.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	(void)snprintf(command, sizeof command, make_certificates, w->dir);
	assert_int_equal(system(command), 0);
}

static const char *client_arguments, *client_path = "/secret"; /* of the script that follows */
static void s_client(struct world *w)
{
	char command[1024];

	(void)snprintf(command, sizeof command,
		"cd %s && printf 'GET %s HTTP/1.1\\r\\n"
		"Host: x\\r\\nConnection: close\\r\\n\\r\\n' | "
		"openssl s_client -quiet -verify_return_error -CAfile ca.pem "
		"-connect 127.0.0.1:%u %s 2>&1",
		w->dir, client_path, w->port, client_arguments);
	FILE *f = popen(command, "re");
	must(f, "openssl");
	w->len = fread(w->got, 1, sizeof w->got - 1, f);
	(void)pclose(f);
}

/* What a client says first, as GnuTLS says it; nobody answers. */
static ssize_t keep_hello(gnutls_transport_ptr_t to, const void *data, size_t len)
{
	struct hello *h = to;

	if (len > sizeof h->bytes - h->len)
		abort();
	memcpy(h->bytes + h->len, data, len);
	h->len += len;
	return (ssize_t)len;
}

static ssize_t hear_nothing(gnutls_transport_ptr_t from, void *data, size_t len)
{
	(void)from, (void)data, (void)len;
	errno = EAGAIN;
	return -1;
}

static void make_hello(struct hello *h)
{
	gnutls_certificate_credentials_t credentials;
	gnutls_session_t session;

	assert_int_equal(gnutls_certificate_allocate_credentials(&credentials), 0);
	assert_int_equal(gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NONBLOCK), 0);
	assert_int_equal(gnutls_set_default_priority(session), 0);
	(void)gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
	gnutls_transport_set_ptr(session, h);
	gnutls_transport_set_push_function(session, keep_hello);
	gnutls_transport_set_pull_function(session, hear_nothing);
	h->len = 0;
	assert_int_equal(gnutls_handshake(session), GNUTLS_E_AGAIN);
	gnutls_deinit(session);
	gnutls_certificate_free_credentials(credentials);
}

static void show_a_certificate_among_slow_ones(struct world *w)
{
	come_slowly(w);
	s_client(w);
	for (unsigned i = 0; i < crowded.nr; i++)
		(void)close(crowded.fd[i]);
}

/* Nothing, half of a hello, and a hello without what follows. */
static void a_connection_without_certificate_gives_way_to_one_with_it(void **state)
{
	struct world *w = *state;
	struct hello hello;

	make_directory(w);
	make_hello(&hello);
	auto_free char *cert = read_file(w, "server.pem"), *key = read_file(w, "server.key"),
		       *ca = read_file(w, "ca.pem");
	const size_t says[] = {0, 1, hello.len / 2, hello.len};
	w->o.cert = cert;
	w->o.key = key;
	w->o.client_ca = ca;
	w->o.clients_max = FEW;
	w->o.is_own = nobody_is_own;
	client_arguments = "-cert client.pem -key client.key";
	serve(w);
	crowded.nr = HUNDRED;
	crowded.from = 2;
	for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
		crowded.says = says[i] ? hello.bytes : NULL;
		crowded.len = says[i];
		const char *got = play(w, show_a_certificate_among_slow_ones);
		if (!strstr(got, "GET /secret query="))
			fail_msg("%zu: %s", i, got);
	}
	crowded.len = 0;
}

static void wait_in_vain(struct world *w)
{
	come_slowly(w);
	for (unsigned i = 0; i < crowded.nr; i++)
		hear_all(w, crowded.fd[i]);
	s_client(w);
}

static void a_tls_handshake_has_a_time_limit(void **state)
{
	struct world *w = *state;
	struct hello hello;

	make_directory(w);
	make_hello(&hello);
	auto_free char *cert = read_file(w, "server.pem"), *key = read_file(w, "server.key"),
		       *ca = read_file(w, "ca.pem");
	w->o.cert = cert;
	w->o.key = key;
	w->o.client_ca = ca;
	client_arguments = "-cert client.pem -key client.key";
	serve(w);
	crowded.nr = FEW;
	crowded.from = 1;
	crowded.says = hello.bytes;
	crowded.len = hello.len;
	assert_non_null(strstr(play(w, wait_in_vain), "GET /secret query="));
	crowded.len = 0;
	assert_int_equal(http_server_counts(w->server).slow, FEW);
}

static void tls_accepts_clients_with_a_certificate(void **state)
{
	static const struct {
		const char *arguments;
		bool asks, want;
	} cases[] = {
		{"", false, true},
		{"-tls1_2", false, true},
		{"-tls1_1 -cipher DEFAULT@SECLEVEL=0", false, false},
		{"", true, false},
		{"-tls1_2", true, false},
		{"-cert client.pem -key client.key", true, true},
		{"-tls1_2 -cert client.pem -key client.key", true, true},
		{"-cert stranger.pem -key stranger.key", true, false},
		{"-cert server.pem -key server.key", true, false}, /* not for clients */
		{"-cert bare.pem -key bare.key", true, false},     /* nor that, in so many words */
		{"-tls1_2 -cert bare.pem -key bare.key", true, false},
		{"-cert any.pem -key any.key", true, false},
		{"-cert code.pem -key code.key", true, false},
		{"-cert both.pem -key both.key", true, true},
		{"-tls1_2 -cert stranger.pem -key stranger.key", true, false},
	};
	struct world *w = *state;

	make_directory(w);
	auto_free char *cert = read_file(w, "server.pem"), *key = read_file(w, "server.key"),
		       *ca = read_file(w, "ca.pem");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		w->o.cert = cert;
		w->o.key = key;
		w->o.client_ca = cases[i].asks ? ca : NULL;
		w->nr_handled = 0;
		serve(w);
		client_arguments = cases[i].arguments;
		const char *got = play(w, s_client);
		bool answered = strstr(got, "GET /secret query=");

		if (answered != cases[i].want || w->nr_handled != cases[i].want)
			fail_msg("%s: %s", cases[i].arguments, got);
		plain_request = "GET /plain HTTP/1.1\r\n" END;
		assert_null(strstr(play(w, one_request), "/plain")); /* not without TLS */
		http_server_free(w->server);
		w->server = NULL;
	}
}

/* Each is answered by what the one before it has changed, and it may change it for the next. */
static void tls_may_change_while_it_serves(void **state)
{
	enum { NR = 7 };
	struct world *w = *state;

	make_directory(w);
	auto_free char *cert = read_file(w, "server.pem"), *key = read_file(w, "server.key"),
		       *ca = read_file(w, "ca.pem"), *others = read_file(w, "other.pem"),
		       *no_server = read_file(w, "client.pem"),
		       *its_key = read_file(w, "client.key");
	const struct {
		const char *name; /* of the client's certificate */
		bool want;
		const char *cert, *key, *client_ca, *says;
	} rows[NR] = {
		{"stranger", false, NULL, NULL, NULL, NULL},
		{"client", true, cert, key, others, ""}, {"client", false, NULL, NULL, NULL, NULL},
		{"stranger", true, cert, its_key, ca, "the server's certificate and key: "},
		{"stranger", true, cert, key, "nonsense", "the authority of clients'"},
		{"stranger", true, no_server, its_key, others, ""},
		{"stranger", false, NULL, NULL, NULL, NULL}, /* which does not trust it now */
	};

	w->o.cert = cert;
	w->o.key = key;
	w->o.client_ca = ca;
	serve(w);
	for (unsigned i = 0; i < NR; i++) {
		char arguments[128];

		(void)snprintf(arguments, sizeof arguments,
			"-purpose sslserver -cert %s.pem -key %s.key", rows[i].name, rows[i].name);
		client_arguments = arguments;
		client_path = rows[i].cert ? "/change" : "/secret";
		change.cert = rows[i].cert;
		change.key = rows[i].key;
		change.client_ca = rows[i].client_ca;
		change.e = (struct err){0};
		const char *got = play(w, s_client);
		client_path = "/secret";
		if (!strstr(got, " query=") == rows[i].want)
			fail_msg("%u: %s", i, got);
		if (rows[i].says &&
			(*rows[i].says ? !strstr(change.e.text, rows[i].says) : change.e.code != 0))
			fail_msg("%u: %s", i, change.e.text);
	}
}

static void an_unusable_certificate_is_an_error(void **state)
{
	struct world *w = *state;
	struct err e = {0};

	make_directory(w);
	auto_free char *cert = read_file(w, "server.pem"), *key = read_file(w, "server.key"),
		       *other = read_file(w, "client.key");
	const struct {
		const char *cert, *key, *client_ca, *want;
	} cases[] = {
		{"nonsense", key, NULL, "the server's certificate and key: "},
		{cert, "nonsense", NULL, "the server's certificate and key: "},
		{cert, other, NULL, "the server's certificate and key: "},
		{cert, key, "nonsense", "the authority of clients' certificates: "},
		{cert, key, "", "the authority of clients' certificates: "},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		w->o.cert = cases[i].cert;
		w->o.key = cases[i].key;
		w->o.client_ca = cases[i].client_ca;
		assert_null(http_server_new(w->l, &w->o, &e));
		assert_int_equal(e.code, EINVAL);
		if (strncmp(e.text, cases[i].want, strlen(cases[i].want)) != 0)
			fail_msg("%s", e.text);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_request_reaches_the_handler),
		CASE(a_malformed_http_request_is_refused),
		CASE(head_gets_no_body),
		CASE(several_requests_may_arrive_at_once),
		CASE(a_request_may_arrive_byte_by_byte),
		CASE(a_hundred_requests_go_through_one_connection),
		CASE(bodies_have_a_limit),
		CASE(a_get_request_does_not_wait_for_a_body),
		CASE(a_body_of_64_mib_arrives_whole),
		CASE(a_hundred_clients_are_served_at_once),
		CASE(more_clients_than_there_may_be_wait),
		CASE(answers_may_come_in_a_later_turn),
		CASE(a_request_behind_an_unanswered_one_waits_for_it),
		CASE(a_client_that_hangs_up_is_reported_to_the_handler),
		CASE(the_hangup_callback_is_optional),
		CASE(a_server_may_end_before_it_has_answered),
		CASE(an_incomplete_request_times_out),
		CASE(a_client_that_sends_a_byte_now_and_then_times_out),
		CASE(without_file_descriptors_the_server_waits_to_accept),
		CASE(a_silent_connection_gives_way_to_one_that_asks),
		CASE(the_oldest_silent_client_makes_room),
		CASE(connections_of_one_address_do_not_push_out_those_of_another),
		CASE(some_connections_are_reserved_for_this_host),
		CASE(a_client_that_asks_for_nothing_is_disconnected),
		CASE(an_unfinished_body_times_out),
		CASE(all_request_bodies_share_one_budget),
		CASE(a_body_of_no_known_length_counts_as_it_grows),
		CASE(unread_answers_share_one_budget),
		CASE(addresses_are_read_strictly),
		CASE(a_second_server_on_an_address_is_refused),
		CASE(a_wildcard_address_also_serves_ipv4),
		CASE(loopback_addresses_are_recognised_as_local),
		CASE(tls_accepts_clients_with_a_certificate),
		CASE(tls_may_change_while_it_serves),
		CASE(a_connection_without_certificate_gives_way_to_one_with_it),
		CASE(a_tls_handshake_has_a_time_limit),
		CASE(an_unusable_certificate_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
