#include <io/http_server.h>

#include <io/fd_poll.h>
#include <io/http_door.h>
#include <io/http_server_listen.h>
#include <io/http_server_tls.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* libmicrohttpd without threads of its own: its epoll descriptor hangs on the loop, and it is run
 * when that is readable or its timeout has come. One run reads a buffer of each connection that has
 * something, so that others of the loop have their turn between. Which client gets a connection
 * with it, and for how long, is the door's to say: libmicrohttpd's own timeout starts anew with
 * every byte. */

enum {
	BODY_MAX = 64 << 10,
	HELD_MAX = 64 << 20,
	SMALL = 64 << 10, /* of an answer: not worth refusing it */
	CLIENTS_MAX = 64,
	WAITING_MAX = 4096,
	WAITING_PART = 4, /* of all descriptors at most */
	FIRST_MS = 2000,
	REQUEST_MS = 10000,
	IDLE_S = 30,
	HEAD_BYTES = 32 << 10,    /* of a connection: request line and headers must fit */
	BUFFER_BYTES = 256 << 10, /* the same, where large bodies are read */
	FIRST_BODY_BYTES = 4 << 10,
	GONE_PART = 4,
	HEADER_MAX_BYTES = 512
};

/* One connection. */
struct client {
	struct http_server *s;
	struct door_guest *guest;
	int fd;
	struct http_server_tls *tls; /* NULL: plain */
	struct http_server_proof proof;
};

struct http_exchange {
	struct http_exchange *next, **at; /* of those that wait for an answer */
	struct http_server *s;
	struct MHD_Connection *connection;
	struct client *client;
	struct fd_poll *watch; /* of its client, while it waits */
	struct MHD_Response *answer;
	unsigned status;
	bool began, waits;
	bool dropped; /* its client is gone */
	char *query, *body;
	bool odd_path;                /* its path has a control character */
	size_t len, cap, passed_over; /* bytes of the body */
	size_t held;                  /* of held_max */
	bool crowded;                 /* there is no room for the body */
};

struct http_server {
	struct http_server_options o;
	struct loop *loop;
	struct MHD_Daemon *mhd;
	struct http_server_tls *tls; /* of new connections; NULL: plain */
	struct door *door;
	struct door_guest *entering; /* NULL: libmicrohttpd has reported it */
	struct own_addresses *own;
	unsigned port;
	struct fd_poll *poll;
	struct loop_timer *timer;
	struct http_exchange *waiting;
	size_t held; /* by exchanges, of held_max */
	uint64_t nr_refused;
	bool resumed; /* a connection was, which libmicrohttpd's timeout does not show */
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

/* libmicrohttpd looks at an unfinished handshake again and again, without an event: once in a
 * millisecond is enough. */
static unsigned long long server_next_run_ms(
	const struct http_server *s, unsigned long long timeout_ms)
{
	if (s->resumed)
		return 0;
	return timeout_ms || !s->tls || door_is_busy(s->door) ? timeout_ms : 1;
}

static void server_run(void *ctx)
{
	struct http_server *s = ctx;
	unsigned long long timeout_ms;

	s->resumed = false;
	(void)MHD_run(s->mhd);
	if (MHD_get_timeout(s->mhd, &timeout_ms) == MHD_YES || s->resumed)
		loop_timer_set(s->timer, server_next_run_ms(s, timeout_ms));
	else
		loop_timer_stop(s->timer);
}

/* Connections */

static bool server_enter(
	void *ctx, struct door_guest *g, int fd, const struct sockaddr *address, socklen_t len)
{
	struct http_server *s = ctx;

	s->entering = g; /* connection_changed() takes it */
	if (MHD_add_connection(s->mhd, fd, address, len) == MHD_YES)
		return true;
	/* closed; one that connection_changed() has heard of has left the door by now, too */
	return !steal(s->entering);
}

static bool server_is_own(void *ctx, const struct sockaddr *address)
{
	const struct http_server *s = ctx;

	return s->o.is_own ? s->o.is_own(address)
			   : own_addresses_have(s->own, address, loop_monotonic_ms());
}

static struct client *client_of(struct MHD_Connection *c)
{
	return MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* It may take its time now with the first request. */
static void client_proven(void *ctx)
{
	const struct client *c = ctx;

	door_prove(c->guest);
	door_set(c->guest, DOOR_IDLES);
}

static void client_refused(void *ctx, const char *why)
{
	const struct client *c = ctx;

	if (c->s->o.stranger)
		c->s->o.stranger(c->s->o.ctx, why);
}

/* In place of what libmicrohttpd was started with. */
static void begin_tls(struct http_server *s, struct client *c, struct MHD_Connection *connection)
{
	gnutls_session_t session =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)
			->tls_session;

	c->proof = (struct http_server_proof){client_proven, client_refused, c};
	c->tls = http_server_tls_begin(s->tls, session, &c->proof);
}

static void connection_changed(void *ctx, struct MHD_Connection *connection, void **socket_context,
	enum MHD_ConnectionNotificationCode code)
{
	struct http_server *s = ctx;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		struct client *c = *socket_context;

		http_server_tls_drop(c->tls);
		door_left(c->guest);
		free(c);
		return;
	}
	struct client *c = xcalloc(1, sizeof *c);
	c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	c->s = s;
	c->guest = steal(s->entering);
	*socket_context = c;
	if (s->tls)
		begin_tls(s, c, connection);
}

/* Requests */

/* Whether x may hold that much, instead of what it does. */
static bool exchange_hold(struct http_exchange *x, size_t bytes)
{
	struct http_server *s = x->s;
	size_t others = s->held - x->held;

	if (bytes > s->o.held_max - others)
		return false;
	s->held = others + bytes;
	x->held = bytes;
	return true;
}

static void exchange_drop_body(struct http_exchange *x)
{
	free(steal(x->body));
	x->len = x->cap = 0;
}

/* Whether a path, as it came, has one, if only as %XX: libmicrohttpd ends the path that it decodes
 * at a NUL. */
static bool has_control_character(const char *path, size_t len)
{
	bool found = false;

	for (size_t i = 0; i < len && !found; i++) {
		unsigned char c = (unsigned char)path[i];

		found = c < ' ' || c == 0x7f;
		if (c == '%' && len - i > 2)
			found = path[i + 1] == '0' || path[i + 1] == '1' ||
				strncasecmp(path + i, "%7f", 3) == 0;
	}
	return found;
}

/* The request line is there; its URI as it came. */
static void *request_begins(void *ctx, const char *uri, struct MHD_Connection *connection)
{
	struct http_exchange *x = xcalloc(1, sizeof *x);
	const char *query = strchr(uri, '?');

	x->s = ctx;
	x->connection = connection;
	x->query = xstrdup(query ? query + 1 : "");
	x->odd_path = has_control_character(uri, query ? (size_t)(query - uri) : strlen(uri));
	return x;
}

static void request_ends(void *ctx, struct MHD_Connection *connection, void **request,
	enum MHD_RequestTerminationCode how)
{
	struct http_exchange *x = *request;

	(void)ctx, (void)how;
	door_set(client_of(connection)->guest, DOOR_IDLES);
	if (x->answer)
		MHD_destroy_response(x->answer);
	exchange_drop_body(x);
	(void)exchange_hold(x, 0);
	free(x->query);
	free(x);
	*request = NULL;
}

static enum MHD_Result exchange_queue(struct http_exchange *x)
{
	door_set(x->client->guest, DOOR_READS);
	return MHD_queue_response(x->connection, x->status, x->answer);
}

/* Take x out of those that wait; libmicrohttpd will ask for it again. */
static void exchange_resume(struct http_exchange *x)
{
	fd_poll_close(steal(x->watch));
	x->waits = false;
	door_set(x->client->guest, DOOR_READS);
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
	exchange_resume(x);
	s->o.gone(s->o.ctx, x);
}

/* A suspended connection is nothing that libmicrohttpd looks at: we do. */
static enum MHD_Result exchange_suspend(struct http_exchange *x)
{
	x->waits = true;
	door_set(x->client->guest, DOOR_WAITS);
	LIST_ADD(x->s->waiting, x);
	MHD_suspend_connection(x->connection);
	if (x->s->o.gone)
		x->watch = fd_poll_new(x->s->loop, x->client->fd, FD_DISCONNECT, client_gone, x);
	return MHD_YES;
}

static const char *request_header(struct MHD_Connection *c, const char *name)
{
	const char *value = MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);

	return value ? value : "";
}

static void exchange_hand_over(struct http_exchange *x, const char *method, const char *path)
{
	const struct sockaddr *address =
		MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
			->client_addr;
	const struct http_request r = {
		.method = method,
		.path = path,
		.query = x->query,
		.type = request_header(x->connection, MHD_HTTP_HEADER_CONTENT_TYPE),
		.host = request_header(x->connection, MHD_HTTP_HEADER_HOST),
		.site = request_header(x->connection, "Sec-Fetch-Site"),
		.body = x->body ? x->body : "",
		.len = x->len,
		.local = address_is_loopback(address),
	};

	x->s->o.handle(x->s->o.ctx, x, &r);
}

/* "Retry-After: 1", of len bytes */
static void answer_add_header(struct MHD_Response *answer, const char *header, size_t len)
{
	char line[HEADER_MAX_BYTES];
	char *colon;

	assert(len < sizeof line); /* a literal of the caller's */
	memcpy(line, header, len);
	line[len] = '\0';
	colon = strchr(line, ':');
	if (!colon)
		return;
	*colon++ = '\0';
	(void)MHD_add_response_header(answer, line, colon + strspn(colon, " "));
}

static void exchange_make_answer(struct http_exchange *x, int status, const char *type,
	const void *body, size_t len, const char *extra)
{
	x->status = (unsigned)status;
	x->answer = MHD_create_response_from_buffer(
		len, (void *)(uintptr_t)body, MHD_RESPMEM_MUST_COPY);
	if (!x->answer)
		abort(); /* no memory is left, as in mem.h */
	(void)MHD_add_response_header(x->answer, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	while (extra && *extra) {
		size_t header = strcspn(extra, "\n");

		answer_add_header(x->answer, extra, header);
		extra += header + (extra[header] == '\n');
	}
}

static void exchange_refuse_crowded(struct http_exchange *x)
{
	static const char text[] = "too much is held for others\n";

	x->s->nr_refused++;
	(void)exchange_hold(x, 0);
	exchange_make_answer(x, MHD_HTTP_SERVICE_UNAVAILABLE, "text/plain", text, sizeof text - 1,
		"Retry-After: 1");
}

static void exchange_set_answer(struct http_exchange *x, int status, const char *type,
	const void *body, size_t len, const char *extra)
{
	if (exchange_hold(x, len <= SMALL ? 0 : len))
		exchange_make_answer(x, status, type, body, len, extra);
	else
		exchange_refuse_crowded(x);
	exchange_drop_body(x); /* which may be what was answered */
}

static void exchange_refuse_body(struct http_exchange *x)
{
	static const char text[] = "the body is too large\n";

	exchange_set_answer(
		x, MHD_HTTP_CONTENT_TOO_LARGE, "text/plain", text, sizeof text - 1, NULL);
}

/* Headers by which a request is let in or read. With two of a kind a proxy in front may have
 * believed the other one. */
static const char *const single_headers[] = {MHD_HTTP_HEADER_HOST, MHD_HTTP_HEADER_CONTENT_TYPE,
	MHD_HTTP_HEADER_CONTENT_LENGTH, "Sec-Fetch-Site"};
enum { NR_SINGLE_HEADERS = sizeof single_headers / sizeof *single_headers };

static enum MHD_Result count_single_header(
	void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	unsigned *nr = ctx;

	(void)kind, (void)value;
	for (unsigned i = 0; i < NR_SINGLE_HEADERS; i++)
		nr[i] += strcasecmp(name, single_headers[i]) == 0;
	return MHD_YES;
}

/* RFC 9112, 3.2: a server answers 400. NULL: the request is well-formed. */
static const char *exchange_malformed(struct http_exchange *x)
{
	unsigned nr[NR_SINGLE_HEADERS] = {0};

	if (x->odd_path)
		return "the path has a control character\n";
	(void)MHD_get_connection_values(x->connection, MHD_HEADER_KIND, count_single_header, nr);
	for (unsigned i = 0; i < NR_SINGLE_HEADERS; i++)
		if (nr[i] > 1)
			return "a header is there twice\n";
	return NULL;
}

/* The headers are there. A body that nobody wants is not waited for. */
static enum MHD_Result exchange_begin(struct http_exchange *x, const char *method, const char *path)
{
	const struct http_server_options *o = &x->s->o;
	const char *length = request_header(x->connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
	uint64_t number = 0;

	x->began = true;
	x->client = client_of(x->connection);
	door_set(x->client->guest, DOOR_ASKS);
	bool too_large = text_u64(length, strlen(length), o->body_max, &number, NULL) == -ERANGE;
	bool some = number || *request_header(x->connection, MHD_HTTP_HEADER_TRANSFER_ENCODING);
	const char *malformed = exchange_malformed(x);
	if (malformed)
		exchange_set_answer(
			x, MHD_HTTP_BAD_REQUEST, "text/plain", malformed, strlen(malformed), NULL);
	else if (too_large)
		exchange_refuse_body(x);
	else if (o->no_body && some)
		exchange_hand_over(x, method, path);
	else if (number && !exchange_hold(x, number + 1))
		exchange_refuse_crowded(x);
	else
		return MHD_YES;
	return x->answer ? exchange_queue(x) : exchange_suspend(x);
}

/* Room for so many bytes and a NUL: as many as were announced, else twice as many each time. */
static bool exchange_make_room(struct http_exchange *x, size_t len)
{
	size_t cap = x->cap ? x->cap : x->held;

	if (x->cap > len)
		return true;
	if (!cap)
		cap = FIRST_BODY_BYTES;
	while (cap <= len)
		cap *= 2;
	if (cap > x->s->o.body_max)
		cap = x->s->o.body_max + 1;
	if (!exchange_hold(x, cap))
		return false;
	x->cap = cap;
	x->body = xrealloc(x->body, x->cap, 1);
	return true;
}

/* A body that does not say how long it is cannot be answered before its end: what is too much is
 * passed over, but not for ever. */
static enum MHD_Result exchange_take_body(struct http_exchange *x, const char *data, size_t len)
{
	size_t max = x->s->o.body_max;

	if (!x->passed_over && len <= max - x->len && !exchange_make_room(x, x->len + len))
		x->crowded = true;
	if (x->crowded || x->passed_over || len > max - x->len) {
		x->passed_over += len;
		return x->passed_over > max + HEAD_BYTES ? MHD_NO : MHD_YES;
	}
	memcpy(x->body + x->len, data, len);
	x->len += len;
	x->body[x->len] = '\0';
	return MHD_YES;
}

/* libmicrohttpd's way: called when the headers are there, with each piece of the body, when it is
 * whole, and when we have resumed the connection. */
static enum MHD_Result server_on_request(void *ctx, struct MHD_Connection *connection,
	const char *url, const char *method, const char *version, const char *data, size_t *len,
	void **request)
{
	struct http_server *s = ctx;
	struct http_exchange *x = *request;

	(void)connection, (void)version;
	if ((s->closing && !x->answer) || x->dropped)
		return MHD_NO;
	if (!x->began)
		return exchange_begin(x, method, url);
	if (*len) {
		size_t nr = *len;

		*len = 0;
		return exchange_take_body(x, data, nr);
	}
	if (x->crowded && !x->answer)
		exchange_refuse_crowded(x);
	if (x->passed_over && !x->answer)
		exchange_refuse_body(x);
	if (!x->answer)
		exchange_hand_over(x, method, url);
	return x->answer ? exchange_queue(x) : exchange_suspend(x);
}

void http_answer_send(struct http_exchange *x, int status, const char *type, const void *body,
	size_t len, const char *extra)
{
	exchange_set_answer(x, status, type, body, len, extra);
	if (x->waits)
		exchange_resume(x);
}

/* Building */

static int server_start(struct http_server *s, struct err *e)
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

	/* a connection that was sent away is there until libmicrohttpd has seen it */
	s->mhd = MHD_start_daemon(flags, 0, NULL, NULL, server_on_request, s,
		MHD_OPTION_CONNECTION_LIMIT, GONE_PART * o->clients_max,
		MHD_OPTION_CONNECTION_TIMEOUT, o->idle_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, head,
		MHD_OPTION_CONNECTION_MEMORY_INCREMENT, head / 2, MHD_OPTION_URI_LOG_CALLBACK,
		request_begins, s, MHD_OPTION_NOTIFY_COMPLETED, request_ends, s,
		MHD_OPTION_NOTIFY_CONNECTION, connection_changed, s, MHD_OPTION_STRICT_FOR_CLIENT,
		1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
		o->cert ? MHD_OPTION_ARRAY : MHD_OPTION_END, tls, MHD_OPTION_END);
	if (s->mhd)
		return 0;
	return err_set(e, ENOTSUP, "libmicrohttpd %s cannot start here", MHD_get_version());
}

/* As many descriptors as a door may take in front. */
static unsigned server_waiting_max(const struct http_server_options *o)
{
	unsigned max = o->waiting_max ? o->waiting_max : WAITING_MAX;
	struct rlimit fds;

	if (!getrlimit(RLIMIT_NOFILE, &fds) && fds.rlim_cur / WAITING_PART < max)
		max = (unsigned)(fds.rlim_cur / WAITING_PART);
	return max;
}

static void server_set_options(struct http_server *s, const struct http_server_options *o)
{
	s->o = *o;
	s->o.body_max = o->body_max ? o->body_max : BODY_MAX;
	s->o.held_max = o->held_max                ? o->held_max
			: s->o.body_max < HELD_MAX ? HELD_MAX
						   : s->o.body_max + 1;
	s->o.clients_max = o->clients_max ? o->clients_max : CLIENTS_MAX;
	s->o.idle_s = o->idle_s ? o->idle_s : IDLE_S;
	s->o.first_ms = o->first_ms ? o->first_ms : FIRST_MS;
	s->o.request_ms = o->request_ms ? o->request_ms : REQUEST_MS;
}

/* libmicrohttpd would accept by itself, and turn without an end when no descriptor is left. */
static struct door *server_make_door(struct http_server *s, int fd)
{
	unsigned idle_ms = 2 * s->o.idle_s * MS_PER_S;
	const struct door_options o = {
		.fd = fd,
		.tls = s->tls,
		.inside_max = s->o.clients_max,
		.waiting_max = server_waiting_max(&s->o),
		.limit_ms = {[DOOR_STARTS] = s->o.first_ms,
			[DOOR_ASKS] = s->o.request_ms,
			[DOOR_IDLES] = idle_ms,
			[DOOR_READS] = idle_ms},
		.ctx = s,
		.is_own = server_is_own,
		.enter = server_enter,
		.entered = server_run,
	};

	return door_new(s->loop, &o);
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
	server_set_options(s, o);
	s->loop = l;
	s->port = http_port_of(fd);
	s->tls = tls;
	if (server_start(s, e)) {
		(void)close(fd);
		http_server_tls_drop(tls);
		free(s);
		return NULL;
	}
	s->own = own_addresses_new(o->also_own);
	s->timer = loop_timer_new(l, server_run, s);
	s->door = server_make_door(s, fd);
	s->poll = fd_poll_new(l, MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
		FD_READABLE, server_run, s);
	if (!s->poll)
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

int http_server_check_tls(const char *cert, const char *key, const char *client_ca, struct err *e)
{
	struct http_server_tls *tls = http_server_tls_new(cert, key, client_ca, e);

	http_server_tls_drop(tls);
	return tls ? 0 : -EINVAL;
}

unsigned http_server_port(const struct http_server *s)
{
	return s->port;
}

struct http_counts http_server_counts(const struct http_server *s)
{
	return (struct http_counts){
		.crowded = door_count_crowded(s->door),
		.slow = door_count_slow(s->door),
		.refused = s->nr_refused,
	};
}

/* What has been answered goes out, as far as sockets take it at once. */
static void server_send_answers(struct http_server *s)
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
		exchange_resume(s->waiting);
	door_close(s->door);
	server_send_answers(s);
	fd_poll_close(s->poll);
	MHD_stop_daemon(s->mhd);
	door_free(s->door);
	http_server_tls_drop(s->tls);
	own_addresses_free(s->own);
	loop_timer_close(s->timer);
	free(s);
}
