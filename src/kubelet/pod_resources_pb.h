#ifndef NUMAFIT_KUBELET_POD_RESOURCES_PB_H
#define NUMAFIT_KUBELET_POD_RESOURCES_PB_H

#include <codec/blob.h>
#include <numafit/arena.h>
#include <numafit/cpuset.h>
#include <numafit/err.h>
#include <numafit/nodeset.h>

/* The messages of the kubelet's PodResources API (v1) as its client reads and writes them. All that
 * is decoded lives in the arena, and so do the bytes of what is encoded. */

/* Requests of List and GetAllocatableResources are the empty message. */
#define POD_RESOURCES_PATH(method) "/v1.PodResourcesLister/" method

enum { POD_RESOURCES_MEMORY_MAX = 64 << 20 }; /* for the arena: some 20,000 pods */

/* A device of a plugin; the kubelet has a row for each of its nodes, here it is one. */
struct held_device {
	const char *resource, *id;
	bool has_topology; /* its plugin says where it is */
	struct node_id_list nodes;
};

/* A block of the Static memory manager. */
struct held_memory {
	uint64_t page_bytes; /* 0: ordinary memory */
	uint64_t bytes;
	struct node_id_list nodes;
};

/* A device that a container has through a claim (DRA). */
struct held_claim {
	const char *ns, *name; /* the claim's */
	const char *driver, *pool, *device, *share;
	const char *const *cdi; /* names, "vendor/class=device" */
	size_t nr_cdi;
};

struct container_held {
	const char *name;
	struct cpuset cpus;               /* exclusive ones of the static CPU manager */
	const struct held_device *device; /* ascending by resource, then id (byte order) */
	size_t nr_devices;
	const struct held_memory *memory;
	size_t nr_memory;
	const struct held_claim *claim;
	size_t nr_claims;
};

/* Without a uid: a pod that came again under its name looks the same. */
struct pod_held {
	const char *ns, *name;
	const struct container_held *container; /* sidecars among them, init containers not */
	size_t nr;
	/* What the pod has as a whole, its containers' part included (since 1.37). */
	struct cpuset cpus;
	const struct held_memory *memory;
	size_t nr_memory;
};

struct pods_held {
	const struct pod_held *pod;
	size_t nr;
};

/* Healthy devices, held or not; ascending by resource, then id (byte order). */
struct devices_allocatable {
	const struct held_device *device;
	size_t nr;
};

/* 0; or with text -EBADMSG (no such message, or more than the arena holds), -ERANGE (a CPU that
 * struct cpuset has no place for). Kinds of memory that are neither "memory" nor huge pages are
 * left out. */
int pod_resources_list_decode(
	struct blob message, struct arena *a, struct pods_held *out, struct err *e);
/* Of GetAllocatableResources' answer the devices. */
int pod_resources_allocatable_decode(
	struct blob message, struct arena *a, struct devices_allocatable *out, struct err *e);

#endif
