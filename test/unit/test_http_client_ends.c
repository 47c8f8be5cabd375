/* Calls of the client that time out, are canceled, fail, or are too many. */
#include "http_client_cases.h"

enum { SHORT_MS = 100, MS_PER_S = 1000, NS_PER_MS = 1000000 };

static void say_nothing(struct peer_conn *c)
{
	while (peer_hear(c))
		;
}

static void a_silent_server_ends_a_call_at_the_idle_limit(void **state)
{
	struct rig *r = *state;
	char url[RIG_URL_MAX];

	r->peer = start(say_nothing, NULL);
	const struct http_ask ask = {.url = rig_url(url, "http", "api.test", r->peer),
		.idle_ms = SHORT_MS,
		.timeout_ms = RIG_TIMEOUT_MS};
	rig_ask(r, &ask, false);
	assert_int_equal(r->h.code, -ETIMEDOUT);
	assert_non_null(strstr(r->h.text, "not a byte came for 100 ms"));
}

/* A byte of the body every few ms. */
static void drip(struct peer_conn *c)
{
	if (!peer_hear(c) || !peer_say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
		return;
	while (peer_say(c, "1\r\nx\r\n"))
		(void)usleep(SHORT_MS * MS_PER_S / 10);
}

static void a_slow_answer_ends_at_the_total_time_limit(void **state)
{
	struct rig *r = *state;
	char url[RIG_URL_MAX];

	r->peer = start(drip, NULL);
	const struct http_ask ask = {.url = rig_url(url, "http", "api.test", r->peer),
		.idle_ms = RIG_TIMEOUT_MS,
		.timeout_ms = SHORT_MS * 4};
	rig_ask(r, &ask, true);
	assert_int_equal(r->h.code, -ETIMEDOUT);
	assert_non_null(strstr(r->h.text, "not done within 400 ms"));
	assert_true(r->h.data_len > 1);
}

/* Lines of a header that come slowly enough are idle time all the same. */
static void stop_after_a_line(struct peer_conn *c)
{
	if (peer_hear(c) && peer_say(c, "HTTP/1.1 200 OK\r\n"))
		(void)peer_hear(c);
}

static void an_answer_that_stops_ends_at_the_idle_limit(void **state)
{
	struct rig *r = *state;
	char url[RIG_URL_MAX];

	r->peer = start(stop_after_a_line, NULL);
	const struct http_ask ask = {
		.url = rig_url(url, "http", "api.test", r->peer), .idle_ms = SHORT_MS};
	rig_ask(r, &ask, true);
	assert_int_equal(r->h.code, -ETIMEDOUT);
}

static void failures_to_resolve_and_to_connect_are_distinguished(void **state)
{
	struct rig *r = *state;

	r->peer = start(say_text, hello);
	struct peer nobody = {.port = 1};
	rig_get(r, "http", "api.test", &nobody);
	assert_int_equal(r->h.code, -ECONNREFUSED);
	assert_string_equal(r->h.text, "http://api.test:1: Connection refused");
	rig_get(r, "http", "none.test", r->peer);
	assert_int_equal(r->h.code, -EHOSTUNREACH);
	assert_non_null(strstr(r->h.text, "none.test"));
}

static void a_hanging_name_server_does_not_block_the_loop(void **state)
{
	struct rig *r = *state;
	char slow[RIG_URL_MAX], url[RIG_URL_MAX];
	uint64_t begin = loop_monotonic_ns();

	rig_hang();
	r->peer = start(say_text, hello);
	const struct http_ask hangs = {.url = rig_url(slow, "http", "hangs.test", r->peer),
		.timeout_ms = SHORT_MS * 2,
		.answer_max = 64};
	const struct http_ask ask = {
		.url = rig_url(url, "http", "api.test", r->peer), .answer_max = 64};
	const struct http_events events = {.ctx = r, .done = rig_done};
	(void)http_call_start(r->c, &hangs, &events);
	(void)http_call_start(r->c, &hangs, &events); /* freed while it hangs */
	rig_ask(r, &ask, false);
	assert_int_equal(r->h.status, 200);
	r->h = (struct heard){0};
	loop_run(r->l);
	assert_int_equal(r->h.code, -ETIMEDOUT);
	http_client_free(r->c);
	r->c = NULL;
	assert_true(loop_monotonic_ns() - begin < (uint64_t)RIG_HANGS_S * MS_PER_S * NS_PER_MS);
	rig_let_go();
}

static void many_calls_share_a_few_connections(void **state)
{
	enum { NR = 100, CONNECTIONS = 16 };
	struct rig *r = *state;
	char url[RIG_URL_MAX];

	r->peer = start(say_text, hello);
	const struct http_ask ask = {
		.url = rig_url(url, "http", "api.test", r->peer), .answer_max = 64};
	const struct http_events events = {.ctx = r, .done = rig_done};
	for (unsigned i = 0; i < NR; i++)
		(void)http_call_start(r->c, &ask, &events);
	while (r->h.nr_done < NR) {
		loop_run(r->l);
		assert_int_equal(r->h.status, 200);
	}
	assert_int_equal(r->peer->nr_requests, NR);
	assert_in_range(r->peer->nr_conns, 1, CONNECTIONS);
}

/* Cancel at some moment: how far the call has got. */
enum moment { AT_ONCE, IN_NEXT_TURN, WITH_SERVER, IN_DATA, IN_DONE, NR_MOMENTS };
struct cancel {
	struct rig *r;
	struct http_call *call;
	enum moment moment;
	bool free_client;
	unsigned nr_data, nr_done;
	struct loop_timer *poll;
};

static void cancel_now(struct cancel *x)
{
	if (x->free_client) {
		http_client_free(x->r->c);
		x->r->c = NULL;
	} else {
		http_call_cancel(x->call);
	}
	loop_timer_stop(x->poll);
}

static int cancel_in_data(void *ctx, const void *data, size_t len)
{
	struct cancel *x = ctx;

	(void)data, (void)len;
	x->nr_data++;
	if (x->moment == IN_DATA) {
		cancel_now(x);
		loop_stop(x->r->l);
	}
	return 0;
}

static void cancel_in_done(void *ctx, const struct http_answer *a, const struct err *e)
{
	struct cancel *x = ctx;

	(void)a, (void)e;
	x->nr_done++;
	assert_int_equal(x->moment, IN_DONE);
	cancel_now(x);
	loop_stop(x->r->l);
}

static void cancel_when_it_is_there(void *ctx)
{
	struct cancel *x = ctx;

	if (x->moment == IN_NEXT_TURN || (x->moment == WITH_SERVER && x->r->peer->nr_requests)) {
		cancel_now(x);
		loop_stop(x->r->l);
	} else {
		loop_timer_set(x->poll, 1);
	}
}

static void cancel_at(enum moment moment, bool free_client)
{
	struct rig *r = rig_new(NULL);
	struct cancel x = {.r = r, .moment = moment, .free_client = free_client};
	char url[RIG_URL_MAX], silent[RIG_URL_MAX];
	const struct http_events events = {
		.ctx = &x, .data = cancel_in_data, .done = cancel_in_done};
	const struct http_events forgotten = {.done = never};

	r->peer = start(moment == WITH_SERVER ? say_nothing : say_text, hello);
	r->other = start(say_nothing, NULL);
	const struct http_ask ask = {.url = rig_url(url, "http", "api.test", r->peer)};
	const struct http_ask company = {.url = rig_url(silent, "http", "api.test", r->other)};
	x.poll = loop_timer_new(r->l, cancel_when_it_is_there, &x);
	x.call = http_call_start(r->c, &ask, &events);
	if (free_client)
		(void)http_call_start(r->c, &company, &forgotten);
	if (moment == AT_ONCE) {
		cancel_now(&x);
	} else {
		loop_timer_set(x.poll, 0);
		loop_run(r->l);
	}
	assert_int_equal(x.nr_done, moment == IN_DONE);
	assert_int_equal(x.nr_data, moment >= IN_DATA);
	if (r->c) { /* it is as good as before */
		peer_stop(r->peer);
		r->peer = start(say_text, hello);
		rig_get(r, "http", "api.test", r->peer);
		assert_int_equal(r->h.status, 200);
	}
	assert_int_equal(x.nr_done, moment == IN_DONE);
	rig_free(r);
}

static void a_call_may_be_canceled_at_any_time(void **state)
{
	(void)state;
	for (enum moment m = AT_ONCE; m < NR_MOMENTS; m++)
		cancel_at(m, false);
	http_call_cancel(NULL);
}

static void a_client_may_be_freed_at_any_time(void **state)
{
	(void)state;
	for (enum moment m = AT_ONCE; m < NR_MOMENTS; m++)
		cancel_at(m, true);
	http_client_free(NULL);
}

/* Each answer is followed by the next call, which may be one that cannot be asked. */
struct chain {
	struct rig *r;
	struct http_ask ask;
	unsigned left;
	bool in_start;
};

static void next_of_chain(void *ctx, const struct http_answer *a, const struct err *e)
{
	struct chain *x = ctx;
	const struct http_events events = {.ctx = x, .done = next_of_chain};

	(void)a, (void)e;
	assert_false(x->in_start);
	if (!x->left--) {
		loop_stop(x->r->l);
		return;
	}
	x->in_start = true;
	(void)http_call_start(x->r->c, &x->ask, &events);
	x->in_start = false;
}

static void done_may_start_the_next_call(void **state)
{
	struct rig *r = *state;
	char url[RIG_URL_MAX];

	r->peer = start(say_text, hello);
	struct chain good = {.r = r, .left = 10, .ask.answer_max = 64};
	good.ask.url = rig_url(url, "http", "api.test", r->peer);
	next_of_chain(&good, NULL, NULL);
	loop_run(r->l);
	assert_int_equal(r->peer->nr_requests, 10);
}

static void stop_loop(void *ctx)
{
	loop_stop(ctx);
}

static void calls_that_always_fail_at_once_do_not_starve_the_loop(void **state)
{
	struct rig *r = *state;
	struct chain bad = {.r = r, .left = 1000000, .ask.url = "nothing"};
	struct loop_timer *t = loop_timer_new(r->l, stop_loop, r->l);

	next_of_chain(&bad, NULL, NULL);
	loop_timer_set(t, 1);
	loop_run(r->l);
	assert_in_range(bad.left, 1, 1000000 - 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_silent_server_ends_a_call_at_the_idle_limit),
		CASE(a_slow_answer_ends_at_the_total_time_limit),
		CASE(an_answer_that_stops_ends_at_the_idle_limit),
		CASE(failures_to_resolve_and_to_connect_are_distinguished),
		CASE(a_hanging_name_server_does_not_block_the_loop),
		CASE(many_calls_share_a_few_connections),
		cmocka_unit_test(a_call_may_be_canceled_at_any_time),
		cmocka_unit_test(a_client_may_be_freed_at_any_time),
		CASE(done_may_start_the_next_call),
		CASE(calls_that_always_fail_at_once_do_not_starve_the_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
