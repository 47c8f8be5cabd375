#ifndef NUMAFIT_EXTENDER_CLUSTER_VIEW_H
#define NUMAFIT_EXTENDER_CLUSTER_VIEW_H

#include <numafit/fragmentation.h>
#include <numafit/sched_cluster.h>

/* What the page of the cluster shows: a row for each node, samples of the last hour, refusals. It
 * is kept as text that is ready to be sent, each part with the revision at which it was another one
 * the last time: whoever has seen a revision is sent what has changed since. Nothing here knows a
 * clock. */
struct cluster_view;

/* epoch: another number for each life of the process (its start), by which what was seen of the one
 * before is known not to count. */
struct cluster_view *cluster_view_new(uint64_t epoch);
void cluster_view_free(struct cluster_view *v);

/* Nodes, with the pool that each is of ("": none). All is copied. A list begins, names all nodes,
 * and is swept: those that it has not named are gone. */
void cluster_view_put_node(struct cluster_view *v, const char *name, const char *pool);
void cluster_view_remove_node(struct cluster_view *v, const char *name);
void cluster_view_begin(struct cluster_view *v);
void cluster_view_sweep(struct cluster_view *v);

/* Look at the next nr nodes, from *at on (0: the first): their rows become what the cluster has of
 * them now. False: that was the last of them. Nodes may come and go in between. */
bool cluster_view_look(struct cluster_view *v, struct sched_cluster *c, size_t *at, unsigned nr);

/* One sample is what the rows say together. The last CLUSTER_SAMPLES are kept. */
enum { CLUSTER_SAMPLES = 60, CLUSTER_SAMPLE_S = 60 };
void cluster_view_sample(struct cluster_view *v, int64_t now_ms);

/* By what a pod was refused. */
enum cluster_refusal_kind {
	REFUSED_TOPOLOGY,  /* the node's policy does not admit what its NUMA nodes have left */
	REFUSED_SMT,       /* whole cores are wanted */
	REFUSED_ADMISSION, /* the node has another reason */
	REFUSED_CREATION,  /* a container's creation has failed with numafitd's words */
	REFUSED_HINT,      /* the scheduler's hint was rejected */
	REFUSED_OTHER,     /* numafitd has another reason */
	REFUSED_NOWHERE,   /* no node passed the filter */
	NR_REFUSAL_KINDS
};
extern const char *const cluster_refusal_words[NR_REFUSAL_KINDS];
/* The kind of a refusal by a node, from the word that Kubernetes has for it: a pod's reason, or an
 * event's. */
enum cluster_refusal_kind cluster_refusal_kind_of(const char *reason);

/* Strings are copied, those that are longer than Kubernetes allows are cut. The last
 * CLUSTER_REFUSALS are kept; a pod that was refused in the same way before is not there twice, but
 * counted. */
enum { CLUSTER_REFUSALS = 50 };
struct cluster_refusal {
	int64_t time_ms;
	enum cluster_refusal_kind kind;
	const char *uid, *ns, *pod;
	const char *node; /* "": no one */
};
void cluster_view_refused(struct cluster_view *v, const struct cluster_refusal *r);

/* A node has looked at a scheduler's hint. verdict: its word (advice_verdict_words); another one is
 * passed over. number: the event's; the same event is counted once, though lists repeat it. */
void cluster_view_hint(struct cluster_view *v, uint64_t number, const char *verdict);

/* What the document has besides. */
struct cluster_figures {
	int64_t now_ms;
	const char *version;
	const char *pool_label; /* by which nodes are grouped; "": by none */
	const char *unready;    /* why nothing is decided yet; "": all is known */
	struct sched_cluster_counts counts;
	uint64_t requests, asked, left_out; /* filters that were answered, nodes in them, and nodes
					       that they left out */
	size_t avoided;
	/* Bindings by what came of them; their words. */
	const uint64_t *binds;
	const char *const *bind_words;
	unsigned nr_binds;
};
/* What a reader has seen: the query of a URL, "since=EPOCH.REVISION"; another text is nothing. */
struct cluster_seen {
	uint64_t epoch, revision;
};
struct cluster_seen cluster_seen_read(const char *query);
/* The document for a reader who has seen that, of *len bytes; the caller frees. NULL: it would be
 * longer than UI_DOCUMENT_MAX.
 *
 *	{"at": "EPOCH.REVISION",         what is to be asked with the next time
 *	 "all": true,                    all rows are here; false: those that have changed
 *	 "nodes": [[name, pool, state, [free...], allocatable, [free MiB...], allocatable MiB,
 *	            lost, [id...]], ...],
 *	 "gone": [name, ...],            nodes, of which nothing is known any more
 *	 "samples": [[time_ms, nodes, free, lost, allocatable], ...],    missing: as before
 *	 "refusals": [{...}, ...],       the newest first; missing: as before
 *	 "refused": {kind: number}, "hints": {verdict: number}, "binds": {result: number}, ...
 *figures}
 *
 * state is 0: as reported, 1: stale, 2: there is no report. Amounts are of each NUMA node, CPUs
 * whole; allocatable is one number where it is the same of all, else an array, and 0 where nothing
 * is known. lost: struct cluster_fragmentation. The ids of the NUMA nodes are missing where they
 * are 0, 1, 2 ... */
char *cluster_view_json(const struct cluster_view *v, const struct cluster_figures *f,
	const struct cluster_seen *seen, size_t *len);

#endif
