#ifndef NUMAFIT_IO_BACKOFF_H
#define NUMAFIT_IO_BACKOFF_H

#include <stdint.h>

/* When to try again what failed: later and later, and with jitter, so that the clients of one
 * server do not all come at once. A plain value: {.min_ms = 1000, .max_ms = 60000}. */
struct backoff {
	unsigned min_ms, max_ms;
	unsigned next_ms; /* 0: min_ms */
};

/* The delay before the next attempt, a quarter more or less; the one after it is twice as long, up
 * to max_ms. Never below at_least_ms, which the server may have asked for (Retry-After): of all its
 * clients, so that up to half a delay comes on top. */
unsigned backoff_next(struct backoff *b, unsigned at_least_ms);
/* All is well: the next delay is min_ms. */
void backoff_reset(struct backoff *b);

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
