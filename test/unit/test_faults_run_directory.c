/* A run directory that is full, read-only or not there when the daemon starts: it starts all the
 * same, gives no CPUs, and tries again. The daemon is the real program. */
#include "faults_rig.h"

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
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_non_null(strstr(r->log, "another numafitd (process 4711)"));
	(void)close(lock);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_full_run_directory_at_start_refuses_containers_and_is_tried_again),
		CASE(a_run_directory_without_room_for_a_file_is_tried_again),
		CASE(a_full_run_directory_at_a_reload_is_tried_again),
		CASE(a_read_only_run_directory_is_tried_again),
		CASE(a_run_directory_may_appear_later),
		CASE(a_run_directory_that_appears_later_may_belong_to_another_daemon),
		CASE(a_run_directory_that_became_read_only_stops_no_container),
		CASE(a_run_directory_is_created_or_the_error_is_logged),
	};

	json_seed();
	get_own_mounts();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
