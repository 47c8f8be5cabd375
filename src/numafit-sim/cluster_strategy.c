#include <numafit-sim/cluster_strategy.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

static const struct strategy rows[] = {
	{"stock", "NodeResourcesFit LeastAllocated and BalancedAllocation, no NUMA knowledge",
		"#777777", PORTION_LEFT, false, NR_NRT_STRATEGIES},
	{"stock-packed", "the same with MostAllocated", "#000000", PORTION_ALLOCATED, false,
		NR_NRT_STRATEGIES},
	{"least-allocated", "stock, and the extender with LeastAllocated", "#1f77b4", PORTION_LEFT,
		true, NRT_LEAST_ALLOCATED},
	{"most-allocated", "stock-packed, and the extender with MostAllocated", "#d62728",
		PORTION_ALLOCATED, true, NRT_MOST_ALLOCATED},
	{"balanced", "stock, and the extender with BalancedAllocation", "#2ca02c", PORTION_LEFT,
		true, NRT_BALANCED_ALLOCATION},
	{"least-numa-nodes", "stock, and the extender with LeastNUMANodes", "#ff7f0e", PORTION_LEFT,
		true, NRT_LEAST_NUMA_NODES},
};
enum { NR_ROWS = sizeof rows / sizeof *rows, WORD_SHOWN = 32 };
_Static_assert((int)NR_ROWS <= (int)STRATEGIES_MAX, "room for all of them");

const struct strategy *strategy_at(unsigned i)
{
	return i < NR_ROWS ? &rows[i] : NULL;
}

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

int64_t strategy_stock_score(const struct strategy *s, const struct fit_view *v)
{
	static const struct resource_weight each[] = {{RESOURCE_CPU, 1}, {RESOURCE_MEMORY, 1}};
	static const struct resource_weights both = {each, sizeof each / sizeof *each};
	const struct generic_args args = {.part = {{.portion = s->stock,
						  .values = VALUES_RATIO,
						  .prefer = PREFER_MOST,
						  .resources = both}},
		.nr = 1};

	return generic_raw(&args, v, NULL) + generic_balance_gain(&both, v, NULL);
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
