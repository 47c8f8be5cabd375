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

/* Put position q into the set, or take it out again. */
static void put_position(const struct search *s, struct walk *w, unsigned q, bool in)
{
	const uint32_t by = in ? 1 : UINT32_MAX; /* plus or minus one, modulo the type */

	w->chosen ^= UINT64_C(1) << q;
	w->cost += in ? w->link[q] : -(uint64_t)w->link[q];
	for (unsigned i = 0; i < s->nr_rows; i++)
		w->sum[i] += in ? s->row[i].weight[q] : -s->row[i].weight[q];
	for (unsigned p = 0; p < s->n && s->closest; p++)
		if (p != q)
			w->link[p] += by * s->apart[p][q];
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

/* A set of k nodes from the first on: each time the nearest position that may join it. */
static bool grow_set(const struct search *s, struct walk *w, unsigned first, unsigned k)
{
	*w = (struct walk){.cost = s->cost};
	memcpy(w->link, s->link, sizeof w->link);
	if (!could_complete(s, w, first, k - 1))
		return false;
	put_position(s, w, first, true);
	for (unsigned more = k - 1; more > 0; more--) {
		unsigned best = s->n;

		for (unsigned q = 0; q < s->n; q++)
			if (!(w->chosen >> q & 1) && (best == s->n || w->link[q] < w->link[best]) &&
				could_complete(s, w, q, more - 1))
				best = q;
		if (best == s->n)
			return false;
		put_position(s, w, best, true);
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
static bool exchange_node(const struct search *s, struct walk *w)
{
	for (unsigned out = 0; out < s->n; out++) {
		if (!(w->chosen >> out & 1))
			continue;
		for (unsigned in = 0; in < s->n; in++) {
			if (w->chosen >> in & 1 ||
				w->link[in] - s->apart[in][out] >= w->link[out] ||
				!may_replace(s, w, out, in))
				continue;
			put_position(s, w, out, false);
			put_position(s, w, in, true);
			return true;
		}
	}
	return false;
}

bool search_start(struct search *s, unsigned k, struct nodeset *start)
{
	struct walk w;
	bool found = false;

	for (unsigned first = 0; first < s->n && !(first && s->exhausted); first++) {
		(void)search_spend(s, 1 + (uint64_t)k * s->n * (s->nr_rows + 1) / NUMBERS_PER_STEP);
		if (!grow_set(s, &w, first, k))
			continue;
		while (s->closest && exchange_node(s, &w) &&
			search_spend(s, 1 + (uint64_t)k * s->n / NUMBERS_PER_STEP))
			;
		struct nodeset nodes = s->required;
		for (unsigned q = 0; q < s->n; q++)
			if (w.chosen >> q & 1)
				nodes = nodeset_or(nodes, nodeset_of(s->node[q]));
		if (w.cost < s->limit && search_accepts(s, nodes)) {
			s->limit = w.cost;
			*start = nodes;
			found = true;
		}
	}
	return found;
}
