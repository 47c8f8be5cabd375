#ifndef NUMAFIT_DAEMON_FILES_CDI_JSON_H
#define NUMAFIT_DAEMON_FILES_CDI_JSON_H

#include <numafit/cpuset.h>
#include <numafit/nodeset.h>
#include <numafit/resource_claim.h>

/* What the container runtime reads of prepared claims: a CDI specification a claim (version 0.5.0,
 * kind CLAIM_CDI_KIND, a device "UID-PLACE" for each share),
 * CDI_DIRECTORY/numafit.io-claim_UID.json; and, mounted by it, the metadata of KEP-5304
 * (metadata.resource.k8s.io/v1beta1 DeviceMetadata), a JSON file a request. What a container sees
 * of its share: the environment variable NUMAFIT_CLAIM_NUMA_NODE_UID (its dashes are underscores;
 * of a claim with several shares, which one container may have, with "_PLACE" behind it) with the
 * NUMA node's kernel id, and the metadata. Its CPUs are not there: they may change.
 *
 * A uid, and names of the claim and of its requests, become names of files: a claim whose names are
 * refused (claim_check_names()) is refused with -EINVAL, before anything is written. */

struct cdi_options {
	const char *directory; /* "/var/run/cdi"; made if its parent is there */
	/* Where the metadata are, METADATA/UID/REQUEST/numafit.io-metadata.json; made if its parent
	 * is there; the same in the host and here. NULL: there are none. */
	const char *metadata;
	const char *node_name; /* the pool of a share that does not say it */
};

/* Write all of the claim's files, each whole or not at all (what was there before is replaced,
 * unless it says the same; a claim without shares has none). node: each share's NUMA node, by its
 * kernel id. 0; -EINVAL with text; -errno with text that begins with the path. */
int cdi_write(const struct cdi_options *o, const struct resource_claim *claim, const unsigned *node,
	struct err *e);
/* The claim's files are gone, or never were: a uid that is refused has none. 0, or -errno with text
 * that begins with the path. */
int cdi_remove(const struct cdi_options *o, const char *uid, struct err *e);

/* A claim of which files are there. */
struct cdi_found {
	const char *uid;
	const char *ns, *name; /* both NULL where its metadata do not say them */
};
/* Remove the files of claims of which keep() says false, and what a write that was cut short has
 * left; of how many claims, or -errno with text. */
int cdi_sweep(const struct cdi_options *o, bool (*keep)(void *ctx, const struct cdi_found *claim),
	void *ctx, struct err *e);

#endif
