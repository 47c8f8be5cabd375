/* Pods' CFS quotas: lifted where a container of the pod has CPUs for itself, watched, and given
 * back. */
#include "quota.h"
#include "daemon.h"
#include "gather.h"

#include <host/cgroup.h>
#include <io/file.h>
#include <io/log.h>
#include <io/watched_files.h>
#include <numafit/cfs_quota.h>
#include <numafit/cgroup_path.h>
#include <numafit/text.h>

#include <errno.h>
#include <stdio.h>

/* The kubelet's cpuCFSQuotaPeriod, unless that is set. */
enum { KUBELET_PERIOD_US = 100 * 1000 };

/* Pods are seen to in rounds of that length, between which the loop serves whoever waits. AGAIN_MS:
 * between two attempts at what could not be written. Another program that writes a quota over and
 * over is answered REWRITES_MAX times, and then at that pace. NOTES_MAX: how many times in a row a
 * quota that changes is recorded before that is tried again later. */
enum { TURN_NS = 1000 * 1000, PAUSE_MS = 1, AGAIN_MS = 1000, REWRITES_MAX = 10, NOTES_MAX = 3 };

/* Quotas wait so long for a kubelet or an API server that lists no pods; a kubelet starts in less.
 */
enum { FACTS_WAIT_MS = 2 * 60 * 1000 };
enum facts_wait { FACTS_NOT_AWAITED, FACTS_AWAITED, FACTS_MISSING };

struct quotas {
	struct cgroup_tree cpu; /* root "": it cannot be written */
	struct loop_timer *turn, *again, *facts_late;
	enum facts_wait facts; /* of any pod whose quota would be lifted but for them */
	struct {
		VEC(char *);
	} due; /* pods that are to be seen to, in order */
	struct watched_files
		watched; /* pods' cgroups, by pod_uid; rewrites: since the last pause */
	char *at;        /* the pod that the sweep looked at last; NULL: none in this round */
	uint64_t rewritten;
	struct err problem; /* of a write; code 0: there is none */
	char *failed_pod;   /* it was that pod's; else NULL */
	char why_not[sizeof((struct err *)0)->text];
};

static const struct ledger *ledger_of(const struct daemon *d)
{
	return engine_ledger(d->engine);
}

static const struct kept_list *lifted(const struct daemon *d)
{
	return &ledger_view(ledger_of(d))->kept[KEPT_QUOTAS];
}

static bool is_to_lift(const struct daemon *d)
{
	return d->settings.mode == MODE_MANAGE && d->settings.quota_use == QUOTA_LIFT;
}

/* Watching */

static void on_quota_touched(void *ctx, struct watched_file *f)
{
	struct daemon *d = ctx;
	struct quotas *q = d->follow.quotas;
	const struct kept *l = kept_find(lifted(d), f->key);
	struct cgroup_quota found;

	if (!l || cgroup_read_quota(&q->cpu, l->place, &found, NULL) || !found.limited)
		return;
	if (f->rewrites++ < REWRITES_MAX)
		quota_note_pod(d, f->key);
	else
		loop_timer_set(q->again, AGAIN_MS);
}

static void watch_pod(struct daemon *d, const char *pod_uid, const char *cgroup)
{
	struct quotas *q = d->follow.quotas;
	char file[2 * CGROUP_PATH_MAX + sizeof "cpu.cfs_quota_us"];

	(void)snprintf(
		file, sizeof file, "%s%s/%s", q->cpu.root, cgroup, cgroup_quota_file(&q->cpu));
	(void)watched_files_add(&q->watched, pod_uid, file); /* else the sweep looks at it */
}

/* Lifting and giving back */

static void note_success(struct quotas *q, const char *pod_uid)
{
	if (!q->failed_pod || !text_equal(q->failed_pod, pod_uid))
		return;
	log_line(LOG_INFO, "quota-lifted-again", "cgroups=%s", q->cpu.root);
	free(q->failed_pod);
	q->failed_pod = NULL;
	q->problem = (struct err){0};
}

/* Logged once, until it succeeds for that pod. */
static void note_failure(struct quotas *q, const char *pod_uid, const struct err *e)
{
	char why[2 * sizeof e->text];

	loop_timer_set(q->again, AGAIN_MS);
	if (!q->failed_pod)
		log_line(LOG_ERROR, "quota-not-lifted",
			"error=%s text=\"the pod's containers are stopped now and then though they "
			"have CPUs of their own\" action=\"let numafitd write the kubelet's "
			"cgroups, or set exclusiveCPUs.cfsQuota to keep\"",
			log_text(why, sizeof why, e->text));
	if (!q->failed_pod)
		q->failed_pod = xstrdup(pod_uid);
	q->problem = *e;
}

static void forget(struct daemon *d, const char *pod_uid)
{
	const struct kept *l = kept_find(lifted(d), pod_uid);
	struct kept_note note = {.was = ""};
	auto_free char *cgroup = l ? xstrdup(l->place) : NULL;

	watched_files_remove(&d->follow.quotas->watched, pod_uid);
	note_success(d->follow.quotas, pod_uid);
	if (!l)
		return;
	note.place = cgroup;
	(void)engine_note_kept(d->engine, loop_wall_ms(), KEPT_QUOTAS, pod_uid, &note, NULL);
}

static void log_lifted(const char *pod_uid, const char *cgroup, const char *was, bool again)
{
	char uid[128], path[512];

	log_line(again ? LOG_INFO : LOG_DEBUG, again ? "quota-rewritten" : "quota-lifted",
		"pod_uid=%s cgroup=%s was=\"%s\"%s", log_text(uid, sizeof uid, pod_uid),
		log_text(path, sizeof path, cgroup), was,
		again ? " text=\"another program has set it; it is lifted again\"" : "");
}

static int write_none(
	const struct quotas *q, const char *cgroup, const struct cgroup_quota *found, struct err *e)
{
	char text[CGROUP_QUOTA_MAX];

	cgroup_quota_text(&q->cpu, CGROUP_NO_QUOTA, found->period_us, text);
	return cgroup_write_quota(&q->cpu, cgroup, text, e);
}

static bool is_noted(
	const struct daemon *d, const char *pod_uid, const char *cgroup, const char *was)
{
	const struct kept *l = kept_find(lifted(d), pod_uid);

	return l && text_equal(l->place, cgroup) && text_equal(l->was, was);
}

/* The quota in force, which the journal has before it is lifted. The kubelet may set another one
 * while the journal is written, so it is read again after that. -EAGAIN: it changes all the time.
 */
static int read_and_note(struct daemon *d, const char *pod_uid, const char *cgroup,
	struct cgroup_quota *found, struct err *e)
{
	for (unsigned i = 0; i < NOTES_MAX; i++) {
		int rc = cgroup_read_quota(&d->follow.quotas->cpu, cgroup, found, e);
		if (rc || !found->limited || is_noted(d, pod_uid, cgroup, found->text))
			return rc;
		const struct kept_note note = {cgroup, found->text};
		rc = engine_note_kept(d->engine, loop_wall_ms(), KEPT_QUOTAS, pod_uid, &note, e);
		if (rc)
			return rc;
	}
	return err_set(e, EAGAIN, "%s: the quota changes while it is recorded", cgroup);
}

static int lift_pod(struct daemon *d, const char *pod_uid, const char *cgroup, struct err *e)
{
	struct quotas *q = d->follow.quotas;
	bool again = kept_find(lifted(d), pod_uid) && watched_files_find(&q->watched, pod_uid);
	struct cgroup_quota found;
	int rc = read_and_note(d, pod_uid, cgroup, &found, e);

	if (rc)
		return rc;
	if (found.limited) {
		rc = write_none(q, cgroup, &found, e);
		if (rc)
			return rc;
		q->rewritten += again;
		log_lifted(pod_uid, cgroup, found.text, again);
	}
	if (kept_find(lifted(d), pod_uid))
		watch_pod(d, pod_uid, cgroup);
	return 0;
}

/* What the kubelet would set for the container as the ledger has it; CGROUP_NO_QUOTA: nobody knows.
 */
static uint64_t quota_of_kubelet(const struct holding *h, uint64_t period_us)
{
	const struct ask *ask = &h->request.ask; /* Guaranteed: its limit is its request */
	const uint64_t limit = ask->cpu_limit_milli ? ask->cpu_limit_milli : ask->cpu_milli;

	return limit ? quota_of_limit(limit, period_us) : CGROUP_NO_QUOTA;
}

/* One that was there before numafitd, or whose quota systemd has set again. One that has another
 * was resized while nobody listened, which is still to be heard of: only then is known what comes
 * back. */
static int lift_container(struct daemon *d, const struct holding *h, struct err *e)
{
	struct quotas *q = d->follow.quotas;
	struct cgroup_quota found;
	char path[CGROUP_PATH_MAX];
	int rc = cgroup_path(h->request.cgroup, path, sizeof path, e);

	if (!rc)
		rc = cgroup_read_quota(&q->cpu, path, &found, e);
	if (rc || !found.limited || found.quota_us != quota_of_kubelet(h, found.period_us))
		return rc;
	return write_none(q, path, &found, e);
}

/* The cgroup of the container's pod, which is above its own. False: it is not known, or another's.
 */
static bool find_pods_cgroup(const struct holding *h, char path[CGROUP_PATH_MAX])
{
	return h->request.cgroup &&
	       !cgroup_path_above(h->request.cgroup, path, CGROUP_PATH_MAX, NULL) &&
	       cgroup_is_pods(path, h->request.pod.uid);
}

/* Whether the kubelet sets quotas (cpuCFSQuota). Where it does its pods with CPUs of their own have
 * one, which comes back, or has come back. */
static bool kubelet_sets_quotas(const struct daemon *d, const struct holding *h)
{
	struct cgroup_quota found;
	char pod[CGROUP_PATH_MAX];

	if (!d->follow.quotas || kept_find(lifted(d), h->request.pod.uid) ||
		!find_pods_cgroup(h, pod) ||
		cgroup_read_quota(&d->follow.quotas->cpu, pod, &found, NULL))
		return true;
	return found.limited;
}

static int give_back_to_container(const struct daemon *d, const struct holding *h, struct err *e)
{
	struct quotas *q = d->follow.quotas;
	struct cgroup_quota found;
	char path[CGROUP_PATH_MAX], text[CGROUP_QUOTA_MAX];
	int rc = cgroup_path(h->request.cgroup, path, sizeof path, e);

	if (!rc)
		rc = cgroup_read_quota(&q->cpu, path, &found, e);
	if (rc || found.limited)
		return rc;
	cgroup_quota_text(&q->cpu, quota_of_kubelet(h, found.period_us), found.period_us, text);
	return cgroup_write_quota(&q->cpu, path, text, e);
}

/* That of the container with this cgroup; its period stays when it has none. */
static struct cgroup_quota quota_in_force(const struct quotas *q, const char *cgroup)
{
	const struct cgroup_quota unknown = {.period_us = KUBELET_PERIOD_US};
	struct cgroup_quota found;
	char path[CGROUP_PATH_MAX];

	if (!q || !*q->cpu.root || !cgroup || cgroup_path(cgroup, path, sizeof path, NULL) ||
		cgroup_read_quota(&q->cpu, path, &found, NULL))
		return unknown;
	return found;
}

int64_t quota_of_update(const struct daemon *d, const struct update *u)
{
	const struct holding *h = ledger_find(ledger_of(d), u->container_id);

	if (u->without_quota)
		return NRI_NO_QUOTA;
	if (u->quota_us || !h || !holding_has_own_cpus(h) || !kubelet_sets_quotas(d, h))
		return u->quota_us;
	const struct cgroup_quota found = quota_in_force(d->follow.quotas, h->request.cgroup);
	const uint64_t quota_us = quota_of_kubelet(h, found.period_us);
	/* another one is what the kubelet has given the runtime since: it was resized */
	bool is_newer = found.limited && found.quota_us != quota_us;
	return is_newer || quota_us == CGROUP_NO_QUOTA ? 0 : (int64_t)quota_us;
}

int64_t quota_given_back(const struct daemon *d, const struct request *req)
{
	const struct holding *h = ledger_find(ledger_of(d), req->container_id);
	const struct cgroup_quota found = quota_in_force(d->follow.quotas, req->cgroup);

	if (h ? !holding_has_own_cpus(h) : !request_exclusive_cpus(req))
		return 0;
	return found.limited ? (int64_t)found.quota_us : 0;
}

static void give_back_to_pod(struct daemon *d, const struct kept *l)
{
	auto_free char *uid = xstrdup(l->key);
	struct cgroup_quota found;
	struct err e;
	int rc = cgroup_read_quota(&d->follow.quotas->cpu, l->place, &found, &e);

	if (!rc && !found.limited)
		rc = cgroup_write_quota(&d->follow.quotas->cpu, l->place, l->was, &e);
	if (!rc || file_is_gone(rc))
		forget(d, uid);
	else
		note_failure(d->follow.quotas, uid, &e);
}

/* A pod whose spec is still to come may have resources of its own, which its quota is to bound. A
 * quota that is lifted already stays so. */
static bool lacks_facts(const struct daemon *d, const char *pod_uid)
{
	const struct holding *h =
		ledger_at_by_pod(ledger_of(d), ledger_first_of_pod(ledger_of(d), pod_uid));

	return !kept_find(lifted(d), pod_uid) && gather_awaits_facts(d, &h->request.pod);
}

/* The same within bounds: a kubelet may never serve the Pods API, and an API server may never
 * answer. */
static bool awaits_facts(const struct daemon *d, const char *pod_uid)
{
	const unsigned wait_ms = d->follow.facts_wait_ms;
	struct quotas *q = d->follow.quotas;

	if (kept_find(lifted(d), pod_uid))
		return false;
	if (!lacks_facts(d, pod_uid)) {
		q->facts = FACTS_NOT_AWAITED;
		return false;
	}
	if (q->facts == FACTS_NOT_AWAITED) {
		q->facts = FACTS_AWAITED;
		loop_timer_set(q->facts_late, wait_ms ? wait_ms : FACTS_WAIT_MS);
	}
	return q->facts == FACTS_AWAITED;
}

/* The containers with CPUs for themselves, and their pod's cgroup. */
static int lift(struct daemon *d, const char *pod_uid, struct err *e)
{
	const struct ledger *l = ledger_of(d);
	char pod[CGROUP_PATH_MAX];
	bool has_cgroup = false;
	int rc = 0;

	for (size_t i = ledger_first_of_pod(l, pod_uid); i < ledger_count(l) && !rc; i++) {
		const struct holding *h = ledger_at_by_pod(l, i);

		if (!text_equal(h->request.pod.uid, pod_uid))
			break;
		if (!h->request.cgroup || h->state == HOLDING_WAITING || !holding_has_own_cpus(h))
			continue;
		has_cgroup = has_cgroup || find_pods_cgroup(h, pod);
		rc = lift_container(d, h, e);
		if (file_is_gone(rc)) /* it is still to come, or has ended */
			rc = 0;
	}
	if (!rc && has_cgroup && ledger_pod_is_unlimited(l, pod_uid) && !awaits_facts(d, pod_uid))
		rc = lift_pod(d, pod_uid, pod, e);
	return file_is_gone(rc) ? 0 : rc;
}

static void see_to(struct daemon *d, const char *pod_uid)
{
	const struct kept *l = kept_find(lifted(d), pod_uid);
	struct err e;

	if (l && !(is_to_lift(d) && ledger_pod_is_unlimited(ledger_of(d), pod_uid)))
		give_back_to_pod(d, l);
	if (!is_to_lift(d))
		return;
	if (lift(d, pod_uid, &e))
		note_failure(d->follow.quotas, pod_uid, &e);
	else
		note_success(d->follow.quotas, pod_uid);
}

/* What is due */

static void quota_turn(void *ctx)
{
	struct daemon *d = ctx;
	struct quotas *q = d->follow.quotas;
	const uint64_t until = loop_monotonic_ns() + TURN_NS;

	while (q->due.nr && loop_monotonic_ns() < until) {
		auto_free char *uid = q->due.at[--q->due.nr];

		see_to(d, uid);
	}
	if (q->due.nr)
		loop_timer_set(q->turn, PAUSE_MS);
}

void quota_note_pod(struct daemon *d, const char *pod_uid)
{
	struct quotas *q = d->follow.quotas;

	if (!q || !*q->cpu.root)
		return;
	size_t i = text_position(q->due.at, q->due.nr, sizeof *q->due.at, pod_uid);
	if (i < q->due.nr && text_equal(q->due.at[i], pod_uid))
		return;
	*vec_insert(&q->due, i) = xstrdup(pod_uid);
	loop_timer_set(q->turn, 0);
}

void quota_note_all(struct daemon *d)
{
	const struct ledger *l = ledger_of(d);
	const char *before = "";

	if (!d->follow.quotas || !*d->follow.quotas->cpu.root)
		return;
	if (!is_to_lift(d)) {
		quota_give_back(d);
		return;
	}
	for (size_t i = 0; i < lifted(d)->nr; i++)
		quota_note_pod(d, lifted(d)->at[i].key);
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at_by_pod(l, i);

		if (holding_has_own_cpus(h) && !text_equal(h->request.pod.uid, before))
			quota_note_pod(d, before = h->request.pod.uid);
	}
}

void quota_note_unlifted_pod(struct daemon *d, const char *pod_uid)
{
	if (d->follow.quotas && is_to_lift(d) && !kept_find(lifted(d), pod_uid))
		quota_note_pod(d, pod_uid);
}

void quota_note_unlifted(struct daemon *d)
{
	const struct ledger *l = d->follow.quotas ? ledger_of(d) : NULL;

	for (size_t i = 0; l && i < ledger_count(l); i++)
		if (holding_has_own_cpus(ledger_at(l, i)))
			quota_note_unlifted_pod(d, ledger_at(l, i)->request.pod.uid);
}

bool quota_look_at_next(struct daemon *d)
{
	struct quotas *q = d->follow.quotas;

	if (!q || !*q->cpu.root)
		return false;
	const struct kept *l = kept_after(lifted(d), q->at ? q->at : "");
	free(q->at);
	q->at = l ? xstrdup(l->key) : NULL;
	if (l && !cgroup_is_there(&q->cpu, l->place))
		forget(d, q->at);
	else if (l)
		see_to(d, q->at);
	return l != NULL;
}

void quota_give_back(struct daemon *d)
{
	const struct ledger *l = ledger_of(d);
	struct quotas *q = d->follow.quotas;
	unsigned pods = 0;
	struct err e;

	if (!q || !*q->cpu.root)
		return;
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (h->request.cgroup && h->state != HOLDING_WAITING && holding_has_own_cpus(h) &&
			kubelet_sets_quotas(d, h))
			(void)give_back_to_container(d, h, &e);
	}
	for (const char *uid = "";;) {
		const struct kept *at = kept_after(lifted(d), uid);
		auto_free char *now = at ? xstrdup(at->key) : NULL;

		if (!at)
			break;
		give_back_to_pod(d, at);
		pods++;
		const struct kept *failed = kept_find(lifted(d), now);
		if (failed)
			uid = failed->key;
	}
	if (pods)
		log_line(LOG_INFO, "quota-given-back",
			"pods=%u text=\"pods with CPUs of their own have the kubelet's CFS quota again\"",
			pods);
}

/* What failed is tried again, and what was written over and over is seen to once more. */
static void try_again(void *ctx)
{
	struct daemon *d = ctx;

	for (size_t i = 0; i < d->follow.quotas->watched.nr; i++)
		d->follow.quotas->watched.at[i].file->rewrites = 0;
	quota_note_all(d);
}

static void stop_awaiting_facts(void *ctx)
{
	struct daemon *d = ctx;
	const struct ledger *l = ledger_of(d);
	const char *before = "";
	unsigned pods = 0;

	if (d->follow.quotas->facts != FACTS_AWAITED)
		return;
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at_by_pod(l, i);
		const char *uid = h->request.pod.uid;

		if (text_equal(uid, before) || !ledger_pod_is_unlimited(l, uid))
			continue;
		pods += lacks_facts(d, uid);
		before = uid;
	}
	d->follow.quotas->facts = pods ? FACTS_MISSING : FACTS_NOT_AWAITED;
	if (!pods)
		return;
	log_line(LOG_WARN, "quota-without-facts",
		"pods=%u text=\"the pods' CFS quotas are lifted, although neither the kubelet nor "
		"the API server says if the pods have resources of their own\" action=\"let the "
		"kubelet serve the Pods API or numafitd read pods (event=pods-api-waiting, "
		"event=apiserver-unreachable), or turn podsAPI.enabled and podsWatch.enabled off\"",
		pods);
	quota_note_unlifted(d);
}

static int find_tree(struct daemon *d, const char *root, struct cgroup_tree *cpu, struct err *e)
{
	struct cgroups c;

	if (!d->topo.this_machine)
		return err_set(e, ENOTSUP, "the machine is not this one: its cgroups are not here");
	int rc = cgroups_find(root, &c, e);
	if (rc)
		return rc;
	rc = cgroup_check_writable(&c.cpu, e);
	if (!rc)
		*cpu = c.cpu;
	return rc;
}

void quota_start(struct daemon *d, const char *root)
{
	struct quotas *q = xcalloc(1, sizeof *q);
	char why[512];
	struct err e;

	if (d->settings.mode != MODE_MANAGE && d->settings.mode != MODE_RELEASE) {
		free(q);
		return;
	}
	d->follow.quotas = q;
	watched_files_start(&q->watched, d->loop, on_quota_touched, d);
	q->turn = loop_timer_new(d->loop, quota_turn, d);
	q->again = loop_timer_new(d->loop, try_again, d);
	q->facts_late = loop_timer_new(d->loop, stop_awaiting_facts, d);
	if (find_tree(d, root, &q->cpu, &e)) {
		(void)text_copy(q->why_not, sizeof q->why_not, e.text);
		if (is_to_lift(d) && d->topo.this_machine)
			log_line(LOG_WARN, "quota-of-containers-alone",
				"reason=%s text=\"containers with CPUs of their own have no CFS "
				"quota, but their pods have\" action=\"let numafitd write the "
				"kubelet's cgroups, or set exclusiveCPUs.cfsQuota to keep\"",
				log_text(why, sizeof why, e.text));
	}
	if (d->settings.mode == MODE_MANAGE)
		quota_note_all(d);
}

void quota_stop(struct daemon *d)
{
	struct quotas *q = d->follow.quotas;

	if (!q)
		return;
	watched_files_stop(&q->watched);
	for (size_t i = 0; i < q->due.nr; i++)
		free(q->due.at[i]);
	vec_fini(&q->due);
	loop_timer_close(q->turn);
	loop_timer_close(q->again);
	loop_timer_close(q->facts_late);
	free(q->at);
	free(q->failed_pod);
	free(q);
	d->follow.quotas = NULL;
}

struct status_quota quota_status(const struct daemon *d)
{
	const struct quotas *q = d->follow.quotas;
	struct status_quota s = {.use = quota_use_words[d->settings.quota_use]};

	if (!q)
		return s;
	s.pods = lifted(d)->nr;
	s.rewritten = q->rewritten;
	s.problem = q->problem.code ? q->problem.text : NULL;
	s.containers_alone = is_to_lift(d) && *q->why_not ? q->why_not : NULL;
	return s;
}
