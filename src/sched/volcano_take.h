#ifndef NUMAFIT_SCHED_VOLCANO_TAKE_H
#define NUMAFIT_SCHED_VOLCANO_TAKE_H

#include <numafit/volcano.h>

/* want of the free CPUs, picked by sockets, cores and then one by one, into *out; may be more where
 * core ids repeat. Returns whether there were enough; *out is empty if not. */
bool volcano_take(
	const struct volcano_node *n, const struct cpuset *free, long want, struct cpuset *out);

#endif
