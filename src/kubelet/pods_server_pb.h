#ifndef NUMAFIT_KUBELET_PODS_SERVER_PB_H
#define NUMAFIT_KUBELET_PODS_SERVER_PB_H

#include <kubelet/pods_pb.h>

/* The messages of the Pods API as a kubelet writes them: the other direction of pods_pb.h. */

/* The pod as a v1.Pod: its names and annotations and, when pod->pod.container is there, what its
 * containers ask for, as a pod of that class says it (a Guaranteed one's limits are its requests,
 * others have none but of extended resources). 0; -EILSEQ, -ENOMEM with text. */
int pods_pod_encode(const struct known_pod *pod, struct arena *a, struct blob *out, struct err *e);
/* An event with such a pod, or without one (no bytes). */
int pods_event_encode(
	const struct pods_event *event, struct arena *a, struct blob *out, struct err *e);

#endif
