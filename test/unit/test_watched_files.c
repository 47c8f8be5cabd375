/* Files that others write again, each watched under a key. */
#include <io/watched_files.h>

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

struct world {
	struct loop *loop;
	char dir[32], path[2][PATH_MAX];
	const struct watched_file *touched;
};

static void note_touched(void *ctx, struct watched_file *f)
{
	struct world *w = ctx;

	w->touched = f;
	loop_stop(w->loop);
}

static void put(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "0-3\n", 4), 4);
	assert_int_equal(close(fd), 0);
}

static void a_write_is_reported_under_the_key_of_its_file(void **state)
{
	struct world w = {.dir = "/tmp/numafit-watched.XXXXXX"};
	struct watched_files files;

	(void)state;
	w.loop = loop_new();
	assert_non_null(mkdtemp(w.dir));
	watched_files_start(&files, w.loop, note_touched, &w);
	for (unsigned i = 0; i < 2; i++) {
		(void)snprintf(w.path[i], sizeof w.path[i], "%s/%u", w.dir, i);
		put(w.path[i]);
	}
	assert_true(watched_files_add(&files, "b", w.path[0]));
	assert_true(watched_files_add(&files, "a", w.path[1]));
	assert_true(watched_files_add(&files, "a", w.path[1])); /* once is enough */
	assert_int_equal(files.nr, 2);
	assert_string_equal(files.at[0].key, "a");
	for (unsigned i = 0; i < 2; i++) {
		const char *key = i ? "a" : "b";

		put(w.path[i]);
		while (w.touched != watched_files_find(&files, key))
			loop_run(w.loop);
	}
	watched_files_remove(&files, "a");
	watched_files_remove(&files, "nobody");
	assert_null(watched_files_find(&files, "a"));
	assert_false(watched_files_add(&files, "gone", "/nowhere/at/all"));
	assert_non_null(watched_files_find(&files, "gone"));
	watched_files_stop(&files);
	assert_int_equal(files.nr, 0);
	for (unsigned i = 0; i < 2; i++)
		(void)unlink(w.path[i]);
	(void)rmdir(w.dir);
	loop_free(w.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_is_reported_under_the_key_of_its_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
