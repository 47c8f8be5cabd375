#ifndef NUMAFIT_PICTURE_BLOCKS_H
#define NUMAFIT_PICTURE_BLOCKS_H

#include <numafit/cpuset.h>
#include <stdio.h>

/* NUMA nodes as they are drawn. */
struct block_node {
	unsigned id;
	struct cpuset sockets;        /* of its CPUs */
	const struct cpuset *threads; /* CPUs that are the first, the second, ... of their cores */
	size_t nr_threads;            /* 0: it has no CPUs */
	bool has_memory;
	/* Of its memory, from 0 to 1: what is asked for on it alone, and on it with other nodes. */
	double alone, together;
};

struct blocks {
	const struct block_node *nodes;
	size_t nr;
	const char *symbol; /* of each CPU, by its id */
	int columns;        /* of a line at most, unless a single node needs more */
};

/* A block for each NUMA node, by the sockets that its CPUs are on, as many beside each other as
 * fit. */
void blocks_draw(FILE *out, const struct blocks *b);
/* A line for each NUMA node, in as many columns as fit. */
void blocks_draw_lines(FILE *out, const struct blocks *b);

#endif
