#ifndef NUMAFIT_SIM_NODE_H
#define NUMAFIT_SIM_NODE_H

#include <numafit-sim/trace_yaml.h>
#include <nri/runtime.h>
#include <numafit/engine.h>
#include <numafit/vec.h>
#include <numafit/number.h>

/* The node as the runtime sees it: its containers and the cpusets that are in force. What is
 * checked here knows nothing of how the daemon decides. */

enum container_state {
	CONTAINER_CREATING, /* the plugin has not answered yet */
	CONTAINER_RUNNING,
	CONTAINER_REFUSED,
	CONTAINER_GONE
};

enum { SIM_ID_MAX = 65, SIM_NAME_MAX = 80, CGROUP_PATH_MAX = 128 };

/* The cgroup values for a container on that machine: shares, quota of a guaranteed one, its memory
 * limit, and a limit for every huge page size that the machine has. -E2BIG: asks for more
 * different page sizes than fit. */
int kubelet_resources(
	const struct topo *t, const struct asked *a, struct linux_resources *out, struct err *e);

/* What a scheduler's advice in the pod's annotations asks for, and what became of it. */
struct advised {
	const char *asked; /* NUMA nodes, "-" when it cannot be read; NULL: there is no hint */
	const char *mode;  /* that it asks for, or "-" */
	struct nodeset given;
	const char *verdict; /* the daemon's word; NULL: it did not say */
};

/* What is in force for a container, or what a runtime has in mind of that. */
struct confinement {
	bool pinned, mems_pinned; /* cpus, mems were set; else all are allowed */
	struct cpuset cpus;
	struct nodeset mems;
	struct linux_resources resources;
};

struct container {
	enum container_state state;
	const char *ns, *name,
		*base; /* the trace's words; base: what replicas are called together */
	char pod[SIM_NAME_MAX];
	char id[SIM_ID_MAX], sandbox_id[SIM_ID_MAX], pod_uid[SIM_ID_MAX];
	char cgroup_parent[CGROUP_PATH_MAX];
	enum container_kind kind;
	const struct trace_devices *device; /* what it asks for of these */
	unsigned nr_devices;
	char *devices;                       /* what it was given of them, for people; or NULL */
	const struct key_value *annotations; /* its pod's */
	size_t nr_annotations;
	struct advised advised;
	struct asked asked;
	int64_t created_at_ns;
	struct confinement now, first,
		known;   /* what its runtime has on disk at first; what it knows */
	char *placement; /* value of the daemon's annotation, or NULL */
	bool placed;     /* it could be read, into this, and it was not resized since: */
	struct placement says;
};

struct sim_node {
	const struct topo *topo;
	struct cpuset reserved; /* as far as the caller knows: to draw and to check */
	const char *name;       /* in Kubernetes; borrowed */
	struct arena texts;     /* annotations and what is read of them */
	VEC(struct container *);
	unsigned nr_sandboxes;
};

void sim_node_init(struct sim_node *n, const struct topo *t);
void sim_node_fini(struct sim_node *n);

/* A new container being created, in the pod of that name: in its sandbox when it has a running
 * container there, else in a new one. What *c borrows lives as long as the node.
 * NULL when there is such a container already, or its resources cannot be had. */
struct container *sim_node_add(struct sim_node *n, const struct container *c, struct err *e);
/* The container that is being created or runs under this id, or NULL. */
struct container *sim_node_find(const struct sim_node *n, const char *id);
/* Whether a container of the pod of *c, other than itself, is there. */
bool sim_node_shares_sandbox(const struct sim_node *n, const struct container *c);

/* Set what is in force: kernel lists, "" or NULL leaves as it is. 0, or -EINVAL with text: not a
 * list, or not CPUs and NUMA nodes of this machine. */
int container_set(const struct topo *t, struct container *c, const char *cpus, const char *mems,
	struct err *e);
/* Ask for something else from now on, as an in-place resize does; 0 leaves as it is. 0, or -EINVAL:
 * that would make another QoS class of it. */
int container_resize(const struct topo *t, struct container *c, uint64_t cpu_milli,
	uint64_t memory_bytes, struct err *e);
/* The runtime knows what is in force from now on, its resources only if an update had them. */
void container_remember(struct container *c, bool resources);
/* Keep the annotations that the daemon gave it. */
int container_annotate(const struct topo *t, struct container *c,
	const struct key_value *annotations, size_t nr, struct err *e);
/* Whether its CPUs are its own: the annotation says so; without one, and once it was resized, it is
 * Guaranteed and its cpuset has as many CPUs as it asks for. */
bool container_exclusive(const struct container *c);
/* The NUMA nodes that it was put on: those of its own CPUs and memory. */
struct nodeset container_nodes(const struct topo *t, const struct container *c);
/* Whether no node outside of *nodes could take the place of one in it and be nearer to the rest. */
bool nodes_are_nearest(const struct topo *t, struct nodeset nodes);

/* The scheduler's part: advice on pods, and what the daemon says became of them. */

/* Give the pod of *c, its first container, the annotations of that step, with advice of now. 0, or
 * -E2BIG with text. */
int advised_annotate(
	struct sim_node *n, struct container *c, const struct trace_step *step, struct err *e);
/* What its pod's annotations ask for, into c->advised. */
void advised_read(struct sim_node *n, struct container *c);
/* It was created, or refused with that message: the verdict, as that or its placement has it. */
void advised_note(const struct sim_node *n, struct container *c, const char *refusal);

/* 0, or -EINVAL with the first thing that must not be: an exclusive CPU in another container's
 * cpuset, fewer or more of them than asked for, a reserved one. */
int sim_node_check(const struct sim_node *n, struct err *e);

#endif
