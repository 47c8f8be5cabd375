/* Pods that are known container by container: decided and held as a whole. */
#include "engine_state.h"

#include <numafit/shares.h>
#include <numafit/text.h>

#include <errno.h>

/* The pool moves out of the way of all parts at once; those without CPUs of their own get it. */
static void make_room_for_parts(
	const struct engine *g, struct record_part *parts, size_t nr, struct cpuset *pool)
{
	struct cpuset own = {0};

	for (size_t i = 0; i < nr; i++)
		if (parts[i].decision.exclusive)
			own = cpuset_or(own, &parts[i].decision.cpus);
	*pool = ledger_pool_without(g->ledger, &own);
	for (size_t i = 0; i < nr; i++)
		if (!parts[i].decision.exclusive)
			parts[i].decision.cpus = *pool;
	for (size_t i = 0; i < nr && !engine_places(g); i++)
		parts[i].decision.placed_by = PLACED_IN_SHADOW;
}

enum pod_apart engine_apart(const struct engine *g, const struct request *req)
{
	const struct holding *h;

	for (size_t i = 0; i < g->apart.nr; i++)
		if (text_equal(g->apart.at[i].sandbox_id, req->pod.sandbox_id))
			return g->apart.at[i].why;
	h = ledger_find_in_sandbox(g->ledger, req->pod.sandbox_id); /* from an earlier life */
	return h ? h->decision.apart : POD_APART_NOT;
}

void engine_forget_apart(struct engine *g, const char *sandbox_id)
{
	for (size_t i = 0; i < g->apart.nr; i++) {
		if (!text_equal(g->apart.at[i].sandbox_id, sandbox_id))
			continue;
		free(g->apart.at[i].sandbox_id);
		vec_remove(&g->apart, i);
		return;
	}
}

/* The pod may start, and nothing is held for it. */
static void let_apart(
	struct engine *g, const struct pod *pod, enum pod_apart why, struct decision *d)
{
	const enum topology_policy policy = d->policy;

	*d = (struct decision){.admit = true, .policy = policy, .apart = why};
	(void)text_copy(d->message, sizeof d->message, pod_apart_texts[why]);
	engine_forget_apart(g, pod->sandbox_id);
	if (g->apart.nr == APART_PODS_MAX)
		engine_forget_apart(g, g->apart.at[0].sandbox_id);
	*vec_push(&g->apart) = (struct apart_pod){xstrdup(pod->sandbox_id), why};
}

/* What the pod was given, for as long as it is there. */
static void hold_whole_pod(struct engine *g, int64_t now_ms, const struct pod *pod,
	const struct decision *decisions, struct decision *d)
{
	size_t nr = admit_nr_parts(pod, decisions);
	struct record_part *parts = arena_array(&g->arena, nr, sizeof *parts);
	struct record r = engine_record_of(g, now_ms, RECORD_HOLD, "run-pod", pod->sandbox_id);
	struct err e;

	if (!parts) {
		let_apart(g, pod, POD_APART_TOO_LARGE, d);
		return;
	}
	record_parts(pod, decisions, nr, parts);
	r.pod = pod;
	r.parts = parts;
	r.nr_parts = nr;
	r.in_one_line = g->s->topology_scope != SCOPE_POD;
	make_room_for_parts(g, parts, r.nr_parts, &r.pool);
	int rc = engine_change(g, &r, false, &e);
	if (rc == -EMSGSIZE)
		let_apart(g, pod, POD_APART_TOO_LONG, d);
	else if (rc < 0)
		(void)decision_refuse(
			d, REFUSED_BY_DAEMON, "UnexpectedAdmissionError", "%s", e.text);
}

void engine_record_pod_refusal(
	struct engine *g, int64_t now_ms, const struct pod *pod, const struct decision *d)
{
	const struct request whole = {.container_id = pod->sandbox_id,
		.ask.name = "",
		.pod = pod_identity(pod),
		.cpus = "",
		.mems = ""};
	struct record r = engine_record_of(g, now_ms, RECORD_REFUSE, "run-pod", pod->sandbox_id);

	r.request = &whole;
	r.pod = pod->container ? pod : NULL;
	r.decision = d;
	(void)engine_change(g, &r, false, NULL); /* kept for explain, if it can be */
}

/* Only sums are known: what cannot fit in any way is refused, nothing is held. */
static void judge_totals(struct engine *g, int64_t now_ms, const struct pod *pod, struct budget *b,
	struct decision *d)
{
	bool whole = b->left == b->given;
	struct budget rest = whole ? *b : budget_all_of(b->left);

	arena_init_fixed(&g->arena, g->work, ADMIT_ARENA_BYTES);
	admit(&(struct admit_question){g->ledger, g->s, .pod = pod}, &rest, &g->arena, d, NULL);
	d->steps = whole ? 0 : rest.given;
	if (!d->admit)
		engine_record_pod_refusal(g, now_ms, pod, d);
	else if (pod->apart)
		let_apart(g, pod, pod->apart, d);
}

void engine_run_pod(struct engine *g, int64_t now_ms, const struct pod *pod, struct decision *d)
{
	struct cpuset before = ledger_view(g->ledger)->pool;
	struct budget budget = budget_of(g->s->merge_visit_budget);
	struct decision *decisions = NULL;

	if (pod->apart == POD_APART_CLAIMS || shares_has_pod(g->ledger, pod->uid)) {
		d->policy = pod_policy(g->s, pod);
		let_apart(g, pod, POD_APART_CLAIMS, d);
		return;
	}
	if (!pod->container || !*pod->uid) { /* without a uid no container could claim its part */
		const struct pod sums = pod_identity(pod);

		judge_totals(g, now_ms, &sums, &budget, d);
		return;
	}
	/* where its sandbox is started anew: what it had before is not coming back */
	for (const struct holding *h; (h = ledger_find_of_pod(g->ledger, pod->uid));)
		engine_drop_for_good(g, now_ms, "replaced", h);
	arena_init_fixed(&g->arena, g->work, ADMIT_ARENA_BYTES);
	admit(&(struct admit_question){g->ledger, g->s, .pod = pod}, &budget, &g->arena, d,
		&decisions);
	if (!d->admit && d->apart) { /* it takes too much to decide it as a whole */
		struct pod unknown = pod_identity(pod);

		unknown.apart = d->apart;
		judge_totals(g, now_ms, &unknown, &budget, d);
	} else if (!d->admit) {
		engine_record_pod_refusal(g, now_ms, pod, d);
	} else if (decisions) {
		hold_whole_pod(g, now_ms, pod, decisions, d);
	}
	engine_update_later(g, &before);
}
