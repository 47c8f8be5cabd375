#ifndef NUMAFIT_CORE_ADMISSION_PASS_H
#define NUMAFIT_CORE_ADMISSION_PASS_H

#include <numafit/admission.h>

/* One pass through a pod's admission (admission.c); with schedulers' advice there are two
 * (admission_advice.c). */

struct admission_way {
	const struct hint *settled; /* as in admission() */
	bool follow;                /* schedulers' advice; else they are only judged, and those that
				       would change anything are overruled */
	struct refusal *by_advice;  /* zeros; the first container that its own advice refuses. NULL:
				     there    are no advice */
};

/* As admission(); -EPERM too when advice that is followed refuses. */
int admission_pass(const struct admission_way *how, struct books *b, const struct pod *pod,
	struct budget *budget, struct arena *a, struct grants *out, struct refusal *why);

#endif
