/* core: an allocated ResourceClaim */
#ifndef NUMAFIT_RESOURCE_CLAIM_H
#define NUMAFIT_RESOURCE_CLAIM_H

#include <numafit/err.h>
#include <numafit/pod.h>

/* A ResourceClaim (DRA, resource.k8s.io/v1) that a scheduler has allocated: what of this node's
 * CPUs and memory it has. Each device of driver numafit.io is a NUMA node, and each result of the
 * allocation for it is a *share*: some CPUs and bytes of that NUMA node, for whoever the claim is
 * reserved for. A share is in the ledger from its Prepare to its Unprepare, whether a container
 * runs on it or not. */

#define CLAIM_DRIVER "numafit.io"
/* A container that has a share comes with this CDI device: CLAIM_CDI_KIND "=UID-PLACE" (the claim's
 * uid, and the share's place in its list). */
#define CLAIM_CDI_KIND "numafit.io/claim"
/* Names of devices, and of what a share consumes (consumedCapacity): a kind of huge pages is
 * CLAIM_CAPACITY_HUGEPAGES with its size in Kubernetes' words ("hugepages_1Gi"). */
#define CLAIM_DEVICE_PREFIX      "numa" /* with the NUMA node's kernel id in decimal */
#define CLAIM_CAPACITY_CPU       "cpu"
#define CLAIM_CAPACITY_MEMORY    "memory"
#define CLAIM_CAPACITY_HUGEPAGES "hugepages_"

enum {
	CLAIM_SHARES_MAX = 32, /* AllocationResultsMaxSize of resource.k8s.io/v1 */
	CLAIM_PODS_MAX = 256,  /* ResourceClaimReservedForMaxSize */
	CLAIM_UID_MAX = 64     /* with its end */
};

struct claim_share {
	const char
		*request; /* of the claim: "NAME" or, of a firstAvailable list, "NAME/SUBREQUEST" */
	const char *pool, *device;
	const char *share_id; /* a uid; NULL: none */
	uint64_t cpus;        /* 1 at least */
	unsigned nr_memory;   /* ordinary memory first, then by page size; none is of 0 bytes */
	struct memory_ask memory[TOPO_KINDS];
	/* By the configuration of its class and of its claim, the latter first: */
	bool whole_cores; /* no other container has a thread of its cores */
	bool shared;      /* several containers may run on it at a time */
};

/* All strings are borrowed from whoever filled it. */
struct resource_claim {
	const char *uid, *ns, *name;
	/* The name that its pod has for it (annotation resource.kubernetes.io/pod-claim-name), of a
	 * claim that was made from a template; else NULL. */
	const char *pod_claim_name;
	size_t nr; /* shares of driver CLAIM_DRIVER alone, in the order of status.allocation */
	const struct claim_share *share;
	size_t nr_looked_at; /* devices of CLAIM_DRIVER with adminAccess, which take nothing */
	size_t nr_pods;      /* that it is reserved for, by their uids */
	const char *const *pod_uid;
	size_t nr_others; /* consumers that are no pods, as a PodGroup; the first of them: */
	struct claim_consumer {
		const char *group, *resource, *name; /* "": not said */
	} other;
};

/* The one check of a claim's names, for all that they become: keys of answers, entries and records,
 * names of files, ids of CDI devices, and a request to the API server. What Kubernetes allows: a
 * uid is a DNS subdomain of 1 to CLAIM_UID_MAX - 1 bytes (an API server makes UUIDs in lower case),
 * a namespace and a request are labels, and a claim's name is a subdomain. Nothing is held for a
 * claim whose names are refused; what is held is given back by its uid, whatever that is. */
bool claim_uid_is_valid(const char *uid, size_t len);
bool claim_request_is_valid(const char *request);
/* Who the claim is. 0, or -EINVAL with text. */
int claim_check_ref(const char *ns, const char *uid, const char *name, struct err *e);
/* All names of the claim. 0, or -EINVAL with text. */
int claim_check_names(const struct resource_claim *c, struct err *e);

#endif
