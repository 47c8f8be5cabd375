#include <io/log.h>

#include <numafit/number.h>
#include <numafit/text.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4096 };

/* A level's word, and its syslog priority, which journald reads from "<N>". */
static const struct {
	const char *word;
	int priority;
} levels[] = {
	[LOG_ERROR] = {"error", 3},
	[LOG_WARN] = {"warn", 4},
	[LOG_INFO] = {"info", 6},
	[LOG_DEBUG] = {"debug", 7},
};

static enum log_level max_level = LOG_INFO;
static uint64_t dropped, dropped_logged;
static void (*line_sink)(const char *line, size_t len);

void log_set_level(enum log_level level)
{
	max_level = level;
}

uint64_t log_dropped(void)
{
	return dropped;
}

void log_set_sink(void (*sink)(const char *line, size_t len))
{
	line_sink = sink;
}

/* Only a pipe or socket can be full; the flag on a terminal or file would be the shell's, too.
 * Others that share the pipe may have put the flag back, so look every time. */
static void unblock_stderr(void)
{
	int flags = fcntl(STDERR_FILENO, F_GETFL);
	struct stat st;

	if (flags < 0 || flags & O_NONBLOCK || fstat(STDERR_FILENO, &st) < 0)
		return;
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
		(void)fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
}

/* A line that does not pass whole is lost; one that passed in part is closed by the next one. */
static void log_send_line(const struct text *t)
{
	static bool torn;

	if (line_sink) {
		line_sink(t->at, t->len);
		return;
	}
	unblock_stderr();
	if (torn && write(STDERR_FILENO, "\n", 1) == 1)
		torn = false;
	ssize_t done = torn ? -1 : write(STDERR_FILENO, t->at, t->len);
	if (done == (ssize_t)t->len)
		return;
	dropped++;
	torn = torn || done > 0;
}

static void log_begin_line(struct text *t, enum log_level level, const char *event)
{
	struct timespec ts;
	struct tm tm;
	char when[32];

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	(void)gmtime_r(&ts.tv_sec, &tm);
	(void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
	text_add(t, "<%d>%s.%03ldZ level=%s event=%s", levels[level].priority, when,
		ts.tv_nsec / NS_PER_MS, levels[level].word, event);
}

/* Plain ASCII alone: what is more may steer a terminal, C1 controls in UTF-8 included. */
static bool is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

static void log_end_line(struct text *t)
{
	static const char cut[] = " cut=yes";

	for (size_t i = 0; i < t->len; i++)
		if (!is_printable(t->at[i]))
			t->at[i] = '?';
	if (t->cut && t->len >= sizeof cut)
		memcpy(t->at + t->len - (sizeof cut - 1), cut, sizeof cut - 1);
	/* the writer's bound leaves room for the newline */
	t->at[t->len++] = '\n';
}

static void log_dropped_lines(void)
{
	char line[LINE_MAX_BYTES];
	struct text t;
	uint64_t before = dropped;

	if (dropped == dropped_logged)
		return;
	text_init(&t, line, sizeof line - 1);
	log_begin_line(&t, LOG_WARN, "log-dropped");
	text_add(&t, " lines=%llu action=\"the reader of the log is too slow\"",
		(unsigned long long)(dropped - dropped_logged));
	log_end_line(&t);
	log_send_line(&t);
	if (dropped == before)
		dropped_logged = dropped;
	else
		dropped = before; /* this very line was lost; it is not one of the counted */
}

void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES], rest[LINE_MAX_BYTES];
	struct text t;
	va_list ap;

	if (level > max_level)
		return;
	log_dropped_lines();
	text_init(&t, line, sizeof line - 1);
	log_begin_line(&t, level, event);
	va_start(ap, fmt);
	(void)vsnprintf(rest, sizeof rest, fmt, ap);
	va_end(ap);
	text_add(&t, "%s%s", *rest ? " " : "", rest);
	log_end_line(&t);
	log_send_line(&t);
}

const char *log_text(char *buf, size_t cap, const char *value)
{
	static const char longest[] = "\\xHH\"";
	bool is_plain = *value;
	struct text t;

	text_init(&t, buf, cap);
	for (const char *c = value; *c; c++)
		is_plain = is_plain && is_printable(*c) && !strchr(" \"\\=", *c);
	if (is_plain) {
		text_add(&t, "%s", value);
		return buf;
	}
	text_add(&t, "\"");
	/* what does not fit is left out, the closing quote never */
	for (const char *c = value; *c && t.len + sizeof longest <= cap; c++) {
		if (!is_printable(*c))
			text_add(&t, "\\x%02x", (unsigned char)*c);
		else
			text_add(&t, strchr("\"\\", *c) ? "\\%c" : "%c", *c);
	}
	text_add(&t, "\"");
	return buf;
}
