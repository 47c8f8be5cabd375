#ifndef NUMAFIT_KUBELET_PODS_PB_H
#define NUMAFIT_KUBELET_PODS_PB_H

#include <codec/blob.h>
#include <numafit/arena.h>
#include <numafit/err.h>
#include <numafit/pod_store.h>

/* The messages of the kubelet's Pods API (KEP-4188) as its client reads them. All that is decoded
 * lives in the arena. */

/* Its request is the empty message. */
#define PODS_WATCH_PATH "/v1alpha1.Pods/WatchPods"

enum {
	/* for the arena: an event of 16 MiB, its copy of the pod, and the pod's copy of what nobody
	 * reads, unless it is made to burst it */
	PODS_MEMORY_MAX = 64 << 20
};

/* The API's numbers; one that is not here comes as PODS_UNKNOWN, to be passed over. */
enum pods_event_type {
	PODS_UNKNOWN,
	PODS_ADDED, /* also for each pod that there is when the watch begins */
	PODS_MODIFIED,
	PODS_DELETED, /* the pod has a name, a namespace and a uid only */
	PODS_SYNCED   /* those that there were have come; no pod */
};
struct pods_event {
	enum pods_event_type type;
	struct blob pod; /* a v1.Pod, for pods_pod_decode() */
};
/* 0, or -EBADMSG with text: no such message, or more than the arena holds. */
int pods_event_decode(struct blob message, struct arena *a, struct pods_event *out, struct err *e);

/* What a v1.Pod says of a pod: its source is POD_FROM_KUBELET, its owner is not asked for.
 * 0, or with text -EBADMSG (no v1.Pod with a uid, or more than the arena holds), -E2BIG (too many
 * containers or resources), -EINVAL (a quantity that is none), or as pod_spec_known(). */
int pods_pod_decode(struct blob pod, struct arena *a, struct known_pod *out, struct err *e);

#endif
