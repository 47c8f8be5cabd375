#ifndef NUMAFIT_NUMAFITD_IN_FORCE_H
#define NUMAFIT_NUMAFITD_IN_FORCE_H

#include <numafit/engine.h>

struct daemon;

struct in_force_reads {
	struct in_force_reader *reader; /* NULL: there is none */
	const struct cgroups *cgroups;  /* its own, where containers are seen; NULL: nowhere */
	uint64_t budget_ns;             /* how long a Synchronize may read them */
};

/* What containers run with on the system under root ("/"), where a Synchronize needs to
 * know. On this machine only. */
void in_force_start(struct daemon *d, const char *root);
void in_force_stop(struct daemon *d);
/* How many containers were read, or are to be later, and of how many nobody knows. */
struct looks {
	size_t read, later, unknown;
};
/* Of a Synchronize: where a report is in doubt (engine_doubts()) what is in force becomes the
 * request's cpuset and numbers, with texts in *a; what there was no time for is read later, and
 * updated if need be. said has what each annotation says, or NULL. */
struct looks in_force_look(struct daemon *d, struct request *requests,
	const struct placement *const *said, size_t nr, struct arena *a);

#endif
