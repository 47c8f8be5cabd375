#ifndef NUMAFIT_CODEC_SLICE_JSON_H
#define NUMAFIT_CODEC_SLICE_JSON_H

#include <numafit/arena.h>
#include <numafit/slice_store.h>

struct json_t; /* jansson's */

/* A ResourceSlice (resource.k8s.io/v1, as of Kubernetes 1.37): its pool, and where each of its
 * devices is by the attributes that Kubernetes has names for (the package deviceattribute of
 * k8s.io/dynamic-resource-allocation): resource.kubernetes.io/numaNode, a number, or a list of
 * numbers in any order, which are equally near to the device (KEP-6072); pciBusID; pcieRoot.
 * An attribute that is of another type, a number that can be no NUMA node's, and a list of more
 * NUMA nodes than a machine can have are as if they were not there. */

enum { SLICE_NAME_MAX = 253, SLICE_BYTES_MAX = 128 << 10 /* for the arena */ };

/* Texts are borrowed from the value, the list is *a's. 0; with text -EINVAL: a member is missing or
 * of another type, a name is too long, two devices have the same name; -E2BIG: more devices than
 * SLICE_DEVICES_MAX; -ENOMEM: the arena's limit. */
int slice_json_read(const struct json_t *object, struct arena *a, struct slice *out, struct err *e);

#endif
