/* Pods' facts that come after their containers: numafitd may be started anew, its journal lost,
 * long before the kubelet or the API server says what the running containers' pods ask for, and
 * before the kubelet's PodResources shows which devices and claims the containers have. */
#include "late_facts.h"

#include "daemon.h"
#include "gather.h"
#include "pool.h"
#include "quota.h"
#include "updater.h"

#include <io/log.h>
#include <nri/nri_conn.h>
#include <numafit/shares.h>
#include <numafit/text.h>

/* The ids of some containers; joining facts replaces entries. */
struct ids {
	VEC(char *);
};

static bool is_container(const struct holding *h)
{
	return h->state != HOLDING_WAITING && !holding_is_share(h);
}

static struct ids ids_of_pod(const struct ledger *l, const char *pod_uid)
{
	struct ids ids = {0};

	for (size_t i = ledger_first_of_pod(l, pod_uid); i < ledger_count(l); i++) {
		const struct holding *h = ledger_at_by_pod(l, i);

		if (!text_equal(h->request.pod.uid, pod_uid))
			break;
		if (is_container(h))
			*vec_push(&ids) = xstrdup(h->request.container_id);
	}
	return ids;
}

/* Of those of which PodResources may show more than is known. */
static struct ids ids_of_unshown(const struct daemon *d)
{
	const struct ledger *l = engine_ledger(d->engine);
	const bool shows_cdi = nri_conn_shows_cdi(d->runtime.conn);
	struct ids ids = {0};

	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);
		const bool has_shares = h->request.shares && *h->request.shares;

		if (is_container(h) && (h->request.ask.devices == DEVICES_NOT_SHOWN_YET ||
					       !(shows_cdi || has_shares)))
			*vec_push(&ids) = xstrdup(h->request.container_id);
	}
	return ids;
}

/* A container that runs is never refused: its author and the operator have only this line. */
static void log_without_claim(const struct holding *h)
{
	char pod[512], container[256], why[2 * DECISION_MESSAGE_MAX];

	log_line(LOG_WARN, "claim-not-joined",
		"namespace=%s pod=%s container=%s text=%s action=\"create the pod again, if its "
		"ResourceClaim is not prepared anew\"",
		h->request.pod.ns, log_text(pod, sizeof pod, h->request.pod.name),
		log_text(container, sizeof container, h->request.ask.name),
		log_text(why, sizeof why, h->decision.message));
}

static bool join_facts(struct daemon *d, const char *id, struct budget *b)
{
	const struct holding *h = ledger_find(engine_ledger(d->engine), id);
	struct container_facts facts;
	struct arena a;

	if (!h)
		return false;
	arena_init(&a, GATHER_BYTES);
	gather_facts(d, &h->request, &facts, &a);
	const bool changed = engine_join_facts(d->engine, loop_wall_ms(), id, &facts, b);
	arena_fini(&a);
	h = changed ? ledger_find(engine_ledger(d->engine), id) : NULL;
	if (h)
		quota_note_pod(d, h->request.pod.uid);
	if (h && holding_lacks_shares(h) && *h->request.shares)
		log_without_claim(h);
	return changed;
}

static void join_all(struct daemon *d, struct ids ids)
{
	struct budget budget = budget_of(d->settings.merge_visit_budget);
	bool changed = false;

	for (size_t i = 0; i < ids.nr; i++) {
		auto_free char *id = ids.at[i];
		struct budget b = budget_share(&budget, (unsigned)ids.nr, (unsigned)i);

		changed = join_facts(d, id, &b) || changed;
		budget_return(&budget, &b);
	}
	vec_fini(&ids);
	if (!changed)
		return;
	pool_follow_event(d);
	updater_note_change(d);
}

void late_facts_of_pod(struct daemon *d, const char *pod_uid)
{
	if (d->settings.mode != MODE_MANAGE || !d->engine || !*pod_uid)
		return;
	join_all(d, ids_of_pod(engine_ledger(d->engine), pod_uid));
	quota_note_unlifted_pod(d, pod_uid);
}

void late_facts_of_devices(struct daemon *d)
{
	if (d->settings.mode == MODE_MANAGE && d->engine)
		join_all(d, ids_of_unshown(d));
}
