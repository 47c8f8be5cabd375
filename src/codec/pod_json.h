#ifndef NUMAFIT_CODEC_POD_JSON_H
#define NUMAFIT_CODEC_POD_JSON_H

#include <numafit/node.h>

struct json_t; /* jansson's */

/* A v1.Pod, as far as it asks for resources: metadata.uid and name, spec.initContainers and
 * containers with resources and restartPolicy, spec.resources, status.qosClass. Everything else
 * that a pod may have is passed over. Requests that are missing are the limits, as the API server
 * fills them in. */

/* Read it into *out, whose parts live in *a (strings are borrowed from the pod). Extended resources
 * count when they are among the nr_resources. 0; -EINVAL, -ERANGE with the place; -ENOMEM. */
int pod_json_read(const struct json_t *pod, const struct device_resource *resources,
	unsigned nr_resources, struct arena *a, struct pod *out, struct err *e);

/* A Kubernetes quantity, a string or a whole number, scaled by 1 or (milli) by 1000. 0; -EINVAL,
 * -ERANGE. */
int quantity_json_read(const struct json_t *v, bool milli, uint64_t *out, struct err *e);

#endif
