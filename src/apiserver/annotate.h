#ifndef NUMAFIT_APISERVER_ANNOTATE_H
#define NUMAFIT_APISERVER_ANNOTATE_H

#include <apiserver/api.h>

/* The annotation OBSERVED_ANNOTATION (observed_json.h) of this node's pods: for each pod the value
 * that it should have is handed in, in rounds, and what differs from what the server has is
 * patched. A value is written once, and the next one when it is another: who else writes the
 * annotation is logged, not fought.
 *
 * what                   | how often
 * ---------------------- | --------------------------------------------------------------
 * all patches            | one at a time; 10 at once, then 5 in a second (a client's usual
 *                        | pace, client-go)
 * after a failure        | none of any pod for 1 s, and up to 5 minutes
 * pods                   | 1024; of others nothing is written, and they are counted */
struct annotator;

struct annotator_options {
	unsigned burst, every_ms; /* 0: 10 and 200 ms */
	/* after a failure, later and later; 0: 1 s to 5 minutes */
	unsigned retry_min_ms, retry_max_ms;
	/* what may be done where patches are forbidden: "apply ..."; borrowed */
	const char *advice;
};

struct annotator_handler {
	void *ctx;
	/* mandatory, for the log, once for what lasts: "observed-placement-refused" (we may not, or
	 * one value cannot be written; with the server's words; bad), "observed-placement-accepted"
	 * afterwards, "observed-placement-overwritten" (somebody else has written another value
	 * over ours; bad). */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

struct annotator_counters {
	uint64_t written;
	uint64_t failed;  /* attempts that are made again */
	uint64_t dropped; /* values that are not written: refused for good, or too many pods */
	unsigned waiting; /* pods */
};

/* Who is to be annotated; copied when it is new. */
struct annotator_pod {
	const char *uid; /* the runtime's */
	const char *ns, *name;
	bool is_mirror;     /* of a static pod: in the API server it has another uid */
	const char *on_pod; /* the annotation as a watch has seen it last; NULL: none */
};

/* The handler is copied. */
struct annotator *annotator_new(struct loop *l, struct api *a, const struct annotator_options *o,
	const struct annotator_handler *handler);
/* All pods are named anew from here on: which is not named before annotator_end() is forgotten
 * then. */
void annotator_begin(struct annotator *v);
/* The value that the pod should have; NULL: it should have none. */
void annotator_want(struct annotator *v, const struct annotator_pod *pod, const char *value);
/* The pod is still there, and nobody can say now what it should have. */
void annotator_keep(struct annotator *v, const char *uid);
void annotator_end(struct annotator *v);
void annotator_counters(const struct annotator *v, struct annotator_counters *out);
/* What waits is not written. Before api_free(). NULL is fine. */
void annotator_close(struct annotator *v);

#endif
