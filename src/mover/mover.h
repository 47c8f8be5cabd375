#ifndef NUMAFIT_MOVER_MOVER_H
#define NUMAFIT_MOVER_MOVER_H

#include <codec/moves_json.h>

#include <host/cgroup.h>
#include <io/loop.h>

struct mover;
struct planned;

/* Moves of running containers, one after another: CPUs are widened to the old and the new ones,
 * memory follows, on a thread (host/mems_write.h), then CPUs are narrowed. The ledger has both
 * places until then. What the kernel refuses is undone, and ends the plan. */

/* What the mover is part of. All is borrowed. */
struct mover_world {
	void *ctx;
	struct loop *loop;
	struct engine *const *engine;
	const struct cgroup_tree *cpuset, *memory; /* memory NULL: how much is used is not known */
	/* Whether containers can be moved here: 0; or -errno with the reason. */
	int (*can)(void *ctx, struct err *e);
	/* The ledger has changed: before this returns nobody runs on what another one was given for
	 * itself. 0; or -errno with text. */
	int (*follow_pool)(void *ctx, struct err *e);
	/* The container is to be updated by the runtime as well. */
	void (*must_update)(void *ctx, const char *container_id);
	/* A number that changes when other CPUs or other memory are free. */
	uint64_t (*generation)(void *ctx);
	/* Whether the runtime is just doing so. */
	bool (*is_updating)(void *ctx, const char *container_id);
};
struct mover *mover_new(const struct mover_world *w);
/* Before loop_free(). A move that is under way stays so in the ledger. NULL is fine. */
void mover_free(struct mover *m);

/* Make these moves, in their order; the plan is copied. pod: the one that room is made for, or "".
 * 0; or the error of can(); -EBUSY: others are under way. */
int mover_make(struct mover *m, const struct planned *p, const char *pod, struct err *e);
bool mover_is_busy(const struct mover *m);
/* Whether the kernel is moving memory. Until it has, whoever writes a cpuset, or puts a process
 * into a cgroup, waits in the kernel: it has one queue for all moves, and they flush it
 * (kernel/cgroup/cpuset.c, cpuset_write_resmask() and cpuset_post_attach()). */
bool mover_is_copying(const struct mover *m);

/* The moves that were made last, or are under way: false when there were none in this life. Texts
 * are valid until the next turn of the loop. */
bool mover_show(struct mover *m, struct moves *out);

/* A Synchronize has been answered: a move that an earlier life had begun goes on, and the cpuset of
 * a container that is on its way is set again. */
void mover_note_synchronized(struct mover *m);

/* Milliseconds that moving so many bytes is expected to take. */
uint64_t mover_expected_ms(const struct mover *m, uint64_t bytes);
/* Moves that were begun since then (loop_monotonic_ns()), and their bytes. */
struct mover_use {
	unsigned moves;
	uint64_t bytes;
};
struct mover_use mover_use_since(const struct mover *m, uint64_t ns);

/* For metrics. */
struct mover_counters {
	uint64_t moved, undone, bytes, ns; /* bytes and time of those that were moved */
};
struct mover_counters mover_counters(const struct mover *m);

#endif
