/* Facts of containers that come late: a runtime shows neither a container's kind nor which part of
 * its pod's own resources is the container's; the pod's spec does, which may be known only after
 * the container was taken into the ledger. */
#include "engine_state.h"

enum { TEXTS_BYTES = 1 << 20 };

static bool has_facts(const struct request *req, const struct container_facts *f)
{
	const struct ask *ask = &req->ask;

	return ask->kind == f->kind && ask->place == f->place && ask->guaranteed == f->guaranteed &&
	       req->pod.pod_level == f->pod_level && ask->has_devices == f->has_devices;
}

static void take_facts(struct request *req, const struct container_facts *f)
{
	req->ask.kind = f->kind;
	req->ask.place = f->place;
	req->ask.guaranteed = f->guaranteed;
	req->ask.has_devices = f->has_devices;
	req->pod.pod_level = f->pod_level;
}

/* The entry is the same but for the facts. */
static void note_facts(
	struct engine *g, int64_t now_ms, const struct holding *h, const struct request *known)
{
	const bool live = h->state == HOLDING_LIVE, misplaced = h->misplaced;
	struct decision d = h->decision;

	engine_settle(g, now_ms, "facts", known, &d, true);
	if (live)
		engine_mark_live(g, now_ms, known->container_id);
	ledger_set_misplaced(g->ledger, known->container_id, misplaced);
}

/* As for a container that is found running with these facts, and whose cpuset is not its own. */
static void place_anew(struct engine *g, int64_t now_ms, const struct request *known)
{
	const struct cpuset before = ledger_view(g->ledger)->pool;
	struct budget budget = budget_of(g->s->merge_visit_budget);

	engine_drop(g, now_ms, "facts", known->container_id, true);
	engine_adopt(g, now_ms, "facts", known, NULL, true, &budget);
	engine_update_later(g, &before);
	engine_must_update(g, known->container_id);
}

bool engine_join_facts(struct engine *g, int64_t now_ms, const char *container_id,
	const struct container_facts *facts)
{
	const struct holding *h = ledger_find(g->ledger, container_id);
	struct arena a;

	if (!h || h->state == HOLDING_WAITING || h->decision.source == SOURCE_HELD ||
		has_facts(&h->request, facts))
		return false;
	arena_init(&a, TEXTS_BYTES);
	struct request known = engine_request_in(&a, h, container_id);
	take_facts(&known, facts);
	known.cpus = known.mems = "";
	const bool same = request_exclusive_cpus(&known) == request_exclusive_cpus(&h->request) &&
			  request_pins_memory(&known) == request_pins_memory(&h->request);
	const bool stays =
		same || decision_is_left(&h->decision) || !decision_is_booked(&h->decision);
	const bool waits = !stays && (h->starting || h->state != HOLDING_LIVE);

	if (!waits)
		engine_end_move_of(g, now_ms, "facts", container_id);
	if (stays)
		note_facts(g, now_ms, ledger_find(g->ledger, container_id), &known);
	else if (!waits)
		place_anew(g, now_ms, &known);
	arena_fini(&a);
	return !waits;
}
