#ifndef NUMAFIT_NODE_REPORT_PODS_H
#define NUMAFIT_NODE_REPORT_PODS_H

#include <numafit/report.h>

/* The fingerprint and the placement, for a report that says of whom the fingerprint is to be. 0, or
 * -ENOMEM. */
int report_take_pods(struct report *out, const struct ledger *l, const struct settings *s,
	const struct report_facts *f, struct arena *a);

#endif
