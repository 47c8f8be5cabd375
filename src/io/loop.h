#ifndef NUMAFIT_IO_LOOP_H
#define NUMAFIT_IO_LOOP_H

#include <numafit/err.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The one event loop: timers, signals, unix sockets. Callbacks run on the loop's thread and must
 * not block. libuv stays inside loop.c; an object that is closed is freed by the loop itself, so
 * every handle below is dead to the caller once it was closed. */
struct loop;

/* From here on the process ignores SIGPIPE: a peer that is gone is an error of that write. */
struct loop *loop_new(void);
/* Close all that is still open and free it; open streams hear closed(ctx, -ECANCELED), pending
 * connections connected(ctx, NULL, -ECANCELED). NULL is fine. */
void loop_free(struct loop *l);
/* Run until loop_stop(), or until nothing is left to wait for; signals alone do not count. */
void loop_run(struct loop *l);
/* Make loop_run() return after the present callback. */
void loop_stop(struct loop *l);

/* Wall clock in ms since the epoch, and a clock that never jumps, in ns and in ms. */
int64_t loop_wall_ms(void);
uint64_t loop_monotonic_ns(void);
uint64_t loop_monotonic_ms(void);

/* A timer, not running at first. */
struct loop_timer;
struct loop_timer *loop_timer_new(struct loop *l, void (*fire)(void *ctx), void *ctx);
/* Fire once in delay_ms, replacing an earlier time. */
void loop_timer_set(struct loop_timer *t, uint64_t delay_ms);
void loop_timer_stop(struct loop_timer *t);
void loop_timer_close(struct loop_timer *t);

/* Call fire when the process gets the signal. 0 or -errno. */
int loop_on_signal(struct loop *l, int signum, void (*fire)(void *ctx), void *ctx);

/* A connected unix stream socket. Reading starts at once and never pauses. */
struct stream;
struct stream_events {
	void *ctx;
	/* mandatory: len bytes came in; data is valid during the call */
	void (*data)(void *ctx, const void *data, size_t len);
	/* mandatory, once, unless stream_close() came first: the other side closed (error 0) or the
	 * connection broke (-errno). The stream is closed already. */
	void (*closed)(void *ctx, int error);
};
/* Connect to the socket at path. connected(ctx, stream, 0) or connected(ctx, NULL, -errno) is
 * called once, later. Returns 0, or -errno when the attempt could not even start (path too long).
 */
int stream_connect(struct loop *l, const char *path, const struct stream_events *events,
	void (*connected)(void *ctx, struct stream *s, int error));
/* Take over a socket that is connected already; fd is the stream's from here on, also on error. */
struct stream *stream_adopt(
	struct loop *l, int fd, const struct stream_events *events, struct err *e);
/* The id of the process that listened, or connected, at the other end of a Unix socket (unix(7),
 * SO_PEERCRED); 0: it is of a PID namespace that is not seen from here. */
uint64_t stream_peer(const struct stream *s);
/* Send the len bytes: at once what the socket takes now, the rest, as a copy, when it can. The
 * stream is closed with -errno when it is broken, and with -ENOBUFS beyond that many bytes still
 * unsent (a reader that does not read); closed() comes in a later turn then. 0 or -errno. */
int stream_write(struct stream *s, const void *data, size_t len);
enum { STREAM_UNSENT_MAX = 64 << 20 };
/* Close at once, unsent bytes are lost; closed() is not called. NULL is fine. */
void stream_close(struct stream *s);
/* Close once everything queued was sent, or after STREAM_FINISH_MS with a reader that does not
 * read; closed() is not called. */
enum { STREAM_FINISH_MS = 5000 };
void stream_finish(struct stream *s);

/* A listening unix socket. A stale file at path is replaced; the file is removed on close. */
struct listener;
/* accepted() gives the events of the new stream. mode: file permissions (0600).
 * NULL with text in *e: path too long, directory missing, no permission, somebody listens there. */
struct listener *listener_new(struct loop *l, const char *path, unsigned mode, void *ctx,
	struct stream_events (*accepted)(void *ctx, struct stream *s), struct err *e);
void listener_close(struct listener *ls);

#endif
