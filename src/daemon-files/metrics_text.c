#include <daemon-files/metrics_text.h>

#include <numafit/number.h>
#include <stdio.h>

enum { ID_TEXT_MAX = 16, KIND_NAME_MAX = TEXT_SIZE_MAX + 16 };

/* One series for each of some states: {state="..."}, behind {numa_node="..."} where id is given. */
struct state {
	const char *name;
	uint64_t nr;
};
static void add_states(struct metric_writer *w, const char *id, const char *label,
	const struct state *states, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (id)
			metric_sample(w, LABELS({"numa_node", id}, {label, states[i].name}),
				states[i].nr);
		else
			metric_sample(w, LABELS({label, states[i].name}), states[i].nr);
}
#define STATES(w, id, label, ...)                                                                  \
	add_states(w, id, label, (const struct state[]){__VA_ARGS__},                              \
		sizeof((const struct state[]){__VA_ARGS__}) / sizeof(struct state))

static void comparisons(struct metric_writer *w, const void *from)
{
	const struct metrics *m = from;

	if (m->settings->mode == MODE_SHADOW)
		STATES(w, NULL, "result", {"agrees", m->counters.compared - m->counters.disagreed},
			{"disagrees", m->counters.disagreed});
}

static void containers(struct metric_writer *w, const void *from)
{
	const struct snapshot *s = ((const struct metrics *)from)->snapshot;

	STATES(w, NULL, "kind", {"exclusive", s->nr_exclusive},
		{"shared", s->nr_containers - s->nr_exclusive}, {"waiting", s->nr_waiting});
}

static void not_preferred(struct metric_writer *w, const void *from)
{
	metric_sample(w, NO_LABELS, ((const struct metrics *)from)->snapshot->nr_not_preferred);
}

static void fragmentation(struct metric_writer *w, const void *from)
{
	metric_sample(w, NO_LABELS,
		node_fragmentation_milli(&((const struct metrics *)from)->snapshot->fragmentation));
}

static void largest_cpus(struct metric_writer *w, const void *from)
{
	metric_sample(
		w, NO_LABELS, ((const struct metrics *)from)->snapshot->fragmentation.largest);
}

static void free_cpus(struct metric_writer *w, const void *from)
{
	metric_sample(w, NO_LABELS, ((const struct metrics *)from)->snapshot->fragmentation.free);
}

static uint64_t amount_left(uint64_t all, uint64_t taken)
{
	return all > taken ? all - taken : 0;
}

static void node_cpus(struct metric_writer *w, const void *from)
{
	const struct metrics *m = from;
	const struct topo *t = m->snapshot->topo;
	char id[ID_TEXT_MAX];

	for (unsigned n = 0; n < t->ids.nr; n++) {
		const struct snapshot_node *of = &m->snapshot->node[n];
		uint64_t taken = (uint64_t)of->cpus_held + of->cpus_reserved + m->promised[n];

		(void)snprintf(id, sizeof id, "%u", t->ids.id[n]);
		STATES(w, id, "state", {"exclusive", of->cpus_held},
			{"reserved", of->cpus_reserved}, {"promised", m->promised[n]},
			{"free", amount_left(of->cpus, taken)});
	}
}

static void admission_errors(struct metric_writer *w, const void *from)
{
	const struct metrics_counters *c = &((const struct metrics *)from)->measured;
	uint64_t nr = 0;

	for (unsigned p = 0; p < NR_POLICIES; p++)
		nr += c->verdicts[p][VERDICT_REFUSED];
	metric_sample(w, NO_LABELS, nr);
}

static void pool_size(struct metric_writer *w, const void *from)
{
	const struct snapshot *s = ((const struct metrics *)from)->snapshot;
	struct cpuset pool = cpuset_minus(s->pool, &s->reserved);

	metric_sample(w, NO_LABELS, (uint64_t)cpuset_count(&pool) * MILLI_PER_CPU);
}

static void exclusive_cpu_count(struct metric_writer *w, const void *from)
{
	metric_sample(w, NO_LABELS, cpuset_count(&((const struct metrics *)from)->snapshot->held));
}

/* One series for each NUMA node: its own CPUs, or the shared ones. */
static void add_cpus_by_node(struct metric_writer *w, const struct snapshot *s, bool shared)
{
	char id[ID_TEXT_MAX];

	for (unsigned n = 0; n < s->topo->ids.nr; n++) {
		(void)snprintf(id, sizeof id, "%u", s->topo->ids.id[n]);
		metric_sample(w, LABELS({"numa_node", id}),
			shared ? s->node[n].cpus_pool : s->node[n].cpus_held);
	}
}

static void exclusive_cpus_by_node(struct metric_writer *w, const void *from)
{
	add_cpus_by_node(w, ((const struct metrics *)from)->snapshot, false);
}

static void node_pool(struct metric_writer *w, const void *from)
{
	add_cpus_by_node(w, ((const struct metrics *)from)->snapshot, true);
}

static void node_memory(struct metric_writer *w, const void *from)
{
	const struct snapshot *s = ((const struct metrics *)from)->snapshot;
	const struct topo *t = s->topo;
	char id[ID_TEXT_MAX], type[KIND_NAME_MAX];

	for (unsigned n = 0; n < t->ids.nr; n++)
		for (unsigned k = 0; k < t->nr_kinds; k++) {
			uint64_t all = s->node[n].allocatable[k], free = s->node[n].free[k];

			(void)snprintf(id, sizeof id, "%u", t->ids.id[n]);
			(void)topo_kind_name(t, k, type, sizeof type);
			metric_sample(w,
				LABELS({"numa_node", id}, {"type", type}, {"state", "free"}), free);
			metric_sample(w,
				LABELS({"numa_node", id}, {"type", type}, {"state", "held"}),
				amount_left(all, free));
		}
}

static void config_waits(struct metric_writer *w, const void *from)
{
	const struct metrics *m = from;

	if (m->has_config)
		metric_sample(w, NO_LABELS, m->config.waits_ms > 0);
}

static void tokens(struct metric_writer *w, const void *from)
{
	const struct status_kubelet *k = &((const struct metrics *)from)->kubelet;

	if (k->tokens)
		STATES(w, NULL, "state", {"claimed", amount_left(k->leased, k->waiting)},
			{"waiting", k->waiting}, {"unhealthy", k->unhealthy},
			{"free", amount_left(k->tokens, (uint64_t)k->leased + k->unhealthy)});
}

static void settings_info(struct metric_writer *w, const void *from)
{
	const struct settings *s = ((const struct metrics *)from)->settings;

	metric_sample(w,
		LABELS({"mode", mode_words[s->mode]},
			{"policy", topology_policy_words[s->topology_policy]},
			{"scope", topology_scope_words[s->topology_scope]}),
		1);
}

static const char *const verdict_names[] = {"admitted", "refused"},
			 *const write_names[] = {"written", "conflict", "failed"},
			 *const event_names[] = {"sent", "failed", "dropped"},
			 *const eviction_names[] = {"evicted", "failed", "dropped"},
			 *const observed_names[] = {"written", "failed", "dropped"},
			 *const reload_names[] = {"in-force", "refused"};
static const char *const object_names[] = {
	[OBJECT_NRT] = "NodeResourceTopology", [OBJECT_NUMATOPOLOGY] = "Numatopology"};
/* the names of NRI's calls; two of them report what is live */
static const char *const hook_names[] = {
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

static const char *const move_names[NR_METRICS_MOVES] = {"moved", "undone"};

#define AT(member) offsetof(struct metrics, member)
#define TOTAL(name_, member, help_)                                                                \
	{                                                                                          \
		.name = "numafit_" name_ "_total", .help = (help_), .kind = COUNTER,               \
		.value = METRIC_U64, .at = offsetof(struct metrics, member)                        \
	}
#define NOW(name_, member, help_)                                                                  \
	{                                                                                          \
		.name = "numafit_" name_, .help = (help_), .kind = GAUGE, .value = METRIC_U64,     \
		.at = offsetof(struct metrics, member)                                             \
	}
#define EACH(name_, kind_, fn, help_)                                                              \
	{                                                                                          \
		.name = "numafit_" name_, .help = (help_), .kind = (kind_), .each = (fn)           \
	}
#define BY(name, words) .label = {METRIC_LABEL(name, words, sizeof(uint64_t))}
#define IF(member)      .has_flag = true, .flag = AT(member)
#define OBJECT(name_, kind_, value_, member, help_, ...)                                           \
	{                                                                                          \
		.name = "numafit_apiserver_" name_, .help = (help_), .kind = (kind_),              \
		.value = METRIC_##value_,                                                          \
		.at = offsetof(struct metrics, cluster.object[0].member), .has_flag = true,        \
		.flag = offsetof(struct metrics, cluster.object[0].on),                            \
		.flag_step = sizeof(struct metrics_object),                                        \
		.label = {{.name = "object",                                                       \
				  .words = object_names,                                           \
				  .nr = sizeof object_names / sizeof *object_names,                \
				  .step = sizeof(struct metrics_object)},                          \
			##__VA_ARGS__},                                                            \
	}
static const char *const quiet_interrupts[] = {"yes", "no"}; /* moved, unmovable */
static const struct metric metrics[] = {
	METRIC_ROW("numafit_topology_manager_admission_requests_total", COUNTER, U64,
		AT(measured.verdicts),
		"Containers that were admitted or refused, and pods that were refused as a whole; "
		"in mode shadow what would have become of them.",
		.label = {{"policy", topology_policy_words, NR_POLICIES,
				  sizeof(uint64_t[NR_VERDICTS])},
			METRIC_LABEL("result", verdict_names, sizeof(uint64_t))}),
	EACH("topology_manager_admission_errors_total", COUNTER, admission_errors,
		"Containers and pods that were refused; numafit refusals lists them."),
	METRIC_ROW("numafit_topology_manager_admission_duration_seconds", HISTOGRAM, HISTOGRAM,
		AT(measured.admission), "How long the decision about a container took."),
	TOTAL("cpu_manager_pinning_requests", measured.cpu_pins,
		"Containers that asked for CPUs of their own."),
	TOTAL("cpu_manager_pinning_errors", measured.cpu_pins_refused,
		"Containers that asked for CPUs of their own and were refused."),
	EACH("cpu_manager_shared_pool_size_millicores", GAUGE, pool_size,
		"CPUs that containers without CPUs of their own run on and that are not reserved, "
		"in thousandths."),
	EACH("cpu_manager_exclusive_cpu_allocations", GAUGE, exclusive_cpu_count,
		"CPUs that containers have for themselves."),
	EACH("cpu_manager_allocation_per_numa", GAUGE, exclusive_cpus_by_node,
		"CPUs of the NUMA node that containers have for themselves."),
	TOTAL("memory_manager_pinning_requests", measured.memory_pins,
		"Containers whose memory was to be pinned to NUMA nodes."),
	TOTAL("memory_manager_pinning_errors", measured.memory_pins_refused,
		"Containers whose memory was to be pinned to NUMA nodes and that were refused."),
	TOTAL("searches_cut_short", counters.cut_short,
		"Containers and refused pods whose decision ran out of mergeVisitBudget."),
	METRIC_ROW("numafit_scheduler_hints_total", COUNTER, U64,
		AT(measured.advice[ADVICE_NONE + 1]),
		"What became of schedulers' hints, one for each container that had one.",
		.label = {{"verdict", advice_verdict_words + ADVICE_NONE + 1,
			NR_ADVICE_VERDICTS - ADVICE_NONE - 1, sizeof(uint64_t)}}),
	EACH("shadow_comparisons_total", COUNTER, comparisons,
		"Mode shadow: containers that the kubelet gave a cpuset, and whether it is the one "
		"that numafit would have given."),
	EACH("containers", GAUGE, containers,
		"Containers on CPUs of their own, on shared CPUs, and those still to come whose "
		"CPUs and memory are held."),
	EACH("containers_not_preferred", GAUGE, not_preferred,
		"Containers that lie on more NUMA nodes than the fewest that could have been "
		"enough."),
	METRIC_ROW("numafit_fragmentation_ratio", GAUGE, MILLI, 0,
		"How much smaller the largest container is that fits on one NUMA node than if the "
		"free CPUs lay together, 0 to 1: 0.75 where 8 free CPUs are 2 on each of four NUMA "
		"nodes of 8.",
		.each = fragmentation),
	EACH("largest_free_cpus", GAUGE, largest_cpus,
		"CPUs of the largest container with CPUs of its own that fits on one NUMA node."),
	EACH("free_exclusive_cpus", GAUGE, free_cpus,
		"CPUs that containers can still be given for their own, on all NUMA nodes."),
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
		"are promised to holders of numafit.io/cpu, and that are free."),
	EACH("numa_node_shared_pool_cpus", GAUGE, node_pool,
		"CPUs of the NUMA node that containers without CPUs of their own run on: reserved "
		"ones and, as far as need be, free ones."),
	METRIC_ROW("numafit_shared_pool_enforced", GAUGE, ONE, AT(pool.enforced),
		"How the shared pool is enforced: by cgroups that bound others, or by updates of "
		"one container after another; always 1.",
		.label = {{.name = "by"}}),
	NOW("shared_pool_idle_cpus", pool.idle,
		"CPUs that are in no container's cpuset, as the shared pool moves in steps."),
	NOW("shared_pool_cgroups", pool.cgroups, "Cgroups whose cpuset is bounded."),
	TOTAL("shared_pool_writes", pool.writes, "Writes of their cpusets."),
	TOTAL("shared_pool_rewrites", pool.rewritten,
		"Times that another program had changed one of them, which was written again."),
	METRIC_ROW("numafit_shared_pool_confined_containers", GAUGE, U64, AT(confined),
		"Containers that run on fewer CPUs than the shared pool has: a cgroup above has "
		"fewer, or they have inherited the container runtime's CPU affinity.",
		BY("by", confined_by_words)),
	METRIC_ROW("numafit_shared_pool_failing", GAUGE, NOT_NULL, AT(pool.problem),
		"Whether one of them cannot be written: containers that would get CPUs for "
		"themselves are refused meanwhile."),
	NOW("cfs_quota_lifted_pods", quota.pods,
		"Pods whose cgroup has no CFS quota, as containers of theirs have CPUs of their own."),
	TOTAL("cfs_quota_rewrites", quota.rewritten,
		"Times that another program had set one of them, which was lifted again."),
	METRIC_ROW("numafit_cfs_quota_failing", GAUGE, NOT_NULL, AT(quota.problem),
		"Whether one of them cannot be lifted or given back."),
	METRIC_ROW("numafit_moves_total", COUNTER, U64, AT(moves.made),
		"Running containers that were moved to other NUMA nodes to make room, and those "
		"whose move was undone.",
		.label = {METRIC_LABEL("result", move_names, sizeof(uint64_t))}),
	TOTAL("moved_bytes", moves.bytes, "Memory of containers that were moved."),
	METRIC_ROW("numafit_move_seconds_total", COUNTER, NS, AT(moves.ns),
		"Time that moving that memory took."),
	NOW("moves_under_way", moves.under_way, "1 while a container is being moved."),
	METRIC_ROW("numafit_quiet_interrupts", GAUGE, U64, AT(quiet.moved),
		"Interrupts that are kept off CPUs of containers that wish for it, and those that the "
		"kernel lets nobody move.",
		.label = {METRIC_LABEL("kept_off", quiet_interrupts, sizeof(uint64_t))},
		IF(has_quiet)),
	METRIC_ROW("numafit_quiet_interrupts_moved_back_total", COUNTER, U64, AT(quiet.rewritten),
		"Times that another program had moved one there.", IF(has_quiet)),
	METRIC_ROW("numafit_quiet_clock_shared_cpus", GAUGE, U64, AT(quiet.clock_shared),
		"CPUs that have no frequency profile, as they share a clock with others.",
		IF(has_quiet)),
	METRIC_ROW("numafit_quiet_failing", GAUGE, NOT_NULL, AT(quiet.problem),
		"Whether an interrupt or a frequency cannot be set or given back.", IF(has_quiet)),
	EACH("numa_node_memory_bytes", GAUGE, node_memory,
		"Memory of the NUMA node that containers can have, by type: held and free."),
	EACH("device_plugin_tokens", GAUGE, tokens,
		"numafit.io/cpu of the node: in use, given out to a container that is still to "
		"come, not to be had, and free."),
	NOW("generation", generation, "Grows whenever other CPUs or memory are free."),
	NOW("nri_connected", connected,
		"Whether the container runtime is connected and has listed what runs."),
	TOTAL("nri_connects", counters.connects, "Sessions with the container runtime."),
	METRIC_ROW("numafit_nri_request_duration_seconds", HISTOGRAM, HISTOGRAM, AT(measured.hook),
		"How long the container runtime waited for an answer, without its way there and "
		"back.",
		.label = {METRIC_LABEL("request", hook_names, sizeof(struct histogram))}),
	NOW("journal_bytes", journal_bytes, "Size of the journal."),
	NOW("journal_failing", journal_failing,
		"Whether the journal cannot be written: new containers are refused meanwhile."),
	TOTAL("journal_writes", measured.journal_writes, "Lines written to the journal."),
	TOTAL("journal_write_errors", measured.journal_errors,
		"Lines that could not be written to the journal: what they recorded was refused."),
	OBJECT("writes_total", COUNTER, U64, written, "Writes of an object to the API server.",
		METRIC_LABEL("result", write_names, sizeof(uint64_t))),
	OBJECT("write_lag_seconds", GAUGE, NS, lag_ns,
		"How long the object's last change took to be in the API server."),
	OBJECT("write_behind_seconds", GAUGE, NS, behind_ns,
		"How long the API server has been without the object's oldest change; 0: it has "
		"all."),
	METRIC_ROW("numafit_apiserver_credentials_usable", GAUGE, IS_NULL, AT(apiserver.unusable),
		"Whether the kubeconfig, or the pod's service account, could be used when it was "
		"read last.",
		IF(has_apiserver)),
	METRIC_ROW("numafit_apiserver_credential_failures_total", COUNTER, U64,
		AT(apiserver.failures), "Times that it could not.", IF(has_apiserver)),
	METRIC_ROW("numafit_device_claims_slices", GAUGE, U64, AT(claims.slices),
		"ResourceSlices of the node.", IF(has_claims)),
	METRIC_ROW("numafit_device_claims_devices", GAUGE, U64, AT(claims.devices),
		"Devices of DRA drivers that are known by ResourceSlices, deleted ones, too, until "
		"others take their place.",
		IF(has_claims)),
	METRIC_ROW("numafit_device_claims_incomplete_pools", GAUGE, U64,
		AT(claims.incomplete_pools),
		"Pools of which the newest ResourceSlices have not all come.", IF(has_claims)),
	METRIC_ROW("numafit_device_claims_unknown_total", COUNTER, U64, AT(claims.unknown),
		"Containers that were decided without a device of their claims: PodResources had "
		"not shown it yet, or nothing says where it is.",
		.label = {{"why", claims_known_words + 1, NR_CLAIMS_KNOWN - 1, sizeof(uint64_t)}},
		IF(has_claims)),
	METRIC_ROW("numafit_device_claims_waits_total", COUNTER, U64, AT(claims.waits),
		"Answers that waited for devices of claims (deviceClaims.wait).", IF(has_claims)),
	METRIC_ROW("numafit_device_claims_wait_seconds_total", COUNTER, NS, AT(claims.waited_ns),
		"How long they did, all in all.", IF(has_claims)),
	METRIC_ROW("numafit_claims_slice_generation", GAUGE, U64, AT(dra.slice_generation),
		"Of the node's ResourceSlice that the API server has; 0: it has none.",
		IF(has_dra)),
	METRIC_ROW("numafit_claims_held", GAUGE, U64, AT(shares),
		"Shares of ResourceClaims (CPUs and memory of a NUMA node) that are held.",
		IF(has_dra)),
	METRIC_ROW("numafit_claims_waiting", GAUGE, U64, AT(dra.waiting),
		"Claims that the kubelet waits for now.", IF(has_dra)),
	METRIC_ROW("numafit_claims_prepared_total", COUNTER, U64, AT(dra.prepared),
		"Claims that were prepared.", IF(has_dra)),
	METRIC_ROW("numafit_claims_unprepared_total", COUNTER, U64, AT(dra.unprepared),
		"Claims that were unprepared.", IF(has_dra)),
	METRIC_ROW("numafit_claims_failed_total", COUNTER, U64, AT(dra.failed),
		"Claims that could not be prepared or unprepared when the kubelet asked.",
		IF(has_dra)),
	METRIC_ROW("numafit_events_total", COUNTER, U64, AT(cluster.event), "Events on pods.",
		BY("result", event_names), IF(cluster.events)),
	METRIC_ROW("numafit_evictions_total", COUNTER, U64, AT(cluster.eviction),
		"Pods that were to be evicted.", BY("result", eviction_names),
		IF(cluster.evictions)),
	METRIC_ROW("numafit_observed_placements_total", COUNTER, U64, AT(cluster.observed),
		"What pods have of NUMA nodes, written on them.", BY("result", observed_names),
		IF(cluster.annotations)),
	METRIC_ROW("numafit_config_reloads_total", COUNTER, U64, AT(config.reloads),
		"Times that the config file was read again.", BY("result", reload_names),
		IF(has_config)),
	METRIC_ROW("numafit_config_last_reload_successful", GAUGE, IS_NULL, AT(config.refused),
		"Whether what the config file says now could be put in force.", IF(has_config)),
	METRIC_ROW("numafit_config_info", GAUGE, ONE, AT(config.digest),
		"The config file that is in force: how its SHA-256 begins; always 1.",
		.label = {{.name = "sha256"}}, IF(has_config)),
	EACH("config_waits", GAUGE, config_waits,
		"Whether what the config file says now is put in force later (rolloutDelay)."),
	METRIC_ROW("numafit_config_needs_restart", GAUGE, NOT_NULL, AT(config.restart),
		"Whether the config file says something that is in force after a restart only.",
		IF(has_config)),
	TOTAL("log_lines_dropped", counters.log_dropped, "Log lines that nobody read in time."),
	EACH("settings_info", GAUGE, settings_info, "The settings that matter most; always 1."),
	METRIC_ROW("numafit_build_info", GAUGE, ONE, AT(version), "The version; always 1.",
		.label = {{.name = "version"}}),
	METRIC_ROW("process_start_time_seconds", GAUGE, NS, AT(process.start_ns),
		"Start of the process since the epoch."),
	METRIC_ROW("process_cpu_seconds_total", COUNTER, NS, AT(process.cpu_ns),
		"CPU time of the process."),
	METRIC_ROW("process_resident_memory_bytes", GAUGE, U64, AT(process.resident_bytes),
		"Memory that the process has."),
	METRIC_ROW("process_open_fds", GAUGE, U64, AT(process.open_fds),
		"Open descriptors of the process."),
	METRIC_ROW("process_max_fds", GAUGE, U64, AT(process.max_fds),
		"Descriptors that the process can have."),
};

char *metrics_text(const struct metrics *m, size_t *len)
{
	return prometheus_text(metrics, sizeof metrics / sizeof *metrics, m, len);
}
