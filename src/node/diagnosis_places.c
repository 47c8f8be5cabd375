/* Where most of what was asked for is: the NUMA nodes that the words name. */
#include "diagnosis_trial.h"

#include <numafit/admission.h>
#include <numafit/leases.h>
#include <numafit/number.h>

/* How much a NUMA node has of an amount: free, or if nothing ran. */
static uint64_t amount_on(
	const struct books *b, const struct diagnosis_amount *m, unsigned node, bool empty)
{
	const struct memory_node *memory = &b->memory.node[node];
	const struct cpuset left =
		empty ? cpuset_minus(b->t->cpus, &b->reserved) : books_free_cpus(b);

	if (m->cpus)
		return cpuset_count_and(&b->t->node[node].cpus, &left);
	if (m->kind >= TOPO_KINDS)
		return 0;
	return empty ? memory->allocatable[m->kind] : memory->free[m->kind];
}

/* Where places are looked for. */
struct survey {
	const struct diagnosis *d;
	unsigned nr_nodes;
	unsigned node[NODES_MAX];
	uint64_t on[NODES_MAX][1 + TOPO_KINDS]; /* by place in node[] */
};

static struct survey survey_of(const struct books *b, const struct diagnosis *d, bool empty)
{
	struct survey s = {.d = d};

	nodeset_each (n, b->t->nodes) {
		for (unsigned i = 0; i < d->nr; i++)
			s.on[s.nr_nodes][i] = amount_on(b, &d->of[i], n, empty);
		s.node[s.nr_nodes++] = n;
	}
	return s;
}

static void place_add(struct diagnosis_place *to, const struct survey *s, unsigned at)
{
	to->nodes = nodeset_or(to->nodes, nodeset_of(s->node[at]));
	for (unsigned i = 0; i < s->d->nr; i++)
		to->has[i] += s->on[at][i];
}

/* How near a place comes to all that is asked for: first by what is scarcest there. */
static double nearness(const struct diagnosis *d, const struct diagnosis_place *p)
{
	enum { FIRST = 1000 }; /* before the sum, which is small */
	double scarcest = 1, sum = 0;

	for (unsigned i = 0; i < d->nr; i++) {
		double part =
			(double)number_min(p->has[i], d->of[i].asked) / (double)d->of[i].asked;

		scarcest = part < scarcest ? part : scarcest;
		sum += part;
	}
	return scarcest * FIRST + sum;
}

/* So many NUMA nodes that come nearest to it. */
static struct diagnosis_place nearest_place(const struct survey *s, unsigned nr)
{
	struct diagnosis_place place = {0};

	for (; nr; nr--) {
		struct diagnosis_place best = {0};

		for (unsigned at = 0; at < s->nr_nodes; at++) {
			struct diagnosis_place with = place;

			if (nodeset_has(place.nodes, s->node[at]))
				continue;
			place_add(&with, s, at);
			if (nodeset_empty(best.nodes) ||
				nearness(s->d, &with) > nearness(s->d, &best))
				best = with;
		}
		if (nodeset_empty(best.nodes))
			break;
		place = best;
	}
	return place;
}

/* The NUMA node that has most of that amount, of several the one that comes nearest to all. */
static struct diagnosis_place place_of_most(const struct survey *s, unsigned amount)
{
	struct diagnosis_place best = {0};

	for (unsigned at = 0; at < s->nr_nodes; at++) {
		struct diagnosis_place here = {0};

		place_add(&here, s, at);
		if (nodeset_empty(best.nodes) || here.has[amount] > best.has[amount] ||
			(here.has[amount] == best.has[amount] &&
				nearness(s->d, &here) > nearness(s->d, &best)))
			best = here;
	}
	return best;
}

bool diagnosis_has_all(const struct diagnosis *d, const struct diagnosis_place *p)
{
	for (unsigned i = 0; i < d->nr; i++)
		if (p->has[i] < d->of[i].asked)
			return false;
	return true;
}

static void find_places(const struct survey *s, unsigned nr, struct diagnosis_places *out)
{
	const struct diagnosis_place nearest = nearest_place(s, nr);
	bool apart = false;

	for (unsigned i = 0; i < s->d->nr; i++)
		apart = apart || place_of_most(s, i).has[i] > nearest.has[i];
	*out = (struct diagnosis_places){.nr = 1, .has_most = nr == 1 && !apart, .at = {nearest}};
	if (nr > 1 || !apart || diagnosis_has_all(s->d, &nearest))
		return;
	out->nr = 0;
	for (unsigned i = 0; i < s->d->nr; i++) {
		const struct diagnosis_place most = place_of_most(s, i);
		unsigned k = 0;

		while (k < out->nr && out->at[k].has[i] < most.has[i])
			k++;
		if (k == out->nr)
			out->at[out->nr++] = most;
	}
}

/* The NUMA nodes on which a container that runs has some of that amount. */
static struct nodeset nodes_of_amount(
	const struct topo *t, const struct decision *d, const struct diagnosis_amount *m)
{
	if (m->cpus)
		return d->exclusive ? topo_nodes_of(t, &d->cpus) : decision_nodes_used(t, d);
	for (unsigned i = 0; i < d->nr_blocks; i++)
		if (d->blocks[i].kind == m->kind)
			return d->blocks[i].nodes;
	return (struct nodeset){0};
}

/* One place for each amount. */
static void find_places_of_running(const struct books *b, const struct decision *runs,
	const struct diagnosis *d, struct diagnosis_places *out)
{
	out->nr = d->nr;
	for (unsigned i = 0; i < d->nr; i++) {
		out->at[i].nodes = nodes_of_amount(b->t, runs, &d->of[i]);
		nodeset_each (n, out->at[i].nodes)
			out->at[i].has[i] += amount_on(b, &d->of[i], n, false);
	}
}

void diagnosis_find_places(const struct admit_question *q, const struct books *b,
	const struct holding *resized, struct diagnosis *d)
{
	const struct survey left = survey_of(b, d, false), all = survey_of(b, d, true);
	struct lease_claim tokens;

	if (!d->nr)
		return;
	find_places(&all, 1, &d->empty);
	d->has_tokens = q->container && admit_has_tokens(q->settings, q->container) &&
			!admit_tokens(q->ledger, q->container, &tokens, NULL);
	if (resized) {
		find_places_of_running(b, &resized->decision, d, &d->free);
	} else if (d->has_tokens) {
		d->free = (struct diagnosis_places){.nr = 1};
		for (unsigned at = 0; at < left.nr_nodes; at++)
			if (nodeset_has(tokens.nodes, left.node[at]))
				place_add(&d->free.at[0], &left, at);
	} else {
		find_places(&left, number_max(d->allowed, 1), &d->free);
	}
}
