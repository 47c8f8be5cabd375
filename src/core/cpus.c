#include <numafit/cpus.h>

#include "cpus_pack.h"

#include <errno.h>

/* CPUs are reserved at the start, before any container; on 64 uneven nodes it takes some 100 ms. */
enum { RESERVE_STEPS = 1 << 22 };

/* Options that cannot be on together, in the kubelet's order (NewStaticPolicyOptions). */
#define FULL_PCPUS  "full-pcpus-only"
#define ACROSS_NUMA "distribute-cpus-across-numa"
#define ACROSS_CORE "distribute-cpus-across-cores"
#define UNCORE      "prefer-align-cpus-by-uncorecache"

int cpus_check_options(const struct topo *t, const struct cpu_options *o,
	enum topology_policy policy, struct err *e)
{
	const struct {
		bool both;
		const char *a, *b;
	} excluded[] = {
		{o->full_pcpus_only && o->distribute_cpus_across_cores, FULL_PCPUS, ACROSS_CORE},
		{o->distribute_cpus_across_numa && o->distribute_cpus_across_cores, ACROSS_NUMA,
			ACROSS_CORE},
		{o->prefer_align_cpus_by_uncorecache && o->distribute_cpus_across_cores, UNCORE,
			ACROSS_CORE},
		{o->prefer_align_cpus_by_uncorecache && o->distribute_cpus_across_numa, UNCORE,
			ACROSS_NUMA},
	};

	for (size_t i = 0; i < sizeof excluded / sizeof *excluded; i++)
		if (excluded[i].both)
			return err_set(e, EINVAL,
				"static policy options %s and %s can not be used at the same time",
				excluded[i].a, excluded[i].b);
	if (!o->align_by_socket)
		return 0;
	if (policy == POLICY_SINGLE_NUMA_NODE) /* the kubelet's own spelling */
		return err_set(e, EINVAL,
			"Topolgy manager single-numa-node policy is incompatible with CPUManager "
			"align-by-socket policy option");
	if (t->nr_sockets > nodeset_count(t->nodes_with_cpus))
		return err_set(e, EINVAL,
			"Align by socket is not compatible with hardware where number of sockets "
			"are more than number of NUMA");
	return 0;
}

int cpus_check_reserved(
	const struct topo *t, const struct cpuset *reserved, unsigned count, struct err *e)
{
	struct cpuset unknown = cpuset_minus(*reserved, &t->cpus);
	char list[CPUSET_TEXT_MAX];

	if (!count)
		return err_set(e, EINVAL,
			"[cpumanager] the static policy requires systemreserved.cpu + "
			"kubereserved.cpu to be greater than zero");
	if (cpuset_count(reserved) != count)
		return err_set(e, EINVAL,
			"[cpumanager] unable to reserve the required amount of CPUs (size of %s "
			"did not equal %u)",
			cpuset_format(reserved, list, sizeof list), count);
	if (!cpuset_empty(&unknown))
		return err_set(e, EINVAL,
			"[cpumanager] unable to build the reserved physical CPUs from the reserved "
			"set: unknown CPU ID: %u",
			cpuset_next(&unknown, 0));
	return 0;
}

int cpus_reserve(const struct topo *t, const struct cpu_options *o, unsigned count,
	struct cpuset *out, struct err *e)
{
	struct cpu_options kubelets = *o;

	kubelets.core_rule = CORES_BY_AVERAGE; /* the system's processes share cores */
	struct cpus_how how = cpus_how(t, &kubelets);
	struct budget b = budget_of(RESERVE_STEPS);
	struct cpuset reserved = {0}, from = cpuset_minus(t->cpus, &t->isolated);

	if (cpuset_count(&from) < count) /* the system's processes do not run on isolated ones */
		from = t->cpus;
	(void)cpus_take(t, &from, count, &how, &b, &reserved, NULL); /* too few: the next sees it */
	int rc = cpus_check_reserved(t, &reserved, count, e);
	if (!rc)
		*out = reserved;
	return rc;
}

struct cpuset cpus_whole_cores(const struct topo *t, const struct cpuset *cpus)
{
	const struct cpuset there = cpuset_and(*cpus, &t->cpus);
	struct cpuset whole = {0};

	cpuset_each (cpu, &there)
		if (!cpuset_has(&whole, cpu))
			for (unsigned thread = t->cpu[cpu].core; thread < CPUSET_BITS;
				thread = t->next_thread[thread])
				cpuset_add(&whole, thread);
	return whole;
}

struct cpuset cpus_usable(
	const struct topo *t, const struct cpu_options *o, const struct cpuset *free_cpus)
{
	return cpus_by_core(o) ? cores_within(t, free_cpus) : *free_cpus;
}

static int refuse_unequal_cores(unsigned count, struct err *e)
{
	return err_set(e, EINVAL,
		"SMT Alignment Error: cores of this machine are of unequal size, and %u cpus are "
		"no number of whole ones that are free",
		count);
}

int cpus_check_whole_cores(const struct topo *t, const struct cpu_options *o,
	const struct cpuset *available_physical, unsigned count, struct err *e)
{
	const struct cpuset usable = cpus_usable(t, o, available_physical);
	unsigned per_core = t->nr_cpus / t->nr_cores, available = cpuset_count(&usable);
	const bool unequal = cpus_by_core(o) && cores_differ(t);

	if (!o->full_pcpus_only)
		return 0;
	if (unequal)
		per_core = cores_step(t, &t->cpus);
	if (!unequal && count % per_core)
		return err_set(e, EINVAL,
			"SMT Alignment Error: requested %u cpus not multiple cpus per core = %u",
			count, per_core);
	if (count > available)
		return err_set(e, EINVAL,
			"SMT Alignment Error: not enough free physical CPUs: available physical "
			"CPUs = %u, requested CPUs = %u, CPUs per core = %u",
			available, count, per_core);
	if (unequal) {
		const struct core_stock cores = cores_among(t, &usable);
		struct core_need need = {0};

		core_need_add(&need, count);
		if (!cores_have(&cores, &need))
			return refuse_unequal_cores(count, e);
	}
	return 0;
}

/* The fewest nodes whose CPUs would do, were they all free: reserved and busy ones count. All of
 * them when not even those would. */
static unsigned fewest_nodes(const struct cpus_per_node *n, struct nodeset nodes, uint64_t count)
{
	uint64_t largest_first[NODES_MAX], sum = 0;
	unsigned nr = 0;

	nodeset_each (node, nodes) {
		unsigned at = nr++;

		for (; at > 0 && largest_first[at - 1] < n->total[node]; at--)
			largest_first[at] = largest_first[at - 1];
		largest_first[at] = n->total[node];
	}
	for (unsigned i = 0; i < nr; i++) {
		sum += largest_first[i];
		if (sum >= count)
			return i + 1;
	}
	return nr;
}

void cpus_family_by_node(
	const struct cpus_wanted *w, const struct cpus_per_node *n, struct family *f)
{
	*f = (struct family){.resource = "cpu"};
	if (!w->count)
		return; /* FAMILY_ANY is 0 */
	f->ground = w->nodes;
	f->required = w->reusable;
	f->nr_demands = 1;
	f->demand[0] =
		(struct family_demand){.weight = n->free, .base = w->nr_reusable, .need = w->count};
	f->capacity.weight = n->allocatable;
	f->unallocated.weight = n->free;
	f->preferred_size = fewest_nodes(n, f->ground, w->count);
	/* the second way to be preferred: to touch exactly as many sockets as the preferred number
	 * of nodes would fill (kubelet isHintSocketAligned) */
	unsigned per_socket = w->nr_sockets ? nodeset_count(w->nodes) / w->nr_sockets : 0;
	if (per_socket) {
		f->sockets_of_node = n->sockets;
		f->preferred_sockets = (f->preferred_size + per_socket - 1) / per_socket;
	}
	f->kind = family_demand_met(&f->demand[0], f->ground) ? FAMILY_CAPACITY : FAMILY_NONE;
}

/* A socket may cross NUMA nodes, and a node sockets (kubelet SocketsInNUMANodes). There are no more
 * sockets than nodes. */
static void find_sockets_of_nodes(const struct topo *t, uint64_t sockets[NODES_MAX])
{
	struct cpuset known = {0};
	uint8_t number[CPUSET_BITS];
	uint8_t nr = 0;

	cpuset_each (cpu, &t->cpus)
		cpuset_add(&known, t->cpu[cpu].socket);
	cpuset_each (socket, &known)
		number[socket] = nr++;
	cpuset_each (cpu, &t->cpus)
		sockets[t->cpu[cpu].node] |= UINT64_C(1) << number[t->cpu[cpu].socket];
}

void cpus_family(const struct topo *t, const struct cpu_options *o, const struct cpuset *available,
	const struct cpuset *reusable, unsigned count, struct cpus_per_node *n, struct family *f)
{
	const struct cpus_wanted wanted = {.count = count,
		.nodes = t->nodes_with_cpus,
		.reusable = topo_nodes_of(t, reusable),
		.nr_reusable = cpuset_count(reusable),
		.nr_sockets = o->align_by_socket ? t->nr_sockets : 0};

	const struct cpuset usable = cpus_usable(t, o, available);

	*n = (struct cpus_per_node){0};
	nodeset_each (node, t->nodes_with_cpus) {
		n->total[node] = cpuset_count(&t->node[node].cpus);
		n->free[node] = cpuset_count_and(&t->node[node].cpus, &usable);
		n->allocatable[node] = n->total[node];
	}
	if (wanted.nr_sockets && wanted.nr_sockets <= nodeset_count(wanted.nodes))
		find_sockets_of_nodes(t, n->sockets);
	cpus_family_by_node(&wanted, n, f);
	if (!count || !cpus_by_core(o) || !cores_differ(t))
		return;
	core_need_add(&n->cores.need, count);
	n->cores.reusable = cores_among(t, reusable);
	cores_of_nodes(t, &usable, n->cores.on);
	f->demand[0].cores = &n->cores;
	f->kind = family_demand_met(&f->demand[0], f->ground) ? FAMILY_CAPACITY : FAMILY_NONE;
}

int cpus_prefer_by_cores(const struct topo *t, const struct cpu_options *o, struct cpus_per_node *n,
	struct budget *b, struct arena *a, struct family *f)
{
	if (f->kind == FAMILY_ANY || !cpus_by_core(o) || !cores_differ(t))
		return 0;
	f->kind = family_demand_met(&f->demand[0], f->ground) ? FAMILY_CAPACITY : FAMILY_NONE;
	struct core_rows *all = arena_alloc(a, sizeof *all);
	if (!all)
		return -ENOMEM;
	all->need = n->cores.need;
	cores_of_nodes(t, &t->cpus, all->on);
	const struct family whole = {.kind = FAMILY_CAPACITY,
		.ground = f->ground,
		.nr_demands = 1,
		.demand = {{.weight = n->total, .need = all->need.count, .cores = all}}};
	const unsigned fewest = family_smallest(&whole, b, a);
	if (!fewest || fewest == f->preferred_size)
		return 0;
	const unsigned per_socket =
		f->preferred_sockets ? nodeset_count(t->nodes_with_cpus) / t->nr_sockets : 0;
	f->preferred_size = fewest;
	if (per_socket)
		f->preferred_sockets = (fewest + per_socket - 1) / per_socket;
	return 0;
}

void cpus_set_aside(const struct topo *t, const struct cpuset *reserved, struct cpus_per_node *n)
{
	nodeset_each (node, t->nodes_with_cpus)
		n->allocatable[node] =
			n->total[node] - cpuset_count_and(&t->node[node].cpus, reserved);
}

struct cpus_how cpus_how(const struct topo *t, const struct cpu_options *o)
{
	const bool by_core = cpus_by_core(o);

	return (struct cpus_how){
		.by_core = by_core,
		.distributed = o->distribute_cpus_across_numa,
		.spread = o->distribute_cpus_across_cores,
		.uncore = o->prefer_align_cpus_by_uncorecache,
		.by_socket = o->align_by_socket &&
			     kubernetes_has(o->kubernetes, RULE_DISTRIBUTES_IN_SOCKET),
		.group = by_core              ? cores_step(t, &t->cpus)
			 : o->full_pcpus_only ? t->nr_cpus / t->nr_cores
					      : 1,
	};
}

int cpus_take(const struct topo *t, const struct cpuset *free, unsigned count,
	const struct cpus_how *how, struct budget *b, struct cpuset *out, struct err *e)
{
	const struct cpuset usable = how->by_core ? cores_within(t, free) : *free;
	struct cpus_how packed = *how;

	if (how->by_core && count && cpuset_count(&usable) >= count) {
		const struct core_stock cores = cores_among(t, &usable);

		packed.later = (struct core_need){0};
		core_need_add(&packed.later, count);
		if (!cores_have(&cores, &packed.later)) {
			(void)refuse_unequal_cores(count, e);
			return -ENOSPC;
		}
		packed.later = how->later;
	}
	if (cpuset_count_and(&usable, &t->cpus) < count)
		return err_set(e, ENOSPC,
			"not enough cpus available to satisfy request: requested=%u, available=%u",
			count, cpuset_count(&usable));
	if (how->distributed) {
		packed.uncore = false;
		if (count && count % how->group == 0 &&
			cpus_distribute(t, &usable, count, how, b, out))
			return 0;
	}
	*out = cpus_pack(t, &usable, count, &packed);
	return 0;
}

int cpus_take_in_parts(const struct topo *t, const struct cpuset *free, unsigned count,
	const struct cpus_how *how, struct budget *b, struct cpuset *out, struct err *e)
{
	struct cpus_how parts = *how;
	int rc = cpus_take(t, free, count, how, b, out, e);

	parts.by_core = false;
	return rc && how->by_core ? cpus_take(t, free, count, &parts, b, out, e) : rc;
}

int cpus_take_on_node(const struct topo *t, const struct cpuset *free, unsigned count,
	const struct cpus_how *how, struct cpuset *out, struct err *e)
{
	struct cpus_how on_node = *how;
	struct budget none = {0};

	if (how->distributed)
		on_node.uncore = false;
	on_node.distributed = false;
	return cpus_take_in_parts(t, free, count, &on_node, &none, out, e);
}

/* The CPUs that an affinity speaks of: those of its nodes, or of all sockets that these touch
 * (kubelet getAlignedCPUs). */
static struct cpuset aligned_cpus(
	const struct topo *t, const struct cpu_options *o, struct nodeset mask)
{
	struct cpuset cpus = topo_cpus_of(t, nodeset_and(mask, t->nodes)), sockets = {0};

	if (!o->align_by_socket)
		return cpus;
	cpuset_each (cpu, &cpus)
		cpuset_add(&sockets, t->cpu[cpu].socket);
	cpuset_each (cpu, &t->cpus)
		if (cpuset_has(&sockets, t->cpu[cpu].socket))
			cpuset_add(&cpus, cpu);
	return cpus;
}

unsigned cpus_count_near(const struct topo *t, const struct cpu_options *o,
	const struct cpuset *near, const struct cpuset *all, unsigned count)
{
	const struct cpuset others = cpuset_minus(*all, near);
	const unsigned have = cpuset_count(near);

	if (!cpus_by_core(o))
		return have < count ? have : count;
	const struct core_stock here = cores_among(t, near), there = cores_among(t, &others);
	return cores_most_near(&here, &there, count);
}

/* Kubelet policy_static.go, allocateCPUs(): as many as the affinity has, the rest from anywhere. */
int cpus_allocate(const struct topo *t, const struct cpu_options *o,
	const struct cpuset *available_and_reusable, unsigned count, const struct core_need *later,
	const struct hint *affinity, struct budget *b, struct cpuset *out, struct err *e)
{
	struct cpuset near = {0}, rest = cpus_usable(t, o, available_and_reusable);
	struct cpus_how how = cpus_how(t, o);
	int rc = 0;

	if (later)
		how.later = *later;
	if (!affinity->any) {
		struct cpuset aligned = cpuset_and(aligned_cpus(t, o, affinity->mask), &rest);

		struct cpuset others = cpuset_minus(rest, &aligned);

		how.elsewhere = cores_among(t, &others);
		rc = cpus_take(t, &aligned, cpus_count_near(t, o, &aligned, &rest, count), &how, b,
			&near, e);
		rest = cpuset_minus(rest, &near);
		how.elsewhere = (struct core_stock){0};
	}
	if (!rc)
		rc = cpus_take(t, &rest, count - cpuset_count(&near), &how, b, out, e);
	if (!rc)
		*out = cpuset_or(*out, &near);
	return rc;
}
