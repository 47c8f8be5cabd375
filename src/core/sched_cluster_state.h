#ifndef CORE_SCHED_CLUSTER_STATE_H
#define CORE_SCHED_CLUSTER_STATE_H

#include <numafit/sched_cluster.h>

#include <core/sched_index.h>
#include <numafit/vec.h>

/* What sched_cluster.c (what is told), sched_cluster_left.c (what follows for a node),
 * sched_cluster_pod.c (a pod by itself) and sched_cluster_age.c (who waits for time to go by)
 * share. */

struct known_node;

struct known_pod {
	struct sched_key key;  /* uid */
	struct sched_pod *pod; /* a copy, one free() */
	struct sched_taken *taken;
	size_t nr_taken;
	struct known_node *node;
	uint64_t part;    /* its fingerprint_pod() */
	int64_t since_ms; /* when it was bound, or has ended: reports of later should know */
	bool assumed, ours, pending, ended;
	bool gone;    /* from the API server; kept for what it gives back */
	bool settled; /* a report of no names contained it once */
	bool expired; /* that was long enough ago */
	uint64_t round;
	bool ages; /* it is in the cluster's list of those, between these two */
	struct known_pod *older, *younger;
};

/* Those whose since_ms is not long enough ago, ascending by it. */
struct known_age {
	struct known_pod *oldest, *youngest;
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
	size_t nr_waiting, nr_gone;
	uint64_t round[NR_CLUSTER_KINDS];
};

struct sched_cluster {
	struct sched_cluster_args args;
	const struct resource_table *names;
	struct sched_index nodes, pods;
	struct known_age age;
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
/* Whether its node reports it still, though it has ended: what it held is free by now. */
bool known_pod_gives_back(const struct sched_cluster *c, const struct known_pod *p);
/* Whether it holds something of a zone, by the scheduler's rule. */
bool known_pod_holds(const struct sched_cluster *c, const struct known_pod *p);
/* Whether its very zones are known. */
bool known_pod_has_zones(const struct known_pod *p);

/* A report has come, or pods have: whether a fingerprint contains them now. */
void known_node_settle(struct sched_cluster *c, struct known_node *n);
/* Make anew what has changed. */
void known_node_refresh(struct sched_cluster *c, struct known_node *n);

void known_age_add(struct known_age *a, struct known_pod *p);
/* Nothing happens to one that is not there. */
void known_age_remove(struct known_age *a, struct known_pod *p);

#endif
