/* Pods that are known container by container: decided and held as a whole. */
#include "engine_state.h"

#include <numafit/text.h>

#include <errno.h>

/* A pod whose sandbox is started anew: what it had before is not coming back. */
static void release_older_sandboxes(struct engine *g, int64_t now_ms, const struct pod *pod)
{
	for (const struct holding *h; (h = ledger_find_of_pod(g->ledger, pod->uid));)
		engine_drop_for_good(g, now_ms, "replaced", h);
}

static struct request request_of_part(
	const struct pod *pod, const struct container_ask *c, unsigned place)
{
	struct request req = {
		.container_id = "",
		.container_name = c->name,
		.kind = c->kind,
		.place = place,
		.pod = *pod,
		.cpu_milli = c->cpu_milli,
		.cpus = "",
		.mems = "",
	};

	req.nr_memory = container_ask_memory(c, req.memory);
	return req;
}

/* What a whole pod was given, as the parts of a record. NULL: the arena's limit is reached. */
static struct record_part *parts_of(
	struct engine *g, const struct pod *pod, const struct decision *decisions)
{
	struct record_part *parts = arena_array(&g->arena, pod->ask->nr, sizeof *parts);

	for (unsigned i = 0; parts && i < pod->ask->nr; i++)
		parts[i] = (struct record_part){
			request_of_part(pod, &pod->ask->container[i], i), decisions[i]};
	return parts;
}

/* The pool moves out of the way of all parts at once; those without CPUs of their own get it. */
static void make_room(
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
}

static void hold_pod(struct engine *g, int64_t now_ms, const struct pod *pod,
	const struct decision *decisions, struct decision *d)
{
	struct record_part *parts = d->admit ? parts_of(g, pod, decisions) : NULL;
	const struct err too_many = {
		ENOMEM, "the pod has too many containers to be decided as a whole"};
	const struct request whole = {.container_id = pod->sandbox_id,
		.container_name = "",
		.pod = *pod,
		.cpus = "",
		.mems = ""};
	if (d->admit && !parts)
		decision_refuse_unrecorded(d, &too_many);
	struct record r = {
		.time_ms = now_ms,
		.op = d->admit ? RECORD_HOLD : RECORD_REFUSE,
		.cause = "run-pod",
		.container_id = pod->sandbox_id,
		.request = d->admit ? NULL : &whole,
		.decision = d->admit ? NULL : d,
		.parts = parts,
		.pool = *ledger_pool(g->ledger),
	};
	struct err e;

	r.nr_parts = r.parts ? pod->ask->nr : 0;
	if (d->admit)
		make_room(g, parts, r.nr_parts, &r.pool);
	if (engine_change(g, &r, false, &e) < 0 && d->admit)
		decision_refuse_unrecorded(d, &e);
}

/* Only sums are known: what cannot fit in any way is refused, nothing is held. */
static void judge_totals(
	struct engine *g, int64_t now_ms, const struct pod *pod, struct decision *d)
{
	arena_init_fixed(&g->arena, g->work, ADMIT_ARENA_BYTES);
	admit_totals(g->ledger, g->s, pod, &g->arena, d);
	if (!d->admit)
		hold_pod(g, now_ms, pod, NULL, d);
}

void engine_run_pod(struct engine *g, int64_t now_ms, const struct pod *pod, struct decision *d)
{
	struct cpuset before = *ledger_pool(g->ledger);
	struct decision *decisions = NULL;

	if (!pod->ask || !*pod->uid) { /* without a uid no container could claim its part */
		judge_totals(g, now_ms, pod, d);
		return;
	}
	release_older_sandboxes(g, now_ms, pod);
	arena_init_fixed(&g->arena, g->work, ADMIT_ARENA_BYTES);
	admit_pod(g->ledger, g->s, pod, &g->arena, d, &decisions);
	if (!d->admit || decisions)
		hold_pod(g, now_ms, pod, decisions, d);
	engine_tell_later(g, &before);
}
