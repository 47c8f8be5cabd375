/* base: small arithmetic and units that every floor uses. */
#ifndef NUMAFIT_NUMBER_H
#define NUMAFIT_NUMBER_H

#include <stdint.h>

enum {
	NS_PER_US = 1000,
	NS_PER_MS = 1000000,
	NS_PER_S = 1000000000,
	MS_PER_S = 1000,
	MILLI_PER_CPU = 1000,
	S_PER_MIN = 60,
	MIN_PER_H = 60,
};

/* The smaller, the larger one of two amounts of one unit. */
static inline uint64_t number_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t number_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
