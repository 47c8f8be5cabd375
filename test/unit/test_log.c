#include <io/log.h>

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { LINE_SIZE = 8192, PIPE_SIZE = 1 << 20 };

static char got[LINE_SIZE];
static unsigned nr_got;

static void keep(const char *line, size_t len)
{
	assert_true(len < sizeof got);
	memcpy(got, line, len);
	got[len] = '\0';
	nr_got++;
}

static int setup(void **state)
{
	(void)state;
	nr_got = 0;
	log_set_level(LOG_INFO);
	log_set_format(LOG_FORMAT_JOURNAL);
	log_set_sink(keep);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	log_set_sink(NULL);
	return 0;
}

/* What stands behind a time of that shape (d is a digit), or NULL when the line does not begin so.
 */
static const char *behind_shape(const char *line, const char *shape)
{
	for (size_t i = 0; shape[i]; i++) {
		bool digit = line[i] >= '0' && line[i] <= '9';

		if (shape[i] == 'd' ? !digit : line[i] != shape[i])
			return NULL;
	}
	return line + strlen(shape);
}

#define TIME_SHAPE "dddd-dd-ddTdd:dd:dd.dddZ"

/* What stands behind priority and time. */
static const char *behind_time(const char *line, char priority)
{
	const char begin[] = {'<', priority, '>', '\0'};
	const char *rest = strncmp(line, begin, strlen(begin)) ? NULL : line + strlen(begin);

	if (rest && !strncmp(rest, "time=", strlen("time=")))
		return behind_shape(rest + strlen("time="), TIME_SHAPE " ");
	return NULL;
}

static void a_line_has_priority_time_level_event_and_pairs(void **state)
{
	static const struct {
		enum log_level level;
		char priority;
		const char *rest;
	} table[] = {
		{LOG_ERROR, '3', "level=error event=node-placed cpus=0-3 nr=4\n"},
		{LOG_WARN, '4', "level=warn event=node-placed cpus=0-3 nr=4\n"},
		{LOG_INFO, '6', "level=info event=node-placed cpus=0-3 nr=4\n"},
		{LOG_DEBUG, '7', "level=debug event=node-placed cpus=0-3 nr=4\n"},
	};

	(void)state;
	log_set_level(LOG_DEBUG);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		log_line(table[i].level, "node-placed", "cpus=%s nr=%d", "0-3", 4);
		assert_non_null(behind_time(got, table[i].priority));
		assert_string_equal(behind_time(got, table[i].priority), table[i].rest);
	}
}

static void a_text_line_begins_with_its_time(void **state)
{
	(void)state;
	log_set_format(LOG_FORMAT_TEXT);
	log_line(LOG_WARN, "node-placed", "cpus=%s", "0-3");
	assert_true(!strncmp(got, "time=", strlen("time=")));
	assert_string_equal(behind_shape(got + strlen("time="), TIME_SHAPE " "),
		"level=warn event=node-placed cpus=0-3\n");
}

static void a_json_line_is_one_object_of_texts(void **state)
{
	static const struct {
		const char *pairs, *want;
	} table[] = {
		{"cpus=0-3 nr=4", "\"cpus\":\"0-3\",\"nr\":\"4\""},
		{"a=\"x y\" b=z", "\"a\":\"x y\",\"b\":\"z\""},
		{"a=\"say \\\"x\\\"\" b=", "\"a\":\"say \\\"x\\\"\",\"b\":\"\""},
		{"a=\"back\\\\slash\"", "\"a\":\"back\\\\slash\""},
		{"a=\"two\\x0alines \\xc2\"", "\"a\":\"two\\u000alines \\\\xc2\""},
		{"bare a=1", "\"text\":\"bare\",\"a\":\"1\""},
		{"a=1  b=2 ", "\"a\":\"1\",\"b\":\"2\""},
		{"a=\"not closed", "\"a\":\"not closed\""},
		{"a=one\n\x1b[2J", "\"a\":\"one??[2J\""},
		{"level=high", "\"level_\":\"high\""},
	};
	char want[LINE_SIZE];

	(void)state;
	log_set_format(LOG_FORMAT_JSON);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		static const char begin[] = "{\"time\":\"";

		log_line(LOG_INFO, "node-placed", "%s", table[i].pairs);
		snprintf(want, sizeof want, "\",\"level\":\"info\",\"event\":\"node-placed\",%s}\n",
			table[i].want);
		assert_true(!strncmp(got, begin, strlen(begin)));
		assert_string_equal(behind_shape(got + strlen(begin), TIME_SHAPE), want);
	}
	log_line(LOG_INFO, "started", "%s", "");
	assert_non_null(strstr(got, ",\"event\":\"started\"}\n"));
}

static void a_json_line_that_is_too_long_is_cut_and_stays_an_object(void **state)
{
	static const char end[] = "\",\"cut\":\"yes\"}\n";
	char text[LINE_SIZE];
	unsigned nr_cut = 0;

	(void)state;
	log_set_format(LOG_FORMAT_JSON);
	for (size_t len = 1900; len < 4300; len++) {
		memset(text, len % 2 ? '\\' : 'x', len);
		text[len] = '\0';
		log_line(LOG_INFO, "x", "a=%s b=2", text);
		size_t written = strlen(got);
		bool cut = !strcmp(got + written - strlen(end), end);
		json_t *line = json_loads(got, JSON_REJECT_DUPLICATES, NULL);

		nr_cut += cut;
		assert_true(written <= 4096);
		assert_non_null(line);
		const char *a = json_string_value(json_object_get(line, "a")),
			   *b = json_string_value(json_object_get(line, "b"));
		assert_int_equal(cut, strlen(a) < len || !b || strcmp(b, "2"));
		json_decref(line);
	}
	assert_in_range(nr_cut, 500, 2300);
}

/* As systemd has it: the device and inode that standard error is. */
static void auto_is_for_the_journal_when_stderr_is_the_one_that_systemd_names(void **state)
{
	char stream[64];
	struct stat st;

	(void)state;
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	for (int other = 0; other < 2; other++) {
		snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
			(unsigned long long)st.st_ino + (unsigned)other);
		assert_int_equal(setenv("JOURNAL_STREAM", stream, 1), 0);
		log_set_format(LOG_FORMAT_AUTO);
		log_line(LOG_INFO, "x", "%s", "");
		assert_int_equal(*got, other ? 't' : '<');
	}
	assert_int_equal(unsetenv("JOURNAL_STREAM"), 0);
	log_set_format(LOG_FORMAT_AUTO);
	log_line(LOG_INFO, "x", "%s", "");
	assert_int_equal(*got, 't');
}

static void the_last_lines_are_kept_as_many_as_fit(void **state)
{
	enum { LINES = 5000 };
	char *lines;

	(void)state;
	log_line(LOG_INFO, "one", "n=1");
	lines = log_last_lines();
	assert_string_equal(lines + strlen(lines) - strlen(got), got);
	free(lines);
	for (unsigned i = 0; i < LINES; i++)
		log_line(LOG_INFO, "many", "n=%u", i);
	lines = log_last_lines();
	assert_in_range(strlen(lines), LOG_KEPT_BYTES - 4096, LOG_KEPT_BYTES);
	assert_non_null(behind_time(lines, '6')); /* it begins with a whole line */
	assert_string_equal(lines + strlen(lines) - strlen(got), got);
	free(lines);
}

static void an_event_needs_no_pairs(void **state)
{
	(void)state;
	log_line(LOG_INFO, "started", "%s", "");
	assert_string_equal(behind_time(got, '6'), "level=info event=started\n");
}

static void lines_above_the_level_are_not_written(void **state)
{
	(void)state;
	for (int level = LOG_ERROR; level <= LOG_DEBUG; level++) {
		log_set_level((enum log_level)level);
		nr_got = 0;
		for (int i = LOG_ERROR; i <= LOG_DEBUG; i++)
			log_line((enum log_level)i, "x", "n=%d", i);
		assert_int_equal(nr_got, level + 1);
	}
}

static void control_characters_are_escaped(void **state)
{
	(void)state;
	log_line(LOG_INFO, "x", "a=\n\x1b[2J\t\x7f\xc2\x9b\xff.");
	assert_string_equal(behind_time(got, '6'), "level=info event=x a=??[2J?????.\n");
}

static void a_line_that_is_too_long_is_cut_and_says_so(void **state)
{
	char text[LINE_SIZE];

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	for (size_t len = 4000; len < 4200; len++) {
		log_line(LOG_INFO, "x", "a=%s", text + sizeof text - 1 - len);
		size_t written = strlen(got);
		bool cut = !strcmp(got + written - strlen(" cut=yes\n"), " cut=yes\n");

		assert_true(written <= 4096);
		assert_int_equal(got[written - 1], '\n');
		assert_int_equal(cut, strspn(strchr(got, 'a') + 2, "x") < len);
	}
}

static void a_value_is_quoted_when_it_needs_it(void **state)
{
	static const struct {
		const char *in, *want;
	} table[] = {
		{"web-0", "web-0"},
		{"", "\"\""},
		{"a b", "\"a b\""},
		{"a=b", "\"a=b\""},
		{"say \"x\"", "\"say \\\"x\\\"\""},
		{"back\\slash", "\"back\\\\slash\""},
		{"two\nlines", "\"two\\x0alines\""},
		{"\x1b\x7f", "\"\\x1b\\x7f\""},
		{"\xc2\x9b", "\"\\xc2\\x9b\""},
	};
	char buf[64];

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		assert_ptr_equal(log_text(buf, sizeof buf, table[i].in), buf);
		assert_string_equal(buf, table[i].want);
	}
}

static void a_quoted_value_that_is_too_long_keeps_its_last_quote(void **state)
{
	char buf[32];

	(void)state;
	for (size_t cap = 8; cap < sizeof buf; cap++) {
		log_text(buf, cap, "\n\"x\\\n\"x\\\n\"x\\\n\"x\\");
		size_t len = strlen(buf), slashes = 0;

		assert_true(len < cap && buf[len - 1] == '"');
		for (size_t i = len - 1; buf[i - 1] == '\\'; i--)
			slashes++;
		assert_int_equal(slashes % 2, 0); /* it is not an escaped one */
	}
}

/* Stderr as one end of a pipe or socket pair; the other end, and the old stderr to go back to. */
struct tap {
	int reader, before;
};

static struct tap tap_stderr(const int ends[2])
{
	struct tap t = {.reader = ends[0], .before = dup(STDERR_FILENO)};

	assert_true(t.before >= 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	(void)close(ends[1]);
	log_set_sink(NULL);
	return t;
}

static void untap(struct tap t)
{
	assert_int_equal(dup2(t.before, STDERR_FILENO), STDERR_FILENO);
	(void)close(t.before);
	if (t.reader >= 0)
		(void)close(t.reader);
	log_set_sink(keep);
}

/* All that is there now, as a string. */
static const char *drain(int fd)
{
	static char buf[PIPE_SIZE];
	size_t len = 0;
	ssize_t nr;

	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while ((nr = read(fd, buf + len, sizeof buf - 1 - len)) > 0)
		len += (size_t)nr;
	buf[len] = '\0';
	return buf;
}

static unsigned count(const char *text, const char *what)
{
	unsigned nr = 0;

	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		nr++;
	return nr;
}

static void says_what_a_stuck_reader_missed(struct tap t)
{
	const uint64_t before = log_dropped();
	unsigned sent = 0;
	char dropped_line[64];

	while (log_dropped() < before + 3) /* would stand still here if a write could block */
		log_line(LOG_INFO, "flood", "n=%u", sent++);
	const char *flood = drain(t.reader);
	const unsigned passed = count(flood, "event=flood n=");
	assert_true(passed > 100);
	assert_int_equal(passed + log_dropped() - before, sent);
	log_line(LOG_INFO, "after", "%s", "");
	log_line(LOG_INFO, "later", "%s", "");
	const char *after = drain(t.reader);
	const uint64_t dropped = log_dropped();
	untap(t);

	snprintf(dropped_line, sizeof dropped_line, "level=warn event=log-dropped lines=%u ", 3);
	assert_int_equal(dropped, before + 3);
	assert_int_equal(count(after, dropped_line), 1);
	assert_true(strstr(after, dropped_line) < strstr(after, "event=after\n"));
	assert_int_equal(count(after, "log-dropped"), 1);
	/* whole lines alone, whatever was torn before */
	assert_int_equal(count(after, "\n<6>"), 2);
	assert_non_null(strstr(after, "\n<6>"));
}

static void lines_to_an_unread_pipe_are_dropped_and_counted(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	says_what_a_stuck_reader_missed(tap_stderr(ends));
}

static void lines_to_an_unread_socket_are_dropped_and_counted(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	says_what_a_stuck_reader_missed(tap_stderr(ends));
}

static void a_closed_reader_does_not_end_the_program(void **state)
{
	const uint64_t before = log_dropped();
	int ends[2];

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN); /* as loop_new() does */
	assert_int_equal(pipe(ends), 0);
	struct tap t = tap_stderr(ends);
	(void)close(t.reader);
	t.reader = -1;
	log_line(LOG_INFO, "x", "n=%d", 1);
	const uint64_t after = log_dropped();
	untap(t);
	assert_int_equal(after, before + 1);
}

static void a_file_keeps_its_flags(void **state)
{
	int ends[2] = {-1, open("/dev/null", O_WRONLY)};

	(void)state;
	struct tap t = tap_stderr(ends);
	log_line(LOG_INFO, "x", "n=%d", 1);
	const int flags = fcntl(STDERR_FILENO, F_GETFL);
	untap(t);
	assert_false(flags & O_NONBLOCK);
}

static void a_partly_written_line_is_ended_by_the_next_one(void **state)
{
	const uint64_t before = log_dropped();
	char path[] = "/tmp/test_log.XXXXXX", room[] = "x\n", text[LINE_SIZE];
	int ends[2] = {-1, mkstemp(path)};
	struct rlimit limit;

	(void)state;
	(void)signal(SIGXFSZ, SIG_IGN);
	log_line(LOG_INFO, "x", "%s", ""); /* reports what earlier cases dropped */
	assert_int_equal(unlink(path), 0);
	int file = dup(ends[1]);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	const struct rlimit tight = {.rlim_cur = sizeof room - 1 + 8, .rlim_max = limit.rlim_max};
	assert_int_equal(write(file, room, sizeof room - 1), sizeof room - 1);

	struct tap t = tap_stderr(ends);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	log_line(LOG_INFO, "half", "%s", "");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	log_line(LOG_INFO, "whole", "%s", "");
	const uint64_t after = log_dropped();
	untap(t);

	ssize_t len = pread(file, text, sizeof text - 1, 0);
	(void)close(file);
	text[len > 0 ? len : 0] = '\0';
	assert_int_equal(after, before + 1);
	assert_int_equal(count(text, "\n"), 4); /* x, the half, what was dropped, the whole */
	assert_int_equal(count(text, "\n<4>"), 1);
	assert_int_equal(count(text, "event=whole\n"), 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_line_has_priority_time_level_event_and_pairs),
		CASE(a_text_line_begins_with_its_time),
		CASE(a_json_line_is_one_object_of_texts),
		CASE(a_json_line_that_is_too_long_is_cut_and_stays_an_object),
		CASE(auto_is_for_the_journal_when_stderr_is_the_one_that_systemd_names),
		CASE(the_last_lines_are_kept_as_many_as_fit),
		CASE(an_event_needs_no_pairs),
		CASE(lines_above_the_level_are_not_written),
		CASE(control_characters_are_escaped),
		CASE(a_line_that_is_too_long_is_cut_and_says_so),
		CASE(a_value_is_quoted_when_it_needs_it),
		CASE(a_quoted_value_that_is_too_long_keeps_its_last_quote),
		CASE(lines_to_an_unread_pipe_are_dropped_and_counted),
		CASE(lines_to_an_unread_socket_are_dropped_and_counted),
		CASE(a_closed_reader_does_not_end_the_program),
		CASE(a_partly_written_line_is_ended_by_the_next_one),
		CASE(a_file_keeps_its_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
