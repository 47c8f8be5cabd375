#ifndef NUMAFIT_CODEC_NUMATOPOLOGY_JSON_H
#define NUMAFIT_CODEC_NUMATOPOLOGY_JSON_H

#include <codec/sched_json.h>
#include <numafit/volcano.h>

/* A Numatopology, nodeinfo.volcano.sh/v1alpha1, as Volcano's resource-exporter publishes it: its
 * policies, cpuDetail, the cpu of numares and of resReserved. Arrays live in *a, strings belong to
 * the JSON value. 0; -EINVAL, -ERANGE with the place: among them a CPU id from CPUSET_BITS on, and
 * more NUMA nodes than NODES_MAX; -ENOMEM. */
int numatopology_json_read(
	struct json_t *v, struct arena *a, struct volcano_node *out, struct err *e);

#endif
