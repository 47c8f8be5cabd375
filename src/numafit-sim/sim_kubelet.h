#ifndef NUMAFIT_SIM_SIM_KUBELET_H
#define NUMAFIT_SIM_SIM_KUBELET_H

#include <numafit-sim/trace_yaml.h>
#include <kubelet/grpc_pump.h>
#include <kubelet/pods_pb.h>

/* The kubelet of a node, as its device plugins and clients that ask it about pods see it: the
 * device manager (pkg/kubelet/cm/devicemanager of 1.36), a Topology Manager over it that decides by
 * core's rules, PodResources, and the Pods API, each on the socket that a kubelet with this root
 * has. CPUs and memory play no part here, as with managers of policy none. What a plugin
 * does that would bring a kubelet or its pods down is reported (sim_kubelet_events). */
struct sim_kubelet;

struct sim_kubelet_options {
	const char *root; /* its directory; made when it is not there */
	const struct topo *topo;
	const struct trace *trace; /* its Topology Manager's settings, and devices of others */
	unsigned youth_ms;         /* so long it waits for clients (sim_kubelet_ready()); 0: 500 */
};

struct sim_kubelet_events {
	void *ctx;
	/* mandatory: a plugin came or went, its devices changed, or it is ready now */
	void (*changed)(void *ctx);
	/* mandatory: a plugin is at fault; the text says how */
	void (*broken)(void *ctx, const char *text);
};

/* What is borrowed outlives it. Sockets that are left in device-plugins are removed, as a kubelet
 * does when it starts. NULL with text: a directory or a socket cannot be had, or the machine lacks
 * a NUMA node of the trace's devices. */
struct sim_kubelet *sim_kubelet_new(struct loop *l, struct rpc_pump *p,
	const struct sim_kubelet_options *o, const struct sim_kubelet_events *ev, struct err *e);
/* Die and come back between two admissions: plugins and watches are let go of, sockets are made
 * anew. Pods keep what they have. 0, or -errno as above. */
int sim_kubelet_restart(struct sim_kubelet *k, struct err *e);
/* Outside callbacks, before rpc_pump_free(). NULL is fine. */
void sim_kubelet_free(struct sim_kubelet *k);

/* Whether devices of that resource are known, and their plugin, if they need one, is there. */
bool sim_kubelet_has(const struct sim_kubelet *k, const char *resource);

/* Whether clients that ask and watch have come, or have had the time to: a kubelet is long up when
 * pods arrive. */
bool sim_kubelet_ready(const struct sim_kubelet *k);

/* Lead the pod through its admission: hints, merge, GetPreferredAllocation, Allocate, container by
 * container. done() comes later, or before this returns, with reason and message of the pod's
 * status when it is refused, else NULL: it is admitted, and the watches of pods have it. One pod at
 * a time; its uid is new. */
void sim_kubelet_admit(struct sim_kubelet *k, const struct known_pod *pod,
	void (*done)(void *ctx, const char *refusal), void *ctx);
/* What a kubelet does between the pod's sandbox and its container: PreStartContainer of each plugin
 * that wants it, as often as it takes. A client of PodResources gets the time to ask. done() as
 * above. */
void sim_kubelet_prepare(struct sim_kubelet *k, const char *uid, const char *container,
	void (*done)(void *ctx), void *ctx);
/* The pod is gone, and its devices are free. One that is not known is fine, as is no kubelet. */
void sim_kubelet_forget(struct sim_kubelet *k, const char *uid);
/* Whether it is an admitted pod's. */
bool sim_kubelet_knows(const struct sim_kubelet *k, const char *uid);

/* The annotations that plugins gave to the pod's container, the first nr of them into out. Returns
 * how many there are. */
size_t sim_kubelet_annotations(const struct sim_kubelet *k, const char *uid, const char *container,
	struct key_value *out, size_t nr);
/* Devices of the resource that the container has, by dense node; those on no node are left out.
 * Returns how many there are in all. */
unsigned sim_kubelet_devices(const struct sim_kubelet *k, const char *uid, const char *container,
	const char *resource, unsigned on[NODES_MAX]);

#endif
