#include <io/acceptor.h>

#include <io/loop_uv.h>
#include <io/socket_path.h>
#include <numafit/mem.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG = 256, MODE = 0600, RETRY_MS = 100 };

struct acceptor {
	uv_poll_t uv;
	int fd;
	struct stat file;
	struct sockaddr_un address;
	struct acceptor_events events;
	struct loop_timer *retry; /* after accept4() found no descriptor left */
};

static bool peer_may_enter(const struct acceptor *a, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	if (peer.uid == 0 || peer.uid == geteuid())
		return true;
	if (a->events.refused)
		a->events.refused(a->events.ctx, peer.pid, peer.uid);
	return false;
}

static void acceptor_readable(uv_poll_t *uv, int status, int events)
{
	struct acceptor *a = (struct acceptor *)uv;
	int fd = accept4(a->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)status;
	(void)events;
	if (fd >= 0 && peer_may_enter(a, fd)) {
		a->events.accepted(a->events.ctx, fd);
	} else if (fd >= 0) {
		(void)close(fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		/* it stays readable: without a pause the loop would do nothing else */
		(void)uv_poll_stop(uv);
		loop_timer_set(a->retry, RETRY_MS);
	}
}

static void acceptor_start(void *ctx)
{
	struct acceptor *a = ctx;

	(void)uv_poll_start(&a->uv, UV_READABLE, acceptor_readable);
}

/* Nobody can connect between bind() and listen(), so the mode is never too wide for anybody. */
static int listen_at(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)address, sizeof *address) == 0) {
		if (chmod(address->sun_path, MODE) == 0 && listen(fd, BACKLOG) == 0)
			return fd;
		int error = errno;
		(void)unlink(address->sun_path);
		errno = error;
	}
	int rc = -errno;
	(void)close(fd);
	return rc;
}

struct acceptor *acceptor_new(
	struct loop *l, const char *path, const struct acceptor_events *events, struct err *e)
{
	struct sockaddr_un address;

	if (socket_path_clear(path, e) < 0 || socket_path_address(path, &address, e) < 0)
		return NULL;
	int fd = listen_at(&address);
	if (fd < 0) {
		(void)err_set(e, -fd, "socket %s: %s", path,
			fd == -ENOENT ? "the directory is missing" : strerror(-fd));
		return NULL;
	}
	struct acceptor *a = xcalloc(1, sizeof *a);
	a->fd = fd;
	a->address = address;
	a->events = *events;
	a->retry = loop_timer_new(l, acceptor_start, a);
	if (uv_poll_init(loop_uv(l), &a->uv, fd))
		abort(); /* a listening socket can be polled */
	/* the kubelet may have wiped the directory already: then no file is ours */
	(void)lstat(path, &a->file);
	acceptor_start(a);
	return a;
}

/* Device and inode identify the file as long as the socket is open: that keeps its inode from being
 * used again. */
bool acceptor_is_there(const struct acceptor *a)
{
	struct stat st;

	return lstat(a->address.sun_path, &st) == 0 && st.st_dev == a->file.st_dev &&
	       st.st_ino == a->file.st_ino;
}

void acceptor_close(struct acceptor *a)
{
	if (!a)
		return;
	if (acceptor_is_there(a))
		(void)unlink(a->address.sun_path);
	loop_timer_close(a->retry);
	/* takes it out of epoll: only then may it be closed */
	uv_close((uv_handle_t *)&a->uv, loop_free_handle);
	(void)close(a->fd);
}
