#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "nri_wire.h"
#include <nri/nri_conn.h>
#include <nri/runtime.h>
#include <sys/socket.h>
#include <unistd.h>

/* A daemon's connection and a runtime's socket in one loop. The runtime can go and come back. */
struct world {
	struct loop *loop;
	char dir[64], socket[80];
	struct nri_handler handler;
	struct nri_conn *conn;
	struct listener *listener;
	struct stream *accepted;
	struct nri_runtime *runtime;
	struct loop_timer *guard;
	char events[1024];
	unsigned nr_accepted, nr_synchronized, nr_ended;
	const char *until; /* stop the loop when this event comes */
	unsigned hang_up;  /* close that many connections as they come */
	unsigned stop_at;  /* stop the loop when so many were accepted */
	bool silent;       /* the runtime says nothing */
	struct bytes only; /* or nothing but this, once */
};

enum { GUARD_MS = 20000, RETRY_MAX_MS = 20 };

static void on_synchronize(void *ctx, const struct nri_inventory *what, struct nri_reply *reply)
{
	(void)what, (void)reply;
	((struct world *)ctx)->nr_synchronized++;
}

static int on_run_pod(void *ctx, const struct pod *pod, struct err *e)
{
	(void)ctx, (void)pod, (void)e;
	return 0;
}

static int on_create(void *ctx, const struct request *req, struct nri_reply *reply, struct err *e)
{
	(void)ctx, (void)req, (void)reply, (void)e;
	return 0;
}

static void on_change(void *ctx, const struct request *req, struct nri_reply *reply)
{
	(void)ctx, (void)req, (void)reply;
}

static void on_container(void *ctx, const struct request *req)
{
	(void)ctx, (void)req;
}

static void on_pod(void *ctx, const struct pod *pod)
{
	(void)ctx, (void)pod;
}

static void on_event(void *ctx, const char *event, const char *text)
{
	struct world *w = ctx;
	size_t len = strlen(w->events);

	(void)snprintf(w->events + len, sizeof w->events - len, "%s %s;", event, text);
	if (w->until && strcmp(event, w->until) == 0)
		loop_stop(w->loop);
}

static void on_guard(void *ctx)
{
	(void)ctx;
	fail_msg("what the test waits for did not come");
}

/* The runtime's side */

static void flush(struct world *w)
{
	const void *data;
	size_t len = nri_runtime_take(w->runtime, &data);

	if (len && !w->silent)
		assert_int_equal(stream_write(w->accepted, data, len), 0);
}

static void on_configured(void *ctx, const char *name, const char *index, uint32_t events)
{
	struct world *w = ctx;

	(void)name, (void)index, (void)events;
	nri_runtime_synchronize(w->runtime, NULL, 0);
}

static void on_answered(void *ctx, enum nri_call call, const struct nri_answer *a)
{
	(void)ctx, (void)call, (void)a;
}

static void on_data(void *ctx, const void *data, size_t len)
{
	struct world *w = ctx;

	if (!w->accepted)
		return;
	if (w->only.len) {
		assert_int_equal(stream_write(w->accepted, w->only.at, w->only.len), 0);
		w->only.len = 0;
		w->silent = true;
	}
	assert_int_equal(nri_runtime_feed(w->runtime, data, len), 0);
	flush(w);
	if (w->hang_up) {
		w->hang_up--;
		stream_finish(w->accepted);
		w->accepted = NULL;
	}
	if (w->stop_at && w->nr_accepted >= w->stop_at)
		loop_stop(w->loop);
}

static void on_closed(void *ctx, int error)
{
	struct world *w = ctx;

	(void)error;
	w->accepted = NULL;
}

static struct stream_events on_accepted(void *ctx, struct stream *s)
{
	static const struct nri_runtime_options options = {"containerd", "v2.3.4", false, 0};
	struct world *w = ctx;
	struct nri_runtime_events ev = {w, on_configured, on_answered};

	w->nr_accepted++;
	w->accepted = s;
	nri_runtime_free(w->runtime);
	w->runtime = nri_runtime_new(&options, &ev);
	return (struct stream_events){w, on_data, on_closed};
}

static void runtime_start(struct world *w)
{
	w->listener = listener_new(w->loop, w->socket, 0600, w, on_accepted, NULL);
	assert_non_null(w->listener);
}

static void runtime_end(struct world *w)
{
	stream_close(w->accepted);
	w->accepted = NULL;
	listener_close(w->listener);
	w->listener = NULL;
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(
		w->dir, sizeof w->dir, "%s/nriXXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	if (!mkdtemp(w->dir))
		return -1;
	(void)snprintf(w->socket, sizeof w->socket, "%s/s", w->dir);
	w->handler = (struct nri_handler){w, on_synchronize, on_run_pod, on_create, on_change,
		on_change, on_container, on_container, on_container, on_pod, NULL, NULL, NULL,
		on_event, NULL};
	w->loop = loop_new();
	w->guard = loop_timer_new(w->loop, on_guard, w);
	loop_timer_set(w->guard, GUARD_MS);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	nri_conn_close(w->conn);
	runtime_end(w);
	loop_timer_close(w->guard);
	loop_free(w->loop);
	nri_runtime_free(w->runtime);
	(void)unlink(w->socket);
	int rc = rmdir(w->dir);
	free(w);
	return rc;
}

static void connect_plugin(struct world *w, unsigned retry_max_ms)
{
	struct nri_conn_options o = {.plugin = {.name = "numafit", .index = "50"},
		.socket = w->socket,
		.retry_min_ms = 1,
		.retry_max_ms = retry_max_ms};

	w->conn = nri_conn_new(w->loop, &o, &w->handler);
}

static void run_until(struct world *w, const char *event)
{
	w->until = event;
	w->events[0] = '\0';
	loop_run(w->loop);
	w->until = NULL;
}

static unsigned count(const char *text, const char *word)
{
	unsigned nr = 0;

	for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
		nr++;
	return nr;
}

static void a_connection_becomes_ready(void **state)
{
	struct world *w = *state;

	runtime_start(w);
	connect_plugin(w, RETRY_MAX_MS);
	assert_int_equal(nri_conn_state(w->conn), NRI_FAILED);
	assert_string_equal(nri_conn_runtime(w->conn), "");
	run_until(w, "nri-synchronized");
	assert_int_equal(nri_conn_state(w->conn), NRI_READY);
	assert_string_equal(nri_conn_runtime(w->conn), "containerd v2.3.4");
	assert_int_equal(w->nr_synchronized, 1);
	assert_int_equal(count(w->events, "nri-disconnected"), 0);
}

static void start_runtime(void *ctx)
{
	runtime_start(ctx);
}

static void a_missing_socket_is_logged_once_and_then_tried_again(void **state)
{
	struct world *w = *state;
	struct loop_timer *later = loop_timer_new(w->loop, start_runtime, w);
	char want[160];

	connect_plugin(w, RETRY_MAX_MS);
	loop_timer_set(later, 300); /* at 20 ms between attempts: after about 20 of them */
	run_until(w, "nri-synchronized");
	(void)snprintf(
		want, sizeof want, "nri-disconnected %s: No such file or directory;", w->socket);
	assert_int_equal(count(w->events, want), 1);
	assert_int_equal(count(w->events, "nri-disconnected"), 1);
	loop_timer_close(later);
}

/* Were the delay not back at 1 ms each time, the last one alone would be a minute. */
static void a_restarted_runtime_is_connected_to_again(void **state)
{
	enum { RESTARTS = 16, NO_MAX_MS = 1 << 30 };
	struct world *w = *state;

	runtime_start(w);
	connect_plugin(w, NO_MAX_MS);
	for (unsigned i = 1; i <= RESTARTS; i++) {
		run_until(w, "nri-synchronized");
		assert_int_equal(w->nr_synchronized, i);
		runtime_end(w);
		run_until(w, "nri-disconnected");
		assert_int_equal(nri_conn_state(w->conn), NRI_FAILED);
		assert_int_equal(count(w->events, "nri-disconnected"), 1);
		runtime_start(w);
	}
	run_until(w, "nri-synchronized");
}

/* Delays of 1, 2, 4, 8, 16 and five times 20 ms, a quarter less at the least: 99 ms. */
static void a_connection_that_always_closes_is_retried_ever_later_and_logged_once(void **state)
{
	enum { CLOSED = 10, AT_LEAST_NS = 90 * 1000000 };
	struct world *w = *state;
	uint64_t from = loop_monotonic_ns();

	w->hang_up = CLOSED;
	runtime_start(w);
	connect_plugin(w, RETRY_MAX_MS);
	run_until(w, "nri-synchronized");
	assert_int_equal(w->nr_accepted, CLOSED + 1);
	assert_int_equal(count(w->events, "nri-disconnected"), 1);
	assert_true(loop_monotonic_ns() - from > AT_LEAST_NS);
}

static void a_handshake_without_progress_is_waited_for_until_the_connection_ends(void **state)
{
	struct world *w = *state;
	struct bytes timeouts = {0};

	put_number(&timeouts, 4, 500);
	put_number(&timeouts, 5, 500);
	put_call(&w->only, 1, "Configure", &timeouts);
	runtime_start(w);
	connect_plugin(w, RETRY_MAX_MS);
	run_until(w, "nri-waiting");
	assert_non_null(strstr(w->events,
		"nri-waiting the runtime has sent no (complete) Synchronize within 1000 ms"));
	assert_int_equal(nri_conn_state(w->conn), NRI_SYNCHRONIZING);
	assert_int_equal(count(w->events, "nri-disconnected"), 0);
	runtime_end(w);
	run_until(w, "nri-disconnected");
	assert_int_equal(nri_conn_state(w->conn), NRI_FAILED);
	assert_int_equal(w->nr_accepted, 1);
	bytes_fini(&w->only);
}

/* The bytes fill one read, so that the end comes in the same turn of the loop as the mistake. */
static void a_mistake_of_the_runtime_is_logged_as_the_reason_for_closing(void **state)
{
	enum { ONE_READ_BYTES = 64 << 10 };
	struct world *w = *state;

	memset(bytes_extend(&w->only, ONE_READ_BYTES), 0x7f, ONE_READ_BYTES);
	w->hang_up = 1;
	runtime_start(w);
	connect_plugin(w, RETRY_MAX_MS);
	run_until(w, "nri-disconnected");
	assert_int_equal(nri_conn_state(w->conn), NRI_FAILED);
	assert_int_equal(count(w->events, "nri-disconnected a frame of 2139062143 bytes"), 1);
	w->silent = false;
	run_until(w, "nri-synchronized");
	assert_int_equal(count(w->events, "nri-disconnected"), 0);
	bytes_fini(&w->only);
}

static void a_connection_may_be_closed_while_it_connects(void **state)
{
	struct world *w = *state;

	runtime_start(w);
	connect_plugin(w, RETRY_MAX_MS);
	nri_conn_close(w->conn); /* its memory goes when the attempt has ended: loop_free() waits */
	w->conn = NULL;
}

static void a_connection_may_be_closed_while_it_waits(void **state)
{
	struct world *w = *state;

	connect_plugin(w, RETRY_MAX_MS);
	run_until(w, "nri-disconnected");
	nri_conn_close(w->conn);
	w->conn = NULL;
}

static void a_connection_may_be_closed_during_the_handshake(void **state)
{
	struct world *w = *state;

	w->silent = true;
	w->stop_at = 1;
	runtime_start(w);
	connect_plugin(w, RETRY_MAX_MS);
	run_until(w, NULL);
	assert_int_equal(nri_conn_state(w->conn), NRI_REGISTERING);
}

static void a_path_that_is_too_long_is_logged(void **state)
{
	struct world *w = *state;
	char path[200] = {0};
	struct nri_conn_options o = {
		.plugin = {.name = "numafit", .index = "50"}, .socket = path, .retry_min_ms = 1};

	memset(path, 'x', sizeof path - 1);
	w->conn = nri_conn_new(w->loop, &o, &w->handler);
	assert_int_equal(count(w->events, "File name too long"), 1);
}

static void on_ended(void *ctx)
{
	struct world *w = ctx;

	w->nr_ended++;
	loop_stop(w->loop);
}

static void connect_launched(struct world *w, int fd)
{
	struct nri_conn_options o = {.plugin = {.name = "numafit", .index = "50", .launched = true},
		.fd = fd,
		.ended = on_ended};

	w->conn = nri_conn_new(w->loop, &o, &w->handler);
}

static void a_launched_plugin_talks_over_the_socket_it_was_given(void **state)
{
	struct world *w = *state;
	struct stream_events events = {w, on_data, on_closed};
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	(void)on_accepted(w, stream_adopt(w->loop, ends[0], &events, NULL));
	connect_launched(w, ends[1]);
	run_until(w, "nri-synchronized");
	assert_int_equal(nri_conn_state(w->conn), NRI_READY);
	stream_close(w->accepted);
	w->accepted = NULL;
	run_until(w, NULL);
	assert_int_equal(w->nr_ended, 1);
	assert_int_equal(nri_conn_state(w->conn), NRI_FAILED);
	assert_int_equal(count(w->events, "nri-disconnected"), 1);
}

static void a_launched_plugin_without_a_socket_ends_at_once(void **state)
{
	struct world *w = *state;

	connect_launched(w, -1);
	assert_int_equal(w->nr_ended, 1);
	assert_int_equal(count(w->events, "nri-disconnected"), 1);
}

#define in_world(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_world(a_connection_becomes_ready),
		in_world(a_missing_socket_is_logged_once_and_then_tried_again),
		in_world(a_restarted_runtime_is_connected_to_again),
		in_world(a_connection_that_always_closes_is_retried_ever_later_and_logged_once),
		in_world(a_handshake_without_progress_is_waited_for_until_the_connection_ends),
		in_world(a_mistake_of_the_runtime_is_logged_as_the_reason_for_closing),
		in_world(a_connection_may_be_closed_while_it_connects),
		in_world(a_connection_may_be_closed_while_it_waits),
		in_world(a_connection_may_be_closed_during_the_handshake),
		in_world(a_path_that_is_too_long_is_logged),
		in_world(a_launched_plugin_talks_over_the_socket_it_was_given),
		in_world(a_launched_plugin_without_a_socket_ends_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
