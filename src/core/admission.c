/* A pod's way through its admission: its containers are led one after the other to where they are
 * to be (admission_merge.c), and each is given its devices, CPUs and memory there. With schedulers'
 * advice there are two passes, one with it and one without: it is followed when the pod as a whole
 * fares as well as without it, for what one container is given elsewhere may be what the next one
 * would have needed there. */
#include "admission_pass.h"

#include <numafit/cpus.h>

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int admission_refuse(struct way_in *w, const char *reason, const char *fmt, ...)
{
	va_list ap;

	w->why->reason = reason;
	w->why->cause = REFUSED_ON_BOOKS;
	w->why->place = w->place;
	w->why->of_pod = w->whole;
	va_start(ap, fmt);
	(void)vsnprintf(w->why->message, sizeof w->why->message, fmt, ap);
	va_end(ap);
	return -EPERM;
}

int admission_refuse_for_room(struct way_in *w)
{
	int rc = admission_refuse(w, "UnexpectedAdmissionError",
		"Allocate failed due to the decision needing more working memory than there is, "
		"which is unexpected");

	w->why->cause = REFUSED_FOR_ROOM;
	return rc;
}

static int refuse_allocation(struct way_in *w, const char *what)
{
	return admission_refuse(w, "UnexpectedAdmissionError",
		"Allocate failed due to %s, which is unexpected", what);
}

/* Make room for what the containers will be given, and read how much memory each asks for. */
static int begin_pass(struct way_in *w)
{
	const struct pod *pod = w->pod;
	struct grants *out = w->out;
	struct err e;

	*out = (struct grants){
		.of = arena_array(w->arena, pod->nr, sizeof *out->of),
		.memory = arena_array(w->arena, pod->nr, sizeof *out->memory),
	};
	if (!out->of || !out->memory)
		return admission_refuse_for_room(w);
	out->nr = pod->nr;
	for (unsigned r = 0; r < w->b->nr_resources; r++) {
		w->reusable[r] = arena_array(w->arena, w->b->resource[r].nr, sizeof(bool));
		if (!w->reusable[r])
			return admission_refuse_for_room(w);
	}
	for (unsigned c = 0; c < out->nr; c++) {
		const struct ask *ask = &pod->container[c];
		struct memory_container *m = &out->memory[c];

		m->init = ask->kind != CONTAINER_APP;
		m->restartable = ask->kind == CONTAINER_SIDECAR;
		if (!w->pins_memory || (pod->pod_level && !ask->guaranteed) ||
			wishes_untouched(&ask->wishes) ||
			memory_demand(w->b->t, ask->memory, ask->nr_memory, &m->demand, &e) == 0)
			continue;
		w->whole = false;
		w->place = c;
		return refuse_allocation(w, e.text);
	}
	struct memory_demand *own = &out->pod_memory.demand;
	if (!pod->own || !w->pins_memory)
		return 0;
	if (memory_demand(w->b->t, pod->own->memory, pod->own->nr_memory, own, &e))
		return refuse_allocation(w, e.text);
	for (unsigned k = 0; k < TOPO_KINDS; k++)
		if (!own->bytes[k]) /* of a pod none is none */
			own->kinds &= ~(1U << k);
	return 0;
}

static int give_devices(struct way_in *w, const struct hint *affinity)
{
	const struct ask *c = &w->pod->container[w->place];
	struct err e;

	for (unsigned i = 0; i < c->nr_devices; i++) {
		unsigned r = c->device[i].resource;
		const struct device_claim what = {
			.resource = &w->b->resource[r],
			.count = c->device[i].count,
			.held = w->b->held[r],
			.reusable = w->reusable[r],
		};

		if (!what.count && what.resource->nr == 0)
			continue;
		bool *chosen = arena_array(w->arena, what.resource->nr, sizeof *chosen);
		if (!chosen)
			return admission_refuse_for_room(w);
		if (devices_allocate(&what, affinity, chosen, &e) < 0)
			return refuse_allocation(w, e.text);
		w->out->of[w->place].device[r] = chosen;
		for (unsigned d = 0; d < what.resource->nr; d++)
			if (chosen[d]) {
				w->b->held[r][d] = true;
				w->reusable[r][d] = c->kind == CONTAINER_INIT;
			}
	}
	return 0;
}

struct cpuset books_free_cpus(const struct books *b)
{
	const struct cpuset kept = cpuset_or(b->promised, &b->reserved);

	return cpuset_minus(b->shared, &kept);
}

/* Of CPUs that are free those that the container that is dealt with may be given, by its wishes. */
static struct cpuset usable_cpus(const struct way_in *w, struct cpuset from)
{
	return admission_usable_cpus(w, &w->pod->container[w->place].wishes, &from);
}

struct cpuset admission_usable_cpus(
	const struct way_in *w, const struct wishes *wishes, const struct cpuset *free_cpus)
{
	const struct books *b = w->b;
	const bool these_alone = wishes->isolated == WISH_ISOLATED_REQUIRE ||
				 (wishes->isolated == WISH_ISOLATED_PREFER &&
					 b->isolated == ISOLATED_FOR_WHO_WISHES);
	struct cpuset from = *free_cpus;

	if (these_alone)
		from = cpuset_and(from, &b->t->isolated);
	else if (b->isolated != ISOLATED_FOR_ALL)
		from = cpuset_minus(from, &b->t->isolated);
	const struct cpu_options options = wishes_cpu_options(wishes, &b->s->cpu_options);
	return cpus_usable(b->t, &options, &from);
}

static int check_isolated_of_one(struct way_in *w)
{
	const unsigned count = w->b->s->cpu_manager_policy == MANAGER_STATIC
				       ? pod_exclusive_cpus(w->pod, w->place)
				       : 0;
	struct cpuset there = cpuset_minus(w->b->t->isolated, &w->b->reserved), left;

	if (w->pod->container[w->place].wishes.isolated != WISH_ISOLATED_REQUIRE || !count)
		return 0;
	there = cpuset_and(there, &w->b->t->cpus);
	left = books_free_cpus(w->b);
	left = cpuset_or(left, &w->reusable_cpus);
	left = usable_cpus(w, left);
	if (cpuset_count(&left) >= count)
		return 0;
	return admission_refuse(w, "UnexpectedAdmissionError",
		"annotation numafit.io/isolated is require: it asks for %u CPU%s, of %u isolated "
		"CPU%s %u are left",
		count, text_plural(count), cpuset_count(&there), text_plural(cpuset_count(&there)),
		cpuset_count(&left));
}

/* Where too few are left there is nothing to align. 0 or -EPERM with the refusal. */
static int check_isolated(struct way_in *w)
{
	const bool whole = w->whole;
	int rc = 0;

	w->whole = false;
	for (unsigned i = 0; i < w->pod->nr && !rc; i++) {
		w->place = i;
		rc = check_isolated_of_one(w);
	}
	if (rc)
		return rc;
	w->place = 0;
	w->whole = whole;
	return 0;
}

/* What full-pcpus-only asks for, of what is left of cores without a reserved CPU. */
static int check_whole_cores(struct way_in *w, unsigned count)
{
	const struct books *b = w->b;
	const struct ask *c = &w->pod->container[w->place];
	const unsigned *cpus_on = c->cpus_on;
	const struct cpu_options options = wishes_cpu_options(&c->wishes, &b->s->cpu_options);
	struct cpuset reserved = cpus_whole_cores(b->t, &b->reserved);
	struct cpuset physical = cpuset_minus(b->shared, &b->promised);
	struct err e;

	physical = cpuset_minus(physical, &reserved);
	if (cpus_by_core(&options)) /* the kubelet does not count them */
		physical = cpuset_or(physical, &w->reusable_cpus);
	physical = usable_cpus(w, physical);
	int rc = cpus_check_whole_cores(b->t, &options, &physical, count, &e);
	nodeset_each (n, b->t->nodes) { /* no core is on two of them */
		struct cpuset here = cpuset_and(physical, &b->t->node[n].cpus);

		if (cpus_on && !rc)
			rc = cpus_check_whole_cores(b->t, &options, &here, cpus_on[n], &e);
	}
	return rc ? admission_refuse(w, "SMTAlignmentError", "%s", e.text) : 0;
}

/* From each NUMA node as many CPUs as the container has tokens of it. */
static int take_cpus_by_node(const struct way_in *w, const struct cpu_options *options,
	const struct cpuset *free_cpus, struct cpuset *got, struct err *e)
{
	const unsigned *cpus_on = w->pod->container[w->place].cpus_on;
	const struct books *b = w->b;

	*got = (struct cpuset){0};
	nodeset_each (n, b->t->nodes) {
		const struct hint there = {.mask = nodeset_of(n)};
		struct cpuset here = cpuset_and(*free_cpus, &b->t->node[n].cpus), some;

		if (!cpus_on[n])
			continue;
		int rc = cpus_allocate(
			b->t, options, &here, cpus_on[n], NULL, &there, w->budget, &some, e);
		if (rc)
			return rc;
		*got = cpuset_or(*got, &some);
	}
	return 0;
}

int admission_check_pool(struct way_in *w)
{
	const struct cpuset others = cpuset_or(w->b->promised, &w->b->unshared),
			    left = cpuset_minus(w->b->shared, &others);
	const unsigned nr = cpuset_count(&left);
	char minimum[POOL_MINIMUM_TEXT_MAX];

	if (nr >= w->b->keep_shared)
		return 0;
	return admission_refuse(w, "UnexpectedAdmissionError",
		"the shared pool would be left with %u CPU%s, %s", nr, text_plural(nr),
		settings_pool_minimum_text(w->b->s, minimum));
}

static bool is_followed(const struct advice_result *h)
{
	return h->verdict == ADVICE_ACCEPTED || h->verdict == ADVICE_ACCEPTED_STALE;
}

/* True if these CPUs leave as much to others as those: they are of as few NUMA nodes, sockets,
 * caches and cores. */
static bool are_as_compact(
	const struct topo *t, const struct cpuset *these, const struct cpuset *those)
{
	for (enum topo_level level = 0; level < TOPO_LEVELS; level++) {
		struct cpuset of_these = {0}, of_those = {0};

		cpuset_each (cpu, these)
			cpuset_add(&of_these, topo_part_of(t, cpu, level));
		cpuset_each (cpu, those)
			cpuset_add(&of_those, topo_part_of(t, cpu, level));
		if (cpuset_count(&of_these) > cpuset_count(&of_those))
			return false;
	}
	return true;
}

void admission_prefer_hinted_cpus(const struct way_in *w, const struct cpu_options *options,
	const struct cpuset *from, const struct hint *affinity, struct cpuset *got)
{
	const struct books *b = w->b;
	const struct ask *c = &w->pod->container[w->place];
	const unsigned count = cpuset_count(got);
	struct cpuset named, some;
	struct err e;

	if (!w->follow || !c->advice || c->cpus_on || !is_followed(&w->out->of[w->place].advice))
		return;
	named = cpuset_and(*from, &c->advice->cpus);
	if (cpuset_count(&named) < count ||
		cpus_allocate(b->t, options, &named, count, NULL, affinity, w->budget, &some, &e))
		return;
	if (are_as_compact(b->t, &some, got))
		*got = some;
}

void admission_judge_cpus(struct way_in *w, unsigned place)
{
	const struct ask *c = &w->pod->container[place];
	struct grant *g = &w->out->of[place];

	if (!c->advice || cpuset_empty(&c->advice->cpus) || !is_followed(&g->advice))
		return;
	if (cpuset_empty(&g->cpus) || !cpuset_within(&g->cpus, &c->advice->cpus))
		g->advice.verdict = ADVICE_REPAIRED_CPUS;
}

static int give_cpus(struct way_in *w, const struct hint *affinity)
{
	struct books *b = w->b;
	const struct ask *c = &w->pod->container[w->place];
	unsigned count = b->s->cpu_manager_policy == MANAGER_STATIC
				 ? pod_exclusive_cpus(w->pod, w->place)
				 : 0;
	const struct cpu_options options = wishes_cpu_options(&c->wishes, &b->s->cpu_options);
	const struct core_need later = admission_later_cores(w, w->place);
	struct cpuset from = books_free_cpus(b), got;
	struct err e;

	if (!count)
		return 0;
	int rc = check_whole_cores(w, count);
	if (rc)
		return rc;
	from = cpuset_or(from, &w->reusable_cpus);
	from = usable_cpus(w, from);
	rc = c->cpus_on ? take_cpus_by_node(w, &options, &from, &got, &e)
			: cpus_allocate(b->t, &options, &from, count, &later, affinity, w->budget,
				  &got, &e);
	if (rc)
		return refuse_allocation(w, e.text);
	admission_prefer_hinted_cpus(w, &options, &from, affinity, &got);
	w->out->of[w->place].cpus = got;
	b->shared = cpuset_minus(b->shared, &got);
	w->reusable_cpus = c->kind == CONTAINER_INIT ? cpuset_or(w->reusable_cpus, &got)
						     : cpuset_minus(w->reusable_cpus, &got);
	return admission_check_pool(w);
}

static int give_memory(struct way_in *w, const struct hint *affinity)
{
	struct memory_container *c = &w->out->memory[w->place];
	struct err e;

	if (!w->pins_memory || (!c->demand.kinds && kubernetes_has(w->b->s->cpu_options.kubernetes,
							    RULE_PASSES_OVER_NO_MEMORY)))
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

/* Where cores differ in size, and no free ones have as many CPUs, there is nothing to align. */
static int check_cores_first(struct way_in *w)
{
	const struct books *b = w->b;
	const struct wishes *wishes = &w->pod->container[w->place].wishes;
	const struct cpu_options options = wishes_cpu_options(wishes, &b->s->cpu_options);
	const unsigned count = b->s->cpu_manager_policy == MANAGER_STATIC
				       ? pod_exclusive_cpus(w->pod, w->place)
				       : 0;

	return count && cpus_by_core(&options) && cores_differ(b->t) ? check_whole_cores(w, count)
								     : 0;
}

/* Find a place for the container that is dealt with, unless the pod has one as a whole, and give it
 * there what it asks for. */
static int place_container(struct way_in *w, const struct grant *of_pod)
{
	struct grant *g = &w->out->of[w->place];
	int rc = 0;

	if (of_pod)
		*g = *of_pod;
	else
		rc = check_cores_first(w);
	if (!of_pod && !rc)
		rc = admission_align(w, false, g);
	if (!rc)
		rc = give_devices(w, &g->affinity);
	if (!rc)
		rc = give_cpus(w, &g->affinity);
	admission_judge_cpus(w, w->place);
	return rc ? rc : give_memory(w, &g->affinity);
}

/* The pod as a whole, and then each container, has its share of the budget. With `settled` the pod
 * has containers on the node already, and lies where they do. */
static int run_pass(struct way_in *w, const struct hint *settled, struct budget *budget)
{
	const struct settings *s = w->b->s;
	const struct pod *pod = w->pod;
	struct budget part;

	assert(w->arena->fixed);
	*w->why = (struct refusal){0};
	w->whole = true;
	w->policy = pod_policy(s, pod);
	w->pins_memory = s->memory_manager_policy == MANAGER_STATIC && pod_pins_memory(pod);
	w->by_pod = pod_is_aligned_as_one(s, pod);
	struct grant of_pod = {.policy = w->policy};
	int rc = begin_pass(w);
	if (!rc)
		rc = check_isolated(w);
	if (!rc && settled) {
		of_pod.affinity = *settled;
	} else if (!rc && w->by_pod) {
		part = budget_share(budget, pod->nr + 1, 0);
		w->budget = &part;
		rc = admission_align(w, true, &of_pod);
		of_pod.cut_short = part.cut;
		budget_return(budget, &part);
	}
	if (!rc && w->by_pod && pod->own && !settled)
		return admission_share_out(w, &of_pod, budget);
	w->whole = false;
	for (; !rc && w->place < pod->nr; w->place++) {
		struct grant *g = &w->out->of[w->place];

		part = budget_share(budget, pod->nr + 1, w->place + 1);
		w->budget = &part;
		rc = place_container(w, settled || w->by_pod ? &of_pod : NULL);
		g->cut_short = g->cut_short || part.cut;
		budget_return(budget, &part);
	}
	w->why->cut_short = budget->cut;
	return rc;
}

/* One of the two passes of a pod with advice. */
struct attempt {
	struct books books; /* a copy, changed by the pass */
	struct grants grants;
	struct refusal why, by_advice;
	int rc;
};

/* NULL: the arena's limit is reached. */
static struct attempt *attempt_pass(const struct books *b, const struct pod *pod, bool follow,
	struct budget *budget, struct arena *a)
{
	struct attempt *x = arena_alloc(a, sizeof *x);

	if (!x)
		return NULL;
	x->books = *b;
	for (unsigned r = 0; r < b->nr_resources; r++) {
		x->books.held[r] = arena_array(a, b->resource[r].nr, sizeof(bool));
		if (!x->books.held[r])
			return NULL;
		memcpy(x->books.held[r], b->held[r], b->resource[r].nr * sizeof(bool));
	}
	x->by_advice = (struct refusal){0};
	struct way_in w = {.b = &x->books,
		.pod = pod,
		.out = &x->grants,
		.arena = a,
		.follow = follow,
		.why = &x->why,
		.by_advice = &x->by_advice};
	x->rc = run_pass(&w, NULL, budget);
	return x;
}

static bool leave_the_same(const struct books *a, const struct books *b)
{
	if (cpuset_count(&a->shared) != cpuset_count(&b->shared))
		return false;
	for (unsigned k = 0; k < a->t->nr_kinds; k++) {
		uint64_t left = 0;

		nodeset_each (n, a->t->nodes)
			left += a->memory.node[n].free[k] - b->memory.node[n].free[k];
		if (left) /* modulo 2^64, as the sums are */
			return false;
	}
	return true;
}

static bool is_worse(const struct books *b, const struct hint *a, const struct hint *than)
{
	const struct hint_space space = {
		.distance = b->s->prefer_closest_numa_nodes ? b->t->distance : NULL};

	if (a->any || than->any)
		return a->any != than->any;
	return a->preferred < than->preferred || hint_compare_fit(&space, a->mask, than->mask) > 0;
}

static bool fares_as_well(const struct attempt *with, const struct attempt *without)
{
	if (with->rc || without->rc || !leave_the_same(&with->books, &without->books))
		return false;
	for (unsigned c = 0; c < with->grants.nr; c++)
		if (is_worse(&with->books, &with->grants.of[c].affinity,
			    &without->grants.of[c].affinity))
			return false;
	return true;
}

/* Both passes, and of them the one that counts. NULL: there is no room for them. */
static const struct attempt *attempt_both(
	const struct books *b, const struct pod *pod, struct budget *budget, struct arena *a)
{
	/* as much for both: what one of them finds the other does, but for the advice */
	struct budget half[2] = {budget_part(budget, 1, 2), budget_part(budget, 1, 2)};

	half[0].aside = half[0].given_aside /= 2;
	half[1].aside = half[1].given_aside /= 2;
	const struct attempt *without = attempt_pass(b, pod, false, &half[0], a);
	const struct attempt *with = without ? attempt_pass(b, pod, true, &half[1], a) : NULL;
	budget_return(budget, &half[0]);
	budget_return(budget, &half[1]);
	if (!with) /* no room for advice: as if there were none */
		return without;
	return with->by_advice.reason || fares_as_well(with, without) ? with : without;
}

int admission(struct books *b, const struct pod *pod, const struct hint *settled,
	struct budget *budget, struct arena *a, struct grants *out, struct refusal *why)
{
	struct refusal by_advice = {0};
	struct way_in only = {
		.b = b, .pod = pod, .out = out, .arena = a, .why = why, .by_advice = &by_advice};
	bool advised = false;

	for (unsigned c = 0; c < pod->nr; c++)
		advised = advised || pod->container[c].advice;
	const struct attempt *it = advised && !settled ? attempt_both(b, pod, budget, a) : NULL;
	if (!it)
		return run_pass(&only, settled, budget);
	*b = it->books;
	*out = it->grants;
	*why = it->by_advice.reason ? it->by_advice : it->why;
	if (!it->by_advice.reason && !it->rc)
		return 0;
	/* where the merge would have given it what its advice asks for, or as good, the rest was
	 * missing */
	struct advice_result *advice = &why->advice;
	if (advice->verdict && !advice_is_rejection(advice->verdict))
		advice->verdict = advice->cause = ADVICE_REJECTED_NOT_FIT;
	advice->given = (struct nodeset){0};
	return -EPERM;
}

void grants_return(struct books *b, const struct grants *g)
{
	b->shared = cpuset_or(b->shared, &g->pod_cpus);
	memory_release(&b->memory, g->pod_memory.blocks, g->pod_memory.nr_blocks);
	if (g->as_one)
		return;
	for (unsigned c = 0; c < g->nr; c++) {
		b->shared = cpuset_or(b->shared, &g->of[c].cpus);
		memory_release(&b->memory, g->memory[c].blocks, g->memory[c].nr_blocks);
		for (unsigned r = 0; r < b->nr_resources; r++)
			for (unsigned i = 0; g->of[c].device[r] && i < b->resource[r].nr; i++)
				if (g->of[c].device[r][i])
					b->held[r][i] = false;
	}
}
