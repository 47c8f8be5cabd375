#ifndef NUMAFIT_SCHED_SCHED_CLUSTER_STATE_H
#define NUMAFIT_SCHED_SCHED_CLUSTER_STATE_H

#include <numafit/sched_cluster.h>

#include <sched/sched_index.h>
#include <numafit/vec.h>

/* What sched_cluster.c (what comes in), sched_cluster_left.c (what follows for a node),
 * sched_cluster_pod.c (a pod by itself), sched_cluster_claim.c (what is said of its zones) and
 * sched_cluster_age.c (what time does) share. */

struct known_node;

/* What a pod takes of zones, each zone's resource once. Zeros: not known. */
struct sched_claim {
	struct sched_taken *taken;
	size_t nr;
	unsigned *lacks; /* resources that it asks of zones, and that are not in taken */
	unsigned nr_lacks;
};

/* From where a pod that waits is taken. */
enum known_hold {
	HOLDS_NOTHING,
	HOLDS_CLAIM,    /* the zones of its claim */
	HOLDS_ANYWHERE, /* each zone: it has started, and nobody knows where */
	HOLDS_SOMEWHERE /* where the node would put it: it has not started */
};

struct tracked_pod {
	struct sched_key key;  /* uid */
	struct sched_pod *pod; /* a copy, one free() */
	/* What was said when it was bound, or, if that was not seen, what was said when it was
	 * first heard of, until a report names it. Never what is said later. */
	struct sched_claim claim;
	bool seen_bound; /* so that the claim is the one it was bound with */
	struct known_node *node;
	uint64_t part;    /* its fingerprint_pod() */
	int64_t since_ms; /* when it was bound, or has ended: reports of later should know */
	bool assumed, ours, pending, ended;
	bool confirmed;       /* it is assumed, and known to be bound */
	bool gone;            /* from the API server; kept for what it gives back */
	bool settled;         /* a report of no names contained it once */
	bool named;           /* by the node's last report, or by the one before it was bound */
	bool came;            /* a report has named it that did not before: it means this one */
	bool overdue;         /* since_ms is long enough ago */
	bool expired;         /* and a report of later is there: it is the truth */
	enum known_hold hold; /* since the node was made anew the last time */
	uint64_t round;
	bool ages; /* it is in the cluster's list of pods that age, between these two */
	struct tracked_pod *older, *younger;
};

/* The pods whose since_ms is not long enough ago, ascending by it. */
struct known_age {
	struct tracked_pod *oldest, *youngest;
};

/* A pod as a report names it. */
struct known_part {
	uint64_t part, zones;
};

struct known_node {
	struct sched_key key;
	bool is_there; /* the node itself */
	struct sched_node node;
	struct sched_candidate candidate;
	struct sched_topology *reported, *left; /* left NULL: as reported */
	uint64_t generation;
	struct known_part *part; /* pods that the report names, ascending */
	size_t nr_parts;
	bool names_pods, says_zones;
	int64_t report_ms;
	struct volcano_node volcano;
	void *volcano_memory; /* NULL: there is no Numatopology */
	struct {
		VEC(struct tracked_pod *);
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
	int64_t now_ms; /* of the last sched_cluster_expire() */
	uint64_t round[NR_CLUSTER_KINDS];
	uint64_t revision; /* of the node that was made anew last */
	bool listing[NR_CLUSTER_KINDS];
	struct {
		VEC(uint64_t);
	} parts; /* working memory */
};

/* A copy of all that plugins look at of a pod that is bound: not its limits, nor its annotations.
 * One free(). */
struct sched_pod *sched_pod_copy(const struct sched_pod *pod);
/* Whether the two ask for the same. */
bool sched_pod_asks_alike(const struct sched_pod *a, const struct sched_pod *b);
/* What is said of its zones; zeros: nothing, or it does not add up to what the pod asks of zones.
 * sched_claim_fini(). */
void sched_claim_of(
	const struct sched_bound *b, const struct resource_table *names, struct sched_claim *out);
void sched_claim_fini(struct sched_claim *c);
/* Whether both say the same, in whatever order; also of two that say nothing. */
bool sched_claims_are_alike(const struct sched_claim *a, const struct sched_claim *b);
/* Whether of each resource it has no more than the pod asks for in all. */
bool sched_claim_is_within(const struct sched_claim *c, const struct sched_pod *pod,
	const struct resource_table *names);
/* Whether the topology has its zones, and lists nothing that it lacks. False of zeros. */
bool sched_claim_is_of(const struct sched_claim *c, const struct sched_topology *t);
/* Whether all of it is available there. */
bool sched_claim_fits(const struct sched_claim *c, const struct sched_topology *t);
/* Take it from, or give it back to, what is available (zone_change()). */
void sched_claim_apply(
	const struct sched_claim *c, enum zone_change change, struct sched_topology *t);
/* Its request once: from where the node would put it (a search that spends *walk; NULL: do not),
 * or, where it does not fit, what there is from the first zone on. */
void sched_pod_take_somewhere(const struct sched_pod *pod, const struct resource_table *names,
	struct budget *walk, struct sched_topology *t);

/* Among those that age, by its since_ms. */
void known_age_add(struct known_age *a, struct tracked_pod *p);
/* Nothing happens to a pod that is not among them. */
void known_age_remove(struct known_age *a, struct tracked_pod *p);
/* The clock was set back: what is said to happen later has happened before this. Those that age
 * keep their order, and a report from before a binding does not become one from behind it. */
void sched_cluster_set_back(struct sched_cluster *c, int64_t now_ms);

/* Whether its node reports it still, though it has ended: what it held is free by now. */
bool tracked_pod_gives_back(const struct sched_cluster *c, const struct tracked_pod *p);
/* A report has come, or the pod: whether it is named, and what follows for its claim. */
void tracked_pod_note_name(struct tracked_pod *p, bool is_news);

/* A report has come, or pods have: whether a fingerprint contains them now. */
void known_node_settle(struct sched_cluster *c, struct known_node *n);
/* Make anew what has changed. */
void known_node_refresh(struct sched_cluster *c, struct known_node *n);

#endif
