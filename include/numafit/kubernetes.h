#ifndef NUMAFIT_KUBERNETES_H
#define NUMAFIT_KUBERNETES_H

#include <stdbool.h>

/* Releases of Kubernetes whose kubelets decide differently. numafit answers as one of them does. */

/* In the order of their age, but for AUTO: that of the node's kubelet where it is known, else the
 * newest. */
enum kubernetes_version {
	KUBERNETES_AUTO,
	KUBERNETES_1_36, /* and older ones */
	KUBERNETES_1_37, /* and newer ones */
	NR_KUBERNETES_VERSIONS
};
#define KUBERNETES_NEWEST KUBERNETES_1_37
extern const char *const kubernetes_words[NR_KUBERNETES_VERSIONS + 1]; /* "auto", "1.36", ... */

/* What newer kubelets do otherwise; kubernetes.c says since when. */
enum kubernetes_rule {
	/* distribute-cpus-across-numa with align-by-socket takes NUMA nodes of one socket before
	 * any others, also when others are left more even, and cuts what each gives to what each
	 * has (PR 139778, cpu_assignment.go). */
	RULE_DISTRIBUTES_IN_SOCKET,
	/* A container that asks for no memory, not even 0 bytes, is passed over by the memory
	 * manager (policy_static.go). Before, it is looked for a place for it, and when there is
	 * none its pod is refused. */
	RULE_PASSES_OVER_NO_MEMORY,
	/* spec.resources that says nothing leaves the class of the pod to its containers (gate
	 * PodLevelResourcesFixKubeletQOSClass, qos.go). Before, such a pod is BestEffort. */
	RULE_EMPTY_POD_RESOURCES_ARE_NONE,
	NR_KUBERNETES_RULES
};

/* Whether a kubelet of that version has the rule. */
bool kubernetes_has(enum kubernetes_version v, enum kubernetes_rule rule);

/* The version that a Node's status.nodeInfo.kubeletVersion means ("v1.36.3"): the oldest one that
 * is known for older ones, the newest for newer ones. AUTO: the text is no version. */
enum kubernetes_version kubernetes_of_kubelet(const char *kubelet_version);

#endif
