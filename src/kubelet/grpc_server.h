#ifndef NUMAFIT_KUBELET_GRPC_SERVER_H
#define NUMAFIT_KUBELET_GRPC_SERVER_H

#include <io/acceptor.h>
#include <kubelet/grpc_code.h>
#include <kubelet/grpc_pump.h>

/* A gRPC server behind unix sockets of ours: one for the process's life, with any number of sockets
 * that come and go in front of it (the kubelet wipes its directory whenever it starts). Messages
 * are bytes here. All callbacks come on the loop's thread. */
struct rpc_server;
struct rpc; /* one call that is being served */

/* A method that is served; ctx is that of rpc_server_add(). */
struct rpc_method {
	const char *path; /* "/package.Service/Method" */
	enum rpc_kind kind;
	/* mandatory: somebody calls; request is valid during the callback. RPC_UNARY: r is the
	 * callee's until it answers, now or later, with rpc_answer() or rpc_end(), and it owes one
	 * of them even when nobody waits any more. RPC_STREAM: until closed(). */
	void (*called)(void *ctx, struct rpc *r, const void *request, size_t len);
	/* RPC_STREAM, optional: the message of rpc_send() left, the next may go */
	void (*sendable)(void *ctx, struct rpc *r);
	/* RPC_STREAM, mandatory, once: the stream is over and r dead, because the peer is gone or
	 * because it has everything up to the status of rpc_end() */
	void (*closed)(void *ctx, struct rpc *r);
};

enum {
	RPC_STREAMS_MAX =
		128,         /* calls at a time on one connection; the peer queues what is beyond */
	RPC_OPEN_MAX = 1024, /* and on all of them; RESOURCE_EXHAUSTED beyond */
	RPC_END_MS = 2000    /* so long may a stream's last message and status take */
};

struct rpc_server_options {
	size_t request_max; /* bytes of a request; beyond it ends with RESOURCE_EXHAUSTED */
	void *ctx;
	/* optional: a peer that is neither root nor our own user connected, and was turned away */
	void (*refused)(void *ctx, pid_t pid, uid_t uid);
};

/* Methods that nobody added end with UNIMPLEMENTED. */
struct rpc_server *rpc_server_new(struct rpc_pump *p, const struct rpc_server_options *options);
/* Serve these methods, too; the table stays the caller's and must outlive the server. */
void rpc_server_add(struct rpc_server *s, const struct rpc_method *methods, size_t nr, void *ctx);
/* Outside callbacks, when its sockets are closed: streams end with UNAVAILABLE, waiting up to
 * RPC_END_MS for peers; then calls that are still open are cut off. No method hears of it, and no
 * struct rpc is left. NULL is fine. */
void rpc_server_free(struct rpc_server *s);

/* A socket in front of the server: acceptor_new()'s rules and errors. Calls that came through it go
 * on when it is closed. */
struct acceptor *rpc_server_listen(struct rpc_server *s, const char *path, struct err *e);

/* RPC_UNARY: the answer, with status OK. */
void rpc_answer(struct rpc *r, const void *message, size_t len);
/* RPC_STREAM: send one message. 0; -EBUSY: the one before has not left, wait for sendable();
 * -EPIPE: the peer is gone or rpc_end() was called. */
int rpc_send(struct rpc *r, const void *message, size_t len);
/* End the call with a status; text (UTF-8) may be NULL. A stream's message that is on its way is
 * delivered first. RPC_UNARY: r is dead. RPC_STREAM: closed() follows; to end again is harmless. */
void rpc_end(struct rpc *r, enum rpc_code code, const char *text);

#endif
