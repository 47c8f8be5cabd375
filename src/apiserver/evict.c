/* Evicts refused pods through the API server, within disruption budgets. */
#include <apiserver/evict.h>

#include <apiserver/path.h>
#include <codec/fields.h>
#include <io/backoff.h>
#include <numafit/arena.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <numafit/vec.h>

enum {
	BURST = 3,
	EVERY_MS = 10000,
	RETRY_MIN_MS = 5000,
	RETRY_MAX_MS = 5 * 60 * 1000,
	GOING_MS = 10 * 60 * 1000,
	PODS_MAX = 256, /* a kubelet has 110, unless configured otherwise */
	BODY_MAX = 4096
};
enum { STATUS_OK = 200, STATUS_OTHER = 300, STATUS_NOT_FOUND = 404, STATUS_CONFLICT = 409 };

/* A pod that is to go, or that goes. */
struct leaving {
	struct arena memory; /* of its strings */
	const char *ns, *name, *uid;
	bool goes;       /* the server has seen to it */
	bool logged;     /* that it waits */
	uint64_t due_ns; /* the next attempt; of one that goes: when it should be gone */
	struct backoff backoff;
};

struct evictions {
	struct api *api;
	struct evictions_handler handler;
	struct backoff backoff; /* of each pod, at its start */
	uint64_t going_ns;
	struct {
		VEC(struct leaving *);
	} pods;
	struct api_call *call;
	struct leaving *asking; /* of that call */
	struct loop_timer *timer;
	struct rate rate;
	bool refused, limited; /* and logged */
	struct evictions_counters counters;
};

/* What is sent */

struct eviction {
	const char *api_version, *kind;
	struct {
		const char *name, *ns;
	} metadata;
	struct {
		struct {
			const char *uid;
		} preconditions;
	} options;
};

#define AT(member) offsetof(struct eviction, member)
static const struct field metadata_rows[] = {
	FIELD("name", STRING, AT(metadata.name)),
	FIELD("namespace", STRING, AT(metadata.ns)),
};
static const struct fields metadata_fields = FIELDS(metadata_rows, struct eviction);
static const struct field precondition_rows[] = {
	FIELD("uid", STRING, AT(options.preconditions.uid)),
};
static const struct fields precondition_fields = FIELDS(precondition_rows, struct eviction);
static const struct field options_rows[] = {
	FIELD("preconditions", OBJECT, 0, .fields = &precondition_fields),
};
static const struct fields options_fields = FIELDS(options_rows, struct eviction);
static const struct field eviction_rows[] = {
	FIELD("apiVersion", STRING, AT(api_version)),
	FIELD("kind", STRING, AT(kind)),
	FIELD("metadata", OBJECT, 0, .fields = &metadata_fields),
	FIELD("deleteOptions", OBJECT, 0, .fields = &options_fields),
};
static const struct fields eviction_fields = FIELDS(eviction_rows, struct eviction);
#undef AT

static void print_eviction(struct text *t, const struct leaving *p)
{
	const struct eviction e = {
		.api_version = "policy/v1",
		.kind = "Eviction",
		.metadata = {p->name, p->ns},
		.options = {{p->uid}},
	};

	fields_write(t, &eviction_fields, &e, NULL);
}

/* The pods */

/* Its index, or their number. */
static size_t evictions_find(const struct evictions *v, const char *uid)
{
	size_t i = 0;

	while (i < v->pods.nr && !text_equal(v->pods.at[i]->uid, uid))
		i++;
	return i;
}

static void evictions_remove_pod(struct evictions *v, size_t i)
{
	struct leaving *p = v->pods.at[i];

	arena_fini(&p->memory);
	free(p);
	vec_remove(&v->pods, i);
}

/* The one that is due first. NULL: there is none. */
static struct leaving *evictions_next_pod(const struct evictions *v)
{
	struct leaving *next = NULL;

	for (size_t i = 0; i < v->pods.nr; i++) {
		struct leaving *p = v->pods.at[i];

		if (!p->goes && (!next || p->due_ns < next->due_ns))
			next = p;
	}
	return next;
}

/* For the log */

static void evictions_log(
	struct evictions *v, bool bad, const char *event, const struct leaving *p, const char *why)
{
	struct err e;

	(void)err_set(&e, 0, "pod %.64s/%.64s%s%s", p->ns, p->name, *why ? ": " : "", why);
	v->handler.on_event(v->handler.ctx, bad, event, e.text);
}

/* Once, until *logged is false again. */
static void evictions_log_bad_once(struct evictions *v, bool *logged, const char *event,
	const struct leaving *p, const char *why)
{
	if (!*logged)
		evictions_log(v, true, event, p, why);
	*logged = true;
}

/* Attempts */

static void evictions_send(struct evictions *v, struct leaving *p);

static void evictions_plan(struct evictions *v)
{
	struct leaving *p = evictions_next_pod(v);
	uint64_t now = loop_monotonic_ns(), when = rate_when(&v->rate, now);

	v->limited = v->limited && p;
	if (!p || v->call)
		return;
	if (p->due_ns <= now && when > now)
		evictions_log_bad_once(
			v, &v->limited, "pod-evictions-limited", p, "others were evicted just now");
	uint64_t at = p->due_ns > when ? p->due_ns : when;
	if (at <= now)
		evictions_send(v, p);
	else
		loop_timer_set(v->timer, (at - now + NS_PER_MS - 1) / NS_PER_MS);
}

static void evictions_on_timer(void *ctx)
{
	evictions_plan(ctx);
}

/* Also a no for good is only as good as the rules of today: it is asked again, later and later. */
static void evictions_on_refused(
	struct evictions *v, struct leaving *p, const struct api_answer *answer)
{
	v->counters.failed++;
	p->due_ns = loop_monotonic_ns() +
		    (uint64_t)backoff_next(&p->backoff, answer->after_ms) * NS_PER_MS;
	if (!answer->again)
		evictions_log_bad_once(v, &v->refused, "pod-eviction-refused", p, answer->message);
	else if (answer->status && !p->logged)
		evictions_log(v, false, "pod-eviction-waiting", p, answer->message);
	p->logged = p->logged || answer->status;
}

static void evictions_on_done(void *ctx, const struct api_answer *answer)
{
	struct evictions *v = ctx;
	struct leaving *p = v->asking;

	bool evicted = answer->status >= STATUS_OK && answer->status < STATUS_OTHER;

	v->call = NULL;
	v->asking = NULL;
	if (evicted) {
		v->counters.evicted++;
		v->refused = false;
		rate_take(&v->rate, loop_monotonic_ns());
		evictions_log(v, false, "pod-evicted", p, "");
	}
	/* or it is gone, or there is another one of that name */
	if (evicted || answer->status == STATUS_NOT_FOUND || answer->status == STATUS_CONFLICT) {
		p->goes = true;
		p->due_ns = loop_monotonic_ns() + v->going_ns;
	} else {
		evictions_on_refused(v, p, answer);
	}
	evictions_plan(v);
}

static void evictions_send(struct evictions *v, struct leaving *p)
{
	char path[API_PATH_MAX], body[BODY_MAX];
	struct text line, t;

	text_init(&line, path, sizeof path);
	text_add(&line, "/api/v1/namespaces/");
	path_add_escaped(&line, p->ns);
	text_add(&line, "/pods/");
	path_add_escaped(&line, p->name);
	text_add(&line, "/eviction");
	text_init(&t, body, sizeof body);
	print_eviction(&t, p);
	v->asking = p;
	v->call = api_call(v->api,
		&(struct api_ask){.method = "POST", .path = path, .body = body, .len = t.len}, v,
		evictions_on_done);
}

struct evictions *evictions_new(struct loop *l, struct api *a, const struct evictions_options *o,
	const struct evictions_handler *handler)
{
	struct evictions *v = xcalloc(1, sizeof *v);

	v->api = a;
	v->handler = *handler;
	v->rate = (struct rate){.burst = o->burst ? o->burst : BURST,
		.every_ns = (uint64_t)(o->every_ms ? o->every_ms : EVERY_MS) * NS_PER_MS};
	v->backoff = (struct backoff){
		.min_ms = o->retry_min_ms ? o->retry_min_ms : RETRY_MIN_MS,
		.max_ms = o->retry_max_ms ? o->retry_max_ms : RETRY_MAX_MS,
	};
	v->going_ns = (uint64_t)(o->going_ms ? o->going_ms : GOING_MS) * NS_PER_MS;
	v->timer = loop_timer_new(l, evictions_on_timer, v);
	return v;
}

void evict_pod(struct evictions *v, const char *ns, const char *name, const char *uid)
{
	uint64_t now = loop_monotonic_ns();
	size_t i = evictions_find(v, uid);

	if (i < v->pods.nr && v->pods.at[i]->goes && v->pods.at[i]->due_ns <= now)
		evictions_remove_pod(v, i);
	else if (i < v->pods.nr)
		return;
	if (v->pods.nr == PODS_MAX) { /* in the place of one that goes, if there is one */
		i = 0;
		while (i < v->pods.nr && !v->pods.at[i]->goes)
			i++;
		if (i == v->pods.nr) {
			v->counters.dropped++;
			return;
		}
		evictions_remove_pod(v, i);
	}
	struct leaving *p = xcalloc(1, sizeof *p);
	arena_init(&p->memory, SIZE_MAX);
	p->ns = arena_strdup(&p->memory, ns);
	p->name = arena_strdup(&p->memory, name);
	p->uid = arena_strdup(&p->memory, uid);
	p->due_ns = now;
	p->backoff = v->backoff;
	*vec_push(&v->pods) = p;
	loop_timer_set(v->timer, 0); /* a call reads credentials: not while somebody waits for us */
}

void evict_forget(struct evictions *v, const char *uid)
{
	size_t i = evictions_find(v, uid);

	if (i == v->pods.nr)
		return;
	if (v->asking == v->pods.at[i]) {
		api_cancel(v->call);
		v->call = NULL;
		v->asking = NULL;
	}
	evictions_remove_pod(v, i);
	loop_timer_set(v->timer, 0); /* as in evict_pod() */
}

void evictions_counters(const struct evictions *v, struct evictions_counters *out)
{
	*out = v->counters;
	for (size_t i = 0; i < v->pods.nr; i++)
		out->waiting += !v->pods.at[i]->goes;
}

void evictions_close(struct evictions *v)
{
	if (!v)
		return;
	api_cancel(v->call);
	loop_timer_close(v->timer);
	while (v->pods.nr)
		evictions_remove_pod(v, v->pods.nr - 1);
	vec_fini(&v->pods);
	free(v);
}
