/* Which CPUs are to be left alone by interrupts, and which are to have a frequency profile. */
#include <numafit/quiet.h>

#include "ledger_state.h"

#include <string.h>

/* Also of one that has those of the shared pool as well: nobody else runs on its own. */
static bool holds_own_cpus(const struct holding *h)
{
	const struct decision *d = &h->decision;

	return d->exclusive && !decision_is_left(d) && !holding_is_pod(h) &&
	       !request_shares_in_pod(&h->request, d);
}

void quiet_plan_make(const struct ledger *l, const struct settings *s, struct quiet_plan *out)
{
	memset(out, 0, sizeof *out);
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct holding *h = ledger_at(l, i);
		const struct wishes *w = &h->request.ask.wishes;

		if (!*w->quiet || h->state == HOLDING_WAITING || !holds_own_cpus(h))
			continue;
		if (wishes_quiet_irq(w))
			out->irq = cpuset_or(out->irq, &h->decision.cpus);
		unsigned profile = profiles_find(&s->profiles, wishes_quiet_profile(w));
		if (profile == s->profiles.nr)
			continue;
		out->frequency = cpuset_or(out->frequency, &h->decision.cpus);
		cpuset_each (cpu, &h->decision.cpus)
			out->profile[cpu] = (unsigned char)profile;
	}
}

struct cpuset quiet_affinity(
	const struct cpuset *was, const struct cpuset *quiet, const struct cpuset *online)
{
	struct cpuset left = cpuset_minus(*was, quiet);
	const struct cpuset left_online = cpuset_and(left, online);

	if (!cpuset_empty(&left_online))
		return left;
	left = cpuset_minus(*online, quiet);
	return cpuset_empty(&left) ? *was : left;
}
