/* Merging: lists against the literal cross product, families against the lists they stand for. */
#include <numafit/family.h>

#include "core_families.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SEED = 20261121, WORK_BYTES = 4 << 20 };

/* The kubelet's own words: compare the candidate with the best so far, one pair at a time. */
static bool replaces(
	const struct hint_space *s, unsigned aim, const struct hint *cur, const struct hint *cand)
{
	unsigned c = nodeset_count(cur->mask), d = nodeset_count(cand->mask);

	if (cur->preferred != cand->preferred)
		return cand->preferred;
	bool fitter = hint_compare_masks(s, cand->mask, cur->mask) < 0;
	if (cand->preferred || c > aim)
		return fitter;
	if (c == aim)
		return d == aim && fitter;
	if (d > aim)
		return false;
	if (d == aim || d > c)
		return true;
	return d == c && fitter;
}

struct product {
	const struct hint_space *space;
	const struct hint_list *lists;
	size_t nr;
	unsigned aim;
	struct hint best;
	bool found;
};

static void combine(struct product *p, size_t l, struct hint so_far, const struct nodeset *first)
{
	if (l == p->nr) {
		if (!nodeset_empty(so_far.mask) &&
			(!p->found || replaces(p->space, p->aim, &p->best, &so_far))) {
			p->best = so_far;
			p->found = true;
		}
		return;
	}
	for (size_t i = 0; i < p->lists[l].nr; i++) {
		const struct hint *h = &p->lists[l].hint[i];
		struct hint next = {
			.mask = so_far.mask, .preferred = so_far.preferred && h->preferred};

		if (!h->any) {
			next.mask.bits &= h->mask.bits;
			if (first && !nodeset_equal(*first, h->mask))
				next.preferred = false;
		}
		combine(p, l + 1, next, first || h->any ? first : &h->mask);
	}
}

static struct hint cross_product(
	const struct hint_space *space, const struct hint_list *lists, size_t nr)
{
	struct product p = {.space = space, .lists = lists, .nr = nr, .aim = lists_aim(lists, nr)};

	combine(&p, 0, (struct hint){.mask = space->all, .preferred = true}, NULL);
	return p.found ? p.best : (struct hint){.mask = space->all};
}

static void check_same(const char *what, unsigned seed, struct hint want, struct hint got)
{
	if (want.mask.bits != got.mask.bits || want.preferred != got.preferred)
		fail_msg("%s, case %u: want %#llx %d, got %#llx %d", what, seed,
			(unsigned long long)want.mask.bits, want.preferred,
			(unsigned long long)got.mask.bits, got.preferred);
}

static struct hint merged_families(const struct hint_space *s, const struct family *f, size_t nr)
{
	struct arena a;
	struct hint got;

	arena_init(&a, WORK_BYTES);
	assert_int_equal(
		hint_merge_families(s, f, nr, &(struct budget){.endless = true}, &a, &got), 0);
	arena_fini(&a);
	return got;
}

static void shuffle(struct random *r, struct hint *h, size_t nr)
{
	for (size_t i = nr; i > 1; i--) {
		size_t j = random_below(r, (unsigned)i);
		struct hint t = h[i - 1];

		h[i - 1] = h[j];
		h[j] = t;
	}
}

static void lists_merge_as_the_cross_product_does_in_any_order(void **state)
{
	struct random r = {SEED};
	struct hint hint[LISTS_MAX][8];

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		unsigned n = 1 + random_below(&r, 6), nr = random_below(&r, LISTS_MAX + 1);
		struct hint_list lists[LISTS_MAX];
		struct machine m;

		random_machine(&r, n, &m);
		for (unsigned l = 0; l < nr; l++) {
			lists[l] = (struct hint_list){
				hint[l], random_chance(&r, 5) ? 0 : 1 + random_below(&r, 6)};
			for (size_t i = 0; i < lists[l].nr;
				i++) /* one bit more than the machine has nodes */
				hint[l][i] = (struct hint){
					.mask = {random_below(&r, 2u << n)},
					.any = random_chance(&r, 10),
					.preferred = random_chance(&r, 50),
				};
		}
		struct hint want = cross_product(&m.space, lists, nr);
		check_same("lists", round, want, hint_merge_lists(&m.space, lists, nr));
		for (unsigned l = 0; l < nr; l++)
			shuffle(&r, hint[l], lists[l].nr);
		if (nr > 1) {
			struct hint_list t = lists[0];

			lists[0] = lists[nr - 1];
			lists[nr - 1] = t;
		}
		check_same("shuffled lists", round, want, hint_merge_lists(&m.space, lists, nr));
	}
}

enum { PRODUCTS_MAX = 30000 };

static void families_merge_as_the_lists_they_stand_for(void **state)
{
	static struct families x;
	unsigned preferred = 0, merged = 0, tried = 0;
	struct random r = {SEED + 1};

	(void)state;
	for (unsigned round = 0; round < 30000; round++) {
		random_families(&r, 1 + random_below(&r, 5), random_below(&r, LISTS_MAX + 1), &x);
		if (!x.products) /* whoever makes a family says FAMILY_NONE then */
			continue;
		const struct hint_space *space = &x.machine.space;
		struct hint want = hint_merge_lists(space, x.list, x.nr);
		check_same("families", round, want, merged_families(space, x.family, x.nr));
		merged++;
		preferred += want.preferred;
		if (x.products > PRODUCTS_MAX)
			continue;
		check_same("products", round, cross_product(space, x.list, x.nr), want);
		tried++;
	}
	assert_true(preferred > merged / 10 && merged - preferred > merged / 10);
	assert_true(tried > merged / 2);
}

/* The masks that intersecting one hint of each list gives, by counting: how many ways lead to a
 * mask that contains m is the product of each list's count of masks that contain m. */
static uint64_t *counted(unsigned n, const struct hint_list *lists, size_t nr)
{
	const uint64_t masks = UINT64_C(1) << n;
	uint64_t *ways = calloc(masks, sizeof *ways), *contain = calloc(masks, sizeof *contain);

	assert_true(ways && contain);
	ways[masks - 1] = 1;
	for (size_t l = 0; l < nr; l++) {
		memset(contain, 0, masks * sizeof *contain);
		for (size_t i = 0; i < lists[l].nr; i++)
			contain[lists[l].hint[i].any ? masks - 1 : lists[l].hint[i].mask.bits] = 1;
		for (unsigned bit = 0; bit < n; bit++)
			for (uint64_t m = 0; m < masks; m++)
				if (!(m >> bit & 1)) {
					contain[m] += contain[m | UINT64_C(1) << bit];
					ways[m] += ways[m | UINT64_C(1) << bit];
				}
		for (uint64_t m = 0; m < masks; m++)
			ways[m] *= contain[m];
		for (unsigned bit = 0; bit < n; bit++)
			for (uint64_t m = 0; m < masks; m++)
				if (!(m >> bit & 1))
					ways[m] -= ways[m | UINT64_C(1) << bit];
		for (uint64_t m = 0; m < masks; m++)
			ways[m] = ways[m] != 0;
	}
	free(contain);
	return ways;
}

static struct hint best_counted(const struct families *x)
{
	const struct hint_space *space = &x->machine.space;
	unsigned aim = lists_aim(x->list, x->nr);
	uint64_t *ways = counted(x->n, x->list, x->nr);
	struct hint best = {.mask = space->all};
	bool found = false;

	for (uint64_t m = 1; m <= space->all.bits; m++) {
		struct hint cand = {.mask = {m}, .preferred = ways[m] != 0};

		for (unsigned l = 0; l < x->nr && cand.preferred; l++)
			cand.preferred = list_prefers(&x->list[l], &cand.mask);
		if (ways[m] && (!found || replaces(space, aim, &best, &cand))) {
			best = cand;
			found = true;
		}
	}
	free(ways);
	return best;
}

static void on_up_to_16_nodes_counting_gives_the_same(void **state)
{
	static struct families x;
	unsigned preferred = 0, merged = 0;
	struct random r = {SEED + 3};

	(void)state;
	for (unsigned round = 0; merged < 150; round++) {
		/* FAMILY_ANY offers all masks, and then "preferred" is not a matter of one mask */
		random_families(
			&r, 6 + random_below(&r, NODES_WRITTEN - 5), 1 + random_below(&r, 3), &x);
		bool cares = x.products > 0;
		for (unsigned l = 0; l < x.nr; l++)
			cares = cares && x.family[l].kind == FAMILY_CAPACITY;
		if (!cares)
			continue;
		struct hint want = best_counted(&x);
		check_same(
			"counted", round, want, merged_families(&x.machine.space, x.family, x.nr));
		if (x.products < 1000000)
			check_same("counted lists", round, want,
				hint_merge_lists(&x.machine.space, x.list, x.nr));
		merged++;
		preferred += want.preferred;
	}
	assert_true(preferred > merged / 10 && merged - preferred > merged / 10);
}

static struct nodeset renamed(struct nodeset s, const unsigned *name)
{
	struct nodeset to = {0};

	nodeset_each (node, s)
		to = nodeset_or(to, nodeset_of(name[node]));
	return to;
}

/* The same families on nodes name[0] < name[1] < ... of 64. */
static void rename_families(const struct families *x, const unsigned *name, struct families *to)
{
	memset(&to->machine, 0, sizeof to->machine);
	to->n = x->n;
	to->nr = x->nr;
	to->machine.space.all = renamed(x->machine.space.all, name);
	to->machine.space.distance = x->machine.space.distance ? to->machine.distance : NULL;
	for (unsigned i = 0; i < x->n; i++)
		for (unsigned j = 0; j < x->n; j++)
			to->machine.distance[name[i]][name[j]] = x->machine.distance[i][j];
	for (unsigned l = 0; l < x->nr; l++) {
		struct family *f = &to->family[l];
		struct backing *b = &to->backing[l];

		*f = x->family[l];
		f->ground = renamed(f->ground, name);
		f->required = renamed(f->required, name);
		for (unsigned e = 0; e < f->nr_extra; e++)
			f->extra[e] = renamed(f->extra[e], name);
		for (unsigned i = 0; i < x->n; i++) {
			b->weight[0][name[i]] = x->backing[l].weight[0][i];
			b->weight[1][name[i]] = x->backing[l].weight[1][i];
			b->sockets_of[name[i]] = x->backing[l].sockets_of[i];
		}
		for (unsigned c = 0; c < 4; c++)
			b->cover[c] =
				(struct family_cover){renamed(x->backing[l].cover[c].nodes, name),
					x->backing[l].cover[c].count};
		f->sockets_of_node = f->sockets_of_node ? b->sockets_of : NULL;
		for (unsigned d = 0; d < f->nr_demands; d++) {
			f->demand[d].weight = f->demand[d].weight ? b->weight[d] : NULL;
			f->demand[d].cover = f->demand[d].cover ? b->cover : NULL;
		}
	}
}

static void node_numbers_and_the_order_of_families_do_not_change_the_merge(void **state)
{
	static struct families x, y;
	struct random r = {SEED + 4};

	(void)state;
	for (unsigned round = 0; round < 5000; round++) {
		unsigned name[NODES_MAX], step = 1 + random_below(&r, 7);

		random_families(&r, 2 + random_below(&r, 7), 1 + random_below(&r, LISTS_MAX), &x);
		if (!x.products)
			continue;
		for (unsigned i = 0; i < x.n; i++)
			name[i] = (i ? name[i - 1] + 1 : 0) + random_below(&r, step);
		rename_families(&x, name, &y);
		struct hint want = merged_families(&x.machine.space, x.family, x.nr);
		want.mask = renamed(want.mask, name);
		check_same(
			"renamed", round, want, merged_families(&y.machine.space, y.family, y.nr));
		struct family first = y.family[0];
		y.family[0] = y.family[y.nr - 1];
		y.family[y.nr - 1] = first;
		check_same(
			"shuffled", round, want, merged_families(&y.machine.space, y.family, y.nr));
	}
}

/* Distances that are the same for all sets change nothing; of two sets that differ only in how
 * close they are, the closer one is taken. */
static void without_distances_the_plain_rule_holds(void **state)
{
	static struct families x;
	struct random r = {SEED + 5};
	unsigned moved = 0;

	(void)state;
	for (unsigned round = 0; round < 5000; round++) {
		random_families(&r, 2 + random_below(&r, 5), 1 + random_below(&r, LISTS_MAX), &x);
		struct hint_space plain = {.all = x.machine.space.all};
		struct hint_space closest = {.all = plain.all, .distance = x.machine.distance};

		if (!x.products)
			continue;
		struct hint off = merged_families(&plain, x.family, x.nr);
		struct hint on = merged_families(&closest, x.family, x.nr);
		assert_int_equal(nodeset_count(off.mask), nodeset_count(on.mask));
		assert_int_equal(off.preferred, on.preferred);
		assert_true(hint_compare_masks(&closest, on.mask, off.mask) <= 0);
		assert_true(hint_compare_masks(&plain, off.mask, on.mask) <= 0);
		moved += on.mask.bits != off.mask.bits;
		for (unsigned i = 0; i < x.n; i++)
			for (unsigned j = 0; j < x.n; j++)
				x.machine.distance[i][j] = i == j ? 10 : 20;
		check_same(
			"equal distances", round, off, merged_families(&closest, x.family, x.nr));
	}
	assert_true(moved > 100);
}

static void a_spent_budget_gives_the_best_found_so_far_and_says_so(void **state)
{
	static uint64_t weight[NODES_MAX];
	static struct machine m;
	struct random r = {SEED + 2};
	struct family f = {.kind = FAMILY_CAPACITY,
		.ground = nodeset_first(64),
		.nr_demands = 1,
		.preferred_size = 12};
	struct hint first, again;

	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		weight[i] = 10 + random_below(&r, 20);
		for (unsigned j = 0; j < 64; j++)
			m.distance[i][j] = i == j ? 10 : (uint8_t)(11 + random_below(&r, 200));
	}
	m.space = (struct hint_space){.all = nodeset_first(64), .distance = m.distance};
	f.demand[0] = (struct family_demand){.weight = weight, .need = 240};
	for (unsigned i = 0; i < 2; i++) {
		struct budget b = budget_all_of(4000);
		struct arena a;

		arena_init(&a, WORK_BYTES);
		assert_int_equal(
			hint_merge_families(&m.space, &f, 1, &b, &a, i ? &again : &first), 1);
		arena_fini(&a);
	}
	assert_int_equal(nodeset_count(first.mask), 12);
	assert_true(family_has(&f, first.mask));
	assert_int_equal(first.mask.bits, again.mask.bits);
}

static void an_arena_that_is_too_small_is_reported_and_not_overrun(void **state)
{
	static char memory[4096];
	const struct hint_space space = {.all = {3}};
	const struct family f[2] = {{.kind = FAMILY_CAPACITY, .ground = {3}, .preferred_size = 1},
		{.kind = FAMILY_CAPACITY, .ground = {3}, .preferred_size = 2}};
	struct arena a;
	struct hint out;

	(void)state;
	for (size_t size = 0; size < sizeof memory; size += 8) {
		arena_init_fixed(&a, memory, size);
		assert_int_equal(hint_merge_families(
					 &space, f, 2, &(struct budget){.endless = true}, &a, &out),
			-12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_merge_as_the_cross_product_does_in_any_order),
		cmocka_unit_test(families_merge_as_the_lists_they_stand_for),
		cmocka_unit_test(on_up_to_16_nodes_counting_gives_the_same),
		cmocka_unit_test(node_numbers_and_the_order_of_families_do_not_change_the_merge),
		cmocka_unit_test(without_distances_the_plain_rule_holds),
		cmocka_unit_test(a_spent_budget_gives_the_best_found_so_far_and_says_so),
		cmocka_unit_test(an_arena_that_is_too_small_is_reported_and_not_overrun),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
