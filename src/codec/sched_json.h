#ifndef NUMAFIT_CODEC_SCHED_JSON_H
#define NUMAFIT_CODEC_SCHED_JSON_H

#include <numafit/arena.h>
#include <numafit/sched.h>

struct json_t; /* jansson's */

/* Pods and nodes of the API server (v1.Pod, v1.Node) as schedulers look at them (sched.h). What
 * else they have is passed over; a member that is null is not there. Everything read lives in the
 * arena or belongs to the JSON value, which must outlive it. All return 0; -EINVAL with the place;
 * -E2BIG: more containers than POD_SPEC_CONTAINERS_MAX, a pod's list of more than
 * POD_SPEC_RESOURCES_MAX, or a pod's new name beyond RESOURCES_OF_PODS_MAX; -ENOMEM: the arena's
 * limit. */

struct sched_reader {
	struct resource_table *names; /* names that are new are entered; bounded, of pods */
	struct arena *arena;
};

/* pod_json_read()'s pod, with numbers for names; -EINVAL, too, when there is no class of its
 * status.qosClass; -ERANGE: an amount is negative. No request follows from a limit. */
int sched_pod_json_read(
	struct json_t *pod, const struct sched_reader *r, struct sched_pod *out, struct err *e);
/* metadata.name and status.allocatable; neither pods nor topology. */
int sched_node_json_read(
	struct json_t *node, const struct sched_reader *r, struct sched_node *out, struct err *e);

#endif
