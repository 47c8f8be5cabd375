/* How nodes are chosen. One turn of kube-scheduler: filter until enough nodes fit, ask the
 * extender, score, choose. */
#include <cluster-sim/world_state.h>

#include <assert.h>
#include <errno.h>
#include <numafit/text.h>
#include <stdio.h>

/* The strategies */

static const struct strategy rows[] = {
	{"stock", "NodeResourcesFit LeastAllocated and BalancedAllocation, no NUMA knowledge",
		"#777777", PORTION_LEFT, false, NR_NRT_STRATEGIES, false},
	{"stock-packed", "the same with MostAllocated", "#000000", PORTION_ALLOCATED, false,
		NR_NRT_STRATEGIES, false},
	{"stock-moves", "stock, and nodes move containers where that makes room for a pod",
		"#9467bd", PORTION_LEFT, false, NR_NRT_STRATEGIES, true},
	{"packed-moves", "stock-packed, and nodes move containers likewise", "#8c564b",
		PORTION_ALLOCATED, false, NR_NRT_STRATEGIES, true},
	{"least-allocated", "stock, and the extender with LeastAllocated", "#1f77b4", PORTION_LEFT,
		true, NRT_LEAST_ALLOCATED, false},
	{"most-allocated", "stock-packed, and the extender with MostAllocated", "#d62728",
		PORTION_ALLOCATED, true, NRT_MOST_ALLOCATED, false},
	{"balanced", "stock, and the extender with BalancedAllocation", "#2ca02c", PORTION_LEFT,
		true, NRT_BALANCED_ALLOCATION, false},
	{"least-numa-nodes", "stock, and the extender with LeastNUMANodes", "#ff7f0e", PORTION_LEFT,
		true, NRT_LEAST_NUMA_NODES, false},
};
enum { NR_ROWS = sizeof rows / sizeof *rows, WORD_SHOWN = 32 };
_Static_assert((int)NR_ROWS <= (int)STRATEGIES_MAX, "room for all of them");

int strategy_list(const char *names, const struct strategy *list[STRATEGIES_MAX], struct err *e)
{
	int nr = 0;

	if (strcmp(names, "all") == 0) {
		for (unsigned i = 0; i < NR_ROWS; i++)
			list[nr++] = &rows[i];
		return nr;
	}
	for (const char *at = names;; at++) {
		size_t len = strcspn(at, ",");
		const struct strategy *s = NULL;

		for (unsigned i = 0; i < NR_ROWS; i++)
			if (strlen(rows[i].name) == len && memcmp(rows[i].name, at, len) == 0)
				s = &rows[i];
		if (!s)
			return err_set(e, EINVAL, "\"%.*s\" is no strategy",
				(int)(len < WORD_SHOWN ? len : WORD_SHOWN), at);
		for (int i = 0; i < nr; i++)
			if (list[i] == s)
				return err_set(e, EINVAL, "%s is there twice", s->name);
		list[nr++] = s;
		at += len;
		if (!*at)
			return nr;
	}
}

void strategy_profile(const struct strategy *s, struct sched_profile *p)
{
	const struct sched_plugin *plugin = sched_plugin_find("NodeResourceTopologyMatch");

	assert(plugin && s->asks_plugin);
	*p = (struct sched_profile){.nr = 1, .check_restricted = true};
	p->use[0].plugin = plugin;
	p->use[0].weight = 1;
	p->use[0].args.nrt = (struct nrt_args){.strategy = s->type, .over_reserve = true};
}

/* A turn */

void seen_pod_init(struct seen_pod *s, const struct world *w, unsigned pod)
{
	const struct cluster_machine *m = w->set->machine;
	const struct cluster_pod *p = &w->pod[pod].is;
	const struct pod_shape *shape = p->shape;
	unsigned nr = 0;

	s->shape = w->set->trace->pods.at[pod].shape;

	s->asked[nr++] = (struct amount){RESOURCE_CPU,
		{(int64_t)(shape->cpu_milli / QUANTITY_MILLIS),
			(uint32_t)(shape->cpu_milli % QUANTITY_MILLIS) * QUANTITY_NANOS_OF_MILLI}};
	for (unsigned i = 0; i < NR_POD_MEMORIES; i++)
		if (shape->bytes[i])
			s->asked[nr++] = (struct amount){
				m->memory_name[i], quantity_of((int64_t)shape->bytes[i])};
	const struct amounts asked = {s->asked, nr};
	for (unsigned c = 0; c < shape->nr_containers; c++) {
		(void)snprintf(s->name[c], sizeof s->name[c], "c%u", c);
		s->container[c] = (struct sched_container){
			.name = s->name[c], .kind = CONTAINER_APP, .requests = asked};
		if (shape->qos == QOS_GUARANTEED)
			s->container[c].limits = asked;
	}
	s->is = (struct sched_pod){.ns = shape->family,
		.name = p->uid,
		.uid = p->uid,
		.qos = shape->qos,
		.container = s->container,
		.nr_containers = shape->nr_containers};
}

/* numFeasibleNodesToFind (pkg/scheduler/schedule_one.go). */
static unsigned enough_nodes(const struct world_options *o)
{
	enum { PERCENT = 100, USUAL = 50, NODES_A_PERCENT = 125, PERCENT_MIN = 5, NODES_MIN = 100 };
	unsigned percent = o->percent_to_score;

	if (o->nr_nodes < NODES_MIN)
		return o->nr_nodes;
	if (!percent) {
		unsigned less = o->nr_nodes / NODES_A_PERCENT;

		percent = less + PERCENT_MIN < USUAL ? USUAL - less : PERCENT_MIN;
	}
	uint64_t nr = (uint64_t)o->nr_nodes * percent / PERCENT;
	return nr < NODES_MIN ? NODES_MIN : (unsigned)nr;
}

/* The stock scheduler's score of a node that fits, 0 to 200: NodeResourcesFit and
 * NodeResourcesBalancedAllocation, each of cpu and memory, with weight 1. */
static int32_t strategy_stock_score(const struct strategy *s, const struct fit_view *v)
{
	static const struct resource_weight each[] = {{RESOURCE_CPU, 1}, {RESOURCE_MEMORY, 1}};
	static const struct resource_weights both = {each, sizeof each / sizeof *each};
	const struct generic_args args = {.part = {{.portion = s->stock,
						  .values = VALUES_RATIO,
						  .prefer = PREFER_MOST,
						  .resources = both}},
		.nr = 1};

	return (int32_t)(generic_raw(&args, v, NULL) + generic_balance_gain(&both, v, NULL));
}

/* The stock score of the node, or -1: NodeResourcesFit does not let it through. */
static int32_t ask_stock(struct world *w, const struct seen_pod *pod, unsigned node)
{
	struct stock_answer *known = &w->answer[pod->shape * w->set->options->nr_nodes + node];
	const struct world_node *n = &w->node[node];
	const struct fit_view v = {&w->set->machine->names, &n->seen, &pod->is};
	const struct quantity *pods = amounts_find(&n->seen.allocatable, RESOURCE_PODS);
	unsigned lacks[NR_USUAL_RESOURCES + TOPO_KINDS], nr;

	if (known->version == n->version)
		return known->score;
	known->version = n->version;
	bool fits = n->nr_pods < (uint64_t)pods->whole &&
		    fit_filter(&v, &(struct fit_ignored){0}, lacks, &nr) == SCHED_SUCCESS;
	known->score = fits ? strategy_stock_score(w->strategy, &v) : -1;
	return known->score;
}

/* Those that NodeResourcesFit lets through, from where the last search stopped. */
static size_t filter_stock(struct world *w, const struct seen_pod *pod)
{
	unsigned nr_nodes = w->set->options->nr_nodes, asked = 0, n = w->next_node;
	size_t nr = 0, enough = enough_nodes(w->set->options);

	for (; asked < nr_nodes && nr < enough; asked++) {
		if (ask_stock(w, pod, n) >= 0)
			w->fitting[nr++] = n;
		n = n + 1 < nr_nodes ? n + 1 : 0;
	}
	w->next_node = n;
	return nr;
}

static size_t filter_plugin(
	struct world *w, const struct world_pod *p, struct sched_plan *plan, size_t nr)
{
	const char *why;
	size_t left = 0;

	for (size_t i = 0; i < nr; i++) {
		const char *name = w->node[w->fitting[i]].is.name;
		const struct sched_candidate *c = sched_cluster_find(w->cluster, name);

		assert(c);
		if ((p->refused && sched_avoid_is(w->avoid, p->workload, name, w->now_ms)) ||
			sched_plan_filter(plan, c, &why) != SCHED_SUCCESS)
			continue;
		w->candidate[left] = *c;
		w->fitting[left++] = w->fitting[i];
	}
	return left;
}

/* The first node of those that score highest: as the search goes round, another one each time. */
static size_t best_scored(struct world *w, const struct seen_pod *pod, size_t nr)
{
	int64_t most = INT64_MIN;
	size_t best = 0;

	for (size_t i = 0; i < nr; i++) {
		int64_t score = ask_stock(w, pod, w->fitting[i]);

		if (w->cluster)
			score += w->set->options->weight * w->score[i];
		if (score > most) {
			most = score;
			best = i;
		}
	}
	return best;
}

int world_choose(struct world *w, const struct world_pod *p, const struct seen_pod *seen,
	struct arena *a, struct sched_placement *where)
{
	size_t nr = filter_stock(w, seen);
	int node = -1;

	where->nr = 0;
	if (!w->cluster || !nr)
		return nr ? (int)w->fitting[best_scored(w, seen, nr)] : -1;
	struct sched_plan *plan = sched_plan_new(&w->profile, &seen->is, &w->set->machine->names);
	nr = filter_plugin(w, p, plan, nr);
	if (nr) {
		sched_plan_score(plan, w->candidate, nr, w->score);
		size_t best = best_scored(w, seen, nr);

		node = (int)w->fitting[best];
		if (!sched_plan_place(plan, &w->candidate[best], a, where))
			where->nr = 0;
	}
	sched_plan_free(plan);
	return node;
}
