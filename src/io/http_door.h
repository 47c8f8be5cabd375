#ifndef NUMAFIT_IO_HTTP_DOOR_H
#define NUMAFIT_IO_HTTP_DOOR_H

#include <io/loop.h>
#include <io/own_address.h>

/* The door of an HTTP server: it accepts every connection at once, keeps each in front until there
 * is something to serve (the head of a request, the first record of a TLS handshake), and lets it
 * in when there is a place inside. A guest in front costs a descriptor and a few hundred bytes.
 *
 * Room is made at once, and fairly:
 * - A source (an IPv4 address, an IPv6 network of 64 bits) has half of the front, and half of the
 *   places inside, at most; but for this host's own addresses, and for guests that have proven
 *   their identity.
 * - An eighth of the front and a quarter of the places are for this host's own addresses alone.
 * - In front the oldest silent guest goes for the newest.
 * - Inside a guest in a handshake goes first (they have half of the places at most), then one that
 *   is idle, then a slow one; of these one of the source with the most, the oldest first. A guest
 *   that has proven its identity, and one that waits for the server's answer, is not sent away
 *   for a newcomer, unless it is idle or slow for 2 s; then the newcomer waits in front.
 * - Sources come in one after another, and of each the newest and the oldest. */
struct door;
struct door_guest; /* a connection, from its accept to its end */

/* What a guest inside is doing; each has its limit of time. */
enum door_state {
	DOOR_STARTS, /* handshake, head of the first request */
	DOOR_IDLES,  /* after an answer, or with a certificate, before the next request */
	DOOR_ASKS,   /* a body comes */
	DOOR_WAITS,  /* for the server's answer: not its fault, and without a limit */
	DOOR_READS,  /* its answer goes */
	NR_DOOR_STATES
};

struct door_options {
	int fd;   /* that listens, without blocking; the door closes it */
	bool tls; /* connections begin with a TLS record */
	unsigned inside_max, waiting_max;
	/* For a guest in front from its accept, and for each state from its begin; 0: none. In
	 * front, with something to serve, DOOR_IDLES counts. */
	unsigned limit_ms[NR_DOOR_STATES];
	void *ctx;
	/* mandatory: whether a part of the places is kept for that address */
	bool (*is_own)(void *ctx, const struct sockaddr *address);
	/* mandatory: serve that connection, which is the callee's from here on, up to
	 * door_left(g), which may come within this call. False: it is closed already, and nobody
	 * calls door_left(g). */
	bool (*enter)(void *ctx, struct door_guest *g, int fd, const struct sockaddr *address,
		socklen_t len);
	/* mandatory: some have entered, in this turn */
	void (*entered)(void *ctx);
};

/* *o is copied. */
struct door *door_new(struct loop *l, const struct door_options *o);
/* The guests in front are sent away; all those inside have left before. NULL is fine. */
void door_free(struct door *d);
/* No more connections. */
void door_close(struct door *d);

/* It begins to do that. */
void door_set(struct door_guest *g, enum door_state state);
/* It has shown a certificate. */
void door_prove(struct door_guest *g);
/* Its connection is closed; g is dead. */
void door_left(struct door_guest *g);

/* Whether somebody's body or answer is under way. */
bool door_is_busy(const struct door *d);

/* Connections that were closed to make room, and because their time was over. */
uint64_t door_count_crowded(const struct door *d);
uint64_t door_count_slow(const struct door *d);

#endif
