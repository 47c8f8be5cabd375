#include <apiserver/rate.h>

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
