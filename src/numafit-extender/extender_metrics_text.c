#include <numafit-extender/extender_metrics_text.h>

#include <inttypes.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>

enum { TEXT_BYTES = 64 << 10, SECONDS_MAX = 32 };

static const char *const verb_names[] = {[VERB_FILTER] = "filter",
	[VERB_PRIORITIZE] = "prioritize",
	[VERB_PREEMPT] = "preempt",
	[VERB_BIND] = "bind"};
static const char *const result_names[] = {
	[RESULT_OK] = "ok", [RESULT_BAD] = "bad-request", [RESULT_NOT_READY] = "not-ready"};
static const char *const bound_names[] = {[BOUND_WITH_ADVICE] = "bound-with-hint",
	[BOUND_PLAIN] = "bound",
	[BOUND_ALREADY] = "already-bound",
	[BIND_CONFLICT] = "conflict",
	[BIND_REFUSED] = "refused",
	[BIND_UNKNOWN] = "unknown"};
static const char *const watch_names[] = {[WATCH_NODES] = "nodes",
	[WATCH_PODS] = "pods",
	[WATCH_REPORTS] = "noderesourcetopologies",
	[WATCH_NUMATOPOLOGIES] = "numatopologies",
	[WATCH_EVENTS] = "events"};

const char *extender_verb_name(unsigned verb)
{
	return verb_names[verb];
}

const char *extender_watch_name(unsigned watch)
{
	return watch_names[watch];
}

static void extender_begin_metric(
	struct text *t, const char *name, const char *kind, const char *help)
{
	text_add(t, "# HELP numafit_extender_%s %s\n# TYPE numafit_extender_%s %s\n", name, help,
		name, kind);
}

static void extender_add_sample(
	struct text *t, const char *name, const char *kind, uint64_t value, const char *help)
{
	extender_begin_metric(t, name, kind, help);
	text_add(t, "numafit_extender_%s %" PRIu64 "\n", name, value);
}

/* {label="names[i]"} values[i] */
static void add_each(struct text *t, const char *name, const char *label, const char *const *names,
	const uint64_t *value, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		text_add(t, "numafit_extender_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, names[i],
			value[i]);
}

/* Exactly, without floating point. */
static const char *extender_seconds(char buf[SECONDS_MAX], uint64_t ns)
{
	struct text t;

	text_init(&t, buf, SECONDS_MAX);
	text_add(&t, "%" PRIu64 ".%09" PRIu64, ns / NS_PER_S, ns % NS_PER_S);
	return buf;
}

static void extender_add_histogram(struct text *t, const char *verb, const struct histogram *h)
{
	static const char name[] = "numafit_extender_request_duration_seconds";
	char text[SECONDS_MAX];
	uint64_t nr = 0;

	for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
		nr += h->within[i];
		text_add(t, "%s_bucket{verb=\"%s\",le=\"%s\"} %" PRIu64 "\n", name, verb,
			extender_seconds(text, histogram_bound_ns(i)), nr);
	}
	nr += h->beyond;
	text_add(t, "%s_bucket{verb=\"%s\",le=\"+Inf\"} %" PRIu64 "\n", name, verb, nr);
	text_add(t, "%s_sum{verb=\"%s\"} %s\n", name, verb, extender_seconds(text, h->sum_ns));
	text_add(t, "%s_count{verb=\"%s\"} %" PRIu64 "\n", name, verb, nr);
}

static void add_requests(struct text *t, const struct extender_metrics *m)
{
	extender_begin_metric(t, "requests_total", "counter", "Requests of schedulers.");
	for (unsigned v = 0; v < NR_EXTENDER_VERBS; v++)
		for (unsigned r = 0; r < NR_EXTENDER_RESULTS; r++)
			text_add(t,
				"numafit_extender_requests_total{verb=\"%s\",result=\"%s\"} "
				"%" PRIu64 "\n",
				verb_names[v], result_names[r], m->requests[v][r]);
	extender_begin_metric(t, "request_duration_seconds", "histogram",
		"From the whole request to its answer; of bind, the API server's share included.");
	for (unsigned v = 0; v < NR_EXTENDER_VERBS; v++)
		extender_add_histogram(t, verb_names[v], &m->duration[v]);
	extender_begin_metric(t, "nodes_asked_total", "counter", "Nodes in requests.");
	add_each(t, "nodes_asked_total", "verb", verb_names, m->nodes_asked, VERB_BIND);
	extender_add_sample(t, "nodes_refused_total", "counter", m->nodes_refused,
		"Nodes that filter left out.");
	extender_add_sample(t, "requests_crowded_out_total", "counter", m->crowded_out,
		"Requests answered with 503, as others held maxHeldBytes.");
	extender_add_sample(t, "clients_refused_total", "counter", m->strangers,
		"Handshakes with a certificate that is not taken.");
	extender_begin_metric(t, "connections_closed_total", "counter",
		"Connections closed for others, or because they were too slow.");
	text_add(t,
		"numafit_extender_connections_closed_total{reason=\"crowded\"} %" PRIu64 "\n"
		"numafit_extender_connections_closed_total{reason=\"slow\"} %" PRIu64 "\n",
		m->closed_crowded, m->closed_slow);
}

static void add_watches(struct text *t, const struct extender_metrics *m)
{
	uint64_t synced[NR_WATCHES];

	for (unsigned i = 0; i < NR_WATCHES; i++)
		synced[i] = m->synced[i];
	extender_begin_metric(t, "watch_synced", "gauge",
		"Whether the API server's list is known; 1 where it is not asked for.");
	add_each(t, "watch_synced", "resource", watch_names, synced, NR_WATCHES);
	extender_begin_metric(
		t, "objects_unreadable_total", "counter", "Objects that could not be read.");
	add_each(t, "objects_unreadable_total", "resource", watch_names, m->unreadable, NR_WATCHES);
}

static void add_state(struct text *t, const struct extender_metrics *m)
{
	extender_add_sample(t, "nodes", "gauge", m->cluster.nodes, "Nodes that are known.");
	extender_add_sample(
		t, "topologies", "gauge", m->cluster.reports, "NodeResourceTopologies.");
	extender_add_sample(t, "pods", "gauge", m->cluster.pods, "Bound pods that have not ended.");
	extender_add_sample(t, "pods_unreported", "gauge", m->cluster.waiting,
		"Bound pods that their node's report does not contain yet.");
	extender_add_sample(t, "nodes_stale", "gauge", m->cluster.stale,
		"Nodes whose report cannot be relied upon for now.");
	extender_add_sample(t, "plans_kept", "gauge", m->kept,
		"Pods whose decision is kept for their binding.");
	extender_add_sample(t, "avoided", "gauge", m->avoided,
		"Workloads and nodes that are kept apart after a refusal.");
	extender_add_sample(
		t, "refusals_total", "counter", m->refusals, "Pods that their node refused.");
}

static void add_process(struct text *t, const struct extender_metrics *m)
{
	char text[SECONDS_MAX];

	text_add(t,
		"# HELP process_cpu_seconds_total User and system time.\n"
		"# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total %s\n",
		extender_seconds(text, m->cpu_ns));
	text_add(t,
		"# HELP process_resident_memory_bytes Resident memory.\n"
		"# TYPE process_resident_memory_bytes gauge\n"
		"process_resident_memory_bytes %" PRIu64 "\n",
		m->resident_bytes);
	text_add(t,
		"# HELP process_start_time_seconds Start, since the epoch.\n"
		"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %s\n",
		extender_seconds(text, m->start_ns));
}

char *extender_metrics_text(const struct extender_metrics *m, size_t *len)
{
	struct text t;

	text_init(&t, xcalloc(1, TEXT_BYTES), TEXT_BYTES);
	extender_begin_metric(&t, "build_info", "gauge", "Its version.");
	text_add(&t, "numafit_extender_build_info{version=\"%s\"} 1\n", m->version);
	add_requests(&t, m);
	extender_begin_metric(&t, "binds_total", "counter", "Bindings, by what came of them.");
	add_each(&t, "binds_total", "result", bound_names, m->binds, NR_EXTENDER_BOUNDS);
	extender_add_sample(&t, "binds_in_flight", "gauge", m->binding,
		"Bindings that the API server has yet to answer.");
	add_state(&t, m);
	add_watches(&t, m);
	add_process(&t, m);
	*len = t.len;
	return t.at;
}
