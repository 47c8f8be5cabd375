#ifndef NUMAFIT_DRA_DRIVER_DRIVER_H
#define NUMAFIT_DRA_DRIVER_DRIVER_H

#include <codec/status_json.h>
#include <numafit/err.h>
#include <numafit/request.h>

struct api;
struct engine;
struct loop;
struct rpc_server;
struct settings;
struct topo;

/* The DRA driver numafit.io: what the kubelet prepares and unprepares becomes the engine's shares
 * of claims (numafit/shares.h), and what claims may have is published in the node's ResourceSlice.
 * A claim is read from the API server first, off the runtime's calls. What will pass is waited for
 * within the kubelet's call: the API server away, CPUs that are being freed. All calls take NULL
 * for a driver that is off. */
struct dra;

/* All borrowed. The engine, the machine and the settings may be others after any event, so that the
 * driver looks at them anew each time. */
struct dra_options {
	struct loop *loop;
	struct rpc_server *server;    /* the kubelet's calls come there */
	struct engine *const *engine; /* a journal that is found late makes another one */
	const struct topo *topo;
	const struct settings *settings;
	const char *node_name;
};

struct dra_handler {
	void *ctx;
	/* mandatory: a claim holds CPUs from now on, and what others still run on is to be taken
	 * from them. 0; or -errno with text: they may still run there, and the claim is not
	 * answered yet, but tried again. */
	int (*held)(void *ctx, struct err *e);
	/* mandatory: what a claim held is free again. */
	void (*given_back)(void *ctx);
	/* mandatory: whether the runtime has reported what runs. Until then a container that runs
	 * may not be known, and claims are not looked for that have gone. */
	bool (*knows_what_runs)(void *ctx);
	/* mandatory, for the log: of the registration and of the slice (dra_registration.h,
	 * slice_publisher.h). */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

/* Serve it on that server, and be registered with the kubelet. Both structs are copied. */
struct dra *dra_new(const struct dra_options *o, const struct dra_handler *handler);
/* From here on claims can be read, and the slice is published: there is an API server. Before its
 * client ends. */
void dra_watch(struct dra *v, struct api *a);
void dra_unwatch(struct dra *v);
/* The sockets are removed, and what the kubelet waits for fails. Before the server ends; and the
 * rest, behind it. */
void dra_leave(struct dra *v);
void dra_free(struct dra *v);

/* The ledger has changed. */
void dra_note_change(struct dra *v);
/* A container is about to be decided: where it comes with a share of a claim that is reserved for
 * its pod since it was read, it is read once more. */
void dra_note_create(struct dra *v, const struct request *req);
/* A pod starts that has claims: those of its namespace that are held are read once more, as the
 * kubelet says nothing of a pod that a prepared claim is reserved for as well. One that was made
 * from a template is for one pod. */
void dra_note_pod(struct dra *v, const struct pod *pod);
/* For `numafit status` and the metrics; false: it is off. */
bool dra_status(const struct dra *v, struct status_dra *out);

#endif
