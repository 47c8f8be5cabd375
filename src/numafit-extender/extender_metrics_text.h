#ifndef NUMAFIT_EXTENDER_EXTENDER_METRICS_TEXT_H
#define NUMAFIT_EXTENDER_EXTENDER_METRICS_TEXT_H

#include <codec/prometheus.h>
#include <io/process.h>
#include <numafit/sched_cluster.h>

/* What numafit-extender measures, as Prometheus reads it. Units are seconds and bytes. */

enum extender_verb { VERB_FILTER, VERB_PRIORITIZE, VERB_PREEMPT, VERB_BIND, NR_EXTENDER_VERBS };
const char *extender_verb_name(unsigned verb); /* "filter", ... */

/* How a request ended: done; not understood (400); the extender is not ready (503). */
enum extender_result { RESULT_OK, RESULT_BAD, RESULT_NOT_READY, NR_EXTENDER_RESULTS };

/* What came of a binding. */
enum extender_bound {
	BOUND_WITH_ADVICE,
	BOUND_PLAIN,   /* NUMA nodes do not matter to the pod, or the node says nothing of them */
	BOUND_ALREADY, /* by an earlier attempt */
	BIND_CONFLICT, /* the node has changed since the decision */
	BIND_REFUSED,  /* by the API server */
	BIND_UNKNOWN,  /* no pod, or nobody knows what became of it */
	NR_EXTENDER_BOUNDS
};
extern const char *const extender_bound_names[NR_EXTENDER_BOUNDS]; /* "bound-with-hint", ... */

/* A list that is watched. */
enum extender_watch {
	WATCH_NODES,
	WATCH_PODS,
	WATCH_REPORTS,
	WATCH_NUMATOPOLOGIES,
	WATCH_EVENTS, /* numafitd's */
	NR_WATCHES
};
const char *extender_watch_name(unsigned watch); /* "nodes", ... */

/* Why a connection was closed: others needed its place; it was too slow. */
enum extender_closed { CLOSED_CROWDED, CLOSED_SLOW, NR_CLOSED };

struct extender_metrics {
	const char *version;
	uint64_t requests[NR_EXTENDER_VERBS][NR_EXTENDER_RESULTS];
	struct histogram duration[NR_EXTENDER_VERBS];
	uint64_t nodes_asked[NR_EXTENDER_VERBS], nodes_refused; /* by filter */
	uint64_t binds[NR_EXTENDER_BOUNDS];
	uint64_t refusals; /* of nodes, which pods report */
	uint64_t unreadable[NR_WATCHES];
	bool synced[NR_WATCHES];
	uint64_t crowded_out;       /* requests, by those that hold too much */
	uint64_t pods_crowded_out;  /* times that there was no room for one that waits */
	uint64_t closed[NR_CLOSED]; /* connections */
	uint64_t strangers;         /* handshakes with a certificate that was not taken */
	size_t kept, avoided, binding, unsettled;
	struct sched_cluster_counts cluster;
	struct process_figures process;
};

/* The text, of *len bytes; the caller frees. */
char *extender_metrics_text(const struct extender_metrics *m, size_t *len);

#endif
