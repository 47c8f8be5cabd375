#include <kubelet/device_count.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const int64_t nodes[] = {0, 1, 250};
#define ON(first, count)                                                                           \
	{                                                                                          \
		&nodes[first], count                                                               \
	}
static const struct held_device all[] = {
	{"a.example/fpga", "f0", true, ON(0, 2)},
	{"a.example/fpga", "f1", true, ON(1, 2)},
	{"a.example/fpga", "f2", false, {NULL, 0}},
	{"b.example/gpu", "g0", true, ON(2, 1)},
	{"b.example/gpu", "g1", true, ON(0, 1)},
	{"b.example/gpu", "g2", true, ON(0, 1)},
	{"c.example/anywhere", "x0", false, {NULL, 0}},
	{"c.example/anywhere", "x1", true, {NULL, 0}},
};
static const struct devices_allocatable devices = {all, sizeof all / sizeof *all};

/* g9 is held and no more healthy; d.example has gone. */
static const struct held_device held_1[] = {
	{"a.example/fpga", "f0", true, ON(0, 2)},
	{"a.example/fpga", "f2", false, {NULL, 0}},
	{"b.example/gpu", "g9", true, ON(0, 1)},
};
static const struct held_device held_2[] = {
	{"b.example/gpu", "g1", true, ON(0, 1)},
	{"d.example/gone", "g0", true, ON(0, 1)},
};
static const struct container_held containers[] = {
	{.name = "app", .device = held_1, .nr_devices = 3},
	{.name = "bare"},
	{.name = "other", .device = held_2, .nr_devices = 2},
};
static const struct pod_held pods[] = {{.ns = "ml", .name = "a", .container = containers, .nr = 2},
	{.ns = "ml", .name = "b", .container = &containers[2], .nr = 1}, {.ns = "ml", .name = "c"}};
static const struct pods_held held = {pods, 3};

static void devices_are_counted_on_their_numa_nodes(void **state)
{
	static const struct {
		const char *resource;
		size_t nr;
		struct device_count_node on[3];
	} want[] = {
		{"a.example/fpga", 3, {{0, 1, 1}, {1, 2, 1}, {250, 1, 0}}},
		{"b.example/gpu", 2, {{0, 2, 1}, {250, 1, 0}}},
	};
	const struct device_count *got;
	struct arena a;
	size_t nr;

	(void)state;
	arena_init(&a, 1 << 20);
	assert_int_equal(devices_count(&devices, &held, &a, &got, &nr), 0);
	assert_int_equal(nr, 2);
	for (size_t i = 0; i < nr; i++) {
		assert_string_equal(got[i].resource, want[i].resource);
		assert_int_equal(got[i].nr, want[i].nr);
		for (size_t n = 0; n < got[i].nr; n++) {
			assert_int_equal(got[i].on[n].id, want[i].on[n].id);
			assert_int_equal(got[i].on[n].allocatable, want[i].on[n].allocatable);
			assert_int_equal(got[i].on[n].used, want[i].on[n].used);
		}
	}
	arena_fini(&a);
}

static void no_devices_give_no_counts(void **state)
{
	static const struct devices_allocatable none;
	static const struct pods_held nobody;
	const struct device_count *got;
	struct arena a;
	size_t nr;

	(void)state;
	arena_init(&a, 1 << 20);
	assert_int_equal(devices_count(&none, &held, &a, &got, &nr), 0);
	assert_int_equal(nr, 0);
	assert_int_equal(devices_count(&devices, &nobody, &a, &got, &nr), 0);
	assert_int_equal(nr, 2);
	assert_int_equal(got[1].on[0].used, 0);
	arena_fini(&a);
}

static void an_arena_that_is_too_small_is_an_error(void **state)
{
	enum { ROOM = 4096 };
	const struct device_count *got;
	char *room = malloc(ROOM);
	unsigned failed = 0;
	struct arena a;
	size_t nr;

	(void)state;
	for (size_t len = 0; len <= ROOM; len += 16) {
		arena_init_fixed(&a, room, len);
		int rc = devices_count(&devices, &held, &a, &got, &nr);

		assert_true(rc == 0 || (rc == -ENOMEM && len < ROOM));
		failed += rc != 0;
	}
	assert_true(failed > 0);
	free(room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_counted_on_their_numa_nodes),
		cmocka_unit_test(no_devices_give_no_counts),
		cmocka_unit_test(an_arena_that_is_too_small_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
