/* Branch and bound over sets of NUMA nodes. A set is built from its highest node down; a branch is
 * left when a demand cannot be met any more even by the largest nodes that are left, or when even
 * the nearest nodes that are left would lie farther apart than the best set found so far. */
#include <numafit/search.h>

#include <errno.h>
#include <string.h>

/* One demand. Its weights are source's, or with source NULL 1 for each node of required. */
struct row {
	const uint64_t *source;
	struct nodeset required;
	uint64_t need, sum;         /* what the chosen nodes must bring, what they bring now */
	uint64_t weight[NODES_MAX]; /* by position */
	uint64_t *top; /* [hi * width + c]: the c largest weights below position hi, added up */
};

struct search {
	const struct hint_space *space;
	struct arena *arena;
	size_t width; /* of a row's table: nodes of the space + 1 */
	struct nodeset ground;
	bool prepared, closest;
	unsigned n;
	uint8_t node[NODES_MAX];             /* position -> dense index, ascending */
	struct nodeset below[NODES_MAX + 1]; /* the nodes of all lower positions */
	unsigned nr_rows;
	struct row row[SEARCH_DEMANDS];
	bool (*possible)(void *ctx, struct nodeset m);
	void *ctx;
	uint32_t apart[NODES_MAX][NODES_MAX]; /* distance there and back */
	uint32_t near[NODES_MAX]
		     [NODES_MAX + 1]; /* near[q][c]: the c smallest apart[q][*], added up */
	uint32_t link[NODES_MAX];     /* what position q would add to the chosen ones' cost */
	uint64_t visits;
	bool exhausted;
	struct nodeset best;
	uint64_t best_cost;
};

struct search *search_new(const struct hint_space *space, struct arena *a)
{
	struct search *s = arena_alloc(a, sizeof *s);

	if (s) {
		s->space = space;
		s->arena = a;
		s->width = nodeset_count(space->all) + 1;
	}
	return s;
}

void search_begin(struct search *s, struct nodeset ground)
{
	s->ground = nodeset_and(ground, s->space->all);
	s->nr_rows = 0;
	s->possible = NULL;
	s->prepared = false;
}

static bool add_row(
	struct search *s, const uint64_t *source, struct nodeset required, uint64_t need)
{
	for (unsigned i = 0; i < s->nr_rows; i++) {
		struct row *r = &s->row[i];

		if (r->source == source && nodeset_equal(r->required, required)) {
			r->need = need > r->need ? need : r->need;
			return true;
		}
	}
	if (s->nr_rows == SEARCH_DEMANDS)
		return false;
	struct row *r = &s->row[s->nr_rows];
	if (!r->top)
		r->top = arena_array(s->arena, s->width * s->width, sizeof *r->top);
	if (!r->top)
		return false;
	r->source = source;
	r->required = required;
	r->need = need;
	s->nr_rows++;
	s->prepared = false;
	return true;
}

bool search_add(struct search *s, const struct family_demand *d)
{
	return d->need <= d->base || add_row(s, d->weight, (struct nodeset){0}, d->need - d->base);
}

bool search_require(struct search *s, struct nodeset nodes)
{
	return nodeset_empty(nodes) || add_row(s, NULL, nodes, nodeset_count(nodes));
}

bool search_add_family(struct search *s, const struct family *f)
{
	s->ground = nodeset_and(s->ground, f->ground);
	s->prepared = false;
	for (unsigned i = 0; i < f->nr_demands; i++)
		if (!search_add(s, &f->demand[i]))
			return false;
	return search_require(s, f->required);
}

void search_limit(struct search *s, bool (*possible)(void *ctx, struct nodeset m), void *ctx)
{
	s->possible = possible;
	s->ctx = ctx;
}

static void prepare_row(const struct search *s, struct row *r)
{
	uint64_t largest[NODES_MAX]; /* the weights below hi, descending */

	for (unsigned hi = 0; hi <= s->n; hi++) {
		uint64_t *top = &r->top[hi * s->width];

		top[0] = 0;
		for (unsigned c = 0; c < hi; c++)
			top[c + 1] = top[c] + largest[c];
		if (hi == s->n)
			break;
		uint64_t w =
			r->source ? r->source[s->node[hi]] : nodeset_has(r->required, s->node[hi]);
		unsigned at = hi;

		r->weight[hi] = w;
		for (; at > 0 && largest[at - 1] < w; at--)
			largest[at] = largest[at - 1];
		largest[at] = w;
	}
}

static void prepare_near(struct search *s, unsigned q)
{
	uint32_t nearest[NODES_MAX];
	unsigned nr = 0;

	for (unsigned p = 0; p < s->n; p++) {
		if (p == q)
			continue;
		unsigned at = nr++;
		for (; at > 0 && nearest[at - 1] > s->apart[q][p]; at--)
			nearest[at] = nearest[at - 1];
		nearest[at] = s->apart[q][p];
	}
	s->near[q][0] = 0;
	for (unsigned c = 0; c < nr; c++)
		s->near[q][c + 1] = s->near[q][c] + nearest[c];
}

/* Without distances, or when they tell no two sets apart, the lowest-numbered set is the best. */
static void prepare_distances(struct search *s)
{
	const uint8_t(*d)[NODES_MAX] = s->space->distance;

	s->closest = false;
	if (!d)
		return;
	for (unsigned q = 0; q < s->n; q++)
		for (unsigned p = 0; p < s->n; p++) {
			const unsigned i = s->node[q], j = s->node[p];

			s->apart[q][p] = (uint32_t)d[i][j] + d[j][i];
			s->closest = s->closest || d[i][i] != d[s->node[0]][s->node[0]] ||
				     (p != q && s->n > 1 && s->apart[q][p] != s->apart[0][1]);
		}
	for (unsigned q = 0; q < s->n && s->closest; q++)
		prepare_near(s, q);
}

static void prepare(struct search *s)
{
	if (s->prepared)
		return;
	s->n = 0;
	s->below[0] = (struct nodeset){0};
	nodeset_each (node, s->ground) {
		s->node[s->n] = (uint8_t)node;
		s->below[s->n + 1] = nodeset_or(s->below[s->n], nodeset_of(node));
		s->n++;
	}
	for (unsigned i = 0; i < s->nr_rows; i++)
		prepare_row(s, &s->row[i]);
	prepare_distances(s);
	s->prepared = true;
}

/* Whether position t and left - 1 of those below it can meet every demand. */
static bool affordable(const struct search *s, unsigned t, unsigned left)
{
	for (unsigned i = 0; i < s->nr_rows; i++) {
		const struct row *r = &s->row[i];

		if (r->sum + r->weight[t] + r->top[t * s->width + left - 1] < r->need)
			return false;
	}
	return true;
}

/* No more than twice what the cost will be once `left` positions below hi have joined the chosen
 * ones: the cheapest by their links to the chosen, and half of their cheapest links to each other.
 */
static uint64_t bound_twice(const struct search *s, unsigned hi, unsigned left, uint64_t cost)
{
	uint64_t cheapest[NODES_MAX], sum = 2 * cost;
	unsigned nr = 0;

	for (unsigned q = 0; q < hi && left; q++) {
		uint64_t c = 2 * (uint64_t)s->link[q] + s->near[q][left - 1];
		unsigned at = nr;

		if (nr == left && c >= cheapest[nr - 1])
			continue;
		if (nr < left)
			nr++;
		else
			at--;
		for (; at > 0 && cheapest[at - 1] > c; at--)
			cheapest[at] = cheapest[at - 1];
		cheapest[at] = c;
	}
	for (unsigned i = 0; i < nr; i++)
		sum += cheapest[i];
	return sum;
}

/* Put position t among the chosen ones, or (by = -1) take it out again. */
static void choose(struct search *s, unsigned t, int by)
{
	for (unsigned i = 0; i < s->nr_rows; i++)
		s->row[i].sum += by > 0 ? s->row[i].weight[t] : -s->row[i].weight[t];
	for (unsigned q = 0; q < t && s->closest; q++)
		s->link[q] += by > 0 ? s->apart[q][t] : -s->apart[q][t];
}

static bool accept(struct search *s, struct nodeset chosen, uint64_t cost)
{
	if (s->possible && !s->possible(s->ctx, chosen))
		return false;
	if (nodeset_empty(s->best) || cost < s->best_cost) {
		s->best = chosen;
		s->best_cost = cost;
	}
	return !s->closest;
}

/* Choose `left` more positions below hi. True when the search is over. */
static bool descend(
	struct search *s, unsigned hi, unsigned left, struct nodeset chosen, uint64_t cost)
{
	if (!left)
		return accept(s, chosen, cost);
	for (unsigned t = left - 1; t < hi; t++) {
		struct nodeset with = nodeset_or(chosen, nodeset_of(s->node[t]));
		uint64_t then = cost + s->link[t];

		if (s->space->visit_budget && s->visits++ >= s->space->visit_budget)
			return s->exhausted = true;
		if (!affordable(s, t, left) ||
			(s->possible && !s->possible(s->ctx, nodeset_or(with, s->below[t]))))
			continue;
		choose(s, t, 1);
		bool over = false;
		if (!s->closest || nodeset_empty(s->best) ||
			bound_twice(s, t, left - 1, then) < 2 * s->best_cost)
			over = descend(s, t, left - 1, with, then);
		choose(s, t, -1);
		if (over)
			return true;
	}
	return false;
}

int search_best(struct search *s, unsigned k, struct nodeset *best)
{
	prepare(s);
	s->best = (struct nodeset){0};
	for (unsigned q = 0; q < s->n; q++)
		s->link[q] = s->closest ? s->space->distance[s->node[q]][s->node[q]] : 0;
	for (unsigned i = 0; i < s->nr_rows; i++)
		s->row[i].sum = 0;
	if (k && k <= s->n)
		(void)descend(s, s->n, k, (struct nodeset){0}, 0);
	*best = s->best;
	return s->exhausted ? 1 : nodeset_empty(s->best) ? -ENOENT : 0;
}

unsigned search_smallest(struct search *s)
{
	struct nodeset found;
	unsigned k;

	prepare(s);
	bool closest = s->closest;
	s->closest = false; /* any set will do */
	for (k = 1; k <= s->n; k++)
		if (search_best(s, k, &found) >= 0)
			break;
	s->closest = closest;
	return k <= s->n && !nodeset_empty(found) ? k : 0;
}
