#include <numafit/slice_store.h>

#include <numafit/text.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { NAME_BYTES = 32 };

static int setup(void **state)
{
	*state = slice_store_new();
	return 0;
}

static int teardown(void **state)
{
	slice_store_free(*state);
	return 0;
}

/* A slice of one device, gpu.example.com/n1/DEVICE, on that NUMA node. */
static bool put(struct slice_store *s, const char *name, uint64_t generation, uint64_t nr_slices,
	const char *device, int node)
{
	const int64_t id = node;
	const struct slice_device one = {.name = device, .nodes = {&id, 1}};
	int rc = slice_store_put(s,
		&(struct slice){name, "gpu.example.com", "n1", generation, nr_slices, &one, 1},
		NULL);

	assert_in_range(rc, 0, 1);
	return rc;
}

enum { UNKNOWN = -2 };

static int node_of(const struct slice_store *s, const char *device)
{
	const struct slice_device *d = slice_store_find(s, "gpu.example.com", "n1", device);

	return d ? (int)*d->nodes.id : UNKNOWN;
}

static void a_device_is_found_by_driver_pool_and_name(void **state)
{
	const struct slice_device gpus[] = {
		{.name = "gpu1", .nodes = {(const int64_t[]){3, 64, 1023}, 3}},
		{.name = "gpu0", .bus = "0000:81:00.0"},
		{.name = "gpu2", .bus = "0000:81:00.0"},
	};
	const struct slice slice = {"a", "gpu.example.com", "n1", 1, 1, gpus, 3};
	struct slice_store *s = *state;

	assert_int_equal(slice_store_put(s, &slice, NULL), 1);
	const struct slice_device *gpu1 = slice_store_find(s, "gpu.example.com", "n1", "gpu1");
	assert_true(node_id_list_equal(gpu1->nodes, gpus[0].nodes));
	assert_ptr_not_equal(gpu1->nodes.id, gpus[0].nodes.id); /* it is a copy */
	assert_string_equal(
		slice_store_find(s, "gpu.example.com", "n1", "gpu0")->bus, "0000:81:00.0");
	assert_ptr_equal(slice_store_find(s, "gpu.example.com", "n1", "gpu0")->bus,
		slice_store_find(s, "gpu.example.com", "n1", "gpu2")->bus);
	assert_null(slice_store_find(s, "gpu.example.com", "n1", "gpu3"));
	assert_null(slice_store_find(s, "gpu.example.com", "n2", "gpu1"));
	assert_null(slice_store_find(s, "nic.example.com", "n1", "gpu1"));
}

static void a_pool_counts_once_all_its_slices_are_there(void **state)
{
	struct slice_store *s = *state;

	assert_false(put(s, "a", 1, 2, "gpu0", 0));
	assert_int_equal(node_of(s, "gpu0"), UNKNOWN);
	assert_int_equal(slice_store_count(s).incomplete_pools, 1);
	assert_true(put(s, "b", 1, 2, "gpu1", 1));
	assert_int_equal(node_of(s, "gpu0"), 0);
	assert_int_equal(node_of(s, "gpu1"), 1);
	assert_int_equal(slice_store_count(s).incomplete_pools, 0);
	assert_int_equal(slice_store_count(s).devices, 2);
}

static void a_newer_generation_counts_once_it_is_complete(void **state)
{
	struct slice_store *s = *state;

	put(s, "a", 1, 2, "gpu0", 0);
	put(s, "b", 1, 2, "gpu1", 1);
	assert_false(put(s, "a", 2, 2, "gpu0", 4));
	assert_int_equal(node_of(s, "gpu0"), 0);
	assert_true(put(s, "b", 2, 2, "gpu7", 5));
	assert_int_equal(node_of(s, "gpu0"), 4);
	assert_int_equal(node_of(s, "gpu7"), 5);
	assert_int_equal(node_of(s, "gpu1"), UNKNOWN);
	assert_int_equal(slice_store_count(s).slices, 2);
}

static void an_older_generation_beside_a_newer_one_does_not_count(void **state)
{
	struct slice_store *s = *state;

	put(s, "new", 5, 1, "gpu0", 5);
	assert_false(put(s, "old", 4, 1, "gpu0", 4));
	assert_int_equal(node_of(s, "gpu0"), 5);
	/* the newer one is gone: by what the server has, this is the pool */
	assert_true(slice_store_remove(s, "new"));
	assert_int_equal(node_of(s, "gpu0"), 4);
}

static void devices_of_deleted_slices_stay_known(void **state)
{
	struct slice_store *s = *state;

	put(s, "a", 3, 2, "gpu0", 0);
	put(s, "b", 3, 2, "gpu1", 1);
	assert_false(slice_store_remove(s, "a"));
	assert_false(slice_store_remove(s, "b"));
	assert_false(slice_store_remove(s, "b"));
	assert_int_equal(node_of(s, "gpu0"), 0);
	assert_int_equal(node_of(s, "gpu1"), 1);
	assert_int_equal(slice_store_count(s).slices, 0);
	assert_int_equal(slice_store_count(s).devices, 2);
}

static void a_pool_that_comes_back_counts_from_a_lower_generation(void **state)
{
	struct slice_store *s = *state;

	put(s, "a", 7, 1, "gpu0", 0);
	slice_store_remove(s, "a");
	assert_false(put(s, "x", 1, 2, "gpu0", 3));
	assert_int_equal(node_of(s, "gpu0"), 0);
	assert_true(put(s, "y", 1, 2, "gpu1", 3));
	assert_int_equal(node_of(s, "gpu0"), 3);
}

static void a_list_without_a_slice_deletes_it(void **state)
{
	struct slice_store *s = *state;

	put(s, "a", 1, 1, "gpu0", 0);
	put(s, "stale", 9, 2, "gpu0", 9);
	slice_store_begin(s);
	assert_false(put(s, "a", 1, 1, "gpu0", 0));
	assert_int_equal(slice_store_count(s).slices, 2);
	assert_false(slice_store_sweep(s));
	assert_int_equal(slice_store_count(s).slices, 1);
	slice_store_begin(s);
	assert_false(slice_store_sweep(s));
	assert_int_equal(slice_store_count(s).slices, 0);
	assert_int_equal(node_of(s, "gpu0"), 0);
}

static void a_sweep_that_takes_the_newest_generation_away_reports_it(void **state)
{
	struct slice_store *s = *state;

	put(s, "new", 2, 1, "gpu0", 2);
	slice_store_begin(s);
	assert_false(put(s, "old", 1, 1, "gpu0", 1));
	assert_true(slice_store_sweep(s));
	assert_int_equal(node_of(s, "gpu0"), 1);
}

static void a_slice_that_is_put_again_as_it_was_changes_nothing(void **state)
{
	struct slice_store *s = *state;

	put(s, "a", 1, 1, "gpu0", 0);
	size_t bytes = slice_store_count(s).bytes;
	assert_false(put(s, "a", 1, 1, "gpu0", 0));
	assert_int_equal(slice_store_count(s).bytes, bytes);
	assert_true(put(s, "a", 1, 1, "gpu0", 1));
	assert_int_equal(node_of(s, "gpu0"), 1);
	assert_int_equal(slice_store_count(s).bytes, bytes);
}

static void an_object_that_moves_to_another_pool_leaves_the_first_one_known(void **state)
{
	const struct slice_device one = {.name = "nic0", .nodes = {(const int64_t[]){6}, 1}};
	struct slice_store *s = *state;

	put(s, "a", 1, 1, "gpu0", 0);
	assert_int_equal(
		slice_store_put(
			s, &(struct slice){"a", "nic.example.com", "n1", 1, 1, &one, 1}, NULL),
		1);
	assert_int_equal(*slice_store_find(s, "nic.example.com", "n1", "nic0")->nodes.id, 6);
	assert_int_equal(node_of(s, "gpu0"), 0);
	assert_int_equal(slice_store_count(s).slices, 1);
	assert_int_equal(slice_store_count(s).pools, 2);
}

/* A full slice with its own pool for each number, all devices with their own texts. */
static int put_full_slice(struct slice_store *s, unsigned nr, struct err *e)
{
	static char name[SLICE_DEVICES_MAX][NAME_BYTES], bus[SLICE_DEVICES_MAX][NAME_BYTES];
	struct slice_device device[SLICE_DEVICES_MAX];
	char pool[NAME_BYTES];

	(void)snprintf(pool, sizeof pool, "pool-%u", nr);
	for (unsigned i = 0; i < SLICE_DEVICES_MAX; i++) {
		(void)snprintf(name[i], NAME_BYTES, "gpu-%u", i);
		(void)snprintf(bus[i], NAME_BYTES, "0000:%02x:%02x.%u", i / 4, nr % 32, i % 4);
		device[i] = (struct slice_device){name[i], {0}, bus[i]};
	}
	return slice_store_put(s,
		&(struct slice){pool, "gpu.example.com", pool, 1, 1, device, SLICE_DEVICES_MAX}, e);
}

static void a_thousand_full_slices_take_a_few_megabytes(void **state)
{
	enum { SLICES = 1000, BYTES_OF_A_DEVICE = 64 };
	struct slice_store *s = *state;

	for (unsigned i = 0; i < SLICES; i++)
		assert_int_equal(put_full_slice(s, i, NULL), 1);
	struct slice_counts c = slice_store_count(s);
	assert_int_equal(c.devices, SLICES * SLICE_DEVICES_MAX);
	assert_in_range(c.bytes, 1, (size_t)SLICES * SLICE_DEVICES_MAX * BYTES_OF_A_DEVICE);
	print_message("figure: %zu slices of %d devices take %zu bytes\n", c.slices,
		SLICE_DEVICES_MAX, c.bytes);
}

static void what_is_known_stays_when_there_is_no_room(void **state)
{
	struct slice_store *s = *state;
	struct err e = {0};
	unsigned nr = 0;

	while (put_full_slice(s, nr, &e) == 1)
		nr++;
	assert_int_equal(e.code, ENOSPC);
	assert_in_range(slice_store_count(s).bytes, 1, SLICE_STORE_BYTES_MAX);
	assert_int_equal(slice_store_count(s).slices, nr);
	assert_non_null(slice_store_find(s, "gpu.example.com", "pool-0", "gpu-0"));
	assert_null(slice_store_find(s, "gpu.example.com", "pool-99999", "gpu-0"));
	/* a pool whose slices are gone makes room */
	slice_store_remove(s, "pool-0");
	assert_non_null(slice_store_find(s, "gpu.example.com", "pool-0", "gpu-0"));
	assert_int_equal(put_full_slice(s, nr, &e), 1);
	assert_null(slice_store_find(s, "gpu.example.com", "pool-0", "gpu-0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_device_is_found_by_driver_pool_and_name, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_pool_counts_once_all_its_slices_are_there, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_newer_generation_counts_once_it_is_complete, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_older_generation_beside_a_newer_one_does_not_count, setup, teardown),
		cmocka_unit_test_setup_teardown(
			devices_of_deleted_slices_stay_known, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_pool_that_comes_back_counts_from_a_lower_generation, setup, teardown),
		cmocka_unit_test_setup_teardown(a_list_without_a_slice_deletes_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_sweep_that_takes_the_newest_generation_away_reports_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_slice_that_is_put_again_as_it_was_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_object_that_moves_to_another_pool_leaves_the_first_one_known, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_thousand_full_slices_take_a_few_megabytes, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_is_known_stays_when_there_is_no_room, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
