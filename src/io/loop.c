#include <io/loop.h>

#include <io/loop_uv.h>
#include <io/socket_path.h>
#include <numafit/mem.h>
#include <numafit/number.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10, BACKLOG = 64 };

/* Each object is one heap block that begins with its libuv handle, so that the handle's close
 * callback, the only place where it may be freed, can do it without knowing more. */
struct loop {
	uv_loop_t uv;
	uint64_t nr_turns;      /* how often descriptors have had their turn */
	bool in_timer;          /* one fires at this moment */
	char bytes[READ_BYTES]; /* what the read callback that runs now is given */
};

struct loop_timer {
	uv_timer_t uv;
	bool by_timer; /* it was set within a timer's callback, */
	uint64_t turn; /* in that turn */
	void (*fire)(void *ctx);
	void *ctx;
};

struct loop_signal {
	uv_signal_t uv;
	void (*fire)(void *ctx);
	void *ctx;
};

struct stream {
	uv_pipe_t uv;
	struct stream_events events;
	void (*connected)(void *ctx, struct stream *s, int error);
	uv_connect_t connecting;
	uv_shutdown_t finishing;
	struct loop_timer *limit; /* of that */
	bool owned;               /* somebody has it: closed() is owed, with error */
	int error;
};

struct listener {
	uv_pipe_t uv;
	void *ctx;
	struct stream_events (*accepted)(void *ctx, struct stream *s);
};

struct write {
	uv_write_t uv;
	struct stream *stream;
	char bytes[];
};

void loop_free_handle(uv_handle_t *h)
{
	free(h);
}

static void stream_gone(uv_handle_t *h)
{
	struct stream *s = (struct stream *)h;

	if (s->owned)
		s->events.closed(s->events.ctx, s->error);
	free(s);
}

static bool is_stream(const uv_handle_t *h)
{
	return h->data != NULL;
}

static void close_once(uv_handle_t *h)
{
	if (uv_is_closing(h))
		return;
	if (is_stream(h))
		loop_timer_close(steal(((struct stream *)h)->limit));
	uv_close(h, is_stream(h) ? stream_gone : loop_free_handle);
}

static void turn_ends(uv_check_t *h)
{
	struct loop *l = (struct loop *)h->loop;

	l->nr_turns++;
}

struct loop *loop_new(void)
{
	struct loop *l = xcalloc(1, sizeof *l);
	uv_check_t *turns = xcalloc(1, sizeof *turns);

	if (uv_loop_init(&l->uv))
		abort();
	(void)uv_check_init(&l->uv, turns); /* neither can fail */
	(void)uv_check_start(turns, turn_ends);
	uv_unref((uv_handle_t *)turns);
	/* libuv writes without MSG_NOSIGNAL; a peer that is gone is an error of that write */
	(void)signal(SIGPIPE, SIG_IGN);
	return l;
}

/* Streams that their users left open hear of the end, so that they can free what is theirs. */
static void close_rest(uv_handle_t *h, void *arg)
{
	(void)arg;
	if (is_stream(h) && !uv_is_closing(h))
		((struct stream *)h)->error = -ECANCELED;
	close_once(h);
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	/* again when a closed() has opened something new */
	while (uv_loop_close(&l->uv) == UV_EBUSY) {
		uv_walk(&l->uv, close_rest, NULL);
		(void)uv_run(&l->uv, UV_RUN_NOWAIT);
	}
	free(l);
}

uv_loop_t *loop_uv(struct loop *l)
{
	return &l->uv;
}

void loop_run(struct loop *l)
{
	(void)uv_run(&l->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *l)
{
	uv_stop(&l->uv);
}

int64_t loop_wall_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * MS_PER_S + ts.tv_nsec / NS_PER_MS;
}

uint64_t loop_monotonic_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t loop_monotonic_ms(void)
{
	return loop_monotonic_ns() / NS_PER_MS;
}

struct loop_timer *loop_timer_new(struct loop *l, void (*fire)(void *ctx), void *ctx)
{
	struct loop_timer *t = xcalloc(1, sizeof *t);

	(void)uv_timer_init(&l->uv, &t->uv); /* cannot fail */
	t->fire = fire;
	t->ctx = ctx;
	return t;
}

/* libuv fires whatever is due before it looks at descriptors: timers that set each other, or
 * themselves, at once would be all that it ever does. Each has one turn between two looks. */
static void loop_timer_fired(uv_timer_t *uv)
{
	struct loop_timer *t = (struct loop_timer *)uv;
	struct loop *l = (struct loop *)uv->loop;

	if (t->by_timer && t->turn == l->nr_turns) {
		(void)uv_timer_start(uv, loop_timer_fired, 1, 0);
		return;
	}
	l->in_timer = true;
	t->fire(t->ctx); /* which may close it */
	l->in_timer = false;
}

void loop_timer_set(struct loop_timer *t, uint64_t delay_ms)
{
	const struct loop *l = (const struct loop *)t->uv.loop;

	t->by_timer = l->in_timer;
	t->turn = l->nr_turns;
	uv_update_time(t->uv.loop);
	(void)uv_timer_start(&t->uv, loop_timer_fired, delay_ms, 0); /* fails only while closing */
}

void loop_timer_stop(struct loop_timer *t)
{
	(void)uv_timer_stop(&t->uv);
}

void loop_timer_close(struct loop_timer *t)
{
	if (t)
		close_once((uv_handle_t *)&t->uv);
}

static void signal_came(uv_signal_t *uv, int signum)
{
	struct loop_signal *s = (struct loop_signal *)uv;

	(void)signum;
	s->fire(s->ctx);
}

int loop_on_signal(struct loop *l, int signum, void (*fire)(void *ctx), void *ctx)
{
	struct loop_signal *s = xcalloc(1, sizeof *s);
	int rc = uv_signal_init(&l->uv, &s->uv);

	if (rc) {
		free(s);
		return rc;
	}
	s->fire = fire;
	s->ctx = ctx;
	rc = uv_signal_start(&s->uv, signal_came, signum);
	if (rc)
		close_once((uv_handle_t *)&s->uv);
	else /* waiting for a signal alone keeps no loop running */
		uv_unref((uv_handle_t *)&s->uv);
	return rc;
}

static struct stream *new_stream(struct loop *l)
{
	struct stream *s = xcalloc(1, sizeof *s);

	(void)uv_pipe_init(&l->uv, &s->uv, 0); /* cannot fail */
	s->uv.data = s;                        /* how is_stream() knows */
	return s;
}

static void stream_fail(struct stream *s, int error)
{
	if (uv_is_closing((uv_handle_t *)&s->uv))
		return;
	s->error = error == UV_EOF ? 0 : error;
	close_once((uv_handle_t *)&s->uv);
}

static void give_buffer(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
	struct loop *l = (struct loop *)h->loop;

	(void)suggested;
	*buf = uv_buf_init(l->bytes, sizeof l->bytes);
}

static void bytes_came(uv_stream_t *uv, ssize_t len, const uv_buf_t *buf)
{
	struct stream *s = (struct stream *)uv;

	if (len < 0)
		stream_fail(s, (int)len);
	else if (len > 0)
		s->events.data(s->events.ctx, buf->base, (size_t)len);
}

static int start_reading(struct stream *s)
{
	return uv_read_start((uv_stream_t *)&s->uv, give_buffer, bytes_came);
}

static void connect_done(uv_connect_t *req, int status)
{
	struct stream *s = (struct stream *)req->handle;
	void (*connected)(void *, struct stream *, int) = s->connected;

	s->connected = NULL;
	if (!status)
		status = start_reading(s);
	s->owned = !status;
	if (status)
		close_once((uv_handle_t *)&s->uv);
	connected(s->events.ctx, status ? NULL : s, status);
}

int stream_connect(struct loop *l, const char *path, const struct stream_events *events,
	void (*connected)(void *ctx, struct stream *s, int error))
{
	if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
		return -ENAMETOOLONG;
	struct stream *s = new_stream(l);
	s->events = *events;
	s->connected = connected;
	uv_pipe_connect(&s->connecting, &s->uv, path, connect_done);
	return 0;
}

uint64_t stream_peer(const struct stream *s)
{
	struct ucred peer;
	socklen_t len = sizeof peer;
	uv_os_fd_t fd;

	if (uv_fileno((const uv_handle_t *)&s->uv, &fd) ||
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || peer.pid < 0)
		return 0;
	return (uint64_t)peer.pid;
}

struct stream *stream_adopt(
	struct loop *l, int fd, const struct stream_events *events, struct err *e)
{
	struct stream *s = new_stream(l);
	int rc = uv_pipe_open(&s->uv, fd);

	s->events = *events;
	if (rc)
		(void)close(fd);
	else
		rc = start_reading(s);
	s->owned = !rc;
	if (!rc)
		return s;
	close_once((uv_handle_t *)&s->uv);
	(void)err_set(e, -rc, "socket %d: %s", fd, strerror(-rc));
	return NULL;
}

static void write_done(uv_write_t *uv, int status)
{
	struct write *w = (struct write *)uv;

	if (status && status != UV_ECANCELED)
		stream_fail(w->stream, status);
	free(w);
}

static int write_later(struct stream *s, const char *data, size_t len)
{
	struct write *w = xrealloc(NULL, 1, sizeof *w + len);
	uv_buf_t buf = uv_buf_init(w->bytes, (unsigned)len);

	w->stream = s;
	memcpy(w->bytes, data, len);
	int rc = uv_write(&w->uv, (uv_stream_t *)&s->uv, &buf, 1, write_done);
	if (rc)
		free(w);
	return rc;
}

int stream_write(struct stream *s, const void *data, size_t len)
{
	uv_stream_t *uv = (uv_stream_t *)&s->uv;

	if (uv_is_closing((uv_handle_t *)uv))
		return s->error < 0 ? s->error : -EPIPE;
	if (!len)
		return 0;
	if (len > STREAM_UNSENT_MAX ||
		uv_stream_get_write_queue_size(uv) > STREAM_UNSENT_MAX - len) {
		stream_fail(s, -ENOBUFS);
		return -ENOBUFS;
	}
	/* not through the queue, for which libuv would set the descriptor up anew in epoll */
	uv_buf_t buf = uv_buf_init((char *)(uintptr_t)data, (unsigned)len);
	int sent = uv_try_write(uv, &buf, 1);
	if (sent < 0 && sent != UV_EAGAIN) {
		stream_fail(s, sent);
		return sent;
	}
	size_t done = sent > 0 ? (size_t)sent : 0;
	return done == len ? 0 : write_later(s, (const char *)data + done, len - done);
}

void stream_close(struct stream *s)
{
	if (!s)
		return;
	s->owned = false;
	close_once((uv_handle_t *)&s->uv);
}

static void finish_done(uv_shutdown_t *req, int status)
{
	(void)status;
	close_once((uv_handle_t *)req->handle);
}

static void finish_late(void *ctx)
{
	struct stream *s = ctx;

	close_once((uv_handle_t *)&s->uv);
}

void stream_finish(struct stream *s)
{
	s->owned = false;
	if (!uv_is_closing((uv_handle_t *)&s->uv) && !s->limit) {
		s->limit = loop_timer_new((struct loop *)s->uv.loop, finish_late, s);
		loop_timer_set(s->limit, STREAM_FINISH_MS);
	}
	(void)uv_read_stop((uv_stream_t *)&s->uv);
	if (!uv_is_closing((uv_handle_t *)&s->uv) &&
		uv_shutdown(&s->finishing, (uv_stream_t *)&s->uv, finish_done))
		close_once((uv_handle_t *)&s->uv);
}

static void connection_came(uv_stream_t *uv, int status)
{
	struct listener *ls = (struct listener *)uv;

	if (status)
		return;
	struct stream *s = new_stream((struct loop *)uv->loop);
	if (uv_accept(uv, (uv_stream_t *)&s->uv)) {
		close_once((uv_handle_t *)&s->uv);
		return;
	}
	s->owned = true; /* accepted() may already write or close it */
	s->events = ls->accepted(ls->ctx, s);
	int rc = start_reading(s);
	if (rc)
		stream_fail(s, rc);
}

struct listener *listener_new(struct loop *l, const char *path, unsigned mode, void *ctx,
	struct stream_events (*accepted)(void *ctx, struct stream *s), struct err *e)
{
	if (socket_path_clear(path, e) < 0)
		return NULL;
	struct listener *ls = xcalloc(1, sizeof *ls);
	(void)uv_pipe_init(&l->uv, &ls->uv, 0);
	ls->ctx = ctx;
	ls->accepted = accepted;
	int rc = uv_pipe_bind(&ls->uv, path);
	/* nobody can connect before uv_listen(), so the mode is never too wide for anybody */
	if (!rc && chmod(path, mode) < 0)
		rc = -errno;
	if (!rc)
		rc = uv_listen((uv_stream_t *)&ls->uv, BACKLOG, connection_came);
	if (!rc)
		return ls;
	/* libuv says EACCES of a missing directory too */
	(void)err_set(e, -rc, "socket %s: %s", path,
		rc == UV_EACCES ? "the directory is missing or may not be written" : strerror(-rc));
	listener_close(ls);
	return NULL;
}

void listener_close(struct listener *ls)
{
	if (ls)
		close_once((uv_handle_t *)&ls->uv);
}
