/* The run directory, and the lock in it that only one daemon can hold. */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RUN_DIRECTORY_MODE = 0700, LOCK_MODE = 0600 };

bool run_directory_may_come(int rc)
{
	/* a path that leads nowhere, and another daemon: no waiting helps */
	return rc != -EBUSY && rc != -ENOTDIR && rc != -ELOOP && rc != -ENAMETOOLONG &&
	       rc != -EINVAL && rc != -EISDIR;
}

/* Whose lock it is, as it says; 0: it could not. Its number may mean another process elsewhere: in
 * a container process ids are the container's own. */
static int lock_holder(int lock)
{
	enum { PID_DIGITS = 16, DECIMAL = 10 };
	char text[PID_DIGITS] = "";

	if (pread(lock, text, sizeof text - 1, 0) < 0)
		return 0;
	return (int)strtol(text, NULL, DECIMAL);
}

/* A file that cannot be written can be locked. */
static int open_lock(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, LOCK_MODE);

	if (fd < 0 && (errno == EROFS || errno == EACCES)) {
		int error = errno;

		fd = open(path, O_RDONLY | O_CLOEXEC);
		errno = error;
	}
	return fd;
}

int run_directory_claim(struct daemon *d, struct err *e)
{
	const char *dir = d->settings.run_directory;
	char path[SETTINGS_PATH_MAX + sizeof "/lock"];

	(void)snprintf(path, sizeof path, "%s/lock", dir);
	(void)snprintf(d->run.journal_path, sizeof d->run.journal_path, "%s/journal", dir);
	(void)snprintf(d->run.status_path, sizeof d->run.status_path, "%s/numafitd.sock", dir);
	if (mkdir(dir, RUN_DIRECTORY_MODE) < 0 && errno != EEXIST)
		return err_set(e, errno, "runDirectory %s: %s", dir, strerror(errno));
	int lock = open_lock(path);
	if (lock < 0)
		return err_set(e, errno, "%s: %s", path, strerror(errno));
	if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
		int rc = err_set(e, EBUSY,
			"another numafitd (process %d) runs with runDirectory %s: stop it first",
			lock_holder(lock), dir);

		(void)close(lock);
		return rc;
	}
	/* whose it is helps whoever is kept out, and a disk may be full: then it is not written */
	if (ftruncate(lock, 0) == 0)
		(void)!dprintf(lock, "%d\n", (int)getpid());
	d->run.lock = lock;
	return 0;
}
