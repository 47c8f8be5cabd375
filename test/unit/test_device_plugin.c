#include <kubelet/device_plugin.h>
#include <kubelet/grpc_client.h>

#include <errno.h>
#include <malloc.h>
#include <numafit/mem.h>
#include <numafit/vec.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

/* The device plugin as a kubelet calls it, over a real socket. */

enum {
	TIMEOUT_MS = 120000,
	ARENA_MAX = 256 << 20,
	TEXT_MAX = 256,
	PATH_BYTES = 108,
	ID_BYTES = 32,
	NR_DEVICES_MAX = 150000,
	NR_SEEN = 128,
	NR_CHANGES = 1000,
	NODES = 8,
	NOT_ENDED = -1
};

/* What the caller of one call saw. */
struct seen {
	struct world *w;
	struct rpc_call *call;
	int code;
	char text[TEXT_MAX];
	unsigned nr_messages, nr_ended;
	struct {
		VEC(unsigned char);
	} message; /* the last one */
};

/* A loop with a plugin behind a socket, and its handler, whose answers the test sets. */
struct world {
	struct loop *l;
	char dir[64], path[PATH_BYTES];
	struct rpc_pump *pump;
	struct rpc_server *server;
	struct acceptor *door;
	struct device_plugin *plugin;
	struct device_plugin_handler handler;
	struct arena arena; /* for messages of the test's own */
	struct seen seen[NR_SEEN];
	unsigned nr_seen;

	struct plugin_device *device;
	size_t nr_devices;
	char (*id)[ID_BYTES];
	struct err refuse; /* code: what every function of the handler says */
	unsigned nr_lists, nr_asked;
	size_t nr_ids; /* of all calls */
	char first[ID_BYTES], last[ID_BYTES];
	size_t ask_size, nr_available, nr_must;
	unsigned nr_watching, nr_told;
	unsigned nr_events;
	char event[TEXT_MAX];
};

/* Every callback stops the loop, so that the condition is looked at again. */
#define UNTIL(w, condition)                                                                        \
	do {                                                                                       \
		while (!(condition))                                                               \
			loop_run((w)->l);                                                          \
	} while (0)

static void too_late(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened in %d ms", TIMEOUT_MS);
}

/* The handler. */

static int devices(
	void *ctx, struct arena *a, struct plugin_device **out, size_t *nr, struct err *e)
{
	struct world *w = ctx;

	(void)a;
	w->nr_lists++;
	if (w->refuse.code)
		return err_set(e, w->refuse.code, "%s", w->refuse.text);
	*out = w->device;
	*nr = w->nr_devices;
	return 0;
}

static void note_ids(struct world *w, const struct device_ids *ids)
{
	w->nr_asked++;
	w->nr_ids += ids->nr;
	if (!ids->nr)
		return;
	snprintf(w->first, sizeof w->first, "%s", ids->id[0]);
	snprintf(w->last, sizeof w->last, "%s", ids->id[ids->nr - 1]);
}

/* The last ones of those available, in their order. */
static size_t prefer(void *ctx, const struct preferred_ask *ask, struct arena *a, const char **out)
{
	struct world *w = ctx;
	size_t nr = ask->size < ask->available.nr ? ask->size : ask->available.nr;

	(void)a;
	note_ids(w, &ask->available);
	w->ask_size = ask->size;
	w->nr_available = ask->available.nr;
	w->nr_must = ask->must_include.nr;
	for (size_t i = 0; i < nr; i++)
		out[i] = ask->available.id[ask->available.nr - nr + i];
	return nr;
}

/* What a container of these ids gets: their number, the first and the last one. */
static struct allocate_answer answer_for(const struct device_ids *ids, struct arena *a)
{
	struct key_value *env = arena_array(a, 2, sizeof *env), *note = env + 1;
	char *nr = arena_alloc(a, ID_BYTES);

	snprintf(nr, ID_BYTES, "%zu", ids->nr);
	*env = (struct key_value){"NR", nr};
	*note = (struct key_value){"first", ids->nr ? ids->id[0] : ""};
	return (struct allocate_answer){env, note, 1, 1};
}

static int allocate(void *ctx, const struct device_ids *ids, struct arena *a,
	struct allocate_answer *out, struct err *e)
{
	struct world *w = ctx;

	note_ids(w, ids);
	if (w->refuse.code)
		return err_set(e, w->refuse.code, "%s", w->refuse.text);
	*out = answer_for(ids, a);
	return 0;
}

static int pre_start(void *ctx, const struct device_ids *ids, struct err *e)
{
	struct world *w = ctx;

	note_ids(w, ids);
	return w->refuse.code ? err_set(e, w->refuse.code, "%s", w->refuse.text) : 0;
}

static void watched(void *ctx, unsigned nr_streams)
{
	struct world *w = ctx;

	w->nr_watching = nr_streams;
	w->nr_told++;
	loop_stop(w->l);
}

static void on_event(void *ctx, bool bad, const char *event, const char *text)
{
	struct world *w = ctx;

	assert_true(bad);
	w->nr_events++;
	snprintf(w->event, sizeof w->event, "%s: %s", event, text);
	loop_stop(w->l);
}

/* nr devices, those of a node together; the last one is what tests change. */
static void make_devices(struct world *w, size_t nr)
{
	size_t on_node = nr / NODES + 1;

	w->nr_devices = nr;
	for (size_t i = 0; i < nr; i++) {
		snprintf(w->id[i], ID_BYTES, "node%u-%05u", (unsigned)(i / on_node),
			(unsigned)(i % on_node));
		w->device[i] = (struct plugin_device){w->id[i], true, (int)(i / on_node)};
	}
}

static void change(struct world *w, unsigned n)
{
	struct plugin_device *d = &w->device[w->nr_devices - 1];

	snprintf(w->id[w->nr_devices - 1], ID_BYTES, "node7-9%u", n);
	d->healthy = n % 2;
	device_plugin_changed(w->plugin);
}

static int setup(void **state)
{
	struct rpc_server_options options = {.request_max = DEVICE_PLUGIN_MESSAGE_MAX};
	struct world *w = xcalloc(1, sizeof *w);
	const char *tmp = getenv("TMPDIR");
	struct err e = {0};

	snprintf(w->dir, sizeof w->dir, "%s/test_plugin.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof w->path, "%s/socket", w->dir);
	arena_init(&w->arena, ARENA_MAX);
	w->device = xcalloc(NR_DEVICES_MAX, sizeof *w->device);
	w->id = xcalloc(NR_DEVICES_MAX, sizeof *w->id);
	make_devices(w, 16);
	w->handler = (struct device_plugin_handler){
		w, devices, prefer, allocate, pre_start, watched, on_event};
	w->l = loop_new();
	loop_timer_set(loop_timer_new(w->l, too_late, NULL), TIMEOUT_MS);
	w->pump = rpc_pump_new(w->l, &e);
	assert_non_null(w->pump);
	w->server = rpc_server_new(w->pump, &options);
	w->plugin = device_plugin_new(w->server, &w->handler);
	w->door = rpc_server_listen(w->server, w->path, &e);
	assert_string_equal(e.text, "");
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i < w->nr_seen; i++) {
		if (!w->seen[i].nr_ended)
			rpc_call_cancel(w->seen[i].call);
		vec_fini(&w->seen[i].message);
	}
	acceptor_close(w->door);
	rpc_server_free(w->server);
	device_plugin_free(w->plugin);
	rpc_pump_free(w->pump);
	loop_free(w->l);
	assert_int_equal(rmdir(w->dir), 0);
	arena_fini(&w->arena);
	free(w->device);
	free(w->id);
	free(w);
	return 0;
}

/* The kubelet's side. */

static void on_message(void *ctx, const void *data, size_t len)
{
	struct seen *s = ctx;

	s->nr_messages++;
	vec_fini(&s->message);
	s->message.at = xcalloc(len + 1, 1);
	s->message.nr = len;
	if (len)
		memcpy(s->message.at, data, len);
	loop_stop(s->w->l);
}

static void on_ended(void *ctx, enum rpc_code code, const char *text)
{
	struct seen *s = ctx;

	s->nr_ended++;
	s->code = (int)code;
	snprintf(s->text, sizeof s->text, "%s", text);
	loop_stop(s->w->l);
}

static struct seen *start(
	struct world *w, const char *method, enum rpc_kind kind, struct blob message)
{
	struct rpc_request request = {.socket = w->path,
		.method = method,
		.kind = kind,
		.data = message.data,
		.len = message.len};
	assert_true(w->nr_seen < NR_SEEN);
	struct seen *s = &w->seen[w->nr_seen++];
	struct rpc_call_events events = {s, on_message, on_ended};
	struct err e = {0};

	*s = (struct seen){.w = w, .code = NOT_ENDED};
	s->call = rpc_call_start(w->pump, &request, &events, &e);
	assert_string_equal(e.text, "");
	return s;
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

static struct seen *call(struct world *w, const char *method, struct blob message)
{
	struct seen *s = start(w, method, RPC_UNARY, message);

	UNTIL(w, s->nr_ended);
	return s;
}

#define OPTIONS   DEVICE_PLUGIN_PATH("GetDevicePluginOptions")
#define PREFERRED DEVICE_PLUGIN_PATH("GetPreferredAllocation")
#define ALLOCATE  DEVICE_PLUGIN_PATH("Allocate")
#define PRE_START DEVICE_PLUGIN_PATH("PreStartContainer")

static bool is_message(const struct seen *s, struct blob want)
{
	return s->nr_messages && s->message.nr == want.len &&
	       memcmp(s->message.at, want.data ? want.data : "", want.len) == 0;
}

static void assert_answer(const struct seen *s, struct blob want)
{
	assert_string_equal(s->text, "");
	assert_int_equal(s->code, RPC_OK);
	assert_int_equal(s->nr_messages, 1);
	assert_true(is_message(s, want));
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

/* Requests, byte by byte (protobuf.dev/programming-guides/encoding). */

struct bytes {
	VEC(unsigned char);
};

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

static struct blob blob(const struct bytes *b)
{
	return (struct blob){b->at, b->nr};
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

/* The list. */

static void a_new_watcher_gets_all_devices(void **state)
{
	struct world *w = *state;

	w->device[3].healthy = false;
	w->device[5].node = DEVICE_WITHOUT_NODE;
	struct seen *s = watch(w);
	until_it_has_the_present_list(w, s);
	assert_int_equal(w->nr_watching, 1);
	assert_int_equal(w->nr_told, 1);
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
	assert_int_equal(w->nr_told, 6);
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
		(void)err_set(&w->refuse, cases[n].error, "token n\xc3\xb6 %zu\nis 100 %%", n);
		struct seen *s = allocate_first(w, 1);
		assert_int_equal(s->code, cases[n].code);
		assert_string_equal(s->text, w->refuse.text);
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

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
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
