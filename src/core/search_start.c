/* A first good set of nodes: from each node in turn the nearest one is added that still lets the
 * demands be met, then single nodes are exchanged as long as that brings the set closer. */
#include "search_state.h"

#include <string.h>

enum { NUMBERS_PER_STEP = 32 };

/* A set on its way: what each position would add to its cost, and what each row has. */
struct walk {
	uint64_t chosen; /* positions */
	uint64_t cost;
	uint32_t link[NODES_MAX];
	uint64_t sum[SEARCH_DEMANDS];
};

static void add(const struct search *s, struct walk *w, unsigned q)
{
	w->chosen |= UINT64_C(1) << q;
	w->cost += w->link[q];
	for (unsigned i = 0; i < s->nr_rows; i++)
		w->sum[i] += s->row[i].weight[q];
	for (unsigned p = 0; p < s->n && s->closest; p++)
		if (p != q)
			w->link[p] += s->apart[p][q];
}

static void take_out(const struct search *s, struct walk *w, unsigned q)
{
	w->chosen &= ~(UINT64_C(1) << q);
	w->cost -= w->link[q];
	for (unsigned i = 0; i < s->nr_rows; i++)
		w->sum[i] -= s->row[i].weight[q];
	for (unsigned p = 0; p < s->n && s->closest; p++)
		if (p != q)
			w->link[p] -= s->apart[p][q];
}

/* Whether q and the `more` largest nodes could complete the set. */
static bool could_complete(const struct search *s, const struct walk *w, unsigned q, unsigned more)
{
	for (unsigned i = 0; i < s->nr_rows; i++) {
		const struct row *r = &s->row[i];

		if (w->sum[i] + r->weight[q] + r->top[s->n * s->width + more] < r->need)
			return false;
	}
	return true;
}

/* The nearest position that may join the set, s->n when there is none. */
static unsigned nearest(const struct search *s, const struct walk *w, unsigned more)
{
	unsigned best = s->n;

	for (unsigned q = 0; q < s->n; q++)
		if (!(w->chosen >> q & 1) && (best == s->n || w->link[q] < w->link[best]) &&
			could_complete(s, w, q, more))
			best = q;
	return best;
}

static bool grow(const struct search *s, struct walk *w, unsigned first, unsigned k)
{
	*w = (struct walk){.cost = s->cost};
	memcpy(w->link, s->link, sizeof w->link);
	if (!could_complete(s, w, first, k - 1))
		return false;
	add(s, w, first);
	for (unsigned more = k - 1; more > 0; more--) {
		unsigned q = nearest(s, w, more - 1);

		if (q == s->n)
			return false;
		add(s, w, q);
	}
	return true;
}

/* Whether the demands are still met with `in` instead of `out`. */
static bool may_replace(const struct search *s, const struct walk *w, unsigned out, unsigned in)
{
	for (unsigned i = 0; i < s->nr_rows; i++) {
		const struct row *r = &s->row[i];

		if (w->sum[i] - r->weight[out] + r->weight[in] < r->need)
			return false;
	}
	return true;
}

/* Exchange the first node for which there is a nearer one. False when there is none. */
static bool exchange(const struct search *s, struct walk *w)
{
	for (unsigned out = 0; out < s->n; out++) {
		if (!(w->chosen >> out & 1))
			continue;
		for (unsigned in = 0; in < s->n; in++) {
			if (w->chosen >> in & 1 ||
				w->link[in] - s->apart[in][out] >= w->link[out] ||
				!may_replace(s, w, out, in))
				continue;
			take_out(s, w, out);
			add(s, w, in);
			return true;
		}
	}
	return false;
}

static struct nodeset nodes_of(const struct search *s, uint64_t positions)
{
	struct nodeset nodes = s->required;

	for (unsigned q = 0; q < s->n; q++)
		if (positions >> q & 1)
			nodes = nodeset_or(nodes, nodeset_of(s->node[q]));
	return nodes;
}

bool search_start(struct search *s, unsigned k, struct nodeset *start)
{
	struct walk w;
	bool found = false;

	for (unsigned first = 0; first < s->n && !(first && s->exhausted); first++) {
		(void)search_spend(s, 1 + (uint64_t)k * s->n * (s->nr_rows + 1) / NUMBERS_PER_STEP);
		if (!grow(s, &w, first, k))
			continue;
		while (s->closest && exchange(s, &w) &&
			search_spend(s, 1 + (uint64_t)k * s->n / NUMBERS_PER_STEP))
			;
		struct nodeset nodes = nodes_of(s, w.chosen);
		if (w.cost < s->limit && search_accepts(s, nodes)) {
			s->limit = w.cost;
			*start = nodes;
			found = true;
		}
	}
	return found;
}
