/* Pods' facts that come after their containers: numafitd may be started anew, its journal lost,
 * long before the kubelet or the API server says what the running containers' pods ask for. */
#include "late_facts.h"

#include "daemon.h"
#include "gather.h"
#include "pool.h"
#include "quota.h"
#include "updater.h"

#include <numafit/shares.h>
#include <numafit/text.h>

/* The ids of the pod's containers; joining facts replaces entries. */
struct ids {
	VEC(char *);
};

static struct ids ids_of_pod(const struct ledger *l, const char *pod_uid)
{
	struct ids ids = {0};

	for (size_t i = ledger_first_of_pod(l, pod_uid); i < ledger_count(l); i++) {
		const struct holding *h = ledger_at_by_pod(l, i);

		if (!text_equal(h->request.pod.uid, pod_uid))
			break;
		if (h->state != HOLDING_WAITING && !holding_is_share(h))
			*vec_push(&ids) = xstrdup(h->request.container_id);
	}
	return ids;
}

static bool join_facts(struct daemon *d, const char *id)
{
	const struct holding *h = ledger_find(engine_ledger(d->engine), id);
	struct container_facts facts;

	return h && gather_facts(d, &h->request, &facts) &&
	       engine_join_facts(d->engine, loop_wall_ms(), id, &facts);
}

void late_facts_of_pod(struct daemon *d, const char *pod_uid)
{
	bool changed = false;

	if (d->settings.mode != MODE_MANAGE || !d->engine || !*pod_uid)
		return;
	struct ids ids = ids_of_pod(engine_ledger(d->engine), pod_uid);
	for (size_t i = 0; i < ids.nr; i++) {
		auto_free char *id = ids.at[i];

		changed = join_facts(d, id) || changed;
	}
	vec_fini(&ids);
	if (!changed)
		return;
	pool_follow_event(d);
	quota_note_pod(d, pod_uid);
	updater_note_change(d);
}
