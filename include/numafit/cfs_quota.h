#ifndef NUMAFIT_CFS_QUOTA_H
#define NUMAFIT_CFS_QUOTA_H

#include <numafit/vec.h>

#include <stdbool.h>
#include <stdint.h>

/* CFS quotas of pods' cgroups that are lifted, and what they were: a quota that equals the CPUs a
 * container has for itself only stops it now and then, as the kernel counts it in slices. The
 * kubelet's own static policy sets none for such pods (feature gate
 * DisableCPUQuotaWithExclusiveCPUs). */
struct ledger;
struct holding;

/* A pod's: the directory of its cgroup below the hierarchy's root, and the text that its quota's
 * file had, as the kernel prints it. Both are the entry's own. */
struct lifted_quota {
	char *pod_uid, *cgroup, *was;
};
struct lifted_quotas {
	VEC(struct lifted_quota); /* in order of pod_uid */
};
/* What a record says of one. was "": the pod's quota is lifted no more. Borrowed. */
struct quota_note {
	const char *cgroup, *was;
};

/* The pod's, or NULL; valid until one is noted. */
const struct lifted_quota *quotas_find(const struct lifted_quotas *q, const char *pod_uid);
/* That of the next pod behind that uid, which need not be there, or NULL. */
const struct lifted_quota *quotas_after(const struct lifted_quotas *q, const char *pod_uid);
void quotas_note(struct lifted_quotas *q, const char *pod_uid, const struct quota_note *n);
void quotas_fini(struct lifted_quotas *q);

/* Whether the entry's container has CPUs for itself alone, so that it is to have no quota of its
 * own. Not one that shares CPUs with others of its pod or has those of the shared pool beside them,
 * nor one that is left as it runs (kubelet container_manager_linux.go, ContainerHasExclusiveCPUs).
 */
bool holding_has_own_cpus(const struct holding *h);
/* Whether the pod is to have no quota: when any of its containers has CPUs for itself. Where
 * PodLevelResourceManagers is on and the pod has resources of its own: when all of them have
 * (kubelet container_manager_linux.go, PodHasExclusiveCPUs). */
bool ledger_pod_is_unlimited(const struct ledger *l, const char *pod_uid);

/* The container's quota in us, as the kubelet sets it for a limit (thousandths of a CPU, not 0) and
 * a period in us (helpers_linux.go, MilliCPUToQuota). */
uint64_t quota_of_limit(uint64_t limit_milli, uint64_t period_us);

#endif
