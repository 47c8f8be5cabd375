#include <io/journal.h>

#include <io/fault.h>
#include <numafit/mem.h>
#include <numafit/text.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SUM_DIGITS = 8, PREFIX = SUM_DIGITS + 1, HEX = 16, FILE_MODE = 0600 };
enum { LINE_BYTES_MAX = PREFIX + JOURNAL_LINE_MAX + 1 };
/* Behind the checksum: it is the whole text or its last piece; there is more to come. */
enum { LAST = ' ', MORE = '+' };

struct journal {
	int fd;
	uint64_t size;
	bool published;
	bool torn; /* half a line is left at the end, which could not be cut off */
	char *path, *new_path;
	char line[LINE_BYTES_MAX];
};

static char *path_with_suffix(const char *path, const char *suffix)
{
	size_t size = strlen(path) + strlen(suffix) + 2;
	char *name = xcalloc(size, 1);

	(void)snprintf(name, size, "%s.%s", path, suffix);
	return name;
}

static int errno_of(const char *path, struct err *e)
{
	return err_set(e, errno, "%s: %s", path, strerror(errno));
}

/* What the checksum of a piece is taken of; that of a last one is as if there were no others. */
static uint32_t checksum_of(char kind, const char *behind_sum, size_t len)
{
	return kind == MORE ? text_crc32c(behind_sum, 1 + len) : text_crc32c(behind_sum + 1, len);
}

/* The text of a line whose checksum is right, or NULL. len is without the newline. */
static char *checked_text(char *line, size_t len)
{
	unsigned long sum;
	char *end, kind;

	if (len < PREFIX || (line[SUM_DIGITS] != LAST && line[SUM_DIGITS] != MORE))
		return NULL;
	kind = line[SUM_DIGITS];
	line[SUM_DIGITS] = '\0';
	sum = strtoul(line, &end, HEX);
	bool digits = end == line + SUM_DIGITS && strspn(line, "0123456789abcdef") == SUM_DIGITS;
	line[SUM_DIGITS] = kind;
	return digits && sum == checksum_of(kind, line + SUM_DIGITS, len - PREFIX) ? line + PREFIX
										   : NULL;
}

/* The next line with its newline, as much of it as can be one of ours; 0 at the end. */
static size_t next_line(FILE *f, char line[LINE_BYTES_MAX])
{
	size_t len = 0;
	int c;

	while (len < LINE_BYTES_MAX && (c = getc_unlocked(f)) != EOF) {
		line[len++] = (char)c;
		if (c == '\n')
			break;
	}
	return len;
}

/* Pieces of a text that no line has committed yet. */
struct pieces {
	char *text; /* NULL: there have been none */
	size_t len;
};

/* The whole text, with the pieces before it: as it is, or in p->text. NULL: that is too long. */
static char *put_together(struct pieces *p, char *text, size_t *len)
{
	if (!p->len && text[-1] == LAST)
		return text;
	if (!p->text)
		p->text = xcalloc(JOURNAL_TEXT_MAX + 1, 1);
	if (*len > JOURNAL_TEXT_MAX - p->len)
		return NULL;
	memcpy(p->text + p->len, text, *len);
	*len += p->len;
	p->text[*len] = '\0';
	p->len = text[-1] == MORE ? *len : 0;
	return p->text;
}

static int journal_read_lines(FILE *f, const char *path,
	int (*line)(void *ctx, char *text, size_t len, struct err *e), void *ctx,
	struct pieces *before, struct err *e)
{
	auto_free char *buf = xcalloc(LINE_BYTES_MAX, 1);
	size_t len;
	int nr_lines = 0, nr = 0;

	while ((len = next_line(f, buf)) > 0) {
		char *text = NULL, *whole = NULL;

		if (buf[len - 1] == '\n') {
			buf[--len] = '\0';
			text = checked_text(buf, len);
		}
		if (!text && getc_unlocked(f) == EOF)
			break; /* the write that the last life died in */
		nr_lines++;
		len -= PREFIX;
		if (text)
			whole = put_together(before, text, &len);
		if (!whole)
			return err_set(e, EBADMSG, "%s: line %d is damaged", path, nr_lines);
		if (text[-1] == MORE)
			continue;
		nr++;
		int rc = line(ctx, whole, len, e);
		if (rc < 0)
			return err_add(e, rc, "%s: line %d", path, nr_lines);
	}
	return ferror(f) ? errno_of(path, e) : nr;
}

/* 1 with *f; 0: there is none; -errno. What is no file cannot be waited for: a pipe has no end. */
static int open_to_read(const char *path, FILE **f, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : errno_of(path, e);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		*f = fdopen(fd, "r");
		if (*f)
			return 1;
	}
	(void)close(fd);
	return err_set(e, EINVAL, "%s: not a file that can be read", path);
}

int journal_read_stream(FILE *f, const char *name,
	int (*line)(void *ctx, char *text, size_t len, struct err *e), void *ctx, struct err *e)
{
	struct pieces before = {0};
	int rc = journal_read_lines(f, name, line, ctx, &before, e);

	free(before.text);
	return rc;
}

int journal_read(const char *path, int (*line)(void *ctx, char *text, size_t len, struct err *e),
	void *ctx, struct err *e)
{
	FILE *f = NULL;
	int rc = open_to_read(path, &f, e);

	if (rc <= 0)
		return rc;
	rc = journal_read_stream(f, path, line, ctx, e);
	(void)fclose(f);
	return rc;
}

struct journal *journal_create(const char *path, struct err *e)
{
	struct journal *j = xcalloc(1, sizeof *j);

	j->path = xstrdup(path);
	j->new_path = path_with_suffix(path, "new");
	j->fd = open(j->new_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, FILE_MODE);
	if (j->fd >= 0)
		return j;
	(void)errno_of(j->new_path, e);
	journal_close(j);
	return NULL;
}

int journal_publish(struct journal *j, struct err *e)
{
	if (rename(j->new_path, j->path) < 0)
		return errno_of(j->path, e);
	j->published = true;
	return 0;
}

int journal_keep(const char *path, const char *suffix, struct err *e)
{
	auto_free char *kept = path_with_suffix(path, suffix);

	if (access(path, F_OK) < 0)
		return errno == ENOENT ? 0 : errno_of(path, e);
	if (unlink(kept) < 0 && errno != ENOENT)
		return errno_of(kept, e);
	return link(path, kept) < 0 ? errno_of(kept, e) : 0;
}

static int journal_cut_back(struct journal *j)
{
	j->torn = ftruncate(j->fd, (off_t)j->size) < 0;
	return j->torn ? -errno : 0;
}

/* The line of a piece into line of LINE_BYTES_MAX bytes; its length. */
static size_t make_line(char *line, char kind, const char *text, size_t len)
{
	char *behind_sum = line + SUM_DIGITS;

	*behind_sum = kind;
	memcpy(behind_sum + 1, text, len);
	(void)snprintf(line, SUM_DIGITS + 1, "%08x", checksum_of(kind, behind_sum, len));
	*behind_sum = kind; /* where snprintf() has put its end */
	behind_sum[1 + len] = '\n';
	return PREFIX + len + 1;
}

static int check_text(const char *path, const char *text, size_t len, struct err *e)
{
	if (len > JOURNAL_TEXT_MAX)
		return err_set(e, EMSGSIZE, "%s: a text of %zu bytes, at most %d fit", path, len,
			JOURNAL_TEXT_MAX);
	return memchr(text, '\n', len) ? err_set(e, EINVAL, "%s: a line with a newline in it", path)
				       : 0;
}

int journal_write_text(FILE *to, const char *text, size_t len, struct err *e)
{
	auto_free char *line = xcalloc(1, LINE_BYTES_MAX);
	int rc = check_text("journal", text, len, e);
	bool last = false;

	for (size_t at = 0; !rc && !last; at += JOURNAL_LINE_MAX) {
		last = len - at <= JOURNAL_LINE_MAX;
		size_t bytes = make_line(
			line, last ? LAST : MORE, text + at, last ? len - at : JOURNAL_LINE_MAX);

		if (fwrite(line, 1, bytes, to) != bytes)
			rc = err_set(e, EIO, "journal: it cannot be written");
	}
	return rc;
}

/* One line of a text; *written grows by what the file has taken. */
static int journal_write_line(
	struct journal *j, char kind, const char *text, size_t len, uint64_t *written)
{
	len = make_line(j->line, kind, text, len);
	int rc = -fault_of_write();
	if (rc)
		return rc;
	ssize_t done = write(j->fd, j->line, fault_half(FAULT_HALF_LINE, len));
	fault_half_done();
	*written += done > 0 ? (uint64_t)done : 0;
	if (done == (ssize_t)len)
		return 0;
	return done < 0 ? -errno : -ENOSPC; /* a file takes part of a line only when it is full */
}

int journal_append(struct journal *j, const char *text, size_t len, struct err *e)
{
	const size_t most = fault_line_bytes(JOURNAL_LINE_MAX);
	uint64_t written = 0;

	int rc = check_text(j->path, text, len, e);
	if (rc)
		return rc;
	rc = j->torn ? journal_cut_back(j) : 0;
	bool last = false;
	for (size_t at = 0; !rc && !last; at += most) {
		if (at)
			fault_point(FAULT_BETWEEN_LINES);
		last = len - at <= most;
		rc = journal_write_line(
			j, last ? LAST : MORE, text + at, last ? len - at : most, &written);
	}
	if (rc && written)
		(void)journal_cut_back(j);
	if (rc < 0)
		return err_set(e, -rc, "%s: %s", j->path, strerror(-rc));
	j->size += written;
	return 0;
}

uint64_t journal_size(const struct journal *j)
{
	return j ? j->size : 0;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	if (j->fd >= 0) {
		(void)close(j->fd);
		if (!j->published)
			(void)unlink(j->new_path);
	}
	free(j->path);
	free(j->new_path);
	free(j);
}

int journal_set_aside(const char *path, const char *suffix, struct err *e)
{
	auto_free char *aside = path_with_suffix(path, suffix);

	if (rename(path, aside) == 0 || errno == ENOENT)
		return 0;
	/* a directory there is in the way of a file and, unless it is empty, of a directory */
	if (unlink(aside) < 0 && errno == EISDIR)
		(void)journal_set_aside(aside, suffix, NULL);
	return rename(path, aside) < 0 ? errno_of(path, e) : 0;
}
