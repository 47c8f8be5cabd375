/* Pods whose CFS quota is lifted, and which are to be. */
#include <numafit/cfs_quota.h>

#include "ledger_state.h"

#include <numafit/number.h>
#include <numafit/text.h>

enum { QUOTA_MIN_US = 1000 };

/* Where that pod's stands, or would stand. */
static size_t position(const struct lifted_quotas *q, const char *pod_uid)
{
	return text_position(q->at, q->nr, sizeof *q->at, pod_uid);
}

const struct lifted_quota *quotas_find(const struct lifted_quotas *q, const char *pod_uid)
{
	size_t i = position(q, pod_uid);

	return i < q->nr && text_equal(q->at[i].pod_uid, pod_uid) ? &q->at[i] : NULL;
}

const struct lifted_quota *quotas_after(const struct lifted_quotas *q, const char *pod_uid)
{
	size_t i = position(q, pod_uid);

	i += i < q->nr && text_equal(q->at[i].pod_uid, pod_uid);
	return i < q->nr ? &q->at[i] : NULL;
}

static void drop_at(struct lifted_quotas *q, size_t i)
{
	free(q->at[i].pod_uid);
	free(q->at[i].cgroup);
	free(q->at[i].was);
	vec_remove(q, i);
}

void quotas_note(struct lifted_quotas *q, const char *pod_uid, const struct quota_note *n)
{
	const struct lifted_quota now = {xstrdup(pod_uid), xstrdup(n->cgroup), xstrdup(n->was)};
	size_t i = position(q, pod_uid);

	if (quotas_find(q, pod_uid))
		drop_at(q, i);
	*vec_insert(q, i) = now;
	if (!*n->was)
		drop_at(q, i);
}

void quotas_fini(struct lifted_quotas *q)
{
	while (q->nr)
		drop_at(q, q->nr - 1);
	vec_fini(q);
}

bool holding_has_own_cpus(const struct holding *h)
{
	const struct decision *d = &h->decision;

	return d->exclusive && !d->left && !holding_is_pod(h) && !holding_is_in_pool(h) &&
	       !request_shares_in_pod(&h->request, d);
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
