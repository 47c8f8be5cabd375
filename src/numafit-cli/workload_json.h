#ifndef NUMAFIT_CLI_WORKLOAD_JSON_H
#define NUMAFIT_CLI_WORKLOAD_JSON_H

#include <numafit/arena.h>
#include <numafit/pod.h>

/* The pod that a file of Kubernetes objects would make. */

struct json_t; /* jansson's */

struct workload {
	struct pod pod;
	const char *kind, *name; /* of the object: "Deployment", "web" */
	uint64_t replicas;       /* how many such pods it asks for; 1 where it does not say */
	unsigned nr;             /* objects in the file that make pods */
	const char *device;      /* a resource that it asks for and that is a device's; or NULL */
	struct json_t *objects;  /* what the strings belong to */
};

/* The first object of the JSON list (or the one object) that makes pods: a v1.Pod, or one with a
 * template (Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Job, CronJob);
 * the items of a List count as objects. Lists live in *a; out ends with workload_fini() when it was
 * read. 0; -ENOENT: no object makes pods; -EINVAL, -ERANGE, -E2BIG, -ENOMEM as pod_json_read_ask(),
 * with the object's kind and name; -EINVAL also for a misspelt key or resource of a container. */
int workload_json_read(
	const char *json, size_t len, struct arena *a, struct workload *out, struct err *e);
void workload_fini(struct workload *w);

#endif
