#ifndef NUMAFIT_NODE_DIAGNOSIS_TRIAL_H
#define NUMAFIT_NODE_DIAGNOSIS_TRIAL_H

#include <numafit/diagnosis.h>

/* A question that was refused, decided again with changes: what diagnosis.c and remedies.c share.
 */

struct trial {
	const struct admit_question *asked;
	struct admit_question q; /* the same, of what follows, which may be changed */
	struct settings *settings;
	struct request request;
	struct pod pod;
	struct ask *ask;      /* the pod's containers; NULL: they are not known */
	struct ask whole_pod; /* what the pod asks for as one (pod.own), if anything */
	bool *gone;           /* by entry of the ledger; the container's own is */
	size_t nr, own;       /* entries of the ledger; the container's own, or nr */
	struct budget *budget;
	struct arena *arena;
	unsigned left; /* decisions that may still be made */
	bool in_place; /* they are resizes of the container's own entry */
	bool cut;      /* the last one ended early */
	/* Where the last one that admitted would have its CPUs and memory, and what the policy had
	 * aligned it to; empty: anywhere. */
	struct nodeset nodes, aligned;
};

/* As *q asks; the arrays come from *a. False: its limit is reached. */
bool trial_init(struct trial *x, const struct admit_question *q, unsigned decisions,
	struct budget *b, struct arena *a);
/* As it was asked, once more. */
void trial_reset(struct trial *x);
/* True if no decision or no step is left: no trial admits any more. */
bool trial_is_over(const struct trial *x);
/* Whether it is admitted so. False, too, when no decision is left. */
bool trial_admits(struct trial *x);
/* Take a scheduler's advice away. Whether there was any. */
bool trial_drop_advice(struct trial *x);

/* The places in *d, whose amounts and number of NUMA nodes are known; resized is the container's
 * own entry, or NULL. */
void diagnosis_find_places(const struct admit_question *q, const struct books *b,
	const struct holding *resized, struct diagnosis *d);

/* Whether that place has all that was asked for. */
bool diagnosis_has_all(const struct diagnosis *d, const struct diagnosis_place *p);

#endif
