#include <apiserver/api.h>

#include <apiserver/api_private.h>
#include <apiserver/auth.h>
#include <codec/api_json.h>
#include <errno.h>
#include <io/http_client.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

enum {
	TIMEOUT_MS = 10000,
	PATIENCE_MS = 60000,
	RETRY_AFTER_MAX_S = 300, /* whatever the server asks for */
	WORDS_MAX = 64,
	STATUS_SERVER_ERROR = 500 /* and above: it, or a proxy before it, is out of order */
};

/* HTTP's status codes that mean something to us. */
enum { OK = 200, REDIRECT = 300, UNAUTHORIZED = 401 };

/* What was logged last. */
enum state { NOTHING_YET, UP, UNREACHABLE, REFUSED };

struct api {
	struct loop *loop;
	struct auth *auth;
	struct http_client *http;
	char *agent; /* a header */
	unsigned timeout_ms, patience_ms;
	struct api_call *first; /* all that are under way */
	void *ctx;
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
	enum state state;
	uint64_t since_ns;     /* of the state */
	bool logged_bad;       /* that state */
	struct err unreadable; /* our credentials; logged; code 0: they are not */
	uint64_t failures;     /* to read them */
};

struct api_call {
	struct api *api;
	struct api_call *next, **at; /* at: what points to it */
	struct http_call *http;
	char *method, *path, *content_type, *body;
	size_t len, answer_max;
	unsigned timeout_ms, idle_ms;
	bool again; /* after a 401 */
	void *ctx;
	int (*data)(void *ctx, const void *data, size_t len); /* NULL: the answer has an end */
	void (*done)(void *ctx, const struct api_answer *answer);
};

/* For the log */

static void api_log(struct api *a, enum state s, bool bad, const char *event, const char *text)
{
	if (a->state != s)
		a->since_ns = loop_monotonic_ns();
	else if (!bad || a->logged_bad)
		return;
	a->state = s;
	a->logged_bad = bad;
	a->on_event(a->ctx, bad, event, text);
}

/* What passes by itself, a server that starts anew, need not be looked at before it has lasted. A
 * certificate does not get better. */
static void api_log_unreachable(struct api *a, const struct err *e)
{
	uint64_t lasted_ms = (loop_monotonic_ns() - a->since_ns) / NS_PER_MS;
	bool bad = e->code == EACCES || e->code == EPROTO ||
		   (a->state == UNREACHABLE && lasted_ms >= a->patience_ms);

	api_log(a, UNREACHABLE, bad, "apiserver-unreachable", e->text);
}

static void api_log_answer(
	const struct api_call *c, const struct api_answer *answer, const struct err *e)
{
	struct api *a = c->api;

	if (answer->status == UNAUTHORIZED)
		api_log(a, REFUSED, true, "apiserver-refused", answer->message);
	else if (answer->status && answer->status < STATUS_SERVER_ERROR)
		api_log(a, UP, false, "apiserver-up", auth_url(a->auth));
	/* a stream that broke off says nothing of the server: the next call will */
	else if (!answer->status && (!c->data || e->code == ECONNREFUSED ||
					    e->code == EHOSTUNREACH || e->code == EACCES))
		api_log_unreachable(a, e);
}

/* Our credentials */

/* What cannot be read now is logged, and we go on with what we have. */
static void api_renew_credentials(struct api *a)
{
	struct err e = {0};
	int rc = auth_renew(a->auth, &e);

	if (rc > 0) /* they are other ones */
		rc = http_client_trust(a->http, auth_trust(a->auth), &e);
	bool unreadable = rc < 0, logged = a->unreadable.code;
	a->failures += unreadable;
	a->unreadable = unreadable ? e : (struct err){0};
	if (unreadable && !logged)
		a->on_event(a->ctx, true, "credentials-unreadable", e.text);
}

/* What came */

static bool may_pass(int status)
{
	static const int passing[] = {0, 429, 500, 502, 503, 504};

	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
		if (status == passing[i])
			return true;
	return false;
}

/* The body that is to be JSON; what proxies say of errors need not be. */
static int read_body(const struct http_answer *h, struct json_t **body, struct err *e)
{
	int rc = h->len ? api_json_parse(h->body, h->len, body, e) : 0;

	return rc < 0 && h->status >= OK && h->status < REDIRECT ? err_add(e, rc, "answer") : 0;
}

/* *e: what is wrong where the answer has no status; words is room for ours. */
static struct api_answer read_http_answer(
	const struct http_answer *h, struct err *e, char words[WORDS_MAX])
{
	struct api_answer answer = {.status = h->status, .reason = "", .message = words};
	struct api_status s = {.message = ""};

	(void)snprintf(words, WORDS_MAX, "HTTP status %d", h->status);
	if (h->status && read_body(h, &answer.body, e) < 0)
		answer.status = 0;
	if (!answer.status)
		answer.message = e->text;
	if (answer.body && api_json_status(answer.body, &s))
		answer.reason = s.reason;
	if (*s.message)
		answer.message = s.message;
	answer.too_large = !h->status && e->code == EMSGSIZE;
	answer.timed_out = !h->status && e->code == ETIMEDOUT;
	answer.again = may_pass(answer.status);
	answer.after_ms = (unsigned)number_min(RETRY_AFTER_MAX_S,
				  number_max(h->retry_after_s, s.retry_after_s)) *
			  MS_PER_S;
	return answer;
}

/* Calls */

static void call_free(struct api_call *c)
{
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	free(c->method);
	free(c->path);
	free(c->content_type);
	free(c->body);
	free(c);
}

static void api_call_start(struct api_call *c);

static void call_on_done(void *ctx, const struct http_answer *h, const struct err *why)
{
	struct api_call *c = ctx;
	struct api *a = c->api;
	struct err e = {0};
	char words[WORDS_MAX];

	c->http = NULL;
	if (!h->status)
		e = *why;
	if (h->status == UNAUTHORIZED || (!h->status && e.code == EACCES))
		api_renew_credentials(a);
	if (h->status == UNAUTHORIZED && !c->again) {
		c->again = true;
		api_call_start(c);
		return;
	}
	struct api_answer answer = read_http_answer(h, &e, words);
	api_log_answer(c, &answer, &e);
	void (*done)(void *, const struct api_answer *) = c->done;
	ctx = c->ctx;
	call_free(c);
	done(ctx, &answer);
	api_json_free(answer.body);
}

static int call_on_data(void *ctx, const void *data, size_t len)
{
	struct api_call *c = ctx;

	return c->data(c->ctx, data, len);
}

static void api_call_start(struct api_call *c)
{
	struct api *a = c->api;
	auto_free char *url = NULL, *type = NULL;

	if (auth_is_old(a->auth))
		api_renew_credentials(a);
	const char *headers[] = {"Accept: application/json", a->agent, NULL, NULL, NULL};
	size_t nr = 2;
	if (auth_header(a->auth))
		headers[nr++] = auth_header(a->auth);
	if (asprintf(&url, "%s%s", auth_url(a->auth), c->path) < 0 ||
		asprintf(&type, "Content-Type: %s", c->content_type) < 0)
		abort();
	if (c->body)
		headers[nr++] = type;
	const struct http_ask ask = {
		.method = c->method,
		.url = url,
		.headers = headers,
		.body = c->body,
		.len = c->len,
		.timeout_ms = c->timeout_ms,
		.idle_ms = c->idle_ms,
		.answer_max = c->answer_max,
	};
	const struct http_events events = {c, c->data ? call_on_data : NULL, call_on_done};
	c->http = http_call_start(a->http, &ask, &events);
}

static struct api_call *call_new(struct api *a, const char *path)
{
	struct api_call *c = xcalloc(1, sizeof *c);

	c->api = a;
	c->path = xstrdup(path);
	c->answer_max = API_OBJECT_MAX;
	c->next = a->first;
	c->at = &a->first;
	if (c->next)
		c->next->at = &c->next;
	a->first = c;
	return c;
}

struct api_call *api_call(struct api *a, const struct api_ask *ask, void *ctx,
	void (*done)(void *ctx, const struct api_answer *answer))
{
	struct api_call *c = call_new(a, ask->path);

	c->method = xstrdup(ask->method ? ask->method : "GET");
	c->content_type = xstrdup(ask->content_type ? ask->content_type : "application/json");
	if (ask->body) {
		c->body = xcalloc(1, ask->len + 1);
		(void)memcpy(c->body, ask->body, ask->len);
		c->len = ask->len;
	}
	c->timeout_ms = a->timeout_ms;
	if (ask->answer_max)
		c->answer_max = ask->answer_max;
	c->ctx = ctx;
	c->done = done;
	api_call_start(c);
	return c;
}

struct api_call *api_stream(struct api *a, const struct api_stream *s)
{
	struct api_call *c = call_new(a, s->path);

	c->method = xstrdup("GET");
	c->content_type = xstrdup("");
	c->idle_ms = s->idle_ms;
	c->ctx = s->ctx;
	c->data = s->data;
	c->done = s->done;
	api_call_start(c);
	return c;
}

void api_cancel(struct api_call *call)
{
	if (!call)
		return;
	http_call_cancel(call->http);
	call_free(call);
}

/* The API server */

struct api *api_new(struct loop *l, const struct api_options *o, struct err *e)
{
	struct api *a = xcalloc(1, sizeof *a);

	a->loop = l;
	a->timeout_ms = o->timeout_ms ? o->timeout_ms : TIMEOUT_MS;
	a->patience_ms = o->patience_ms ? o->patience_ms : PATIENCE_MS;
	a->ctx = o->ctx;
	a->on_event = o->on_event;
	if (asprintf(&a->agent, "User-Agent: %s", o->user_agent) < 0)
		abort();
	a->auth = auth_new(o, e);
	if (a->auth)
		a->http = http_client_new(l, auth_trust(a->auth), e);
	if (a->http)
		return a;
	api_free(a);
	return NULL;
}

void api_free(struct api *a)
{
	if (!a)
		return;
	while (a->first)
		api_cancel(a->first);
	http_client_free(a->http);
	auth_free(a->auth);
	free(a->agent);
	free(a);
}

const char *api_unreadable(const struct api *a, uint64_t *failures)
{
	*failures = a->failures;
	return a->unreadable.code ? a->unreadable.text : NULL;
}

struct loop *api_loop(const struct api *a)
{
	return a->loop;
}
