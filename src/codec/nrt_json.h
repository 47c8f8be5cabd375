#ifndef NUMAFIT_CODEC_NRT_JSON_H
#define NUMAFIT_CODEC_NRT_JSON_H

#include <codec/sched_json.h>

/* A NodeResourceTopology, topology.node.k8s.io/v1alpha2 (or v1alpha1, which has the same zones), as
 * exporters publish it: attributes, topologyPolicies, zones with costs and resources. The zones
 * that are no NUMA nodes are left out.
 * *out is a new one (sched_topology_free()). 0; -EINVAL with the place; -ERANGE: more zones than
 * ZONES_MAX. */
int nrt_json_read(
	struct json_t *v, const struct sched_reader *r, struct sched_topology **out, struct err *e);

#endif
