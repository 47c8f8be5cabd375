#ifndef NUMAFIT_KUBELET_PODS_H
#define NUMAFIT_KUBELET_PODS_H

#include <kubelet/grpc_client.h>
#include <kubelet/pods_pb.h>

/* The pods of the node as the kubelet has them (Pods API), kept at hand by a watch: nobody ever
 * waits for it. A watch that ends is begun again, later and later; what it lists first is all there
 * is, so what it does not list then is gone. */
struct pods;

/* pods_close() is not for these callbacks. */
struct pods_handler {
	void *ctx;
	/* The pod is new, or what it asks for has changed; valid as for pods_find(). A pod that a
	 * new watch lists again as it was is neither. optional */
	void (*changed)(void *ctx, const struct known_pod *pod);
	void (*gone)(void *ctx); /* pods may be listed no more; optional */
	/* For the log, once for what lasts: "pods-api-waiting" (nobody serves it: an older kubelet,
	 * or its feature gate is off), "pods-api-refused" (with the kubelet's words),
	 * "pods-api-synced" (it has listed all there is), "pods-api-lost", "pods-api-odd-pod" (one
	 * that cannot be read, with its reason). bad: somebody must do something about it, and text
	 * says what. mandatory */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

struct pods_options {
	const char *socket; /* borrowed */
	/* 0: 100 ms to 60 s before the next attempt, with jitter; back at its start once a watch
	 * was synced for as long as the longest, or the socket is made anew */
	unsigned retry_min_ms, retry_max_ms;
};

struct pods *pods_new(struct loop *l, struct rpc_pump *p, const struct pods_options *o,
	const struct pods_handler *handler);
/* The pod of that uid, or NULL: not known. Valid until the loop's next turn. */
const struct known_pod *pods_find(const struct pods *p, const char *uid);
size_t pods_count(const struct pods *p);
/* Whether the present watch has listed all there is. */
bool pods_synced(const struct pods *p);
/* Give up; before rpc_pump_free(). NULL is fine. */
void pods_close(struct pods *p);

#endif
