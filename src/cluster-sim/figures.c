/* What is counted of a day, and whether it adds up. */
#include <cluster-sim/world_state.h>

#include <errno.h>
#include <numafit/fragmentation.h>

enum { SAMPLES_AN_HOUR = SAMPLES / DAY_HOURS };

void world_count_nodes(struct world *w, unsigned pod, const struct node_answer *answer)
{
	const struct shape_facts *fewest = &w->set->facts[w->set->trace->pods.at[pod].shape];
	struct outcome *o = w->out;
	bool pinned = false, minimal = true;

	for (unsigned c = 0; c < answer->nr; c++) {
		if (nodeset_empty(answer->on[c]))
			continue;
		pinned = true;
		minimal = minimal && nodeset_count(answer->on[c]) <= fewest->nodes[c];
		o->containers++;
		o->distance += topo_distance_average(&w->set->machine->topo, answer->on[c]);
	}
	o->pinned += pinned;
	o->minimal += pinned && minimal;
}

static double world_fragmentation(const struct world *w)
{
	const struct topo *t = &w->set->machine->topo;
	struct cluster_fragmentation f = {0};

	for (unsigned i = 0; i < w->set->options->nr_nodes; i++) {
		const struct world_node *n = &w->node[i];
		const struct cpuset whole = ledger_free_cpus(n->is.ledger);
		const struct quantity *has = amounts_find(&n->seen.allocatable, RESOURCE_CPU);
		uint64_t free[NODES_MAX];
		unsigned nr = 0;

		nodeset_each (z, t->nodes)
			free[nr++] = cpuset_count_and(&whole, &t->node[z].cpus);
		cluster_fragmentation_add(
			&f, free, nr, (uint64_t)quantity_sub(*has, n->asked[0].q).whole);
	}
	return cluster_fragmentation_share(&f);
}

/* Pods that have come and are to be tried again. */
static unsigned long count_waiting(const struct world *w)
{
	unsigned long nr = 0;

	for (size_t i = 0; i < w->queue.nr; i++) {
		const struct event *e = &w->queue.at[i];

		nr += e->kind == EVENT_TRY && w->set->trace->pods.at[e->what].at_ms < w->now_ms;
	}
	return nr;
}

void world_take_sample(struct world *w, unsigned number)
{
	struct sample *s = &w->out->sample[number];

	*s = (struct sample){
		.utilisation = (double)w->cpus_used_milli / (double)w->cpus_milli,
		.fragmentation = world_fragmentation(w),
		.refused = w->out->refused,
		.moves = w->out->moves,
		.waiting = count_waiting(w),
	};
	w->out->utilisation += s->utilisation / SAMPLES;
	w->out->fragmentation += s->fragmentation / SAMPLES;
	if ((number + 1) % SAMPLES_AN_HOUR == 0)
		w->set->progress(w->set->progress_ctx, w->strategy, (number + 1) / SAMPLES_AN_HOUR);
}

/* No CPU or memory is held twice, and nothing is held that no pod has asked for. */
static int check_world_node(const struct world_node *n, struct err *e)
{
	const struct quantity *has = amounts_find(&n->seen.allocatable, RESOURCE_CPU);
	int rc = ledger_check(n->is.ledger, e);

	if (!rc && quantity_compare(n->asked[0].q, *has) > 0)
		rc = err_set(e, EINVAL, "its pods ask for more CPUs than it has");
	if (!rc && !n->nr_pods && ledger_count(n->is.ledger))
		rc = err_set(e, EINVAL, "%s holds something, but no pod is there",
			ledger_at(n->is.ledger, 0)->request.ask.name);
	return rc ? err_add(e, rc, "%s", n->is.name) : 0;
}

int world_check(const struct world *w, struct err *e)
{
	const struct outcome *o = w->out;
	unsigned long running = 0, waiting = 0;
	int rc = 0;

	for (unsigned i = 0; i < w->set->options->nr_nodes; i++) {
		const bool one_waits = w->node[i].moves.plan;

		running += w->node[i].nr_pods - one_waits;
		waiting += one_waits;
	}
	for (size_t i = 0; i < w->queue.nr; i++)
		waiting += w->queue.at[i].kind == EVENT_TRY;
	if (o->placed != running + w->nr_ended || o->arrived != o->placed + waiting)
		rc = err_set(e, EINVAL,
			"%lu pods came, %lu were placed, %lu run, %lu have ended, %lu wait: that "
			"does not add up",
			o->arrived, o->placed, running, w->nr_ended, waiting);
	for (unsigned i = 0; i < w->set->options->nr_nodes && !rc; i++)
		rc = check_world_node(&w->node[i], e);
	if (!rc && w->cluster)
		rc = sched_cluster_check(w->cluster, e);
	return rc ? err_add(e, rc, "%s", w->strategy->name) : 0;
}
