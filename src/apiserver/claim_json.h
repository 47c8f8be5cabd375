#ifndef NUMAFIT_APISERVER_CLAIM_JSON_H
#define NUMAFIT_APISERVER_CLAIM_JSON_H

#include <numafit/arena.h>
#include <numafit/resource_claim.h>

struct json_t; /* jansson's */

/* A ResourceClaim (resource.k8s.io/v1, as of Kubernetes 1.37) that is allocated. Results of other
 * drivers are passed by, and adminAccess ones of ours are counted. consumedCapacity is read by quantity.h: cpu must be
 * whole and 1 at least, bytes whole. Parameters of opaque configurations for driver numafit.io
 * (status.allocation.devices.config, of which those FromClaim come after those FromClass, and each
 * counts for its requests, or for all) are an object
 *   {"apiVersion": "numafit.io/v1", "kind": "ClaimParameters", "wholeCores": BOOL, "shared": BOOL}
 * of which any of the last two may be missing. */

enum { CLAIM_JSON_BYTES_MAX = 128 << 10 /* for the arena */ };

/* Texts are borrowed from the value, lists are *a's. 0, also with no share at all. With text:
 * -EAGAIN: it is not allocated (yet); -EINVAL: a member is missing, of another type or out of
 * range, or a parameter is not known, with its path; -E2BIG: more shares, pods, or kinds of memory
 * than there can be; -ENOMEM: the arena's limit. */
int claim_json_read(
	const struct json_t *object, struct arena *a, struct resource_claim *out, struct err *e);

#endif
