#ifndef NUMAFIT_KUBELET_GRPC_PRIVATE_H
#define NUMAFIT_KUBELET_GRPC_PRIVATE_H

#include <kubelet/grpc_pump.h>

#include <grpc/grpc.h>
#include <signal.h>

/* Between pump, server and client: the one header with gRPC's types, for grpc_*.c alone. */

/* What gRPC gives back when an operation is through: a part of its owner, which lives until then.
 */
struct rpc_tag {
	/* on the loop's thread; ok is false when the operation failed */
	void (*done)(void *owner, bool ok);
	void *owner;
};

/* gRPC starts threads when it needs some, and they inherit which signals are blocked: around what
 * makes it do so all are, because signals are the loop's. */
void rpc_block_signals(sigset_t *before);
void rpc_restore_signals(const sigset_t *before);

grpc_completion_queue *rpc_pump_queue(struct rpc_pump *p);
struct loop *rpc_pump_loop(struct rpc_pump *p);
/* One more, or less, whose operations rpc_pump_free() is to wait for. */
void rpc_pump_hold(struct rpc_pump *p);
void rpc_pump_release(struct rpc_pump *p);
/* Handle what is through, waiting up to timeout_ms for something. False: time is up. */
bool rpc_pump_wait(struct rpc_pump *p, unsigned timeout_ms);

enum { RPC_BOUNDS = 4 };
/* What bounds the memory that a peer's messages take, as RPC_BOUNDS arguments of a channel or of a
 * server: a message has up to message_max bytes (below 2 GiB), and gRPC's buffers of the channel,
 * or of all connections of the server, have 8 MiB more than that. A call beyond either ends with
 * RESOURCE_EXHAUSTED. Compressed messages, whose size nothing bounds, are refused. The quota is the
 * caller's, for this channel or server alone, and must outlive it: gRPC 1.51 stops to enforce a
 * quota when the last grpc_resource_quota_unref() comes before. */
void rpc_bounds(size_t message_max, grpc_resource_quota *quota, grpc_arg *out);

/* A message with a copy of these bytes; grpc_byte_buffer_destroy() it. */
grpc_byte_buffer *rpc_bytes(const void *data, size_t len);
/* The message's bytes in one piece, to be given back with grpc_slice_unref(). False: it is
 * compressed. */
bool rpc_bytes_read(grpc_byte_buffer *message, grpc_slice *bytes);

#endif
