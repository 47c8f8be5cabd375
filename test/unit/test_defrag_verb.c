/* numafit defrag, and a daemon that makes moves: what is printed while it goes on, and the exit
 * code. */
#include <numafit-cli/verbs.h>

#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "verb_call.h"

enum { PATH_BYTES = 100, PRINTED_MAX = 8192, CHILD_SECONDS = 30, DOCUMENT_BYTES = 2048 };

#define MOVE(state)                                                                                \
	"{\"namespace\":\"default\",\"pod\":\"web\",\"container\":\"main\",\"id\":\"1\","          \
	"\"memory\":1048576,\"from_cpus\":\"8-9\",\"from_nodes\":\"1\",\"to_cpus\":\"6-7\","       \
	"\"to_nodes\":\"0\",\"milliseconds\":1230,\"state\":\"" state "\"}"
#define DOCUMENT(state, move)                                                                      \
	"{\"moves\":{\"found\":true,\"cut\":false,\"state\":\"" state "\",\"memory\":1048576,"     \
	"\"cpus\":2,\"list\":[" move "]}}\n"

static const char under_way[] = DOCUMENT("moving", MOVE("moving")),
		  done[] = DOCUMENT("done", MOVE("moved")),
		  failed[] = DOCUMENT("failed", MOVE("undone"));

static char dir[PATH_BYTES], path[PATH_BYTES];

static int make_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)snprintf(dir, sizeof dir, "%s/numafit.XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

/* What is asked, and answered, in this order. */
struct exchange {
	const char *question, *answer;
};

static bool answer(int listener, const struct exchange *x)
{
	char word[DOCUMENT_BYTES] = "";
	int fd = accept(listener, NULL, NULL);
	ssize_t len = read(fd, word, sizeof word - 1);
	bool asked = len > 0 && text_equal(word, x->question);

	if (write(fd, x->answer, strlen(x->answer)) < 0)
		asked = false;
	(void)close(fd);
	return asked;
}

/* A daemon in a process of its own that ends after the last answer. */
static pid_t serve(const struct exchange *x)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(path, sizeof path, "%.80s/s", dir);
	assert_true(text_copy(at.sun_path, sizeof at.sun_path, path));
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(listener, 1), 0);
	pid_t child = fork();
	if (child) {
		(void)close(listener);
		return child;
	}
	(void)alarm(CHILD_SECONDS);
	bool asked = true;
	for (; x->question; x++)
		asked = answer(listener, x) && asked;
	_exit(asked ? 0 : 1);
}

/* The exit code of `numafit defrag --apply` with this output, and what it prints. */
static int apply(const struct exchange *x, char *output, char printed[PRINTED_MAX])
{
	char *argv[] = {(char[]){"defrag"}, (char[]){"--apply"}, (char[]){"--socket"}, path,
		(char[]){"-o"}, output, NULL};
	pid_t child = serve(x);
	FILE *to = tmpfile();
	int status, saved = dup(STDOUT_FILENO), saved_errors = dup(STDERR_FILENO);

	assert_non_null(to);
	(void)fflush(stdout);
	(void)dup2(fileno(to), STDOUT_FILENO);
	(void)dup2(fileno(to), STDERR_FILENO);
	int code = verb_call(&verb_defrag, 6, argv);
	(void)fflush(stdout);
	(void)fflush(stderr);
	(void)dup2(saved, STDOUT_FILENO);
	(void)dup2(saved_errors, STDERR_FILENO);
	(void)close(saved);
	(void)close(saved_errors);
	rewind(to);
	printed[fread(printed, 1, PRINTED_MAX - 1, to)] = '\0';
	(void)fclose(to);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(unlink(path), 0);
	return code;
}

static void apply_prints_the_plan_and_then_each_move_as_it_ends(void **state)
{
	static const struct exchange x[] = {{"defrag apply 3\n", under_way},
		{"defrag show\n", under_way}, {"defrag show\n", done}, {0}};
	char printed[PRINTED_MAX];

	(void)state;
	assert_int_equal(apply(x, (char[]){"text"}, printed), EXIT_DONE);
	assert_non_null(strstr(printed, "1 move, 1Mi of memory, 2 CPUs, some "));
	assert_non_null(strstr(printed, "\n1 of 1: default/web/main moved\n"));
}

static void a_program_has_the_document_of_the_end_alone(void **state)
{
	static const struct exchange x[] = {{"defrag apply 3\n", under_way},
		{"defrag show\n", under_way}, {"defrag show\n", done}, {0}};
	char printed[PRINTED_MAX];

	(void)state;
	assert_int_equal(apply(x, (char[]){"json"}, printed), EXIT_DONE);
	assert_string_equal(printed, done);
}

static void a_move_that_was_undone_is_no_success(void **state)
{
	static const struct exchange x[] = {
		{"defrag apply 3\n", under_way}, {"defrag show\n", failed}, {0}};
	char printed[PRINTED_MAX];

	(void)state;
	assert_int_equal(apply(x, (char[]){"text"}, printed), EXIT_NO);
	assert_non_null(strstr(printed, "\n1 of 1: default/web/main undone\n"));
	assert_int_equal(apply(x, (char[]){"json"}, printed), EXIT_NO);
	assert_string_equal(printed, failed);
}

static void a_daemon_that_ends_meanwhile_is_no_success_either(void **state)
{
	static const struct exchange x[] = {
		{"defrag apply 3\n", under_way}, {"defrag show\n", under_way}, {0}};
	char printed[PRINTED_MAX];

	(void)state;
	assert_int_equal(apply(x, (char[]){"text"}, printed), EXIT_CANNOT);
	assert_non_null(strstr(printed, path));
	assert_null(strstr(printed, "moved\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(apply_prints_the_plan_and_then_each_move_as_it_ends),
		cmocka_unit_test(a_program_has_the_document_of_the_end_alone),
		cmocka_unit_test(a_move_that_was_undone_is_no_success),
		cmocka_unit_test(a_daemon_that_ends_meanwhile_is_no_success_either),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
