/* The tables of a search: nodes that can take part, largest weights, nearest neighbours. */
#include "search_state.h"

#include <string.h>

/* Steps of the budget: devices on several nodes, and numbers, that are looked through in one. */
enum { COVERS_PER_STEP = 16, NUMBERS_PER_STEP = 64 };

/* What each node brings besides the required ones, and how much of the need these leave. */
static void weigh_nodes(struct search *s, struct row *r)
{
	uint64_t have = family_demand_sum(&r->demand, s->required);

	r->need = r->demand.need > have ? r->demand.need - have : 0;
	r->overlaps = r->demand.cores; /* a sum of CPUs says nothing of whole cores */
	nodeset_each (node, s->ground)
		r->of_node[node] = r->demand.weight ? r->demand.weight[node] : 0;
	for (size_t i = 0; i < r->demand.nr_covers; i++) {
		const struct family_cover *c = &r->demand.cover[i];
		struct nodeset on = nodeset_and(c->nodes, s->ground);

		if (!nodeset_empty(nodeset_and(c->nodes, s->required)))
			continue;
		r->overlaps = r->overlaps || nodeset_count(on) > 1;
		nodeset_each (node, on)
			r->of_node[node] += c->count;
	}
	(void)budget_spend(s->budget, r->demand.nr_covers / COVERS_PER_STEP);
}

/* The weights of `nodes`, largest first, added up as far as the c-th. */
static uint64_t largest_sum(const struct row *r, struct nodeset nodes, unsigned c)
{
	uint64_t largest[NODES_MAX] = {0}, sum = 0;
	unsigned nr = 0;

	nodeset_each (node, nodes) {
		uint64_t w = r->of_node[node];
		unsigned at = nr;

		if (nr == c && (!c || w <= largest[nr - 1]))
			continue;
		if (nr < c)
			nr++;
		else
			at--;
		for (; at > 0 && largest[at - 1] < w; at--)
			largest[at] = largest[at - 1];
		largest[at] = w;
	}
	for (unsigned i = 0; i < nr; i++)
		sum += largest[i];
	return sum;
}

/* The nodes, required ones apart, that some set of k nodes with enough of each demand can have. */
static struct nodeset useful_nodes(const struct search *s, unsigned k)
{
	struct nodeset useful = nodeset_minus(s->ground, s->required), before;

	if (!k)
		return (struct nodeset){0};
	do {
		before = useful;
		for (unsigned i = 0; i < s->nr_rows; i++) {
			const struct row *r = &s->row[i];
			uint64_t others = largest_sum(r, useful, k - 1);

			nodeset_each (node, useful)
				if (r->of_node[node] + others < r->need)
					useful = nodeset_minus(useful, nodeset_of(node));
		}
	} while (!nodeset_equal(useful, before));
	return useful;
}

static void prepare_row(const struct search *s, struct row *r)
{
	uint64_t largest[NODES_MAX]; /* the weights below hi, descending */

	r->sum = r->parts = 0;
	for (unsigned hi = 0; hi <= s->n; hi++) {
		uint64_t *top = &r->top[hi * s->width];

		top[0] = 0;
		for (unsigned c = 0; c < hi; c++)
			top[c + 1] = top[c] + largest[c];
		if (hi == s->n)
			break;
		uint64_t w = r->of_node[s->node[hi]];
		unsigned at = hi;

		r->weight[hi] = w;
		r->part[hi] =
			w >= r->need
				? SEARCH_WHOLE
				: (uint64_t)(((unsigned __int128)w * SEARCH_WHOLE + r->need - 1) /
					     r->need);
		for (; at > 0 && largest[at - 1] < w; at--)
			largest[at] = largest[at - 1];
		largest[at] = w;
	}
}

/* Sums of a node's distances to others fit, and so does each distance there and back. */
_Static_assert(NEAR_DEPTH * 2 * UINT8_MAX <= UINT16_MAX, "sums fit into 16 bits");

static void prepare_near(const struct search *s, unsigned q)
{
	uint16_t nearest[NEAR_DEPTH]; /* of the positions below hi, ascending */
	unsigned nr = 0;

	for (unsigned hi = 0; hi <= s->n; hi++) {
		uint16_t *sum = s->near[hi * s->width + q];

		sum[0] = 0;
		for (unsigned c = 0; c < s->near_depth; c++)
			sum[c + 1] = (uint16_t)(sum[c] + (c < nr ? nearest[c] : 0));
		if (hi == s->n || hi == q || !s->near_depth)
			continue;
		uint16_t apart = (uint16_t)s->apart[q][hi];
		unsigned at = nr;
		if (nr < s->near_depth)
			nr++;
		else if (nearest[--at] <= apart)
			continue;
		for (; at > 0 && nearest[at - 1] > apart; at--)
			nearest[at] = nearest[at - 1];
		nearest[at] = apart;
	}
}

/* Without distances, or when all sets of one size are equally close, the lowest-numbered set is the
 * best. */
static void prepare_distances(struct search *s, unsigned k)
{
	const uint8_t(*d)[NODES_MAX] = s->space->distance;

	s->closest = false;
	s->cost = 0;
	memset(s->link, 0, sizeof s->link);
	if (!d || s->any_will_do || !k)
		return;
	for (unsigned q = 0; q < s->n; q++) {
		const unsigned i = s->node[q];

		s->own[q] = d[i][i];
		nodeset_each (r, s->required)
			s->own[q] += (uint32_t)d[i][r] + d[r][i];
		s->closest = s->closest || s->own[q] != s->own[0];
		for (unsigned p = 0; p < s->n; p++) {
			s->apart[q][p] = (uint32_t)d[i][s->node[p]] + d[s->node[p]][i];
			s->closest = s->closest || (k > 1 && p != q && s->n > 1 &&
							   s->apart[q][p] != s->apart[0][1]);
		}
	}
	s->cost = s->closest ? hint_distance_sum(s->space, s->required) : 0;
	s->near_depth = k - 1 < NEAR_DEPTH ? k - 1 : NEAR_DEPTH;
	for (unsigned q = 0; q < s->n && s->closest; q++) {
		prepare_near(s, q);
		s->link[q] = s->own[q];
	}
	(void)budget_spend(s->budget,
		(uint64_t)s->n * s->n * (s->closest ? NEAR_DEPTH + 12 : 2) / NUMBERS_PER_STEP);
}

/* Whether position i can take the place of j in any set without making it worse. */
static bool is_no_worse(const struct search *s, unsigned i, unsigned j)
{
	for (unsigned r = 0; r < s->nr_rows; r++)
		if (s->row[r].weight[i] < s->row[r].weight[j])
			return false;
	if (s->own[i] > s->own[j])
		return false;
	for (unsigned p = 0; p < s->n; p++)
		if (p != i && p != j && s->apart[i][p] > s->apart[j][p])
			return false;
	return true;
}

/* A set with j, and without a lower i that is better, is worse than the one with i instead of j. */
static void prepare_better(struct search *s)
{
	memset(s->better, 0, sizeof s->better);
	if (!s->closest || s->overlaps || s->sockets_of || (s->possible && !s->limit_by_rows) ||
		s->scoring || !nodeset_empty(s->except))
		return;
	for (unsigned j = 1; j < s->n; j++)
		for (unsigned i = 0; i < j; i++)
			if (is_no_worse(s, i, j))
				s->better[j] |= UINT64_C(1) << i;
}

void search_prepare(struct search *s, unsigned k)
{
	if (s->prepared_for && s->prepared_for == k)
		return;
	s->visit_steps = 1; /* at each visit devices on several nodes are looked through, */
	s->overlaps = false;
	for (unsigned i = 0; i < s->nr_rows; i++) {
		struct row *r = &s->row[i];

		weigh_nodes(s, r);
		s->overlaps = s->overlaps || r->overlaps;
		s->visit_steps += r->overlaps ? r->demand.nr_covers / COVERS_PER_STEP : 0;
	}
	for (size_t i = 0; s->scoring && i < s->scoring->nr; i++) { /* and all that is scored */
		const struct family *f = &s->scoring->family[i];

		s->visit_steps += 1 + f->capacity.nr_covers / COVERS_PER_STEP +
				  f->unallocated.nr_covers / COVERS_PER_STEP;
	}
	s->rows_are_all =
		!s->overlaps && !s->sockets_of && !s->possible && nodeset_empty(s->except);
	s->n = 0;
	s->below[0] = (struct nodeset){0};
	const struct nodeset useful = useful_nodes(s, k);
	nodeset_each (node, useful) {
		s->node[s->n] = (uint8_t)node;
		s->below[s->n + 1] = nodeset_or(s->below[s->n], nodeset_of(node));
		s->n++;
	}
	(void)budget_spend(
		s->budget, (uint64_t)s->n * s->n * (s->nr_rows + 1) / NUMBERS_PER_STEP + 1);
	for (unsigned i = 0; i < s->nr_rows; i++)
		prepare_row(s, &s->row[i]);
	prepare_distances(s, k);
	prepare_better(s);
	s->prepared_for = k;
}
