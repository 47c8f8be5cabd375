#ifndef NUMAFIT_CODEC_STATUS_JSON_H
#define NUMAFIT_CODEC_STATUS_JSON_H

#include <codec/moves_json.h>
#include <codec/words.h>
#include <numafit/request.h>
#include <numafit/snapshot.h>

/* What `numafit status` shows, as one JSON document: the daemon writes it, the command line prints
 * it or reads it back for its table. */

/* All since the daemon's start. */
struct status_counters {
	uint64_t creates;   /* containers that were asked for, admitted or not */
	uint64_t refused;   /* of these */
	uint64_t cut_short; /* decisions whose search ran out of mergeVisitBudget */
	uint64_t adopted;   /* found running and taken over */
	uint64_t updates;   /* other containers' cpusets that were set anew */
	uint64_t released;  /* containers that are gone */
	uint64_t compared;  /* mode shadow: containers that the kubelet gave a cpuset */
	uint64_t disagreed; /* of these, those that numafit would have placed otherwise */
	uint64_t drifted;   /* times that a container was found to run otherwise than placed */
	uint64_t relocated; /* times that one lost or got CPUs or memory as the machine changed */
	uint64_t advice_accepted; /* schedulers' advice that were followed, stale ones too */
	uint64_t advice_repaired; /* that could not be, where others did as well */
	uint64_t advice_rejected;
	uint64_t connects;    /* sessions with the runtime that became ready */
	uint64_t log_dropped; /* lines that the log's reader was too slow for */
};

/* What speaks with the kubelet. */
struct status_kubelet {
	const char *device_plugin;                   /* its registration's state, a word; "off" */
	unsigned tokens, unhealthy, leased, waiting; /* of numafit.io/cpu; waiting: leased ones
							whose container is still to come */
	const char *pod_resources;                   /* "off", "waiting", "up" */
	const char *pods_api; /* "off", "waiting", "up", "absent": not served */
	uint64_t pods;        /* that the Pods API has reported */
};

/* The config file, which is read again when it changes. */
struct status_config {
	const char *file;
	const char *refused; /* why what it says now is not in force; NULL: it is */
	const char *restart; /* keys whose new value waits for a restart; NULL: none */
	const char *digest;  /* of the file that is in force: how its SHA-256 begins */
	uint64_t waits_ms; /* until what the file says now is put in force; 0: it is, or is refused
			    */
	uint64_t reloads, refusals;
};

/* How we are with the API server. */
struct status_apiserver {
	const char *unusable; /* why the credentials for it cannot be used, or read anew; NULL */
	uint64_t failures;    /* times that this was so */
};

/* Devices of claims (DRA). */
struct status_claims {
	const char *slices_watch;  /* of this node's ResourceSlices: "waiting", "up" */
	uint64_t slices, devices;  /* that there are, that are known */
	uint64_t incomplete_pools; /* whose newest slices have not all come */
	/* Containers that were decided without a device of their claims: it was not shown yet, or
	 * nothing says where it is. */
	uint64_t unknown[NR_CLAIMS_KNOWN - 1];
	uint64_t waits, waited_ns; /* answers that waited, all in all */
};

/* The DRA driver numafit.io. */
struct status_dra {
	const char *
		registration; /* with the kubelet: "waiting", "offered", "asked", "refused", "up" */
	uint64_t slice_generation; /* of the ResourceSlice that the API server has; 0: none */
	bool slice_current;        /* it is as it should be */
	/* Claims since the daemon's start; those that the kubelet waits for now; how long it waited
	 * for those that were prepared, all in all. */
	uint64_t prepared, unprepared, failed, waiting, waited_ms;
};

/* Containers of the shared pool that may run on fewer CPUs than the pool gives them. */
enum confined_by {
	CONFINED_BY_CGROUP,   /* a cgroup above has fewer */
	CONFINED_BY_AFFINITY, /* their processes have a CPU affinity, inherited from the runtime */
	CONFINED_BY_PROCESS,  /* a CPU affinity that is not the runtime's, which a program may want
			       */
	NR_CONFINED_BY
};
/* "cgroup", "affinity", "process" */
extern const char *const confined_by_words[NR_CONFINED_BY];
enum { CONFINED_NAME_MAX = 512 };
struct status_confined {
	enum confined_by by;
	uint64_t containers;
	struct cpuset cpus;  /* that the example may run on */
	const char *example; /* one of them: "namespace/pod/container" */
};

/* How the shared pool is enforced. */
struct status_pool {
	const char *enforced;    /* a word: "cgroup" or "updates" */
	const char *why_updates; /* why not by cgroups, though that was not asked for; or NULL */
	const char *problem;     /* why a cgroup could not be written; NULL: all are */
	uint64_t cgroups;        /* that are bounded now */
	uint64_t writes;         /* of their cpusets */
	uint64_t rewritten;      /* times that another program had changed one */
	uint64_t idle;           /* CPUs that are in no cpuset of a container: sharedPoolStep */
	unsigned nr_confined;
	struct status_confined confined[NR_CONFINED_BY];
};

/* The CFS quota of containers with CPUs of their own, and of their pods. */
struct status_quota {
	const char *use;              /* a word: "lift" or "keep" */
	const char *containers_alone; /* why pods' is not lifted, though it is to be; or NULL */
	const char *problem;          /* why one could not be written; NULL: all are */
	uint64_t pods;                /* whose quota is lifted */
	uint64_t rewritten;           /* times that another program had set one */
};

/* Interrupts and frequencies of CPUs whose containers wish for quiet (numafit.io/quiet). */
struct status_quiet {
	struct cpuset irq_cpus, frequency_cpus; /* off which interrupts are kept; with a profile */
	uint64_t moved, unmovable;              /* interrupts that are kept off; that come there */
	uint64_t clock_shared; /* CPUs that keep the frequency of others beside them */
	uint64_t rewritten;    /* times that another program had moved one back */
	bool irqbalance;       /* it runs */
	const char *interrupts_not, *frequencies_not; /* why not even tried; NULL: they are */
	const char *problem;                          /* why one could not be set; NULL: all are */
};

/* What only the daemon knows. */
struct status_info {
	const char *version;    /* numafit's */
	const char *connection; /* to the runtime, a word: "connecting", "synchronizing", "ready" */
	const char *runtime;    /* its name and version, or "" */
	uint64_t uptime_ms;
	uint64_t generation; /* of what is free, as it is reported to schedulers */
	const char
		*journal; /* why it cannot be written, and containers are refused; NULL: it can */
	const char *journal_writers; /* who else could have written the journal; NULL: nobody, or an
					older daemon */
	const char *pod_facts;       /* where a pod's containers are known from, a word: "kubelet",
					"apiserver", "sandbox"; NULL: an older daemon */
	const struct status_kubelet *kubelet;     /* NULL: all of it is off */
	const struct status_config *config;       /* NULL: there is no file */
	const struct status_apiserver *apiserver; /* NULL: nothing is sent to it nor asked of it */
	const struct status_claims *claims;       /* NULL: they are not looked at */
	const struct status_dra *dra;             /* NULL: it is off */
	const struct status_pool *enforcement;    /* NULL: an older daemon */
	const struct status_quota *quota;         /* likewise */
	const struct status_quiet *quiet;         /* NULL: nobody may wish for it */
	const struct moves *moves; /* the last that were made, or are under way; NULL: none */
	struct status_counters counters;
	struct cpuset offline; /* CPUs that the machine has and that are offline */
};

/* How far the CPUs lie apart that containers can still have for their own. */
struct status_fragmentation {
	unsigned ratio_milli;    /* node_fragmentation_milli() */
	uint64_t free_cpus;      /* that containers can still be given */
	uint64_t largest_cpus;   /* what the largest container on one NUMA node can have, */
	uint64_t possible_cpus;  /* and what it could if the free CPUs lay together */
	uint64_t largest_memory; /* ordinary memory, on one NUMA node, bytes */
	/* Containers with CPUs of their own, on more NUMA nodes than could have been enough. */
	unsigned not_preferred;
};

struct status_memory {
	const char *type;           /* "memory", "hugepages-2Mi" */
	uint64_t allocatable, free; /* bytes */
};

/* CPUs of a NUMA node that are each the first, the second, ... thread of its core. */
struct status_threads {
	struct cpuset cpus;
};

struct status_node {
	unsigned id;
	bool has_socket;       /* all its CPUs are on one socket: */
	unsigned socket;       /* as reported */
	struct cpuset sockets; /* of its CPUs, if they are on several; else empty */
	const struct status_threads
		*threads; /* all of its CPUs; none: it has none, or an older daemon */
	size_t nr_threads;
	unsigned cpus, cpus_held, cpus_reserved, cpus_pool;
	unsigned cpus_available;  /* that a newcomer could be given of it; older daemons: 0 */
	bool device_memory;       /* the memory is a device's; older daemons do not say so */
	const char *memory_group; /* nodes whose memory is held together with this one's */
	const struct status_memory *memory;
	size_t nr_memory;
};

struct status_container {
	const char *ns, *pod, *container, *id;
	enum qos qos;
	enum decision_source source;
	bool exclusive, preferred, left; /* left: it runs as it was found, on cpus; "": on any */
	bool shares_in_pod;              /* it shares CPUs of its pod with containers of it */
	const char *cpus, *mems;
	const char *nodes;  /* the NUMA affinity; NULL: none */
	const char *wishes; /* "cpus=shared cores=whole"; NULL: none */
	/* What it asked for: thousandths of a CPU, bytes. Older daemons do not say so. */
	uint64_t cpu_milli, memory, hugepages;
};

/* A share of a ResourceClaim. */
struct status_share {
	const char *ns, *claim, *place;
	const char *node; /* its NUMA node */
	const char *cpus;
	uint64_t containers; /* that run on it */
};

struct status {
	struct status_info info;
	const char *machine;
	struct word_list settings; /* all in force, by key */
	struct cpuset pool, reserved, isolated;
	/* Older daemons do not say so: CPUs that containers, pods and claims have for their own;
	 * that containers are left on as they were found; online CPUs of no NUMA node. */
	struct cpuset held, left, nodeless;
	const struct status_fragmentation *fragmentation; /* NULL: an older daemon */
	const struct status_node *nodes;
	size_t nr_nodes;
	const struct status_container *containers;
	size_t nr_containers;
	const struct status_share *shares;
	size_t nr_shares;
};

enum { STATUS_JSON_MAX = 64 << 20 };

/* The document, without a newline; the caller frees. NULL when it would exceed STATUS_JSON_MAX. */
char *status_json_format(const struct status_info *info, const struct settings *s,
	const struct snapshot *snapshot, const struct ledger *l);

/* Read it back; everything lives in *a. 0; -EINVAL, -ERANGE: not such a document; -ENOMEM: the
 * arena's limit. */
int status_json_parse(
	const char *text, size_t len, struct arena *a, struct status *out, struct err *e);

#endif
