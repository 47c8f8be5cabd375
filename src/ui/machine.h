#ifndef NUMAFIT_UI_MACHINE_H
#define NUMAFIT_UI_MACHINE_H

#include <numafit/topo.h>

/* The machine as a JSON document, for whoever draws it: its NUMA nodes with socket, cores (each
 * with its CPUs) and distances to all NUMA nodes, in their order. The caller frees. */
char *ui_machine_json(const struct topo *t);

#endif
