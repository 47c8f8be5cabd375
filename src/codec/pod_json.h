#ifndef NUMAFIT_CODEC_POD_JSON_H
#define NUMAFIT_CODEC_POD_JSON_H

#include <codec/pod_spec.h>

struct json_t; /* jansson's */

/* The JSON form of a v1.Pod: as people write it into a question, and as the API server has it. */

/* What there is in pod_spec.h to read of it. What else a pod has is passed over; what is not there,
 * or null, is empty. Lists live in *a, strings are the object's. 0; -EINVAL with the place: of
 * another type than it should be, or a quantity that is none; -E2BIG: more than
 * POD_SPEC_CONTAINERS_MAX containers; -ENOMEM: the arena's limit. */
int pod_json_read(const struct json_t *pod, struct arena *a, struct pod_spec *out, struct err *e);
/* The same of a v1.ResourceList that is the object's member of that name. */
int resource_list_json_read(const struct json_t *object, const char *key, struct arena *a,
	struct resource_list *out, struct err *e);

struct device_resource; /* devices.h */

/* What a pod in a question asks of a node that has these resources, ascending (byte order): other
 * extended resources do not count. It must have a spec, and each container a name. 0; -EINVAL,
 * -E2BIG, -ENOMEM as above; -EINVAL, -ERANGE as pod_spec_ask(). */
int pod_json_read_ask(const struct json_t *pod, const struct device_resource *resources,
	unsigned nr_resources, struct arena *a, const struct settings *rules, struct pod *out,
	struct err *e);

#endif
