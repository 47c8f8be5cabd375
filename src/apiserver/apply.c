#include <apiserver/apply.h>

#include <apiserver/path.h>
#include <codec/api_json.h>
#include <io/backoff.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <string.h>

enum { INTERVAL_MS = 200, HEARTBEAT_MS = 60000, RETRY_MIN_MS = 1000, RETRY_MAX_MS = 60000 };
enum {
	STATUS_OK = 200,
	STATUS_CREATED = 201,
	STATUS_OTHER = 300,
	STATUS_NOT_FOUND = 404,
	STATUS_CONFLICT = 409
};

struct apply {
	struct api *api;
	struct apply_handler handler;
	char *path, *what, *advice;
	uint64_t interval_ns, heartbeat_ns;
	struct loop_timer *timer;
	struct api_call *call; /* the write under way; NULL: there is none */
	char *sent, *written;  /* texts: of that write, and of what the server has for certain */
	uint64_t beat;
	bool due;                              /* to be written before the next heartbeat */
	uint64_t begun_ns, beaten_ns, hold_ns; /* last write; last heartbeat; none before that */
	uint64_t oldest_ns; /* of the changes that the server has not; 0: there are none */
	uint64_t newer_ns;  /* of those that are not in the last write either */
	struct backoff backoff;
	struct apply_counters counters;
	const char *logged; /* the last event */
	struct err logged_text;
};

/* An event is logged again when it says something else. */
static void apply_log(struct apply *p, bool bad, const char *event, const struct err *e)
{
	if (text_equal(p->logged, event) && text_equal(p->logged_text.text, e->text))
		return;
	p->logged = event;
	p->logged_text = *e;
	p->handler.on_event(p->handler.ctx, bad, event, e->text);
}

static uint64_t apply_next_ns(const struct apply *p)
{
	uint64_t at = p->due ? p->begun_ns + p->interval_ns : p->beaten_ns + p->heartbeat_ns;

	return at > p->hold_ns ? at : p->hold_ns;
}

static void apply_plan(struct apply *p)
{
	uint64_t at = apply_next_ns(p), now = loop_monotonic_ns();

	if (!p->call)
		loop_timer_set(p->timer, at > now ? (at - now + NS_PER_MS - 1) / NS_PER_MS : 0);
}

/* What came of a write */

static void apply_on_written(struct apply *p, bool created)
{
	struct err e;

	free(p->written);
	p->written = steal(p->sent);
	p->counters.written++;
	if (p->oldest_ns && p->oldest_ns <= p->begun_ns)
		p->counters.lag_ms = (loop_monotonic_ns() - p->oldest_ns) / NS_PER_MS;
	p->oldest_ns = p->newer_ns;
	backoff_reset(&p->backoff);
	(void)err_set(&e, 0, "%s", p->what);
	apply_log(p, false, "apply-written", &e);
	if (created && p->handler.created)
		p->handler.created(p->handler.ctx);
}

/* Two writers that both insist would overwrite each other for ever. */
static void apply_on_conflict(struct apply *p, const struct api_conflict *c)
{
	struct err e;

	p->counters.conflicts++;
	p->hold_ns = p->begun_ns + p->heartbeat_ns;
	(void)err_set(&e, 0, "%s: %s is written by \"%s\": stop that%s%s", p->what, c->field,
		c->manager, *p->advice ? ", or " : "", p->advice);
	apply_log(p, true, "apply-conflict", &e);
}

/* That there is no connection is logged where the connection is. */
static void apply_on_refused(struct apply *p, const struct api_answer *answer)
{
	struct err e;

	p->counters.failed++;
	p->hold_ns = loop_monotonic_ns() +
		     (uint64_t)backoff_next(&p->backoff, answer->after_ms) * NS_PER_MS;
	(void)err_set(&e, 0, "%s: %s%s", p->what, answer->message,
		answer->status == STATUS_NOT_FOUND ? " (is its CustomResourceDefinition installed?)"
						   : "");
	if (answer->status)
		apply_log(p, !answer->again, "apply-refused", &e);
}

static void apply_on_done(void *ctx, const struct api_answer *answer)
{
	struct apply *p = ctx;
	struct api_conflict conflict;
	bool ok = answer->status >= STATUS_OK && answer->status < STATUS_OTHER;

	p->call = NULL;
	if (ok) {
		apply_on_written(p, answer->status == STATUS_CREATED);
	} else {
		p->due = true;
		free(steal(p->sent));
		free(steal(p->written)); /* nobody knows what it has now */
		if (answer->status == STATUS_CONFLICT && api_json_conflict(answer->body, &conflict))
			apply_on_conflict(p, &conflict);
		else
			apply_on_refused(p, answer);
	}
	apply_plan(p);
}

static void apply_send(struct apply *p, char *text)
{
	const struct api_ask ask = {
		.method = "PATCH",
		.path = p->path,
		.content_type = "application/apply-patch+yaml", /* which JSON is, too */
		.body = text,
		.len = strlen(text),
	};

	p->sent = text;
	p->begun_ns = p->beaten_ns = loop_monotonic_ns();
	p->call = api_call(p->api, &ask, p, apply_on_done);
}

static void apply_on_timer(void *ctx)
{
	struct apply *p = ctx;
	uint64_t now = loop_monotonic_ns();
	bool beats = now >= p->beaten_ns + p->heartbeat_ns;

	if (p->call || now < apply_next_ns(p)) { /* the loop's clock stands still while it works */
		apply_plan(p);
		return;
	}
	if (beats) {
		p->beaten_ns = now;
		p->beat++;
	}
	p->due = false;
	p->newer_ns = 0;
	char *text = p->handler.print(p->handler.ctx, p->beat);
	if (text && (beats || !p->written || !text_equal(text, p->written))) {
		apply_send(p, text);
		return;
	}
	free(text);
	p->oldest_ns = 0;
	apply_plan(p);
}

static void apply_take_options(struct apply *p, const struct apply_options *o)
{
	struct text t;

	free(p->path);
	p->path = xcalloc(1, API_PATH_MAX);
	text_init(&t, p->path, API_PATH_MAX);
	text_add(&t, "%s?fieldManager=", o->path);
	path_add_escaped(&t, o->manager);
	if (o->take_over)
		text_add(&t, "&force=true");
	p->interval_ns = (uint64_t)(o->interval_ms ? o->interval_ms : INTERVAL_MS) * NS_PER_MS;
	p->heartbeat_ns = (uint64_t)(o->heartbeat_ms ? o->heartbeat_ms : HEARTBEAT_MS) * NS_PER_MS;
}

struct apply *apply_new(struct loop *l, struct api *a, const struct apply_options *o,
	const struct apply_handler *handler)
{
	struct apply *p = xcalloc(1, sizeof *p);

	p->api = a;
	p->handler = *handler;
	apply_take_options(p, o);
	p->what = xstrdup(o->what);
	p->advice = xstrdup(o->advice);
	p->backoff = (struct backoff){
		.min_ms = o->retry_min_ms ? o->retry_min_ms : RETRY_MIN_MS,
		.max_ms = o->retry_max_ms ? o->retry_max_ms : RETRY_MAX_MS,
	};
	p->beat = (uint64_t)loop_wall_ms() / MS_PER_S; /* ahead of all before us */
	p->beaten_ns = loop_monotonic_ns();
	p->timer = loop_timer_new(l, apply_on_timer, p);
	apply_changed(p);
	return p;
}

void apply_set_options(struct apply *p, const struct apply_options *o)
{
	apply_take_options(p, o);
	p->hold_ns = 0; /* of a conflict that may be none any more */
	apply_plan(p);
}

void apply_changed(struct apply *p)
{
	uint64_t now = loop_monotonic_ns();

	if (!p->oldest_ns)
		p->oldest_ns = now;
	if (!p->newer_ns)
		p->newer_ns = now;
	if (p->due)
		return;
	p->due = true;
	loop_timer_set(p->timer, 0); /* which finds out when it may be written */
}

void apply_counters(const struct apply *p, struct apply_counters *out)
{
	*out = p->counters;
	if (p->oldest_ns)
		out->behind_ms = (loop_monotonic_ns() - p->oldest_ns) / NS_PER_MS;
}

void apply_close(struct apply *p)
{
	if (!p)
		return;
	api_cancel(p->call);
	loop_timer_close(p->timer);
	free(p->sent);
	free(p->written);
	free(p->path);
	free(p->what);
	free(p->advice);
	free(p);
}
