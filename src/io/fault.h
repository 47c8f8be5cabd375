#ifndef NUMAFIT_IO_FAULT_H
#define NUMAFIT_IO_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where tests let the program die or a write fail: a point for each step between a request's bytes
 * and those of its answer. NUMAFIT_FAULT=NAME[:NTH[:TIMES]] chooses one: at its NTH pass (1) the
 * process kills itself or, at an error, TIMES (1) passes from there on fail with it. Only in builds
 * with NUMAFIT_FAULTS defined; in others, a release among them, nothing of this is left. */
enum fault {
	FAULT_FRAME_READ,  /* bytes came in, and nobody has looked at them */
	FAULT_TO_DECIDE,   /* a create was understood */
	FAULT_TO_APPEND,   /* a change was decided */
	FAULT_HALF_LINE,   /* half of its line is in the journal */
	FAULT_APPENDED,    /* all of it is; the ledger is as before */
	FAULT_COMMITTED,   /* the ledger has it */
	FAULT_ENCODED,     /* the answer to a create was made */
	FAULT_QUEUED,      /* all answers are in the outbox */
	FAULT_HALF_ANSWER, /* half of them is in the socket */
	FAULT_ANSWERED,    /* all of them are */
	NR_FAULTS,
	/* and those of an Allocate's own: it appends and commits like a create */
	FAULT_TO_ALLOCATE = NR_FAULTS, /* it was understood */
	FAULT_ALLOCATED,               /* its answer was made */
	FAULT_TO_PREPARE,              /* a claim was read that the kubelet prepares */
	FAULT_PREPARED,                /* it is held, and its answer was made */
	/* and that of a change whose record has several lines: some are in the journal, the one
	 * that commits them is not */
	FAULT_BETWEEN_LINES,
	/* and those of each write of a cgroup's file: before one and behind it */
	FAULT_TO_WRITE_CGROUP,
	FAULT_CGROUP_WRITTEN,
	/* and those of the thread that writes cpuset.mems, which passes no others */
	FAULT_TO_WRITE_MEMS,
	FAULT_MEMS_WRITTEN,
	/* and those of each write of an interrupt's or a CPU's file */
	FAULT_TO_WRITE_TUNABLE,
	FAULT_TUNABLE_WRITTEN,
	NR_DEATHS,
	/* errors of the journal's write(2) */
	FAULT_ENOSPC = NR_DEATHS,
	FAULT_EIO,
	FAULT_EROFS,
	NR_FAULTS_AND_ERRORS
};

#ifdef NUMAFIT_FAULTS
const char *fault_name(enum fault f);
/* The environment is looked at once; for a process that was forked: anew. */
void fault_look_again(void);
void fault_point(enum fault f);
/* For a step that can be done by half: len or, when that is the pass, half of it; then
 * fault_half_done() is the end. */
size_t fault_half(enum fault f, size_t len);
void fault_half_done(void);
/* The errno that this write is to fail with; 0: let it be done. */
int fault_of_write(void);
/* The longest line of the journal: max or, where NUMAFIT_FAULT_LINE says so, fewer bytes, so that
 * records of everyday have several lines. */
size_t fault_line_bytes(size_t max);
/* Bytes of one reply's updates: max or, where NUMAFIT_FAULT_UPDATES says so, fewer. */
size_t fault_update_bytes(size_t max);
/* How long a write of cpuset.mems takes, beside the write itself: 0 or, where NUMAFIT_FAULT_MEMS_MS
 * says so, milliseconds, as there were pages to move. */
void fault_move_pages(void);
/* A time that tests would have to wait for: ms or, where the environment has that variable, as it
 * says. NUMAFIT_FAULT_WATCH_MS: how long a watch may be broken; NUMAFIT_FAULT_METRICS_MS: how old
 * metrics may be; NUMAFIT_FAULT_LOOK_MS: until it is asked again whether a resource exists;
 * NUMAFIT_FAULT_DOCUMENT_MS: how long a document of the metrics port takes. */
uint64_t fault_time_ms(const char *variable, uint64_t ms);
/* The root of the system whose cgroups, CPUs and memory are looked at: "/" or, where
 * NUMAFIT_FAULT_ROOT says so, a folder. */
const char *fault_root(void);
/* Whether it is one, so that the machine's description is taken for that of this machine. */
bool fault_has_root(void);
/* In it files stand for the kernel's, which take a write as a whole: nobody sees a part of one, nor
 * is a part left when its writer dies. 0 or -errno. */
int fault_write_whole(const char *path, const char *text);
#else
static inline void fault_point(enum fault f)
{
	(void)f;
}
static inline size_t fault_half(enum fault f, size_t len)
{
	(void)f;
	return len;
}
static inline void fault_half_done(void) {}
static inline int fault_of_write(void)
{
	return 0;
}
static inline size_t fault_line_bytes(size_t max)
{
	return max;
}
static inline size_t fault_update_bytes(size_t max)
{
	return max;
}
static inline void fault_move_pages(void) {}
static inline uint64_t fault_time_ms(const char *variable, uint64_t ms)
{
	(void)variable;
	return ms;
}
static inline const char *fault_root(void)
{
	return "/";
}
static inline bool fault_has_root(void)
{
	return false;
}
static inline int fault_write_whole(const char *path, const char *text)
{
	(void)path, (void)text;
	return 0;
}
#endif

#endif
