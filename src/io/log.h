#ifndef NUMAFIT_IO_LOG_H
#define NUMAFIT_IO_LOG_H

#include <numafit/log_level.h>
#include <stddef.h>
#include <stdint.h>

/* One line per event on stderr, in one of these forms (time is UTC, RFC 3339 with milliseconds):
 *
 *	text     time=T level=info event=started key=value ...
 *	journal  <6>time=T level=info event=started key=value ...   6: the priority, for journald
 *	json     {"time":"T","level":"info","event":"started","key":"value",...}
 *
 * The descriptor is made non-blocking when it can be (pipes, sockets): a reader that is stuck costs
 * lines, counted and logged with the next one that passes, never a container. */

/* The form of all lines from here on; auto looks at JOURNAL_STREAM now (systemd.exec(5)). Until it
 * is set it is text. In json every value is a text, so that a key has one type in all lines; bytes
 * beyond ASCII stay as log_text() writes them, "\xHH". */
void log_set_format(enum log_format format);
/* Lines above this level are not written. */
void log_set_level(enum log_level level);
/* One line: event is a short word with dashes ("decision", "nri-connected"), then the formatted
 * key=value pairs. log_text() quotes values that need it. Control characters never get out. */
void log_line(enum log_level level, const char *event, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* value as it can stand after "key=": itself, or in double quotes with \" and \xHH escapes, into
 * buf of cap bytes; returns buf. */
const char *log_text(char *buf, size_t cap, const char *value);
/* The last lines that were written or dropped, as many as fit in LOG_KEPT_BYTES, each with its newline
 * and in the form that it had. NUL terminated; the caller frees. */
enum { LOG_KEPT_BYTES = 128 << 10 };
char *log_last_lines(void);
/* How many lines were dropped since the start. */
uint64_t log_dropped(void);
/* Where lines go instead of stderr (tests), each with its newline; NULL: to stderr, whatever that
 * is by now. */
void log_set_sink(void (*sink)(const char *line, size_t len));

#endif
