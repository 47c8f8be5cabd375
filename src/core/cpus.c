/* Picking CPUs: from the largest whole thing that is still needed down to single threads, at every
 * level where the fewest free CPUs are left, so that large whole things stay whole. */
#include <numafit/cpus.h>

#include <errno.h>

void cpus_family(const struct topo *t, const struct cpuset *free, unsigned count,
	struct cpus_per_node *n, struct family *f)
{
	uint64_t largest_first[NODES_MAX];
	unsigned nr = 0;

	*f = (struct family){.resource = "cpu"};
	if (!count)
		return; /* FAMILY_ANY is 0 */
	*n = (struct cpus_per_node){0};
	nodeset_each (node, t->nodes_with_cpus) {
		unsigned at = nr++;

		n->total[node] = cpuset_count(&t->node[node].cpus);
		n->free[node] = cpuset_count_and(&t->node[node].cpus, free);
		for (; at > 0 && largest_first[at - 1] < n->total[node]; at--)
			largest_first[at] = largest_first[at - 1];
		largest_first[at] = n->total[node];
	}
	/* the fewest nodes whose CPUs would do, were they all free: reserved and busy ones count */
	f->preferred_size = nr;
	for (uint64_t i = 0, sum = 0; i < nr; i++) {
		sum += largest_first[i];
		if (sum >= count) {
			f->preferred_size = (unsigned)i + 1;
			break;
		}
	}
	f->ground = t->nodes_with_cpus;
	f->nr_demands = 1;
	f->demand[0] = (struct family_demand){.weight = n->free, .need = count};
	f->kind = cpuset_count_and(&t->cpus, free) >= count ? FAMILY_CAPACITY : FAMILY_NONE;
}

enum level { BY_NODE, BY_SOCKET, BY_CORE, NR_LEVELS };

static unsigned part_of(const struct topo *t, unsigned cpu, enum level level)
{
	const struct topo_cpu *c = &t->cpu[cpu];

	return level == BY_NODE ? c->node : level == BY_SOCKET ? c->socket : c->core;
}

static struct cpuset cpus_of_part(
	const struct topo *t, const struct cpuset *within, enum level level, unsigned part)
{
	struct cpuset cpus = {0};

	if (level == BY_NODE)
		return cpuset_and(t->node[part].cpus, within);
	cpuset_each (cpu, within)
		if (part_of(t, cpu, level) == part)
			cpuset_add(&cpus, cpu);
	return cpus;
}

/* Parts of one level in an order, without repeats. */
struct order {
	unsigned nr;
	uint16_t part[CPUSET_BITS];
	struct cpuset seen;
};

/* Append the parts that have CPUs of *free: the emptiest first, at a tie the lower id. */
static void append_sorted(
	const struct topo *t, const struct cpuset *free, enum level level, struct order *o)
{
	uint16_t count[CPUSET_BITS] = {0};
	unsigned from = o->nr;

	cpuset_each (cpu, free)
		count[part_of(t, cpu, level)]++;
	for (unsigned part = 0; part < CPUSET_BITS; part++) {
		unsigned at = o->nr;

		if (!count[part] || cpuset_has(&o->seen, part))
			continue;
		for (; at > from && count[o->part[at - 1]] > count[part]; at--)
			o->part[at] = o->part[at - 1];
		o->part[at] = (uint16_t)part;
		o->nr++;
		cpuset_add(&o->seen, part);
	}
}

struct picking {
	const struct topo *t;
	struct cpuset free, taken;
	unsigned need;
	enum level outer, inner; /* of NUMA nodes and sockets: which contains which */
};

/* Parts of a level: those of the outer level sorted, in each of them the next level's sorted. */
static void order_parts(const struct picking *p, enum level level, struct order *o)
{
	*o = (struct order){0};
	if (level == p->outer) {
		append_sorted(p->t, &p->free, level, o);
		return;
	}
	struct order above;
	enum level up = level == BY_CORE ? p->inner : p->outer;

	order_parts(p, up, &above);
	for (unsigned i = 0; i < above.nr; i++) {
		struct cpuset in = cpus_of_part(p->t, &p->free, up, above.part[i]);

		append_sorted(p->t, &in, level, o);
	}
}

static void take(struct picking *p, const struct cpuset *cpus)
{
	p->taken = cpuset_or(p->taken, cpus);
	p->free = cpuset_minus(p->free, cpus);
	p->need -= cpuset_count(cpus);
}

/* Take every part of the level that is free as a whole and not larger than what is needed. */
static void take_whole(struct picking *p, enum level level)
{
	struct order o;

	if (!p->need)
		return;
	order_parts(p, level, &o);
	for (unsigned i = 0; i < o.nr && p->need; i++) {
		struct cpuset all = cpus_of_part(p->t, &p->t->cpus, level, o.part[i]);

		if (cpuset_count(&all) <= p->need && cpuset_within(&all, &p->free))
			take(p, &all);
	}
}

static void take_threads(struct picking *p)
{
	struct order cores;

	if (!p->need)
		return;
	order_parts(p, BY_CORE, &cores);
	for (unsigned i = 0; i < cores.nr; i++) {
		struct cpuset threads = cpus_of_part(p->t, &p->free, BY_CORE, cores.part[i]);

		cpuset_each (cpu, &threads) {
			struct cpuset one = {0};

			if (!p->need)
				return;
			cpuset_add(&one, cpu);
			take(p, &one);
		}
	}
}

int cpus_take(const struct topo *t, const struct cpuset *free, unsigned count, struct cpuset *out,
	struct err *e)
{
	bool sockets_in_nodes = t->nr_sockets >= nodeset_count(t->nodes_with_cpus);
	struct picking p = {
		.t = t,
		.free = cpuset_and(*free, &t->cpus),
		.need = count,
		.outer = sockets_in_nodes ? BY_NODE : BY_SOCKET,
		.inner = sockets_in_nodes ? BY_SOCKET : BY_NODE,
	};

	if (cpuset_count(&p.free) < count)
		return err_set(e, ENOSPC,
			"not enough cpus available to satisfy request: requested=%u, available=%u",
			count, cpuset_count(&p.free));
	take_whole(&p, p.outer);
	take_whole(&p, p.inner);
	take_whole(&p, BY_CORE);
	take_threads(&p);
	*out = p.taken;
	return 0;
}

int cpus_allocate(const struct topo *t, const struct cpuset *free, unsigned count,
	const struct hint *affinity, struct cpuset *out, struct err *e)
{
	struct cpuset near = {0}, rest = *free;
	int rc = 0;

	if (!affinity->any) {
		struct cpuset cpus = topo_cpus_of(t, affinity->mask);
		struct cpuset aligned = cpuset_and(cpus, free);
		unsigned have = cpuset_count(&aligned);

		rc = cpus_take(t, &aligned, have < count ? have : count, &near, e);
		rest = cpuset_minus(rest, &near);
	}
	if (!rc)
		rc = cpus_take(t, &rest, count - cpuset_count(&near), out, e);
	if (!rc)
		*out = cpuset_or(*out, &near);
	return rc;
}
