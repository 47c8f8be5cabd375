#ifndef CLUSTER_SIM_CLUSTER_H
#define CLUSTER_SIM_CLUSTER_H

#include <cluster-sim/world.h>
#include <stdio.h>

/* A day of a whole cluster, as data and without a socket: what a user gains with each way of
 * choosing nodes. */

struct cluster_options {
	unsigned nr_nodes, nr_numa; /* 0: no cluster is simulated */
	unsigned nr_pods;           /* 0: 20 for each node */
	const char *trace;          /* a file, or NULL: a day is made up */
	const struct strategy *strategy[STRATEGIES_MAX];
	unsigned nr_strategies;
	uint64_t seed;
	unsigned load_percent; /* of the CPUs that pods may have, for the day that is made up */
	enum topology_policy policy;
	unsigned jobs; /* strategies at the same time; 0: as many as there are processors */
	const char *svg;
	bool table; /* print it with an SVG, too */
	struct world_options world;
};
void cluster_options_init(struct cluster_options *o);

/* "5000x8" into nodes and their NUMA nodes. 0, or -EINVAL, -ERANGE. */
int cluster_size_parse(struct cluster_options *o, const char *text, struct err *e);

/* Run it: progress goes to stderr, the table to stdout. 0; 1: what came of it is wrong
 * (world_run()); -errno for a file, or as cluster_trace_read(). */
int cluster_run(const struct cluster_options *o, struct err *e);
/* The strategies and what is counted, as part of a help text. */
void cluster_help(FILE *out);

#endif
