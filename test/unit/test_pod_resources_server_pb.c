#include <kubelet/pod_resources_server_pb.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "kubelet_wire.h"

static const int64_t nodes[] = {0, 3, 252};
static const struct held_device devices[] = {
	{"a.example/fpga", "f0", true, {nodes, 3}},
	{"b.example/gpu", "g0", true, {nodes + 1, 1}},
	{"b.example/gpu", "g1", true, {NULL, 0}},
	{"b.example/gpu", "g2", false, {NULL, 0}},
};
static const struct container_held containers[] = {
	{.name = "app", .device = devices, .nr_devices = 4}, {.name = "log"}};
static const struct pod_held pods[] = {
	{.ns = "ml", .name = "train-0", .container = containers, .nr = 2},
	{.ns = "shop", .name = "web"},
};

static void assert_device(const struct held_device *got, const struct held_device *want)
{
	assert_string_equal(got->resource, want->resource);
	assert_string_equal(got->id, want->id);
	assert_int_equal(got->has_topology, want->has_topology);
	assert_int_equal(got->nodes.nr, want->nodes.nr);
	for (size_t i = 0; i < got->nodes.nr; i++)
		assert_int_equal(got->nodes.id[i], want->nodes.id[i]);
}

static void assert_pod(const struct pod_held *got, const struct pod_held *want)
{
	assert_string_equal(got->ns, want->ns);
	assert_string_equal(got->name, want->name);
	assert_int_equal(got->nr, want->nr);
	for (size_t c = 0; c < got->nr; c++) {
		assert_string_equal(got->container[c].name, want->container[c].name);
		assert_int_equal(got->container[c].nr_devices, want->container[c].nr_devices);
		for (size_t i = 0; i < got->container[c].nr_devices; i++)
			assert_device(&got->container[c].device[i], &want->container[c].device[i]);
	}
}

static void a_client_reads_what_pods_hold(void **state)
{
	const struct pods_held held = {pods, 2};
	struct pods_held got;
	struct blob out;

	assert_int_equal(pod_resources_list_encode(&held, *state, &out, NULL), 0);
	assert_int_equal(pod_resources_list_decode(out, *state, &got, NULL), 0);
	assert_int_equal(got.nr, 2);
	for (size_t i = 0; i < 2; i++)
		assert_pod(&got.pod[i], &pods[i]);
}

static void an_empty_list_is_written_as_go_writes_it(void **state)
{
	const struct pods_held nobody = {NULL, 0};
	struct blob out;

	assert_int_equal(pod_resources_list_encode(&nobody, *state, &out, NULL), 0);
	assert_bytes(out, "held_list_none", *state);
}

static void a_client_reads_the_allocatable_resources(void **state)
{
	const struct devices_allocatable all = {devices, 4};
	struct devices_allocatable got;
	struct blob out;

	assert_int_equal(pod_resources_allocatable_encode(&all, *state, &out, NULL), 0);
	assert_int_equal(pod_resources_allocatable_decode(out, *state, &got, NULL), 0);
	assert_int_equal(got.nr, 4);
	for (size_t i = 0; i < 4; i++)
		assert_device(&got.device[i], &devices[i]);
}

static void names_that_are_not_utf8_are_not_sent(void **state)
{
	static const struct pod_held odd = {.ns = "ml", .name = "\xff"};
	const struct pods_held held = {&odd, 1};
	struct blob out;

	assert_int_equal(pod_resources_list_encode(&held, *state, &out, NULL), -EILSEQ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ARENA(a_client_reads_what_pods_hold),
		ON_ARENA(an_empty_list_is_written_as_go_writes_it),
		ON_ARENA(a_client_reads_the_allocatable_resources),
		ON_ARENA(names_that_are_not_utf8_are_not_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
