#ifndef NUMAFIT_KUBELET_POD_RESOURCES_SERVER_PB_H
#define NUMAFIT_KUBELET_POD_RESOURCES_SERVER_PB_H

#include <kubelet/pod_resources_pb.h>

/* The messages of the PodResources API as a kubelet reads and writes them: the other direction of
 * pod_resources_pb.h, with the same rules. Of what pods hold only devices are written: CPUs and
 * memory are those of static managers, claims those of DRA. */

/* 0; -EILSEQ, -ENOMEM with text. A device on several nodes is a row for each of them. */
int pod_resources_list_encode(
	const struct pods_held *held, struct arena *a, struct blob *out, struct err *e);
int pod_resources_allocatable_encode(
	const struct devices_allocatable *all, struct arena *a, struct blob *out, struct err *e);

#endif
