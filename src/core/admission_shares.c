/* Pods with resources of their own, aligned as one (KEP-5526; kubelet AllocatePod of the CPU and
 * the memory manager): CPUs and memory for the pod as a whole, exclusive parts of these for
 * containers whose limits are their requests, and the rest for its other containers together. */
#include "admission_pass.h"

#include <numafit/cpus.h>

#include <errno.h>
#include <string.h>

static bool is_exclusive(const struct way_in *w, unsigned c, bool of_cpus)
{
	return of_cpus ? pod_exclusive_cpus(w->pod, c) > 0 : w->out->memory[c].demand.kinds != 0;
}

unsigned admission_own_cpus(const struct way_in *w)
{
	if (w->b->s->cpu_manager_policy != MANAGER_STATIC)
		return 0;
	return qos_exclusive_cpus(w->pod->qos, w->pod->own->cpu_milli);
}

/* CPUs, or memory by kind. */
struct shares {
	bool of_cpus;
	unsigned kinds; /* bit k: amount[k] counts */
	uint64_t amount[TOPO_KINDS];
};

static int refuse_empty(struct way_in *w, bool init, const struct shares *s, unsigned kind)
{
	char name[TOPO_NAME_MAX];
	const char *what = s->of_cpus ? "cpu" : topo_kind_name(w->b->t, kind, name, sizeof name);
	int rc;

	if (init)
		rc = admission_refuse(w, "EmptyPodSharedPoolError",
			"pod rejected, pod has shared init containers but no %s available for them",
			s->of_cpus ? "cpus" : what);
	else
		rc = admission_refuse(w, "EmptyPodSharedPoolError",
			"pod rejected, sum of exclusive container %s requests equals pod budget, "
			"leaving no %s for shared containers",
			what, s->of_cpus ? "cpus" : "memory");
	w->why->cause = REFUSED_FOR_SHARES;
	return rc;
}

/* What of it the container has for itself. */
static uint64_t own_share(const struct way_in *w, unsigned c, const struct shares *s, unsigned kind)
{
	return s->of_cpus ? pod_exclusive_cpus(w->pod, c) : w->out->memory[c].demand.bytes[kind];
}

/* The first kind of which the containers leave nothing, or TOPO_KINDS. */
static unsigned kind_without_rest(const struct shares *total, const struct shares *taken)
{
	unsigned k = 0;

	while (k < TOPO_KINDS && !((total->kinds >> k & 1) && taken->amount[k] >= total->amount[k]))
		k++;
	return k;
}

/* What the containers that run as long as the pod have for themselves, in their order, against what
 * the pod has: where another one shares, something of each kind must be left
 * (validatePodScopeResources). */
static int check_shares(struct way_in *w, const struct shares *total)
{
	struct shares taken = {0};
	bool shared = false;

	for (unsigned c = 0; c < w->pod->nr; c++) {
		bool init = w->pod->container[c].kind == CONTAINER_INIT;
		bool own = is_exclusive(w, c, total->of_cpus);
		unsigned k = kind_without_rest(total, &taken);

		if (init && !own && k < TOPO_KINDS)
			return refuse_empty(w, true, total, k);
		shared = shared || (!init && !own);
		for (k = 0; !init && own && k < TOPO_KINDS; k++)
			taken.amount[k] += own_share(w, c, total, k);
	}
	unsigned k = kind_without_rest(total, &taken);
	return shared && k < TOPO_KINDS ? refuse_empty(w, false, total, k) : 0;
}

int admission_check_cpu_shares(struct way_in *w)
{
	return check_shares(
		w, &(const struct shares){
			   .of_cpus = true, .kinds = 1, .amount = {admission_own_cpus(w)}});
}

int admission_check_memory_shares(struct way_in *w)
{
	const struct memory_demand *own = &w->out->pod_memory.demand;
	struct shares total = {.kinds = own->kinds};

	memcpy(total.amount, own->bytes, sizeof total.amount);
	return check_shares(w, &total);
}

static int refuse_share(struct way_in *w, const char *what)
{
	int rc = admission_refuse(w, "UnexpectedAdmissionError",
		"Allocate failed due to %s, which is unexpected", what);

	w->why->cause = REFUSED_FOR_SHARES;
	return rc;
}

/* Parts of the pod's CPUs: init containers from what sidecars before them leave, one after the
 * other; then the others, each from what those before it leave. */
static int part_cpus(struct way_in *w)
{
	const struct books *b = w->b;
	struct cpus_how how = cpus_how(b->t, &b->s->cpu_options);
	struct cpuset left = w->out->pod_cpus;
	struct err e;

	for (unsigned c = 0; c < w->pod->nr; c++) {
		bool init = w->pod->container[c].kind == CONTAINER_INIT;
		struct cpuset *got = &w->out->of[c].cpus;
		unsigned count = pod_exclusive_cpus(w->pod, c);

		if (init && !count)
			*got = left;
		if (!count)
			continue;
		how.later = admission_later_cores(w, c);
		if (cpus_take_in_parts(b->t, &left, count, &how, w->budget, got, &e))
			return refuse_share(w, e.text);
		if (!init)
			left = cpuset_minus(left, got);
	}
	for (unsigned c = 0; c < w->pod->nr; c++)
		if (w->pod->container[c].kind != CONTAINER_INIT && !pod_exclusive_cpus(w->pod, c))
			w->out->of[c].cpus = left;
	return 0;
}

static int give_own_cpus(struct way_in *w, const struct hint *affinity)
{
	struct books *b = w->b;
	unsigned count = admission_own_cpus(w);
	const struct cpuset left = cpuset_minus(b->shared, &b->promised);
	struct cpuset from = admission_usable_cpus(w, &(const struct wishes){0}, &left), got;
	struct cpuset reserved = cpus_whole_cores(b->t, &b->reserved);
	struct cpuset physical = cpuset_minus(from, &reserved);
	struct err e;

	if (!count)
		return 0;
	int rc = admission_check_cpu_shares(w);
	if (rc)
		return rc;
	if (cpus_check_whole_cores(b->t, &b->s->cpu_options, &physical, count, &e))
		return admission_refuse(w, "SMTAlignmentError", "%s", e.text);
	from = cpuset_minus(from, &b->reserved);
	if (cpus_allocate(
		    b->t, &b->s->cpu_options, &from, count, NULL, affinity, w->budget, &got, &e))
		return refuse_share(w, e.text);
	admission_prefer_hinted_cpus(w, &b->s->cpu_options, &from, affinity, &got);
	w->out->pod_cpus = got;
	b->shared = cpuset_minus(b->shared, &got);
	rc = admission_check_pool(w);
	return rc ? rc : part_cpus(w);
}

/* The blocks of a container that has so much of the pod's memory. */
static void share_memory(struct memory_container *to, const struct memory_container *pod,
	const struct memory_demand *d)
{
	for (unsigned i = 0; i < pod->nr_blocks; i++) {
		struct memory_block block = pod->blocks[i];

		block.bytes = d->bytes[block.kind];
		if (block.bytes)
			to->blocks[to->nr_blocks++] = block;
	}
}

static void take_away(struct memory_demand *left, const struct memory_demand *d)
{
	for (unsigned k = 0; k < TOPO_KINDS; k++)
		left->bytes[k] -= d->bytes[k] < left->bytes[k] ? d->bytes[k] : left->bytes[k];
}

static void part_memory(struct way_in *w)
{
	struct grants *g = w->out;
	struct memory_demand left = g->pod_memory.demand;

	for (unsigned c = 0; c < g->nr; c++) {
		struct memory_container *m = &g->memory[c];
		bool init = w->pod->container[c].kind == CONTAINER_INIT;

		if (m->demand.kinds || init)
			share_memory(m, &g->pod_memory, m->demand.kinds ? &m->demand : &left);
		if (m->demand.kinds && !init)
			take_away(&left, &m->demand);
	}
	for (unsigned c = 0; c < g->nr; c++)
		if (!g->memory[c].demand.kinds && w->pod->container[c].kind != CONTAINER_INIT)
			share_memory(&g->memory[c], &g->pod_memory, &left);
}

static int give_own_memory(struct way_in *w, const struct hint *affinity)
{
	struct memory_container *own = &w->out->pod_memory;
	struct memory_reuse none = {0};
	struct err e;

	if (!w->pins_memory)
		return 0;
	int rc = admission_check_memory_shares(w);
	if (rc)
		return rc;
	struct arena_mark before = arena_mark(w->arena);
	int nr = memory_allocate(w->b->t, &w->b->memory, &own->demand, &none, affinity, w->budget,
		w->arena, own->blocks, &e);
	arena_release(w->arena, before);
	if (nr < 0)
		return refuse_share(w, e.text);
	own->nr_blocks = (unsigned)nr;
	memory_hold(&w->b->memory, own->blocks, own->nr_blocks);
	part_memory(w);
	return 0;
}

int admission_share_out(struct way_in *w, const struct grant *of_pod, struct budget *budget)
{
	struct grants *g = w->out;

	w->budget = budget;
	g->as_one = true;
	for (unsigned c = 0; c < g->nr; c++)
		g->of[c] = *of_pod;
	int rc = give_own_cpus(w, &of_pod->affinity);
	for (unsigned c = 0; c < g->nr; c++)
		admission_judge_cpus(w, c);
	if (!rc)
		rc = give_own_memory(w, &of_pod->affinity);
	for (unsigned c = 0; c < g->nr && !rc; c++)
		for (unsigned i = 0; i < g->memory[c].nr_blocks; i++)
			g->of[c].mems = nodeset_or(g->of[c].mems, g->memory[c].blocks[i].nodes);
	w->why->cut_short = budget->cut;
	return rc;
}
