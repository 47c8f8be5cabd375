#include <apiserver/api.h>

#include <apiserver/api_private.h>
#include <apiserver/auth.h>
#include <codec/api_json.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "fake_api.h"

enum {
	SOON_MS = 50,
	NEVER_MS = 3600000,
	PIECE = 1 << 20,
	ANSWER_LIMIT = 4 << 20,
	RETRY_AFTER_MAX_MS = 300000,
	VALUE_MAX = 256
};

/* What an answer was. */
struct answered {
	unsigned nr;
	int status;
	bool again, has_body;
	unsigned after_ms;
	char reason[64], message[512], name[64];
};

struct world {
	struct fake_api f;
	struct api_options o;
	struct api *api;
	struct answered answered;
	char data[256]; /* of a stream */
	int data_rc;
	/* who we are, instead of apiserver/auth.c, which sends none over plain HTTP */
	char url[64], header[64];
	const char *token;
	bool is_old, unreadable, no_server;
	unsigned renewed;
	struct loop_timer *flood;
	char *piece;
	struct api_call *victim;
};

/* auth.h */

struct auth {
	struct world *w;
};

struct auth *auth_new(const struct api_options *o, struct err *e)
{
	struct auth *a = xcalloc(1, sizeof *a);

	a->w = o->ctx;
	if (!a->w->no_server) {
		a->w->renewed = 0;
		(void)auth_renew(a, e);
		return a;
	}
	(void)err_set(e, ENOENT, "no kubeconfig");
	free(a);
	return NULL;
}

void auth_free(struct auth *a)
{
	free(a);
}

bool auth_is_old(const struct auth *a)
{
	return a->w->is_old;
}

int auth_renew(struct auth *a, struct err *e)
{
	struct world *w = a->w;

	w->renewed++;
	w->is_old = false;
	if (w->unreadable)
		return err_set(e, ENOENT, "no token");
	(void)snprintf(w->header, sizeof w->header, "Authorization: Bearer %s", w->token);
	return 1; /* http_client_trust() is called each time */
}

const char *auth_url(const struct auth *a)
{
	return a->w->url;
}

const char *auth_namespace(const struct auth *a)
{
	(void)a;
	return "here";
}

const struct http_trust *auth_trust(const struct auth *a)
{
	static const struct http_trust none;

	(void)a;
	return &none;
}

const char *auth_header(const struct auth *a)
{
	return a->w->token ? a->w->header : NULL;
}

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	fake_api_log(&w->f, bad, event, text);
}

static void on_done(void *ctx, const struct api_answer *a)
{
	struct world *w = ctx;
	struct api_meta meta = {.name = ""};

	if (a->body)
		api_json_meta(a->body, &meta);
	w->answered.nr++;
	w->answered.status = a->status;
	w->answered.again = a->again;
	w->answered.has_body = a->body;
	w->answered.after_ms = a->after_ms;
	(void)text_copy(w->answered.reason, sizeof w->answered.reason, a->reason);
	(void)text_copy(w->answered.message, sizeof w->answered.message, a->message);
	(void)text_copy(w->answered.name, sizeof w->answered.name, meta.name);
	loop_stop(w->f.loop);
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);

	fake_api_init(&w->f);
	(void)snprintf(w->url, sizeof w->url, "http://127.0.0.1:%u", (unsigned)w->f.port);
	w->token = "old";
	w->o = (struct api_options){
		.user_agent = "tester/1",
		.timeout_ms = NEVER_MS,
		.ctx = w,
		.on_event = on_event,
	};
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	loop_timer_close(w->flood);
	api_free(w->api);
	fake_api_fini(&w->f);
	free(w->piece);
	free(w);
	return 0;
}

static void begin(struct world *w)
{
	struct err e = {0};

	w->api = api_new(w->f.loop, &w->o, &e);
	if (!w->api)
		fail_msg("%s", e.text);
}

static void begin_with(struct world *w, const struct fake_answer *script, size_t nr)
{
	fake_api_script(&w->f, script, nr);
	begin(w);
}
#define BEGIN(w, script) begin_with((w), (script), sizeof(script) / sizeof *(script))

static const struct answered *get(struct world *w, const char *path)
{
	unsigned before = w->answered.nr;

	(void)api_call(w->api, &(struct api_ask){.path = path}, w, on_done);
	assert_int_equal(w->answered.nr, before); /* in a later turn */
	FAKE_UNTIL(&w->f, w->answered.nr > before);
	return &w->answered;
}

#define STATUS(code, reason, message, details)                                                     \
	"{\"kind\":\"Status\",\"code\":" #code ",\"reason\":\"" reason "\",\"message\":\"" message \
	"\",\"details\":{" details "}}"
#define OBJECT "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}"

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
		"PATCH", "/apis/x/y", "application/apply-patch+yaml", "{1}~", 3};
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
	assert_string_equal(api_namespace(w->api), "here");
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
	assert_non_null(strstr(w->answered.message, "4194304"));
}

static void a_refused_token_is_read_again_and_tried_once_more(void **state)
{
	static const struct fake_answer script[] = {{.status = 401}, {.body = OBJECT}};
	struct world *w = *state;
	char value[VALUE_MAX];

	BEGIN(w, script);
	w->token = "new";
	assert_int_equal(get(w, "/x")->status, 200);
	assert_int_equal(w->f.asked, 2);
	assert_string_equal(
		fake_api_header(w->f.last, "Authorization", value, sizeof value), "Bearer new");
	assert_string_equal(w->f.log, " apiserver-up");
}

static void old_credentials_are_read_again(void **state)
{
	static const struct fake_answer script[] = {{.body = OBJECT}, {.body = OBJECT}};
	struct world *w = *state;
	char value[VALUE_MAX];

	BEGIN(w, script);
	(void)get(w, "/x");
	assert_int_equal(w->renewed, 1);
	w->token = "new";
	w->is_old = true;
	(void)get(w, "/x");
	assert_int_equal(w->renewed, 2);
	assert_string_equal(
		fake_api_header(w->f.last, "Authorization", value, sizeof value), "Bearer new");
}

static void without_a_token_none_is_sent(void **state)
{
	static const struct fake_answer script[] = {{.body = OBJECT}};
	struct world *w = *state;
	char value[VALUE_MAX];

	w->token = NULL;
	BEGIN(w, script);
	(void)get(w, "/x");
	assert_string_equal(fake_api_header(w->f.last, "Authorization", value, sizeof value), "");
}

static void a_refusal_is_logged_once(void **state)
{
	static const struct fake_answer refused = {
		.status = 401, .body = STATUS(401, "Unauthorized", "who are you", "")};
	const struct fake_answer script[] = {refused, refused, refused, refused, {.body = OBJECT},
		{.status = 403}, {.body = OBJECT}};
	struct world *w = *state;

	BEGIN(w, script);
	const struct answered *answered = get(w, "/x");
	assert_int_equal(answered->status, 401);
	assert_false(answered->again);
	assert_int_equal(w->f.asked, 2);
	assert_string_equal(w->f.log, " apiserver-refused!");
	assert_string_equal(w->f.last_text, "who are you");
	(void)get(w, "/x");
	assert_string_equal(w->f.log, " apiserver-refused!");
	(void)get(w, "/x");
	/* what one may not do is reported by the caller */
	(void)get(w, "/x");
	(void)get(w, "/x");
	assert_string_equal(w->f.log, " apiserver-refused! apiserver-up");
}

static void unreadable_credentials_are_logged_once_and_the_old_ones_are_used(void **state)
{
	static const struct fake_answer script[] = {{.status = 401}, {.status = 401},
		{.status = 401}, {.body = OBJECT}, {.body = OBJECT}};
	struct world *w = *state;
	char value[VALUE_MAX];
	uint64_t failures = 0;

	BEGIN(w, script);
	assert_null(api_unreadable(w->api, &failures));
	w->unreadable = true;
	assert_int_equal(get(w, "/x")->status, 401);
	assert_string_equal(w->f.log, " credentials-unreadable! apiserver-refused!");
	assert_string_equal(api_unreadable(w->api, &failures), "no token");
	assert_int_equal(failures, 2); /* before it is tried once more, and after */
	assert_int_equal(get(w, "/x")->status, 200);
	assert_string_equal(
		fake_api_header(w->f.last, "Authorization", value, sizeof value), "Bearer old");
	assert_string_equal(w->f.log, " credentials-unreadable! apiserver-refused! apiserver-up");
}

static void an_absent_server_is_logged_once_and_again_as_bad_when_it_lasts(void **state)
{
	static const struct fake_answer script[] = {
		{.body = OBJECT}, {.status = 503}, {.body = OBJECT}};
	struct world *w = *state;

	w->o.patience_ms = 1;
	BEGIN(w, script);
	(void)get(w, "/x");
	fake_api_down(&w->f);
	const struct answered *answered = get(w, "/x");
	assert_int_equal(answered->status, 0);
	assert_true(answered->again);
	assert_string_equal(w->f.log, " apiserver-up apiserver-unreachable");
	fake_api_stay_quiet(&w->f);
	(void)get(w, "/x");
	(void)get(w, "/x");
	assert_string_equal(w->f.log, " apiserver-up apiserver-unreachable apiserver-unreachable!");
	fake_api_up(&w->f);
	(void)get(w, "/x"); /* a proxy before it */
	assert_string_equal(w->f.log, " apiserver-up apiserver-unreachable apiserver-unreachable!");
	(void)get(w, "/x");
	assert_string_equal(w->f.log,
		" apiserver-up apiserver-unreachable apiserver-unreachable! apiserver-up");
}

static void a_server_with_a_wrong_certificate_is_bad_at_once(void **state)
{
	struct world *w = *state;

	(void)snprintf(w->url, sizeof w->url, "https://127.0.0.1:%u", (unsigned)w->f.port);
	begin(w);
	/* its TLS handshake does not look like a request */
	(void)api_call(w->api, &(struct api_ask){.path = "/x"}, w, on_done);
	FAKE_UNTIL(&w->f, w->f.first);
	fake_api_answer(w->f.first, 400, NULL, "not TLS");
	FAKE_UNTIL(&w->f, w->answered.nr == 1);
	assert_int_equal(w->answered.status, 0);
	assert_string_equal(w->f.log, " apiserver-unreachable!");
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

static void missing_credentials_are_an_error_with_a_reason(void **state)
{
	struct world *w = *state;
	struct err e = {0};

	w->no_server = true;
	assert_null(api_new(w->f.loop, &w->o, &e));
	assert_string_equal(e.text, "no kubeconfig");
	api_free(NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_call_sends_token_method_path_and_body),
		CASE(an_answer_is_reported_with_its_message_and_whether_a_retry_may_help),
		CASE(a_call_without_an_answer_times_out),
		CASE(no_answer_is_taken_beyond_its_limit),
		CASE(a_refused_token_is_read_again_and_tried_once_more),
		CASE(old_credentials_are_read_again),
		CASE(without_a_token_none_is_sent),
		CASE(a_refusal_is_logged_once),
		CASE(unreadable_credentials_are_logged_once_and_the_old_ones_are_used),
		CASE(an_absent_server_is_logged_once_and_again_as_bad_when_it_lasts),
		CASE(a_server_with_a_wrong_certificate_is_bad_at_once),
		CASE(a_canceled_call_never_calls_back),
		CASE(closing_the_api_ends_its_calls),
		CASE(a_callback_may_start_and_cancel_calls),
		CASE(an_answer_may_be_a_stream),
		CASE(the_reason_for_a_refused_stream_is_reported),
		CASE(a_broken_stream_does_not_make_the_server_bad),
		CASE(missing_credentials_are_an_error_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
