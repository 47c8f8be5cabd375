#include <io/acceptor.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { TIMEOUT_MS = 20000, NOBODY = 65534, PATH_BYTES = 108, MODE_BITS = 0777 };

struct world {
	struct loop *l;
	char dir[64], path[PATH_BYTES];
	struct loop_timer *deadline;
	struct acceptor *a;
	int nr_accepted, nr_refused;
	uid_t refused;
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

	snprintf(w->dir, sizeof w->dir, "%s/test_acceptor.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof w->path, "%s/socket", w->dir);
	w->l = loop_new();
	w->deadline = loop_timer_new(w->l, too_late, NULL);
	loop_timer_set(w->deadline, TIMEOUT_MS);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	acceptor_close(w->a);
	loop_free(w->l);
	(void)unlink(w->path);
	assert_int_equal(rmdir(w->dir), 0);
	free(w);
	return 0;
}

static void on_accepted(void *ctx, int fd)
{
	struct world *w = ctx;

	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	w->nr_accepted++;
	(void)close(fd);
	loop_stop(w->l);
}

static void on_refused(void *ctx, pid_t pid, uid_t uid)
{
	struct world *w = ctx;

	assert_true(pid > 0);
	w->nr_refused++;
	w->refused = uid;
	loop_stop(w->l);
}

static struct acceptor *listen_at(struct world *w, const char *path, struct err *e)
{
	struct acceptor_events events = {w, on_accepted, on_refused};

	return acceptor_new(w->l, path, &events, e);
}

static void listen_there(struct world *w)
{
	struct err e = {0};

	w->a = listen_at(w, w->path, &e);
	assert_string_equal(e.text, "");
	assert_non_null(w->a);
}

static int connect_to(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(a.sun_path, path, strlen(path));
	if (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0)
		return fd;
	(void)close(fd);
	return -errno;
}

static void a_new_connection_is_handed_to_the_owner_of_the_acceptor(void **state)
{
	struct world *w = *state;

	listen_there(w);
	int one = connect_to(w->path), two = connect_to(w->path);
	assert_true(one >= 0 && two >= 0);
	while (w->nr_accepted < 2)
		loop_run(w->l);
	(void)close(one);
	(void)close(two);
}

static void only_the_owner_may_use_the_socket_file(void **state)
{
	struct world *w = *state;
	struct stat st;

	listen_there(w);
	assert_int_equal(stat(w->path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & MODE_BITS, 0600);
}

/* The child waits for the end of its connection and says whether that is what it got. */
static int try_as_nobody(const char *path)
{
	char byte;
	int fd;

	if (setgid(NOBODY) || setuid(NOBODY) || (fd = connect_to(path)) < 0)
		return 2;
	return read(fd, &byte, 1) == 0 ? 0 : 1;
}

static void another_user_is_turned_away(void **state)
{
	struct world *w = *state;
	int status = 0;

	if (geteuid() != 0)
		skip();
	listen_there(w);
	/* the file's mode alone would do; what is tested is what lies behind it */
	assert_int_equal(chmod(w->dir, 0711) | chmod(w->path, 0666), 0);
	pid_t child = fork();
	if (!child)
		_exit(try_as_nobody(w->path));
	loop_run(w->l);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(w->nr_accepted, 0);
	assert_int_equal(w->nr_refused, 1);
	assert_int_equal(w->refused, NOBODY);
}

static void the_longest_path_has_107_characters(void **state)
{
	struct world *w = *state;
	struct err e = {0};
	char path[PATH_BYTES + 1];
	int at = snprintf(path, sizeof path, "%s/", w->dir);

	memset(path + at, 'x', sizeof path - 1 - (size_t)at);
	path[PATH_BYTES] = '\0';
	assert_null(listen_at(w, path, &e));
	assert_int_equal(e.code, ENAMETOOLONG);
	assert_non_null(strstr(e.text, "the path may have 107 characters"));
	path[PATH_BYTES - 1] = '\0';
	w->a = listen_at(w, path, &e);
	assert_non_null(w->a);
	assert_int_equal(access(path, F_OK), 0);
	memcpy(w->path, path, PATH_BYTES);
}

static void a_socket_that_nobody_listens_on_is_replaced(void **state)
{
	struct world *w = *state;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(a.sun_path, w->path, sizeof a.sun_path);
	assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof a), 0);
	(void)close(fd);
	assert_int_equal(connect_to(w->path), -ECONNREFUSED);
	listen_there(w);
	fd = connect_to(w->path);
	assert_true(fd >= 0);
	loop_run(w->l);
	assert_int_equal(w->nr_accepted, 1);
	(void)close(fd);
}

static void a_socket_that_somebody_listens_on_stays(void **state)
{
	struct world *w = *state;
	struct err e = {0};

	listen_there(w);
	assert_null(listen_at(w, w->path, &e));
	assert_int_equal(e.code, EADDRINUSE);
	assert_true(acceptor_is_there(w->a));
}

static void a_file_that_is_no_socket_stays(void **state)
{
	struct world *w = *state;
	struct err e = {0};
	int fd = open(w->path, O_CREAT | O_WRONLY, 0600);

	(void)close(fd);
	assert_null(listen_at(w, w->path, &e));
	assert_int_equal(e.code, EEXIST);
	assert_int_equal(access(w->path, F_OK), 0);
}

static void a_missing_directory_is_named(void **state)
{
	struct world *w = *state;
	struct err e = {0};
	char path[sizeof w->dir + 16];

	snprintf(path, sizeof path, "%s/none/socket", w->dir);
	assert_null(listen_at(w, path, &e));
	assert_int_equal(e.code, ENOENT);
	assert_non_null(strstr(e.text, path));
	assert_non_null(strstr(e.text, "the directory is missing"));
}

static void closing_removes_the_file(void **state)
{
	struct world *w = *state;

	listen_there(w);
	acceptor_close(w->a);
	w->a = NULL;
	assert_int_equal(access(w->path, F_OK), -1);
}

/* As when the kubelet wipes its directory, and the next numafit is there before this one ends. */
static void closing_leaves_the_file_of_a_successor(void **state)
{
	struct world *w = *state;
	struct acceptor *before;

	listen_there(w);
	before = w->a;
	assert_true(acceptor_is_there(before));
	assert_int_equal(unlink(w->path), 0);
	assert_false(acceptor_is_there(before));
	listen_there(w);
	assert_false(acceptor_is_there(before));
	acceptor_close(before);
	assert_true(acceptor_is_there(w->a));
}

static void on_soon(void *ctx)
{
	struct world *w = ctx;

	loop_stop(w->l);
}

/* Without descriptors peers wait, and are served when there are some again. */
static void a_shortage_of_descriptors_ends_with_it(void **state)
{
	struct world *w = *state;
	struct rlimit was, none;

	listen_there(w);
	int fd = connect_to(w->path);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	struct loop_timer *soon = loop_timer_new(w->l, on_soon, w);
	loop_timer_set(soon, 1);
	loop_run(w->l);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(w->nr_accepted, 0);
	int next = connect_to(w->path); /* valgrind, which has a limit of its own, lost the first */
	loop_run(w->l);
	assert_true(w->nr_accepted > 0);
	loop_timer_close(soon);
	(void)close(fd);
	(void)close(next);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_new_connection_is_handed_to_the_owner_of_the_acceptor),
		CASE(only_the_owner_may_use_the_socket_file),
		CASE(another_user_is_turned_away),
		CASE(the_longest_path_has_107_characters),
		CASE(a_socket_that_nobody_listens_on_is_replaced),
		CASE(a_socket_that_somebody_listens_on_stays),
		CASE(a_file_that_is_no_socket_stays),
		CASE(a_missing_directory_is_named),
		CASE(closing_removes_the_file),
		CASE(closing_leaves_the_file_of_a_successor),
		CASE(a_shortage_of_descriptors_ends_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
