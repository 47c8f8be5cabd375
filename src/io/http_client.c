#include <io/http_client.h>

#include <io/http_client_setup.h>
#include <io/http_client_sockets.h>
#include <numafit/text.h>
#include <numafit/vec.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

enum {
	HEADERS_MAX = 64 << 10, /* bytes of an answer, its status line and trailers included */
	CONNECTIONS_MAX = 16,   /* kept, and to one host at a time: calls beyond wait */
	BODY_FIRST = 4 << 10,
	STATUS_OK = 200
};

#define STATUS_LINE "HTTP/"

struct call_list {
	VEC(struct http_call *);
};

struct http_client {
	struct loop *loop;
	const struct libcurl *curl;
	CURLM *multi;
	CURL *model;
	char *server_name;
	struct call_list calls;
	struct http_sockets *sockets;
	struct loop_timer *starter; /* in a later turn calls begin, and canceled ones go */
	/* While libcurl or one of our user's functions runs: then nothing is taken away from under
	 * it. What ended meanwhile, the client among it, goes when it returns. */
	bool busy, over;
};

enum call_state { CALL_WAITS, CALL_RUNS, CALL_ENDED };

struct http_call {
	struct http_client *client;
	enum call_state state;
	struct http_setup setup;
	struct http_events events;
	struct loop_timer *limit;
	unsigned timeout_ms, idle_ms;
	uint64_t started_ms, heard_ms;
	size_t headers_len;
	bool has_headers; /* all of them: libcurl takes it for an answer when they break off */
	char *body;
	size_t len, cap, max;
	struct err failed; /* code 0: not by us */
	char detail[CURL_ERROR_SIZE];
};

static void http_call_free(struct http_call *call)
{
	const struct http_client *c = call->client;

	if (call->setup.easy)
		(void)c->curl->multi_remove_handle(c->multi, call->setup.easy); /* or not in it */
	http_setup_fini(&call->setup, c->curl);
	loop_timer_close(call->limit);
	free(call->body);
	free(call);
}

static void http_client_destroy(struct http_client *c)
{
	(void)c->curl->multi_cleanup(c->multi);
	http_sockets_free(c->sockets);
	if (c->model)
		c->curl->easy_cleanup(c->model);
	loop_timer_close(c->starter);
	vec_fini(&c->calls);
	free(c->server_name);
	free(c);
}

/* Let go of what has ended. c may be gone afterwards. */
static void client_free_ended(struct http_client *c)
{
	for (size_t i = c->calls.nr; i-- > 0;) {
		struct http_call *call = c->calls.at[i];

		if (call->state != CALL_ENDED)
			continue;
		vec_remove(&c->calls, i);
		http_call_free(call);
	}
	if (c->over)
		http_client_destroy(c);
}

static void describe_answer(const struct http_call *call, struct http_answer *a)
{
	const struct libcurl *curl = call->client->curl;
	char *type = NULL;
	curl_off_t retry_after = 0;
	long status = 0;

	(void)curl->easy_getinfo(call->setup.easy, CURLINFO_RESPONSE_CODE, &status);
	(void)curl->easy_getinfo(call->setup.easy, CURLINFO_CONTENT_TYPE, &type);
	(void)curl->easy_getinfo(call->setup.easy, CURLINFO_RETRY_AFTER, &retry_after);
	a->status = (int)status;
	a->type = type ? type : "";
	/* a date that has passed is a number below 0 */
	a->retry_after_s = retry_after < 0          ? 0
			   : retry_after > UINT_MAX ? UINT_MAX
						    : (unsigned)retry_after;
	a->body = call->body ? call->body : "";
	a->len = call->len;
}

/* Call done() with how the call ended: well, or with call->failed. */
static void http_call_end(struct http_call *call)
{
	struct http_answer a = {.type = "", .body = ""};

	call->state = CALL_ENDED;
	if (!call->failed.code)
		describe_answer(call, &a);
	call->events.done(call->events.ctx, &a, &call->failed);
}

static void http_call_done(struct http_call *call, CURLcode code)
{
	const struct libcurl *curl = call->client->curl;
	long os_errno = 0;

	if (call->state == CALL_ENDED)
		return; /* canceled */
	(void)curl->easy_getinfo(call->setup.easy, CURLINFO_OS_ERRNO, &os_errno);
	if (!code && !call->has_headers)
		code = CURLE_PARTIAL_FILE;
	if (code && !call->failed.code)
		(void)libcurl_refusal(
			curl, code, call->detail, os_errno, call->setup.peer, &call->failed);
	http_call_end(call);
}

static void client_end_done_calls(struct http_client *c)
{
	const CURLMsg *m;
	int left;

	while (!c->over && (m = c->curl->multi_info_read(c->multi, &left))) {
		CURLcode code = m->data.result;
		void *ctx = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)c->curl->easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &ctx);
		struct http_call *call = ctx;
		assert(call && call->client == c);
		http_call_done(call, code);
	}
}

/* Around all that comes from the loop. */
static void client_enter(struct http_client *c)
{
	assert(!c->busy);
	c->busy = true;
}

static void client_leave(struct http_client *c)
{
	client_end_done_calls(c);
	c->busy = false;
	client_free_ended(c);
}

static void client_socket_ready(void *ctx, curl_socket_t fd, int events)
{
	struct http_client *c = ctx;
	int running;

	client_enter(c);
	(void)c->curl->multi_socket_action(c->multi, fd, events, &running);
	client_leave(c);
}

/* When the call is over by its limits, whole or idle; UINT64_MAX: never. */
static uint64_t limit_ms(const struct http_call *call)
{
	uint64_t whole = call->timeout_ms ? call->started_ms + call->timeout_ms : UINT64_MAX;
	uint64_t idle = call->idle_ms ? call->heard_ms + call->idle_ms : UINT64_MAX;

	return whole < idle ? whole : idle;
}

static void watch_limits(void *ctx)
{
	struct http_call *call = ctx;
	struct http_client *c = call->client;
	uint64_t now = loop_monotonic_ms(), limit = limit_ms(call);

	if (call->state == CALL_ENDED)
		return;
	if (now < limit) { /* heard of since */
		loop_timer_set(call->limit, limit - now);
		return;
	}
	bool whole = call->timeout_ms && now - call->started_ms >= call->timeout_ms;
	(void)err_set(&call->failed, ETIMEDOUT,
		whole ? "%s: not done within %u ms" : "%s: not a byte came for %u ms",
		call->setup.peer, whole ? call->timeout_ms : call->idle_ms);
	client_enter(c);
	http_call_end(call);
	client_leave(c);
}

static size_t header_came(char *line, size_t size, size_t nr, void *ctx)
{
	struct http_call *call = ctx;

	(void)size; /* 1 */
	call->heard_ms = loop_monotonic_ms();
	call->headers_len += nr;
	/* 1xx has an end too; trailers have none */
	if (*line == '\r' || *line == '\n')
		call->has_headers = true;
	else if (nr >= strlen(STATUS_LINE) && !memcmp(line, STATUS_LINE, strlen(STATUS_LINE)))
		call->has_headers = false;
	if (call->headers_len <= HEADERS_MAX)
		return nr;
	(void)err_set(&call->failed, EMSGSIZE, "%s: the answer's headers exceed %d bytes",
		call->setup.peer, HEADERS_MAX);
	return CURL_WRITEFUNC_ERROR;
}

static int call_keep_body(struct http_call *call, const char *data, size_t len)
{
	size_t need = call->len + len + 1;

	if (len > call->max - call->len)
		return err_set(&call->failed, EMSGSIZE, "%s: the answer exceeds %zu bytes",
			call->setup.peer, call->max);
	if (need > call->cap) {
		call->cap = need > call->cap * 2 ? need + BODY_FIRST : call->cap * 2;
		call->body = xrealloc(call->body, call->cap, 1);
	}
	memcpy(call->body + call->len, data, len);
	call->len += len;
	call->body[call->len] = '\0';
	return 0;
}

static int call_hand_over_body(struct http_call *call, const char *data, size_t len)
{
	int rc = call->events.data(call->events.ctx, data, len);

	if (call->state == CALL_ENDED)
		return -ECANCELED;
	return rc < 0 ? err_set(&call->failed, -rc, "%s: the answer was not taken: %s",
				call->setup.peer, strerror(-rc))
		      : 0;
}

static size_t body_came(char *data, size_t size, size_t nr, void *ctx)
{
	struct http_call *call = ctx;
	long status = 0;

	(void)size;                    /* 1 */
	if (call->state == CALL_ENDED) /* canceled by another one's data() just now */
		return CURL_WRITEFUNC_ERROR;
	call->heard_ms = loop_monotonic_ms();
	(void)call->client->curl->easy_getinfo(call->setup.easy, CURLINFO_RESPONSE_CODE, &status);
	int rc = call->events.data && status == STATUS_OK ? call_hand_over_body(call, data, nr)
							  : call_keep_body(call, data, nr);
	return rc < 0 ? CURL_WRITEFUNC_ERROR : nr;
}

static void client_start_waiting(void *ctx)
{
	struct http_client *c = ctx;
	size_t nr = c->calls.nr; /* those that start meanwhile have a turn of their own */

	client_enter(c);
	for (size_t i = 0; i < nr && !c->over; i++) {
		struct http_call *call = c->calls.at[i];

		if (call->state != CALL_WAITS)
			continue;
		call->state = CALL_RUNS;
		if (call->failed.code)
			http_call_end(call);
		else if (c->curl->multi_add_handle(c->multi, call->setup.easy))
			abort(); /* no memory, or our mistake */
	}
	client_leave(c);
}

/* What libcurl is to call us with. These options are numbers and addresses: they are always taken.
 */
static void listen_to(struct http_call *call)
{
	const struct libcurl *curl = call->client->curl;
	CURL *easy = call->setup.easy;

	(void)curl->easy_setopt(easy, CURLOPT_PRIVATE, call);
	(void)curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, call->detail);
	(void)curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, header_came);
	(void)curl->easy_setopt(easy, CURLOPT_HEADERDATA, call);
	(void)curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_came);
	(void)curl->easy_setopt(easy, CURLOPT_WRITEDATA, call);
}

struct http_call *http_call_start(
	struct http_client *c, const struct http_ask *ask, const struct http_events *events)
{
	struct http_call *call = xcalloc(1, sizeof *call);

	call->client = c;
	call->events = *events;
	call->timeout_ms = ask->timeout_ms;
	call->idle_ms = ask->idle_ms;
	call->max = ask->answer_max;
	call->started_ms = call->heard_ms = loop_monotonic_ms();
	call->limit = loop_timer_new(c->loop, watch_limits, call);
	if (http_setup_init(&call->setup, c->curl, c->model, c->server_name, ask, &call->failed) ==
		0) {
		listen_to(call);
		if (ask->timeout_ms || ask->idle_ms)
			loop_timer_set(call->limit, limit_ms(call) - call->started_ms);
	}
	*vec_push(&c->calls) = call;
	/* libuv runs timers until none is due: what fails at once and is tried again at once would
	 * leave nobody else a turn */
	loop_timer_set(c->starter, c->busy ? 1 : 0);
	return call;
}

void http_call_cancel(struct http_call *call)
{
	if (!call)
		return;
	call->state = CALL_ENDED;
	/* what it holds goes in a later turn: somebody may wait for the caller */
	if (!call->client->busy)
		loop_timer_set(call->client->starter, 0);
}

int http_client_trust(struct http_client *c, const struct http_trust *trust, struct err *e)
{
	const struct http_trust none = {0};
	CURL *model;
	int rc = http_model_new(&model, c->curl, trust ? trust : &none, e);

	if (rc)
		return rc;
	c->curl->easy_cleanup(c->model);
	c->model = model;
	free(c->server_name);
	c->server_name = trust && trust->server_name ? xstrdup(trust->server_name) : NULL;
	return 0;
}

struct http_client *http_client_new(struct loop *l, const struct http_trust *trust, struct err *e)
{
	const struct libcurl *curl = libcurl_load(e);

	if (!curl)
		return NULL;
	struct http_client *c = xcalloc(1, sizeof *c);
	c->loop = l;
	c->curl = curl;
	c->starter = loop_timer_new(l, client_start_waiting, c);
	c->multi = curl->multi_init();
	if (!c->multi)
		abort();
	(void)curl->multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_MAX);
	(void)curl->multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)CONNECTIONS_MAX);
	c->sockets = http_sockets_new(l, curl, c->multi, c, client_socket_ready);
	if (http_client_trust(c, trust, e) == 0)
		return c;
	http_client_destroy(c);
	return NULL;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->calls.nr; i++)
		c->calls.at[i]->state = CALL_ENDED;
	c->over = true;
	if (!c->busy)
		client_free_ended(c);
}
