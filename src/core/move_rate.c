#include <numafit/move_rate.h>

#include <numafit/number.h>

/* What no machine is slower or faster than: a clock that is wrong is not believed. */
static const double slowest = 1e6, fastest = 1e13;

void move_rate_note(struct move_rate *r, uint64_t bytes, uint64_t ns)
{
	enum { PARTS = 4 };

	if (bytes < MOVE_RATE_BYTES_MIN || !ns)
		return;
	double now = (double)bytes * NS_PER_S / (double)ns;
	now = now < slowest ? slowest : now > fastest ? fastest : now;
	r->bytes_per_s = r->bytes_per_s ? (r->bytes_per_s * (PARTS - 1) + (uint64_t)now) / PARTS
					: (uint64_t)now;
}

double move_rate_seconds(const struct move_rate *r, uint64_t bytes)
{
	return (double)bytes /
	       (double)(r->bytes_per_s ? r->bytes_per_s : (uint64_t)MOVE_RATE_DEFAULT);
}
