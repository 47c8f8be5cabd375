/* Which class a refusal is of: first what was asked against what there is, then the same question
 * on the node as it might be. */
#include "diagnosis_trial.h"

#include <numafit/admission.h>
#include <numafit/leases.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/resize.h>

#include <string.h>

enum { TRIAL_STEPS = 16 };

const char *const refusal_class_words[NR_REFUSAL_CLASSES] = {
	[REFUSAL_DAEMON] = "numafit",
	[REFUSAL_TOKENS] = "tokens",
	[REFUSAL_CLAIM] = "claim",
	[REFUSAL_WISH] = "wish",
	[REFUSAL_SHARES] = "pod-level",
	[REFUSAL_ABSENT] = "does-not-exist",
	[REFUSAL_STAYS] = "where-it-runs",
	[REFUSAL_POOL] = "shared-pool",
	[REFUSAL_POLICY] = "policy",
	[REFUSAL_TAKEN] = "not-free",
	[REFUSAL_HINT] = "hint",
	[REFUSAL_CUT] = "search-cut-short",
	[REFUSAL_POD] = "pod",
	[REFUSAL_NOT_TOGETHER] = "not-together",
};

/* Amounts */

/* How many of those amounts, the largest first, it takes to have what is asked for. */
static unsigned nodes_needed(const struct diagnosis_amount *m, uint64_t on[NODES_MAX])
{
	uint64_t sum = 0;

	for (unsigned nr = 1; nr <= NODES_MAX; nr++) {
		unsigned most = 0;

		for (unsigned n = 1; n < NODES_MAX; n++)
			most = on[n] > on[most] ? n : most;
		sum += on[most];
		on[most] = 0;
		if (sum >= m->asked)
			return nr;
	}
	return 0;
}

static void add_cpus(struct diagnosis *d, const struct books *b, uint64_t asked)
{
	struct diagnosis_amount *m = &d->of[d->nr];
	const struct cpuset exist = cpuset_minus(b->t->cpus, &b->reserved);
	const struct cpuset left = books_free_cpus(b);
	uint64_t on[NODES_MAX] = {0};

	if (!asked || b->s->cpu_manager_policy != MANAGER_STATIC)
		return;
	d->nr++;
	*m = (struct diagnosis_amount){.cpus = true,
		.asked = asked,
		.exists = cpuset_count(&exist),
		.free = cpuset_count(&left)};
	nodeset_each (n, b->t->nodes) {
		on[n] = cpuset_count_and(&b->t->node[n].cpus, &exist);
		m->node_exists = number_max(m->node_exists, on[n]);
		m->node_free =
			number_max(m->node_free, cpuset_count_and(&b->t->node[n].cpus, &left));
	}
	m->nodes = nodes_needed(m, on);
}

static void add_memory(
	struct diagnosis *d, const struct books *b, uint64_t page_bytes, uint64_t asked)
{
	int kind = topo_kind_of_page(b->t, page_bytes);
	struct diagnosis_amount *m = &d->of[d->nr];
	uint64_t on[NODES_MAX] = {0};

	for (unsigned i = 0; i < d->nr; i++)
		if (!d->of[i].cpus && d->of[i].page_bytes == page_bytes)
			return;
	if (!asked || d->nr == sizeof d->of / sizeof *d->of)
		return;
	d->nr++;
	*m = (struct diagnosis_amount){
		.kind = kind < 0 ? TOPO_KINDS : (unsigned)kind,
		.page_bytes = page_bytes,
		.asked = asked,
	};
	nodeset_each (n, kind < 0 ? (struct nodeset){0} : b->t->nodes) {
		const struct memory_node *node = &b->memory.node[n];

		on[n] = node->allocatable[kind];
		m->exists += node->allocatable[kind];
		m->free += node->free[kind];
		m->node_exists = number_max(m->node_exists, node->allocatable[kind]);
		m->node_free = number_max(m->node_free, node->free[kind]);
	}
	m->nodes = nodes_needed(m, on);
}

/* The pod that the question is about; a container is its only one. */
static struct pod pod_of_question(const struct admit_question *q)
{
	struct pod pod = q->container ? q->container->pod : *q->pod;

	if (q->container) {
		pod.own = NULL;
		pod.nr = 1;
		pod.container = &q->container->ask;
	}
	return pod;
}

static void measure_amounts(
	const struct admit_question *q, const struct books *b, struct diagnosis *d)
{
	const struct pod pod = pod_of_question(q);
	/* the sums count where a container stands for its pod, or where only they are known */
	bool sums = pod.totals.known &&
		    (!pod.nr || (q->container && b->s->topology_scope == SCOPE_POD &&
					!ledger_find_of_pod(q->ledger, pod.uid)));
	bool as_one = pod.own && pod_is_aligned_as_one(b->s, &pod);
	uint64_t cpus =
		pod.nr ? pod_needs_at_once(&pod, (struct pod_resource){.kind = POD_CPUS}) : 0;

	if (as_one)
		cpus = qos_exclusive_cpus(pod.qos, pod.own->cpu_milli);

	if (sums && cpus)
		cpus = number_max(cpus, pod.totals.cpu_milli / MILLI_PER_CPU);
	add_cpus(d, b, cpus);
	if (b->s->memory_manager_policy != MANAGER_STATIC || !pod_pins_memory(&pod))
		return;
	const struct pod_resource ordinary = {.kind = POD_BYTES};
	const struct ask all = as_one ? *pod.own : pod_ask(&pod);
	if (!as_one)
		add_memory(d, b, 0,
			number_max(pod_needs_at_once(&pod, ordinary),
				sums ? pod.totals.memory_bytes : 0));
	for (unsigned i = 0; i < all.nr_memory; i++)
		add_memory(d, b, all.memory[i].page_bytes, all.memory[i].bytes);
}

/* Trials */

void trial_reset(struct trial *x)
{
	const struct admit_question *q = x->asked;

	*x->settings = *q->settings;
	x->in_place = false;
	x->q.suppose.empty = q->suppose.empty;
	if (q->container)
		x->request = *q->container;
	else
		x->pod = *q->pod;
	if (x->ask) {
		memcpy(x->ask, q->pod->container, q->pod->nr * sizeof *x->ask);
		x->pod.container = x->ask;
	}
	if (!q->container && q->pod->own) {
		x->whole_pod = *q->pod->own;
		x->pod.own = &x->whole_pod;
	}
	for (size_t i = 0; i < x->nr; i++)
		x->gone[i] = i == x->own;
}

bool trial_init(struct trial *x, const struct admit_question *q, unsigned decisions,
	struct budget *b, struct arena *a)
{
	bool has_asks = !q->container && q->pod->container;

	*x = (struct trial){.asked = q,
		.q = *q,
		.budget = b,
		.arena = a,
		.left = decisions,
		.settings = arena_alloc(a, sizeof *x->settings),
		.nr = ledger_count(q->ledger),
		.own = ledger_count(q->ledger)};
	x->gone = arena_array(a, x->nr + 1, sizeof *x->gone);
	x->ask = has_asks ? arena_array(a, q->pod->nr, sizeof *x->ask) : NULL;
	if (!x->settings || !x->gone || (has_asks && !x->ask))
		return false;
	for (size_t i = 0; q->container && i < x->nr; i++)
		if (text_equal(ledger_at(q->ledger, i)->request.container_id,
			    q->container->container_id))
			x->own = i;
	x->q.settings = x->settings;
	x->q.container = q->container ? &x->request : NULL;
	x->q.pod = q->container ? NULL : &x->pod;
	x->q.suppose.gone = x->gone;
	trial_reset(x);
	return true;
}

/* Where its CPUs and its memory would be; empty: anywhere. */
static struct nodeset nodes_held(const struct topo *t, const struct decision *d)
{
	return d->has_affinity && (d->exclusive || d->nr_blocks) ? decision_nodes_used(t, d)
								 : (struct nodeset){0};
}

bool trial_is_over(const struct trial *x)
{
	return !x->left || (!x->budget->endless && !x->budget->left);
}

bool trial_admits(struct trial *x)
{
	struct decision *parts = NULL, d;

	/* what collecting the hints takes besides the searches, so that a large pod on a large
	 * machine is decided again a few times only */
	uint64_t cost = (x->ask ? x->pod.nr : 1) * (uint64_t)ledger_view(x->q.ledger)->topo->ids.nr;

	/* and what making the books of all entries takes */
	if (!x->left || !budget_spend(x->budget, TRIAL_STEPS * cost + x->nr))
		return false;
	x->left--;
	struct arena_mark before = arena_mark(x->arena);
	struct budget part = budget_part(x->budget, 1, 4);
	if (x->in_place)
		resize(x->q.ledger, x->settings, ledger_at(x->q.ledger, x->own), &x->request, &part,
			x->arena, &d);
	else
		admit(&x->q, &part, x->arena, &d, x->q.container ? NULL : &parts);
	budget_return(x->budget, &part);
	x->cut = part.cut;
	const struct topo *t = ledger_view(x->q.ledger)->topo;
	x->aligned = x->nodes = (struct nodeset){0};
	if (d.admit && !parts && !x->in_place) {
		x->aligned = d.has_affinity ? d.nodes : (struct nodeset){0};
		x->nodes = nodes_held(t, &d);
	}
	for (size_t i = 0; parts && i < x->pod.nr; i++) {
		x->nodes = nodeset_or(x->nodes, nodes_held(t, &parts[i]));
		if (parts[i].has_affinity && (parts[i].exclusive || parts[i].nr_blocks))
			x->aligned = nodeset_or(x->aligned, parts[i].nodes);
	}
	arena_release(x->arena, before);
	return d.admit;
}

bool trial_drop_advice(struct trial *x)
{
	bool had = x->request.ask.advice;

	x->request.ask.advice = NULL;
	for (size_t i = 0; x->ask && i < x->pod.nr; i++) {
		had = had || x->ask[i].advice;
		x->ask[i].advice = NULL;
	}
	return had;
}

/* Classes */

/* What deciding again says, each once and only when a row asks for it. */
struct again {
	const struct admit_question *q;
	const struct decision *refused;
	struct budget *budget;
	struct arena *arena;
	struct diagnosis *d;
	bool has_advice;
	struct diagnosis_answer {
		bool known, admits, cut;
		unsigned nodes;
	} now, now_any_pool, empty, empty_any_pool;
};

/* The same question without advice on a node like that. */
static const struct diagnosis_answer *decide_without_advice(
	struct again *x, struct diagnosis_answer *of, bool empty, bool any_pool)
{
	struct arena_mark before = arena_mark(x->arena);
	struct trial t;

	if (of->known)
		return of;
	*of = (struct diagnosis_answer){.known = true};
	if (!trial_init(&t, x->q, 1, x->budget, x->arena))
		return of;
	x->has_advice = trial_drop_advice(&t);
	t.q.suppose.empty = empty;
	t.q.suppose.any_pool = any_pool;
	of->admits = trial_admits(&t);
	of->cut = t.cut;
	of->nodes = nodeset_count(t.aligned);
	arena_release(x->arena, before);
	return of;
}

static bool is_daemons(struct again *x)
{
	const enum refusal_cause cause = x->refused->cause;

	return cause == REFUSED_BY_DAEMON || cause == REFUSED_FOR_ROOM ||
	       cause == REFUSED_WHILE_MOVED;
}

static bool is_of_tokens(struct again *x)
{
	return x->refused->cause == REFUSED_FOR_TOKENS;
}

static bool is_of_claim(struct again *x)
{
	return x->refused->cause == REFUSED_FOR_CLAIM;
}

static bool is_of_wish(struct again *x)
{
	return x->refused->cause == REFUSED_FOR_WISH;
}

static bool is_of_shares(struct again *x)
{
	return x->refused->cause == REFUSED_FOR_SHARES;
}

static bool is_where_it_runs(struct again *x)
{
	return x->refused->cause == REFUSED_BESIDE_CPUS ||
	       x->refused->cause == REFUSED_BESIDE_MEMORY;
}

static bool exceeds_machine(struct again *x)
{
	bool found = false;

	for (unsigned i = 0; i < x->d->nr; i++)
		found = found || x->d->of[i].asked > x->d->of[i].exists;
	return found;
}

static bool is_taken(struct again *x)
{
	bool found = false;

	for (unsigned i = 0; i < x->d->nr; i++)
		found = found || x->d->of[i].asked > x->d->of[i].free;
	return found;
}

static const struct diagnosis_answer *on_empty_node(struct again *x)
{
	return decide_without_advice(x, &x->empty, true, false);
}

/* Only CPUs of its own can leave the pool with too few. */
static bool is_short_of_pool(struct again *x)
{
	if (!x->d->nr || !x->d->of[0].cpus)
		return false;
	if (!decide_without_advice(x, &x->now, false, false)->admits &&
		decide_without_advice(x, &x->now_any_pool, false, true)->admits)
		return true;
	return !on_empty_node(x)->admits &&
	       decide_without_advice(x, &x->empty_any_pool, true, true)->admits;
}

static bool is_never_admitted(struct again *x)
{
	return !on_empty_node(x)->admits && !x->empty.cut;
}

static bool is_refused_for_hint(struct again *x)
{
	return decide_without_advice(x, &x->now, false, false)->admits && x->has_advice;
}

static bool is_cut_short(struct again *x)
{
	return x->refused->cut_short || x->empty.cut;
}

/* Each container of the pod by itself is admitted. */
static bool fits_container_by_container(struct again *x)
{
	const struct pod *pod = x->q->pod;
	bool all = pod && pod->container && pod->nr > 1;

	for (size_t i = 0; all && i < pod->nr; i++) {
		struct pod alone = *pod;
		struct ask one = pod->container[i];
		struct admit_question q = *x->q;
		struct arena_mark before = arena_mark(x->arena);
		struct trial t;

		one.advice = NULL;
		alone.container = &one;
		alone.nr = 1;
		q.pod = &alone;
		all = trial_init(&t, &q, 1, x->budget, x->arena) && trial_admits(&t);
		arena_release(x->arena, before);
	}
	return all;
}

static bool is_not_together(struct again *x)
{
	(void)x;
	return true;
}

static const struct {
	enum refusal_class class;
	bool (*holds)(struct again *x);
} classes[] = {
	{REFUSAL_DAEMON, is_daemons},
	{REFUSAL_TOKENS, is_of_tokens},
	{REFUSAL_CLAIM, is_of_claim},
	{REFUSAL_WISH, is_of_wish},
	{REFUSAL_SHARES, is_of_shares},
	{REFUSAL_ABSENT, exceeds_machine},
	{REFUSAL_STAYS, is_where_it_runs},
	{REFUSAL_POOL, is_short_of_pool},
	{REFUSAL_POLICY, is_never_admitted},
	{REFUSAL_TAKEN, is_taken},
	{REFUSAL_HINT, is_refused_for_hint},
	{REFUSAL_CUT, is_cut_short},
	{REFUSAL_POD, fits_container_by_container},
	{REFUSAL_NOT_TOGETHER, is_not_together},
};

/* Where each container is placed by itself the policy refuses one of them, whatever the others ask
 * for. */
static bool is_of_one_container(
	const struct admit_question *q, const struct decision *refused, enum refusal_class class)
{
	return !q->container && refused->in_the_way &&
	       q->settings->topology_scope == SCOPE_CONTAINER &&
	       (class == REFUSAL_POLICY || class == REFUSAL_CUT || class == REFUSAL_NOT_TOGETHER);
}

static void measure_container(const struct ask *container, const struct admit_question *q,
	const struct books *b, struct diagnosis *d)
{
	struct pod alone = *q->pod;
	const struct admit_question of_it = {q->ledger, q->settings, .pod = &alone};

	alone.nr = 1;
	alone.container = container;
	alone.own = NULL;
	alone.totals.known = false;
	measure_amounts(&of_it, b, d);
}

/* Reserved CPUs are in the shared pool, unless strictly reserved. */
static unsigned cpus_kept(const struct settings *s)
{
	unsigned shared =
		s->cpu_options.strict_cpu_reservation ? 0 : settings_reserved_cpu_count(s);
	unsigned minimum = settings_pool_minimum(s);

	return minimum > shared ? minimum - shared : 0;
}

/* How many NUMA nodes the policy would have it on; 0: any number, or no number will do. */
static unsigned nodes_allowed(struct again *x)
{
	const struct diagnosis *d = x->d;

	if (d->policy == POLICY_SINGLE_NUMA_NODE)
		return 1;
	if (d->policy != POLICY_RESTRICTED)
		return 0;
	if (on_empty_node(x)->admits)
		return x->empty.nodes;
	for (unsigned i = 1; i < d->nr; i++)
		if (d->of[i].nodes != d->of[0].nodes)
			return 0;
	return d->nr ? d->of[0].nodes : 0;
}

void diagnose(const struct admit_question *q, const struct decision *refused, struct budget *b,
	struct arena *a, struct diagnosis *out)
{
	struct again x = {.q = q, .refused = refused, .budget = b, .arena = a, .d = out};
	struct trial as_asked;
	unsigned row = 0;

	*out = (struct diagnosis){.policy = refused->policy,
		.nr_containers = q->container ? 1 : (unsigned)q->pod->nr};
	const struct books *books =
		trial_init(&as_asked, q, 0, b, a) ? admit_books(&as_asked.q, a) : NULL;
	if (!books)
		return;
	measure_amounts(q, books, out);
	out->kept = cpus_kept(q->settings);
	while (!classes[row].holds(&x))
		row++;
	out->class = classes[row].class;
	if (is_of_one_container(q, refused, out->class)) {
		out->nr = 0;
		measure_container(refused->in_the_way, q, books, out);
	}
	out->allowed = nodes_allowed(&x);
	const struct holding *resized =
		as_asked.own < as_asked.nr ? ledger_at(q->ledger, as_asked.own) : NULL;
	out->resize = resized;
	diagnosis_find_places(q, books, resized, out);
}

void diagnose_in_numbers(
	const struct admit_question *q, const struct decision *refused, struct diagnosis *out)
{
	struct budget b = budget_of(DIAGNOSIS_STEPS);
	auto_free void *work = xcalloc(1, ADMIT_ARENA_BYTES);
	struct arena a;

	arena_init_fixed(&a, work, ADMIT_ARENA_BYTES);
	diagnose(q, refused, &b, &a, out);
}
