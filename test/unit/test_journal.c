#include <io/journal.h>

#include <numafit/text.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { LINES_MAX = 8, SHORT = 64, FILE_MAX = 1024, STOP = -77 };

struct world {
	char dir[64], path[96], fresh[112], aside[112];
	char line[LINES_MAX][SHORT];
	unsigned nr, stop_at; /* stop_at: the line whose reader refuses; 0: none */
	size_t longest;
	struct err e;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	const char *tmp = getenv("TMPDIR");

	snprintf(w->dir, sizeof w->dir, "%s/test_journal.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof w->path, "%s/journal", w->dir);
	snprintf(w->fresh, sizeof w->fresh, "%s.new", w->path);
	snprintf(w->aside, sizeof w->aside, "%s.old", w->path);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	(void)unlink(w->path);
	(void)unlink(w->aside);
	assert_int_equal(rmdir(w->dir), 0); /* nothing else is left */
	free(w);
	return 0;
}

static int on_line(void *ctx, char *text, size_t len, struct err *e)
{
	struct world *w = ctx;

	assert_int_equal(text[len], '\0');
	w->longest = len > w->longest ? len : w->longest;
	if (w->nr < LINES_MAX)
		snprintf(w->line[w->nr], SHORT, "%s", text);
	memset(text, 'x', len); /* it may be changed */
	return ++w->nr == w->stop_at ? err_set(e, -STOP, "not this one") : 0;
}

static int read_all(struct world *w)
{
	w->nr = 0;
	w->e = (struct err){0};
	return journal_read(w->path, on_line, w, &w->e);
}

static void append(struct journal *j, const char *text)
{
	struct err e = {0};

	assert_int_equal(journal_append(j, text, strlen(text), &e), 0);
}

static struct journal *create(const struct world *w)
{
	struct err e = {0};
	struct journal *j = journal_create(w->path, &e);

	assert_string_equal(e.text, "");
	assert_non_null(j);
	return j;
}

/* A published journal of these lines. */
static void write_journal(const struct world *w, const char *const *lines, size_t nr)
{
	struct journal *j = create(w);

	for (size_t i = 0; i < nr; i++)
		append(j, lines[i]);
	assert_int_equal(journal_publish(j, NULL), 0);
	journal_close(j);
}

static size_t slurp(const char *path, char *buf)
{
	int fd = open(path, O_RDONLY);
	ssize_t len = read(fd, buf, FILE_MAX);

	assert_true(len >= 0);
	(void)close(fd);
	return (size_t)len;
}

static void spill(const char *path, const char *buf, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, buf, len), (ssize_t)len);
	(void)close(fd);
}

static const char *const three[] = {"one", "", "{\"three\":\"\xc3\xa9\"}"};

static void appended_lines_are_read_back_in_order(void **state)
{
	struct world *w = *state;

	write_journal(w, three, 3);
	assert_int_equal(read_all(w), 3);
	for (int i = 0; i < 3; i++)
		assert_string_equal(w->line[i], three[i]);
}

static void a_line_has_a_checksum_and_a_text(void **state)
{
	struct world *w = *state;
	static const char *const lines[] = {"123456789"};
	char buf[FILE_MAX];

	write_journal(w, lines, 1);
	size_t len = slurp(w->path, buf);
	/* the check value of CRC-32C */
	assert_int_equal(len, strlen("e3069283 123456789\n"));
	assert_memory_equal(buf, "e3069283 123456789\n", len);
}

static void a_missing_journal_reads_as_empty(void **state)
{
	struct world *w = *state;

	assert_int_equal(read_all(w), 0);
	spill(w->path, "", 0);
	assert_int_equal(read_all(w), 0);
}

static void a_journal_that_is_not_a_regular_file_is_refused_without_waiting(void **state)
{
	struct world *w = *state;
	char expected[256];

	assert_int_equal(mkfifo(w->path, 0600), 0);
	assert_int_equal(read_all(w), -EINVAL);
	snprintf(expected, sizeof expected, "%s: not a file that can be read", w->path);
	assert_string_equal(w->e.text, expected);
	assert_int_equal(journal_read(w->dir, on_line, w, &w->e), -EINVAL);
}

static void a_torn_last_line_is_skipped(void **state)
{
	struct world *w = *state;
	char buf[FILE_MAX];

	write_journal(w, three, 3);
	size_t whole = slurp(w->path, buf), last = whole;
	while (buf[last - 2] != '\n')
		last--;
	for (size_t len = last - 1; len < whole; len++) {
		spill(w->path, buf, len);
		assert_int_equal(read_all(w), len < last - 1 ? 1 : 2);
		assert_string_equal(w->line[0], "one");
	}
	/* all but the newline of the line before: that one is the torn one */
	spill(w->path, buf, last - 2);
	assert_int_equal(read_all(w), 1);
}

static void a_wrong_byte_is_skipped_in_the_last_line_and_an_error_before_it(void **state)
{
	struct world *w = *state;
	char buf[FILE_MAX];

	write_journal(w, three, 3);
	size_t whole = slurp(w->path, buf), begin[4] = {0};
	for (size_t i = 0, nr = 1; i < whole; i++)
		if (buf[i] == '\n')
			begin[nr++] = i + 1;
	for (size_t line = 0; line < 3; line++)
		for (size_t i = begin[line]; i < begin[line + 1] - 1; i++) {
			char text[SHORT], expected[256];

			buf[i] ^= 1;
			spill(w->path, buf, whole);
			buf[i] ^= 1;
			if (line == 2) {
				assert_int_equal(read_all(w), 2);
				continue;
			}
			assert_int_equal(read_all(w), -EBADMSG);
			snprintf(text, sizeof text, "line %zu is damaged", line + 1);
			snprintf(expected, sizeof expected, "%s: %s", w->path, text);
			assert_string_equal(w->e.text, expected);
			assert_int_equal(w->nr, line);
		}
}

static void a_checksum_must_be_eight_lowercase_hex_digits(void **state)
{
	struct world *w = *state;
	static const char *const files[] = {
		"E3069283 123456789\nx",
		"+3069283 123456789\nx",
		"e3069283\t123456789\nx",
		"e306928 123456789\nx",
		"\nx",
		"123456789\nx",
		"e3069283\nx",
	};

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		spill(w->path, files[i], strlen(files[i]));
		assert_int_equal(read_all(w), -EBADMSG);
		assert_int_equal(w->nr, 0);
	}
}

static void a_callback_may_end_the_reading(void **state)
{
	struct world *w = *state;
	char expected[256];

	write_journal(w, three, 3);
	w->stop_at = 2;
	assert_int_equal(read_all(w), STOP);
	snprintf(expected, sizeof expected, "%s: line 2: not this one", w->path);
	assert_string_equal(w->e.text, expected);
	assert_int_equal(w->nr, 2);
}

static void a_text_that_is_too_long_for_a_line_has_several(void **state)
{
	static const struct {
		size_t len, lines;
	} cases[] = {{JOURNAL_LINE_MAX, 1}, {JOURNAL_LINE_MAX + 1, 2}, {2 * JOURNAL_LINE_MAX, 2},
		{2 * JOURNAL_LINE_MAX + 1, 3}, {JOURNAL_TEXT_MAX, 16}};
	struct world *w = *state;
	char *text = malloc(JOURNAL_TEXT_MAX + 1);

	memset(text, 'l', JOURNAL_TEXT_MAX + 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct journal *j = create(w);

		w->longest = 0;
		append(j, "before");
		assert_int_equal(journal_append(j, text, JOURNAL_TEXT_MAX + 1, &w->e), -EMSGSIZE);
		assert_int_equal(journal_append(j, text, cases[i].len, NULL), 0);
		append(j, "next");
		assert_int_equal(journal_size(j), cases[i].len + 10 * cases[i].lines + 16 + 14);
		assert_int_equal(journal_publish(j, NULL), 0);
		journal_close(j);
		assert_int_equal(read_all(w), 3);
		assert_int_equal(w->longest, cases[i].len);
		assert_string_equal(w->line[2], "next");
	}
	free(text);
}

/* The whole file; the caller frees. */
static char *take_file(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	char *file = malloc((size_t)st.st_size);
	*len = (size_t)st.st_size;
	assert_int_equal(read(fd, file, *len), st.st_size);
	(void)close(fd);
	return file;
}

static void pieces_without_their_last_line_are_ignored(void **state)
{
	enum { LEN = 2 * JOURNAL_LINE_MAX + 100, FIRST = 10 + 3 };
	struct world *w = *state;
	struct journal *j = create(w);
	char *text = malloc(LEN);
	size_t len;

	memset(text, 'l', LEN);
	append(j, "one");
	assert_int_equal(journal_append(j, text, LEN, NULL), 0);
	assert_int_equal(journal_publish(j, NULL), 0);
	journal_close(j);
	char *file = take_file(w->path, &len);
	assert_int_equal(file[FIRST + 8], '+');
	for (size_t cut = FIRST; cut < len; cut += cut < len - 300 ? 997 : 1) {
		spill(w->path, file, cut);
		w->longest = 0;
		assert_int_equal(read_all(w), 1);
		assert_int_equal(w->longest, 3);
	}
	/* pieces and something else behind them are no whole text */
	spill(w->path, file, FIRST + 10 + JOURNAL_LINE_MAX);
	int fd = open(w->path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "0000 \nx", 7), 7);
	(void)close(fd);
	assert_int_equal(read_all(w), -EBADMSG);
	free(file);
	free(text);
}

static void more_pieces_than_a_text_can_have_are_damage(void **state)
{
	struct world *w = *state;
	struct journal *j = create(w);
	char *text = malloc(JOURNAL_TEXT_MAX);
	size_t len;

	memset(text, 'l', JOURNAL_TEXT_MAX);
	assert_int_equal(journal_append(j, text, JOURNAL_TEXT_MAX, NULL), 0);
	assert_int_equal(journal_publish(j, NULL), 0);
	journal_close(j);
	char *file = take_file(w->path, &len);
	int fd = open(w->path, O_WRONLY | O_TRUNC);
	for (unsigned i = 0; i < 17; i++)
		assert_int_equal(write(fd, file, 10 + JOURNAL_LINE_MAX), 10 + JOURNAL_LINE_MAX);
	(void)close(fd);
	assert_int_equal(read_all(w), -EBADMSG);
	assert_non_null(strstr(w->e.text, "line 17 is damaged"));
	free(file);
	free(text);
}

static void a_journal_without_a_newline_does_not_fill_the_memory(void **state)
{
	struct world *w = *state;
	int fd = open(w->path, O_WRONLY | O_CREAT, 0600);

	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0); /* a hole of 1 TiB */
	(void)close(fd);
	assert_int_equal(read_all(w), -EBADMSG);
}

static void a_newline_in_a_line_is_refused(void **state)
{
	struct world *w = *state;
	struct journal *j = create(w);

	assert_int_equal(journal_append(j, "a\nb", 3, &w->e), -EINVAL);
	assert_int_equal(journal_size(j), 0);
	journal_close(j);
}

static void the_old_file_stays_until_the_new_one_is_published(void **state)
{
	struct world *w = *state;

	write_journal(w, three, 3);
	struct journal *j = create(w);
	append(j, "new");
	assert_int_equal(read_all(w), 3);
	assert_int_equal(journal_publish(j, NULL), 0);
	append(j, "newer");
	assert_int_equal(read_all(w), 2);
	assert_string_equal(w->line[0], "new");
	assert_string_equal(w->line[1], "newer");
	journal_close(j);
	assert_int_equal(access(w->fresh, F_OK), -1);
}

static void a_file_that_was_not_published_is_removed(void **state)
{
	struct world *w = *state;
	struct journal *j = create(w);

	append(j, "x");
	assert_int_equal(access(w->fresh, F_OK), 0);
	journal_close(j);
	journal_close(NULL);
	assert_int_equal(access(w->fresh, F_OK), -1);
	assert_int_equal(access(w->path, F_OK), -1);
}

static void an_unfinished_file_of_an_earlier_run_is_replaced(void **state)
{
	struct world *w = *state;
	struct stat st;

	spill(w->fresh, "half", 4);
	write_journal(w, three, 3);
	assert_int_equal(read_all(w), 3);
	assert_int_equal(stat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void a_missing_directory_is_named(void **state)
{
	struct err e = {0};

	(void)state;
	assert_null(journal_create("/nowhere/journal", &e));
	assert_int_equal(e.code, ENOENT);
	assert_non_null(strstr(e.text, "/nowhere/journal"));
}

/* Let files grow to that many bytes only: the write that crosses it is done in part, the next one
 * fails with EFBIG (and a signal, which is ignored here). */
static rlim_t limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	rlim_t before = limit.rlim_cur;

	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	return before;
}

static void a_full_file_takes_no_partial_line(void **state)
{
	struct world *w = *state;
	static const char long_line[] = "a line that does not fit";
	const uint64_t size = 10 + strlen("one");

	(void)signal(SIGXFSZ, SIG_IGN);
	for (rlim_t room = 0; room < 10 + sizeof long_line - 1; room++) {
		struct journal *j = create(w);

		append(j, "one");
		rlim_t before = limit_files(size + room);
		int rc = journal_append(j, long_line, sizeof long_line - 1, &w->e);
		(void)limit_files(before);
		assert_int_equal(rc, room ? -ENOSPC : -EFBIG);
		assert_int_equal(journal_size(j), size);
		append(j, "two");
		assert_int_equal(journal_publish(j, NULL), 0);
		journal_close(j);
		assert_int_equal(read_all(w), 2);
		assert_string_equal(w->line[1], "two");
	}
}

/* A file that is full in the middle of a text of three lines. */
static void a_full_file_keeps_no_piece(void **state)
{
	enum { LEN = 2 * JOURNAL_LINE_MAX + 100, FIRST = 10 + 3 };
	static const rlim_t rooms[] = {0, 1, JOURNAL_LINE_MAX, JOURNAL_LINE_MAX + 10,
		JOURNAL_LINE_MAX + 11, 2 * JOURNAL_LINE_MAX + 20, 2 * JOURNAL_LINE_MAX + 129};
	struct world *w = *state;
	char *text = malloc(LEN);

	(void)signal(SIGXFSZ, SIG_IGN);
	memset(text, 'l', LEN);
	for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
		struct journal *j = create(w);

		append(j, "one");
		rlim_t before = limit_files(FIRST + rooms[i]);
		assert_true(journal_append(j, text, LEN, &w->e) < 0);
		(void)limit_files(before);
		assert_int_equal(journal_size(j), FIRST);
		append(j, "two");
		assert_int_equal(journal_publish(j, NULL), 0);
		journal_close(j);
		assert_int_equal(read_all(w), 2);
		assert_string_equal(w->line[1], "two");
	}
	free(text);
}

static void a_full_device_is_an_error_with_its_path(void **state)
{
	struct world *w = *state;
	char expected[256];

	/* the file that is started beside the path is a device that is always full */
	assert_int_equal(symlink("/dev/full", w->fresh), 0);
	struct journal *j = journal_create(w->path, &w->e);
	assert_non_null(j);
	assert_int_equal(journal_append(j, "x", 1, &w->e), -ENOSPC);
	snprintf(expected, sizeof expected, "%s: %s", w->path, strerror(ENOSPC));
	assert_string_equal(w->e.text, expected);
	assert_int_equal(journal_size(j), 0);
	journal_close(j);
}

static void a_journal_is_set_aside_over_an_older_one(void **state)
{
	struct world *w = *state;

	assert_int_equal(journal_set_aside(w->path, "old", &w->e), 0); /* there is none */
	write_journal(w, three, 1);
	assert_int_equal(journal_set_aside(w->path, "old", &w->e), 0);
	assert_int_equal(read_all(w), 0);
	write_journal(w, three, 2);
	assert_int_equal(journal_set_aside(w->path, "old", &w->e), 0);
	assert_int_equal(journal_read(w->aside, on_line, w, &w->e), 2);
	assert_int_equal(journal_set_aside("/dev/null/journal", "old", &w->e), -ENOTDIR);
}

static void the_journal_before_is_kept_beside_the_new_one(void **state)
{
	struct world *w = *state;

	assert_int_equal(journal_keep(w->path, "old", &w->e), 0); /* there is none */
	write_journal(w, three, 3);
	assert_int_equal(journal_keep(w->path, "old", &w->e), 0);
	write_journal(w, three, 1);
	assert_int_equal(journal_read(w->path, on_line, w, &w->e), 1);
	assert_int_equal(journal_read(w->aside, on_line, w, &w->e), 3);
	assert_int_equal(journal_keep(w->path, "old", &w->e), 0);
	assert_int_equal(journal_keep(w->path, "old", &w->e), 0);
	assert_int_equal(journal_read(w->aside, on_line, w, &w->e), 1);
	assert_int_equal(unlink(w->path), 0);
	assert_int_equal(journal_keep(w->path, "old", &w->e), 0); /* the one before stays */
	assert_int_equal(journal_read(w->aside, on_line, w, &w->e), 1);
	assert_int_equal(journal_keep("/dev/null/journal", "old", &w->e), -ENOTDIR);
}

static void a_directory_in_place_of_the_journal_is_set_aside_too(void **state)
{
	struct world *w = *state;
	char inside[128], further[120];

	snprintf(inside, sizeof inside, "%s/x", w->aside);
	snprintf(further, sizeof further, "%s.old", w->aside);
	assert_int_equal(mkdir(w->aside, 0700), 0);
	spill(inside, "x", 1);
	write_journal(w, three, 2);
	assert_int_equal(journal_set_aside(w->path, "old", &w->e), 0);
	assert_int_equal(journal_read(w->aside, on_line, w, &w->e), 2);
	snprintf(inside, sizeof inside, "%.120s/x", further);
	assert_int_equal(unlink(inside), 0);
	assert_int_equal(rmdir(further), 0);
	/* a file in the way of a directory is replaced like one in the way of a file */
	assert_int_equal(mkdir(w->path, 0700), 0);
	assert_int_equal(journal_set_aside(w->path, "old", &w->e), 0);
	assert_int_equal(rmdir(w->aside), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* A copy of a journal is read as the journal is. */
static void texts_written_to_any_file_are_a_journal_too(void **state)
{
	struct world *w = *state;
	char *text = malloc(JOURNAL_TEXT_MAX + 1);
	FILE *f = fopen(w->path, "w");

	assert_true(text && f);
	memset(text, 'z', JOURNAL_TEXT_MAX + 1);
	assert_int_equal(journal_write_text(f, "first", 5, NULL), 0);
	assert_int_equal(journal_write_text(f, text, JOURNAL_TEXT_MAX, NULL), 0);
	assert_int_equal(journal_write_text(f, "", 0, NULL), 0);
	assert_int_equal(journal_write_text(f, text, JOURNAL_TEXT_MAX + 1, NULL), -EMSGSIZE);
	assert_int_equal(journal_write_text(f, "a\nb", 3, NULL), -EINVAL);
	assert_int_equal(fclose(f), 0);
	w->longest = 0;
	assert_int_equal(read_all(w), 3);
	assert_string_equal(w->line[0], "first");
	assert_int_equal(w->longest, JOURNAL_TEXT_MAX);
	f = fopen("/dev/full", "w");
	assert_non_null(f);
	setbuf(f, NULL);
	assert_int_equal(journal_write_text(f, "first", 5, NULL), -EIO);
	(void)fclose(f);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(appended_lines_are_read_back_in_order),
		CASE(a_line_has_a_checksum_and_a_text),
		CASE(a_missing_journal_reads_as_empty),
		CASE(a_journal_that_is_not_a_regular_file_is_refused_without_waiting),
		CASE(a_torn_last_line_is_skipped),
		CASE(a_wrong_byte_is_skipped_in_the_last_line_and_an_error_before_it),
		CASE(a_checksum_must_be_eight_lowercase_hex_digits),
		CASE(a_callback_may_end_the_reading),
		CASE(texts_written_to_any_file_are_a_journal_too),
		CASE(a_text_that_is_too_long_for_a_line_has_several),
		CASE(pieces_without_their_last_line_are_ignored),
		CASE(more_pieces_than_a_text_can_have_are_damage),
		CASE(a_journal_without_a_newline_does_not_fill_the_memory),
		CASE(a_newline_in_a_line_is_refused),
		CASE(the_old_file_stays_until_the_new_one_is_published),
		CASE(a_file_that_was_not_published_is_removed),
		CASE(an_unfinished_file_of_an_earlier_run_is_replaced),
		CASE(a_missing_directory_is_named),
		CASE(a_full_file_takes_no_partial_line),
		CASE(a_full_file_keeps_no_piece),
		CASE(a_full_device_is_an_error_with_its_path),
		CASE(a_journal_is_set_aside_over_an_older_one),
		CASE(a_directory_in_place_of_the_journal_is_set_aside_too),
		CASE(the_journal_before_is_kept_beside_the_new_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
