#include <numafit/numaplacement.h>

#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core_random.h"

/* Packing against the recorded answers of the package that readers use, and against a reader of our
 * own that follows it. */

enum { ARENA_BYTES = 1 << 22, MANY = 70000 };

static json_t *vectors(void)
{
	json_t *all = json_load_file("test/golden/nrt_numaplacement.json", 0, NULL);

	assert_non_null(all);
	return all;
}

/* "namespace/pod/container" */
static uint64_t hash_of(const char *id)
{
	char ns[64], pod[64], container[64];

	assert_int_equal(sscanf(id, "%63[^/]/%63[^/]/%63s", ns, pod, container), 3);
	return numaplacement_hash(ns, pod, container);
}

static void recorded_containers_are_packed_as_recorded(void **state)
{
	json_t *all = vectors(), *row, *container;
	size_t i, c;

	(void)state;
	assert_true(json_array_size(json_object_get(all, "cases")) > 0);
	json_array_foreach(json_object_get(all, "cases"), i, row)
	{
		json_t *expect = json_object_get(row, "expect");
		json_t *want = json_object_get(expect, "vectors");
		unsigned nr_nodes = (unsigned)json_integer_value(json_object_get(row, "numaNodes"));
		struct placed_container list[16];
		struct numaplacement got;
		struct arena a;
		size_t nr = 0;

		json_array_foreach(json_object_get(row, "containers"), c, container)
		{
			char hex[17];

			list[nr].hash =
				hash_of(json_string_value(json_object_get(container, "id")));
			list[nr].node =
				(unsigned)json_integer_value(json_object_get(container, "numa"));
			(void)snprintf(
				hex, sizeof hex, "%016llx", (unsigned long long)list[nr++].hash);
			assert_string_equal(
				hex, json_string_value(json_object_get(container, "hash")));
		}
		arena_init(&a, ARENA_BYTES);
		assert_int_equal(numaplacement_pack(list, nr, nr_nodes, &a, &got), 0);
		assert_string_equal(
			got.metadata, json_string_value(json_object_get(expect, "metadata")));
		for (unsigned n = 0; n < nr_nodes; n++) {
			char key[16];

			(void)snprintf(key, sizeof key, "%u", n);
			const char *vector = json_string_value(json_object_get(want, key));
			assert_int_equal(!vector, !got.vector[n]);
			if (vector)
				assert_string_equal(got.vector[n], vector);
		}
		arena_fini(&a);
	}
	json_decref(all);
}

/* The number is the place of the only container on node 1; those before it are on node 0. */
static void numbers_are_written_as_recorded(void **state)
{
	static struct placed_container list[MANY];
	json_t *all = vectors(), *row;
	size_t i;

	(void)state;
	assert_true(json_array_size(json_object_get(all, "leb89")) > 0);
	json_array_foreach(json_object_get(all, "leb89"), i, row)
	{
		size_t value = (size_t)json_integer_value(json_object_get(row, "value"));
		struct numaplacement got;
		struct arena a;

		for (size_t k = 0; k <= value; k++)
			list[k] = (struct placed_container){k + 1, k == value};
		list[value + 1] = (struct placed_container){UINT64_MAX, 0};
		arena_init(&a, ARENA_BYTES);
		assert_int_equal(numaplacement_pack(list, value + 2, 2, &a, &got), 0);
		assert_null(got.vector[0]); /* of two nodes with as many the lower is left out */
		assert_string_equal(
			got.vector[1], json_string_value(json_object_get(row, "expect")));
		arena_fini(&a);
	}
	json_decref(all);
}

static void without_containers_each_vector_is_empty(void **state)
{
	struct numaplacement got;
	struct arena a;

	(void)state;
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(numaplacement_pack(NULL, 0, 4, &a, &got), 0);
	assert_string_equal(got.metadata, "npv0v001::ve=leb89::cc=0::nn=4::bn=0");
	for (unsigned n = 0; n < 4; n++)
		assert_null(got.vector[n]);
}

static void a_container_counts_once_and_only_on_a_single_node(void **state)
{
	struct placed_container same[] = {{7, 1}, {5, 0}, {7, 1}}, other[] = {{7, 1}, {7, 0}};
	struct numaplacement got;
	struct arena a;

	(void)state;
	arena_init(&a, ARENA_BYTES);
	assert_int_equal(numaplacement_pack(same, 3, 2, &a, &got), 0);
	assert_string_equal(got.metadata, "npv0v001::ve=leb89::cc=2::nn=2::bn=0");
	assert_string_equal(got.vector[1], "#");
	assert_int_equal(numaplacement_pack(other, 2, 2, &a, &got), -EEXIST);
	arena_fini(&a);
}

static void an_arena_that_is_too_small_is_an_error(void **state)
{
	struct placed_container list[] = {{1, 0}, {2, 0}, {3, 1}};
	struct numaplacement got;
	struct arena a;
	char room[8];

	(void)state;
	arena_init_fixed(&a, room, sizeof room);
	assert_int_equal(numaplacement_pack(list, 3, 2, &a, &got), -ENOMEM);
}

/* The number at *s, which is moved on (leb89.DecodeFromString). */
static uint64_t read_leb89(const char **s)
{
	static const char digits[] = "!#$%'()*+,-./0123456789:;=?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`"
				     "abcdefghijklmnopqrstuvwxyz{|}~";
	uint64_t prefix = 0;
	bool any = false;

	for (;; (*s)++) {
		const char *at = strchr(digits, **s);

		assert_true(**s && at);
		if (at - digits < 64) {
			(*s)++;
			return (any ? prefix * 64 + 64 : 0) + (uint64_t)(at - digits);
		}
		prefix = prefix * 25 + (uint64_t)(at - digits - 64);
		any = true;
	}
}

static void a_reader_finds_every_container(void **state)
{
	enum { ROUNDS = 300, CONTAINERS = 400 };
	struct random r = {.state = 42};

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned nr_nodes = 1 + random_below(&r, NODES_MAX), busiest, nr_read;
		size_t nr = random_below(&r, CONTAINERS), nr_said;
		struct placed_container list[CONTAINERS], sorted[CONTAINERS];
		unsigned node[CONTAINERS];
		struct numaplacement got;
		struct arena a;

		for (size_t i = 0; i < nr; i++)
			list[i] = (struct placed_container){
				random_next(&r), random_below(&r, nr_nodes)};
		arena_init(&a, ARENA_BYTES);
		assert_int_equal(numaplacement_pack(list, nr, nr_nodes, &a, &got), 0);
		assert_int_equal(sscanf(got.metadata, "npv0v001::ve=leb89::cc=%zu::nn=%u::bn=%u",
					 &nr_said, &nr_read, &busiest),
			3);
		assert_int_equal(nr_said, nr);
		assert_int_equal(nr_read, nr_nodes);
		assert_null(got.vector[busiest]);
		memcpy(sorted, list, nr * sizeof *list); /* the list is sorted by now */
		for (size_t i = 0; i < nr; i++)
			node[i] = busiest;
		for (unsigned n = 0; n < nr_nodes; n++) {
			size_t at = 0;

			for (const char *s = got.vector[n]; s && *s;) {
				at += read_leb89(&s);
				assert_true(at < nr && node[at] == busiest);
				node[at] = n;
			}
		}
		for (size_t i = 0; i < nr; i++) {
			assert_true(!i || sorted[i - 1].hash < sorted[i].hash);
			assert_int_equal(node[i], sorted[i].node);
		}
		arena_fini(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_containers_are_packed_as_recorded),
		cmocka_unit_test(numbers_are_written_as_recorded),
		cmocka_unit_test(without_containers_each_vector_is_empty),
		cmocka_unit_test(a_container_counts_once_and_only_on_a_single_node),
		cmocka_unit_test(an_arena_that_is_too_small_is_an_error),
		cmocka_unit_test(a_reader_finds_every_container),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
