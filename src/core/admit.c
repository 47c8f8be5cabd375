/* One container, decided: hints of its CPUs and memory -> merge -> the policy's verdict -> CPUs and
 * bytes. Refusals carry the kubelet's reason and message, so that dashboards know them. */
#include <numafit/admit.h>

#include <numafit/cpus.h>
#include <numafit/policy.h>
#include <numafit/text.h>

#include <assert.h>
#include <string.h>

enum { MILLI_PER_CPU = 1000 };

/* What is being decided, and the working memory for it. */
struct work {
	const struct ledger *l;
	const struct topo *t;
	const struct settings *s;
	struct arena *arena;
	struct cpuset free;
	unsigned cpus; /* exclusive ones asked for */
	struct memory_demand memory;
	unsigned aligned_cpus; /* what the hints are about: the container, or its pod */
	struct memory_demand aligned_memory;
	bool pins_memory;
	struct cpus_per_node per_node;
	struct memory_rows rows;
	unsigned nr_families;
	struct family family[DECISION_HINTS];
};

static void refuse(struct decision *d, const char *reason, const char *message)
{
	d->admit = false;
	d->reason = reason;
	(void)text_copy(d->message, sizeof d->message, message);
}

static void refuse_allocation(struct decision *d, const char *why)
{
	struct text t;

	refuse(d, decision_reason("UnexpectedAdmissionError"), "");
	text_init(&t, d->message, sizeof d->message);
	text_add(&t, "Allocate failed due to %s, which is unexpected", why);
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* In pod scope the first container is aligned for all: as its sandbox says, which tells no more
 * than sums. What is not whole CPUs of the sum cannot be exclusive ones. */
static void widen_to_pod(struct work *w, const struct pod_totals *totals)
{
	w->aligned_cpus =
		(unsigned)max(w->aligned_cpus, w->cpus ? totals->cpu_milli / MILLI_PER_CPU : 0);
	if (w->aligned_memory.kinds & 1)
		w->aligned_memory.bytes[0] = max(w->aligned_memory.bytes[0], totals->memory_bytes);
}

static void note(struct decision *d, const char *text)
{
	(void)text_copy(d->message, sizeof d->message, text);
}

static int collect_demands(
	struct work *w, const struct request *req, struct decision *d, struct err *e)
{
	bool of_pod = w->s->topology_scope == SCOPE_POD;
	int rc = 0;

	w->cpus = w->s->cpu_manager_policy == MANAGER_STATIC ? request_exclusive_cpus(req) : 0;
	w->pins_memory = w->s->memory_manager_policy == MANAGER_STATIC && request_pins_memory(req);
	w->free = ledger_free_cpus(w->l);
	if (w->pins_memory)
		rc = memory_demand(w->t, req->memory, req->nr_memory, &w->memory, e);
	w->aligned_cpus = w->cpus;
	w->aligned_memory = w->memory;
	if (of_pod && req->pod.totals.known) {
		widen_to_pod(w, &req->pod.totals);
		note(d, "assumed: the pod needs at once what its sandbox sums up");
	} else if (of_pod) {
		note(d, "assumed: this container stands for its pod, whose sandbox tells no sums");
	}
	return rc;
}

static void collect_hints(struct work *w)
{
	if (w->aligned_cpus)
		cpus_family(w->t, &w->s->cpu_options, &w->free, &(struct cpuset){0},
			w->aligned_cpus, &w->per_node, &w->family[w->nr_families++]);
	if (w->pins_memory)
		w->nr_families += memory_families(w->t, ledger_memory(w->l), &w->aligned_memory,
			NULL, &w->rows, w->arena, &w->family[w->nr_families]);
}

/* How narrow each resource could be. When the result is preferred, that is its preferred size. */
static void note_hints(struct work *w, struct decision *d)
{
	for (unsigned i = 0; i < w->nr_families; i++) {
		const struct family *f = &w->family[i];
		struct decision_hint *h = &d->hints[d->nr_hints++];
		struct arena scratch =
			*w->arena; /* fixed memory: what is taken here is free again after */

		*h = (struct decision_hint){.kind = f->kind, .preferred_size = f->preferred_size};
		(void)text_copy(h->resource, sizeof h->resource, f->resource);
		if (f->kind == FAMILY_CAPACITY)
			h->smallest =
				d->preferred ? f->preferred_size : family_smallest(f, &scratch);
	}
}

/* In pod scope the pod's first container has settled it. */
static bool as_its_pod(
	const struct work *w, const struct request *req, struct decision *d, struct hint *affinity)
{
	bool of_pod = w->s->topology_scope == SCOPE_POD && *req->pod.uid;
	const struct holding *h = of_pod ? ledger_find_of_pod(w->l, req->pod.uid) : NULL;

	if (!h)
		return false;
	*affinity = (struct hint){
		.mask = h->decision.nodes,
		.any = !h->decision.has_affinity,
		.preferred = h->decision.preferred,
	};
	d->admit = true;
	d->has_affinity = h->decision.has_affinity;
	d->nodes = h->decision.nodes;
	d->preferred = h->decision.preferred;
	note(d, "aligned with the pod's first container");
	return true;
}

static bool merge(struct work *w, struct decision *d, struct hint *affinity)
{
	struct hint_space space = {
		.all = w->t->nodes,
		.distance = w->s->prefer_closest_numa_nodes ? w->t->distance : NULL,
		.visit_budget = w->s->merge_visit_budget,
	};
	struct policy_answer answer;
	int rc = policy_merge_families(
		d->policy, &space, w->family, w->nr_families, w->arena, &answer);

	if (rc < 0) {
		refuse_allocation(
			d, "the merge of NUMA hints needing more working memory than there is");
		return false;
	}
	if (rc > 0)
		note(d, "the search for NUMA nodes was cut short by mergeVisitBudget: the best "
			"found is used");
	*affinity = answer.affinity;
	d->has_affinity = !answer.affinity.any;
	d->nodes = answer.affinity.mask;
	d->preferred = answer.affinity.preferred;
	d->admit = answer.admit;
	note_hints(w, d);
	if (!d->admit)
		refuse(d, decision_reason("TopologyAffinityError"),
			rc > 0 ? "Resources cannot be allocated with Topology locality, as far as "
				 "a "
				 "search cut short by mergeVisitBudget can tell"
			       : "Resources cannot be allocated with Topology locality");
	return d->admit;
}

static bool leaves_a_pool(const struct work *w, const struct cpuset *cpus, struct decision *d)
{
	struct cpuset pool = cpuset_minus(ledger_shareable_cpus(w->l), ledger_held_cpus(w->l));

	pool = cpuset_minus(pool, cpus);
	unsigned left = cpuset_count(&pool);
	if (left && left >= w->s->shared_pool_minimum)
		return true;
	struct text t;
	refuse_allocation(d, "");
	text_init(&t, d->message, sizeof d->message);
	text_add(&t, "the shared pool would be left with %u CPUs, sharedPoolMinimum is %u", left,
		w->s->shared_pool_minimum);
	return false;
}

/* What full-pcpus-only asks for, of what is left of cores without a reserved CPU. */
static bool whole_cores(const struct work *w, struct decision *d)
{
	struct cpuset reserved = cpus_whole_cores(w->t, &w->s->reserved_cpus);
	struct cpuset physical = cpuset_minus(w->free, &reserved);
	struct err e;

	if (cpus_check_whole_cores(w->t, &w->s->cpu_options, &physical, w->cpus, &e) < 0)
		refuse(d, decision_reason("SMTAlignmentError"), e.text);
	return d->admit;
}

static bool assign_cpus(const struct work *w, const struct hint *affinity, struct decision *d)
{
	struct err e;

	d->cpus = *ledger_pool(w->l);
	if (!w->cpus)
		return true;
	if (!whole_cores(w, d))
		return false;
	if (cpus_allocate(w->t, &w->s->cpu_options, &w->free, w->cpus, affinity, &d->cpus, &e) <
		0) {
		refuse_allocation(d, e.text);
		return false;
	}
	d->exclusive = true;
	return leaves_a_pool(w, &d->cpus, d);
}

static bool assign_memory(const struct work *w, const struct hint *affinity, struct decision *d)
{
	struct err e;

	d->mems = w->t->nodes_with_memory;
	if (!w->pins_memory)
		return true;
	int nr = memory_allocate(
		w->t, ledger_memory(w->l), &w->memory, NULL, affinity, w->arena, d->blocks, &e);
	if (nr < 0) {
		refuse_allocation(d, e.text);
		return false;
	}
	d->nr_blocks = (unsigned)nr;
	d->mems = (struct nodeset){0};
	for (unsigned i = 0; i < d->nr_blocks; i++)
		d->mems = nodeset_or(d->mems, d->blocks[i].nodes);
	return true;
}

static void decide(struct work *w, const struct request *req, struct decision *d)
{
	struct hint affinity;
	struct err e;

	bool aligned = collect_demands(w, req, d, &e) == 0;
	if (!aligned)
		refuse_allocation(d, e.text);
	else if (!as_its_pod(w, req, d, &affinity)) {
		collect_hints(w);
		aligned = merge(w, d, &affinity);
	}
	if (aligned && assign_cpus(w, &affinity, d) && assign_memory(w, &affinity, d))
		return;
	d->exclusive = false;
	d->nr_blocks = 0;
	d->cpus = (struct cpuset){0};
	d->mems = (struct nodeset){0};
}

void admit(const struct ledger *l, const struct settings *s, const struct request *req,
	struct arena *a, struct decision *d)
{
	struct work *w = arena_alloc(a, sizeof *w);

	assert(a->fixed);
	memset(d, 0, sizeof *d);
	d->policy = s->topology_policy;
	if (!w) {
		refuse_allocation(d, "the decision needing more working memory than there is");
		return;
	}
	w->l = l;
	w->t = ledger_topo(l);
	w->s = s;
	w->arena = a;
	decide(w, req, d);
}
