#ifndef NUMAFIT_TEST_SCHED_CLUSTER_CASES_H
#define NUMAFIT_TEST_SCHED_CLUSTER_CASES_H

#include "cluster_rig.h"

#include <time.h>

/* What the cases of a cluster share beside its rig. */

static const int64_t all_free[RIG_ZONES] = {RIG_CPUS, RIG_CPUS};
static const struct sched_cluster_args usual = {.over_reserve = true};

static inline void put(struct rig *r, const char *name, const char *node, int64_t cpus, int zone)
{
	struct rig_pod p;

	rig_pod(&p, name, node, cpus, zone);
	sched_cluster_put_pod(r->c, &p.bound, r->now_ms);
}

static inline void assume(struct rig *r, const char *name, const char *node, int64_t cpus, int zone)
{
	struct rig_pod p;

	rig_pod(&p, name, node, cpus, zone);
	sched_cluster_assume(r->c, &p.bound, r->now_ms);
}

#endif
