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

/* A daemon that is somebody else's, or a bundle's: what the program prints of its answers has no
 * control character but newline and tab. */
static void what_a_daemon_says_does_not_command_the_terminal(void **state)
{
	static const char *const answers[] = {
		DOCUMENT("moving\\u001b[31m", MOVE("moving")),
		DOCUMENT("done", MOVE("moved\\u001b[31m")),
		DOCUMENT("failed",
			"{\"namespace\":\"\\u001b[31m\",\"pod\":\"\\u001b]0;x\\u0007\","
			"\"container\":\"\\u009b\\u202e\",\"id\":\"1\",\"memory\":1048576,"
			"\"from_cpus\":\"8-9\",\"from_nodes\":\"\\u001b[31m\",\"to_cpus\":\"6-7\","
			"\"to_nodes\":\"\\u001b[31m\",\"milliseconds\":1,\"state\":\"undone\","
			"\"why\":\"\\u001b[31m\"}"),
		"{\"error\":\"\\u001b[31m\\u009b\"}\n",
		"\x1b[31m not a document\n",
		"{\"\x1b[31m\xc2\x9b\":1}\n",
	};
	enum { NR_FORMS = 4 };
	static const char *const forms[NR_FORMS] = {"", " -o json", " --apply", " --apply -o json"};
	const char *build = getenv("BUILD");
	char command[3 * PATH_BYTES], printed[PRINTED_MAX];

	(void)state;
	for (size_t i = 0; i < NR_FORMS * sizeof answers / sizeof *answers; i++) {
		const char *form = forms[i % NR_FORMS], *said = answers[i / NR_FORMS];
		const struct exchange x[] = {
			{strstr(form, "apply") ? "defrag apply 3\n" : "defrag plan 3\n", said},
			{0}};
		int status;
		pid_t child = serve(x);

		(void)snprintf(command, sizeof command, "%s/numafit defrag --socket %s%s 2>&1",
			build ? build : "build/debug", path, form);
		FILE *f = popen(command, "r");
		assert_non_null(f);
		printed[fread(printed, 1, sizeof printed - 1, f)] = '\0';
		(void)pclose(f);
		(void)kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(unlink(path), 0);
		assert_true(strlen(printed) > 0);
		assert_null(strpbrk(printed, "\x1b\a\b\r\x7f"));
		assert_null(strstr(printed, "\xc2\x9b"));
		assert_null(strstr(printed, "\xe2\x80\xae"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(apply_prints_the_plan_and_then_each_move_as_it_ends),
		cmocka_unit_test(a_program_has_the_document_of_the_end_alone),
		cmocka_unit_test(a_move_that_was_undone_is_no_success),
		cmocka_unit_test(a_daemon_that_ends_meanwhile_is_no_success_either),
		cmocka_unit_test(what_a_daemon_says_does_not_command_the_terminal),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
