/* Nodes that move containers for a pod that waits there. */
#include <cluster-sim/world_state.h>

#include <assert.h>
#include <errno.h>

/* After each step: no CPU is held twice, nor memory beyond what there is. */
static void check_step(struct world *w, unsigned node)
{
	const struct cluster_node *n = &w->node[node].is;

	if (!w->rc && ledger_check(n->ledger, w->e))
		w->rc = err_add(w->e, -EINVAL, "%s: %s: a move", w->strategy->name, n->name);
}

static bool begin_move(struct world *w, unsigned node)
{
	struct world_node *n = &w->node[node];
	const struct node_move *m = node_moves_begin(&n->moves, &n->is);

	check_step(w, node);
	if (!m)
		return false;
	assert(m->at_ms == w->now_ms);
	w->out->moves++;
	w->out->bytes_moved += m->bytes;
	w->out->moving_ms += (double)m->lasts_ms;
	if (w->set->moved)
		w->set->moved(w->set->moved_ctx, node, m);
	world_put_event(w, w->now_ms + m->lasts_ms, EVENT_MOVED, node);
	return true;
}

bool world_make_room(struct world *w, unsigned pod)
{
	const struct world_pod *p = &w->pod[pod];
	const struct move_limits *limits = &w->set->options->moves;
	const unsigned shape = w->set->trace->pods.at[pod].shape;
	struct world_node *n = &w->node[p->node];
	struct node_answer answer;

	if (!w->strategy->moves || n->moves.plan)
		return false;
	uint64_t *none_at = &w->no_plan[shape * w->set->options->nr_nodes + p->node];
	if (*none_at == n->is.generation)
		return false;
	cluster_node_ask(&n->is, w->set->machine, &p->is, &w->work, &answer);
	if (answer.preferred)
		return false;
	if (!node_moves_plan(&n->moves, &n->is, w->set->machine, limits, &p->is, w->now_ms)) {
		*none_at = n->is.generation;
		return false;
	}
	n->pod_waits = pod;
	n->pod_was_refused = !answer.admit;
	if (!begin_move(w, p->node))
		return false;
	world_account_pod(w, p->node, p->is.shape, true);
	return true;
}

void world_node_moved(struct world *w, unsigned node)
{
	struct world_node *n = &w->node[node];
	struct node_answer answer;

	node_moves_end(&n->moves, &n->is);
	check_step(w, node);
	if (begin_move(w, node))
		return;
	world_account_pod(w, node, w->pod[n->pod_waits].is.shape, false);
	if (!world_run_pod(w, n->pod_waits, NULL, &answer))
		return;
	w->out->avoided += n->pod_was_refused;
	w->out->narrowed += !n->pod_was_refused && answer.preferred;
}
