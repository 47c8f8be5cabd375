#ifndef NUMAFIT_NUMAFITD_POOL_H
#define NUMAFIT_NUMAFITD_POOL_H

#include <codec/status_json.h>
#include <host/cgroup.h>
#include <numafit/err.h>

struct daemon;
struct pool_bounds;

/* The shared pool, enforced by the kubelet's cgroups where that can be (cgroup v2): what the ledger
 * has of it (numafit/bounds.h) is written into them, in the event that changes it and before that
 * is answered. Elsewhere containers are updated one by one (updater.h). */

/* Before the engine is made: what sharedPool.enforce is on the system under root ("/"). Where
 * nothing else is said cgroups are taken if they can be written. 0; or -errno: they are demanded,
 * and cannot be. */
int pool_choose(struct daemon *d, const char *root, struct err *e);
/* How it was enforced in the life that the journal is of. */
void pool_note_earlier(struct daemon *d, enum pool_enforced earlier);
/* Once the engine is there: what an earlier life has written is found again. */
void pool_start(struct daemon *d);
void pool_stop(struct daemon *d);

/* Make all writes that are due. 0; or -errno with text: one was not made, and no set has gained
 * CPUs; it is tried again in a while. -EBUSY: so it is with all of them, while memory is being
 * moved; they are made when that is done. Until then a container that has got CPUs for itself must not
 * start on them. */
int pool_follow(struct daemon *d, struct err *e);
/* The same for a container that is being created: 0, too, where it shares the pool and the cgroups
 * above it are as they are to be. */
int pool_follow_create(struct daemon *d, const char *container_id, struct err *e);
/* The same for a pod that starts: 0, too, where nothing is held for it. */
int pool_follow_pod(struct daemon *d, const char *pod_uid, struct err *e);
/* The same for an event that waits for nothing: what fails is logged. */
void pool_follow_event(struct daemon *d);
/* Whether all that is due was written. True where nothing is to be. */
bool pool_is_enforced(const struct daemon *d);

/* Look at one cgroup more of those that have a set, and write it again if another program has
 * changed it. False: all were looked at in this round. */
bool pool_look_at_next(struct daemon *d);

/* Give every cgroup of the kubelet's tree all CPUs back, pods' and QoS classes'. */
void pool_give_back(struct daemon *d);

/* The hierarchy that the kubelet's cgroups are in, as far as cgroups enforce the pool. */
const struct cgroup_tree *pool_tree(const struct daemon *d);

/* For status and metrics. Its texts are valid until the next event. */
struct status_pool pool_status(const struct daemon *d);

#endif
