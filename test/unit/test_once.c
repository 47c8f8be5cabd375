#include <numafit/once.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void a_text_is_new_only_the_first_time(void **state)
{
	struct once o = {0};

	(void)state;
	assert_true(once_is_new(&o, ""));
	assert_false(once_is_new(&o, ""));
	assert_true(once_is_new(&o, "one"));
	assert_false(once_is_new(&o, ""));
	assert_false(once_is_new(&o, "one"));
}

static void the_oldest_are_forgotten(void **state)
{
	struct once o = {0};
	char text[16];

	(void)state;
	for (unsigned i = 0; i <= ONCE_MAX; i++) {
		(void)snprintf(text, sizeof text, "text %u", i);
		assert_true(once_is_new(&o, text));
	}
	for (unsigned i = ONCE_MAX; i > 0; i--) {
		(void)snprintf(text, sizeof text, "text %u", i);
		assert_false(once_is_new(&o, text));
	}
	assert_true(once_is_new(&o, "text 0"));
	assert_true(once_is_new(&o, "text 1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_new_only_the_first_time),
		cmocka_unit_test(the_oldest_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
