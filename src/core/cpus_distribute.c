/* Distributing: as few NUMA nodes as can be, each giving the same number of CPUs, and of all ways
 * to do so the one that leaves the most even machine (KEP-2902, kubelet
 * takeByTopologyNUMADistributed).
 *
 * The kubelet tries every combination of nodes and within it every subset that could give what is
 * left over, in lexicographic order; the first of the most even ones wins. This is the same search,
 * with branches left out that cannot be more even than what is known. Two of its mistakes are not
 * repeated: it remembers combinations in slices that go on changing (kubernetes PR 141238), and it
 * never ends when a subset has the CPUs, but not in whole groups (PR 140730). */
#include "cpus_pack.h"

enum {
	NUMBERS_PER_STEP = 8,
	PRECISION = 1000 /* the kubelet rounds means and deviations to as much */
};
#define UNEVEN UINT64_MAX /* worse than any balance: there is no such way */

/* Nodes are known by their place in the order of cpus_order_nodes(); a struct nodeset is a set of
 * places here. */
struct spread {
	unsigned nr;
	uint8_t node[NODES_MAX];
	uint16_t count[NODES_MAX];  /* free CPUs */
	uint8_t fullest[NODES_MAX]; /* places, most free CPUs first */
	uint64_t squares;           /* sum of the squares of count[] */
	uint64_t left;              /* free CPUs in the end */
	unsigned group, each;       /* CPUs per group, CPUs that each chosen node gives */
	unsigned rest;              /* groups that some of them, the givers, give besides */
	struct budget *budget;
	struct nodeset nodes, givers; /* the best so far */
	uint64_t limit;               /* only what is more even than that is of interest */
};

/* The balance when the nodes come down to after[]: the kubelet's standardDeviation() in
 * thousandths, from the sum of squares of what each node has left. Whole numbers give what it
 * rounds its doubles to: on fewer than 64 nodes nothing is exactly half a thousandth. */
static uint64_t balance_after(
	const struct spread *s, struct nodeset nodes, const unsigned after[NODES_MAX])
{
	uint64_t squares = s->squares, root = 0;

	nodeset_each (p, nodes) {
		squares -= (uint64_t)s->count[p] * s->count[p];
		squares += (uint64_t)after[p] * after[p];
	}
	uint64_t mean = (2 * PRECISION * s->left + s->nr) / (2 * s->nr);
	uint64_t variance = PRECISION * PRECISION * squares + s->nr * mean * mean -
			    2 * PRECISION * mean * s->left;
	uint64_t fourfold = 4 * variance / s->nr;
	for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1) /* twice the square root */
		if ((root + bit) * (root + bit) <= fourfold)
			root += bit;
	return (root + 1) / 2;
}

/* The balance once the nodes have given each, and the givers in turn one group after another. */
static uint64_t balance_in_turn(const struct spread *s, struct nodeset nodes, struct nodeset givers)
{
	unsigned after[NODES_MAX], rest = s->rest;

	(void)budget_spend(s->budget, 1 + rest / NUMBERS_PER_STEP);
	nodeset_each (p, nodes)
		after[p] = s->count[p] - s->each;
	for (unsigned before = rest + 1; rest && rest < before;) {
		before = rest;
		nodeset_each (p, givers) {
			if (!rest || after[p] < s->group)
				continue;
			after[p] -= s->group;
			rest--;
		}
	}
	return rest ? UNEVEN : balance_after(s, nodes, after);
}

/* No way to give is more even: each further group comes from whichever giver has the most left, up
 * to `most` groups from one. */
static uint64_t balance_at_best(
	const struct spread *s, struct nodeset nodes, struct nodeset givers, unsigned most)
{
	unsigned after[NODES_MAX], given[NODES_MAX] = {0};

	(void)budget_spend(s->budget, 1 + s->rest * nodeset_count(givers) / NUMBERS_PER_STEP);
	nodeset_each (p, nodes) {
		if (s->count[p] < s->each)
			return UNEVEN;
		after[p] = s->count[p] - s->each;
	}
	for (unsigned rest = s->rest; rest; rest--) {
		unsigned from = NODES_MAX;

		nodeset_each (p, givers)
			if (given[p] < most && (from == NODES_MAX || after[p] > after[from]))
				from = p;
		if (from == NODES_MAX || after[from] < s->group)
			return UNEVEN;
		after[from] -= s->group;
		given[from]++;
	}
	return balance_after(s, nodes, after);
}

/* The nr places of the set with the most free CPUs. */
static struct nodeset fullest_places(const struct spread *s, struct nodeset set, unsigned nr)
{
	struct nodeset found = {0};

	for (unsigned i = 0; i < s->nr && nr; i++) {
		if (!nodeset_has(set, s->fullest[i]))
			continue;
		found = nodeset_or(found, nodeset_of(s->fullest[i]));
		nr--;
	}
	return found;
}

/* Keep the way if it is the best so far. False: it is not. */
static bool keep_more_even(struct spread *s, struct nodeset nodes, struct nodeset givers)
{
	uint64_t b = balance_in_turn(s, nodes, givers);

	if (b >= s->limit)
		return false;
	s->limit = b;
	s->nodes = nodes;
	s->givers = givers;
	return true;
}

static bool has_count(const struct spread *s, struct nodeset set, unsigned count)
{
	nodeset_each (p, set)
		if (s->count[p] == count)
			return true;
	return false;
}

/* A lexicographic walk over subsets: what is chosen so far, what may follow, how many must. */
struct walk {
	struct nodeset nodes; /* of which givers are chosen; empty while nodes themselves are */
	struct nodeset chosen, open;
	unsigned missing;
	unsigned most; /* groups from one giver */
};

static void try_nodes(struct spread *s, struct nodeset nodes);

/* Try all that w can become: sets of nodes, or of givers among them. */
static void walk_subsets(struct spread *s, struct walk w)
{
	struct nodeset tried = {0};
	struct nodeset at_best = nodeset_or(w.chosen, fullest_places(s, w.open, w.missing));
	bool of_givers = !nodeset_empty(w.nodes);

	if (!w.missing && of_givers)
		(void)keep_more_even(s, w.nodes, w.chosen);
	else if (!w.missing)
		try_nodes(s, w.chosen);
	if (!w.missing ||
		balance_at_best(s, of_givers ? w.nodes : at_best, at_best, w.most) >= s->limit)
		return;
	nodeset_each (p, w.open) {
		struct walk deeper = w;

		if (nodeset_count(w.open) < w.missing || !budget_spend(s->budget, 1))
			return;
		w.open = nodeset_minus(w.open, nodeset_of(p));
		/* a node with as many CPUs as one before it does the same, but comes later */
		if (has_count(s, tried, s->count[p]))
			continue;
		tried = nodeset_or(tried, nodeset_of(p));
		deeper.chosen = nodeset_or(w.chosen, nodeset_of(p));
		deeper.open = w.open;
		deeper.missing--;
		walk_subsets(s, deeper);
	}
}

/* The first of the best subsets of nr givers. When there are more givers than groups, each gives at
 * most one and those at the end none. */
static void try_givers(struct spread *s, struct nodeset nodes, struct nodeset givers, unsigned nr)
{
	unsigned giving = nr < s->rest ? nr : s->rest;
	struct walk w = {
		.nodes = nodes,
		.open = givers,
		.missing = giving,
		.most = nr < s->rest ? s->rest : 1,
	};

	for (; nr > giving; nr--)
		w.open.bits ^= UINT64_C(1)
			       << (NODES_MAX - 1 - (unsigned)__builtin_clzll(w.open.bits));
	/* the fullest are a good choice: nothing worse is looked at, and the first as good wins */
	if (keep_more_even(s, nodes, fullest_places(s, w.open, giving)))
		s->limit++;
	walk_subsets(s, w);
}

static void try_nodes(struct spread *s, struct nodeset nodes)
{
	uint64_t at_best = balance_at_best(s, nodes, nodes, s->rest);
	struct nodeset givers = {0};

	if (!s->rest && at_best < s->limit)
		(void)keep_more_even(s, nodes, givers);
	nodeset_each (p, nodes)
		if (s->count[p] >= s->each + s->group)
			givers = nodeset_or(givers, nodeset_of(p));
	for (unsigned nr = nodeset_count(givers); s->rest && nr && at_best < s->limit; nr--) {
		try_givers(s, nodes, givers, nr);
		if (s->limit != UNEVEN && !budget_spend(s->budget, 1))
			return;
	}
}

/* The best way with exactly width nodes; false when there is none. */
static bool spread_over(struct spread *s, unsigned width, unsigned groups)
{
	struct nodeset all = nodeset_first(s->nr);

	s->each = groups / width * s->group;
	s->rest = groups % width;
	s->limit = UNEVEN;
	try_nodes(s, fullest_places(s, all, width));
	if (s->limit == UNEVEN)
		return false; /* the fullest could not give as much: then no others can */
	s->limit++;
	walk_subsets(s, (struct walk){.open = all, .missing = width, .most = s->rest});
	return true;
}

/* Take from one node; what is taken leaves *free. */
static void take_from_node(const struct topo *t, unsigned node, unsigned nr,
	const struct cpus_how *how, struct cpuset *free, struct cpuset *out)
{
	struct cpuset here = cpuset_and(t->node[node].cpus, free);

	here = cpus_pack(t, &here, nr, how);
	*free = cpuset_minus(*free, &here);
	*out = cpuset_or(*out, &here);
}

static struct cpuset take_found(const struct spread *s, const struct topo *t, struct cpuset free,
	const struct cpus_how *how)
{
	const struct cpus_how packed = {.spread = how->spread};
	struct cpuset taken = {0};

	nodeset_each (p, s->nodes)
		take_from_node(t, s->node[p], s->each, &packed, &free, &taken);
	for (unsigned rest = s->rest; rest;)
		nodeset_each (p, s->givers) {
			const struct cpuset *here = &t->node[s->node[p]].cpus;

			if (!rest || cpuset_count_and(here, &free) < s->group)
				continue;
			take_from_node(t, s->node[p], s->group, &packed, &free, &taken);
			rest--;
		}
	return taken;
}

static unsigned divide_up(unsigned n, unsigned by)
{
	return (n + by - 1) / by;
}

bool cpus_distribute(const struct topo *t, const struct cpuset *free, unsigned want,
	const struct cpus_how *how, struct budget *b, struct cpuset *out)
{
	/* kubelet rangeNUMANodesNeededToSatisfy: how few nodes could do, were all alike */
	unsigned groups = want / how->group;
	unsigned per_node =
		divide_up(divide_up(t->nr_cpus, how->group), nodeset_count(t->nodes_with_cpus));
	struct spread s = {
		.group = how->group, .budget = b, .left = cpuset_count_and(free, &t->cpus) - want};

	s.nr = cpus_order_nodes(t, free, s.node);
	for (unsigned i = 0; i < s.nr; i++) {
		unsigned at = i;

		s.count[i] = (uint16_t)cpuset_count_and(&t->node[s.node[i]].cpus, free);
		s.squares += (uint64_t)s.count[i] * s.count[i];
		for (; at && s.count[s.fullest[at - 1]] < s.count[i]; at--)
			s.fullest[at] = s.fullest[at - 1];
		s.fullest[at] = (uint8_t)i;
	}
	for (unsigned width = divide_up(groups, per_node); width <= groups && width <= s.nr;
		width++)
		if (spread_over(&s, width, groups)) {
			*out = take_found(&s, t, *free, how);
			return true;
		}
	return false;
}
