#ifndef NUMAFIT_POD_H
#define NUMAFIT_POD_H

#include <numafit/settings.h>
#include <numafit/topo.h>
#include <numafit/wishes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of a pod, and from where. All strings are borrowed from whoever filled it. */

/* A pod's quality of service class (v1.PodQOSClass). */
enum qos { QOS_GUARANTEED, QOS_BURSTABLE, QOS_BEST_EFFORT, NR_QOS };
/* "Guaranteed", "Burstable", "BestEffort"; a table of words has one for every value of its enum. */
extern const char *const qos_words[NR_QOS];
/* The class as the kubelet writes it into the pod's cgroup path: "besteffort" or "burstable"
 * somewhere in it, else Guaranteed (pkg/kubelet/cm/qos_container_manager_linux.go). */
enum qos qos_from_cgroup_parent(const char *cgroup_parent);

/* What kind of container of its pod it is; SIDECAR: a restartable init container. */
enum container_kind { CONTAINER_APP, CONTAINER_INIT, CONTAINER_SIDECAR, NR_CONTAINER_KINDS };
extern const char *const container_kind_words[NR_CONTAINER_KINDS]; /* "app", "init", "sidecar" */

/* Whether what has_devices says of a container was shown by its pod's spec, the kubelet or the
 * runtime, or is true only because neither has shown yet what the container has. */
enum devices_shown { DEVICES_SHOWN, DEVICES_NOT_SHOWN_YET, NR_DEVICES_SHOWN };
extern const char *const devices_shown_words[NR_DEVICES_SHOWN]; /* "shown", "not-shown-yet" */

/* Bytes of one kind of memory; page_bytes 0 is ordinary memory. */
struct memory_ask {
	uint64_t page_bytes;
	uint64_t bytes;
};

struct advice_ask; /* advice.h */

struct device_ask {
	unsigned resource; /* index into the node's resources, or the pod's (struct pod) */
	uint64_t count;
};
enum { POD_DEVICES_MAX = 16 };

/* What one container of a pod asks for. The one place for that: requests, entries of the ledger,
 * records and pods contain it. */
struct ask {
	const char *name;
	enum container_kind kind; /* of a container whose pod's spec is known; else APP, */
	unsigned place;           /* at place 0 in the pod's order of admission */
	uint64_t cpu_milli;       /* CPU request, thousandths of a CPU */
	uint64_t cpu_limit_milli; /* 0: no limit, or not known */
	/* In a request ordinary memory comes first, then by page size, and all are more than 0
	 * bytes (ask_memory()); a spec may have others, and 0 bytes count as asked for there. */
	unsigned nr_memory;
	struct memory_ask memory[TOPO_KINDS];
	unsigned nr_devices;
	struct device_ask device[POD_DEVICES_MAX]; /* by name of the resource */
	uint64_t tokens; /* of numafit.io/cpu (tokens.h), which is none of the devices */
	/* Its tokens are given out: so many of its CPUs come from each NUMA node (dense index,
	 * NODES_MAX of them). NULL: from anywhere. */
	const unsigned *cpus_on;
	const struct advice_ask *advice; /* a scheduler's, for this container; NULL: none */
	/* CPUs and memory are limited to what is requested, and neither is 0: in a pod that shares
	 * its own resources out it has its part for itself (kubelet
	 * cm/qos, IsContainerEquivalentQOSGuaranteed). */
	bool guaranteed;
	struct wishes wishes; /* of its pod's author, as far as the operator allows them */
	const char *odd_wish; /* why a wish is refused, and the container with the wish. NULL: no
				 wish is */
	bool wishes_nodes; /* its author wishes for NUMA nodes, for which its advice is, or was */
	bool has_claims; /* it has devices through claims (DRA), by its pod's spec; not recorded */
	/* It was seen to have a device, of whatever resource or claim, or a device node, or to ask
	 * for one, when it came or was found running: request_has_devices(). Kept, as what shows it
	 * is not. A device that nobody shows counts as none: one without a node, where neither its
	 * pod's spec nor the kubelet's PodResources is read (gather_container()). */
	bool has_devices;
	enum devices_shown devices; /* whether has_devices is known */
	/* It is a share of a ResourceClaim that asks (shares.h), and none of the containers: the
	 * NUMA node that a scheduler has chosen for it. Empty: it is none. */
	struct nodeset share_of;
	bool whole_pod; /* it is the pod that asks, for resources of its own (pod.own), and none of
			   its containers */
};

/* Its asks for memory that are not zero, ordinary memory first, then by page size, as a request has
 * them. Returns their number. */
unsigned ask_memory(const struct ask *c, struct memory_ask out[TOPO_KINDS]);

/* Add what a person asks for, such as "16Gi", of pages of that size (0: ordinary memory), to *nr
 * asks for memory. 0; -EINVAL it is no quantity, or is asked for twice; -ERANGE; -E2BIG there are
 * TOPO_KINDS. */
int ask_read_memory(struct memory_ask memory[TOPO_KINDS], unsigned *nr, uint64_t page_bytes,
	const char *quantity, struct err *e);

/* Whether both ask for the same memory, as requests have it. */
bool ask_same_memory(const struct ask *a, const struct ask *b);
/* A container that was shown to have a device has it for as long as the container lasts: *entry is
 * what was known of the container before. */
void ask_keep_devices(struct ask *c, const struct ask *entry);

struct key_value {
	const char *key, *value;
};

/* What the pod's containers ask for together, as its sandbox says: rounded, and no word of which
 * container asks for what. */
struct pod_totals {
	bool known;
	uint64_t cpu_milli, memory_bytes;
};

/* Why a pod whose containers are known is decided container by container all the same. */
enum pod_apart {
	POD_APART_NOT,
	POD_APART_TOO_LONG,  /* what it would be given is more than a line of the journal */
	POD_APART_TOO_LARGE, /* to decide it takes more working memory than there is */
	POD_APART_CLAIMS,   /* claims are prepared for it (shares.h): which containers come for them
			       only these say */
	POD_APART_TOO_MANY, /* it has more containers, or kinds of devices, than are decided at
			       once */
	NR_POD_APARTS
};
extern const char *const pod_apart_words[NR_POD_APARTS]; /* "no", "too-long", "too-large", ... */
/* "decided container by container, not as a whole pod: ...", or "". */
extern const char *const pod_apart_texts[NR_POD_APARTS];

/* Where what is known of a pod comes from, the best source last. */
enum pod_source { POD_FROM_RUNTIME, POD_FROM_API_SERVER, POD_FROM_KUBELET };

struct device_resource; /* devices.h */

struct pod {
	const char *sandbox_id, *uid, *ns, *name;
	bool has_process; /* its sandbox runs; some runtimes keep none, and then do not say so */
	enum qos qos;
	/* Where qos is that of the pod's spec: the class that its containers come with, by the
	 * runtime, and that is recorded for them. */
	bool has_runtime_qos;
	enum qos runtime_qos;
	enum pod_source source;
	/* What its containers need at once; without `known` they need what those below do. */
	struct pod_totals totals;
	/* All its containers in the order of their admission, init containers first. NULL: they
	 * are not known. */
	size_t nr;
	const struct ask *container;
	enum pod_apart apart;        /* container is NULL for that reason */
	bool has_policy;             /* the pod asks for a topology policy of its own, */
	enum topology_policy policy; /* which is as strict as the node's, or stricter */
	bool pod_level;              /* the pod has resources of its own: only containers that are
					`guaranteed` have CPUs or memory for themselves; */
	const struct ask *own;       /* what it asks for, shared out among its containers (gate
					PodLevelResourceManagers). NULL: its containers are not
					`guaranteed` either */
	/* Devices that its containers have been given already: each resource is of one container,
	 * which asks for all of it. 0: their asks are for the node's resources. At most
	 * POD_DEVICES_MAX. */
	const struct device_resource *attached;
	size_t nr_attached;
	/* Those that somebody reads (pod_spec_reads() of codec/pod_spec.h); a runtime's pods have
	 * two more (nri_pb.h). */
	const struct key_value *annotations;
	size_t nr_annotations;
};
/* True if a text for the author of pod `reader` may name the other pod, by events.podNames. */
bool pod_may_name(enum pod_names names, const struct pod *reader, const struct pod *other);

/* How many CPUs such a request gets for itself: all when the pod is Guaranteed and the request is
 * whole CPUs, else 0 (kubelet policy_static.go, guaranteedCPUs). */
unsigned qos_exclusive_cpus(enum qos q, uint64_t cpu_milli);
/* The same for a container of a pod of that class, by its wishes; pod_level: the pod has resources
 * of its own, so that only containers that are `guaranteed` have any. */
unsigned ask_exclusive_cpus(const struct ask *c, enum qos q, bool pod_level);
/* The same for a container of the pod. */
unsigned pod_exclusive_cpus(const struct pod *pod, unsigned container);
/* Whether memory is pinned for the pod's containers (kubelet memorymanager): Guaranteed pods only.
 */
bool pod_pins_memory(const struct pod *pod);
/* The policy that the pod is admitted by: its own where it has one, else the node's. */
enum topology_policy pod_policy(const struct settings *s, const struct pod *pod);
/* Whether the pod is aligned once for all its containers (kubelet scope_pod.go): in pod scope, with
 * a policy. */
bool pod_is_aligned_as_one(const struct settings *s, const struct pod *pod);
/* With gate PodLevelResourceManagers off what the pod has as resources of its own is shared out to
 * none of its containers, which are pod->container. */
void pod_obey_gate(const struct settings *s, struct pod *pod, struct ask *containers);
/* What the container asks for of that resource, or NULL. */
const struct device_ask *ask_for_device(const struct ask *c, unsigned resource);
/* What a container needs some of. */
struct pod_resource {
	enum {
		POD_DEVICES,
		POD_CPUS,      /* CPUs for itself */
		POD_CPU_MILLI, /* thousandths of a CPU that it requests */
		POD_BYTES      /* bytes, also those that are not pinned */
	} kind;
	unsigned device;     /* of POD_DEVICES: struct device_ask's resource */
	uint64_t page_bytes; /* of POD_BYTES: struct memory_ask's */
};
/* How much of it the container needs. */
uint64_t pod_needs(const struct pod *pod, unsigned container, struct pod_resource r);
/* How much the pod needs at once: its init containers run one after the other, each beside the
 * sidecars that have started before it; then the sidecars run beside all the others
 * (k8s.io/component-helpers/resource). */
uint64_t pod_needs_at_once(const struct pod *pod, struct pod_resource r);
/* CPUs and memory that the pod needs at once, as one ask without a name; of a pod whose containers
 * are not known, what its sandbox says. */
struct ask pod_ask(const struct pod *pod);

/* Who the pod is, by the runtime, without what its containers ask for. */
struct pod pod_identity(const struct pod *p);
/* The value of the pod's annotation key, or NULL. */
const char *pod_annotation(const struct pod *p, const char *key);

#endif
