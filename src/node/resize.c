/* Grow and shrink around what is there. */
#include <numafit/number.h>
#include <numafit/resize.h>

#include <numafit/cpus.h>
#include <numafit/leases.h>
#include <numafit/search.h>

#include <assert.h>

/* A resize on its way. */
struct change {
	const struct ledger *l;
	const struct topo *t;
	const struct settings *s;
	struct budget *budget;
	struct arena *arena;
	struct cpuset present; /* its own CPUs now */
	struct nodeset around; /* NUMA nodes that it is on: of its CPUs, else of its memory */
	struct nodeset memory; /* of its pinned memory */
	struct cpuset free;
	unsigned count;             /* CPUs of its own that it is to have */
	struct cpu_options options; /* by which they are taken */
	const struct wishes *wishes;
	struct decision *d;
};

/* By core, where cores differ in size: those of the CPUs on the nodes must have exactly so many. */
static void demand_cores(const struct change *c, const struct cpuset *cpus, unsigned need,
	struct core_rows *rows, struct family *f)
{
	if (!cpus_by_core(&c->options) || !cores_differ(c->t))
		return;
	*rows = (struct core_rows){0};
	core_need_add(&rows->need, need);
	cores_of_nodes(c->t, cpus, rows->on);
	f->demand[0].cores = rows;
}

/* The narrowest set of nodes, all of `with` among them, that has so many of the CPUs, of which the
 * first `kept` ones are the container's already and the others come from *more; the closest one of
 * those. 0, or -EPERM: refused. */
static int nodes_for(struct change *c, const struct cpuset *cpus, struct nodeset with,
	unsigned need, const struct cpuset *more, unsigned kept, struct nodeset *out)
{
	const struct hint_space space = {
		.all = c->t->nodes_with_cpus,
		.distance = c->t->distance,
	};
	uint64_t per_node[NODES_MAX] = {0};
	struct family f = {
		.kind = FAMILY_CAPACITY,
		.ground = c->t->nodes_with_cpus,
		.required = nodeset_and(with, c->t->nodes_with_cpus),
		.nr_demands = 1,
		.demand = {{.weight = per_node, .need = need}},
	};
	struct search *s = search_new(&space, c->budget, c->arena);
	struct core_rows rows;

	demand_cores(c, more, need - kept, &rows, &f);
	if (!s)
		return decision_refuse(c->d, REFUSED_FOR_ROOM, "UnexpectedAdmissionError",
			"Resize failed due to the decision needing more working memory than there "
			"is");
	nodeset_each (n, space.all)
		per_node[n] = cpuset_count_and(&c->t->node[n].cpus, cpus);
	search_begin(s, space.all);
	(void)search_add_family(s, &f); /* one demand always fits in */
	unsigned k = search_smallest(s);
	if (!k || search_best(s, k, out) < 0 || nodeset_empty(*out))
		return decision_refuse(c->d, REFUSED_ON_BOOKS, "UnexpectedAdmissionError",
			"Resize failed due to not enough cpus available to satisfy request");
	return 0;
}

/* As many of the CPUs on those nodes as there are, `need` at most, into *got; by core so many that
 * those on all nodes make the rest. */
static unsigned take_on_nodes(const struct change *c, struct nodeset nodes, struct nodeset all,
	unsigned need, struct cpuset *got)
{
	struct cpus_how how = cpus_how(c->t, &c->options);
	struct cpuset on = topo_cpus_of(c->t, nodes), more = {0};
	struct cpuset on_all = topo_cpus_of(c->t, nodeset_or(all, nodes));
	struct cpuset here = cpuset_and(on, &c->free), there = cpuset_and(on_all, &c->free);
	unsigned nr = cpus_count_near(c->t, &c->options, &here, &there, need);

	if (nr && cpus_take(c->t, &here, nr, &how, c->budget, &more, NULL) == 0)
		*got = cpuset_or(*got, &more);
	return nr;
}

/* Whether these are NUMA nodes that so many CPUs were preferred on if all were free: as few as can
 * be, with align-by-socket those of as few sockets. */
static bool is_preferred(const struct change *c, struct nodeset nodes)
{
	struct cpuset nothing = {0};
	struct cpus_per_node per_node;
	struct family f;

	cpus_family(c->t, &c->options, &c->t->cpus, &nothing, c->count, &per_node, &f);
	(void)cpus_prefer_by_cores(c->t, &c->options, &per_node, c->budget, c->arena, &f);
	return family_prefers(&f, nodes);
}

/* Whether the policy would have admitted CPUs on these NUMA nodes. */
static int check_width(struct change *c, struct nodeset nodes)
{
	enum topology_policy policy = c->s->topology_policy;

	if (c->s->advice_policy) /* the pod may have asked for a stricter one when it came */
		policy = advice_policy_of(policy, c->d->policy);

	c->d->preferred = is_preferred(c, nodes);
	if ((policy == POLICY_SINGLE_NUMA_NODE && nodeset_count(nodes) > 1) ||
		(policy == POLICY_RESTRICTED && !c->d->preferred))
		return decision_refuse(c->d, REFUSED_BESIDE_CPUS, "TopologyAffinityError",
			"Resources cannot be allocated with Topology locality");
	return 0;
}

static int check_pool(struct change *c)
{
	struct cpuset left = cpuset_minus(ledger_shareable_cpus(c->l), &ledger_view(c->l)->held);
	struct cpuset promised = ledger_promised_cpus(c->l, NULL);
	char minimum[POOL_MINIMUM_TEXT_MAX];

	left = cpuset_minus(cpuset_minus(left, &promised), &c->d->cpus);
	const unsigned nr = cpuset_count(&left);
	if (nr >= settings_pool_minimum(c->s))
		return 0;
	return decision_refuse(c->d, REFUSED_ON_BOOKS, "UnexpectedAdmissionError",
		"the shared pool would be left with %u CPU%s, %s", nr, text_plural(nr),
		settings_pool_minimum_text(c->s, minimum));
}

static int grow_cpus(struct change *c)
{
	unsigned more = c->count - cpuset_count(&c->present);
	struct cpuset reserved = cpus_whole_cores(c->t, &c->s->reserved_cpus);
	struct cpuset physical = cpuset_minus(c->free, &reserved), got = c->present;
	struct nodeset nodes, on;
	struct err e;

	if (cpus_check_whole_cores(c->t, &c->options, &physical, more, &e) < 0)
		return decision_refuse(c->d, REFUSED_ON_BOOKS, "SMTAlignmentError", "%s", e.text);
	if (c->options.full_pcpus_only) { /* cores of which no container has a CPU */
		struct cpuset taken = cpuset_minus(c->t->cpus, &c->free);

		taken = cpus_whole_cores(c->t, &taken);
		c->free = cpuset_minus(c->free, &taken);
	}
	struct cpuset own = cpuset_or(c->free, &c->present);
	int rc = nodes_for(
		c, &own, c->around, c->count, &c->free, cpuset_count(&c->present), &nodes);
	if (rc)
		return rc;
	more -= take_on_nodes(c, c->around, nodes, more, &got);
	nodes = nodeset_minus(nodes, c->around);
	more -= take_on_nodes(c, nodes, nodes, more, &got);
	assert(!more);
	on = topo_nodes_of(c->t, &got);
	c->d->cpus = got;
	rc = check_width(c, on);
	return rc ? rc : check_pool(c);
}

/* Isolated CPUs come last where it does not wish for them, and others last where it would like
 * them.
 */
static int grow_cpus_by_wish(struct change *c)
{
	const enum wish_isolated wish = c->wishes->isolated;
	const struct decision before = *c->d;
	const struct cpuset all = c->free;

	c->free = wish ? cpuset_and(all, &c->t->isolated) : cpuset_minus(all, &c->t->isolated);
	const bool is_first = wish != WISH_ISOLATED_REQUIRE && !cpuset_equal(&c->free, &all);
	int rc = grow_cpus(c);
	if (!rc || !is_first)
		return rc;
	*c->d = before;
	c->free = all;
	return grow_cpus(c);
}

/* Of the sets of nodes that are as narrow as *nodes, one that keeps CPUs and memory together:
 * within the nodes of its memory, else around them. */
static int move_to_memory(struct change *c, const struct cpuset *usable, struct nodeset *nodes)
{
	struct cpuset beside = topo_cpus_of(c->t, c->memory);
	struct nodeset on = nodeset_and(c->memory, c->around), other = *nodes;
	int rc = 0;

	beside = cpuset_and(beside, usable);
	const unsigned nr = cpus_count_near(c->t, &c->options, &beside, &beside, c->count);
	if (nr == c->count)
		rc = nodes_for(c, &beside, (struct nodeset){0}, c->count, &beside, 0, &other);
	else
		rc = nodes_for(c, usable, on, c->count, usable, 0, &other);
	if (!rc && nodeset_count(other) == nodeset_count(*nodes))
		*nodes = other;
	return rc;
}

static int shrink_cpus(struct change *c)
{
	/* another program may have given it parts of cores: by core these are not kept */
	const struct cpuset usable = cpus_usable(c->t, &c->options, &c->present);
	struct nodeset nodes;
	struct err e;

	if (cpus_by_core(&c->options) && /* no part of a core of its own is given up */
		cpus_check_whole_cores(c->t, &c->options, &c->present, c->count, &e))
		return decision_refuse(c->d, REFUSED_ON_BOOKS, "SMTAlignmentError", "%s", e.text);
	int rc = nodes_for(c, &usable, (struct nodeset){0}, c->count, &usable, 0, &nodes);

	if (!rc && !nodeset_empty(c->memory))
		rc = move_to_memory(c, &usable, &nodes);
	if (rc)
		return rc;
	c->d->cpus = (struct cpuset){0};
	c->free = usable;
	(void)take_on_nodes(c, nodes, nodes, c->count, &c->d->cpus);
	c->d->preferred = is_preferred(c, nodes);
	return 0;
}

static int resize_cpus(struct change *c)
{
	unsigned had = cpuset_count(&c->present);
	int rc = 0;

	c->d->exclusive = c->count > 0;
	if (!c->count)
		c->d->cpus = ledger_common_cpus(c->l, c->wishes, &ledger_view(c->l)->pool);
	else if (c->count > had)
		rc = grow_cpus_by_wish(c);
	else if (c->count < had)
		rc = shrink_cpus(c);
	return rc;
}

/* The bytes that a block is to have, where it is. */
static int resize_block(struct change *c, struct memory_block *b, uint64_t bytes)
{
	uint64_t left = 0;

	nodeset_each (n, b->nodes)
		left += ledger_view(c->l)->memory.node[n].free[b->kind];
	if (bytes > b->bytes && bytes - b->bytes > left)
		return decision_refuse(c->d, REFUSED_BESIDE_MEMORY, "UnexpectedAdmissionError",
			"Resize failed due to %llu bytes more where the container's NUMA nodes "
			"have %llu free",
			(unsigned long long)(bytes - b->bytes), (unsigned long long)left);
	b->bytes = bytes;
	return 0;
}

static int resize_memory(struct change *c, const struct request *req)
{
	struct memory_demand demand;
	struct err e;
	int rc = 0;

	if (c->s->memory_manager_policy != MANAGER_STATIC || !request_pins_memory(req))
		return 0;
	if (memory_demand(c->t, req->ask.memory, req->ask.nr_memory, &demand, &e) < 0)
		return decision_refuse(
			c->d, REFUSED_ON_BOOKS, "UnexpectedAdmissionError", "%s", e.text);
	for (unsigned k = 0; k < c->t->nr_kinds && !rc; k++) {
		unsigned b = 0;

		while (b < c->d->nr_blocks && c->d->blocks[b].kind != k)
			b++;
		if (b < c->d->nr_blocks)
			rc = resize_block(c, &c->d->blocks[b], demand.bytes[k]);
		else if (demand.bytes[k])
			rc = decision_refuse(c->d, REFUSED_BESIDE_MEMORY,
				"UnexpectedAdmissionError",
				"Resize failed due to memory of a kind that the container started "
				"without");
	}
	return rc;
}

/* Tokens are given out by the kubelet, which knows nothing of a resize. */
static int check_leased_count(struct change *c, const struct holding *h)
{
	const struct request had = h->request;

	if (!h->decision.lease || c->count == request_exclusive_cpus(&had) ||
		c->count == leases_count_of(ledger_view(c->l)->leases, h->request.container_id))
		return 0;
	return decision_refuse(c->d, REFUSED_FOR_TOKENS, "UnexpectedAdmissionError",
		"Resize failed due to its CPUs being those of its numafit.io/cpu, of which it has "
		"as many as before");
}

/* What a pod has as one was shared out as it started, and stays so: who shares CPUs there may get
 * other limits, but nobody more or fewer CPUs or memory for itself. */
static int resize_within_pod(struct change *c, const struct holding *h, const struct request *req)
{
	bool same = request_exclusive_cpus(&h->request) == request_exclusive_cpus(req) &&
		    (!request_pins_memory(req) || ask_same_memory(&h->request.ask, &req->ask));

	return same ? 0
		    : decision_refuse(c->d, REFUSED_FOR_SHARES, "UnexpectedAdmissionError",
			      "Resize failed due to the CPUs and memory of its pod (spec.resources) "
			      "being shared out as the pod starts, until it ends: create the pod again");
}

static int resize_booked(struct change *c, const struct holding *h, const struct request *req)
{
	struct decision *d = c->d;
	int rc = check_leased_count(c, h);

	if (!rc)
		rc = resize_cpus(c);
	if (!rc)
		rc = resize_memory(c, req);
	if (rc || !d->has_affinity || !d->exclusive)
		return rc;
	d->nodes = topo_nodes_of(c->t, &d->cpus);
	if (d->nr_blocks)
		d->nodes = nodeset_or(d->nodes, d->mems);
	return 0;
}

void resize(const struct ledger *l, const struct settings *s, const struct holding *h,
	const struct request *req, struct budget *b, struct arena *a, struct decision *d)
{
	const struct topo *t = ledger_view(l)->topo;
	struct cpuset none = {0}, promised = ledger_promised_cpus(l, NULL);
	struct change c = {
		.l = l,
		.t = t,
		.s = s,
		.budget = b,
		.arena = a,
		.present = h->decision.exclusive ? h->decision.cpus : none,
		.free = cpuset_minus(ledger_free_cpus(l), &promised),
		.count = s->cpu_manager_policy == MANAGER_STATIC ? request_exclusive_cpus(req) : 0,
		.wishes = &h->request.ask.wishes,
		.options = wishes_cpu_options(&h->request.ask.wishes, &s->cpu_options),
		.d = d,
	};

	assert(a->fixed);
	*d = h->decision;
	decision_begin_anew(d);
	d->cut_short = false;
	d->steps = 0;
	if (h->decision.nr_blocks)
		c.memory = h->decision.mems;
	c.around = h->decision.exclusive ? topo_nodes_of(t, &c.present) : c.memory;
	if (holding_is_share(h)) {
		const struct cpuset there = topo_cpus_of(t, h->request.ask.share_of);

		c.free = cpuset_and(c.free, &there);
	}
	int rc = 0; /* within claims it has what these hold, whatever it asks for */
	if (h->decision.within_pod)
		rc = resize_within_pod(&c, h, req);
	else if (!h->decision.within_claims)
		rc = resize_booked(&c, h, req);
	d->cut_short = b->cut;
	if (rc) { /* it has what it had */
		struct decision refused = h->decision;

		refused.cut_short = d->cut_short;
		refused.steps = 0;
		(void)decision_refuse(&refused, d->cause, d->reason, "%s", d->message);
		*d = refused;
	}
	assert(rc == 0 || !d->admit);
}
