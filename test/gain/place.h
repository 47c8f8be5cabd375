#ifndef NUMAFIT_GAIN_PLACE_H
#define NUMAFIT_GAIN_PLACE_H

#include "gain.h"

#include <host/cgroup.h>

/* Where processes run: in two cgroups of this run, "container" and "pool", or without cgroups by
 * sched_setaffinity(2) and set_mempolicy(2), and then without a quota. */

struct place {
	const struct topo *topo;
	bool cgroups;
	struct cgroups found;
	char directory[GAIN_NAME_MAX];
	char was_enabled[256]; /* v2: the root's cgroup.subtree_control before */
};

/* Make the cgroups, if wanted and possible; else a note says why not. Cgroups that a run which was
 * killed has left are removed. plan: only look whether they can be made. */
void place_init(struct place *p, struct gain *g, bool wanted, bool plan);
/* Put an arm's CPUs, memory nodes, quota and shares into force, for what enters from then on. 0,
 * -errno. */
int place_set(struct place *p, const struct gain *g, const struct arm *arm, struct err *e);
/* Let the calling process, and what it starts, run there: in the arm's pool, or as its container.
 * 0, -errno. */
int place_enter(const struct place *p, const struct arm *arm, bool pool, struct err *e);
/* How often the container has been stopped for its quota until now. */
uint64_t place_throttled(const struct place *p);
/* Remove the cgroups. Their processes have ended. */
void place_fini(struct place *p);

#endif
