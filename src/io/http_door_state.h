#ifndef NUMAFIT_IO_HTTP_DOOR_STATE_H
#define NUMAFIT_IO_HTTP_DOOR_STATE_H

#include <io/http_door.h>

#include <sys/queue.h>

/* The state of a door, which its files share: http_door.c lets connections in and ends those that
 * are late, http_door_room.c decides which one goes for which, http_door_guests.c keeps the lists
 * and numbers. */

enum { SOURCES = 1024 /* chains */ };
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
	int front; /* an epoll of the silent ones */
	struct fd_poll *listener, *front_poll;
	struct loop_timer *again, *accept_again, *tick;
	bool ticks, unserved; /* some have entered since entered() */
	bool newest;          /* it is the turn of the newest, not of the oldest */
	LIST_HEAD(, source) source[SOURCES];
	struct turns turns[NR_CLASSES];           /* sources with a guest that is ready */
	struct guests silent[NR_CLASSES], inside; /* the oldest first */
	unsigned nr_waiting[NR_CLASSES], nr_inside[NR_CLASSES], nr_starting;
	uint64_t nr_crowded, nr_slow;
	unsigned nr_come;
};

/* The source of that address; a new one has no guests, and must get one at once. */
struct source *door_source_of(struct door *d, const struct sockaddr *address);
/* Remove it from the lists and numbers of where it is; g->where stays. */
void door_take_out(struct door_guest *g);
/* One that is in no list. Its source goes with its last guest. */
void door_guest_free(struct door_guest *g);
/* Close its connection. One that is inside stays, as THROWN, until door_left(); any other is freed.
 */
void door_send_away(struct door_guest *g);
/* From the silent guests of the front to the ready ones. */
void door_make_ready(struct door_guest *g);
/* Add by, 1 or -1, to the numbers of those inside in which g counts as it is now. */
void door_count_inside(struct door_guest *g, int by);

/* The guest in front that goes for another one of that source; NULL: none needs to go, or, with
 * *full, none can. */
struct door_guest *door_in_the_way(const struct door *d, const struct source *s, bool *full);
/* Whether one more of that source may come in; guests inside may have been sent away for it. */
bool door_make_place(struct door *d, const struct source *s);
/* Have those served that have entered; false: there were none. */
bool door_serve_entered(struct door *d);

#endif
