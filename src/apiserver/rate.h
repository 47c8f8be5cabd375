#ifndef NUMAFIT_APISERVER_RATE_H
#define NUMAFIT_APISERVER_RATE_H

#include <stdint.h>

/* How often something may be done: so many times at once, then once in an interval (the generic
 * cell rate algorithm). A plain value: {.burst = 25, .every_ns = ...}. */
struct rate {
	unsigned burst;
	uint64_t every_ns;
	uint64_t full_ns; /* when all of the burst will be there again */
};

/* When it may be done the next time: now, or later. */
uint64_t rate_when(const struct rate *r, uint64_t now_ns);
/* It is done now. */
void rate_take(struct rate *r, uint64_t now_ns);

#endif
