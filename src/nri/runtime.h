#ifndef NUMAFIT_NRI_RUNTIME_H
#define NUMAFIT_NRI_RUNTIME_H

#include <numafit/request.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The other end of session.h: the container runtime's side of one plugin connection, for the
 * simulator and for tests. Fed bytes and asked for bytes, like the session; same codec. */

/* A container as a runtime would show it. Strings are borrowed during the call. */
struct nri_container {
	const char *sandbox_id, *pod_uid, *pod_ns, *pod_name, *cgroup_parent;
	const struct key_value *pod_annotations;
	size_t nr_pod_annotations;
	const char *id, *name;
	struct linux_resources resources;
	const char *cpus, *mems;
	const struct key_value *annotations;
	size_t nr_annotations;
	int64_t created_at_ns;
	const char *cgroups_path; /* NULL: not shown */
	const struct device_file *files;
	size_t nr_files;
	const char *const *cdi;
	size_t nr_cdi;
	uint64_t pod_shares; /* CPU shares of the whole pod, by its sandbox; 0: not shown */
};

/* A change of another container that the plugin asks for. */
struct nri_update {
	const char *container_id, *cpus, *mems;
	int64_t cpu_quota; /* CFS quota in us; below 0: none; 0: it is not set */
	bool ignore_failure;
};

/* What the plugin answered to one call. Strings are valid during the callback. */
struct nri_answer {
	int status;          /* 0, or the gRPC code of the refusal */
	const char *message; /* of the refusal */
	const char *cpus, *mems;
	int64_t cpu_quota;
	const struct key_value *annotations;
	size_t nr_annotations;
	const struct key_value *env; /* variables that are added */
	size_t nr_env;
	const struct nri_update *updates;
	size_t nr_updates;
};

enum nri_call {
	NRI_CALL_SYNCHRONIZE,
	NRI_CALL_RUN_POD,
	NRI_CALL_CREATE,
	NRI_CALL_POST_CREATE,
	NRI_CALL_POST_START,
	NRI_CALL_UPDATE,
	NRI_CALL_STOP,
	NRI_CALL_REMOVE,
	NRI_CALL_STOP_POD,
	NRI_CALL_REMOVE_POD
};

struct nri_runtime_events {
	void *ctx;
	/* The plugin registered and was configured with these events; now Synchronize may be
	 * called. mandatory */
	void (*configured)(void *ctx, const char *name, const char *index, uint32_t events);
	/* A call was answered (Synchronize: its last chunk). mandatory */
	void (*answered)(void *ctx, enum nri_call call, const struct nri_answer *answer);
};

struct nri_runtime_options {
	const char *name, *version; /* Configure's runtime_name and runtime_version */
	bool state_change;          /* send events through StateChange, as NRI before 0.12 does */
	size_t chunk_objects;       /* containers in one Synchronize message; 0: all in one */
};

struct nri_runtime;
struct nri_runtime *nri_runtime_new(
	const struct nri_runtime_options *o, const struct nri_runtime_events *ev);
void nri_runtime_free(struct nri_runtime *r);
/* As in session.h. -EPROTO: the plugin broke the protocol; the connection must be closed. */
int nri_runtime_feed(struct nri_runtime *r, const void *data, size_t len);
size_t nri_runtime_take(struct nri_runtime *r, const void **data);
const char *nri_runtime_error(const struct nri_runtime *r);

/* Be a runtime of this NRI version, sent in Configure, that lets plugins set containers by
 * themselves (UpdateContainers): set() is handed the updates, and says whether all went well. Call
 * it before the first bytes are fed. */
void nri_runtime_accept_updates(struct nri_runtime *r, const char *nri_version,
	bool (*set)(void *ctx, const struct nri_update *updates, size_t nr));

/* Queue one call; its answer comes through answered(), which is called in the calls' order.
 * An event that the plugin did not subscribe to is answered at once, with nothing. */
void nri_runtime_synchronize(
	struct nri_runtime *r, const struct nri_container *containers, size_t nr);
void nri_runtime_call(struct nri_runtime *r, enum nri_call call, const struct nri_container *c);

#endif
