#ifndef NUMAFIT_NUMAFITD_RECORDER_H
#define NUMAFIT_NUMAFITD_RECORDER_H

#include <io/journal.h>
#include <io/loop.h>
#include <numafit/cpuset.h>

struct daemon;

struct recorder {
	struct journal *journal;
	struct loop_timer *rotate;
	uint64_t rotate_at_bytes;
	const char *aside;  /* the journal that is there is set aside under that name first */
	struct err verdict; /* why the daemon has ended itself; code 0: it has not */
	struct err error;   /* logged, and nothing was written since; code 0: all is well */
	bool unrecorded;    /* the record at hand could not be written */
	bool behind;        /* the ledger went on without it: it must be written anew */
	/* Grows whenever other CPUs or other memory are free, over restarts too: what schedulers
	 * say that they have seen. */
	uint64_t generation;
	struct cpuset held_before;
	uint64_t free_before;
};

/* The engine's records and the journal file. */

/* Build the engine: fold the journal of an earlier life if there is one, and start a new journal
 * with what came out. A journal that cannot be used is set aside, loudly; the runtime's Synchronize
 * then reports what runs. Where no journal can be written, the log says so, nothing is placed, and
 * it is tried again, with the run directory's claim if need be; the daemon ends itself
 * (recorder.verdict) when that is another daemon's by then. 0, or -errno where no waiting helps. */
int recorder_start(struct daemon *d, struct err *e);
void recorder_stop(struct daemon *d);
/* The machine or what is held may be another one than before. */
void recorder_count_change(struct daemon *d);
/* The ledger is no longer what its records lead to: start a new journal with it now, and until that
 * has succeeded record nothing. */
void recorder_write_anew(struct daemon *d);

#endif
