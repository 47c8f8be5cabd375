/* Merging: lists against the literal cross product, families against the lists they stand for. */
#include <numafit/family.h>
#include <numafit/hint.h>

#include "core_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SEED = 20261121, LISTS_MAX = 4, HINTS_MAX = 40, WORK_BYTES = 4 << 20 };

struct machine {
	struct hint_space space;
	uint8_t distance[NODES_MAX][NODES_MAX];
};

static void random_machine(struct random *r, unsigned n, struct machine *m)
{
	static const uint8_t steps[] = {11, 12, 20, 21, 32};
	unsigned style = random_below(r, 3); /* flat, symmetric, asymmetric */

	memset(m, 0, sizeof *m);
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < n; j++)
			m->distance[i][j] = i == j ? 10 : style ? steps[random_below(r, 5)] : 20;
	for (unsigned i = 0; i < n && style < 2; i++)
		for (unsigned j = 0; j < i; j++)
			m->distance[i][j] = m->distance[j][i];
	m->space.all = nodeset_first(n);
	if (random_chance(r, 50))
		m->space.distance = m->distance;
}

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

static unsigned aim_of(const struct hint_list *lists, size_t nr)
{
	unsigned aim = 0;

	for (size_t l = 0; l < nr; l++) {
		unsigned min = 99;

		for (size_t i = 0; i < lists[l].nr; i++)
			if (!lists[l].hint[i].any && nodeset_count(lists[l].hint[i].mask) < min)
				min = nodeset_count(lists[l].hint[i].mask);
		if (min < 99 && min > aim)
			aim = min;
	}
	return aim;
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
	struct product p = {.space = space, .lists = lists, .nr = nr, .aim = aim_of(lists, nr)};

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

static struct hint merged_lists(
	const struct hint_space *s, const struct hint_list *lists, size_t nr)
{
	struct arena a;
	struct hint got;

	arena_init(&a, WORK_BYTES);
	assert_int_equal(hint_merge_lists(s, lists, nr, &a, &got), 0);
	arena_fini(&a);
	return got;
}

static struct hint merged_families(const struct hint_space *s, const struct family *f, size_t nr)
{
	struct arena a;
	struct hint got;

	arena_init(&a, WORK_BYTES);
	assert_int_equal(hint_merge_families(s, f, nr, &a, &got), 0);
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
		check_same("lists", round, want, merged_lists(&m.space, lists, nr));
		for (unsigned l = 0; l < nr; l++)
			shuffle(&r, hint[l], lists[l].nr);
		if (nr > 1) {
			struct hint_list t = lists[0];

			lists[0] = lists[nr - 1];
			lists[nr - 1] = t;
		}
		check_same("shuffled lists", round, want, merged_lists(&m.space, lists, nr));
	}
}

static void random_family(
	struct random *r, unsigned n, uint64_t weight[2][NODES_MAX], struct family *f)
{
	*f = (struct family){.kind = FAMILY_CAPACITY, .nr_demands = 1 + random_below(r, 2)};
	f->ground.bits = random_chance(r, 60) ? nodeset_first(n).bits
					      : random_next(r) & nodeset_first(n).bits;
	f->required.bits =
		random_chance(r, 15) ? random_next(r) & random_next(r) & f->ground.bits : 0;
	for (unsigned d = 0; d < f->nr_demands; d++) {
		uint64_t sum = 0;

		for (unsigned i = 0; i < n; i++)
			sum += weight[d][i] = random_below(r, 6);
		f->demand[d] = (struct family_demand){
			.weight = weight[d],
			.base = random_below(r, 2),
			.need = random_below(r, (unsigned)sum + 2),
		};
	}
	for (unsigned x = random_chance(r, 40) ? 1 + random_below(r, 3) : 0; x > 0; x--) {
		struct nodeset mask = {1 + random_below(r, (unsigned)nodeset_first(n).bits)};

		mask.bits &= nodeset_first(n).bits;
		f->extra[f->nr_extra++] = mask;
	}
	f->preferred_size = 1 + random_below(r, n);
	if (random_chance(r, 10))
		f->kind = random_chance(r, 50) ? FAMILY_ANY : FAMILY_NONE;
}

/* The list that the family stands for. */
static struct hint_list written_out(const struct family *f, unsigned n, struct hint hint[1 << 5])
{
	size_t nr = 0;

	if (f->kind != FAMILY_CAPACITY)
		hint[nr++] = (struct hint){.any = true, .preferred = f->kind == FAMILY_ANY};
	for (uint64_t bits = 1; bits <= nodeset_first(n).bits && f->kind == FAMILY_CAPACITY;
		bits++) {
		struct nodeset mask = {bits};

		if (family_has(f, mask))
			hint[nr++] = (struct hint){.mask = mask,
				.preferred = nodeset_count(mask) == f->preferred_size};
	}
	return (struct hint_list){hint, nr};
}

static void families_merge_as_the_lists_they_stand_for(void **state)
{
	static uint64_t weight[LISTS_MAX][2][NODES_MAX];
	static struct family f[LISTS_MAX];
	static struct hint hint[LISTS_MAX][1 << 5];
	unsigned preferred = 0, merged = 0;
	struct random r = {SEED + 1};

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		unsigned n = 1 + random_below(&r, 5), nr = random_below(&r, LISTS_MAX + 1);
		struct hint_list lists[LISTS_MAX];
		bool empty = false;
		struct machine m;

		random_machine(&r, n, &m);
		for (unsigned l = 0; l < nr; l++) {
			random_family(&r, n, weight[l], &f[l]);
			lists[l] = written_out(&f[l], n, hint[l]);
			empty = empty || !lists[l].nr;
		}
		if (empty) /* whoever makes a family says FAMILY_NONE then */
			continue;
		struct hint want = merged_lists(&m.space, lists, nr);
		check_same("families", round, want, merged_families(&m.space, f, nr));
		merged++;
		preferred += want.preferred;
	}
	assert_true(preferred > merged / 10 && merged - preferred > merged / 10);
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
	m.space = (struct hint_space){nodeset_first(64), m.distance, 1000};
	f.demand[0] = (struct family_demand){.weight = weight, .need = 240};
	for (unsigned i = 0; i < 2; i++) {
		struct arena a;

		arena_init(&a, WORK_BYTES);
		assert_int_equal(hint_merge_families(&m.space, &f, 1, &a, i ? &again : &first), 1);
		arena_fini(&a);
	}
	assert_int_equal(nodeset_count(first.mask), 12);
	assert_true(family_has(&f, first.mask));
	assert_int_equal(first.mask.bits, again.mask.bits);
}

static void an_arena_that_is_too_small_is_told_and_not_overrun(void **state)
{
	char memory[4096];
	struct arena a;
	struct hint out, h = {.mask = {1}, .preferred = true};
	struct hint_list lists[2] = {{&h, 1}, {&h, 1}};

	(void)state;
	for (size_t size = 0; size < 600; size += 8) {
		arena_init_fixed(&a, memory, size);
		assert_int_equal(
			hint_merge_lists(&(struct hint_space){.all = {3}}, lists, 2, &a, &out),
			-12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_merge_as_the_cross_product_does_in_any_order),
		cmocka_unit_test(families_merge_as_the_lists_they_stand_for),
		cmocka_unit_test(a_spent_budget_gives_the_best_found_so_far_and_says_so),
		cmocka_unit_test(an_arena_that_is_too_small_is_told_and_not_overrun),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
