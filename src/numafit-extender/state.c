/* The cluster, followed by watches. */
#include "extender.h"

#include <codec/api_json.h>
#include <io/fault.h>
#include <io/log.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <numafit/version.h>

#include <stdio.h>

enum {
	TICK_MS = 1000,
	ODD_LINES_MAX = 20, /* lines for each kind of object that cannot be read */
	PAGE = 500,
	STATUS_NOT_FOUND = 404,
	OBJECT_BYTES_MAX = 64 << 20,
	BROKEN_MAX_MS = 5 * 60 * 1000,
	LOOK_EVERY_MS = 30 * 1000
};

/* Objects */

/* reason: Kubernetes' word for it. */
static void note_refusal(
	struct extender *x, struct cluster_refusal r, const char *reason, const char *workload)
{
	char quoted[512], pod[512];

	r.time_ms = loop_wall_ms();
	r.kind = cluster_refusal_kind_of(reason);
	x->measured.refusals++;
	if (x->config.avoid)
		sched_avoid_refused(x->avoid, workload, r.node, r.uid, r.time_ms);
	if (x->view)
		cluster_view_refused(x->view, &r);
	log_line(LOG_INFO, "refused", "uid=%s node=%s avoided=%s", log_text(pod, sizeof pod, r.uid),
		log_text(quoted, sizeof quoted, r.node), x->config.avoid ? "yes" : "no");
}

bool line_is_due(uint64_t *said_ns)
{
	enum { AGAIN_S = 60 };
	uint64_t now_ns = loop_monotonic_ns();

	if (*said_ns && now_ns - *said_ns < AGAIN_S * (uint64_t)NS_PER_S)
		return false;
	*said_ns = now_ns;
	return true;
}

/* Who may create pods can have many large ones that no node has room for. */
static void note_crowded_out(struct extender *x, const struct sched_pod *p)
{
	char text[512], pod[512];

	x->measured.pods_crowded_out++;
	if (!line_is_due(&x->crowded_out_said_ns))
		return;
	(void)snprintf(text, sizeof text, "%s/%s", p->ns, p->name);
	log_line(LOG_WARN, "pods-crowded-out",
		"pod=%s effect=\"it is read from the API server when it is bound\" action=\"look "
		"for many or very large pods that wait for a node, and limit such pods in their "
		"namespace by a ResourceQuota\"",
		log_text(pod, sizeof pod, text));
}

/* Until it runs a pod may still be refused; that is counted once. */
static void follow_start(struct extender *x, const struct extender_pod *p, struct json_t *v)
{
	const char *uid = p->pod.uid, *workload;

	if (!*p->node && !p->ended) {
		if (!unbound_put(x->unbound, uid, v))
			note_crowded_out(x, &p->pod);
		return;
	}
	kept_remove(x->kept, uid);
	if (p->running) {
		if (unbound_remove(x->unbound, uid))
			sched_avoid_took(x->avoid, p->workload, p->node);
		return;
	}
	if (!p->ended || unbound_knows(x->unbound, uid)) /* else that was long ago */
		unbound_bind(x->unbound, uid, p->pod.ns, p->workload);
	workload = p->refused ? unbound_refuse(x->unbound, uid, p->pod.ns) : NULL;
	if (workload)
		note_refusal(x,
			(struct cluster_refusal){
				.uid = uid, .ns = p->pod.ns, .pod = p->pod.name, .node = p->node},
			p->refused, workload);
	if (p->ended)
		(void)unbound_remove(x->unbound, uid);
}

/* Whether the pod's binding was seen, and is what has put the hint on it, by somebody who may bind:
 * it was not there before. If there was no room for the pod nobody knows that. */
static bool is_seen_bound(
	const struct extender *x, const struct extender_pod *p, const struct json_t *v)
{
	struct json_t *before = *p->node ? unbound_find(x->unbound, p->pod.uid) : NULL;
	bool seen = before && !extender_pod_json_same_advice(before, v);

	api_json_free(before);
	return seen;
}

/* The node says so itself, also of pods whose sandbox it did not let start. No other one can. */
static int put_event(struct watch *w, struct json_t *v, const struct sched_reader *r, struct err *e)
{
	struct extender *x = w->x;
	struct extender_event event;
	const char *workload = NULL;

	(void)r, (void)e;
	if (!extender_event_json_read(v, &event) ||
		!text_equal(sched_cluster_node_of(x->cluster, event.uid), event.node))
		return 0;
	if (x->view)
		cluster_view_hint(x->view, event.number, event.verdict);
	if (event.refuses)
		workload = unbound_refuse(x->unbound, event.uid, event.ns);
	if (workload)
		note_refusal(x,
			(struct cluster_refusal){.uid = event.uid,
				.ns = event.ns,
				.pod = event.pod,
				.node = event.node},
			event.reason, workload);
	return 0;
}

static int put_pod(struct watch *w, struct json_t *v, const struct sched_reader *r, struct err *e)
{
	struct extender *x = w->x;
	struct extender_pod p;
	int rc = extender_pod_json_read(v, r, &x->every_node, &p, e);

	if (rc)
		return rc;
	bool seen_bound = is_seen_bound(x, &p, v);
	follow_start(x, &p, v);
	if (!*p.node) {
		sched_cluster_note_unbound(x->cluster, p.pod.uid);
		return 0;
	}
	const struct sched_bound b = {
		.pod = &p.pod,
		.node = p.node,
		.taken = p.taken,
		.nr_taken = p.nr_taken,
		.seen_bound = seen_bound,
		.bound_ms = p.bound_ms,
		.ours = p.ours,
		.pending = p.pending,
		.ended = p.ended,
	};
	sched_cluster_put_pod(x->cluster, &b, loop_wall_ms());
	return 0;
}

static int put_node(struct watch *w, struct json_t *v, const struct sched_reader *r, struct err *e)
{
	struct sched_node node;
	int rc = sched_node_json_read(v, r, &node, e);

	if (rc)
		return rc;
	sched_cluster_put_node(w->x->cluster, &node);
	if (w->x->view)
		cluster_view_put_node(w->x->view, node.name,
			extender_node_json_label(v, w->x->config.pool_label));
	return 0;
}

static int put_report(
	struct watch *w, struct json_t *v, const struct sched_reader *r, struct err *e)
{
	struct sched_report report;
	struct api_meta meta;
	int rc = extender_report_json_read(v, r, &report, e);

	api_json_meta(v, &meta);
	if (!rc)
		sched_cluster_put_report(w->x->cluster, meta.name, &report, loop_wall_ms());
	return rc;
}

static int put_numatopology(
	struct watch *w, struct json_t *v, const struct sched_reader *r, struct err *e)
{
	struct volcano_node *node;
	struct api_meta meta;
	void *memory;
	int rc = extender_numatopology_json_read(v, &node, &memory, e);

	(void)r;
	api_json_meta(v, &meta);
	if (!rc)
		sched_cluster_put_numatopology(w->x->cluster, meta.name, node, memory);
	return rc;
}

static void remove_pod(struct extender *x, const struct api_meta *m)
{
	kept_remove(x->kept, m->uid);
	(void)unbound_remove(x->unbound, m->uid);
	sched_cluster_remove_pod(x->cluster, m->uid);
}

static void remove_node(struct extender *x, const struct api_meta *m)
{
	sched_cluster_remove_node(x->cluster, m->name);
	if (x->view)
		cluster_view_remove_node(x->view, m->name);
}

static void remove_report(struct extender *x, const struct api_meta *m)
{
	sched_cluster_remove_report(x->cluster, m->name);
}

static void remove_numatopology(struct extender *x, const struct api_meta *m)
{
	sched_cluster_put_numatopology(x->cluster, m->name, NULL, NULL);
}

/* What is watched. */
static const struct kind {
	const char *path, *query;
	enum sched_cluster_kind in; /* NR_CLUSTER_KINDS: it is no part of the cluster */
	bool is_crd;                /* may be missing */
	int (*put)(struct watch *w, struct json_t *v, const struct sched_reader *r, struct err *e);
	void (*remove)(struct extender *x, const struct api_meta *m);
	const char *unsynced; /* NULL: it is not waited for */
	const char *broken;   /* the same, of one that was known */
} kinds[NR_WATCHES] = {
	[WATCH_NODES] = {"/api/v1/nodes", NULL, CLUSTER_NODES, false, put_node, remove_node,
		"the nodes are not known yet", "the nodes are not known any more"},
	[WATCH_PODS] = {"/api/v1/pods", NULL, CLUSTER_PODS, false, put_pod, remove_pod,
		"the pods are not known yet", "the pods are not known any more"},
	[WATCH_REPORTS] = {"/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies", NULL,
		CLUSTER_REPORTS, true, put_report, remove_report,
		"the NodeResourceTopologies are not known yet",
		"the NodeResourceTopologies are not known any more"},
	[WATCH_NUMATOPOLOGIES] = {"/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies", NULL,
		CLUSTER_NUMATOPOLOGIES, true, put_numatopology, remove_numatopology,
		"the Numatopologies are not known yet",
		"the Numatopologies are not known any more"},
	[WATCH_EVENTS] = {"/api/v1/events", "fieldSelector=reportingComponent%3Dnumafitd",
		NR_CLUSTER_KINDS, false, put_event,
		NULL /* dropped after an hour: what they have shown is still so */, NULL, NULL},
};

static void log_unreadable(struct watch *w, const struct json_t *object, const char *why)
{
	char name[512], text[512];
	struct api_meta meta;

	w->x->measured.unreadable[w->which]++;
	if (w->nr_odd++ >= ODD_LINES_MAX)
		return;
	api_json_meta(object, &meta);
	log_line(LOG_WARN, "object-unreadable", "resource=%s name=%s error=%s",
		extender_watch_name(w->which), log_text(name, sizeof name, meta.name),
		log_text(text, sizeof text, why));
}

static void on_watched_object(void *ctx, enum reflector_change change, struct json_t *object)
{
	struct watch *w = ctx;
	const struct kind *k = &kinds[w->which];
	struct api_meta meta;
	struct arena a;
	struct err e;

	if (change == REFLECTOR_DELETE) {
		api_json_meta(object, &meta);
		if (k->remove)
			k->remove(w->x, &meta);
		return;
	}
	arena_init(&a, OBJECT_BYTES_MAX);
	if (k->put(w, object, &(struct sched_reader){&w->x->config.names, &a}, &e))
		log_unreadable(w, object, e.text);
	arena_fini(&a);
}

/* Lists */

static void on_list_begin(void *ctx)
{
	struct watch *w = ctx;

	w->listed = true;
	if (kinds[w->which].in < NR_CLUSTER_KINDS)
		sched_cluster_begin(w->x->cluster, kinds[w->which].in);
	if (w->which == WATCH_PODS)
		unbound_begin(w->x->unbound);
	if (w->which == WATCH_NODES && w->x->view)
		cluster_view_begin(w->x->view);
}

static void start_watch(struct extender *x, enum extender_watch which);

/* Their first lists come one after another. Nodes' names of resources have to be known before
 * pods', as what pods ask for beside them is bounded; and an event says nothing of a pod that is
 * not known. */
static const enum extender_watch in_order[] = {WATCH_NODES, WATCH_PODS, WATCH_EVENTS};
enum { NR_IN_ORDER = sizeof in_order / sizeof *in_order };

/* NR_WATCHES: none comes behind it. */
static enum extender_watch watch_behind(enum extender_watch which)
{
	for (unsigned i = 0; i + 1 < NR_IN_ORDER; i++)
		if (in_order[i] == which)
			return in_order[i + 1];
	return NR_WATCHES;
}

static bool watch_waits(enum extender_watch which)
{
	for (unsigned i = 1; i < NR_IN_ORDER; i++)
		if (in_order[i] == which)
			return true;
	return false;
}

static void start_watch_behind(struct extender *x, enum extender_watch which)
{
	const enum extender_watch next = watch_behind(which);

	if (next < NR_WATCHES && !x->watch[next].reflector && !x->watch[next].absent)
		start_watch(x, next);
}

static void on_list_end(void *ctx)
{
	struct watch *w = ctx;

	if (kinds[w->which].in < NR_CLUSTER_KINDS)
		sched_cluster_sweep(w->x->cluster, kinds[w->which].in);
	if (w->which == WATCH_PODS)
		unbound_sweep(w->x->unbound);
	if (w->which == WATCH_NODES && w->x->view)
		cluster_view_sweep(w->x->view);
	w->synced = true;
	w->absent = false;
	start_watch_behind(w->x, w->which);
}

/* There is no such resource: then no node has any. If a list has begun since, this is the word of
 * an API server that did not know the resource yet. */
static void on_resource_looked_up(void *ctx, const struct api_answer *answer)
{
	struct watch *w = ctx;

	w->look = NULL;
	if (answer->status != STATUS_NOT_FOUND || w->absent || w->listed)
		return;
	w->absent = true;
	sched_cluster_begin(w->x->cluster, kinds[w->which].in);
	sched_cluster_sweep(w->x->cluster, kinds[w->which].in);
	log_line(LOG_WARN, "resource-absent",
		"resource=%s effect=\"every node passes\" action=\"install its "
		"CustomResourceDefinition, and what reports it on the nodes\"",
		extender_watch_name(w->which));
}

static void look_up_resource(struct watch *w)
{
	char path[512];

	if (w->look)
		return;
	(void)snprintf(path, sizeof path, "%s?limit=1", kinds[w->which].path);
	w->looked_ns = loop_monotonic_ns();
	w->listed = false;
	w->look = api_call(w->x->api, &(struct api_ask){.path = path}, w, on_resource_looked_up);
}

static void on_watch_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct watch *w = ctx;
	char buf[1024];

	log_line(bad ? LOG_WARN : LOG_INFO, event, "text=%s", log_text(buf, sizeof buf, text));
	if (bad && kinds[w->which].is_crd)
		look_up_resource(w);
}

static void on_api_event(void *ctx, bool bad, const char *event, const char *text)
{
	char buf[1024];

	(void)ctx;
	log_line(bad ? LOG_WARN : LOG_INFO, event, "text=%s", log_text(buf, sizeof buf, text));
}

static void start_watch(struct extender *x, enum extender_watch which)
{
	struct watch *w = &x->watch[which];
	bool numatopologies = false; /* some plugin looks at them */
	const struct reflector_options o = {
		.path = kinds[which].path, .query = kinds[which].query, .page = PAGE};
	const struct reflector_handler handler = {
		.ctx = w,
		.begin = on_list_begin,
		.object = on_watched_object,
		.synced = on_list_end,
		.on_event = on_watch_event,
	};

	for (unsigned i = 0; i < x->config.profile.nr; i++)
		numatopologies = numatopologies ||
				 sched_plugin_wants_numatopology(x->config.profile.use[i].plugin);
	w->x = x;
	w->which = which;
	if ((which == WATCH_NUMATOPOLOGIES && !numatopologies) ||
		(which == WATCH_EVENTS && !x->config.avoid))
		w->absent = true;
	else
		w->reflector = reflector_new(x->api, &o, &handler);
}

bool state_follows(const struct extender *x, enum extender_watch which)
{
	const struct watch *w = &x->watch[which];

	return w->reflector ? w->synced && reflector_synced(w->reflector) : w->absent;
}

static void time_broken_watches(struct extender *x)
{
	for (unsigned i = 0; i < NR_WATCHES; i++) {
		struct watch *w = &x->watch[i];

		if (!w->synced || w->absent || state_follows(x, (enum extender_watch)i))
			w->broken_ns = 0;
		else if (!w->broken_ns)
			w->broken_ns = loop_monotonic_ns();
	}
}

/* An answer of before may have said nothing, and the watch says what is wrong only once. */
static void look_up_again(struct extender *x)
{
	const uint64_t every_ms = fault_time_ms("NUMAFIT_FAULT_LOOK_MS", LOOK_EVERY_MS);

	for (unsigned i = 0; i < NR_WATCHES; i++) {
		struct watch *w = &x->watch[i];

		if (w->looked_ns && !w->absent && !state_follows(x, (enum extender_watch)i) &&
			(loop_monotonic_ns() - w->looked_ns) / NS_PER_MS >= every_ms)
			look_up_resource(w);
	}
}

static bool is_long_broken(const struct watch *w)
{
	return w->broken_ns && (loop_monotonic_ns() - w->broken_ns) / NS_PER_MS >=
				       fault_time_ms("NUMAFIT_FAULT_WATCH_MS", BROKEN_MAX_MS);
}

static void on_tick(void *ctx)
{
	struct extender *x = ctx;
	int64_t now_ms = loop_wall_ms();

	time_broken_watches(x);
	look_up_again(x);
	bind_settle(x);
	sched_cluster_expire(x->cluster, now_ms);
	kept_expire(x->kept, now_ms);
	loop_timer_set(x->tick, TICK_MS);
}

int state_start(struct extender *x, struct err *e)
{
	const struct api_options o = {
		.kubeconfig = x->config.kubeconfig,
		.context = x->config.context,
		.user_agent = "numafit-extender/" NUMAFIT_VERSION,
		.timeout_ms = (unsigned)x->config.api_timeout_ms,
		.on_event = on_api_event,
	};

	extender_every_node(&x->every_node);
	x->cluster = sched_cluster_new(&x->config.cluster, &x->config.names);
	x->avoid = sched_avoid_new();
	x->kept = kept_new();
	x->unbound = unbound_new();
	if (*x->config.ui_address)
		x->view = cluster_view_new((uint64_t)loop_wall_ms());
	x->api = api_new(x->loop, &o, e);
	if (!x->api)
		return err_add(e, -e->code, "API server");
	for (unsigned i = 0; i < NR_WATCHES; i++)
		if (!watch_waits((enum extender_watch)i))
			start_watch(x, (enum extender_watch)i);
	x->tick = loop_timer_new(x->loop, on_tick, x);
	loop_timer_set(x->tick, TICK_MS);
	return 0;
}

void state_stop(struct extender *x)
{
	for (unsigned i = 0; i < NR_WATCHES; i++) {
		reflector_close(x->watch[i].reflector);
		api_cancel(x->watch[i].look);
	}
	if (x->tick)
		loop_timer_close(x->tick);
	api_free(x->api);
	unbound_free(x->unbound);
	kept_free(x->kept);
	sched_avoid_free(x->avoid);
	sched_cluster_free(x->cluster);
	cluster_view_free(x->view);
}

bool state_ready(const struct extender *x, const char **why)
{
	const char *missing = NULL;

	for (unsigned i = 0; i < NR_WATCHES && !missing; i++)
		if (kinds[i].unsynced && !x->watch[i].synced && !x->watch[i].absent)
			missing = kinds[i].unsynced;
		else if (is_long_broken(&x->watch[i]))
			missing = kinds[i].broken;
	if (missing)
		*why = missing;
	return !missing;
}
