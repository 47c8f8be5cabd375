/* The shared pool: what containers without CPUs of their own run on. Where every move costs an
 * update of each of them it moves in steps. */
#include "ledger_state.h"

#include <numafit/cpus.h>
#include <numafit/number.h>

#include <errno.h>

enum { STEPS_PER_NODE = 4, AUTO_STEP = 16, AUTO_FROM_CONTAINERS = 30 };

static unsigned setting_of(const struct ledger *l)
{
	if (l->s->pool_enforced == POOL_BY_CGROUPS)
		return 0;
	if (l->s->shared_pool_step != SHARED_POOL_STEP_AUTO)
		return l->s->shared_pool_step;
	return l->now.nr_shared < AUTO_FROM_CONTAINERS ? 0 : AUTO_STEP;
}

/* CPUs that the node's pool moves by, beyond need: on a small node less than the setting, or all of
 * it would lie idle. */
static unsigned step_of(const struct ledger *l, unsigned node)
{
	return number_min(
		setting_of(l), cpuset_count(&l->now.topo->node[node].cpus) / STEPS_PER_NODE);
}

/* CPUs of the node that the pool gives up ahead of need: those that an exclusive container would
 * get next. Half of what nobody holds stays with the shared containers. */
static struct cpuset ahead_of_need(
	const struct ledger *l, const struct cpuset *held, const struct cpuset *pool, unsigned node)
{
	struct cpuset here = cpuset_minus(
		cpuset_and(*pool, &l->now.topo->node[node].cpus), &l->s->reserved_cpus);
	here = cpuset_minus(here, &l->now.left); /* nobody would get them */
	struct cpuset not_held = cpuset_minus(
			      cpuset_minus(ledger_shareable_cpus(l), &l->now.held), held),
		      ahead = {0};
	unsigned half = cpuset_count(&not_held) / 2, left = cpuset_count(pool);
	struct cpus_how how = cpus_how(l->now.topo, &l->s->cpu_options);
	unsigned step = number_min(
		number_min(step_of(l, node), cpuset_count(&here)), left > half ? left - half : 0);

	if (left >= settings_pool_minimum(l->s) + step)
		(void)cpus_take_on_node(l->now.topo, &here, step, &how, &ahead, NULL);
	return ahead;
}

struct cpuset ledger_pool_without(const struct ledger *l, const struct cpuset *held)
{
	struct cpuset pool = cpuset_minus(l->now.pool, held);

	nodeset_each (n, l->now.topo->nodes_with_cpus) {
		struct cpuset here = cpuset_and(l->now.topo->node[n].cpus, held);

		if (!cpuset_intersects(&here, &l->now.pool))
			continue;
		struct cpuset ahead = ahead_of_need(l, held, &pool, n);
		pool = cpuset_minus(pool, &ahead);
	}
	if (cpuset_count(&pool) >= settings_pool_minimum(l->s))
		return pool;
	/* too few: what lay idle comes back */
	pool = cpuset_minus(ledger_shareable_cpus(l), &l->now.held);
	return cpuset_minus(pool, held);
}

struct cpuset ledger_pool_grown(const struct ledger *l, const struct cpuset *released)
{
	struct cpuset held = cpuset_minus(l->now.held, released), pool = l->now.pool;
	struct cpuset free_cpus = cpuset_minus(ledger_shareable_cpus(l), &held);
	struct cpuset all_idle = cpuset_minus(free_cpus, &l->now.pool);
	struct cpus_how how = cpus_how(l->now.topo, &l->s->cpu_options);

	nodeset_each (n, l->now.topo->nodes_with_cpus) {
		struct cpuset idle = cpuset_and(all_idle, &l->now.topo->node[n].cpus), kept;

		if (cpuset_count(&idle) <= 2 * step_of(l, n) ||
			cpus_take_on_node(l->now.topo, &idle, step_of(l, n), &how, &kept, NULL))
			continue;
		idle = cpuset_minus(idle, &kept);
		pool = cpuset_or(pool, &idle);
	}
	return pool;
}

int ledger_pool_is_sound(const struct ledger *l, const struct cpuset *pool, struct err *e)
{
	struct cpuset shareable = ledger_shareable_cpus(l);
	struct cpuset reserved = cpuset_and(l->s->reserved_cpus, &shareable);

	if (cpuset_intersects(pool, &l->now.held))
		return err_set(e, EINVAL, "the shared pool has CPUs that containers hold");
	if (!cpuset_within(pool, &shareable) || !cpuset_within(&reserved, pool))
		return err_set(e, EINVAL,
			"the shared pool lacks reserved CPUs or has CPUs that it must not have");
	return cpuset_empty(pool) ? err_set(e, EINVAL, "the shared pool is empty") : 0;
}

int ledger_set_pool(struct ledger *l, const struct cpuset *pool, struct err *e)
{
	int rc = ledger_pool_is_sound(l, pool, e);

	if (!rc)
		l->now.pool = *pool;
	return rc;
}

struct cpuset ledger_pool_of(const struct ledger *l, const struct cpuset *more)
{
	struct cpuset shareable = ledger_shareable_cpus(l);
	struct cpuset pool = cpuset_or(l->now.pool, more);

	/* cgroups follow at once: nothing need lie idle */
	if (l->s->pool_enforced == POOL_BY_CGROUPS)
		pool = shareable;
	pool = cpuset_and(pool, &shareable);
	return cpuset_minus(pool, &l->now.held);
}

int ledger_settings_changed(struct ledger *l, struct err *e)
{
	struct cpuset pool = ledger_pool_of(l, &l->s->reserved_cpus);

	if (cpuset_empty(&pool))
		return err_set(e, EBUSY,
			"strict-cpu-reservation: the shared pool has reserved CPUs alone now, "
			"none would be left in it; containers hold the others");
	l->now.pool = pool;
	ledger_bound_all(l);
	return 0;
}
