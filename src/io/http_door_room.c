#include <io/http_door_state.h>

enum {
	GRACE_MS = 50, /* that a body or an answer has before it makes room */
	TURN_MS = 2000 /* the same of a guest that has proven its identity */
};

static unsigned kept_in_front(const struct door *d)
{
	enum { PART = 8 };

	return d->o.waiting_max / PART;
}

static unsigned kept_inside(const struct door *d)
{
	enum { PART = 4 };

	return d->o.inside_max / PART;
}

struct door_guest *door_in_the_way(const struct door *d, const struct source *s, bool *full)
{
	unsigned all = d->nr_waiting[OWN] + d->nr_waiting[OTHERS];

	*full = true;
	if (!s->own && s->nr_waiting >= (d->o.waiting_max + 1) / 2)
		return TAILQ_FIRST(&s->silent);
	if (!s->own && d->nr_waiting[OTHERS] >= d->o.waiting_max - kept_in_front(d))
		return TAILQ_FIRST(&d->silent[OTHERS]);
	*full = all >= d->o.waiting_max;
	if (!*full)
		return NULL;
	bool own = !s->own || d->nr_waiting[OWN] > kept_in_front(d);
	return TAILQ_FIRST(&d->silent[own]);
}

/* How gladly it is sent away for a newcomer; 0: not. */
static unsigned readiness_to_go(const struct door_guest *g, uint64_t now)
{
	enum { LAST = 1, LATE, EARLY, FIRST };
	uint64_t for_ms = now - g->since_ms;

	if (g->state == DOOR_WAITS)
		return 0;
	if (g->proven)
		return for_ms >= TURN_MS ? LAST : 0;
	if (g->state == DOOR_STARTS)
		return FIRST;
	if (g->state == DOOR_IDLES)
		return EARLY;
	return for_ms >= GRACE_MS ? LATE : 0;
}

/* Which of those inside would make the room that is short. */
enum shortage { NONE, OF_SOURCE, OF_STARTS, OF_OTHERS, OF_ALL };

static enum shortage shortage_for(const struct door *d, const struct source *s)
{
	if (!s->own && s->nr_inside >= (d->o.inside_max + 1) / 2)
		return OF_SOURCE;
	if (!s->own && d->nr_inside[OTHERS] >= d->o.inside_max - kept_inside(d))
		return OF_OTHERS;
	if (d->nr_inside[OWN] + d->nr_inside[OTHERS] >= d->o.inside_max)
		return OF_ALL;
	return d->nr_starting >= (d->o.inside_max + 1) / 2 ? OF_STARTS : NONE;
}

static bool leaving_would_help(const struct door *d, const struct door_guest *g,
	const struct source *s, enum shortage what)
{
	switch (what) {
	case OF_SOURCE:
		return g->from == s;
	case OF_OTHERS:
		return !g->from->own;
	case OF_STARTS:
		return g->state == DOOR_STARTS && (s->own || !g->from->own);
	case OF_ALL:
	case NONE:
		break;
	}
	return s->own || !g->from->own || d->nr_inside[OWN] > kept_inside(d);
}

/* Nobody goes for somebody of a source that has as much. */
static bool leaving_is_fair(
	const struct door *d, const struct door_guest *g, const struct source *s)
{
	if (g->proven || g->from == s || g->from->nr_inside > s->nr_inside)
		return true;
	return s->own && !g->from->own && d->nr_inside[OWN] < kept_inside(d);
}

static bool goes_before(const struct door_guest *a, const struct door_guest *b, uint64_t now)
{
	unsigned ready_a = readiness_to_go(a, now), ready_b = readiness_to_go(b, now);

	if (ready_a != ready_b)
		return ready_a > ready_b;
	if (a->from->nr_inside != b->from->nr_inside)
		return a->from->nr_inside > b->from->nr_inside;
	return a->since_ms < b->since_ms;
}

bool door_serve_entered(struct door *d)
{
	bool some = d->unserved;

	d->unserved = false;
	if (some)
		d->o.entered(d->o.ctx);
	return some;
}

bool door_make_place(struct door *d, const struct source *s)
{
	enum shortage what;

	while ((what = shortage_for(d, s)) != NONE) {
		struct door_guest *g, *out = NULL;
		uint64_t now = loop_monotonic_ms();

		if (door_serve_entered(d)) /* one that has just come in may have left already */
			continue;
		TAILQ_FOREACH(g, &d->inside, in)
		if (leaving_would_help(d, g, s, what) && leaving_is_fair(d, g, s) &&
			readiness_to_go(g, now) && (!out || goes_before(g, out, now)))
			out = g;
		if (!out)
			return false;
		d->nr_crowded++;
		door_send_away(out);
	}
	return true;
}
