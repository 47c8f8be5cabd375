#include <io/http_server.h>

#include <io/http_server_listen.h>
#include <io/http_server_tls.h>
#include <io/loop_uv.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* libmicrohttpd without threads of its own: its epoll descriptor hangs on the loop, and it is run
 * when that is readable or its timeout has come. One run reads a buffer of each connection that has
 * something, so that others of the loop have their turn between. */

enum {
	BODY_MAX = 64 << 10,
	CLIENTS_MAX = 64,
	IDLE_S = 30,
	HEAD_BYTES = 32 << 10,    /* of a connection: request line and headers must fit */
	BUFFER_BYTES = 256 << 10, /* the same, where large bodies are read */
	FIRST_BODY_BYTES = 4 << 10,
	MS_PER_S = 1000,
	RETRY_MS = 100,
	TURN_MS = 2000,     /* that a connection has to itself before it makes room */
	LOOKS_PER_IDLE = 4, /* how exactly the time of slow clients is kept */
	NAME_MAX_BYTES = 64
};

/* A descriptor of libmicrohttpd's that the loop watches. */
struct poll {
	uv_poll_t uv;
	void (*ready)(void *ctx);
	void *ctx;
};

/* One connection. */
struct client {
	struct client *next, **at; /* of the server's list */
	int fd;
	struct http_server_tls *tls; /* NULL: plain */
	bool waits;                  /* for handle()'s answer: that time is not the client's */
	uint64_t since_ms;           /* it began, or was last answered */
};

struct http_exchange {
	struct http_exchange *next, **at; /* of those that wait for an answer */
	struct http_server *s;
	struct MHD_Connection *connection;
	struct client *client;
	struct poll *watch; /* of its client, while it waits */
	struct MHD_Response *answer;
	unsigned status;
	bool began, waits;
	bool dropped; /* its client is gone */
	char *query, *body;
	size_t len, cap, passed_over; /* bytes of the body */
};

struct http_server {
	struct http_server_options o;
	struct loop *loop;
	struct MHD_Daemon *mhd;
	struct http_server_tls *tls; /* of those who come; NULL: plain */
	int fd;                      /* that listens */
	struct poll *poll, *listener;
	struct loop_timer *timer, *patience, *accept_again;
	struct client *clients;
	unsigned nr_clients;
	struct http_exchange *waiting;
	bool resumed; /* a connection was, which libmicrohttpd's timeout does not tell */
	bool closing;
};

/* Lists whose members take themselves out. */
#define LIST_ADD(list, x)                                                                          \
	do {                                                                                       \
		(x)->next = (list);                                                                \
		(x)->at = &(list);                                                                 \
		if ((x)->next)                                                                     \
			(x)->next->at = &(x)->next;                                                \
		(list) = (x);                                                                      \
	} while (0)
#define LIST_REMOVE(x)                                                                             \
	do {                                                                                       \
		*(x)->at = (x)->next;                                                              \
		if ((x)->next)                                                                     \
			(x)->next->at = (x)->at;                                                   \
	} while (0)

static uint64_t now_ms(void)
{
	enum { NS_PER_MS = 1000000 };

	return loop_monotonic_ns() / NS_PER_MS;
}

/* Descriptors on the loop */

static void poll_ready(uv_poll_t *uv, int status, int events)
{
	struct poll *p = (struct poll *)uv;

	(void)status, (void)events;
	p->ready(p->ctx);
}

static void poll_start(struct poll *p, int events)
{
	(void)uv_poll_start(&p->uv, events, poll_ready);
}

static void poll_stop(struct poll *p)
{
	(void)uv_poll_stop(&p->uv);
}

/* NULL: the system watches too much already. */
static struct poll *poll_new(
	struct loop *l, int fd, int events, void (*ready)(void *ctx), void *ctx)
{
	struct poll *p = xcalloc(1, sizeof *p);

	p->ready = ready;
	p->ctx = ctx;
	if (uv_poll_init(loop_uv(l), &p->uv, fd)) {
		free(p);
		return NULL;
	}
	poll_start(p, events);
	return p;
}

static void free_handle(uv_handle_t *h)
{
	free(h);
}

static void poll_close(struct poll *p)
{
	if (p)
		uv_close((uv_handle_t *)&p->uv, free_handle);
}

static void run(void *ctx)
{
	struct http_server *s = ctx;
	unsigned long long timeout_ms;

	s->resumed = false;
	(void)MHD_run(s->mhd);
	if (MHD_get_timeout(s->mhd, &timeout_ms) == MHD_YES || s->resumed)
		loop_timer_set(s->timer, s->resumed ? 0 : timeout_ms);
	else
		loop_timer_stop(s->timer);
}

static void accept_again(void *ctx)
{
	struct http_server *s = ctx;

	if (!s->closing)
		poll_start(s->listener, UV_READABLE);
}

/* With all places taken the client that is idle or slow for longest goes; it may come again. */
static void make_room(const struct http_server *s)
{
	const struct client *oldest = NULL;

	for (const struct client *c = s->clients; c; c = c->next)
		if (!c->waits && (!oldest || c->since_ms < oldest->since_ms))
			oldest = c;
	if (oldest && now_ms() - oldest->since_ms >= TURN_MS)
		(void)shutdown(oldest->fd, SHUT_RDWR);
}

/* libmicrohttpd would accept by itself, and turn without an end when no descriptor is left. */
static void accept_client(void *ctx)
{
	struct http_server *s = ctx;
	struct sockaddr_storage a;
	struct sockaddr *address = (struct sockaddr *)&a;
	socklen_t len = sizeof a;

	if (s->nr_clients == s->o.clients_max) {
		poll_stop(s->listener); /* until one goes */
		make_room(s);
		loop_timer_set(s->accept_again, RETRY_MS);
		return;
	}
	int fd = accept4(s->fd, address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0) {
		(void)MHD_add_connection(s->mhd, fd, address, len); /* closes it if need be */
		run(s);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		poll_stop(s->listener);
		loop_timer_set(s->accept_again, RETRY_MS);
	}
}

/* Connections. libmicrohttpd's timeout starts anew with every byte: who sends one now and then is
 * ours to end. */

static uint64_t patience_ms(const struct http_server *s)
{
	return (uint64_t)s->o.idle_s * MS_PER_S;
}

static void end_slow_clients(void *ctx)
{
	struct http_server *s = ctx;
	uint64_t now = now_ms();

	for (struct client *c = s->clients; c; c = c->next)
		if (!c->waits && now - c->since_ms > 2 * patience_ms(s))
			(void)shutdown(c->fd, SHUT_RDWR);
	if (s->clients)
		loop_timer_set(s->patience, patience_ms(s) / LOOKS_PER_IDLE);
}

static struct client *client_of(struct MHD_Connection *c)
{
	return MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* In place of what libmicrohttpd was started with. */
static struct http_server_tls *begin_tls(struct http_server *s, struct MHD_Connection *connection)
{
	gnutls_session_t session =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)
			->tls_session;

	return http_server_tls_begin(s->tls, session);
}

static void connection_changed(void *ctx, struct MHD_Connection *connection, void **socket_context,
	enum MHD_ConnectionNotificationCode code)
{
	struct http_server *s = ctx;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		struct client *c = *socket_context;

		LIST_REMOVE(c);
		http_server_tls_drop(c->tls);
		free(c);
		s->nr_clients--;
		accept_again(s);
		return;
	}
	struct client *c = xcalloc(1, sizeof *c);
	c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	c->since_ms = now_ms();
	if (!s->clients)
		loop_timer_set(s->patience, patience_ms(s) / LOOKS_PER_IDLE);
	LIST_ADD(s->clients, c);
	s->nr_clients++;
	*socket_context = c;
	if (s->tls)
		c->tls = begin_tls(s, connection);
}

/* Requests */

/* The request line is there; its URI as it came. */
static void *request_begins(void *ctx, const char *uri, struct MHD_Connection *connection)
{
	struct http_exchange *x = xcalloc(1, sizeof *x);
	const char *query = strchr(uri, '?');

	x->s = ctx;
	x->connection = connection;
	x->query = xstrdup(query ? query + 1 : "");
	return x;
}

static void request_ends(void *ctx, struct MHD_Connection *connection, void **request,
	enum MHD_RequestTerminationCode how)
{
	struct http_exchange *x = *request;

	(void)ctx, (void)how;
	client_of(connection)->since_ms = now_ms();
	if (x->answer)
		MHD_destroy_response(x->answer);
	free(x->query);
	free(x->body);
	free(x);
	*request = NULL;
}

static enum MHD_Result queue(struct http_exchange *x)
{
	return MHD_queue_response(x->connection, x->status, x->answer);
}

/* Take x out of those that wait; libmicrohttpd will ask for it again. */
static void resume(struct http_exchange *x)
{
	poll_close(x->watch);
	x->watch = NULL;
	x->waits = false;
	x->client->waits = false;
	x->client->since_ms = now_ms();
	LIST_REMOVE(x);
	MHD_resume_connection(x->connection);
	x->s->resumed = true;
	loop_timer_set(x->s->timer, 0);
}

static void client_gone(void *ctx)
{
	struct http_exchange *x = ctx;
	struct http_server *s = x->s;

	x->dropped = true;
	resume(x);
	s->o.gone(s->o.ctx, x);
}

/* A suspended connection is nothing that libmicrohttpd looks at: we do. */
static enum MHD_Result suspend(struct http_exchange *x)
{
	x->waits = true;
	x->client->waits = true;
	LIST_ADD(x->s->waiting, x);
	MHD_suspend_connection(x->connection);
	if (x->s->o.gone)
		x->watch = poll_new(x->s->loop, x->client->fd, UV_DISCONNECT, client_gone, x);
	return MHD_YES;
}

static const char *header(struct MHD_Connection *c, const char *name)
{
	const char *value = MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);

	return value ? value : "";
}

static void hand_over(struct http_exchange *x, const char *method, const char *path)
{
	const struct sockaddr *address =
		MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
			->client_addr;
	const struct http_request r = {
		.method = method,
		.path = path,
		.query = x->query,
		.type = header(x->connection, MHD_HTTP_HEADER_CONTENT_TYPE),
		.body = x->body ? x->body : "",
		.len = x->len,
		.local = http_is_local(address),
	};

	x->s->o.handle(x->s->o.ctx, x, &r);
}

static void set_answer(struct http_exchange *x, int status, const char *type, const void *body,
	size_t len, const char *extra)
{
	char name[NAME_MAX_BYTES];

	x->status = (unsigned)status;
	x->answer = MHD_create_response_from_buffer(
		len, (void *)(uintptr_t)body, MHD_RESPMEM_MUST_COPY);
	if (!x->answer)
		abort(); /* no memory is left, as in mem.h */
	(void)MHD_add_response_header(x->answer, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	const char *colon = extra ? strchr(extra, ':') : NULL;
	if (!colon || (size_t)(colon - extra) >= sizeof name)
		return;
	memcpy(name, extra, (size_t)(colon - extra));
	name[colon - extra] = '\0';
	(void)MHD_add_response_header(x->answer, name, colon + 1 + strspn(colon + 1, " "));
}

static void refuse_body(struct http_exchange *x)
{
	static const char text[] = "the body is too large\n";

	set_answer(x, MHD_HTTP_CONTENT_TOO_LARGE, "text/plain", text, sizeof text - 1, NULL);
}

/* The headers are there. */
static enum MHD_Result begin(struct http_exchange *x)
{
	const char *length = header(x->connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
	uint64_t number;

	x->began = true;
	x->client = client_of(x->connection);
	int rc = text_u64(length, strlen(length), x->s->o.body_max, &number, NULL);
	if (rc != -ERANGE)
		return MHD_YES;
	refuse_body(x);
	return queue(x);
}

/* A body that does not say how long it is cannot be answered before its end: what is too much is
 * passed over, but not for ever. */
static enum MHD_Result take(struct http_exchange *x, const char *data, size_t len)
{
	size_t max = x->s->o.body_max;

	if (x->passed_over || len > max - x->len) {
		x->passed_over += len;
		return x->passed_over > max + HEAD_BYTES ? MHD_NO : MHD_YES;
	}
	if (x->cap <= x->len + len) {
		if (!x->cap)
			x->cap = FIRST_BODY_BYTES;
		while (x->cap <= x->len + len)
			x->cap *= 2;
		x->body = xrealloc(x->body, x->cap, 1);
	}
	memcpy(x->body + x->len, data, len);
	x->len += len;
	x->body[x->len] = '\0';
	return MHD_YES;
}

/* libmicrohttpd's way: called when the headers are there, with each piece of the body, when it is
 * whole, and when we have resumed the connection. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *len, void **request)
{
	struct http_server *s = ctx;
	struct http_exchange *x = *request;

	(void)connection, (void)version;
	if ((s->closing && !x->answer) || x->dropped)
		return MHD_NO;
	if (!x->began)
		return begin(x);
	if (*len) {
		size_t nr = *len;

		*len = 0;
		return take(x, data, nr);
	}
	if (x->passed_over && !x->answer)
		refuse_body(x);
	if (!x->answer)
		hand_over(x, method, url);
	return x->answer ? queue(x) : suspend(x);
}

void http_answer_send(struct http_exchange *x, int status, const char *type, const void *body,
	size_t len, const char *extra)
{
	set_answer(x, status, type, body, len, extra);
	if (x->waits)
		resume(x);
}

/* Building */

static int start(struct http_server *s, struct err *e)
{
	const struct http_server_options *o = &s->o;
	size_t head = o->body_max > BODY_MAX ? BUFFER_BYTES : HEAD_BYTES;
	unsigned flags = MHD_USE_NO_LISTEN_SOCKET | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
			 (o->cert ? MHD_USE_TLS : 0);
	static char versions[] = "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1";
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)o->cert},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)o->key},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, versions},
		{MHD_OPTION_END, 0, NULL},
	};

	s->mhd = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_CONNECTION_LIMIT,
		o->clients_max, MHD_OPTION_CONNECTION_TIMEOUT, o->idle_s,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, head, MHD_OPTION_CONNECTION_MEMORY_INCREMENT,
		head / 2, MHD_OPTION_URI_LOG_CALLBACK, request_begins, s,
		MHD_OPTION_NOTIFY_COMPLETED, request_ends, s, MHD_OPTION_NOTIFY_CONNECTION,
		connection_changed, s, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, o->cert ? MHD_OPTION_ARRAY : MHD_OPTION_END,
		tls, MHD_OPTION_END);
	if (s->mhd)
		return 0;
	return err_set(e, ENOTSUP, "libmicrohttpd %s cannot start here", MHD_get_version());
}

struct http_server *http_server_new(
	struct loop *l, const struct http_server_options *o, struct err *e)
{
	struct http_server_tls *tls =
		o->cert ? http_server_tls_new(o->cert, o->key, o->client_ca, e) : NULL;
	int fd = o->cert && !tls ? -1 : http_listen(o->address, e);

	if (fd < 0) {
		http_server_tls_drop(tls);
		return NULL;
	}
	struct http_server *s = xcalloc(1, sizeof *s);
	s->o = *o;
	s->loop = l;
	s->o.body_max = o->body_max ? o->body_max : BODY_MAX;
	s->o.clients_max = o->clients_max ? o->clients_max : CLIENTS_MAX;
	s->o.idle_s = o->idle_s ? o->idle_s : IDLE_S;
	s->fd = fd;
	s->tls = tls;
	if (start(s, e)) {
		(void)close(fd);
		http_server_tls_drop(tls);
		free(s);
		return NULL;
	}
	s->timer = loop_timer_new(l, run, s);
	s->accept_again = loop_timer_new(l, accept_again, s);
	s->listener = poll_new(l, fd, UV_READABLE, accept_client, s);
	s->patience = loop_timer_new(l, end_slow_clients, s);
	s->poll = poll_new(l, MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
		UV_READABLE, run, s);
	if (!s->listener || !s->poll)
		abort(); /* as where there is no memory */
	return s;
}

int http_server_set_tls(struct http_server *s, const char *cert, const char *key,
	const char *client_ca, struct err *e)
{
	struct http_server_tls *tls = http_server_tls_new(cert, key, client_ca, e);

	if (!tls)
		return -EINVAL;
	http_server_tls_drop(s->tls);
	s->tls = tls;
	return 0;
}

unsigned http_server_port(const struct http_server *s)
{
	return http_port_of(s->fd);
}

/* What has been answered goes out, as far as sockets take it at once. */
static void send_answers(struct http_server *s)
{
	enum { RUNS_MAX = 16 };
	unsigned long long timeout_ms = 0;

	for (unsigned i = 0; i < RUNS_MAX && (s->resumed || !timeout_ms); i++) {
		s->resumed = false;
		(void)MHD_run(s->mhd);
		if (MHD_get_timeout(s->mhd, &timeout_ms) != MHD_YES)
			return;
	}
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	s->closing = true;
	while (s->waiting) /* libmicrohttpd aborts when it is stopped with suspended connections */
		resume(s->waiting);
	send_answers(s);
	poll_close(s->listener);
	(void)close(s->fd);
	poll_close(s->poll);
	MHD_stop_daemon(s->mhd);
	http_server_tls_drop(s->tls);
	loop_timer_close(s->timer);
	loop_timer_close(s->patience);
	loop_timer_close(s->accept_again);
	free(s);
}
