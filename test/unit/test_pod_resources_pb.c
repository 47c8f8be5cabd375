#include <kubelet/pod_resources_pb.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "kubelet_wire.h"

static const uint64_t MiB = UINT64_C(1) << 20, GiB = UINT64_C(1) << 30;

static void assert_nodes(const struct node_id_list *got, const int64_t *want, size_t nr)
{
	assert_int_equal(got->nr, nr);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(got->id[i], want[i]);
}

static void assert_cpus(const struct cpuset *got, const char *want)
{
	char text[CPUSET_TEXT_MAX];

	assert_string_equal(cpuset_format(got, text, sizeof text), want);
}

/* The first pod of a recorded answer. */
static struct pod_held get(const char *name, struct arena *a)
{
	struct pods_held all;

	assert_int_equal(pod_resources_list_decode(recorded(name, a), a, &all, NULL), 0);
	assert_int_equal(all.nr, 1);
	return all.pod[0];
}

static void a_device_on_several_nodes_is_one_device(void **state)
{
	static const struct {
		const char *resource, *id;
		bool has_topology;
		size_t nr;
		int64_t node[2];
	} want[] = {
		{"vendor.example/fpga", "f0", true, 2, {1, 2}},
		{"vendor.example/fpga", "f1", true, 2, {1, 2}},
		{"vendor.example/gpu", "gpu0", true, 2, {0, 3}},
		{"vendor.example/gpu", "gpu1", true, 1, {1}},
		{"vendor.example/gpu", "gpu2", false, 0, {0}},
		{"vendor.example/gpu", "gpu3", true, 0, {0}},
	};
	enum { NR = sizeof want / sizeof *want };
	struct pod_held pod = get("held_get", *state);
	const struct container_held *c = &pod.container[0];

	assert_int_equal(c->nr_devices, NR);
	for (size_t i = 0; i < NR; i++) {
		assert_string_equal(c->device[i].resource, want[i].resource);
		assert_string_equal(c->device[i].id, want[i].id);
		assert_int_equal(c->device[i].has_topology, want[i].has_topology);
		assert_nodes(&c->device[i].nodes, want[i].node, want[i].nr);
	}
}

static void cpus_may_come_in_any_order(void **state)
{
	struct pod_held pod = get("held_get", *state);

	assert_cpus(&pod.container[0].cpus, "2-3,9");
	assert_cpus(&pod.container[1].cpus, "");
	assert_cpus(&pod.cpus, "2-3,9,1023");
}

static void a_cpu_number_beyond_the_limit_is_refused(void **state)
{
	struct pods_held all;
	struct err e;

	assert_int_equal(
		pod_resources_list_decode(recorded("held_bad_cpu", *state), *state, &all, &e),
		-ERANGE);
	assert_string_equal(e.text, "pod ml/train-0: container app: CPU 1024 is not one of 0-1023");
}

static void memory_has_its_kind_and_nodes(void **state)
{
	static const int64_t node[] = {0, 1, 3};
	const struct held_memory want[] = {
		{0, 4 * GiB, {&node[1], 2}},
		{2 * MiB, 64 * MiB, {&node[0], 1}},
		{GiB, 0, {NULL, 0}},
	};
	struct pod_held pod = get("held_get", *state);
	const struct container_held *c = &pod.container[0];

	assert_int_equal(c->nr_memory, 3); /* "moonlight" is no memory */
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(c->memory[i].page_bytes, want[i].page_bytes);
		assert_int_equal(c->memory[i].bytes, want[i].bytes);
		assert_nodes(&c->memory[i].nodes, want[i].nodes.id, want[i].nodes.nr);
	}
	assert_int_equal(pod.nr_memory, 1);
	assert_int_equal(pod.memory[0].bytes, 8 * GiB);
}

static void claims_are_listed_device_by_device(void **state)
{
	struct pod_held pod = get("held_get", *state);
	const struct held_claim *claim = pod.container[0].claim;

	assert_int_equal(pod.container[0].nr_claims, 4);
	assert_string_equal(claim[0].ns, "ml");
	assert_string_equal(claim[0].name, "c1");
	assert_string_equal(claim[0].driver, "gpu.example");
	assert_string_equal(claim[0].pool, "n1");
	assert_string_equal(claim[0].device, "g0");
	assert_string_equal(claim[0].share, "5b1c");
	assert_int_equal(claim[0].nr_cdi, 2);
	assert_string_equal(claim[0].cdi[0], "gpu.example/gpu=g0");
	assert_string_equal(claim[0].cdi[1], "gpu.example/common=all");
	assert_string_equal(claim[1].device, "g1");
	assert_string_equal(claim[1].share, "");
	assert_int_equal(claim[1].nr_cdi, 0);
	assert_string_equal(claim[2].name, "c3");
	assert_string_equal(claim[2].driver, "nic.example");
	assert_string_equal(claim[3].name, "c3");
	assert_string_equal(claim[3].device, "n1");
}

static void gos_list_is_read(void **state)
{
	struct pods_held all;

	assert_int_equal(
		pod_resources_list_decode(recorded("held_list", *state), *state, &all, NULL), 0);
	assert_int_equal(all.nr, 2);
	assert_string_equal(all.pod[0].ns, "default");
	assert_string_equal(all.pod[0].name, "web");
	assert_int_equal(all.pod[0].nr, 1);
	assert_string_equal(all.pod[0].container[0].name, "nginx");
	assert_int_equal(all.pod[0].container[0].nr_devices, 0);
	assert_string_equal(all.pod[1].name, "train-0");
	assert_int_equal(all.pod[1].nr, 2);
	assert_string_equal(all.pod[1].container[0].name, "app");
	assert_string_equal(all.pod[1].container[1].name, "bare");
	assert_int_equal(all.pod[1].container[1].nr_claims, 0);
	assert_int_equal(
		pod_resources_list_decode(recorded("held_list_none", *state), *state, &all, NULL),
		0);
	assert_int_equal(all.nr, 0);
}

/* The kubelet's GetAllocatableResources: a row for each of a device's nodes, in no order. */
static void the_allocatable_answer_is_read(void **state)
{
	static const int64_t node[] = {0, 1};
	static const struct held_device want[] = {
		{"vendor.example/gpu", "gpu0", true, {node, 1}},
		{"vendor.example/gpu", "gpu1", true, {node, 2}},
		{"vendor.example/nic", "nic0", false, {NULL, 0}},
	};
	struct devices_allocatable all;

	assert_int_equal(pod_resources_allocatable_decode(
				 recorded("allocatable", *state), *state, &all, NULL),
		0);
	assert_int_equal(all.nr, 3);
	for (size_t i = 0; i < all.nr; i++) {
		assert_string_equal(all.device[i].resource, want[i].resource);
		assert_string_equal(all.device[i].id, want[i].id);
		assert_int_equal(all.device[i].has_topology, want[i].has_topology);
		assert_nodes(&all.device[i].nodes, want[i].nodes.id, want[i].nodes.nr);
	}
	assert_int_equal(pod_resources_allocatable_decode(
				 (struct blob){"\x0a\x05xy", 4}, *state, &all, NULL),
		-EBADMSG);
	assert_int_equal(
		pod_resources_allocatable_decode((struct blob){NULL, 0}, *state, &all, NULL), 0);
	assert_int_equal(all.nr, 0);
}

static void a_message_that_does_not_fit_the_arena_is_refused(void **state)
{
	enum { ROOM = 64 << 10 };
	struct blob in = recorded("held_list", *state);
	char *room = arena_alloc(*state, ROOM);
	struct pods_held all;
	unsigned failed = 0;
	struct arena a;

	for (size_t len = 0; len <= ROOM; len += 16) {
		arena_init_fixed(&a, room, len);
		int rc = pod_resources_list_decode(in, &a, &all, NULL);

		assert_true(rc == 0 || (rc == -EBADMSG && len < ROOM));
		failed += rc != 0;
	}
	assert_true(failed > 0);
}

static void a_truncated_message_is_refused(void **state)
{
	struct blob in = recorded("held_get", *state);
	struct pods_held all;

	for (size_t len = 1; len < in.len; len++)
		assert_int_equal(
			pod_resources_list_decode((struct blob){in.data, len}, *state, &all, NULL),
			-EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ARENA(a_device_on_several_nodes_is_one_device),
		ON_ARENA(cpus_may_come_in_any_order),
		ON_ARENA(a_cpu_number_beyond_the_limit_is_refused),
		ON_ARENA(memory_has_its_kind_and_nodes),
		ON_ARENA(claims_are_listed_device_by_device),
		ON_ARENA(gos_list_is_read),
		ON_ARENA(the_allocatable_answer_is_read),
		ON_ARENA(a_message_that_does_not_fit_the_arena_is_refused),
		ON_ARENA(a_truncated_message_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
