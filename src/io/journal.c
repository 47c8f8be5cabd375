#include <io/journal.h>

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

struct journal {
	int fd;
	uint64_t size;
	bool published;
	char *path, *new_path;
	char line[PREFIX + JOURNAL_LINE_MAX + 1];
};

static char *beside(const char *path, const char *suffix)
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

/* The text of a line whose checksum is right, or NULL. len is without the newline. */
static char *checked(char *line, size_t len)
{
	unsigned long sum;
	char *end;

	if (len < PREFIX || line[SUM_DIGITS] != ' ')
		return NULL;
	line[SUM_DIGITS] = '\0';
	sum = strtoul(line, &end, HEX);
	bool digits = end == line + SUM_DIGITS && strspn(line, "0123456789abcdef") == SUM_DIGITS;
	line[SUM_DIGITS] = ' ';
	return digits && sum == text_crc32c(line + PREFIX, len - PREFIX) ? line + PREFIX : NULL;
}

static int read_lines(FILE *f, const char *path, int (*line)(void *ctx, char *text, size_t len, struct err *e),
	void *ctx, struct err *e)
{
	auto_free char *buf = NULL;
	size_t cap = 0;
	ssize_t len;
	int nr = 0;

	while ((len = getline(&buf, &cap, f)) > 0) {
		bool whole = buf[len - 1] == '\n';
		char *text = NULL;

		if (whole) {
			buf[--len] = '\0';
			text = checked(buf, (size_t)len);
		}
		if (!text) {
			int next = whole ? fgetc(f) : EOF;

			if (next == EOF && !ferror(f))
				break; /* the write that the last life died in */
			return err_set(e, EBADMSG, "%s: line %d is damaged", path, nr + 1);
		}
		nr++;
		int rc = line(ctx, text, (size_t)len - PREFIX, e);
		if (rc < 0)
			return err_add(e, rc, "%s: line %d", path, nr);
	}
	return ferror(f) ? errno_of(path, e) : nr;
}

int journal_read(const char *path, int (*line)(void *ctx, char *text, size_t len, struct err *e),
	void *ctx, struct err *e)
{
	FILE *f = fopen(path, "re");

	if (!f)
		return errno == ENOENT ? 0 : errno_of(path, e);
	int rc = read_lines(f, path, line, ctx, e);
	(void)fclose(f);
	return rc;
}

struct journal *journal_create(const char *path, struct err *e)
{
	struct journal *j = xcalloc(1, sizeof *j);

	j->path = xstrdup(path);
	j->new_path = beside(path, "new");
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

int journal_append(struct journal *j, const char *text, size_t len, struct err *e)
{
	if (len > JOURNAL_LINE_MAX)
		return err_set(e, EMSGSIZE, "%s: a line of %zu bytes, at most %d fit", j->path, len, JOURNAL_LINE_MAX);
	(void)snprintf(j->line, sizeof j->line, "%08x ", text_crc32c(text, len));
	memcpy(j->line + PREFIX, text, len);
	j->line[PREFIX + len] = '\n';

	size_t bytes = PREFIX + len + 1;
	ssize_t done = write(j->fd, j->line, bytes);
	if (done == (ssize_t)bytes) {
		j->size += bytes;
		return 0;
	}
	int why = done < 0 ? errno : ENOSPC; /* a file takes part of a line only when it is full */
	if (done > 0 && ftruncate(j->fd, (off_t)j->size) < 0)
		why = errno;
	return err_set(e, why, "%s: %s", j->path, strerror(why));
}

uint64_t journal_size(const struct journal *j)
{
	return j->size;
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
	auto_free char *aside = beside(path, suffix);

	return rename(path, aside) < 0 && errno != ENOENT ? errno_of(path, e) : 0;
}
