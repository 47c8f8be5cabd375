/* The calls of a device plugin that have one answer: options, preferences, Allocate and
 * PreStartContainer. */
#include "device_plugin_rig.h"

static void assert_answer(const struct seen *s, struct blob want)
{
	assert_string_equal(s->text, "");
	assert_int_equal(s->code, RPC_OK);
	assert_int_equal(s->nr_messages, 1);
	assert_true(is_message(s, want));
}

static void put_number(struct bytes *b, uint64_t n)
{
	for (; n > 0x7f; n >>= 7)
		*vec_push(b) = (unsigned char)((n & 0x7f) | 0x80);
	*vec_push(b) = (unsigned char)n;
}

static void put_field(struct bytes *b, unsigned field, const void *data, size_t len)
{
	put_number(b, field << 3 | 2);
	put_number(b, len);
	for (size_t i = 0; i < len; i++)
		*vec_push(b) = ((const unsigned char *)data)[i];
}

static void put_ids(struct bytes *b, unsigned field, struct world *w, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		put_field(b, field, w->id[i], strlen(w->id[i]));
}

/* The message with that one as its field 1; b is used up. */
static void put_container(struct bytes *request, struct bytes *b)
{
	put_field(request, 1, b->at, b->nr);
	vec_fini(b);
}

/* Allocate for one container that gets the first nr devices. */
static struct seen *allocate_first(struct world *w, size_t nr)
{
	struct bytes container = {0}, request = {0};

	put_ids(&container, 1, w, nr);
	put_container(&request, &container);
	struct seen *s = call(w, ALLOCATE, blob(&request));
	vec_fini(&request);
	return s;
}

static void put_preferred(
	struct bytes *request, struct world *w, size_t nr_available, size_t nr_must, uint64_t size)
{
	struct bytes container = {0};

	put_ids(&container, 1, w, nr_available);
	put_ids(&container, 2, w, nr_must);
	put_number(&container, 3 << 3);
	put_number(&container, size);
	put_container(request, &container);
}

static struct seen *preferred(struct world *w, size_t nr_available, size_t nr_must, uint64_t size)
{
	struct bytes request = {0};

	put_preferred(&request, w, nr_available, nr_must, size);
	struct seen *s = call(w, PREFERRED, blob(&request));
	vec_fini(&request);
	return s;
}

static struct seen *start_container(struct world *w, size_t nr)
{
	struct bytes request = {0};

	put_ids(&request, 1, w, nr);
	struct seen *s = call(w, PRE_START, blob(&request));
	vec_fini(&request);
	return s;
}

/* Calls. */

static void the_options_list_the_calls_that_have_handlers(void **state)
{
	struct world *w = *state;
	struct blob all = {"\x08\x01\x10\x01", 4}, no_pre_start = {"\x10\x01", 2};

	assert_answer(call(w, OPTIONS, (struct blob){0}), all);
	assert_true(device_plugin_options(w->plugin).pre_start);
	assert_true(device_plugin_options(w->plugin).preferred_allocation);
	w->handler.pre_start = NULL;
	assert_answer(call(w, OPTIONS, (struct blob){0}), no_pre_start);
	assert_false(device_plugin_options(w->plugin).pre_start);
}

static void a_preferred_allocation_comes_from_the_handler(void **state)
{
	struct world *w = *state;
	const char *const want[] = {w->id[2], w->id[3]};
	const struct device_ids ids = {want, 2};
	struct blob out;

	assert_int_equal(preferred_response_encode(&ids, 1, &w->arena, &out, NULL), 0);
	assert_answer(preferred(w, 4, 1, 2), out);
	assert_int_equal(w->ask_size, 2);
	assert_int_equal(w->nr_available, 4);
	assert_int_equal(w->nr_must, 1);
	assert_string_equal(w->first, w->id[0]);
}

static void each_container_gets_its_own_preferred_allocation(void **state)
{
	struct world *w = *state;
	const char *const want[] = {w->id[0], w->id[4]};
	const struct device_ids ids[] = {{want, 1}, {want + 1, 1}};
	struct bytes request = {0};
	struct blob out;

	put_preferred(&request, w, 1, 0, 1);
	put_preferred(&request, w, 5, 0, 1);
	assert_int_equal(preferred_response_encode(ids, 2, &w->arena, &out, NULL), 0);
	assert_answer(call(w, PREFERRED, blob(&request)), out);
	vec_fini(&request);
}

static void a_preferred_allocation_may_choose_from_ten_thousand_ids(void **state)
{
	struct world *w = *state;
	const char **want = arena_array(&w->arena, DEVICE_PLUGIN_IDS_MAX, sizeof *want);
	struct blob out;

	make_devices(w, DEVICE_PLUGIN_IDS_MAX + 1);
	for (size_t i = 0; i < DEVICE_PLUGIN_IDS_MAX; i++)
		want[i] = w->id[i];
	struct device_ids ids = {want, DEVICE_PLUGIN_IDS_MAX};
	assert_int_equal(preferred_response_encode(&ids, 1, &w->arena, &out, NULL), 0);
	assert_answer(preferred(w, ids.nr, ids.nr, ids.nr), out);
	assert_int_equal(w->nr_must, ids.nr);
}

/* Too many ids, or an answer beyond what the kubelet takes. */
static void a_preferred_allocation_without_a_choice_does_not_fail_the_pod(void **state)
{
	struct world *w = *state;
	struct bytes request = {0};

	make_devices(w, DEVICE_PLUGIN_IDS_MAX + 1);
	assert_answer(preferred(w, DEVICE_PLUGIN_IDS_MAX + 1, 0, 1), (struct blob){0});
	assert_answer(preferred(w, 1, DEVICE_PLUGIN_IDS_MAX + 1, 1), (struct blob){0});
	for (unsigned n = 0; n <= DEVICE_PLUGIN_CONTAINERS_MAX; n++)
		put_preferred(&request, w, 1, 0, 1);
	assert_answer(call(w, PREFERRED, blob(&request)), (struct blob){0});
	assert_int_equal(w->nr_asked, 0);
	vec_fini(&request);
}

static void devices_are_allocated(void **state)
{
	struct world *w = *state;
	const char *const want[] = {w->id[0], w->id[1], w->id[2]};
	const struct device_ids ids = {want, 3};
	struct allocate_answer answer = answer_for(&ids, &w->arena);
	struct blob out;

	assert_int_equal(allocate_response_encode(&answer, 1, &w->arena, &out, NULL), 0);
	assert_answer(allocate_first(w, 3), out);
	assert_int_equal(w->nr_ids, 3);
	assert_string_equal(w->first, w->id[0]);
	assert_string_equal(w->last, w->id[2]);
}

static void each_container_is_allocated_its_own_devices(void **state)
{
	struct world *w = *state;
	const char *const want[] = {w->id[0], w->id[1]};
	const struct device_ids ids[] = {{want, 2}, {NULL, 0}};
	struct allocate_answer answer[] = {
		answer_for(&ids[0], &w->arena), answer_for(&ids[1], &w->arena)};
	struct bytes container = {0}, request = {0};
	struct blob out;

	put_ids(&container, 1, w, 2);
	put_container(&request, &container);
	put_container(&request, &container);
	assert_int_equal(allocate_response_encode(answer, 2, &w->arena, &out, NULL), 0);
	assert_answer(call(w, ALLOCATE, blob(&request)), out);
	assert_int_equal(w->nr_asked, 2);
	w->nr_asked = 0;
	(void)err_set(&w->refuse, EBUSY, "held");
	assert_int_equal(call(w, ALLOCATE, blob(&request))->code, RPC_FAILED_PRECONDITION);
	assert_int_equal(w->nr_asked, 1);
	vec_fini(&request);
}

static void ten_thousand_ids_are_allocated_and_more_are_refused(void **state)
{
	struct world *w = *state;

	make_devices(w, DEVICE_PLUGIN_IDS_MAX + 1);
	assert_int_equal(allocate_first(w, DEVICE_PLUGIN_IDS_MAX)->code, RPC_OK);
	assert_int_equal(w->nr_ids, DEVICE_PLUGIN_IDS_MAX);
	assert_string_equal(w->last, w->id[DEVICE_PLUGIN_IDS_MAX - 1]);
	struct seen *s = allocate_first(w, DEVICE_PLUGIN_IDS_MAX + 1);
	assert_int_equal(s->code, RPC_RESOURCE_EXHAUSTED);
	assert_string_equal(s->text, "10001 device ids, more than 10000");
	assert_int_equal(w->nr_asked, 1);
}

static int odd_answer(void *ctx, const struct device_ids *ids, struct arena *a,
	struct allocate_answer *out, struct err *e)
{
	static const struct key_value pair = {"key", "\xff"};

	(void)ctx, (void)ids, (void)a, (void)e;
	*out = (struct allocate_answer){.env = &pair, .nr_env = 1};
	return 0;
}

static void an_answer_that_cannot_be_sent_is_an_error(void **state)
{
	struct world *w = *state;

	w->handler.allocate = odd_answer;
	struct seen *s = allocate_first(w, 1);
	assert_int_equal(s->code, RPC_INTERNAL);
	assert_non_null(strstr(s->text, "not UTF-8"));
}

static void a_pre_start_call_reaches_the_handler(void **state)
{
	struct world *w = *state;

	assert_answer(start_container(w, 3), (struct blob){0});
	assert_int_equal(w->nr_ids, 3);
	(void)err_set(&w->refuse, EAGAIN, "the runtime is not connected");
	struct seen *s = start_container(w, 3);
	assert_int_equal(s->code, RPC_UNAVAILABLE);
	assert_string_equal(s->text, "the runtime is not connected");
}

static void a_pre_start_call_without_a_handler_succeeds(void **state)
{
	struct world *w = *state;

	w->handler.pre_start = NULL;
	assert_answer(start_container(w, 3), (struct blob){0});
	assert_int_equal(w->nr_asked, 0);
}

static void an_error_arrives_with_its_text(void **state)
{
	static const struct {
		int error;
		enum rpc_code code;
	} cases[] = {
		{EINVAL, RPC_INVALID_ARGUMENT},
		{ENOENT, RPC_NOT_FOUND},
		{ENOSPC, RPC_RESOURCE_EXHAUSTED},
		{EBUSY, RPC_FAILED_PRECONDITION},
		{EAGAIN, RPC_UNAVAILABLE},
		{ENOTCONN, RPC_UNAVAILABLE},
		{EIO, RPC_INTERNAL},
	};
	struct world *w = *state;

	for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
		char shown[64]; /* the kubelet logs the text: a control character is replaced */

		(void)err_set(&w->refuse, cases[n].error, "token n\xc3\xb6 %zu\nis 100 %%", n);
		(void)snprintf(shown, sizeof shown, "token n\xc3\xb6 %zu?is 100 %%", n);
		struct seen *s = allocate_first(w, 1);
		assert_int_equal(s->code, cases[n].code);
		assert_string_equal(s->text, shown);
		assert_int_equal(s->nr_messages, 0);
		assert_int_equal(s->nr_ended, 1);
	}
}

static void a_text_that_was_cut_within_a_character_arrives(void **state)
{
	struct world *w = *state;
	enum { CAP = sizeof w->refuse.text };

	w->refuse.code = EINVAL;
	memset(w->refuse.text, 'x', CAP - 1);
	w->refuse.text[CAP - 2] = '\xc3';
	struct seen *s = allocate_first(w, 1);
	assert_int_equal(s->code, RPC_INVALID_ARGUMENT);
	w->refuse.text[CAP - 2] = '?';
	assert_string_equal(s->text, w->refuse.text);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_options_list_the_calls_that_have_handlers),
		CASE(a_preferred_allocation_comes_from_the_handler),
		CASE(each_container_gets_its_own_preferred_allocation),
		CASE(a_preferred_allocation_may_choose_from_ten_thousand_ids),
		CASE(a_preferred_allocation_without_a_choice_does_not_fail_the_pod),
		CASE(devices_are_allocated),
		CASE(each_container_is_allocated_its_own_devices),
		CASE(ten_thousand_ids_are_allocated_and_more_are_refused),
		CASE(an_answer_that_cannot_be_sent_is_an_error),
		CASE(a_pre_start_call_reaches_the_handler),
		CASE(a_pre_start_call_without_a_handler_succeeds),
		CASE(an_error_arrives_with_its_text),
		CASE(a_text_that_was_cut_within_a_character_arrives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
