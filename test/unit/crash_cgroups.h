#ifndef NUMAFIT_TEST_CRASH_CGROUPS_H
#define NUMAFIT_TEST_CRASH_CGROUPS_H

#include <numafit/cgroup_path.h>
#include <numafit/cpuset.h>
#include <numafit/text.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* A tree of cgroups made of plain files, and what a kernel would make of it: cgroup v2, as far as
 * cpuset.cpus and cpu.max go. Files say what was written; what is in force is computed here. */

enum { CGROUP_FILE_BYTES = 4096, CGROUP_TEXT_BYTES = 512 };

struct cgroups_made {
	const char *root; /* that of the system; borrowed */
	struct cpuset all;
};

static inline void made_path(const struct cgroups_made *m, const char *dir, const char *file,
	char path[CGROUP_FILE_BYTES])
{
	(void)snprintf(path, CGROUP_FILE_BYTES, "%s/sys/fs/cgroup%s/%s", m->root, dir, file);
}

/* As a whole, as the kernel takes a write: nobody sees a part of it. */
static inline void make_file(const char *path, const char *text)
{
	char above[CGROUP_FILE_BYTES], aside[CGROUP_FILE_BYTES + sizeof ".new"];

	(void)snprintf(above, sizeof above, "%s", path);
	for (char *at = strchr(above + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)mkdir(above, 0755);
		*at = '/';
	}
	(void)snprintf(aside, sizeof aside, "%s.new", path);
	FILE *f = fopen(aside, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f) || rename(aside, path), 0);
}

static inline void made_write(
	const struct cgroups_made *m, const char *dir, const char *file, const char *text)
{
	char path[CGROUP_FILE_BYTES], line[CGROUP_TEXT_BYTES + 1];

	made_path(m, dir, file, path);
	(void)snprintf(line, sizeof line, "%s\n", text);
	make_file(path, line);
}

static inline bool made_is_there(const struct cgroups_made *m, const char *dir)
{
	char path[CGROUP_FILE_BYTES];

	made_path(m, dir, "", path);
	return access(path, F_OK) == 0;
}

static inline int made_remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

static inline void made_remove(const struct cgroups_made *m, const char *dir)
{
	char path[CGROUP_FILE_BYTES];

	made_path(m, dir, "", path);
	(void)nftw(path, made_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Its first line; false: it is empty, as its writer was killed, or writes. "" where there is none.
 */
static inline bool made_read(const struct cgroups_made *m, const char *dir, const char *file,
	char text[CGROUP_TEXT_BYTES])
{
	char path[CGROUP_FILE_BYTES];

	*text = '\0';
	made_path(m, dir, file, path);
	FILE *f = fopen(path, "r");
	if (!f)
		return true;
	bool whole = fgets(text, CGROUP_TEXT_BYTES, f);
	(void)fclose(f);
	text[strcspn(text, "\n")] = '\0';
	return whole;
}

/* Writes that cannot be made: a folder is in the file's place, which root cannot write either. */
static inline void made_break(const struct cgroups_made *m, const char *dir, bool broken)
{
	char path[CGROUP_FILE_BYTES], aside[CGROUP_FILE_BYTES];

	made_path(m, dir, "cpuset.cpus", path);
	made_path(m, dir, "cpuset.cpus.aside", aside);
	if (broken && access(path, F_OK) == 0)
		assert_int_equal(rename(path, aside) || mkdir(path, 0755), 0);
	else if (!broken && access(aside, F_OK) == 0)
		assert_int_equal(rmdir(path) || rename(aside, path), 0);
}

/* What was written into cpuset.cpus: nothing where it is empty. False as of made_read(). */
static inline bool made_cpus(const struct cgroups_made *m, const char *dir, struct cpuset *cpus)
{
	char text[CGROUP_TEXT_BYTES], aside[CGROUP_FILE_BYTES];

	made_path(m, dir, "cpuset.cpus.aside", aside);
	bool whole =
		made_read(m, dir, access(aside, F_OK) ? "cpuset.cpus" : "cpuset.cpus.aside", text);
	if (cpuset_parse(cpus, text, strlen(text), NULL))
		fail_msg("%s: cpuset.cpus is \"%s\"", dir, text);
	return whole;
}

/* cgroup-v2.rst: what the set and the one in force above have in common, else all of the latter. */
static inline struct cpuset made_in_force(const struct cgroups_made *m, const char *dir)
{
	char above[CGROUP_PATH_MAX];
	struct cpuset own;

	if (!*dir)
		return m->all;
	(void)text_copy(above, sizeof above, dir);
	*strrchr(above, '/') = '\0';
	const struct cpuset parents = made_in_force(m, above);
	(void)made_cpus(m, dir, &own);
	own = cpuset_and(own, &parents);
	return cpuset_empty(&own) ? parents : own;
}

/* Whether the cgroup has no CFS quota. */
static inline bool made_is_unlimited(const struct cgroups_made *m, const char *dir)
{
	char text[CGROUP_TEXT_BYTES];

	return made_read(m, dir, "cpu.max", text) && strncmp(text, "max", strlen("max")) == 0;
}

static inline bool made_has_quota(const struct cgroups_made *m, const char *dir, const char *quota)
{
	char text[CGROUP_TEXT_BYTES];

	return made_read(m, dir, "cpu.max", text) && text_equal(text, quota);
}

/* Remember what the cgroup's file has. The kernel takes a write as a whole; of a plain file nothing
 * may be left when its writer is killed (dead): then it has again what it had. */
static inline void made_remember(const struct cgroups_made *m, const char *dir, const char *file,
	char seen[CGROUP_TEXT_BYTES], bool dead)
{
	char path[CGROUP_FILE_BYTES], text[CGROUP_TEXT_BYTES];
	struct stat st;

	made_path(m, dir, file, path);
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return;
	if (made_read(m, dir, file, text))
		(void)text_copy(seen, CGROUP_TEXT_BYTES, text);
	else if (dead)
		made_write(m, dir, file, seen);
}

#endif
