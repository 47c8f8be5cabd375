#ifndef NUMAFIT_IO_WATCH_H
#define NUMAFIT_IO_WATCH_H

#include <io/loop.h>

/* A name in a directory, of a file that is there or is to come: the directory is what is watched,
 * so it may be removed and created again. */
struct watch;

/* changed() is called, in a later turn, when path came, went, or was touched; more than once for
 * one change. NULL: its directory is not there, or cannot be watched. */
struct watch *watch_new(struct loop *l, const char *path, void (*changed)(void *ctx), void *ctx);
/* NULL is fine. */
void watch_close(struct watch *w);

#endif
