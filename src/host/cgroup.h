#ifndef NUMAFIT_HOST_CGROUP_H
#define NUMAFIT_HOST_CGROUP_H

#include <numafit/cgroup_path.h>
#include <numafit/cpuset.h>
#include <numafit/nodeset.h>
#include <numafit/request.h>

/* What is really in force: the cpusets and limits of containers' cgroups, v1 or v2, read from the
 * kernel, and written where numafit sets one itself. No heap, and bounded reads: a file that is
 * longer than any cpuset is an error. */

/* Where the hierarchy is that has a controller. */
struct cgroup_tree {
	bool v2;
	char root[CGROUP_PATH_MAX]; /* its directory; "": there is none */
};
/* Where that of the cpuset controller is, and those of others, which need not be there. */
struct cgroups {
	bool v2;
	char root[CGROUP_PATH_MAX];
	struct cgroup_tree cpu, memory, pids;
};

/* Find it among the mounts of the system under root ("/", or a recorded tree): v1's cpuset
 * controller, wherever it is mounted (alone, or with others as "cpu,cpuset"), else the v2 hierarchy
 * that has it (cgroups(7), "hybrid": one controller is in one of the two). Of several mounts the
 * last one counts: it lies over the others, or is the host's that a container was given; but a
 * mount of a part of the hierarchy counts for nothing. 0; -ENOENT when there is none, -errno. */
int cgroups_find(const char *root, struct cgroups *out, struct err *e);

/* The path of a file of the cgroup in that directory below the tree's root, into buf of cap bytes.
 * 0; -ENOENT: there is no such controller; -ENAMETOOLONG. */
int cgroup_file_path(const struct cgroup_tree *t, const char *directory, const char *file,
	char *buf, size_t cap, struct err *e);

/* Write text into the file of the cgroup in that directory below the tree's root, in one write().
 * The kernel has done it when this returns (cgroup-v2.rst). 0; -ENOENT: the cgroup, or the
 * controller, is not there; -EROFS, -EACCES: it cannot be written from here; -EINVAL, -ERANGE,
 * -ENOSPC and such: the kernel does not take this value; -ENAMETOOLONG. */
int cgroup_write(const struct cgroup_tree *t, const char *directory, const char *file,
	const char *text, struct err *e);

/* Whether cgroups of that tree can be written from here: 0; or -ENOENT: there is no such
 * controller; -EROFS, -EACCES. */
int cgroup_check_writable(const struct cgroup_tree *t, struct err *e);
/* Whether there is such a directory below the tree's root. */
bool cgroup_is_there(const struct cgroup_tree *t, const char *directory);
/* Have the cgroup in that directory, and those above it, let a controller ("cpuset") be used
 * (v2: cgroup.subtree_control). 0, or as cgroup_write(). */
int cgroup_enable(
	const struct cgroup_tree *t, const char *directory, const char *controller, struct err *e);
/* The CPUs that were set for the cgroup in that directory, none where nothing was. 0, or as
 * cgroup_read(). */
int cgroup_read_cpus(
	const struct cgroup_tree *t, const char *directory, struct cpuset *out, struct err *e);

/* A cgroup's CFS quota. text: as the kernel prints it, on one line (v2: cpu.max, with the period;
 * v1: cpu.cfs_quota_us). */
enum { CGROUP_QUOTA_MAX = 64 };
struct cgroup_quota {
	char text[CGROUP_QUOTA_MAX];
	bool limited; /* there is one */
	uint64_t quota_us, period_us;
};
/* Read that of the cgroup in that directory, in the hierarchy with the cpu controller. 0;
 * -ENOENT: it is gone, or the controller is not there; -EINVAL: it has something else; -errno. */
int cgroup_read_quota(const struct cgroup_tree *cpu, const char *directory,
	struct cgroup_quota *out, struct err *e);
/* Set it to such a text. As cgroup_write(). */
int cgroup_write_quota(
	const struct cgroup_tree *cpu, const char *directory, const char *text, struct err *e);
/* Such a text for a quota in us, or none (CGROUP_NO_QUOTA), in that period; in v1, where the period
 * has a file of its own, it stays as it is. */
#define CGROUP_NO_QUOTA UINT64_MAX
void cgroup_quota_text(const struct cgroup_tree *cpu, uint64_t quota_us, uint64_t period_us,
	char text[CGROUP_QUOTA_MAX]);
/* The file of it. */
const char *cgroup_quota_file(const struct cgroup_tree *cpu);

/* What was set for a cgroup, and what is in force: less what is offline or not the parent's. v1 and
 * v2 both show the two apart. */
struct cgroup_cpuset {
	struct cpuset cpus, effective_cpus;
	struct nodeset mems, effective_mems;
};

/* Read the cpuset of that cgroup (the runtime's words); ids name the NUMA nodes. 0; -ENOENT: it is
 * gone; -EINVAL and such with text: it has something that is no cpuset of this machine; -errno. */
int cgroup_read(const struct cgroups *c, const char *cgroups_path, const struct node_ids *ids,
	struct cgroup_cpuset *out, struct err *e);
/* Read its limits: quota and period, and bytes of memory, each only when there is such a limit. 0;
 * -ENOENT: it is gone, or the controller is not there; -EINVAL: it has something else; -errno. */
int cgroup_read_limits(const struct cgroups *c, const char *cgroups_path,
	struct linux_resources *out, struct err *e);
/* Whether any process is in it, or in one below it (in v1 where the pids controller is mounted).
 * One that has none any more has ended or is ending. False also when it is gone. */
bool cgroup_has_processes(const struct cgroups *c, const char *cgroups_path);
/* The first process of the cgroup itself, into *pid; 0: the process is hidden, as the reader's PID
 * namespace does not have it. 0; -ESRCH: the cgroup has no process of its own; -ENOENT: the cgroup
 * is gone; -EFBIG: more processes than are read; -errno. v1 leaves hidden processes out of the
 * list: an empty list of a cgroup with others below it counts as -ESRCH, any other as hidden. */
int cgroup_first_process(
	const struct cgroups *c, const char *cgroups_path, uint64_t *pid, struct err *e);

#endif
