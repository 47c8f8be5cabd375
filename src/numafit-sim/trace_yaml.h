#ifndef NUMAFIT_SIM_TRACE_YAML_H
#define NUMAFIT_SIM_TRACE_YAML_H

#include <numafit/arena.h>
#include <numafit/pod.h>
#include <numafit/request.h>
#include <numafit/advice.h>
#include <numafit/settings.h>
#include <numafit/vec.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A trace: what a kubelet asks of the container runtime, step by step, as numafit-sim plays it.
 *
 * trace_yaml_example has each key, with what it is for.
 *
 * A guaranteed container has cpu and memory, a besteffort one neither, huge pages need one of
 * them. A second create with the pod's name adds a container to the running pod; hint and
 * annotations are given to the first one.
 *
 * A kubelet knows a pod's containers from the start: there, creates of one pod follow each other,
 * init containers and sidecars first, and a later one starts a container of it again. */

extern const char trace_yaml_example[]; /* a trace with comments, for people */

enum trace_op {
	TRACE_CREATE,
	TRACE_UPDATE,
	TRACE_STOP,
	TRACE_STOP_POD,
	TRACE_RESTART_RUNTIME,
	TRACE_RESTART_KUBELET,
	NR_TRACE_OPS
};
const char *trace_op_name(enum trace_op op); /* as above: "create", ... */

enum {
	TRACE_STEPS_MAX = 4096,
	TRACE_COUNT_MAX = 1000,
	TRACE_NAME_MAX = 63,
	TRACE_DEVICES_MAX = 64, /* lines of devices */
	TRACE_ANNOTATIONS_MAX = 16
};

/* A numafit.io/numa-hint for all of the pod's containers, to be made with its uid, the node's name
 * and the time when it comes:
 *	numa: 0-1      # the NUMA nodes, also such as the machine lacks
 *	mode: require  # or prefer, the default
 *	ttl: 60s       # for how long it is good; default: 120s
 *	gen: 1         # the generation of the node that it is based on; default: not said
 *	wrong: uid     # what is wrong on purpose: format, version, uid, node, clock or expired
 * A wrong hint is rejected with that word. */
struct trace_advice {
	const char *numa; /* NULL: there is none */
	enum advice_mode mode;
	unsigned ttl_s;
	uint64_t generation;
	enum advice_verdict wrong; /* ADVICE_NONE: nothing */
};

/* So many of a resource's devices: asked for, or on a NUMA node of the machine. */
struct trace_devices {
	const char *resource;
	unsigned node_id; /* kernel id, or TRACE_WITHOUT_NODE; not of an ask */
	uint64_t count;
};
/* Devices whose plugin says nothing of NUMA nodes: "node: none". */
enum { TRACE_WITHOUT_NODE = NODE_ID_MAX + 2 };

/* What a container asks for, in the kubelet's numbers. */
struct asked {
	enum qos qos;
	uint64_t cpu_milli, memory_bytes; /* 0: not asked for */
	unsigned nr_hugepages;
	struct memory_ask hugepages[TOPO_KINDS - 1];
};

/* What is not given is NULL or 0; ns and container of a create have their defaults. Names are
 * such as Kubernetes allows (a DNS label). */
struct trace_step {
	enum trace_op op;
	unsigned line;
	const char *ns, *pod, *container;
	struct asked asked; /* qos is of a create */
	enum container_kind kind;
	unsigned nr_devices;
	struct trace_devices device[POD_DEVICES_MAX];
	bool unasked;
	struct trace_advice advice;
	unsigned nr_annotations;
	struct key_value annotation[TRACE_ANNOTATIONS_MAX];
	unsigned count; /* of replicas, pod-0 ..; 0: one pod of exactly that name */
	const char *cpus, *mems;
};

struct trace {
	VEC(struct trace_step);
	bool has_kubelet;
	struct settings kubelet; /* its Topology Manager's, the others are defaults */
	struct {
		VEC(struct trace_devices);
	} devices;
	struct arena strings;
};

/* Read the len bytes at text into *t, which the caller ends with trace_fini().
 * 0; -EINVAL, -ERANGE, -E2BIG: the text names line, key and value; *t is then empty. */
int trace_yaml_read(struct trace *t, const char *text, size_t len, struct err *e);
void trace_fini(struct trace *t);

#endif
