/* stdout and stderr as streams that escape what a terminal would obey. */
#include <command/safe_output.h>

#include <errno.h>
#include <numafit/text.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	CHARACTER_MAX = 4,
	ESCAPED_MAX = 13, /* "\\uXXXX\\uXXXX" and a NUL */
	PIECE = 4096
};

/* One stream. */
struct outlet {
	int fd;
	char tail[CHARACTER_MAX]; /* the beginning of a character of which the rest is not here yet
				   */
	size_t nr_tail;
	int error; /* errno of the first write that failed; 0: none */
};

static FILE *raw_stdout;

static bool write_all(struct outlet *o, const char *at, size_t len)
{
	while (len) {
		ssize_t nr = write(o->fd, at, len);

		if (nr < 0 && errno == EAGAIN) { /* the log may have made the descriptor so */
			(void)poll(&(struct pollfd){o->fd, POLLOUT, 0}, 1, -1);
		} else if (nr < 0 && errno != EINTR) {
			o->error = o->error ? o->error : errno;
			return false;
		}
		at += nr > 0 ? nr : 0;
		len -= nr > 0 ? (size_t)nr : 0;
	}
	return true;
}

static void put_escaped(struct text *t, uint32_t code, unsigned char byte)
{
	enum { PLANE = 0x10000, HIGH = 0xd800, LOW = 0xdc00, HALF_BITS = 10, HALF_MASK = 0x3ff };

	if (code == TEXT_NO_CHARACTER)
		text_add(t, "\\x%02x", byte);
	else if (code < PLANE)
		text_add(t, "\\u%04x", code);
	else
		text_add(t, "\\u%04x\\u%04x", HIGH + ((code - PLANE) >> HALF_BITS),
			LOW + ((code - PLANE) & HALF_MASK));
}

/* True if more bytes could make the len bytes at s, with which no character begins, one. */
static bool may_begin(const char *s, size_t len)
{
	static const char *const rest[] = {
		"\x80", "\x80\x80", "\xa0\x80", "\x90\x80", "\x80\x80\x80", "\x90\x80\x80"};
	uint32_t code;

	for (size_t i = 0; i < sizeof rest / sizeof *rest && len < CHARACTER_MAX; i++) {
		size_t more = strlen(rest[i]);
		char whole[2 * CHARACTER_MAX];

		memcpy(whole, s, len);
		memcpy(whole + len, rest[i], more);
		if (text_character(whole, len + more, &code) == len + more)
			return true;
	}
	return false;
}

/* Write the len bytes at s. Return how many of them were used: those at the end that may begin a
 * character are not, unless it is the last call. -1: they cannot be written. */
static ssize_t write_escaped(struct outlet *o, const char *s, size_t len, bool last)
{
	char piece[PIECE];
	struct text t;
	size_t at = 0, nr;
	uint32_t code;

	text_init(&t, piece, sizeof piece);
	for (; at < len; at += nr) {
		nr = text_character(s + at, len - at, &code);
		if (code == TEXT_NO_CHARACTER && !last && may_begin(s + at, len - at))
			break;
		if (t.len + ESCAPED_MAX > sizeof piece) {
			if (!write_all(o, piece, t.len))
				return -1;
			text_init(&t, piece, sizeof piece);
		}
		if (text_is_shown(code) || code == '\n' || code == '\t')
			text_put(&t, s + at, nr);
		else
			put_escaped(&t, code, (unsigned char)s[at]);
	}
	return write_all(o, piece, t.len) ? (ssize_t)at : -1;
}

static ssize_t outlet_write(void *cookie, const char *bytes, size_t len)
{
	struct outlet *o = cookie;
	size_t taken = 0;

	/* the character that the last call has begun, byte by byte */
	while (o->nr_tail && taken < len) {
		o->tail[o->nr_tail++] = bytes[taken++];
		ssize_t used = write_escaped(o, o->tail, o->nr_tail, false);
		if (used < 0)
			return 0;
		o->nr_tail -= (size_t)used;
		memmove(o->tail, o->tail + used, o->nr_tail);
	}
	ssize_t used = write_escaped(o, bytes + taken, len - taken, false);
	if (used < 0)
		return 0;
	taken += (size_t)used;
	memcpy(o->tail + o->nr_tail, bytes + taken, len - taken);
	o->nr_tail += len - taken;
	return (ssize_t)len;
}

static struct outlet outlets[] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};

static FILE *outlet_open(struct outlet *o, int mode)
{
	FILE *f = fopencookie(o, "w", (cookie_io_functions_t){.write = outlet_write});

	if (f)
		(void)setvbuf(f, NULL, mode, BUFSIZ);
	return f;
}

void safe_output_begin(void)
{
	if (raw_stdout)
		return;
	FILE *out = outlet_open(&outlets[0], isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
	FILE *errors = outlet_open(&outlets[1], _IOLBF);

	if (!out || !errors)
		abort(); /* no memory is left, as in mem.h */
	raw_stdout = stdout;
	stdout = out;
	stderr = errors;
}

int safe_output_end(void)
{
	(void)fflush(stdout);
	(void)fflush(stderr);
	for (size_t i = 0; i < sizeof outlets / sizeof *outlets; i++) {
		struct outlet *o = &outlets[i];

		(void)write_escaped(o, o->tail, o->nr_tail, true);
		o->nr_tail = 0;
	}
	return -outlets[0].error; /* errno may be another call's by now */
}

FILE *safe_output_raw(void)
{
	return raw_stdout ? raw_stdout : stdout;
}
