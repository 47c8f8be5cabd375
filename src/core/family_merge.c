/* Merging rules. The kubelet tries every way to take one mask of each family and keeps the best;
 * but the best depends only on two sets of masks, and neither has to be written out:
 *   - preferred: families that prefer one size, and a set of that size that all of them have;
 *   - else intersections. A family is up-closed: adding nodes of its ground set keeps a mask
 *     valid. So a set s comes out of intersecting one mask of each family exactly when every
 *     node of the common ground set outside s can be dropped by one of the families without
 *     failing its demands. Masks that stand outside the rule (extra) are tried one by one.
 * A strategy comes in when all that is known but which one of equals: the sets of the size and
 * closeness that have been found are searched once more. */
#include <numafit/family.h>

#include "dropping.h"

#include <errno.h>
#include <string.h>

enum { PATTERNS_PER_STEP = 16, NODES_PER_STEP = 4 };

static unsigned smallest_mask(const struct family *f, struct search *s)
{
	unsigned min = 0;

	if (family_in_rule(f, f->ground)) {
		search_begin(s, f->ground);
		if (search_add_family(s, f))
			min = search_smallest(s);
	}
	for (unsigned i = 0; i < f->nr_extra; i++) {
		unsigned count = nodeset_count(f->extra[i]);

		if (!min || count < min)
			min = count;
	}
	return min;
}

unsigned family_smallest(const struct family *f, struct budget *b, struct arena *a)
{
	struct nodeset all = f->ground;

	for (unsigned i = 0; i < f->nr_extra; i++)
		all = nodeset_or(all, f->extra[i]);
	struct search *s = search_new(&(struct hint_space){.all = all}, b, a);
	return s ? smallest_mask(f, s) : 0;
}

/* The families that have a preference, and what the others amount to. */
struct merge {
	const struct hint_space *space;
	const struct family **family;
	unsigned nr;
	bool all_preferred;     /* no family is FAMILY_NONE */
	struct scoring scoring; /* ALLOCATION_NONE until only equals are left */
	struct nodeset taken;   /* no result */
	struct search *search;
	struct budget *budget;
	struct arena *arena;
};

static void keep_better_mask(const struct merge *m, struct nodeset *best, struct nodeset mask)
{
	if (nodeset_empty(mask) || nodeset_equal(mask, m->taken))
		return;
	if (nodeset_empty(*best) || scoring_compare(m->space, &m->scoring, mask, *best) < 0)
		*best = mask;
}

/* The best set of size k that the search finds into *best if it beats it. 1: budget ran out. */
static int keep_best_found(struct merge *m, unsigned k, struct nodeset *best)
{
	struct nodeset found = *best;
	int rc;

	if (!nodeset_empty(m->taken))
		search_except(m->search, m->taken);
	if (m->scoring.strategy)
		rc = search_tied(m->search, &m->scoring, &found);
	else
		rc = search_best(m->search, k, &found);
	keep_better_mask(m, best, found);
	return rc > 0;
}

/* Whether there are equals of *best to look for; the scoring counts from now on. */
static bool begin_ties(struct merge *m, int rc, struct nodeset best)
{
	if (!rc && !nodeset_empty(best))
		m->scoring.strategy = m->space->strategy;
	return m->scoring.strategy;
}

/* Without budget there is no use in going on for what is only good to know. */
static bool goes_on(const struct merge *m, int rc)
{
	return nodeset_empty(m->taken) ? rc >= 0 : !rc;
}

/* The best preferred set of k nodes by the families' rules into *best if it beats it. Returns as
 * best_preferred() does. */
static int best_of_size(struct merge *m, unsigned k, struct nodeset *best)
{
	search_begin(m->search, m->space->all);
	for (unsigned i = 0; i < m->nr; i++) {
		const struct family *f = m->family[i];

		/* a set of another size is preferred for the sockets that it touches, if at all */
		if (f->preferred_size != k &&
			!(f->preferred_sockets &&
				search_touch(m->search, f->sockets_of_node, f->preferred_sockets)))
			return 0;
		if (!search_add_family(m->search, f))
			return -ENOMEM;
	}
	return keep_best_found(m, k, best);
}

/* The best extra mask that all families have and prefer into *best if it beats it. */
static void best_of_extra(const struct merge *m, struct nodeset *best)
{
	for (unsigned i = 0; i < m->nr; i++)
		for (unsigned x = 0; x < m->family[i]->nr_extra; x++) {
			struct nodeset mask = m->family[i]->extra[x];
			unsigned f = 0;

			while (f < m->nr && family_has(m->family[f], mask) &&
				family_prefers(m->family[f], mask))
				f++;
			if (f == m->nr)
				keep_better_mask(m, best, nodeset_and(mask, m->space->all));
		}
}

/* 0 with the best preferred mask, empty when there is none; 1 when the budget ran out. */
static int best_preferred(struct merge *m, struct nodeset *best)
{
	const unsigned n = nodeset_count(m->space->all);
	int rc = 0;

	*best = (struct nodeset){0};
	if (!m->all_preferred)
		return 0;
	best_of_extra(m, best);
	for (unsigned k = 1; k <= n && goes_on(m, rc); k++) {
		if (!nodeset_empty(*best) && k > nodeset_count(*best))
			break;
		int more = best_of_size(m, k, best);
		rc = more < 0 ? more : rc | more;
	}
	if (begin_ties(m, rc, *best)) {
		best_of_extra(m, best);
		rc = best_of_size(m, nodeset_count(*best), best);
	}
	return rc;
}

/* One choice of the families that contribute an extra mask: what those masks leave of the machine,
 * and which families (bit i) still follow their rule. */
struct pattern {
	struct nodeset mask;
	uint64_t by_rule;
};
struct patterns {
	struct pattern *at;
	size_t nr, cap;
};

/* Without steps only the first one is kept. */
static int add_pattern(struct patterns *p, struct pattern new, struct budget *b, struct arena *a)
{
	if (nodeset_empty(new.mask) || (!budget_spend(b, 1 + p->nr / PATTERNS_PER_STEP) && p->nr))
		return 0;
	for (size_t i = 0; i < p->nr; i++)
		if (nodeset_equal(p->at[i].mask, new.mask) && p->at[i].by_rule == new.by_rule)
			return 0;
	if (p->nr == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : NODES_MAX;
		struct pattern *bigger = arena_array(a, cap, sizeof *bigger);

		if (!bigger)
			return -ENOMEM;
		if (p->nr)
			memcpy(bigger, p->at, p->nr * sizeof *bigger);
		p->at = bigger;
		p->cap = cap;
	}
	p->at[p->nr++] = new;
	return 0;
}

static int collect_patterns(const struct merge *m, struct patterns *out)
{
	struct patterns now = {0};
	int rc = add_pattern(&now, (struct pattern){.mask = m->space->all}, m->budget, m->arena);

	for (unsigned i = 0; i < m->nr && !rc; i++) {
		const struct family *f = m->family[i];
		struct patterns next = {0};
		bool rule = family_in_rule(f, f->ground);

		for (size_t p = 0; p < now.nr && !rc; p++) {
			if (rule)
				rc = add_pattern(&next,
					(struct pattern){now.at[p].mask,
						now.at[p].by_rule | UINT64_C(1) << i},
					m->budget, m->arena);
			for (unsigned x = 0; x < f->nr_extra && !rc; x++)
				rc = add_pattern(&next,
					(struct pattern){nodeset_and(now.at[p].mask, f->extra[x]),
						now.at[p].by_rule},
					m->budget, m->arena);
		}
		now = next;
	}
	*out = now;
	return rc;
}

/* The best set of size k that the pattern reaches into *best if it beats it. 1: budget ran out. */
static int best_reachable(
	struct merge *m, struct pattern p, unsigned k, struct dropping *d, struct nodeset *best)
{
	if (!budget_spend(m->budget, 1))
		return 1;
	dropping_begin(d, m->search, p.mask, m->family, p.by_rule);
	if (!d->nr) {
		if (nodeset_count(p.mask) == k)
			keep_better_mask(m, best, p.mask);
		return 0;
	}
	search_begin(m->search, d->common);
	/* when all of one family's nodes are there, what it does not drop is a set of its own */
	if (d->nr == 1 && nodeset_within(d->slack[0].family->ground, p.mask)) {
		if (!search_add_family(m->search, d->slack[0].family))
			return 1;
		return keep_best_found(m, k, best);
	}
	dropping_prepare(d);
	(void)budget_spend(m->budget, nodeset_count(d->common) * d->nr / NODES_PER_STEP);
	if (!search_add(m->search, &d->kept))
		return 1;
	search_limit(m->search, dropping_reaches, d);
	bool by_demands = true;
	for (unsigned i = 0; i < d->nr && by_demands; i++)
		by_demands = search_limit_by(m->search, d->slack[i].family);
	if (!by_demands)
		search_limit(m->search, dropping_reaches, d);
	return keep_best_found(m, k, best) || d->unsure;
}

static int best_of_patterns(struct merge *m, const struct patterns *p, unsigned k,
	struct dropping *d, struct nodeset *best)
{
	int rc = 0;

	for (size_t i = 0; i < p->nr && goes_on(m, rc); i++)
		rc |= best_reachable(m, p->at[i], k, d, best);
	return rc;
}

/* When no step is left to look at what a pattern reaches: all that it leaves, which is always one
 * of those sets, and has enough of everything that follows its rule. */
static void fall_back(
	const struct merge *m, const struct patterns *p, unsigned aim, struct nodeset *best)
{
	for (size_t i = 0; i < p->nr && nodeset_empty(m->taken); i++) {
		struct nodeset mask = p->at[i].mask;

		for (unsigned f = 0; f < m->nr; f++)
			if (p->at[i].by_rule >> f & 1)
				mask = nodeset_and(mask, m->family[f]->ground);
		if (!nodeset_empty(mask) &&
			(nodeset_empty(*best) || hint_beats(m->space, aim, mask, *best)))
			*best = mask;
	}
}

static int best_intersection(struct merge *m, struct nodeset *best)
{
	struct dropping *d = arena_alloc(m->arena, sizeof *d);
	struct patterns patterns = {0};
	unsigned aim = 0, sizes = nodeset_count(m->space->all);

	for (unsigned i = 0; i < m->nr; i++) {
		unsigned min = smallest_mask(m->family[i], m->search);

		aim = min > aim ? min : aim;
	}
	int rc = d ? collect_patterns(m, &patterns) : -ENOMEM;
	*best = (struct nodeset){0};
	for (unsigned i = 0; goes_on(m, rc) && i < sizes && nodeset_empty(*best); i++) {
		/* the size aimed at comes first, then smaller ones, then larger ones */
		unsigned size = i < aim ? aim - i : i + 1;

		rc |= best_of_patterns(m, &patterns, size, d, best);
	}
	if (begin_ties(m, rc, *best))
		rc = best_of_patterns(m, &patterns, nodeset_count(*best), d, best);
	if (rc > 0 && nodeset_empty(*best))
		fall_back(m, &patterns, aim, best);
	return rc;
}

/* As hint_merge_families(); an empty mask when nothing comes out. */
static int merge_all(struct merge *m, const struct family *families, size_t nr, struct hint *out)
{
	struct nodeset best = {0};

	m->all_preferred = true;
	m->scoring = (struct scoring){.family = families, .nr = nr};
	m->family = arena_array(m->arena, nr, sizeof *m->family);
	if (!m->family || nr > MERGE_FAMILIES)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		if (families[i].kind == FAMILY_CAPACITY)
			m->family[m->nr++] = &families[i];
		m->all_preferred = m->all_preferred && families[i].kind != FAMILY_NONE;
	}
	if (!m->nr) {
		keep_better_mask(m, &best, m->space->all);
		*out = (struct hint){.mask = best, .preferred = m->all_preferred};
		return 0;
	}
	m->search = search_new(m->space, m->budget, m->arena);
	if (!m->search)
		return -ENOMEM;
	int rc = best_preferred(m, &best);
	if (rc < 0)
		return rc;
	bool preferred = !nodeset_empty(best);
	if (!preferred && goes_on(m, rc)) {
		int more = best_intersection(m, &best);

		if (more < 0 || !rc)
			rc = more > 0 ? MERGE_CUT_NOT_PREFERRED : more;
	}
	if (rc >= 0)
		*out = (struct hint){.mask = best, .preferred = preferred};
	return rc;
}

int hint_merge_families(const struct hint_space *space, const struct family *families, size_t nr,
	struct budget *b, struct arena *a, struct hint *out)
{
	struct merge m = {.space = space, .budget = b, .arena = a};
	int rc = merge_all(&m, families, nr, out);

	if (rc >= 0 && nodeset_empty(out->mask))
		out->mask = space->all;
	return rc;
}

int hint_merge_others(const struct hint_space *space, const struct family *families, size_t nr,
	struct nodeset taken, struct budget *b, struct arena *a, struct hint *out)
{
	struct merge m = {.space = space, .budget = b, .arena = a, .taken = taken};
	int rc = merge_all(&m, families, nr, out);

	return rc || !nodeset_empty(out->mask) ? rc : -ENOENT;
}
