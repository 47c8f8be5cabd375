#include <kubelet/device_manager_pb.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "kubelet_wire.h"

static void a_registration_is_read(void **state)
{
	struct plugin_registration r;

	assert_int_equal(registration_decode(recorded("register", *state), *state, &r, NULL), 0);
	assert_string_equal(r.endpoint, "numafit-4711.sock");
	assert_string_equal(r.resource, "numafit.io/cpu");
	assert_true(r.options.preferred_allocation);
	assert_false(r.options.pre_start);
}

static void another_version_is_refused_in_the_kubelets_words(void **state)
{
	static const unsigned char v1[] = {0x0a, 2, 'v', '1'};
	struct plugin_registration r;
	struct err e;

	assert_int_equal(registration_decode((struct blob){v1, sizeof v1}, *state, &r, &e),
		-EPROTONOSUPPORT);
	assert_string_equal(e.text,
		"requested API version \"v1\" is not supported by kubelet. Supported version is "
		"\"v1beta1\"");
}

static void options_are_read(void **state)
{
	struct device_plugin_options o;

	assert_int_equal(
		device_plugin_options_decode(recorded("options", *state), *state, &o, NULL), 0);
	assert_true(o.pre_start && o.preferred_allocation);
	assert_int_equal(
		device_plugin_options_decode(recorded("options_none", *state), *state, &o, NULL),
		0);
	assert_false(o.pre_start || o.preferred_allocation);
}

static void devices_are_read_as_they_were_written(void **state)
{
	static const struct plugin_device want[] = {
		{"0-0", true, 0},
		{"1-0", false, 1},
		{"252-\u00fc", true, 252},
		{"nowhere", true, DEVICE_WITHOUT_NODE},
	};
	struct plugin_device *got;
	size_t nr;

	assert_int_equal(
		device_list_decode(recorded("devices", *state), *state, &got, &nr, NULL), 0);
	assert_int_equal(nr, 4);
	for (size_t i = 0; i < nr; i++) {
		assert_string_equal(got[i].id, want[i].id);
		assert_int_equal(got[i].healthy, want[i].healthy);
		assert_int_equal(got[i].node, want[i].node);
	}
	assert_int_equal(
		device_list_decode(recorded("devices_none", *state), *state, &got, &nr, NULL), 0);
	assert_int_equal(nr, 0);
}

static void a_device_with_a_malformed_numa_node_is_refused(void **state)
{
	/* a device "a" with the topology that follows */
	static const struct {
		unsigned char bytes[32];
		size_t len;
		const char *says;
	} rows[] = {
		{{0x0a, 11, 0x0a, 1, 'a', 0x1a, 6, 0x0a, 2, 8, 1, 0x0a, 0}, 13,
			"device a is on 2 NUMA nodes, one was expected"},
		{{0x0a, 18, 0x0a, 1, 'a', 0x1a, 13, 0x0a, 11, 8, 255, 255, 255, 255, 255, 255, 255,
			 255, 255, 1},
			20, "device a is on NUMA node -1"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct blob in = {rows[i].bytes, rows[i].len};
		struct plugin_device *got;
		struct err e;
		size_t nr;

		assert_int_equal(device_list_decode(in, *state, &got, &nr, &e), -EBADMSG);
		assert_string_equal(e.text, rows[i].says);
	}
}

static const char *const ids_of_0[] = {"1-1", "0-0", "1-0"};
static const struct device_ids both[] = {{ids_of_0, 3}, {ids_of_0 + 1, 1}};

static void assert_ids(const struct device_ids *got, const struct device_ids *want)
{
	assert_int_equal(got->nr, want->nr);
	for (size_t i = 0; i < got->nr; i++)
		assert_string_equal(got->id[i], want->id[i]);
}

static void a_request_for_preferred_devices_is_read(void **state)
{
	const struct preferred_ask asks[] = {{both[0], both[1], 2}, {both[1], {0}, 0}};
	const struct preferred_request request = {asks, 2};
	struct preferred_request got;
	struct blob out;

	assert_int_equal(preferred_request_encode(&request, *state, &out, NULL), 0);
	assert_int_equal(preferred_request_decode(out, *state, &got, NULL), 0);
	assert_int_equal(got.nr, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_ids(&got.container[i].available, &asks[i].available);
		assert_ids(&got.container[i].must_include, &asks[i].must_include);
		assert_int_equal(got.container[i].size, asks[i].size);
	}
}

static void an_allocate_message_is_written_as_go_writes_it(void **state)
{
	struct allocate_request again;
	struct device_ids start;
	struct blob out;

	assert_int_equal(
		allocate_request_decode(recorded("allocate_request", *state), *state, &again, NULL),
		0);
	assert_int_equal(allocate_request_encode(&again, *state, &out, NULL), 0);
	assert_bytes(out, "allocate_request", *state);
	assert_int_equal(
		pre_start_request_decode(recorded("pre_start", *state), *state, &start, NULL), 0);
	assert_int_equal(pre_start_request_encode(&start, *state, &out, NULL), 0);
	assert_bytes(out, "pre_start", *state);
}

static void answers_are_read_container_by_container(void **state)
{
	const struct device_ids *preferred;
	const struct allocate_answer *answer;
	size_t nr;

	assert_int_equal(preferred_response_decode(recorded("preferred_response", *state), *state,
				 &preferred, &nr, NULL),
		0);
	assert_int_equal(nr, 2);
	assert_int_equal(preferred[0].nr, 2);
	assert_string_equal(preferred[0].id[0], "0-0");
	assert_int_equal(preferred[1].nr, 0);
	assert_int_equal(allocate_response_decode(
				 recorded("allocate_response", *state), *state, &answer, &nr, NULL),
		0);
	assert_int_equal(nr, 2);
	assert_int_equal(answer[0].nr_env, 1);
	assert_string_equal(answer[0].env[0].key, "NUMAFIT_ALLOCATED");
	assert_int_equal(answer[0].nr_annotations, 1);
	assert_string_equal(answer[0].annotation[0].key, "numafit.io/allocated");
	assert_string_equal(answer[0].annotation[0].value, "1-0,1-1");
	assert_int_equal(answer[1].nr_annotations, 0);
}

static void a_malformed_message_is_refused(void **state)
{
	static const unsigned char cut[] = {0x0a, 200};
	struct blob in = {cut, sizeof cut};
	const struct allocate_answer *answer;
	struct device_plugin_options options;
	struct plugin_registration r;
	const struct device_ids *ids;
	struct plugin_device *list;
	size_t nr;

	assert_int_equal(registration_decode(in, *state, &r, NULL), -EBADMSG);
	assert_int_equal(device_plugin_options_decode(in, *state, &options, NULL), -EBADMSG);
	assert_int_equal(device_list_decode(in, *state, &list, &nr, NULL), -EBADMSG);
	assert_int_equal(preferred_response_decode(in, *state, &ids, &nr, NULL), -EBADMSG);
	assert_int_equal(allocate_response_decode(in, *state, &answer, &nr, NULL), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ARENA(a_registration_is_read),
		ON_ARENA(another_version_is_refused_in_the_kubelets_words),
		ON_ARENA(options_are_read),
		ON_ARENA(devices_are_read_as_they_were_written),
		ON_ARENA(a_device_with_a_malformed_numa_node_is_refused),
		ON_ARENA(a_request_for_preferred_devices_is_read),
		ON_ARENA(an_allocate_message_is_written_as_go_writes_it),
		ON_ARENA(answers_are_read_container_by_container),
		ON_ARENA(a_malformed_message_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
