#ifndef CLUSTER_SIM_REPORT_H
#define CLUSTER_SIM_REPORT_H

#include <cluster-sim/world.h>
#include <stdio.h>

/* What came of a day, for people: one line for each strategy. */
void cluster_report_print(
	FILE *out, const struct strategy *const *s, const struct outcome *o, unsigned nr);
/* What the columns mean, as part of a help text. */
void cluster_report_help(FILE *out);

#endif
