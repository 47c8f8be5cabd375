#include <nri/nri_conn.h>

#include <assert.h>
#include <errno.h>
#include <io/backoff.h>
#include <io/fault.h>
#include <io/watch.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <string.h>

enum { RETRY_MIN_MS = 1000, RETRY_MAX_MS = 60000, LISTENS_SOON_MS = 50 };

struct nri_conn {
	struct loop *loop;
	struct nri_conn_options options;
	const struct nri_handler *handler;
	struct loop_timer *timer; /* the session's deadline; without a session, the next attempt */
	struct watch *watch;      /* without a session: of the socket */
	bool socket_changed;      /* since the last attempt */
	struct stream *stream;
	struct nri_session *session;
	bool connecting; /* conn_on_connected() is still to come */
	bool in_session; /* a handler may be running */
	bool closed;     /* free it when conn_on_connected() has come */
	struct backoff backoff;
	char problem[sizeof((struct err *)0)->text]; /* logged last; "" when all is well */
};

/* The runtime is back; it needs a moment from making its socket to listening on it. */
static void on_socket_changed(void *ctx)
{
	struct nri_conn *c = ctx;

	if (c->socket_changed)
		return;
	c->socket_changed = true;
	if (!c->connecting)
		loop_timer_set(c->timer, LISTENS_SOON_MS);
}

/* There is no connection, or no longer: try again later, if another can be made. This frees the
 * session, so nothing calls it while the session works: one that fails has a deadline of 0, and
 * conn_on_timer() comes here in a later turn of the loop. */
static void conn_start_over(struct nri_conn *c, const char *text)
{
	if (c->session && nri_session_state(c->session) == NRI_FAILED)
		text = nri_session_error(c->session); /* why the other side closed it, too */
	if (!text_equal(c->problem, text)) {
		(void)text_copy(c->problem, sizeof c->problem, text);
		if (c->handler->on_event)
			c->handler->on_event(c->handler->ctx, "nri-disconnected", c->problem);
	}
	stream_close(c->stream);
	c->stream = NULL;
	nri_session_free(c->session);
	c->session = NULL;
	if (!c->options.plugin.launched) {
		loop_timer_set(c->timer,
			c->socket_changed ? LISTENS_SOON_MS : backoff_next(&c->backoff, 0));
		return;
	}
	loop_timer_stop(c->timer);
	c->options.ended(c->handler->ctx);
}

static void conn_start_over_with_error(struct nri_conn *c, int error)
{
	struct err e;

	(void)err_set(&e, -error, "%s: %s",
		c->options.plugin.launched ? "the runtime's connection" : c->options.socket,
		strerror(-error));
	conn_start_over(c, e.text);
}

/* After anything was done to the session: send what it has written, and wait for its deadline. */
static void conn_follow_up(struct nri_conn *c)
{
	const void *data;
	size_t len = nri_session_take(c->session, &data);

	if (len) {
		/* conn_on_closed() hears of it when the stream breaks */
		(void)stream_write(c->stream, data, fault_half(FAULT_HALF_ANSWER, len));
		fault_half_done();
		fault_point(FAULT_ANSWERED);
	}
	if (nri_session_state(c->session) == NRI_READY) {
		backoff_reset(&c->backoff);
		c->problem[0] = '\0';
	}
	uint64_t deadline = nri_session_deadline(c->session);
	if (deadline == UINT64_MAX)
		loop_timer_stop(c->timer);
	else
		loop_timer_set(c->timer, deadline - number_min(deadline, loop_monotonic_ms()));
}

static void on_data(void *ctx, const void *data, size_t len)
{
	struct nri_conn *c = ctx;

	fault_point(FAULT_FRAME_READ);
	c->in_session = true;
	(void)nri_session_feed(
		c->session, data, len, loop_monotonic_ms()); /* its state says how it went */
	c->in_session = false;
	fault_point(FAULT_QUEUED);
	conn_follow_up(c);
	nri_session_sent(c->session);
}

static void conn_on_closed(void *ctx, int error)
{
	struct nri_conn *c = ctx;

	c->stream = NULL;
	if (error == -ECANCELED) /* the loop is being freed, and with it the timer */
		return;
	if (error)
		conn_start_over_with_error(c, error);
	else
		conn_start_over(c, "the runtime closed the connection");
}

static void conn_begin_session(struct nri_conn *c, struct stream *s)
{
	watch_close(c->watch);
	c->watch = NULL;
	c->stream = s;
	c->session = nri_session_new(&c->options.plugin, c->handler, loop_monotonic_ms());
	conn_follow_up(c);
}

static void conn_on_connected(void *ctx, struct stream *s, int error)
{
	struct nri_conn *c = ctx;

	c->connecting = false;
	if (c->closed) {
		stream_close(s);
		free(c);
		return;
	}
	if (error == -ECANCELED)
		return;
	if (error)
		conn_start_over_with_error(c, error);
	else
		conn_begin_session(c, s);
}

static void conn_attempt(struct nri_conn *c)
{
	struct stream_events events = {c, on_data, conn_on_closed};

	watch_close(c->watch); /* of a directory that may have been made anew */
	c->watch = watch_new(c->loop, c->options.socket, on_socket_changed, c);
	c->socket_changed = false;
	int rc = stream_connect(c->loop, c->options.socket, &events, conn_on_connected);

	c->connecting = rc == 0;
	if (rc < 0)
		conn_start_over_with_error(c, rc);
}

static void conn_on_timer(void *ctx)
{
	struct nri_conn *c = ctx;

	if (!c->session) {
		conn_attempt(c);
		return;
	}
	nri_session_tick(c->session, loop_monotonic_ms());
	if (nri_session_state(c->session) == NRI_FAILED)
		conn_start_over(c, nri_session_error(c->session));
	else
		conn_follow_up(c);
}

struct nri_conn *nri_conn_new(
	struct loop *l, const struct nri_conn_options *o, const struct nri_handler *handler)
{
	struct nri_conn *c = xcalloc(1, sizeof *c);

	c->loop = l;
	c->options = *o;
	c->backoff = (struct backoff){
		.min_ms = o->retry_min_ms ? o->retry_min_ms : RETRY_MIN_MS,
		.max_ms = o->retry_max_ms ? o->retry_max_ms : RETRY_MAX_MS,
	};
	c->handler = handler;
	c->timer = loop_timer_new(l, conn_on_timer, c);
	if (!o->plugin.launched) {
		conn_attempt(c);
		return c;
	}
	struct stream_events events = {c, on_data, conn_on_closed};
	struct err e;
	struct stream *s = stream_adopt(l, o->fd, &events, &e);

	if (s)
		conn_begin_session(c, s);
	else
		conn_start_over(c, e.text);
	return c;
}

enum nri_state nri_conn_state(const struct nri_conn *c)
{
	return c->session ? nri_session_state(c->session) : NRI_FAILED;
}

const char *nri_conn_runtime(const struct nri_conn *c)
{
	return c->session ? nri_session_runtime(c->session) : "";
}

uint64_t nri_conn_peer(const struct nri_conn *c)
{
	return c->stream ? stream_peer(c->stream) : 0;
}

bool nri_conn_shows_cdi(const struct nri_conn *c)
{
	return c->session && nri_session_shows_cdi(c->session);
}

bool nri_conn_sets_memory_policies(const struct nri_conn *c)
{
	return c->session && nri_session_sets_memory_policies(c->session);
}

bool nri_conn_forgets(const struct nri_conn *c)
{
	return c->session && nri_session_forgets(c->session);
}

void nri_conn_resume(struct nri_conn *c)
{
	if (!c->session)
		return;
	assert(!c->in_session);
	c->in_session = true;
	(void)nri_session_resume(c->session, loop_monotonic_ms()); /* its state says how it went */
	c->in_session = false;
	conn_follow_up(c);
	nri_session_sent(c->session);
}

uint64_t nri_conn_patience_ms(const struct nri_conn *c)
{
	return c->session ? nri_session_patience_ms(c->session) : 0;
}

bool nri_conn_takes_updates(const struct nri_conn *c)
{
	return c->session && !c->in_session && nri_session_takes_updates(c->session);
}

int nri_conn_update(struct nri_conn *c, const struct nri_cpuset *updates, size_t nr,
	void (*updated)(void *ctx, const char *problem), struct err *e)
{
	assert(!c->in_session);
	int rc = nri_session_update(c->session, updates, nr, updated, e);
	if (rc == 0)
		conn_follow_up(c);
	return rc;
}

bool nri_conn_is_idle(const struct nri_conn *c)
{
	return !c->session || nri_session_is_idle(c->session);
}

void nri_conn_close(struct nri_conn *c)
{
	if (!c)
		return;
	assert(!c->in_session);
	loop_timer_close(c->timer);
	watch_close(c->watch);
	stream_close(c->stream);
	nri_session_free(c->session);
	c->session = NULL;
	c->closed = true;
	if (!c->connecting)
		free(c);
}
