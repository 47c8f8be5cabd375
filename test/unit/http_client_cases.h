#ifndef NUMAFIT_TEST_HTTP_CLIENT_CASES_H
#define NUMAFIT_TEST_HTTP_CLIENT_CASES_H

#include "http_rig.h"

#include <sys/resource.h>

/* What the cases of the client share: a peer that answers byte by byte. */

static const char *const hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/* Every request is answered with the text that is the peer's ctx. */
static inline void say_text(struct peer_conn *c)
{
	while (peer_hear(c) && peer_say(c, c->peer->ctx))
		;
}

static inline struct peer *start(void (*serve)(struct peer_conn *c), const char *text)
{
	return peer_start(serve, NULL, (void *)(uintptr_t)text);
}

static inline int set_up(void **state)
{
	*state = rig_new(NULL);
	return 0;
}

static inline int tear_down(void **state)
{
	rig_free(*state);
	return 0;
}

static inline void never(void *ctx, const struct http_answer *a, const struct err *e)
{
	(void)ctx, (void)a, (void)e;
	fail_msg("done() of a canceled call");
}

#endif
