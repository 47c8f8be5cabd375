#ifndef NUMAFIT_KUBELET_GRPC_PUMP_H
#define NUMAFIT_KUBELET_GRPC_PUMP_H

#include <io/loop.h>

/* gRPC's C core, running: its completion queue, and the one thread that turns completions into
 * entries of the loop's inbox. Everything else (starting operations, callbacks) happens on the
 * loop's thread. Start it only when a service of the kubelet is wanted: it costs threads and
 * megabytes. gRPC's own log is silenced; what goes wrong comes as the status of a call. */
struct rpc_pump;

/* One at a time in a process. NULL with text on error. */
struct rpc_pump *rpc_pump_new(struct loop *l, struct err *e);
/* When servers are freed and calls ended or cancelled, outside callbacks, before loop_free(): ends
 * the thread and shuts gRPC down, waiting for both. NULL is fine. */
void rpc_pump_free(struct rpc_pump *p);

#endif
