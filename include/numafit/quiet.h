#ifndef NUMAFIT_QUIET_H
#define NUMAFIT_QUIET_H

#include <numafit/ledger.h>

/* What containers with CPUs of their own wish to be kept off these (numafit.io/quiet). */

struct quiet_plan {
	struct cpuset irq;       /* no interrupt is to come there */
	struct cpuset frequency; /* these have the profile of that number: */
	unsigned char profile[CPUSET_BITS];
};
/* By the entries of containers that are there. A profile that the settings have no more counts as
 * none. */
void quiet_plan_make(const struct ledger *l, const struct settings *s, struct quiet_plan *out);

/* Where an interrupt may come that came to `was` before: there, but for the quiet CPUs; where nothing
 * of that is left, to any other CPU that is online; where there is none, as before. */
struct cpuset quiet_affinity(
	const struct cpuset *was, const struct cpuset *quiet, const struct cpuset *online);

#endif
