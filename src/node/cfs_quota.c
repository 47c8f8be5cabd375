/* Which pods are to have no CFS quota. */
#include <numafit/cfs_quota.h>

#include "ledger_state.h"

#include <numafit/number.h>
#include <numafit/text.h>

enum { QUOTA_MIN_US = 1000 };

bool holding_has_own_cpus(const struct holding *h)
{
	const struct decision *d = &h->decision;

	return d->exclusive && !decision_is_left(d) && !holding_is_pod(h) &&
	       !holding_is_in_pool(h) && !request_shares_in_pod(&h->request, d);
}

bool ledger_pod_is_unlimited(const struct ledger *l, const char *pod_uid)
{
	unsigned own = 0, others = 0;
	bool as_one = false;

	for (size_t i = ledger_first_of_pod(l, pod_uid); i < ledger_count(l); i++) {
		const struct holding *h = ledger_at_by_pod(l, i);

		if (!text_equal(h->request.pod.uid, pod_uid))
			break;
		as_one = as_one || h->request.pod.pod_level;
		own += holding_has_own_cpus(h);
		others += !holding_has_own_cpus(h) && !holding_is_pod(h);
	}
	return own && !(others && as_one && l->s->gates.pod_level_resource_managers);
}

uint64_t quota_of_limit(uint64_t limit_milli, uint64_t period_us)
{
	return number_max(limit_milli * period_us / MILLI_PER_CPU, QUOTA_MIN_US);
}
