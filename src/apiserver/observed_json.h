#ifndef NUMAFIT_APISERVER_OBSERVED_JSON_H
#define NUMAFIT_APISERVER_OBSERVED_JSON_H

#include <numafit/observed.h>

/* What a pod has of each NUMA node, as KAI Scheduler's numa plugin reads it from the pod
 * (pkg/apis/scheduling/v1alpha2/numa_placement_types.go, pkg/npe/placement/placement.go):
 *
 *   [{"zone":"node-0","amount":{"cpu":"8","memory":"17179869184","nvidia.com/gpu":"2"}}]
 *
 * Zones are those of the node's NodeResourceTopology (nrt_write_json.h), in their order and without
 * those of which the pod has nothing; an unknown one would have the plugin pass over all of it.
 * Amounts are Kubernetes quantities: whole numbers as text. The annotation is OBSERVED_ANNOTATION. */

/* The annotation's value; the caller frees. NULL: the pod has no CPUs of its own. Devices whose
 * resource is not UTF-8 are left out. The same observation gives the same bytes. */
char *observed_json_write(const struct observed *o);
/* The merge patch that puts the value on the pod, or takes the annotation away (value: NULL), if
 * the pod has that uid (NULL: whichever it has); the caller frees. NULL: the uid or the value is
 * not UTF-8. */
char *observed_json_patch(const char *uid, const char *value);

#endif
