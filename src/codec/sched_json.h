#ifndef NUMAFIT_CODEC_SCHED_JSON_H
#define NUMAFIT_CODEC_SCHED_JSON_H

#include <numafit/arena.h>
#include <numafit/sched.h>

struct json_t; /* jansson's */

/* Pods and nodes of the API server (v1.Pod, v1.Node) as schedulers look at them (sched.h). What
 * else they have is passed over; a member that is null is not there. Everything read lives in the
 * arena or belongs to the JSON value, which must outlive it. All return 0; -EINVAL with the place;
 * -ENOMEM: the arena's limit. */

struct sched_reader {
	struct resource_table *names; /* names that are new are entered */
	struct arena *arena;
};

/* The member of that name, or NULL; *object may be NULL. */
struct json_t *sched_json_member(const struct json_t *object, const char *key);
/* A string member; NULL where it is not there. */
int sched_json_string(
	const struct json_t *object, const char *key, const char **out, struct err *e);
/* A list member; *out is NULL where it is not there. */
int sched_json_list(
	const struct json_t *object, const char *key, struct json_t **out, struct err *e);

/* A resource.Quantity: a string, or any number. */
int sched_quantity_json_read(const struct json_t *v, struct quantity *out, struct err *e);
/* A v1.ResourceList; NULL: an empty one. */
int sched_amounts_json_read(
	struct json_t *v, const struct sched_reader *r, struct amounts *out, struct err *e);
/* metadata, spec.containers, initContainers, overhead and resources, status.qosClass. No request
 * follows from a limit. */
int sched_pod_json_read(
	struct json_t *pod, const struct sched_reader *r, struct sched_pod *out, struct err *e);
/* metadata.name and status.allocatable; neither pods nor topology. */
int sched_node_json_read(
	struct json_t *node, const struct sched_reader *r, struct sched_node *out, struct err *e);

#endif
