#ifndef NUMAFIT_CORE_ADMISSION_PASS_H
#define NUMAFIT_CORE_ADMISSION_PASS_H

#include <numafit/admission.h>

/* One pass through a pod's admission (admission.c); with schedulers' hints there are two
 * (admission_hints.c). */

struct admission_way {
	const struct hint *settled; /* as in admission() */
	bool follow;                /* schedulers' hints; else they are only judged, and those that
				       would change anything are overruled */
	struct refusal *by_hint;    /* zeros; the first container that its own hint refuses. NULL:
				       there    are no hints */
};

/* As admission(); -EPERM too when a hint that is followed refuses. */
int admission_pass(const struct admission_way *how, struct books *b, const struct pod_ask *pod,
	struct budget *budget, struct arena *a, struct grants *out, struct refusal *why);

#endif
