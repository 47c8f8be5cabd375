/* vec.h and what it stands on, mem.h. */
#include <numafit/vec.h>

#include "core_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

struct item {
	unsigned key;
	char text[20];
};
struct items {
	VEC(struct item);
};

static void pushing_keeps_what_was_there(void **state)
{
	struct items v = {0};

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		struct item *item = vec_push(&v);

		assert_int_equal(item->key, 0);
		assert_string_equal(item->text, "");
		*item = (struct item){i, "dirty"};
	}
	assert_int_equal(v.nr, 1000);
	assert_true(v.cap >= v.nr);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(v.at[i].key, i);
	vec_fini(&v);
	assert_null(v.at);
	assert_int_equal(v.nr + v.cap, 0);
}

/* The same in a plain array, moved by hand. */
static void inserting_and_removing_keep_the_order(void **state)
{
	enum { MODEL_MAX = 400 };
	unsigned model[MODEL_MAX];
	struct random r = {11};
	struct items v = {0};
	size_t nr = 0;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		if (nr < MODEL_MAX && (!nr || random_chance(&r, 52))) {
			size_t at = random_below(&r, (unsigned)nr + 1);
			struct item *item = vec_insert(&v, at);

			assert_int_equal(item->key, 0);
			for (size_t i = nr++; i > at; i--)
				model[i] = model[i - 1];
			model[at] = item->key = round + 1;
		} else {
			size_t at = random_below(&r, (unsigned)nr);

			vec_remove(&v, at);
			nr--;
			for (size_t i = at; i < nr; i++)
				model[i] = model[i + 1];
		}
		assert_int_equal(v.nr, nr);
		for (size_t i = 0; i < nr; i++)
			assert_int_equal(v.at[i].key, model[i]);
	}
	vec_fini(&v);
}

static void a_new_element_is_zeroed_where_another_was_removed(void **state)
{
	struct items v = {0};

	(void)state;
	vec_push(&v)->key = 7;
	vec_remove(&v, 0);
	assert_int_equal(vec_push(&v)->key, 0);
	vec_remove(&v, 0);
	assert_int_equal(vec_insert(&v, 0)->key, 0);
	vec_fini(&v);
}

static void the_helpers_for_memory_zero_copy_and_hand_over(void **state)
{
	auto_free char *empty = xstrdup(NULL);
	auto_free char *copy = xstrdup("text");
	auto_free unsigned *numbers = xcalloc(3, sizeof *numbers);

	(void)state;
	assert_string_equal(empty, "");
	assert_string_equal(copy, "text");
	assert_int_equal(numbers[0] | numbers[1] | numbers[2], 0);
	numbers[2] = 5;
	numbers = xrealloc(numbers, 1000, sizeof *numbers);
	assert_int_equal(numbers[2], 5);
	auto_free void *none = xcalloc(0, 0);
	assert_non_null(none);
	char *mine = steal(copy);
	assert_null(copy);
	free(mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pushing_keeps_what_was_there),
		cmocka_unit_test(inserting_and_removing_keep_the_order),
		cmocka_unit_test(a_new_element_is_zeroed_where_another_was_removed),
		cmocka_unit_test(the_helpers_for_memory_zero_copy_and_hand_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
