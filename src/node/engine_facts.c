/* Facts of containers that come late: a runtime shows neither a container's kind nor which part of
 * its pod's own resources is the container's, and some runtimes do not show claims; the pod's spec
 * and the kubelet do, which may say so only after the container was taken into the ledger. */
#include "engine_state.h"

#include <numafit/text.h>

enum { TEXTS_BYTES = 1 << 20 };

static bool has_same_shares(const char *a, const char *b)
{
	return !a == !b && (!a || text_equal(a, b));
}

static bool has_facts(const struct request *req, const struct container_facts *f)
{
	const struct ask *ask = &req->ask;

	return ask->kind == f->kind && ask->place == f->place && ask->guaranteed == f->guaranteed &&
	       req->pod.pod_level == f->pod_level && ask->has_devices == f->has_devices &&
	       ask->devices == f->devices && has_same_shares(req->shares, f->shares);
}

static void take_facts(struct request *req, const struct container_facts *f)
{
	req->ask.kind = f->kind;
	req->ask.place = f->place;
	req->ask.guaranteed = f->guaranteed;
	req->ask.has_devices = f->has_devices;
	req->ask.devices = f->devices;
	if (!has_same_shares(req->shares, f->shares))
		req->shares = f->shares;
	req->pod.source = f->source;
	req->pod.pod_level = f->pod_level;
}

/* What claims give a container is not left as the container runs. */
static bool may_stay(const struct holding *h, const struct request *known)
{
	const bool same = request_exclusive_cpus(known) == request_exclusive_cpus(&h->request) &&
			  request_pins_memory(known) == request_pins_memory(&h->request);

	return has_same_shares(known->shares, h->request.shares) &&
	       (same || decision_is_left(&h->decision) || !decision_is_booked(&h->decision));
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
static void place_anew(
	struct engine *g, int64_t now_ms, const struct request *known, struct budget *b)
{
	const struct cpuset before = ledger_view(g->ledger)->pool;

	engine_drop(g, now_ms, "facts", known->container_id, true);
	engine_adopt(g, now_ms, "facts", known, NULL, true, b);
	engine_update_later(g, &before);
	engine_must_update(g, known->container_id);
}

bool engine_join_facts(struct engine *g, int64_t now_ms, const char *container_id,
	const struct container_facts *facts, struct budget *b)
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
	const bool stays = may_stay(h, &known);
	const bool waits = !stays && (h->starting || h->state != HOLDING_LIVE);

	if (!waits)
		engine_end_move_of(g, now_ms, "facts", container_id);
	if (stays)
		note_facts(g, now_ms, ledger_find(g->ledger, container_id), &known);
	else if (!waits)
		place_anew(g, now_ms, &known, b);
	arena_fini(&a);
	return !waits;
}
