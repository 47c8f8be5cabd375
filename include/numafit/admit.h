#ifndef NUMAFIT_ADMIT_H
#define NUMAFIT_ADMIT_H

#include <numafit/decision.h>
#include <numafit/ledger.h>
#include <numafit/request.h>
#include <numafit/settings.h>

/* Decide one container: collect hints, merge them, ask the policy, assign CPUs and memory. It
 * reads and changes nothing but *d, so a what-if is this very call. Mirrors the kubelet's
 * container scope (scope_container.go): hints of all, one merge, then allocation.
 * A refused container is an answer (d->admit false, with reason and message). Working memory comes
 * from *a, a fixed arena (arena_init_fixed(), ADMIT_ARENA_BYTES are plenty); when that is too small
 * the container is refused with that as the message. */
void admit(const struct ledger *l, const struct settings *s, const struct request *req,
	struct arena *a, struct decision *d);

enum { ADMIT_ARENA_BYTES = 2 << 20 };

#endif
