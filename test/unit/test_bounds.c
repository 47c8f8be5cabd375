/* The tree of cgroups that bound the pool, case by case; test_bounds_random has the kernel's rules.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <numafit/bounds.h>

/* Only what has a cgroup of its own is known; the others are updated. */
static void a_container_in_the_place_of_a_pod_or_of_another_one_is_passed_over(void **state)
{
	static const char *const cgroups[] = {"/kubepods/burstable/poda", "/kubepods/burstable",
		"/kubepods/burstable/poda/c1", "/kubepods/burstable/poda/../podb/c", "", NULL};
	const struct request first = {
		.container_id = "c1", .cgroup = "/kubepods/burstable/poda/c1", .pod = {.uid = "a"}};
	struct bounds *b = bounds_new();
	struct bounds_writes before = {0}, after = {0};
	struct cpuset pool = {0}, own = {0};
	bool exact;

	(void)state;
	cpuset_add(&pool, 1);
	cpuset_add(&own, 2);
	const struct cpuset all = cpuset_or(pool, &own);
	bounds_enter(b, &first, NULL);
	bounds_plan(b, &pool, &all, &before);
	for (size_t i = 0; i < sizeof cgroups / sizeof *cgroups; i++) {
		struct request forged = {
			.container_id = "c2", .cgroup = cgroups[i], .pod = {.uid = "b"}};

		bounds_enter(b, &forged, &own);
		assert_false(bounds_shares(b, "c2", &exact));
		bounds_leave(b, "c2");
		assert_true(bounds_shares(b, "c1", &exact));
	}
	bounds_plan(b, &pool, &all, &after);
	assert_int_equal(before.nr, after.nr);
	for (size_t i = 0; i < after.nr; i++)
		assert_true(before.at[i].node == after.at[i].node &&
			    cpuset_equal(&before.at[i].cpus, &after.at[i].cpus));
	vec_fini(&before);
	vec_fini(&after);
	bounds_leave(b, "c1");
	assert_null(bounds_next(b, &(size_t){SIZE_MAX}));
	/* the other way round: one was there before what its place is for */
	static const char *const places[] = {"/kubepods/burstable", "/kubepods/burstable/poda"};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		const struct request there = {
			.container_id = "c3", .cgroup = places[i], .pod = {.uid = "b"}};

		bounds_enter(b, &there, &own);
		bounds_enter(b, &first, NULL);
		assert_false(bounds_shares(b, "c1", &exact));
		bounds_leave(b, "c1");
		bounds_leave(b, "c3");
		assert_null(bounds_next(b, &(size_t){SIZE_MAX}));
	}
	bounds_free(b);
}

static struct bounds_node *enter_and_write(struct bounds *b, const struct cpuset *own)
{
	const struct request req = {
		.container_id = "c1", .cgroup = "/kubepods/poda/c1", .pod = {.uid = "a"}};
	struct bounds_node *pod;

	bounds_enter(b, &req, own);
	pod = bounds_find(b, "/kubepods/poda");
	assert_non_null(pod);
	bounds_note_written(b, pod, own);
	assert_int_equal(bounds_count(b), 1);
	return pod;
}

static void a_pod_without_containers_stays_until_its_cgroup_is_gone(void **state)
{
	struct bounds *b = bounds_new();
	struct cpuset own = {0}, all;

	(void)state;
	cpuset_add(&own, 2);
	all = own;
	cpuset_add(&all, 3);
	struct bounds_node *pod = enter_and_write(b, &own);
	assert_false(bounds_note_gone(b, pod)); /* it is to come with its container */
	bounds_leave(b, "c1");
	assert_ptr_equal(bounds_find(b, "/kubepods/poda"), pod);
	const uint64_t serial = bounds_serial(b);
	assert_true(bounds_note_found(b, pod, &all, &all));
	assert_true(bounds_serial(b) > serial);
	assert_true(bounds_note_gone(b, pod));
	assert_null(bounds_find(b, "/kubepods/poda"));
	(void)enter_and_write(b, &own);
	bounds_leave(b, "c1");
	bounds_forget_pod(b, "b");
	assert_non_null(bounds_find(b, "/kubepods/poda"));
	bounds_forget_pod(b, "a");
	assert_null(bounds_find(b, "/kubepods/poda"));
	assert_int_equal(bounds_count(b), 0);
	bounds_free(b);
}

static void write_all(struct bounds *b, const struct cpuset *pool, const struct cpuset *all,
	struct bounds_writes *out)
{
	out->nr = 0;
	bounds_plan(b, pool, all, out);
	for (size_t i = 0; i < out->nr; i++)
		bounds_note_written(b, out->at[i].node, &out->at[i].cpus);
}

/* Or its next process, and all without numafit, would have what the pool was when it ran empty. */
static void a_class_without_containers_follows_the_pool_still(void **state)
{
	static const char class[] = "/kubepods/burstable";
	const struct request req = {
		.container_id = "c1", .cgroup = "/kubepods/burstable/poda/c1", .pod = {.uid = "a"}};
	struct bounds *b = bounds_new();
	struct bounds_writes writes = {0};
	struct cpuset pool = {0}, all;

	(void)state;
	cpuset_add(&pool, 1);
	all = pool;
	cpuset_add(&all, 2);
	bounds_enter(b, &req, NULL);
	write_all(b, &pool, &all, &writes);
	assert_int_equal(writes.nr, 1);
	assert_false(writes.at[0].is_idle);
	bounds_leave(b, "c1");
	bounds_forget_pod(b, "");
	write_all(b, &all, &all, &writes);
	assert_int_equal(writes.nr, 1);
	assert_string_equal(writes.at[0].path, class);
	assert_true(writes.at[0].is_idle && cpuset_equal(&writes.at[0].cpus, &all));
	bounds_enter(b, &req, NULL); /* systemd may have cleared the set meanwhile */
	write_all(b, &all, &all, &writes);
	assert_int_equal(writes.nr, 1);
	assert_string_equal(writes.at[0].path, class);
	bounds_leave(b, "c1");
	assert_true(bounds_note_gone(b, bounds_find(b, class)));
	assert_null(bounds_find(b, class));
	vec_fini(&writes);
	bounds_free(b);
}

/* Or a create would be answered before anything is written. */
static void who_comes_and_goes_makes_another_plan_due(void **state)
{
	const struct request req = {
		.container_id = "c1", .cgroup = "/kubepods/poda/c1", .pod = {.uid = "a"}};
	struct bounds *b = bounds_new();

	(void)state;
	const uint64_t at_first = bounds_serial(b);
	bounds_enter(b, &req, NULL);
	const uint64_t entered = bounds_serial(b);
	bounds_leave(b, "c1");
	assert_true(entered > at_first && bounds_serial(b) > entered);
	bounds_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_container_in_the_place_of_a_pod_or_of_another_one_is_passed_over),
		cmocka_unit_test(a_pod_without_containers_stays_until_its_cgroup_is_gone),
		cmocka_unit_test(a_class_without_containers_follows_the_pool_still),
		cmocka_unit_test(who_comes_and_goes_makes_another_plan_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
