#ifndef NUMAFIT_CODEC_POD_OBJECT_JSON_H
#define NUMAFIT_CODEC_POD_OBJECT_JSON_H

#include <numafit/arena.h>
#include <numafit/pod_store.h>

struct json_t; /* jansson's */

enum {
	POD_OBJECT_CONTAINERS_MAX = 512, /* init containers included */
	POD_OBJECT_RESOURCES_MAX = 64,   /* in one list of requests or limits */
	/* for the arena: as many containers as there may be */
	POD_OBJECT_BYTES_MAX = 4 << 20
};

/* A v1.Pod as the API server has it: its source is POD_FROM_API_SERVER. The uid is the one that the
 * runtime will say: a static pod's is the hash of its file, which its mirror has as an annotation.
 * Of its annotations there are ours and those of schedulers' advice (advice.h). Parts of *out come
 * from *a, strings are the object's. 0; -EINVAL (no v1.Pod with a uid), -E2BIG (too many containers
 * or resources), or as pod_spec_ask(); the text names the pod. */
int pod_object_json_read(
	const struct json_t *pod, struct arena *a, struct known_pod *out, struct err *e);

#endif
