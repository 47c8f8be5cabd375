#ifndef NUMAFIT_CFS_QUOTA_H
#define NUMAFIT_CFS_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

/* Which containers and pods are to have no CFS quota: one that equals the CPUs a container has for
 * itself only stops it now and then, as the kernel counts it in slices. The kubelet's own static
 * policy sets none for such pods (feature gate DisableCPUQuotaWithExclusiveCPUs). */
struct ledger;
struct holding;

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
