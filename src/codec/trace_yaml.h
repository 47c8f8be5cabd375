#ifndef NUMAFIT_CODEC_TRACE_YAML_H
#define NUMAFIT_CODEC_TRACE_YAML_H

#include <numafit/arena.h>
#include <numafit/pod.h>
#include <numafit/request.h>
#include <numafit/vec.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A trace: what a kubelet asks of the container runtime, step by step, as numafit-sim plays it.
 *
 *	steps:
 *	- create:                   # a pod's container
 *	    namespace: prod         # default: default
 *	    pod: db
 *	    container: postgres     # default: main
 *	    qos: guaranteed         # guaranteed | burstable | besteffort
 *	    cpu: 8                  # guaranteed: request and limit; burstable: the request
 *	    memory: 32Gi            # the same
 *	    hugepages-1Gi: 4Gi      # any page size; bytes, as in a pod
 *	    count: 8                # that many pods: db-0 .. db-7
 *	- update:                   # somebody changes running containers past the daemon
 *	    pod: db                 # all of the pod's containers and replicas, or db-3 for one of
 *them container: postgres     # only this one cpus: 0-7               # a cpuset from elsewhere
 *	    mems: 0
 *	    cpu: 4                  # other resources, as an in-place resize sends them
 *	    memory: 16Gi
 *	- stop: {pod: db}           # stop and remove; container as above
 *	- restart-runtime           # the runtime goes away and comes back: the daemon is
 *synchronized
 *
 * A guaranteed container has cpu and memory, a besteffort one neither, huge pages need one of
 * them. A second create with the pod's name adds a container to the running pod. */

enum trace_op { TRACE_CREATE, TRACE_UPDATE, TRACE_STOP, TRACE_RESTART_RUNTIME, NR_TRACE_OPS };
const char *trace_op_name(enum trace_op op); /* "create", "update", "stop", "restart-runtime" */

enum { TRACE_STEPS_MAX = 4096, TRACE_COUNT_MAX = 1000, TRACE_NAME_MAX = 63 };

/* What is not given is NULL or 0; ns and container of a create have their defaults. Names are
 * such as Kubernetes allows (a DNS label). */
struct trace_step {
	enum trace_op op;
	unsigned line;
	const char *ns, *pod, *container;
	bool has_qos, has_cpu, has_memory;
	enum qos qos;
	uint64_t cpu_milli, memory_bytes;
	unsigned nr_hugepages;
	struct memory_ask hugepages[TOPO_KINDS - 1];
	unsigned count; /* of replicas, pod-0 ..; 0: one pod of exactly that name */
	const char *cpus, *mems;
};

struct trace {
	VEC(struct trace_step);
	struct arena strings;
};

/* Read the len bytes at text into *t, which the caller ends with trace_fini().
 * 0; -EINVAL, -ERANGE, -E2BIG: the text names line, key and value; *t is then empty. */
int trace_yaml_read(struct trace *t, const char *text, size_t len, struct err *e);
void trace_fini(struct trace *t);

#endif
