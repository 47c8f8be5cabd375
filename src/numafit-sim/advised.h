#ifndef NUMAFIT_SIM_ADVISED_H
#define NUMAFIT_SIM_ADVISED_H

#include <numafit-sim/node.h>
#include <stdio.h>

/* The scheduler's part: advice on pods, and what the daemon says became of them. */

/* Give the pod of *c, its first container, the annotations of that step, with advice of now. 0, or
 * -E2BIG with text. */
int advised_annotate(
	struct sim_node *n, struct container *c, const struct trace_step *step, struct err *e);
/* What its pod's annotations ask for, into c->advised. */
void advised_read(struct sim_node *n, struct container *c);
/* It was created, or refused with that message: the verdict, as that or its placement has it. */
void advised_note(const struct sim_node *n, struct container *c, const char *refusal);

/* The advised containers in a table: what each asked for, what it was given, and the verdict.
 * Nothing when there are none. */
void advised_print(FILE *out, const struct sim_node *n);

#endif
