#ifndef CLUSTER_SIM_WORLD_H
#define CLUSTER_SIM_WORLD_H

#include <cluster-sim/moves.h>
#include <numafit/sched_plan.h>

/* A cluster's day under one strategy, event by event: pods come, are given a node, are admitted or
 * refused by it, and end. A pod that no node suits waits and is tried again; one that a node
 * refused has failed, and its controller makes another one. The scheduler's side knows of the nodes
 * what their reports say, which come a while after each change, and what it has bound itself
 * (sched_cluster.h); what a node refused is avoided (sched_avoid.h). The stock scheduler knows what
 * pods ask for, and nothing else. */

/* How nodes are chosen: one row for each way. All have the stock scheduler's NodeResourcesFit and
 * its scores; those of the extender ask its plugin too and leave a hint. */
struct strategy {
	const char *name, *help;
	const char *colour; /* of its line in a plot */
	/* scoringStrategy of NodeResourcesFit: what is left, or what is allocated, is preferred. */
	enum generic_portion stock;
	bool asks_plugin;       /* NodeResourceTopologyMatch, as numafit-extender has it */
	enum nrt_strategy type; /* its scoringStrategy */
	/* A node that would refuse a pod, or admit it on more NUMA nodes than on an empty node,
	 * moves containers first, if that helps, and the pod waits there meanwhile. Not with the
	 * extender, which sends no pod to such a node. */
	bool moves;
};
enum { STRATEGIES_MAX = 16 };
/* "stock,least-numa-nodes" into list[]; "all": every row. How many, or -EINVAL: the text names the
 * word that is none. */
int strategy_list(const char *names, const struct strategy *list[STRATEGIES_MAX], struct err *e);

struct world_options {
	unsigned nr_nodes;
	/* Nodes that are looked for before scoring, in hundredths of all; 0: as kube-scheduler does
	 * (50 less one for 125 nodes, not below 5, not below 100 nodes). */
	unsigned percent_to_score;
	unsigned weight; /* of the extender's score, 0 to 100, beside the stock ones */
	int64_t report_delay_ms;
	struct move_limits moves;
};

enum { SAMPLES = 96 }; /* one for each quarter of an hour */
struct sample {
	double utilisation, fragmentation; /* as in struct outcome; now */
	unsigned long refused, moves;      /* so far */
	unsigned long waiting;             /* pods that have come, and run nowhere; now */
};

/* What came of the day. Counts are of pods unless they say otherwise. */
struct outcome {
	unsigned long arrived;
	unsigned long placed;                /* admitted by a node */
	unsigned long never;                 /* still waiting when the day ends */
	unsigned long refused, refused_pods; /* refusals by nodes, and the pods that had one */
	unsigned long waited;                /* placed, but not at once */
	double wait_ms;                      /* of these, in all */
	unsigned long pinned, minimal; /* placed with CPUs or memory of their own; each container on
					  no more NUMA nodes than on an empty node */
	unsigned long containers;      /* with CPUs or memory of their own */
	double distance;               /* the average distances within their NUMA nodes, in all */
	unsigned long accepted, repaired, rejected; /* hints */
	unsigned long avoided;  /* pods that were admitted after moves, and else refused */
	unsigned long narrowed; /* likewise, and else admitted on more NUMA nodes */
	unsigned long moves;    /* of containers */
	uint64_t bytes_moved;
	double moving_ms;   /* of all moves */
	double utilisation; /* average: CPUs that running pods ask for, of all for pods */
	/* Average: of the CPUs that nobody asks for, the part that pods of 8 CPUs, each on one NUMA
	 * node, could not have. */
	double fragmentation;
	double seconds; /* of this program */
	struct sample sample[SAMPLES];
};

/* How many NUMA nodes the containers of a shape get on an empty node; 0: none of their own, or no
 * node takes such a pod. */
struct shape_facts {
	unsigned nodes[SHAPE_CONTAINERS_MAX];
};
/* By shape; the caller frees. */
struct shape_facts *shape_facts_new(const struct cluster_trace *t, const struct cluster_machine *m);

/* All const: several threads may run worlds of it at once. */
struct world_setting {
	const struct world_options *options;
	const struct cluster_machine *machine;
	const struct cluster_trace *trace;
	const struct shape_facts *facts; /* by shape */
	/* Called once an hour of the day. */
	void (*progress)(void *ctx, const struct strategy *s, unsigned hour);
	void *progress_ctx;
	/* Called as a move begins, of that node; NULL: nobody wants to know. */
	void (*moved)(void *ctx, unsigned node, const struct node_move *m);
	void *moved_ctx;
};

/* Live the day. 0; -EINVAL when a node's ledger is broken at its end or after a step of a move, or
 * what is counted does not add up. */
int world_run(const struct world_setting *w, const struct strategy *s, struct outcome *out,
	struct err *e);

#endif
