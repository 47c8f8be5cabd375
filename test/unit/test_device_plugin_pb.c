#include <kubelet/device_plugin_pb.h>

#include <errno.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "kubelet_wire.h"

static void options_are_written_as_go_writes_them(void **state)
{
	static const struct device_plugin_options both = {true, true}, none = {0};
	struct blob out;

	assert_int_equal(device_plugin_options_encode(&both, *state, &out, NULL), 0);
	assert_bytes(out, "options", *state);
	assert_int_equal(device_plugin_options_encode(&none, *state, &out, NULL), 0);
	assert_bytes(out, "options_none", *state);
}

static void each_option_has_its_own_field(void **state)
{
	static const struct {
		struct device_plugin_options options;
		unsigned char bytes[2];
	} cases[] = {{{.pre_start = true}, {0x08, 1}}, {{.preferred_allocation = true}, {0x10, 1}}};
	struct blob out;

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
			device_plugin_options_encode(&cases[i].options, *state, &out, NULL), 0);
		assert_int_equal(out.len, 2);
		assert_memory_equal(out.data, cases[i].bytes, 2);
	}
}

static void devices_are_written_as_go_writes_them(void **state)
{
	static const struct plugin_device devices[] = {
		{"0-0", true, 0},
		{"1-0", false, 1},
		{"252-\u00fc", true, 252},
		{"nowhere", true, DEVICE_WITHOUT_NODE},
	};
	struct blob out;

	assert_int_equal(device_list_encode(devices, 4, *state, &out, NULL), 0);
	assert_bytes(out, "devices", *state);
	assert_int_equal(device_list_encode(NULL, 0, *state, &out, NULL), 0);
	assert_bytes(out, "devices_none", *state);
}

enum { MANY = 10000, NODES = 8, SICK = 3, ID_MAX = 64 };

static struct plugin_device *many_devices(size_t nr, struct arena *a)
{
	struct plugin_device *list = arena_array(a, nr, sizeof *list);

	for (size_t i = 0; i < nr; i++) {
		char *id = arena_alloc(a, ID_MAX);

		(void)snprintf(id, ID_MAX, "node-%zu-token-%05zu", i % NODES, i);
		list[i] = (struct plugin_device){id, i % SICK != 0, (int)(i % NODES)};
	}
	return list;
}

static void ten_thousand_devices_are_written_as_go_writes_them(void **state)
{
	const struct plugin_device *list = many_devices(MANY, *state);
	struct blob want = recorded("devices_10000", *state), out;
	unsigned char got[8];

	assert_int_equal(device_list_encode(list, MANY, *state, &out, NULL), 0);
	uint32_t crc = text_crc32c(out.data, out.len);
	for (unsigned i = 0; i < 4; i++) {
		got[i] = (unsigned char)(out.len >> (24 - 8 * i));
		got[4 + i] = (unsigned char)(crc >> (24 - 8 * i));
	}
	assert_int_equal(want.len, sizeof got);
	assert_memory_equal(got, want.data, sizeof got);
}

static void more_devices_than_the_kubelet_takes_are_refused(void **state)
{
	enum { TOO_MANY = 150000 };
	const struct plugin_device *list = many_devices(TOO_MANY, *state);
	struct blob out = {0};
	struct err e;

	assert_int_equal(device_list_encode(list, TOO_MANY, *state, &out, &e), -EMSGSIZE);
	assert_non_null(strstr(e.text, "the kubelet takes 4194304"));
	assert_null(out.data);
}

static void an_id_that_is_not_utf8_is_not_sent(void **state)
{
	static const struct plugin_device odd = {"cpu\xff", true, 0};
	static const char *const ids[] = {"good", "\xc0\x80"};
	static const struct device_ids list = {ids, 2};
	static const struct key_value bad = {"k", "\xed\xa0\x80"};
	static const struct allocate_answer env = {.env = &bad, .nr_env = 1};
	static const struct allocate_answer note = {.annotation = &bad, .nr_annotations = 1};
	struct blob out;

	assert_int_equal(device_list_encode(&odd, 1, *state, &out, NULL), -EILSEQ);
	assert_int_equal(preferred_response_encode(&list, 1, *state, &out, NULL), -EILSEQ);
	assert_int_equal(allocate_response_encode(&env, 1, *state, &out, NULL), -EILSEQ);
	assert_int_equal(allocate_response_encode(&note, 1, *state, &out, NULL), -EILSEQ);
}

static void a_message_that_does_not_fit_the_arena_is_refused(void **state)
{
	static const char *const id = "x";
	static const struct device_ids ids = {&id, 1};
	static const struct key_value pair = {"key", "value"};
	static const struct allocate_answer answer = {&pair, &pair, 1, 1};
	static const struct plugin_device device = {"0-0", true, 0};
	char room[1024];
	struct blob out, in = recorded("allocate_request", *state);
	struct allocate_request request;
	struct arena a;
	int failed[4] = {0};

	for (size_t len = 0; len <= sizeof room; len++) {
		int rc[4];

		arena_init_fixed(&a, room, len);
		rc[0] = device_list_encode(&device, 1, &a, &out, NULL);
		arena_init_fixed(&a, room, len);
		rc[1] = preferred_response_encode(&ids, 1, &a, &out, NULL);
		arena_init_fixed(&a, room, len);
		rc[2] = allocate_response_encode(&answer, 1, &a, &out, NULL);
		arena_init_fixed(&a, room, len);
		rc[3] = allocate_request_decode(in, &a, &request, NULL);
		for (unsigned i = 0; i < 4; i++) {
			assert_true(rc[i] == 0 || rc[i] == (i == 3 ? -EBADMSG : -ENOMEM));
			failed[i] += rc[i] != 0;
			assert_true(rc[i] == 0 || len < sizeof room);
		}
	}
	for (unsigned i = 0; i < 4; i++)
		assert_true(failed[i] > 0);
}

static void assert_ids(const struct device_ids *got, const char *const *want, size_t nr)
{
	assert_int_equal(got->nr, nr);
	for (size_t i = 0; i < nr; i++)
		assert_string_equal(got->id[i], want[i]);
}

static void gos_preferred_request_is_read(void **state)
{
	static const char *const available[] = {"1-1", "0-0", "1-0"}, *const must[] = {"0-0"};
	struct preferred_request in;

	assert_int_equal(
		preferred_request_decode(recorded("preferred_request", *state), *state, &in, NULL),
		0);
	assert_int_equal(in.nr, 2);
	assert_ids(&in.container[0].available, available, 3);
	assert_ids(&in.container[0].must_include, must, 1);
	assert_int_equal(in.container[0].size, 2);
	assert_ids(&in.container[1].available, NULL, 0);
	assert_int_equal(in.container[1].size, 0); /* sent as -3 */
}

static void a_preferred_answer_is_written_as_go_writes_it(void **state)
{
	static const char *const ids[] = {"0-0", "1-0"};
	static const struct device_ids answer[] = {{ids, 2}, {NULL, 0}};
	struct blob out;

	assert_int_equal(preferred_response_encode(answer, 2, *state, &out, NULL), 0);
	assert_bytes(out, "preferred_response", *state);
}

static void gos_allocate_request_is_read(void **state)
{
	static const char *const ids[] = {"1-1", "1-0"};
	struct allocate_request in;

	assert_int_equal(
		allocate_request_decode(recorded("allocate_request", *state), *state, &in, NULL),
		0);
	assert_int_equal(in.nr, 2);
	assert_ids(&in.container[0], ids, 2);
	assert_ids(&in.container[1], NULL, 0);
}

static void an_allocate_answer_is_written_as_go_writes_it(void **state)
{
	static const struct key_value env = {"NUMAFIT_ALLOCATED", "1-0,1-1"};
	static const struct key_value annotation = {"numafit.io/allocated", "1-0,1-1"};
	static const struct allocate_answer answer[] = {{&env, &annotation, 1, 1}, {0}};
	struct blob out;

	assert_int_equal(allocate_response_encode(answer, 2, *state, &out, NULL), 0);
	assert_bytes(out, "allocate_response", *state);
}

static void gos_pre_start_request_is_read(void **state)
{
	static const char *const ids[] = {"1-0", "1-1"};
	struct device_ids in;

	assert_int_equal(
		pre_start_request_decode(recorded("pre_start", *state), *state, &in, NULL), 0);
	assert_ids(&in, ids, 2);
}

/* A list of nr ids of one byte, as field number field of a message. */
static struct blob id_list(unsigned field, size_t nr, struct arena *a)
{
	unsigned char *at = arena_array(a, nr, 3);

	for (size_t i = 0; i < nr; i++) {
		at[3 * i] = (unsigned char)(field << 3 | 2);
		at[3 * i + 1] = 1;
		at[3 * i + 2] = 'x';
	}
	return (struct blob){at, 3 * nr};
}

/* That message as field 1 of another one. */
static struct blob wrapped(struct blob message, struct arena *a)
{
	unsigned char *at = arena_alloc(a, message.len + 4);
	size_t len = 0;

	at[len++] = 1 << 3 | 2;
	for (size_t rest = message.len; len == 1 || rest; rest >>= 7)
		at[len++] = (unsigned char)((rest & 0x7f) | (rest >> 7 ? 0x80 : 0));
	memcpy(at + len, message.data, message.len);
	return (struct blob){at, len + message.len};
}

static void huge_lists_are_refused(void **state)
{
	static const struct {
		size_t nr;
		int rc;
	} cases[] = {{DEVICE_PLUGIN_IDS_MAX, 0}, {DEVICE_PLUGIN_IDS_MAX + 1, -E2BIG}};
	struct preferred_request preferred;
	struct allocate_request allocate;
	struct device_ids ids;
	struct err e;

	for (size_t i = 0; i < 2; i++) {
		struct blob list = id_list(1, cases[i].nr, *state);
		struct blob must = wrapped(id_list(2, cases[i].nr, *state), *state);

		assert_int_equal(pre_start_request_decode(list, *state, &ids, &e), cases[i].rc);
		assert_int_equal(
			allocate_request_decode(wrapped(list, *state), *state, &allocate, &e),
			cases[i].rc);
		assert_int_equal(
			preferred_request_decode(wrapped(list, *state), *state, &preferred, &e),
			cases[i].rc);
		assert_int_equal(
			preferred_request_decode(must, *state, &preferred, &e), cases[i].rc);
	}
	assert_string_equal(e.text, "10001 device ids, more than 10000");
}

static void requests_for_too_many_containers_are_refused(void **state)
{
	enum { MOST = DEVICE_PLUGIN_CONTAINERS_MAX };
	static const unsigned char empty[] = {1 << 3 | 2, 0};
	unsigned char *at = arena_array(*state, MOST + 1, sizeof empty);
	struct allocate_request in;

	for (size_t i = 0; i <= MOST; i++)
		memcpy(at + sizeof empty * i, empty, sizeof empty);
	struct blob most = {at, sizeof empty * MOST}, more = {at, sizeof empty * (MOST + 1)};
	assert_int_equal(allocate_request_decode(most, *state, &in, NULL), 0);
	assert_int_equal(in.nr, MOST);
	assert_int_equal(allocate_request_decode(more, *state, &in, NULL), -E2BIG);
}

static void a_malformed_message_is_refused(void **state)
{
	static const unsigned char cut[] = {0x0a, 5, 'x'}, latin[] = {0x0a, 1, 0xfc};
	static const struct blob bad[] = {{cut, sizeof cut}, {latin, sizeof latin}};
	struct preferred_request preferred;
	struct allocate_request allocate;
	struct device_ids ids;

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(pre_start_request_decode(bad[i], *state, &ids, NULL), -EBADMSG);
		assert_int_equal(
			allocate_request_decode(bad[i], *state, &allocate, NULL), -EBADMSG);
		assert_int_equal(
			preferred_request_decode(bad[i], *state, &preferred, NULL), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ARENA(options_are_written_as_go_writes_them),
		ON_ARENA(each_option_has_its_own_field),
		ON_ARENA(devices_are_written_as_go_writes_them),
		ON_ARENA(ten_thousand_devices_are_written_as_go_writes_them),
		ON_ARENA(more_devices_than_the_kubelet_takes_are_refused),
		ON_ARENA(an_id_that_is_not_utf8_is_not_sent),
		ON_ARENA(a_message_that_does_not_fit_the_arena_is_refused),
		ON_ARENA(gos_preferred_request_is_read),
		ON_ARENA(a_preferred_answer_is_written_as_go_writes_it),
		ON_ARENA(gos_allocate_request_is_read),
		ON_ARENA(an_allocate_answer_is_written_as_go_writes_it),
		ON_ARENA(gos_pre_start_request_is_read),
		ON_ARENA(huge_lists_are_refused),
		ON_ARENA(requests_for_too_many_containers_are_refused),
		ON_ARENA(a_malformed_message_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
