/* What we would have done, beside what the kubelet did. */
#include "engine_state.h"

#include <numafit/text.h>

#include <string.h>

/* What the kubelet's managers gave the container, as its cpuset says it. */
struct theirs {
	bool has_cpus, has_mems, exclusive;
	struct cpuset cpus;
	struct nodeset mems;
};

static struct theirs read_theirs(const struct engine *g, const struct request *req)
{
	const struct placement p = placement_in_force(g->t, g->s, req);

	return (struct theirs){
		.has_cpus = !cpuset_empty(&p.cpus),
		.has_mems = !nodeset_empty(p.mems),
		.exclusive = p.exclusive,
		.cpus = p.cpus,
		.mems = p.mems,
	};
}

/* Of two that share CPUs only that they do is compared: our pool moves in steps of its own. */
static void compare_cpus(const struct decision *ours, const struct theirs *t, struct comparison *c,
	struct text *text)
{
	char mine[CPUSET_TEXT_MAX], other[CPUSET_TEXT_MAX];

	if (!t->has_cpus || (!ours->exclusive && !t->exclusive) ||
		cpuset_equal(&ours->cpus, &t->cpus))
		return;
	c->agrees = false;
	text_add(text, "CPUs: numafit %s, kubelet %s",
		cpuset_format(&ours->cpus, mine, sizeof mine),
		cpuset_format(&t->cpus, other, sizeof other));
}

/* The kubelet sets the memory nodes of containers whose memory it pins only. */
static void compare_mems(const struct engine *g, const struct decision *ours,
	const struct theirs *t, struct comparison *c, struct text *text)
{
	char mine[NODESET_TEXT_MAX], other[NODESET_TEXT_MAX];

	if (!t->has_mems || !ours->nr_blocks || nodeset_equal(ours->mems, t->mems))
		return;
	c->agrees = false;
	text_add(text, "%sNUMA nodes of memory: numafit %s, kubelet %s", text->len ? "; " : "",
		nodeset_format(ours->mems, &g->t->ids, mine, sizeof mine),
		nodeset_format(t->mems, &g->t->ids, other, sizeof other));
}

static void compare_with_theirs(const struct engine *g, const struct decision *ours,
	const struct theirs *t, struct comparison *c)
{
	struct text text;

	*c = (struct comparison){.compared = t->has_cpus || t->has_mems, .agrees = true};
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

		if (h->state == HOLDING_WAITING && h->decision.exclusive &&
			cpuset_intersects(&h->decision.cpus, cpus))
			engine_drop_for_good(g, now_ms, "shadow", h);
		else
			i++;
	}
}

void engine_shadow(struct engine *g, int64_t now_ms, const struct request *req,
	struct decision *ours, struct comparison *c)
{
	const struct theirs theirs = read_theirs(g, req);
	struct budget budget = engine_budget(g);
	struct request known = *req;

	known.apart = engine_apart(g, req);
	known.owner = engine_owner_of_running(g, req);
	engine_drop(g, now_ms, "replaced", req->container_id, false);
	if (!engine_inherit(g, now_ms, &known, ours))
		engine_decide(g, &known, &budget, ours);
	compare_with_theirs(g, ours, &theirs, c);
	if (ours->admit && c->agrees) {
		engine_settle(g, now_ms, "shadow", &known, ours);
		return;
	}
	const struct holding *waiting = ledger_find_waiting(g->ledger, req->pod.uid, req->ask.name);
	const struct placement placed = placement_in_force(g->t, g->s, req);

	if (waiting)
		engine_drop_for_good(g, now_ms, "shadow", waiting);
	if (placed.exclusive)
		drop_contradicted(g, now_ms, &placed.cpus);
	engine_adopt(g, now_ms, "shadow", req, &placed, false, &budget);
}
