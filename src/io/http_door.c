#include <io/http_door.h>

#include <io/fd_poll.h>
#include <numafit/mem.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <unistd.h>

enum {
	ACCEPTS = 256, /* in one turn of the loop, so that others of it have theirs */
	ENTERS = 32,
	HANDSHAKES = 8, /* the same, where each costs one: those inside have their turn between */
	EVENTS = 256,
	PEEK_BYTES = 8 << 10, /* of a head: a longer one is judged inside */
	RECORD_HEAD = 5,      /* of TLS: type, version, length */
	RECORD_HANDSHAKE = 22,
	SOURCES = 1024, /* chains */
	PREFIX_BYTES = 8,
	RETRY_MS = 50,
	NO_DESCRIPTOR_MS = 100,
	GRACE_MS = 50,  /* that a body or an answer has before it makes room */
	TURN_MS = 2000, /* the same of a guest that has proven who it is */
	TICK_MS = 50,
	TICKS = 4 /* within the shortest limit */
};
enum { OTHERS, OWN, NR_CLASSES };

TAILQ_HEAD(guests, door_guest);
TAILQ_HEAD(turns, source);

/* All connections of one address, or network. */
struct source {
	LIST_ENTRY(source) chain;
	TAILQ_ENTRY(source) turn; /* of those with somebody ready */
	struct in6_addr key;
	bool own;
	unsigned nr, nr_waiting, nr_inside; /* of all; in front; inside without a proof */
	struct guests silent, ready;
};

struct door_guest {
	TAILQ_ENTRY(door_guest) in; /* of the door: in front and silent, or inside */
	TAILQ_ENTRY(door_guest) of; /* of its source, in front */
	struct door *d;
	struct source *from;
	enum { SILENT, READY, INSIDE, THROWN } where;
	enum door_state state;
	bool proven, watched;
	int fd;
	socklen_t len;
	struct sockaddr_storage address;
	uint64_t since_ms, ready_ms;
	unsigned early_ms; /* it goes before its time in front is over */
};

struct door {
	struct door_options o;
	struct loop *loop;
	int front; /* an epoll of those who are silent */
	struct fd_poll *listener, *front_poll;
	struct loop_timer *again, *accept_again, *tick;
	bool ticks, unserved; /* some have entered since entered() */
	bool newest;          /* it is the turn of the newest, not of the oldest */
	LIST_HEAD(, source) source[SOURCES];
	struct turns turns[NR_CLASSES];           /* who has somebody ready */
	struct guests silent[NR_CLASSES], inside; /* the oldest first */
	unsigned nr_waiting[NR_CLASSES], nr_inside[NR_CLASSES], nr_starting;
	uint64_t nr_crowded, nr_slow;
	unsigned nr_come;
};

static uint64_t now_ms(void)
{
	enum { NS_PER_MS = 1000000 };

	return loop_monotonic_ns() / NS_PER_MS;
}

/* Sources */

/* Whoever has one IPv6 address has a network of them. */
static struct in6_addr key_of(const struct sockaddr *address)
{
	struct in6_addr a = address_of(address);

	if (!IN6_IS_ADDR_V4MAPPED(&a) && !IN6_IS_ADDR_LOOPBACK(&a))
		memset(a.s6_addr + PREFIX_BYTES, 0, sizeof a - PREFIX_BYTES);
	return a;
}

static unsigned chain_of(const struct in6_addr *key)
{
	const unsigned factor = 31;
	unsigned hash = 0;

	for (size_t i = 0; i < sizeof key->s6_addr; i++)
		hash = hash * factor + key->s6_addr[i];
	return hash % SOURCES;
}

static struct source *source_of(struct door *d, const struct sockaddr *address)
{
	struct in6_addr key = key_of(address);
	bool own = d->o.is_own(d->o.ctx, address);
	unsigned chain = chain_of(&key);
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

static void count_inside(struct door_guest *g, int by)
{
	struct door *d = g->d;

	d->nr_inside[g->from->own] += (unsigned)by;
	if (!g->proven)
		g->from->nr_inside += (unsigned)by;
	if (g->state == DOOR_STARTS)
		d->nr_starting += (unsigned)by;
}

/* Out of where it is, as far as lists and numbers go. */
static void take_out(struct door_guest *g)
{
	struct source *s = g->from;
	struct door *d = g->d;

	if (g->where == INSIDE) {
		TAILQ_REMOVE(&d->inside, g, in);
		count_inside(g, -1);
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

static void guest_free(struct door_guest *g)
{
	source_drop(g->from);
	free(g);
}

/* Without a last word, which would occupy the port for a minute. */
static void forget_unsent(int fd)
{
	const struct linger none = {.l_onoff = 1};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

static void send_away(struct door_guest *g)
{
	take_out(g);
	forget_unsent(g->fd);
	if (g->where == INSIDE) { /* whoever serves it will see, and say door_left() */
		g->where = THROWN;
		(void)shutdown(g->fd, SHUT_RDWR);
		return;
	}
	(void)close(g->fd);
	guest_free(g);
}

static void make_ready(struct door_guest *g)
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
	g->ready_ms = now_ms();
}

/* What it has sent so far */

static bool has_head(const char *data, size_t len)
{
	return memmem(data, len, "\n\r\n", 3) || memmem(data, len, "\n\n", 2);
}

static bool has_record(const unsigned char *data, size_t len)
{
	enum { HIGH = 3, LOW = 4, OCTET = 8 };

	return len >= RECORD_HEAD && len - RECORD_HEAD >= ((size_t)data[HIGH] << OCTET | data[LOW]);
}

/* Whether it is there still: one that has gone, or does not speak TLS where that is spoken, is
 * sent away. */
static bool look_at(struct door_guest *g, bool over)
{
	char data[PEEK_BYTES];
	ssize_t n = recv(g->fd, data, sizeof data, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR) && !over)
		return true;
	if (n <= 0 || (g->d->o.tls && data[0] != RECORD_HANDSHAKE)) {
		send_away(g);
		return false;
	}
	if ((size_t)n == sizeof data || (g->d->o.tls ? has_record((unsigned char *)data, (size_t)n)
						     : has_head(data, (size_t)n))) {
		make_ready(g);
		return true;
	}
	if (over)
		send_away(g);
	return !over;
}

static void watch(struct door_guest *g)
{
	/* edges: what is there already, and not enough, is no news */
	struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = g};

	g->watched = epoll_ctl(g->d->front, EPOLL_CTL_ADD, g->fd, &e) == 0;
	if (!g->watched)
		send_away(g);
}

/* Room */

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

/* The guest in front that goes for another one of that source; NULL: none need, or none can. */
static struct door_guest *in_the_way(const struct door *d, const struct source *s, bool *full)
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

static bool would_help(const struct door *d, const struct door_guest *g, const struct source *s,
	enum shortage what)
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
static bool is_fair(const struct door *d, const struct door_guest *g, const struct source *s)
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

static bool serve_entered(struct door *d)
{
	bool some = d->unserved;

	d->unserved = false;
	if (some)
		d->o.entered(d->o.ctx);
	return some;
}

/* Whether one more of that source may come in. Who came in just now may be through already. */
static bool make_place(struct door *d, const struct source *s)
{
	enum shortage what;

	while ((what = shortage_for(d, s)) != NONE) {
		struct door_guest *g, *out = NULL;
		uint64_t now = now_ms();

		if (serve_entered(d))
			continue;
		TAILQ_FOREACH(g, &d->inside, in)
		if (would_help(d, g, s, what) && is_fair(d, g, s) && readiness_to_go(g, now) &&
			(!out || goes_before(g, out, now)))
			out = g;
		if (!out)
			return false;
		d->nr_crowded++;
		send_away(out);
	}
	return true;
}

/* In */

static void let_in(struct door *d, struct door_guest *g)
{
	struct source *s = g->from;
	struct guests *ready = &s->ready;

	take_out(g);
	if (!TAILQ_EMPTY(ready)) { /* others of it have their turn behind other sources */
		TAILQ_REMOVE(&d->turns[s->own], s, turn);
		TAILQ_INSERT_TAIL(&d->turns[s->own], s, turn);
	}
	g->where = INSIDE;
	g->since_ms += now_ms() - g->ready_ms; /* the time that we took is not its own */
	d->unserved = true;
	TAILQ_INSERT_TAIL(&d->inside, g, in);
	count_inside(g, 1);
	if (d->o.enter(d->o.ctx, g, g->fd, (const struct sockaddr *)&g->address, g->len))
		return;
	take_out(g);
	guest_free(g);
}

/* The next of that class, by turns; false: there is none, or no place for it. */
static bool let_one_in(struct door *d, unsigned class)
{
	struct source *s;

	TAILQ_FOREACH(s, &d->turns[class], turn)
	if (make_place(d, s)) {
		/* with more of a source than can be served, the oldest alone would all be
		 * too late */
		d->newest = !d->newest;
		let_in(d, d->newest ? TAILQ_LAST(&s->ready, guests) : TAILQ_FIRST(&s->ready));
		return true;
	}
	return false;
}

static void let_some_in(void *ctx)
{
	struct door *d = ctx;
	unsigned nr = 0, most = d->o.tls ? HANDSHAKES : ENTERS;
	bool more = true;

	while (more && nr < most) {
		more = false;
		for (unsigned class = 0; class < NR_CLASSES; class ++)
			if (let_one_in(d, class)) {
				more = true;
				nr++;
			}
	}
	(void)serve_entered(d);
	if (!TAILQ_EMPTY(&d->turns[OWN]) || !TAILQ_EMPTY(&d->turns[OTHERS]))
		loop_timer_set(d->again, nr ? 0 : RETRY_MS);
}

/* A place may be free by now; in a turn of its own. */
static void look_again(struct door *d)
{
	if (!TAILQ_EMPTY(&d->turns[OWN]) || !TAILQ_EMPTY(&d->turns[OTHERS]))
		loop_timer_set(d->again, 0);
}

/* Coming */

/* Up to a quarter of its time: of many that came at once not all go at once, to come again so. */
static unsigned next_early_ms(struct door *d)
{
	enum { PART = 4, STEP = 37 };
	unsigned most = d->o.limit_ms[DOOR_STARTS] / PART;

	d->nr_come++;
	return most ? d->nr_come * STEP % most : 0;
}

static unsigned shortest_limit(const struct door *d)
{
	unsigned shortest = TICK_MS * TICKS;

	for (unsigned i = 0; i < NR_DOOR_STATES; i++)
		if (d->o.limit_ms[i] && d->o.limit_ms[i] < shortest)
			shortest = d->o.limit_ms[i];
	return shortest;
}

static void start_ticking(struct door *d)
{
	if (!d->ticks)
		loop_timer_set(d->tick, shortest_limit(d) / TICKS);
	d->ticks = true;
}

static void come(struct door *d, int fd, const struct sockaddr_storage *address, socklen_t len)
{
	struct source *s = source_of(d, (const struct sockaddr *)address);
	struct door_guest *out, *g = xcalloc(1, sizeof *g);
	bool full;

	s->nr++;
	*g = (struct door_guest){.d = d, .from = s, .fd = fd, .len = len, .since_ms = now_ms()};
	g->early_ms = next_early_ms(d);
	memcpy(&g->address, address, len);
	out = in_the_way(d, s, &full);
	if (full)
		d->nr_crowded++;
	if (out)
		send_away(out);
	d->nr_waiting[s->own]++;
	s->nr_waiting++;
	TAILQ_INSERT_TAIL(&d->silent[s->own], g, in);
	TAILQ_INSERT_TAIL(&s->silent, g, of);
	start_ticking(d);
	if (full && !out) /* all are ready to come in, and it is the newest */
		send_away(g);
	else if (look_at(g, false) && g->where == SILENT)
		watch(g);
}

/* For a descriptor. */
static bool send_oldest_away(struct door *d)
{
	struct door_guest *out = TAILQ_FIRST(&d->silent[OTHERS]);

	if (!out)
		out = TAILQ_FIRST(&d->silent[OWN]);
	if (!out)
		return false;
	d->nr_crowded++;
	send_away(out);
	return true;
}

static bool is_short(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

/* False: nobody is there, or cannot be taken now. */
static bool accept_one(struct door *d)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof address;
	int fd = accept4(d->o.fd, (struct sockaddr *)&address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		come(d, fd, &address, len);
		return true;
	}
	if (!is_short(errno))
		return errno == ECONNABORTED || errno == EINTR;
	if (send_oldest_away(d))
		return true;
	fd_poll_stop(d->listener); /* it stays readable: the loop would do nothing else */
	loop_timer_set(d->accept_again, NO_DESCRIPTOR_MS);
	return false;
}

/* As many as there are: those behind a full backlog would not even reach us. */
static void on_listener(void *ctx)
{
	struct door *d = ctx;

	for (unsigned i = 0; i < ACCEPTS && accept_one(d); i++)
		;
	let_some_in(d);
}

static void accept_again(void *ctx)
{
	const struct door *d = ctx;

	if (d->listener)
		fd_poll_start(d->listener);
}

static void on_front(void *ctx)
{
	struct epoll_event e[EVENTS];
	struct door *d = ctx;
	int nr = epoll_wait(d->front, e, EVENTS, 0);

	for (int i = 0; i < nr; i++)
		(void)look_at(e[i].data.ptr, e[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
	let_some_in(d);
}

/* Time */

static bool is_late(const struct door_guest *g, enum door_state as, uint64_t now)
{
	unsigned limit_ms = g->d->o.limit_ms[as];

	return limit_ms && now - g->since_ms > limit_ms;
}

static bool is_late_in_front(const struct door_guest *g, uint64_t now)
{
	return is_late(g, DOOR_STARTS, now + g->early_ms);
}

static void end_late(struct door_guest *g)
{
	g->d->nr_slow++;
	send_away(g);
}

static void end_late_in_front(struct door *d, unsigned class, uint64_t now)
{
	unsigned limit_ms = d->o.limit_ms[DOOR_STARTS];
	struct door_guest *g, *next_guest;
	struct source *s, *next;

	for (g = TAILQ_FIRST(&d->silent[class]); g && now - g->since_ms > limit_ms / 2;
		g = next_guest) {
		next_guest = TAILQ_NEXT(g, in);
		if (is_late_in_front(g, now))
			end_late(g);
	}
	for (s = TAILQ_FIRST(&d->turns[class]); s; s = next) {
		next = TAILQ_NEXT(s, turn);
		for (g = TAILQ_FIRST(&s->ready); g && is_late(g, DOOR_IDLES, now); g = next_guest) {
			next_guest = TAILQ_NEXT(g, of);
			end_late(g); /* s goes with the last one, whose next is NULL */
		}
	}
}

static void tick(void *ctx)
{
	struct door *d = ctx;
	struct door_guest *g, *next;
	uint64_t now = now_ms();

	for (unsigned class = 0; class < NR_CLASSES; class ++)
		end_late_in_front(d, class, now);
	for (g = TAILQ_FIRST(&d->inside); g; g = next) {
		next = TAILQ_NEXT(g, in);
		if (is_late(g, g->state, now))
			end_late(g);
	}
	d->ticks = false;
	if (d->nr_waiting[OWN] + d->nr_waiting[OTHERS] || !TAILQ_EMPTY(&d->inside))
		start_ticking(d);
}

/* Of those inside */

void door_set(struct door_guest *g, enum door_state state)
{
	if (g->where == INSIDE)
		count_inside(g, -1);
	g->state = state;
	g->since_ms = now_ms();
	if (g->where == INSIDE)
		count_inside(g, 1);
	look_again(g->d);
}

enum door_state door_get(const struct door_guest *g)
{
	return g->state;
}

void door_prove(struct door_guest *g)
{
	if (g->where == INSIDE)
		count_inside(g, -1);
	g->proven = true;
	if (g->where == INSIDE)
		count_inside(g, 1);
}

void door_left(struct door_guest *g)
{
	struct door *d = g->d;

	take_out(g);
	guest_free(g);
	look_again(d);
}

bool door_is_busy(const struct door *d)
{
	const struct door_guest *g;

	TAILQ_FOREACH(g, &d->inside, in)
	if (g->state == DOOR_ASKS || g->state == DOOR_READS)
		return true;
	return false;
}

uint64_t door_count_crowded(const struct door *d)
{
	return d->nr_crowded;
}

uint64_t door_count_slow(const struct door *d)
{
	return d->nr_slow;
}

/* Building */

struct door *door_new(struct loop *l, const struct door_options *o)
{
	struct door *d = xcalloc(1, sizeof *d);

	d->o = *o;
	d->loop = l;
	for (unsigned class = 0; class < NR_CLASSES; class ++) {
		TAILQ_INIT(&d->silent[class]);
		TAILQ_INIT(&d->turns[class]);
	}
	TAILQ_INIT(&d->inside);
	d->front = epoll_create1(EPOLL_CLOEXEC);
	d->again = loop_timer_new(l, let_some_in, d);
	d->accept_again = loop_timer_new(l, accept_again, d);
	d->tick = loop_timer_new(l, tick, d);
	d->listener = fd_poll_new(l, o->fd, FD_READABLE, on_listener, d);
	d->front_poll = d->front < 0 ? NULL : fd_poll_new(l, d->front, FD_READABLE, on_front, d);
	if (!d->listener || !d->front_poll)
		abort(); /* as where there is no memory */
	return d;
}

void door_close(struct door *d)
{
	if (!d->listener)
		return;
	fd_poll_close(steal(d->listener));
	(void)close(d->o.fd);
	loop_timer_stop(d->accept_again);
}

void door_free(struct door *d)
{
	struct source *s;

	if (!d)
		return;
	door_close(d);
	for (unsigned class = 0; class < NR_CLASSES; class ++) {
		while (!TAILQ_EMPTY(&d->silent[class]))
			send_away(TAILQ_FIRST(&d->silent[class]));
		while ((s = TAILQ_FIRST(&d->turns[class])))
			send_away(TAILQ_FIRST(&s->ready));
	}
	fd_poll_close(d->front_poll);
	(void)close(d->front);
	loop_timer_close(d->again);
	loop_timer_close(d->accept_again);
	loop_timer_close(d->tick);
	free(d);
}
