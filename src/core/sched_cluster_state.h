#ifndef CORE_SCHED_CLUSTER_STATE_H
#define CORE_SCHED_CLUSTER_STATE_H

#include <numafit/sched_cluster.h>

#include <core/sched_index.h>
#include <numafit/vec.h>

/* What sched_cluster.c (what is told), sched_cluster_left.c (what follows for a node) and
 * sched_cluster_pod.c (a pod by itself) share. */

struct known_node;

struct known_pod {
	struct sched_key key;  /* uid */
	struct sched_pod *pod; /* a copy, one free() */
	struct sched_taken *taken;
	size_t nr_taken;
	struct known_node *node;
	uint64_t part; /* its fingerprint_pod() */
	int64_t since_ms;
	bool assumed, ours, pending, ended;
	bool settled; /* a report of no names contained it once */
	bool expired; /* it has waited for long enough */
	uint64_t round;
};

struct known_node {
	struct sched_key key;
	bool is_there; /* the node itself */
	struct sched_node node;
	struct sched_candidate candidate;
	struct sched_topology *reported, *left; /* left NULL: as reported */
	uint64_t generation;
	uint64_t *part; /* pods that the report names, ascending */
	size_t nr_parts;
	bool names_pods;
	int64_t report_ms;
	struct volcano_node volcano;
	void *volcano_memory; /* NULL: there is no Numatopology */
	struct {
		VEC(struct known_pod *);
	} pods;
	bool changed; /* node.pods, left and candidate are to be made anew */
	size_t nr_waiting;
	uint64_t round[NR_CLUSTER_KINDS];
};

struct sched_cluster {
	struct sched_cluster_args args;
	const struct resource_table *names;
	struct sched_index nodes, pods;
	uint64_t round[NR_CLUSTER_KINDS];
	bool listing[NR_CLUSTER_KINDS];
	struct {
		VEC(uint64_t);
	} parts; /* working memory */
};

/* A copy of all that plugins look at of a pod that is bound: not its limits, nor its annotations.
 * One free(). */
struct sched_pod *sched_pod_copy(const struct sched_pod *pod);
/* What it takes in all, each zone's resource once; *nr 0 and NULL: not known, or not to be
 * believed. The caller frees. */
struct sched_taken *sched_taken_of(const struct sched_bound *b, size_t *nr);

/* Whether the pod is still to be taken away from what its node reports. */
bool known_pod_waits(const struct sched_cluster *c, const struct known_pod *p);
/* Whether it holds something of a zone, by the scheduler's rule. */
bool known_pod_holds(const struct sched_cluster *c, const struct known_pod *p);
/* Whether its very zones are known. */
bool known_pod_has_zones(const struct known_pod *p);

/* A report has come, or pods have: whether a fingerprint contains them now. */
void known_node_settle(struct sched_cluster *c, struct known_node *n);
/* Make anew what has changed. */
void known_node_refresh(struct sched_cluster *c, struct known_node *n);

#endif
