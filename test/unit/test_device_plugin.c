#include "device_plugin_rig.h"

static void change(struct world *w, unsigned n)
{
	struct plugin_device *d = &w->device[w->nr_devices - 1];

	snprintf(w->id[w->nr_devices - 1], ID_BYTES, "node7-9%u", n);
	d->healthy = n % 2;
	device_plugin_changed(w->plugin);
}

static struct seen *watch(struct world *w)
{
	return start(w, DEVICE_PLUGIN_PATH("ListAndWatch"), RPC_STREAM, (struct blob){0});
}

static void leave(struct seen *s)
{
	rpc_call_cancel(s->call);
	s->nr_ended++;
}

/* The devices as they are now, as a message. */
static struct blob present(struct world *w)
{
	struct blob out;

	arena_fini(&w->arena);
	assert_int_equal(device_list_encode(w->device, w->nr_devices, &w->arena, &out, NULL), 0);
	return out;
}

static void until_it_has_the_present_list(struct world *w, const struct seen *s)
{
	struct blob want = present(w);

	UNTIL(w, is_message(s, want) || s->nr_ended);
	assert_int_equal(s->nr_ended, 0);
}

static void still_serves(struct world *w)
{
	struct seen *s = call(w, OPTIONS, (struct blob){0});

	assert_int_equal(s->code, RPC_OK);
	vec_fini(&s->message);
	w->nr_seen--;
}

/* The list. */

static void a_new_watcher_gets_all_devices(void **state)
{
	struct world *w = *state;

	w->device[3].healthy = false;
	w->device[5].node = DEVICE_WITHOUT_NODE;
	struct seen *s = watch(w);
	until_it_has_the_present_list(w, s);
	assert_int_equal(w->nr_watching, 1);
	assert_int_equal(w->nr_logged, 1);
}

static void a_list_may_be_empty(void **state)
{
	struct world *w = *state;

	w->nr_devices = 0;
	struct seen *s = watch(w);
	UNTIL(w, s->nr_messages);
	assert_int_equal(s->message.nr, 0);
}

static void changes_are_sent(void **state)
{
	struct world *w = *state;
	struct seen *s = watch(w);

	until_it_has_the_present_list(w, s);
	for (unsigned n = 1; n <= 10; n++) {
		change(w, n);
		until_it_has_the_present_list(w, s);
		assert_int_equal(s->nr_messages, 1 + n);
	}
}

static void an_unchanged_list_is_not_sent_again(void **state)
{
	struct world *w = *state;
	struct seen *s = watch(w);

	change(w, 0);
	until_it_has_the_present_list(w, s);
	for (unsigned n = 0; n < 10; n++)
		device_plugin_changed(w->plugin);
	still_serves(w);
	change(w, 1); /* on its way, while the list goes elsewhere and back */
	change(w, 2);
	change(w, 1);
	still_serves(w);
	change(w, 3);
	until_it_has_the_present_list(w, s);
	assert_int_equal(s->nr_messages, 3);
}

static void a_burst_of_changes_makes_few_lists(void **state)
{
	struct world *w = *state;
	struct seen *s = watch(w);

	until_it_has_the_present_list(w, s);
	for (unsigned n = 0; n < NR_CHANGES; n++)
		change(w, n);
	until_it_has_the_present_list(w, s);
	assert_in_range(s->nr_messages, 2, 3);
	assert_int_equal(w->nr_lists, s->nr_messages);
}

static void changes_without_a_watcher_build_no_list(void **state)
{
	struct world *w = *state;

	for (unsigned n = 0; n < NR_CHANGES; n++)
		change(w, n);
	assert_int_equal(w->nr_lists, 0);
	until_it_has_the_present_list(w, watch(w));
}

static void ten_thousand_devices_are_sent(void **state)
{
	struct world *w = *state;

	make_devices(w, DEVICE_PLUGIN_IDS_MAX);
	struct seen *s = watch(w);
	until_it_has_the_present_list(w, s);
	change(w, 1);
	until_it_has_the_present_list(w, s);
	assert_int_equal(s->nr_messages, 2);
}

static void several_streams_share_one_list(void **state)
{
	struct world *w = *state;
	struct seen *first = watch(w), *second = watch(w);

	until_it_has_the_present_list(w, first);
	until_it_has_the_present_list(w, second);
	change(w, 1);
	until_it_has_the_present_list(w, first);
	until_it_has_the_present_list(w, second);
	struct seen *late = watch(w);
	until_it_has_the_present_list(w, late);
	assert_int_equal(w->nr_watching, 3);
	assert_int_equal(w->nr_lists, 2);
	leave(first);
	UNTIL(w, w->nr_watching == 2);
	change(w, 2);
	until_it_has_the_present_list(w, second);
	until_it_has_the_present_list(w, late);
	assert_int_equal(second->nr_messages, 3);
	assert_int_equal(late->nr_messages, 2);
}

static void a_hundred_streams_are_served(void **state)
{
	enum { NR_STREAMS = 100 };
	struct world *w = *state;

	for (int n = 0; n < NR_STREAMS; n++)
		(void)watch(w);
	UNTIL(w, w->nr_watching == NR_STREAMS);
	for (unsigned n = 0; n < NR_CHANGES; n++)
		change(w, n);
	for (int n = 0; n < NR_STREAMS; n++) {
		until_it_has_the_present_list(w, &w->seen[n]);
		assert_in_range(w->seen[n].nr_messages, 1, 4);
	}
	for (int n = 0; n < NR_STREAMS; n++)
		leave(&w->seen[n]);
	UNTIL(w, w->nr_watching == 0);
	still_serves(w);
}

static void the_end_of_a_stream_is_reported(void **state)
{
	struct world *w = *state;

	for (unsigned n = 0; n < 3; n++) {
		struct seen *s = watch(w);

		until_it_has_the_present_list(w, s);
		assert_int_equal(w->nr_watching, 1);
		leave(s);
		UNTIL(w, w->nr_watching == 0);
	}
	assert_int_equal(w->nr_logged, 6);
}

static void ending_all_streams_closes_each_of_them(void **state)
{
	struct world *w = *state;
	struct seen *first = watch(w), *second = watch(w);

	UNTIL(w, first->nr_messages && second->nr_messages);
	change(w, 1); /* on its way still, or not yet */
	device_plugin_end_streams(w->plugin);
	device_plugin_end_streams(w->plugin);
	change(w, 2);
	UNTIL(w, first->nr_ended && second->nr_ended && w->nr_watching == 0);
	assert_int_equal(first->code, RPC_UNAVAILABLE);
	assert_string_equal(first->text, "numafit registers anew");
	assert_int_equal(second->code, RPC_UNAVAILABLE);
	assert_in_range(second->nr_messages, 1, 2);
	until_it_has_the_present_list(w, watch(w));
	assert_int_equal(w->nr_watching, 1);
}

/* Whatever is wrong with the list: streams live, and one line says why. */
static void a_list_that_cannot_be_made_breaks_no_stream(void **state)
{
	static const struct {
		const char *id;
		int error;
		size_t nr;
		const char *event;
	} cases[] = {
		{"node7-\xff", 0, 16, "device-plugin-no-list: Device.ID is not UTF-8"},
		{"good", EIO, 16, "device-plugin-no-list: no machine"},
		{"good", 0, NR_DEVICES_MAX, "device-plugin-no-list: ListAndWatchResponse of "},
	};
	struct world *w = *state;
	struct seen *s = watch(w);

	until_it_has_the_present_list(w, s);
	for (unsigned n = 0; n < sizeof cases / sizeof cases[0]; n++) {
		make_devices(w, cases[n].nr);
		snprintf(w->id[3], ID_BYTES, "%s", cases[n].id);
		(void)err_set(&w->refuse, cases[n].error, "no machine");
		change(w, 100 + n);
		change(w, 200 + n);
		UNTIL(w, w->nr_events == n + 1);
		assert_memory_equal(w->event, cases[n].event, strlen(cases[n].event));
		struct seen *late = watch(w);
		UNTIL(w, w->nr_watching == 2);
		w->refuse.code = 0;
		make_devices(w, 16);
		change(w, 300 + n);
		until_it_has_the_present_list(w, s);
		until_it_has_the_present_list(w, late);
		assert_int_equal(s->nr_messages, n + 2);
		assert_int_equal(late->nr_messages, 1);
		assert_int_equal(w->nr_events, n + 1);
		leave(late);
		UNTIL(w, w->nr_watching == 1);
	}
}

/* Peers that do not behave. */

static int connect_raw(const struct world *w)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(a.sun_path, w->path, sizeof a.sun_path);
	assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof a), 0);
	return fd;
}

static void write_all(int fd, const void *data, size_t len)
{
	assert_int_equal(write(fd, data, len), (ssize_t)len);
}

/* HTTP/2 by hand: settings; headers of 81 bytes without Huffman codes (POST, http, a path of 34
 * characters, an authority, te: trailers, content-type: application/grpc); an empty message. */
#define OPENING "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
#define HEADERS                                                                                    \
	"\0\0\x51\1\4\0\0\0\1\x83\x86\x04\x22" DEVICE_PLUGIN_PATH(                                 \
		"ListAndWatch") "\x01\x09localhost"                                                \
				"\0\x02te\x08trailers\x0f\x10\x10"                                 \
				"application/grpc"
#define DATA "\0\0\5\0\1\0\0\0\1\0\0\0\0\0"

static size_t allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* One list waits for it: HTTP/2 lets 64 KB go, and the list is longer. */
static void a_client_that_never_reads_holds_one_list(void **state)
{
	enum { LONG_LIST = 2500, WINDOW = 65535, GROWTH_MAX = 4 << 20 };
	static const char bytes[] = OPENING HEADERS DATA;
	struct world *w = *state;
	int fd = connect_raw(w);

	make_devices(w, LONG_LIST);
	assert_true(present(w).len > WINDOW);
	write_all(fd, bytes, sizeof bytes - 1);
	UNTIL(w, w->nr_watching == 1);
	struct seen *s = watch(w);
	until_it_has_the_present_list(w, s);
	change(w, 0);
	until_it_has_the_present_list(w, s);
	size_t before = allocated();
	for (unsigned n = 1; n <= NR_CHANGES; n++) {
		change(w, n);
		until_it_has_the_present_list(w, s);
	}
	assert_true(allocated() < before + GROWTH_MAX);
	assert_int_equal(s->nr_messages, NR_CHANGES + 2);
	assert_int_equal(w->nr_watching, 2);
	(void)close(fd);
	UNTIL(w, w->nr_watching == 1);
}

static void garbage_only_ends_the_connection_that_sent_it(void **state)
{
	static const struct blob garbage[] = {
		{"x", 1},
		{OPENING "\xff\xff\xff\4\0\0\0\0\0", sizeof OPENING - 1 + 9},
		{OPENING HEADERS, sizeof OPENING HEADERS - 1},
		{OPENING HEADERS "\0\0\5\0\1\0\0\0\1\0\xff\xff\xff\xff",
			sizeof OPENING HEADERS - 1 + 14},
		{OPENING HEADERS "\0\0\7\0\1\0\0\0\1\0\0\0\0\2\xff\xff",
			sizeof OPENING HEADERS - 1 + 16},
	};
	enum { NR = sizeof garbage / sizeof garbage[0] };
	struct world *w = *state;
	struct seen *s = watch(w);
	int fds[NR];

	until_it_has_the_present_list(w, s);
	for (unsigned n = 0; n < NR; n++) {
		fds[n] = connect_raw(w);
		write_all(fds[n], garbage[n].data, garbage[n].len);
		still_serves(w);
		change(w, n);
		until_it_has_the_present_list(w, s);
	}
	for (unsigned n = 0; n < NR; n++)
		(void)close(fds[n]);
	UNTIL(w, w->nr_watching == 1);
}

static void an_unknown_method_is_answered(void **state)
{
	static const char *const unknown[] = {DEVICE_PLUGIN_PATH("Deallocate"),
		DEVICE_PLUGIN_PATH("allocate"), "/v1alpha.DevicePlugin/Allocate"};
	struct world *w = *state;

	for (size_t n = 0; n < sizeof unknown / sizeof unknown[0]; n++)
		assert_int_equal(call(w, unknown[n], (struct blob){0})->code, RPC_UNIMPLEMENTED);
	still_serves(w);
}

static void a_malformed_request_is_refused(void **state)
{
	static const char *const methods[] = {PREFERRED, ALLOCATE, PRE_START};
	static const struct blob bad[] = {{"\x0a\x05x", 3}, {"\x0a\x01\xfc", 3}, {"\xff", 1}};
	struct world *w = *state;

	for (unsigned m = 0; m < 3; m++)
		for (unsigned b = 0; b < 3; b++) {
			struct seen *s = call(w, methods[m], bad[b]);

			assert_int_equal(s->code, RPC_INVALID_ARGUMENT);
			assert_non_null(strstr(s->text, "Request"));
			assert_int_equal(s->nr_messages, 0);
		}
	assert_int_equal(w->nr_asked, 0);
	still_serves(w);
}

static void an_oversized_request_is_refused(void **state)
{
	enum { HUGE_REQUEST = 16 << 20, MOST = DEVICE_PLUGIN_MESSAGE_MAX };
	static const char *const methods[] = {PREFERRED, ALLOCATE, PRE_START};
	static char zeros[HUGE_REQUEST], ids[MOST], fields[MOST];
	struct world *w = *state;

	for (size_t i = 0; i + 1 < MOST; i += 2)
		memcpy(ids + i, "\x0a", 2); /* an empty id, or container */
	for (size_t i = 0; i + 1 < MOST; i += 2)
		memcpy(fields + i, "\x78", 2); /* what nobody knows */
	for (unsigned m = 0; m < 3; m++) {
		struct seen *s = call(w, methods[m], (struct blob){zeros, HUGE_REQUEST});

		assert_int_equal(s->code, RPC_RESOURCE_EXHAUSTED);
		s = call(w, methods[m], (struct blob){ids, MOST});
		assert_int_equal(s->code, RPC_INVALID_ARGUMENT);
		s = call(w, methods[m], (struct blob){fields, MOST});
		assert_int_equal(s->code, RPC_INVALID_ARGUMENT);
		still_serves(w);
	}
	assert_int_equal(w->nr_asked, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_new_watcher_gets_all_devices),
		CASE(a_list_may_be_empty),
		CASE(changes_are_sent),
		CASE(an_unchanged_list_is_not_sent_again),
		CASE(a_burst_of_changes_makes_few_lists),
		CASE(changes_without_a_watcher_build_no_list),
		CASE(ten_thousand_devices_are_sent),
		CASE(several_streams_share_one_list),
		CASE(a_hundred_streams_are_served),
		CASE(the_end_of_a_stream_is_reported),
		CASE(ending_all_streams_closes_each_of_them),
		CASE(a_list_that_cannot_be_made_breaks_no_stream),
		CASE(a_client_that_never_reads_holds_one_list),
		CASE(garbage_only_ends_the_connection_that_sent_it),
		CASE(an_unknown_method_is_answered),
		CASE(a_malformed_request_is_refused),
		CASE(an_oversized_request_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
