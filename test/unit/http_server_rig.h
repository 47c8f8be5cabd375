#ifndef NUMAFIT_TEST_HTTP_SERVER_RIG_H
#define NUMAFIT_TEST_HTTP_SERVER_RIG_H

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
 * are answered is looked at when they are through. */

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

static inline void too_late(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened in %d ms", TIMEOUT_MS);
}

static inline void script_ended(void *ctx, void *what, int value)
{
	struct world *w = ctx;

	(void)what, (void)value;
	loop_stop(w->l);
}

/* Everything that was asked, as an answer. */
static inline void say(struct http_exchange *x, const struct http_request *r)
{
	char text[512];
	int len = snprintf(text, sizeof text, "%s %s query=%s type=%s body=%.100s len=%zu\n",
		r->method, r->path, r->query, r->type, r->body, r->len);

	http_answer_send(x, 200, "text/plain", text, (size_t)len, "X-Extra: yes\nX-More: a: b");
}

static inline void answer_held(struct world *w)
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
static inline void handle(void *ctx, struct http_exchange *x, const struct http_request *r)
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

static inline void gone(void *ctx, struct http_exchange *x)
{
	struct world *w = ctx;

	__atomic_add_fetch(&w->nr_gone, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < w->nr_held; i++)
		if (w->held[i] == x)
			w->held[i] = w->held[--w->nr_held];
}

static inline int setup(void **state)
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

static inline int teardown(void **state)
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

static inline void serve(struct world *w)
{
	struct err e = {0};

	w->server = http_server_new(w->l, &w->o, &e);
	if (!w->server)
		fail_msg("%s", e.text);
	w->port = http_server_port(w->server);
	assert_true(w->port > 0);
}

static inline void *run_script(void *arg)
{
	struct world *w = arg;

	w->script(w);
	inbox_put(w->in, NULL, 0);
	return NULL;
}

/* Serve while the script runs; what it got. */
static inline const char *play(struct world *w, void (*script)(struct world *w))
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

static inline void must(bool is, const char *what)
{
	if (is)
		return;
	(void)fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
	abort();
}

/* From 127.0.0.host. */
static inline int dial_from(const struct world *w, unsigned host)
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

static inline int dial(const struct world *w)
{
	return dial_from(w, 1);
}

static inline bool put(int fd, const char *data, size_t len)
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

static inline void ask(int fd, const char *text)
{
	must(put(fd, text, strlen(text)), "send");
}

/* Read on until text has come, or to the end: what came is added to w->got. Whether it has come. */
static inline bool hear(struct world *w, int fd, const char *text)
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

static inline void hear_all(struct world *w, int fd)
{
	(void)hear(w, fd, NULL);
	(void)close(fd);
}

/* One request in a connection of its own. */
static inline void ask_once(struct world *w, const char *text)
{
	int fd = dial(w);

	ask(fd, text);
	hear_all(w, fd);
}

static inline void await(const unsigned *counter, unsigned nr)
{
	while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < nr)
		(void)poll(NULL, 0, 1);
}

static inline void await_handled(const struct world *w, unsigned nr)
{
	await(&w->nr_handled, nr);
}

static const char *plain_request; /* of the script that follows */
static inline void one_request(struct world *w)
{
	ask_once(w, plain_request);
}

static inline unsigned count(const char *text, const char *what)
{
	unsigned nr = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		nr++;
	return nr;
}

#define END "Host: x\r\nConnection: close\r\n\r\n"

/* Slow clients. They come from addresses of the loopback, of which a test may say that they are no
 * own ones; what the script sees of them goes into w->got. */

static struct {
	const char *says;  /* each of them, at first */
	size_t len;        /* 0: up to its NUL */
	unsigned nr, from; /* the first one's host; 0: each has the host of its number */
	int fd[HUNDRED];
} crowded;

static inline bool nobody_is_own(const struct sockaddr *a)
{
	(void)a;
	return false;
}

static inline void come_slowly(struct world *w)
{
	for (unsigned i = 0; i < crowded.nr; i++) {
		crowded.fd[i] = dial_from(w, crowded.from ? crowded.from : i + 2);
		if (crowded.says)
			(void)put(crowded.fd[i], crowded.says,
				crowded.len ? crowded.len : strlen(crowded.says));
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
