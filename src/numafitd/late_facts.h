#ifndef NUMAFIT_NUMAFITD_LATE_FACTS_H
#define NUMAFIT_NUMAFITD_LATE_FACTS_H

struct daemon;

/* The pod's spec has become known or has changed, or a container of the pod runs now: entries of
 * the ledger get the facts that only the spec has, and what depends on them follows (cpusets, CFS
 * quotas). Nothing happens where these are known already, or in a mode that places nothing. */
void late_facts_of_pod(struct daemon *d, const char *pod_uid);
/* The same of devices and claims, once the kubelet's PodResources has answered. A container that
 * has a claim by then and cannot be given the claim's CPUs is logged, once. */
void late_facts_of_devices(struct daemon *d);

#endif
