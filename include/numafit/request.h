#ifndef NUMAFIT_REQUEST_H
#define NUMAFIT_REQUEST_H

#include <numafit/devices.h>
#include <numafit/err.h>
#include <numafit/pod.h>
#include <numafit/topo.h>
#include <stdbool.h>

/* What one container asks for, in the words that neighbours and core share. Strings are borrowed:
 * they live as long as the message that they were decoded from. */

/* A device node that the container's spec has. */
struct device_file {
	const char *path; /* in the container */
	char type;        /* 'c' or 'b' */
	uint32_t major, minor;
};

/* Numbers that an update of a running container may leave as they are. */
enum request_number {
	REQUEST_CPU = 1,       /* cpu_milli */
	REQUEST_CPU_LIMIT = 2, /* cpu_limit_milli */
	REQUEST_MEMORY = 4     /* memory[] */
};

/* Whether a container that runs is known to run with what its request says. A runtime may have
 * forgotten, with a restart of its own, what it has changed: it reports the container as it was
 * created then (CRI-O, up to 1.36 at least), and the kernel alone knows. */
enum in_force {
	IN_FORCE_SHOWN,   /* it is: the runtime knows, or the cgroup was read */
	IN_FORCE_UNKNOWN, /* it is what the runtime reports, and nobody can look */
	IN_FORCE_UNREAD   /* the same, but somebody is going to look: engine_note_in_force() */
};

/* Whose the tokens are that a container comes with, by what the kubelet's PodResources shows. */
enum token_owner {
	TOKENS_NOT_ASKED,     /* it is not asked */
	TOKENS_NOT_SHOWN_YET, /* it has not shown the container's pod yet */
	TOKENS_OWN,           /* just these are the container's */
	TOKENS_NOBODYS,       /* no container has them, and the container is none that it shows
				 of: what plain init containers have it never shows */
	TOKENS_ANOTHERS,      /* one is another pod's, or the container has others, or none */
	NR_TOKEN_OWNERS
};
extern const char *const token_owner_words[NR_TOKEN_OWNERS];

/* Whether the devices are known that a container has through claims (DRA). */
enum claims_known {
	CLAIMS_KNOWN,         /* they are, or it has none, or claims are not looked at */
	CLAIMS_NOT_SHOWN_YET, /* PodResources has not shown yet which devices they are */
	CLAIMS_NOT_PUBLISHED, /* of one there is no ResourceSlice, nor anything else that says where
				 it is */
	NR_CLAIMS_KNOWN
};
extern const char *const claims_known_words[NR_CLAIMS_KNOWN];
/* What a decision says of it; "" for the first one. */
extern const char *const claims_known_texts[NR_CLAIMS_KNOWN];

struct request {
	const char *container_id;
	struct ask ask;
	struct pod pod;
	int64_t created_at_ns; /* since the epoch; 0 when the runtime does not say */
	bool in_creation;      /* the runtime says that its process does not run yet */
	/* Of an update: REQUEST_CPU and such for what it does not name. There the numbers above
	 * are the runtime's, which may have forgotten others. */
	unsigned unnamed;
	const char *cpus, *mems; /* kernel lists in the container's spec; "" when not set */
	enum in_force in_force;  /* of the cpuset, and the numbers; for engine_synchronize() */
	const char *placement;   /* value of its numafit.io/placement annotation, or NULL */
	bool no_memory_policy;   /* the runtime cannot set one; request_lacks_memory_policy() */
	bool has_own_mount;      /* something is mounted at or below /run/numafit */
	const char *cgroup;      /* its cgroup in the runtime's words (host/cgroup.h), or NULL */
	/* Value of the numafit.io/allocated annotation (leases.h) that the kubelet put on the
	 * container, or NULL. Never from the pod's annotations. */
	const char *allocated;
	enum token_owner owner; /* of the tokens in it */
	/* Of a container: the shares of claims that it comes with, by their ids in the ledger, with
	 * spaces between. NULL: none; "": it is not known which. From CDI devices, which the
	 * kubelet alone gives. */
	const char *shares;
	/* Of a share: the uids of the pods that its claim is reserved for, with spaces between;
	 * whether several containers may run on it at a time; and whether its claim was made for
	 * that one pod, from a template. */
	const char *for_pods;
	bool for_many, for_one_pod;
	enum claims_known claims;
	enum pod_apart apart; /* why it was not decided with its pod, which was known */
	const struct device_file *file;
	size_t nr_files;
	const char *const *cdi; /* names of CDI devices, "vendor/class=device" */
	size_t nr_cdi;
};

/* What the pod's container of that place asks for, all of whose containers are known; behind them
 * what the pod asks for that has resources of its own. It has no container id yet. */
struct request request_of_part(const struct pod *pod, size_t place);

/* A container's resources as a runtime holds them: cgroup values, not Kubernetes' numbers. */
struct linux_resources {
	bool has_shares, has_quota, has_period, has_memory_limit;
	uint64_t cpu_shares, cpu_period;
	int64_t cpu_quota, memory_limit;
	unsigned nr_hugepages;
	struct memory_ask hugepages[TOPO_KINDS];
};

/* The CPU request that the kubelet turned into shares (m -> clamp(m * 1024 / 1000, 2, 262144)),
 * rounded back: whole CPUs come back exactly; 2 shares and fewer mean no request. At the upper
 * clamp (256 CPUs) the quota decides when there is one. */
uint64_t cpu_milli_from_shares(const struct linux_resources *r);
/* Fill cpu_milli, cpu_limit_milli and memory[] of *req, whose pod.qos is set, from *r: a
 * Guaranteed container's memory request is its limit, of the others it cannot be seen. A quota
 * or limit of 0 or below is none. Page sizes beyond TOPO_KINDS - 1 different ones: -E2BIG. */
int request_from_resources(struct request *req, const struct linux_resources *r, struct err *e);
/* Whether these limits may be in force for the request, which is Guaranteed: rounded as OCI
 * runtimes and the kernel do (quotas up to 10 ms in a second for systemd, memory down to whole
 * pages). A limit that is not there fits any request. */
bool request_has_limits(const struct request *req, const struct linux_resources *in_force);
/* The request becomes what these limits say of a Guaranteed container: its requests are its limits.
 * What has none stays. */
void request_take_limits(struct request *req, const struct linux_resources *in_force);
/* Page size of cgroup's and Kubernetes' words for it: "2MB", "1GB", "64KB", "2Mi". 0: not one. */
uint64_t page_bytes_from_name(const char *name);

/* How many CPUs the container gets for itself: its request when the pod is Guaranteed and the
 * request is whole CPUs, else 0; 0 also in a pod with resources of its own where it is not
 * `guaranteed` (kubelet policy_static.go, guaranteedCPUs); as its wishes have it. */
unsigned request_exclusive_cpus(const struct request *req);
/* Whether its pod wishes for a memory policy that the runtime cannot set, and what is said then. */
static inline bool request_lacks_memory_policy(const struct request *req)
{
	return req->no_memory_policy && req->ask.wishes.memory;
}
extern const char request_no_memory_policy_text[];
/* Whether anything of the request shows a device of its, tokens apart: ask.has_devices, devices
 * that are asked for or given to it, claims, device nodes and CDI devices in its spec. */
bool request_has_devices(const struct request *req);
/* Whether memory is pinned for it: Guaranteed pods only (kubelet memorymanager). */
bool request_pins_memory(const struct request *req);

#endif
