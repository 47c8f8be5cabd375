#ifndef NUMAFIT_NRI_CONN_H
#define NUMAFIT_NRI_CONN_H

#include <io/loop.h>
#include <nri/session.h>

/* The socket beside the session: connects to the runtime, feeds the session, and when the
 * connection ends starts over, after a delay that doubles from 1 s to 60 s with jitter and is back
 * at its start once a session was ready, or as soon as the socket is seen to be made anew. The one
 * connection that a launched plugin was given cannot be made again: ended() is called. Beside the
 * session's own events, on_event hears "nri-disconnected" with the reason: when it changes, not
 * with every attempt. */
struct nri_conn;

struct nri_conn_options {
	struct nri_plugin plugin;            /* its strings are borrowed */
	const char *socket;                  /* path; borrowed */
	unsigned retry_min_ms, retry_max_ms; /* 0: 1,000 and 60,000 */
	/* plugin.launched only: the connected socket, which is taken over, and what is called once
	 * (with the handler's ctx), later or before nri_conn_new() returns, when it has ended */
	int fd;
	void (*ended)(void *ctx);
};

/* Start connecting. handler is borrowed until nri_conn_close(). */
struct nri_conn *nri_conn_new(
	struct loop *l, const struct nri_conn_options *o, const struct nri_handler *handler);
/* The session's state; NRI_FAILED while there is no connection. */
enum nri_state nri_conn_state(const struct nri_conn *c);
/* The runtime's name and version, or "". */
const char *nri_conn_runtime(const struct nri_conn *c);
/* The runtime's process, as stream_peer(); 0, too: there is no connection. */
uint64_t nri_conn_peer(const struct nri_conn *c);
/* As nri_session_shows_cdi(), nri_session_forgets(), nri_session_sets_memory_policies(), nri_session_takes_updates(),
 * nri_session_update() and nri_session_is_idle(): no connection takes no updates, and is idle. */
bool nri_conn_forgets(const struct nri_conn *c);
bool nri_conn_shows_cdi(const struct nri_conn *c);
bool nri_conn_sets_memory_policies(const struct nri_conn *c);
bool nri_conn_takes_updates(const struct nri_conn *c);
int nri_conn_update(struct nri_conn *c, const struct nri_cpuset *updates, size_t nr,
	void (*updated)(void *ctx, const char *problem), struct err *e);
/* nri_session_resume(); without a connection nothing waits. Not from within a handler. */
void nri_conn_resume(struct nri_conn *c);
/* 0: there is no connection. */
uint64_t nri_conn_patience_ms(const struct nri_conn *c);
bool nri_conn_is_idle(const struct nri_conn *c);
/* Close the connection and forget it; before loop_free(), and not from within a handler. NULL is
 * fine. */
void nri_conn_close(struct nri_conn *c);

#endif
