#include <kubelet/pods_server_pb.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "kubelet_wire.h"

static const uint64_t MiB = UINT64_C(1) << 20, GiB = UINT64_C(1) << 30;

static void assert_container(const struct ask *got, const struct ask *want)
{
	assert_string_equal(got->name, want->name);
	assert_int_equal(got->kind, want->kind);
	assert_int_equal(got->cpu_milli, want->cpu_milli);
	assert_int_equal(got->nr_memory, want->nr_memory);
	for (unsigned i = 0; i < got->nr_memory; i++) {
		assert_int_equal(got->memory[i].page_bytes, want->memory[i].page_bytes);
		assert_int_equal(got->memory[i].bytes, want->memory[i].bytes);
	}
	assert_int_equal(got->has_claims, want->has_claims);
	assert_int_equal(got->nr_devices, want->nr_devices);
	for (unsigned i = 0; i < got->nr_devices; i++) {
		assert_int_equal(got->device[i].resource, want->device[i].resource);
		assert_int_equal(got->device[i].count, want->device[i].count);
	}
}

/* Write the pod as an event, and read that again. */
static struct known_pod again(
	const struct known_pod *pod, enum pods_event_type type, struct arena *a)
{
	struct pods_event event = {.type = type}, got;
	struct known_pod read;
	struct blob out;
	struct err e;

	assert_int_equal(pods_pod_encode(pod, a, &event.pod, NULL), 0);
	assert_int_equal(pods_event_encode(&event, a, &out, NULL), 0);
	assert_int_equal(pods_event_decode(out, a, &got, NULL), 0);
	assert_int_equal(got.type, type);
	if (pods_pod_decode(got.pod, a, &read, &e) < 0)
		fail_msg("%s", e.text);
	return read;
}

static void a_pod_is_the_same_after_encoding_and_decoding(void **state)
{
	const struct ask containers[] = {
		{.name = "setup",
			.kind = CONTAINER_INIT,
			.cpu_milli = 2000,
			.nr_memory = 1,
			.memory = {{0, GiB}}},
		{.name = "proxy",
			.kind = CONTAINER_SIDECAR,
			.cpu_milli = 250,
			.nr_memory = 1,
			.memory = {{0, 1000}}},
		{.name = "app",
			.cpu_milli = 4000,
			.has_claims = true,
			.nr_memory = 3,
			.memory = {{0, 16 * GiB}, {2 * MiB, 64 * MiB}, {GiB, GiB}},
			.nr_devices = 2,
			.device = {{0, 2}, {1, 4}}},
	};
	static const char *const resources[] = {"gpu.example/gpu", "numafit.io/cpu"};
	static const struct key_value note = {"numafit.io/cpus", "one \u00fc"};

	for (enum qos q = QOS_GUARANTEED; q < NR_QOS - 1; q++) {
		const struct known_pod pod = {
			.pod = {.uid = "u-1",
				.ns = "ml",
				.name = "train-0",
				.qos = q,
				.nr = 3,
				.container = containers,
				.annotations = &note,
				.nr_annotations = 1},
			.resource = resources,
			.nr_resources = 2,
		};
		struct known_pod got = again(&pod, PODS_ADDED, *state);

		assert_string_equal(got.pod.uid, "u-1");
		assert_string_equal(got.pod.ns, "ml");
		assert_string_equal(got.pod.name, "train-0");
		assert_int_equal(got.pod.qos, q);
		assert_string_equal(pod_annotation(&got.pod, "numafit.io/cpus"), "one \u00fc");
		assert_int_equal(got.nr_resources, 2);
		assert_string_equal(got.resource[1], "numafit.io/cpu");
		assert_int_equal(got.pod.nr, 3);
		for (unsigned i = 0; i < 3; i++)
			assert_container(&got.pod.container[i], &containers[i]);
	}
}

/* Its limits are what makes a pod Guaranteed, not the word in its status. */
static void the_class_follows_from_the_spec_alone(void **state)
{
	const struct ask app = {
		.name = "app", .cpu_milli = 1000, .nr_memory = 1, .memory = {{0, GiB}}};

	for (enum qos q = QOS_GUARANTEED; q < NR_QOS - 1; q++) {
		const struct known_pod pod = {
			.pod = {.uid = "u", .qos = q, .nr = 1, .container = &app}};
		struct known_pod got;
		struct blob out;

		assert_int_equal(pods_pod_encode(&pod, *state, &out, NULL), 0);
		/* the status is the last field: two bytes, qosClass's two, and the word */
		size_t status = 4 + strlen(qos_words[q]);
		out.len -= status;
		assert_int_equal(pods_pod_decode(out, *state, &got, NULL), 0);
		assert_int_equal(got.pod.qos, q);
	}
}

static void a_deleted_pod_has_its_names_alone(void **state)
{
	const struct known_pod pod = {.pod = {.uid = "u-1", .ns = "ml", .name = "train-0"}};
	struct known_pod got = again(&pod, PODS_DELETED, *state);

	assert_string_equal(got.pod.name, "train-0");
	assert_int_equal(got.pod.nr, 0);
}

static void an_event_without_a_pod_is_as_go_writes_it(void **state)
{
	const struct pods_event synced = {.type = PODS_SYNCED};
	struct blob out;

	assert_int_equal(pods_event_encode(&synced, *state, &out, NULL), 0);
	assert_bytes(out, "event_synced", *state);
}

static void an_event_is_wrapped_as_go_wraps_it(void **state)
{
	struct pods_event event;
	struct blob out;

	assert_int_equal(
		pods_event_decode(recorded("event_added", *state), *state, &event, NULL), 0);
	assert_int_equal(pods_event_encode(&event, *state, &out, NULL), 0);
	assert_bytes(out, "event_added", *state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ARENA(a_pod_is_the_same_after_encoding_and_decoding),
		ON_ARENA(the_class_follows_from_the_spec_alone),
		ON_ARENA(a_deleted_pod_has_its_names_alone),
		ON_ARENA(an_event_without_a_pod_is_as_go_writes_it),
		ON_ARENA(an_event_is_wrapped_as_go_wraps_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
