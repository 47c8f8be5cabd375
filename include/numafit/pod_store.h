#ifndef NUMAFIT_POD_STORE_H
#define NUMAFIT_POD_STORE_H

#include <numafit/pod.h>

/* Pods of this node as a watch of them has reported them last, each copied in one block,
 * by uid. */

/* Who made a pod: what becomes of it when it is evicted. */
enum pod_owner {
	POD_OWNER_UNKNOWN,
	POD_OWNER_NONE,       /* nobody makes another one */
	POD_OWNER_NODE,       /* a static pod's mirror */
	POD_OWNER_DAEMON_SET, /* another one comes to this very node */
	POD_OWNER_CONTROLLER  /* another one comes, elsewhere if need be */
};

struct known_pod {
	/* pod.container is there, and the annotations that somebody reads (codec/pod_spec.h); its
	 * sandbox_id and totals are not known */
	struct pod pod;
	/* extended resources that its containers ask for, ascending (byte order): the indexes in
	 * its device_asks are those of this list */
	const char *const *resource;
	unsigned nr_resources;
	enum pod_owner owner;
	bool ended; /* its phase is Succeeded or Failed: it holds nothing any more */
};

/* Whether an evicted pod of that owner comes back, and may do so elsewhere: others are better off
 * waiting here. One that nobody makes again would be lost, a DaemonSet's would come back to where
 * it was refused, and a mirror pod goes only with its file on the node. */
bool pod_owner_makes_another(enum pod_owner owner);

struct pod_store;

struct pod_store *pod_store_new(void);
void pod_store_free(struct pod_store *s);
/* All pods are reported anew from here on: what is not put before pod_store_sweep() is gone then.
 */
void pod_store_begin(struct pod_store *s);
void pod_store_sweep(struct pod_store *s);
/* Copies the pod; whether it is new or asks for something else than before. *kept is the copy,
 * valid until the pod is put again or goes. */
bool pod_store_put(struct pod_store *s, const struct known_pod *pod, const struct known_pod **kept);
/* False: it was not there. */
bool pod_store_remove(struct pod_store *s, const char *uid);
/* NULL: not known. */
const struct known_pod *pod_store_find(const struct pod_store *s, const char *uid);
size_t pod_store_count(const struct pod_store *s);
/* What their copies take. */
size_t pod_store_bytes(const struct pod_store *s);
/* In order of uid. */
const struct known_pod *pod_store_at(const struct pod_store *s, size_t i);

#endif
