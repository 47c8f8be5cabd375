#include <numafit/arena.h>

#include "core_random.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { ALIGN = alignof(max_align_t), LIMIT = 1 << 20 };

static bool is_zero(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

/* Pieces of random sizes, each filled with its own number: none may run into another. */
static void check_pieces(struct arena *a, unsigned seed)
{
	enum { PIECES = 200, PIECE_MAX = 3000 };
	struct random r = {seed};
	char *piece[PIECES];
	size_t size[PIECES], sum = 0;

	for (unsigned i = 0; i < PIECES; i++) {
		size[i] = random_below(&r, PIECE_MAX);
		sum += size[i];
		piece[i] = arena_alloc(a, size[i]);
		assert_non_null(piece[i]);
		assert_int_equal((uintptr_t)piece[i] % ALIGN, 0);
		assert_true(is_zero(piece[i], size[i]));
		memset(piece[i], (int)i + 1, size[i]);
	}
	assert_true(a->given >= sum && a->given <= sum + PIECES * ALIGN);
	for (unsigned i = 0; i < PIECES; i++)
		for (size_t b = 0; b < size[i]; b++)
			assert_int_equal((unsigned char)piece[i][b], (unsigned char)(i + 1));
}

static void pieces_are_zeroed_aligned_and_apart(void **state)
{
	struct arena a;

	(void)state;
	arena_init(&a, LIMIT);
	for (unsigned round = 0; round < 20; round++) {
		check_pieces(&a, round + 1); /* in what was written before, too */
		arena_fini(&a);
		assert_int_equal(a.given, 0);
		assert_int_equal(a.limit_bytes, LIMIT);
	}
}

static void fixed_memory_serves_the_same_and_is_zeroed_anew(void **state)
{
	static char mem[LIMIT];
	struct arena a;

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		memset(mem, 0xee, sizeof mem);
		arena_init_fixed(&a, mem + round, sizeof mem - round); /* at any address */
		check_pieces(&a, round + 1);
		assert_null(a.blocks);
		arena_fini(&a);
	}
}

static void an_allocation_beyond_the_limit_returns_null(void **state)
{
	static const size_t limits[] = {0, 1, 15, 16, 17, 1000, 65536, 100000};
	struct arena a;

	(void)state;
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		for (size_t step = 1; step < 100; step += 7) {
			arena_init(&a, limits[i]);
			while (arena_alloc(&a, step))
				assert_true(a.given <= limits[i]);
			assert_true(limits[i] - a.given < step + ALIGN);
			arena_fini(&a);
		}
	arena_init(&a, LIMIT);
	assert_null(arena_alloc(&a, LIMIT + 1));
	assert_non_null(arena_alloc(&a, LIMIT));
	assert_null(arena_alloc(&a, 1));
	arena_fini(&a);
	assert_non_null(arena_alloc(&a, LIMIT)); /* all was given back */
	arena_fini(&a);
}

static void an_arena_in_fixed_memory_never_allocates_outside_of_it(void **state)
{
	char mem[256 + 2 * ALIGN];
	struct arena a;

	(void)state;
	for (size_t skew = 0; skew < ALIGN; skew++)
		for (size_t len = 0; len <= 256; len += 13) {
			char *end = mem + skew + len;

			memset(mem, 0xee, sizeof mem);
			arena_init_fixed(&a, mem + skew, len);
			for (char *p; (p = arena_alloc(&a, 8));)
				assert_true(p >= mem + skew && p + 8 <= end);
			for (char *p = end; p < mem + sizeof mem; p++)
				assert_int_equal((unsigned char)*p, 0xee);
			arena_fini(&a);
		}
}

static void sizes_that_overflow_are_refused(void **state)
{
	struct arena a;

	(void)state;
	arena_init(&a, SIZE_MAX);
	assert_non_null(arena_alloc(&a, 1));
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - ALIGN / 2));
	assert_null(arena_array(&a, SIZE_MAX / 2, 3));
	assert_null(arena_strndup(&a, "", SIZE_MAX));
	assert_non_null(arena_array(&a, 10, 24));
	arena_fini(&a);
}

static void an_allocation_of_zero_bytes_is_not_null(void **state)
{
	struct arena a, zeros = {0};

	(void)state;
	arena_init(&a, LIMIT);
	char *p = arena_alloc(&a, 0), *q = arena_array(&a, 0, 8);
	assert_non_null(p);
	assert_non_null(q);
	assert_ptr_not_equal(p, q);
	arena_fini(&a);
	arena_fini(&zeros);
	arena_fini(NULL);
	assert_null(arena_alloc(&zeros, 1));
}

static void strings_are_copied_up_to_their_length(void **state)
{
	static const char text[] = "as long as a few of the pieces that the arena gives out";
	struct arena a;

	(void)state;
	arena_init(&a, LIMIT);
	assert_string_equal(arena_strndup(&a, "numafit", 4), "numa");
	assert_string_equal(arena_strndup(&a, NULL, 0), "");
	assert_memory_equal(arena_strndup(&a, "a\0b", 3), "a\0b", 4);
	for (size_t len = 0; len < sizeof text; len++) {
		const char *copy = arena_strndup(&a, text, len);

		(void)memset(arena_alloc(&a, 1), 'x', 1); /* the next piece is not in its end */
		assert_int_equal(strlen(copy), len);
	}
	arena_fini(&a);
}

static void memory_allocated_since_a_mark_is_released(void **state)
{
	alignas(max_align_t) char memory[256];
	struct arena a;

	(void)state;
	arena_init_fixed(&a, memory, sizeof memory);
	char *kept = arena_strndup(&a, "kept", 4);
	struct arena_mark before = arena_mark(&a);
	char *first = arena_alloc(&a, 100);
	assert_non_null(first);
	assert_null(arena_alloc(&a, 200));
	(void)memset(first, 'x', 100);
	arena_release(&a, before);
	assert_ptr_equal(arena_alloc(&a, 200), first);
	assert_int_equal(first[0], 0);
	arena_release(&a, before);
	arena_release(&a, before);
	assert_int_equal(a.left, sizeof memory - a.given);
	assert_string_equal(kept, "kept");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_zeroed_aligned_and_apart),
		cmocka_unit_test(fixed_memory_serves_the_same_and_is_zeroed_anew),
		cmocka_unit_test(an_allocation_beyond_the_limit_returns_null),
		cmocka_unit_test(an_arena_in_fixed_memory_never_allocates_outside_of_it),
		cmocka_unit_test(sizes_that_overflow_are_refused),
		cmocka_unit_test(an_allocation_of_zero_bytes_is_not_null),
		cmocka_unit_test(strings_are_copied_up_to_their_length),
		cmocka_unit_test(memory_allocated_since_a_mark_is_released),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
