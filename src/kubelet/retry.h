#ifndef NUMAFIT_KUBELET_RETRY_H
#define NUMAFIT_KUBELET_RETRY_H

#include <io/loop.h>
#include <kubelet/grpc_code.h>
#include <numafit/err.h>

/* What the clients of the kubelet's sockets have in common: when to try again, and what to say of
 * it. A server that is not there, not ready, or says no is tried again after a delay that doubles,
 * with jitter, or as soon as its socket is seen to be made anew, which is a kubelet that starts.
 * One that does not have the service at all (UNIMPLEMENTED) is asked again ten times as seldom as
 * that delay gets, and at once when its socket is made anew. An event is reported once for what
 * lasts: not again until another one, or another reason, was. */
struct retry;

struct retry_options {
	const char *socket; /* borrowed */
	unsigned min_ms, max_ms;
	void *ctx;
	/* mandatory: it is time; retry_begin(), or nothing when the last attempt still goes on:
	 * what is planned at its end then takes into account that the socket is another one */
	void (*attempt)(void *ctx);
	const char *waiting, *refused; /* events: nobody serves it; the server says no */
	void *log;                     /* for on_event() */
	void (*on_event)(void *log, bool bad, const char *event, const char *text); /* mandatory */
};

/* The first attempt() comes in a later turn of the loop. */
struct retry *retry_new(struct loop *l, const struct retry_options *o);
/* An attempt begins: a socket that is made anew from here on makes another one worth while. */
void retry_begin(struct retry *r);
/* attempt() in delay_ms, whatever was planned before; at once when the socket was made anew since
 * the last one began. */
void retry_in(struct retry *r, unsigned delay_ms);
/* It failed: attempt() later. */
void retry_later(struct retry *r);
/* All is well: the next delay is the smallest. */
void retry_reset(struct retry *r);

/* The attempt failed: say so, and retry_later(). What passes by itself is bad only once the delay
 * has reached its end; and that nobody serves it never is, a node need not have a kubelet. */
void retry_no_connection(struct retry *r, const struct err *e); /* of rpc_call_start() */
void retry_ended(struct retry *r, enum rpc_code code, const char *text);
void retry_unreadable(struct retry *r, const struct err *e); /* its answer */

/* Report an event, unless it was the last one reported, for the same reason. */
void retry_report(struct retry *r, bool bad, const char *event, int reason, const char *text);
/* NULL is fine. */
void retry_free(struct retry *r);

#endif
