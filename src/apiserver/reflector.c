#include <apiserver/reflector.h>

#include <apiserver/api_private.h>
#include <apiserver/path.h>
#include <assert.h>
#include <codec/api_json.h>
#include <errno.h>
#include <io/backoff.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

enum {
	PAGE = 500,
	RETRY_MIN_MS = 500,
	RETRY_MAX_MS = 30000,
	IDLE_MS = 150000,
	WATCH_S = 300,    /* so long does a watch last, or up to twice as long: as client-go's */
	LASTS_MS = 1000,  /* one that ends sooner is not resumed at once */
	TOKEN_MAX = 1024, /* bytes of a resourceVersion, or of a continue: the key of an object */
	PATH_BYTES = 2 * API_PATH_MAX + 4 * TOKEN_MAX, /* each byte of a token may be a %FF */
	LIMIT_BYTES = 32,
	/* Bytes of a page of several objects. Empty maps within each other, as managed fields are,
	 * take 25 times the memory as JSON values: that is what a node's daemon may use. */
	PAGE_BYTES = 4 << 20,
	GROWTH = 8, /* a page that came lets the next one have an eighth more objects */
	WAIT_MAX_S = 300 /* whatever the server asks for, as of calls */
};

/* HTTP's status codes that mean something to us. */
enum {
	OK = 200,
	BAD_REQUEST = 400,
	UNAUTHORIZED = 401,
	FORBIDDEN = 403,
	NOT_FOUND = 404,
	TIMED_OUT = 408,
	GONE = 410,
	TOO_MANY = 429,
	SERVER_ERROR = 500
};

/* Why a watch has to end, by what it said. */
struct fault {
	bool is;
	int status; /* of an ERROR; 0: we do not understand it */
	unsigned after_ms;
	struct err e;
};

struct reflector {
	struct api *api;
	char *path, *query;
	unsigned page, page_max, idle_ms; /* page: objects that the next one may have */
	bool from_memory;
	struct reflector_handler handler;
	struct loop_timer *timer;
	struct api_call *call; /* the list or the watch; NULL: the timer runs */
	struct backoff backoff;

	char version[TOKEN_MAX]; /* where to watch from; "": a list is due */
	char more[TOKEN_MAX];    /* the list goes on there; "": it begins */
	bool whole;              /* without pages: a list in pages took too long */
	size_t listed;           /* objects of this list so far */

	uint64_t watch_ns; /* since when there is this watch */
	struct {
		char *at;
		size_t len, cap;
	} line; /* the beginning of one; the rest is to come */
	struct fault fault;
	unsigned failures; /* watches in a row that have brought nothing */

	struct {
		const char *event;
		int status;
	} logged;
};

/* For the log */

static void reflector_log(struct reflector *r, const char *event, int status, const char *text)
{
	bool bad = status == UNAUTHORIZED || status == FORBIDDEN || status == NOT_FOUND;
	struct err e;

	if (text_equal(r->logged.event, event) && r->logged.status == status)
		return;
	r->logged.event = event;
	r->logged.status = status;
	(void)err_set(&e, EIO, "%s: %s", r->path, text);
	r->handler.on_event(r->handler.ctx, bad, event, e.text);
}

/* What becomes of it after a failure */

enum { RESUME = 0, ANEW = 1, CALMLY = 2 };

/* Of other refusals we do not know what is wrong with what we asked: another list, another version
 * to go on from. */
static unsigned retry_kind_of(int status)
{
	static const struct {
		int status;
		unsigned how;
	} rows[] = {
		{UNAUTHORIZED, RESUME}, {FORBIDDEN, CALMLY}, {NOT_FOUND, ANEW | CALMLY},
		{TIMED_OUT, RESUME},
		{TOO_MANY, RESUME}, /* so does the first watch of a fresh CRD begin */
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].status == status)
			return rows[i].how;
	return status >= BAD_REQUEST && status < SERVER_ERROR ? ANEW : RESUME;
}

static void reflector_retry(struct reflector *r, unsigned how, unsigned after_ms)
{
	struct backoff calm = {.min_ms = r->backoff.max_ms, .max_ms = r->backoff.max_ms};

	if (how & ANEW) {
		r->version[0] = '\0';
		r->more[0] = '\0';
	}
	loop_timer_set(r->timer, backoff_next(how & CALMLY ? &calm : &r->backoff, after_ms));
}

/* Whether the token fits; *e says which does not. */
static bool token_fits(const char *token, struct err *e)
{
	if (strlen(token) < TOKEN_MAX)
		return true;
	(void)err_set(
		e, EPROTO, "a resourceVersion or continue of more than %d bytes", TOKEN_MAX - 1);
	return false;
}

/* The path of a list or a watch; parameters follow, each after an &. */
static struct text path_begin(const struct reflector *r, char buf[PATH_BYTES], const char *first)
{
	struct text t;

	text_init(&t, buf, PATH_BYTES);
	text_add(&t, "%s?%s", r->path, first);
	if (*r->query)
		text_add(&t, "&%s", r->query);
	return t;
}

static void path_add(struct text *t, const char *parameter, const char *value)
{
	text_add(t, "&%s=", parameter);
	path_add_escaped(t, value);
	assert(!t->cut);
}

/* The list */

static void reflector_list(struct reflector *r);
static void reflector_watch(struct reflector *r);

static void reflector_list_failed(
	struct reflector *r, int status, const char *text, unsigned after_ms)
{
	unsigned how = retry_kind_of(status);

	/* What the pages are of is forgotten after some minutes. The next list comes as a whole, or
	 * it might never end. */
	if (*r->more && status == GONE)
		r->whole = true;
	else
		reflector_log(r, "watch-waiting", status, text);
	reflector_retry(r, how, after_ms);
}

static void reflector_take_items(
	struct reflector *r, const struct json_t *body, const struct api_list *page)
{
	if (!*r->more) {
		r->listed = 0;
		if (r->handler.begin)
			r->handler.begin(r->handler.ctx);
	}
	for (size_t i = 0; i < page->nr; i++)
		r->handler.object(r->handler.ctx, REFLECTOR_PUT, api_json_item(body, i));
	r->listed += page->nr;
	(void)text_copy(r->more, sizeof r->more, page->more);
}

static void reflector_take_page(struct reflector *r, const struct json_t *body)
{
	char text[sizeof "18446744073709551615 objects"];
	struct api_list page;
	struct err e;

	if (api_json_list(body, &page, &e) < 0 || !token_fits(page.version, &e) ||
		!token_fits(page.more, &e)) {
		r->more[0] = '\0';
		reflector_list_failed(r, OK, e.text, 0);
		return;
	}
	reflector_take_items(r, body, &page);
	r->page = (unsigned)number_min(r->page_max, r->page + r->page / GROWTH + 1);
	if (*r->more) {
		reflector_list(r);
		return;
	}
	(void)text_copy(r->version, sizeof r->version, page.version);
	r->whole = false;
	if (r->handler.synced)
		r->handler.synced(r->handler.ctx);
	if (!r->failures) {
		(void)snprintf(text, sizeof text, "%zu objects", r->listed);
		reflector_log(r, "watch-synced", 0, text);
	}
	reflector_watch(r);
}

/* A few large pods are no reason to know of none: the same page, of half as many. From its memory a
 * server may give no pages. False: it cannot be smaller. */
static bool reflector_ask_less(struct reflector *r)
{
	const bool in_pages = !r->whole && !r->from_memory;

	if (in_pages && r->page == 1)
		return false;
	if (in_pages)
		r->page /= 2;
	r->whole = r->from_memory = false;
	return true;
}

/* What a server cannot write in time it would not the next time. What it has in its memory takes it
 * least: then it is just busy. */
static void reflector_list_late(struct reflector *r, const struct api_answer *answer)
{
	if (!r->from_memory)
		(void)reflector_ask_less(r);
	reflector_list_failed(r, answer->status, answer->message, answer->after_ms);
}

static void reflector_on_page(void *ctx, const struct api_answer *answer)
{
	struct reflector *r = ctx;

	r->call = NULL;
	if (answer->status == OK)
		reflector_take_page(r, answer->body);
	else if (answer->too_large && reflector_ask_less(r))
		reflector_list(r);
	else if (answer->timed_out)
		reflector_list_late(r, answer);
	else
		reflector_list_failed(r, answer->status, answer->message, answer->after_ms);
}

static void reflector_list(struct reflector *r)
{
	char path[PATH_BYTES], limit[LIMIT_BYTES];

	(void)snprintf(limit, sizeof limit, "limit=%u", r->whole ? 0 : r->page);
	struct text t = path_begin(r, path, limit);
	if (*r->more)
		path_add(&t, "continue", r->more);
	else if (r->from_memory)
		path_add(&t, "resourceVersion", "0");
	const bool one = !r->whole && r->page == 1;
	const struct api_ask ask = {.path = path, .answer_max = one ? API_OBJECT_MAX : PAGE_BYTES};
	r->call = api_call(r->api, &ask, r, reflector_on_page);
}

/* The watch */

static int reflector_set_fault(struct reflector *r, int status, unsigned after_ms, const char *text)
{
	r->fault.is = true;
	r->fault.status = status;
	r->fault.after_ms = after_ms;
	return err_set(&r->fault.e, EPROTO, "%s", text);
}

static int reflector_take_event(struct reflector *r, const struct api_event *event)
{
	unsigned after_s = event->status.retry_after_s;
	struct err e;

	if (event->type == API_ERROR)
		return reflector_set_fault(r, event->status.code,
			(after_s < WAIT_MAX_S ? after_s : WAIT_MAX_S) * MS_PER_S,
			event->status.message);
	if (!token_fits(event->meta.version, &e))
		return reflector_set_fault(r, 0, 0, e.text);
	if (event->type == API_ADDED || event->type == API_MODIFIED)
		r->handler.object(r->handler.ctx, REFLECTOR_PUT, event->object);
	else if (event->type == API_DELETED)
		r->handler.object(r->handler.ctx, REFLECTOR_DELETE, event->object);
	if (*event->meta.version)
		(void)text_copy(r->version, sizeof r->version, event->meta.version);
	r->failures = 0;
	reflector_log(r, "watch-synced", 0, "the watch goes on");
	return 0;
}

static int take_line(struct reflector *r, const char *line, size_t len)
{
	struct json_t *v = NULL;
	struct api_event event;
	struct err e;

	if (!len)
		return 0;
	int rc = api_json_parse(line, len, &v, &e);
	if (!rc)
		rc = api_json_event(v, &event, &e);
	rc = rc ? reflector_set_fault(r, 0, 0, e.text) : reflector_take_event(r, &event);
	api_json_free(v);
	return rc;
}

static void drop_line(struct reflector *r)
{
	free(r->line.at);
	r->line.at = NULL;
	r->line.len = r->line.cap = 0;
}

/* A piece of a line. */
static int keep_piece(struct reflector *r, const char *piece, size_t len)
{
	size_t need = r->line.len + len;

	if (need > API_OBJECT_MAX)
		return reflector_set_fault(r, 0, 0, "an event of more than 16 MiB");
	if (need > r->line.cap) {
		r->line.cap = need > 2 * r->line.cap ? need : 2 * r->line.cap;
		r->line.at = xrealloc(r->line.at, 1, r->line.cap);
	}
	(void)memcpy(r->line.at + r->line.len, piece, len);
	r->line.len = need;
	return 0;
}

/* The last piece of a line. Most lines come in one. */
static int reflector_end_line(struct reflector *r, const char *piece, size_t len)
{
	if (!r->line.len)
		return take_line(r, piece, len);
	int rc = keep_piece(r, piece, len);
	if (!rc)
		rc = take_line(r, r->line.at, r->line.len);
	r->line.len = 0;
	return rc;
}

static int reflector_on_data(void *ctx, const void *data, size_t len)
{
	struct reflector *r = ctx;
	const char *at = data, *end = at + len, *newline;
	int rc = 0;

	while (!rc && (newline = memchr(at, '\n', (size_t)(end - at)))) {
		rc = reflector_end_line(r, at, (size_t)(newline - at));
		at = newline + 1;
	}
	return rc || at == end ? rc : keep_piece(r, at, (size_t)(end - at));
}

/* A watch that broke off once is resumed without a word; that an old version is gone only costs a
 * list. */
static void watch_failed(struct reflector *r, int status, const char *text, unsigned after_ms)
{
	unsigned how = retry_kind_of(status) | (r->fault.is ? ANEW : RESUME);

	r->failures++;
	reflector_retry(r, how, after_ms);
	if (r->failures > 1 || how & CALMLY)
		reflector_log(r, *r->version ? "watch-lost" : "watch-waiting", status, text);
}

static void on_watch_done(void *ctx, const struct api_answer *answer)
{
	struct reflector *r = ctx;
	uint64_t lasted_ms = (loop_monotonic_ns() - r->watch_ns) / NS_PER_MS;

	r->call = NULL;
	if (lasted_ms >= r->backoff.max_ms)
		backoff_reset(&r->backoff);
	if (r->fault.is)
		watch_failed(r, r->fault.status, r->fault.e.text, r->fault.after_ms);
	else if (answer->status != OK)
		watch_failed(r, answer->status, answer->message, answer->after_ms);
	else if (lasted_ms < LASTS_MS) {
		/* every one ends some time; a server that ends them at once is asked later and
		 * later */
		reflector_retry(r, RESUME, 0);
	} else {
		r->failures = 0;
		reflector_watch(r);
	}
}

static void reflector_watch(struct reflector *r)
{
	char path[PATH_BYTES];
	struct text t = path_begin(r, path, "watch=1&allowWatchBookmarks=true");
	const struct api_stream stream = {path, r->idle_ms, r, reflector_on_data, on_watch_done};

	r->watch_ns = loop_monotonic_ns();
	text_add(&t, "&timeoutSeconds=%u", WATCH_S + (unsigned)(r->watch_ns % (WATCH_S + 1)));
	path_add(&t, "resourceVersion", r->version);
	drop_line(r);
	r->fault = (struct fault){0};
	r->call = api_stream(r->api, &stream);
}

static void reflector_go_on(void *ctx)
{
	struct reflector *r = ctx;

	if (*r->version)
		reflector_watch(r);
	else
		reflector_list(r);
}

struct reflector *reflector_new(
	struct api *a, const struct reflector_options *o, const struct reflector_handler *handler)
{
	struct reflector *r = xcalloc(1, sizeof *r);

	r->api = a;
	r->path = xstrdup(o->path);
	r->query = xstrdup(o->query);
	r->page = r->page_max = o->page ? o->page : PAGE;
	r->from_memory = o->from_memory;
	r->idle_ms = o->idle_ms ? o->idle_ms : IDLE_MS;
	r->backoff.min_ms = o->retry_min_ms ? o->retry_min_ms : RETRY_MIN_MS;
	r->backoff.max_ms = o->retry_max_ms ? o->retry_max_ms : RETRY_MAX_MS;
	r->handler = *handler;
	r->timer = loop_timer_new(api_loop(a), reflector_go_on, r);
	reflector_list(r);
	return r;
}

bool reflector_synced(const struct reflector *r)
{
	return *r->version && r->failures <= 1;
}

void reflector_close(struct reflector *r)
{
	if (!r)
		return;
	api_cancel(r->call);
	loop_timer_close(r->timer);
	free(r->path);
	free(r->query);
	drop_line(r);
	free(r);
}
