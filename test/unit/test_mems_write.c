/* Writes of cpuset.mems on a thread of their own, while the loop turns. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <host/mems_write.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* A write into a FIFO takes as long as a test wants:
 * the write waits until the test reads. */
enum { TIMEOUT_MS = 20000, TICK_MS = 1, NICE_LEAST = 19, HEX = 16, HAND_OVER_US = 20000 };

struct world {
	char dir[32], file[64];
	struct cgroup_tree tree;
	struct loop *l;
	struct loop_timer *deadline, *tick;
	struct mems_write *w;
	struct mems_written got;
	int nr_done, nr_ticks, ticks_wanted;
};

static void too_late(void *ctx)
{
	(void)ctx;
	fail_msg("nothing happened in %d ms", TIMEOUT_MS);
}

static void on_done(void *ctx, const struct mems_written *got)
{
	struct world *o = ctx;

	assert_false(mems_write_is_busy(o->w));
	o->got = *got;
	o->nr_done++;
	loop_stop(o->l);
}

static void on_tick(void *ctx)
{
	struct world *o = ctx;

	if (++o->nr_ticks == o->ticks_wanted)
		loop_stop(o->l);
	else
		loop_timer_set(o->tick, TICK_MS);
}

static int setup(void **state)
{
	struct world *o = calloc(1, sizeof *o);

	(void)snprintf(o->dir, sizeof o->dir, "/tmp/numafit-mems-XXXXXX");
	assert_non_null(mkdtemp(o->dir));
	(void)snprintf(o->file, sizeof o->file, "%s/cpuset.mems", o->dir);
	(void)snprintf(o->tree.root, sizeof o->tree.root, "%s", o->dir);
	o->tree.v2 = true;
	o->l = loop_new();
	o->deadline = loop_timer_new(o->l, too_late, NULL);
	loop_timer_set(o->deadline, TIMEOUT_MS);
	o->tick = loop_timer_new(o->l, on_tick, o);
	o->w = mems_write_new(o->l, on_done, o);
	*state = o;
	return 0;
}

static int teardown(void **state)
{
	struct world *o = *state;

	mems_write_free(o->w);
	loop_free(o->l);
	(void)unlink(o->file);
	(void)rmdir(o->dir);
	free(o);
	return 0;
}

/* A write that was started then and is reported by now took no longer than all of that. */
static void assert_took_at_most_since(const struct world *o, uint64_t began_ns)
{
	assert_true(o->got.ns > 0 && o->got.ns <= loop_monotonic_ns() - began_ns);
}

static void make_file(const struct world *o)
{
	FILE *f = fopen(o->file, "w");

	assert_non_null(f);
	assert_int_equal(fclose(f), 0);
}

static void assert_holds(const struct world *o, const char *text)
{
	char buf[64];
	FILE *f = fopen(o->file, "r");

	assert_non_null(f);
	assert_non_null(fgets(buf, sizeof buf, f));
	(void)fclose(f);
	assert_string_equal(buf, text);
}

/* Have the loop turn until so many ticks have come. */
static void turn(struct world *o, int ticks)
{
	o->nr_ticks = 0;
	o->ticks_wanted = ticks;
	loop_timer_set(o->tick, TICK_MS);
	loop_run(o->l);
}

static void read_fifo(const struct world *o, const char *want)
{
	char buf[64] = "";
	size_t len = 0;
	ssize_t n;
	int fd = open(o->file, O_RDONLY);

	assert_true(fd >= 0);
	while ((n = read(fd, buf + len, sizeof buf - 1 - len)) > 0)
		len += (size_t)n;
	(void)close(fd);
	assert_string_equal(buf, want);
}

/* The signals that a thread of this process does not take. */
static unsigned long long blocked_by(int thread)
{
	static const char name[] = "SigBlk:";
	char path[64], line[256];
	unsigned long long set = 0;

	(void)snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, name, strlen(name)) == 0)
			set = strtoull(line + strlen(name), NULL, HEX);
	if (f)
		(void)fclose(f);
	return set;
}

/* How many threads have the least priority, and whether they take no signal. */
static unsigned gentle_threads(bool *no_signals)
{
	DIR *d = opendir("/proc/self/task");
	unsigned nr = 0;

	assert_non_null(d);
	for (struct dirent *t; (t = readdir(d));) {
		int thread = atoi(t->d_name);

		if (!thread || getpriority(PRIO_PROCESS, (id_t)thread) != NICE_LEAST)
			continue;
		unsigned long long set = blocked_by(thread);
		*no_signals = set >> (SIGTERM - 1) & 1 && set >> (SIGHUP - 1) & 1;
		nr++;
	}
	(void)closedir(d);
	return nr;
}

static void writes_one_after_another_are_each_reported_on_the_loop(void **state)
{
	static const char *const lists[] = {"1", "0-1,8", "2"};
	struct world *o = *state;
	struct err e;

	make_file(o);
	for (int i = 0; i < 3; i++) {
		assert_false(mems_write_is_busy(o->w));
		const uint64_t began_ns = loop_monotonic_ns();

		assert_int_equal(mems_write_start(o->w, &o->tree, "", lists[i], &e), 0);
		assert_true(mems_write_is_busy(o->w));
		loop_run(o->l);
		assert_int_equal(o->nr_done, i + 1);
		assert_int_equal(o->got.rc, 0);
		assert_int_equal(o->got.error.code, 0);
		assert_took_at_most_since(o, began_ns);
		assert_holds(o, lists[i]);
	}
}

static void a_write_that_fails_says_why(void **state)
{
	struct world *o = *state;
	struct err e;

	assert_int_equal(mems_write_start(o->w, &o->tree, "", "1", &e), 0);
	loop_run(o->l);
	assert_int_equal(o->got.rc, -ENOENT);
	assert_int_equal(o->got.error.code, ENOENT);
	assert_non_null(strstr(o->got.error.text, o->file));
}

static void what_cannot_be_tried_is_refused_at_once(void **state)
{
	struct world *o = *state;
	struct cgroup_tree none = {.v2 = true};
	char longer[2 * CGROUP_PATH_MAX];
	struct err e;

	memset(longer, '1', sizeof longer);
	longer[sizeof longer - 1] = '\0';
	assert_int_equal(mems_write_start(o->w, &none, "", "1", &e), -ENOENT);
	assert_int_equal(mems_write_start(o->w, &o->tree, longer, "1", &e), -ENAMETOOLONG);
	assert_int_equal(mems_write_start(o->w, &o->tree, "", longer, &e), -ENAMETOOLONG);
	assert_int_equal(mems_write_start(o->w, &o->tree, "", longer, NULL), -ENAMETOOLONG);
	assert_false(mems_write_is_busy(o->w));
}

static void the_loop_turns_while_a_write_takes_long_and_no_other_one_starts(void **state)
{
	enum { TICKS = 100 };
	struct world *o = *state;
	bool no_signals = false;
	struct err e;

	assert_int_equal(mkfifo(o->file, 0600), 0);
	const uint64_t began_ns = loop_monotonic_ns();
	assert_int_equal(mems_write_start(o->w, &o->tree, "", "1", &e), 0);
	while (!gentle_threads(&no_signals)) /* the write has begun, or is about to */
		turn(o, 1);
	turn(o, TICKS);
	assert_int_equal(o->nr_ticks, TICKS); /* no report has stopped the loop before */
	assert_int_equal(o->nr_done, 0);
	assert_true(mems_write_is_busy(o->w));
	assert_int_equal(mems_write_start(o->w, &o->tree, "", "2", &e), -EAGAIN);
	assert_non_null(strstr(e.text, "is being moved"));
	read_fifo(o, "1");
	loop_run(o->l);
	assert_int_equal(o->nr_done, 1);
	assert_int_equal(o->got.rc, 0);
	assert_took_at_most_since(o, began_ns);
}

static void the_thread_is_gentle_and_takes_no_signal(void **state)
{
	struct world *o = *state;
	bool no_signals = false;
	struct err e;

	(void)setpriority(PRIO_PROCESS, 0, 0);
	assert_int_equal(gentle_threads(&no_signals), 0);
	assert_int_equal(mkfifo(o->file, 0600), 0);
	assert_int_equal(mems_write_start(o->w, &o->tree, "", "1", &e), 0);
	while (!gentle_threads(&no_signals))
		turn(o, 1);
	assert_true(no_signals);
	read_fifo(o, "1");
	loop_run(o->l);
	assert_int_equal(o->nr_done, 1);
}

static void the_end_does_not_wait_for_a_write(void **state)
{
	struct world *o = *state;
	struct err e;

	assert_int_equal(mkfifo(o->file, 0600), 0);
	assert_int_equal(mems_write_start(o->w, &o->tree, "", "1", &e), 0);
	turn(o, 2);
	mems_write_free(o->w); /* nobody reads the FIFO: it would wait for ever */
	o->w = NULL;
	loop_free(o->l);
	o->l = NULL;
	read_fifo(o, "1"); /* the write goes on, and ends */
	assert_int_equal(o->nr_done, 0);
}

static bool is_written(const struct world *o)
{
	struct stat st;

	assert_int_equal(stat(o->file, &st), 0);
	return st.st_size > 0;
}

static void a_write_that_is_over_but_not_reported_goes_with_the_rest(void **state)
{
	struct world *o = *state;
	struct err e;

	make_file(o);
	assert_int_equal(mems_write_start(o->w, &o->tree, "", "1", &e), 0);
	while (!is_written(o))
		(void)usleep(TICK_MS);
	(void)usleep(HAND_OVER_US);
	assert_true(mems_write_is_busy(o->w)); /* the loop has not turned */
	mems_write_free(o->w);
	o->w = NULL;
	assert_holds(o, "1");
	turn(o, 2);
	assert_int_equal(o->nr_done, 0);
}

/* At each moment: before the write, while it is reported, and when it waits in the inbox. */
static void an_end_at_any_moment_loses_nothing_and_reports_nothing(void **state)
{
	enum { ROUNDS = 300, SPIN = 400 };
	struct world *o = *state;
	struct err e;

	make_file(o);
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(mems_write_start(o->w, &o->tree, "", "1", &e), 0);
		for (int volatile spin = 0; spin < i * SPIN; spin++)
			;
		mems_write_free(o->w);
		o->w = mems_write_new(o->l, on_done, o);
	}
	turn(o, 2);
	assert_int_equal(o->nr_done, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			writes_one_after_another_are_each_reported_on_the_loop, setup, teardown),
		cmocka_unit_test_setup_teardown(a_write_that_fails_says_why, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_cannot_be_tried_is_refused_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_loop_turns_while_a_write_takes_long_and_no_other_one_starts, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			the_thread_is_gentle_and_takes_no_signal, setup, teardown),
		cmocka_unit_test_setup_teardown(the_end_does_not_wait_for_a_write, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_write_that_is_over_but_not_reported_goes_with_the_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_end_at_any_moment_loses_nothing_and_reports_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
