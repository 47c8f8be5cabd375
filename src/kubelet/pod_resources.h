#ifndef NUMAFIT_KUBELET_POD_RESOURCES_H
#define NUMAFIT_KUBELET_POD_RESOURCES_H

#include <kubelet/device_count.h>
#include <kubelet/grpc_client.h>
#include <kubelet/pod_resources_pb.h>

/* What the kubelet has given to its pods (PodResources), kept at hand: nobody ever waits for it.
 * It is asked for anew on a timer and whenever somebody knows of a change; any number of wishes
 * while an answer is on its way make one more question. A kubelet that limits its rate, is absent,
 * or starts is asked again, later and later. */
struct pod_resources;

/* pod_resources_close() is not for these callbacks. */
struct pod_resources_handler {
	void *ctx;
	/* A new answer, or other devices (pod_resources_devices()); *held is valid until the next
	 * one. It is as the kubelet lists it, in no order: before 1.34 a pod that has ended may be
	 * there beside the one that has its name by now. mandatory */
	void (*updated)(void *ctx, const struct pods_held *held);
	/* For the log, once for what lasts: "pod-resources-waiting" (nobody serves it),
	 * "pod-resources-refused" (with the kubelet's words), "pod-resources-up",
	 * "pod-resources-no-devices" (likewise, of GetAllocatableResources). bad: somebody must do
	 * something about it, and text says what. mandatory */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

struct pod_resources_options {
	const char *socket; /* borrowed */
	/* 0: 30 s between questions that nobody wished for, 5 s for an answer, 100 ms to 60 s
	 * before the next attempt after a failure (with jitter), and 50 ms at least between two
	 * questions, that the kubelet's rate (100 a second for all its clients, 10 in a burst) is
	 * left to others */
	unsigned every_ms, answer_ms, retry_min_ms, retry_max_ms, gap_ms;
	bool devices; /* with every question ask what there is to be given out, too */
};

struct pod_resources *pod_resources_new(struct loop *l, struct rpc_pump *p,
	const struct pod_resources_options *o, const struct pod_resources_handler *handler);
/* Something has changed: ask anew, soon. Returns the number that the answer to a question asked
 * from now on will have at least: pod_resources_age() of this or more is no older than this call.
 */
uint64_t pod_resources_refresh(struct pod_resources *r);
/* The same, whatever has failed before: somebody waits. */
void pod_resources_hurry(struct pod_resources *r);
/* The number of the question that the present answer belongs to; 0: there is none yet. */
uint64_t pod_resources_age(const struct pod_resources *r);
/* What the pod's container holds by the present answer, or NULL. Of pods of one name the one that
 * holds anything counts, else the last. */
const struct container_held *pod_resources_find(
	const struct pod_resources *r, const char *ns, const char *pod, const char *container);
/* All of the present answer; empty when there is none yet. Valid until the loop's next turn. */
const struct pods_held *pod_resources_held(const struct pod_resources *r);
/* Per resource and NUMA node the devices that the kubelet can give out, and how many of them it has
 * given, by the latest answers (devices_count()). None with answers that are still to come, or
 * without options.devices. 0, or -ENOMEM: the arena's limit. */
int pod_resources_devices(const struct pod_resources *r, struct arena *a,
	const struct device_count **out, size_t *nr);
/* Give up; before rpc_pump_free(). NULL is fine. */
void pod_resources_close(struct pod_resources *r);

#endif
