#ifndef NUMAFIT_GAIN_RUN_H
#define NUMAFIT_GAIN_RUN_H

#include "place.h"

#include <sys/types.h>

/* Processes of a run. Each enters its place first, is killed when this one ends, and is in a
 * process group of its own, so that ^C comes to this one alone. */

struct run {
	struct gain *g;
	struct place *place;
	struct sample *shared;        /* written by the processes */
	unsigned long redis_requests; /* of one measurement; 0: not known yet */
};

/* ^C, or another signal that ends this program, has come: its number, else 0. */
int run_stopped(void);
void run_watch_signals(void);

/* Start one there; -errno. It ends when main() returns. */
pid_t run_start(
	struct run *r, const struct arm *arm, bool pool, void (*main)(void *arg), void *arg);
/* Wait until it ends, at most that long, and call while_waiting(), if it is not NULL, every 10 ms.
 * Its exit code; -ETIMEDOUT, -EINTR: it was killed then; -ECHILD: a signal has killed it. */
int run_wait(pid_t pid, double seconds, void (*while_waiting)(void *arg), void *arg);
void run_kill(pid_t pid);

/* One run of a load in an arm, into r->shared. */
void run_measure(struct run *r, enum load_id load, const struct arm *arm);

/* Redis, by its own programs (redis.c) */
bool redis_is_there(void);
void redis_measure(struct run *r, const struct arm *arm);

#endif
