#ifndef NUMAFIT_SCHED_SCHED_PLACE_H
#define NUMAFIT_SCHED_SCHED_PLACE_H

#include <numafit/sched_cluster.h>
#include <numafit/sched_plan.h>

/* Which NUMA nodes a pod would be given on a node, played from what its zones have: the hints of
 * the kubelet's managers (or numafitd's, which follow the same rules), merged as the Topology
 * Manager does it, container after container, each with what those before it hold taken away.
 * Integers are exact; the CPUs within a zone are all alike. */

/* Whether NUMA nodes are of any matter to the pod: some container asks for something that is not
 * native, or the pod is Guaranteed and it asks for whole CPUs, memory or huge pages. */
bool sched_pod_is_about_numa(const struct sched_pod *pod, const struct resource_table *names);
/* How many requests its containers have, all together. */
unsigned sched_pod_nr_requests(const struct sched_pod *pod);

/* A pod made ready for many nodes. Working memory: one node at a time. */
struct sched_walk;
struct sched_walk *sched_walk_new(const struct sched_pod *pod, const struct resource_table *names);
void sched_walk_free(struct sched_walk *w);

/* What one of the pod's containers, or at nr_containers the pod as a whole, asks of zones: above 0,
 * whole units, each resource once. Into out unless that is NULL: how many. */
struct sched_need {
	unsigned resource;
	int64_t amount;
};
unsigned sched_walk_needs(const struct sched_walk *w, unsigned part, struct sched_need *out);

enum sched_walk_answer {
	WALK_FITS,
	WALK_NO_ROOM, /* not on as few zones as the policy asks for */
	WALK_NEVER    /* not even on an empty node */
};
/* Walk the pod through the node's zones by its policy: restricted takes as few as an empty node
 * would need and no more, single-numa-node one, the others the fewest that have enough. Of as many
 * the closest ones where the node prefers these, or `closest` says so; then the lowest. */
enum sched_walk_answer sched_walk(
	struct sched_walk *w, const struct sched_topology *t, bool closest, struct budget *budget);

/* What the last walk, if it fits, took for the container (with scope pod: 0 alone, for the pod):
 * places in the list; 0: nothing that zones list. */
uint64_t sched_walk_zones(const struct sched_walk *w, unsigned container);
/* The amounts that this is about, by resource and zone, into out unless that is NULL: how many. */
unsigned sched_walk_amounts(
	const struct sched_walk *w, unsigned container, struct sched_place_amount *out);
/* What a placement takes in all, by the NUMA nodes' ids (zone_id, by place in the list;
 * NULL: the places are the ids), from *a: *nr of them. NULL: there is no room in *a. */
struct sched_taken *sched_placement_taken(
	const struct sched_placement *p, const uint8_t *zone_id, struct arena *a, size_t *nr);
/* The average distance within the zones, times 100; 0: not known. */
unsigned sched_walk_distance(const struct sched_topology *t, uint64_t zones);

#endif
