#include <io/socket_path.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int socket_path_address(const char *path, struct sockaddr_un *address, struct err *e)
{
	size_t len = strlen(path);

	if (len >= sizeof address->sun_path)
		return err_set(e, ENAMETOOLONG, "socket %s: the path may have %zu characters", path,
			sizeof address->sun_path - 1);
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path, path, len);
	return 0;
}

static bool somebody_listens(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return false;
	int rc = connect(fd, (const struct sockaddr *)address, sizeof *address);
	bool there = rc == 0 || errno == EAGAIN || errno == EINPROGRESS;
	(void)close(fd);
	return there;
}

int socket_path_clear(const char *path, struct err *e)
{
	struct sockaddr_un address;
	struct stat st;
	int rc = socket_path_address(path, &address, e);

	if (rc < 0)
		return rc;
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0
				       : err_set(e, errno, "socket %s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, EEXIST, "socket %s: something else is there", path);
	if (somebody_listens(&address))
		return err_set(e, EADDRINUSE, "socket %s: somebody listens there already", path);
	return unlink(path) < 0 ? err_set(e, errno, "socket %s: %s", path, strerror(errno)) : 0;
}
