/* The run directory, and the lock in it that only one daemon can hold. */
#include "daemon.h"

#include <daemon-files/check_config.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <io/file.h>
#include <io/journal.h>
#include <io/log.h>
#include <limits.h>
#include <numafit/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	RUN_DIRECTORY_MODE = 0700,
	LOCK_MODE = 0600,
	SHARED_DIRECTORY_MODE = 0750,
	SHARED_FILE_MODE = 0640,
	OWN_FILE_MODE = 0600,
	MODE_BITS = 07777
};

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

static void warn_of_writers(const char *dir)
{
	char text[512];
	struct err e;

	for (unsigned at = 0; run_directory_next_writer(dir, &at, &e);)
		log_line(LOG_WARN, "journal-not-ours",
			"error=%s action=\"let root alone write the run directory, the journal and "
			"the directories above, remove the journal and restart numafitd: it takes "
			"over what runs\"",
			log_text(text, sizeof text, e.text));
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
	warn_of_writers(dir);
	return 0;
}

#define NO_GROUP ((gid_t)-1)

/* The group's number: by its name in /etc/group, or written as one. -ENOENT: there is none. */
static int group_number(const char *name, gid_t *gid)
{
	FILE *f = fopen("/etc/group", "re");
	const struct group *g;
	uint64_t number = 0;
	bool found = false;

	while (f && !found && (g = fgetgrent(f))) {
		found = text_equal(g->gr_name, name);
		*gid = found ? g->gr_gid : *gid;
	}
	if (f)
		(void)fclose(f);
	if (found || text_u64(name, strlen(name), INT_MAX, &number, NULL))
		return found ? 0 : -ENOENT;
	*gid = (gid_t)number;
	return 0;
}

/* What is as it should be is left alone, and so is the group with NO_GROUP: to change the group
 * takes a right that a confined daemon may not have. */
static int share_path(const char *path, gid_t gid, mode_t mode)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int rc = fd < 0 ? -errno : 0;

	if (!rc && fstat(fd, &st))
		rc = -errno;
	if (!rc && gid != NO_GROUP && st.st_gid != gid && fchown(fd, (uid_t)-1, gid))
		rc = -errno;
	if (!rc && (st.st_mode & MODE_BITS) != mode && fchmod(fd, mode))
		rc = -errno;
	if (fd >= 0)
		(void)close(fd);
	return rc;
}

void run_directory_share(const struct daemon *d)
{
	const char *name = d->settings.journal_group;
	char previous[sizeof d->run.journal_path + sizeof JOURNAL_PREVIOUS + 1], text[512];
	gid_t gid = 0;

	(void)snprintf(previous, sizeof previous, "%s." JOURNAL_PREVIOUS, d->run.journal_path);
	int rc = *name ? group_number(name, &gid) : -ENOENT;
	if (rc) /* a new journal is root's own; the one before may have been shared */
		(void)share_path(previous, NO_GROUP, OWN_FILE_MODE);
	if (!*name)
		return;
	bool is_known = !rc;
	const char *what = is_known ? d->settings.run_directory : "/etc/group";
	if (!rc)
		rc = share_path(what, gid, SHARED_DIRECTORY_MODE);
	if (!rc)
		rc = share_path(what = d->run.journal_path, gid, SHARED_FILE_MODE);
	if (!rc)
		rc = share_path(what = previous, gid, SHARED_FILE_MODE);
	if (!rc || (rc == -ENOENT && what == previous))
		return;
	log_line(LOG_WARN, "journal-not-shared", "group=%s path=%s error=\"%s\" action=\"%s\"",
		log_text(text, sizeof text, name), what, strerror(-rc),
		is_known ? "run numafitd with that group (Group= of its unit, runAsGroup of its "
			   "pod), or let it change groups (CAP_CHOWN)"
			 : "make the group on the node, or give its number");
}
