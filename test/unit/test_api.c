#include "api_rig.h"

static void a_call_sends_token_method_path_and_body(void **state)
{
	static const struct fake_answer script[] = {
		{"GET /api/v1/nodes/n1?timeout=5s", .body = "{}"},
		{"PATCH /apis/x/y", .body = "{}"}, {"POST /z", .body = "{}"}};
	struct world *w = *state;
	char value[VALUE_MAX];

	BEGIN(w, script);
	(void)get(w, "/api/v1/nodes/n1?timeout=5s");
	const struct fake_ask *q = w->f.last;
	assert_string_equal(fake_api_header(q, "User-Agent", value, sizeof value), "tester/1");
	assert_string_equal(fake_api_header(q, "Accept", value, sizeof value), "application/json");
	assert_string_equal(fake_api_header(q, "Authorization", value, sizeof value), "Bearer old");
	assert_string_equal(fake_api_header(q, "Content-Type", value, sizeof value), "");

	const struct api_ask patch = {
		"PATCH", "/apis/x/y", "application/apply-patch+yaml", "{1}~", 3, 0};
	(void)api_call(w->api, &patch, w, on_done);
	FAKE_UNTIL(&w->f, w->answered.nr == 2);
	assert_string_equal(fake_api_header(q, "Content-Type", value, sizeof value),
		"application/apply-patch+yaml");
	assert_string_equal(q->body, "{1}");

	const struct api_ask post = {.method = "POST", .path = "/z", .body = "", .len = 0};
	(void)api_call(w->api, &post, w, on_done);
	FAKE_UNTIL(&w->f, w->answered.nr == 3);
	assert_string_equal(
		fake_api_header(q, "Content-Type", value, sizeof value), "application/json");
	assert_string_equal(fake_api_header(q, "Content-Length", value, sizeof value), "0");
	assert_int_equal(w->f.connected, 1); /* which is kept */
}

static void an_answer_is_reported_with_its_message_and_whether_a_retry_may_help(void **state)
{
	static const struct {
		struct fake_answer says;
		struct answered want;
	} cases[] = {
		{{.body = OBJECT}, {.status = 200, .has_body = true, .name = "n1"}},
		{{.status = 201, .body = OBJECT}, {.status = 201, .has_body = true, .name = "n1"}},
		{{.status = 204}, {.status = 204}},
		{{.status = 404, .body = STATUS(404, "NotFound", "no such thing", "")},
			{.status = 404,
				.has_body = true,
				.reason = "NotFound",
				.message = "no such thing"}},
		{{.status = 404, .body = "404 page not found\n"},
			{.status = 404, .message = "HTTP status 404"}},
		{{.status = 403, .body = STATUS(403, "Forbidden", "you cannot", "")},
			{.status = 403,
				.has_body = true,
				.reason = "Forbidden",
				.message = "you cannot"}},
		{{.status = 409, .body = STATUS(409, "Conflict", "mine", "")},
			{.status = 409, .has_body = true, .reason = "Conflict", .message = "mine"}},
		{{.status = 302, .extra = "Location: http://127.0.0.1:1/\r\n"},
			{.status = 302, .message = "HTTP status 302"}},
		{{.status = 429, .extra = "Retry-After: 2\r\n"},
			{.status = 429,
				.again = true,
				.after_ms = 2000,
				.message = "HTTP status 429"}},
		{{.status = 429,
			 .body = STATUS(429, "TooManyRequests", "wait", "\"retryAfterSeconds\":3")},
			{.status = 429,
				.has_body = true,
				.again = true,
				.after_ms = 3000,
				.reason = "TooManyRequests",
				.message = "wait"}},
		{{.status = 503, .extra = "Retry-After: 99999999\r\n", .body = "<html>"},
			{.status = 503,
				.again = true,
				.after_ms = RETRY_AFTER_MAX_MS,
				.message = "HTTP status 503"}},
		{{.status = 500}, {.status = 500, .again = true, .message = "HTTP status 500"}},
		{{.status = 502}, {.status = 502, .again = true, .message = "HTTP status 502"}},
		{{.status = 504}, {.status = 504, .again = true, .message = "HTTP status 504"}},
		{{.body = "<html>"}, {.again = true, .message = "answer: not JSON"}},
		{{.body = "[]"}, {.again = true, .message = "answer: should be a JSON object"}},
		{{.how = FAKE_CUTS, .body = "{"}, {.again = true}},
	};
	struct world *w = *state;

	begin(w);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct answered *want = &cases[i].want;

		fake_api_script(&w->f, &cases[i].says, 1);
		const struct answered *answered = get(w, "/x");
		assert_int_equal(answered->status, want->status);
		assert_int_equal(answered->again, want->again);
		assert_int_equal(answered->has_body, want->has_body);
		assert_int_equal(answered->after_ms, want->after_ms);
		assert_string_equal(answered->reason, want->reason);
		assert_string_equal(answered->name, want->name);
		if (!strstr(answered->message, want->message))
			fail_msg("case %zu: \"%s\"", i, answered->message);
		assert_true(answered->status ? answered->status < 300 || answered->message[0]
					     : answered->message[0] != '\0');
	}
}

static void a_call_without_an_answer_times_out(void **state)
{
	static const struct fake_answer script[] = {{.how = FAKE_NEVER}, {.body = "{}"}};
	struct world *w = *state;

	w->o.timeout_ms = SOON_MS;
	BEGIN(w, script);
	const struct answered *answered = get(w, "/x");
	assert_int_equal(answered->status, 0);
	assert_true(answered->again);
	assert_string_equal(w->f.log, " apiserver-unreachable");
	assert_int_equal(get(w, "/x")->status, 200);
}

static void send_piece(void *ctx)
{
	struct world *w = ctx;

	if (w->f.last)
		fake_api_say(w->f.last, w->piece);
	loop_timer_set(w->flood, 1);
}

static void no_answer_is_taken_beyond_its_limit(void **state)
{
	static const struct fake_answer script[] = {{.how = FAKE_GOES_ON, .body = "{\"a\":\""}};
	struct world *w = *state;

	BEGIN(w, script);
	w->piece = xcalloc(1, PIECE + 1);
	memset(w->piece, 'x', PIECE);
	(void)api_call(w->api, &(struct api_ask){.path = "/x"}, w, on_done);
	FAKE_UNTIL(&w->f, w->f.asked == 1);
	w->flood = loop_timer_new(w->f.loop, send_piece, w);
	send_piece(w);
	FAKE_UNTIL(&w->f, w->answered.nr == 1);
	assert_int_equal(w->answered.status, 0);
	assert_non_null(strstr(w->answered.message, "16777216"));
}

static void a_canceled_call_never_calls_back(void **state)
{
	static const struct fake_answer script[] = {
		{.how = FAKE_NEVER}, {.how = FAKE_GOES_ON, .body = "{"}, {.body = OBJECT}};
	struct world *w = *state;
	const struct api_ask ask = {.path = "/x"};

	BEGIN(w, script);
	api_cancel(NULL);
	api_cancel(api_call(w->api, &ask, w, on_done)); /* before it began */
	for (unsigned asked = 1; asked <= 2; asked++) {
		struct api_call *call = api_call(w->api, &ask, w, on_done);

		FAKE_UNTIL(&w->f, w->f.asked == asked);
		api_cancel(call);
	}
	(void)get(w, "/x");
	assert_int_equal(w->answered.nr, 1);
}

static void closing_the_api_ends_its_calls(void **state)
{
	static const struct fake_answer script[] = {{.how = FAKE_NEVER}, {.how = FAKE_NEVER}};
	struct world *w = *state;
	const struct api_ask ask = {.path = "/x"};

	BEGIN(w, script);
	(void)api_call(w->api, &ask, w, on_done);
	(void)api_call(w->api, &ask, w, on_done);
	FAKE_UNTIL(&w->f, w->f.asked == 2);
	(void)api_call(w->api, &ask, w, on_done);
	api_free(w->api);
	w->api = NULL;
	fake_api_stay_quiet(&w->f);
	assert_int_equal(w->answered.nr, 0);
}

static void call_again_and_cancel(void *ctx, const struct api_answer *a)
{
	struct world *w = ctx;

	assert_int_equal(a->status, 200);
	api_cancel(w->victim);
	(void)api_call(w->api, &(struct api_ask){.path = "/second"}, w, on_done);
}

static void a_callback_may_start_and_cancel_calls(void **state)
{
	static const struct fake_answer script[] = {
		{.how = FAKE_NEVER}, {"/first", .body = OBJECT}, {"/second", .body = OBJECT}};
	struct world *w = *state;

	BEGIN(w, script);
	w->victim = api_call(w->api, &(struct api_ask){.path = "/victim"}, w, on_done);
	FAKE_UNTIL(&w->f, w->f.asked == 1);
	(void)api_call(w->api, &(struct api_ask){.path = "/first"}, w, call_again_and_cancel);
	FAKE_UNTIL(&w->f, w->answered.nr == 1);
	assert_int_equal(w->f.asked, 3);
}

static int on_data(void *ctx, const void *data, size_t len)
{
	struct world *w = ctx;
	size_t had = strlen(w->data);

	assert_true(had + len < sizeof w->data);
	(void)memcpy(w->data + had, data, len);
	loop_stop(w->f.loop);
	return w->data_rc;
}

static void stream(struct world *w, unsigned idle_ms)
{
	(void)api_stream(w->api, &(struct api_stream){"/w", idle_ms, w, on_data, on_done});
}

static void an_answer_may_be_a_stream(void **state)
{
	static const struct fake_answer script[] = {{"GET /w", .how = FAKE_GOES_ON, .body = "one"}};
	struct world *w = *state;

	BEGIN(w, script);
	stream(w, 0);
	FAKE_UNTIL(&w->f, text_equal(w->data, "one"));
	fake_api_say(w->f.last, "two");
	FAKE_UNTIL(&w->f, text_equal(w->data, "onetwo"));
	fake_api_end(w->f.last);
	FAKE_UNTIL(&w->f, w->answered.nr == 1);
	assert_int_equal(w->answered.status, 200);
	assert_false(w->answered.has_body);
}

static void the_reason_for_a_refused_stream_is_reported(void **state)
{
	static const struct fake_answer script[] = {{.status = 401},
		{.status = 429,
			.body = STATUS(429, "TooManyRequests", "wait", "\"retryAfterSeconds\":1")}};
	struct world *w = *state;

	BEGIN(w, script);
	stream(w, 0);
	FAKE_UNTIL(&w->f, w->answered.nr == 1);
	assert_int_equal(w->answered.status, 429);
	assert_int_equal(w->answered.after_ms, 1000);
	assert_string_equal(w->data, "");
}

/* The next call will show whether the server is there. */
static void a_broken_stream_does_not_make_the_server_bad(void **state)
{
	static const struct fake_answer script[] = {{.how = FAKE_CUTS, .body = "x"},
		{.how = FAKE_GOES_ON, .body = "x"}, {.how = FAKE_GOES_ON, .body = "x"}};
	struct world *w = *state;

	BEGIN(w, script);
	stream(w, 0);
	FAKE_UNTIL(&w->f, w->answered.nr == 1);
	assert_int_equal(w->answered.status, 0);
	stream(w, SOON_MS); /* silence */
	FAKE_UNTIL(&w->f, w->answered.nr == 2);
	assert_int_equal(w->answered.status, 0);
	w->data_rc = -EPROTO; /* we do not want it */
	stream(w, 0);
	FAKE_UNTIL(&w->f, w->answered.nr == 3);
	assert_int_equal(w->answered.status, 0);
	assert_string_equal(w->f.log, "");
	fake_api_down(&w->f);
	stream(w, 0);
	FAKE_UNTIL(&w->f, w->answered.nr == 4);
	assert_string_equal(w->f.log, " apiserver-unreachable");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_call_sends_token_method_path_and_body),
		CASE(an_answer_is_reported_with_its_message_and_whether_a_retry_may_help),
		CASE(a_call_without_an_answer_times_out),
		CASE(no_answer_is_taken_beyond_its_limit),
		CASE(a_canceled_call_never_calls_back),
		CASE(closing_the_api_ends_its_calls),
		CASE(a_callback_may_start_and_cancel_calls),
		CASE(an_answer_may_be_a_stream),
		CASE(the_reason_for_a_refused_stream_is_reported),
		CASE(a_broken_stream_does_not_make_the_server_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
