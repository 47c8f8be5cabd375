#ifndef NUMAFIT_NUMAFITD_SERVICES_H
#define NUMAFIT_NUMAFITD_SERVICES_H

#include <codec/status_json.h>
#include <numafit/observed.h>
#include <numafit/pod_store.h>
#include <numafit/report.h>

struct daemon;

/* What speaks with the kubelet, as far as the settings switch it on; in mode shadow
 * without the device plugin, and not in mode off. 0, or -errno with text: gRPC cannot start. */
int services_start(struct daemon *d, struct err *e);
/* Before loop_free(). */
void services_stop(struct daemon *d);
/* For `numafit status`; false: there are none. */
bool services_status(const struct daemon *d, struct status_kubelet *out);
/* Where what is known of a pod beside its sandbox comes from: "kubelet" (Pods API), "apiserver"
 * (podsWatch), or "sandbox": nowhere, its totals are all. */
const char *services_pod_facts(const struct daemon *d);
/* Something was recorded: the kubelet's list may be another one. */
void services_note_change(struct daemon *d);
/* The pod is known now: what the kubelet gives to it is asked for. */
void services_note_pod(struct daemon *d, const struct known_pod *pod);
/* The same, and its containers that are in the ledger get its facts (late_facts.h). */
void services_pod_changed(struct daemon *d, const struct known_pod *pod);
/* PodResources has answered: that is what the kubelet has given out. */
struct pods_held;
void services_devices_shown(struct daemon *d, const struct pods_held *held);
/* Pods of the kubelet or the API server may be listed no more, or all are listed for the first
 * time. */
void services_pods_listed(struct daemon *d);
/* The devices that the kubelet shows for the pod's containers and that are on one NUMA node, tokens
 * among them, from *a; -EAGAIN: its answer is older than the pod's sandbox, -ENOMEM. */
int services_observe(const struct daemon *d, struct observed *o, struct arena *a);
/* The devices of the node, and who has them, into *f, from *a. */
void services_report(const struct daemon *d, struct report_facts *f, struct arena *a);

#endif
