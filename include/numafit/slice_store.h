#ifndef NUMAFIT_SLICE_STORE_H
#define NUMAFIT_SLICE_STORE_H

#include <numafit/err.h>
#include <numafit/nodeset.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the devices of this node's DRA drivers are, by their ResourceSlices. A driver publishes
 * each pool of devices in slices of one generation, and says in each how many there are. What
 * counts is the last generation that was there as a whole: it stays while the next one is
 * incomplete, and when its slices are deleted, as the kubelet does with all of the node when it
 * starts. */

enum {
	SLICE_DEVICES_MAX = 128,         /* of one slice (resource.k8s.io/v1 types.go) */
	SLICE_STORE_BYTES_MAX = 32 << 20 /* of all: several thousand full slices */
};

struct slice_device {
	const char *name;
	/* The NUMA nodes that the driver names, NODES_MAX at most, all equally near; none: the
	 * driver does not say them. */
	struct node_id_list nodes;
	/* Then, what sysfs may know it by: a PCI address ("0000:81:00.0") or a PCIe root complex
	 * ("pci0000:80"); NULL: neither. */
	const char *bus;
};

struct slice {
	const char *name; /* of the object, which no two have at a time */
	const char *driver, *pool;
	uint64_t generation, nr_slices; /* so many slices of that generation make the pool */
	const struct slice_device *device;
	size_t nr;
};

struct slice_store;

struct slice_store *slice_store_new(void);
/* NULL is fine. */
void slice_store_free(struct slice_store *s);
/* All slices are reported anew from here on: what is not put before slice_store_sweep() is deleted
 * then. */
void slice_store_begin(struct slice_store *s);
/* Whether the devices that count are others now. */
bool slice_store_sweep(struct slice_store *s);
/* The slice is there, new, changed or as it was; it is copied. 1: the devices that count are others
 * now; 0: they are not; -ENOSPC with text: there is no room for it, and what is known stays. Pools
 * whose slices were deleted make room. */
int slice_store_put(struct slice_store *s, const struct slice *slice, struct err *e);
/* The slice of that name was deleted. Whether the devices that count are others now. */
bool slice_store_remove(struct slice_store *s, const char *name);
/* NULL: it is of no generation that was there as a whole. Valid until the next change. */
const struct slice_device *slice_store_find(
	const struct slice_store *s, const char *driver, const char *pool, const char *device);

struct slice_counts {
	size_t slices;           /* that there are */
	size_t pools, devices;   /* that count */
	size_t incomplete_pools; /* of which the newest generation is not there as a whole */
	size_t bytes;            /* for all that is kept */
};
struct slice_counts slice_store_count(const struct slice_store *s);

#endif
