#ifndef CLUSTER_SIM_NODE_H
#define CLUSTER_SIM_NODE_H

#include <cluster-sim/trace.h>
#include <numafit/decision.h>
#include <numafit/ledger.h>
#include <numafit/sched_cluster.h>

/* A cluster's nodes, as data: each with numafitd's own ledger, deciding pods as numafitd does
 * (admit()), and reporting as it does (report_take()). All are the same machine. */

/* What all nodes have in common. */
struct cluster_machine {
	struct topo topo;
	struct settings settings;
	struct resource_table names; /* with all that nodes report */
	unsigned memory_name[NR_POD_MEMORIES];
};

/* A machine of nr_numa NUMA nodes, each of 8 cores with 2 threads and 64 GiB, 2 of these in huge
 * pages of 2 MiB and 4 in such of 1 GiB; on two sockets when it is even, with neighbours closer
 * than others of a socket. The first core and 1 GiB are reserved. 0, or as settings_check(). Its
 * resource table is the caller's to end. */
int cluster_machine_init(
	struct cluster_machine *m, unsigned nr_numa, enum topology_policy policy, struct err *e);

/* A pod of the trace; its uid says which try it is. */
enum { POD_UID_MAX = 32 };
struct cluster_pod {
	const struct pod_shape *shape;
	char uid[POD_UID_MAX]; /* and name */
};

/* A pod's question as a node decides it. Do not move it: it points into itself. */
struct asked_pod {
	char name[SHAPE_CONTAINERS_MAX][TEXT_SIZE_MAX];
	struct ask container[SHAPE_CONTAINERS_MAX];
	struct advice_ask advice[SHAPE_CONTAINERS_MAX];
	struct pod is;
};
/* *a: zeros. */
void asked_pod_init(struct asked_pod *a, const struct cluster_pod *pod);

/* What a node said of a pod. */
struct node_answer {
	bool admit;
	bool preferred; /* each container lies on as few NUMA nodes as on an empty node */
	unsigned nr;    /* containers */
	struct nodeset
		on[SHAPE_CONTAINERS_MAX]; /* where its own CPUs and memory are; empty: none */
	enum advice_verdict advice; /* the first one of its containers'; NONE: there was none */
};

struct cluster_node {
	char name[POD_UID_MAX];
	struct ledger *ledger;
	uint64_t generation;
};

/* Working memory for one decision or report; one for each thread. */
struct cluster_work {
	struct arena arena;
	void *bytes;
};
void cluster_work_init(struct cluster_work *w);
void cluster_work_fini(struct cluster_work *w);

void cluster_node_init(struct cluster_node *n, const struct cluster_machine *m, unsigned number);
void cluster_node_fini(struct cluster_node *n);
/* Decide the pod as a whole and hold it; advice: a scheduler's, or NULL. */
void cluster_node_run(struct cluster_node *n, const struct cluster_machine *m,
	const struct cluster_pod *pod, const struct advice *advice, int64_t now_ms,
	struct cluster_work *w, struct node_answer *out);
/* The same without a scheduler's advice, and nothing is held. */
void cluster_node_ask(const struct cluster_node *n, const struct cluster_machine *m,
	const struct cluster_pod *pod, struct cluster_work *w, struct node_answer *out);
void cluster_node_stop(struct cluster_node *n, const char *uid);

/* What it would publish now, as the scheduler's side reads it. Gives *r to put_report(). */
void cluster_node_report(const struct cluster_node *n, const struct cluster_machine *m,
	struct cluster_work *w, struct sched_report *r);
/* What a node has for pods: the sums over its NUMA nodes, from *a. */
struct amounts cluster_node_allocatable(
	const struct cluster_node *n, const struct cluster_machine *m, struct cluster_work *w);

#endif
