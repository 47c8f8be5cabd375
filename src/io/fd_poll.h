#ifndef NUMAFIT_IO_FD_POLL_H
#define NUMAFIT_IO_FD_POLL_H

#include <io/loop.h>

/* A descriptor that the loop watches; it stays its owner's. */
struct fd_poll;

enum fd_event { FD_READABLE, FD_DISCONNECT };

/* Call ready() whenever it is so, in a turn of its own. NULL: the system watches too much already.
 */
struct fd_poll *fd_poll_new(
	struct loop *l, int fd, enum fd_event event, void (*ready)(void *ctx), void *ctx);
/* Do not watch it for now; and again. */
void fd_poll_stop(struct fd_poll *p);
void fd_poll_start(struct fd_poll *p);
/* Before the descriptor is closed. NULL is fine. */
void fd_poll_close(struct fd_poll *p);

#endif
