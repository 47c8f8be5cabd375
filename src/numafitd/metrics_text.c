#include <numafitd/metrics_text.h>

#include <numafit/mem.h>
#include <numafit/number.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_CAP = 32 << 10, KIND_NAME_MAX = TEXT_SIZE_MAX + 16 };

enum metric_kind { COUNTER, GAUGE, HISTOGRAM };
enum metric_unit { PLAIN, NANOSECONDS }; /* NANOSECONDS are written as seconds */

struct writer;

/* One metric's name with all its series. */
struct metric {
	const char *name, *help;
	enum metric_kind kind;
	enum metric_unit unit;
	size_t at; /* a uint64_t of struct metrics; or, where that is set: */
	void (*each)(struct writer *w, const struct metrics *m);
};

/* Of the family that is being written: a family without a series is left out. */
struct writer {
	struct text *t;
	const struct metric *metric;
	bool begun;
};

struct label {
	const char *name, *value;
};

/* Backslash, quote and newline are escaped, as the format says; what is no UTF-8, and so would cost
 * the whole scrape, becomes question marks. */
static void add_value(struct text *t, const char *value)
{
	bool whole = text_is_utf8(value, strlen(value));

	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			text_add(t, "\\%c", *value);
		else if (*value == '\n')
			text_add(t, "\\n");
		else
			text_add(t, "%c", whole || isascii((unsigned char)*value) ? *value : '?');
	}
}

/* labels ends with one without a name. le: NULL, or one more. */
static void add_labels(struct text *t, const struct label *labels, const char *le)
{
	const char *before = "{";

	for (; labels->name; labels++) {
		text_add(t, "%s%s=\"", before, labels->name);
		add_value(t, labels->value);
		text_add(t, "\"");
		before = ",";
	}
	if (le)
		text_add(t, "%sle=\"%s\"", before, le);
	text_add(t, le || *before == ',' ? "} " : " ");
}

enum { SECONDS_MAX = 32 };
/* Exactly, without floating point: "0.0000125", "3". */
static const char *metrics_seconds(char buf[SECONDS_MAX], uint64_t ns)
{
	int len =
		snprintf(buf, SECONDS_MAX, "%" PRIu64 ".%09" PRIu64, ns / NS_PER_S, ns % NS_PER_S);

	while (buf[len - 1] == '0')
		buf[--len] = '\0';
	if (buf[len - 1] == '.')
		buf[--len] = '\0';
	return buf;
}

static void metrics_begin(struct writer *w)
{
	static const char *const kinds[] = {
		[COUNTER] = "counter", [GAUGE] = "gauge", [HISTOGRAM] = "histogram"};
	const struct metric *f = w->metric;

	if (w->begun)
		return;
	w->begun = true;
	text_add(w->t, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name, kinds[f->kind]);
}

static void add_sample(struct writer *w, const struct label *labels, uint64_t value)
{
	char text[SECONDS_MAX];

	metrics_begin(w);
	text_add(w->t, "%s", w->metric->name);
	add_labels(w->t, labels, NULL);
	if (w->metric->unit == NANOSECONDS)
		text_add(w->t, "%s\n", metrics_seconds(text, value));
	else
		text_add(w->t, "%" PRIu64 "\n", value);
}

static void metrics_add_histogram(
	struct writer *w, const struct label *labels, const struct histogram *h)
{
	const char *name = w->metric->name;
	char bound[SECONDS_MAX];
	uint64_t nr = 0;

	metrics_begin(w);
	for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
		nr += h->within[i];
		text_add(w->t, "%s_bucket", name);
		add_labels(w->t, labels, metrics_seconds(bound, histogram_bound_ns(i)));
		text_add(w->t, "%" PRIu64 "\n", nr);
	}
	nr += h->beyond;
	text_add(w->t, "%s_bucket", name);
	add_labels(w->t, labels, "+Inf");
	text_add(w->t, "%" PRIu64 "\n%s_sum", nr, name);
	add_labels(w->t, labels, NULL);
	text_add(w->t, "%s\n%s_count", metrics_seconds(bound, h->sum_ns), name);
	add_labels(w->t, labels, NULL);
	text_add(w->t, "%" PRIu64 "\n", nr);
}

#define NO_LABELS   ((const struct label[]){{NULL, NULL}})
#define LABELS(...) ((const struct label[]){__VA_ARGS__, {NULL, NULL}})

/* One series for each of some states: {state="..."}. */
struct state {
	const char *name;
	uint64_t nr;
};
static void add_states(struct writer *w, const char *label, const struct state *states, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		add_sample(w, LABELS({label, states[i].name}), states[i].nr);
}
#define STATES(w, label, ...)                                                                      \
	add_states(w, label, (const struct state[]){__VA_ARGS__},                                  \
		sizeof((const struct state[]){__VA_ARGS__}) / sizeof(struct state))

/* Decisions */

static void admissions(struct writer *w, const struct metrics *m)
{
	for (unsigned p = 0; p < NR_POLICIES; p++) {
		add_sample(w, LABELS({"policy", topology_policy_words[p]}, {"result", "admitted"}),
			m->measured.admitted[p]);
		add_sample(w, LABELS({"policy", topology_policy_words[p]}, {"result", "refused"}),
			m->measured.refused[p]);
	}
}

static void admission_duration(struct writer *w, const struct metrics *m)
{
	metrics_add_histogram(w, NO_LABELS, &m->measured.admission);
}

static void advice(struct writer *w, const struct metrics *m)
{
	for (unsigned v = ADVICE_NONE + 1; v < NR_ADVICE_VERDICTS; v++)
		add_sample(w, LABELS({"verdict", advice_verdict_words[v]}), m->measured.advice[v]);
}

static void comparisons(struct writer *w, const struct metrics *m)
{
	if (m->settings->mode == MODE_SHADOW)
		STATES(w, "result", {"agrees", m->counters.compared - m->counters.disagreed},
			{"disagrees", m->counters.disagreed});
}

/* The node */

static void containers(struct writer *w, const struct metrics *m)
{
	const struct snapshot *s = m->snapshot;

	STATES(w, "kind", {"exclusive", s->nr_exclusive},
		{"shared", s->nr_containers - s->nr_exclusive}, {"waiting", s->nr_waiting});
}

static void not_preferred(struct writer *w, const struct metrics *m)
{
	add_sample(w, NO_LABELS, m->snapshot->nr_not_preferred);
}

enum { ID_TEXT_MAX = 16 };
static const char *id_text(char buf[ID_TEXT_MAX], const struct metrics *m, unsigned node)
{
	(void)snprintf(buf, ID_TEXT_MAX, "%u", m->snapshot->topo->ids.id[node]);
	return buf;
}

static uint64_t amount_left(uint64_t all, uint64_t taken)
{
	return all > taken ? all - taken : 0;
}

static void node_cpus(struct writer *w, const struct metrics *m)
{
	for (unsigned n = 0; n < m->snapshot->topo->ids.nr; n++) {
		const struct snapshot_node *of = &m->snapshot->node[n];
		uint64_t taken = (uint64_t)of->cpus_held + of->cpus_reserved + m->promised[n];
		const struct state states[] = {
			{"exclusive", of->cpus_held},
			{"reserved", of->cpus_reserved},
			{"promised", m->promised[n]},
			{"free", amount_left(of->cpus, taken)},
		};
		char id[ID_TEXT_MAX];

		(void)id_text(id, m, n);
		for (size_t i = 0; i < sizeof states / sizeof *states; i++)
			add_sample(w, LABELS({"numa_node", id}, {"state", states[i].name}),
				states[i].nr);
	}
}

static void node_pool(struct writer *w, const struct metrics *m)
{
	char id[ID_TEXT_MAX];

	for (unsigned n = 0; n < m->snapshot->topo->ids.nr; n++)
		add_sample(w, LABELS({"numa_node", id_text(id, m, n)}),
			m->snapshot->node[n].cpus_pool);
}

static void node_memory(struct writer *w, const struct metrics *m)
{
	const struct topo *t = m->snapshot->topo;
	char id[ID_TEXT_MAX], type[KIND_NAME_MAX];

	for (unsigned n = 0; n < t->ids.nr; n++)
		for (unsigned k = 0; k < t->nr_kinds; k++) {
			const struct snapshot_node *of = &m->snapshot->node[n];

			(void)id_text(id, m, n);
			(void)topo_kind_name(t, k, type, sizeof type);
			add_sample(w, LABELS({"numa_node", id}, {"type", type}, {"state", "free"}),
				of->free[k]);
			add_sample(w, LABELS({"numa_node", id}, {"type", type}, {"state", "held"}),
				amount_left(of->allocatable[k], of->free[k]));
		}
}

/* Neighbours */

static void hooks(struct writer *w, const struct metrics *m)
{
	/* the names of NRI's calls; two of them report what is live */
	static const char *const names[] = {
		[HOOK_SYNCHRONIZE] = "Synchronize",
		[HOOK_RUN_POD] = "RunPodSandbox",
		[HOOK_CREATE] = "CreateContainer",
		[HOOK_UPDATE] = "UpdateContainer",
		[HOOK_STOP] = "StopContainer",
		[HOOK_REMOVE] = "RemoveContainer",
		[HOOK_LIVE] = "PostCreateContainer",
		[HOOK_STARTED] = "PostStartContainer",
		[HOOK_REMOVE_POD] = "StopPodSandbox",
	};

	for (unsigned i = 0; i < NR_HOOKS; i++)
		metrics_add_histogram(w, LABELS({"request", names[i]}), &m->measured.hook[i]);
}

static void tokens(struct writer *w, const struct metrics *m)
{
	const struct status_kubelet *k = m->kubelet;

	if (k && k->tokens)
		STATES(w, "state", {"claimed", amount_left(k->leased, k->waiting)},
			{"waiting", k->waiting}, {"unhealthy", k->unhealthy},
			{"free", amount_left(k->tokens, (uint64_t)k->leased + k->unhealthy)});
}

static const char *const object_names[] = {
	[OBJECT_NRT] = "NodeResourceTopology", [OBJECT_NUMATOPOLOGY] = "Numatopology"};

static void writes(struct writer *w, const struct metrics *m)
{
	for (unsigned i = 0; i < NR_OBJECTS; i++) {
		const struct metrics_object *o = &m->cluster.object[i];
		const struct state states[] = {
			{"written", o->written}, {"conflict", o->conflicts}, {"failed", o->failed}};

		for (size_t k = 0; o->on && k < sizeof states / sizeof *states; k++)
			add_sample(w,
				LABELS({"object", object_names[i]}, {"result", states[k].name}),
				states[k].nr);
	}
}

static void lags(struct writer *w, const struct metrics *m)
{
	for (unsigned i = 0; i < NR_OBJECTS; i++)
		if (m->cluster.object[i].on)
			add_sample(w, LABELS({"object", object_names[i]}),
				m->cluster.object[i].lag_ns);
}

static void metrics_add_lag(struct writer *w, const struct metrics *m)
{
	for (unsigned i = 0; i < NR_OBJECTS; i++)
		if (m->cluster.object[i].on)
			add_sample(w, LABELS({"object", object_names[i]}),
				m->cluster.object[i].behind_ns);
}

static void credentials(struct writer *w, const struct metrics *m)
{
	if (m->apiserver)
		add_sample(w, NO_LABELS, !m->apiserver->unusable);
}

static void credential_failures(struct writer *w, const struct metrics *m)
{
	if (m->apiserver)
		add_sample(w, NO_LABELS, m->apiserver->failures);
}

static void events(struct writer *w, const struct metrics *m)
{
	if (m->cluster.events)
		STATES(w, "result", {"sent", m->cluster.events_sent},
			{"failed", m->cluster.events_failed},
			{"dropped", m->cluster.events_dropped});
}

static void evictions(struct writer *w, const struct metrics *m)
{
	if (m->cluster.evictions)
		STATES(w, "result", {"evicted", m->cluster.evicted},
			{"failed", m->cluster.evictions_failed},
			{"dropped", m->cluster.evictions_dropped});
}

/* The daemon */

static void reloads(struct writer *w, const struct metrics *m)
{
	if (m->config)
		STATES(w, "result", {"in-force", m->config->reloads},
			{"refused", m->config->refusals});
}

static void last_reload(struct writer *w, const struct metrics *m)
{
	if (m->config)
		add_sample(w, NO_LABELS, !m->config->refused);
}

static void needs_restart(struct writer *w, const struct metrics *m)
{
	if (m->config)
		add_sample(w, NO_LABELS, m->config->restart != NULL);
}

static void settings_info(struct writer *w, const struct metrics *m)
{
	const struct settings *s = m->settings;

	add_sample(w,
		LABELS({"mode", mode_name(s->mode)},
			{"policy", topology_policy_name(s->topology_policy)},
			{"scope", topology_scope_name(s->topology_scope)}),
		1);
}

static void build_info(struct writer *w, const struct metrics *m)
{
	add_sample(w, LABELS({"version", m->version}), 1);
}

#define TOTAL(name, member, help)                                                                  \
	{                                                                                          \
		"numafit_" name "_total", help, COUNTER, .at = offsetof(struct metrics, member)    \
	}
#define NOW(name, member, help)                                                                    \
	{                                                                                          \
		"numafit_" name, help, GAUGE, .at = offsetof(struct metrics, member)               \
	}
#define EACH(name, kind, fn, help)                                                                 \
	{                                                                                          \
		"numafit_" name, help, kind, .each = fn                                            \
	}
#define SECONDS_OF(name, kind, fn, help)                                                           \
	{                                                                                          \
		"numafit_" name "_seconds", help, kind, NANOSECONDS, .each = fn                    \
	}
static const struct metric metrics[] = {
	EACH("topology_manager_admission_requests_total", COUNTER, admissions,
		"Containers that were admitted or refused, and pods that were refused as a whole; "
		"in "
		"mode shadow what would have become of them."),
	SECONDS_OF("topology_manager_admission_duration", HISTOGRAM, admission_duration,
		"How long the decision about a container took."),
	TOTAL("cpu_manager_pinning_requests", measured.cpu_pins,
		"Containers that asked for CPUs of their own."),
	TOTAL("cpu_manager_pinning_errors", measured.cpu_pins_refused,
		"Containers that asked for CPUs of their own and were refused."),
	TOTAL("memory_manager_pinning_requests", measured.memory_pins,
		"Containers whose memory was to be pinned to NUMA nodes."),
	TOTAL("memory_manager_pinning_errors", measured.memory_pins_refused,
		"Containers whose memory was to be pinned to NUMA nodes and that were refused."),
	TOTAL("searches_cut_short", counters.cut_short,
		"Containers and refused pods whose decision ran out of mergeVisitBudget."),
	EACH("scheduler_hints_total", COUNTER, advice,
		"What became of schedulers' hints, one for each container that had one."),
	EACH("shadow_comparisons_total", COUNTER, comparisons,
		"Mode shadow: containers that the kubelet gave a cpuset, and whether it is the one "
		"that numafit would have given."),
	EACH("containers", GAUGE, containers,
		"Containers on CPUs of their own, on shared CPUs, and those still to come whose "
		"CPUs "
		"and memory are held."),
	EACH("containers_not_preferred", GAUGE, not_preferred,
		"Containers that lie on more NUMA nodes than the fewest that could have been "
		"enough."),
	TOTAL("containers_adopted", counters.adopted,
		"Containers that were found running and taken over."),
	TOTAL("containers_released", counters.released, "Containers that have ended."),
	TOTAL("containers_relocated", counters.relocated,
		"Times that a container lost or got CPUs or memory as the machine changed."),
	TOTAL("container_updates", counters.updates,
		"Cpusets of other containers that were set anew."),
	TOTAL("drifts", counters.drifted,
		"Times that a container was found to run otherwise than placed."),
	TOTAL("drift_heals", measured.healed,
		"Times that such a container was found to run as placed again."),
	EACH("numa_node_cpus", GAUGE, node_cpus,
		"CPUs of the NUMA node that one container has for itself, that are reserved, that "
		"are "
		"promised to holders of numafit.io/cpu, and that are free."),
	EACH("numa_node_shared_pool_cpus", GAUGE, node_pool,
		"CPUs of the NUMA node that containers without CPUs of their own run on: reserved "
		"ones "
		"and, as far as need be, free ones."),
	EACH("numa_node_memory_bytes", GAUGE, node_memory,
		"Memory of the NUMA node that containers can have, by type: held and free."),
	EACH("device_plugin_tokens", GAUGE, tokens,
		"numafit.io/cpu of the node: in use, given out to a container that is still to "
		"come, "
		"not to be had, and free."),
	NOW("generation", generation, "Grows whenever other CPUs or memory are free."),
	NOW("nri_connected", connected,
		"Whether the container runtime is connected and has listed what runs."),
	TOTAL("nri_connects", counters.connects, "Sessions with the container runtime."),
	SECONDS_OF("nri_request_duration", HISTOGRAM, hooks,
		"How long the container runtime waited for an answer, without its way there and "
		"back."),
	NOW("journal_bytes", journal_bytes, "Size of the journal."),
	NOW("journal_failing", journal_failing,
		"Whether the journal cannot be written: new containers are refused meanwhile."),
	TOTAL("journal_writes", measured.journal_writes, "Lines written to the journal."),
	TOTAL("journal_write_errors", measured.journal_errors,
		"Lines that could not be written to the journal: what they recorded was refused."),
	EACH("apiserver_writes_total", COUNTER, writes, "Writes of an object to the API server."),
	SECONDS_OF("apiserver_write_lag", GAUGE, lags,
		"How long the object's last change took to be in the API server."),
	SECONDS_OF("apiserver_write_behind", GAUGE, metrics_add_lag,
		"How long the API server has been without the object's oldest change; 0: it has "
		"all."),
	EACH("apiserver_credentials_usable", GAUGE, credentials,
		"Whether the kubeconfig, or the pod's service account, could be used when it was "
		"read last."),
	EACH("apiserver_credential_failures_total", COUNTER, credential_failures,
		"Times that it could not."),
	EACH("events_total", COUNTER, events, "Events on pods."),
	EACH("evictions_total", COUNTER, evictions, "Pods that were to be evicted."),
	EACH("config_reloads_total", COUNTER, reloads,
		"Times that the config file was read again."),
	EACH("config_last_reload_successful", GAUGE, last_reload,
		"Whether what the config file says now could be put in force."),
	EACH("config_needs_restart", GAUGE, needs_restart,
		"Whether the config file says something that is in force after a restart only."),
	TOTAL("log_lines_dropped", counters.log_dropped, "Log lines that nobody read in time."),
	EACH("settings_info", GAUGE, settings_info, "The settings that matter most; always 1."),
	EACH("build_info", GAUGE, build_info, "The version; always 1."),
	{"process_start_time_seconds", "Start of the process since the epoch.", GAUGE, NANOSECONDS,
		.at = offsetof(struct metrics, process.start_ns)},
	{"process_cpu_seconds_total", "CPU time of the process.", COUNTER, NANOSECONDS,
		.at = offsetof(struct metrics, process.cpu_ns)},
	{"process_resident_memory_bytes", "Memory that the process has.", GAUGE, PLAIN,
		.at = offsetof(struct metrics, process.resident_bytes)},
	{"process_open_fds", "Open descriptors of the process.", GAUGE, PLAIN,
		.at = offsetof(struct metrics, process.open_fds)},
	{"process_max_fds", "Descriptors that the process can have.", GAUGE, PLAIN,
		.at = offsetof(struct metrics, process.max_fds)},
};

static void write_all(struct text *t, const struct metrics *m)
{
	for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
		const struct metric *f = &metrics[i];
		struct writer w = {t, f, false};
		uint64_t value;

		if (f->each) {
			f->each(&w, m);
			continue;
		}
		memcpy(&value, (const char *)m + f->at, sizeof value);
		add_sample(&w, NO_LABELS, value);
	}
}

/* Into a buffer that doubles until it is large enough: a machine has at most 64 NUMA nodes. */
char *metrics_text(const struct metrics *m, size_t *len)
{
	struct text t = {.cut = true};

	for (size_t cap = FIRST_CAP; t.cut; cap *= 2) {
		free(t.at);
		text_init(&t, xcalloc(cap, 1), cap);
		write_all(&t, m);
	}
	*len = t.len;
	return t.at;
}
