#include <numafit/volcano.h>

#include <sched/volcano_take.h>
#include <numafit/text.h>
#include <stdio.h>

static const char policy_key[] = "volcano.sh/numa-topology-policy";

enum verdict { ANY, PREFERRED, PREFERRED_SINGLE };
/* What the topology manager's policy of a node asks of the best hint, by the policy's name; one
 * that nobody knows asks nothing and aligns nothing (policy/factory.go). */
static const struct policy {
	const char *name;
	enum verdict admits;
} policies[] = {
	{"best-effort", ANY},
	{"restricted", PREFERRED},
	{"single-numa-node", PREFERRED_SINGLE},
};

static const struct policy *policy_named(const char *name)
{
	for (unsigned i = 0; i < sizeof policies / sizeof *policies; i++)
		if (text_equal(policies[i].name, name))
			return &policies[i];
	return NULL;
}

static bool is_no_policy(const char *name)
{
	return text_equal(name, "") || text_equal(name, "none");
}

/* The pod's annotation volcano.sh/numa-topology-policy; NULL: none, "" or "none". */
static const char *volcano_policy(const struct sched_pod *pod)
{
	for (size_t i = 0; i < pod->nr_annotations; i++)
		if (text_equal(pod->annotations[i].key, policy_key))
			return is_no_policy(pod->annotations[i].value) ? NULL
								       : pod->annotations[i].value;
	return NULL;
}

bool volcano_scores(const struct sched_pod *pod)
{
	return pod->qos == QOS_GUARANTEED && volcano_policy(pod);
}

/* Hints. */

/* How many CPUs each NUMA node has, in all and free. */
struct counts {
	unsigned nr;
	long total[NODES_MAX], free[NODES_MAX];
};

/* A free CPU of which the object says nothing counts for NUMA node 0, as a missing entry of a Go
 * map does; it is never given to anybody. */
static void count_node_cpus(
	const struct volcano_node *n, const struct cpuset *free, struct counts *out)
{
	struct cpuset unknown = *free;

	*out = (struct counts){.nr = n->ids.nr};
	for (unsigned i = 0; i < n->nr_cpus; i++) {
		const struct volcano_cpu *c = &n->cpu[i];

		out->total[c->numa]++;
		out->free[c->numa] += cpuset_has(free, c->cpu);
		cpuset_del(&unknown, c->cpu);
	}
	if (n->ids.nr && n->ids.id[0] == 0)
		out->free[0] += cpuset_count(&unknown);
}

/* The most that k of the first nr NUMA nodes have together. */
static long most_cpus_of(const long *have, unsigned nr, unsigned k)
{
	long sum = 0;
	uint64_t used = 0;

	for (; k; k--) {
		unsigned best = nr;

		for (unsigned i = 0; i < nr; i++)
			if (!(used >> i & 1) && (best == nr || have[i] > have[best]))
				best = i;
		if (best == nr)
			return -1;
		used |= UINT64_C(1) << best;
		sum += have[best];
	}
	return sum;
}

/* The fewest NUMA nodes that have so many together; none: 0. */
static unsigned fewest_nodes_having(const long *have, unsigned nr, long want)
{
	for (unsigned k = 1; k <= nr; k++)
		if (most_cpus_of(have, nr, k) >= want)
			return k;
	return 0;
}

/* Of the sets of k NUMA nodes that have so many free CPUs, the one that is the lowest number: from
 * the highest node down, each is taken only where it cannot be done without. */
static struct nodeset lowest_set(const struct counts *c, unsigned k, long want)
{
	struct nodeset set = {0};

	for (unsigned i = c->nr; i > 0 && k; i--) {
		if (most_cpus_of(c->free, i - 1, k) >= want)
			continue;
		set = nodeset_or(set, nodeset_of(i - 1));
		want -= c->free[i - 1];
		k--;
	}
	return set;
}

struct best {
	struct nodeset nodes;
	bool preferred;
};

/* The best hint for so many CPUs, as the one provider's hints are merged: preferred when no fewer
 * NUMA nodes could ever have them; then narrow, then low. All nodes, not preferred: no hint is
 * better. */
static struct best best_hint_for(const struct counts *c, long want)
{
	unsigned ever = fewest_nodes_having(c->total, c->nr, want),
		 now = fewest_nodes_having(c->free, c->nr, want);

	if (!now)
		return (struct best){nodeset_first(c->nr), false};
	ever = ever ? ever : c->nr;
	now = now < ever ? ever : now; /* with CPUs that nobody knows there may be more free ones */
	return (struct best){lowest_set(c, now, want), now == ever};
}

static bool policy_admits(const struct policy *p, const struct best *best, bool asked)
{
	if (p->admits == ANY)
		return true;
	if (p->admits == PREFERRED_SINGLE && asked && nodeset_count(best->nodes) != 1)
		return false;
	return best->preferred;
}

/* Allocation. */

/* Requests of whole CPUs; others have no say in it. */
static long whole_cpus_asked(const struct sched_container *c)
{
	const struct quantity *q = amounts_find(&c->requests, RESOURCE_CPU);

	return q && !q->nano && q->whole > 0 ? (long)q->whole : 0;
}

static struct cpuset allocate_cpus(
	const struct volcano_node *n, const struct cpuset *free, struct nodeset nodes, long want)
{
	struct cpuset aligned = {0}, taken, rest;

	for (unsigned i = 0; i < n->nr_cpus; i++)
		if (nodeset_has(nodes, n->cpu[i].numa) && cpuset_has(free, n->cpu[i].cpu))
			cpuset_add(&aligned, n->cpu[i].cpu);
	long there = cpuset_count(&aligned);
	if (!volcano_take(n, &aligned, want < there ? want : there, &taken))
		return (struct cpuset){0};
	struct cpuset others = cpuset_minus(*free, &taken);
	if (!volcano_take(n, &others, want - (long)cpuset_count(&taken), &rest))
		return (struct cpuset){0};
	return cpuset_or(taken, &rest);
}

static void add_container_step(const struct volcano_node *n, const char *name, long want,
	const struct best *best, const struct cpuset *cpus, const struct steps *steps)
{
	char nodes[NODESET_TEXT_MAX], list[CPUSET_TEXT_MAX];

	if (steps)
		steps_add(steps, "container %s: %ld CPU%s: NUMA nodes %s%s: CPUs %s", name, want,
			text_plural((uint64_t)want),
			nodeset_format(best->nodes, &n->ids, nodes, sizeof nodes),
			best->preferred ? ", preferred" : "",
			cpuset_format(cpus, list, sizeof list));
}

/* Play the kubelet: one app container after the other; init containers are not thought of. */
static void play_kubelet(const struct volcano_node *n, const struct sched_pod *pod,
	struct volcano_answer *out, const struct steps *steps)
{
	const struct policy *policy = policy_named(n->topology_manager_policy);
	struct cpuset all = {0}, reserved, free = n->free;

	for (unsigned i = 0; i < n->nr_cpus; i++)
		cpuset_add(&all, n->cpu[i].cpu);
	(void)volcano_take(n, &all, n->reserved, &reserved);
	free = cpuset_minus(free, &reserved);
	for (unsigned i = 0; i < pod->nr_containers; i++) {
		const struct sched_container *c = &pod->container[i];
		struct best best = {nodeset_first(n->ids.nr), n->ids.nr > 0};
		long want = whole_cpus_asked(c);
		bool asked = want && n->lists_cpus;
		struct counts counts;

		if (c->kind != CONTAINER_APP)
			continue;
		count_node_cpus(n, &free, &counts);
		if (asked)
			best = best_hint_for(&counts, want);
		if (policy && !policy_admits(policy, &best, asked)) {
			add_container_step(n, c->name, want, &best, &(struct cpuset){0}, steps);
			*out = (struct volcano_answer){.code = SCHED_UNRESOLVABLE};
			(void)snprintf(out->why, sizeof out->why,
				"container %s cannot be assigned by numa", c->name);
			return;
		}
		struct cpuset cpus =
			allocate_cpus(n, &free, policy ? best.nodes : (struct nodeset){0}, want);
		add_container_step(n, c->name, want, &best, &cpus, steps);
		out->cpus = cpuset_or(out->cpus, &cpus);
		free = cpuset_minus(free, &cpus);
	}
	for (unsigned i = 0; i < n->nr_cpus; i++)
		if (cpuset_has(&out->cpus, n->cpu[i].cpu))
			out->nodes = nodeset_or(out->nodes, nodeset_of(n->cpu[i].numa));
}

void volcano_predicate(const struct volcano_node *node, const struct sched_pod *pod,
	struct volcano_answer *out, const struct steps *steps)
{
	const char *wanted = volcano_policy(pod);

	*out = (struct volcano_answer){.code = SCHED_SUCCESS};
	if (pod->qos != QOS_GUARANTEED)
		return;
	bool is_static = node && text_equal(node->cpu_manager_policy, "static");
	if (!wanted) {
		if (is_static && !is_no_policy(node->topology_manager_policy))
			play_kubelet(node, pod, out, steps);
		return;
	}
	const char *why = "";
	bool differs = node && !text_equal(wanted, node->topology_manager_policy);
	if (!node)
		why = "numa info is empty";
	else if (!is_static)
		why = "cpu manager policy isn't static";
	else if (!differs && (!node->lists_cpus || cpuset_empty(&node->free)))
		why = "cpu allocatable map is empty";
	if (!*why && !differs) {
		play_kubelet(node, pod, out, steps);
		return;
	}
	out->code = SCHED_ERROR;
	(void)text_copy(out->why, sizeof out->why, why);
	if (!*why)
		(void)snprintf(out->why, sizeof out->why,
			"task topology policy[%s] is different with node[%s]", wanted,
			node->topology_manager_policy ? node->topology_manager_policy : "");
}

void volcano_score(int64_t *count, size_t nr, int64_t weight)
{
	int64_t most = 0;

	for (size_t i = 0; i < nr; i++)
		most = count[i] > most ? count[i] : most;
	for (size_t i = 0; i < nr; i++)
		count[i] = weight * (most ? SCHED_SCORE_MAX - SCHED_SCORE_MAX * count[i] / most
					  : SCHED_SCORE_MAX);
}
