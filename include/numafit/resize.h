#ifndef NUMAFIT_RESIZE_H
#define NUMAFIT_RESIZE_H

#include <numafit/decision.h>
#include <numafit/ledger.h>
#include <numafit/request.h>
#include <numafit/settings.h>

/* A container that runs, and whose resources change in place (KEP-1287). The kubelet's static
 * managers refuse that; here what it has stays as far as it can:
 *   - more CPUs come from the NUMA nodes that it is on, then from as few others as can be, the
 *     closest ones; restricted and single-numa-node refuse what they would not have admitted;
 *   - of fewer CPUs it keeps those on as few nodes as can be, and beside its memory where that takes
 *     no more nodes, else the closest ones; never refused;
 *   - memory grows and shrinks where it is, and is never moved.
 * With no whole CPUs any more it runs in the shared pool; with whole CPUs for the first time it
 * gets them beside its memory. Like admit(): *d is the new answer for h, or refused with reason and
 * message, and then what h has stays as it is. Changes nothing but *d; searches spend *b, working
 * memory comes from *a, a fixed arena. */
void resize(const struct ledger *l, const struct settings *s, const struct holding *h,
	const struct request *req, struct budget *b, struct arena *a, struct decision *d);

#endif
