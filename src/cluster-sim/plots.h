#ifndef CLUSTER_SIM_PLOTS_H
#define CLUSTER_SIM_PLOTS_H

#include <cluster-sim/world.h>
#include <stdio.h>

/* The hours of the day as SVG: a row of panels for each measure (pods refused so far, pods that
 * wait, fragmentation, CPUs in use; with nodes that move containers, moves so far) with one axis
 * that the data choose, and in it a panel for each strategy, so that no curve hides another one. */
void cluster_svg_print(FILE *out, const char *title, const struct strategy *const *s,
	const struct outcome *o, unsigned nr);

#endif
