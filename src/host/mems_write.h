#ifndef NUMAFIT_HOST_MEMS_WRITE_H
#define NUMAFIT_HOST_MEMS_WRITE_H

#include <host/cgroup.h>
#include <io/loop.h>

/* One write of cpuset.mems at a time, on a thread of its own: in cgroup v2 the kernel moves all
 * pages of the cgroup's processes within that write, which takes about a second for each gigabyte,
 * and the loop does not wait for it.
 *
 * But the kernel has one queue for all moves, and until it is empty (measured, Linux 6.1 and 6.12)
 * it keeps waiting: each other write of a cpuset file, cpuset.cpus too, wherever that cgroup is;
 * each process that enters a cgroup with a cpuset, as all new containers do; and, behind such a
 * process, who makes a cgroup. What writes a cpuset on the loop meanwhile stops the loop for the
 * rest of the move. */
struct mems_write;

/* How a write came out. */
struct mems_written {
	int rc;           /* 0; or as cgroup_write(), then error says why */
	struct err error; /* code 0 when rc is 0 */
	uint64_t ns;      /* that the write took, whatever came of it */
};

/* done() is called on the loop, once for each write that was started; from there another one can be
 * started. Nobody else hears of it: what it was about the caller remembers. */
struct mems_write *mems_write_new(
	struct loop *l, void (*done)(void *ctx, const struct mems_written *w), void *ctx);
/* Before loop_free(), and not from done(). It does not wait: of a write that is under way nothing
 * is reported any more, and the kernel goes on with it, as it would if this process were killed.
 * But this process ends only after it (measured, SIGKILL too): what waits in the kernel takes no
 * signal. NULL is fine. */
void mems_write_free(struct mems_write *w);

/* Start to write the list of NUMA nodes ("0-1") into cpuset.mems of the cgroup in that directory
 * below the tree's root. 0; -EAGAIN with text: a write is under way; -ENOENT: there is no such
 * controller; -ENAMETOOLONG; or the error of pthread_create(3). */
int mems_write_start(struct mems_write *w, const struct cgroup_tree *cpuset, const char *directory,
	const char *mems, struct err *e);
/* Whether one is under way. */
bool mems_write_is_busy(const struct mems_write *w);

#endif
