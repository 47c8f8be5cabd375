/* What a node does to the daemon besides killing it: disks that are full, directories that may not
 * be written, runtimes that start anew, a second daemon, signals, readers that do not read. The
 * daemon is the real program; this test is its container runtime and the reader of its log. */
#include "faults_rig.h"

#ifdef NUMAFIT_FAULTS
static int count_line(void *ctx, char *text, size_t len, struct err *e)
{
	(void)ctx, (void)text, (void)len, (void)e;
	return 0;
}

/* A daemon whose writes fail for two lines, once nr - 1 containers have come and nothing else. */
static void begin_with_writes_that_fail(struct rig *r, enum fault f, unsigned nr)
{
	char fault[64];

	begin(r, NULL);
	int lines = journal_read(r->daemon.journal, count_line, NULL, NULL);
	end(r, SIGKILL);
	(void)snprintf(fault, sizeof fault, "%s:%d:2", fault_name(f), lines + (int)nr);
	begin(r, fault);
}

static void a_failing_disk_refuses_containers_and_changes_nothing(void **state)
{
	static const struct {
		enum fault fault;
		int error;
		const char *action;
	} table[] = {
		{FAULT_ENOSPC, ENOSPC, "make room"},
		{FAULT_EIO, EIO, "repair the file system"},
		{FAULT_EROFS, EROFS, "mount the file system"},
	};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		begin_with_writes_that_fail(r, table[i].fault, 2); /* of "second" and "third" */
		assert_string_equal(create(r, "first", 2)->cpus, "1,33");
		assert_null(create(r, "second", 2));
		assert_non_null(strstr(r->message, strerror(table[i].error)));
		assert_null(create(r, "third", 2));
		assert_string_equal(create(r, "second", 2)->cpus, "2,34");
		the_journal_is_what_runs(r);
		await_log(r, "event=journal-written-again");
		assert_non_null(strstr(r->log, table[i].action));
		assert_int_equal(count_log(r, "event=journal-not-written"), 1);
		stop(r, find(r, "first"));
		stop(r, find(r, "second"));
		end(r, SIGKILL);
	}
}

static void changes_made_while_the_disk_was_full_are_written_later(void **state)
{
	struct rig *r = *state;
	char freed[CPUSET_TEXT_MAX];

	/* of the end of "a", and of the first try to write all anew */
	begin_with_writes_that_fail(r, FAULT_ENOSPC, 3);
	assert_true(text_copy(freed, sizeof freed, create(r, "a", 3)->cpus));
	assert_non_null(create(r, "b", 2));
	stop(r, find(r, "a"));
	assert_null(create(r, "c", 3)); /* whose CPUs the journal says are a's */
	assert_non_null(strstr(r->message, "an earlier change is missing"));
	await_log(r, "event=journal-written-again");
	assert_int_equal(count_log(r, "event=journal-not-written"), 1);
	the_journal_is_what_runs(r);
	assert_string_equal(create(r, "c", 3)->cpus, freed);
	end(r, SIGKILL);
	begin(r, NULL);
	the_journal_is_what_runs(r);
	assert_non_null(strstr(r->log, "event=journal-folded"));
	assert_int_equal(r->updates_of_own, 0);
}

static void a_disk_that_is_full_at_start_is_tried_again(void **state)
{
	struct rig *r = *state;

	begin(r, NULL);
	const char *cpus = create(r, "a", 2)->cpus;
	end(r, SIGKILL);
	begin(r, "enospc:1:3"); /* the header, three times */
	assert_int_equal(r->updates_of_own, 0);
	assert_null(create(r, "b", 2));
	assert_non_null(strstr(r->message, strerror(ENOSPC)));
	await_log(r, "event=journal-written-again");
	the_journal_is_what_runs(r);
	assert_string_not_equal(create(r, "b", 2)->cpus, cpus);
	the_journal_is_what_runs(r);
}

static void running_containers_are_taken_over_although_the_disk_is_full(void **state)
{
	struct rig *r = *state;
	char fault[64];

	begin(r, NULL);
	int lines = journal_read(r->daemon.journal, count_line, NULL, NULL);
	const char *cpus = create(r, "a", 2)->cpus;
	end(r, SIGKILL);
	assert_int_equal(unlink(r->daemon.journal), 0);
	/* its line, and the first try to write all anew */
	(void)snprintf(fault, sizeof fault, "enospc:%d:2", lines + 1);
	begin(r, fault);
	assert_int_equal(r->updates_of_own, 0);
	assert_null(create(r, "b", 2));
	await_log(r, "event=journal-written-again");
	the_journal_is_what_runs(r);
	assert_string_not_equal(create(r, "b", 2)->cpus, cpus);
	the_journal_is_what_runs(r);
}
#endif

static void a_second_daemon_names_the_first_and_ends(void **state)
{
	struct rig *r = *state;
	char text[64];

	begin(r, NULL);
	struct daemon_rig first = r->daemon;
	(void)snprintf(text, sizeof text, "another numafitd (process %d)", (int)first.pid);
	fails_with(r, text);
	r->daemon = first;
	assert_non_null(create(r, "a", 1));
}

static void a_restarted_runtime_finds_every_container_as_it_was(void **state)
{
	struct rig *r = *state;

	begin(r, NULL);
	assert_non_null(create(r, "a", 2));
	assert_non_null(create(r, "b", 0));
	hang_up(r); /* and its socket is gone */
	fake_runtime_listen(&r->runtime, r->daemon.socket);
	run_until(r, &r->synchronized);
	assert_int_equal(r->updates_of_own, 0);
	stop(r, find(r, "b"));
	hang_up(r);
	(void)unlink(r->daemon.socket);
	fake_runtime_listen(&r->runtime, r->daemon.socket);
	run_until(r, &r->synchronized);
	assert_int_equal(r->updates_of_own, 0);
	the_journal_is_what_runs(r);
}

static void sigterm_ends_it_and_sighup_does_not(void **state)
{
	struct rig *r = *state;

	begin(r, NULL);
	assert_int_equal(kill(r->daemon.pid, SIGHUP), 0);
	assert_non_null(create(r, "a", 2));
	the_journal_is_what_runs(r);
	int status = rig_end(&r->daemon, SIGTERM);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	the_journal_is_what_runs(r);
}

static void a_stuck_reader_of_the_log_only_loses_lines(void **state)
{
	enum { CREATES = 60 };
	struct rig *r = *state;

	launch(r, NULL);
	assert_true(fcntl(r->log_fd, F_SETPIPE_SZ, PIPE_BYTES) >= 0);
	run_until(r, &r->synchronized);
	for (unsigned i = 0; i < CREATES; i++) {
		assert_non_null(create(r, "x", 1));
		stop(r, find(r, "x"));
	}
	read_log(r);
	await_log(r, "event=started");
	assert_non_null(create(r, "y", 1));
	await_log(r, "event=log-dropped lines=");
	assert_true(count_log(r, "event=decision") < CREATES);
}

static void make_empty(const char *path)
{
	spill(path, "", 0);
}

static void make_directory(const char *path)
{
	char inside[PATH_MAX];

	(void)snprintf(inside, sizeof inside, "%s/full", path);
	(void)unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	spill(inside, "x", 1);
}

static void make_pipe(const char *path)
{
	(void)unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
}

static void make_huge_line(const char *path)
{
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(truncate(path, (off_t)1 << 40), 0);
}

static void cut_in_half(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size / 2), 0);
}

static void flip_a_bit(const char *path)
{
	enum { AT = 40 };
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char byte;

	assert_int_equal(pread(fd, &byte, 1, AT), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, AT), 1);
	(void)close(fd);
}

/* One line of the old journal -> the new one, its header changed. */
struct rewriting {
	struct journal *to;
	const char *from, *into;
	bool done;
};

static int rewrite_line(void *ctx, char *text, size_t len, struct err *e)
{
	struct rewriting *w = ctx;
	char *at = w->done ? NULL : strstr(text, w->from);

	w->done = true;
	if (!at)
		return journal_append(w->to, text, len, e);
	size_t before = (size_t)(at - text), cap = len + strlen(w->into) + 1;
	char *line = malloc(cap);
	(void)snprintf(line, cap, "%.*s%s%s", (int)before, text, w->into, at + strlen(w->from));
	int rc = journal_append(w->to, line, strlen(line), e);
	free(line);
	return rc;
}

static void rewrite(const char *path, const char *from, const char *into)
{
	struct rewriting w = {journal_create(path, NULL), from, into, false};

	assert_non_null(w.to);
	assert_true(journal_read(path, rewrite_line, &w, NULL) > 0);
	assert_int_equal(journal_publish(w.to, NULL), 0);
	journal_close(w.to);
}

static void of_another_format(const char *path)
{
	rewrite(path, "\"journal\":", "\"journal\":9");
}

static void of_another_boot(const char *path)
{
	rewrite(path, "\"boot_id\":\"", "\"boot_id\":\"0");
}

static void of_another_machine(const char *path)
{
	rewrite(path, "\"topology\":\"machine ", "\"topology\":\"machine not-");
}

static void a_damaged_journal_is_set_aside_and_nothing_is_lost(void **state)
{
	static const struct {
		void (*damage)(const char *path);
		const char *suffix;
	} table[] = {
		{make_garbage, "damaged"},
		{make_empty, NULL},
		{make_directory, "damaged"},
		{flip_a_bit, "damaged"}, /* in place of the directory */
		{make_directory, "damaged"},
		{make_directory, "damaged"},
		{make_pipe, "damaged"},
		{make_huge_line, "damaged"},
		{cut_in_half, NULL},
		{of_another_format, "other-version"},
		{of_another_boot, "other-boot"},
		{of_another_machine, "other-machine"},
	};
	struct rig *r = *state;
	char aside[sizeof r->daemon.journal + 32];

	begin(r, NULL);
	assert_non_null(create(r, "a", 2));
	assert_non_null(create(r, "b", 0));
	assert_non_null(create(r, "c", 4));
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		end(r, SIGKILL);
		table[i].damage(r->daemon.journal);
		begin(r, NULL);
		assert_int_equal(r->updates_of_own, 0);
		the_journal_is_what_runs(r);
		if (!table[i].suffix) {
			assert_null(strstr(r->log, "event=journal-set-aside"));
			continue;
		}
		(void)snprintf(aside, sizeof aside, "file=%s.%s reason=", r->daemon.journal,
			table[i].suffix);
		if (!strstr(r->log, aside))
			fail_msg("%zu: %s is not logged: %s", i, aside, r->log);
		(void)snprintf(aside, sizeof aside, "%s.%s", r->daemon.journal, table[i].suffix);
		assert_int_equal(access(aside, F_OK), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef NUMAFIT_FAULTS
		CASE(a_failing_disk_refuses_containers_and_changes_nothing),
		CASE(changes_made_while_the_disk_was_full_are_written_later),
		CASE(running_containers_are_taken_over_although_the_disk_is_full),
		CASE(a_disk_that_is_full_at_start_is_tried_again),
#endif
		CASE(a_second_daemon_names_the_first_and_ends),
		CASE(a_restarted_runtime_finds_every_container_as_it_was),
		CASE(sigterm_ends_it_and_sighup_does_not),
		CASE(a_stuck_reader_of_the_log_only_loses_lines),
		CASE(a_damaged_journal_is_set_aside_and_nothing_is_lost),
	};

	json_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
