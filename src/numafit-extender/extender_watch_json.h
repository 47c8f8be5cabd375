#ifndef NUMAFIT_EXTENDER_EXTENDER_WATCH_JSON_H
#define NUMAFIT_EXTENDER_EXTENDER_WATCH_JSON_H

#include <codec/sched_json.h>
#include <numafit/sched_cluster.h>
#include <numafit/topo.h>

/* What the scheduler's side takes from the objects that it watches. */

enum { EXTENDER_POD_BYTES_MAX = 12 << 20 }; /* for the arena: any pod with any hint */

struct extender_pod {
	struct sched_pod pod;
	const char *node;                /* that it is bound to; "": none yet */
	const char *workload;            /* "namespace/uid": its controller's uid, else its own */
	bool pending, running, ended;    /* by its phase */
	const char *refused;             /* the node has refused it: Kubernetes' word; NULL: no */
	bool ours;                       /* it has our hint, for this pod on this node */
	const struct sched_taken *taken; /* by the hint */
	size_t nr_taken;
	/* When it was bound, as the API server has it, which its author cannot change (the end of
	 * that second); 0: not known. */
	int64_t bound_ms;
};
/* A v1.Pod. every_node: a machine whose NUMA nodes have their ids for indexes
 * (extender_every_node()). Strings are the object's, workload and the rest live in r's arena. 0;
 * -EINVAL, -ERANGE, -E2BIG, -ENOMEM: it cannot be read. A hint that cannot be read is none. */
int extender_pod_json_read(struct json_t *v, const struct sched_reader *r,
	const struct topo *every_node, struct extender_pod *out, struct err *e);
/* Whether two v1.Pods carry the same hint of ours, or none: it is not from what has bound the
 * pod if it was there before. */
bool extender_pod_json_same_advice(const struct json_t *a, const struct json_t *b);
/* Whether its annotation is that hint; NULL: it has none. */
bool extender_pod_json_has_hint(const struct json_t *pod, const char *hint);
/* The node that a v1.Pod is bound to; "": none. Borrowed. */
const char *extender_pod_json_node(const struct json_t *v);
/* All NUMA nodes that zones can have, by id. */
void extender_every_node(struct topo *t);
/* A v1.Pod with as much of it as reading it takes, for long keeping; free(). As text: values take
 * 12 times the memory. NULL: it is none. */
char *extender_pod_json_keep(const struct json_t *v);

/* The value of a v1.Node's label; "": it has none of that key. Borrowed. */
const char *extender_node_json_label(const struct json_t *v, const char *key);

/* A v1.Event in which numafitd says something of a pod on its node. Strings are the object's. */
struct extender_event {
	const char *ns, *uid, *pod; /* the pod's */
	const char *reason;         /* "TopologyAffinityError", ... */
	bool refuses;               /* the pod, or a scheduler's advice on it */
	const char *verdict;        /* on that advice, "rejected:not-fit"; "": none */
	uint64_t number;            /* another one for each event, and each time that it happens */
	const char *node;
};
/* False: it says something else. */
bool extender_event_json_read(const struct json_t *v, struct extender_event *out);

/* A NodeResourceTopology, as it goes into sched_cluster_put_report(). r's arena holds out->pod. 0;
 * -EINVAL, -ERANGE, -ENOMEM. */
int extender_report_json_read(
	struct json_t *v, const struct sched_reader *r, struct sched_report *out, struct err *e);
/* A Numatopology; *memory holds all of it, for one free(). 0; -EINVAL, -ERANGE, -ENOMEM. */
int extender_numatopology_json_read(
	struct json_t *v, struct volcano_node **out, void **memory, struct err *e);

#endif
