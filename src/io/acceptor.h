#ifndef NUMAFIT_IO_ACCEPTOR_H
#define NUMAFIT_IO_ACCEPTOR_H

#include <io/loop.h>
#include <sys/types.h>

/* A listening unix socket whose connections are served by somebody else than the loop: it gives
 * away descriptors. Mode 0600, and the peer's user is checked besides: root and our own user get
 * in, others are closed at once. */
struct acceptor;
struct acceptor_events {
	void *ctx;
	/* mandatory: a connection, non-blocking and close-on-exec; fd is the callee's */
	void (*accepted)(void *ctx, int fd);
	/* optional: somebody was turned away */
	void (*refused)(void *ctx, pid_t pid, uid_t uid);
};

/* Listen at path; a socket file that nobody listens on is replaced. NULL with text and code in *e:
 * ENAMETOOLONG (107 characters are the most), EADDRINUSE (somebody listens there), EEXIST (no
 * socket), ENOENT (no directory), EACCES. */
struct acceptor *acceptor_new(
	struct loop *l, const char *path, const struct acceptor_events *events, struct err *e);
/* Whether the file at our path is still this socket: others may have removed or replaced it. */
bool acceptor_is_there(const struct acceptor *a);
/* Stop listening, and remove the file if it is still ours; before loop_free(). NULL is fine. */
void acceptor_close(struct acceptor *a);

#endif
