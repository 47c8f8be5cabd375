#include <apiserver/slice_publisher.h>

#include <apiserver/own_slices.h>
#include <apiserver/path.h>
#include <apiserver/reflector.h>
#include <assert.h>
#include <codec/api_json.h>
#include <errno.h>
#include <io/backoff.h>
#include <numafit/number.h>
#include <numafit/once.h>
#include <stdio.h>
#include <string.h>

#define SLICES "/apis/resource.k8s.io/v1/resourceslices"

enum { INTERVAL_MS = 1000, RETRY_MIN_MS = 1000, RETRY_MAX_MS = 60000, SLICES_OF_A_PAGE = 8 };
enum { LOOKS_IN_INTERVAL = 10 }; /* as long as none of them leads to a write */
enum {
	STATUS_OK = 200,
	STATUS_OTHER = 300,
	STATUS_FORBIDDEN = 403,
	STATUS_NOT_FOUND = 404,
	STATUS_CONFLICT = 409
};

/* What is to be done next. */
enum slice_step {
	STEP_NONE,
	STEP_READ_NODE,
	STEP_CREATE,
	STEP_REPLACE,
	STEP_DELETE,
	STEP_DELETE_EXTRA,
	NR_SLICE_STEPS
};
static const struct {
	const char *method, *verb; /* verb: of an RBAC rule */
} slice_steps[NR_SLICE_STEPS] = {
	[STEP_READ_NODE] = {"GET", "get"},
	[STEP_CREATE] = {"POST", "create"},
	[STEP_REPLACE] = {"PUT", "update"},
	[STEP_DELETE] = {"DELETE", "delete"},
	[STEP_DELETE_EXTRA] = {"DELETE", "delete"},
};

/* The Node, by its uid. */
enum slice_owner { OWNER_UNKNOWN, OWNER_NONE, OWNER_KNOWN };

/* After failures of one kind of write. */
struct slice_hold {
	struct backoff backoff;
	uint64_t until_ns;
};

struct slice_publisher {
	struct api *api;
	struct slice_publisher_handler handler;
	struct reflector *reflector;
	struct loop_timer *timer;
	struct api_call *call; /* NULL: none is under way */
	enum slice_step step;  /* that call's */
	char *target;          /* STEP_DELETE_EXTRA: the name */

	struct own_slices slices;
	bool listed; /* the list was there as a whole */
	enum slice_owner owner;
	uint64_t owner_ns; /* OWNER_NONE: the Node is read again then */
	char *node_uid;
	size_t nr;
	struct slice_node wanted[SLICE_DEVICES_MAX]; /* as of the last turn */
	bool due;                                    /* it may be another by now */

	uint64_t interval_ns, next_ns; /* no write before the latter, */
	uint64_t look_ns;              /* and what is wanted is not asked for before that */
	struct slice_hold hold, extra_hold;
	bool conflict; /* the hold ends when the watch brings our slice */
	bool taken;    /* a slice that the watch does not show has its name */

	uint64_t written, failed;
	const char *logged; /* the last event */
	struct err logged_text;
	struct once reported;
};

/* For the log */

static void publisher_log(
	struct slice_publisher *p, bool bad, const char *event, const struct err *e)
{
	bool same_event = text_equal(p->logged, event);

	/* a written one has another generation each time */
	if (same_event && (!bad || text_equal(p->logged_text.text, e->text)))
		return;
	p->logged = event;
	p->logged_text = *e;
	p->handler.on_event(p->handler.ctx, bad, event, e->text);
}

static void publisher_log_written(struct slice_publisher *p)
{
	struct err e;

	(void)err_set(&e, 0, "ResourceSlice %s: generation %llu", p->slices.name,
		(unsigned long long)p->slices.own.generation);
	publisher_log(p, false, "claims-slice-written", &e);
}

static void publisher_log_refused(
	struct slice_publisher *p, const struct api_answer *answer, const char *name)
{
	enum { RIGHT_MAX = 80 };
	char right[RIGHT_MAX] = "";
	const char *advice = right;
	struct err e;

	if (answer->status == STATUS_FORBIDDEN)
		(void)snprintf(right, sizeof right,
			"; the right to %s resourceslices.resource.k8s.io is missing",
			slice_steps[p->step].verb);
	if (answer->status == STATUS_NOT_FOUND)
		advice = "; is Kubernetes older than 1.34?";
	(void)err_set(&e, EIO, "ResourceSlice %s: %s%s", name, answer->message, advice);
	if (answer->status) /* that there is no connection is logged where the connection is */
		publisher_log(p, !answer->again, "claims-slice-refused", &e);
}

/* What is to be done */

static uint64_t publisher_ms_until(uint64_t at_ns)
{
	uint64_t now = loop_monotonic_ns();

	return at_ns > now ? (at_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
}

/* At a later turn: who calls may be in the middle of something. */
static void publisher_plan(struct slice_publisher *p)
{
	if (!p->call)
		loop_timer_set(p->timer, 0);
}

static void publisher_ask_wanted(struct slice_publisher *p)
{
	size_t nr = p->handler.wanted(p->handler.ctx, p->wanted);

	assert(nr <= SLICE_DEVICES_MAX);
	p->nr = 0;
	for (size_t i = 0; i < nr; i++) {
		p->wanted[p->nr] = slice_node_writable(&p->wanted[i]);
		p->nr += p->wanted[p->nr].cpus != 0;
	}
	p->due = false;
}

static bool publisher_has_nodes(const struct slice_publisher *p, const struct own_slice *own)
{
	if (own->nr != p->nr)
		return false;
	for (size_t i = 0; i < p->nr; i++)
		if (!slice_node_equal(&own->node[i], &p->wanted[i]))
			return false;
	return true;
}

/* Whether the server has what is wanted. */
static bool publisher_is_current(const struct slice_publisher *p)
{
	const struct own_slice *own = &p->slices.own;

	if (!own->there || !p->nr)
		return !own->there && !p->nr;
	if (p->owner == OWNER_KNOWN && !text_equal(own->owner_uid, p->node_uid))
		return false;
	return !own->odd.code && publisher_has_nodes(p, own) && own->generation >= p->slices.newest;
}

static bool publisher_owner_is_due(const struct slice_publisher *p)
{
	return p->owner == OWNER_UNKNOWN ||
	       (p->owner == OWNER_NONE && p->owner_ns <= loop_monotonic_ns());
}

static enum slice_step publisher_next_step(const struct slice_publisher *p)
{
	const struct own_slice *own = &p->slices.own;

	if (!p->listed)
		return STEP_NONE;
	if (own->there && (!p->nr || own->other_pool))
		return STEP_DELETE;
	if (p->nr && publisher_owner_is_due(p))
		return STEP_READ_NODE;
	if (!publisher_is_current(p))
		return own->there ? STEP_REPLACE : STEP_CREATE;
	return p->slices.extra.nr ? STEP_DELETE_EXTRA : STEP_NONE;
}

/* Sending it */

static void publisher_on_done(void *ctx, const struct api_answer *answer);

static char *publisher_print(const struct slice_publisher *p)
{
	uint64_t newest = p->slices.newest;

	return slice_write_json(&(struct slice_to_write){
		.name = p->slices.name,
		.node_name = p->slices.node_name,
		.node_uid = p->owner == OWNER_KNOWN ? p->node_uid : NULL,
		.generation = newest < INT64_MAX ? newest + 1 : INT64_MAX,
		.resource_version = p->step == STEP_REPLACE ? p->slices.own.version : NULL,
		.nr = p->nr,
		.node = p->wanted,
	});
}

static void publisher_add_path(const struct slice_publisher *p, struct text *path)
{
	const char *name = p->slices.name;

	if (p->step == STEP_READ_NODE)
		name = p->slices.node_name;
	if (p->step == STEP_DELETE_EXTRA)
		name = p->target;
	text_add(path, "%s", p->step == STEP_READ_NODE ? "/api/v1/nodes" : SLICES);
	if (p->step == STEP_CREATE)
		return;
	text_add(path, "/");
	path_add_escaped(path, name);
}

static void publisher_send(struct slice_publisher *p, enum slice_step step)
{
	auto_free char *body = NULL;
	char path[API_PATH_MAX];
	struct text t;

	p->step = step;
	free(steal(p->target));
	if (step == STEP_DELETE_EXTRA)
		p->target = xstrdup(p->slices.extra.at[0].name);
	if (step == STEP_CREATE || step == STEP_REPLACE)
		body = publisher_print(p);
	text_init(&t, path, sizeof path);
	publisher_add_path(p, &t);
	if (step != STEP_READ_NODE)
		p->next_ns = loop_monotonic_ns() + p->interval_ns;
	p->call = api_call(p->api,
		&(struct api_ask){.method = slice_steps[step].method,
			.path = path,
			.body = body,
			.len = body ? strlen(body) : 0},
		p, publisher_on_done);
}

static void publisher_on_timer(void *ctx)
{
	struct slice_publisher *p = ctx;
	uint64_t now = loop_monotonic_ns(),
		 not_before = number_max(number_max(p->next_ns, p->look_ns), p->hold.until_ns);

	if (p->call || !p->listed)
		return;
	if (not_before > now) {
		loop_timer_set(p->timer, publisher_ms_until(not_before));
		return;
	}
	publisher_ask_wanted(p);
	enum slice_step step = publisher_next_step(p);
	if (step == STEP_NONE)
		p->look_ns = now + p->interval_ns / LOOKS_IN_INTERVAL;
	if (step == STEP_DELETE_EXTRA && p->extra_hold.until_ns > now)
		loop_timer_set(p->timer, publisher_ms_until(p->extra_hold.until_ns));
	else if (step != STEP_NONE)
		publisher_send(p, step);
	else if (p->owner == OWNER_NONE && p->nr)
		loop_timer_set(p->timer, publisher_ms_until(p->owner_ns));
}

/* What came of it */

static void publisher_back_off(struct slice_publisher *p, unsigned after_ms)
{
	struct slice_hold *h = p->step == STEP_DELETE_EXTRA ? &p->extra_hold : &p->hold;

	h->until_ns =
		loop_monotonic_ns() + (uint64_t)backoff_next(&h->backoff, after_ms) * NS_PER_MS;
}

/* A server may accept a slice and keep another one: it drops fields of features that are off. To
 * write it again and again would change nothing. */
static void publisher_check_kept(struct slice_publisher *p)
{
	const struct own_slice *own = &p->slices.own;
	struct err e;

	if (!own->odd.code && publisher_has_nodes(p, own)) {
		backoff_reset(&p->hold.backoff);
		publisher_log_written(p);
		return;
	}
	publisher_back_off(p, p->hold.backoff.max_ms);
	(void)err_set(&e, EINVAL,
		"ResourceSlice %s: the API server keeps another one than was written: %s; is its "
		"feature gate DRAConsumableCapacity off?",
		p->slices.name, own->odd.code ? own->odd.text : "its devices are others");
	publisher_log(p, true, "claims-slice-refused", &e);
}

static void publisher_on_deleted(struct slice_publisher *p)
{
	if (p->step == STEP_DELETE_EXTRA) {
		(void)own_slices_remove(&p->slices, p->target, "");
		backoff_reset(&p->extra_hold.backoff);
		return;
	}
	(void)own_slices_remove(&p->slices, p->slices.name, "");
	backoff_reset(&p->hold.backoff);
	p->logged = NULL;
}

static void publisher_on_written(struct slice_publisher *p, const struct api_answer *answer)
{
	struct slice_head head;

	p->written++;
	p->conflict = p->taken = false;
	if (p->step == STEP_DELETE || p->step == STEP_DELETE_EXTRA) {
		publisher_on_deleted(p);
		return;
	}
	if (!answer->body) {
		publisher_back_off(p, 0); /* the watch will show it */
		return;
	}
	(void)own_slices_put(&p->slices, answer->body);
	slice_head_read(answer->body, &head);
	/* else the watch has shown already what became of it */
	if (p->slices.own.there && text_equal(p->slices.own.version, head.version))
		publisher_check_kept(p);
}

/* Somebody else was faster, and the watch will bring what there is. One that it does not bring is
 * of another driver or node. */
static void publisher_on_conflict(struct slice_publisher *p)
{
	struct err e;

	p->conflict = true;
	publisher_back_off(p, 0);
	if (p->step == STEP_CREATE && p->taken) {
		(void)err_set(&e, EEXIST,
			"ResourceSlice %s: there is one of that name, of another driver or node: "
			"delete it",
			p->slices.name);
		publisher_log(p, true, "claims-slice-refused", &e);
	}
	p->taken = p->step == STEP_CREATE;
}

static void publisher_on_refused(struct slice_publisher *p, const struct api_answer *answer)
{
	const char *name = p->step == STEP_DELETE_EXTRA ? p->target : p->slices.name;
	bool deletes = p->step == STEP_DELETE || p->step == STEP_DELETE_EXTRA;

	if (answer->status == STATUS_NOT_FOUND && (deletes || p->step == STEP_REPLACE)) {
		(void)own_slices_remove(&p->slices, name, ""); /* the watch is late */
		p->owner = p->step == STEP_REPLACE ? OWNER_UNKNOWN : p->owner;
		return;
	}
	p->failed++;
	if (answer->status == STATUS_CONFLICT) {
		publisher_on_conflict(p);
		return;
	}
	publisher_back_off(p, answer->after_ms);
	publisher_log_refused(p, answer, name);
}

/* Without an owner the slice outlives its Node, and nothing else is lost. */
static void publisher_on_no_node(struct slice_publisher *p, const struct api_answer *answer)
{
	bool bad = answer->status == STATUS_FORBIDDEN;
	struct err e;

	(void)err_set(&e, ENOENT, "Node %s: %s", p->slices.node_name, answer->message);
	p->owner_ns = loop_monotonic_ns() + (uint64_t)p->hold.backoff.max_ms * NS_PER_MS;
	if (!bad && answer->status != STATUS_NOT_FOUND) {
		publisher_back_off(p, answer->after_ms);
		if (answer->status)
			publisher_log(p, false, "claims-slice-refused", &e);
		return;
	}
	p->owner = OWNER_NONE;
	if (once_is_new(&p->reported, e.text))
		p->handler.on_event(p->handler.ctx, bad, "claims-slice-without-owner", e.text);
}

static void publisher_on_node(struct slice_publisher *p, const struct api_answer *answer)
{
	struct api_meta meta = {.uid = ""};

	if (answer->body)
		api_json_meta(answer->body, &meta);
	if (answer->status != STATUS_OK || !*meta.uid) {
		publisher_on_no_node(p, answer);
		return;
	}
	free(p->node_uid);
	p->node_uid = xstrdup(meta.uid);
	p->owner = OWNER_KNOWN;
}

static void publisher_on_done(void *ctx, const struct api_answer *answer)
{
	struct slice_publisher *p = ctx;
	bool ok = answer->status >= STATUS_OK && answer->status < STATUS_OTHER;

	p->call = NULL;
	if (p->step == STEP_READ_NODE)
		publisher_on_node(p, answer);
	else if (ok)
		publisher_on_written(p, answer);
	else
		publisher_on_refused(p, answer);
	publisher_plan(p);
}

/* What the watch brings */

static void publisher_on_begin(void *ctx)
{
	struct slice_publisher *p = ctx;

	p->listed = false;
	own_slices_begin(&p->slices);
}

/* A Node that was deleted takes its slices with it, and comes back as another one. */
static void publisher_on_own_deleted(struct slice_publisher *p)
{
	p->owner = OWNER_UNKNOWN;
	p->logged = NULL;
}

static void publisher_on_synced(void *ctx)
{
	struct slice_publisher *p = ctx;
	bool was_there = p->slices.own.there;

	own_slices_sweep(&p->slices);
	if (was_there && !p->slices.own.there)
		publisher_on_own_deleted(p);
	p->listed = true;
	publisher_plan(p);
}

static void publisher_on_object(void *ctx, enum reflector_change change, struct json_t *object)
{
	struct slice_publisher *p = ctx;
	struct slice_head head;
	bool news;

	slice_head_read(object, &head);
	if (change == REFLECTOR_PUT)
		news = own_slices_put(&p->slices, object);
	else
		news = own_slices_remove(&p->slices, head.name, head.version);
	if (news && !p->slices.own.there)
		publisher_on_own_deleted(p);
	if (news && !p->call && !publisher_is_current(p))
		p->logged = NULL; /* somebody else has changed it: it is put right */
	if (news && p->conflict) {
		p->conflict = false;
		p->hold.until_ns = 0;
	}
	publisher_plan(p);
}

static void publisher_on_event(void *ctx, bool bad, const char *event, const char *text)
{
	enum { EVENT_MAX = 64 };
	struct slice_publisher *p = ctx;
	char name[EVENT_MAX];
	struct text t;

	text_init(&t, name, sizeof name);
	text_add(&t, "claims-%s", event);
	p->handler.on_event(p->handler.ctx, bad, name, text);
}

/* From outside */

static struct reflector *publisher_watch(struct slice_publisher *p)
{
	const struct reflector_handler reflected = {
		.ctx = p,
		.begin = publisher_on_begin,
		.object = publisher_on_object,
		.synced = publisher_on_synced,
		.on_event = publisher_on_event,
	};
	char query[API_PATH_MAX];
	struct text t;

	text_init(&t, query, sizeof query);
	text_add(&t, "fieldSelector=spec.driver%%3D" CLAIM_DRIVER "%%2Cspec.nodeName%%3D");
	path_add_escaped(&t, p->slices.node_name);
	return reflector_new(p->api,
		&(struct reflector_options){.path = SLICES,
			.query = query,
			.page = SLICES_OF_A_PAGE,
			.retry_min_ms = p->hold.backoff.min_ms,
			.retry_max_ms = p->hold.backoff.max_ms,
			.from_memory = true},
		&reflected);
}

struct slice_publisher *slice_publisher_new(struct loop *l, struct api *a,
	const struct slice_publisher_options *o, const struct slice_publisher_handler *handler)
{
	struct slice_publisher *p = xcalloc(1, sizeof *p);
	const struct backoff backoff = {
		.min_ms = o->retry_min_ms ? o->retry_min_ms : RETRY_MIN_MS,
		.max_ms = o->retry_max_ms ? o->retry_max_ms : RETRY_MAX_MS,
	};

	p->api = a;
	p->handler = *handler;
	p->interval_ns = (uint64_t)(o->interval_ms ? o->interval_ms : INTERVAL_MS) * NS_PER_MS;
	p->hold.backoff = p->extra_hold.backoff = backoff;
	p->due = true;
	own_slices_init(&p->slices, o->node);
	p->timer = loop_timer_new(l, publisher_on_timer, p);
	p->reflector = publisher_watch(p);
	return p;
}

void slice_publisher_changed(struct slice_publisher *p)
{
	p->due = true;
	publisher_plan(p);
}

void slice_publisher_state(const struct slice_publisher *p, struct slice_publisher_state *out)
{
	*out = (struct slice_publisher_state){
		.synced = reflector_synced(p->reflector),
		.current = p->listed && !p->due && publisher_is_current(p),
		.generation = p->slices.own.there ? p->slices.own.generation : 0,
		.written = p->written,
		.failed = p->failed,
	};
}

void slice_publisher_close(struct slice_publisher *p)
{
	if (!p)
		return;
	api_cancel(p->call);
	reflector_close(p->reflector);
	loop_timer_close(p->timer);
	own_slices_fini(&p->slices);
	free(p->target);
	free(p->node_uid);
	free(p);
}
