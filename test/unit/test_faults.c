/* What a node does to the daemon besides killing it: disks that are full, directories that may not
 * be written, runtimes that start anew, a second daemon, signals, readers that do not read. The
 * daemon is the real program; this test is its container runtime and the reader of its log. */
#include <codec/fields_json.h>
#include <io/fault.h>
#include <io/journal.h>
#include <numafit-cli/journal_fold.h>

#include "live_rig.h"

#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>

enum { PIPE_BYTES = 4096 };

static void await_end_of_log(struct rig *r)
{
	loop_timer_set(r->watchdog, PATIENCE_MS);
	while (r->reader)
		loop_run(r->loop);
	loop_timer_stop(r->watchdog);
}

/* The journal tells what runs, and nothing else. */
static void the_journal_is_what_runs(struct rig *r)
{
	struct journal_fold f;
	struct err e = {0};
	char cpus[CPUSET_TEXT_MAX];
	unsigned nr = 0;

	if (journal_fold(&f, r->daemon.journal, NULL, NULL, &e) < 0)
		fail_msg("%s", e.text);
	for (unsigned i = 0; i < BOXES; i++) {
		const struct holding *h;

		if (!r->box[i].runs)
			continue;
		h = ledger_find(engine_ledger(f.engine), r->box[i].id);
		assert_non_null(h);
		assert_string_equal(
			r->box[i].cpus, cpuset_format(&h->decision.cpus, cpus, sizeof cpus));
		nr++;
	}
	assert_int_equal(ledger_count(engine_ledger(f.engine)), nr);
	journal_fold_fini(&f);
}

static int setup(void **state)
{
	struct rig *r = rig_new();

	r->daemon.setting[0] = "journalMaxBytes=64Ki";
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	if (r->daemon.pid)
		(void)rig_end(&r->daemon, SIGKILL);
	(void)umount2(r->daemon.run, MNT_DETACH);
	rig_free(r);
	return 0;
}

static void make_garbage(const char *path);
static void spill(const char *path, const char *text, size_t len);

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
		{FAULT_EIO, EIO, "mend the file system"},
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

static void a_run_directory_that_became_read_only_stops_no_container(void **state)
{
	struct rig *r = *state;

	r->daemon.obeys_modes = true;
	begin(r, NULL);
	assert_int_equal(chmod(r->daemon.run, 0500), 0);
	while (!strstr(r->log, "event=journal-rotate")) { /* its journal is full, and stays */
		assert_non_null(create(r, "x", 1));
		stop(r, find(r, "x"));
	}
	assert_non_null(strstr(r->log, "let numafitd write in runDirectory"));
	assert_int_equal(chmod(r->daemon.run, 0700), 0);
	assert_non_null(create(r, "y", 1));
	the_journal_is_what_runs(r);
}

/* A run directory that is full, read-only or not there when the daemon starts: it starts all the
 * same, places nobody, and tries again. */

/* Whether this process may mount: it is root, or made itself root of a namespace of its own. */
static bool may_mount;

static void write_proc(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		print_message("# %s: %s\n", path, strerror(errno));
	(void)close(fd);
}

static void get_own_mounts(void)
{
	char map[64];
	unsigned uid = getuid(), gid = getgid();

	may_mount = unshare(CLONE_NEWNS) == 0;
	if (!may_mount && unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) {
		write_proc("/proc/self/setgroups", "deny");
		(void)snprintf(map, sizeof map, "0 %u 1", uid);
		write_proc("/proc/self/uid_map", map);
		(void)snprintf(map, sizeof map, "0 %u 1", gid);
		write_proc("/proc/self/gid_map", map);
		may_mount = true;
	}
	may_mount = may_mount && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* The run directory is a tmpfs of its own; "size=64k", "nr_inodes=1". */
static void mount_run(struct rig *r, const char *options)
{
	assert_true(mkdir(r->daemon.run, 0700) == 0 || errno == EEXIST);
	assert_int_equal(mount("numafit-test", r->daemon.run, "tmpfs", 0, options), 0);
}

static void remount_run(struct rig *r, unsigned long flags)
{
	assert_int_equal(mount(NULL, r->daemon.run, NULL, MS_REMOUNT | flags, NULL), 0);
}

static void name_filler(const struct rig *r, char path[PATH_MAX])
{
	(void)snprintf(path, PATH_MAX, "%.4000s/filler", r->daemon.run);
}

static void fill_up(struct rig *r)
{
	char path[PATH_MAX], zeros[PIPE_BYTES] = {0};

	name_filler(r, path);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	while (write(fd, zeros, sizeof zeros) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	(void)close(fd);
}

static void make_room_in_run(struct rig *r)
{
	char path[PATH_MAX];

	name_filler(r, path);
	assert_int_equal(unlink(path), 0);
}

/* What `numafit status` is answered. */
static void says(struct rig *r, const char *text)
{
	char command[3 * PATH_MAX];

	(void)snprintf(command, sizeof command,
		"'%.*s/numafit' status --socket '%s/numafitd.sock' | grep -q '%s'",
		(int)(strrchr(r->daemon.program, '/') - r->daemon.program), r->daemon.program,
		r->daemon.run, text);
	if (system(command) != 0)
		fail_msg("status does not say %s", text);
}

/* It runs, knows what runs, and refuses a container with that word. */
static void refuses_because(struct rig *r, const char *why)
{
	assert_null(create(r, "no", 2));
	if (!strstr(r->message, why))
		fail_msg("it says %s, not %s", r->message, why);
	assert_null(create(r, "no", 0));
	await_log(r, "event=journal-not-written");
	assert_int_equal(count_log(r, "event=journal-not-written"), 1);
}

static void a_full_run_directory_at_start_refuses_containers_and_is_tried_again(void **state)
{
	struct rig *r = *state;

	if (!may_mount)
		skip();
	mount_run(r, "size=128k");
	begin(r, NULL);
	const char *cpus = create(r, "a", 2)->cpus;
	assert_non_null(create(r, "b", 0));
	for (unsigned i = 0; i < 2; i++) { /* and when it is killed meanwhile, it is no worse */
		end(r, SIGKILL);
		if (!i)
			fill_up(r);
		begin(r, NULL);
		assert_non_null(strstr(r->log, "event=journal-folded"));
		assert_int_equal(r->updates_of_own, 0);
		refuses_because(r, strerror(ENOSPC));
		assert_non_null(strstr(r->log, "make room"));
		says(r, "journal: .*No space left on device");
	}
	stop(r, find(r, "b"));
	make_room_in_run(r);
	await_log(r, "event=journal-written-again");
	the_journal_is_what_runs(r);
	assert_string_not_equal(create(r, "c", 2)->cpus, cpus);
	the_journal_is_what_runs(r);
	says(r, "containers: ");
}

static void a_run_directory_without_room_for_a_file_is_tried_again(void **state)
{
	struct rig *r = *state;

	if (!may_mount)
		skip();
	mount_run(r, "nr_inodes=1"); /* the directory itself */
	begin(r, NULL);
	refuses_because(r, strerror(ENOSPC));
	assert_int_equal(mount(NULL, r->daemon.run, NULL, MS_REMOUNT, "nr_inodes=100"), 0);
	await_log(r, "event=journal-written-again");
	assert_non_null(create(r, "a", 2));
	the_journal_is_what_runs(r);
	await_log(r, "event=status-served-again");
	says(r, "containers: ");
}

static void a_full_run_directory_at_a_reload_is_tried_again(void **state)
{
	struct rig *r = *state;
	char path[PATH_MAX];

	if (!may_mount)
		skip();
	(void)snprintf(path, sizeof path, "%.4000s/config", r->daemon.dir);
	spill(path, "sharedPoolStep: 3\n", 18);
	r->daemon.config = path;
	mount_run(r, "size=128k");
	begin(r, NULL);
	assert_non_null(create(r, "a", 2));
	fill_up(r);
	spill(path, "sharedPoolStep: 4\n", 18);
	assert_int_equal(kill(r->daemon.pid, SIGHUP), 0);
	await_log(r, "event=config-reloaded");
	refuses_because(r, strerror(ENOSPC));
	make_room_in_run(r);
	await_log(r, "event=journal-written-again");
	the_journal_is_what_runs(r);
	assert_non_null(create(r, "b", 2));
	the_journal_is_what_runs(r);
}

static void a_read_only_run_directory_is_tried_again(void **state)
{
	struct rig *r = *state;

	if (!may_mount)
		skip();
	mount_run(r, "size=1m");
	begin(r, NULL);
	const char *cpus = create(r, "a", 2)->cpus;
	end(r, SIGKILL);
	remount_run(r, MS_RDONLY);
	begin(r, NULL);
	assert_non_null(strstr(r->log, "event=journal-folded"));
	refuses_because(r, strerror(EROFS));
	remount_run(r, 0);
	await_log(r, "event=journal-written-again");
	assert_string_not_equal(create(r, "b", 2)->cpus, cpus);
	the_journal_is_what_runs(r);
	end(r, SIGKILL);
	make_garbage(r->daemon.journal); /* which cannot be set aside at once */
	remount_run(r, MS_RDONLY);
	begin(r, NULL);
	assert_int_equal(r->updates_of_own, 0);
	refuses_because(r, strerror(EROFS));
	remount_run(r, 0);
	await_log(r, "event=journal-written-again");
	the_journal_is_what_runs(r);
	char aside[sizeof r->daemon.journal + 32];
	(void)snprintf(aside, sizeof aside, "%s.damaged", r->daemon.journal);
	assert_int_equal(access(aside, F_OK), 0);
}

static void a_run_directory_may_appear_later(void **state)
{
	struct rig *r = *state;
	char parent[PATH_MAX];

	(void)snprintf(parent, sizeof parent, "%.4000s/a", r->daemon.dir);
	(void)snprintf(r->daemon.run, sizeof r->daemon.run, "%.4000s/b", parent);
	(void)snprintf(
		r->daemon.journal, sizeof r->daemon.journal, "%.4000s/journal", r->daemon.run);
	begin(r, NULL);
	refuses_because(r, "No such file or directory");
	assert_int_equal(mkdir(parent, 0700), 0);
	await_log(r, "event=journal-written-again");
	assert_non_null(create(r, "a", 2));
	the_journal_is_what_runs(r);
	await_log(r, "event=status-served-again");
	says(r, "containers: ");
}

/* One that is another daemon's by the time it appears: that one is named. */
static void a_run_directory_that_appears_later_may_belong_to_another_daemon(void **state)
{
	struct rig *r = *state;
	char its[PATH_MAX], path[PATH_MAX + 16];

	(void)snprintf(its, sizeof its, "%.4000s/its", r->daemon.dir);
	assert_int_equal(mkdir(its, 0700), 0);
	(void)snprintf(path, sizeof path, "%s/b", its);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof path, "%s/b/lock", its);
	int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(lock, "4711\n", 5), 5);
	assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
	(void)snprintf(r->daemon.run, sizeof r->daemon.run, "%.4000s/a/b", r->daemon.dir);
	launch(r, NULL);
	read_log(r);
	await_log(r, "event=started");
	(void)snprintf(path, sizeof path, "%.4000s/a", r->daemon.dir);
	assert_int_equal(rename(its, path), 0);
	await_end_of_log(r);
	int status = rig_end(&r->daemon, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_non_null(strstr(r->log, "another numafitd (process 4711)"));
	(void)close(lock);
}

/* Start it where it cannot run: what it says, and its exit status. */
static void fails_with(struct rig *r, const char *text)
{
	launch(r, NULL);
	read_log(r);
	await_end_of_log(r);
	int status = rig_end(&r->daemon, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	if (!strstr(r->log, text))
		fail_msg("it says %s, not %s", r->log, text);
}

static void a_run_directory_is_created_or_the_error_is_logged(void **state)
{
	struct rig *r = *state;
	struct stat st;

	begin(r, NULL); /* it was not there */
	assert_int_equal(stat(r->daemon.run, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	end(r, SIGTERM);
	r->daemon.obeys_modes = true;
	assert_int_equal(chmod(r->daemon.run, 0500), 0);
	begin(r, NULL);
	refuses_because(r, "journal.new: Permission denied");
	assert_non_null(strstr(r->log, "let numafitd write in runDirectory"));
	assert_int_equal(chmod(r->daemon.run, 0700), 0);
	await_log(r, "event=journal-written-again");
	end(r, SIGTERM);
	(void)snprintf(r->daemon.run, sizeof r->daemon.run, "%s", r->daemon.machine);
	fails_with(r, "/lock: Not a directory");
}

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

/* Damage of the journal at start: what is done to it, and the word in the name that it is set aside
 * under; NULL: it is used as far as it goes. */

static void spill(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	(void)close(fd);
}

static void make_garbage(const char *path)
{
	static const char garbage[] = "PK\003\004\0\n\n\n\xff\xfe";

	spill(path, garbage, sizeof garbage);
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
			fail_msg("%zu: %s is not told: %s", i, aside, r->log);
		(void)snprintf(aside, sizeof aside, "%s.%s", r->daemon.journal, table[i].suffix);
		assert_int_equal(access(aside, F_OK), 0);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef NUMAFIT_FAULTS
		CASE(a_failing_disk_refuses_containers_and_changes_nothing),
		CASE(changes_made_while_the_disk_was_full_are_written_later),
		CASE(running_containers_are_taken_over_although_the_disk_is_full),
		CASE(a_disk_that_is_full_at_start_is_tried_again),
#endif
		CASE(a_full_run_directory_at_start_refuses_containers_and_is_tried_again),
		CASE(a_run_directory_without_room_for_a_file_is_tried_again),
		CASE(a_full_run_directory_at_a_reload_is_tried_again),
		CASE(a_read_only_run_directory_is_tried_again),
		CASE(a_run_directory_may_appear_later),
		CASE(a_run_directory_that_appears_later_may_belong_to_another_daemon),
		CASE(a_run_directory_that_became_read_only_stops_no_container),
		CASE(a_run_directory_is_created_or_the_error_is_logged),
		CASE(a_second_daemon_names_the_first_and_ends),
		CASE(a_restarted_runtime_finds_every_container_as_it_was),
		CASE(sigterm_ends_it_and_sighup_does_not),
		CASE(a_stuck_reader_of_the_log_only_loses_lines),
		CASE(a_damaged_journal_is_set_aside_and_nothing_is_lost),
	};

	json_seed();
	get_own_mounts();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
