#ifndef NUMAFIT_NODE_REPORT_PODS_H
#define NUMAFIT_NODE_REPORT_PODS_H

#include <numafit/report.h>

/* The fingerprint and the placement, for a report that says which pods the fingerprint is of. 0, or
 * -ENOMEM. */
int report_take_pods(struct report *out, const struct ledger *l, const struct settings *s,
	const struct report_facts *f, struct arena *a);

#endif
