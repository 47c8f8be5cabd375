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
	struct cpus_how how = cpus_how(t, o);
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

int cpus_check_whole_cores(const struct topo *t, const struct cpu_options *o,
	const struct cpuset *available_physical, unsigned count, struct err *e)
{
	unsigned per_core = t->nr_cpus / t->nr_cores, available = cpuset_count(available_physical);

	if (!o->full_pcpus_only)
		return 0;
	if (count % per_core)
		return err_set(e, EINVAL,
			"SMT Alignment Error: requested %u cpus not multiple cpus per core = %u",
			count, per_core);
	if (count > available)
		return err_set(e, EINVAL,
			"SMT Alignment Error: not enough free physical CPUs: available physical "
			"CPUs = %u, requested CPUs = %u, CPUs per core = %u",
			available, count, per_core);
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

	*n = (struct cpus_per_node){0};
	nodeset_each (node, t->nodes_with_cpus) {
		n->total[node] = cpuset_count(&t->node[node].cpus);
		n->free[node] = cpuset_count_and(&t->node[node].cpus, available);
		n->allocatable[node] = n->total[node];
	}
	if (wanted.nr_sockets && wanted.nr_sockets <= nodeset_count(wanted.nodes))
		find_sockets_of_nodes(t, n->sockets);
	cpus_family_by_node(&wanted, n, f);
}

void cpus_set_aside(const struct topo *t, const struct cpuset *reserved, struct cpus_per_node *n)
{
	nodeset_each (node, t->nodes_with_cpus)
		n->allocatable[node] =
			n->total[node] - cpuset_count_and(&t->node[node].cpus, reserved);
}

struct cpus_how cpus_how(const struct topo *t, const struct cpu_options *o)
{
	return (struct cpus_how){
		.distributed = o->distribute_cpus_across_numa,
		.spread = o->distribute_cpus_across_cores,
		.uncore = o->prefer_align_cpus_by_uncorecache,
		.by_socket = o->align_by_socket &&
			     kubernetes_has(o->kubernetes, RULE_DISTRIBUTES_IN_SOCKET),
		.group = o->full_pcpus_only ? t->nr_cpus / t->nr_cores : 1,
	};
}

int cpus_take(const struct topo *t, const struct cpuset *free, unsigned count,
	const struct cpus_how *how, struct budget *b, struct cpuset *out, struct err *e)
{
	struct cpus_how packed = *how;

	if (cpuset_count_and(free, &t->cpus) < count)
		return err_set(e, ENOSPC,
			"not enough cpus available to satisfy request: requested=%u, available=%u",
			count, cpuset_count(free));
	if (how->distributed) {
		packed.uncore = false;
		if (count && count % how->group == 0 &&
			cpus_distribute(t, free, count, how, b, out))
			return 0;
	}
	*out = cpus_pack(t, free, count, &packed);
	return 0;
}

int cpus_take_on_node(const struct topo *t, const struct cpuset *free, unsigned count,
	const struct cpus_how *how, struct cpuset *out, struct err *e)
{
	struct cpus_how on_node = *how;
	struct budget none = {0};

	if (how->distributed)
		on_node.uncore = false;
	on_node.distributed = false;
	return cpus_take(t, free, count, &on_node, &none, out, e);
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

/* Kubelet policy_static.go, allocateCPUs(): as many as the affinity has, the rest from anywhere. */
int cpus_allocate(const struct topo *t, const struct cpu_options *o,
	const struct cpuset *available_and_reusable, unsigned count, const struct hint *affinity,
	struct budget *b, struct cpuset *out, struct err *e)
{
	struct cpuset near = {0}, rest = *available_and_reusable;
	struct cpus_how how = cpus_how(t, o);
	int rc = 0;

	if (!affinity->any) {
		struct cpuset aligned = cpuset_and(aligned_cpus(t, o, affinity->mask), &rest);
		unsigned have = cpuset_count(&aligned);

		rc = cpus_take(t, &aligned, have < count ? have : count, &how, b, &near, e);
		rest = cpuset_minus(rest, &near);
	}
	if (!rc)
		rc = cpus_take(t, &rest, count - cpuset_count(&near), &how, b, out, e);
	if (!rc)
		*out = cpuset_or(*out, &near);
	return rc;
}
