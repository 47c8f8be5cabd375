#include <io/http_client_sockets.h>

#include <io/loop_uv.h>
#include <numafit/mem.h>

struct http_sockets {
	struct loop *loop;
	const struct libcurl *curl;
	CURLM *multi;
	void *ctx;
	void (*ready)(void *ctx, curl_socket_t fd, int events);
	struct loop_timer *timer;
	struct watched *first;
};

struct watched {
	uv_poll_t uv; /* first: see loop_uv.h */
	struct http_sockets *sockets;
	struct watched *next;
	curl_socket_t fd;
	int events;
};

static void close_watched(struct watched *w)
{
	struct watched **at = &w->sockets->first;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	uv_close((uv_handle_t *)&w->uv, loop_free_handle);
}

static void watched_ready(uv_poll_t *uv, int status, int events)
{
	struct watched *w = (struct watched *)uv;
	struct http_sockets *s = w->sockets;
	int what = CURL_CSELECT_IN | CURL_CSELECT_OUT;

	/* libuv stops after an error. Only reading and writing shows which one it is. */
	if (status < 0)
		(void)uv_poll_start(&w->uv, w->events, watched_ready);
	else
		what = (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
		       (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);
	s->ready(s->ctx, w->fd, what);
}

/* NULL: no descriptor can be watched any more. The call then ends by its limits. */
static struct watched *watch_socket(struct http_sockets *s, curl_socket_t fd)
{
	struct watched *w = xcalloc(1, sizeof *w);

	if (uv_poll_init(loop_uv(s->loop), &w->uv, fd)) {
		free(w);
		return NULL;
	}
	w->sockets = s;
	w->fd = fd;
	w->next = s->first;
	s->first = w;
	(void)s->curl->multi_assign(s->multi, fd, w);
	return w;
}

/* libcurl's CURLMOPT_SOCKETFUNCTION */
static int set_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *assigned)
{
	struct watched *w = assigned;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (w)
			close_watched(w);
		return 0;
	}
	if (!w)
		w = watch_socket(ctx, fd);
	if (!w)
		return 0;
	w->events =
		(what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
	(void)uv_poll_start(&w->uv, w->events, watched_ready);
	return 0;
}

static void sockets_timer_fired(void *ctx)
{
	struct http_sockets *s = ctx;

	s->ready(s->ctx, CURL_SOCKET_TIMEOUT, 0);
}

/* libcurl's CURLMOPT_TIMERFUNCTION */
static int set_timer(CURLM *multi, long timeout_ms, void *ctx)
{
	struct http_sockets *s = ctx;

	(void)multi;
	if (timeout_ms < 0)
		loop_timer_stop(s->timer);
	else
		loop_timer_set(s->timer, (uint64_t)timeout_ms);
	return 0;
}

struct http_sockets *http_sockets_new(struct loop *l, const struct libcurl *curl, CURLM *multi,
	void *ctx, void (*ready)(void *ctx, curl_socket_t fd, int events))
{
	struct http_sockets *s = xcalloc(1, sizeof *s);

	s->loop = l;
	s->curl = curl;
	s->multi = multi;
	s->ctx = ctx;
	s->ready = ready;
	s->timer = loop_timer_new(l, sockets_timer_fired, s);
	(void)curl->multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, set_socket);
	(void)curl->multi_setopt(multi, CURLMOPT_SOCKETDATA, s);
	(void)curl->multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_timer);
	(void)curl->multi_setopt(multi, CURLMOPT_TIMERDATA, s);
	return s;
}

void http_sockets_free(struct http_sockets *s)
{
	while (s->first)
		close_watched(s->first);
	loop_timer_close(s->timer);
	free(s);
}
