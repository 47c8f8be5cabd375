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

enum {
	STATUS_OK = 200,
	STATUS_OTHER = 300,
	STATUS_FORBIDDEN = 403,
	STATUS_NOT_FOUND = 404,
};
enum { ERROR_BYTES = 512, ZONES_TEXT_MAX = CPUSET_TEXT_MAX };

/* One request, until the API server has said what became of it. */
struct bind {
	struct bind *next, **at;
	struct extender *x;
	struct http_exchange *exchange; /* NULL: the client is gone */
	uint64_t since_ns;
	struct extender_bind ask;
	struct api_call *call;
	enum extender_bound how;
	bool assumed;
	bool unsettled; /* answered, but the API server could not be asked what became of it */
	uint64_t zones; /* by the NUMA nodes' ids */
	int score;      /* that the scheduler got; -1: not from us */
	char why[ERROR_BYTES]; /* what the API server has said against it */
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

/* error "": it is bound. */
static void bind_finish(struct bind *b, enum extender_bound how, const char *error)
{
	struct extender *x = b->x;

	if (!*error) {
		sched_cluster_confirm(x->cluster, b->ask.uid);
		kept_remove(x->kept, b->ask.uid);
	} else if (b->assumed) {
		sched_cluster_forget(x->cluster, b->ask.uid);
	}
	if (b->unsettled)
		log_bind(b, b->how, error); /* counted and answered before */
	else
		answer_bind(b, how, error);
	bind_free(b);
	if (x->stopping && !bind_count(x))
		loop_stop(x->loop);
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

/* kube-scheduler is not kept waiting, but the pod may be bound: its room stays its own until the
 * API server has said that it is not. Else the next pod would be given the same CPUs. One that
 * forbids to look may do so for good; then assumeTTL is the end. */
static void leave_unsettled(struct bind *b, const struct api_answer *answer)
{
	char error[ERROR_BYTES];

	if (!b->unsettled) {
		(void)snprintf(error, sizeof error,
			"numafit: binding pod %s: %s; whether it is bound is looked up later",
			b->ask.name, answer->message);
		answer_bind(b, BIND_UNKNOWN, error);
	}
	b->unsettled = true;
	if (answer->status != STATUS_FORBIDDEN)
		sched_cluster_renew(b->x->cluster, b->ask.uid, loop_wall_ms());
	if (b->x->stopping && !bind_count(b->x))
		loop_stop(b->x->loop);
}

/* The pod may be bound there by now, perhaps by an attempt of ours whose answer was lost. */
static void on_pod_looked_up(void *ctx, const struct api_answer *answer)
{
	bool is_known = is_ok(answer) && answer->body;
	struct bind *b = ctx;
	struct api_meta meta;

	b->call = NULL;
	if (b->assumed && !is_known && answer->status != STATUS_NOT_FOUND) {
		leave_unsettled(b, answer);
		return;
	}
	if (!is_known) {
		bind_fail(b, BIND_UNKNOWN, "numafit: binding pod %s: %s", b->ask.name,
			answer->message);
		return;
	}
	api_json_meta(answer->body, &meta);
	const char *node = extender_pod_json_node(answer->body);
	if (!text_equal(meta.uid, b->ask.uid))
		bind_fail(b, BIND_REFUSED, "numafit: pod %s is another one by now", b->ask.name);
	else if (text_equal(node, b->ask.node))
		bind_finish(b, BOUND_ALREADY, "");
	else if (*node)
		bind_fail(b, BIND_REFUSED, "numafit: pod %s is bound to %s already", b->ask.name,
			node);
	else
		bind_fail(b, BIND_REFUSED, "numafit: binding pod %s: %s", b->ask.name, b->why);
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

static void look_up_pod(struct bind *b, const char *why)
{
	char path[API_PATH_MAX];

	(void)text_copy(b->why, sizeof b->why, why);
	pod_path(b, path, "");
	b->call = api_call(b->x->api, &(struct api_ask){.path = path}, b, on_pod_looked_up);
}

/* The watch, or time, may have settled it first. */
static void settle_bind(struct bind *b)
{
	const char *node = sched_cluster_node_of(b->x->cluster, b->ask.uid);

	if (node && text_equal(node, b->ask.node))
		bind_finish(b, BOUND_ALREADY, "");
	else if (!sched_cluster_is_assumed(b->x->cluster, b->ask.uid))
		bind_fail(b, BIND_UNKNOWN,
			"numafit: binding pod %s: not bound to %s within assumeTTL", b->ask.name,
			b->ask.node);
	else
		look_up_pod(b, "it was not bound");
}

void bind_settle(struct extender *x)
{
	for (struct bind *b = x->binds, *next; b; b = next) {
		next = b->next;
		if (b->unsettled && !b->call)
			settle_bind(b);
	}
}

/* Whatever the error: the request may have been sent twice, and the first may have been carried
 * out. */
static void on_bound(void *ctx, const struct api_answer *answer)
{
	struct bind *b = ctx;

	b->call = NULL;
	if (is_ok(answer))
		bind_finish(b, b->how, "");
	else
		look_up_pod(b, answer->message);
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
	char *hint = p->placed && b->x->config.advice ? print_advice(b, p) : NULL;
	const struct key_value annotation = {ADVICE_KEY, hint};
	const struct binding binding = {
		.ns = b->ask.ns,
		.name = b->ask.name,
		.uid = b->ask.uid,
		.node = b->ask.node,
		.annotation = &annotation,
		.nr_annotations = hint != NULL,
	};
	char *body = binding_json_write(&binding), path[API_PATH_MAX];

	if (body) {
		b->how = hint ? BOUND_WITH_ADVICE : BOUND_PLAIN;
		assume_bound(b, p, hint != NULL);
		pod_path(b, path, "/binding");
		b->call = api_call(b->x->api,
			&(struct api_ask){
				.method = "POST", .path = path, .body = body, .len = strlen(body)},
			b, on_bound);
		free(body);
	} else {
		bind_fail(b, BIND_REFUSED, "numafit: the request is not UTF-8");
	}
	free(hint);
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

	if (question_init(&p.of, b->x, pod, &e)) {
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

int bind_begin(struct extender *x, struct http_exchange *exchange, const struct http_request *r,
	uint64_t since_ns, struct err *e)
{
	struct extender_bind ask;
	bool is_under_way = false;
	struct err another;
	int rc = extender_bind_read(r->body, r->len, &ask, e);

	if (rc)
		return rc;
	for (const struct bind *o = x->binds; o; o = o->next)
		is_under_way = is_under_way || text_equal(o->ask.uid, ask.uid);
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
	if (is_under_way)
		bind_fail(b, BIND_UNKNOWN, "numafit: pod %s is being bound", ask.name);
	else if (node && text_equal(node, ask.node))
		look_up_pod(b, "it is not bound"); /* whether that is of this name, too */
	else if (node)
		bind_fail(
			b, BIND_REFUSED, "numafit: pod %s is bound to %s already", ask.name, node);
	else if (!pod)
		bind_fail(b, BIND_UNKNOWN, "numafit: pod %s is not known yet, try again", ask.name);
	else if (decide_same_pod(x, ask.uid, ask.ns, ask.name, &another))
		bind_fail(b, BIND_REFUSED, "numafit: %s", another.text);
	else
		decide_bind(b, pod);
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
