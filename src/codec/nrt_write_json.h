#ifndef NUMAFIT_CODEC_NRT_WRITE_JSON_H
#define NUMAFIT_CODEC_NRT_WRITE_JSON_H

#include <numafit/report.h>

/* A report as the NodeResourceTopology, topology.node.k8s.io/v1alpha2, that a server-side apply
 * sends: zones "node-N" with N the dense index, because the stock scheduler plugin panics where
 * indexes have gaps; the kernel's id is an attribute of the zone where it differs. Amounts are
 * whole numbers: that plugin changes others in place. The same report gives the same bytes. */

struct nrt_write_options {
	uint64_t beat;          /* something has to move for the object to be written at all */
	bool topology_policies; /* with the deprecated field, as far as it has words for it */
};

/* The name of the zone with that dense index: "node-1". */
enum { NRT_ZONE_NAME_MAX = 16 };
const char *nrt_zone_name(char buf[NRT_ZONE_NAME_MAX], unsigned node);
/* The object; the caller frees. NULL: the node's name or uid is not UTF-8. */
char *nrt_json_write(const struct report *r, const struct nrt_write_options *o);

#endif
