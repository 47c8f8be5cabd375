/* What numafit-extender remembers of pods between a decision and the binding, and how much of it.
 */
#include <jansson.h>
#include <numafit-extender/extender.h>
#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { MIB = 1 << 20, LARGE_MIB = 10, LARGE_FIT = KEPT_BYTES_MAX / MIB / LARGE_MIB };

/* A pod whose text has a little more than so many bytes. */
static json_t *pod_of(size_t bytes)
{
	auto_free char *text = xcalloc(bytes + 1, 1);

	memset(text, 'x', bytes);
	return json_pack("{s:{s:s}}", "metadata", "name", text);
}

static const char *uid_of(unsigned i)
{
	static char uid[16];

	(void)snprintf(uid, sizeof uid, "u%04u", 9999 - i); /* their order is another one */
	return uid;
}

static void keep(struct kept *k, unsigned i, size_t bytes)
{
	kept_put(k, uid_of(i), pod_of(bytes), &(struct kept_node){.node = i}, 1, i);
}

/* Whether exactly those from the first to the last one are there. */
static void assert_kept(const struct kept *k, unsigned first, unsigned last)
{
	assert_int_equal(kept_count(k), last - first + 1);
	for (unsigned i = first; i <= last; i++)
		assert_non_null(kept_pod(k, uid_of(i)));
}

static void the_oldest_of_too_many_pods_is_forgotten(void **state)
{
	struct kept *k = kept_new();

	(void)state;
	for (unsigned i = 0; i <= KEPT_PODS_MAX; i++)
		keep(k, i, 1);
	assert_kept(k, 1, KEPT_PODS_MAX);
	kept_free(k);
}

/* A pod has as many containers and annotations as its author likes. */
static void the_oldest_of_too_many_bytes_are_forgotten(void **state)
{
	struct kept *k = kept_new();

	(void)state;
	for (unsigned i = 0; i < LARGE_FIT; i++)
		keep(k, i, LARGE_MIB * MIB);
	assert_kept(k, 0, LARGE_FIT - 1);
	keep(k, 0, LARGE_MIB * MIB); /* the same one again takes no more */
	assert_kept(k, 0, LARGE_FIT - 1);
	keep(k, LARGE_FIT, LARGE_MIB * MIB);
	assert_kept(k, 1, LARGE_FIT);
	keep(k, LARGE_FIT + 1, 2 * LARGE_MIB * MIB);
	assert_kept(k, 3, LARGE_FIT + 1);
	kept_remove(k, uid_of(LARGE_FIT + 1));
	keep(k, LARGE_FIT + 1, LARGE_MIB * MIB);
	keep(k, LARGE_FIT + 2, LARGE_MIB * MIB);
	assert_kept(k, 3, LARGE_FIT + 2);
	kept_expire(k, LARGE_FIT + 2 + 15 * 60 * 1000); /* all but none */
	assert_int_equal(kept_count(k), 0);
	for (unsigned i = 0; i < LARGE_FIT; i++)
		keep(k, i, LARGE_MIB * MIB);
	assert_kept(k, 0, LARGE_FIT - 1);
	kept_free(k);
}

static void a_pod_that_is_larger_than_all_may_be_is_not_kept(void **state)
{
	struct kept *k = kept_new();

	(void)state;
	keep(k, 0, 1);
	keep(k, 1, KEPT_BYTES_MAX);
	assert_kept(k, 0, 0);
	keep(k, 0, KEPT_BYTES_MAX); /* what is known of it is no more true */
	assert_int_equal(kept_count(k), 0);
	kept_put(k, "none", NULL, NULL, 0, 1);
	assert_int_equal(kept_count(k), 1);
	kept_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_of_too_many_pods_is_forgotten),
		cmocka_unit_test(the_oldest_of_too_many_bytes_are_forgotten),
		cmocka_unit_test(a_pod_that_is_larger_than_all_may_be_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
