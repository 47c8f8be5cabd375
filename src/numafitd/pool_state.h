#ifndef NUMAFIT_NUMAFITD_POOL_STATE_H
#define NUMAFIT_NUMAFITD_POOL_STATE_H

#include <host/cgroup.h>
#include <io/watched_files.h>
#include <numafit/vec.h>

/* What pool*.c share. */

struct pool_bounds {
	struct cgroup_tree tree; /* root "": cgroups cannot enforce the pool here */
	struct loop_timer *again, *watch_due;
	struct watched_files watched; /* by path; rewrites: in this second */
	struct {
		VEC(char *);
	} to_watch;          /* cgroups that have been written */
	bool was_by_cgroups; /* in an earlier life */
	bool any_due;        /* whatever serial and pool say */
	uint64_t serial;     /* of the tree, and the pool, for which all was written */
	struct cpuset pool;
	size_t left; /* of the cgroups that are looked at in this round (bounds_next()) */
	uint64_t writes, rewritten;
	bool watch_failed;
	bool failed;        /* not all that is due was written */
	struct err problem; /* why the last write failed; code 0: it did not */
	char why_updates[sizeof((struct err *)0)->text];
};

#endif
