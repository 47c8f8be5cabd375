#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nri_wire.h"

static const char service[] = "a.Service";

/* One end, what reached its events, and what it gives back. */
struct end {
	struct ttrpc t;
	struct bytes out;
	char seen[256]; /* methods, or statuses with their messages, each followed by ';' */
	struct blob reply;
	int give;
	unsigned parks; /* calls of Wait that are parked before one is answered */
};

static int serve(void *ctx, const struct ttrpc_request *req, struct arena *a,
	struct ttrpc_response *reply, struct err *e)
{
	struct end *end = ctx;
	size_t len = strlen(end->seen);

	if (strcmp(req->method, "Wait") == 0 && end->parks) {
		end->parks--;
		return TTRPC_PARKED;
	}
	(void)snprintf(end->seen + len, sizeof end->seen - len, "%s;", req->method);
	reply->payload = end->reply;
	if (strcmp(req->method, "Refuse") == 0)
		return ttrpc_refuse(reply, a, TTRPC_UNKNOWN, "no");
	return end->give < 0 ? err_set(e, EPROTO, "given up") : 0;
}

static int answered(void *ctx, const struct ttrpc_response *r, struct arena *a, struct err *e)
{
	struct end *end = ctx;
	size_t len = strlen(end->seen);

	(void)a, (void)e;
	(void)snprintf(end->seen + len, sizeof end->seen - len, "%d %s;", r->status, r->message);
	return 0;
}

static void init(struct end *end, bool server)
{
	static const struct ttrpc_events as_server = {.serve = serve},
					 as_client = {.answered = answered};

	*end = (struct end){0};
	ttrpc_init(&end->t, MUX_PLUGIN, service, server ? &as_server : &as_client, end, &end->out);
}

static void fini(struct end *end)
{
	ttrpc_fini(&end->t);
	bytes_fini(&end->out);
}

static void put_request(struct bytes *out, uint32_t id, const char *to, const char *method)
{
	struct bytes body = {0};

	put_text(&body, 1, to);
	put_text(&body, 2, method);
	put_ttrpc(out, id, TYPE_REQUEST, (struct blob){body.at, body.len});
	bytes_fini(&body);
}

static int feed(struct end *end, struct bytes *in)
{
	int rc = ttrpc_feed(&end->t, in->at, in->len, NULL);

	bytes_fini(in);
	return rc;
}

/* The next message sent is a response to id with this status, and its text holds text. */
static void assert_response(struct blob *rest, uint32_t id, int status, const char *text)
{
	struct ttrpc_response r;
	struct arena a;
	struct sent m = next_sent(rest);

	arena_init(&a, TTRPC_MEMORY_MAX);
	assert_int_equal(m.id, id);
	assert_int_equal(m.type, TYPE_RESPONSE);
	assert_int_equal(ttrpc_response_decode(m.body, &a, &r, NULL), 0);
	assert_int_equal(r.status, status);
	if (!strstr(r.message, text))
		fail_msg("\"%s\" does not hold \"%s\"", r.message, text);
	arena_fini(&a);
}

static void recorded_messages_are_the_same_after_decoding_and_encoding(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_TRANSCRIPT; i++) {
		struct bytes line = {0};
		struct blob again;
		struct arena a;
		struct ttrpc_request req;
		struct ttrpc_response r;

		add_hex(&line, transcript[i].hex);
		arena_init(&a, TTRPC_MEMORY_MAX);
		assert_int_equal(wire_get_u32(line.at + 4), line.len - MUX_HEADER_BYTES);
		assert_int_equal(wire_get_u32(line.at + MUX_HEADER_BYTES), body_of(&line).len);
		if (line.at[MUX_HEADER_BYTES + 8] == TYPE_REQUEST) {
			assert_int_equal(ttrpc_request_decode(body_of(&line), &a, &req, NULL), 0);
			assert_int_equal(ttrpc_request_encode(&req, &a, &again, NULL), 0);
		} else {
			assert_int_equal(ttrpc_response_decode(body_of(&line), &a, &r, NULL), 0);
			assert_int_equal(ttrpc_response_encode(&r, &a, &again, NULL), 0);
		}
		assert_int_equal(again.len, body_of(&line).len);
		assert_memory_equal(again.data, body_of(&line).data, again.len);
		arena_fini(&a);
		bytes_fini(&line);
	}
}

static void the_fields_of_recorded_messages_are_read(void **state)
{
	struct bytes call = {0}, reply = {0};
	struct arena a;
	struct ttrpc_request req;
	struct ttrpc_response r;

	(void)state;
	arena_init(&a, TTRPC_MEMORY_MAX);
	add_hex(&call, configure_0_6_hex);
	add_hex(&reply, refused_hex);
	assert_int_equal(ttrpc_request_decode(body_of(&call), &a, &req, NULL), 0);
	assert_string_equal(req.service, "nri.pkg.api.v1alpha1.Plugin");
	assert_string_equal(req.method, "Configure");
	assert_int_equal(req.payload.len, 0x15);
	assert_int_equal(req.timeout_ns, 1999952355);
	assert_int_equal(ttrpc_response_decode(body_of(&reply), &a, &r, NULL), 0);
	assert_int_equal(r.status, TTRPC_UNKNOWN);
	assert_string_equal(r.message, "no NUMA node fits");
	arena_fini(&a);
	bytes_fini(&call);
	bytes_fini(&reply);
}

static void calls_may_be_split_anywhere(void **state)
{
	struct bytes in = {0};

	(void)state;
	put_request(&in, 1, service, "One");
	put_request(&in, 3, service, "Two");
	for (size_t cut = 0; cut <= in.len; cut++) {
		struct end end;

		init(&end, true);
		assert_int_equal(ttrpc_feed(&end.t, in.at, cut, NULL), 0);
		assert_int_equal(ttrpc_feed(&end.t, in.at + cut, in.len - cut, NULL), 0);
		assert_string_equal(end.seen, "One;Two;");
		struct blob rest = {end.out.at, end.out.len};
		assert_response(&rest, 1, 0, "");
		assert_response(&rest, 3, 0, "");
		assert_int_equal(rest.len, 0);
		fini(&end);
	}
	bytes_fini(&in);
}

static void stream_ids_are_odd_and_rise_and_may_have_gaps(void **state)
{
	static const struct {
		uint32_t id;
		int status;
		const char *text;
	} cases[] = {
		{1, 0, ""},
		{5, 0, ""},
		{5, TTRPC_INVALID_ARGUMENT, "cannot be re-used"},
		{3, TTRPC_INVALID_ARGUMENT, "cannot be re-used"},
		{8, TTRPC_INVALID_ARGUMENT, "must be odd"},
		{0, TTRPC_INVALID_ARGUMENT, "must be odd"},
		{7, 0, ""},
		{UINT32_MAX, 0, ""},
		{9, TTRPC_INVALID_ARGUMENT, "cannot be re-used"},
	};
	struct end end;

	(void)state;
	init(&end, true);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct bytes in = {0};

		put_request(&in, cases[i].id, service, "M");
		assert_int_equal(feed(&end, &in), 0);
	}
	struct blob rest = {end.out.at, end.out.len};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_response(&rest, cases[i].id, cases[i].status, cases[i].text);
	assert_string_equal(end.seen, "M;M;M;M;");
	fini(&end);
}

static void faulty_calls_are_answered_with_a_status(void **state)
{
	struct end end;
	struct bytes in = {0};

	(void)state;
	init(&end, true);
	put_request(&in, 1, "b.Service", "M");
	put_ttrpc(&in, 3, TYPE_REQUEST, (struct blob){"\x0a\xff", 2});
	put_request(&in, 5, service, "M\xff");
	put_request(&in, 7, service, "Streaming");
	in.at[in.len - 2 - strlen("Streaming") - 2 - strlen(service) - 1] =
		2; /* flags: remote open */
	put_request(&in, 9, service, "Refuse");
	put_ttrpc(&in, 11, TYPE_DATA, (struct blob){"data", 4});
	put_ttrpc(&in, 13, TYPE_RESPONSE, (struct blob){0});
	put_ttrpc(&in, 15, 9, (struct blob){"what", 4});
	put_request(&in, 17, service, "Good");
	assert_int_equal(feed(&end, &in), 0);
	struct blob rest = {end.out.at, end.out.len};
	assert_response(&rest, 1, TTRPC_UNIMPLEMENTED, "service b.Service");
	assert_response(&rest, 3, TTRPC_INVALID_ARGUMENT, "no Request");
	assert_response(&rest, 5, TTRPC_INVALID_ARGUMENT, "Request.method is not UTF-8");
	assert_response(&rest, 7, TTRPC_UNIMPLEMENTED, "streaming");
	assert_response(&rest, 9, TTRPC_UNKNOWN, "no");
	assert_response(&rest, 17, 0, "");
	assert_int_equal(rest.len, 0);
	assert_string_equal(end.seen, "Refuse;Good;");
	fini(&end);
}

static void a_call_that_is_too_long_fails_alone(void **state)
{
	struct end end;
	struct bytes in = {0};
	auto_free char *body = xcalloc(TTRPC_BODY_IN_MAX + 1, 1);

	(void)state;
	init(&end, true);
	put_ttrpc(&in, 1, TYPE_REQUEST, (struct blob){body, TTRPC_BODY_IN_MAX + 1});
	put_request(&in, 3, service, "Next");
	assert_int_equal(feed(&end, &in), 0);
	struct blob rest = {end.out.at, end.out.len};
	assert_response(&rest, 1, TTRPC_RESOURCE_EXHAUSTED, "message length 33554433 exceed");
	assert_response(&rest, 3, 0, "");
	fini(&end);
}

static void a_reply_that_is_too_long_becomes_an_error(void **state)
{
	static const struct {
		size_t len;
		int status;
	} cases[] = {
		/* a payload has a tag and a length of 4 bytes before it */
		{TTRPC_BODY_OUT_MAX - 5, 0},
		{TTRPC_BODY_OUT_MAX - 4, TTRPC_RESOURCE_EXHAUSTED},
		{TTRPC_BODY_OUT_MAX * 2, TTRPC_RESOURCE_EXHAUSTED},
	};
	auto_free char *payload = xcalloc(TTRPC_BODY_OUT_MAX * 2, 1);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct end end;
		struct bytes in = {0};

		init(&end, true);
		end.reply = (struct blob){payload, cases[i].len};
		put_request(&in, 1, service, "M");
		assert_int_equal(feed(&end, &in), 0);
		struct blob rest = {end.out.at, end.out.len};
		assert_response(&rest, 1, cases[i].status,
			cases[i].status ? "maximum message size of 4194304" : "");
		fini(&end);
	}
}

static void a_failing_event_handler_ends_the_feeding_without_an_answer(void **state)
{
	struct end end;
	struct bytes in = {0};

	(void)state;
	init(&end, true);
	end.give = -EPROTO;
	put_request(&in, 1, service, "One");
	put_request(&in, 3, service, "Two");
	assert_int_equal(feed(&end, &in), -EPROTO);
	assert_string_equal(end.seen, "One;");
	assert_int_equal(end.out.len, 0);
	fini(&end);
}

static void only_the_answer_to_the_pending_call_counts(void **state)
{
	struct end end;
	struct bytes in = {0};

	(void)state;
	init(&end, false);
	put_ttrpc(&in, 1, TYPE_RESPONSE, (struct blob){0}); /* before any call */
	assert_int_equal(feed(&end, &in), 0);
	assert_int_equal(ttrpc_call(&end.t, "First", (struct blob){0}, 0, NULL), 0);
	put_ttrpc(&in, 3, TYPE_RESPONSE, (struct blob){0}); /* not ours */
	put_ttrpc(&in, 1, TYPE_DATA, (struct blob){"x", 1});
	put_request(&in, 1, service, "M"); /* we are no server */
	put_ttrpc(&in, 1, TYPE_RESPONSE, (struct blob){"\x0a\x05\x08\x09\x12\x01!", 7});
	put_ttrpc(&in, 1, TYPE_RESPONSE, (struct blob){0}); /* twice */
	assert_int_equal(feed(&end, &in), 0);
	assert_string_equal(end.seen, "9 !;");
	assert_int_equal(ttrpc_call(&end.t, "Second", (struct blob){0}, 0, NULL), 0);
	put_ttrpc(&in, 3, TYPE_RESPONSE, (struct blob){"\x0a\x7f", 2});
	assert_int_equal(feed(&end, &in), 0);
	assert_non_null(strstr(end.seen, "9 !;13 "));
	struct blob rest = {end.out.at, end.out.len};
	assert_int_equal(next_sent(&rest).id, 1);
	assert_int_equal(next_sent(&rest).id, 3);
	assert_int_equal(rest.len, 0);
	fini(&end);
}

static void a_status_text_always_gets_through(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"plain", "plain"},
		{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
		{"cut \xc3", "cut ?"},
		{"\xff\xfe", "??"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ttrpc_response r = {.status = TTRPC_INTERNAL, .message = cases[i].text}, got;
		struct arena a;
		struct blob bytes;

		arena_init(&a, TTRPC_MEMORY_MAX);
		assert_int_equal(ttrpc_response_encode(&r, &a, &bytes, NULL), 0);
		assert_int_equal(ttrpc_response_decode(bytes, &a, &got, NULL), 0);
		assert_string_equal(got.message, cases[i].want);
		arena_fini(&a);
	}
}

static void a_request_that_is_not_utf8_is_not_sent(void **state)
{
	struct end end;
	struct err e;

	(void)state;
	init(&end, false);
	assert_int_equal(ttrpc_call(&end.t, "\xff", (struct blob){0}, 0, &e), -EILSEQ);
	assert_string_equal(e.text, "Request.method is not UTF-8");
	assert_int_equal(end.out.len, 0);
	fini(&end);
}

static void a_parked_call_is_answered_when_it_is_resumed_and_before_what_comes_later(void **state)
{
	struct end end;
	struct bytes in = {0};

	(void)state;
	for (unsigned cut = 0; cut <= 1; cut++) { /* in one piece, or byte by byte */
		init(&end, true);
		end.parks = 2;
		put_request(&in, 1, service, "First");
		put_request(&in, 3, service, "Wait");
		put_request(&in, 5, service, "Later");
		for (size_t i = 0; cut && i < in.len; i++)
			assert_int_equal(ttrpc_feed(&end.t, in.at + i, 1, NULL), 0);
		if (!cut)
			assert_int_equal(ttrpc_feed(&end.t, in.at, in.len, NULL), 0);
		bytes_fini(&in);
		assert_string_equal(end.seen, "First;");
		assert_false(ttrpc_is_idle(&end.t));
		assert_int_equal(ttrpc_resume(&end.t, NULL), 0); /* it still waits */
		assert_string_equal(end.seen, "First;");
		assert_int_equal(ttrpc_resume(&end.t, NULL), 0);
		assert_string_equal(end.seen, "First;Wait;Later;");
		assert_true(ttrpc_is_idle(&end.t));
		assert_int_equal(ttrpc_resume(&end.t, NULL), 0);
		assert_string_equal(end.seen, "First;Wait;Later;");
		struct blob rest = {end.out.at, end.out.len};
		for (uint32_t id = 1; id <= 5; id += 2)
			assert_response(&rest, id, TTRPC_OK, "");
		assert_int_equal(rest.len, 0);
		fini(&end);
	}
}

static void several_calls_may_be_parked_one_after_the_other(void **state)
{
	struct end end;
	struct bytes in = {0};

	(void)state;
	init(&end, true);
	end.parks = 3;
	put_request(&in, 1, service, "Wait");
	put_request(&in, 3, service, "Wait");
	put_request(&in, 5, service, "Later");
	assert_int_equal(feed(&end, &in), 0); /* the first one is parked */
	assert_int_equal(ttrpc_resume(&end.t, NULL), 0);
	assert_int_equal(ttrpc_resume(&end.t, NULL), 0);
	assert_string_equal(end.seen, "");
	assert_int_equal(ttrpc_resume(&end.t, NULL), 0);
	assert_string_equal(end.seen, "Wait;Wait;Later;");
	fini(&end);
}

static void too_much_behind_a_parked_call_ends_the_feeding(void **state)
{
	enum { PIECE = 1 << 20 };
	static unsigned char piece[PIECE];
	struct end end;
	struct bytes in = {0};
	unsigned nr = 0;

	(void)state;
	init(&end, true);
	end.parks = 1;
	put_request(&in, 1, service, "Wait");
	assert_int_equal(feed(&end, &in), 0);
	while (ttrpc_feed(&end.t, piece, PIECE, NULL) == 0)
		nr++;
	assert_int_equal(nr, TTRPC_LATER_MAX / PIECE);
	fini(&end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_messages_are_the_same_after_decoding_and_encoding),
		cmocka_unit_test(the_fields_of_recorded_messages_are_read),
		cmocka_unit_test(calls_may_be_split_anywhere),
		cmocka_unit_test(stream_ids_are_odd_and_rise_and_may_have_gaps),
		cmocka_unit_test(faulty_calls_are_answered_with_a_status),
		cmocka_unit_test(a_call_that_is_too_long_fails_alone),
		cmocka_unit_test(a_reply_that_is_too_long_becomes_an_error),
		cmocka_unit_test(a_failing_event_handler_ends_the_feeding_without_an_answer),
		cmocka_unit_test(only_the_answer_to_the_pending_call_counts),
		cmocka_unit_test(a_status_text_always_gets_through),
		cmocka_unit_test(a_request_that_is_not_utf8_is_not_sent),
		cmocka_unit_test(
			a_parked_call_is_answered_when_it_is_resumed_and_before_what_comes_later),
		cmocka_unit_test(several_calls_may_be_parked_one_after_the_other),
		cmocka_unit_test(too_much_behind_a_parked_call_ends_the_feeding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
