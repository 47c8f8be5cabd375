#ifndef NUMAFIT_SIM_PICTURE_H
#define NUMAFIT_SIM_PICTURE_H

#include <numafit-sim/node.h>
#include <stdio.h>

enum { PICTURE_WIDTH = 100 };

/* Draw the node: a block for every NUMA node, socket by socket, in it a row for every hardware
 * thread of its cores, each CPU with the letter of the container that has it for itself; then what
 * the letters mean. Plain ASCII, PICTURE_WIDTH columns unless a single NUMA node needs more. */
void picture_draw(FILE *out, const struct sim_node *n);

#endif
