#ifndef NUMAFIT_APISERVER_PODS_H
#define NUMAFIT_APISERVER_PODS_H

#include <apiserver/api.h>
#include <numafit/pod_store.h>

/* The pods of the node as the API server has them, kept at hand by a watch that sees no others:
 * nobody ever waits for it. What is kept of a pod is little, whatever is in it. */
struct api_pods;

/* api_pods_close() is not for these callbacks. */
struct api_pods_handler {
	void *ctx;
	/* optional: the pod is new, or what it asks for has changed; valid as for api_pods_find().
	 * A pod that is listed again as it was is neither. */
	void (*changed)(void *ctx, const struct known_pod *pod);
	void (*gone)(void *ctx); /* optional: pods may be listed no more */
	/* mandatory, for the log, once for what lasts: a reflector's, as "pods-watch-waiting",
	 * "pods-watch-synced", "pods-watch-lost", and "pods-watch-odd-pod" (one that cannot be
	 * read, with its reason). */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

/* node: its name in Kubernetes. The handler is borrowed. */
struct api_pods *api_pods_new(
	struct api *a, const char *node, const struct api_pods_handler *handler);
/* The pod of the uid that the runtime says, or NULL: not known. Valid until the loop's next turn.
 */
const struct known_pod *api_pods_find(const struct api_pods *p, const char *uid);
size_t api_pods_count(const struct api_pods *p);
/* In order of uid; i below that count. */
const struct known_pod *api_pods_at(const struct api_pods *p, size_t i);
/* Whether the list is complete and the watch is there. */
bool api_pods_synced(const struct api_pods *p);
/* Before api_free(). NULL is fine. */
void api_pods_close(struct api_pods *p);

#endif
