/* What we would have done, beside what the kubelet did. */
#include "engine_state.h"

#include <numafit/text.h>

/* Of two that share CPUs only that they do is compared: our pool moves in steps of its own. */
static void compare_cpus(const struct decision *ours, const struct placement *t,
	struct comparison *c, struct text *text)
{
	char mine[CPUSET_TEXT_MAX], other[CPUSET_TEXT_MAX];

	if (cpuset_empty(&t->cpus) || (!ours->exclusive && !t->exclusive) ||
		cpuset_equal(&ours->cpus, &t->cpus))
		return;
	c->agrees = false;
	text_add(text, "CPUs: numafit %s, kubelet %s",
		cpuset_format(&ours->cpus, mine, sizeof mine),
		cpuset_format(&t->cpus, other, sizeof other));
}

/* The kubelet sets the memory nodes of containers whose memory it pins only. */
static void compare_mems(const struct engine *g, const struct decision *ours,
	const struct placement *t, struct comparison *c, struct text *text)
{
	char mine[NODESET_TEXT_MAX], other[NODESET_TEXT_MAX];

	if (nodeset_empty(t->mems) || !ours->nr_blocks || nodeset_equal(ours->mems, t->mems))
		return;
	c->agrees = false;
	text_add(text, "%sNUMA nodes of memory: numafit %s, kubelet %s", text->len ? "; " : "",
		nodeset_format(ours->mems, &g->t->ids, mine, sizeof mine),
		nodeset_format(t->mems, &g->t->ids, other, sizeof other));
}

static void compare_with_theirs(const struct engine *g, const struct decision *ours,
	const struct placement *t, struct comparison *c)
{
	struct text text;

	*c = (struct comparison){
		.compared = !cpuset_empty(&t->cpus) || !nodeset_empty(t->mems), .agrees = true};
	if (!c->compared)
		return;
	text_init(&text, c->text, sizeof c->text);
	if (!ours->admit) {
		c->agrees = false;
		text_add(&text, "numafit would have refused it: %s", ours->reason);
		return;
	}
	compare_cpus(ours, t, c, &text);
	compare_mems(g, ours, t, c, &text);
}

/* What waits on CPUs that the kubelet has given to somebody else cannot come to have them. */
static void drop_contradicted(struct engine *g, int64_t now_ms, const struct cpuset *cpus)
{
	for (size_t i = 0; i < ledger_count(g->ledger);) {
		const struct holding *h = ledger_at(g->ledger, i);

		if (h->state == HOLDING_WAITING && !holding_is_share(h) && h->decision.exclusive &&
			cpuset_intersects(&h->decision.cpus, cpus))
			engine_drop_for_good(g, now_ms, "shadow", h);
		else
			i++;
	}
}

void engine_shadow(struct engine *g, int64_t now_ms, const struct request *req,
	struct decision *ours, struct comparison *c)
{
	const struct placement theirs = placement_in_force(g->t, g->s, req);
	struct budget budget = budget_of(g->s->merge_visit_budget);
	struct request known = *req;

	known.apart = engine_apart(g, req);
	known.ask.has_devices = request_has_devices(req);
	known.owner = engine_owner_of_running(g, req);
	engine_drop(g, now_ms, "replaced", req->container_id, false);
	if (!engine_inherit(g, now_ms, &known, ours)) {
		engine_bound_by_pod(g, &known);
		engine_decide(g, &known, &budget, ours);
	}
	compare_with_theirs(g, ours, &theirs, c);
	if (ours->admit && c->agrees) {
		engine_settle(g, now_ms, "shadow", &known, ours, false);
		return;
	}
	const struct holding *waiting = ledger_find_waiting(g->ledger, req->pod.uid, req->ask.name);

	if (waiting)
		engine_drop_for_good(g, now_ms, "shadow", waiting);
	if (theirs.exclusive)
		drop_contradicted(g, now_ms, &theirs.cpus);
	engine_adopt(g, now_ms, "shadow", req, &theirs, false, &budget);
}
