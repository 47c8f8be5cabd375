/* Hints of devices, CPUs and memory -> one merge -> the policy's verdict -> devices, CPUs, bytes.
 */
#include "admission_pass.h"

#include <numafit/cpus.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <numafit/tokens.h>

#include <assert.h>
#include <errno.h>

enum { MILLI_PER_CPU = 1000 };

/* A pod on its way in. */
struct way_in {
	struct books *b;
	const struct pod *ask;
	struct grants *out;
	struct budget *budget; /* of the container that is dealt with, or of the pod */
	struct arena *arena;
	unsigned place; /* the container that is dealt with */
	bool whole;     /* not yet: the pod as a whole is */
	struct cpuset reusable_cpus;
	struct memory_reuse reuse;
	bool *reusable[POD_DEVICES_MAX];
	bool follow; /* hints are followed; else only judged */
	struct refusal *why, *by_advice;
};

static int refuse(struct way_in *w, const char *reason, const char *message)
{
	w->why->reason = reason;
	w->why->place = w->place;
	w->why->of_pod = w->whole;
	(void)text_copy(w->why->message, sizeof w->why->message, message);
	return -EPERM;
}

static int refuse_allocation(struct way_in *w, const char *what)
{
	struct text t;
	int rc = refuse(w, "UnexpectedAdmissionError", "");

	text_init(&t, w->why->message, sizeof w->why->message);
	text_add(&t, "Allocate failed due to %s, which is unexpected", what);
	return rc;
}

static int refuse_for_room(struct way_in *w)
{
	int rc = refuse_allocation(w, "the decision needing more working memory than there is");

	w->why->no_room = true;
	return rc;
}

/* Hints */

static uint64_t cpus_of(const struct pod *pod, unsigned c, unsigned what)
{
	(void)what;
	return pod_exclusive_cpus(pod, c);
}

static uint64_t devices_of(const struct pod *pod, unsigned c, unsigned resource)
{
	for (unsigned i = 0; i < pod->container[c].nr_devices; i++)
		if (pod->container[c].device[i].resource == resource)
			return pod->container[c].device[i].count;
	return 0;
}

static bool asks_for_device(const struct ask *c, unsigned resource)
{
	for (unsigned i = 0; i < c->nr_devices; i++)
		if (c->device[i].resource == resource)
			return true;
	return false;
}

/* All hints that enter one merge. */
struct hints {
	struct cpus_per_node per_node;
	struct memory_rows rows;
	unsigned nr;
	struct family *family;
};

/* Room for as many hints as there can be, from *a; NULL: its limit is reached. */
static struct hints *hints_new(const struct books *b, struct arena *a)
{
	struct hints *h = arena_alloc(a, sizeof *h);

	if (h)
		h->family = arena_array(a, b->nr_resources + 1 + b->t->nr_kinds, sizeof *h->family);
	return h && h->family ? h : NULL;
}

static struct device_claim claim(
	const struct way_in *w, unsigned resource, uint64_t count, bool reuse)
{
	return (struct device_claim){
		.resource = &w->b->resource[resource],
		.count = count,
		.held = w->b->held[resource],
		.reusable = reuse ? w->reusable[resource] : NULL,
	};
}

static bool static_cpus(const struct way_in *w)
{
	return w->b->s->cpu_manager_policy == MANAGER_STATIC;
}

static bool pins_memory(const struct way_in *w)
{
	return w->b->s->memory_manager_policy == MANAGER_STATIC && pod_pins_memory(w->ask);
}

static int device_hints(const struct way_in *w, bool pod_scope, struct arena *a, struct hints *h)
{
	const struct ask *c = &w->ask->container[w->place];

	for (unsigned r = 0; r < w->b->nr_resources; r++) {
		bool asked = !pod_scope && asks_for_device(c, r);

		for (unsigned i = 0; i < w->ask->nr && pod_scope; i++)
			asked = asked || asks_for_device(&w->ask->container[i], r);
		if (!asked)
			continue;
		uint64_t count = pod_scope ? pod_needs_at_once(w->ask, devices_of, r)
					   : devices_of(w->ask, w->place, r);
		struct device_claim what = claim(w, r, count, !pod_scope);
		struct budget part = budget_part(w->budget, 1, 4);
		int rc = devices_family(&what, w->b->t->nodes, &part, a, &h->family[h->nr++]);
		budget_return(w->budget, &part);
		if (rc)
			return rc;
	}
	return 0;
}

/* What is neither promised nor held. */
static struct cpuset unpromised(const struct books *b)
{
	return cpuset_minus(b->shared, &b->promised);
}

static struct cpuset available_cpus(const struct books *b)
{
	return cpuset_minus(unpromised(b), &b->reserved);
}

/* Of a pod of which only sums are known, whole CPUs of the sum count: what is not whole CPUs cannot
 * be exclusive ones. */
static unsigned cpus_at_once(const struct pod *ask)
{
	uint64_t count = pod_needs_at_once(ask, cpus_of, 0);

	if (count && ask->totals.known)
		count = number_max(count, ask->totals.cpu_milli / MILLI_PER_CPU);
	return (unsigned)count;
}

static void cpu_hints(const struct way_in *w, bool pod_scope, struct hints *h)
{
	unsigned count = pod_scope ? cpus_at_once(w->ask) : pod_exclusive_cpus(w->ask, w->place);
	struct cpuset available = available_cpus(w->b);

	if (!static_cpus(w) || !count || w->ask->container[w->place].cpus_on)
		return;
	cpus_family(w->b->t, &w->b->s->cpu_options, &available, &w->reusable_cpus, count,
		&h->per_node, &h->family[h->nr++]);
	cpus_set_aside(w->b->t, &w->b->reserved, &h->per_node);
}

static struct nodeset nodes_of(const unsigned *cpus_on)
{
	struct nodeset nodes = {0};

	for (unsigned n = 0; n < NODES_MAX; n++)
		if (cpus_on[n])
			nodes = nodeset_or(nodes, nodeset_of(n));
	return nodes;
}

static bool is_empty(const struct family *f)
{
	return f->kind == FAMILY_CAPACITY && !f->nr_extra && !family_has(f, f->ground);
}

/* Of *f what is within those nodes. */
static struct family within(const struct family *f, struct nodeset nodes)
{
	struct family in = *f;

	in.ground = nodeset_and(in.ground, nodes);
	in.nr_extra = 0;
	for (unsigned i = 0; i < f->nr_extra; i++)
		if (nodeset_within(f->extra[i], nodes))
			in.extra[in.nr_extra++] = f->extra[i];
	return in;
}

/* Where the container's CPUs are is settled, by the kubelet's Topology Manager: its memory is to be
 * on nodes of theirs, on as few as it needs. What is not there may come from around them, or from
 * anywhere, which is not preferred. */
static void keep_beside(struct nodeset beside, struct family *f)
{
	struct family best = within(f, beside);

	if (is_empty(&best)) {
		best = *f;
		best.preferred_size = NODES_MAX + 1;
		best.required = nodeset_or(f->required, beside);
		best.nr_extra = 0;
		for (unsigned i = 0; i < f->nr_extra; i++)
			if (nodeset_within(beside, f->extra[i]))
				best.extra[best.nr_extra++] = f->extra[i];
	}
	if (is_empty(&best)) {
		best = *f;
		best.preferred_size = NODES_MAX + 1;
	}
	*f = best;
}

static void memory_hints(const struct way_in *w, bool pod_scope, struct arena *a, struct hints *h)
{
	const unsigned *cpus_on = w->ask->container[w->place].cpus_on;
	const struct pod_totals *totals = &w->ask->totals;
	struct memory_demand total;

	if (!pins_memory(w))
		return;
	if (pod_scope)
		memory_pod_demand(w->out->memory, w->out->nr, &total);
	else
		total = w->out->memory[w->place].demand;
	if (pod_scope && totals->known && total.kinds & 1)
		total.bytes[0] = number_max(total.bytes[0], totals->memory_bytes);
	struct budget part = budget_part(w->budget, 1, 4);
	unsigned nr = memory_families(w->b->t, &w->b->memory, &total, pod_scope ? NULL : &w->reuse,
		&h->rows, &part, a, &h->family[h->nr]);
	budget_return(w->budget, &part);
	for (unsigned i = 0; cpus_on && i < nr; i++)
		keep_beside(nodes_of(cpus_on), &h->family[h->nr + i]);
	h->nr += nr;
}

/* uncertain: with more steps it may not have been refused. */
static int refuse_affinity(struct way_in *w, bool uncertain)
{
	return refuse(w, "TopologyAffinityError",
		uncertain ? "Resources cannot be allocated with Topology locality, as far as a "
			    "search cut short by mergeVisitBudget can tell"
			  : "Resources cannot be allocated with Topology locality");
}

/* Whether any manager has a preference: who shares CPUs and pins no memory goes anywhere. */
static bool has_hints(const struct way_in *w, bool pod_scope)
{
	unsigned count = pod_scope ? cpus_at_once(w->ask) : pod_exclusive_cpus(w->ask, w->place);

	return (static_cpus(w) && count) || pins_memory(w) || w->b->nr_resources;
}

/* The hints of all managers, from *a. NULL: its limit is reached. */
static struct hints *collect(const struct way_in *w, bool pod_scope, struct arena *a)
{
	struct hints *h = hints_new(w->b, a);

	if (!h || device_hints(w, pod_scope, a, h) < 0)
		return NULL;
	cpu_hints(w, pod_scope, h);
	memory_hints(w, pod_scope, a, h);
	return h;
}

static enum topology_policy policy_of(const struct way_in *w)
{
	return w->ask->has_policy ? w->ask->policy : w->b->s->topology_policy;
}

static void refuse_by_advice(const struct way_in *w, const struct advice_ruling *ruling,
	const struct advice_result *result)
{
	struct refusal *why = w->by_advice;
	struct text t;

	if (why->reason)
		return;
	*why = (struct refusal){.reason = "TopologyAffinityError",
		.place = w->place,
		.of_pod = w->whole,
		.advice = *result};
	text_init(&t, why->message, sizeof why->message);
	text_add(&t, ADVICE_REFUSES " (%s): ", advice_verdict_name(ruling->verdict));
	advice_explain(ruling, &w->b->t->ids, &t);
}

/* A scheduler's advice chooses among answers that are as good as that without it. */
static int follow_advice(struct way_in *w, const struct advice_merge *merge, struct grant *g,
	struct policy_answer *answer)
{
	const struct ask *c = &w->ask->container[w->place];
	struct advice_ruling ruling;

	if (!c->advice || c->advice->mode == ADVICE_OFF)
		return 0;
	const struct advice_terms terms = {
		.so_far = c->advice->so_far,
		.mode = c->advice->mode,
		.repair = c->advice->repair,
		.fixed = c->cpus_on ? nodes_of(c->cpus_on) : (struct nodeset){0},
		.overruled = w->follow ? ADVICE_NONE : ADVICE_REJECTED_NOT_FIT,
	};
	advice_judge(merge, c->advice->asked, &terms, &ruling);
	g->advice = (struct advice_result){
		true, ruling.verdict, ruling.cause, c->advice->mode, ruling.asked, ruling.given};
	w->why->advice = g->advice;
	*answer = ruling.answer;
	if (ruling.refuse)
		refuse_by_advice(w, &ruling, &g->advice);
	return ruling.refuse && w->follow ? -EPERM : 0;
}

/* What the merge comes to is the container's, or the pod's. */
static void take_affinity(struct way_in *w, const struct hint *affinity, struct grant *g)
{
	const unsigned *cpus_on = w->ask->container[w->place].cpus_on;

	g->affinity = *affinity;
	if (affinity->any && cpus_on) /* then what there is */
		g->affinity =
			(struct hint){.mask = nodes_of(cpus_on), .preferred = affinity->preferred};
}

/* Why the merge came out so. reasons: NULL without hints. */
static void take_reasons(struct way_in *w, const struct advice_merge *m,
	const struct policy_answer *answer, struct reasons *reasons, struct grant *g)
{
	const struct reasons *found = reasons ? reasons_of(m->policy, m->space, m->family, m->nr,
							answer, w->budget->cut, w->budget, w->arena)
					      : NULL;

	if (found) {
		*reasons = *found;
		g->reasons = reasons;
	}
	w->why->reasons = g->reasons;
	if (w->by_advice->place == w->place)
		w->by_advice->reasons = g->reasons;
}

/* Hints, their merge, advice, the policy's verdict; what it needs of the arena is free again
 * afterwards, but for the reasons. */
static int merge_hints(struct way_in *w, bool pod_scope, struct reasons *reasons, struct grant *g)
{
	const struct settings *s = w->b->s;
	const struct hint_space space = {
		.all = w->b->t->nodes,
		.distance = s->prefer_closest_numa_nodes ? w->b->t->distance : NULL,
		.strategy = s->allocation_strategy,
	};
	static const struct hints none;
	const struct hints *h = reasons ? collect(w, pod_scope, w->arena) : &none;
	struct policy_answer answer;

	if (!h)
		return refuse_for_room(w);
	bool uncertain = w->budget->cut;
	struct budget part = budget_part(w->budget, 3, 4);
	int rc = policy_merge_families(
		policy_of(w), &space, h->family, h->nr, &part, w->arena, &answer);
	budget_return(w->budget, &part);
	if (rc < 0)
		return refuse_for_room(w);
	g->policy = policy_of(w);
	const struct advice_merge merge = {g->policy, &space, h->family, h->nr, answer};
	int advised = follow_advice(w, &merge, g, &answer);
	take_reasons(w, &merge, &answer, reasons, g);
	take_affinity(w, &answer.affinity, g);
	if (advised)
		return advised;
	return answer.admit ? 0 : refuse_affinity(w, uncertain || rc == MERGE_CUT);
}

static int align(struct way_in *w, bool pod_scope, struct grant *g)
{
	struct reasons *reasons = NULL;

	if (has_hints(w, pod_scope)) {
		reasons = arena_alloc(w->arena, sizeof *reasons);
		if (!reasons)
			return refuse_for_room(w);
	}
	struct arena_mark before = arena_mark(w->arena);
	int rc = merge_hints(w, pod_scope, reasons, g);
	arena_release(w->arena, before);
	return rc;
}

/* Allocation */

static void hold_devices(struct way_in *w, unsigned r, const bool *chosen, bool for_later)
{
	for (unsigned d = 0; d < w->b->resource[r].nr; d++) {
		if (!chosen[d])
			continue;
		w->b->held[r][d] = true;
		w->reusable[r][d] = for_later;
	}
}

static int give_devices(struct way_in *w, const struct hint *affinity)
{
	const struct ask *c = &w->ask->container[w->place];
	struct grant *to = &w->out->of[w->place];
	struct err e;

	for (unsigned i = 0; i < c->nr_devices; i++) {
		unsigned r = c->device[i].resource;
		struct device_claim what = claim(w, r, c->device[i].count, true);

		if (!c->device[i].count && w->b->resource[r].nr == 0)
			continue;
		bool *chosen = arena_array(w->arena, what.resource->nr, sizeof *chosen);
		if (!chosen)
			return refuse_for_room(w);
		if (devices_allocate(&what, affinity, chosen, &e) < 0)
			return refuse_allocation(w, e.text);
		to->device[r] = chosen;
		hold_devices(w, r, chosen, c->kind == CONTAINER_INIT);
	}
	return 0;
}

/* What full-pcpus-only asks for, of what is left of cores without a reserved CPU. */
static int check_whole_cores(struct way_in *w, unsigned count)
{
	const struct books *b = w->b;
	struct cpuset reserved = cpus_whole_cores(b->t, &b->reserved);
	struct cpuset physical = cpuset_minus(unpromised(b), &reserved);
	const unsigned *cpus_on = w->ask->container[w->place].cpus_on;
	struct err e;
	int rc = cpus_check_whole_cores(b->t, &b->s->cpu_options, &physical, count, &e);

	nodeset_each (n, b->t->nodes) { /* no core is on two of them */
		struct cpuset here = cpuset_and(physical, &b->t->node[n].cpus);

		if (cpus_on && !rc)
			rc = cpus_check_whole_cores(
				b->t, &b->s->cpu_options, &here, cpus_on[n], &e);
	}
	return rc ? refuse(w, "SMTAlignmentError", e.text) : 0;
}

static int check_shared(struct way_in *w)
{
	struct cpuset shared = unpromised(w->b);
	unsigned left = cpuset_count(&shared);
	struct text t;

	if (left >= w->b->keep_shared)
		return 0;
	int rc = refuse(w, "UnexpectedAdmissionError", "");
	text_init(&t, w->why->message, sizeof w->why->message);
	text_add(&t, "the shared pool would be left with %u CPUs, sharedPoolMinimum is %u", left,
		w->b->keep_shared);
	return rc;
}

/* From each NUMA node as many as its tokens are. */
static int take_by_node(const struct books *b, const struct cpuset *free_cpus,
	const unsigned *cpus_on, struct budget *budget, struct cpuset *got, struct err *e)
{
	*got = (struct cpuset){0};
	nodeset_each (n, b->t->nodes) {
		const struct hint there = {.mask = nodeset_of(n)};
		struct cpuset here = cpuset_and(*free_cpus, &b->t->node[n].cpus), some;

		if (!cpus_on[n])
			continue;
		int rc = cpus_allocate(
			b->t, &b->s->cpu_options, &here, cpus_on[n], &there, budget, &some, e);
		if (rc)
			return rc;
		*got = cpuset_or(*got, &some);
	}
	return 0;
}

static int take_cpus(const struct way_in *w, const struct cpuset *free_cpus, unsigned count,
	const struct hint *affinity, struct cpuset *got, struct err *e)
{
	const unsigned *cpus_on = w->ask->container[w->place].cpus_on;

	return cpus_on ? take_by_node(w->b, free_cpus, cpus_on, w->budget, got, e)
		       : cpus_allocate(w->b->t, &w->b->s->cpu_options, free_cpus, count, affinity,
				 w->budget, got, e);
}

static int give_cpus(struct way_in *w, const struct hint *affinity)
{
	struct books *b = w->b;
	unsigned count = static_cpus(w) ? pod_exclusive_cpus(w->ask, w->place) : 0;
	struct cpuset free_cpus = available_cpus(b), got;
	struct err e;

	if (!count)
		return 0;
	int rc = check_whole_cores(w, count);
	if (rc)
		return rc;
	free_cpus = cpuset_or(free_cpus, &w->reusable_cpus);
	if (take_cpus(w, &free_cpus, count, affinity, &got, &e) < 0)
		return refuse_allocation(w, e.text);
	w->out->of[w->place].cpus = got;
	b->shared = cpuset_minus(b->shared, &got);
	w->reusable_cpus = w->ask->container[w->place].kind == CONTAINER_INIT
				   ? cpuset_or(w->reusable_cpus, &got)
				   : cpuset_minus(w->reusable_cpus, &got);
	return check_shared(w);
}

static int give_memory(struct way_in *w, const struct hint *affinity)
{
	struct memory_container *c = &w->out->memory[w->place];
	struct err e;

	if (!pins_memory(w))
		return 0;
	struct arena_mark before = arena_mark(w->arena);
	int nr = memory_allocate(w->b->t, &w->b->memory, &c->demand, &w->reuse, affinity, w->budget,
		w->arena, c->blocks, &e);
	arena_release(w->arena, before);
	if (nr < 0)
		return refuse_allocation(w, e.text);
	c->nr_blocks = (unsigned)nr;
	for (unsigned i = 0; i < c->nr_blocks; i++)
		w->out->of[w->place].mems =
			nodeset_or(w->out->of[w->place].mems, c->blocks[i].nodes);
	memory_hold_in_pod(&w->b->memory, &w->reuse, w->out->memory, w->place + 1);
	return 0;
}

static int align_pod(struct way_in *w, struct grant *of_pod)
{
	return align(w, true, of_pod);
}

static int lead_container(struct way_in *w, struct grant *of_pod)
{
	struct grant *g = &w->out->of[w->place];
	int rc = 0;

	if (of_pod)
		*g = *of_pod;
	else
		rc = align(w, false, g);
	if (!rc)
		rc = give_devices(w, &g->affinity);
	if (!rc)
		rc = give_cpus(w, &g->affinity);
	return rc ? rc : give_memory(w, &g->affinity);
}

/* The pod's way */

/* One part of it, with its share of the whole budget. */
static int with_share(struct way_in *w, struct budget *whole, unsigned i,
	int (*run)(struct way_in *w, struct grant *of_pod), struct grant *of_pod, bool *cut_short)
{
	struct budget part = budget_share(whole, w->ask->nr + 1, i);

	w->budget = &part;
	int rc = run(w, of_pod);
	*cut_short = *cut_short || part.cut;
	budget_return(whole, &part);
	return rc;
}

static int prepare(struct way_in *w)
{
	struct grants *out = w->out;

	*out = (struct grants){
		.of = arena_array(w->arena, w->ask->nr, sizeof *out->of),
		.memory = arena_array(w->arena, w->ask->nr, sizeof *out->memory),
	};
	if (!out->of || !out->memory)
		return refuse_for_room(w);
	out->nr = w->ask->nr;
	for (unsigned c = 0; c < out->nr; c++) {
		out->memory[c].init = w->ask->container[c].kind != CONTAINER_APP;
		out->memory[c].restartable = w->ask->container[c].kind == CONTAINER_SIDECAR;
	}
	for (unsigned r = 0; r < w->b->nr_resources; r++) {
		w->reusable[r] = arena_array(w->arena, w->b->resource[r].nr, sizeof(bool));
		if (!w->reusable[r])
			return refuse_for_room(w);
	}
	return 0;
}

static int read_demands(struct way_in *w)
{
	struct err e;

	for (unsigned c = 0; c < w->ask->nr && pins_memory(w); c++) {
		const struct ask *ask = &w->ask->container[c];

		if (memory_demand(w->b->t, ask->memory, ask->nr_memory, &w->out->memory[c].demand,
			    &e) < 0) {
			w->whole = false;
			w->place = c;
			return refuse_allocation(w, e.text);
		}
	}
	return 0;
}

int admission_pass(const struct admission_way *how, struct books *b, const struct pod *pod,
	struct budget *budget, struct arena *a, struct grants *out, struct refusal *why)
{
	struct refusal by_advice = {0};
	struct way_in w = {.b = b,
		.ask = pod,
		.out = out,
		.arena = a,
		.why = why,
		.whole = true,
		.follow = how->follow,
		.by_advice = how->by_advice ? how->by_advice : &by_advice};
	bool by_pod = b->s->topology_scope == SCOPE_POD && policy_of(&w) != POLICY_NONE;
	struct grant of_pod = {.policy = policy_of(&w)};

	assert(a->fixed);
	*why = (struct refusal){0};
	int rc = prepare(&w);
	if (!rc)
		rc = read_demands(&w);
	if (how->settled)
		of_pod.affinity = *how->settled;
	else if (!rc && by_pod)
		rc = with_share(&w, budget, 0, align_pod, &of_pod, &of_pod.cut_short);
	w.whole = false;
	for (; !rc && w.place < pod->nr; w.place++)
		rc = with_share(&w, budget, w.place + 1, lead_container,
			how->settled || by_pod ? &of_pod : NULL, &out->of[w.place].cut_short);
	why->cut_short = budget->cut;
	return rc;
}

void grants_return(struct books *b, const struct grants *g)
{
	for (unsigned c = 0; c < g->nr; c++) {
		b->shared = cpuset_or(b->shared, &g->of[c].cpus);
		memory_release(&b->memory, g->memory[c].blocks, g->memory[c].nr_blocks);
		for (unsigned r = 0; r < b->nr_resources; r++)
			for (unsigned i = 0; g->of[c].device[r] && i < b->resource[r].nr; i++)
				if (g->of[c].device[r][i])
					b->held[r][i] = false;
	}
}
