/* One container, decided: hints of its CPUs and memory -> merge -> the policy's verdict -> CPUs and
 * bytes. Refusals carry the kubelet's reason and message, so that dashboards know them. */
#include <numafit/admit.h>

#include <numafit/cpus.h>
#include <numafit/policy.h>
#include <numafit/text.h>

#include <assert.h>
#include <string.h>

/* Steps of one search: well below what the runtime waits for, on any machine of 64 NUMA nodes. */
enum { VISIT_BUDGET = 1 << 20 };

/* What is being decided, and the working memory for it. */
struct work {
	const struct ledger *l;
	const struct topo *t;
	const struct settings *s;
	struct arena *arena;
	struct cpuset free;
	unsigned cpus; /* exclusive ones asked for */
	uint64_t memory[TOPO_KINDS];
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

static int collect_hints(struct work *w, const struct request *req, struct err *e)
{
	w->cpus = w->s->cpu_manager_policy == MANAGER_STATIC ? request_exclusive_cpus(req) : 0;
	w->pins_memory = w->s->memory_manager_policy == MANAGER_STATIC && request_pins_memory(req);
	w->free = ledger_free_cpus(w->l);
	if (w->cpus)
		cpus_family(w->t, &w->free, w->cpus, &w->per_node, &w->family[w->nr_families++]);
	if (!w->pins_memory)
		return 0;
	int rc = memory_demand(w->t, req, w->memory, e);
	if (!rc)
		w->nr_families += memory_families(w->t, ledger_memory(w->l), w->memory, &w->rows,
			w->arena, &w->family[w->nr_families]);
	return rc;
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

static bool merge(struct work *w, struct decision *d, struct hint *affinity)
{
	struct hint_space space = {
		.all = w->t->nodes,
		.distance = w->s->prefer_closest_numa_nodes ? w->t->distance : NULL,
		.visit_budget = VISIT_BUDGET,
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
		(void)text_copy(d->message, sizeof d->message,
			"the search for the best NUMA nodes was cut short: the best found is used");
	*affinity = answer.affinity;
	d->has_affinity = !answer.affinity.any;
	d->nodes = answer.affinity.mask;
	d->preferred = answer.affinity.preferred;
	d->admit = answer.admit;
	note_hints(w, d);
	if (!d->admit)
		refuse(d, decision_reason("TopologyAffinityError"),
			"Resources cannot be allocated with Topology locality");
	return d->admit;
}

static bool leaves_a_pool(const struct work *w, const struct cpuset *cpus, struct decision *d)
{
	struct cpuset pool = cpuset_minus(w->t->cpus, ledger_held_cpus(w->l));

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

static bool assign_cpus(const struct work *w, const struct hint *affinity, struct decision *d)
{
	struct err e;

	d->cpus = *ledger_pool(w->l);
	if (!w->cpus)
		return true;
	if (cpus_allocate(w->t, &w->free, w->cpus, affinity, &d->cpus, &e) < 0) {
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
		w->t, ledger_memory(w->l), w->memory, affinity, w->arena, d->blocks, &e);
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

	if (collect_hints(w, req, &e) < 0)
		refuse_allocation(d, e.text);
	else if (merge(w, d, &affinity) && assign_cpus(w, &affinity, d) &&
		 assign_memory(w, &affinity, d))
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
