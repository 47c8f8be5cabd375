/* Whole cores of unequal size: which numbers of CPUs they can make, for one container or for
 * several at once. */
#include <numafit/cores.h>

#include <numafit/number.h>

enum { SUM_WORDS = CPUSET_BITS / 64 + 1 };

/* A bit for each number of CPUs up to CPUSET_BITS. */
struct sums {
	uint64_t w[SUM_WORDS];
};

void core_need_add(struct core_need *n, unsigned count)
{
	n->first = n->count ? n->first : count;
	n->count += count;
	for (unsigned k = 1; k < CORE_LEVELS; k++)
		n->rest[k] += count % (1U << k);
}

struct core_need core_need_max(struct core_need a, const struct core_need *b)
{
	a.count = (unsigned)number_max(a.count, b->count);
	a.first = (unsigned)number_max(a.first, b->first);
	for (unsigned k = 1; k < CORE_LEVELS; k++)
		a.rest[k] = (unsigned)number_max(a.rest[k], b->rest[k]);
	return a;
}

/* Every sum, and itself plus `by`. */
static void add_shifted(struct sums *s, unsigned by)
{
	const unsigned words = by / 64, bits = by % 64;

	for (unsigned i = SUM_WORDS; i-- > words;) {
		uint64_t moved = s->w[i - words] << bits;

		if (bits && i > words)
			moved |= s->w[i - words - 1] >> (64 - bits);
		s->w[i] |= moved;
	}
}

static bool has_sum(const struct sums *s, unsigned count)
{
	return count <= CPUSET_BITS && s->w[count / 64] >> count % 64 & 1;
}

/* What some of the cores have together: as many of a size as are left are added by halves. */
static struct sums sums_of(const struct core_stock *s)
{
	struct sums all = {{1}};

	for (unsigned size = 1; size <= CORE_SIZE_MAX; size++) {
		unsigned left = s->of[size];

		for (unsigned some = 1; left; some *= 2) {
			some = some < left ? some : left;
			add_shifted(&all, some * size);
			left -= some;
		}
	}
	return all;
}

static unsigned cpus_of_stock(const struct core_stock *s)
{
	unsigned sum = 0;

	for (unsigned size = 1; size <= CORE_SIZE_MAX; size++)
		sum += size * s->of[size];
	return sum;
}

static bool are_powers_of_two(const struct core_stock *s)
{
	for (unsigned size = 1; size <= CORE_SIZE_MAX; size++)
		if (s->of[size] && (size & (size - 1)))
			return false;
	return true;
}

/* With sizes that divide each other, cores of the smaller sizes make the larger ones: nothing but
 * the remainders needs small cores. */
bool cores_have(const struct core_stock *s, const struct core_need *n)
{
	unsigned smaller = 0;

	if (cpus_of_stock(s) < n->count)
		return false;
	if (!are_powers_of_two(s)) {
		const struct sums all = sums_of(s);

		return has_sum(&all, n->first);
	}
	for (unsigned k = 1; k < CORE_LEVELS; k++) {
		const unsigned size = 1U << (k - 1);

		smaller += size * s->of[size];
		if (smaller < n->rest[k])
			return false;
	}
	return true;
}

unsigned cores_most_near(
	const struct core_stock *near, const struct core_stock *rest, unsigned count)
{
	const struct sums here = sums_of(near), there = sums_of(rest);

	for (unsigned some = count; some; some--)
		if (has_sum(&here, some) && has_sum(&there, count - some))
			return some;
	return 0;
}

/* Whether all CPUs of the core are of the set. */
static bool has_core(const struct topo *t, const struct cpuset *cpus, unsigned core)
{
	for (unsigned thread = core; thread < CPUSET_BITS; thread = t->next_thread[thread])
		if (!cpuset_has(cpus, thread))
			return false;
	return t->part_size[LEVEL_CORE][core] <= CORE_SIZE_MAX;
}

struct cpuset cores_within(const struct topo *t, const struct cpuset *cpus)
{
	const struct cpuset there = cpuset_and(*cpus, &t->cpus);
	struct cpuset within = {0};

	cpuset_each (cpu, &there)
		if (t->cpu[cpu].core == cpu && has_core(t, &there, cpu))
			for (unsigned thread = cpu; thread < CPUSET_BITS;
				thread = t->next_thread[thread])
				cpuset_add(&within, thread);
	return within;
}

struct core_stock cores_among(const struct topo *t, const struct cpuset *cpus)
{
	struct core_stock s = {0};

	cpuset_each (cpu, cpus)
		if (cpuset_has(&t->cpus, cpu) && t->cpu[cpu].core == cpu && has_core(t, cpus, cpu))
			s.of[t->part_size[LEVEL_CORE][cpu]]++;
	return s;
}

void cores_of_nodes(
	const struct topo *t, const struct cpuset *cpus, struct core_stock on[NODES_MAX])
{
	nodeset_each (node, t->nodes_with_cpus) {
		const struct cpuset here = cpuset_and(t->node[node].cpus, cpus);

		on[node] = cores_among(t, &here);
	}
}

struct core_stock cores_plus(struct core_stock a, const struct core_stock *b)
{
	for (unsigned size = 1; size <= CORE_SIZE_MAX; size++)
		a.of[size] = (uint16_t)(a.of[size] + b->of[size]);
	return a;
}

struct core_stock cores_less(struct core_stock a, const struct core_stock *b)
{
	for (unsigned size = 1; size <= CORE_SIZE_MAX; size++)
		a.of[size] = (uint16_t)(a.of[size] - b->of[size]);
	return a;
}

bool cores_differ(const struct topo *t)
{
	return t->nr_cpus != t->nr_cores * t->smallest_part[LEVEL_CORE];
}

unsigned cores_step(const struct topo *t, const struct cpuset *cpus)
{
	unsigned largest = 1;

	cpuset_each (cpu, cpus)
		largest = (unsigned)number_max(largest, t->part_size[LEVEL_CORE][t->cpu[cpu].core]);
	return largest;
}

bool cores_of_nodes_have(const struct core_rows *r, struct nodeset nodes)
{
	struct core_stock all = r->reusable;

	nodeset_each (n, nodes)
		all = cores_plus(all, &r->on[n]);
	return cores_have(&all, &r->need);
}
