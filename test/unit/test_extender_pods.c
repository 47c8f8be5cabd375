/* What numafit-extender remembers of pods until they run, and between a decision and the binding,
 * and how much of it. */
#include <jansson.h>
#include <malloc.h>
#include <numafit-extender/extender.h>
#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { MIB = 1 << 20, LARGE_MIB = 10, LARGE_FIT = PODS_BYTES_MAX / MIB / LARGE_MIB };

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
	json_t *pod = pod_of(bytes);

	kept_put(k, uid_of(i), pod, &(struct kept_node){.node = kept_node_name("n")}, 1, i);
	json_decref(pod);
}

/* Whether exactly those from the first to the last one are there. */
static void assert_kept(const struct kept *k, unsigned first, unsigned last)
{
	assert_int_equal(kept_count(k), last - first + 1);
	for (unsigned i = first; i <= last; i++)
		assert_non_null(kept_node_find(k, uid_of(i), "n"));
}

/* Of malloc(), in all. */
static size_t allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Of 512 containers with 64 requests and 64 limits: an author may have that, in 1 MiB. */
static json_t *of_many_values(void)
{
	json_t *containers = json_array(), *resources = json_object(), *one;
	char name[16];

	for (unsigned i = 0; i < 64; i++) {
		(void)snprintf(name, sizeof name, "a.b/c%u", i);
		(void)json_object_set_new(resources, name, json_string("1"));
	}
	one = json_pack("{s:s, s:{s:O, s:o}}", "name", "main", "resources", "requests", resources,
		"limits", resources);
	for (unsigned i = 0; i < 512; i++)
		(void)json_array_append(containers, one);
	json_decref(one);
	return json_pack(
		"{s:{s:s}, s:{s:o}}", "metadata", "name", "p", "spec", "containers", containers);
}

static void assert_is_pod(json_t *pod)
{
	assert_int_equal(
		json_array_size(json_object_get(json_object_get(pod, "spec"), "containers")), 512);
	json_decref(pod);
}

/* Values have ten times as many bytes as their text. */
static void a_pod_takes_no_more_memory_than_its_text(void **state)
{
	json_t *pod = of_many_values();
	auto_free char *text = json_dumps(pod, JSON_COMPACT);
	struct unbound *u = unbound_new();
	struct kept *k = kept_new();
	const size_t before = allocated(), most = strlen(text) * 9 / 8;

	(void)state;
	assert_true(unbound_put(u, "u", pod)); /* a sanitizer's allocations are not counted */
	assert_true(allocated() - before <= most);
	kept_put(k, "u", pod, NULL, 0, 0);
	assert_true(allocated() - before <= 2 * most);
	assert_is_pod(unbound_find(u, "u"));
	assert_is_pod(kept_pod(k, "u"));
	unbound_free(u);
	kept_free(k);
	json_decref(pod);
}

static json_t *large_pod(void)
{
	static json_t *pod;

	if (!pod)
		pod = pod_of((size_t)LARGE_MIB * MIB);
	return pod;
}

static struct unbound *full_one(void)
{
	struct unbound *u = unbound_new();

	for (unsigned i = 0; i < LARGE_FIT; i++)
		assert_true(unbound_put(u, uid_of(i), large_pod()));
	return u;
}

static void no_more_than_its_uid_is_known_of_a_pod_that_there_is_no_room_for(void **state)
{
	struct unbound *u = full_one();

	(void)state;
	assert_true(unbound_put(u, uid_of(0), large_pod())); /* the same one again takes no more */
	assert_false(unbound_put(u, "more", large_pod()));
	assert_true(unbound_knows(u, "more"));
	assert_null(unbound_find(u, "more"));
	unbound_bind(u, "more", "default", "w");
	assert_string_equal(unbound_refuse(u, "more", "default"), "w");
	unbound_free(u);
}

static void goes(struct unbound *u, const char *uid)
{
	assert_true(unbound_remove(u, uid));
}

static void is_bound(struct unbound *u, const char *uid)
{
	unbound_bind(u, uid, "default", "w");
}

static void is_smaller_by_now(struct unbound *u, const char *uid)
{
	json_t *pod = pod_of(1);

	assert_true(unbound_put(u, uid, pod));
	json_decref(pod);
}

static void is_not_in_the_next_list(struct unbound *u, const char *uid)
{
	unbound_begin(u);
	for (unsigned i = 0; i + 1 < LARGE_FIT; i++)
		assert_true(unbound_put(u, uid_of(i), large_pod()));
	unbound_sweep(u);
	assert_false(unbound_knows(u, uid));
}

static void the_room_of_a_pod_is_the_next_ones_when_it(void **state)
{
	static void (*const rows[])(struct unbound * u, const char *uid) = {
		goes, is_bound, is_smaller_by_now, is_not_in_the_next_list};
	struct unbound *u = full_one();
	auto_free char *last = xstrdup(uid_of(LARGE_FIT - 1));

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_false(unbound_put(u, "next", large_pod()));
		rows[i](u, last);
		assert_true(unbound_put(u, "next", large_pod()));
		assert_true(unbound_remove(u, "next"));
		assert_true(unbound_put(u, last, large_pod()));
	}
	unbound_free(u);
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
	keep(k, 1, PODS_BYTES_MAX);
	assert_kept(k, 0, 0);
	keep(k, 0, PODS_BYTES_MAX); /* what is known of it is no more true */
	assert_int_equal(kept_count(k), 0);
	kept_put(k, "none", NULL, NULL, 0, 1);
	assert_int_equal(kept_count(k), 1);
	kept_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_takes_no_more_memory_than_its_text),
		cmocka_unit_test(no_more_than_its_uid_is_known_of_a_pod_that_there_is_no_room_for),
		cmocka_unit_test(the_room_of_a_pod_is_the_next_ones_when_it),
		cmocka_unit_test(the_oldest_of_too_many_pods_is_forgotten),
		cmocka_unit_test(the_oldest_of_too_many_bytes_are_forgotten),
		cmocka_unit_test(a_pod_that_is_larger_than_all_may_be_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
