/* Claims that are prepared, unprepared and looked at again: each a task, from the kubelet's call to
 * its answer. */
#include <dra-driver/driver_state.h>

#include <io/fault.h>
#include <io/log.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/shares.h>
#include <numafit/text.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TASKS_MAX = 4096,
	AGAIN_MS = 1000,    /* after a failure that may pass: a claim is read so often at most, */
	ROOM_AGAIN_MS = 20, /* also after a change of the ledger */
	STOPPING_MS = 100,  /* a container that is to have ended is looked for that often, */
	UNPREPARE_MS = 10 * 1000, /* and at most so long */
	REFRESH_MS = 5 * 60 * 1000,
	REFRESH_AGAIN_MS = 30 * 1000,
	RESTORE_MS =
		24 * 60 * 60 * 1000, /* its containers run without CPUs of their own meanwhile */
	RESTORE_AGAIN_MS = 3 * 1000,
	ROUND_MS = 10 * 60 * 1000 /* all claims that are held are read again */
};

/* Tasks */

static const struct {
	const char *held, *failed; /* names of log events */
	uint64_t most_ms;          /* it is answered at the latest; 0: claims.prepareWait */
	uint64_t again_ms;         /* at least, after a failure that may pass: nobody waits */
} kind_of[] = {
	[DRA_PREPARE] = {"claim-prepared", "claim-not-prepared", 0, 0},
	[DRA_UNPREPARE] = {NULL, "claim-not-unprepared", UNPREPARE_MS, 0},
	[DRA_REFRESH] = {"claim-read-again", "claim-not-read", REFRESH_MS, REFRESH_AGAIN_MS},
	[DRA_RESTORE] = {"claim-restored", "claim-not-restored", RESTORE_MS, RESTORE_AGAIN_MS},
};

static void look_soon(struct dra *v)
{
	loop_timer_set(v->look, 1); /* it finds out when it is to look again */
}

static void task_free(struct dra_task *t)
{
	claim_get_cancel(t->get);
	free(t->ns);
	free(t->uid);
	free(t->name);
	free(t);
}

static void task_end(struct dra_task *t)
{
	struct dra *v = t->of;

	for (size_t i = 0; i < v->tasks.nr; i++)
		if (v->tasks.at[i] == t) {
			vec_remove(&v->tasks, i);
			break;
		}
	task_free(t);
}

static void task_fail(struct dra_task *t, const char *why)
{
	char ns[256], name[512], text[1100], full[600];
	struct text to;

	log_line(LOG_WARN, kind_of[t->doing].failed, "namespace=%s claim=%s error=%s",
		log_text(ns, sizeof ns, t->ns), log_text(name, sizeof name, t->name),
		log_text(text, sizeof text, why));
	t->of->failed += t->job != NULL;
	text_init(&to, full, sizeof full);
	text_add(&to, "%s%s", text_behind(why, "numafit: ") ? "" : "numafit: ", why);
	if (t->job)
		dra_failed(t->job, full);
	task_end(t);
}

static void task_wait(struct dra_task *t, uint64_t ms, const char *why)
{
	(void)text_copy(t->why, sizeof t->why, why);
	ms = number_max(ms, kind_of[t->doing].again_ms);
	t->next_ms = loop_monotonic_ms() + ms;
	look_soon(t->of);
}

/* What the kubelet wants last counts, and all else that is under way for the claim ends: a Prepare
 * would hold what nobody gives back, and an Unprepare that waits would take it from the pod that
 * comes. A kubelet that was started anew does not wait for the answers to the one before. */
static void end_all_else(struct dra *v, enum dra_doing doing, const char *uid)
{
	for (size_t i = v->tasks.nr; i-- > 0;) {
		struct dra_task *t = v->tasks.at[i];

		if (t->doing == doing || !text_equal(t->uid, uid))
			continue;
		if (t->job)
			dra_failed(t->job, doing == DRA_PREPARE
						   ? "numafit: the claim is prepared meanwhile"
						   : "numafit: the claim is unprepared meanwhile");
		task_end(t);
	}
}

void dra_begin(
	struct dra *v, enum dra_doing doing, struct dra_job *job, const struct dra_claim_ref *ref)
{
	const uint64_t now = loop_monotonic_ms(), most = kind_of[doing].most_ms;
	struct dra_task *t;

	if (v->tasks.nr == TASKS_MAX) {
		if (job)
			dra_failed(job,
				"numafit: too many claims are being prepared; the kubelet tries again");
		return;
	}
	if (doing == DRA_PREPARE || doing == DRA_UNPREPARE)
		end_all_else(v, doing, ref->uid);
	t = xcalloc(1, sizeof *t);
	*t = (struct dra_task){.of = v,
		.doing = doing,
		.job = job,
		.ns = xstrdup(ref->ns),
		.uid = xstrdup(ref->uid),
		.name = xstrdup(ref->name),
		.since_ms = now,
		.until_ms = now + (most ? most : v->o.settings->claims_prepare_ms),
		.next_ms = now};
	*vec_push(&v->tasks) = t;
	look_soon(v);
}

void dra_end_all(struct dra *v, const char *text)
{
	while (v->tasks.nr) {
		struct dra_task *t = v->tasks.at[v->tasks.nr - 1];

		if (t->job)
			dra_failed(t->job, text);
		task_end(t);
	}
}

/* Prepare */

/* The share's NUMA node, by its kernel id. */
static unsigned id_of_node(const struct dra *v, const struct holding *h)
{
	return v->o.topo->ids.id[nodeset_next(h->request.ask.share_of, 0)];
}

static int write_cdi(struct dra *v, const struct resource_claim *c, struct err *e)
{
	unsigned node[CLAIM_SHARES_MAX] = {0};

	for (size_t i = 0; i < c->nr; i++) {
		const struct holding *h = shares_find(dra_ledger(v), c->uid, i);

		if (!h)
			return err_set(e, ENOENT, "a share of it is held no more");
		node[i] = id_of_node(v, h);
	}
	return cdi_write(&v->cdi, c, node, e);
}

/* What one share is called to the kubelet, in memory of the caller. */
struct named_share {
	char request[256], cdi[SHARE_CDI_MAX];
	const char *request_list, *cdi_list;
};

static void answer(struct dra_task *t, const struct resource_claim *c)
{
	struct named_share *name = xcalloc(c->nr, sizeof *name);
	struct dra_device *device = xcalloc(c->nr, sizeof *device);

	for (size_t i = 0; i < c->nr; i++) {
		const struct claim_share *s = &c->share[i];
		struct text request;

		/* of a list of alternatives the request counts, and not which one it came to */
		text_init(&request, name[i].request, sizeof name[i].request);
		text_put(&request, s->request, strcspn(s->request, "/"));
		name[i].request_list = name[i].request;
		name[i].cdi_list = share_cdi(c->uid, i, name[i].cdi);
		device[i] = (struct dra_device){
			.request = &name[i].request_list,
			.nr_requests = 1,
			.pool = s->pool,
			.device = s->device,
			.cdi = &name[i].cdi_list,
			.nr_cdi = 1,
			.share_id = s->share_id,
		};
	}
	fault_point(FAULT_PREPARED);
	dra_prepared(t->job, device, c->nr);
	free(device);
	free(name);
}

static void log_prepared(const struct dra_task *t, const struct resource_claim *c)
{
	const struct ledger *l = dra_ledger(t->of);
	struct cpuset cpus = {0};
	struct nodeset nodes = {0};
	char list[CPUSET_TEXT_MAX], ids[CPUSET_TEXT_MAX], name[512];

	for (size_t i = 0; i < c->nr; i++) {
		const struct holding *h = shares_find(l, c->uid, i);

		cpus = h ? cpuset_or(cpus, &h->decision.cpus) : cpus;
		nodes = h ? nodeset_or(nodes, h->request.ask.share_of) : nodes;
	}
	log_line(LOG_INFO, kind_of[t->doing].held,
		"namespace=%s claim=%s cpus=%s nodes=%s took_ms=%llu", c->ns,
		log_text(name, sizeof name, c->name), cpuset_format(&cpus, list, sizeof list),
		nodeset_format(nodes, &t->of->o.topo->ids, ids, sizeof ids),
		(unsigned long long)(loop_monotonic_ms() - t->since_ms));
}

/* Its files go first: a claim that has some and is not held was lost with the journal
 * (DRA_RESTORE), whenever the daemon is killed. */
static int let_go(struct dra *v, const char *uid, struct err *e)
{
	int rc = engine_may_unprepare(dra_engine(v), uid, e);

	if (!rc)
		rc = cdi_remove(&v->cdi, uid, e);
	return rc ? rc : engine_unprepare(dra_engine(v), loop_wall_ms(), uid, e);
}

/* It is held. What others still run on must be taken from them before its containers come. */
static void claim_held(struct dra_task *t, const struct resource_claim *c)
{
	struct dra *v = t->of;
	struct err e;
	int rc = v->handler.held(v->handler.ctx, &e);

	if (!rc)
		rc = write_cdi(v, c, &e);
	if (rc) {
		task_wait(t, AGAIN_MS, e.text);
		return;
	}
	log_prepared(t, c);
	if (t->job)
		answer(t, c);
	v->prepared += t->job != NULL;
	v->waited_ms += t->job ? loop_monotonic_ms() - t->since_ms : 0;
	task_end(t);
}

static void claim_refused(
	struct dra_task *t, const struct resource_claim *c, const struct decision *d)
{
	char why[512];

	(void)shares_no_room(dra_ledger(t->of), t->of->o.settings, c, d, why, sizeof why);
	if (engine_could_hold(dra_engine(t->of), c))
		task_wait(t, AGAIN_MS, why);
	else
		task_fail(t, why);
}

static bool is_ours(const struct dra *v, const struct resource_claim *c)
{
	for (size_t i = 0; i < c->nr; i++)
		if (!text_equal(c->share[i].pool, v->o.node_name))
			return false;
	return true;
}

/* A claim that is there no more, not allocated, or not on this node, while it is held: its
 * Unprepare was missed, or never came. */
static void claim_gone(struct dra_task *t, const char *text)
{
	struct dra *v = t->of;
	char why[1100];
	struct err e;

	if (t->doing == DRA_PREPARE) {
		task_fail(t, text);
		return;
	}
	if (let_go(v, t->uid, &e)) {
		t->gone = true;
		task_wait(t, AGAIN_MS, e.text);
		return;
	}
	log_line(LOG_INFO, "claim-gone",
		"namespace=%s claim=%s text=\"what was held for it is given back\" reason=%s",
		t->ns, t->name, log_text(why, sizeof why, text));
	v->handler.given_back(v->handler.ctx);
	task_end(t);
}

/* CPUs and memory would be held that no container gets: shares are given by the uids of pods. Of a
 * claim that is held, the containers may be about to end (the controller has taken its pod out of
 * reservedFor by then), and its Unprepare follows. */
static void claim_unreserved(struct dra_task *t, const struct resource_claim *c)
{
	char who[320], why[640];

	if (!c->nr_others) {
		claim_gone(t, "it is reserved for no pod");
		return;
	}
	(void)snprintf(who, sizeof who, "%.63s%s%.63s %.128s", c->other.resource,
		*c->other.group ? "." : "", c->other.group, c->other.name);
	(void)snprintf(why, sizeof why,
		"it is reserved for %s and no pod, and numafit gives CPUs and memory to claims of pods "
		"alone: name the claim, or a template, in spec.resourceClaims of the pods",
		who);
	claim_gone(t, why);
}

static void claim_read(struct dra_task *t, const struct resource_claim *c)
{
	struct decision d;
	struct err e;

	fault_point(FAULT_TO_PREPARE);
	if (!is_ours(t->of, c)) {
		claim_gone(t, "it is allocated on another node's devices");
		return;
	}
	if (!c->nr && !c->nr_looked_at) {
		claim_gone(t, "it is allocated no device of driver " CLAIM_DRIVER);
		return;
	}
	if (!c->nr_pods && t->doing != DRA_REFRESH) {
		claim_unreserved(t, c);
		return;
	}
	int rc = engine_prepare(dra_engine(t->of), loop_wall_ms(), c, &d, &e);
	if (!rc)
		claim_held(t, c);
	else if (rc == -EPERM)
		claim_refused(t, c, &d);
	else if (rc == -EINVAL || rc == -E2BIG)
		task_fail(t, e.text);
	else
		task_wait(t, AGAIN_MS, e.text);
}

static void on_claim(void *ctx, const struct claim_answer *a)
{
	struct dra_task *t = ctx;

	t->get = NULL;
	switch (a->got) {
	case CLAIM_GOT:
		claim_read(t, &a->claim);
		break;
	case CLAIM_GONE:
		claim_gone(t, a->text);
		break;
	case CLAIM_NOT_ALLOCATED: /* a scheduler may do so; what was held is for nobody */
		if (t->doing == DRA_PREPARE)
			task_wait(t, AGAIN_MS, a->text);
		else
			claim_gone(t, a->text);
		break;
	case CLAIM_NOT_NOW:
		task_wait(t, a->after_ms > AGAIN_MS ? a->after_ms : AGAIN_MS, a->text);
		break;
	case CLAIM_REFUSED:
	case NR_CLAIM_GOT:
	default:
		task_fail(t, a->text);
	}
}

static void read_claim(struct dra_task *t)
{
	t->read_ms = loop_monotonic_ms();
	if (!t->of->api)
		task_wait(t, AGAIN_MS, "the API server cannot be asked yet");
	else
		t->get = claim_get(t->of->api, t->ns, t->name, t->uid, t, on_claim);
}

/* Unprepare */

static void unprepare(struct dra_task *t)
{
	struct dra *v = t->of;
	struct err e;

	if (let_go(v, t->uid, &e)) {
		task_wait(t, STOPPING_MS, e.text);
		return;
	}
	v->handler.given_back(v->handler.ctx);
	dra_unprepared(t->job);
	v->unprepared++;
	task_end(t);
}

/* The turn */

static void look_at_task(struct dra_task *t, uint64_t now_ms)
{
	if (now_ms >= t->until_ms)
		task_fail(t, *t->why ? t->why : "the API server does not answer");
	else if (t->get || t->next_ms > now_ms)
		; /* later */
	else if (t->doing == DRA_UNPREPARE)
		unprepare(t);
	else
		read_claim(t);
}

void dra_look(void *ctx)
{
	struct dra *v = ctx;
	const uint64_t now = loop_monotonic_ms();
	uint64_t next = UINT64_MAX;

	for (size_t i = v->tasks.nr; i-- > 0;) /* each can end, and none comes */
		look_at_task(v->tasks.at[i], now);
	for (size_t i = 0; i < v->tasks.nr; i++) {
		const struct dra_task *t = v->tasks.at[i];
		const uint64_t due = t->get || t->until_ms < t->next_ms ? t->until_ms : t->next_ms;

		next = due < next ? due : next;
	}
	if (next != UINT64_MAX)
		loop_timer_set(v->look, next > now ? next - now : 1);
}

void dra_note_change(struct dra *v)
{
	const uint64_t soon = loop_monotonic_ms() + ROOM_AGAIN_MS;
	bool any = false;

	if (!v)
		return;
	if (v->publisher)
		slice_publisher_changed(v->publisher);
	for (size_t i = 0; i < v->tasks.nr; i++) {
		struct dra_task *t = v->tasks.at[i];

		const uint64_t may_ms = t->doing == DRA_UNPREPARE ? 0 : t->read_ms + AGAIN_MS;
		const uint64_t then = may_ms > soon ? may_ms : soon;

		if ((t->doing == DRA_REFRESH && !t->gone) || t->get || t->next_ms <= then)
			continue;
		t->next_ms = then;
		any = true;
	}
	if (any)
		look_soon(v);
}

/* Reading again */

static bool is_on_its_way(const struct dra *v, const char *uid)
{
	for (size_t i = 0; i < v->tasks.nr; i++)
		if (text_equal(v->tasks.at[i]->uid, uid))
			return true;
	return false;
}

static void refresh(struct dra *v, const struct holding *h)
{
	const struct dra_claim_ref ref = {
		h->request.pod.ns, h->request.pod.uid, h->request.pod.name};

	if (!is_on_its_way(v, ref.uid))
		dra_begin(v, DRA_REFRESH, NULL, &ref);
}

void dra_note_create(struct dra *v, const struct request *req)
{
	const struct holding *h = v && req->shares ? shares_unknown_pod(dra_ledger(v), req) : NULL;

	if (h)
		refresh(v, h);
}

void dra_note_pod(struct dra *v, const struct pod *pod)
{
	const struct ledger *l = v ? dra_ledger(v) : NULL;

	for (size_t i = 0; l && ledger_view(l)->nr_shares && i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (holding_is_share(h) && !h->request.for_one_pod &&
			text_equal(h->request.pod.ns, pod->ns) &&
			!text_has_word(h->request.for_pods, pod->uid))
			refresh(v, h);
	}
}

/* The claim that comes next in order of uid, by its first share. */
static const struct holding *next_claim(const struct dra *v)
{
	const struct ledger *l = dra_ledger(v);
	const struct holding *next = NULL;

	for (size_t i = 0; ledger_view(l)->nr_shares && i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);

		if (holding_is_share(h) && strcmp(h->request.pod.uid, v->refreshed) > 0 &&
			(!next || strcmp(h->request.pod.uid, next->request.pod.uid) < 0))
			next = h;
	}
	return next;
}

void dra_refresh_next(struct dra *v)
{
	const uint64_t now = loop_monotonic_ms();
	const struct holding *h;

	if (!v->api || now < v->round_ms || !v->handler.knows_what_runs(v->handler.ctx))
		return;
	h = next_claim(v);
	(void)text_copy(v->refreshed, sizeof v->refreshed, h ? h->request.pod.uid : "");
	if (h)
		refresh(v, h);
	else
		v->round_ms = now + ROUND_MS;
}
