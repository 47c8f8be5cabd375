#ifndef NUMAFIT_KUBELET_GRPC_CODE_H
#define NUMAFIT_KUBELET_GRPC_CODE_H

/* Words of gRPC that its server and its client share. */

/* How a call ended: the status codes of gRPC (doc/statuscodes.md of github.com/grpc/grpc). Peers
 * may send others. */
enum rpc_code {
	RPC_OK,
	RPC_CANCELLED,
	RPC_UNKNOWN, /* what a Go server sends for an error without a code */
	RPC_INVALID_ARGUMENT,
	RPC_DEADLINE_EXCEEDED,
	RPC_NOT_FOUND,
	RPC_ALREADY_EXISTS,
	RPC_PERMISSION_DENIED,
	RPC_RESOURCE_EXHAUSTED,
	RPC_FAILED_PRECONDITION,
	RPC_ABORTED,
	RPC_OUT_OF_RANGE,
	RPC_UNIMPLEMENTED,
	RPC_INTERNAL,
	RPC_UNAVAILABLE,
	RPC_DATA_LOSS,
	RPC_UNAUTHENTICATED
};

/* One request always; then one message, or as many as the server likes. */
enum rpc_kind { RPC_UNARY, RPC_STREAM };

#endif
