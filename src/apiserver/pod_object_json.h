#ifndef NUMAFIT_APISERVER_POD_OBJECT_JSON_H
#define NUMAFIT_APISERVER_POD_OBJECT_JSON_H

#include <numafit/arena.h>
#include <numafit/pod_store.h>

struct json_t; /* jansson's */

/* for the arena: as many containers and annotations as there may be */
enum { POD_OBJECT_BYTES_MAX = 4 << 20 };

/* A v1.Pod as the API server has it: its source is POD_FROM_API_SERVER. The uid is the one that the
 * runtime will say: a static pod's is the hash of its file, which its mirror has as an annotation.
 * Parts of *out come from *a, strings are the object's. 0; -EINVAL (no v1.Pod with a uid), or as
 * pod_json_read() and pod_spec_known(); the text names the pod. */
int pod_object_json_read(
	const struct json_t *pod, struct arena *a, struct known_pod *out, struct err *e);

#endif
