#ifndef NUMAFIT_BOUNDS_H
#define NUMAFIT_BOUNDS_H

#include <numafit/cpuset.h>
#include <numafit/request.h>
#include <numafit/vec.h>

/* The cgroups that keep containers on CPUs that are not another container's own, where the kernel
 * bounds a cgroup by those above it (cgroup v2). A tree of the kubelet's cgroups: those of its QoS
 * classes, those of pods, those of containers (pkg/kubelet/cm/cgroup_manager_linux.go and
 * pod_container_manager_linux.go), with what each is to be allowed.
 *
 * The kernel's rule (Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus): a cgroup runs on what
 * its own set and the set in force above it have in common, and on all of the latter where that is
 * nothing. So a set above a container never lacks what the container has for itself, and wherever
 * it has more than the shared pool, what is below is bounded one by one:
 *   - a QoS class has the pool, and what containers below it have for themselves;
 *   - so has a pod with containers of both kinds; a pod with CPUs of its own alone has these;
 *   - any other pod has the pool, unless the cgroup above it has no more than that anyway;
 *   - a container that shares the pool has the pool if its pod has more, else it may have any set.
 * A pod's own sandbox process, which only sleeps, may so be on CPUs of its pod. A container outside
 * the kubelet's tree is bounded by itself. */
struct bounds;
struct bounds_node;

struct bounds *bounds_new(void);
void bounds_free(struct bounds *b);

/* A container is there, with the CPUs *own for itself, or in the shared pool (NULL). One whose
 * cgroup is not known is passed over; one that is there already has other CPUs now. */
void bounds_enter(struct bounds *b, const struct request *req, const struct cpuset *own);
/* The same of one that shares the pool beside CPUs of its own (NULL: none), and of the pool has only
 * what is in *within, as long as there is any (empty: all of it). Where it is to be given the pool
 * exactly it has all of it: with a part it could have nothing in common with a set above it that is
 * still to move, and so all of that. */
void bounds_enter_in_part(struct bounds *b, const struct request *req, const struct cpuset *own,
	const struct cpuset *within);
/* The runtime is answered that it is to set the pool for that container, if this is what
 * bounds_shares() wants (exact): that is what will be set. */
void bounds_give(struct bounds *b, const char *container_id, const struct cpuset *pool);
/* It is not there any more. The cgroups above it stay as long as they may have a set of ours. */
void bounds_leave(struct bounds *b, const char *container_id);
/* The pod is gone, and its cgroup with it. */
void bounds_forget_pod(struct bounds *b, const char *pod_uid);

/* Whether the container shares the pool, be it beside CPUs of its own, and is known here: it needs
 * no update when the pool moves. *exact: it is to be given the pool when it is created; else a
 * cgroup above it bounds it, and any set will do that has the pool. */
bool bounds_shares(const struct bounds *b, const char *container_id, bool *exact);
/* Whether the container shares the pool and is known here, and those above it have no more than they
 * are to have, and some of the pool. */
bool bounds_is_bounded(
	const struct bounds *b, const char *container_id, const struct cpuset *pool);

/* One write that leads from what is set to what is to be. */
struct bounds_write {
	struct bounds_node *node;
	const char *path; /* the directory below the hierarchy's root; borrowed */
	struct cpuset cpus;
	bool is_container; /* whose cgroup need not be there yet */
	bool is_idle; /* nothing is in it: where it cannot have a set it needs none */
	unsigned phase; /* not to be made before all of the phases before are */
};
struct bounds_writes {
	VEC(struct bounds_write);
};
/* Grows with each change after which a plan may be another one. */
uint64_t bounds_serial(const struct bounds *b);
/* All writes, in their order, that are to be made when the pool is *pool, on a machine with the
 * CPUs *all: first sets lose CPUs, then they gain some, so that no container of the pool is ever
 * allowed what is not in it. Before, in a phase of its own, a set that would keep nothing gains: it would
 * have all that is above it. Appended to *out, whose elements are valid until the tree changes. */
void bounds_plan(const struct bounds *b, const struct cpuset *pool, const struct cpuset *all,
	struct bounds_writes *out);
/* The write was made. */
void bounds_note_written(struct bounds *b, struct bounds_node *node, const struct cpuset *cpus);
/* The cgroup was found to have that set, or none: of another program, or of an earlier life. True:
 * that is not what was written, and a plan is to be made anew. One that may have any set may have all
 * the CPUs *all. */
bool bounds_note_found(struct bounds *b, struct bounds_node *node, const struct cpuset *cpus,
	const struct cpuset *all);
/* The cgroup is not there. True: so it has left the tree, and a plan is to be made anew; false: it
 * has containers, or is one's, and is there once these start. */
bool bounds_note_gone(struct bounds *b, struct bounds_node *node);

/* The cgroups whose set is worth a look, one a call: all but containers' that no set was written
 * for. *left is SIZE_MAX before the first call of a round, and the caller's to keep between two.
 * NULL: the round is over. One that comes meanwhile may be left out of the round, none that was
 * there is. */
struct bounds_node *bounds_next(const struct bounds *b, size_t *left);
/* Its path, borrowed. */
const char *bounds_path(const struct bounds_node *node);
/* That of the path, or NULL. */
struct bounds_node *bounds_find(const struct bounds *b, const char *path);
/* How many cgroups have a set that was written. */
size_t bounds_count(const struct bounds *b);

#endif
