#include <io/http_door_state.h>

#include <numafit/mem.h>

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { PREFIX_BYTES = 8 };

/* Sources */

/* The owner of one IPv6 address has a network of them. */
static struct in6_addr source_key_of(const struct sockaddr *address)
{
	struct in6_addr a = address_of(address);

	if (!IN6_IS_ADDR_V4MAPPED(&a) && !IN6_IS_ADDR_LOOPBACK(&a))
		memset(a.s6_addr + PREFIX_BYTES, 0, sizeof a - PREFIX_BYTES);
	return a;
}

static unsigned source_chain_of(const struct in6_addr *key)
{
	const unsigned factor = 31;
	unsigned hash = 0;

	for (size_t i = 0; i < sizeof key->s6_addr; i++)
		hash = hash * factor + key->s6_addr[i];
	return hash % SOURCES;
}

struct source *door_source_of(struct door *d, const struct sockaddr *address)
{
	struct in6_addr key = source_key_of(address);
	bool own = d->o.is_own(d->o.ctx, address);
	unsigned chain = source_chain_of(&key);
	struct source *s;

	LIST_FOREACH(s, &d->source[chain], chain)
	if (s->own == own && memcmp(&s->key, &key, sizeof key) == 0)
		return s;
	s = xcalloc(1, sizeof *s);
	s->key = key;
	s->own = own;
	TAILQ_INIT(&s->silent);
	TAILQ_INIT(&s->ready);
	LIST_INSERT_HEAD(&d->source[chain], s, chain);
	return s;
}

static void source_drop(struct source *s)
{
	if (--s->nr)
		return;
	LIST_REMOVE(s, chain);
	free(s);
}

/* Guests */

static void unwatch(struct door_guest *g)
{
	if (g->watched)
		(void)epoll_ctl(g->d->front, EPOLL_CTL_DEL, g->fd, NULL);
	g->watched = false;
}

void door_count_inside(struct door_guest *g, int by)
{
	struct door *d = g->d;

	d->nr_inside[g->from->own] += (unsigned)by;
	if (!g->proven)
		g->from->nr_inside += (unsigned)by;
	if (g->state == DOOR_STARTS)
		d->nr_starting += (unsigned)by;
}

void door_take_out(struct door_guest *g)
{
	struct source *s = g->from;
	struct door *d = g->d;

	if (g->where == INSIDE) {
		TAILQ_REMOVE(&d->inside, g, in);
		door_count_inside(g, -1);
	} else if (g->where != THROWN) {
		unwatch(g);
		d->nr_waiting[s->own]--;
		s->nr_waiting--;
		if (g->where == SILENT) {
			TAILQ_REMOVE(&d->silent[s->own], g, in);
			TAILQ_REMOVE(&s->silent, g, of);
		} else {
			TAILQ_REMOVE(&s->ready, g, of);
			if (TAILQ_EMPTY(&s->ready))
				TAILQ_REMOVE(&d->turns[s->own], s, turn);
		}
	}
}

void door_guest_free(struct door_guest *g)
{
	source_drop(g->from);
	free(g);
}

void door_send_away(struct door_guest *g)
{
	/* without a last word, which would occupy the port for a minute */
	const struct linger none = {.l_onoff = 1};

	door_take_out(g);
	(void)setsockopt(g->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
	if (g->where == INSIDE) { /* its server will see, and say door_left() */
		g->where = THROWN;
		(void)shutdown(g->fd, SHUT_RDWR);
		return;
	}
	(void)close(g->fd);
	door_guest_free(g);
}

void door_make_ready(struct door_guest *g)
{
	struct source *s = g->from;
	struct door *d = g->d;

	unwatch(g);
	TAILQ_REMOVE(&d->silent[s->own], g, in);
	TAILQ_REMOVE(&s->silent, g, of);
	if (TAILQ_EMPTY(&s->ready))
		TAILQ_INSERT_TAIL(&d->turns[s->own], s, turn);
	TAILQ_INSERT_TAIL(&s->ready, g, of);
	g->where = READY;
	g->ready_ms = loop_monotonic_ms();
}
