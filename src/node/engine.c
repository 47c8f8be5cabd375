/* Events in, decisions out: one container's life. */
#include "engine_state.h"

#include <numafit/bounds.h>
#include <numafit/text.h>

struct engine *engine_new(
	const struct topo *t, const struct settings *s, const struct engine_hooks *hooks)
{
	struct engine *g = xcalloc(1, sizeof *g);

	g->t = t;
	g->s = s;
	g->hooks = *hooks;
	g->ledger = ledger_new(t, s);
	g->work = xcalloc(1, ADMIT_ARENA_BYTES);
	return g;
}

void engine_free(struct engine *g)
{
	if (!g)
		return;
	while (g->apart.nr)
		engine_forget_apart(g, g->apart.at[0].sandbox_id);
	vec_fini(&g->apart);
	for (unsigned i = 0; i < ENDED_MAX; i++)
		free(g->ended[i]);
	ledger_free(g->ledger);
	free(g->work);
	free(g);
}

const struct ledger *engine_ledger(const struct engine *g)
{
	return g->ledger;
}

int engine_settings_changed(struct engine *g, struct err *e)
{
	const struct cpuset before = ledger_view(g->ledger)->pool;
	int rc = ledger_settings_changed(g->ledger, e);

	engine_update_later(g, &before);
	return rc;
}

bool engine_has_ended(const struct engine *g, const char *container_id)
{
	for (unsigned i = 0; i < ENDED_MAX; i++)
		if (g->ended[i] && text_equal(g->ended[i], container_id))
			return true;
	return false;
}

static void note_end(struct engine *g, const char *container_id)
{
	if (engine_has_ended(g, container_id)) /* its removal comes behind its stop */
		return;
	free(g->ended[g->next_ended]);
	g->ended[g->next_ended] = xstrdup(container_id);
	g->next_ended = (g->next_ended + 1) % ENDED_MAX;
}

void engine_release(struct engine *g, int64_t now_ms, const char *cause, const char *container_id,
	struct update_list *ups)
{
	struct cpuset before = ledger_view(g->ledger)->pool;

	note_end(g, container_id);
	engine_drop(g, now_ms, cause, container_id, true);
	engine_collect_updates(g, &before, NULL, ups);
}

void engine_forget(struct engine *g, int64_t now_ms, const char *cause, const char *container_id)
{
	struct cpuset before = ledger_view(g->ledger)->pool;

	note_end(g, container_id);
	engine_drop(g, now_ms, cause, container_id, true);
	engine_update_later(g, &before);
}

void engine_release_pod(struct engine *g, int64_t now_ms, const char *cause, const struct pod *pod)
{
	struct cpuset before = ledger_view(g->ledger)->pool;

	for (const struct holding *h; (h = ledger_find_in_sandbox(g->ledger, pod->sandbox_id));)
		engine_drop_for_good(g, now_ms, cause, h);
	engine_forget_apart(g, pod->sandbox_id);
	engine_pod_is_gone(g, now_ms, cause, pod->uid);
	if (ledger_view(g->ledger)->bounds)
		bounds_forget_pod(ledger_view(g->ledger)->bounds, pod->uid);
	engine_update_later(g, &before);
}

int engine_note_kept(struct engine *g, int64_t now_ms, enum kept_kind kind, const char *key,
	const struct kept_note *n, struct err *e)
{
	struct record r = engine_record_of(g, now_ms, RECORD_QUOTA, "", key);

	engine_record_kept(&r, kind, key, n);
	r.cause = record_op_words[r.op];
	return engine_change(g, &r, !*n->was, e);
}

void engine_take_back(struct engine *g, int64_t now_ms, const struct request *req, const char *why,
	struct decision *d)
{
	struct cpuset before = ledger_view(g->ledger)->pool;

	engine_drop(g, now_ms, "not-in-force", req->container_id, true);
	(void)decision_refuse(d, REFUSED_BY_DAEMON, "UnexpectedAdmissionError", "%s", why);
	engine_settle(g, now_ms, "create", req, d, false);
	engine_update_later(g, &before);
}

void engine_take_back_pod(struct engine *g, int64_t now_ms, const struct pod *pod, const char *why,
	struct decision *d)
{
	engine_release_pod(g, now_ms, "not-in-force", pod);
	(void)decision_refuse(d, REFUSED_BY_DAEMON, "UnexpectedAdmissionError", "%s", why);
	engine_record_pod_refusal(g, now_ms, pod, d);
}

void engine_create(struct engine *g, int64_t now_ms, struct request *req, struct decision *d,
	struct update_list *ups)
{
	struct cpuset before = ledger_view(g->ledger)->pool;
	struct budget budget = budget_of(g->s->merge_visit_budget);

	req->apart = engine_apart(g, req);
	req->ask.has_devices = request_has_devices(req);
	engine_drop(g, now_ms, "replaced", req->container_id, true);
	if (!engine_inherit(g, now_ms, req, d)) {
		engine_bound_by_pod(g, req);
		engine_decide(g, req, &budget, d);
	}
	engine_settle(g, now_ms, "create", req, d, false);
	if (d->admit)
		engine_collect_updates(g, &before, req->container_id, ups);
	else /* an error to the runtime, which carries no updates */
		engine_update_later(g, &before);
}
