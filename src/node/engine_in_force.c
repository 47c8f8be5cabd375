/* What a container really runs with, where the runtime may have forgotten it. */
#include "engine_state.h"

#include <string.h>

struct cpuset engine_confined_to(const struct engine *g, const struct request *req)
{
	const struct cpuset cpus = placement_in_force(g->t, g->s, req).cpus;

	return cpuset_within(&g->t->cpus, &cpus) ? (struct cpuset){0} : cpus;
}

bool engine_suits(const struct engine *g, const struct update *want, const struct cpuset *cpus,
	struct nodeset mems)
{
	if (want->untouched || want->moving)
		return true;
	bool has_any = want->any_wider && nodeset_empty(mems) &&
		       nodeset_equal(want->mems, g->t->nodes_with_memory);

	if (!has_any && !nodeset_equal(mems, want->mems))
		return false;
	if (want->any_wider)
		return cpuset_empty(cpus) || cpuset_within(&want->in_force, cpus);
	return cpuset_equal(cpus, &want->cpus);
}

bool engine_runs_as(const struct engine *g, const struct request *req, const struct update *want)
{
	struct cpuset cpus;
	struct nodeset mems;

	return !cpuset_parse(&cpus, req->cpus, strlen(req->cpus), NULL) &&
	       !nodeset_parse(&mems, &g->t->ids, req->mems, strlen(req->mems), NULL) &&
	       engine_suits(g, want, &cpus, mems);
}

/* CPUs of its own that are asked for. */
static unsigned own_cpus(const struct engine *g, const struct request *req)
{
	return g->s->cpu_manager_policy == MANAGER_STATIC ? request_exclusive_cpus(req) : 0;
}

/* Whether the cpuset may be that of the container's creation: without an annotation it had none. */
static bool has_first_cpuset(
	const struct engine *g, const struct request *req, const struct placement *said)
{
	if (!said)
		return !*req->cpus;
	const struct holding *h = ledger_find(g->ledger, req->container_id);
	bool exact, wide = h && ledger_is_bounded(g->ledger, h, &exact);
	struct update then = {.cpus = said->cpus, .mems = said->mems};

	if (said->exclusive) {
		then.cpus = wishes_shown_cpus(&req->ask.wishes, g->t, &said->cpus);
		wide = req->ask.wishes.cpus == WISH_CPUS_OWN_SHARED;
	}
	if (wide) {
		then.in_force = then.cpus;
		then.any_wider = true;
	}
	return engine_runs_as(g, req, &then);
}

/* The same of the number of CPUs of its own, which the annotation has, too. */
static bool has_first_number(
	const struct engine *g, const struct request *req, const struct placement *said)
{
	return !said || own_cpus(g, req) == (said->exclusive ? cpuset_count(&said->cpus) : 0);
}

/* A runtime that has forgotten knows by halves, once a cpuset was set again: what is neither as
 * at first nor as in the ledger was changed since, and is news. */
bool engine_knows_better(
	const struct engine *g, const struct request *req, const struct placement *said)
{
	const struct holding *h = ledger_find(g->ledger, req->container_id);

	if (!h || req->in_force == IN_FORCE_SHOWN)
		return false;
	const struct update want = engine_placement_of(g, h);
	bool first = has_first_cpuset(g, req, said);
	struct request known = *req;
	engine_learn(h, &known);
	bool same_number =
		!decision_is_booked(&h->decision) || own_cpus(g, &known) == own_cpus(g, &h->request);
	return (first || engine_runs_as(g, req, &want)) &&
	       (same_number || ((said || first) && has_first_number(g, &known, said)));
}

static bool is_as_held(const struct engine *g, const struct request *req, const struct holding *h)
{
	const struct update want = engine_placement_of(g, h);
	const struct nodeset mems = placement_in_force(g->t, g->s, req).mems;
	const struct cpuset cpus = engine_confined_to(g, req);
	bool as_left = cpuset_equal(&cpus, &h->decision.left_on) &&
		       (nodeset_empty(mems) || nodeset_equal(mems, h->decision.mems));
	bool same = decision_is_left(&h->decision) ? as_left : engine_runs_as(g, req, &want);

	return same && !h->misplaced && holding_suits(h, req);
}

enum doubt engine_doubts(const struct engine *g, const struct request *req,
	const struct placement *said, bool runtime_forgets)
{
	const struct holding *h = ledger_find(g->ledger, req->container_id);

	if (h && !is_as_held(g, req, h))
		return DOUBT_CONTENT;
	return runtime_forgets && has_first_cpuset(g, req, said) && has_first_number(g, req, said)
		       ? DOUBT_AGE
		       : DOUBT_NONE;
}

void engine_note_in_force(struct engine *g, int64_t now_ms, const struct request *req)
{
	const struct holding *h = ledger_find(g->ledger, req->container_id);

	struct update_list ups = {0};
	struct decision d;

	if (!h || decision_is_left(&h->decision))
		return;
	if (!holding_suits(h, req)) /* it grows or shrinks around what it has */
		(void)engine_update(g, now_ms, req, &d, &ups);
	for (size_t i = 0; i < ups.nr; i++) /* with the next reply */
		engine_must_update(g, ups.at[i].container_id);
	vec_fini(&ups);
	h = ledger_find(g->ledger, req->container_id);
	const struct update want = engine_placement_of(g, h);
	if (!engine_runs_as(g, req, &want))
		engine_must_update(g, req->container_id);
}
