#ifndef NUMAFIT_SCHED_CLUSTER_H
#define NUMAFIT_SCHED_CLUSTER_H

#include <numafit/sched_plan.h>

/* The nodes of a cluster as the scheduler's side knows them: what each NUMA zone has left, once the
 * pods are taken away that were bound there and that the node's own report does not contain yet.
 *
 * A report (a NodeResourceTopology) says what it contains: one of numafitd's names each pod that
 * holds something (report_pods), so that of the others only those wait to be in it that a scheduler
 * takes to hold something, too (nrt_pod_is_exclusive()); those of other exporters have at most a
 * fingerprint of all their pods, and every pod waits until one equals that of the pods known here.
 *
 * A pod that waits is taken from its own zones when these are known (by its hint, on a node of
 * numafitd, which follows it where there is room). Else, if it has not started yet and its node
 * names pods, its request is taken once, from where the node would put it; else from every zone, as
 * the over-reserve cache of scheduler-plugins does. It waits until a report contains it, it is gone
 * or has ended; or until assume_ms have passed since it was bound and a report has come since,
 * which then is the truth. (That does not hold for one that has not started yet on a node of
 * numafitd: nothing is held for it before. It holds its request for as long as it is there.)
 *
 * A hint is an annotation, which the pod's author can change at any time. So it is believed
 *   - only where of each resource its zones add up to what the pod asks of zones, neither more nor
 *     less: it says where something lies, and never how much it is;
 *   - only as it was when the pod was bound, if that was seen, or was decided here (seen_bound).
 *     What is said later is not looked at;
 *   - else as it is when the pod is first heard of, which is after a start, and then only until the
 *     node's report names the pod;
 *   - and not any more once the pod asks for something else (it was resized), or its node reports
 *     it in other zones (numafit.io/pod-zones).
 * So a false hint can do no more than take its own pod's request from other zones of its own node,
 * for as long as that is in no report.
 *
 * A pod that has ended, and that the report of its node names still, gives back what was believed
 * of it while it ran to the very zones (never more than is allocatable there), until a report does
 * not name it; or until assume_ms have passed since its end was heard of and a report has come
 * since. That it has ended is its phase's word: then none of its containers runs any more. Nothing
 * is given back for one
 *   - that is gone without having had such a phase (deleted by force, or between two lists), as its
 *     containers may run still;
 *   - without a hint, as nobody knows from where (and how much: its node counts whole CPUs alone);
 *   - that was not seen being bound: those that ran before a start count until the next report;
 *   - that the report has named since before it was bound, or whose name another pod of the node
 * has by now: the report may mean that one.
 *
 * The heap is used; nothing here knows a clock. */

enum foreign_pods { FOREIGN_PODS_ALL, FOREIGN_PODS_NONE, FOREIGN_PODS_EXCLUSIVE };

struct sched_cluster_args {
	/* cacheResyncPeriodSeconds above 0; false: reports are taken as they are. */
	bool over_reserve;
	/* discardReservedNodes: a node with an assumed pod is stale, and reports are taken as they
	 * are. */
	bool discard_reserved;
	/* foreignPodsDetect: which pods, bound by others and not in a report yet, make their node
	 * stale: those to which NUMA nodes matter at all, or only exclusive ones. */
	enum foreign_pods foreign;
	uint64_t assume_ms;
};

struct sched_cluster;
/* names is borrowed; all quantities and topologies given here use its numbers. */
struct sched_cluster *sched_cluster_new(
	const struct sched_cluster_args *args, const struct resource_table *names);
void sched_cluster_free(struct sched_cluster *c);

/* Nodes: what the API server has of them. Copied. */
void sched_cluster_put_node(struct sched_cluster *c, const struct sched_node *node);
void sched_cluster_remove_node(struct sched_cluster *c, const char *name);

struct sched_report {
	struct sched_topology *topology; /* taken over */
	uint64_t generation;             /* numafit.io/generation; 0: not numafitd's */
	const uint64_t *pod;             /* numafit.io/pods: fingerprint_pod() of each */
	/* numafit.io/pod-zones: for each of them the NUMA nodes that it holds something of, as bits
	 * of their ids; NULL: not said. */
	const uint64_t *pod_zones;
	size_t nr_pods;
	bool names_pods; /* the attribute is there */
	int64_t made_ms; /* when, as the object says; 0: now, unless the generation is that of the
			    report before */
};
/* Before the node itself is known is fine. */
void sched_cluster_put_report(
	struct sched_cluster *c, const char *node, const struct sched_report *r, int64_t now_ms);
void sched_cluster_remove_report(struct sched_cluster *c, const char *node);
/* Volcano's; taken over with all that it points to, which one free() of *memory gives back. NULL
 * for both: it has none any more. */
void sched_cluster_put_numatopology(struct sched_cluster *c, const char *node,
	const struct volcano_node *volcano, void *memory);

/* What a pod takes of a zone, by the NUMA node's id as zones are named. What init containers take
 * is not there twice: those behind them take it over. */
struct sched_taken {
	unsigned zone_id, resource;
	struct quantity q;
	const char *container; /* its name; NULL or "*": the pod as a whole */
};
/* A pod that is bound. All is copied. */
struct sched_bound {
	const struct sched_pod *pod;
	const char *node;
	/* By its hint; NULL: not known. Believed only when of each resource the zones add up to
	 * what the pod asks for, and when the pod is heard of for the first time. */
	const struct sched_taken *taken;
	size_t nr_taken;
	/* The pod was known before it was bound, and taken was not there then: it is from whoever
	 * has bound it. Lists cannot know. */
	bool seen_bound;
	/* When it was bound (the API server says); 0: now, or, in a list of all pods, long ago. */
	int64_t bound_ms;
	bool ours;    /* the hint is there: it was bound by one of us; at first */
	bool pending; /* its phase: schedulers do not count such pods in a fingerprint */
	bool ended;   /* Succeeded, Failed */
};
/* As the watch has it; replaces what was assumed of it. Where it was assumed, and is not confirmed,
 * and what it says is something else, its zones are not known any more. */
void sched_cluster_put_pod(struct sched_cluster *c, const struct sched_bound *b, int64_t now_ms);
/* It is no longer there, and counts for nothing but what it may give back. */
void sched_cluster_remove_pod(struct sched_cluster *c, const char *uid);
/* It is about to be bound there: counts from now on, until put_pod() has it or forget(), or
 * assume_ms have passed. A pod that is known to be bound stays as it is. */
void sched_cluster_assume(struct sched_cluster *c, const struct sched_bound *b, int64_t now_ms);
/* Nobody knows yet whether it was bound: for one that was assumed assume_ms count from now on. */
void sched_cluster_renew(struct sched_cluster *c, const char *uid, int64_t now_ms);
/* It was bound to the node that it was assumed for, which put_pod() has not shown yet: it is
 * neither assumed again nor forgotten, and counts until it is removed or, once assume_ms are over,
 * was in no list since it was assumed. as_assumed false: by another binding, so that its zones are
 * not known. */
void sched_cluster_confirm(struct sched_cluster *c, const char *uid, bool as_assumed);
/* It was not bound. */
void sched_cluster_forget(struct sched_cluster *c, const char *uid);
/* The node for which the pod counts without put_pod() having shown it there; NULL: none. */
const char *sched_cluster_assumed_on(const struct sched_cluster *c, const char *uid);
/* The pod is there, and put_pod() would have no node for it. */
void sched_cluster_note_unbound(struct sched_cluster *c, const char *uid);
/* What time alone changes; every second or so. Costs nothing but for those whose time has come. */
void sched_cluster_expire(struct sched_cluster *c, int64_t now_ms);

/* A new list of each kind begins: what is not put again before sweep is gone. */
enum sched_cluster_kind {
	CLUSTER_NODES,
	CLUSTER_REPORTS,
	CLUSTER_NUMATOPOLOGIES,
	CLUSTER_PODS, /* assumed ones stay for assume_ms */
	NR_CLUSTER_KINDS
};
void sched_cluster_begin(struct sched_cluster *c, enum sched_cluster_kind kind);
void sched_cluster_sweep(struct sched_cluster *c, enum sched_cluster_kind kind);

/* The node with what is left of its zones, or NULL: not known. Valid until the cluster changes. */
const struct sched_candidate *sched_cluster_find(struct sched_cluster *c, const char *name);
/* The generation and the fingerprint of the node's last report; 0, NULL. */
uint64_t sched_cluster_generation(const struct sched_cluster *c, const char *name);
const char *sched_cluster_fingerprint(const struct sched_cluster *c, const char *name);
/* The bound pod of that uid: its node, or NULL. */
const char *sched_cluster_node_of(const struct sched_cluster *c, const char *uid);

struct sched_cluster_counts {
	size_t nodes, reports;
	size_t pods;    /* that are there */
	size_t waiting; /* pods that no report contains yet */
	size_t stale;   /* nodes */
};
void sched_cluster_count(struct sched_cluster *c, struct sched_cluster_counts *out);

/* Whether the pod would fit on the node once these pods (uids) are gone: what they take is given
 * back to the zones where it lies. One whose zones are not known is taken to make room. */
bool sched_cluster_fits_without(struct sched_cluster *c, struct sched_plan *p, const char *node,
	const char *const *uid, size_t nr);

/* Walk the invariants: of each zone there is left max(0, min(allocatable, reported + given back) -
 * what is not in the report). 0, or -EINVAL with the first that is broken. */
int sched_cluster_check(struct sched_cluster *c, struct err *e);

#endif
