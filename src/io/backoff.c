#include <io/backoff.h>

#include <io/loop.h>

unsigned backoff_next(struct backoff *b, unsigned at_least_ms)
{
	unsigned base = b->next_ms ? b->next_ms : b->min_ms, half = base / 2;
	/* the clock's nanoseconds are random enough to keep clients out of step */
	unsigned jitter = (unsigned)(loop_monotonic_ns() % (half + 1));
	unsigned delay = base - half / 2 + jitter;

	b->next_ms = base < b->max_ms / 2 ? base * 2 : b->max_ms;
	return delay > at_least_ms ? delay : at_least_ms + jitter;
}

void backoff_reset(struct backoff *b)
{
	b->next_ms = b->min_ms;
}

uint64_t rate_when(const struct rate *r, uint64_t now_ns)
{
	uint64_t ahead = (r->burst - 1) * r->every_ns;
	uint64_t when = r->full_ns > ahead ? r->full_ns - ahead : 0;

	return when > now_ns ? when : now_ns;
}

void rate_take(struct rate *r, uint64_t now_ns)
{
	r->full_ns = (r->full_ns > now_ns ? r->full_ns : now_ns) + r->every_ns;
}
