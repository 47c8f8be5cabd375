#include <numafit/nrt.h>

#include <sched/nrt_ask.h>
#include <string.h>

/* LeastNUMANodes (least_numa.go): the fewest zones that together have what is asked for, and of as
 * many the closest, of these the first in lexicographic order of their places in the list. Upstream
 * writes out every subset, and does so twice; here a subset is left as soon as what it still may
 * take in cannot make it fit, or cannot make it closer than one that is known. */

typedef __int128 nanos; /* amounts, exact: 63 bits, 30 for the billionths, 6 for 64 zones */

struct nrt_demand {
	nanos need;
	nanos left;                /* of it, after the zones chosen so far */
	nanos in[ZONES_MAX];       /* what each zone has */
	nanos most[ZONES_MAX + 1]; /* the most that any zone has from this place on, at least 0 */
};

struct nrt_search {
	const struct sched_topology *t;
	uint64_t ground; /* the zones to choose from */
	unsigned size;   /* how many of them */
	bool by_distance, knows_pair;
	int64_t self, pair;  /* the least cost of a zone to itself, of two to each other and back */
	float below, enough; /* averages: better than the one; the other ends the search */
	uint64_t chosen, best;
	struct budget of_node, budget;
	unsigned nr;
	struct nrt_demand demand[];
};

/* Of the steps for all nodes each has one of so many parts of those that are left, and each of its
 * searches one of so many of that. A step is one beginning of a subset. 16 zones have fewer; where
 * more, uneven ones have too many, the best subset of those looked at counts. */
enum { NODE_PARTS = 16, SEARCH_PARTS = 8 };
/* From here on nothing is an answer; and what counts as the closest at most (least_numa.go). */
static const float too_far = 256, closest_at_most = ZONE_COST_UNKNOWN;

struct nrt_search *nrt_search_new(unsigned nr_columns)
{
	return xcalloc(1, sizeof(struct nrt_search) + nr_columns * sizeof(struct nrt_demand));
}

static nanos nanos_of(struct quantity q)
{
	return (nanos)q.whole * QUANTITY_NANOS + q.nano;
}

/* As upstream: in float32, which decides what is equal. */
static float average_cost(int64_t sum, unsigned size)
{
	return (float)sum / (float)(size * size);
}

static int64_t zone_cost(const struct nrt_search *s, unsigned from, unsigned to)
{
	return s->t->cost[from * s->t->nr_zones + to];
}

/* What the zone adds to the sum over all ordered pairs. */
static int64_t added_cost(const struct nrt_search *s, unsigned zone)
{
	int64_t sum = zone_cost(s, zone, zone);

	for (uint64_t rest = s->chosen; rest; rest &= rest - 1) {
		unsigned other = (unsigned)__builtin_ctzll(rest);

		sum += zone_cost(s, zone, other) + zone_cost(s, other, zone);
	}
	return sum;
}

/* The least average of any subset with these so many zones, whose costs are sum. */
static float least_average(const struct nrt_search *s, unsigned nr_chosen, int64_t sum)
{
	int64_t more = s->size - nr_chosen;
	int64_t pairs = more * nr_chosen + more * (more - 1) / 2;

	return average_cost(sum + more * s->self + pairs * s->pair, s->size);
}

/* Take the zone's amounts; false: so many more zones from there on do not suffice. */
static bool take_zone(struct nrt_search *s, unsigned zone, unsigned more)
{
	bool may = true;

	for (unsigned d = 0; d < s->nr; d++) {
		struct nrt_demand *demand = &s->demand[d];

		demand->left -= demand->in[zone];
		may = may && demand->left <= demand->most[zone + 1] * more;
	}
	return may;
}

/* Go through the subsets that begin with the chosen zones. true: the search is over. */
static bool walk_subsets(struct nrt_search *s, unsigned nr_chosen, uint64_t open, int64_t sum)
{
	if (nr_chosen == s->size) {
		s->best = s->chosen;
		s->below = average_cost(sum, s->size);
		return !s->by_distance || s->below <= s->enough;
	}
	unsigned more = s->size - nr_chosen - 1;

	for (; (unsigned)__builtin_popcountll(open) > more; open &= open - 1) {
		unsigned zone = (unsigned)__builtin_ctzll(open);
		int64_t with = s->by_distance ? sum + added_cost(s, zone) : 0;
		bool over = !budget_spend(&s->budget, 1);

		if (!over && take_zone(s, zone, more) &&
			(!s->by_distance || least_average(s, nr_chosen + 1, with) < s->below)) {
			s->chosen |= UINT64_C(1) << zone;
			over = walk_subsets(s, nr_chosen + 1, open & (open - 1), with);
			s->chosen &= ~(UINT64_C(1) << zone);
		}
		if (over)
			return true;
		for (unsigned d = 0; d < s->nr; d++)
			s->demand[d].left += s->demand[d].in[zone];
	}
	return false;
}

static void look_at_zones(struct nrt_ask *ask, const struct sched_topology *t)
{
	struct nrt_search *s = ask->search;

	s->of_node = budget_part(&ask->budget, 1, NODE_PARTS);
	s->t = t;
	s->self = INT64_MAX;
	s->knows_pair = false;
	for (unsigned a = 0; a < t->nr_zones; a++)
		s->self = zone_cost(s, a, a) < s->self ? zone_cost(s, a, a) : s->self;
}

static void look_at_pairs(struct nrt_search *s)
{
	s->knows_pair = true;
	s->pair = INT64_MAX;
	for (unsigned a = 1; a < s->t->nr_zones; a++)
		for (unsigned b = 0; b < a; b++) {
			int64_t pair = zone_cost(s, a, b) + zone_cost(s, b, a);

			s->pair = pair < s->pair ? pair : s->pair;
		}
}

/* The best subset of that size whose average is below that, or 0. */
static uint64_t search_best_zones(struct nrt_search *s, uint64_t ground, unsigned size, float below)
{
	for (unsigned d = 0; d < s->nr; d++) {
		s->demand[d].left = s->demand[d].need;
		if (s->demand[d].need > s->demand[d].most[0] * size)
			return 0;
	}
	if (size > 1 && s->by_distance && !s->knows_pair)
		look_at_pairs(s);
	s->size = size;
	s->below = below;
	s->enough = s->by_distance ? least_average(s, 0, 0) : 0;
	s->chosen = s->best = 0;
	s->budget = budget_part(&s->of_node, 1, SEARCH_PARTS);
	(void)walk_subsets(s, 0, ground, 0);
	budget_return(&s->of_node, &s->budget);
	return s->best;
}

/* false: not even all of the ground has that much. */
static bool add_demand(struct nrt_search *s, const struct nrt_column *c, struct quantity q)
{
	struct nrt_demand *d = &s->demand[s->nr++];
	nanos total = 0;

	d->need = nanos_of(q);
	for (uint64_t rest = s->ground; rest; rest &= rest - 1) {
		unsigned zone = (unsigned)__builtin_ctzll(rest);

		d->in[zone] = nanos_of(c->available[zone]);
		total += d->in[zone] > 0 ? d->in[zone] : 0;
	}
	if (d->need > total)
		return false;
	d->most[s->t->nr_zones] = 0;
	for (unsigned zone = s->t->nr_zones; zone-- > 0;) {
		nanos here = s->ground >> zone & 1 ? d->in[zone] : 0, behind = d->most[zone + 1];

		d->most[zone] = here > behind ? here : behind;
	}
	return true;
}

struct found {
	uint64_t zones; /* 0: none */
	float average;  /* distance */
	bool closest;   /* no others, as many, are closer */
};

/* numaNodesRequired() */
static struct found zones_required(
	struct nrt_ask *ask, const struct sched_topology *t, const struct nrt_part *part)
{
	struct nrt_search *s = ask->search;
	struct found found = {0};

	uint64_t all = nodeset_first(t->nr_zones).bits;

	s->nr = 0;
	s->by_distance = ask->args->compat || t->prefer_closest;
	s->ground = all;
	for (unsigned i = 0; i < part->nr; i++)
		s->ground &= ask->column[part->want[i].column].listed;
	for (unsigned i = 0; i < part->nr; i++) {
		const struct nrt_want *w = &part->want[i];
		const struct nrt_column *c = &ask->column[w->column];

		if (c->by_amount && !quantity_is_zero(w->q) && !add_demand(s, c, w->q))
			return found;
	}
	unsigned most = (unsigned)__builtin_popcountll(s->ground), size = 1;

	while (size <= most && !(found.zones = search_best_zones(s, s->ground, size, too_far)))
		size++;
	found.average = s->below;
	if (!found.zones || !s->by_distance || found.average > closest_at_most)
		return found;
	s->nr = 0; /* nobody asks whether closer ones would fit */
	found.closest = !search_best_zones(s, all, size, found.average);
	return found;
}

/* Whether any zone lists anything of it. */
static bool is_of_zones(const struct nrt_ask *ask, const struct nrt_part *part)
{
	uint64_t listed = 0;

	for (unsigned i = 0; i < part->nr; i++)
		listed |= ask->column[part->want[i].column].listed;
	return listed != 0;
}

/* The places from which the subtraction takes when these zones are chosen, in its order. As
 * released: NUMA ids ascending, and each as if it was a place in the list. */
static unsigned places_of(
	const struct nrt_ask *ask, const struct sched_topology *t, uint64_t zones, uint8_t *place)
{
	uint64_t ids = 0;
	unsigned nr = 0;

	for (uint64_t rest = zones; rest; rest &= rest - 1)
		ids |= UINT64_C(1) << t->zone_id[__builtin_ctzll(rest)];
	if (ask->args->compat)
		zones = ids & nodeset_first(t->nr_zones).bits;
	for (; zones; zones &= zones - 1)
		place[nr++] = (uint8_t)__builtin_ctzll(zones);
	return nr;
}

static void subtract_part(struct nrt_ask *ask, const struct sched_topology *t,
	const struct nrt_part *part, uint64_t zones)
{
	uint8_t place[ZONES_MAX];
	unsigned nr = places_of(ask, t, zones, place);

	for (unsigned i = 0; i < part->nr; i++) {
		struct nrt_column *c = &ask->column[part->want[i].column];
		struct quantity left = part->want[i].q;

		for (unsigned p = 0; p < nr && !quantity_is_zero(left); p++) {
			if (!(c->listed >> place[p] & 1))
				continue;
			struct quantity *has = &nrt_own(c, t)[place[p]];
			struct quantity took = quantity_compare(left, *has) < 0 ? left : *has;

			*has = quantity_sub(*has, took);
			left = quantity_sub(left, took);
		}
	}
}

int64_t nrt_least_numa_score(unsigned count, bool closest, unsigned max_numa_nodes)
{
	int64_t unit = SCHED_SCORE_MAX / (int64_t)max_numa_nodes;

	return SCHED_SCORE_MAX - count * unit + (closest ? unit / 2 : 0);
}

static void add_found_step(const struct nrt_ask *ask, const struct sched_topology *t,
	const struct nrt_part *part, const struct found *found)
{
	char zones[NRT_ZONES_TEXT_MAX];

	if (!found->zones)
		nrt_add_step(ask, part, "no zones have that much together");
	else if (!ask->search->by_distance)
		nrt_add_step(ask, part, "zones %s; distances do not count",
			nrt_zones_text(zones, t, found->zones));
	else
		nrt_add_step(ask, part, "zones %s, average distance %.4g: %s",
			nrt_zones_text(zones, t, found->zones), (double)found->average,
			found->closest ? "no others are closer" : "others are closer");
}

static int64_t least_numa_score(struct nrt_ask *ask, const struct sched_topology *t)
{
	const struct nrt_part *part;
	bool closest = true;
	unsigned most = 0;

	memset(ask->taken, 0, (ask->pod->nr_containers + 1) * sizeof *ask->taken);
	for (unsigned i = 0; (part = nrt_part(ask, t->scope, i)); i++) {
		if (!is_of_zones(ask, part))
			continue;
		struct found found = zones_required(ask, t, part);
		unsigned count = (unsigned)__builtin_popcountll(found.zones);

		if (ask->steps)
			add_found_step(ask, t, part, &found);
		if (!found.zones)
			return 0;
		ask->taken[i] = found.zones;
		closest = closest && found.closest;
		most = count > most ? count : most;
		if (nrt_part(ask, t->scope, i + 1))
			subtract_part(ask, t, part, found.zones);
	}
	return most ? nrt_least_numa_score(most, closest, t->max_numa_nodes) : SCHED_SCORE_MAX;
}

int64_t nrt_score_least_numa(struct nrt_ask *ask, const struct sched_topology *t)
{
	look_at_zones(ask, t);
	int64_t found = least_numa_score(ask, t);
	budget_return(&ask->budget, &ask->search->of_node);
	return found;
}

uint64_t nrt_required(struct nrt_ask *ask, const struct sched_topology *t, bool *closest)
{
	nrt_ask_of(ask, t);
	look_at_zones(ask, t);
	struct found found = zones_required(ask, t, &ask->whole);
	budget_return(&ask->budget, &ask->search->of_node);

	*closest = found.closest;
	return found.zones;
}
