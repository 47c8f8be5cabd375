#ifndef NUMAFIT_MOVE_LIMITS_H
#define NUMAFIT_MOVE_LIMITS_H

#include <numafit/mem.h>
#include <numafit/settings.h>

#include <stddef.h>
#include <stdint.h>

/* Moves that were begun, and whether more may be without anybody having asked for them
 * (defragment.maxMovesPerHour, maxBytesPerMinute). Times are those of one clock that never goes
 * back, in nanoseconds. */

struct move_begun {
	uint64_t at_ns, bytes;
};
struct move_uses {
	VEC(struct move_begun); /* in order of time */
};

/* A move of so many bytes of memory begins. MOVE_USES_MAX are remembered, the latest. */
enum { MOVE_USES_MAX = 1 << 14 };
void move_uses_note(struct move_uses *u, uint64_t now_ns, uint64_t bytes);
/* Whether so many moves of so many bytes together are within the limits now: with those of the last
 * hour, and with those of the last minute or, for more bytes than are allowed in one, of as many
 * minutes as they take at that rate. */
bool move_uses_allow(const struct move_uses *u, const struct settings *s, uint64_t now_ns,
	unsigned moves, uint64_t bytes);
void move_uses_fini(struct move_uses *u);

#endif
