#include <numafit/err.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { TEXT_BYTES = sizeof((struct err *)0)->text };

static void an_error_has_a_code_and_a_text(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(err_set(&e, EINVAL, "range %u-%u runs backwards", 7u, 3u), -EINVAL);
	assert_int_equal(e.code, EINVAL);
	assert_string_equal(e.text, "range 7-3 runs backwards");
}

static void err_add_puts_a_place_in_front_of_the_text(void **state)
{
	struct err e;

	(void)state;
	(void)err_set(&e, ENOENT, "no such node");
	assert_int_equal(err_add(&e, -5, "container %s", "web"), -5);
	assert_int_equal(err_add(&e, -6, "line %d", 3), -6);
	assert_int_equal(e.code, ENOENT);
	assert_string_equal(e.text, "line 3: container web: no such node");
}

static void the_err_argument_may_be_null(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, EBUSY, "%s", "unheard"), -EBUSY);
	assert_int_equal(err_add(NULL, -3, "%s", "unheard"), -3);
}

static void a_text_that_is_too_long_is_cut_and_stays_a_string(void **state)
{
	char a[2 * TEXT_BYTES];
	struct err e;

	(void)state;
	memset(a, 'a', sizeof a - 1);
	a[sizeof a - 1] = '\0';
	(void)err_set(&e, EINVAL, "%s", a);
	assert_int_equal(strlen(e.text), TEXT_BYTES - 1);
	(void)err_add(&e, -1, "here");
	assert_int_equal(strlen(e.text), TEXT_BYTES - 1);
	assert_memory_equal(e.text, "here: aaa", 9);
	(void)err_add(&e, -1, "%s", a); /* leaves no room for what was there */
	assert_int_equal(strlen(e.text), TEXT_BYTES - 1);
	assert_null(strstr(e.text, "here"));
}

static void a_place_of_any_length_leaves_a_terminated_string(void **state)
{
	char place[TEXT_BYTES + 8];
	struct err e;

	(void)state;
	for (size_t len = 0; len < sizeof place; len++) {
		memset(place, 'p', len);
		place[len] = '\0';
		(void)err_set(&e, EINVAL, "inner");
		(void)err_add(&e, -1, "%s", place);
		size_t want = len + strlen(": inner");

		assert_int_equal(strlen(e.text), want < TEXT_BYTES ? want : TEXT_BYTES - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_has_a_code_and_a_text),
		cmocka_unit_test(err_add_puts_a_place_in_front_of_the_text),
		cmocka_unit_test(the_err_argument_may_be_null),
		cmocka_unit_test(a_text_that_is_too_long_is_cut_and_stays_a_string),
		cmocka_unit_test(a_place_of_any_length_leaves_a_terminated_string),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
