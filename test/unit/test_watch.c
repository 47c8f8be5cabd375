#include <io/watch.h>

#include <nri/nri_conn.h>
#include <numafit/text.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { PATIENCE_MS = 20000, NEVER_MS = 600000 };

struct world {
	char dir[64], path[80], other[80];
	struct loop *loop;
	struct loop_timer *watchdog, *later;
	struct listener *listener;
	unsigned changes;
	bool accepted;
};

static void too_slow(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happens");
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(w->dir, sizeof w->dir, "%.40s/numafit-watch.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	(void)snprintf(w->path, sizeof w->path, "%s/socket", w->dir);
	(void)snprintf(w->other, sizeof w->other, "%s/other", w->dir);
	w->loop = loop_new();
	w->watchdog = loop_timer_new(w->loop, too_slow, w);
	loop_timer_set(w->watchdog, PATIENCE_MS);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	loop_free(w->loop);
	(void)unlink(w->path);
	(void)unlink(w->other);
	assert_int_equal(rmdir(w->dir), 0);
	free(w);
	return 0;
}

static void changed(void *ctx)
{
	struct world *w = ctx;

	w->changes++;
	loop_stop(w->loop);
}

static void touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
}

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static void a_file_that_appears_or_vanishes_is_reported(void **state)
{
	struct world *w = *state;

	assert_non_null(watch_new(w->loop, w->path, changed, w));
	touch(w->path);
	while (!w->changes)
		loop_run(w->loop);
	w->changes = 0;
	assert_int_equal(unlink(w->path), 0);
	while (!w->changes)
		loop_run(w->loop);
}

/* Events come in order: when that of the watched name is here, others would have been before. */
static void other_files_are_not_reported(void **state)
{
	struct world *w = *state;
	struct watch *watched = watch_new(w->loop, w->path, changed, w);

	touch(w->other);
	assert_int_equal(unlink(w->other), 0);
	watch_close(watch_new(w->loop, w->path, changed, w));
	touch(w->other);
	assert_int_equal(rename(w->other, w->path), 0);
	while (!w->changes)
		loop_run(w->loop);
	assert_int_equal(w->changes, 1);
	watch_close(watched);
	watch_close(NULL);
}

/* Events come in order, as above. */
static void a_file_alone_is_watched_without_what_is_beside_it(void **state)
{
	struct world *w = *state;

	assert_null(watch_new_file(w->loop, w->path, changed, w)); /* it is not there */
	touch(w->path);
	assert_non_null(watch_new_file(w->loop, w->path, changed, w));
	touch(w->other);
	assert_int_equal(unlink(w->other), 0);
	write_to(w->path, "1");
	while (!w->changes)
		loop_run(w->loop);
	write_to(w->path, "2");
	while (w->changes < 2)
		loop_run(w->loop);
	assert_int_equal(w->changes, 2);
}

static void a_directory_that_is_not_there_cannot_be_watched(void **state)
{
	struct world *w = *state;

	assert_null(watch_new(w->loop, "/nowhere/socket", changed, w));
}

/* In all the ways in which it changes; a descriptor of the old one would not report the new. */
static void every_kind_of_change_to_a_file_is_reported(void **state)
{
	struct world *w = *state;
	struct file_watch f = {0};
	char data[96];

	file_watch_stop(&f); /* zeros are fine */
	(void)snprintf(data, sizeof data, "%s/..data", w->dir);
	assert_false(file_watch_start(&f, w->loop, "/nowhere/file", changed, w));
	file_watch_stop(&f);
	touch(w->path);
	assert_true(file_watch_start(&f, w->loop, w->path, changed, w));
	const char *const renamed[] = {w->path, data};
	for (size_t i = 0; i < 2; i++) {
		w->changes = 0;
		touch(w->other);
		assert_int_equal(rename(w->other, renamed[i]), 0);
		while (!w->changes)
			loop_run(w->loop);
	}
	file_watch_stop(&f);
	assert_null(f.file);
	assert_int_equal(unlink(data), 0);
}

static void data_came(void *ctx, const void *data, size_t len)
{
	(void)ctx, (void)data, (void)len;
}

static void closed(void *ctx, int error)
{
	(void)ctx, (void)error;
}

static struct stream_events accepted(void *ctx, struct stream *s)
{
	struct world *w = ctx;

	(void)s;
	w->accepted = true;
	loop_stop(w->loop);
	return (struct stream_events){w, data_came, closed};
}

static void listen_now(void *ctx)
{
	struct world *w = ctx;

	w->listener = listener_new(w->loop, w->path, 0600, w, accepted, NULL);
	assert_non_null(w->listener);
}

static void a_runtime_that_appears_again_is_connected_to_at_once(void **state)
{
	struct world *w = *state;
	const struct nri_handler handler = {.ctx = w};
	const struct nri_conn_options options = {.plugin = {.name = "numafit", .index = "50"},
		.socket = w->path,
		.retry_min_ms = NEVER_MS,
		.retry_max_ms = NEVER_MS};
	struct nri_conn *c = nri_conn_new(w->loop, &options, &handler);

	w->later = loop_timer_new(w->loop, listen_now, w);
	loop_timer_set(w->later, 1); /* the first attempt is made, and fails sooner or later */
	while (!w->accepted)
		loop_run(w->loop);
	nri_conn_close(c);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_file_that_appears_or_vanishes_is_reported),
		CASE(other_files_are_not_reported),
		CASE(a_file_alone_is_watched_without_what_is_beside_it),
		CASE(a_directory_that_is_not_there_cannot_be_watched),
		CASE(every_kind_of_change_to_a_file_is_reported),
		CASE(a_runtime_that_appears_again_is_connected_to_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
