#include "http_client_cases.h"

/* The text once, and then the connection is closed. */
static void say_text_and_close(struct peer_conn *c)
{
	if (peer_hear(c))
		(void)peer_say(c, c->peer->ctx);
}

static void an_answer_comes_with_status_type_and_body(void **state)
{
	static const struct {
		const char *answer;
		int status;
		const char *type, *body;
		unsigned retry_after_s;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
			200, "application/json", "{}", 0},
		{"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
		 "3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nTrailer: x\r\n\r\n",
			201, "", "abcde", 0},
		{"HTTP/1.1 204 No Content\r\n\r\n", 204, "", "", 0},
		{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 409 Conflict\r\nContent-Length: 1\r\n\r\nx",
			409, "", "x", 0},
		{"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, "", "", 0},
		{"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", 429, "", "",
			7},
		{"HTTP/1.1 503 Away\r\nRetry-After: Fri, 01 Jan 2021 00:00:00 GMT\r\n"
		 "Content-Length: 0\r\n\r\n",
			503, "", "", 0},
		{"HTTP/1.1 503 Away\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n", 503, "", "",
			0},
		{"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain", 200,
			"", "plain", 0},
		{"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end", 200, "",
			"until the end", 0},
	};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		r->peer = start(say_text_and_close, cases[i].answer);
		rig_get(r, "http", "api.test", r->peer);
		if (r->h.status != cases[i].status)
			fail_msg("%s: %d %s", cases[i].answer, r->h.status, r->h.text);
		assert_string_equal(r->h.type, cases[i].type);
		assert_string_equal(r->h.body, cases[i].body);
		assert_int_equal(r->h.len, strlen(cases[i].body));
		assert_int_equal(r->h.retry_after_s, cases[i].retry_after_s);
		peer_stop(r->peer);
		r->peer = NULL;
	}
}

static void a_retry_after_that_is_a_date_counts_from_now(void **state)
{
	struct rig *r = *state;
	time_t then = time(NULL) + 100;
	char date[64], answer[256];
	struct tm tm;

	(void)strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&then, &tm));
	(void)snprintf(answer, sizeof answer,
		"HTTP/1.1 429 Slow\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n", date);
	r->peer = start(say_text, answer);
	rig_get(r, "http", "api.test", r->peer);
	assert_int_equal(r->h.status, 429);
	assert_in_range(r->h.retry_after_s, 50, 100);
}

static void an_incomplete_answer_is_an_error(void **state)
{
	static const struct {
		const char *answer;
		int code;
		const char *says;
	} cases[] = {
		{"", -ECONNRESET, "Empty reply"},
		{"HTTP/1.1 200 OK\r\nContent-Le", -ECONNRESET, ""},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", -ECONNRESET,
			"3 bytes "}, /* "remaining", or "missing" since libcurl 8.14 */
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", -ECONNRESET, ""},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", -ECONNRESET,
			""},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhe\r\n", -EPROTO,
			"chunk"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhe\r\n",
			-EPROTO, "chunk"},
		{"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", -EPROTO, "Content-Length"},
		{"SSH-2.0-OpenSSH_9.2\r\n", -EPROTO, "HTTP/0.9"},
		{"\x15\x03\x01\x00\x02\x02\x16", -EPROTO, "HTTP/0.9"},
		{"HTTP/9.9 200 OK\r\n\r\n", -EPROTO, ""},
	};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		r->peer = start(say_text_and_close, cases[i].answer);
		rig_get(r, "http", "api.test", r->peer);
		if (r->h.code != cases[i].code || !strstr(r->h.text, cases[i].says) ||
			!strstr(r->h.text, "http://api.test:"))
			fail_msg("\"%s\": %d, %s", cases[i].answer, r->h.code, r->h.text);
		assert_int_equal(r->h.status, 0);
		peer_stop(r->peer);
		r->peer = NULL;
	}
}

static void endless_lines(struct peer_conn *c)
{
	static const char line[] = "X-Filler: 0123456789012345678901234567890123456789\r\n";

	if (!peer_hear(c) || !peer_say(c, "HTTP/1.1 200 OK\r\n"))
		return;
	while (peer_say(c, line))
		;
}

static void endless_line(struct peer_conn *c)
{
	if (!peer_hear(c) || !peer_say(c, "HTTP/1.1 200 OK\r\nX-Filler: "))
		return;
	while (peer_say(c, "0123456789012345678901234567890123456789"))
		;
}

static void endless_continue(struct peer_conn *c)
{
	if (!peer_hear(c))
		return;
	while (peer_say(c, "HTTP/1.1 100 Continue\r\n\r\n"))
		;
}

static void endless_chunks(struct peer_conn *c)
{
	if (!peer_hear(c) || !peer_say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
		return;
	while (peer_say(c, "10\r\n0123456789abcdef\r\n"))
		;
}

static void endless_trailers(struct peer_conn *c)
{
	if (!peer_hear(c) ||
		!peer_say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"))
		return;
	while (peer_say(c, "X-Trailer: 0123456789abcdef\r\n"))
		;
}

static void a_gigabyte(struct peer_conn *c)
{
	static const char mib[1 << 20];

	if (!peer_hear(c) || !peer_say(c, "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"))
		return;
	for (unsigned i = 0; i < 1024 && peer_write(c, mib, sizeof mib); i++)
		;
}

static void an_answer_without_end_is_cut_off(void **state)
{
	static void (*const serve[])(struct peer_conn *) = {endless_lines, endless_line,
		endless_continue, endless_chunks, endless_trailers, a_gigabyte};
	enum { SENT_MAX = 32 << 20, GROWTH_MAX_KB = 32 << 10 };
	struct rig *r = *state;
	struct rusage before, after;

	(void)getrusage(RUSAGE_SELF, &before);
	for (unsigned i = 0; i < sizeof serve / sizeof *serve; i++) {
		r->peer = start(serve[i], NULL);
		rig_get(r, "http", "api.test", r->peer);
		if (r->h.code != -EMSGSIZE)
			fail_msg("%u: %d %s", i, r->h.code, r->h.text);
		assert_in_range(r->peer->nr_sent, 1, SENT_MAX);
		peer_stop(r->peer);
		r->peer = NULL;
	}
	(void)getrusage(RUSAGE_SELF, &after);
	assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, GROWTH_MAX_KB);
}

static void a_data_callback_may_take_more_than_the_body_limit(void **state)
{
	struct rig *r = *state;
	char url[RIG_URL_MAX];

	r->peer = start(say_text, hello);
	const struct http_ask ask = {.url = rig_url(url, "http", "api.test", r->peer)};
	rig_ask(r, &ask, true);
	assert_int_equal(r->h.status, 200);
	assert_int_equal(r->h.data_len, 5);
	assert_string_equal(r->h.body, "");
	/* without data() there is no room for it */
	rig_ask(r, &ask, false);
	assert_int_equal(r->h.code, -EMSGSIZE);
}

static void the_data_callback_only_gets_successful_answers(void **state)
{
	struct rig *r = *state;
	char url[RIG_URL_MAX];

	r->peer = start(say_text, "HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone");
	const struct http_ask ask = {
		.url = rig_url(url, "http", "api.test", r->peer), .answer_max = 64};
	rig_ask(r, &ask, true);
	assert_int_equal(r->h.status, 410);
	assert_int_equal(r->h.data_len, 0);
	assert_string_equal(r->h.body, "gone");
}

static int refuse_data(void *ctx, const void *data, size_t len)
{
	(void)ctx, (void)data, (void)len;
	return -EBADMSG;
}

static void an_error_of_the_data_callback_ends_the_call(void **state)
{
	struct rig *r = *state;
	char url[RIG_URL_MAX];
	const struct http_events events = {.ctx = r, .data = refuse_data, .done = rig_done};

	r->peer = start(say_text, hello);
	const struct http_ask ask = {.url = rig_url(url, "http", "api.test", r->peer)};
	(void)http_call_start(r->c, &ask, &events);
	loop_run(r->l);
	assert_int_equal(r->h.code, -EBADMSG);
}

static void a_request_is_sent_as_it_was_asked(void **state)
{
	static const char *const headers[] = {"Authorization: Bearer secret", "Accept: a/b", NULL};
	static const char *const with_type[] = {"Content-Type: application/json", NULL};
	static const struct {
		const char *method;
		const char *const *headers;
		const char *body;
		const char *line, *has[2];
	} cases[] = {
		{NULL, headers, NULL, "GET /path?query HTTP/1.1\r\n",
			{"\r\nAuthorization: Bearer secret\r\n", "\r\nAccept: a/b\r\n"}},
		{"PATCH", with_type, "{\"a\":1}", "PATCH /path?query HTTP/1.1\r\n",
			{"\r\nContent-Type: application/json\r\n", "\r\n\r\n{\"a\":1}"}},
		{"POST", NULL, "x", "POST /path?query HTTP/1.1\r\n",
			{"\r\nContent-Length: 1\r\n", "\r\n\r\nx"}},
		{"POST", NULL, NULL, "POST /path?query HTTP/1.1\r\n",
			{"\r\nContent-Length: 0\r\n", "\r\n\r\n"}},
		{"DELETE", NULL, NULL, "DELETE /path?query HTTP/1.1\r\n", {"", "\r\n\r\n"}},
	};
	static const char *const never[] = {
		"Expect:", "Accept-Encoding:", "Cookie:", "x-www-form-urlencoded"};
	struct rig *r = *state;
	char url[RIG_URL_MAX], host[64];

	r->peer = start(say_text, hello);
	(void)snprintf(host, sizeof host, "\r\nHost: api.test:%u\r\n", r->peer->port);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *body = cases[i].body;
		const struct http_ask ask = {.method = cases[i].method,
			.url = rig_url(url, "http", "api.test", r->peer),
			.headers = cases[i].headers,
			.body = body,
			.len = body ? strlen(body) : 0,
			.answer_max = 64};
		rig_ask(r, &ask, false);
		assert_int_equal(r->h.status, 200);
		const char *got = r->peer->request;
		if (strncmp(got, cases[i].line, strlen(cases[i].line)) ||
			!strstr(got, cases[i].has[0]) || !strstr(got, cases[i].has[1]) ||
			!strstr(got, host))
			fail_msg("%s", got);
		for (size_t k = 0; k < sizeof never / sizeof *never; k++)
			assert_null(strstr(got, never[k]));
	}
	assert_int_equal(r->peer->nr_conns, 1);
}

static void a_large_body_is_sent_without_expect_100_continue(void **state)
{
	enum { LEN = 2 << 20 };
	struct rig *r = *state;
	auto_free char *body = xcalloc(LEN + 1, 1);
	char url[RIG_URL_MAX];

	memset(body, 'b', LEN);
	r->peer = start(say_text, hello);
	const struct http_ask ask = {.method = "PUT",
		.url = rig_url(url, "http", "api.test", r->peer),
		.body = body,
		.len = LEN,
		.answer_max = 64};
	rig_ask(r, &ask, false);
	assert_int_equal(r->h.status, 200);
	assert_string_equal(strstr(r->peer->request, "\r\n\r\n") + 4, body);
	assert_null(strcasestr(r->peer->request, "Expect:"));
}

static void an_answer_to_head_has_no_body(void **state)
{
	struct rig *r = *state;
	char url[RIG_URL_MAX];

	r->peer = start(say_text, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
	const struct http_ask ask = {
		.method = "HEAD", .url = rig_url(url, "http", "api.test", r->peer)};
	rig_ask(r, &ask, false);
	assert_int_equal(r->h.status, 200);
	assert_int_equal(r->h.len, 0);
	assert_memory_equal(r->peer->request, "HEAD ", 5);
}

static void a_request_that_cannot_be_sent_is_reported_by_done(void **state)
{
	static const char *const two_lines[] = {"A: secret\r\nB: c", NULL};
	static const char *const no_colon[] = {"secret", NULL};
	static const struct http_ask asks[] = {
		{.url = ""},
		{.url = "api.test/"},
		{.url = "ftp://api.test/"},
		{.url = "file:///etc/passwd"},
		{.url = "http://"},
		{.url = "http://api.test:99999/"},
		{.url = "http://user:secret@api.test/"},
		{.url = "http://api.test/a b"},
		{.url = "http://api.test/", .headers = two_lines},
		{.url = "http://api.test/", .headers = no_colon},
	};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
		rig_ask(r, &asks[i], false);
		if (r->h.code != -EINVAL)
			fail_msg("%s: %d %s", asks[i].url, r->h.code, r->h.text);
		assert_true(asks[i].headers == NULL || !strstr(r->h.text, "secret"));
	}
}

static void a_redirect_is_not_followed(void **state)
{
	struct rig *r = *state;
	char answer[256];

	r->other = start(say_text, hello);
	(void)snprintf(answer, sizeof answer,
		"HTTP/1.1 307 There\r\nLocation: http://other.test:%u/\r\nContent-Length: "
		"0\r\n\r\n",
		r->other->port);
	r->peer = start(say_text, answer);
	rig_get(r, "http", "api.test", r->peer);
	assert_int_equal(r->h.status, 307);
	assert_int_equal(r->other->nr_conns, 0);
}

static void a_connection_is_reused(void **state)
{
	struct rig *r = *state;

	r->peer = start(say_text, hello);
	for (unsigned i = 0; i < 5; i++) {
		rig_get(r, "http", "api.test", r->peer);
		assert_int_equal(r->h.status, 200);
	}
	assert_int_equal(r->peer->nr_requests, 5);
	assert_int_equal(r->peer->nr_conns, 1);
}

static void a_kept_connection_that_was_closed_is_replaced(void **state)
{
	struct rig *r = *state;

	r->peer = start(say_text_and_close, hello);
	for (unsigned i = 0; i < 5; i++) {
		rig_get(r, "http", "api.test", r->peer);
		if (r->h.status != 200)
			fail_msg("%s", r->h.text);
	}
	assert_int_equal(r->peer->nr_requests, 5);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_answer_comes_with_status_type_and_body),
		CASE(a_retry_after_that_is_a_date_counts_from_now),
		CASE(an_incomplete_answer_is_an_error),
		CASE(an_answer_without_end_is_cut_off),
		CASE(a_data_callback_may_take_more_than_the_body_limit),
		CASE(the_data_callback_only_gets_successful_answers),
		CASE(an_error_of_the_data_callback_ends_the_call),
		CASE(a_request_is_sent_as_it_was_asked),
		CASE(a_large_body_is_sent_without_expect_100_continue),
		CASE(an_answer_to_head_has_no_body),
		CASE(a_request_that_cannot_be_sent_is_reported_by_done),
		CASE(a_redirect_is_not_followed),
		CASE(a_connection_is_reused),
		CASE(a_kept_connection_that_was_closed_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
