#include <io/file.h>

#include <io/fault.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <numafit/mem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_CAP = 4096 };

/* One read(2) may return less than there is: files of the kernel come page by page. */
static ssize_t read_up_to(int fd, char *buf, size_t cap)
{
	size_t len = 0;
	ssize_t got = 1;

	while (len < cap && got > 0) {
		got = read(fd, buf + len, cap - len);
		if (got < 0 && errno != EINTR)
			return -errno;
		len += got > 0 ? (size_t)got : 0;
		got = got < 0 ? 1 : got;
	}
	return (ssize_t)len;
}

/* All up to max + 1 bytes into *buf, which grows with them; how many there are, or -errno. */
static ssize_t read_growing(int fd, char **buf, size_t max)
{
	size_t len = 0, cap = 0;
	ssize_t got = 0;

	do {
		cap = cap ? cap * 2 : FIRST_CAP;
		cap = cap < max + 1 ? cap : max + 1;
		*buf = xrealloc(*buf, cap + 1, 1);
		got = read_up_to(fd, *buf + len, cap - len);
		len += got > 0 ? (size_t)got : 0;
	} while (len == cap && len <= max);
	return got < 0 ? got : (ssize_t)len;
}

static int read_whole(
	const char *path, int flags, size_t max, char **text, size_t *len, struct err *e)
{
	auto_free char *buf = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
	ssize_t got = fd < 0 ? -errno : read_growing(fd, &buf, max);

	if (fd >= 0)
		(void)close(fd);
	if (got < 0)
		return err_set(e, (int)-got, "%s: %s", path, strerror((int)-got));
	if ((size_t)got > max)
		return err_set(e, EFBIG, "%s: more than %zu bytes", path, max);
	buf[got] = '\0';
	*text = xrealloc(steal(buf), (size_t)got + 1, 1);
	if (len)
		*len = (size_t)got;
	return 0;
}

int file_read(const char *path, size_t max, char **text, size_t *len, struct err *e)
{
	return read_whole(path, O_NONBLOCK, max, text, len, e);
}

int file_read_waiting(const char *path, size_t max, char **text, size_t *len, struct err *e)
{
	return read_whole(path, 0, max, text, len, e);
}

int file_read_into(const char *path, char *buf, size_t cap, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t len = fd < 0 ? -errno : read_up_to(fd, buf, cap);

	if (fd >= 0)
		(void)close(fd);
	if (len < 0)
		return err_set(e, (int)-len, "%s: %s", path, strerror((int)-len));
	if ((size_t)len == cap || len > INT_MAX)
		return err_set(e, EFBIG, "%s: more than %zu bytes", path, cap - 1);
	buf[len] = '\0';
	return (int)len;
}

int file_set(const char *path, const char *text, struct err *e)
{
	const bool whole = fault_has_root();
	int fd = open(path, (whole ? 0 : O_TRUNC) | O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	ssize_t n = whole ? fault_write_whole(path, text) : write(fd, text, strlen(text));
	int error = n >= 0 ? 0 : whole ? (int)-n : errno;
	(void)close(fd);
	return error ? err_set(e, error, "%s: \"%s\": %s", path, text, strerror(error)) : 0;
}

bool file_is_gone(int rc)
{
	return rc == -ENOENT || rc == -ENODEV;
}

static int check_writers(const char *path, const struct stat *st, struct err *e)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(e, EPERM, "%s belongs to user %u", path, (unsigned)st->st_uid);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, EPERM, "%s can be written by %s (mode %04o)", path,
			st->st_mode & S_IWOTH ? "every user" : "its group",
			(unsigned)(st->st_mode & 07777));
	return 0;
}

int file_check_own(const char *path, struct err *e)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	if (S_ISLNK(st.st_mode))
		return err_set(e, EPERM, "%s is a symbolic link", path);
	return check_writers(path, &st, e);
}

int file_check_parents(const char *path, struct err *e)
{
	auto_free char *at = realpath(path, NULL);
	struct stat st;
	int rc = 0;

	if (!at)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	for (size_t len = strlen(at); !rc && len > 1;) {
		while (len && at[len - 1] != '/')
			len--;
		len -= len > 1; /* the slash, but not that of "/" */
		at[len] = '\0';
		if (stat(at, &st) < 0)
			return err_set(e, errno, "%s: %s", at, strerror(errno));
		if (st.st_mode & S_ISVTX)
			st.st_mode &= ~(mode_t)(S_IWGRP | S_IWOTH);
		rc = check_writers(at, &st, e);
	}
	return rc;
}
