#include <numafit/move_limits.h>

#include <numafit/number.h>

enum { SECONDS_PER_MINUTE = 60, SECONDS_PER_HOUR = 3600 };

void move_uses_note(struct move_uses *u, uint64_t now_ns, uint64_t bytes)
{
	if (u->nr == MOVE_USES_MAX)
		vec_remove(u, 0);
	*vec_push(u) = (struct move_begun){now_ns, bytes};
}

/* Of those that were begun within so many nanoseconds. */
static uint64_t bytes_within(
	const struct move_uses *u, uint64_t now_ns, uint64_t ns, unsigned *moves)
{
	const uint64_t since = now_ns > ns ? now_ns - ns : 0;
	uint64_t bytes = 0;

	*moves = 0;
	for (size_t i = u->nr; i-- > 0 && u->at[i].at_ns >= since; ++*moves)
		bytes += u->at[i].bytes;
	return bytes;
}

bool move_uses_allow(const struct move_uses *u, const struct settings *s, uint64_t now_ns,
	unsigned moves, uint64_t bytes)
{
	const uint64_t rate = s->defrag.bytes_per_minute,
		       minutes = number_max(bytes / rate + (bytes % rate != 0), 1),
		       span = minutes < UINT64_MAX / NS_PER_S / SECONDS_PER_MINUTE
				      ? minutes * SECONDS_PER_MINUTE * NS_PER_S
				      : UINT64_MAX;
	unsigned in_hour, lately;

	(void)bytes_within(u, now_ns, (uint64_t)SECONDS_PER_HOUR * NS_PER_S, &in_hour);
	const uint64_t used = bytes_within(u, now_ns, span, &lately);
	return in_hour + moves <= s->defrag.moves_per_hour && used <= rate * minutes - bytes;
}

void move_uses_fini(struct move_uses *u)
{
	vec_fini(u);
}
