#ifndef NUMAFIT_SCHED_PLAN_H
#define NUMAFIT_SCHED_PLAN_H

#include <numafit/arena.h>
#include <numafit/generic_score.h>
#include <numafit/nrt.h>
#include <numafit/volcano.h>

/* A scheduler's plugins, one or several, asked about one pod and many nodes: which ones do, which
 * is best, and where on it the pod would lie. The arithmetic is that of nrt.h, volcano.h and
 * generic_score.h; here they are rows of one table and are combined by weight. */

union sched_args {
	struct nrt_args nrt; /* but for over_reserve and discard_reserved, which are the cluster's
				matter (sched_cluster.h) */
	struct generic_args generic;
};

struct sched_plugin;
/* "NodeResourceTopologyMatch", "numa-aware", "GenericNodeResources"; NULL: there is none of that
 * name. Row i, NULL behind the last. */
const struct sched_plugin *sched_plugin_find(const char *name);
const struct sched_plugin *sched_plugin_at(unsigned i);
const char *sched_plugin_name(const struct sched_plugin *p);
/* Whether it looks at Numatopologies. */
bool sched_plugin_wants_numatopology(const struct sched_plugin *p);

enum { SCHED_USES_MAX = 8, SCHED_WEIGHT_MAX = 1000000 };
struct sched_profile {
	struct sched_use {
		const struct sched_plugin *plugin;
		int64_t weight; /* 1 to SCHED_WEIGHT_MAX */
		union sched_args args;
	} use[SCHED_USES_MAX];
	unsigned nr; /* at least 1 */
	/* Do not let a pod through to a node whose policy is restricted that would refuse it: as
	 * some resource would lie on more NUMA nodes than an empty node would need for it. The
	 * released plugin does not look at that policy. */
	bool check_restricted;
};

/* A node as the plugins are asked about it. Borrowed. */
struct sched_candidate {
	const struct sched_node *node;
	const struct volcano_node *volcano; /* NULL: none */
	bool stale;                         /* what is known of its zones must not be relied upon */
	uint64_t revision; /* of a cluster's: another number each time that it was made anew */
};

/* A pod made ready. Holds working memory: one thread. profile, pod and names are borrowed. */
struct sched_plan;
struct sched_plan *sched_plan_new(const struct sched_profile *profile, const struct sched_pod *pod,
	const struct resource_table *names);
/* NULL is fine. */
void sched_plan_free(struct sched_plan *p);

/* Whether the pod fits. *why: the reason when it does not, a literal that is alike on every node,
 * as schedulers group by it; else "". Never SCHED_ERROR: what Volcano calls one (there is no
 * Numatopology, it has another policy) is SCHED_UNRESOLVABLE here. */
enum sched_code sched_plan_filter(
	struct sched_plan *p, const struct sched_candidate *c, const char **why);
/* Of the nodes that fit, 0 to SCHED_SCORE_MAX each: the plugins' scores, each normalised over these
 * nodes where it asks for that, their mean by weight, rounded down. A plugin that has nothing to
 * say of the pod (Volcano's, without a policy) does not count. */
void sched_plan_score(
	struct sched_plan *p, const struct sched_candidate *c, size_t nr, int64_t *score);

/* Where the pod would lie on a node. */
struct sched_place_amount {
	unsigned resource;
	unsigned zone; /* place in the node's list */
	struct quantity q;
};
struct sched_place {
	const char *container;  /* the pod's; "*": the pod as a whole */
	uint64_t zones;         /* places in the node's list; never 0 */
	unsigned distance_x100; /* average distance within them, times 100; 0: not known */
	const struct sched_place_amount *amount;
	unsigned nr_amounts;
};
struct sched_placement {
	enum topology_scope scope;
	const struct sched_place *place; /* those containers that NUMA nodes matter to */
	unsigned nr;
};
/* The zones of a node that fits, as the node itself would choose: container after container, each
 * with what the ones before it hold taken away, the fewest zones that its policy admits, and of
 * those the closest (a node that does not care for distances takes such a hint, too). The amounts
 * are of what is given out by zones: whole CPUs, memory, devices; from a zone as much as it has,
 * lowest first. Lives in *a. False: there is nothing to say (no topology, a stale one, policy none,
 * not about NUMA nodes, nothing fits). */
bool sched_plan_place(struct sched_plan *p, const struct sched_candidate *c, struct arena *a,
	struct sched_placement *out);

#endif
