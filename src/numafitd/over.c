#include "over.h"
#include "cluster.h"
#include "daemon.h"
#include "gather.h"
#include "updater.h"

#include <io/log.h>
#include <numafit/mem.h>
#include <numafit/text.h>

static bool waits(const struct holding *h)
{
	return h->state == HOLDING_WAITING && !holding_is_share(h);
}

/* Any entry of that pod, of its containers that run where `running`, or NULL. */
static const struct holding *find_entry(const struct daemon *d, const char *uid, bool running)
{
	const struct ledger *l = engine_ledger(d->engine);

	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (waits(h) != running && text_equal(h->request.pod.uid, uid))
			return h;
	}
	return NULL;
}

void over_release_pod(struct daemon *d, const struct pod *pod)
{
	auto_free char *uid = xstrdup(pod->uid); /* entries go, and with them their texts */
	const struct holding *h;
	char name[512];

	if (!*uid || gather_is_listed(d, pod) || find_entry(d, uid, true))
		return;
	h = find_entry(d, uid, false);
	if (h)
		log_line(LOG_INFO, "pod-over",
			"namespace=%s pod=%s text=\"no container of it runs, and it is not listed any "
			"more: what is held for it is given back\"",
			h->request.pod.ns, log_text(name, sizeof name, h->request.pod.name));
	for (; h; h = find_entry(d, uid, false)) {
		auto_free char *sandbox = xstrdup(h->request.pod.sandbox_id);
		const struct pod of = {.sandbox_id = sandbox, .uid = uid};

		engine_release_pod(d->engine, loop_wall_ms(), "pod-gone", &of);
	}
	cluster_note_pod_gone(d, uid);
	updater_note_change(d);
}

void over_release_pods(struct daemon *d)
{
	const struct ledger *l = d->engine ? engine_ledger(d->engine) : NULL;

	for (size_t i = 0; l && i < ledger_count(l);) {
		const struct holding *h = ledger_at(l, i);
		size_t nr = ledger_count(l);

		if (waits(h))
			over_release_pod(d, &h->request.pod);
		i = ledger_count(l) == nr ? i + 1 : 0;
	}
}
