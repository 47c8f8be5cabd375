#include <io/loop.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

enum { TIMEOUT_MS = 20000, TEXT_MAX = 256, NOT_CALLED = 12345 };

/* One test's loop, a directory for its sockets, and what one stream reported. */
struct world {
	struct loop *l;
	char dir[64], path[96];
	struct loop_timer *deadline;
	struct stream *in, *out; /* the accepted side, the connected side */
	char got[TEXT_MAX];
	size_t nr_got;
	size_t want;            /* stop the loop when so many bytes came; 0: never */
	size_t want_letters_of; /* so many times 'a', then as many 'b', and so on; 0: anything */
	int connect_error, closed_error;
	unsigned nr_closed, nr_fired, nr_accepted;
	bool close_in_callback, finish_in_callback;
	struct loop_timer *busy;
};

static void too_late(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened in %d ms", TIMEOUT_MS);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	const char *tmp = getenv("TMPDIR");

	snprintf(w->dir, sizeof w->dir, "%s/test_loop.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof w->path, "%s/socket", w->dir);
	w->l = loop_new();
	assert_non_null(w->l);
	w->deadline = loop_timer_new(w->l, too_late, NULL);
	loop_timer_set(w->deadline, TIMEOUT_MS);
	w->connect_error = w->closed_error = NOT_CALLED;
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	loop_free(w->l);
	(void)unlink(w->path);
	assert_int_equal(rmdir(w->dir), 0);
	free(w);
	return 0;
}

static void on_data(void *ctx, const void *data, size_t len)
{
	struct world *w = ctx;

	for (size_t i = 0; w->want_letters_of && i < len; i++)
		assert_int_equal(
			((const char *)data)[i], 'a' + (w->nr_got + i) / w->want_letters_of);
	if (w->nr_got + len < sizeof w->got)
		memcpy(w->got + w->nr_got, data, len);
	w->nr_got += len;
	if (w->close_in_callback)
		stream_close(w->in);
	if (w->finish_in_callback)
		stream_finish(w->in);
	if (w->want && w->nr_got >= w->want)
		loop_stop(w->l);
}

static void on_closed(void *ctx, int error)
{
	struct world *w = ctx;

	w->nr_closed++;
	w->closed_error = error;
	loop_stop(w->l);
}

static struct stream_events events_of(struct world *w)
{
	return (struct stream_events){.ctx = w, .data = on_data, .closed = on_closed};
}

static struct stream_events on_accepted(void *ctx, struct stream *s)
{
	struct world *w = ctx;

	w->in = s;
	w->nr_accepted++;
	if (w->out)
		loop_stop(w->l);
	return events_of(w);
}

static void on_connected(void *ctx, struct stream *s, int error)
{
	struct world *w = ctx;

	w->out = s;
	w->connect_error = error;
	if (error || w->in)
		loop_stop(w->l);
}

static struct listener *listen_there(struct world *w)
{
	struct err e = {0};
	struct listener *ls = listener_new(w->l, w->path, 0600, w, on_accepted, &e);

	assert_string_equal(e.text, "");
	assert_non_null(ls);
	return ls;
}

static struct listener *connect_there(struct world *w)
{
	struct listener *ls = listen_there(w);
	const struct stream_events events = events_of(w);

	assert_int_equal(stream_connect(w->l, w->path, &events, on_connected), 0);
	loop_run(w->l);
	assert_int_equal(w->connect_error, 0);
	assert_non_null(w->in);
	assert_non_null(w->out);
	return ls;
}

/* A stream and, as a bare descriptor, its peer. */
static int adopt_one(struct world *w)
{
	const struct stream_events events = events_of(w);
	struct err e = {0};
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	w->in = stream_adopt(w->l, fd[0], &events, &e);
	assert_non_null(w->in);
	return fd[1];
}

static void fired(void *ctx)
{
	struct world *w = ctx;

	w->nr_fired++;
	loop_stop(w->l);
}

static void a_timer_fires_once_when_its_time_has_come(void **state)
{
	struct world *w = *state;
	struct loop_timer *t = loop_timer_new(w->l, fired, w);
	uint64_t start_ns = loop_monotonic_ns();

	loop_timer_set(t, TIMEOUT_MS * 2);
	loop_timer_set(t, 20); /* replaces the first */
	loop_run(w->l);
	assert_int_equal(w->nr_fired, 1);
	assert_true(loop_monotonic_ns() - start_ns >= 19 * UINT64_C(1000000));
	loop_timer_stop(w->deadline);
	loop_run(w->l); /* nothing to wait for */
	assert_int_equal(w->nr_fired, 1);
	loop_timer_close(t);
}

/* As often as it likes, but in turns of the loop. */
static void fire_again(void *ctx)
{
	struct world *w = ctx;

	w->nr_fired++;
	loop_timer_set(w->busy, 0);
}

static void a_timer_that_sets_itself_does_not_starve_others(void **state)
{
	struct world *w = *state;
	int peer = adopt_one(w);

	w->busy = loop_timer_new(w->l, fire_again, w);
	loop_timer_set(w->busy, 0);
	w->want = 1;
	assert_int_equal(write(peer, "x", 1), 1);
	loop_run(w->l); /* until that is read */
	assert_int_equal(w->nr_got, 1);
	(void)close(peer);
}

static void a_stopped_or_closed_timer_does_not_fire(void **state)
{
	struct world *w = *state;
	struct loop_timer *stopped = loop_timer_new(w->l, fired, w);
	struct loop_timer *closed = loop_timer_new(w->l, fired, w);

	loop_timer_set(stopped, 1);
	loop_timer_set(closed, 1);
	loop_timer_stop(stopped);
	loop_timer_close(closed);
	loop_timer_close(NULL);
	loop_timer_stop(w->deadline);
	loop_run(w->l);
	assert_int_equal(w->nr_fired, 0);
}

static void the_wall_clock_shows_a_plausible_year(void **state)
{
	(void)state;
	assert_true(loop_wall_ms() > INT64_C(1700000000000));
	assert_true(loop_wall_ms() < INT64_C(4100000000000));
}

static void a_signal_calls_its_function(void **state)
{
	struct world *w = *state;

	assert_int_equal(loop_on_signal(w->l, SIGUSR1, fired, w), 0);
	assert_int_equal(loop_on_signal(w->l, SIGKILL, fired, w), -EINVAL);
	assert_int_equal(raise(SIGUSR1), 0);
	loop_run(w->l);
	assert_int_equal(w->nr_fired, 1);
}

static void a_loop_with_only_a_signal_handler_returns(void **state)
{
	struct world *w = *state;

	assert_int_equal(loop_on_signal(w->l, SIGUSR1, fired, w), 0);
	loop_timer_stop(w->deadline);
	loop_run(w->l);
	assert_int_equal(w->nr_fired, 0);
}

static void bytes_written_on_one_side_are_read_on_the_other(void **state)
{
	struct world *w = *state;

	connect_there(w);
	assert_int_equal(stream_write(w->out, "to ", 3), 0);
	assert_int_equal(stream_write(w->out, "", 0), 0);
	assert_int_equal(stream_write(w->out, "you", 3), 0);
	w->want = 6;
	loop_run(w->l);
	assert_string_equal(w->got, "to you");
	assert_int_equal(stream_write(w->in, "back", 4), 0);
	w->want = 10;
	loop_run(w->l);
	assert_string_equal(w->got, "to youback");
}

static void closing_a_stream_is_reported_to_the_other_side(void **state)
{
	struct world *w = *state;

	connect_there(w);
	stream_close(w->out);
	loop_run(w->l);
	assert_int_equal(w->nr_closed, 1); /* the accepted side alone */
	assert_int_equal(w->closed_error, 0);
}

static void a_stream_closed_in_its_callback_gets_no_more_callbacks(void **state)
{
	struct world *w = *state;

	connect_there(w);
	w->close_in_callback = true;
	assert_int_equal(stream_write(w->out, "x", 1), 0);
	loop_run(w->l); /* until the side that did not close knows it */
	assert_int_equal(w->nr_got, 1);
	assert_int_equal(w->nr_closed, 1);
	stream_close(NULL);
}

static void a_broken_stream_may_still_be_closed_by_its_owner(void **state)
{
	struct world *w = *state;
	static char huge[1 << 20];

	(void)close(adopt_one(w));
	for (int rc = 0;
		rc == 0;) /* the first write meets EPIPE, reported later; the queue then fills */
		rc = stream_write(w->in, huge, sizeof huge);
	stream_close(w->in);
	loop_timer_stop(w->deadline);
	loop_run(w->l);
	assert_int_equal(w->nr_closed, 0);
}

static void everything_queued_is_sent_before_a_stream_is_finished(void **state)
{
	struct world *w = *state;
	static char data[8 << 20];

	connect_there(w);
	memset(data, 'x', sizeof data);
	assert_int_equal(stream_write(w->in, data, sizeof data), 0);
	stream_finish(w->in);
	loop_run(w->l); /* until the connected side knows it */
	assert_int_equal(w->nr_got, sizeof data);
	assert_int_equal(w->nr_closed, 1);
	assert_int_equal(w->closed_error, 0);
}

static void a_stream_may_be_finished_in_its_callback(void **state)
{
	struct world *w = *state;

	connect_there(w);
	w->finish_in_callback = true;
	assert_int_equal(stream_write(w->out, "x", 1), 0);
	loop_run(w->l);
	assert_int_equal(w->nr_closed, 1);
	assert_int_equal(w->closed_error, 0);
}

static void finishing_a_stream_to_a_stuck_reader_times_out(void **state)
{
	enum { MUCH = 8 << 20 };
	struct world *w = *state;
	int peer = adopt_one(w);
	struct pollfd p = {.fd = peer, .events = POLLRDHUP};
	char *much = calloc(1, MUCH);

	assert_int_equal(stream_write(w->in, much, MUCH), 0);
	stream_finish(w->in);
	loop_timer_close(w->deadline);
	loop_run(w->l); /* until nothing is left to wait for */
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_true(p.revents & POLLHUP);
	assert_int_equal(w->nr_closed, 0);
	(void)close(peer);
	free(much);
}

static void a_reader_that_does_not_read_breaks_the_stream(void **state)
{
	struct world *w = *state;
	static char mib[1 << 20];
	size_t written = 0;
	int rc, peer = adopt_one(w);

	while ((rc = stream_write(w->in, mib, sizeof mib)) == 0)
		written += sizeof mib;
	assert_int_equal(rc, -ENOBUFS);
	assert_true(written >= STREAM_UNSENT_MAX && written < STREAM_UNSENT_MAX + 8 * sizeof mib);
	assert_int_equal(w->nr_closed, 0); /* not from inside the call */
	assert_int_equal(stream_write(w->in, "x", 1), -ENOBUFS);
	loop_run(w->l);
	assert_int_equal(w->nr_closed, 1);
	assert_int_equal(w->closed_error, -ENOBUFS);
	(void)close(peer);
}

static void a_write_that_fails_closes_the_stream(void **state)
{
	struct world *w = *state;
	int peer = adopt_one(w);

	assert_int_equal(shutdown(peer, SHUT_RD), 0); /* no EOF for us, yet EPIPE when we write */
	assert_int_equal(stream_write(w->in, "x", 1), -EPIPE);
	assert_int_equal(w->nr_closed, 0); /* not from inside the call */
	assert_int_equal(stream_write(w->in, "x", 1), -EPIPE);
	loop_run(w->l);
	assert_int_equal(w->nr_closed, 1);
	assert_int_equal(w->closed_error, -EPIPE);
	(void)close(peer);
}

static void what_the_socket_takes_is_written_at_once(void **state)
{
	struct world *w = *state;
	int peer = adopt_one(w);
	char got[8];

	assert_int_equal(stream_write(w->in, "abc", 3), 0);
	assert_int_equal(recv(peer, got, sizeof got, MSG_DONTWAIT), 3); /* the loop has not run */
	assert_memory_equal(got, "abc", 3);
	(void)close(peer);
}

/* Each write is of another letter. */
static void what_it_does_not_take_follows_in_order(void **state)
{
	enum { WRITES = 5 };
	struct world *w = *state;
	static char data[1 << 20];

	connect_there(w);
	w->want_letters_of = sizeof data;
	for (unsigned i = 0; i < WRITES; i++) {
		memset(data, (int)('a' + i), sizeof data);
		assert_int_equal(stream_write(w->in, data, sizeof data), 0);
	}
	stream_finish(w->in);
	loop_run(w->l);
	assert_int_equal(w->nr_got, WRITES * sizeof data);
}

static void a_descriptor_that_is_not_a_socket_is_not_adopted(void **state)
{
	struct world *w = *state;
	const struct stream_events events = events_of(w);
	struct err e = {0};

	assert_null(stream_adopt(w->l, -1, &events, &e));
	assert_int_equal(e.code, EBADF);
}

static void a_failed_connect_is_reported_in_a_later_turn(void **state)
{
	struct world *w = *state;
	const struct stream_events events = events_of(w);

	assert_int_equal(stream_connect(w->l, w->path, &events, on_connected), 0);
	assert_int_equal(w->connect_error, NOT_CALLED);
	loop_run(w->l);
	assert_int_equal(w->connect_error, -ENOENT);
	assert_null(w->out);
	assert_int_equal(w->nr_closed, 0);
}

static void a_path_that_is_too_long_is_refused(void **state)
{
	struct world *w = *state;
	const struct stream_events events = events_of(w);
	struct err e = {0};
	char path[200];

	memset(path, 'p', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	assert_int_equal(stream_connect(w->l, path, &events, on_connected), -ENAMETOOLONG);
	assert_null(listener_new(w->l, path, 0600, w, on_accepted, &e));
	assert_int_equal(e.code, ENAMETOOLONG);
	assert_non_null(strstr(e.text, "107"));
}

static void a_listener_removes_its_socket_and_gives_it_the_mode(void **state)
{
	struct world *w = *state;
	struct listener *ls = listen_there(w);
	struct stat st;

	assert_int_equal(stat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	listener_close(ls);
	listener_close(NULL);
	assert_int_equal(stat(w->path, &st), -1);
}

/* A bound socket at the path; nobody listens on it unless backlog says so. */
static int bound_socket(const struct world *w, int backlog)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(addr.sun_path, w->path, strlen(w->path) + 1);
	assert_int_equal(bind(fd, (const struct sockaddr *)&addr, sizeof addr), 0);
	if (backlog >= 0)
		assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

static void a_stale_socket_is_replaced(void **state)
{
	struct world *w = *state;

	(void)close(bound_socket(w, 1));
	connect_there(w);
	assert_int_equal(w->nr_accepted, 1);
}

static void a_socket_that_somebody_listens_on_is_left_alone(void **state)
{
	struct world *w = *state;
	struct err e = {0};
	int fd = bound_socket(w, 0);

	/* the second time its queue is full */
	for (int i = 0; i < 2; i++) {
		assert_null(listener_new(w->l, w->path, 0600, w, on_accepted, &e));
		assert_int_equal(e.code, EADDRINUSE);
		assert_non_null(strstr(e.text, "somebody listens there"));
	}
	assert_int_equal(access(w->path, F_OK), 0);
	(void)close(fd);
}

static void a_file_that_is_no_socket_is_left_alone(void **state)
{
	struct world *w = *state;
	struct err e = {0};

	(void)close(open(w->path, O_CREAT | O_WRONLY, 0600));
	assert_null(listener_new(w->l, w->path, 0600, w, on_accepted, &e));
	assert_int_equal(e.code, EEXIST);
	assert_int_equal(access(w->path, F_OK), 0);
}

static void a_missing_directory_is_named(void **state)
{
	struct world *w = *state;
	struct err e = {0};

	assert_null(listener_new(w->l, "/nowhere/at/all", 0600, w, on_accepted, &e));
	assert_string_equal(
		e.text, "socket /nowhere/at/all: the directory is missing or may not be written");
}

static void a_loop_may_be_freed_with_everything_open(void **state)
{
	struct world *w = *state;
	const struct stream_events events = events_of(w);
	static char data[4 << 20];

	connect_there(w);
	assert_int_equal(loop_on_signal(w->l, SIGUSR1, fired, w), 0);
	assert_int_equal(stream_write(w->in, data, sizeof data), 0);
	assert_int_equal(stream_write(w->out, data, sizeof data), 0);
	stream_finish(w->in);
	assert_int_equal(stream_connect(w->l, w->path, &events, on_connected), 0);
	loop_timer_set(loop_timer_new(w->l, fired, w), TIMEOUT_MS);
	loop_stop(w->l);
	loop_free(w->l);
	w->l = NULL;
	assert_int_equal(w->connect_error, -ECANCELED);
	assert_int_equal(w->nr_closed, 1); /* w->out; w->in was finished */
	assert_int_equal(w->closed_error, -ECANCELED);
	assert_int_equal(w->nr_fired, 0);
	assert_int_equal(access(w->path, F_OK), -1);
	loop_free(NULL);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_timer_fires_once_when_its_time_has_come),
		CASE(a_timer_that_sets_itself_does_not_starve_others),
		CASE(a_stopped_or_closed_timer_does_not_fire),
		CASE(the_wall_clock_shows_a_plausible_year),
		CASE(a_signal_calls_its_function),
		CASE(a_loop_with_only_a_signal_handler_returns),
		CASE(bytes_written_on_one_side_are_read_on_the_other),
		CASE(closing_a_stream_is_reported_to_the_other_side),
		CASE(a_stream_closed_in_its_callback_gets_no_more_callbacks),
		CASE(a_broken_stream_may_still_be_closed_by_its_owner),
		CASE(everything_queued_is_sent_before_a_stream_is_finished),
		CASE(a_stream_may_be_finished_in_its_callback),
		CASE(finishing_a_stream_to_a_stuck_reader_times_out),
		CASE(a_reader_that_does_not_read_breaks_the_stream),
		CASE(a_write_that_fails_closes_the_stream),
		CASE(what_the_socket_takes_is_written_at_once),
		CASE(what_it_does_not_take_follows_in_order),
		CASE(a_descriptor_that_is_not_a_socket_is_not_adopted),
		CASE(a_failed_connect_is_reported_in_a_later_turn),
		CASE(a_path_that_is_too_long_is_refused),
		CASE(a_listener_removes_its_socket_and_gives_it_the_mode),
		CASE(a_stale_socket_is_replaced),
		CASE(a_socket_that_somebody_listens_on_is_left_alone),
		CASE(a_file_that_is_no_socket_is_left_alone),
		CASE(a_missing_directory_is_named),
		CASE(a_loop_may_be_freed_with_everything_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
