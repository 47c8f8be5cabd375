#ifndef NUMAFIT_KUBELET_DRA_PLUGIN_H
#define NUMAFIT_KUBELET_DRA_PLUGIN_H

#include <kubelet/grpc_server.h>
#include <numafit/arena.h>

/* The kubelet's DRA plugin API (k8s.io/kubelet pkg/apis/dra/v1 and v1beta1, dra-health/v1 and
 * v1alpha1), as a driver serves it: messages and streams, no opinion of its own. Both versions have
 * the same handler. One for the process's life, whatever becomes of the kubelet. */
struct dra_plugin;

struct dra_claim_ref {
	const char *ns, *uid, *name;
};

/* One claim of one call. It is the handler's until dra_prepared(), dra_unprepared() or
 * dra_failed(), now or later, and it owes one of them even when nobody waits any more (the kubelet
 * gives up after 45 s). A call is answered when all of its claims are. */
struct dra_job;

struct dra_device {
	const char *const *request; /* names of the claim's requests */
	size_t nr_requests;
	const char *pool, *device;
	const char *const *cdi; /* ids, "vendor/class=name" */
	size_t nr_cdi;
	const char *share_id; /* NULL: none; v1beta1 cannot say it */
};

struct dra_health {
	const char *pool, *device;
	bool healthy;
	int64_t last_updated_s; /* since the epoch */
	/* Without news for so long it is of unknown health; 0: the kubelet's 30 s. */
	unsigned timeout_s;
	const char *text; /* NULL: none */
};

struct dra_plugin_handler {
	void *ctx;
	/* mandatory: ref is valid during the callback, and each uid is there once in a call. A
	 * claim to be prepared has names that claim_check_ref() allows: any other is answered with
	 * an error. One to be unprepared may have any, and its uid is UTF-8. */
	void (*prepare)(void *ctx, struct dra_job *job, const struct dra_claim_ref *ref);
	void (*unprepare)(void *ctx, struct dra_job *job, const struct dra_claim_ref *ref);
	/* mandatory: all devices, into *out, from *a; returns their number. */
	size_t (*health)(void *ctx, struct arena *a, struct dra_health **out);
};

enum { DRA_CLAIMS_MAX = 256 /* of one call; beyond it ends with RESOURCE_EXHAUSTED */ };

/* Serve it on s, whose sockets are somebody else's. handler is copied. A string of a device that is
 * not UTF-8 is an error of its claim; of a health, it ends the streams with INTERNAL. */
struct dra_plugin *dra_plugin_new(struct rpc_server *s, const struct dra_plugin_handler *handler);
void dra_prepared(struct dra_job *job, const struct dra_device *devices, size_t nr);
void dra_unprepared(struct dra_job *job);
/* The text ends in the pod's events. */
void dra_failed(struct dra_job *job, const char *text);
/* Health may have changed: every stream gets all devices anew. Call it every some seconds, too, or
 * the kubelet takes them for unknown. */
void dra_plugin_health_changed(struct dra_plugin *p);
/* After rpc_server_free(). From that on no job may be answered, and those that are still owed are
 * freed here. NULL is fine. */
void dra_plugin_free(struct dra_plugin *p);

#endif
