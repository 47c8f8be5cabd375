/* What would have a refused container or pod admitted. Each finder changes the question and decides
 * it again; it is as it was before the next one. */
#include "remedies.h"

#include <numafit/cpus.h>
#include <numafit/mem.h>
#include <numafit/number.h>

#include <stdlib.h>
#include <string.h>

enum { ENTRIES_PER_STEP = 16 }; /* that are looked at, and not decided */

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
	for (size_t i = 0; i < x->trial.nr; i++)
		if (x->first_of_pod[i] == c->first)
			x->trial.gone[i] = gone;
}

static void set_all_gone(struct clinic *x, bool gone)
{
	for (size_t i = 0; i < x->trial.nr; i++)
		if (x->first_of_pod[i] < x->trial.nr)
			x->trial.gone[i] = gone;
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

		if (earlier->decision.exclusive && decision_is_booked(&earlier->decision) &&
			is_of_one_pod(&earlier->request.pod, &h->request.pod))
			cpus = cpuset_minus(cpus, &earlier->decision.cpus);
	}
	return cpuset_count(&cpus);
}

/* The pod's index among the candidates; nr_pods: the pod is none of them. */
static size_t candidate_of(const struct clinic *x, const struct pod *pod)
{
	size_t at = 0;

	while (at < x->nr_pods && !is_of_one_pod(&entry_at(x, x->pod[at].first)->request.pod, pod))
		at++;
	return at;
}

/* The pods that hold anything, but for its own. */
static void list_candidates(struct clinic *x)
{
	const struct admit_question *q = &x->trial.q;
	const struct pod *own = q->container ? &q->container->pod : q->pod;
	const struct topo *t = ledger_view(q->ledger)->topo;

	x->pod = arena_array(x->trial.arena, x->trial.nr, sizeof *x->pod);
	x->first_of_pod = arena_array(x->trial.arena, x->trial.nr, sizeof *x->first_of_pod);
	if (!x->pod || !x->first_of_pod)
		return;
	for (size_t i = 0; i < x->trial.nr; i++) {
		const struct holding *h = entry_at(x, i);

		if (is_of_one_pod(own, &h->request.pod) || !decision_is_booked(&h->decision) ||
			holding_is_share(h))
			continue;
		if (!h->decision.exclusive && !h->decision.nr_blocks &&
			cpuset_empty(&h->decision.left_on))
			continue;
		size_t at = candidate_of(x, &h->request.pod);
		if (at == x->nr_pods)
			x->pod[x->nr_pods++] = (struct candidate){.first = i};
		x->pod[at].cpus += cpus_besides_earlier(x, x->pod[at].first, i);
		x->pod[at].nodes =
			nodeset_or(x->pod[at].nodes, decision_nodes_used(t, &h->decision));
		for (unsigned k = 0; k < h->decision.nr_blocks; k++)
			x->pod[at].memory += h->decision.blocks[k].bytes;
	}
	for (size_t i = 0; i < x->trial.nr; i++) {
		size_t at = candidate_of(x, &entry_at(x, i)->request.pod);

		x->first_of_pod[i] = at < x->nr_pods ? x->pod[at].first : x->trial.nr;
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

	return !nr ? 0 : nr <= REMEDIES_PODS_IN_SETS ? (1U << nr) - 1 : 2 * nr + 1;
}

static void set_pods_of_attempt(struct clinic *x, unsigned i)
{
	unsigned nr = (unsigned)x->nr_pods;

	(void)budget_spend(x->trial.budget, x->trial.nr / ENTRIES_PER_STEP);
	if (nr <= REMEDIES_PODS_IN_SETS) {
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
	unsigned nr = x->nr_pods <= REMEDIES_PODS_IN_SETS ? (unsigned)x->nr_pods : 0, at = 0;

	for (int size = 1; size <= (int)nr; size++)
		for (unsigned set = 1; set < 1U << nr; set++)
			if (__builtin_popcount(set) == size)
				x->set[at++] = (uint8_t)set;
}

/* Pods that end, as few as need be. */
static bool find_ends(struct clinic *x, struct remedy *r)
{
	for (unsigned i = 0; i < end_attempts(x) && !trial_is_over(&x->trial); i++) {
		set_pods_of_attempt(x, i);
		if (!could_do(x) || !trial_admits(&x->trial))
			continue;
		if (x->nr_pods > REMEDIES_PODS_IN_SETS)
			let_come_back(x);
		name_gone_pods(x, r);
		return true;
	}
	return false;
}

/* Both: less, once others have ended. First all of them, as most is free then; but some policies
 * admit with less free what they refuse with more. */
static bool find_less_and_ends(struct clinic *x, struct remedy *r)
{
	for (unsigned i = end_attempts(x); i-- > 0 && !trial_is_over(&x->trial);) {
		set_pods_of_attempt(x, i);
		if (!remedies_find_less(x, r))
			continue;
		let_come_back(x);
		name_gone_pods(x, r);
		return true;
	}
	return false;
}

/* Less, where it runs. */
static bool find_less_in_place(struct clinic *x, struct remedy *r)
{
	r->in_place = x->trial.in_place = x->trial.own < x->trial.nr;
	return r->in_place && remedies_find_less(x, r);
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

/* Of each container that asks for some as many as it has CPUs of its own, else none. */
static bool find_tokens(struct clinic *x, struct remedy *r)
{
	struct trial *t = &x->trial;

	if (x->out->class != REFUSAL_TOKENS || !t->ask)
		return false;
	for (unsigned i = 0; i < t->pod.nr; i++) {
		unsigned cpus = pod_exclusive_cpus(&t->pod, i);

		if (!t->ask[i].tokens || t->ask[i].tokens == cpus)
			continue;
		t->ask[i].tokens = r->value = cpus;
		r->container = t->pod.nr > 1 ? t->ask[i].name : NULL;
	}
	if (r->value && trial_admits(t))
		return true;
	r->value = 0;
	r->container = NULL;
	for (unsigned i = 0; i < t->pod.nr; i++)
		t->ask[i].tokens = 0;
	return trial_admits(t);
}

static void round_to_cores(uint64_t threads, bool up, struct ask *ask)
{
	uint64_t of_core = threads * MILLI_PER_CPU;
	uint64_t rest = ask->cpu_milli % of_core;

	if (ask->cpu_milli % MILLI_PER_CPU || !rest)
		return;
	ask->cpu_milli += up || ask->cpu_milli < of_core ? of_core - rest : -rest;
	if (ask->cpu_limit_milli)
		ask->cpu_limit_milli = ask->cpu_milli;
}

/* full-pcpus-only refuses parts of cores: the next whole ones for each container, else the last. */
static bool find_cores(struct clinic *x, struct remedy *r)
{
	struct trial *t = &x->trial;
	const struct topo *topo = ledger_view(t->q.ledger)->topo;

	struct ask *ask = t->q.container ? &t->request.ask : t->ask;
	size_t nr = t->q.container ? 1 : t->ask ? t->pod.nr : 0;
	bool whole = t->settings->cpu_options.full_pcpus_only;

	for (size_t i = 0; i < nr; i++)
		whole = whole || ask[i].wishes.cores;
	r->value = cores_step(topo, &topo->cpus);
	if (!whole || r->value < 2 ||
		(t->q.container && admit_has_tokens(t->settings, &t->request)))
		return false;

	for (int up = 1; up >= 0; up--) {
		trial_reset(t);
		t->in_place = r->in_place;
		r->asked = nr == 1 ? *ask : (struct ask){0};
		for (size_t i = 0; i < nr; i++)
			round_to_cores(r->value, up, &ask[i]);
		r->ask = nr == 1 ? *ask : (struct ask){0};
		if (trial_admits(t))
			return true;
	}
	return false;
}

static bool find_cores_in_place(struct clinic *x, struct remedy *r)
{
	r->in_place = x->trial.own < x->trial.nr;
	return r->in_place && find_cores(x, r);
}

/* A pod whose hint must be followed may need something else besides. */
static bool find_ends_without_hint(struct clinic *x, struct remedy *r)
{
	r->no_hint = trial_drop_advice(&x->trial);
	return r->no_hint && find_ends(x, r);
}

static bool find_less_without_hint(struct clinic *x, struct remedy *r)
{
	r->no_hint = trial_drop_advice(&x->trial);
	return r->no_hint && remedies_find_less(x, r);
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

/* Of a refusal that no pod that ends would change. */
static bool suppose_fewer_pods(struct clinic *x, struct remedy *r)
{
	r->fewer_pods = x->trial.q.suppose.empty = x->out->class == REFUSAL_POLICY;
	return r->fewer_pods;
}

static bool find_scope_if_empty(struct clinic *x, struct remedy *r)
{
	return suppose_fewer_pods(x, r) && find_scope(x, r);
}

static bool find_policy_if_empty(struct clinic *x, struct remedy *r)
{
	return suppose_fewer_pods(x, r) && find_policy(x, r);
}

/* From the mildest to the last resort. Once one is found only those of its step are looked for. */
static const struct {
	unsigned step;
	enum remedy_kind kind;
	bool (*find)(struct clinic *x, struct remedy *r);
} finders[] = {
	{0, REMEDY_CORES, find_cores_in_place},
	{0, REMEDY_LESS, find_less_in_place},
	{0, REMEDY_ANEW, find_start_anew},
	{1, REMEDY_CORES, find_cores},
	{1, REMEDY_TOKENS, find_tokens},
	{1, REMEDY_NO_HINT, find_no_hint},
	{1, REMEDY_NODES_POLICY, find_nodes_policy},
	{1, REMEDY_BUDGET, find_budget},
	{1, REMEDY_ENDS, find_ends},
	{1, REMEDY_LESS, remedies_find_less},
	{2, REMEDY_ENDS, find_ends_without_hint},
	{2, REMEDY_LESS, find_less_without_hint},
	{3, REMEDY_LESS, find_less_and_ends},
	{4, REMEDY_MINIMUM, find_minimum},
	{5, REMEDY_SCOPE, find_scope},
	{6, REMEDY_POLICY, find_policy},
	{7, REMEDY_SCOPE, find_scope_if_empty},
	{8, REMEDY_POLICY, find_policy_if_empty},
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

static bool is_same_size(const struct ask *a, const struct ask *b)
{
	return a->cpu_milli == b->cpu_milli && ask_same_memory(a, b);
}

/* What a container that runs has already is no remedy, nor what was found before. */
static bool is_news(struct clinic *x, const struct remedy *r)
{
	const struct diagnosis *d = x->out;
	bool runs = x->trial.own < x->trial.nr;

	if (r->kind != REMEDY_LESS && r->kind != REMEDY_CORES)
		return true;
	if (runs && !r->nr_pods && is_same_size(&r->ask, &entry_at(x, x->trial.own)->request.ask))
		return false;
	return !(d->nr_remedies && d->remedy[0].kind == REMEDY_CORES && !r->nr_pods &&
		 d->remedy[0].in_place == r->in_place && is_same_size(&r->ask, &d->remedy[0].ask));
}

void diagnosis_find_remedies(const struct admit_question *q, unsigned decisions, struct budget *b,
	struct arena *a, struct diagnosis *out)
{
	struct clinic x = {.out = out};

	out->nr_remedies = 0;
	if (out->class == REFUSAL_DAEMON || !trial_init(&x.trial, q, decisions, b, a) ||
		trial_is_over(&x.trial))
		return;
	list_candidates(&x);
	order_sets(&x);
	for (size_t i = 0; i < sizeof finders / sizeof *finders; i++) {
		struct remedy r = {.kind = finders[i].kind};

		if (out->nr_remedies == DIAGNOSIS_REMEDIES || trial_is_over(&x.trial) ||
			(i && out->nr_remedies && finders[i].step > finders[i - 1].step))
			break;
		trial_reset(&x.trial);
		if (!finders[i].find(&x, &r) || !is_news(&x, &r))
			continue;
		(void)trial_admits(&x.trial); /* where it would be */
		r.nodes = x.trial.nodes;
		out->remedy[out->nr_remedies++] = r;
	}
	put_easier_first(out);
}

/* What remedies may take: of one refusal, and of several refusals of one answer together. */
static const struct {
	unsigned decisions;
	uint64_t steps, answer_steps;
} efforts[] = {
	[REMEDIES_QUICKLY] = {1 << 8, DIAGNOSIS_STEPS, 1 << 23},
	[REMEDIES_THOROUGHLY] = {1 << 16, 1 << 28, 1 << 25},
};

struct remedies_budget remedies_budget_of(enum remedy_effort effort, size_t nr_refusals)
{
	const uint64_t steps =
		nr_refusals > 1 ? efforts[effort].answer_steps : efforts[effort].steps;

	return (struct remedies_budget){.given = steps, .left = steps, .to_come = nr_refusals};
}

uint64_t remedies_budget_may(const struct remedies_budget *b)
{
	enum { PARTS = 64, PARTS_KEPT = 48 }; /* so many of the latest have a part each */

	const uint64_t kept = b->given / PARTS * number_min(b->to_come, PARTS_KEPT);
	return b->left > kept ? b->left - kept : 0;
}

void remedies_budget_spend(struct remedies_budget *b, uint64_t steps)
{
	b->left -= number_min(b->left, steps);
}

void diagnose_with_remedies(const struct admit_question *q, const struct decision *refused,
	enum remedy_effort effort, struct remedies_budget *answer, struct diagnosis *out)
{
	auto_free void *work = xcalloc(1, ADMIT_ARENA_BYTES);
	struct budget b = budget_of(efforts[effort].steps);
	struct arena a;

	arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
	diagnose(q, refused, &b, &a, out);
	if (answer)
		answer->to_come -= answer->to_come > 0;
	const uint64_t most = answer ? remedies_budget_may(answer) : b.left;
	const bool less = most < b.left;
	const uint64_t may = b.left = number_min(b.left, most);
	diagnosis_find_remedies(q, efforts[effort].decisions, &b, &a, out);
	out->remedies_left_out = less && !b.left;
	if (answer)
		remedies_budget_spend(answer, may - b.left);
}
