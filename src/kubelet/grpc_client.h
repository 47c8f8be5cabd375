#ifndef NUMAFIT_KUBELET_GRPC_CLIENT_H
#define NUMAFIT_KUBELET_GRPC_CLIENT_H

#include <kubelet/grpc_code.h>
#include <kubelet/grpc_pump.h>

/* Calls of gRPC servers behind unix sockets. Each call has a connection of its own and never
 * connects again: whether the server is there is known at once, and the caller decides about
 * another try. */
struct rpc_call;

struct rpc_request {
	const char *socket; /* path */
	const char *method; /* "/package.Service/Method" */
	enum rpc_kind kind;
	const void *data; /* the request message; copied */
	size_t len;
	unsigned timeout_ms; /* for the whole call; 0: none */
};

struct rpc_call_events {
	void *ctx;
	/* mandatory: a message came; data is valid during the callback. RPC_UNARY: the one reply,
	 * just before ended() with RPC_OK. */
	void (*message)(void *ctx, const void *data, size_t len);
	/* mandatory, once, unless rpc_call_cancel() came first: it is over and the call dead. text
	 * is the server's or gRPC's, valid during the callback. */
	void (*ended)(void *ctx, enum rpc_code code, const char *text);
};

/* Bytes of a message; a call whose message is larger ends with RESOURCE_EXHAUSTED before its bytes
 * are there. The largest messages are the kubelet's lists for PodResources. 1,000 pods of 8
 * containers with names of 63 and 253 bytes, each container with 4 resources of 128 bytes, are 8
 * MiB (a node of the kubelet's default has 110 pods); each exclusive CPU is in the list once (2
 * bytes), each block of memory once per container (32 bytes), and each device once (48 bytes:
 * 50,000 devices are 2.3 MiB; the kubelet takes up to 4 MiB of a device plugin). An event of the
 * Pods API is one pod, of which the API server takes up to 3 MiB. */
enum { RPC_REPLY_MAX = 16 << 20 };
#define RPC_REPLY_MAX_TEXT "16 MiB"

/* Start a call; callbacks come later, on the loop's thread. NULL with text and code in *e when
 * there is no connection: ENOENT, ECONNREFUSED (nobody listens: its process is gone, or not ready
 * yet), EACCES, EAGAIN (it does not accept), ENAMETOOLONG. */
struct rpc_call *rpc_call_start(struct rpc_pump *p, const struct rpc_request *request,
	const struct rpc_call_events *events, struct err *e);
/* Give up; no callback comes any more, and the call is dead. Fine in callbacks of its own; not
 * after ended(). NULL is fine. */
void rpc_call_cancel(struct rpc_call *c);

#endif
