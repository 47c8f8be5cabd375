#include <numafit/snapshot.h>

#include <numafit/number.h>

#include <string.h>

static void count_containers(struct snapshot *s, const struct ledger *l)
{
	for (size_t i = 0; i < ledger_count(l); i++) {
		const struct decision *d = &ledger_at(l, i)->decision;
		const struct request *req = &ledger_at(l, i)->request;

		if (req->ask.whole_pod || holding_is_share(ledger_at(l, i)))
			continue; /* none of the containers */
		if (ledger_at(l, i)->state == HOLDING_WAITING) {
			s->nr_waiting++;
			continue;
		}
		bool own = d->exclusive && !request_shares_in_pod(req, d);
		s->nr_containers++;
		s->nr_exclusive += own;
		s->nr_not_preferred += !d->preferred;
		s->nr_own_not_preferred += own && !d->preferred;
	}
}

void snapshot_take(struct snapshot *s, const struct ledger *l, const struct settings *settings)
{
	const struct topo *t = ledger_view(l)->topo;
	const struct memory_state *m = &ledger_view(l)->memory;
	struct room room;

	memset(s, 0, sizeof *s);
	s->topo = t;
	s->pool = ledger_view(l)->pool;
	s->held = ledger_view(l)->held;
	s->reserved = cpuset_and(settings->reserved_cpus, &t->cpus);
	count_containers(s, l);
	room_take(&room, l, settings);
	s->fragmentation = room_fragmentation(&room, t->ids.nr);
	nodeset_each (n, t->nodes) {
		const struct cpuset *cpus = &t->node[n].cpus;

		s->node[n] = (struct snapshot_node){
			.cpus = cpuset_count(cpus),
			.cpus_held = cpuset_count_and(cpus, &s->held),
			.cpus_reserved = cpuset_count_and(cpus, &s->reserved),
			.cpus_pool = cpuset_count_and(cpus, &s->pool),
			.cpus_available = (unsigned)number_min(room.cpus[n], room.spare),
			.group = m->node[n].group,
		};
		memcpy(s->node[n].allocatable, m->node[n].allocatable,
			sizeof s->node[n].allocatable);
		memcpy(s->node[n].free, m->node[n].free, sizeof s->node[n].free);
	}
}
