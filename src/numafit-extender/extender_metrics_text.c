#include <numafit-extender/extender_metrics_text.h>

static const char *const verb_names[] = {[VERB_FILTER] = "filter",
	[VERB_PRIORITIZE] = "prioritize",
	[VERB_PREEMPT] = "preempt",
	[VERB_BIND] = "bind"};
static const char *const result_names[] = {
	[RESULT_OK] = "ok", [RESULT_BAD] = "bad-request", [RESULT_NOT_READY] = "not-ready"};
const char *const extender_bound_names[NR_EXTENDER_BOUNDS] = {
	[BOUND_WITH_ADVICE] = "bound-with-hint",
	[BOUND_PLAIN] = "bound",
	[BOUND_ALREADY] = "already-bound",
	[BIND_CONFLICT] = "conflict",
	[BIND_REFUSED] = "refused",
	[BIND_UNKNOWN] = "unknown"};
static const char *const closed_names[] = {[CLOSED_CROWDED] = "crowded", [CLOSED_SLOW] = "slow"};
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

#define AT(member) offsetof(struct extender_metrics, member)
#define ROW(name_, kind_, value_, member, help_, ...)                                              \
	{                                                                                          \
		.name = "numafit_extender_" name_, .help = (help_), .kind = (kind_),               \
		.value = METRIC_##value_, .at = offsetof(struct extender_metrics, member),         \
		##__VA_ARGS__                                                                      \
	}
#define BY(name, words) .label = {METRIC_LABEL(name, words, sizeof(uint64_t))}
static const struct metric extender_metrics[] = {
	ROW("build_info", GAUGE, ONE, version, "Its version.", .label = {{.name = "version"}}),
	ROW("requests_total", COUNTER, U64, requests, "Requests of schedulers.",
		.label = {METRIC_LABEL("verb", verb_names, sizeof(uint64_t[NR_EXTENDER_RESULTS])),
			METRIC_LABEL("result", result_names, sizeof(uint64_t))}),
	ROW("request_duration_seconds", HISTOGRAM, HISTOGRAM, duration,
		"From the whole request to its answer; of bind, the API server's share included.",
		.label = {METRIC_LABEL("verb", verb_names, sizeof(struct histogram))},
		.nine_digits = true),
	ROW("nodes_asked_total", COUNTER, U64, nodes_asked, "Nodes in requests.",
		.label = {{"verb", verb_names, VERB_BIND, sizeof(uint64_t)}}),
	ROW("nodes_refused_total", COUNTER, U64, nodes_refused, "Nodes that filter left out."),
	ROW("requests_crowded_out_total", COUNTER, U64, crowded_out,
		"Requests answered with 503, as others held maxHeldBytes."),
	ROW("clients_refused_total", COUNTER, U64, strangers,
		"Handshakes with a certificate that is not taken."),
	ROW("connections_closed_total", COUNTER, U64, closed,
		"Connections closed for others, or because they were too slow.",
		BY("reason", closed_names)),
	ROW("binds_total", COUNTER, U64, binds, "Bindings, by what came of them.",
		BY("result", extender_bound_names)),
	ROW("binds_in_flight", GAUGE, U64, binding,
		"Bindings that the API server has yet to answer."),
	ROW("binds_unsettled", GAUGE, U64, unsettled,
		"Bindings of which nobody knows yet whether they happened."),
	ROW("nodes", GAUGE, U64, cluster.nodes, "Nodes that are known."),
	ROW("topologies", GAUGE, U64, cluster.reports, "NodeResourceTopologies."),
	ROW("pods", GAUGE, U64, cluster.pods, "Bound pods that have not ended."),
	ROW("pods_unreported", GAUGE, U64, cluster.waiting,
		"Bound pods that their node's report does not contain yet."),
	ROW("nodes_stale", GAUGE, U64, cluster.stale,
		"Nodes whose report cannot be relied upon for now."),
	ROW("pods_crowded_out_total", COUNTER, U64, pods_crowded_out,
		"Pods to be bound that came while others took all the memory for them."),
	ROW("plans_kept", GAUGE, U64, kept, "Pods whose decision is kept for their binding."),
	ROW("avoided", GAUGE, U64, avoided,
		"Workloads and nodes that are kept apart after a refusal."),
	ROW("refusals_total", COUNTER, U64, refusals, "Pods that their node refused."),
	ROW("watch_synced", GAUGE, BOOL, synced,
		"Whether the API server's list is known and followed; 1 where it is not asked for.",
		.label = {METRIC_LABEL("resource", watch_names, sizeof(bool))}),
	ROW("objects_unreadable_total", COUNTER, U64, unreadable, "Objects that could not be read.",
		BY("resource", watch_names)),
	METRIC_ROW("process_cpu_seconds_total", COUNTER, NS, AT(process.cpu_ns),
		"User and system time.", .nine_digits = true),
	METRIC_ROW("process_resident_memory_bytes", GAUGE, U64, AT(process.resident_bytes),
		"Resident memory."),
	METRIC_ROW("process_start_time_seconds", GAUGE, NS, AT(process.start_ns),
		"Start, since the epoch.", .nine_digits = true),
};
_Static_assert(sizeof(size_t) == sizeof(uint64_t), "counts of the cluster are rows of U64");

char *extender_metrics_text(const struct extender_metrics *m, size_t *len)
{
	return prometheus_text(
		extender_metrics, sizeof extender_metrics / sizeof *extender_metrics, m, len);
}
