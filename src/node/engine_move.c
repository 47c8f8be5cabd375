/* A container that runs is moved to other CPUs and memory: while that lasts it has both, in the
 * journal as well, so that an end at any point leaves it what it runs on. */
#include "engine_state.h"

#include <numafit/text.h>

#include <errno.h>

int engine_begin_move(struct engine *g, int64_t now_ms, const char *container_id,
	const struct decision *to, const struct move_basis *basis, struct err *e)
{
	const struct cpuset before = ledger_view(g->ledger)->pool;
	int rc = ledger_may_move(g->ledger, container_id, to, e);
	struct record r = engine_record_of(g, now_ms, RECORD_MOVE, "move", container_id);

	if (rc)
		return rc;
	r.decision = to;
	r.basis = basis;
	r.pod = basis ? basis->pod : NULL;
	r.pool = ledger_pool_without(g->ledger, &to->cpus);
	rc = engine_change(g, &r, false, e);
	engine_update_later(g, &before);
	return rc;
}

/* What it has no more goes to the pool. */
static int end_move(
	struct engine *g, int64_t now_ms, const char *cause, bool back, bool must, struct err *e)
{
	const struct moving *m = ledger_view(g->ledger)->moving;
	const struct cpuset *left = back ? &m->to.cpus : &m->from.cpus,
			    *kept = back ? &m->from.cpus : &m->to.cpus;
	/* others of its pod may have some of them as well */
	const struct cpuset alone =
		ledger_held_alone_by(g->ledger, ledger_find(g->ledger, m->container_id));
	const struct cpuset not_kept = cpuset_minus(*left, kept),
			    released = cpuset_and(not_kept, &alone);
	auto_free char *id = xstrdup(m->container_id); /* it outlives the move */
	struct record r =
		engine_record_of(g, now_ms, back ? RECORD_MOVE_BACK : RECORD_MOVED, cause, id);

	const struct cpuset before = r.pool;
	r.pool = ledger_pool_grown(g->ledger, &released);
	int rc = engine_change(g, &r, must, e);
	engine_update_later(g, &before);
	return rc;
}

int engine_end_move(struct engine *g, int64_t now_ms, bool back, struct err *e)
{
	if (!ledger_view(g->ledger)->moving)
		return err_set(e, ENOENT, "no container is being moved");
	return end_move(g, now_ms, "move", back, false, e);
}

void engine_end_move_of(
	struct engine *g, int64_t now_ms, const char *cause, const char *container_id)
{
	if (ledger_is_moving(g->ledger, container_id))
		(void)end_move(g, now_ms, cause, false, true, NULL);
}

static bool is_in(const struct update_list *ups, const char *container_id)
{
	for (size_t i = 0; i < ups->nr; i++)
		if (text_equal(ups->at[i].container_id, container_id))
			return true;
	return false;
}

void engine_correct_moved(
	const struct engine *g, const struct request *reported, size_t nr, struct update_list *ups)
{
	for (size_t i = 0; i < nr; i++) {
		const struct holding *h = ledger_find(g->ledger, reported[i].container_id);

		if (!h || !h->decision.moved_ms || decision_is_left(&h->decision) ||
			is_in(ups, reported[i].container_id))
			continue;
		const struct update want = engine_placement_of(g, h);
		if (!engine_runs_as(g, &reported[i], &want))
			*vec_push(ups) = want;
	}
}
