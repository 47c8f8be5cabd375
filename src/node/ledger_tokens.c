/* The tokens beside the CPUs: what is promised, what may be promised still, what the kubelet sees.
 */
#include "ledger_state.h"

#include <numafit/cpus.h>
#include <numafit/leases.h>
#include <numafit/number.h>

#include <errno.h>

struct cpuset ledger_promised_cpus(const struct ledger *l, const struct tokenset *but)
{
	struct cpus_how how = cpus_how(l->now.topo, &l->s->cpu_options);
	struct cpuset free_cpus = ledger_free_cpus(l), promised;
	struct tokenset leased, claimed;

	/* those would be free if no container were left on them */
	promised = cpuset_minus(cpuset_and(l->now.left, &l->now.topo->cpus), &l->s->reserved_cpus);
	if (!l->s->device_plugin || leases_empty(l->now.leases))
		return promised;
	leases_tokens(l->now.leases, &leased, &claimed);
	nodeset_each (n, leased.nodes) {
		struct cpuset here = cpuset_and(free_cpus, &l->now.topo->node[n].cpus), some = {0};
		struct cpuset awaited = cpuset_minus(leased.on[n], &claimed.on[n]);

		if (but)
			awaited = cpuset_minus(awaited, &but->on[n]);
		unsigned nr = number_min(cpuset_count(&awaited), cpuset_count(&here));
		if (nr && cpus_take_on_node(l->now.topo, &here, nr, &how, &some, NULL) < 0)
			some = here; /* fewer than are awaited, and no whole cores: all of them */
		promised = cpuset_or(promised, &some);
	}
	return promised;
}

unsigned ledger_spare_cpus(const struct ledger *l, const struct cpuset *promised)
{
	struct cpuset left = cpuset_minus(ledger_shareable_cpus(l), &l->now.held);
	unsigned kept = settings_pool_minimum(l->s) + cpuset_count(promised);

	return cpuset_count(&left) > kept ? cpuset_count(&left) - kept : 0;
}

int ledger_may_promise(const struct ledger *l, const struct tokenset *tokens, struct err *e)
{
	struct cpuset promised = ledger_promised_cpus(l, NULL);
	struct cpuset free_cpus = cpuset_minus(ledger_free_cpus(l), &promised);
	struct tokenset leased, claimed;
	unsigned all = 0, spare = ledger_spare_cpus(l, &promised);
	int rc = 0;

	leases_tokens(l->now.leases, &leased, &claimed);
	nodeset_each (n, tokens->nodes) {
		struct cpuset new = cpuset_minus(tokens->on[n], &leased.on[n]);
		struct cpuset here = cpuset_and(free_cpus, &l->now.topo->node[n].cpus);

		const struct cpuset own =
			cpuset_minus(l->now.topo->node[n].cpus, &l->s->reserved_cpus);

		rc = cpus_check_whole_cores(
			l->now.topo, &l->s->cpu_options, &own, cpuset_count(&tokens->on[n]), e);
		if (rc) /* it could not be given what it would come with */
			return rc;
		all += cpuset_count(&new);
		if (cpuset_count(&new) > cpuset_count(&here))
			return err_set(e, EBUSY,
				"NUMA node %u has %u CPU%s left, %u of its tokens are asked for: "
				"other containers took CPUs there a moment ago",
				l->now.topo->ids.id[n], cpuset_count(&here),
				text_plural(cpuset_count(&here)), cpuset_count(&new));
	}
	return all > spare ? err_set(e, EBUSY,
				     "%u CPU%s can be given beside what the shared pool needs "
				     "(sharedPoolMinimum), and %u of numafit.io/cpu are asked for",
				     spare, text_plural(spare), all)
			   : 0;
}

int ledger_report_tokens(const struct ledger *l, struct arena *a, struct token_reports *out)
{
	struct cpuset promised = ledger_promised_cpus(l, NULL);
	struct cpuset held = cpuset_or(l->now.held, &l->now.left);
	struct tokenset leased, claimed;
	const struct tokens_state now = {
		.t = l->now.topo,
		.s = l->s,
		.held = &held,
		.leased = &leased,
		.claimed = &claimed,
		.spare = ledger_spare_cpus(l, &promised),
	};

	leases_tokens(l->now.leases, &leased, &claimed);
	return tokens_report(&now, a, out);
}
