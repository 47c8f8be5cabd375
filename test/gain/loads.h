#ifndef NUMAFIT_GAIN_LOADS_H
#define NUMAFIT_GAIN_LOADS_H

#include "gain.h"

/* What runs in a container, in a process of its own that has entered its place already. */

struct job {
	const struct topo *topo;
	unsigned threads;
	uint64_t bytes;
	double seconds;
	struct sample *out; /* shared with the parent */
};

/* The loads but Redis, which is a program of its own. Each fills *job->out. */
void load_triad(const struct job *job);
void load_chase(const struct job *job);
void load_loop(const struct job *job);
/* Keeps that many threads busy for 3 of 4 ms, until it is killed. */
void load_bully(const struct job *job);

#endif
