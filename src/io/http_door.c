#include <io/http_door_state.h>

#include <io/fd_poll.h>
#include <numafit/mem.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	ACCEPTS = 256, /* in one turn of the loop, so that others of it have theirs */
	ENTERS = 32,
	HANDSHAKES = 8, /* the same, where each costs one: those inside have their turn between */
	EVENTS = 256,
	PEEK_BYTES = 8 << 10, /* of a head: a longer one is judged inside */
	RECORD_HEAD = 5,      /* of TLS: type, version, length */
	RECORD_HANDSHAKE = 22,
	RETRY_MS = 50,
	NO_DESCRIPTOR_MS = 100,
	TICK_MS = 50,
	TICKS = 4 /* within the shortest limit */
};

/* What it has sent so far */

static bool has_record(const unsigned char *data, size_t len)
{
	enum { HIGH = 3, LOW = 4, OCTET = 8 };

	return len >= RECORD_HEAD && len - RECORD_HEAD >= ((size_t)data[HIGH] << OCTET | data[LOW]);
}

/* Whether it is there still: one that has gone, or does not speak TLS where that is spoken, is
 * sent away. */
static bool door_look_at_guest(struct door_guest *g, bool over)
{
	char data[PEEK_BYTES];
	ssize_t n = recv(g->fd, data, sizeof data, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR) && !over)
		return true;
	if (n <= 0 || (g->d->o.tls && data[0] != RECORD_HANDSHAKE)) {
		door_send_away(g);
		return false;
	}
	bool whole = g->d->o.tls ? has_record((unsigned char *)data, (size_t)n)
				 : memmem(data, (size_t)n, "\n\r\n", 3) ||
					   memmem(data, (size_t)n, "\n\n", 2);
	if (whole || (size_t)n == sizeof data) {
		door_make_ready(g);
		return true;
	}
	if (over)
		door_send_away(g);
	return !over;
}

static void door_watch_guest(struct door_guest *g)
{
	/* edges: what is there already, and not enough, is no news */
	struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = g};

	g->watched = epoll_ctl(g->d->front, EPOLL_CTL_ADD, g->fd, &e) == 0;
	if (!g->watched)
		door_send_away(g);
}

/* In */

static void door_let_in(struct door *d, struct door_guest *g)
{
	struct source *s = g->from;
	struct guests *ready = &s->ready;

	door_take_out(g);
	if (!TAILQ_EMPTY(ready)) { /* others of it have their turn behind other sources */
		TAILQ_REMOVE(&d->turns[s->own], s, turn);
		TAILQ_INSERT_TAIL(&d->turns[s->own], s, turn);
	}
	g->where = INSIDE;
	g->since_ms += loop_monotonic_ms() - g->ready_ms; /* the time that we took is not its own */
	d->unserved = true;
	TAILQ_INSERT_TAIL(&d->inside, g, in);
	door_count_inside(g, 1);
	if (d->o.enter(d->o.ctx, g, g->fd, (const struct sockaddr *)&g->address, g->len))
		return;
	door_take_out(g);
	door_guest_free(g);
}

/* The next of that class, by turns; false: there is none, or no place for it. */
static bool door_let_one_in(struct door *d, unsigned class)
{
	struct source *s;

	TAILQ_FOREACH(s, &d->turns[class], turn)
	if (door_make_place(d, s)) {
		/* with more of a source than can be served, the oldest alone would all be
		 * too late */
		d->newest = !d->newest;
		door_let_in(d, d->newest ? TAILQ_LAST(&s->ready, guests) : TAILQ_FIRST(&s->ready));
		return true;
	}
	return false;
}

static void door_let_some_in(void *ctx)
{
	struct door *d = ctx;
	unsigned nr = 0, most = d->o.tls ? HANDSHAKES : ENTERS;
	bool more = true;

	while (more && nr < most) {
		more = false;
		for (unsigned class = 0; class < NR_CLASSES; class ++)
			if (door_let_one_in(d, class)) {
				more = true;
				nr++;
			}
	}
	(void)door_serve_entered(d);
	if (!TAILQ_EMPTY(&d->turns[OWN]) || !TAILQ_EMPTY(&d->turns[OTHERS]))
		loop_timer_set(d->again, nr ? 0 : RETRY_MS);
}

/* A place may be free by now; in a turn of its own. */
static void door_look_again(struct door *d)
{
	if (!TAILQ_EMPTY(&d->turns[OWN]) || !TAILQ_EMPTY(&d->turns[OTHERS]))
		loop_timer_set(d->again, 0);
}

/* Coming */

/* Up to a quarter of its time: of many that came at once not all go at once, to come again so. */
static unsigned door_next_early_ms(struct door *d)
{
	enum { PART = 4, STEP = 37 };
	unsigned most = d->o.limit_ms[DOOR_STARTS] / PART;

	d->nr_come++;
	return most ? d->nr_come * STEP % most : 0;
}

static void door_start_ticking(struct door *d)
{
	unsigned shortest = TICK_MS * TICKS;

	for (unsigned i = 0; i < NR_DOOR_STATES; i++)
		if (d->o.limit_ms[i] && d->o.limit_ms[i] < shortest)
			shortest = d->o.limit_ms[i];
	if (!d->ticks)
		loop_timer_set(d->tick, shortest / TICKS);
	d->ticks = true;
}

static void door_take_newcomer(
	struct door *d, int fd, const struct sockaddr_storage *address, socklen_t len)
{
	struct source *s = door_source_of(d, (const struct sockaddr *)address);
	struct door_guest *out, *g = xcalloc(1, sizeof *g);
	bool full;

	s->nr++;
	*g = (struct door_guest){
		.d = d, .from = s, .fd = fd, .len = len, .since_ms = loop_monotonic_ms()};
	g->early_ms = door_next_early_ms(d);
	memcpy(&g->address, address, len);
	out = door_in_the_way(d, s, &full);
	if (full)
		d->nr_crowded++;
	if (out)
		door_send_away(out);
	d->nr_waiting[s->own]++;
	s->nr_waiting++;
	TAILQ_INSERT_TAIL(&d->silent[s->own], g, in);
	TAILQ_INSERT_TAIL(&s->silent, g, of);
	door_start_ticking(d);
	if (full && !out) /* all are ready to come in, and it is the newest */
		door_send_away(g);
	else if (door_look_at_guest(g, false) && g->where == SILENT)
		door_watch_guest(g);
}

/* For a descriptor. */
static bool door_send_oldest_away(struct door *d)
{
	struct door_guest *out = TAILQ_FIRST(&d->silent[OTHERS]);

	if (!out)
		out = TAILQ_FIRST(&d->silent[OWN]);
	if (!out)
		return false;
	d->nr_crowded++;
	door_send_away(out);
	return true;
}

/* False: nobody is there, or cannot be taken now. */
static bool door_accept_one(struct door *d)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof address;
	int fd = accept4(d->o.fd, (struct sockaddr *)&address, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		door_take_newcomer(d, fd, &address, len);
		return true;
	}
	if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
		return errno == ECONNABORTED || errno == EINTR;
	if (door_send_oldest_away(d))
		return true;
	fd_poll_stop(d->listener); /* it stays readable: the loop would do nothing else */
	loop_timer_set(d->accept_again, NO_DESCRIPTOR_MS);
	return false;
}

/* As many as there are: those behind a full backlog would not even reach us. */
static void door_on_listener(void *ctx)
{
	struct door *d = ctx;

	for (unsigned i = 0; i < ACCEPTS && door_accept_one(d); i++)
		;
	door_let_some_in(d);
}

static void door_accept_again(void *ctx)
{
	const struct door *d = ctx;

	if (d->listener)
		fd_poll_start(d->listener);
}

static void door_on_front(void *ctx)
{
	struct epoll_event e[EVENTS];
	struct door *d = ctx;
	int nr = epoll_wait(d->front, e, EVENTS, 0);

	for (int i = 0; i < nr; i++)
		(void)door_look_at_guest(
			e[i].data.ptr, e[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
	door_let_some_in(d);
}

/* Time */

static bool is_late(const struct door_guest *g, enum door_state as, uint64_t now)
{
	unsigned limit_ms = g->d->o.limit_ms[as];

	return limit_ms && now - g->since_ms > limit_ms;
}

static void door_end_late(struct door_guest *g)
{
	g->d->nr_slow++;
	door_send_away(g);
}

static void door_end_late_in_front(struct door *d, unsigned class, uint64_t now)
{
	unsigned limit_ms = d->o.limit_ms[DOOR_STARTS];
	struct door_guest *g, *next_guest;
	struct source *s, *next;

	for (g = TAILQ_FIRST(&d->silent[class]); g && now - g->since_ms > limit_ms / 2;
		g = next_guest) {
		next_guest = TAILQ_NEXT(g, in);
		if (is_late(g, DOOR_STARTS, now + g->early_ms))
			door_end_late(g);
	}
	for (s = TAILQ_FIRST(&d->turns[class]); s; s = next) {
		next = TAILQ_NEXT(s, turn);
		for (g = TAILQ_FIRST(&s->ready); g && is_late(g, DOOR_IDLES, now); g = next_guest) {
			next_guest = TAILQ_NEXT(g, of);
			door_end_late(g); /* s goes with the last one, whose next is NULL */
		}
	}
}

static void door_tick(void *ctx)
{
	struct door *d = ctx;
	struct door_guest *g, *next;
	uint64_t now = loop_monotonic_ms();

	for (unsigned class = 0; class < NR_CLASSES; class ++)
		door_end_late_in_front(d, class, now);
	for (g = TAILQ_FIRST(&d->inside); g; g = next) {
		next = TAILQ_NEXT(g, in);
		if (is_late(g, g->state, now))
			door_end_late(g);
	}
	d->ticks = false;
	if (d->nr_waiting[OWN] + d->nr_waiting[OTHERS] || !TAILQ_EMPTY(&d->inside))
		door_start_ticking(d);
}

/* Of those inside */

void door_set(struct door_guest *g, enum door_state state)
{
	if (g->where == INSIDE)
		door_count_inside(g, -1);
	g->state = state;
	g->since_ms = loop_monotonic_ms();
	if (g->where == INSIDE)
		door_count_inside(g, 1);
	door_look_again(g->d);
}

void door_prove(struct door_guest *g)
{
	if (g->where == INSIDE)
		door_count_inside(g, -1);
	g->proven = true;
	if (g->where == INSIDE)
		door_count_inside(g, 1);
}

void door_left(struct door_guest *g)
{
	struct door *d = g->d;

	door_take_out(g);
	door_guest_free(g);
	door_look_again(d);
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
	d->again = loop_timer_new(l, door_let_some_in, d);
	d->accept_again = loop_timer_new(l, door_accept_again, d);
	d->tick = loop_timer_new(l, door_tick, d);
	d->listener = fd_poll_new(l, o->fd, FD_READABLE, door_on_listener, d);
	d->front_poll =
		d->front < 0 ? NULL : fd_poll_new(l, d->front, FD_READABLE, door_on_front, d);
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
			door_send_away(TAILQ_FIRST(&d->silent[class]));
		while ((s = TAILQ_FIRST(&d->turns[class])))
			door_send_away(TAILQ_FIRST(&s->ready));
	}
	fd_poll_close(d->front_poll);
	(void)close(d->front);
	loop_timer_close(d->again);
	loop_timer_close(d->accept_again);
	loop_timer_close(d->tick);
	free(d);
}
