#ifndef TEST_FAKE_API_H
#define TEST_FAKE_API_H

#include <io/loop_uv.h>
#include <numafit/text.h>
#include <numafit/vec.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* An API server on 127.0.0.1 that says what the test wants, over plain HTTP, on the loop of what is
 * tested; with a kubeconfig that leads to it. */

enum {
	FAKE_PATIENCE_MS = 60000,
	FAKE_PATH_MAX = 2048,
	FAKE_BACKLOG = 16,
	FAKE_LOG_MAX = 8192,
	FAKE_OK = 200
};

/* A connection, and what was asked on it last. */
struct fake_ask {
	struct fake_api *f;
	struct stream *stream;
	struct fake_ask *next;
	struct {
		VEC(char);
	} in;
	char method[16], path[FAKE_PATH_MAX];
	const char *headers, *body; /* into in; strings */
	bool open;                  /* its answer goes on: fake_api_begin() */
};

/* One step of a script. */
struct fake_answer {
	const char *ask;   /* that the request must have in it: "GET /api/v1/pods?"; NULL: any */
	int status;        /* 0: 200 */
	const char *extra; /* header lines, each with its \r\n */
	const char *body;
	enum { FAKE_ANSWERS, FAKE_GOES_ON, FAKE_CUTS, FAKE_NEVER } how;
};

struct fake_api {
	struct loop *loop;
	struct loop_timer *deadline;
	char dir[96], kubeconfig[112];
	int fd; /* listens; -1: it is down */
	uint16_t port;
	uv_poll_t *door;
	struct fake_ask *first;
	/* What it says: by serve(), or by a script of nr steps, in turn. Beyond its end requests
	 * wait for ever. */
	void *ctx;
	void (*serve)(void *ctx, struct fake_ask *ask);
	const struct fake_answer *script;
	size_t nr, at;
	unsigned asked;         /* requests so far */
	unsigned connected;     /* connections so far */
	struct fake_ask *last;  /* the last request, while its connection lasts */
	char log[FAKE_LOG_MAX]; /* events of what is tested, each after a blank; a bad one has "!"
				 */
	char last_text[sizeof((struct err *)0)->text];
	bool was_quiet;
};

/* Whatever happens stops the loop, so that the condition is looked at again. */
#define FAKE_UNTIL(f, condition)                                                                   \
	do {                                                                                       \
		while (!(condition))                                                               \
			loop_run((f)->loop);                                                       \
	} while (0)

static inline void fake_api_send(struct fake_ask *q, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static inline void fake_api_send(struct fake_ask *q, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	int len = vasprintf(&text, fmt, ap);
	va_end(ap);
	assert_true(len >= 0);
	if (q->stream)
		(void)stream_write(q->stream, text, (size_t)len);
	free(text);
}

/* extra: header lines, each with its \r\n; NULL: none */
static inline void fake_api_answer(
	struct fake_ask *q, int status, const char *extra, const char *body)
{
	fake_api_send(q,
		"HTTP/1.1 %d Whatever\r\nContent-Type: application/json\r\n%sContent-Length: "
		"%zu\r\n\r\n%s",
		status, extra ? extra : "", body ? strlen(body) : 0, body ? body : "");
}

/* An answer that goes on: fake_api_say() until fake_api_end() or fake_api_cut(). */
static inline void fake_api_begin(struct fake_ask *q)
{
	q->open = true;
	fake_api_send(q, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			 "Transfer-Encoding: chunked\r\n\r\n");
}

static inline void fake_api_say(struct fake_ask *q, const char *text)
{
	if (*text)
		fake_api_send(q, "%zx\r\n%s\r\n", strlen(text), text);
}

static inline void fake_api_end(struct fake_ask *q)
{
	q->open = false;
	fake_api_send(q, "0\r\n\r\n");
}

static inline void fake_api_forget(struct fake_ask *q)
{
	struct fake_ask **at = &q->f->first;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	if (q->f->last == q)
		q->f->last = NULL;
	vec_fini(&q->in);
	free(q);
}

/* What was sent goes out, then the connection breaks; the request is dead. */
static inline void fake_api_cut(struct fake_ask *q)
{
	stream_finish(q->stream);
	fake_api_forget(q);
}

/* The value of the header, up to its line's end, into out; "" when it is not there. */
static inline const char *fake_api_header(
	const struct fake_ask *q, const char *name, char *out, size_t cap)
{
	size_t len = strlen(name);

	*out = '\0';
	for (const char *line = q->headers; line; line = strstr(line, "\r\n")) {
		line += strspn(line, "\r\n");
		if (!strncasecmp(line, name, len) && line[len] == ':') {
			const char *value = line + len + 1 + strspn(line + len + 1, " ");

			(void)snprintf(out, cap, "%.*s", (int)strcspn(value, "\r\n"), value);
			break;
		}
	}
	return out;
}

static inline void fake_api_step(struct fake_api *f, struct fake_ask *q)
{
	const struct fake_answer *a = &f->script[f->at++];
	char asked[sizeof q->method + sizeof q->path + 1];

	(void)snprintf(asked, sizeof asked, "%s %s", q->method, q->path);
	if (a->ask && !strstr(asked, a->ask))
		fail_msg("step %zu: asked was %s, not %s", f->at - 1, asked, a->ask);
	if (a->how == FAKE_ANSWERS)
		fake_api_answer(q, a->status ? a->status : FAKE_OK, a->extra, a->body);
	if (a->how == FAKE_GOES_ON || a->how == FAKE_CUTS) {
		fake_api_begin(q);
		fake_api_say(q, a->body ? a->body : "");
	}
	if (a->how == FAKE_CUTS)
		fake_api_cut(q);
}

static inline size_t fake_api_body_length(const struct fake_ask *q)
{
	char text[32];

	return strtoul(fake_api_header(q, "Content-Length", text, sizeof text), NULL, 10);
}

/* Whether the request is there as a whole. */
static inline bool fake_api_read(struct fake_ask *q)
{
	*vec_push(&q->in) = '\0';
	q->in.nr--;
	char *end = strstr(q->in.at, "\r\n\r\n");
	if (!end)
		return false;
	q->headers = strstr(q->in.at, "\r\n");
	q->body = end + strlen("\r\n\r\n");
	return q->in.nr - (size_t)(q->body - q->in.at) >= fake_api_body_length(q);
}

static inline void fake_api_data(void *ctx, const void *data, size_t len)
{
	struct fake_ask *q = ctx;
	struct fake_api *f = q->f;

	for (size_t i = 0; i < len; i++)
		*vec_push(&q->in) = ((const char *)data)[i];
	if (!fake_api_read(q))
		return;
	assert_int_equal(sscanf(q->in.at, "%15s %2047s", q->method, q->path), 2);
	q->in.nr = 0; /* the bytes stay until the next request */
	q->open = false;
	f->asked++;
	f->last = q;
	loop_stop(f->loop);
	if (f->serve)
		f->serve(f->ctx, q);
	else if (f->at < f->nr)
		fake_api_step(f, q);
}

static inline void fake_api_closed(void *ctx, int error)
{
	struct fake_ask *q = ctx;
	struct fake_api *f = q->f;

	(void)error;
	loop_stop(f->loop);
	fake_api_forget(q);
}

static inline void fake_api_connection(uv_poll_t *door, int status, int events)
{
	struct fake_api *f = *(struct fake_api **)(void *)(door + 1);
	struct fake_ask *q = xcalloc(1, sizeof *q);
	const struct stream_events stream_events = {q, fake_api_data, fake_api_closed};
	int fd = accept4(f->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;

	(void)events;
	assert_int_equal(status, 0);
	assert_true(fd >= 0);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	q->f = f;
	q->next = f->first;
	f->first = q;
	f->connected++;
	loop_stop(f->loop);
	q->stream = stream_adopt(f->loop, fd, &stream_events, NULL);
	assert_non_null(q->stream);
}

/* On the port of the last time, if there was one. */
static inline void fake_api_up(struct fake_api *f)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(f->port)};
	socklen_t len = sizeof address;
	int one = 1;

	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	(void)setsockopt(f->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	assert_int_equal(bind(f->fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(f->fd, FAKE_BACKLOG), 0);
	assert_int_equal(getsockname(f->fd, (struct sockaddr *)&address, &len), 0);
	f->port = ntohs(address.sin_port);
	/* one block that begins with its handle (loop_uv.h), behind it a way back to f */
	f->door = xcalloc(1, sizeof *f->door + sizeof(void *));
	*(struct fake_api **)(void *)(f->door + 1) = f;
	assert_int_equal(uv_poll_init(loop_uv(f->loop), f->door, f->fd), 0);
	assert_int_equal(uv_poll_start(f->door, UV_READABLE, fake_api_connection), 0);
}

static inline void fake_api_door_closed(uv_handle_t *h)
{
	free(h);
}

/* Nobody listens any more, and all connections break. */
static inline void fake_api_down(struct fake_api *f)
{
	if (f->fd < 0)
		return;
	uv_close((uv_handle_t *)f->door, fake_api_door_closed);
	(void)close(f->fd);
	f->fd = -1;
	while (f->first) {
		stream_close(f->first->stream);
		fake_api_forget(f->first);
	}
}

static inline void fake_api_write_file(const char *path, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static inline void fake_api_write_file(const char *path, const char *fmt, ...)
{
	FILE *file = fopen(path, "w");
	va_list ap;

	assert_non_null(file);
	va_start(ap, fmt);
	(void)vfprintf(file, fmt, ap);
	va_end(ap);
	assert_int_equal(fclose(file), 0);
}

static inline void fake_api_is_late(void *ctx)
{
	const struct fake_api *f = ctx;

	fail_msg("nothing happened in %d ms; asked was %u times; %s", FAKE_PATIENCE_MS, f->asked,
		f->log);
}

/* On the loop of others. No credentials are sent over plain HTTP, so there is no token. */
static inline void fake_api_init_on(struct fake_api *f, struct loop *l)
{
	const char *tmp = getenv("TMPDIR");

	*f = (struct fake_api){.loop = l};
	f->deadline = loop_timer_new(f->loop, fake_api_is_late, f);
	loop_timer_set(f->deadline, FAKE_PATIENCE_MS);
	(void)snprintf(f->dir, sizeof f->dir, "%.60s/numafit-api.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->kubeconfig, sizeof f->kubeconfig, "%s/config", f->dir);
	fake_api_up(f);
	fake_api_write_file(f->kubeconfig,
		"apiVersion: v1\nkind: Config\ncurrent-context: c\n"
		"clusters:\n- name: k\n  cluster: {server: \"http://127.0.0.1:%u\"}\n"
		"users:\n- name: u\n  user: {}\n"
		"contexts:\n- name: c\n  context: {cluster: k, user: u, namespace: here}\n",
		(unsigned)f->port);
}

/* With a loop of its own. */
static inline void fake_api_init(struct fake_api *f)
{
	fake_api_init_on(f, loop_new());
}

/* After everything that speaks with it. */
static inline void fake_api_fini_on(struct fake_api *f)
{
	fake_api_down(f);
	loop_timer_close(f->deadline);
	(void)unlink(f->kubeconfig);
	assert_int_equal(rmdir(f->dir), 0);
}

static inline void fake_api_fini(struct fake_api *f)
{
	fake_api_fini_on(f);
	loop_free(f->loop);
}

/* What it says from here on. */
static inline void fake_api_script(struct fake_api *f, const struct fake_answer *script, size_t nr)
{
	f->script = script;
	f->nr = nr;
	f->at = 0;
}

static inline void fake_api_time_is_up(void *ctx)
{
	struct fake_api *f = ctx;

	f->was_quiet = true;
	loop_stop(f->loop);
}

/* Nothing is to happen, and nothing of it can be waited for. */
static inline void fake_api_stay_quiet(struct fake_api *f)
{
	enum { QUIET_MS = 100 };
	struct loop_timer *t = loop_timer_new(f->loop, fake_api_time_is_up, f);

	f->was_quiet = false;
	loop_timer_set(t, QUIET_MS);
	FAKE_UNTIL(f, f->was_quiet);
	loop_timer_close(t);
}

/* An on_event() of what is tested. */
static inline void fake_api_log(struct fake_api *f, bool bad, const char *event, const char *text)
{
	size_t len = strlen(f->log);

	assert_true(strlen(text) > 0);
	assert_true(len + strlen(event) + 3 < sizeof f->log);
	(void)snprintf(f->log + len, sizeof f->log - len, " %s%s", event, bad ? "!" : "");
	(void)text_copy(f->last_text, sizeof f->last_text, text);
	loop_stop(f->loop);
}

#endif
