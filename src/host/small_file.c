#include <host/small_file.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* One read(2) may return less than there is: files of the kernel come page by page. */
static ssize_t read_all(int fd, char *buf, size_t cap)
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

int small_file_read(const char *path, char *buf, size_t cap, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -errno : read_all(fd, buf, cap);

	if (fd >= 0)
		(void)close(fd);
	if (len < 0)
		return err_set(e, (int)-len, "%s: %s", path, strerror((int)-len));
	if ((size_t)len == cap || len > INT_MAX)
		return err_set(e, EFBIG, "%s: more than %zu bytes", path, cap - 1);
	buf[len] = '\0';
	return (int)len;
}
