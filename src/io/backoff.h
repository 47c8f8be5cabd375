#ifndef NUMAFIT_IO_BACKOFF_H
#define NUMAFIT_IO_BACKOFF_H

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

#endif
