/* Sends events about pods to the API server: refusals first, equal texts once with a count, at a
 * bounded rate. */
#include <apiserver/events.h>

#include <apiserver/path.h>
#include <codec/api_json.h>
#include <io/backoff.h>
#include <numafit/arena.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <string.h>

enum {
	SAME_MS = 5 * 60 * 1000,
	BURST = 25,
	EVERY_MS = 10000,
	TEXTS_MAX = 256,
	RETRY_MIN_MS = 1000,
	RETRY_MAX_MS = 60000
};
enum {
	STATUS_OK = 200,
	STATUS_OTHER = 300,
	STATUS_FORBIDDEN = 403,
	STATUS_NOT_FOUND = 404,
	STATUS_CONFLICT = 409
};

/* A text, and how often it came since it was sent. It stays for a while after that. */
struct note {
	struct arena memory;    /* of the event's strings */
	struct pod_event event; /* its message is the one below */
	char message[EVENT_MESSAGE_MAX + 1];
	struct event_times waiting, sent; /* sent: by the call under way */
	uint64_t due_ns;                  /* not before that */
	uint64_t unique;                  /* of the attempts under way; 0: there was none */
};

struct events {
	struct api *api;
	struct events_handler handler;
	char *node;
	uint64_t same_ns;
	struct {
		VEC(struct note *);
	} notes; /* in the order in which they came */
	struct api_call *call;
	struct note *sending; /* by that call */
	struct loop_timer *timer;
	struct rate rate;
	struct backoff backoff;
	uint64_t hold_ns; /* the server is not asked before */
	uint64_t unique;
	bool refused; /* and logged */
	bool logged_bad;
	struct events_counters counters;
};

/* Nothing of it is to be sent, and nothing under way. */
static bool note_is_idle(const struct events *v, const struct note *n)
{
	return !n->waiting.nr && n != v->sending;
}

static void events_remove_note(struct events *v, size_t i)
{
	struct note *n = v->notes.at[i];

	arena_fini(&n->memory);
	free(n);
	vec_remove(&v->notes, i);
}

/* Make room for a note of that rank, if need be in the place of the oldest note that was sent, or,
 * for a refusal, of the oldest advice that waits. */
static bool events_make_room(struct events *v, enum event_rank rank)
{
	if (v->notes.nr < TEXTS_MAX)
		return true;
	for (size_t i = 0; i < v->notes.nr; i++)
		if (note_is_idle(v, v->notes.at[i])) {
			events_remove_note(v, i);
			return true;
		}
	for (size_t i = 0; i < v->notes.nr; i++)
		if (v->notes.at[i]->event.rank > rank && v->notes.at[i] != v->sending) {
			events_remove_note(v, i);
			v->counters.dropped++;
			return true;
		}
	return false;
}

/* NULL: it is not there, and there is no room for it. */
static struct note *events_find_or_add_note(
	struct events *v, const struct pod_event *event, uint64_t now)
{
	char message[EVENT_MESSAGE_MAX + 1];

	event_message(message, event->message);
	for (size_t i = 0; i < v->notes.nr; i++) {
		const struct pod_event *known = &v->notes.at[i]->event;

		if (text_equal(known->uid, event->uid) &&
			text_equal(known->reason, event->reason) &&
			text_equal(known->container, event->container) &&
			text_equal(known->about, event->about) &&
			(event->about || text_equal(known->message, message))) {
			memcpy(v->notes.at[i]->message, message, sizeof message);
			return v->notes.at[i];
		}
	}
	if (!events_make_room(v, event->rank))
		return NULL;
	struct note *n = xcalloc(1, sizeof *n);
	arena_init(&n->memory, SIZE_MAX);
	n->event = (struct pod_event){
		.rank = event->rank,
		.warning = event->warning,
		.reason = arena_strdup(&n->memory, event->reason),
		.message = n->message,
		.about = arena_strdup(&n->memory, event->about),
		.ns = arena_strdup(&n->memory, event->ns),
		.pod = arena_strdup(&n->memory, event->pod),
		.uid = arena_strdup(&n->memory, event->uid),
		.container = arena_strdup(&n->memory, event->container),
		.kind = event->kind,
		.verdict = event->verdict,
	};
	memcpy(n->message, message, sizeof message);
	n->due_ns = now;
	*vec_push(&v->notes) = n;
	return n;
}

static bool goes_before(const struct note *a, const struct note *b, uint64_t now)
{
	if (a->event.rank != b->event.rank && a->due_ns <= now && b->due_ns <= now)
		return a->event.rank < b->event.rank;
	return a->due_ns < b->due_ns;
}

/* The note that has waited for the longest time, among those of the first rank that are due. NULL:
 * no note waits. */
static struct note *events_next_note(const struct events *v, uint64_t now)
{
	struct note *next = NULL;

	for (size_t i = 0; i < v->notes.nr; i++) {
		struct note *n = v->notes.at[i];

		if (n->waiting.nr && (!next || goes_before(n, next, now)))
			next = n;
	}
	return next;
}

static void events_send(struct events *v, struct note *n);

static void events_plan(struct events *v)
{
	uint64_t now = loop_monotonic_ns();
	struct note *n = v->call ? NULL : events_next_note(v, now);

	if (!n)
		return;
	uint64_t at = number_max(number_max(n->due_ns, v->hold_ns), rate_when(&v->rate, now));
	if (at <= now)
		events_send(v, n);
	else
		loop_timer_set(v->timer, (at - now + NS_PER_MS - 1) / NS_PER_MS);
}

static void events_on_timer(void *ctx)
{
	events_plan(ctx);
}

/* What came of an attempt */

static void events_on_accepted(struct events *v)
{
	v->counters.sent++;
	backoff_reset(&v->backoff);
	if (v->refused)
		v->handler.on_event(v->handler.ctx, false, "events-accepted", v->node);
	v->refused = v->logged_bad = false;
}

/* A namespace that is gone, or that is being removed, takes its pods with it (kubernetes
 * plugin/pkg/admission/namespace/lifecycle). */
static bool goes_with_its_namespace(const struct api_answer *answer)
{
	return answer->status == STATUS_NOT_FOUND ||
	       (answer->status == STATUS_FORBIDDEN &&
		       api_json_has_cause(answer->body, "NamespaceTerminating"));
}

static void events_on_refused(struct events *v, const struct api_answer *answer)
{
	bool bad = !goes_with_its_namespace(answer);

	v->counters.dropped++;
	if (!v->refused || (bad && !v->logged_bad))
		v->handler.on_event(v->handler.ctx, bad, "events-refused", answer->message);
	v->refused = true;
	v->logged_bad = v->logged_bad || bad;
}

static void events_put_back(struct events *v, struct note *n, unsigned after_ms)
{
	struct event_times *w = &n->waiting;

	w->last_ms = w->nr ? w->last_ms : n->sent.last_ms;
	w->first_ms = n->sent.first_ms;
	w->nr += n->sent.nr;
	n->due_ns = loop_monotonic_ns(); /* behind all others: it may be refused for itself */
	v->counters.failed++;
	v->hold_ns =
		loop_monotonic_ns() + (uint64_t)backoff_next(&v->backoff, after_ms) * NS_PER_MS;
}

/* One whose answer got lost is there already: 409. */
static void events_on_done(void *ctx, const struct api_answer *answer)
{
	struct events *v = ctx;
	struct note *n = v->sending;
	bool ok = answer->status >= STATUS_OK && answer->status < STATUS_OTHER;

	v->call = NULL;
	v->sending = NULL;
	if (answer->again) {
		events_put_back(v, n, answer->after_ms);
	} else {
		if (ok || answer->status == STATUS_CONFLICT)
			events_on_accepted(v);
		else
			events_on_refused(v, answer);
		n->unique = 0;
		n->due_ns = loop_monotonic_ns() + v->same_ns;
	}
	events_plan(v);
}

static void events_send(struct events *v, struct note *n)
{
	char path[API_PATH_MAX];
	struct text t;

	n->sent = n->waiting;
	n->waiting = (struct event_times){0};
	if (!n->unique)
		v->unique = number_max(v->unique + 1, (uint64_t)n->sent.last_ms * NS_PER_MS);
	n->unique = n->unique ? n->unique : v->unique;
	auto_free char *body = event_json_format(&n->event, &n->sent, v->node, n->unique);
	text_init(&t, path, sizeof path);
	text_add(&t, "/api/v1/namespaces/");
	path_add_escaped(&t, n->event.ns);
	text_add(&t, "/events");
	rate_take(&v->rate, loop_monotonic_ns());
	v->sending = n;
	v->call = api_call(v->api,
		&(struct api_ask){
			.method = "POST", .path = path, .body = body, .len = strlen(body)},
		v, events_on_done);
}

struct events *events_new(struct loop *l, struct api *a, const struct events_options *o,
	const struct events_handler *handler)
{
	struct events *v = xcalloc(1, sizeof *v);

	v->api = a;
	v->handler = *handler;
	v->node = xstrdup(o->node);
	v->same_ns = (uint64_t)(o->same_ms ? o->same_ms : SAME_MS) * NS_PER_MS;
	v->rate = (struct rate){.burst = o->burst ? o->burst : BURST,
		.every_ns = (uint64_t)(o->every_ms ? o->every_ms : EVERY_MS) * NS_PER_MS};
	v->backoff = (struct backoff){
		.min_ms = o->retry_min_ms ? o->retry_min_ms : RETRY_MIN_MS,
		.max_ms = o->retry_max_ms ? o->retry_max_ms : RETRY_MAX_MS,
	};
	v->timer = loop_timer_new(l, events_on_timer, v);
	return v;
}

void events_emit(struct events *v, const struct pod_event *event)
{
	uint64_t now = loop_monotonic_ns();

	for (size_t i = v->notes.nr; i-- > 0;)
		if (note_is_idle(v, v->notes.at[i]) && v->notes.at[i]->due_ns <= now)
			events_remove_note(v, i);
	struct note *n = events_find_or_add_note(v, event, now);
	if (!n) {
		v->counters.dropped++;
		return;
	}
	n->waiting.last_ms = loop_wall_ms();
	if (!n->waiting.nr++)
		n->waiting.first_ms = n->waiting.last_ms;
	loop_timer_set(v->timer, 0); /* a call reads credentials: not while somebody waits for us */
}

void events_counters(const struct events *v, struct events_counters *out)
{
	*out = v->counters;
	for (size_t i = 0; i < v->notes.nr; i++)
		out->waiting += !note_is_idle(v, v->notes.at[i]);
}

void events_close(struct events *v)
{
	if (!v)
		return;
	api_cancel(v->call);
	loop_timer_close(v->timer);
	while (v->notes.nr)
		events_remove_note(v, v->notes.nr - 1);
	vec_fini(&v->notes);
	free(v->node);
	free(v);
}
