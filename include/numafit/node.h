#ifndef NUMAFIT_NODE_H
#define NUMAFIT_NODE_H

#include <numafit/decision.h>
#include <numafit/devices.h>
#include <numafit/memory.h>
#include <numafit/pod.h>
#include <numafit/settings.h>

/* A node as the kubelet's managers see it: whole pods are admitted, container by container, by the
 * Topology Manager over the device, CPU and memory managers in this order
 * (pkg/kubelet/cm/topologymanager/{scope_container,scope_pod,scope_none}.go). */

enum container_kind {
	CONTAINER_APP,
	CONTAINER_INIT,
	CONTAINER_SIDECAR
}; /* SIDECAR: restartable init */

struct device_ask {
	unsigned resource; /* index into the node's resources */
	uint64_t count;
};
enum { POD_DEVICES_MAX = 16 };

/* One container of a pod's spec. Memory asks of 0 bytes count as asked for. */
struct container_ask {
	const char *name;
	enum container_kind kind;
	uint64_t cpu_milli;
	unsigned nr_memory;
	struct memory_ask memory[TOPO_KINDS];
	unsigned nr_devices;
	struct device_ask device[POD_DEVICES_MAX]; /* by name of the resource */
};

/* A pod's containers in the order of their admission: init containers first. */
struct pod_ask {
	const char *uid;
	enum qos qos;
	bool pod_level; /* the pod has resources of its own: no CPUs or memory are assigned (gate
			   off) */
	unsigned nr;
	const struct container_ask *container;
};

/* What a container of an admitted pod holds; its memory is in the pod's memory[] at the same index.
 */
struct node_container {
	char *name;
	enum container_kind kind;
	struct hint affinity;
	struct cpuset cpus;            /* exclusive ones; empty: it runs in the shared pool */
	bool *device[POD_DEVICES_MAX]; /* by resource: a flag for each of its devices; NULL: none */
};
struct node_pod {
	char *uid;
	unsigned nr; /* containers, in the order of their admission */
	struct node_container *container;
	struct memory_container *memory;
};

struct node;

/* An empty node. All arguments are borrowed. NULL, with the kubelet's words, when its managers
 * would not start: options that exclude each other, reservations that do not add up, too many NUMA
 * nodes. */
struct node *node_new(const struct topo *t, const struct settings *s,
	const struct device_resource *resources, unsigned nr_resources, struct err *e);
void node_free(struct node *n);

/* Why a pod was refused: the words of its status. */
struct refusal {
	const char *reason;
	char message[DECISION_MESSAGE_MAX];
};
/* Admit the pod. Working memory from *a. 0, or -EPERM with *why: nothing of it is held then. */
int node_admit(struct node *n, const struct pod_ask *pod, struct arena *a, struct refusal *why);
/* The container has started: the memory of the init containers before it is free again. */
void node_start(struct node *n, const char *uid, const char *name);
/* The pod is gone. */
void node_remove(struct node *n, const char *uid);

/* The admitted pod of that uid, or NULL. */
const struct node_pod *node_find(const struct node *n, const char *uid);
struct cpuset node_reserved_cpus(const struct node *n);
/* The CPUs of all containers without CPUs of their own. */
struct cpuset node_shared_cpus(const struct node *n);
const struct memory_state *node_memory(const struct node *n);

#endif
