#include <core/settings_row.h>

#include <numafit/nearest.h>
#include <numafit/setting_text.h>

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

enum {
	SWEEP_INTERVAL_MAX_MS = 60 * 60 * 1000,
	MIN_INTERVAL_MAX_MS = 24 * 60 * 60 * 1000,
	MOVES_PER_HOUR_MAX = 10000,
	ROLLOUT_DELAY_MAX_MS = 24 * 60 * 60 * 1000,
	RECLAIM_AFTER_MAX_MS = 24 * 60 * 60 * 1000,
	CLAIMS_WAIT_MAX_MS = 1500,         /* a runtime gives a plugin 2 s */
	CLAIMS_PREPARE_MAX_MS = 42 * 1000, /* the kubelet gives a driver 45 s */
	PER_CENT = 100,
	CLOCK_SKEW_MAX_MS = 60 * 60 * 1000,
	REPORT_INTERVAL_MIN_MS = 20,
	REPORT_INTERVAL_MAX_MS = 60 * 1000,
	HEARTBEAT_MIN_MS = 1000,
	HEARTBEAT_MAX_MS = 60 * 60 * 1000
};

const char *const mode_words[MODE_RELEASE + 2] = {"off", "manage", "shadow", "release", NULL};
static const char *const adopt_words[] = {"place", "leave", NULL};
static const char *const beside_words[] = {"shadow", "manage", NULL};
const char *const topology_policy_words[NR_POLICIES + 1] = {
	"none", "best-effort", "restricted", "single-numa-node", NULL};
static const char *const advice_words[] = {"off", "prefer", "require", NULL};
const char *const topology_scope_words[SCOPE_POD + 2] = {"container", "pod", NULL};
static const char *const strategy_words[] = {"none", "most-allocated", "least-allocated", NULL};
static const char *const cpu_manager_words[] = {"none", "static", NULL};
static const char *const memory_manager_words[] = {"None", "Static", NULL};
static const char *const device_memory_words[] = {"exclude", "include", NULL};
static const char *const failure_words[] = {/* by the bits of enum failure_policy */
	"drop-and-proceed", "drop-and-fail", "keep-and-proceed", "keep-and-fail", NULL};
static const char *const claims_capacity_words[] = {"dynamic", "share", NULL};
static const char *const claims_order_words[] = {"most-allocated", "least-allocated", NULL};
static const char *const refusal_words[] = {"error", "evict", NULL};
static const char *const pod_names_words[] = {"own-namespace", "all", NULL};
static const char *const observed_words[] = {"off", "kai", NULL};
static const char *const pods_api_words[] = {"auto", "true", "false", NULL};
static const char *const fingerprint_words[] = {"none", "all", "with-exclusive-resources", NULL};
const char *const pool_enforced_words[NR_POOL_ENFORCED + 1] = {"auto", "cgroup", "updates", NULL};
const char *const quota_use_words[NR_QUOTA_USES + 1] = {"lift", "keep", NULL};
const char *const defrag_mode_words[NR_DEFRAG_MODES + 1] = {
	"off", "advise", "on-demand", "auto", NULL};
static const char *const movable_words[] = {"annotated", "all", NULL};
static const char *const unknown_wish_words[] = {"refuse", "ignore", NULL};
static const char *const burstable_words[] = {"any", "one-node", NULL};
static const char *const across_words[] = {"none", "interleave", NULL};
static const char *const log_words[] = {"error", "warn", "info", "debug", NULL};
static const char *const log_format_words[] = {"auto", "text", "json", "journal", NULL};

#define FIELD(member) offsetof(struct settings, member)
static const struct gate topology_alpha = {
	FIELD(gates.topology_alpha_options), "topology manager policy alpha-level options"};
static const struct gate cpu_alpha = {
	FIELD(gates.cpu_alpha_options), "CPU Manager Policy Alpha-level Options"};
static const struct gate cpu_beta = {
	FIELD(gates.cpu_beta_options), "CPU Manager Policy Beta-level Options"};

#define KIB UINT64_C(1024)
#define ROW(name, type, member, value, text, ...)                                                  \
	{                                                                                          \
		.key = (name), .kind = &(type), .at = offsetof(struct settings, member),           \
		.size = sizeof((struct settings *)NULL)->member, .fallback = (value),              \
		.help = (text), __VA_ARGS__                                                        \
	}

#define CPU_ROW(name, member, text, ...)                                                           \
	ROW(CPU_OPTIONS "." name, kind_bool_option, cpu_options.member, "", text, .option = true,  \
		__VA_ARGS__)
#define GATE_ROW(name, member, fallback_text, text, ...)                                           \
	ROW(GATES "." name, kind_gate, gates.member, fallback_text, text, __VA_ARGS__)

/* The one table of all settings; its order is that of the documentation. */
static const struct row rows[] = {
	ROW("mode", kind_word, mode, "manage",
		"manage: place containers. shadow: change nothing, compare with what the kubelet's "
		"managers do. off: stay connected and report, place nothing. release: give those "
		"that were placed the whole machine back, to remove numafit. What containers have "
		"means something else in each, so that a change needs a restart",
		.words = mode_words, .restart = true),
	ROW("onAdopt", kind_word, on_adopt, "place",
		"containers that were created while numafitd was away: place them now, or leave "
		"them as they run. If another program has confined a container, and it is left so, "
		"no other container gets its CPUs; one that is confined to no CPUs runs on all of "
		"them, as the system's own processes do",
		.words = adopt_words),
	ROW("besideStaticKubelet", kind_word, beside_static_kubelet, "shadow",
		"what mode manage becomes when the kubelet's CPU or memory manager is found to be "
		"static at start: the two would fight",
		.words = beside_words, .restart = true),
	ROW("kubeletRootDirectory", kind_path, kubelet_root, "/var/lib/kubelet",
		"the kubelet's --root-dir", .restart = true),
	ROW("kubeletConfigFile", kind_path, kubelet_config, "/var/lib/kubelet/config.yaml",
		"mode shadow: the kubelet's config file, whose policy is the one to publish",
		.restart = true),
	ROW("kubernetesVersion", kind_word, cpu_options.kubernetes, "auto",
		"the version of Kubernetes whose kubelet is followed where versions decide "
		"differently. auto: that of the node's kubelet, where the API server is asked for "
		"the node (a restart remembers it), else the newest",
		.words = kubernetes_words),
	ROW("topologyManagerPolicy", kind_word, topology_policy, "best-effort",
		"which sets of NUMA nodes a container is admitted on, as in the kubelet",
		.words = topology_policy_words),
	ROW("topologyManagerScope", kind_word, topology_scope, "container",
		"what is aligned as one: each container, or the whole pod",
		.words = topology_scope_words),
	ROW(TOPOLOGY_OPTIONS ".prefer-closest-numa-nodes", kind_bool_option,
		prefer_closest_numa_nodes, "false",
		"among sets of as many NUMA nodes prefer the one with the shorter distances"),
	ROW(TOPOLOGY_OPTIONS ".max-allowable-numa-nodes", kind_nodes_option,
		max_allowable_numa_nodes, "",
		"do not start on a machine with more NUMA nodes; not set: any number",
		.option = true),
	ROW(TOPOLOGY_OPTIONS ".numa-allocation-strategy", kind_strategy_option, allocation_strategy,
		"",
		"among sets of NUMA nodes that are equal otherwise, take the one of which most, or "
		"least, is allocated",
		.words = strategy_words, .option = true, .gate = &topology_alpha),
	ROW("cpuManagerPolicy", kind_word, cpu_manager_policy, "static",
		"static: Guaranteed containers that ask for whole CPUs get them for themselves",
		.words = cpu_manager_words),
	CPU_ROW("align-by-socket", align_by_socket,
		"what is preferred is one socket, not one NUMA node", .gate = &cpu_alpha),
	CPU_ROW("distribute-cpus-across-cores", distribute_cpus_across_cores,
		"take threads of different cores where there are enough", .gate = &cpu_alpha),
	CPU_ROW("distribute-cpus-across-numa", distribute_cpus_across_numa,
		"where one NUMA node is not enough take as many CPUs from each", .gate = &cpu_beta),
	CPU_ROW("full-pcpus-only", full_pcpus_only,
		"refuse containers that do not ask for whole cores"),
	CPU_ROW("prefer-align-cpus-by-uncorecache", prefer_align_cpus_by_uncorecache,
		"take CPUs that share a last-level cache where that is possible"),
	CPU_ROW("strict-cpu-reservation", strict_cpu_reservation,
		"keep containers without CPUs of their own off the reserved CPUs too"),
	ROW("memoryManagerPolicy", kind_word, memory_manager_policy, "Static",
		"Static: Guaranteed containers get their memory from the NUMA nodes they run on",
		.words = memory_manager_words),
	ROW("deviceMemory", kind_word, device_memory, "exclude",
		"NUMA nodes whose memory is a device's, as a GPU's on GB200, GH200 and POWER9. "
		"exclude: containers get none of it, and their cpuset.mems is without these NUMA "
		"nodes. include: it is memory like any other, as for the kubelet",
		.words = device_memory_words, .restart = true),
	ROW("reservedSystemCPUs", kind_cpus, reserved_cpus, "",
		"CPUs that are never given to one container alone", .restart = true),
	ROW("systemReserved.cpu", kind_cpu_amount, system_reserved_cpu_milli, "",
		"with kubeReserved.cpu, rounded up: as many CPUs are reserved where "
		"reservedSystemCPUs is not set",
		.max = CPUSET_BITS * MILLI, .restart = true),
	ROW("kubeReserved.cpu", kind_cpu_amount, kube_reserved_cpu_milli, "",
		"see systemReserved.cpu", .max = CPUSET_BITS * MILLI, .restart = true),
	ROW(RESERVED, kind_reserved, reserved_memory, "",
		"memory of each NUMA node that no container is placed on", .restart = true),
	ROW("mergeVisitBudget", kind_number, merge_visit_budget, "3145728",
		"steps that all searches for one event (a pod's start, a container's creation) "
		"take together, then the best NUMA nodes found until then are taken. numafitd "
		"refuses 0 and more than 8388608; with numafit decide 0 is no bound",
		.unit = "steps", .max = INT64_MAX),
	ROW("sharedPool.enforce", kind_word, pool_enforced, "auto",
		"how containers are kept in the shared pool. cgroup: numafitd limits the kubelet's "
		"cgroups, at once for all containers below them (cgroup v2, writable). updates: "
		"the runtime updates one container after another. auto: cgroup where that can be",
		.words = pool_enforced_words, .restart = true),
	ROW("sharedPoolStep", kind_number, shared_pool_step, "auto",
		"sharedPool.enforce updates: CPUs that a NUMA node's shared pool gives up or gets "
		"back beyond need, so that not every container changes it; a quarter of the NUMA "
		"node's CPUs at most. auto: none as long as fewer than 30 containers share the pool, else 16",
		.unit = "CPUs", .automatic = true, .max = CPUSET_BITS),
	ROW("sharedPoolMinimum", kind_number, shared_pool_minimum, "1",
		"CPUs that the shared pool never falls below", .unit = "CPUs", .max = CPUSET_BITS),
	ROW("exclusiveCPUs.cfsQuota", kind_word, quota_use, "lift",
		"the CFS quota of containers with CPUs of their own, and of their pods. lift: they "
		"have none, as with the kubelet's own static policy; the pod's needs the kubelet's "
		"cgroups to be writable. keep: they have what the kubelet sets",
		.words = quota_use_words),
	ROW("defragment.mode", kind_word, defrag.mode, "advise",
		"what is done about room that moving running containers with CPUs of their own would "
		"make. off: nothing is said when a pod is refused; numafit defrag prints a plan all "
		"the same. advise: the refused pod's event says which moves would help. on-demand: numafit defrag --apply makes them, too. auto: they are "
		"made as well when a pod was refused, within the limits below. Containers are moved "
		"where sharedPool.enforce is by cgroup",
		.words = defrag_mode_words),
	ROW("defragment.movable", kind_word, defrag.movable, "annotated",
		"mode auto: which containers may be moved. annotated: those of pods with the "
		"annotation numafit.io/movable: \"true\"; all: every container except those of "
		"pods with \"false\"",
		.words = movable_words),
	ROW("defragment.maxMoves", kind_number, defrag.moves_per_plan, "3",
		"moves that one plan has at most", .unit = "moves", .min = 1,
		.max = DEFRAG_MOVES_MAX),
	ROW("defragment.minInterval", kind_duration, defrag.min_interval_ms, "10m",
		"a container that was moved is not moved again before that time is over",
		.max = MIN_INTERVAL_MAX_MS),
	ROW("defragment.maxMovesPerHour", kind_number, defrag.moves_per_hour, "12",
		"mode auto: moves within an hour at most", .unit = "moves",
		.max = MOVES_PER_HOUR_MAX),
	ROW("defragment.maxBytesPerMinute", kind_size, defrag.bytes_per_minute, "16Gi",
		"mode auto: memory that is moved within a minute at most; a container with more is "
		"moved when nothing else was moved in as many minutes as it takes at that rate",
		.min = KIB * KIB, .max = KIB * KIB * KIB * KIB),
	ROW("sweepInterval", kind_duration, sweep_interval_ms, "10s",
		"how often the containers' cgroups and the machine's CPUs and memory are looked at "
		"for changes from elsewhere; 0: never",
		.max = SWEEP_INTERVAL_MAX_MS),
	ROW("rolloutDelay", kind_duration, rollout_delay_ms, "0",
		"a settings file that changes while numafitd runs is put in force after a part of "
		"this time, a fixed one for each node's name, so that a change reaches the nodes "
		"of a cluster one after another. What the new file says counts; SIGHUP and a "
		"restart put it in force at once",
		.max = ROLLOUT_DELAY_MAX_MS),
	ROW("nodeName", kind_text, node_name, "",
		"this node's name in Kubernetes; not set: the environment's NODE_NAME, else the "
		"host's name",
		.restart = true),
	ROW("schedulerHint.mode", kind_word, advice_mode, "prefer",
		"what a scheduler's hint on a pod (numafit.io/numa-hint, and those of other "
		"schedulers) can do. prefer: it chooses among NUMA nodes that are equally good. "
		"require: where it cannot be followed the container is refused. off: nothing",
		.words = advice_words),
	ROW("schedulerHint.repair", kind_bool, advice_repair, "true",
		"where a hint cannot be followed, and other NUMA nodes are as few and as close, "
		"the "
		"verdict is repaired; false: it is a rejection"),
	ROW("schedulerHint.podPolicy", kind_bool, advice_policy, "false",
		"a pod may ask for a stricter topology policy than the node's "
		"(numafit.io/topology-policy, volcano.sh/numa-topology-policy)"),
	ROW("schedulerHint.clockSkew", kind_duration, advice_skew_ms, "5s",
		"how far ahead of this node's a scheduler's clock may be",
		.max = CLOCK_SKEW_MAX_MS),
	ROW("schedulerHint.order", kind_text, advice_order,
		"numafit,koordinator,katalyst,volcano,crane,godel",
		"whose hints are read, the first one first"),
	ROW("podWishes.allowed", kind_wishes, wishes_allowed, "cpus=shared,numa-nodes,spread",
		"which annotations of pods under numafit.io/ are obeyed: cpus (cpus=shared: that "
		"value alone), cores, isolated, numa-nodes, spread, memory-policy, rdt-class, "
		"blockio-class, quiet, with commas between them; none. One that is not allowed counts as not there"),
	ROW("podWishes.unknown", kind_word, unknown_wish, "refuse",
		"a container with a wish that is allowed and has a value that is none of its "
		"values, or with an annotation whose key is close to a wish's and is no wish's. "
		"refuse: its creation fails, and the error says what there is. ignore: as if there "
		"were no such wish; log and event say so",
		.words = unknown_wish_words),
	ROW(NAMESPACES, kind_namespaces, namespaces, "",
		"what pods of some namespaces are given, section by section. names: patterns with * "
		"and ?. wishes: what their containers wish for unless they say otherwise, by the "
		"names that annotations have (cpus: shared). allowed: what they may wish for beside "
		"podWishes.allowed; cpus=untouched (no cpuset from numafitd) can be allowed here "
		"alone. force: true: the section's wishes count whatever a pod says, and containers "
		"with cpus: untouched are not kept within the shared pool. reserved: true: they run "
		"on the reserved CPUs"),
	ROW(PROFILES, kind_profiles, profiles, "",
		"what CPUs are set to for containers that wish for numafit.io/quiet: frequency=NAME, "
		"profile by profile: cpufreq's governor, lowest and highest frequency and "
		"energy_performance_preference; maxIdleLatencyUs: idle states that take longer to "
		"leave are not entered. What a profile does not name stays as it is. CPUs that "
		"share a clock with others keep theirs"),
	ROW("burstable", kind_word, burstable, "any",
		"which CPUs of the shared pool containers of Burstable pods have, unless they or "
		"their namespace's section wish for something else. one-node: those of one NUMA "
		"node, as with numafit.io/spread: one-node",
		.words = burstable_words),
	ROW("memoryPolicyAcrossNodes", kind_word, across_nodes, "none",
		"the memory policy of containers with CPUs of their own whose memory is pinned to "
		"several NUMA nodes, unless they wish for one. interleave: pages go to one after "
		"another, so that each thread has as much near it (needs NRI 0.12.0)",
		.words = across_words),
	ROW("containerEnvironment", kind_bool, container_environment, "false",
		"a new container has what it is given in its environment: NUMAFIT_CPUS, "
		"NUMAFIT_MEMS and NUMAFIT_NUMA_NODES, as kernel lists; and the same lines in a file "
		"that follows, /run/numafit/self, unless it has something of its own at "
		"/run/numafit"),
	ROW("nri.socketPath", kind_path, nri_socket, "/var/run/nri/nri.sock",
		"the container runtime's NRI socket", .restart = true),
	ROW("nri.pluginIndex", kind_two_digits, nri_index, "50",
		"the place among the runtime's NRI plugins: lower ones are asked first",
		.restart = true),
	ROW("nri.failurePolicy", kind_word, nri_failure_policy, "keep-and-fail",
		"mode manage, NRI 0.12.4 and later: whether the runtime drops or keeps a daemon "
		"that does not answer in time, and whether the request proceeds without it or "
		"fails",
		.words = failure_words, .restart = true),
	ROW("devicePlugin.enabled", kind_bool, device_plugin, "false",
		"serve the resource numafit.io/cpu to the kubelet, whose own Topology Manager then "
		"aligns other devices with CPUs; mode manage only",
		.restart = true),
	ROW("devicePlugin.preStartContainer", kind_bool, pre_start_container, "true",
		"containers that have numafit.io/cpu wait while the runtime is not connected, "
		"instead of starting unpinned",
		.restart = true),
	ROW("devicePlugin.reclaimAfter", kind_duration, reclaim_after_ms, "20m",
		"how long numafit.io/cpu is kept that was given out for a container which is not "
		"created, and which PodResources does not show; then containers without it may "
		"have these CPUs. To pull the image of an init container may take that long",
		.max = RECLAIM_AFTER_MAX_MS),
	ROW("podResources.enabled", kind_bool, pod_resources, "false",
		"ask the kubelet which devices containers have: CPUs and memory are then placed "
		"beside them, and no container takes numafit.io/cpu of another one",
		.restart = true),
	ROW("podsAPI.enabled", kind_word, pods_api, "auto",
		"watch the kubelet's pods: pods are then decided as a whole before their sandbox "
		"starts. auto: where the kubelet serves them, as Kubernetes 1.37 does; else those "
		"of podsWatch are taken, else the totals of the pod's sandbox. true: gRPC is "
		"started for it even where no kubelet is",
		.words = pods_api_words, .restart = true),
	ROW("refusalAction", kind_word, refusal_action, "error",
		"what becomes of a pod whose container is refused. error: its create fails until "
		"there is room. evict: it is evicted as well, when a controller makes another one "
		"elsewhere (needs podsWatch.enabled)",
		.words = refusal_words),
	ROW("apiServer.kubeconfig", kind_text, kubeconfig, "",
		"how to reach the API server; not set: as a pod of the cluster", .restart = true),
	ROW("apiServer.context", kind_text, kube_context, "",
		"the context of apiServer.kubeconfig; not set: its current one", .restart = true),
	ROW("podsWatch.enabled", kind_bool, pods_watch, "false",
		"watch this node's pods at the API server: pods are then decided as a whole where "
		"the kubelet's Pods API does not list them",
		.restart = true),
	ROW("deviceClaims.enabled", kind_bool, device_claims, "false",
		"watch this node's ResourceSlices at the API server: CPUs and memory are then "
		"placed beside the devices that containers have through claims (DRA), where their "
		"driver says where they are (needs podResources.enabled)",
		.restart = true),
	ROW("deviceClaims.wait", kind_duration, claims_wait_ms, "0",
		"how long the answer to a pod's start waits at most, all in all, until the devices "
		"of its claims are known; 0: it is placed without those that are not known yet",
		.max = CLAIMS_WAIT_MAX_MS),
	ROW("claims.enabled", kind_bool, claims, "false",
		"be the DRA driver numafit.io: pods can then claim CPUs and memory of one NUMA "
		"node, which a scheduler chooses (Kubernetes 1.36 and newer; 1.34 and 1.35 with the "
		"gate DRAConsumableCapacity); mode manage only",
		.restart = true),
	ROW("claims.capacity", kind_word, claims_capacity, "dynamic",
		"what schedulers may give to claims of each NUMA node. dynamic: what other "
		"containers do not hold; share: always claims.share of it, which nothing keeps free",
		.words = claims_capacity_words),
	ROW("claims.share", kind_number, claims_share, "50",
		"with claims.capacity share: per cent of the CPUs and memory of each NUMA node",
		.min = 1, .max = PER_CENT),
	ROW("claims.order", kind_word, claims_order, "most-allocated",
		"a scheduler takes the first NUMA node on which a claim fits. most-allocated: the "
		"one with fewest CPUs left comes first; least-allocated: the one with most",
		.words = claims_order_words),
	ROW("claims.prepareWait", kind_duration, claims_prepare_ms, "40s",
		"how long the kubelet waits at most for a claim whose CPUs or memory are not free "
		"yet; it gives up after 45 s by itself, and tries again more than a minute later",
		.max = CLAIMS_PREPARE_MAX_MS),
	ROW("claims.cdiDirectory", kind_path, claims_cdi, "/var/run/cdi",
		"where the container runtime looks for CDI files", .restart = true),
	ROW("events.enabled", kind_bool, events, "false",
		"emit refusals, schedulers' hints that could not be followed, and annotations that "
		"are not followed, as events of the pod",
		.restart = true),
	ROW("events.podNames", kind_word, pod_names, "own-namespace",
		"which other pods the events of a pod name, as pods that would have to end or move. "
		"own-namespace: pods of the same namespace; pods of other namespaces are counted, "
		"with their CPUs and NUMA nodes. all: every pod, for a cluster with one tenant",
		.words = pod_names_words),
	ROW("observedPlacement", kind_word, observed_placement, "off",
		"publish on each pod with CPUs of its own what it has of each NUMA node, which the "
		"kubelet's PodResources cannot show. kai: as the annotation that KAI's own "
		"exporter writes (needs podsWatch.enabled and podResources.enabled)",
		.words = observed_words),
	ROW("nodeResourceTopology.enabled", kind_bool, nrt, "false",
		"publish what each NUMA node has left, for schedulers: the NodeResourceTopology of "
		"this node",
		.restart = true),
	ROW("nodeResourceTopology.interval", kind_duration, nrt_interval_ms, "200ms",
		"between two writes of it at least", .min = REPORT_INTERVAL_MIN_MS,
		.max = REPORT_INTERVAL_MAX_MS),
	ROW("nodeResourceTopology.heartbeat", kind_duration, nrt_heartbeat_ms, "1m",
		"it is written that often even if nothing has changed", .min = HEARTBEAT_MIN_MS,
		.max = HEARTBEAT_MAX_MS),
	ROW("nodeResourceTopology.takeOver", kind_bool, nrt_take_over, "false",
		"write it even where another program does, too; false: log that, and leave it "
		"alone"),
	ROW("nodeResourceTopology.topologyPolicies", kind_bool, nrt_policies, "false",
		"with the deprecated field topologyPolicies, too, for old schedulers"),
	ROW("nodeResourceTopology.podsFingerprint", kind_word, nrt_fingerprint,
		"with-exclusive-resources",
		"which pods' fingerprint is in it, so that schedulers know what it has accounted "
		"for",
		.words = fingerprint_words),
	ROW("nodeResourceTopology.numaPlacement", kind_bool, nrt_placement, "false",
		"with the NUMA node of each container, for schedulers that preempt"),
	ROW("numatopology.enabled", kind_bool, numatopology, "false",
		"publish the Numatopology of this node, for Volcano", .restart = true),
	ROW("metrics.address", kind_text, metrics_address, "127.0.0.1:9465",
		"where metrics and health are served over HTTP, such as :9465 for every address; "
		"empty: nowhere",
		.optional = true, .restart = true),
	ROW("ui.address", kind_text, ui_address, "",
		"where the status page of this node is served over HTTP, on a loopback address such "
		"as 127.0.0.1:9466; not set: nowhere",
		.restart = true),
	ROW("ui.insecure", kind_bool, ui_insecure, "false",
		"take any other address as well: everybody who reaches it sees the names of all "
		"pods of this node",
		.restart = true),
	ROW("runDirectory", kind_path, run_directory, "/run/numafit",
		"where the journal is; on a tmpfs that outlives the daemon", .restart = true),
	ROW("journalMaxBytes", kind_size, journal_max_bytes, "16Mi",
		"the journal is rewritten when it grows beyond", .min = 64 * KIB,
		.max = KIB * KIB * KIB),
	ROW("journalGroup", kind_text, journal_group, "",
		"the group whose members may read the journal and enter runDirectory, by its name in "
		"/etc/group or its number; not set: root alone"),
	ROW("machine", kind_text, machine, "this",
		"this machine, or the name or path of a recorded one to try things on",
		.restart = true),
	ROW("logLevel", kind_word, log_level, "info", "lines above this level are not written",
		.words = log_words),
	ROW("logFormat", kind_word, log_format, "auto",
		"text: time=, level=, event=, then key=value. json: one object a line. journal: "
		"text with the priority in front that journald reads. auto: journal where systemd "
		"has connected standard error with journald, else text",
		.words = log_format_words),
	GATE_ROW("CPUManagerPolicyAlphaOptions", cpu_alpha_options, "false",
		"allow align-by-socket and distribute-cpus-across-cores"),
	GATE_ROW("CPUManagerPolicyBetaOptions", cpu_beta_options, "true",
		"allow distribute-cpus-across-numa"),
	GATE_ROW("CPUManagerPolicyOptions", cpu_options, "true",
		"allow " CPU_OPTIONS "; cannot be turned off", .locked = true),
	GATE_ROW("PodLevelResourceManagers", pod_level_resource_managers, "false",
		"share CPUs and memory of spec.resources out among the pod's containers; podsAPI.enabled "
		"or podsWatch.enabled must be set as well"),
	GATE_ROW("PodLevelResources", pod_level_resources, "true",
		"a pod's class is that of its spec.resources, where it has any"),
	GATE_ROW("TopologyManagerPolicyAlphaOptions", topology_alpha_options, "false",
		"allow numa-allocation-strategy"),
	GATE_ROW("TopologyManagerPolicyBetaOptions", topology_beta_options, "true",
		"allow beta options of the Topology Manager; there is none now"),
	GATE_ROW("TopologyManagerPolicyOptions", topology_options, "true",
		"allow " TOPOLOGY_OPTIONS "; cannot be turned off", .locked = true),
};
enum { NR_ROWS = sizeof rows / sizeof *rows };
/* options_given has a bit for each row of an option: they stand before this one. */
enum { OPTIONS_END = CHAR_BIT * sizeof((struct settings *)NULL)->options_given };

const struct row *settings_row(unsigned i)
{
	return i < NR_ROWS ? &rows[i] : NULL;
}

static uint64_t bit_of(const struct row *row)
{
	return row->option ? UINT64_C(1) << (row - rows) : 0;
}

bool settings_option_given(const struct settings *s, const struct row *row)
{
	return s->options_given & bit_of(row);
}

static void *row_field(struct settings *s, const struct row *row)
{
	return (char *)s + row->at;
}

/* Set it to its default. */
static void reset_row(struct settings *s, unsigned i)
{
	const struct row *row = &rows[i];

	assert(i < OPTIONS_END || !row->option);
	memset(row_field(s, row), 0, row->size);
	s->options_given &= ~bit_of(row);
	if (row->kind == &kind_reserved)
		s->nr_reserved_memory = 0;
	if (*row->fallback) {
		int rc = row->kind->parse(row, row->fallback, row_field(s, row), NULL);

		assert(rc == 0);
		(void)rc;
	}
}

const char *const core_rule_words[NR_CORE_RULES] = {
	[CORES_BY_AVERAGE] = "average",
	[CORES_WHOLE] = "whole",
};

void settings_init(struct settings *s)
{
	memset(s, 0, sizeof *s);
	s->cpu_options.core_rule = CORES_WHOLE;
	for (unsigned i = 0; i < NR_ROWS; i++)
		reset_row(s, i);
}

void settings_reset(struct settings *s, const char *key)
{
	for (unsigned i = 0; i < NR_ROWS; i++) {
		const char *rest = text_behind(rows[i].key, key);

		if (rest && (!*rest || *rest == '.'))
			reset_row(s, i);
	}
}

void settings_reload(struct settings *s, const struct settings *wanted)
{
	for (unsigned i = 0; i < NR_ROWS; i++) {
		const struct row *row = &rows[i];

		if (row->restart)
			continue;
		memcpy(row_field(s, row), (const char *)wanted + row->at, row->size);
		s->options_given &= ~bit_of(row);
		s->options_given |= wanted->options_given & bit_of(row);
	}
}

/* The key that was probably meant, or NULL. "pluginIndex" may mean "nri.pluginIndex". */
static const char *nearest_key(const char *key)
{
	struct nearest n;

	nearest_begin(&n, key);
	for (unsigned i = 0; i < NR_ROWS; i++) {
		const char *dot = strchr(key, '.') ? NULL : strchr(rows[i].key, '.');

		nearest_try(&n, rows[i].key, rows[i].key);
		if (dot)
			nearest_try(&n, dot + 1, rows[i].key);
	}
	return n.best;
}

/* Maps whose keys the kubelet knows too, and what it says of one that it does not know. */
static const struct {
	const char *group, *before, *after;
} foreign[] = {
	{TOPOLOGY_OPTIONS ".", "unknown Topology Manager Policy option: \"", "\""},
	{CPU_OPTIONS ".", "unknown CPU Manager Policy option: \"", "\""},
	{GATES ".", "unrecognized feature gate: ", ""},
};
enum { NR_FOREIGN = sizeof foreign / sizeof *foreign };

static int unknown_key(const char *key, struct err *e)
{
	const char *meant = nearest_key(key), *rest;

	for (unsigned i = 0; i < NR_FOREIGN; i++)
		if ((rest = text_behind(key, foreign[i].group)))
			return err_set(e, ENOENT, "%s%.*s%s", foreign[i].before, SETTING_SHOWN,
				rest, foreign[i].after);
	for (unsigned i = 0; i < NR_ROWS; i++)
		if ((rest = text_behind(key, rows[i].key)) && *rest == '.')
			return err_set(e, ENOENT, "%s: one value is expected, not a map or a list",
				rows[i].key);
	return meant ? err_set(e, ENOENT, "%.*s: unknown key, did you mean %s?", SETTING_SHOWN, key,
			       meant)
		     : err_set(e, ENOENT, "%.*s: unknown key", SETTING_SHOWN, key);
}

static const struct sections *const lists[] = {&namespaces_sections, &profiles_sections};
enum { NR_LISTS = sizeof lists / sizeof *lists };

/* The list that the key of a section is in, or NULL. */
static const struct sections *list_of(const char *key)
{
	for (size_t i = 0; i < NR_LISTS; i++) {
		const char *rest = text_behind(key, lists[i]->list);

		if (rest && *rest == '.')
			return lists[i];
	}
	return NULL;
}

int settings_set(struct settings *s, const char *key, const char *value, struct err *e)
{
	const struct sections *list = list_of(key);
	const struct row *row = NULL;
	int rc;

	for (unsigned i = 0; i < NR_ROWS && !row; i++)
		row = text_equal(rows[i].key, key) ? &rows[i] : NULL;
	for (const char *c = value; *c; c++)
		if (iscntrl((unsigned char)*c))
			return err_set(e, EINVAL, "%.*s: the value holds a control character",
				SETTING_SHOWN, key);
	if (!text_is_utf8(value, strlen(value)))
		return err_set(e, EINVAL, "%.*s: the value is not UTF-8", SETTING_SHOWN, key);
	if (row)
		rc = row->kind->parse(row, value, row_field(s, row), e);
	else if (text_behind(key, RESERVED "."))
		rc = reserved_set(s, key, value, e);
	else if (list)
		rc = sections_set(list, s, key, value, e);
	else if (settings_is_group(key))
		rc = err_set(e, EINVAL, "a map is expected, not \"%.*s\"", SETTING_SHOWN, value);
	else
		return unknown_key(key, e);
	if (rc < 0 && !(row && row->kind->whole_text))
		return err_add(e, rc, "%.*s", SETTING_SHOWN, key);
	if (!rc && row)
		s->options_given |= bit_of(row);
	return rc;
}

bool settings_is_group(const char *key)
{
	if (reserved_is_group(key))
		return true;
	for (size_t i = 0; i < NR_LISTS; i++)
		if (sections_is_group(lists[i], key))
			return true;
	for (unsigned i = 0; i < NR_ROWS; i++) {
		const char *tail = text_behind(rows[i].key, key);

		if (*key && tail && *tail == '.')
			return true;
	}
	return false;
}

bool settings_doc(unsigned i, struct setting_doc *doc)
{
	struct text t;

	if (i >= NR_ROWS)
		return false;
	doc->key = rows[i].key;
	doc->help = rows[i].help;
	doc->reloadable = !rows[i].restart;
	(void)text_copy(doc->fallback, sizeof doc->fallback, rows[i].fallback);
	text_init(&t, doc->type, sizeof doc->type);
	row_describe(&rows[i], &t);
	return true;
}

bool setting_is_any_text(const char *key)
{
	for (unsigned i = 0; i < NR_ROWS; i++)
		if (text_equal(rows[i].key, key))
			return rows[i].kind == &kind_text || rows[i].kind == &kind_path ||
			       rows[i].kind == &kind_namespaces ||
			       rows[i].kind == &kind_profiles;
	return true;
}

bool settings_get(const struct settings *s, unsigned i, char *buf, size_t cap)
{
	struct text t;

	if (i >= NR_ROWS)
		return false;
	text_init(&t, buf, cap);
	if (!rows[i].option || settings_option_given(s, &rows[i]))
		rows[i].kind->print(&rows[i], (const char *)s + rows[i].at, &t);
	return true;
}

unsigned settings_reserved_cpu_count(const struct settings *s)
{
	uint64_t milli = s->system_reserved_cpu_milli + s->kube_reserved_cpu_milli;

	if (!cpuset_empty(&s->reserved_cpus))
		return cpuset_count(&s->reserved_cpus);
	return (unsigned)((milli + MILLI - 1) / MILLI);
}
