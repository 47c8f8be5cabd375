/* The streams of a program's output at their end: an error of any write is in the exit code,
 * whatever errno is by then. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <command/safe_output.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG = 100 * 1000 };

/* What a program exits with that prints to the file and ends: errno of the output, else 0. */
static int exit_code_of(const char *file, size_t len, const char *end)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		int fd = open(file, O_WRONLY);

		if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
			_exit(EXIT_FAILURE);
		safe_output_begin();
		for (size_t i = 0; i < len; i++)
			(void)putc('x', stdout);
		(void)fputs(end, stdout);
		if (len > BUFSIZ)
			(void)fflush(stdout);
		errno = 0; /* as another call may leave it */
		_exit(-safe_output_end());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void an_error_of_any_write_is_reported_at_the_end(void **state)
{
	static const struct {
		const char *file;
		size_t len;
		const char *end;
		int code;
	} rows[] = {
		{"/dev/null", 1, "", 0}, {"/dev/null", LONG, "\xc3", 0},
		{"/dev/full", 1, "", ENOSPC},
		{"/dev/full", LONG, "", ENOSPC},  /* before the end, and errno is another one now */
		{"/dev/full", 0, "\xc3", ENOSPC}, /* half a character, which the end writes */
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(
			exit_code_of(rows[i].file, rows[i].len, rows[i].end), rows[i].code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_of_any_write_is_reported_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
