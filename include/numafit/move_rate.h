#ifndef NUMAFIT_MOVE_RATE_H
#define NUMAFIT_MOVE_RATE_H

#include <stdint.h>

/* How fast this machine moves memory from NUMA node to NUMA node, as learned from its last moves.
 */

enum { MOVE_RATE_DEFAULT = 1000000000, MOVE_RATE_BYTES_MIN = 1 << 20 };
struct move_rate {
	uint64_t bytes_per_s; /* 0: nothing was learned; MOVE_RATE_DEFAULT is used */
};

/* bytes were moved in ns. The first move counts alone, each later one as a quarter of the new rate.
 * Less than MOVE_RATE_BYTES_MIN, or no time, teach nothing: that is the write's own time. */
void move_rate_note(struct move_rate *r, uint64_t bytes, uint64_t ns);
/* The seconds that moving that many bytes is expected to take. */
double move_rate_seconds(const struct move_rate *r, uint64_t bytes);

#endif
