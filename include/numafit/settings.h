#ifndef NUMAFIT_SETTINGS_H
#define NUMAFIT_SETTINGS_H

#include <numafit/cpuset.h>
#include <numafit/err.h>
#include <numafit/hint.h>
#include <numafit/kubernetes.h>
#include <numafit/log_level.h>
#include <numafit/mistakes.h>
#include <numafit/topo.h>
#include <numafit/wishes.h>
#include <stdbool.h>

/* All that an operator can set, under the kubelet's names where the kubelet has one. One table in
 * settings.c holds name, type, range, default and help of every key; the config file, --set, the
 * checks and the printed documentation all come from it. */

enum mode { MODE_OFF, MODE_MANAGE, MODE_SHADOW, MODE_RELEASE };
/* What becomes of containers that were created while numafitd was away. */
enum on_adopt { ADOPT_PLACE, ADOPT_LEAVE };
/* What manage becomes where the kubelet's own managers are static. */
enum beside { BESIDE_SHADOW, BESIDE_MANAGE };
/* From the least to the most strict (advice_policy_of() compares them). */
enum topology_policy {
	POLICY_NONE,
	POLICY_BEST_EFFORT,
	POLICY_RESTRICTED,
	POLICY_SINGLE_NUMA_NODE,
	NR_POLICIES
};
/* schedulerHint.mode, and what a hint asks for: what is done when it cannot be followed. */
enum advice_mode {
	ADVICE_OFF,     /* hints are not looked at */
	ADVICE_PREFER,  /* it is dropped, and counted */
	ADVICE_REQUIRE, /* the container is refused */
	NR_ADVICE_MODES
};
enum topology_scope { SCOPE_CONTAINER, SCOPE_POD };
/* Whether containers get memory of NUMA nodes that are a device's. */
enum device_memory { DEVICE_MEMORY_EXCLUDE, DEVICE_MEMORY_INCLUDE };
enum manager_policy { MANAGER_NONE, MANAGER_STATIC }; /* cpuManagerPolicy, memoryManagerPolicy */
/* What becomes of a pod whose container is refused: its create fails, again and again; or it is
 * evicted as well, so that its controller makes another one elsewhere. */
enum refusal_action { REFUSAL_ERROR, REFUSAL_EVICT };
/* What claims may have of a NUMA node (shares.h). */
enum claims_capacity { CLAIMS_DYNAMIC, CLAIMS_SHARE };
/* Which NUMA nodes a scheduler is to fill first. */
enum claims_order { CLAIMS_MOST_ALLOCATED, CLAIMS_LEAST_ALLOCATED };
enum observed_placement { OBSERVED_OFF, OBSERVED_KAI };
/* podsAPI.enabled. Auto: while the kubelet serves it. */
enum pods_api_use { PODS_API_AUTO, PODS_API_ON, PODS_API_OFF };
/* nodeResourceTopology.podsFingerprint */
enum pods_fingerprint { PODS_FINGERPRINT_NONE, PODS_FINGERPRINT_ALL, PODS_FINGERPRINT_EXCLUSIVE };
/* nri.failurePolicy: two choices of containerd/nri's FailurePolicy, as bits. */
enum failure_policy { FAILURE_FAIL_REQUEST = 1, FAILURE_KEEP_CONNECTED = 2 };

enum {
	SETTINGS_PATH_MAX = 256,
	SETTINGS_SOCKET_MAX = 108,
	ADVICE_ORDER_MAX = 128,
	CONTEXT_NAME_MAX = 128,
	ADDRESS_MAX = 128,
	NODE_NAME_MAX = 254,
	GROUP_NAME_MAX = 64,
	RESERVED_MEMORY_MAX = NODES_MAX * 2,
	DEFRAG_MOVES_MAX = 8 /* in one plan (defrag.h) */
};

/* How containers are kept in the shared pool. */
enum pool_enforced { POOL_BY_EITHER, POOL_BY_CGROUPS, POOL_BY_UPDATES, NR_POOL_ENFORCED };
extern const char *const pool_enforced_words[NR_POOL_ENFORCED + 1]; /* "auto", "cgroup", ... */
enum { SHARED_POOL_STEP_AUTO = CPUSET_BITS + 1 };

/* What becomes of the CFS quota of containers that have CPUs for themselves, and of their pods. */
enum quota_use { QUOTA_LIFT, QUOTA_KEEP, NR_QUOTA_USES };
extern const char *const quota_use_words[NR_QUOTA_USES + 1]; /* "lift", "keep", NULL */

/* What is done where moving running containers would make room (defrag.h): nothing; it is said;
 * it is done when an operator asks for it; or by itself as well, when a pod was refused. */
enum defrag_mode { DEFRAG_OFF, DEFRAG_ADVISE, DEFRAG_ON_DEMAND, DEFRAG_AUTO, NR_DEFRAG_MODES };
extern const char *const defrag_mode_words[NR_DEFRAG_MODES + 1]; /* "off", "advise", ... */
/* Which containers are moved by itself: those whose pod says so, or all that do not say no. */
enum movable_use { MOVABLE_ANNOTATED, MOVABLE_ALL, NR_MOVABLE_USES };

/* Which other pods are named in texts that a pod's author sees: those of the author's own namespace,
 * others by number and size; or all, on a cluster of one tenant. */
enum pod_names { POD_NAMES_OWN_NAMESPACE, POD_NAMES_ALL };

/* What becomes of a container with a wish that cannot be read. */
enum unknown_wish { UNKNOWN_WISH_REFUSE, UNKNOWN_WISH_IGNORE };

/* What containers of Burstable pods have of the shared pool, unless they wish for something else.
 */
enum burstable_use { BURSTABLE_ANY, BURSTABLE_ONE_NODE };
/* The memory policy of containers with CPUs of their own whose memory is on several NUMA nodes,
 * unless they wish for one. */
enum across_nodes { ACROSS_NONE, ACROSS_INTERLEAVE };

/* One entry of the kubelet's reservedMemory, one kind of memory of it. */
struct reserved_memory {
	unsigned entry; /* its number in the list */
	bool has_node;
	unsigned node_id; /* kernel id */
	char type[32];    /* "memory", "hugepages-1Gi" */
	uint64_t bytes;
};

/* What the operator says of the pods of some namespaces (namespaces.h). */
enum { NAMESPACES_MAX = 16, NAMESPACE_NAMES_MAX = 256 };
struct namespace_section {
	char names[NAMESPACE_NAMES_MAX]; /* patterns with * and ?, commas between them */
	unsigned allowed;     /* bits of WISHES_CPUS, ...: what pods may wish for here as well */
	struct wishes wishes; /* of containers that do not say otherwise */
	bool force;           /* of all of them, whatever they say; and nothing keeps containers
				 that are left untouched within the shared pool */
	bool reserved;        /* they run on the CPUs that are reserved for the system */
};
struct namespaces {
	unsigned nr;
	struct namespace_section at[NAMESPACES_MAX];
};

/* What CPUs of containers that wish for it are set to (numafit.io/quiet: frequency=NAME): cpufreq's
 * and cpuidle's files (Documentation/admin-guide/pm/). What is "" or not said stays as it is. */
enum { PROFILES_MAX = 16, PROFILE_WORD_MAX = 32, PROFILE_MHZ_MAX = 100 * 1000 };
enum { PROFILE_LATENCY_MAX_US = 1000 * 1000 };
struct frequency_profile {
	char name[WISH_CLASS_MAX];
	char governor[PROFILE_WORD_MAX];           /* "performance" */
	char energy_performance[PROFILE_WORD_MAX]; /* energy_performance_preference */
	unsigned min_mhz, max_mhz;                 /* 0: not said */
	bool limits_idle; /* by: idle states that take longer to leave are not entered, */
	unsigned idle_latency_us;
};
struct frequency_profiles {
	unsigned nr;
	struct frequency_profile at[PROFILES_MAX];
};
/* The profile's number, or nr when there is none of that name. */
unsigned profiles_find(const struct frequency_profiles *all, const char *name);

/* What full-pcpus-only counts. */
enum core_rule {
	CORES_BY_AVERAGE, /* the kubelet's: CPUs divided by cores, wherever the CPUs lie */
	CORES_WHOLE,      /* each core as it is, as a whole or not at all (cores.h) */
	NR_CORE_RULES
};
extern const char *const core_rule_words[NR_CORE_RULES]; /* "average", "whole" */

/* cpuManagerPolicyOptions, in the kubelet's words (pkg/kubelet/cm/cpumanager/policy_options.go). */
struct cpu_options {
	bool full_pcpus_only;
	bool distribute_cpus_across_numa;
	bool align_by_socket;
	bool distribute_cpus_across_cores;
	bool strict_cpu_reservation;
	bool prefer_align_cpus_by_uncorecache;
	enum core_rule core_rule;           /* for full-pcpus-only */
	enum kubernetes_version kubernetes; /* the kubelet that is followed where they differ */
};

/* featureGates: those of the kubelet that decide which options there are
 * (pkg/features/kube_features.go). */
struct feature_gates {
	bool topology_options, topology_alpha_options, topology_beta_options;
	bool cpu_options, cpu_alpha_options, cpu_beta_options;
	bool pod_level_resources, pod_level_resource_managers;
};

struct settings {
	enum mode mode;
	enum on_adopt on_adopt;
	enum beside beside_static_kubelet;
	char kubelet_root[SETTINGS_PATH_MAX];
	enum topology_policy topology_policy;
	enum topology_scope topology_scope;
	bool prefer_closest_numa_nodes;
	unsigned max_allowable_numa_nodes; /* 0: no limit */
	enum allocation_strategy allocation_strategy;
	enum manager_policy cpu_manager_policy, memory_manager_policy;
	enum device_memory device_memory;
	struct cpu_options cpu_options;
	uint64_t merge_visit_budget; /* steps of all searches for one event (budget.h); 0: no bound,
					which is not for a daemon */
	struct feature_gates gates;
	uint64_t options_given; /* which options have a value, if only "false" */
	struct cpuset reserved_cpus;
	uint64_t system_reserved_cpu_milli, kube_reserved_cpu_milli;
	struct reserved_memory reserved_memory[RESERVED_MEMORY_MAX];
	unsigned nr_reserved_memory;
	enum pool_enforced pool_enforced; /* in a running daemon never POOL_BY_EITHER */
	unsigned shared_pool_step;    /* CPUs that a NUMA node's shared pool gives up or gets back
					 beyond need; or SHARED_POOL_STEP_AUTO */
	unsigned shared_pool_minimum; /* CPUs that the shared pool never falls below */
	enum quota_use quota_use;
	struct {
		enum defrag_mode mode;
		enum movable_use movable;
		unsigned moves_per_plan,
			moves_per_hour;    /* at most; the first 1 to DEFRAG_MOVES_MAX */
		uint64_t bytes_per_minute; /* of memory, at most */
		uint64_t min_interval_ms;  /* between two moves of a container, at least */
	} defrag;
	unsigned wishes_allowed; /* which wishes pods may have (wishes.h) */
	enum unknown_wish unknown_wish;
	struct namespaces namespaces;
	struct frequency_profiles profiles;
	enum burstable_use burstable;
	enum across_nodes across_nodes;
	bool container_environment; /* a new container's environment says what it has */
	uint64_t sweep_interval_ms; /* between two looks at what is in force; 0: none */
	uint64_t rollout_delay_ms;  /* within which a changed file is put in force; 0: at once */
	enum advice_mode advice_mode;
	bool advice_repair;      /* place where a hint cannot be followed but others do as well */
	bool advice_policy;      /* a pod may ask for a stricter topology policy */
	uint64_t advice_skew_ms; /* how far ahead of ours a scheduler's clock may be */
	char advice_order[ADVICE_ORDER_MAX]; /* formats, the first one first */
	char node_name[NODE_NAME_MAX];       /* the node's in Kubernetes; "": not known */
	char nri_socket[SETTINGS_SOCKET_MAX];
	char nri_index[3];           /* two digits: the place in the runtime's chain of plugins */
	unsigned nri_failure_policy; /* bits of enum failure_policy */
	bool device_plugin;          /* serve numafit.io/cpu to the kubelet */
	bool pre_start_container;   /* and hold containers back while the runtime does not ask us */
	uint64_t reclaim_after_ms;  /* give up tokens for which no container came */
	bool pod_resources;         /* ask the kubelet for what it has given out */
	enum pods_api_use pods_api; /* watch the kubelet's pods */
	char kubelet_config[SETTINGS_PATH_MAX]; /* the kubelet's config file; mode shadow */
	enum refusal_action refusal_action;
	char kubeconfig[SETTINGS_PATH_MAX]; /* "": as a pod of the cluster */
	char kube_context[CONTEXT_NAME_MAX];
	bool pods_watch;         /* the API server's pods of this node */
	bool device_claims;      /* this node's ResourceSlices, for devices of claims */
	uint64_t claims_wait_ms; /* for a pod's */
	bool claims;             /* a DRA driver: claims of CPUs and memory */
	enum claims_capacity claims_capacity;
	unsigned claims_share; /* per cent */
	enum claims_order claims_order;
	uint64_t claims_prepare_ms;         /* a Prepare waits for room so long */
	char claims_cdi[SETTINGS_PATH_MAX]; /* the runtime's directory of CDI files */
	bool events;                        /* on pods */
	enum pod_names pod_names;
	enum observed_placement observed_placement;
	/* NodeResourceTopology */
	bool nrt, nrt_take_over, nrt_policies, nrt_placement;
	enum pods_fingerprint nrt_fingerprint;
	uint64_t nrt_interval_ms, nrt_heartbeat_ms;
	bool numatopology;                 /* Volcano's */
	char metrics_address[ADDRESS_MAX]; /* "": none */
	char ui_address[ADDRESS_MAX];      /* of the status page; "": none */
	bool ui_insecure;                  /* that may be another address than a loopback one */
	char run_directory[SETTINGS_PATH_MAX];
	uint64_t journal_max_bytes;         /* the journal is rewritten when it grows beyond */
	char journal_group[GROUP_NAME_MAX]; /* whose members may read it: a name, or a number */
	char machine[SETTINGS_PATH_MAX];    /* "this", a machine's name, or a path */
	enum log_level log_level;
	enum log_format log_format;
};

/* Every key at its default. */
void settings_init(struct settings *s);

/* Set one key from text. A key inside a map or list is written with dots:
 * "nri.socketPath", "topologyManagerPolicyOptions.prefer-closest-numa-nodes",
 * "reservedMemory.0.limits.memory". The text of the error names key, value and what was expected
 * (for an option that the kubelet knows too, in the kubelet's own words).
 * 0; -ENOENT: no such key (the nearest one is suggested); -EINVAL, -ERANGE: not a fitting value.
 * *s is unchanged on error. */
int settings_set(struct settings *s, const char *key, const char *value, struct err *e);
/* Whether key names a map or a list, under which settings_set() takes keys ("nri"). */
bool settings_is_group(const char *key);
/* The key, or every key of that map or list, is as if nobody had said anything. */
void settings_reset(struct settings *s, const char *key);
/* Take from *wanted what a running daemon can change; what needs a restart stays (setting_doc). */
void settings_reload(struct settings *s, const struct settings *wanted);

/* What no key alone can show: what the kubelet would refuse to start with, in its order and words;
 * what is not there yet, reserved CPUs that leave a CPU free, reservedMemory entries that name a
 * node, and, with a machine (t may be NULL), that its CPUs, NUMA nodes and huge page sizes exist
 * and that the reservations fit into them. 0, -EINVAL or -E2BIG; the text names the key. */
int settings_check(const struct settings *s, const struct topo *t, struct err *e);
/* The part of it that a kubelet checks when it starts, in the kubelet's order: feature gates,
 * reservedSystemCPUs, options of its Topology and CPU managers, the number of NUMA nodes. As
 * settings_check(); t is not NULL. */
int settings_check_kubelet(const struct settings *s, const struct topo *t, struct err *e);

/* The same for a daemon, which others wait for: mergeVisitBudget must have a bound, 1 to
 * MERGE_VISIT_BUDGET_MAX. A step takes some 20 ns, twice as long on a slow machine: that is a small
 * part of the 2 s for which a runtime waits. And with a machine sharedPoolMinimum, unless it is 1,
 * must leave a CPU of it. With a list (e is not NULL then) all mistakes are
 * added to it, by their keys. */
int settings_check_daemon(
	const struct settings *s, const struct topo *t, struct mistakes *all, struct err *e);
enum { MERGE_VISIT_BUDGET_MAX = 8 << 20 };

/* A key of the kubelet's that is set, and the reason for which it changes no decision beside the
 * other settings: an operator may have meant something else. Static texts. */
struct idle_setting {
	const char *key, *why;
};
enum { IDLE_SETTINGS_MAX = 16 };
/* All of them; returns their number. */
unsigned settings_idle(const struct settings *s, struct idle_setting found[IDLE_SETTINGS_MAX]);

/* How many CPUs are kept for the system: as many as reservedSystemCPUs has, or, where that is not
 * given, systemReserved.cpu and kubeReserved.cpu together, rounded up to whole ones (kubelet
 * cpumanager.NewManager and cmd/kubelet/app/server.go). Which ones is the allocator's choice. */
unsigned settings_reserved_cpu_count(const struct settings *s);

/* CPUs that the shared pool never falls below: one at least, whatever sharedPoolMinimum says. */
static inline unsigned settings_pool_minimum(const struct settings *s)
{
	return s->shared_pool_minimum ? s->shared_pool_minimum : 1;
}

/* Why a refusal keeps these CPUs shared, in words: "sharedPoolMinimum is 4"; where it is 0: "and
 * always keeps 1 (sharedPoolMinimum is 0)". Returns buf. */
enum { POOL_MINIMUM_TEXT_MAX = 64 };
const char *settings_pool_minimum_text(const struct settings *s, char buf[POOL_MINIMUM_TEXT_MAX]);

/* One row of the table, for printing: key, "none | best-effort | ...", default, help. */
struct setting_doc {
	const char *key, *help;
	char type[96], fallback[96];
	bool reloadable; /* a running daemon takes another value, for new containers; else it needs
			    a restart */
};
/* A value's text, the NUL included: a reservation of each kind on each node is the longest. */
enum { SETTING_TEXT_MAX = 16 << 10 };
/* Row i into *doc; false when there are no more. */
bool settings_doc(unsigned i, struct setting_doc *doc);
/* The value in force of row i as text, into buf; false when there are no more rows. */
bool settings_get(const struct settings *s, unsigned i, char *buf, size_t cap);

/* The words of the config file: "manage", "single-numa-node", "container", "Static", "info". */
extern const char *const mode_words[MODE_RELEASE + 2]; /* NULL ends each */
extern const char *const topology_policy_words[NR_POLICIES + 1];
extern const char *const topology_scope_words[SCOPE_POD + 2];

#endif
