#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nri_wire.h"

/* What came in on each stream. */
struct streams {
	struct bytes of[3];
	unsigned pieces;
	int give;
};

static int collect(void *ctx, enum mux_stream stream, const void *data, size_t len, struct err *e)
{
	struct streams *s = ctx;

	(void)e;
	assert_true(len > 0);
	s->pieces++;
	bytes_append(&s->of[stream], data, len);
	return s->give;
}

static void fini(struct streams *s, struct bytes *in)
{
	for (unsigned i = 0; i < 3; i++)
		bytes_fini(&s->of[i]);
	bytes_fini(in);
}

static void assert_text(const struct bytes *b, const char *want)
{
	assert_int_equal(b->len, strlen(want));
	assert_memory_equal(b->at, want, b->len);
}

static void a_frame_may_arrive_byte_by_byte(void **state)
{
	struct mux m = {0};
	struct streams s = {0};
	struct bytes in = {0};

	(void)state;
	put_frame(&in, MUX_PLUGIN, "first", 5);
	put_frame(&in, MUX_RUNTIME, "second", 6);
	for (size_t i = 0; i < in.len; i++)
		assert_int_equal(mux_feed(&m, in.at + i, 1, collect, &s, NULL), 0);
	assert_text(&s.of[MUX_PLUGIN], "first");
	assert_text(&s.of[MUX_RUNTIME], "second");
	fini(&s, &in);
}

static void frames_may_be_split_anywhere(void **state)
{
	struct bytes in = {0};

	(void)state;
	put_frame(&in, MUX_PLUGIN, "abc", 3);
	put_frame(&in, MUX_PLUGIN, "", 0);
	put_frame(&in, MUX_RUNTIME, "de", 2);
	for (size_t cut = 0; cut <= in.len; cut++) {
		struct mux m = {0};
		struct streams s = {0};
		struct bytes none = {0};

		assert_int_equal(mux_feed(&m, in.at, cut, collect, &s, NULL), 0);
		assert_int_equal(mux_feed(&m, in.at + cut, in.len - cut, collect, &s, NULL), 0);
		assert_text(&s.of[MUX_PLUGIN], "abc");
		assert_text(&s.of[MUX_RUNTIME], "de");
		fini(&s, &none);
	}
	bytes_fini(&in);
}

static void frames_of_the_two_streams_may_alternate(void **state)
{
	struct mux m = {0};
	struct streams s = {0};
	struct bytes in = {0};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		put_frame(&in, MUX_PLUGIN, "plug", 4);
		put_frame(&in, MUX_RUNTIME, "run", 3);
	}
	assert_int_equal(mux_feed(&m, in.at, in.len, collect, &s, NULL), 0);
	assert_text(&s.of[MUX_PLUGIN], "plugplugplug");
	assert_text(&s.of[MUX_RUNTIME], "runrunrun");
	fini(&s, &in);
}

static void empty_frames_and_unknown_streams_are_skipped(void **state)
{
	struct mux m = {0};
	struct streams s = {0};
	struct bytes in = {0};

	(void)state;
	put_frame(&in, 0, "nobody", 6);
	put_frame(&in, MUX_PLUGIN, "", 0);
	put_frame(&in, 3, "nobody", 6);
	put_frame(&in, UINT32_MAX, "", 0);
	put_frame(&in, MUX_PLUGIN, "yes", 3);
	assert_int_equal(mux_feed(&m, in.at, in.len, collect, &s, NULL), 0);
	assert_int_equal(s.pieces, 1);
	assert_text(&s.of[MUX_PLUGIN], "yes");
	fini(&s, &in);
}

static void a_frame_above_the_limit_ends_the_connection(void **state)
{
	static const struct {
		uint32_t len;
		int want;
	} cases[] = {{MUX_FRAME_MAX, 0}, {MUX_FRAME_MAX + 1, -EPROTO}, {UINT32_MAX, -EPROTO}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct mux m = {0};
		struct streams s = {0};
		struct err e = {0};
		unsigned char header[MUX_HEADER_BYTES];

		wire_put_u32(header, 9);
		wire_put_u32(header + 4, cases[i].len);
		assert_int_equal(
			mux_feed(&m, header, sizeof header, collect, &s, &e), cases[i].want);
		assert_int_equal(!!strstr(e.text, "the limit is"), cases[i].want != 0);
	}
}

static void a_sink_that_fails_ends_the_feeding(void **state)
{
	struct mux m = {0};
	struct streams s = {.give = -EIO};
	struct bytes in = {0};

	(void)state;
	put_frame(&in, MUX_PLUGIN, "one", 3);
	put_frame(&in, MUX_PLUGIN, "two", 3);
	assert_int_equal(mux_feed(&m, in.at, in.len, collect, &s, NULL), -EIO);
	assert_int_equal(s.pieces, 1);
	fini(&s, &in);
}

static void a_message_is_a_header_frame_and_a_body_frame(void **state)
{
	static const struct {
		size_t body_len, want_len;
	} cases[] = {{0, 8 + 10}, {1, 8 + 10 + 8 + 1}, {5000, 8 + 10 + 8 + 5000}};
	static const unsigned char body[5000] = {1};
	unsigned char header[TTRPC_HEADER_BYTES] = {0};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct bytes out = {0};

		wire_put_u32(header, (uint32_t)cases[i].body_len);
		mux_append(&out, MUX_RUNTIME, (struct blob){header, sizeof header},
			(struct blob){body, cases[i].body_len});
		assert_int_equal(out.len, cases[i].want_len);
		struct blob rest = {out.at, out.len};
		struct sent m = next_sent(&rest);
		assert_int_equal(m.stream, MUX_RUNTIME);
		assert_int_equal(m.body.len, cases[i].body_len);
		assert_memory_equal(m.body.data, body, cases[i].body_len);
		assert_int_equal(rest.len, 0);
		bytes_fini(&out);
	}
}

static void bytes_that_were_taken_stay_valid_while_more_is_written(void **state)
{
	struct outbox o = {0};
	const void *data;

	(void)state;
	assert_int_equal(outbox_take(&o, &data), 0);
	bytes_append(&o.filling, "one", 3);
	assert_int_equal(outbox_take(&o, &data), 3);
	bytes_append(&o.filling, "three", 5);
	assert_memory_equal(data, "one", 3);
	assert_int_equal(outbox_take(&o, &data), 5);
	assert_memory_equal(data, "three", 5);
	assert_int_equal(outbox_take(&o, &data), 0);
	outbox_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_may_arrive_byte_by_byte),
		cmocka_unit_test(frames_may_be_split_anywhere),
		cmocka_unit_test(frames_of_the_two_streams_may_alternate),
		cmocka_unit_test(empty_frames_and_unknown_streams_are_skipped),
		cmocka_unit_test(a_frame_above_the_limit_ends_the_connection),
		cmocka_unit_test(a_sink_that_fails_ends_the_feeding),
		cmocka_unit_test(a_message_is_a_header_frame_and_a_body_frame),
		cmocka_unit_test(bytes_that_were_taken_stay_valid_while_more_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
