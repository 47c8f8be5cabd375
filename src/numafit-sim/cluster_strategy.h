#ifndef NUMAFIT_SIM_CLUSTER_STRATEGY_H
#define NUMAFIT_SIM_CLUSTER_STRATEGY_H

#include <numafit/sched_plan.h>

/* How nodes are chosen: one row for each way. All have the stock scheduler's NodeResourcesFit and
 * its scores; those of the extender ask its plugin too and leave a hint. */
struct strategy {
	const char *name, *help;
	const char *colour; /* of its line in a plot */
	/* scoringStrategy of NodeResourcesFit: what is left, or what is allocated, is preferred. */
	enum generic_portion stock;
	bool asks_plugin;       /* NodeResourceTopologyMatch, as numafit-extender has it */
	enum nrt_strategy type; /* its scoringStrategy */
};
enum { STRATEGIES_MAX = 16 };
/* Row i, or NULL. */
const struct strategy *strategy_at(unsigned i);

/* "stock,least-numa-nodes" into list[]; "all": every row. How many, or -EINVAL: the text names the
 * word that is none. */
int strategy_list(const char *names, const struct strategy *list[STRATEGIES_MAX], struct err *e);

/* The stock scheduler's score of a node that fits, 0 to 200: NodeResourcesFit and
 * NodeResourcesBalancedAllocation, each of cpu and memory, with weight 1. */
int64_t strategy_stock_score(const struct strategy *s, const struct fit_view *v);
/* The extender's profile. */
void strategy_profile(const struct strategy *s, struct sched_profile *p);

#endif
