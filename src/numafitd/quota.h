#ifndef NUMAFIT_NUMAFITD_QUOTA_H
#define NUMAFIT_NUMAFITD_QUOTA_H

#include <codec/status_json.h>
#include <numafit/engine.h>

struct daemon;
struct quotas;

/* The CFS quota of pods whose containers have CPUs for themselves (numafit/cfs_quota.h). A
 * container's own is lifted by the answer to its creation; its pod's, by the kubelet, is lifted
 * here: in the turn of the loop after the event, by a write into the pod's cgroup. What another
 * program writes there is recorded as what comes back, and lifted again. */

/* Before the runtime is asked: what can be written on the system under root ("/"). */
void quota_start(struct daemon *d, const char *root);
void quota_stop(struct daemon *d);

/* The pod's containers have changed, or its sandbox has ended; or all pods' may have, or the
 * settings. */
void quota_note_pod(struct daemon *d, const char *pod_uid);
void quota_note_all(struct daemon *d);
/* Facts of the pod or of all pods have come, or will not: who is not lifted by now is seen to. */
void quota_note_unlifted_pod(struct daemon *d, const char *pod_uid);
void quota_note_unlifted(struct daemon *d);

/* Look at one pod more of those whose quota is lifted. False: all were looked at in this round. */
bool quota_look_at_next(struct daemon *d);

/* What the update sets as the container's CFS quota (nri/session.h): none, or that of the kubelet
 * where it has CPUs for itself and is not to be without, for the runtime repeats what it was given
 * last. 0: the quota is left as it is. */
int64_t quota_of_update(const struct daemon *d, const struct update *u);

/* Give all quotas back, pods' and containers'. */
void quota_give_back(struct daemon *d);
/* What the container has had back, in us, as its cgroup says: what the runtime is to repeat from
 * now on. It does not matter whether this life has given it back, or an earlier one that was killed
 * before the runtime had its answer. 0: it had its quota all the time, or that is not known. */
int64_t quota_given_back(const struct daemon *d, const struct request *req);

/* For status and metrics. Its texts are valid until the next event. */
struct status_quota quota_status(const struct daemon *d);

#endif
