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

/* What chosen nodes give: CPUs that each of them does, and groups that some of them, the givers,
 * give besides. */
struct share {
	unsigned each, rest;
};

/* Nodes are known by their place in the order of cpus_order_nodes(); a struct nodeset is a set of
 * places here. */
struct spread {
	unsigned nr;
	uint8_t node[NODES_MAX];
	uint16_t count[NODES_MAX];    /* free CPUs */
	uint8_t fullest[NODES_MAX];   /* places, most free CPUs first */
	uint64_t squares;             /* sum of the squares of count[] */
	uint64_t left;                /* free CPUs in the end */
	unsigned group, groups;       /* CPUs per group, groups that are wanted */
	struct share share;           /* of the nodes that are tried */
	struct share least;           /* of any nodes of that number: what a bound may build on */
	bool by_socket;               /* nodes of one socket go before any others */
	bool in_socket;               /* only nodes of one socket are tried */
	struct nodeset of_one_socket; /* by_socket: places without CPUs of a second one, */
	struct nodeset beside[NODES_MAX]; /* and by place the others of its socket, and itself */
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
	unsigned after[NODES_MAX], rest = s->share.rest;

	(void)budget_spend(s->budget, 1 + rest / NUMBERS_PER_STEP);
	nodeset_each (p, nodes)
		after[p] = s->count[p] - s->share.each;
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
static uint64_t balance_at_best(const struct spread *s, const struct share *share,
	struct nodeset nodes, struct nodeset givers, unsigned most)
{
	unsigned after[NODES_MAX], given[NODES_MAX] = {0};

	(void)budget_spend(s->budget, 1 + share->rest * nodeset_count(givers) / NUMBERS_PER_STEP);
	nodeset_each (p, nodes) {
		if (s->count[p] < share->each)
			return UNEVEN;
		after[p] = s->count[p] - share->each;
	}
	for (unsigned rest = share->rest; rest; rest--) {
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

/* Those places of the set that can be chosen beside p. */
static struct nodeset alike_places(
	const struct spread *s, const struct walk *w, struct nodeset set, unsigned p)
{
	bool of_givers = !nodeset_empty(w->nodes);

	return s->in_socket && !of_givers ? nodeset_and(set, s->beside[p]) : set;
}

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
	if (!w.missing || balance_at_best(s, of_givers ? &s->share : &s->least,
				  of_givers ? w.nodes : at_best, at_best, w.most) >= s->limit)
		return;
	nodeset_each (p, w.open) {
		struct walk deeper = w;

		if (nodeset_count(w.open) < w.missing || !budget_spend(s->budget, 1))
			return;
		w.open = nodeset_minus(w.open, nodeset_of(p));
		/* a node with as many CPUs as one before it does the same, but comes later */
		if (has_count(s, alike_places(s, &w, tried, p), s->count[p]))
			continue;
		tried = nodeset_or(tried, nodeset_of(p));
		deeper.chosen = nodeset_or(w.chosen, nodeset_of(p));
		deeper.open = alike_places(s, &w, w.open, p);
		deeper.missing--;
		if (nodeset_count(deeper.open) >= deeper.missing)
			walk_subsets(s, deeper);
	}
}

/* The first of the best subsets of nr givers. When there are more givers than groups, each gives at
 * most one and those at the end none. */
static void try_givers(struct spread *s, struct nodeset nodes, struct nodeset givers, unsigned nr)
{
	unsigned giving = nr < s->share.rest ? nr : s->share.rest;
	struct walk w = {
		.nodes = nodes,
		.open = givers,
		.missing = giving,
		.most = nr < s->share.rest ? s->share.rest : 1,
	};

	for (; nr > giving; nr--)
		w.open.bits ^= UINT64_C(1)
			       << (NODES_MAX - 1 - (unsigned)__builtin_clzll(w.open.bits));
	/* the fullest are a good choice: nothing worse is looked at, and the first as good wins */
	if (keep_more_even(s, nodes, fullest_places(s, w.open, giving)))
		s->limit++;
	walk_subsets(s, w);
}

/* As much from each as can be. With by_socket a node that has less than its part cuts that of all
 * of them; else such nodes are left out. */
static struct share share_of(const struct spread *s, struct nodeset nodes)
{
	unsigned width = nodeset_count(nodes), each = s->groups / width;

	nodeset_each (p, nodes)
		if (s->by_socket && s->count[p] / s->group < each)
			each = s->count[p] / s->group;
	return (struct share){each * s->group, s->groups - each * width};
}

static void try_nodes(struct spread *s, struct nodeset nodes)
{
	struct nodeset givers = {0};

	s->share = share_of(s, nodes);
	uint64_t at_best = balance_at_best(s, &s->share, nodes, nodes, s->share.rest);
	if (!s->share.rest && at_best < s->limit)
		(void)keep_more_even(s, nodes, givers);
	nodeset_each (p, nodes)
		if (s->count[p] >= s->share.each + s->group)
			givers = nodeset_or(givers, nodeset_of(p));
	for (unsigned nr = nodeset_count(givers); s->share.rest && nr && at_best < s->limit; nr--) {
		try_givers(s, nodes, givers, nr);
		if (s->limit != UNEVEN && !budget_spend(s->budget, 1))
			return;
	}
}

/* The best way with exactly width nodes, of one socket if in_socket; false when there is none. */
static bool spread_over(struct spread *s, unsigned width, bool in_socket)
{
	struct nodeset all = in_socket ? s->of_one_socket : nodeset_first(s->nr);

	s->in_socket = in_socket;
	s->least = (struct share){s->groups / width * s->group, s->groups % width};
	if (s->by_socket)
		s->least = (struct share){0, s->groups};
	s->limit = UNEVEN;
	nodeset_each (p, in_socket ? all : nodeset_of(0)) {
		struct nodeset open = in_socket ? s->beside[p] : all;

		/* when the fullest cannot give as much, no others can */
		if (nodeset_count(open) >= width)
			try_nodes(s, fullest_places(s, open, width));
	}
	if (s->limit == UNEVEN)
		return false;
	s->limit++;
	walk_subsets(s, (struct walk){.open = all, .missing = width, .most = s->least.rest});
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
	const struct cpus_how packed = {.spread = how->spread,
		.by_core = how->by_core,
		.later = how->later,
		.elsewhere = how->elsewhere};
	const struct share share = share_of(s, s->nodes);
	struct cpuset taken = {0};

	nodeset_each (p, s->nodes)
		take_from_node(t, s->node[p], share.each, &packed, &free, &taken);
	for (unsigned rest = share.rest; rest;)
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

/* The number of the socket that all of the node's CPUs are on; -1: there are several. */
static int socket_of_node(const struct topo *t, unsigned node)
{
	int socket = t->cpu[cpuset_next(&t->node[node].cpus, 0)].socket;

	cpuset_each (cpu, &t->node[node].cpus)
		if (t->cpu[cpu].socket != socket)
			return -1;
	return socket;
}

static void find_sockets(struct spread *s, const struct topo *t)
{
	int socket[NODES_MAX];

	for (unsigned i = 0; i < s->nr; i++)
		socket[i] = socket_of_node(t, s->node[i]);
	for (unsigned i = 0; i < s->nr; i++)
		for (unsigned k = 0; k < s->nr; k++)
			if (socket[i] >= 0 && socket[i] == socket[k])
				s->beside[i] = nodeset_or(s->beside[i], nodeset_of(k));
	for (unsigned i = 0; i < s->nr; i++)
		if (socket[i] >= 0)
			s->of_one_socket = nodeset_or(s->of_one_socket, nodeset_of(i));
}

bool cpus_distribute(const struct topo *t, const struct cpuset *free, unsigned want,
	const struct cpus_how *how, struct budget *b, struct cpuset *out)
{
	/* kubelet rangeNUMANodesNeededToSatisfy: how few nodes could do, were all alike */
	unsigned groups = want / how->group;
	unsigned per_node =
		divide_up(divide_up(t->nr_cpus, how->group), nodeset_count(t->nodes_with_cpus));
	struct spread s = {.group = how->group,
		.groups = groups,
		.by_socket = how->by_socket,
		.budget = b,
		.left = cpuset_count_and(free, &t->cpus) - want};

	s.nr = cpus_order_nodes(t, free, s.node);
	for (unsigned i = 0; i < s.nr; i++) {
		unsigned at = i;

		s.count[i] = (uint16_t)cpuset_count_and(&t->node[s.node[i]].cpus, free);
		s.squares += (uint64_t)s.count[i] * s.count[i];
		for (; at && s.count[s.fullest[at - 1]] < s.count[i]; at--)
			s.fullest[at] = s.fullest[at - 1];
		s.fullest[at] = (uint8_t)i;
	}
	if (s.by_socket)
		find_sockets(&s, t);
	for (unsigned width = divide_up(groups, per_node); width <= groups && width <= s.nr;
		width++)
		if ((s.by_socket && spread_over(&s, width, true)) ||
			spread_over(&s, width, false)) {
			*out = take_found(&s, t, *free, how);
			return cpuset_count(out) == want; /* by core a node may have no such ones */
		}
	return false;
}
