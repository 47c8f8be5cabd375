#include <numafit/nrt.h>

#include <sched/nrt_ask.h>
#include <string.h>

/* Of one pod's searches on all nodes, some 10 ns each. */
enum { NRT_STEPS = 1 << 25 };

const char *const nrt_strategy_words[NR_NRT_STRATEGIES] = {
	[NRT_LEAST_ALLOCATED] = "LeastAllocated",
	[NRT_MOST_ALLOCATED] = "MostAllocated",
	[NRT_BALANCED_ALLOCATION] = "BalancedAllocation",
	[NRT_LEAST_NUMA_NODES] = "LeastNUMANodes",
};

static int64_t nrt_weight_of(const struct nrt_args *args, unsigned resource)
{
	int64_t weight = 1;

	for (unsigned i = 0; i < args->nr_weights; i++)
		if (args->weights[i].resource == resource)
			weight = args->weights[i].weight;
	return weight < 1 ? 1 : weight > NRT_WEIGHT_MAX ? NRT_WEIGHT_MAX : weight;
}

static unsigned nrt_column_of(struct nrt_ask *ask, unsigned resource)
{
	const struct resource_kind *kind = &ask->names->at[resource];
	bool floats = resource == RESOURCE_CPU || resource == RESOURCE_MEMORY || kind->huge_page;
	unsigned i = 0;

	while (i < ask->nr_columns && ask->column[i].resource != resource)
		i++;
	if (i == ask->nr_columns)
		ask->column[ask->nr_columns++] = (struct nrt_column){
			.resource = resource,
			/* filter.go, isHostLevelResource */
			.host_level = resource == RESOURCE_EPHEMERAL_STORAGE ||
				      resource == RESOURCE_STORAGE || !kind->native,
			/* filter.go, isResourceSetSuitable: without Guaranteed some float */
			.by_amount = ask->pod->qos == QOS_GUARANTEED || !floats,
		};
	return i;
}

static void part_init(struct nrt_ask *ask, struct nrt_part *part, const struct amounts *asks)
{
	part->nr = asks->nr;
	part->want = xcalloc(asks->nr ? asks->nr : 1, sizeof *part->want);
	for (unsigned i = 0; i < asks->nr; i++) {
		part->want[i] = (struct nrt_want){
			.column = nrt_column_of(ask, asks->at[i].resource),
			.q = asks->at[i].q,
			.value = quantity_value(asks->at[i].q),
			.weight = nrt_weight_of(ask->args, asks->at[i].resource),
		};
		part->weight_sum += part->want[i].weight;
	}
}

static bool has_only_native(const struct nrt_ask *ask)
{
	for (unsigned i = 0; i < ask->pod->nr_containers; i++) {
		const struct amounts *asks = &ask->pod->container[i].requests;

		for (unsigned r = 0; r < asks->nr; r++)
			if (!ask->names->at[asks->at[r].resource].native)
				return false;
	}
	return true;
}

struct nrt_ask *nrt_ask_new(const struct sched_pod *pod, const struct nrt_args *args,
	const struct resource_table *names)
{
	static const enum nrt_reason failure[NR_CONTAINER_KINDS] = {
		[CONTAINER_APP] = NRT_CONTAINER,
		[CONTAINER_INIT] = NRT_INIT_CONTAINER,
		[CONTAINER_SIDECAR] = NRT_SIDECAR,
	};
	struct nrt_ask *ask = xcalloc(1, sizeof *ask);
	struct amounts whole = {0};
	auto_free struct amount *effective = nrt_effective_request(pod, &whole.nr);

	whole.at = effective;
	ask->pod = pod;
	ask->args = args;
	ask->names = names;
	ask->passes_anywhere = pod->qos == QOS_BEST_EFFORT && has_only_native(ask);
	ask->column = xcalloc(whole.nr ? whole.nr : 1, sizeof *ask->column);
	ask->part = xcalloc(pod->nr_containers + 1, sizeof *ask->part);
	ask->taken = xcalloc(pod->nr_containers + 1, sizeof *ask->taken);
	part_init(ask, &ask->whole, &whole);
	ask->whole.failure = NRT_POD;
	for (unsigned i = 0; i < pod->nr_containers; i++) {
		part_init(ask, &ask->part[i], &pod->container[i].requests);
		ask->part[i].container = &pod->container[i];
		ask->part[i].failure = failure[pod->container[i].kind];
	}
	ask->search = nrt_search_new(ask->nr_columns);
	ask->budget = budget_of(NRT_STEPS);
	return ask;
}

void nrt_ask_free(struct nrt_ask *ask)
{
	if (!ask)
		return;
	for (unsigned i = 0; i < ask->pod->nr_containers; i++)
		free(ask->part[i].want);
	free(ask->whole.want);
	free(ask->part);
	free(ask->column);
	free(ask->taken);
	free(ask->search);
	free(ask);
}

void nrt_ask_listen(struct nrt_ask *ask, const struct steps *steps)
{
	ask->steps = steps;
}

uint64_t nrt_taken(const struct nrt_ask *ask, unsigned container)
{
	return ask->taken[container];
}
