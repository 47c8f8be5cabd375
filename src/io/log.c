#include <io/log.h>

#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define JSON_CUT ",\"cut\":\"yes\""
/* JSON_END_BYTES: what ends a line of JSON that was cut, its last value's quote included. */
enum { LINE_MAX_BYTES = 4096, TIME_TEXT_MAX = 32, JSON_END_BYTES = sizeof "\"" JSON_CUT "}" };

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

/* What lines are written to: only what has a reader can be full. */
enum stderr_kind { STDERR_UNKNOWN, STDERR_TAKES_ALL, STDERR_HAS_READER };

static enum log_level max_level = LOG_INFO;
static enum log_format line_format = LOG_FORMAT_TEXT; /* never auto */
static uint64_t dropped, dropped_logged;
static void (*line_sink)(const char *line, size_t len);
static enum stderr_kind stderr_kind;
/* A ring: the next byte goes to kept[kept_bytes % LOG_KEPT_BYTES]. */
static char kept[LOG_KEPT_BYTES];
static uint64_t kept_bytes;

void log_set_level(enum log_level level)
{
	max_level = level;
}

/* Whether stderr is the stream that systemd has opened for journald: "DEVICE:INODE" of it. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[2 * TEXT_SIZE_MAX];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	(void)snprintf(own, sizeof own, "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	return text_equal(stream, own);
}

void log_set_format(enum log_format format)
{
	line_format = format != LOG_FORMAT_AUTO ? format
		      : stderr_is_journal()     ? LOG_FORMAT_JOURNAL
						: LOG_FORMAT_TEXT;
}

uint64_t log_dropped(void)
{
	return dropped;
}

void log_set_sink(void (*sink)(const char *line, size_t len))
{
	line_sink = sink;
	stderr_kind = STDERR_UNKNOWN;
}

static enum stderr_kind look_at_stderr(void)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st) < 0)
		return STDERR_UNKNOWN;
	return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) ? STDERR_HAS_READER : STDERR_TAKES_ALL;
}

/* The flag on a terminal or file would be the shell's, too. Others that share a pipe may have put
 * the flag back, so look every time. */
static void unblock_stderr(void)
{
	if (stderr_kind == STDERR_UNKNOWN)
		stderr_kind = look_at_stderr();
	if (stderr_kind != STDERR_HAS_READER)
		return;
	int flags = fcntl(STDERR_FILENO, F_GETFL);
	if (flags >= 0 && !(flags & O_NONBLOCK))
		(void)fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
}

static void keep_line(const struct text *t)
{
	size_t at = kept_bytes % sizeof kept, first = sizeof kept - at;

	first = first < t->len ? first : t->len;
	memcpy(kept + at, t->at, first);
	memcpy(kept, t->at + first, t->len - first);
	kept_bytes += t->len;
}

char *log_last_lines(void)
{
	size_t at = kept_bytes % sizeof kept, len = kept_bytes < sizeof kept ? at : sizeof kept;
	char *lines = xcalloc(1, len + 1), *begin;

	if (len < sizeof kept) {
		memcpy(lines, kept, len);
		return lines;
	}
	memcpy(lines, kept + at, sizeof kept - at);
	memcpy(lines + sizeof kept - at, kept, at);
	begin = strchr(lines, '\n'); /* the first line may have lost its beginning */
	memmove(lines, begin + 1, strlen(begin + 1) + 1);
	return lines;
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

/* Plain ASCII alone: what is more may steer a terminal, C1 controls in UTF-8 included. */
static bool is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

static const char *log_time(char buf[TIME_TEXT_MAX])
{
	char seconds[TIME_TEXT_MAX];
	struct timespec ts;
	struct text t;
	struct tm tm;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	(void)gmtime_r(&ts.tv_sec, &tm);
	(void)strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &tm);
	text_init(&t, buf, TIME_TEXT_MAX);
	text_add(&t, "%s.%03ldZ", seconds, ts.tv_nsec / NS_PER_MS);
	return buf;
}

/* Text and journal: pairs as they are. */
static void log_write_pairs(
	struct text *t, enum log_level level, const char *event, const char *pairs)
{
	static const char cut[] = " cut=yes";
	char when[TIME_TEXT_MAX];

	if (line_format == LOG_FORMAT_JOURNAL)
		text_add(t, "<%d>", levels[level].priority);
	text_add(t, "time=%s level=%s event=%s%s%s", log_time(when), levels[level].word, event,
		*pairs ? " " : "", pairs);
	for (size_t i = 0; i < t->len; i++)
		if (!is_printable(t->at[i]))
			t->at[i] = '?';
	if (t->cut && t->len >= sizeof cut)
		memcpy(t->at + t->len - (sizeof cut - 1), cut, sizeof cut - 1);
}

/* One character of a value as JSON; s is behind it then. Quoted ones have log_text()'s escapes. */
static void log_write_character(struct text *t, const char **s, bool quoted)
{
	enum { HEX_DIGITS = 2, HEX = 16, ASCII_END = 0x80 };
	char hex[HEX_DIGITS + 1] = "";
	const char *c = *s;

	*s = c + 1;
	if (quoted && c[0] == '\\' && c[1] == 'x') {
		(void)strncat(hex, c + 2, HEX_DIGITS);
		unsigned long byte = strtoul(hex, NULL, HEX);

		*s = c + 2 + strlen(hex);
		text_add(t, byte < ASCII_END ? "\\u00%s" : "\\\\x%s", hex);
		return;
	}
	if (quoted && c[0] == '\\' && c[1])
		*s = ++c + 1;
	if (!is_printable(*c))
		text_add(t, "?");
	else
		text_add(t, strchr("\"\\", *c) ? "\\%c" : "%c", *c);
}

/* The value at *s as a JSON text, as much of it as fits. */
static void log_write_value(struct text *t, const char **s)
{
	enum { LONGEST = sizeof "\\u0000" - 1 };
	const char *at = *s;
	bool quoted = *at == '"', fits = true;
	const char *ends = quoted ? "\"" : " ";

	at += quoted;
	text_add(t, "\"");
	while (*at && *at != *ends) {
		fits = fits && t->len + LONGEST + JSON_END_BYTES < t->cap;
		if (fits)
			log_write_character(t, &at, quoted);
		else
			at += at[0] == '\\' && at[1] ? 2 : 1;
	}
	text_add(t, "\"");
	t->cut = t->cut || !fits;
	*s = at + (quoted && *at);
}

/* "key=value key="quoted value"" as members; a word without = is a text. */
static void log_write_members(struct text *t, const char *pairs)
{
	static const char *const taken[] = {"time", "level", "event", "cut"};

	for (const char *s = pairs; *(s += strspn(s, " "));) {
		size_t len = strcspn(s, "= \"");
		bool has_key = len && s[len] == '=', clash = false;
		const char *key = has_key ? s : "text";

		len = has_key ? len : strlen(key);
		for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
			clash = clash || (strlen(taken[i]) == len && !memcmp(taken[i], key, len));
		if (t->len + len + sizeof ",\"_\":\"\"" + JSON_END_BYTES > t->cap) {
			t->cut = true;
			return;
		}
		text_add(t, ",\"%.*s%s\":", (int)len, key, clash ? "_" : "");
		s += has_key ? len + 1 : 0;
		log_write_value(t, &s);
	}
}

static void log_write_json(
	struct text *t, enum log_level level, const char *event, const char *pairs)
{
	char when[TIME_TEXT_MAX];

	text_add(t, "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"%s\"", log_time(when),
		levels[level].word, event);
	log_write_members(t, pairs);
	text_add(t, t->cut ? JSON_CUT "}" : "}");
}

static void log_write_line(enum log_level level, const char *event, const char *pairs, bool cut)
{
	char line[LINE_MAX_BYTES];
	struct text t;

	text_init(&t, line, sizeof line - 1);
	t.cut = cut;
	if (line_format == LOG_FORMAT_JSON)
		log_write_json(&t, level, event, pairs);
	else
		log_write_pairs(&t, level, event, pairs);
	/* the writer's bound leaves room for the newline */
	t.at[t.len++] = '\n';
	keep_line(&t);
	log_send_line(&t);
}

static void log_dropped_lines(void)
{
	char pairs[LINE_MAX_BYTES];
	uint64_t before = dropped;

	if (dropped == dropped_logged)
		return;
	(void)snprintf(pairs, sizeof pairs,
		"lines=%llu action=\"the reader of the log is too slow\"",
		(unsigned long long)(dropped - dropped_logged));
	log_write_line(LOG_WARN, "log-dropped", pairs, false);
	if (dropped == before)
		dropped_logged = dropped;
	else
		dropped = before; /* this very line was lost; it is not one of the counted */
}

void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
	char pairs[LINE_MAX_BYTES];
	va_list ap;

	if (level > max_level)
		return;
	log_dropped_lines();
	va_start(ap, fmt);
	int len = vsnprintf(pairs, sizeof pairs, fmt, ap);
	va_end(ap);
	log_write_line(level, event, pairs, len >= (int)sizeof pairs);
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
		text_put(&t, value, strlen(value));
		return buf;
	}
	text_put(&t, "\"", 1);
	/* what does not fit is left out, the closing quote never */
	for (const char *c = value; *c && t.len + sizeof longest <= cap; c++) {
		if (!is_printable(*c))
			text_add(&t, "\\x%02x", (unsigned char)*c);
		else
			text_add(&t, strchr("\"\\", *c) ? "\\%c" : "%c", *c);
	}
	text_put(&t, "\"", 1);
	return buf;
}
