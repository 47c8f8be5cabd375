/* The runtime's side against a plugin that is played by hand, for what a session never says. */
#include "runtime_pair.h"

/* A plugin played by hand, for what a session never says. */

static void put_answer(struct bytes *out, uint32_t id, struct bytes *payload)
{
	struct bytes body = {0};

	put_message(&body, 2, payload);
	put_go_message(out, MUX_PLUGIN, id, TYPE_RESPONSE, (struct blob){body.at, body.len});
	bytes_fini(&body);
}

static void put_registration(struct bytes *out, uint32_t id, const char *name, const char *index)
{
	struct bytes body = {0}, payload = {0};

	put_text(&payload, 1, name);
	put_text(&payload, 2, index);
	put_text(&body, 1, "nri.pkg.api.v1alpha1.Runtime");
	put_text(&body, 2, "RegisterPlugin");
	put_message(&body, 3, &payload);
	put_go_message(out, MUX_RUNTIME, id, TYPE_REQUEST, (struct blob){body.at, body.len});
	bytes_fini(&body);
}

struct by_hand {
	struct nri_runtime *r;
	struct pair seen;
};

static int feed_bytes(struct nri_runtime *r, struct bytes *in)
{
	int rc = nri_runtime_feed(r, in->at, in->len);

	bytes_fini(in);
	return rc;
}

/* A runtime whose plugin has registered and answered Configure with these events; feed's result. */
static int configure_with(struct by_hand *h, const struct nri_runtime_options *o, uint32_t events)
{
	struct nri_runtime_events ev = {&h->seen, on_configured, on_answered};
	struct bytes in = {0}, payload = {0};

	*h = (struct by_hand){.r = nri_runtime_new(o, &ev)};
	put_registration(&in, 1, "numafit", "50");
	if (events)
		put_number(&payload, 2, events);
	put_answer(&in, 1, &payload); /* too early: there was no call yet */
	assert_int_equal(feed_bytes(h->r, &in), 0);
	assert_int_equal(h->seen.subscribed, 0);
	if (events)
		put_number(&payload, 2, events);
	put_answer(&in, 1, &payload);
	return feed_bytes(h->r, &in);
}

static void only_known_events_may_be_subscribed_to(void **state)
{
	static const struct {
		bool old;
		uint32_t events, subscribed;
		int rc;
		const char *error;
	} cases[] = {
		{false, 0x6df, 0x6df, 0, ""},
		{false, 0, 0x3fff, 0, ""},
		{true, 0, 0x7ff, 0, ""},
		{true, 0x8ff, 0, -EPROTO, "invalid plugin events: 0x800"},
		{false, 0x4001, 0, -EPROTO, "invalid plugin events: 0x4000"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nri_runtime_options o = {"r", "1", cases[i].old, 0};
		struct by_hand h;

		assert_int_equal(configure_with(&h, &o, cases[i].events), cases[i].rc);
		assert_int_equal(h.seen.subscribed, cases[i].subscribed);
		assert_string_equal(nri_runtime_error(h.r), cases[i].error);
		nri_runtime_free(h.r);
	}
}

static void events_without_a_subscriber_are_answered_empty_and_in_order(void **state)
{
	struct nri_container c = container("web", 2);
	struct by_hand h;
	struct bytes in = {0}, payload = {0};

	(void)state;
	assert_int_equal(configure_with(&h, &variants[0], 0x8), 0); /* CreateContainer alone */
	nri_runtime_call(h.r, NRI_CALL_RUN_POD, &c);
	assert_string_equal(h.seen.answered, "run-pod ;");
	nri_runtime_call(h.r, NRI_CALL_CREATE, &c);
	nri_runtime_call(h.r, NRI_CALL_POST_START, &c);
	assert_string_equal(h.seen.answered, "run-pod ;");
	put_answer(&in, 3, &payload);
	assert_int_equal(feed_bytes(h.r, &in), 0);
	assert_string_equal(h.seen.answered, "run-pod ;create ;post-start ;");
	nri_runtime_free(h.r);
}

static void each_variant_of_runtime_sends_events_in_its_own_way(void **state)
{
	static const struct {
		enum nri_call call;
		bool state_change;
		const char *method;
	} cases[] = {
		{NRI_CALL_POST_START, false, "PostStartContainer"},
		{NRI_CALL_POST_START, true, "StateChange"},
		{NRI_CALL_REMOVE_POD, false, "RemovePodSandbox"},
		{NRI_CALL_REMOVE_POD, true, "StateChange"},
		{NRI_CALL_UPDATE, false, "UpdateContainer"},
		{NRI_CALL_UPDATE, true, "UpdateContainer"},
	};
	struct nri_container c = container("web", 2);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nri_runtime_options o = {"r", "1", cases[i].state_change, 0};
		struct by_hand h;
		struct arena a;
		struct ttrpc_request req;
		const void *data;

		assert_int_equal(configure_with(&h, &o, 0x7ff), 0);
		(void)nri_runtime_take(h.r, &data);
		nri_runtime_call(h.r, cases[i].call, &c);
		struct blob rest = {.len = nri_runtime_take(h.r, &data)};
		rest.data = data;
		arena_init(&a, TTRPC_MEMORY_MAX);
		assert_int_equal(ttrpc_request_decode(next_sent(&rest).body, &a, &req, NULL), 0);
		assert_string_equal(req.method, cases[i].method);
		assert_int_equal(req.timeout_ns, 2000000000);
		arena_fini(&a);
		nri_runtime_free(h.r);
	}
}

static void a_plugin_without_support_for_chunks_is_dropped(void **state)
{
	static const struct {
		bool more, update;
		int rc;
	} cases[] = {{true, false, 0}, {false, false, -EPROTO}, {true, true, -EPROTO}};
	struct nri_container two[] = {container("a", 1), container("b", 1)};
	struct nri_runtime_options o = {"r", "1", false, 1};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct by_hand h;
		struct bytes in = {0}, payload = {0}, update = {0};

		assert_int_equal(configure_with(&h, &o, 0x8), 0);
		nri_runtime_synchronize(h.r, two, 2);
		if (cases[i].update)
			put_message(&payload, 1, &update);
		if (cases[i].more)
			put_number(&payload, 2, 1);
		put_answer(&in, 3, &payload);
		assert_int_equal(feed_bytes(h.r, &in), cases[i].rc);
		assert_string_equal(nri_runtime_error(h.r),
			cases[i].rc ? "the plugin does not handle split sync requests" : "");
		nri_runtime_free(h.r);
	}
}

static void an_answer_that_cannot_be_read_is_an_error(void **state)
{
	struct nri_container c = container("web", 2);
	struct by_hand h;
	struct bytes in = {0}, payload = {0};

	(void)state;
	assert_int_equal(configure_with(&h, &variants[0], 0x8), 0);
	nri_runtime_call(h.r, NRI_CALL_CREATE, &c);
	bytes_append(&payload, "\x0a\x7f", 2);
	put_answer(&in, 3, &payload);
	assert_int_equal(feed_bytes(h.r, &in), 0);
	assert_string_equal(h.seen.answered, "create 13 2 bytes are no CreateContainerResponse;");
	nri_runtime_free(h.r);
}

static void a_bad_name_or_index_is_refused_and_the_connection_left_open(void **state)
{
	static const struct {
		const char *name, *index;
		bool good;
	} cases[] = {
		{"numafit", "50", true},
		{"a.b-c_d+1", "00", true},
		{"", "50", false},
		{"a b", "50", false},
		{"a\xc3\xa9", "50", false},
		{"numafit", "5", false},
		{"numafit", "500", false},
		{"numafit", "5x", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct nri_runtime_events ev = {NULL, on_configured, on_answered};
		struct nri_runtime *r = nri_runtime_new(&variants[0], &ev);
		struct bytes in = {0};
		const void *data;

		put_registration(&in, 1, cases[i].name, cases[i].index);
		assert_int_equal(feed_bytes(r, &in), 0);
		struct blob rest = {.len = nri_runtime_take(r, &data)};
		rest.data = data;
		assert_int_equal(next_sent(&rest).body.len > 0, !cases[i].good);
		assert_int_equal(rest.len > 0, cases[i].good); /* Configure */
		nri_runtime_free(r);
	}
}

static struct nri_runtime *chained;
static unsigned chain_left;

static void on_chain(void *ctx, enum nri_call call, const struct nri_answer *a)
{
	struct nri_container c = container("web", 2);

	(void)ctx, (void)a;
	assert_int_equal(call, NRI_CALL_RUN_POD);
	if (chain_left-- > 1)
		nri_runtime_call(chained, NRI_CALL_RUN_POD, &c);
}

static void ignore_configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	(void)ctx, (void)name, (void)index, (void)events;
}

static void a_call_made_in_the_callback_of_an_answer_is_sent(void **state)
{
	struct nri_runtime_events ev = {NULL, ignore_configured, on_chain};
	struct nri_container c = container("web", 2);
	struct bytes in = {0}, payload = {0};

	(void)state;
	chained = nri_runtime_new(&variants[0], &ev);
	chain_left =
		100000; /* of calls that nobody asked for: none may lie on the stack of another */
	put_registration(&in, 1, "numafit", "50");
	assert_int_equal(feed_bytes(chained, &in), 0);
	put_number(&payload, 2, 8);
	put_answer(&in, 1, &payload);
	assert_int_equal(feed_bytes(chained, &in), 0);
	nri_runtime_call(chained, NRI_CALL_RUN_POD, &c);
	assert_int_equal(chain_left, 0);
	nri_runtime_free(chained);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_known_events_may_be_subscribed_to),
		cmocka_unit_test(events_without_a_subscriber_are_answered_empty_and_in_order),
		cmocka_unit_test(each_variant_of_runtime_sends_events_in_its_own_way),
		cmocka_unit_test(a_plugin_without_support_for_chunks_is_dropped),
		cmocka_unit_test(an_answer_that_cannot_be_read_is_an_error),
		cmocka_unit_test(a_bad_name_or_index_is_refused_and_the_connection_left_open),
		cmocka_unit_test(a_call_made_in_the_callback_of_an_answer_is_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
