#ifndef NUMAFIT_NODE_SPREAD_H
#define NUMAFIT_NODE_SPREAD_H

#include <numafit/ledger.h>

/* What containers that keep to one NUMA node's part of the shared pool ask for of it, by dense
 * node; of those of the ledger, and of those of the pod that is being decided. Zeros to begin with.
 */
struct spread_load {
	bool known; /* the ledger's are added up */
	uint64_t milli[NODES_MAX];
};

/* Where the container, which shares the pool, wishes for one NUMA node's part of that: which one
 * (d->spread), and with strict-memory the memory of that one alone (d->mems). It is beside its
 * devices, where most is left of the pool beside what others ask for of it; of NUMA nodes that are
 * alike in that where most memory is free. Adds the container to *load. */
void spread_over_pool(const struct ledger *l, const struct ask *ask, struct spread_load *load,
	struct decision *d);

#endif
