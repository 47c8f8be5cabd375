#include <apiserver/annotate.h>

#include <apiserver/path.h>
#include <codec/api_json.h>
#include <apiserver/observed_json.h>
#include <io/backoff.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <string.h>

enum { BURST = 10, EVERY_MS = 200, PODS_MAX = 1024, RETRY_MIN_MS = 1000, RETRY_MAX_MS = 300000 };
enum {
	STATUS_OK = 200,
	STATUS_OTHER = 300,
	STATUS_FORBIDDEN = 403,
	STATUS_NOT_FOUND = 404,
	STATUS_CONFLICT = 409,
	STATUS_INVALID = 422
};

/* A pod with the annotation, or that should have it. Values may be NULL: none. */
struct annotated {
	char *uid, *ns, *name;
	bool is_mirror;
	char *wanted;
	char *done; /* what the server has taken last, or has refused for good */
	bool seen;  /* a watch has shown that */
	bool lost;  /* the last attempt was not answered, and may have been taken all the same */
	bool named; /* in this round */
	uint64_t since_ns;
};

struct annotator {
	struct api *api;
	struct annotator_handler handler;
	const char *advice;
	struct {
		VEC(struct annotated *);
	} pods; /* ascending by uid */
	struct api_call *call;
	struct annotated *asking; /* by that call, */
	char *sent;               /* with that value */
	struct loop_timer *timer;
	struct rate rate;
	struct backoff backoff;
	uint64_t hold_ns;          /* the server is not asked before */
	bool refused, overwritten; /* and logged */
	struct annotator_counters counters;
};

/* The pods */

static size_t annotator_place(const struct annotator *v, const char *uid)
{
	size_t low = 0, high = v->pods.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(v->pods.at[middle]->uid, uid) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct annotated *annotator_find(const struct annotator *v, const char *uid)
{
	size_t i = annotator_place(v, uid);

	return i < v->pods.nr && text_equal(v->pods.at[i]->uid, uid) ? v->pods.at[i] : NULL;
}

static char *annotated_copy(const char *value)
{
	return value ? xstrdup(value) : NULL;
}

static void annotated_free(struct annotated *p)
{
	free(p->uid);
	free(p->ns);
	free(p->name);
	free(p->wanted);
	free(p->done);
	free(p);
}

static void annotator_stop_asking(struct annotator *v)
{
	api_cancel(steal(v->call));
	free(steal(v->sent));
	v->asking = NULL;
}

static bool annotated_waits(const struct annotated *p)
{
	return !text_equal(p->wanted, p->done);
}

/* The one that has waited for the longest time. NULL: none waits. */
static struct annotated *annotator_next(const struct annotator *v)
{
	struct annotated *next = NULL;

	for (size_t i = 0; i < v->pods.nr; i++) {
		struct annotated *p = v->pods.at[i];

		if (annotated_waits(p) && (!next || p->since_ns < next->since_ns))
			next = p;
	}
	return next;
}

/* For the log */

static void annotator_log(struct annotator *v, bool bad, const char *event,
	const struct annotated *p, const char *why, const char *advice)
{
	struct err e;

	(void)err_set(&e, 0, "pod %.64s/%.64s%s%.180s%s%s", p->ns, p->name, *why ? ": " : "", why,
		*advice ? "; " : "", advice);
	v->handler.on_event(v->handler.ctx, bad, event, e.text);
}

static void annotator_log_refused(
	struct annotator *v, const struct annotated *p, const char *why, const char *advice)
{
	if (!v->refused)
		annotator_log(v, true, "observed-placement-refused", p, why, advice);
	v->refused = true;
}

/* Attempts */

static void annotator_send(struct annotator *v, struct annotated *p);

static void annotator_plan(struct annotator *v)
{
	struct annotated *p = v->call ? NULL : annotator_next(v);
	uint64_t now = loop_monotonic_ns();

	if (!p)
		return;
	uint64_t at = number_max(v->hold_ns, rate_when(&v->rate, now));
	if (at <= now)
		annotator_send(v, p);
	else
		loop_timer_set(v->timer, (at - now + NS_PER_MS - 1) / NS_PER_MS);
}

static void annotator_on_timer(void *ctx)
{
	annotator_plan(ctx);
}

/* Not a word of that value again. */
static void annotated_settle(struct annotator *v, struct annotated *p)
{
	free(p->done);
	p->done = steal(v->sent);
	p->seen = p->lost = false;
}

static void annotator_on_written(struct annotator *v, struct annotated *p)
{
	v->counters.written++;
	backoff_reset(&v->backoff);
	if (v->refused)
		annotator_log(v, false, "observed-placement-accepted", p, "", "");
	v->refused = false;
	annotated_settle(v, p);
}

/* It comes behind all others, as it may be refused for itself. */
static void annotator_try_later(struct annotator *v, struct annotated *p, unsigned after_ms)
{
	v->counters.failed++;
	p->lost = true;
	p->since_ns = loop_monotonic_ns();
	v->hold_ns = p->since_ns + (uint64_t)backoff_next(&v->backoff, after_ms) * NS_PER_MS;
	free(steal(v->sent));
}

/* The pod is gone, or another one has its name: its uid is then a change that nobody may make. */
static bool annotated_is_gone(const struct api_answer *answer)
{
	return answer->status == STATUS_NOT_FOUND || answer->status == STATUS_CONFLICT ||
	       (answer->status == STATUS_INVALID && api_json_blames(answer->body, "metadata.uid"));
}

/* Without the right, it is asked again, later and later, as it may be granted any time. */
static void annotator_on_done(void *ctx, const struct api_answer *answer)
{
	struct annotator *v = ctx;
	struct annotated *p = v->asking;
	bool forbidden = answer->status == STATUS_FORBIDDEN;

	v->call = NULL;
	v->asking = NULL;
	if (forbidden)
		annotator_log_refused(v, p, answer->message, v->advice);
	if (answer->again || forbidden) {
		annotator_try_later(v, p, answer->after_ms);
	} else if (answer->status >= STATUS_OK && answer->status < STATUS_OTHER) {
		annotator_on_written(v, p);
	} else {
		if (!annotated_is_gone(answer)) {
			annotator_log_refused(v, p, answer->message, "");
			v->counters.dropped++;
		}
		annotated_settle(v, p);
	}
	annotator_plan(v);
}

static void annotator_send(struct annotator *v, struct annotated *p)
{
	auto_free char *body = observed_json_patch(p->is_mirror ? NULL : p->uid, p->wanted);
	char path[API_PATH_MAX];
	struct text t;

	v->sent = annotated_copy(p->wanted);
	if (!body) { /* a uid that is not UTF-8 is none of the API server's */
		annotated_settle(v, p);
		loop_timer_set(v->timer, 0);
		return;
	}
	text_init(&t, path, sizeof path);
	text_add(&t, "/api/v1/namespaces/");
	path_add_escaped(&t, p->ns);
	text_add(&t, "/pods/");
	path_add_escaped(&t, p->name);
	rate_take(&v->rate, loop_monotonic_ns());
	v->asking = p;
	v->call = api_call(v->api,
		&(struct api_ask){.method = "PATCH",
			.path = path,
			.content_type = "application/merge-patch+json",
			.body = body,
			.len = strlen(body)},
		v, annotator_on_done);
}

/* Rounds */

/* NULL: there is no room for it, or it needs none. */
static struct annotated *annotator_add(
	struct annotator *v, const struct annotator_pod *pod, const char *value)
{
	if (!pod->on_pod && !value)
		return NULL;
	if (v->pods.nr == PODS_MAX) {
		v->counters.dropped += !text_equal(pod->on_pod, value);
		return NULL;
	}
	struct annotated *p = xcalloc(1, sizeof *p);
	*p = (struct annotated){.uid = xstrdup(pod->uid),
		.ns = xstrdup(pod->ns),
		.name = xstrdup(pod->name),
		.is_mirror = pod->is_mirror,
		.wanted = annotated_copy(pod->on_pod),
		.done = annotated_copy(pod->on_pod)};
	*vec_insert(&v->pods, annotator_place(v, pod->uid)) = p;
	return p;
}

static void annotator_look(struct annotator *v, struct annotated *p, const char *on_pod)
{
	bool same = text_equal(on_pod, p->done);

	if (p->seen && !same && !p->lost && !v->overwritten) {
		annotator_log(v, true, "observed-placement-overwritten", p, "", "");
		v->overwritten = true;
	}
	p->seen = p->seen || same;
}

void annotator_begin(struct annotator *v)
{
	for (size_t i = 0; i < v->pods.nr; i++)
		v->pods.at[i]->named = false;
}

void annotator_want(struct annotator *v, const struct annotator_pod *pod, const char *value)
{
	struct annotated *p = annotator_find(v, pod->uid);

	p = p ? p : annotator_add(v, pod, value);
	if (!p)
		return;
	p->named = true;
	annotator_look(v, p, pod->on_pod);
	if (text_equal(p->wanted, value))
		return;
	free(p->wanted);
	p->wanted = annotated_copy(value);
	p->since_ns = loop_monotonic_ns();
}

void annotator_keep(struct annotator *v, const char *uid)
{
	struct annotated *p = annotator_find(v, uid);

	if (p)
		p->named = true;
}

void annotator_end(struct annotator *v)
{
	size_t nr = 0;

	for (size_t i = 0; i < v->pods.nr; i++) {
		struct annotated *p = v->pods.at[i];

		if (p->named) {
			v->pods.at[nr++] = p;
			continue;
		}
		if (p == v->asking)
			annotator_stop_asking(v);
		annotated_free(p);
	}
	v->pods.nr = nr;
	loop_timer_set(v->timer, 0); /* a call reads credentials: not while somebody waits for us */
}

struct annotator *annotator_new(struct loop *l, struct api *a, const struct annotator_options *o,
	const struct annotator_handler *handler)
{
	struct annotator *v = xcalloc(1, sizeof *v);

	v->api = a;
	v->handler = *handler;
	v->advice = o->advice;
	v->rate = (struct rate){.burst = o->burst ? o->burst : BURST,
		.every_ns = (uint64_t)(o->every_ms ? o->every_ms : EVERY_MS) * NS_PER_MS};
	v->backoff = (struct backoff){
		.min_ms = o->retry_min_ms ? o->retry_min_ms : RETRY_MIN_MS,
		.max_ms = o->retry_max_ms ? o->retry_max_ms : RETRY_MAX_MS,
	};
	v->timer = loop_timer_new(l, annotator_on_timer, v);
	return v;
}

void annotator_counters(const struct annotator *v, struct annotator_counters *out)
{
	*out = v->counters;
	for (size_t i = 0; i < v->pods.nr; i++)
		out->waiting += annotated_waits(v->pods.at[i]);
}

void annotator_close(struct annotator *v)
{
	if (!v)
		return;
	annotator_stop_asking(v);
	loop_timer_close(v->timer);
	for (size_t i = 0; i < v->pods.nr; i++)
		annotated_free(v->pods.at[i]);
	vec_fini(&v->pods);
	free(v);
}
