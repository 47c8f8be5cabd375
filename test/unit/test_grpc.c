#include "grpc_rig.h"

static void a_call_is_answered(void **state)
{
	struct world *w = *state;
	uint32_t number = 12345;
	struct seen s = call(w, "/test.Test/Echo", RPC_UNARY, &number, sizeof number);

	assert_int_equal(s.code, RPC_OK);
	assert_string_equal(s.text, "");
	assert_int_equal(s.nr_messages, 1);
	assert_int_equal(s.number, number);
}

static void messages_may_be_empty(void **state)
{
	struct world *w = *state;
	struct seen s = call(w, "/test.Test/Echo", RPC_UNARY, NULL, 0);

	assert_int_equal(s.code, RPC_OK);
	assert_int_equal(s.nr_messages, 1);
	assert_int_equal(s.len, 0);
}

static void a_call_may_be_answered_later(void **state)
{
	struct world *w = *state;
	struct seen first = {0}, second = {0};

	start_call(w, &first, "/test.Test/Hold", RPC_UNARY, NULL, 0);
	UNTIL(w, w->nr_held == 1);
	start_call(w, &second, "/test.Test/Hold", RPC_UNARY, NULL, 0);
	UNTIL(w, w->nr_held == 2);
	assert_int_equal(first.nr_ended + second.nr_ended, 0);
	rpc_answer(w->held[1], "xy", 2);
	UNTIL(w, second.nr_ended);
	assert_int_equal(first.nr_ended, 0);
	rpc_answer(w->held[0], "x", 1);
	UNTIL(w, first.nr_ended);
	assert_int_equal(first.len, 1);
	assert_int_equal(second.len, 2);
}

static void a_status_arrives_with_its_text(void **state)
{
	struct world *w = *state;
	struct seen s = call(w, "/test.Test/Fail", RPC_UNARY, NULL, 0);

	assert_int_equal(s.code, RPC_NOT_FOUND);
	assert_string_equal(s.text, "pod \xc3\xa4: 100 % of it\nis gone");
	assert_int_equal(s.nr_messages, 0);
}

static void an_unknown_method_is_answered(void **state)
{
	static const char *const unknown[] = {
		"/test.Test/Ech", "/test.Test/Echo2", "/Test/Echo", "/", "//", "/test.Test/echo"};

	for (size_t n = 0; n < sizeof unknown / sizeof unknown[0]; n++) {
		struct seen s = call(*state, unknown[n], RPC_UNARY, "x", 1);

		assert_int_equal(s.code, RPC_UNIMPLEMENTED);
	}
}

static void a_deadline_ends_the_call_and_a_late_answer_is_harmless(void **state)
{
	struct world *w = *state;
	struct seen s = {0};
	struct rpc_request request = {
		.socket = w->path, .method = "/test.Test/Hold", .timeout_ms = 50};

	start_request(w, &s, &request);
	UNTIL(w, s.nr_ended);
	assert_int_equal(s.code, RPC_DEADLINE_EXCEEDED);
	still_serves(w);
	if (w->nr_held) /* it may never have got so far */
		rpc_answer(w->held[0], "x", 1);
	still_serves(w);
}

static void a_stream_delivers_all_messages_and_its_end(void **state)
{
	struct world *w = *state;

	uint32_t count_to = 1000;
	struct seen s = call(w, "/test.Test/Count", RPC_STREAM, &count_to, sizeof count_to);
	assert_int_equal(s.code, RPC_OK);
	assert_int_equal(s.nr_messages, 1000);
	assert_true(s.in_order);
	UNTIL(w, w->nr_closed == 1);
}

static void a_stream_may_end_without_a_message(void **state)
{
	uint32_t none = 0;
	struct seen s = call(*state, "/test.Test/Count", RPC_STREAM, &none, sizeof none);

	assert_int_equal(s.code, RPC_OK);
	assert_int_equal(s.nr_messages, 0);
}

static void a_status_waits_for_the_message_before_it(void **state)
{
	struct world *w = *state;
	struct seen s = {0};

	start_call(w, &s, "/test.Test/Hang", RPC_STREAM, NULL, 0);
	UNTIL(w, w->nr_held);
	assert_int_equal(rpc_send(w->held[0], w->big, 4 << 20), 0);
	rpc_end(w->held[0], RPC_ABORTED, "enough");
	UNTIL(w, s.nr_ended && w->nr_closed);
	assert_int_equal(s.len, 4 << 20);
	assert_int_equal(s.code, RPC_ABORTED);
	assert_string_equal(s.text, "enough");
	assert_int_equal(w->nr_sent, 0);
}

static void many_streams_run_at_once(void **state)
{
	struct world *w = *state;
	static struct seen seen[NR_STREAMS];
	uint32_t count_to = 20;
	unsigned nr_ended = 0;

	memset(seen, 0, sizeof seen);
	for (int n = 0; n < NR_STREAMS; n++)
		start_call(w, &seen[n], "/test.Test/Count", RPC_STREAM, &count_to, sizeof count_to);
	while (nr_ended < NR_STREAMS) {
		loop_run(w->l);
		nr_ended = 0;
		for (int n = 0; n < NR_STREAMS; n++)
			nr_ended += seen[n].nr_ended;
	}
	for (int n = 0; n < NR_STREAMS; n++) {
		assert_int_equal(seen[n].code, RPC_OK);
		assert_int_equal(seen[n].nr_messages, 20);
		assert_true(seen[n].in_order);
	}
	UNTIL(w, w->nr_closed == NR_STREAMS);
}

/* Its message is under way, and most often waits in the inbox already. */
static void a_canceled_call_gets_no_more_callbacks(void **state)
{
	struct world *w = *state;

	for (unsigned n = 1; n <= 100; n++) {
		struct seen s = {0};

		start_call(w, &s, "/test.Test/Hang", RPC_STREAM, NULL, 0);
		UNTIL(w, w->nr_held == n);
		assert_int_equal(rpc_send(w->held[n - 1], "x", 1), 0);
		w->to_cancel = &s;
		UNTIL(w, w->nr_closed == n);
		assert_int_equal(s.nr_messages, w->nr_seen);
		assert_int_equal(s.nr_ended, 0);
	}
}

static void a_message_callback_may_cancel_its_call(void **state)
{
	struct world *w = *state;
	struct seen s = {.cancel_in_message = true}, unary = {.cancel_in_message = true};
	uint32_t number = 1, count_to = 1000;

	start_call(w, &s, "/test.Test/Count", RPC_STREAM, &count_to, sizeof count_to);
	start_call(w, &unary, "/test.Test/Echo", RPC_UNARY, &number, sizeof number);
	UNTIL(w, w->nr_closed && unary.nr_messages);
	assert_int_equal(s.nr_messages, 1);
	still_serves(w);
	assert_int_equal(s.nr_ended + unary.nr_ended, 0);
}

static void a_call_canceled_by_the_client_may_still_be_answered(void **state)
{
	struct world *w = *state;
	struct seen s = {0};

	for (unsigned n = 0; n < 4; n++) {
		start_call(w, &s, "/test.Test/Hold", RPC_UNARY, NULL, 0);
		UNTIL(w, w->nr_held == n + 1);
		rpc_call_cancel(s.call);
	}
	rpc_answer(w->held[0], "x", 1); /* before the server heard, perhaps */
	still_serves(w);                /* and after it */
	still_serves(w);
	rpc_answer(w->held[1], "x", 1);
	rpc_end(w->held[2], RPC_ABORTED, "nobody hears it");
	still_serves(w); /* the last is not answered at all */
}

static void a_unary_call_wants_exactly_one_reply(void **state)
{
	struct world *w = *state;
	uint32_t none = 0, count_to = 2;
	struct seen s = call(w, "/test.Test/Count", RPC_UNARY, &none, sizeof none);
	assert_int_equal(s.code, RPC_INTERNAL);
	assert_string_equal(s.text, "there is no reply");
	s = call(w, "/test.Test/Count", RPC_UNARY, &count_to, sizeof count_to);
	assert_int_equal(s.code, RPC_INTERNAL);
	assert_string_equal(s.text, "there is more than one reply");
	assert_int_equal(s.nr_messages, 0);
}

static void messages_of_16_megabytes_pass_and_no_larger_ones(void **state)
{
	struct world *w = *state;
	uint32_t at_limit = RPC_REPLY_MAX, beyond = RPC_REPLY_MAX + 1;
	struct seen s = call(w, "/test.Test/Echo", RPC_UNARY, w->big, REQUEST_MAX);

	assert_int_equal(s.code, RPC_OK);
	assert_int_equal(s.len, REQUEST_MAX);
	assert_int_equal(w->nr_called, 1);
	s = call(w, "/test.Test/Echo", RPC_UNARY, w->big, REQUEST_MAX + 1);
	assert_int_equal(s.code, RPC_RESOURCE_EXHAUSTED);
	assert_int_equal(w->nr_called, 1);
	s = call(w, "/test.Test/Big", RPC_UNARY, &at_limit, sizeof at_limit);
	assert_int_equal(s.len, RPC_REPLY_MAX);
	s = call(w, "/test.Test/Big", RPC_UNARY, &beyond, sizeof beyond);
	assert_int_equal(s.code, RPC_RESOURCE_EXHAUSTED);
	still_serves(w);
}

/* The process. */

static bool blocks_signals(const char *task)
{
	char path[TEXT_MAX], line[TEXT_MAX];
	uint64_t blocked = 0;

	snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		(void)sscanf(line, "SigBlk: %" SCNx64, &blocked);
	(void)fclose(f);
	uint64_t wanted = 1u << (SIGTERM - 1) | 1u << (SIGINT - 1) | 1u << (SIGHUP - 1);
	return (blocked & wanted) == wanted;
}

static void signals_are_delivered_to_the_thread_of_the_loop(void **state)
{
	struct world *w = *state;
	DIR *tasks = opendir("/proc/self/task");
	unsigned nr_open = 0, nr = 0;

	still_serves(w);
	for (struct dirent *d; (d = readdir(tasks));) {
		if (d->d_name[0] == '.')
			continue;
		nr++;
		nr_open += !blocks_signals(d->d_name);
	}
	(void)closedir(tasks);
	assert_true(nr > 2);
	assert_int_equal(nr_open, 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_call_is_answered),
		CASE(messages_may_be_empty),
		CASE(a_call_may_be_answered_later),
		CASE(a_status_arrives_with_its_text),
		CASE(an_unknown_method_is_answered),
		CASE(a_deadline_ends_the_call_and_a_late_answer_is_harmless),
		CASE(a_stream_delivers_all_messages_and_its_end),
		CASE(a_stream_may_end_without_a_message),
		CASE(a_status_waits_for_the_message_before_it),
		CASE(many_streams_run_at_once),
		CASE(a_canceled_call_gets_no_more_callbacks),
		CASE(a_message_callback_may_cancel_its_call),
		CASE(a_call_canceled_by_the_client_may_still_be_answered),
		CASE(a_unary_call_wants_exactly_one_reply),
		CASE(messages_of_16_megabytes_pass_and_no_larger_ones),
		CASE(signals_are_delivered_to_the_thread_of_the_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
