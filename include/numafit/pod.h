#ifndef NUMAFIT_POD_H
#define NUMAFIT_POD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of a pod, and from where. All strings are borrowed from whoever filled it. */

/* A pod's quality of service class (v1.PodQOSClass). */
enum qos { QOS_GUARANTEED, QOS_BURSTABLE, QOS_BEST_EFFORT, NR_QOS };
/* "Guaranteed", "Burstable", "BestEffort". */
const char *qos_name(enum qos q);
/* The class whose name that is, or -1. */
int qos_from_name(const char *name);
/* The class as the kubelet writes it into the pod's cgroup path: "besteffort" or "burstable"
 * somewhere in it, else Guaranteed (pkg/kubelet/cm/qos_container_manager_linux.go). */
enum qos qos_from_cgroup_parent(const char *cgroup_parent);

/* Who told what is known of a pod, best last. */
enum pod_source { POD_FROM_RUNTIME };

struct key_value {
	const char *key, *value;
};

/* What the pod's containers ask for together, as its sandbox says: rounded, and no word of which
 * container asks for what. */
struct pod_totals {
	bool known;
	uint64_t cpu_milli, memory_bytes;
};

struct pod {
	const char *sandbox_id, *uid, *ns, *name;
	enum qos qos;
	enum pod_source source;
	struct pod_totals totals;
	const struct key_value *annotations;
	size_t nr_annotations;
};

/* The value of the pod's annotation key, or NULL. */
const char *pod_annotation(const struct pod *p, const char *key);

#endif
