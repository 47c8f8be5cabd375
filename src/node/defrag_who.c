/* Which running containers may be moved. */
#include <numafit/defrag.h>

/* NUMA nodes that were asked for, and given; a wish of which nobody knows what became was perhaps
 * followed. */
static bool is_where_it_was_sent(const struct holding *h)
{
	const struct advice_result *a = &h->decision.advice;
	bool followed = a->verdict == ADVICE_ACCEPTED || a->verdict == ADVICE_ACCEPTED_STALE;

	return (a->looked_at && followed && a->mode == ADVICE_REQUIRE) ||
	       (h->request.ask.wishes_nodes && (!a->looked_at || followed));
}

bool defrag_can_move(const struct holding *h)
{
	const struct request *r = &h->request;
	const struct decision *d = &h->decision;

	for (unsigned i = 0; i < d->nr_blocks; i++)
		if (d->blocks[i].kind)
			return false; /* huge pages are where they are reserved */
	return d->exclusive && decision_is_booked(d) && !decision_is_left(d) && !d->lease &&
	       h->state != HOLDING_WAITING && !holding_is_share(h) && !r->ask.whole_pod &&
	       !r->ask.has_devices && !r->ask.tokens && !is_where_it_was_sent(h) &&
	       r->ask.wishes.isolated == WISH_ISOLATED_UNSAID && !r->shares && !r->allocated &&
	       r->ask.kind != CONTAINER_INIT;
}

bool defrag_may_move(
	const struct holding *h, const struct settings *s, int64_t now_ms, bool by_itself)
{
	const enum wish_movable wish = h->request.ask.wishes.movable;
	const int64_t moved = h->decision.moved_ms;
	const uint64_t ago = moved < now_ms ? (uint64_t)now_ms - (uint64_t)moved : 0;

	if (!defrag_can_move(h) || h->state != HOLDING_LIVE || wish == WISH_MOVABLE_NO)
		return false;
	if (moved && ago < s->defrag.min_interval_ms)
		return false;
	return !by_itself || wish == WISH_MOVABLE_YES || s->defrag.movable == MOVABLE_ALL;
}
