#include <apiserver/own_slices.h>

#include <codec/api_json.h>
#include <numafit/text.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define OURS "n1-numafit.io"

static int setup(void **state)
{
	struct own_slices *s = xcalloc(1, sizeof *s);

	own_slices_init(s, "n1");
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	own_slices_fini(*state);
	free(*state);
	return 0;
}

/* A slice of the driver, of node n1. */
static bool put(struct own_slices *s, const char *name, const char *version, unsigned generation)
{
	char text[1024];
	struct json_t *v;

	(void)snprintf(text, sizeof text,
		"{\"metadata\":{\"name\":\"%s\",\"resourceVersion\":\"%s\"},\"spec\":{\"driver\":"
		"\"numafit.io\",\"nodeName\":\"n1\",\"pool\":{\"name\":\"n1\",\"generation\":%u}}}",
		name, version, generation);
	assert_int_equal(api_json_parse(text, strlen(text), &v, NULL), 0);
	bool news = own_slices_put(s, v);
	api_json_free(v);
	return news;
}

static void the_slice_of_our_name_is_kept_and_others_are_extra(void **state)
{
	struct own_slices *s = *state;

	assert_true(put(s, OURS, "7", 3));
	assert_true(s->own.there);
	assert_string_equal(s->own.version, "7");
	assert_int_equal(s->own.generation, 3);
	assert_int_not_equal(s->own.odd.code, 0); /* it has no devices */
	assert_false(put(s, "a", "8", 9));
	assert_false(put(s, "a", "9", 5));
	assert_int_equal(s->extra.nr, 1);
	assert_int_equal(s->newest, 9);
	assert_false(own_slices_remove(s, "a", "10"));
	assert_int_equal(s->extra.nr, 0);
	assert_true(own_slices_remove(s, OURS, "11"));
	assert_false(s->own.there);
	assert_int_equal(s->newest, 9);
}

static void what_is_older_or_known_already_is_passed_by(void **state)
{
	struct own_slices *s = *state;

	assert_true(put(s, OURS, "10", 1));
	assert_false(put(s, OURS, "10", 2));
	assert_false(put(s, OURS, "9", 2));
	assert_int_equal(s->own.generation, 1);
	assert_false(own_slices_remove(s, OURS, "9"));
	assert_true(s->own.there);
	assert_true(own_slices_remove(s, OURS, "10"));
	assert_false(put(s, OURS, "10", 1));
	assert_false(s->own.there);
	assert_true(put(s, OURS, "11", 1));
	assert_true(own_slices_remove(s, OURS, "")); /* as of now */
	assert_true(put(s, OURS, "what?", 4));       /* nobody knows what is older */
	assert_true(put(s, OURS, "what?", 5));
	assert_int_equal(s->own.generation, 5);
}

static void what_a_new_list_does_not_name_is_gone(void **state)
{
	struct own_slices *s = *state;

	(void)put(s, OURS, "10", 1);
	(void)put(s, "a", "1", 1);
	(void)put(s, "b", "1", 1);
	own_slices_begin(s);
	assert_true(put(s, OURS, "5", 2)); /* a store that was restored */
	(void)put(s, "b", "1", 1);
	own_slices_sweep(s);
	assert_true(s->own.there);
	assert_int_equal(s->extra.nr, 1);
	assert_string_equal(s->extra.at[0].name, "b");
	own_slices_begin(s);
	own_slices_sweep(s);
	assert_false(s->own.there);
	assert_int_equal(s->extra.nr, 0);
}

static void their_number_and_names_have_limits(void **state)
{
	struct own_slices *s = *state;
	char name[SLICE_OBJECT_NAME_MAX + 1];

	for (unsigned i = 0; i < OWN_SLICES_EXTRA_MAX + 2; i++) {
		(void)snprintf(name, sizeof name, "s%u", i);
		(void)put(s, name, "1", 1);
	}
	assert_int_equal(s->extra.nr, OWN_SLICES_EXTRA_MAX);
	(void)own_slices_remove(s, "s0", "2");
	(void)snprintf(name, sizeof name, "%0*d", SLICE_OBJECT_NAME_MAX, 0);
	(void)put(s, name, "1", 1);
	assert_int_equal(s->extra.nr, OWN_SLICES_EXTRA_MAX - 1);
	(void)put(s, "", "1", 1);
	assert_int_equal(s->extra.nr, OWN_SLICES_EXTRA_MAX - 1);
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(the_slice_of_our_name_is_kept_and_others_are_extra),
		IN_WORLD(what_is_older_or_known_already_is_passed_by),
		IN_WORLD(what_a_new_list_does_not_name_is_gone),
		IN_WORLD(their_number_and_names_have_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
