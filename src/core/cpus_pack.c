/* Packing: from the largest whole thing that is still needed down to single threads, at every
 * level where the fewest free CPUs are left, so that large whole things stay whole. */
#include "cpus_pack.h"

#include <assert.h>
#include <string.h>

struct pack {
	const struct topo *t;
	struct cpuset free, taken;
	unsigned need;
	enum topo_level outer, inner; /* of NUMA nodes and sockets: which contains which */
	bool by_core;                 /* cores.h: */
	struct core_stock cores;      /* that are free */
	struct core_need later;       /* of others, from what is left of these and */
	struct core_stock elsewhere;
};

static void count_parts(const struct topo *t, const struct cpuset *cpus, enum topo_level level,
	uint16_t count[CPUSET_BITS])
{
	memset(count, 0, CPUSET_BITS * sizeof *count);
	cpuset_each (cpu, cpus)
		count[topo_part_of(t, cpu, level)]++;
}

/* Free CPUs in an order, one number each, so that sorting the numbers sorts them: the place of
 * the part above, how many CPUs are free in the part, the part's id, the CPU's id. */
enum { FIELD_BITS = 11, FIELD_MASK = (1 << FIELD_BITS) - 1 };
_Static_assert((int)CPUSET_BITS <= (int)FIELD_MASK, "a field holds any id and any count");
struct order {
	unsigned nr;
	uint64_t at[CPUSET_BITS];
};

static unsigned cpu_at(const struct order *o, unsigned i)
{
	return o->at[i] & FIELD_MASK;
}

static unsigned part_at(const struct order *o, unsigned i)
{
	return o->at[i] >> FIELD_BITS & FIELD_MASK;
}

/* The index behind the last CPU of the part that begins at i. */
static unsigned part_end(const struct order *o, unsigned i)
{
	unsigned end = i + 1;

	while (end < o->nr && part_at(o, end) == part_at(o, i))
		end++;
	return end;
}

/* Shell's sort: no heap, and quick on what is nearly in order, as machines number their CPUs. */
static void sort_order(struct order *o)
{
	static const unsigned gaps[] = {301, 132, 57, 23, 10, 4, 1};

	for (unsigned g = 0; g < sizeof gaps / sizeof *gaps; g++)
		for (unsigned i = gaps[g]; i < o->nr; i++) {
			uint64_t moving = o->at[i];
			unsigned to = i;

			for (; to >= gaps[g] && o->at[to - gaps[g]] > moving; to -= gaps[g])
				o->at[to] = o->at[to - gaps[g]];
			o->at[to] = moving;
		}
}

static void order_cpus(const struct pack *p, enum topo_level level, struct order *o);

/* The place of each part, by the part above it that comes first. */
static void place_parts(const struct pack *p, enum topo_level level, uint16_t place[CPUSET_BITS])
{
	enum topo_level above = level == p->inner       ? p->outer
				: level == LEVEL_UNCORE ? LEVEL_NODE
							: p->inner;
	struct order up;

	memset(place, 0, CPUSET_BITS * sizeof *place);
	if (level == p->outer)
		return;
	order_cpus(p, above, &up);
	for (unsigned i = 0, end; i < up.nr; i = end) {
		end = part_end(&up, i);
		for (unsigned c = i; c < end; c++) {
			uint16_t *first = &place[topo_part_of(p->t, cpu_at(&up, c), level)];

			*first = *first ? *first : (uint16_t)(i + 1);
		}
	}
}

/* The free CPUs by parts of the level: the part above that comes first, then the emptiest part, at
 * a tie the lower id (kubelet sortAvailable{NUMANodes,Sockets,UncoreCaches,Cores}). */
static void order_cpus(const struct pack *p, enum topo_level level, struct order *o)
{
	uint16_t count[CPUSET_BITS], place[CPUSET_BITS];

	count_parts(p->t, &p->free, level, count);
	place_parts(p, level, place);
	o->nr = 0;
	cpuset_each (cpu, &p->free) {
		unsigned part = topo_part_of(p->t, cpu, level);
		uint64_t key = place[part];

		key = key << FIELD_BITS | count[part];
		key = key << FIELD_BITS | part;
		o->at[o->nr++] = key << FIELD_BITS | cpu;
	}
	sort_order(o);
}

static void take_cpu(struct pack *p, unsigned cpu)
{
	cpuset_add(&p->taken, cpu);
	cpuset_del(&p->free, cpu);
	p->need--;
}

/* By core: whether what is still needed can be made of the cores that are left, and of others what
 * others need later, once these CPUs are taken. */
static bool leaves_enough(const struct pack *p, const struct cpuset *cpus)
{
	const struct cpuset whole = cores_within(p->t, cpus);
	const struct core_stock taken = cores_among(p->t, cpus);
	const struct core_stock left = cores_less(p->cores, &taken);
	const unsigned need = p->need - cpuset_count(cpus);
	const struct core_stock all = cores_plus(left, &p->elsewhere);
	struct core_need own = {0}, with_later = p->later;

	core_need_add(&own, need);
	core_need_add(&with_later, need);
	with_later.first = need;
	return cpuset_equal(&whole, cpus) && cores_have(&left, &own) &&
	       (!p->later.count || cores_have(&all, &with_later));
}

/* The size of every part that is free as a whole and not larger than what is needed, else 0.
 * Whole is what has all of its own CPUs free. Where sockets or cores differ in size, the kubelet
 * sees a whole one in any that has the average free, busy CPUs and all; those of another size it
 * never sees, which is kept, so that answers differ in nothing but CPUs that are not free.
 * Returns whether there is any. */
static bool whole_parts(const struct pack *p, enum topo_level level, uint16_t size[CPUSET_BITS])
{
	/* the kubelet's measure for sockets and cores (isSocketFree, isCoreFree); others go by each
	 * part's own size */
	const unsigned parts[TOPO_LEVELS] = {
		[LEVEL_SOCKET] = p->t->nr_sockets, [LEVEL_CORE] = p->t->nr_cores};
	unsigned average = parts[level] ? p->t->nr_cpus / parts[level] : 0;

	if (level == LEVEL_CORE && p->by_core)
		average = 0;
	uint16_t free[CPUSET_BITS];
	bool any = false;

	if (p->t->smallest_part[level] > p->need)
		return false;
	memcpy(size, p->t->part_size[level], CPUSET_BITS * sizeof *size);
	count_parts(p->t, &p->free, level, free);
	for (unsigned part = 0; part < CPUSET_BITS; part++) {
		if (free[part] != size[part] || size[part] > p->need ||
			(average && size[part] != average))
			size[part] = 0;
		any |= size[part] != 0;
	}
	return any;
}

static void take_if_enough_is_left(struct pack *p, const struct cpuset *cpus)
{
	if (p->by_core) {
		if (!leaves_enough(p, cpus))
			return;
		const struct core_stock taken = cores_among(p->t, cpus);
		p->cores = cores_less(p->cores, &taken);
	}
	cpuset_each (cpu, cpus)
		take_cpu(p, cpu);
}

/* Take every such part while it is not larger than what is still needed (kubelet
 * takeFull{NUMANodes,Sockets,Uncore,Cores}). */
static void take_whole_parts(struct pack *p, enum topo_level level)
{
	uint16_t size[CPUSET_BITS];
	struct order o;

	if (!p->need || !whole_parts(p, level, size))
		return;
	order_cpus(p, level, &o);
	for (unsigned i = 0, end; i < o.nr; i = end) {
		end = part_end(&o, i);
		if (!size[part_at(&o, i)] || end - i > p->need)
			continue;
		struct cpuset part = {0};
		for (unsigned c = i; c < end; c++)
			cpuset_add(&part, cpu_at(&o, c));
		take_if_enough_is_left(p, &part);
	}
}

/* The free CPUs of the fewest cores of the cache that could hold what is needed, lowest first. */
static struct cpuset fewest_cores(const struct pack *p, unsigned uncore, unsigned per_core)
{
	unsigned left = (p->need + per_core - 1) / per_core;
	struct cpuset cores = {0}, chosen = {0}, cpus = {0};

	cpuset_each (cpu, &p->free)
		if (p->t->cpu[cpu].uncore == uncore)
			cpuset_add(&cores, p->t->cpu[cpu].core);
	cpuset_each (core, &cores)
		if (left) {
			cpuset_add(&chosen, core);
			left--;
		}
	cpuset_each (cpu, &p->free)
		if (cpuset_has(&chosen, p->t->cpu[cpu].core))
			cpuset_add(&cpus, cpu);
	return cpus;
}

/* By core: cores of one cache that have just what is still needed, the lowest first; empty: none
 * have. */
static struct cpuset cores_of_cache(const struct pack *p, unsigned uncore)
{
	struct cpuset here = {0};

	cpuset_each (cpu, &p->free)
		if (p->t->cpu[cpu].uncore == uncore)
			cpuset_add(&here, cpu);
	struct pack of_cache = {.t = p->t,
		.free = cores_within(p->t, &here),
		.need = p->need,
		.by_core = true,
		.cores = cores_among(p->t, &here)};
	cpuset_each (cpu, &here) {
		struct cpuset core = {0};

		cpuset_add(&core, cpu);
		core = cpus_whole_cores(p->t, &core);
		if (of_cache.need && p->t->cpu[cpu].core == cpu &&
			cpuset_within(&core, &of_cache.free) &&
			cpuset_count(&core) <= of_cache.need)
			take_if_enough_is_left(&of_cache, &core);
	}
	return of_cache.need ? (struct cpuset){0} : of_cache.taken;
}

/* All that is still needed out of one cache, when that comes out even (kubelet
 * takePartialUncore). */
static void take_partial_uncore(struct pack *p, unsigned uncore)
{
	unsigned per_core = p->t->nr_cpus / p->t->nr_cores;

	if (p->by_core) {
		const struct cpuset cores = cores_of_cache(p, uncore);

		if (!cpuset_empty(&cores))
			take_if_enough_is_left(p, &cores);
		return;
	}
	struct cpuset cpus = fewest_cores(p, uncore, per_core);

	if (p->need % 2 && per_core > 1 && cpuset_count(&cpus) > p->need) {
		unsigned highest = 0; /* one thread of a core is left */

		cpuset_each (cpu, &cpus)
			highest = cpu;
		cpuset_del(&cpus, highest);
	}
	if (cpuset_count(&cpus) != p->need)
		return;
	cpuset_each (cpu, &cpus)
		take_cpu(p, cpu);
}

/* Kubelet takeUncoreCache. A cache that lies on several NUMA nodes comes once; the kubelet counts
 * it once for each node, and then gives fewer CPUs than were asked for. */
static void take_uncores(struct pack *p)
{
	unsigned average = p->t->nr_cpus / p->t->nr_uncores;
	struct order o;

	if (p->need)
		order_cpus(p, LEVEL_UNCORE, &o);
	for (unsigned i = 0; p->need && i < o.nr; i = part_end(&o, i)) {
		if (p->need >= average)
			take_whole_parts(p, LEVEL_UNCORE);
		if (p->need)
			take_partial_uncore(p, part_at(&o, i));
	}
}

static struct pack pack_of(const struct topo *t, const struct cpuset *free, unsigned need)
{
	bool sockets_in_nodes = t->nr_sockets >= nodeset_count(t->nodes_with_cpus);

	return (struct pack){
		.t = t,
		.free = cpuset_and(*free, &t->cpus),
		.need = need,
		.outer = sockets_in_nodes ? LEVEL_NODE : LEVEL_SOCKET,
		.inner = sockets_in_nodes ? LEVEL_SOCKET : LEVEL_NODE,
	};
}

static void begin_by_core(struct pack *p, const struct cpus_how *how)
{
	const struct cpuset nothing = {0};

	p->by_core = true;
	p->free = cores_within(p->t, &p->free);
	p->cores = cores_among(p->t, &p->free);
	p->later = how->later;
	p->elsewhere = how->elsewhere;
	if (!leaves_enough(p, &nothing)) /* others get what is left */
		p->later = (struct core_need){0};
}

struct cpuset cpus_pack(
	const struct topo *t, const struct cpuset *free, unsigned count, const struct cpus_how *how)
{
	struct pack p = pack_of(t, free, count);
	struct order o;

	assert(cpuset_count(&p.free) >= count);
	if (how->by_core)
		begin_by_core(&p, how);
	take_whole_parts(&p, p.outer);
	take_whole_parts(&p, p.inner);
	if (how->uncore)
		take_uncores(&p);
	if (!how->spread)
		take_whole_parts(&p, LEVEL_CORE);
	if (p.need)
		order_cpus(&p, how->spread ? LEVEL_SOCKET : LEVEL_CORE, &o);
	for (unsigned i = 0; p.need && !p.by_core; i++)
		take_cpu(&p, cpu_at(&o, i));
	if (p.need && how->later.count) { /* not with what others need as well */
		struct cpus_how alone = *how;

		alone.later = (struct core_need){0};
		return cpus_pack(t, free, count, &alone);
	}
	return p.taken;
}

unsigned cpus_order_nodes(const struct topo *t, const struct cpuset *free, uint8_t node[NODES_MAX])
{
	struct pack p = pack_of(t, free, 0);
	struct order o;
	unsigned nr = 0;

	order_cpus(&p, LEVEL_NODE, &o);
	for (unsigned i = 0; i < o.nr; i = part_end(&o, i))
		node[nr++] = (uint8_t)part_at(&o, i);
	return nr;
}
