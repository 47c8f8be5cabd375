#ifndef NUMAFIT_APISERVER_EVICT_H
#define NUMAFIT_APISERVER_EVICT_H

#include <apiserver/api.h>

/* Evictions: a pod that cannot run here goes, so that its controller makes another one, elsewhere
 * if the scheduler sees why. Which pods may go is pod_store.h's pod_owner_makes_another(). By the
 * Eviction API, which minds disruption budgets, and only the very pod of that uid.
 *
 * Three at once, then one in 10 s: the pace at which the kubelet's own eviction manager takes pods
 * off a node that runs out of something. A setting that refuses everything then does not empty the
 * node before somebody can look at it, and pods that come back here do not go round in circles
 * faster than that. */
struct evictions;

struct evictions_options {
	unsigned burst, every_ms;            /* 0: 3 and 10 s */
	unsigned retry_min_ms, retry_max_ms; /* of one pod; 0: 5 s to 5 minutes */
	unsigned going_ms; /* a pod that is still there then may be evicted again; 0: 10 minutes */
};

struct evictions_handler {
	void *ctx;
	/* mandatory, for the log: "pod-evicted"; once for each pod "pod-eviction-waiting" (its
	 * disruption budget does not allow it, or the server cannot, with its words), and once for
	 * what lasts "pod-eviction-refused" (we may not; bad), "pod-evictions-limited" (more than
	 * the pace above; bad). */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

struct evictions_counters {
	uint64_t evicted;
	uint64_t failed;  /* attempts that are made again */
	uint64_t dropped; /* not taken up, as too many wait */
	unsigned waiting;
};

/* The handler is copied. */
struct evictions *evictions_new(struct loop *l, struct api *a, const struct evictions_options *o,
	const struct evictions_handler *handler);
/* Evict that pod, as long as it takes. One that is being evicted already, or was and is on its way
 * out, is not evicted twice. */
void evict_pod(struct evictions *v, const char *ns, const char *name, const char *uid);
/* The pod is gone, or it runs after all: its eviction is given up. */
void evict_forget(struct evictions *v, const char *uid);
void evictions_counters(const struct evictions *v, struct evictions_counters *out);
/* Before api_free(). NULL is fine. */
void evictions_close(struct evictions *v);

#endif
