#ifndef NUMAFIT_APISERVER_APPLY_H
#define NUMAFIT_APISERVER_APPLY_H

#include <apiserver/api.h>

/* One object that is ours, kept in the API server as it should be: server-side apply with our own
 * field manager when it has changed, at most once in an interval, and once in a heartbeat anyway,
 * so that one that was deleted comes back. The newest state is what is written; what was not
 * written in time is never sent. */
struct apply;

struct apply_options {       /* strings are copied */
	const char *path;    /* "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/n1" */
	const char *manager; /* the field manager */
	const char *what;    /* for the log: "NodeResourceTopology n1" */
	/* Take over what others have written; otherwise a conflict is logged, and tried again with
	 * every heartbeat only. */
	bool take_over;
	/* what may be done about a conflict: "set nodeResourceTopology.takeOver to write
	 * it all the same" */
	const char *advice;
	unsigned interval_ms;  /* between two writes at least; 0: 200 */
	unsigned heartbeat_ms; /* 0: 60 s */
	/* after a failure, later and later; 0: 1 s to 60 s */
	unsigned retry_min_ms, retry_max_ms;
};

struct apply_handler {
	void *ctx;
	/* mandatory: the object as it should be now, as JSON, which is freed. beat has another
	 * value for each heartbeat, also of those before us. NULL: there is nothing to write now,
	 * and it is asked again after a change or with the next heartbeat. */
	char *(*print)(void *ctx, uint64_t beat);
	/* optional: it was not there, and was created */
	void (*created)(void *ctx);
	/* mandatory, for the log, once for what lasts: "apply-written", "apply-refused" (with the
	 * server's words), "apply-conflict" (with its owner, and what to do). */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

struct apply_counters {
	uint64_t written, failed, conflicts;
	uint64_t lag_ms;    /* of the last change: until the server had it */
	uint64_t behind_ms; /* since when the oldest change that it has not has been waiting */
};

/* The first write comes by itself. The handler is copied. */
struct apply *apply_new(struct loop *l, struct api *a, const struct apply_options *o,
	const struct apply_handler *handler);
/* manager, take_over, interval_ms and heartbeat_ms are others from the next write on, which waits
 * for nothing but that interval; path is the same. A write under way and the counters stay. */
void apply_set_options(struct apply *p, const struct apply_options *o);
/* What print() gives may be another text by now: when it is, it is written. */
void apply_changed(struct apply *p);
void apply_counters(const struct apply *p, struct apply_counters *out);
/* NULL is fine. */
void apply_close(struct apply *p);

#endif
