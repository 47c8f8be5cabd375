/* How much less of what was asked for would be admitted: the question is decided again with smaller
 * and smaller amounts. */
#include "remedies.h"

#include <numafit/number.h>

enum { TRIALS = 64, NODES_TRIED = 8, MIB = 1 << 20, GIB = 1 << 30 };

/* What is changed of one container, or of a pod of which only sums are known. */
struct reduction {
	struct trial *trial;
	struct ask *ask;
	struct ask asked; /* as it was */
	struct pod_totals *totals, summed;
	unsigned threads; /* CPUs are given out by so many */
};

static void reduce_cpus(const struct reduction *r, uint64_t cpus)
{
	r->ask->cpu_milli = cpus * MILLI_PER_CPU;
	if (r->asked.cpu_limit_milli)
		r->ask->cpu_limit_milli = r->ask->cpu_milli;
	if (r->totals->known)
		r->totals->cpu_milli =
			r->summed.cpu_milli -
			number_min(r->summed.cpu_milli, r->asked.cpu_milli - r->ask->cpu_milli);
}

static void reduce_memory(const struct reduction *r, unsigned i, uint64_t bytes)
{
	r->ask->memory[i].bytes = bytes;
	if (r->totals->known && !r->asked.memory[i].page_bytes)
		r->totals->memory_bytes =
			r->summed.memory_bytes -
			number_min(r->summed.memory_bytes, r->asked.memory[i].bytes - bytes);
}

static void undo_reduction(const struct reduction *r)
{
	*r->ask = r->asked;
	*r->totals = r->summed;
}

static bool admits_cpus(const struct reduction *r, uint64_t cpus)
{
	reduce_cpus(r, cpus);
	return trial_admits(r->trial);
}

static bool admits_memory(const struct reduction *r, unsigned i, uint64_t bytes)
{
	reduce_memory(r, i, bytes);
	return trial_admits(r->trial);
}

/* The most CPUs, fewer than so many, with which it is admitted. False: there are none. Few are
 * tried one by one, for which of them do follows no order where cores and policies are in the way.
 */
static bool find_most_cpus(const struct reduction *r, uint64_t below)
{
	uint64_t step = r->threads, cpus, found;

	while ((below - 1) / step > TRIALS)
		step *= 2;
	for (cpus = (below - 1) / step * step; cpus && !admits_cpus(r, cpus);)
		cpus -= step;
	found = cpus;
	for (uint64_t end = number_min(below, found + step); (cpus += r->threads) < end;)
		if (admits_cpus(r, cpus))
			found = cpus;
	reduce_cpus(r, found);
	return found;
}

static uint64_t smallest_amount(const struct memory_ask *m)
{
	if (m->page_bytes)
		return m->page_bytes;
	return m->bytes < (uint64_t)64 * MIB ? MIB : (uint64_t)64 * MIB;
}

/* The least of it is not admitted: some policies admit more nevertheless. */
static bool find_some_memory(const struct reduction *r, unsigned i)
{
	uint64_t step = number_max(r->asked.memory[i].page_bytes, GIB), bytes;

	while ((r->asked.memory[i].bytes - 1) / step > TRIALS)
		step *= 2;
	for (bytes = (r->asked.memory[i].bytes - 1) / step * step; bytes; bytes -= step)
		if (admits_memory(r, i, bytes))
			return true;
	return false;
}

/* The most of it, less than is asked for, with which it is admitted. False: there is none. */
static bool find_most_memory(const struct reduction *r, unsigned i)
{
	uint64_t unit = smallest_amount(&r->asked.memory[i]);
	uint64_t low = 1, high = (r->asked.memory[i].bytes - 1) / unit;

	if (!high || !admits_memory(r, i, unit))
		return find_some_memory(r, i);
	while (low < high) {
		uint64_t middle = low + (high - low + 1) / 2;

		if (admits_memory(r, i, middle * unit))
			low = middle;
		else
			high = middle - 1;
	}
	uint64_t most = low * unit, round = most - most % GIB; /* easier to read */
	if (!round || !admits_memory(r, i, round))
		reduce_memory(r, i, most);
	return true;
}

static uint64_t most_on_one_node(const struct clinic *x, const struct memory_ask *m)
{
	const struct ledger_view *v = ledger_view(x->trial.q.ledger);
	int kind = topo_kind_of_page(v->topo, m->page_bytes);
	uint64_t most = 0;

	nodeset_each (n, kind < 0 ? (struct nodeset){0} : v->topo->nodes)
		most = number_max(most, v->memory.node[n].allocatable[kind]);
	return most;
}

/* Ask for no more memory than so many NUMA nodes can have; 0: for the least that there is. */
static void reduce_memory_to_nodes(
	const struct clinic *x, const struct reduction *r, unsigned nodes)
{
	for (unsigned i = 0; i < r->asked.nr_memory; i++) {
		const struct memory_ask *m = &r->asked.memory[i];
		uint64_t least = smallest_amount(m), most = nodes * most_on_one_node(x, m);

		most -= most % least;
		reduce_memory(r, i, number_min(m->bytes, number_max(most, least)));
	}
}

/* Less of everything: the most CPUs that are admitted with as much memory as a few NUMA nodes can
 * have, or with the least, and then more memory. A policy may want as many NUMA nodes for the one
 * as for the other, so that less of one alone may not do. */
static bool find_less_of_all(const struct clinic *x, const struct reduction *r, uint64_t cpus)
{
	unsigned nodes = NODES_TRIED;

	do
		reduce_memory_to_nodes(x, r, --nodes);
	while ((cpus ? !find_most_cpus(r, cpus + 1) : !trial_admits(r->trial)) && nodes);
	if (cpus && !r->ask->cpu_milli)
		return false; /* without CPUs it would be admitted, and not run */
	for (unsigned i = 0; i < r->asked.nr_memory; i++) {
		uint64_t least = r->ask->memory[i].bytes;

		if (least < r->asked.memory[i].bytes &&
			!admits_memory(r, i, r->asked.memory[i].bytes) && !find_most_memory(r, i))
			reduce_memory(r, i, least);
	}
	return trial_admits(r->trial);
}

/* So many CPUs with as much as can be of one kind of memory; of the others as much as was asked
 * for, or the least that there is. */
static bool admits_some_memory(const struct reduction *r, uint64_t cpus, unsigned i, bool least)
{
	undo_reduction(r);
	reduce_cpus(r, cpus);
	for (unsigned k = 0; least && k < r->asked.nr_memory; k++)
		if (k != i && r->asked.memory[k].bytes)
			reduce_memory(r, k, smallest_amount(&r->asked.memory[k]));
	return r->asked.memory[i].bytes && find_most_memory(r, i);
}

/* Every number of CPUs with every amount of one kind of memory: for policies to which less of both
 * is worse than a little less. */
static bool find_any_less(const struct reduction *r, uint64_t cpus)
{
	for (uint64_t step = r->threads; cpus >= step && !trial_is_over(r->trial);
		cpus -= cpus % step ? cpus % step : step)
		for (unsigned i = 0; i < r->asked.nr_memory; i++)
			if (admits_some_memory(r, cpus, i, false) ||
				admits_some_memory(r, cpus, i, true))
				return true;
	return false;
}

/* Fewer CPUs and as much memory, else less of one kind of memory, else less of all. */
static bool find_less_of(const struct clinic *x, const struct reduction *r)
{
	const struct trial *t = r->trial;
	enum qos qos = t->q.container ? t->request.pod.qos : t->pod.qos;
	bool fixed = t->q.container && !t->in_place && /* as many as its tokens */
		     admit_has_tokens(t->settings, &t->request);
	unsigned cpus = t->settings->cpu_manager_policy == MANAGER_STATIC && !fixed
				? qos_exclusive_cpus(qos, r->asked.cpu_milli)
				: 0;

	if (cpus > 1 && find_most_cpus(r, cpus))
		return true;
	for (unsigned i = 0; i < r->asked.nr_memory; i++) {
		undo_reduction(r);
		if (r->asked.memory[i].bytes && find_most_memory(r, i))
			return true;
	}
	undo_reduction(r);
	if (find_less_of_all(x, r, cpus) || find_any_less(r, cpus))
		return true;
	undo_reduction(r);
	return false;
}

static struct reduction reduction_of(struct trial *t, struct ask *ask)
{
	struct pod_totals *totals = t->q.container ? &t->request.pod.totals : &t->pod.totals;
	const struct topo *topo = ledger_view(t->q.ledger)->topo;

	return (struct reduction){.trial = t,
		.ask = ask,
		.asked = *ask,
		.totals = totals,
		.summed = *totals,
		.threads = wishes_whole_cores(&ask->wishes, &t->settings->cpu_options)
				   ? cores_step(topo, &topo->cpus)
				   : 1};
}

/* The i-th ask of which less is tried: the pod's as one, then the largest of its containers first;
 * NULL: there is none. */
static struct ask *ask_to_reduce(struct clinic *x, size_t i)
{
	struct trial *t = &x->trial;
	size_t largest = 0;

	if (t->q.container)
		return i ? NULL : &t->request.ask;
	if (t->pod.own && i-- == 0)
		return &t->whole_pod;
	if (!t->ask) {
		x->sum = (struct ask){.nr_memory = 1, .memory = {{0, t->pod.totals.memory_bytes}}};
		return i || !t->pod.totals.known ? NULL : &x->sum;
	}
	for (size_t k = 1; k < t->pod.nr; k++)
		if (t->ask[k].cpu_milli > t->ask[largest].cpu_milli)
			largest = k;
	if (i >= t->pod.nr)
		return NULL;
	return &t->ask[i == 0 ? largest : i <= largest ? i - 1 : i];
}

/* Less of one of its containers. */
bool remedies_find_less(struct clinic *x, struct remedy *r)
{
	struct ask *ask;

	for (size_t i = 0; !trial_is_over(&x->trial) && (ask = ask_to_reduce(x, i)); i++) {
		const struct reduction less = reduction_of(&x->trial, ask);

		if (!find_less_of(x, &less))
			continue;
		r->ask = *ask;
		r->asked = less.asked;
		r->container =
			x->trial.ask && !ask->whole_pod && x->trial.pod.nr > 1 ? ask->name : NULL;
		return true;
	}
	return false;
}
