/* An entry on its way to other CPUs and memory: it has those that it comes from and those that it
 * goes to, so that either end of the move leaves what it needs. */
#include "ledger_state.h"

#include <assert.h>
#include <errno.h>
#include <numafit/text.h>

bool ledger_is_moving(const struct ledger *l, const char *container_id)
{
	return l->now.moving && text_equal(l->now.moving->container_id, container_id);
}

/* Memory that stays on the same NUMA nodes is booked once. */
static bool stays(const struct decision *from, const struct memory_block *b)
{
	for (unsigned i = 0; i < from->nr_blocks; i++)
		if (from->blocks[i].kind == b->kind &&
			nodeset_equal(from->blocks[i].nodes, b->nodes))
			return true;
	return false;
}

static struct decision both_of(const struct decision *from, const struct decision *to)
{
	struct decision d = *from;

	d.cpus = cpuset_or(from->cpus, &to->cpus);
	d.mems = nodeset_or(from->mems, to->mems);
	for (unsigned i = 0; i < to->nr_blocks; i++)
		if (!stays(from, &to->blocks[i])) {
			assert(d.nr_blocks < TOPO_KINDS);
			d.blocks[d.nr_blocks++] = to->blocks[i];
		}
	return d;
}

int ledger_may_move(
	const struct ledger *l, const char *container_id, const struct decision *to, struct err *e)
{
	const struct holding *h = ledger_find(l, container_id);

	if (l->now.moving)
		return err_set(
			e, EAGAIN, "container %s is being moved", l->now.moving->container_id);
	if (!h || h->state == HOLDING_WAITING)
		return err_set(e, ENOENT, "container %s is not there", container_id);
	if (!h->decision.exclusive || !decision_is_booked(&h->decision) || holding_is_in_pool(h) ||
		!to->admit || !to->exclusive || !decision_is_booked(to) ||
		h->decision.nr_blocks + to->nr_blocks > TOPO_KINDS)
		return err_set(e, EINVAL, "container %s cannot be moved", container_id);
	struct decision d = *to;
	struct cpuset pool = ledger_pool_without(l, &to->cpus);
	d.source = h->decision.source;
	int rc = ledger_fits(l, &h->request, &d, e);
	return rc ? rc : ledger_pool_is_sound(l, &pool, e);
}

void ledger_begin_move(struct ledger *l, const char *container_id, const struct decision *to)
{
	const struct holding *h = ledger_find(l, container_id);
	struct moving *m = xcalloc(1, sizeof *m);

	m->container_id = xstrdup(container_id);
	m->from = h->decision;
	m->to = *to;
	m->to.source = m->from.source;
	m->to.reasons = NULL;
	const struct decision both = both_of(&m->from, &m->to);
	ledger_move(l, container_id, &both);
	l->now.moving = m;
}

void ledger_end_move(struct ledger *l, bool back, int64_t now_ms)
{
	struct moving *m = l->now.moving;
	struct decision d = back ? m->from : m->to;

	if (!back)
		d.moved_ms = now_ms;
	l->now.moving = NULL;
	ledger_move(l, m->container_id, &d);
	moving_free(m);
}

void moving_free(struct moving *m)
{
	if (m)
		free((void *)(uintptr_t)m->container_id); /* ours since ledger_begin_move() */
	free(m);
}
