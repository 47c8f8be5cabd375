#ifndef NUMAFIT_TEST_CORE_RANDOM_H
#define NUMAFIT_TEST_CORE_RANDOM_H

#include <stdint.h>

/* A repeatable stream of numbers (xorshift64*), so that a failing case can be named by its seed. */
struct random {
	uint64_t state;
};

static inline uint64_t random_next(struct random *r)
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return r->state * UINT64_C(2685821657736338717);
}

/* 0..below-1 */
static inline unsigned random_below(struct random *r, unsigned below)
{
	return (unsigned)(random_next(r) >> 33) % below;
}

static inline int random_chance(struct random *r, unsigned percent)
{
	return random_below(r, 100) < percent;
}

#endif
