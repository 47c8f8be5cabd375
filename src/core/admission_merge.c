/* Where a container, or a whole pod, is to be: the hints of devices, CPUs and memory -> one merge
 * -> a scheduler's advice -> the policy's verdict, with the reasons. */
#include "admission_pass.h"

#include <numafit/cpus.h>
#include <numafit/number.h>
#include <numafit/text.h>

#include <errno.h>

/* All hints that enter one merge. */
struct hints {
	struct cpus_per_node per_node;
	struct memory_rows rows;
	unsigned nr;
	struct family *family;
};

/* CPUs that the container, or the whole pod, is to have for itself. Of a pod of which only sums are
 * known, whole CPUs of the sum count: what is not whole CPUs cannot be exclusive ones. */
static unsigned exclusive_cpus(const struct way_in *w, bool pod_scope)
{
	const struct pod_totals *totals = &w->pod->totals;

	if (w->b->s->cpu_manager_policy != MANAGER_STATIC)
		return 0;
	if (!pod_scope)
		return pod_exclusive_cpus(w->pod, w->place);
	if (w->pod->own)
		return admission_own_cpus(w);
	uint64_t count = pod_needs_at_once(w->pod, (struct pod_resource){.kind = POD_CPUS});
	if (count && totals->known)
		count = number_max(count, totals->cpu_milli / MILLI_PER_CPU);
	return (unsigned)count;
}

/* 0, or -ENOMEM: the arena's limit is reached. */
static int add_device_hints(const struct way_in *w, bool pod_scope, struct hints *h)
{
	unsigned first = pod_scope ? 0 : w->place, end = pod_scope ? w->pod->nr : w->place + 1;

	for (unsigned r = 0; r < w->b->nr_resources; r++) {
		const struct pod_resource of = {.device = r};
		bool asked = false;

		for (unsigned c = first; c < end && !asked; c++)
			asked = ask_for_device(&w->pod->container[c], r);
		if (!asked)
			continue;
		const struct device_claim what = {
			.resource = &w->b->resource[r],
			.count = pod_scope ? pod_needs_at_once(w->pod, of)
					   : pod_needs(w->pod, w->place, of),
			.held = w->b->held[r],
			.reusable = pod_scope ? NULL : w->reusable[r],
		};
		struct budget part = budget_part(w->budget, 1, 4);
		int rc =
			devices_family(&what, w->b->t->nodes, &part, w->arena, &h->family[h->nr++]);
		budget_return(w->budget, &part);
		if (rc)
			return rc;
	}
	return 0;
}

/* Where the container's CPUs lie by its tokens; no node: it has none. */
static struct nodeset nodes_of_tokens(const struct way_in *w)
{
	const unsigned *cpus_on = w->pod->container[w->place].cpus_on;
	struct nodeset nodes = {0};

	for (unsigned n = 0; cpus_on && n < NODES_MAX; n++)
		if (cpus_on[n])
			nodes = nodeset_or(nodes, nodeset_of(n));
	return nodes;
}

/* Where the container's CPUs are is settled, by the kubelet's Topology Manager: its memory is to be
 * on nodes of theirs, on as few as it needs. What is not there may come from around them, or from
 * anywhere, which is not preferred. */
static void keep_beside(struct nodeset beside, struct family *f)
{
	const struct family anywhere = *f;

	f->ground = nodeset_and(f->ground, beside);
	f->nr_extra = 0;
	for (unsigned i = 0; i < anywhere.nr_extra; i++)
		if (nodeset_within(anywhere.extra[i], beside))
			f->extra[f->nr_extra++] = anywhere.extra[i];
	if (!family_is_empty(f))
		return;
	*f = anywhere;
	f->preferred_size = NODES_MAX + 1;
	f->required = nodeset_or(f->required, beside);
	f->nr_extra = 0;
	for (unsigned i = 0; i < anywhere.nr_extra; i++)
		if (nodeset_within(beside, anywhere.extra[i]))
			f->extra[f->nr_extra++] = anywhere.extra[i];
	if (!family_is_empty(f))
		return;
	*f = anywhere;
	f->preferred_size = NODES_MAX + 1;
}

static void add_memory_hints(const struct way_in *w, bool pod_scope, struct hints *h)
{
	const struct pod_totals *totals = &w->pod->totals;
	struct memory_demand total;

	if (pod_scope && w->pod->own)
		total = w->out->pod_memory.demand;
	else if (pod_scope)
		memory_pod_demand(w->out->memory, w->out->nr, &total);
	else
		total = w->out->memory[w->place].demand;
	if (pod_scope && !w->pod->own && totals->known && total.kinds & 1)
		total.bytes[0] = number_max(total.bytes[0], totals->memory_bytes);
	struct budget part = budget_part(w->budget, 1, 4);
	unsigned nr = memory_families(w->b->t, &w->b->memory, &total, pod_scope ? NULL : &w->reuse,
		&h->rows, &part, w->arena, &h->family[h->nr]);
	budget_return(w->budget, &part);
	for (unsigned i = 0; w->pod->container[w->place].cpus_on && i < nr; i++)
		keep_beside(nodes_of_tokens(w), &h->family[h->nr + i]);
	h->nr += nr;
}

/* A manager that finds that containers of the pod would share nothing has no hint that fits;
 * whether the pod is refused for that the merge says. */
static bool shares_nothing(struct way_in *w, bool pod_scope, int (*check)(struct way_in *w))
{
	if (!pod_scope || !w->pod->own || !check(w))
		return false;
	*w->why = (struct refusal){0};
	w->leaves_nothing = true;
	return true;
}

/* The container that is dealt with; of a whole pod the first one that wishes for whole cores, if
 * any does: where CPUs would do for it they do for all. */
static unsigned strictest_place(const struct way_in *w, bool pod_scope)
{
	for (unsigned c = 0; pod_scope && c < w->pod->nr; c++)
		if (w->pod->container[c].wishes.cores && pod_exclusive_cpus(w->pod, c))
			return c;
	return w->place;
}

static bool takes_whole_cores(const struct way_in *w, unsigned place)
{
	const struct wishes *wishes = &w->pod->container[place].wishes;
	const struct cpu_options options = wishes_cpu_options(wishes, &w->b->s->cpu_options);

	return cpus_by_core(&options);
}

/* One more container of the pod; a container that takes no whole cores needs none of a certain
 * size. */
static void add_need(const struct way_in *w, unsigned place, struct core_need *need)
{
	if (takes_whole_cores(w, place))
		core_need_add(need, pod_exclusive_cpus(w->pod, place));
	else
		need->count += pod_exclusive_cpus(w->pod, place);
}

struct core_need admission_later_cores(const struct way_in *w, unsigned place)
{
	const bool stays = w->pod->container[place].kind != CONTAINER_INIT;
	struct core_need need = {0};

	for (unsigned c = place + 1; w->by_pod && stays && c < w->pod->nr; c++)
		if (w->pod->container[c].kind != CONTAINER_INIT)
			add_need(w, c, &need);
	return need;
}

/* What the cores must have for all containers of the pod, whose CPUs are so many at once.
 * Containers of a pod with resources of its own may share its cores. */
static struct core_need cores_for_pod(const struct way_in *w, unsigned cpus)
{
	struct core_need beside = {0}, all = {0};
	bool of_cores = true;

	for (unsigned c = 0; !w->pod->own && c < w->pod->nr; c++)
		of_cores = of_cores && takes_whole_cores(w, c);
	if (of_cores)
		core_need_add(&all, cpus);
	else
		all.count = cpus;
	for (unsigned c = 0; !w->pod->own && c < w->pod->nr; c++) {
		struct core_need with = beside;

		add_need(w, c, &with);
		all = core_need_max(all, &with);
		if (w->pod->container[c].kind != CONTAINER_INIT)
			beside = with;
	}
	return all;
}

/* The CPU manager's hints. 0, or -ENOMEM: the arena's limit is reached. */
static int add_cpu_hints(struct way_in *w, bool pod_scope, unsigned cpus, struct hints *h)
{
	const struct books *b = w->b;
	const struct wishes *wishes = &w->pod->container[strictest_place(w, pod_scope)].wishes;
	const struct cpu_options options = wishes_cpu_options(wishes, &b->s->cpu_options);
	const struct cpuset free_cpus = books_free_cpus(b),
			    available = admission_usable_cpus(w, wishes, &free_cpus);
	struct family *f = &h->family[h->nr++];

	cpus_family(b->t, &options, &available, &w->reusable_cpus, cpus, &h->per_node, f);
	cpus_set_aside(b->t, &b->reserved, &h->per_node);
	if (pod_scope)
		h->per_node.cores.need = cores_for_pod(w, cpus);
	int rc = cpus_prefer_by_cores(b->t, &options, &h->per_node, w->budget, w->arena, f);
	if (!rc && shares_nothing(w, pod_scope, admission_check_cpu_shares))
		*f = (struct family){.kind = FAMILY_NONE, .resource = "cpu"};
	return rc;
}

/* The hints of all managers. NULL: the arena's limit is reached. */
static const struct hints *collect_hints(struct way_in *w, bool pod_scope, unsigned cpus)
{
	const struct books *b = w->b;
	struct hints *h = arena_alloc(w->arena, sizeof *h);

	if (h)
		h->family = arena_array(
			w->arena, b->nr_resources + 1 + b->t->nr_kinds, sizeof *h->family);
	if (!h || !h->family || add_device_hints(w, pod_scope, h))
		return NULL;
	if (cpus && !w->pod->container[w->place].cpus_on && add_cpu_hints(w, pod_scope, cpus, h))
		return NULL;
	if (w->pins_memory && shares_nothing(w, pod_scope, admission_check_memory_shares))
		h->family[h->nr++] = (struct family){.kind = FAMILY_NONE, .resource = "memory"};
	else if (w->pins_memory)
		add_memory_hints(w, pod_scope, h);
	return h;
}

/* A scheduler's advice chooses among answers that are as good as that without it. -EPERM: it must
 * be followed and cannot be. */
static int follow_advice(struct way_in *w, const struct advice_merge *merge, struct grant *g,
	struct policy_answer *answer)
{
	const struct advice_ask *advice = w->pod->container[w->place].advice;
	struct refusal *why = w->by_advice;
	struct advice_ruling ruling;
	struct text t;

	if (!advice || advice->mode == ADVICE_OFF)
		return 0;
	const struct advice_terms terms = {
		.so_far = advice->so_far,
		.mode = advice->mode,
		.repair = advice->repair,
		.fixed = nodes_of_tokens(w),
		.overruled = w->follow ? ADVICE_NONE : ADVICE_REJECTED_NOT_FIT,
	};
	advice_judge(merge, advice->asked, &terms, &ruling);
	g->advice = (struct advice_result){
		true, ruling.verdict, ruling.cause, advice->mode, ruling.asked, ruling.given};
	w->why->advice = g->advice;
	*answer = ruling.answer;
	if (ruling.refuse && !why->reason) {
		*why = (struct refusal){.reason = "TopologyAffinityError",
			.cause = REFUSED_ON_BOOKS,
			.place = w->place,
			.of_pod = w->whole,
			.advice = g->advice};
		text_init(&t, why->message, sizeof why->message);
		text_add(&t, ADVICE_REFUSES " (%s): ", advice_verdict_words[ruling.verdict]);
		advice_explain(&ruling, &w->b->t->ids, &t);
	}
	return ruling.refuse && w->follow ? -EPERM : 0;
}

/* Why the merge came out so, into *reasons; NULL: there were no hints. */
static void enter_reasons(struct way_in *w, const struct advice_merge *m,
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

/* The kubelet's words. */
static const char *no_locality(const struct way_in *w)
{
	if (!w->pod->own)
		return "Resources cannot be allocated with Topology locality";
	return w->by_pod ? "Pod Scope pod with pod-level resources failed admission under "
			   "pod-scope topology manager"
			 : "Pod Scope pod with pod-level resources failed admission with a "
			   "container-level topology manager";
}

static int merge_hints(
	struct way_in *w, bool pod_scope, unsigned cpus, struct reasons *reasons, struct grant *g)
{
	const struct settings *s = w->b->s;
	const struct hint_space space = {
		.all = w->b->t->nodes,
		.distance = s->prefer_closest_numa_nodes ? w->b->t->distance : NULL,
		.strategy = s->allocation_strategy,
	};
	static const struct hints none;
	const struct hints *h = reasons ? collect_hints(w, pod_scope, cpus) : &none;
	struct policy_answer answer;

	if (!h)
		return admission_refuse_for_room(w);
	bool cut = w->budget->cut;
	struct budget part = budget_part(w->budget, 3, 4);
	int rc = policy_merge_families(
		w->policy, &space, h->family, h->nr, &part, w->arena, &answer);
	budget_return(w->budget, &part);
	if (rc < 0)
		return admission_refuse_for_room(w);
	g->policy = w->policy;
	const struct advice_merge merge = {g->policy, &space, h->family, h->nr, answer};
	int advised = follow_advice(w, &merge, g, &answer);
	enter_reasons(w, &merge, &answer, reasons, g);
	g->affinity = answer.affinity;
	if (answer.affinity.any && w->pod->container[w->place].cpus_on) {
		g->affinity.any = false; /* it is where its tokens are */
		g->affinity.mask = nodes_of_tokens(w);
	}
	if (advised || answer.admit)
		return advised;
	rc = admission_refuse(w, "TopologyAffinityError", "%s%s", no_locality(w),
		cut || rc == MERGE_CUT ? ", as far as a search cut short by mergeVisitBudget "
					 "shows" /* with more steps it may have been admitted */
				       : "");
	if (w->leaves_nothing)
		w->why->cause = REFUSED_FOR_SHARES;
	return rc;
}

int admission_align(struct way_in *w, bool pod_scope, struct grant *g)
{
	unsigned cpus = exclusive_cpus(w, pod_scope);
	struct reasons *reasons = NULL;

	/* a container that shares CPUs and pins no memory goes anywhere: there are no hints */
	if (cpus || w->pins_memory || w->b->nr_resources) {
		reasons = arena_alloc(w->arena, sizeof *reasons);
		if (!reasons)
			return admission_refuse_for_room(w);
	}
	struct arena_mark before = arena_mark(w->arena); /* the reasons stay, the rest goes */
	int rc = merge_hints(w, pod_scope, cpus, reasons, g);
	arena_release(w->arena, before);
	return rc;
}
