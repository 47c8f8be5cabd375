/* What would have a refused container or pod admitted. Each finder changes the question and decides
 * it again; it is as it was before the next one. */
#include "diagnosis_trial.h"

#include <numafit/cpus.h>
#include <numafit/mem.h>
#include <numafit/number.h>

#include <stdlib.h>
#include <string.h>

enum { TRIALS = 64, NODES_TRIED = 8, PODS_IN_SETS = 6, MIB = 1 << 20, GIB = 1 << 30 };

/* A pod that holds something, and could end. */
struct candidate {
	size_t first; /* an entry of it */
	unsigned cpus;
	struct nodeset nodes;
	uint64_t memory;
};

struct clinic {
	struct trial trial;
	struct diagnosis *out;
	struct candidate *pod; /* those that hold least come first */
	size_t nr_pods;
	uint8_t set[1 << PODS_IN_SETS]; /* sets of few pods, a bit for each pod */
	struct ask sum;                 /* of a pod of which only sums are known */
};

/* Pods that end */

static const struct holding *entry_at(const struct clinic *x, size_t i)
{
	return ledger_at(x->trial.q.ledger, i);
}

static bool is_of_one_pod(const struct pod *a, const struct pod *b)
{
	return *a->uid ? text_equal(a->uid, b->uid) : text_equal(a->sandbox_id, b->sandbox_id);
}

static void set_gone(struct clinic *x, const struct candidate *c, bool gone)
{
	const struct pod *pod = &entry_at(x, c->first)->request.pod;

	for (size_t i = 0; i < x->trial.nr; i++)
		if (is_of_one_pod(pod, &entry_at(x, i)->request.pod))
			x->trial.gone[i] = gone;
}

static void set_all_gone(struct clinic *x, bool gone)
{
	for (size_t i = 0; i < x->nr_pods; i++)
		set_gone(x, &x->pod[i], gone);
}

static int by_what_is_held(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->cpus != y->cpus)
		return x->cpus < y->cpus ? -1 : 1;
	if (x->memory != y->memory)
		return x->memory < y->memory ? -1 : 1;
	return x->first < y->first ? -1 : 1;
}

/* CPUs that no earlier entry of the pod has: init containers leave theirs to later ones. */
static unsigned cpus_besides_earlier(const struct clinic *x, size_t first, size_t entry)
{
	const struct holding *h = entry_at(x, entry);
	struct cpuset cpus = h->decision.cpus;

	if (!h->decision.exclusive)
		return 0;
	for (size_t i = first; i < entry; i++) {
		const struct holding *earlier = entry_at(x, i);

		if (earlier->decision.exclusive && !earlier->decision.within_pod &&
			is_of_one_pod(&earlier->request.pod, &h->request.pod))
			cpus = cpuset_minus(cpus, &earlier->decision.cpus);
	}
	return cpuset_count(&cpus);
}

/* The pods that hold anything, but for its own. */
static void list_candidates(struct clinic *x)
{
	const struct admit_question *q = &x->trial.q;
	const struct pod *own = q->container ? &q->container->pod : q->pod;
	const struct topo *t = ledger_view(q->ledger)->topo;

	x->pod = arena_array(x->trial.arena, x->trial.nr, sizeof *x->pod);
	for (size_t i = 0; x->pod && i < x->trial.nr; i++) {
		const struct holding *h = entry_at(x, i);
		size_t at = 0;

		if (is_of_one_pod(own, &h->request.pod) || h->decision.within_pod)
			continue;
		if (!h->decision.exclusive && !h->decision.nr_blocks &&
			cpuset_empty(&h->decision.left_on))
			continue;
		while (at < x->nr_pods &&
			!is_of_one_pod(
				&entry_at(x, x->pod[at].first)->request.pod, &h->request.pod))
			at++;
		if (at == x->nr_pods)
			x->pod[x->nr_pods++] = (struct candidate){.first = i};
		x->pod[at].cpus += cpus_besides_earlier(x, x->pod[at].first, i);
		x->pod[at].nodes =
			nodeset_or(x->pod[at].nodes, decision_nodes_used(t, &h->decision));
		for (unsigned k = 0; k < h->decision.nr_blocks; k++)
			x->pod[at].memory += h->decision.blocks[k].bytes;
	}
	if (x->nr_pods)
		qsort(x->pod, x->nr_pods, sizeof *x->pod, by_what_is_held);
}

static void name_gone_pods(const struct clinic *x, struct remedy *r)
{
	for (size_t i = 0; i < x->nr_pods; i++) {
		const struct candidate *c = &x->pod[i];

		if (!x->trial.gone[c->first])
			continue;
		if (r->nr_pods < REMEDY_PODS)
			r->pod[r->nr_pods] =
				(struct remedy_pod){entry_at(x, c->first), c->cpus, c->nodes};
		r->nr_pods++;
	}
}

/* All are gone, and it is admitted so: let those come back that need not go, large ones first. */
static void let_come_back(struct clinic *x)
{
	for (size_t i = x->nr_pods; i-- > 0;) {
		set_gone(x, &x->pod[i], false);
		if (!trial_admits(&x->trial))
			set_gone(x, &x->pod[i], true);
	}
}

/* Whether with so much more free it is worth a decision. */
static bool could_do(const struct clinic *x)
{
	const struct diagnosis *d = x->out;
	uint64_t cpus = 0, memory = 0, short_of_memory = 0;

	for (size_t i = 0; i < x->nr_pods; i++) {
		bool gone = x->trial.gone[x->pod[i].first];

		cpus += gone ? x->pod[i].cpus : 0;
		memory += gone ? x->pod[i].memory : 0;
	}
	for (unsigned i = 0; i < d->nr; i++) {
		uint64_t more = d->of[i].asked > d->of[i].free ? d->of[i].asked - d->of[i].free : 0;

		if (d->of[i].cpus && more > cpus)
			return false;
		short_of_memory += d->of[i].cpus ? 0 : more;
	}
	return short_of_memory <= memory;
}

/* The pods that end in the i-th attempt, of which there are so many as end_attempts() says: of few
 * pods all sets of them, small ones first; of many each of them, then all but one, then all. */
static unsigned end_attempts(const struct clinic *x)
{
	unsigned nr = (unsigned)x->nr_pods;

	return !nr ? 0 : nr <= PODS_IN_SETS ? (1U << nr) - 1 : 2 * nr + 1;
}

static void set_pods_of_attempt(struct clinic *x, unsigned i)
{
	unsigned nr = (unsigned)x->nr_pods;

	if (nr <= PODS_IN_SETS) {
		for (unsigned k = 0; k < nr; k++)
			set_gone(x, &x->pod[k], x->set[i] >> k & 1);
		return;
	}
	set_all_gone(x, i >= nr);
	if (i < 2 * nr)
		set_gone(x, &x->pod[i % nr], i < nr);
}

/* All sets of few pods, by how many pods they have. */
static void order_sets(struct clinic *x)
{
	unsigned nr = x->nr_pods <= PODS_IN_SETS ? (unsigned)x->nr_pods : 0, at = 0;

	for (int size = 1; size <= (int)nr; size++)
		for (unsigned set = 1; set < 1U << nr; set++)
			if (__builtin_popcount(set) == size)
				x->set[at++] = (uint8_t)set;
}

/* Pods that end, as few as need be. */
static bool find_ends(struct clinic *x, struct remedy *r)
{
	for (unsigned i = 0; i < end_attempts(x); i++) {
		set_pods_of_attempt(x, i);
		if (!could_do(x) || !trial_admits(&x->trial))
			continue;
		if (x->nr_pods > PODS_IN_SETS)
			let_come_back(x);
		name_gone_pods(x, r);
		return true;
	}
	return false;
}

/* Less */

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
	for (uint64_t end = number_min(below, found + step); found && (cpus += r->threads) < end;)
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
	for (unsigned i = 0; i < x->out->nr; i++)
		if (!x->out->of[i].cpus && x->out->of[i].page_bytes == m->page_bytes)
			return x->out->of[i].node_exists;
	return m->bytes;
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

/* So many CPUs with as much as can be of one kind of memory; of the others as much as was asked for,
 * or the least that there is. */
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
	for (uint64_t step = r->threads; cpus >= step; cpus -= cpus % step ? cpus % step : step)
		for (unsigned i = 0; i < r->asked.nr_memory; i++)
			if (admits_some_memory(r, cpus, i, false) ||
				admits_some_memory(r, cpus, i, true))
				return true;
	return false;
}

/* Fewer CPUs and as much memory, else less of one kind of memory, else less of all. */
static bool find_less_of(const struct clinic *x, const struct reduction *r)
{
	bool own = x->out->nr && x->out->of[0].cpus && r->asked.cpu_milli % MILLI_PER_CPU == 0;
	uint64_t cpus = own ? r->asked.cpu_milli / MILLI_PER_CPU : 0;

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
		.threads = t->settings->cpu_options.full_pcpus_only ? topo->nr_cpus / topo->nr_cores
								    : 1};
}

/* The i-th ask of which less is tried: the pod's as one, then the largest of its containers first;
 * NULL: there is none. */
static struct ask *ask_to_reduce(struct clinic *x, size_t i)
{
	struct trial *t = &x->trial;
	size_t largest = 0;

	if (t->q.container)
		return i || admit_has_tokens(t->settings, &t->request) ? NULL : &t->request.ask;
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
static bool find_less(struct clinic *x, struct remedy *r)
{
	struct ask *ask;

	for (size_t i = 0; (ask = ask_to_reduce(x, i)); i++) {
		const struct reduction less = reduction_of(&x->trial, ask);

		if (!find_less_of(x, &less))
			continue;
		r->ask = *ask;
		r->asked = less.asked;
		r->container = x->trial.ask && !ask->whole_pod && x->trial.pod.nr > 1 ? ask->name
										     : NULL;
		return true;
	}
	return false;
}

/* Both: less, once others have ended. First all of them, as most is free then; but some policies
 * admit with less free what they refuse with more. */
static bool find_less_and_ends(struct clinic *x, struct remedy *r)
{
	for (unsigned i = end_attempts(x); i-- > 0;) {
		set_pods_of_attempt(x, i);
		if (!find_less(x, r))
			continue;
		let_come_back(x);
		name_gone_pods(x, r);
		return true;
	}
	return false;
}

/* Other changes of the pod */

/* In any trial the container's own entry is gone, and it is placed anew. */
static bool find_start_anew(struct clinic *x, struct remedy *r)
{
	(void)r;
	return x->trial.own < x->trial.nr && trial_admits(&x->trial);
}

static bool find_no_hint(struct clinic *x, struct remedy *r)
{
	(void)r;
	return trial_drop_advice(&x->trial) && trial_admits(&x->trial);
}

/* The pod's policy is its own where it is stricter than the node's. */
static bool find_nodes_policy(struct clinic *x, struct remedy *r)
{
	struct trial *t = &x->trial;
	struct pod *pod = t->q.container ? &t->request.pod : &t->pod;
	bool had = pod->has_policy;

	(void)r;
	pod->has_policy = false;
	return had && trial_admits(t);
}

/* Of each container that asks for some as many as it has CPUs of its own. */
static bool find_tokens(struct clinic *x, struct remedy *r)
{
	struct trial *t = &x->trial;

	for (unsigned i = 0; t->ask && i < t->pod.nr; i++) {
		unsigned cpus = pod_exclusive_cpus(&t->pod, i);

		if (!t->ask[i].tokens || t->ask[i].tokens == cpus)
			continue;
		t->ask[i].tokens = r->value = cpus;
		r->container = t->pod.nr > 1 ? t->ask[i].name : NULL;
	}
	return r->value && trial_admits(t);
}

/* Other settings */

static bool find_minimum(struct clinic *x, struct remedy *r)
{
	struct settings *s = x->trial.settings;

	for (r->value = settings_pool_minimum(s); --r->value > 0;) {
		s->shared_pool_minimum = (unsigned)r->value;
		if (trial_admits(&x->trial))
			return true;
	}
	return false;
}

/* What a daemon may spend is more than a remedy may: it shows only where there is time for it. */
static bool find_budget(struct clinic *x, struct remedy *r)
{
	r->value = MERGE_VISIT_BUDGET_MAX;
	return x->out->class == REFUSAL_CUT && trial_admits(&x->trial) && !x->trial.cut;
}

static bool find_scope(struct clinic *x, struct remedy *r)
{
	r->value = SCOPE_CONTAINER;
	if (x->trial.settings->topology_scope != SCOPE_POD || !x->trial.ask)
		return false;
	x->trial.settings->topology_scope = (enum topology_scope)r->value;
	return trial_admits(&x->trial);
}

static bool find_policy(struct clinic *x, struct remedy *r)
{
	const struct pod *pod = x->trial.q.container ? &x->trial.request.pod : &x->trial.pod;

	r->value = POLICY_BEST_EFFORT;
	if (pod->has_policy || x->out->policy <= POLICY_BEST_EFFORT)
		return false; /* its own is as strict whatever the node's is */
	x->trial.settings->topology_policy = (enum topology_policy)r->value;
	return trial_admits(&x->trial);
}

/* From the mildest to the last resort. Once one is found only those of its step are looked for. */
static const struct {
	unsigned step;
	enum remedy_kind kind;
	bool (*find)(struct clinic *x, struct remedy *r);
} finders[] = {
	{0, REMEDY_ANEW, find_start_anew},
	{1, REMEDY_TOKENS, find_tokens},
	{1, REMEDY_NO_HINT, find_no_hint},
	{1, REMEDY_NODES_POLICY, find_nodes_policy},
	{1, REMEDY_BUDGET, find_budget},
	{1, REMEDY_ENDS, find_ends},
	{1, REMEDY_LESS, find_less},
	{2, REMEDY_LESS, find_less_and_ends},
	{3, REMEDY_MINIMUM, find_minimum},
	{4, REMEDY_SCOPE, find_scope},
	{5, REMEDY_POLICY, find_policy},
};

/* To ask for a little less is easier than to end several pods. */
static void put_easier_first(struct diagnosis *d)
{
	const struct remedy first = d->remedy[0];

	if (d->nr_remedies < 2 || first.kind != REMEDY_ENDS || first.nr_pods < 2 ||
		d->remedy[1].kind != REMEDY_LESS)
		return;
	d->remedy[0] = d->remedy[1];
	d->remedy[1] = first;
}

void diagnosis_find_remedies(const struct admit_question *q, unsigned decisions, struct budget *b,
	struct arena *a, struct diagnosis *out)
{
	struct clinic x = {.out = out};

	out->nr_remedies = 0;
	if (out->class == REFUSAL_DAEMON || !trial_init(&x.trial, q, decisions, b, a))
		return;
	list_candidates(&x);
	order_sets(&x);
	for (size_t i = 0; i < sizeof finders / sizeof *finders; i++) {
		struct remedy r = {.kind = finders[i].kind};

		if (out->nr_remedies == DIAGNOSIS_REMEDIES ||
			(i && out->nr_remedies && finders[i].step > finders[i - 1].step))
			break;
		trial_reset(&x.trial);
		if (!finders[i].find(&x, &r))
			continue;
		(void)trial_admits(&x.trial); /* where it would be */
		r.nodes = x.trial.nodes;
		out->remedy[out->nr_remedies++] = r;
	}
	put_easier_first(out);
}

void diagnose_with_remedies(const struct admit_question *q, const struct decision *refused,
	enum remedy_effort effort, struct diagnosis *out)
{
	static const struct {
		unsigned decisions;
		uint64_t steps;
	} may[] = {
		[REMEDIES_QUICKLY] = {1 << 8, DIAGNOSIS_STEPS},
		[REMEDIES_THOROUGHLY] = {1 << 16, 1 << 28},
	};
	auto_free void *work = xcalloc(1, ADMIT_ARENA_BYTES);
	struct budget b = budget_of(may[effort].steps);
	struct arena a;

	arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
	diagnose(q, refused, &b, &a, out);
	diagnosis_find_remedies(q, may[effort].decisions, &b, &a, out);
}
