/* The API server's side: built when the settings want it. Nothing of it is ever waited for. */
#include "cluster.h"
#include "cluster_state.h"
#include "over.h"
#include "claims.h"
#include "decision_log.h"
#include "services.h"

#include <apiserver/path.h>
#include <codec/api_json.h>
#include <dra-driver/driver.h>
#include <io/log.h>
#include <numafit/diagnosis.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <numafit/version.h>

#include <string.h>

/* How often the node object is looked at: its labels may choose other settings. */
enum {
	LOOK_EVERY_MS = 5 * 60 * 1000,
	LOOK_AGAIN_MIN_MS = 250,
	LOOK_AGAIN_MAX_MS = 30000,
	STATUS_OK = 200
};
/* How often credentials that cannot be used are tried; a file is written in pieces. */
enum { TRY_AGAIN_MIN_MS = 250, TRY_AGAIN_MAX_MS = 10000, SETTLE_MS = 100 };
enum { REMEDIES_BURST = 25 }; /* then one a second */
enum { LABELS_BYTES = 64 << 10 /* 4,096 of them */ };

/* The node object */

static void log_node_unknown(struct cluster *c, const struct api_answer *answer)
{
	char why[1024];

	if (!c->logged_node)
		log_line(LOG_WARN, "node-unknown",
			"node=%s status=%d text=%s action=\"see whether nodeName is the node's "
			"name, and whether numafitd may get nodes\"",
			c->d->node_name, answer->status,
			log_text(why, sizeof why, answer->message));
	c->logged_node = true;
}

static void take_labels(struct cluster *c, const struct json_t *node)
{
	const struct key_value *labels;
	struct arena a;
	size_t nr;

	arena_init(&a, LABELS_BYTES);
	if (api_json_labels(node, &a, &labels, &nr) == 0)
		reload_set_labels(c->d, labels, nr);
	arena_fini(&a);
}

static void on_node(void *ctx, const struct api_answer *answer)
{
	struct cluster *c = ctx;
	bool ok = answer->status == STATUS_OK && answer->body;
	struct api_meta meta;

	c->looking = NULL;
	if (!ok) {
		loop_timer_set(c->look, backoff_next(&c->again, answer->after_ms));
		log_node_unknown(c, answer);
		return;
	}
	loop_timer_set(c->look, LOOK_EVERY_MS);
	backoff_reset(&c->again);
	c->logged_node = false;
	api_json_meta(answer->body, &meta);
	if (!text_equal(c->node_uid, meta.uid)) {
		(void)text_copy(c->node_uid, sizeof c->node_uid, meta.uid);
		reports_changed(c);
	}
	take_labels(c, answer->body);
	reload_set_kubelet(c->d, api_json_kubelet_version(answer->body));
}

static void look_at_node(void *ctx)
{
	struct cluster *c = ctx;
	char path[OBJECT_PATH_MAX];
	struct text t;

	if (c->looking)
		return;
	text_init(&t, path, sizeof path);
	text_add(&t, "/api/v1/nodes/");
	path_add_escaped(&t, c->d->node_name);
	c->looking = api_call(c->api, &(struct api_ask){.path = path}, c, on_node);
}

/* What decisions come to */

/* Why the container, or the pod, is refused, in its events; and with refusalAction evict the pod
 * goes, if another one comes for it. */
static void emit_refusal(struct cluster *c, struct pod_event *event)
{
	const struct known_pod *pod =
		c->d->api_pods ? api_pods_find(c->d->api_pods, event->uid) : NULL;

	if (c->events)
		events_emit(c->events, event);
	if (c->evictions && pod && pod_owner_makes_another(pod->owner))
		evict_pod(c->evictions, event->ns, event->pod, event->uid);
}

static struct pod_event event_of(
	const struct pod *pod, const char *container, enum container_kind kind)
{
	return (struct pod_event){
		.rank = EVENT_OF_ADVICE,
		.ns = pod->ns,
		.pod = pod->name,
		.uid = pod->uid,
		.container = container,
		.kind = kind,
	};
}

/* " for NUMA nodes 2" or, of a hint that names CPUs and did not get them, " for CPUs 20-23,52-55"
 */
static void add_asked(struct text *t, const struct admit_question *q, const struct decision *dec,
	const struct node_ids *ids)
{
	const struct advice_ask *ask = q->container ? q->container->ask.advice : NULL;
	char nodes[NODESET_TEXT_MAX], cpus[CPUSET_TEXT_MAX];

	if (dec->advice.verdict == ADVICE_REPAIRED_CPUS && ask)
		text_add(t, " for CPUs %s", cpuset_format(&ask->cpus, cpus, sizeof cpus));
	else if (!nodeset_empty(dec->advice.asked))
		text_add(t, " for NUMA nodes %s",
			nodeset_format(dec->advice.asked, ids, nodes, sizeof nodes));
}

static void add_given(struct text *t, const struct decision *dec, const struct node_ids *ids)
{
	char nodes[NODESET_TEXT_MAX], cpus[CPUSET_TEXT_MAX];

	if (!dec->admit || nodeset_empty(dec->advice.given))
		return;
	text_add(t, ", given are ");
	if (dec->advice.verdict == ADVICE_REPAIRED_CPUS && dec->exclusive)
		text_add(t, "CPUs %s of NUMA nodes ", cpuset_format(&dec->cpus, cpus, sizeof cpus));
	else if (dec->advice.verdict == ADVICE_REPAIRED_CPUS)
		text_add(t, "CPUs of the shared pool, and NUMA nodes ");
	text_add(t, "%s", nodeset_format(dec->advice.given, ids, nodes, sizeof nodes));
}

static void emit_advice_event(struct cluster *c, const struct admit_question *q,
	const struct decision *dec, struct pod_event *event)
{
	const struct advice_result *h = &dec->advice;
	const struct node_ids *ids = &c->d->topo.ids;
	char message[EVENT_MESSAGE_MAX];
	struct text t;

	if (!c->events || !h->looked_at || h->verdict <= ADVICE_ACCEPTED)
		return;
	text_init(&t, message, sizeof message);
	text_add(&t, "the scheduler's hint");
	add_asked(&t, q, dec, ids);
	text_add(&t, " is %s", advice_verdict_words[h->verdict]);
	add_given(&t, dec, ids);
	event->reason = "NUMAHint";
	event->warning = advice_is_rejection(h->verdict);
	event->message = message;
	event->verdict = h->verdict;
	events_emit(c->events, event);
	event->verdict = ADVICE_NONE;
}

static void emit_wish_event(struct cluster *c, const struct request *req, struct pod_event *event)
{
	if (!c->events || !req || !request_lacks_memory_policy(req))
		return;
	event->reason = "NUMAWish";
	event->warning = true;
	event->message = request_no_memory_policy_text;
	events_emit(c->events, event);
}

/* The refusal with what would help, which is looked for now that the answer has gone out; or, where
 * there was much of that lately, as it was answered. */
static const char *refusal_with_remedies(struct cluster *c, const struct admit_question *q,
	const struct decision *dec, const char *refusal, char line[DIAGNOSIS_LINE_MAX])
{
	struct diagnosis why;

	if (!c->events || rate_when(&c->remedies, loop_monotonic_ns()) > loop_monotonic_ns())
		return refusal;
	rate_take(&c->remedies, loop_monotonic_ns());
	diagnose_with_remedies(q, dec, REMEDIES_QUICKLY, NULL, &why);
	return diagnosis_line(&why, dec, q, true, line, DIAGNOSIS_LINE_MAX);
}

void cluster_note_decision(struct daemon *d, const struct admit_question *q,
	const struct decision *dec, const char *refusal)
{
	const struct ask *ask = q->container ? &q->container->ask : NULL;
	const struct pod *pod = q->container ? &q->container->pod : q->pod;
	struct cluster *c = d->cluster;
	char line[DIAGNOSIS_LINE_MAX];

	if (!c)
		return;
	struct pod_event event =
		event_of(pod, ask ? ask->name : NULL, ask ? ask->kind : CONTAINER_APP);
	emit_advice_event(c, q, dec, &event);
	if (dec->admit)
		emit_wish_event(c, q->container, &event);
	if (dec->admit && c->evictions)
		evict_forget(c->evictions, pod->uid);
	if (dec->admit)
		return;
	event.rank = EVENT_OF_REFUSAL;
	event.warning = true;
	event.reason = dec->reason ? dec->reason : "NUMARefused";
	event.about = dec->message; /* what would help may be another thing each time */
	event.message = refusal_with_remedies(c, q, dec, refusal, line);
	emit_refusal(c, &event);
}

void cluster_note_ignored_wish(const struct daemon *d, const struct pod *pod, const struct ask *ask,
	const char *annotation, const char *odd)
{
	char message[EVENT_MESSAGE_MAX];
	struct text t;

	if (!d->cluster || !d->cluster->events)
		return;
	struct pod_event event =
		event_of(pod, ask ? ask->name : NULL, ask ? ask->kind : CONTAINER_APP);
	text_init(&t, message, sizeof message);
	if (odd)
		text_add(&t, "%s", odd);
	else
		text_add(&t,
			"annotation %.128s is not followed: podWishes.allowed of this node does not "
			"allow it",
			annotation);
	event.reason = "NUMAWish";
	event.warning = true;
	event.message = message;
	events_emit(d->cluster->events, &event);
}

void cluster_note_moves(struct daemon *d, const struct pod *pod, const char *words)
{
	char message[EVENT_MESSAGE_MAX];
	struct text t;

	if (!d->cluster || !d->cluster->events)
		return;
	struct pod_event event = event_of(pod, NULL, CONTAINER_APP);
	text_init(&t, message, sizeof message);
	text_add(&t, "fits after %s", words);
	event.reason = "NUMARoomByMoving";
	event.message = message;
	events_emit(d->cluster->events, &event);
}

void cluster_note_change(struct daemon *d)
{
	if (!d->cluster)
		return;
	reports_changed(d->cluster);
	annotations_changed(d->cluster);
}

void cluster_note_pod_gone(struct daemon *d, const char *pod_uid)
{
	if (d->cluster && d->cluster->evictions)
		evict_forget(d->cluster->evictions, pod_uid);
}

/* Metrics */

static struct metrics_object figures_of_object(const struct apply *p)
{
	struct apply_counters c;

	if (!p)
		return (struct metrics_object){0};
	apply_counters(p, &c);
	return (struct metrics_object){
		.on = true,
		.written = c.written,
		.conflicts = c.conflicts,
		.failed = c.failed,
		.lag_ns = c.lag_ms * NS_PER_MS,
		.behind_ns = c.behind_ms * NS_PER_MS,
	};
}

void cluster_metrics(const struct daemon *d, struct metrics_cluster *out)
{
	const struct cluster *c = d->cluster;
	struct evictions_counters evictions = {0};
	struct annotator_counters observed = {0};
	struct events_counters events = {0};

	*out = (struct metrics_cluster){0};
	if (!c)
		return;
	if (c->events)
		events_counters(c->events, &events);
	if (c->evictions)
		evictions_counters(c->evictions, &evictions);
	if (c->annotator)
		annotator_counters(c->annotator, &observed);
	*out = (struct metrics_cluster){
		.object = {[OBJECT_NRT] = figures_of_object(c->nrt),
			[OBJECT_NUMATOPOLOGY] = figures_of_object(c->numatopology)},
		.events = c->events,
		.evictions = c->evictions,
		.annotations = c->annotator,
		.event = {events.sent, events.failed, events.dropped},
		.eviction = {evictions.evicted, evictions.failed, evictions.dropped},
		.observed = {observed.written, observed.failed, observed.dropped},
	};
}

/* Life */

static void on_api_pod(void *ctx, const struct known_pod *pod)
{
	struct cluster *c = ctx;

	services_pod_changed(c->d, pod);
	annotations_changed(c);
}

static void on_api_pods_gone(void *ctx)
{
	struct cluster *c = ctx;

	services_pods_listed(c->d);
}

/* It may change while we run. */
static void follow_refusal_action(struct cluster *c)
{
	const struct settings *s = &c->d->settings;
	bool wanted = s->refusal_action == REFUSAL_EVICT && s->mode == MODE_MANAGE;

	if (wanted && !c->evictions)
		c->evictions = evictions_new(c->d->loop, c->api, &(struct evictions_options){0},
			&(struct evictions_handler){c, log_event});
	else if (!wanted)
		evictions_close(steal(c->evictions));
}

static void start_parts(struct cluster *c)
{
	const struct settings *s = &c->d->settings;
	struct daemon *d = c->d;

	c->look = loop_timer_new(d->loop, look_at_node, c);
	c->remedies = (struct rate){.burst = REMEDIES_BURST, .every_ns = NS_PER_S};
	c->again = (struct backoff){.min_ms = LOOK_AGAIN_MIN_MS, .max_ms = LOOK_AGAIN_MAX_MS};
	c->pods_handler = (struct api_pods_handler){c, on_api_pod, on_api_pods_gone, log_event};
	if (s->pods_watch)
		d->api_pods = api_pods_new(c->api, d->node_name, &c->pods_handler);
	claims_watch(d, c->api);
	dra_watch(d->dra, c->api);
	if (s->events && s->mode == MODE_MANAGE)
		c->events =
			events_new(d->loop, c->api, &(struct events_options){.node = d->node_name},
				&(struct events_handler){c, log_event});
	follow_refusal_action(c);
	reports_start(c);
	annotations_start(c);
	loop_timer_set(c->look, 0);
}

static bool cluster_is_wanted(const struct daemon *d)
{
	const struct settings *s = &d->settings;

	return s->nrt || s->numatopology || s->pods_watch || s->events || d->claims || d->dra ||
	       s->refusal_action == REFUSAL_EVICT || reload_wants_labels(d);
}

/* Whatever is the matter, containers are placed: a file may come later or be half-written, and one
 * that is wrong is corrected without ending who places them. */
static void note_unusable(struct cluster *c, const struct err *e)
{
	char why[2 * sizeof e->text];

	if (!text_equal(c->unusable.text, e->text)) {
		backoff_reset(&c->try_again); /* somebody is at it */
		log_line(LOG_ERROR, "credentials-unusable",
			"error=%s action=\"repair it, or set apiServer.kubeconfig to another one: "
			"it is tried again when it changes, and every %d s; until then containers "
			"are placed and nothing is sent to the API server\"",
			log_text(why, sizeof why, e->text), TRY_AGAIN_MAX_MS / MS_PER_S);
	}
	c->unusable = *e;
	c->failures++;
}

static void try_credentials(void *ctx)
{
	struct cluster *c = ctx;
	const struct settings *s = &c->d->settings;
	const struct api_options o = {
		.kubeconfig = s->kubeconfig,
		.context = s->kube_context,
		.user_agent = "numafitd/" NUMAFIT_VERSION,
		.on_event = log_event,
	};
	struct err e = {0};

	c->api = api_new(c->d->loop, &o, &e);
	if (!c->api) {
		note_unusable(c, &e);
		loop_timer_set(c->trial, backoff_next(&c->try_again, 0));
		return;
	}
	if (c->unusable.code)
		log_line(LOG_INFO, "credentials-usable", "after=%llu",
			(unsigned long long)c->failures);
	c->unusable = (struct err){0};
	file_watch_stop(&c->file);
	start_parts(c);
}

static void credentials_touched(void *ctx)
{
	const struct cluster *c = ctx;

	loop_timer_set(c->trial, SETTLE_MS);
}

void cluster_start(struct daemon *d)
{
	const char *kubeconfig = d->settings.kubeconfig;
	struct cluster *c;

	claims_start(d);
	if (d->cluster || !cluster_is_wanted(d))
		return;
	c = d->cluster = xcalloc(1, sizeof *c);
	c->d = d;
	c->try_again = (struct backoff){.min_ms = TRY_AGAIN_MIN_MS, .max_ms = TRY_AGAIN_MAX_MS};
	c->trial = loop_timer_new(d->loop, try_credentials, c);
	/* before they are read: what comes in between is seen. Of the several files that there may
	 * be, the one that names the others, or comes with them. */
	(void)file_watch_start(&c->file, d->loop,
		*kubeconfig ? kubeconfig : API_SERVICE_DIRECTORY "/token", credentials_touched, c);
	try_credentials(c);
}

bool cluster_status(const struct daemon *d, struct status_apiserver *out)
{
	const struct cluster *c = d->cluster;
	uint64_t unreadable = 0;

	if (!c)
		return false;
	*out = (struct status_apiserver){.unusable = c->unusable.code ? c->unusable.text : NULL};
	if (c->api)
		out->unusable = api_unreadable(c->api, &unreadable);
	out->failures = c->failures + unreadable;
	return true;
}

void cluster_stop(struct daemon *d)
{
	struct cluster *c = d->cluster;

	if (!c)
		return;
	d->cluster = NULL;
	loop_timer_close(c->trial);
	file_watch_stop(&c->file);
	api_cancel(c->looking);
	loop_timer_close(c->look);
	reports_stop(c);
	annotations_stop(c);
	events_close(c->events);
	evictions_close(c->evictions);
	api_pods_close(steal(d->api_pods));
	claims_stop(d);
	dra_unwatch(d->dra);
	api_free(c->api);
	free(c);
}

/* Those that the reports copy, and what decides whether there are evictions and annotations. */
void cluster_settings_changed(struct daemon *d)
{
	if (!d->cluster || !d->cluster->api)
		return;
	follow_refusal_action(d->cluster);
	reports_settings_changed(d->cluster);
	annotations_settings_changed(d->cluster);
}
