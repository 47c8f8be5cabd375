/* Binding: the pod gets its node and its hint in one call, and counts on that node from here on. */
#include "extender.h"

#include <apiserver/path.h>
#include <codec/api_json.h>
#include <numafit-extender/binding_json.h>
#include <codec/advice_json.h>
#include <errno.h>
#include <io/log.h>
#include <sched/sched_place.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_OK = 200, STATUS_OTHER = 300, STATUS_SERVER_ERROR = 500 };
enum { ERROR_BYTES = 512, ZONES_TEXT_MAX = CPUSET_TEXT_MAX };
/* Between two look-ups of one pod, twice as long each time, and how many may be under way. */
enum { LOOK_AGAIN_MS = 1000, LOOK_AGAIN_MAX_MS = 30 * 1000, LOOKS_MAX = 4 };

/* One request, until the API server has said what became of it. */
struct bind {
	struct bind *next, **at;
	struct extender *x;
	struct http_exchange *exchange; /* NULL: the client is gone, or has its answer */
	uint64_t since_ns;
	struct extender_bind ask;
	struct api_call *call;
	enum extender_bound how;
	bool assumed;
	uint64_t zones; /* by the NUMA nodes' ids */
	int score;      /* that the scheduler got; -1: not from us */
	/* The Binding as it was posted, and the hint in it or NULL. Another attempt posts the same,
	 * so that it does not matter which of them the API server carries out. */
	char *body, *hint;
	char why[ERROR_BYTES]; /* what the API server has said against it */
	bool may_be_done;      /* in spite of that, by an earlier attempt if not by the last */
	/* kube-scheduler has its answer, but nobody knows what became of the Binding. */
	bool unsettled;
	uint64_t hold_until_ms; /* then its room is given back; UINT64_MAX: the server is away */
	uint64_t look_at_ms, wait_ms;
};

/* What is known, and decided, of the pod at this moment. */
struct plan {
	struct question of;
	struct sched_node node;
	struct sched_candidate candidate;
	bool known; /* the node is */
	bool placed;
	struct sched_placement placement;
};

/* Answers */

static void bind_free(struct bind *b)
{
	*b->at = b->next;
	if (b->next)
		b->next->at = b->at;
	extender_bind_fini(&b->ask);
	free(b->body);
	free(b->hint);
	free(b);
}

static void log_bind(const struct bind *b, enum extender_bound how, const char *error)
{
	char pod[ERROR_BYTES], node[ERROR_BYTES], text[2 * ERROR_BYTES], zones[ZONES_TEXT_MAX];
	struct cpuset ids = {0};

	for (unsigned id = 0; id < ZONES_MAX; id++)
		if (b->zones >> id & 1)
			cpuset_add(&ids, id);
	(void)snprintf(text, sizeof text, "%s/%s", b->ask.ns, b->ask.name);
	(void)log_text(pod, sizeof pod, text);
	(void)log_text(node, sizeof node, b->ask.node);
	(void)cpuset_format(&ids, zones, sizeof zones);
	if (*error)
		log_line(LOG_INFO, "bind-failed", "pod=%s node=%s numa_nodes=%s error=%s", pod,
			node, b->zones ? zones : "-", log_text(text, sizeof text, error));
	else
		log_line(LOG_INFO, "bind", "pod=%s node=%s numa_nodes=%s score=%d hint=%s", pod,
			node, b->zones ? zones : "-", b->score,
			how == BOUND_WITH_ADVICE ? "yes" : "no");
}

static void answer_bind(struct bind *b, enum extender_bound how, const char *error)
{
	size_t len;

	log_bind(b, how, error);
	b->x->measured.binds[how]++;
	answer_count(b->x, VERB_BIND, RESULT_OK, b->since_ns);
	auto_free char *text = extender_bind_write(error, &len);
	if (b->exchange)
		answer_json(b->exchange, text, len);
	b->exchange = NULL;
}

static void stop_if_drained(struct extender *x)
{
	if (x->stopping && !bind_count(x))
		loop_stop(x->loop);
}

/* error "": it is bound. */
static void bind_finish(struct bind *b, enum extender_bound how, const char *error)
{
	struct extender *x = b->x;

	if (!*error)
		kept_remove(x->kept, b->ask.uid);
	else if (b->assumed)
		sched_cluster_forget(x->cluster, b->ask.uid);
	if (b->unsettled)
		log_bind(b, b->how, error); /* counted and answered before */
	else
		answer_bind(b, how, error);
	bind_free(b);
	stop_if_drained(x);
}

static void bind_fail(struct bind *b, enum extender_bound how, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void bind_fail(struct bind *b, enum extender_bound how, const char *fmt, ...)
{
	char error[ERROR_BYTES];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(error, sizeof error, fmt, ap);
	va_end(ap);
	bind_finish(b, how, error);
}

/* The API server's answer */

static bool is_ok(const struct api_answer *answer)
{
	return answer->status >= STATUS_OK && answer->status < STATUS_OTHER;
}

/* As it was posted, or by somebody else: then nobody knows yet where on the node. */
static void bind_done(struct bind *b, enum extender_bound how, bool as_posted)
{
	sched_cluster_confirm(b->x->cluster, b->ask.uid, as_posted);
	bind_finish(b, how, "");
}

/* kube-scheduler is not kept waiting, but the pod may be bound: its room stays its own for
 * assumeTTL from the moment on at which the API server can be asked. Else the next pod would be
 * given the same CPUs. */
static void leave_unsettled(struct bind *b, bool server_is_away)
{
	const uint64_t now_ms = loop_monotonic_ms();
	char error[ERROR_BYTES + sizeof b->why];
	bool is_new = !b->unsettled;

	if (server_is_away)
		b->hold_until_ms = UINT64_MAX;
	else if (is_new || b->hold_until_ms == UINT64_MAX)
		b->hold_until_ms = now_ms + b->x->config.assume_ms;
	b->wait_ms = is_new ? LOOK_AGAIN_MS : 2 * b->wait_ms;
	if (b->wait_ms > LOOK_AGAIN_MAX_MS)
		b->wait_ms = LOOK_AGAIN_MAX_MS;
	b->look_at_ms = now_ms + b->wait_ms;
	b->unsettled = true;
	if (!is_new)
		return;
	(void)snprintf(error, sizeof error,
		"numafit: binding pod %s: %s; whether it is bound is looked up later", b->ask.name,
		b->why);
	answer_bind(b, b->may_be_done ? BIND_UNKNOWN : BIND_REFUSED, error);
	stop_if_drained(b->x);
}

/* What a look-up has found. */
enum found { FOUND_AWAY, FOUND_NOTHING, FOUND_GONE, FOUND_POD };

/* Only a Pod, and a Status that names its reason, are the API server's: others may answer in front
 * of it. */
static enum found found_by(const struct api_answer *answer, struct api_meta *meta)
{
	if (is_ok(answer) && answer->body) {
		api_json_meta(answer->body, meta);
		return *meta->uid ? FOUND_POD : FOUND_NOTHING;
	}
	if (text_equal(answer->reason, "NotFound"))
		return FOUND_GONE;
	return answer->again ? FOUND_AWAY : FOUND_NOTHING;
}

/* The pod may be bound there by now, perhaps by an attempt of ours whose answer was lost. */
static void on_pod_found(struct bind *b, const struct json_t *pod, const char *uid)
{
	const char *node = extender_pod_json_node(pod);

	if (!text_equal(uid, b->ask.uid))
		bind_fail(b, BIND_REFUSED, "numafit: pod %s is another one by now", b->ask.name);
	else if (text_equal(node, b->ask.node))
		bind_done(b, BOUND_ALREADY, !b->body || extender_pod_json_has_hint(pod, b->hint));
	else if (*node)
		bind_fail(b, BIND_REFUSED, "numafit: pod %s is bound to %s already", b->ask.name,
			node);
	else if (b->may_be_done) /* the attempt may still be on its way */
		leave_unsettled(b, false);
	else
		bind_fail(b, BIND_REFUSED, "numafit: binding pod %s: %s", b->ask.name, b->why);
}

static void on_pod_looked_up(void *ctx, const struct api_answer *answer)
{
	struct bind *b = ctx;
	struct api_meta meta;
	enum found found = found_by(answer, &meta);

	b->call = NULL;
	if (found == FOUND_POD)
		on_pod_found(b, answer->body, meta.uid);
	else if (found == FOUND_GONE || !b->assumed)
		bind_fail(b, b->may_be_done || !b->assumed ? BIND_UNKNOWN : BIND_REFUSED,
			"numafit: binding pod %s: %s", b->ask.name, answer->message);
	else
		leave_unsettled(b, found == FOUND_AWAY);
}

static void pod_path(const struct bind *b, char path[API_PATH_MAX], const char *tail)
{
	struct text t;

	text_init(&t, path, API_PATH_MAX);
	text_add(&t, "/api/v1/namespaces/");
	path_add_escaped(&t, b->ask.ns);
	text_add(&t, "/pods/");
	path_add_escaped(&t, b->ask.name);
	text_add(&t, "%s", tail);
}

static void get_pod(struct bind *b, void (*done)(void *ctx, const struct api_answer *answer))
{
	char path[API_PATH_MAX];

	pod_path(b, path, "");
	b->call = api_call(b->x->api, &(struct api_ask){.path = path}, b, done);
}

static void look_up_pod(struct bind *b)
{
	get_pod(b, on_pod_looked_up);
}

static void on_bound(void *ctx, const struct api_answer *answer)
{
	struct bind *b = ctx;

	b->call = NULL;
	if (is_ok(answer)) {
		bind_done(b, b->how, true);
		return;
	}
	(void)text_copy(b->why, sizeof b->why, answer->message);
	b->may_be_done |= !answer->status || answer->status >= STATUS_SERVER_ERROR;
	look_up_pod(b); /* whatever the error: curl may have sent it twice */
}

static void post_body(struct bind *b)
{
	char path[API_PATH_MAX];

	pod_path(b, path, "/binding");
	b->call = api_call(b->x->api,
		&(struct api_ask){
			.method = "POST", .path = path, .body = b->body, .len = strlen(b->body)},
		b, on_bound);
}

/* What became of a Binding */

/* The watch may have shown it first. Whether it is being looked up now. */
static bool settle_bind(struct bind *b, bool may_look)
{
	const struct sched_cluster *c = b->x->cluster;
	const char *node = sched_cluster_node_of(c, b->ask.uid);
	const uint64_t now_ms = loop_monotonic_ms();

	if (node && text_equal(node, b->ask.node)) {
		bind_done(b, BOUND_ALREADY, true);
	} else if (node) {
		bind_fail(b, BIND_REFUSED, "numafit: pod %s is bound to %s already", b->ask.name,
			node);
	} else if (!sched_cluster_assumed_on(c, b->ask.uid)) {
		bind_fail(b, BIND_REFUSED, "numafit: pod %s is gone", b->ask.name);
	} else if (now_ms >= b->hold_until_ms) {
		bind_fail(b, BIND_UNKNOWN, "numafit: pod %s was not bound to %s within assumeTTL",
			b->ask.name, b->ask.node);
	} else if (may_look && now_ms >= b->look_at_ms) {
		look_up_pod(b);
		return true;
	}
	return false;
}

void bind_settle(struct extender *x)
{
	const int64_t now_ms = loop_wall_ms();
	unsigned looks = 0;

	for (const struct bind *b = x->binds; b; b = b->next) {
		if (b->assumed) /* it ends here, and not by the cluster's clock */
			sched_cluster_renew(x->cluster, b->ask.uid, now_ms);
		looks += b->unsettled && b->call;
	}
	for (struct bind *b = x->binds, *next; b; b = next) {
		next = b->next;
		if (b->unsettled && !b->call)
			looks += settle_bind(b, looks < LOOKS_MAX);
	}
}

/* kube-scheduler tries again. */
static void bind_again(struct bind *b, struct http_exchange *exchange, uint64_t since_ns)
{
	api_cancel(b->call);
	b->exchange = exchange;
	b->since_ns = since_ns;
	b->unsettled = false;
	post_body(b);
}

size_t bind_count_unsettled(const struct extender *x)
{
	size_t nr = 0;

	for (const struct bind *b = x->binds; b; b = b->next)
		nr += b->unsettled;
	return nr;
}

/* The hint */

/* What the place takes, by NUMA nodes' ids, of which indexes are made for the hint. */
static int add_place(struct advice_container *to, const struct plan *p,
	const struct sched_place *place, const struct resource_table *names, struct arena *a)
{
	const struct sched_topology *t = p->candidate.node->topology;
	struct advice_amount *amount = arena_array(a, place->nr_amounts, sizeof *amount);

	if (!amount)
		return -ENOMEM;
	*to = (struct advice_container){.name = place->container,
		.distance_x100 = place->distance_x100,
		.nr_amounts = place->nr_amounts,
		.amount = amount};
	for (unsigned z = 0; z < t->nr_zones; z++)
		if (place->zones >> z & 1)
			to->nodes = nodeset_or(to->nodes, nodeset_of(t->zone_id[z]));
	for (unsigned i = 0; i < place->nr_amounts; i++) {
		const struct sched_place_amount *from = &place->amount[i];
		int64_t n = from->resource == RESOURCE_CPU ? quantity_milli(from->q)
							   : quantity_value(from->q);

		amount[i] = (struct advice_amount){t->zone_id[from->zone],
			names->at[from->resource].name, n > 0 ? (uint64_t)n : 0};
	}
	return 0;
}

/* The annotation's value, for the caller to free; NULL: there is nothing to say, or it cannot be
 * said. */
static char *print_advice(const struct bind *b, struct plan *p)
{
	const struct extender *x = b->x;
	struct advice_container *c = arena_array(&p->of.arena, p->placement.nr, sizeof *c);
	char *text = NULL;
	struct err e;
	int rc = c ? 0 : -ENOMEM;

	for (unsigned i = 0; i < p->placement.nr && !rc; i++)
		rc = add_place(&c[i], p, &p->placement.place[i], &x->config.names, &p->of.arena);
	const struct advice hint = {
		.version = ADVICE_VERSION,
		.node = b->ask.node,
		.uid = b->ask.uid,
		.generation = sched_cluster_generation(x->cluster, b->ask.node),
		.fingerprint = sched_cluster_fingerprint(x->cluster, b->ask.node),
		.at_ms = loop_wall_ms(),
		.ttl_s = (unsigned)(x->config.advice_ttl_ms / MS_PER_S),
		.mode = (enum advice_mode)x->config.advice_mode,
		.scope = p->placement.scope,
		.nr_containers = p->placement.nr,
		.container = c,
	};
	if (!rc)
		rc = advice_json_write(&hint, &x->every_node, &text, &e);
	if (rc)
		log_line(LOG_WARN, "hint-unwritten", "error=%s", rc == -ENOMEM ? "-" : e.text);
	return text;
}

/* From here on the pod counts on that node. */
static void assume_bound(struct bind *b, struct plan *p, bool ours)
{
	struct extender *x = b->x;
	const struct sched_taken *taken = NULL;
	size_t nr = 0;

	if (ours)
		taken = sched_placement_taken(
			&p->placement, p->candidate.node->topology->zone_id, &p->of.arena, &nr);
	const struct sched_bound bound = {
		.pod = &p->of.pod.pod,
		.node = b->ask.node,
		.taken = taken,
		.nr_taken = nr,
		.ours = true, /* by us, whatever it carries */
		.pending = true,
	};
	sched_cluster_assume(x->cluster, &bound, loop_wall_ms());
	b->assumed = true;
}

static void post_binding(struct bind *b, struct plan *p)
{
	b->hint = p->placed && b->x->config.advice ? print_advice(b, p) : NULL;
	const struct key_value annotation = {ADVICE_KEY, b->hint};
	const struct binding binding = {
		.ns = b->ask.ns,
		.name = b->ask.name,
		.uid = b->ask.uid,
		.node = b->ask.node,
		.annotation = &annotation,
		.nr_annotations = b->hint != NULL,
	};
	b->body = binding_json_write(&binding);
	if (!b->body) {
		bind_fail(b, BIND_REFUSED, "numafit: the request is not UTF-8");
		return;
	}
	b->how = b->hint ? BOUND_WITH_ADVICE : BOUND_PLAIN;
	assume_bound(b, p, b->hint != NULL);
	post_body(b);
}

/* The decision, once more: the state is another one than when it was made. */

/* Whether the node still has what it had when it was chosen: room, and not spread wider. */
static bool still_fits(struct bind *b, struct plan *p)
{
	const struct kept_node *kept = kept_node_find(b->x->kept, b->ask.uid, b->ask.node);
	const char *why;

	b->score = kept ? (int)kept->score : -1;
	if (sched_plan_filter(p->of.plan, &p->candidate, &why) != SCHED_SUCCESS)
		return false;
	p->placed = p->known &&
		    sched_plan_place(p->of.plan, &p->candidate, &p->of.arena, &p->placement);
	if (p->placed)
		b->zones = decide_zones(&p->candidate, &p->placement);
	if (!kept || !kept->zones)
		return true;
	return p->placed && __builtin_popcountll(b->zones) <= __builtin_popcountll(kept->zones);
}

static void decide_bind(struct bind *b, struct json_t *pod)
{
	struct plan p = {0};
	struct err e;

	if (question_of_known(&p.of, b->x, pod, &e)) {
		bind_fail(b, BIND_UNKNOWN, "numafit: pod %s: %s", b->ask.name, e.text);
		return;
	}
	p.known = decide_candidate(b->x, b->ask.node, &p.node, &p.candidate);
	if (!still_fits(b, &p))
		bind_fail(b, BIND_CONFLICT, "numafit: %s changed since the decision, try again",
			b->ask.node);
	else
		post_binding(b, &p);
	question_fini(&p.of);
}

/* A pod that is not known here, as the API server has it: it is too new for the watch, or there was
 * no room for it. */
static void on_unknown_pod(void *ctx, const struct api_answer *answer)
{
	struct bind *b = ctx;
	struct api_meta meta;

	if (found_by(answer, &meta) != FOUND_POD || !text_equal(meta.uid, b->ask.uid) ||
		*extender_pod_json_node(answer->body)) {
		on_pod_looked_up(b, answer);
		return;
	}
	b->call = NULL;
	if (b->exchange)
		decide_bind(b, answer->body);
	else /* kube-scheduler has given up, and the pod's room with it */
		bind_fail(b, BIND_UNKNOWN, "numafit: pod %s: the client has gone", b->ask.name);
}

static struct bind *bind_of(const struct extender *x, const char *uid)
{
	struct bind *b = x->binds;

	while (b && !text_equal(b->ask.uid, uid))
		b = b->next;
	return b;
}

static void look_up_bound_pod(struct bind *b)
{
	(void)text_copy(b->why, sizeof b->why, "it is not bound");
	look_up_pod(b);
}

int bind_begin(struct extender *x, struct http_exchange *exchange, const struct http_request *r,
	uint64_t since_ns, struct err *e)
{
	struct extender_bind ask;
	struct err another;
	int rc = extender_bind_read(r->body, r->len, &ask, e);

	if (rc)
		return rc;
	struct bind *earlier = bind_of(x, ask.uid);
	if (earlier && earlier->unsettled && text_equal(earlier->ask.node, ask.node) &&
		text_equal(earlier->ask.ns, ask.ns) && text_equal(earlier->ask.name, ask.name)) {
		extender_bind_fini(&ask);
		bind_again(earlier, exchange, since_ns);
		return 0;
	}
	struct bind *b = xcalloc(1, sizeof *b);
	*b = (struct bind){.next = x->binds,
		.at = &x->binds,
		.x = x,
		.exchange = exchange,
		.since_ns = since_ns,
		.ask = ask,
		.score = -1};
	if (b->next)
		b->next->at = &b->next;
	x->binds = b;
	const char *node = sched_cluster_node_of(x->cluster, ask.uid);
	struct json_t *pod = decide_known_pod(x, ask.uid);
	if (earlier)
		bind_fail(b, BIND_UNKNOWN, "numafit: pod %s is being bound to %s", ask.name,
			earlier->ask.node);
	else if (node && text_equal(node, ask.node))
		look_up_bound_pod(b); /* whether that is of this name, too */
	else if (node)
		bind_fail(
			b, BIND_REFUSED, "numafit: pod %s is bound to %s already", ask.name, node);
	else if (!pod)
		get_pod(b, on_unknown_pod);
	else if (decide_is_named(pod, ask.ns, ask.name, &another))
		bind_fail(b, BIND_REFUSED, "numafit: %s", another.text);
	else
		decide_bind(b, pod);
	api_json_free(pod);
	return 0;
}

void bind_gone(struct extender *x, const struct http_exchange *exchange)
{
	for (struct bind *b = x->binds; b; b = b->next)
		if (b->exchange == exchange)
			b->exchange = NULL;
}

size_t bind_count(const struct extender *x)
{
	size_t nr = 0;

	for (const struct bind *b = x->binds; b; b = b->next)
		nr += !b->unsettled;
	return nr;
}

void bind_stop(struct extender *x)
{
	while (x->binds) {
		api_cancel(x->binds->call);
		bind_free(x->binds);
	}
}
