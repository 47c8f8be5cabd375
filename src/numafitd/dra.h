#ifndef NUMAFIT_NUMAFITD_DRA_H
#define NUMAFIT_NUMAFITD_DRA_H

#include <codec/status_json.h>
#include <numafit/arena.h>
#include <numafit/request.h>

struct api;
struct daemon;
struct rpc_server;

/* The DRA driver numafit.io: what the kubelet prepares and unprepares becomes the engine's shares
 * of claims (numafit/shares.h), and what claims may have is published in the node's ResourceSlice.
 * A claim is read from the API server first, off the runtime's calls. What will pass is waited for
 * within the kubelet's call: the API server away, CPUs that are being freed. d->dra is NULL without
 * claims.enabled. */
struct dra;

/* Serve it on that server, and be registered with the kubelet. */
void dra_start(struct daemon *d, struct rpc_server *server);
/* From here on claims can be read, and the slice is published: there is an API server. Before its
 * client ends. */
void dra_watch(struct daemon *d, struct api *a);
void dra_unwatch(struct daemon *d);
/* The sockets are removed, and what the kubelet waits for fails. Before the server ends; and the
 * rest, behind it. */
void dra_leave(struct daemon *d);
void dra_stop(struct daemon *d);

/* The ledger has changed. */
void dra_note_change(struct daemon *d);
/* A container is about to be decided: where it comes with a share of a claim that is reserved for
 * its pod since it was read, it is read once more. */
void dra_note_create(struct daemon *d, const struct request *req);
/* A pod starts that has claims: those of its namespace that are held are read once more, as the
 * kubelet says nothing of a pod that a prepared claim is reserved for as well. One that was made
 * from a template is for one pod. */
void dra_note_pod(struct daemon *d, const struct pod *pod);
/* For `numafit status` and the metrics; false: it is off. */
bool dra_status(const struct daemon *d, struct status_dra *out);

#endif
