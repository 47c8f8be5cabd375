#include <numafit/nrt.h>

#include <sched/nrt_ask.h>

/* Scores of one zone for one part: score.go, least_allocated.go, most_allocated.go,
 * balanced_allocation.go. A resource that the zone does not list counts as 0 of it. */

static struct quantity available_in(const struct nrt_column *c, unsigned zone)
{
	return c->listed >> zone & 1 ? c->available[zone] : quantity_of(0);
}

/* In per cent, by Go's arithmetic, which wraps around. */
static int64_t allocated_score(
	const struct nrt_ask *ask, const struct nrt_want *w, struct quantity available)
{
	int64_t value = quantity_value(available);
	bool least = ask->args->strategy == NRT_LEAST_ALLOCATED;

	if (value <= 0 || quantity_compare(w->q, available) > 0)
		return 0;
	return (int64_t)((uint64_t)(least ? value - w->value : w->value) * SCHED_SCORE_MAX) / value;
}

static int64_t allocated_zone(const struct nrt_ask *ask, const struct nrt_part *part, unsigned zone)
{
	char asked[QUANTITY_TEXT_MAX], free[QUANTITY_TEXT_MAX];
	int64_t sum = 0;

	for (unsigned i = 0; i < part->nr; i++) {
		const struct nrt_want *w = &part->want[i];
		const struct nrt_column *c = &ask->column[w->column];
		struct quantity available = available_in(c, zone);
		int64_t score = allocated_score(ask, w, available);

		sum += score * w->weight;
		if (ask->steps)
			nrt_add_step(ask, part, "  %s: %s of %s asked for: score %lld, weight %lld",
				ask->names->at[c->resource].name, quantity_text(asked, w->q),
				quantity_text(free, available), (long long)score,
				(long long)w->weight);
	}
	return part->weight_sum ? sum / part->weight_sum : 0;
}

static double fraction_asked(const struct nrt_want *w, struct quantity available)
{
	int64_t value = quantity_value(available);

	return value > 0 ? (double)w->value / (double)value : 1;
}

/* The sample variance as gonum computes it: two passes, and what the first lost. */
static int64_t balanced_zone(const struct nrt_ask *ask, const struct nrt_part *part, unsigned zone)
{
	double sum = 0, squares = 0, lost = 0;

	for (unsigned i = 0; i < part->nr; i++) {
		const struct nrt_want *w = &part->want[i];
		double f = fraction_asked(w, available_in(&ask->column[w->column], zone));

		if (f > 1)
			return 0;
		sum += f;
	}
	if (part->nr < 2)
		return part->nr ? SCHED_SCORE_MAX : 0;
	for (unsigned i = 0; i < part->nr; i++) {
		const struct nrt_want *w = &part->want[i];
		double d = fraction_asked(w, available_in(&ask->column[w->column], zone)) -
			   sum / part->nr;

		squares += d * d;
		lost += d;
	}
	double variance = (squares - lost * lost / part->nr) / (part->nr - 1);

	return (int64_t)((1 - variance) * SCHED_SCORE_MAX);
}

/* The least of the zones that score at all: nobody knows which one the kubelet will take. */
static int64_t part_score(
	const struct nrt_ask *ask, const struct sched_topology *t, const struct nrt_part *part)
{
	int64_t least = 0;

	for (unsigned zone = 0; zone < t->nr_zones; zone++) {
		int64_t score = ask->args->strategy == NRT_BALANCED_ALLOCATION
					? balanced_zone(ask, part, zone)
					: allocated_zone(ask, part, zone);

		if (!least || (score && score < least))
			least = score;
		if (ask->steps)
			nrt_add_step(
				ask, part, "zone %u: %lld", t->zone_id[zone], (long long)score);
	}
	return least;
}

static int64_t zones_score(const struct nrt_ask *ask, const struct sched_topology *t)
{
	const struct nrt_part *part;
	int64_t sum = 0;
	unsigned nr = 0;

	for (; (part = nrt_part(ask, t->scope, nr)); nr++) {
		int64_t score = part_score(ask, t, part);

		sum += score;
		if (ask->steps)
			nrt_add_step(ask, part, "%lld, the least that is not 0", (long long)score);
	}
	return nr ? sum / nr : 0;
}

static int64_t not_computed(const struct nrt_ask *ask, const char *why, int64_t result)
{
	steps_add(ask->steps, "%s", why);
	return result;
}

static int64_t score_of(struct nrt_ask *ask, const struct sched_node *node)
{
	const struct sched_topology *t = node->topology;

	if (ask->pod->qos != QOS_GUARANTEED)
		return not_computed(ask, "the pod is not Guaranteed", SCHED_SCORE_MAX);
	if (nrt_is_stale(ask, node))
		return not_computed(ask, "what is known of the node is stale", 0);
	if (!t)
		return not_computed(ask, "the node has no NodeResourceTopology", 0);
	nrt_ask_of(ask, t);
	if (ask->args->strategy == NRT_LEAST_NUMA_NODES)
		return nrt_score_least_numa(ask, t);
	if (t->policy != POLICY_SINGLE_NUMA_NODE)
		return not_computed(ask, "the policy is not single-numa-node", 0);
	return zones_score(ask, t);
}

int64_t nrt_score(struct nrt_ask *ask, const struct sched_node *node)
{
	int64_t score = score_of(ask, node);

	steps_add(ask->steps, "score %lld", (long long)score);
	return score;
}
