#ifndef NUMAFIT_IO_WATCH_H
#define NUMAFIT_IO_WATCH_H

#include <io/loop.h>
#include <stdbool.h>

/* A name in a directory, of a file that is there or is to come: the directory is what is watched,
 * so it may be removed and created again. */
struct watch;

/* changed() is called, in a later turn, when path came, went, or was touched; more than once for
 * one change. NULL: its directory is not there, or cannot be watched. */
struct watch *watch_new(struct loop *l, const char *path, void (*changed)(void *ctx), void *ctx);
/* The same of one file that is there, and of nothing that comes and goes beside it: for one that no
 * other file takes the place of, as a cgroup's. */
struct watch *watch_new_file(
	struct loop *l, const char *path, void (*changed)(void *ctx), void *ctx);
/* NULL is fine. */
void watch_close(struct watch *w);

/* A file whose text changes in any of the ways it does on a node: written in place, replaced by
 * another one, or swapped with all of its ConfigMap's or Secret's volume. Zeros: none is watched.
 */
struct file_watch {
	struct watch *file, *swap;
};

/* As watch_new(). False: it is watched in part or not at all. */
bool file_watch_start(struct file_watch *w, struct loop *l, const char *path,
	void (*changed)(void *ctx), void *ctx);
/* *w is zeros then, as it may be before. */
void file_watch_stop(struct file_watch *w);

#endif
