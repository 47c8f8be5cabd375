#ifndef NUMAFIT_SCHED_SCHED_PLACE_STATE_H
#define NUMAFIT_SCHED_SCHED_PLACE_STATE_H

#include <numafit/family.h>
#include <sched/sched_place.h>

/* What sched_place.c (a pod's walk) and sched_place_choose.c (where one part of it goes) share. */

/* How the node's managers look at a resource. */
enum way {
	WAY_CPU,    /* whole CPUs; how few zones could do is judged by all that there are */
	WAY_MEMORY, /* ordinary memory and huge pages, which are looked at together */
	WAY_DEVICE
};

/* A resource that matters, on the node at hand, by dense NUMA node (zones ascending by id). */
struct column {
	unsigned resource;
	enum way way;
	bool listed;
	uint64_t free[NODES_MAX];
	uint64_t total[NODES_MAX]; /* by which it is judged how few could do */
	/* What earlier init containers leave to later ones: it counts as free, and is to be on the
	 * nodes that are chosen. */
	uint64_t reusable[NODES_MAX];
};

struct want {
	unsigned column;
	uint64_t need;
	uint64_t took[NODES_MAX];
};

/* What a container, or the pod as a whole, asks for. */
struct part {
	bool is_init; /* gone when those behind it run */
	struct want *want;
	unsigned nr;
	struct nodeset nodes; /* taken; empty: nothing of it is listed */
};

struct sched_walk {
	struct column *column;
	unsigned nr_columns;
	struct part *part; /* one for each container, and the pod */
	unsigned nr_containers;
	const struct resource_table *names;
	bool asks_memory;
	/* The node at hand. */
	const struct sched_topology *t;
	unsigned n;
	uint8_t place[NODES_MAX]; /* dense node -> place in the list */
	/* Nodes whose memory serves containers: the node itself, or with those that serve together
	 * with it. Only nodes that serve none may join others (memory.h). */
	struct nodeset group[NODES_MAX];
	struct hint_space space;
	struct budget *budget; /* of the part that is placed */
	uint8_t distance[NODES_MAX][NODES_MAX];
	struct family
		memory; /* what a part asks of it: here, as it is large and there are many nodes */
	void *work;     /* for searches, once there are some */
};

/* Whether that is a demand on zones: some list it. */
bool walk_is_demand(const struct sched_walk *w, const struct want *want);
/* Whether the nodes have all that the part asks for. */
bool walk_has_all(const struct sched_walk *w, const struct part *p, struct nodeset mask);
/* The best nodes for the part, into p->nodes; none when nothing of it is listed. */
enum sched_walk_answer walk_choose(struct sched_walk *w, struct part *p, bool closest);

#endif
