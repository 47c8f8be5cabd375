#ifndef NUMAFIT_NODE_REMEDIES_H
#define NUMAFIT_NODE_REMEDIES_H

#include "diagnosis_trial.h"

/* What remedies.c and remedies_less.c share. */

enum { REMEDIES_PODS_IN_SETS = 6 };

/* A pod that holds something, and could end. */
struct candidate {
	size_t first; /* an entry of it */
	unsigned cpus;
	struct nodeset nodes;
	uint64_t memory;
};

struct clinic {
	struct trial trial;
	struct diagnosis *out;
	struct candidate *pod; /* those that hold least come first */
	size_t nr_pods;
	size_t *first_of_pod; /* by entry of the ledger: the candidate's `first`; nr: no candidate
			       */
	uint8_t set[1 << REMEDIES_PODS_IN_SETS]; /* sets of few pods, a bit for each pod */
	struct ask sum;                          /* of a pod of which only sums are known */
};

/* Less of one of its containers, or of what the pod asks for as one, with which it is admitted:
 * into r->ask, r->asked and r->container. Whether there is. */
bool remedies_find_less(struct clinic *x, struct remedy *r);

#endif
