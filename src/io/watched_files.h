#ifndef NUMAFIT_IO_WATCHED_FILES_H
#define NUMAFIT_IO_WATCHED_FILES_H

#include <io/watch.h>
#include <numafit/vec.h>

/* Files that this program has written, and that others may write again: each watched by itself,
 * under a key of its owner's choice (a pod's uid, a cgroup's path). */

struct watched_files;

struct watched_file {
	struct watched_files *of;
	struct watch *watch; /* NULL: it cannot be watched */
	char *key;
	/* The owner's, 0 at first: how often it has written the file again, and whether that was
	 * logged. */
	unsigned rewrites;
	bool logged;
};

struct watched_key {
	char *key; /* borrowed from: */
	struct watched_file *file;
};

struct watched_files {
	struct loop *loop;
	/* The file was touched, by whomever; called in a later turn. */
	void (*touched)(void *ctx, struct watched_file *f);
	void *ctx;
	VEC(struct watched_key); /* ascending by key */
};

/* The loop is borrowed until watched_files_stop(). */
void watched_files_start(struct watched_files *w, struct loop *loop,
	void (*touched)(void *ctx, struct watched_file *f), void *ctx);
/* NULL: no file is watched under that key. */
struct watched_file *watched_files_find(const struct watched_files *w, const char *key);
/* Watches the file at path, which is there (watch_new_file()), unless one is watched under that key
 * already. False: it cannot be watched; it is under its key all the same. */
bool watched_files_add(struct watched_files *w, const char *key, const char *path);
/* Without such a key nothing happens. */
void watched_files_remove(struct watched_files *w, const char *key);
/* No file is watched any more. */
void watched_files_stop(struct watched_files *w);

#endif
