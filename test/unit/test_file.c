#include <io/file.h>

#include <errno.h>
#include <fcntl.h>
#include <numafit/mem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATH_SIZE = 128, BYTES = 10000 };

static char dir[PATH_SIZE / 2], path[PATH_SIZE];

static int set_up(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	(void)snprintf(dir, sizeof dir, "%.40s/test_file.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof path, "%s/file", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlink(path);
	return rmdir(dir);
}

static void put(size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (size_t i = 0; i < len; i++)
		assert_int_not_equal(fputc((int)('a' + i % 26), f), EOF);
	assert_int_equal(fclose(f), 0);
}

/* Of each length around those at which the buffer grows, and around the limit. */
static void a_file_is_read_whole_or_not_at_all(void **state)
{
	static const size_t lengths[] = {0, 1, 4095, 4096, 4097, 8192, BYTES - 1, BYTES, BYTES + 1};
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		auto_free char *text = NULL;
		size_t len = SIZE_MAX;

		put(lengths[i]);
		int rc = file_read(path, BYTES, &text, &len, &e);
		if (lengths[i] > BYTES) {
			assert_int_equal(rc, -EFBIG);
			assert_non_null(strstr(e.text, "/file: more than 10000 bytes"));
			assert_null(text);
			assert_int_equal(len, SIZE_MAX);
			continue;
		}
		assert_int_equal(rc, 0);
		assert_int_equal(len, lengths[i]);
		assert_int_equal(strlen(text), len);
		for (size_t k = 0; k < len; k++)
			assert_int_equal(text[k], 'a' + k % 26);
	}
}

static void a_file_must_fit_the_buffer_with_its_terminator(void **state)
{
	char buf[8];
	struct err e = {0};

	(void)state;
	put(7);
	assert_int_equal(file_read_into(path, buf, sizeof buf, &e), 7);
	assert_string_equal(buf, "abcdefg");
	put(8);
	assert_int_equal(file_read_into(path, buf, sizeof buf, &e), -EFBIG);
	assert_non_null(strstr(e.text, "/file: more than 7 bytes"));
}

static void an_unreadable_file_is_named(void **state)
{
	char buf[8];
	char *text = NULL;
	struct err e = {0};

	(void)state;
	assert_int_equal(file_read(path, BYTES, &text, NULL, &e), -ENOENT);
	assert_non_null(strstr(e.text, "/file: No such file or directory"));
	assert_int_equal(file_read_waiting(path, BYTES, &text, NULL, NULL), -ENOENT);
	assert_int_equal(file_read_into(path, buf, sizeof buf, NULL), -ENOENT);
	assert_int_equal(file_read(dir, BYTES, &text, NULL, &e), -EISDIR);
	assert_int_equal(file_read_into(dir, buf, sizeof buf, &e), -EISDIR);
	assert_null(text);
}

static void files_of_proc_without_a_size_are_read_whole(void **state)
{
	auto_free char *text = NULL;
	size_t len;

	(void)state;
	assert_int_equal(file_read("/proc/self/smaps", 64 << 20, &text, &len, NULL), 0);
	assert_true(len > 4096);
	assert_int_equal(text[len - 1], '\n');
}

static void a_fifo_is_waited_for_only_by_callers_that_may_block(void **state)
{
	auto_free char *text = NULL;
	struct err e = {0};
	int status;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(file_read(path, BYTES, &text, NULL, &e), 0); /* nobody writes */
	assert_string_equal(text, "");
	int writer = open(path, O_RDWR | O_CLOEXEC);
	assert_true(writer >= 0);
	free(steal(text));
	assert_int_equal(file_read(path, BYTES, &text, NULL, &e), -EAGAIN);
	assert_int_equal(close(writer), 0);
	pid_t child = fork();
	if (!child) {
		int fd = open(path, O_WRONLY | O_CLOEXEC);

		(void)usleep(20000);
		_exit(write(fd, "late", 4) != 4);
	}
	assert_int_equal(file_read_waiting(path, BYTES, &text, NULL, &e), 0);
	assert_string_equal(text, "late");
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(a_file_is_read_whole_or_not_at_all),
		CASE(a_file_must_fit_the_buffer_with_its_terminator),
		CASE(an_unreadable_file_is_named),
		CASE(files_of_proc_without_a_size_are_read_whole),
		CASE(a_fifo_is_waited_for_only_by_callers_that_may_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
