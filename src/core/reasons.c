/* What each resource had to offer, and what would have been next. A family is up-closed: once a set
 * of nodes has enough, so has every larger one, and all of them are counted at once; once even all
 * nodes that are left would not do, none is. */
#include <numafit/reasons.h>

#include <numafit/search.h>
#include <numafit/text.h>

/* At most so many sets for each count, and so many steps for all searches together and for the
 * runner-up; a set that is compared by its distances takes several steps. */
enum { REASONS_STEPS = 4096, COUNT_STEPS = 4 * REASONS_STEPS, PAIRS_PER_STEP = 64 };

/* Sets over the nodes of a family, which are decided one after the other. */
struct count {
	const struct hint_space *space;
	const struct family *family;
	struct reasons_resource *out;
	struct budget *budget;
	unsigned nr, sets;
	uint64_t cost;                      /* steps for each set */
	uint8_t node[NODES_MAX];            /* those that bring most come first */
	struct nodeset from[NODES_MAX + 1]; /* the i-th and all after it */
};

/* A mask of the family: enter it if it is among the best ones. */
static void enter_mask(
	const struct hint_space *space, struct nodeset mask, struct reasons_resource *r)
{
	unsigned size = nodeset_count(mask);

	if (r->smallest && size > r->smallest)
		return;
	if (size != r->smallest)
		r->nr_best = 0;
	r->smallest = size;
	unsigned at = r->nr_best;
	while (at > 0 && hint_compare_masks(space, mask, r->best[at - 1]) < 0)
		at--;
	if (at == REASONS_BEST)
		return;
	if (r->nr_best < REASONS_BEST)
		r->nr_best++;
	for (unsigned i = r->nr_best - 1; i > at; i--)
		r->best[i] = r->best[i - 1];
	r->best[at] = mask;
}

/* Required nodes are in every set; the others are to be decided. */
static void order_by_demand(struct count *c)
{
	const struct family *f = c->family;
	uint64_t sum[NODES_MAX];

	nodeset_each (node, nodeset_minus(f->ground, f->required)) {
		uint64_t mine =
			f->nr_demands ? family_demand_sum(&f->demand[0], nodeset_of(node)) : 0;
		unsigned at = c->nr++;

		for (; at > 0 && sum[at - 1] < mine; at--) {
			sum[at] = sum[at - 1];
			c->node[at] = c->node[at - 1];
		}
		sum[at] = mine;
		c->node[at] = (uint8_t)node;
	}
	c->from[c->nr] = (struct nodeset){0};
	for (unsigned i = c->nr; i > 0; i--)
		c->from[i - 1] = nodeset_or(c->from[i], nodeset_of(c->node[i - 1]));
}

/* Count the sets of the chosen nodes, which are not enough, and some from the i-th on, which all
 * together are. False: out of visits. */
static bool count_from(struct count *c, unsigned i, struct nodeset chosen)
{
	do {
		struct nodeset with = nodeset_or(chosen, nodeset_of(c->node[i]));

		if (!c->sets || !budget_spend(c->budget, c->cost))
			return false;
		c->sets--;
		i++;
		if (family_in_rule(c->family, with)) {
			c->out->masks += UINT64_C(1) << (c->nr - i);
			uint64_t size = c->space->distance ? nodeset_count(with) : 0;
			(void)budget_spend(c->budget, size * size / PAIRS_PER_STEP);
			enter_mask(c->space, with, c->out);
		} else if (!count_from(c, i, with)) {
			return false;
		}
	} while (family_in_rule(c->family, nodeset_or(chosen, c->from[i])));
	return true;
}

/* The masks that follow the family's rule. False: there are more than could be counted. */
static bool count_rule(const struct hint_space *space, const struct family *f, struct budget *b,
	struct reasons_resource *r)
{
	enum { COVERS_PER_STEP = 64 };
	struct count c = {
		.space = space, .family = f, .out = r, .budget = b, .sets = REASONS_STEPS};
	uint64_t covers = 0;

	for (unsigned i = 0; i < f->nr_demands; i++)
		covers += f->demand[i].nr_covers;
	c.cost = 1 + covers / COVERS_PER_STEP; /* many devices take long to look through */
	if (!family_in_rule(f, f->ground))
		return true;
	order_by_demand(&c);
	if (!family_in_rule(f, f->required))
		return count_from(&c, 0, f->required);
	r->masks = UINT64_C(1) << c.nr;
	enter_mask(space, f->required, r);
	return true;
}

static bool not_listed(void *ctx, struct nodeset mask)
{
	const struct reasons_resource *r = ctx;

	for (unsigned i = 0; i < r->nr_best; i++)
		if (nodeset_equal(mask, r->best[i]))
			return false;
	return true;
}

/* The smallest masks where not all were seen. */
static void search_rule(struct search *s, const struct family *f, struct reasons_resource *r)
{
	struct nodeset best;

	search_begin(s, f->ground);
	if (!search_add_family(s, f))
		return;
	unsigned size = search_smallest(s);
	if (!size)
		return;
	r->smallest = size;
	r->nr_best = 0;
	while (r->nr_best < REASONS_BEST && !search_best(s, size, &best)) {
		r->best[r->nr_best++] = best;
		search_limit(s, not_listed, r);
	}
}

/* What the searches for all resources share. */
struct searches {
	struct search *search; /* NULL: none was needed yet */
	struct budget budget;
};

static void describe_family(const struct hint_space *space, const struct family *f,
	struct searches *all, struct budget *b, struct arena *a, struct reasons_resource *r)
{
	struct budget part = budget_take_aside(b, COUNT_STEPS);

	r->kind = f->kind;
	(void)text_copy(r->resource, sizeof r->resource, f->resource);
	if (f->kind != FAMILY_CAPACITY)
		return;
	r->preferred_size = f->preferred_size;
	r->more_masks = !count_rule(space, f, &part, r);
	budget_return_aside(b, &part);
	if (r->more_masks && !all->search) {
		all->budget = budget_take_aside(b, REASONS_STEPS);
		all->search = search_new(space, &all->budget, a);
	}
	if (r->more_masks && all->search)
		search_rule(all->search, f, r);
	for (unsigned i = 0; i < f->nr_extra; i++) { /* masks beside the rule */
		unsigned first = 0;

		while (!nodeset_equal(f->extra[first], f->extra[i]))
			first++;
		if (first < i || family_in_rule(f, f->extra[i]))
			continue;
		r->masks++;
		enter_mask(space, f->extra[i], r);
	}
}

const struct reasons *reasons_of(enum topology_policy policy, const struct hint_space *space,
	const struct family *families, size_t nr, const struct policy_answer *answer,
	bool cut_short, struct budget *b, struct arena *a)
{
	struct searches all = {0};

	if (policy == POLICY_NONE)
		return NULL;
	struct reasons *r = arena_alloc(a, sizeof *r);
	if (!r)
		return NULL;
	r->affinity = answer->affinity;
	r->admit = answer->admit;
	r->cut_short = cut_short;
	r->nr = nr < REASONS_RESOURCES ? (unsigned)nr : REASONS_RESOURCES;
	for (unsigned i = 0; i < r->nr; i++)
		describe_family(space, &families[i], &all, b, a, &r->resource[i]);
	if (all.search)
		budget_return_aside(b, &all.budget);
	struct budget part = budget_take_aside(b, REASONS_STEPS);
	struct hint next;
	r->has_runner_up =
		!policy_runner_up(policy, space, families, nr, &answer->affinity, &part, a, &next);
	budget_return_aside(b, &part);
	if (r->has_runner_up)
		r->runner_up = next;
	return r;
}
