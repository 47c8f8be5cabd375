#ifndef NUMAFIT_NRI_SESSION_H
#define NUMAFIT_NRI_SESSION_H

#include <numafit/arena.h>
#include <numafit/request.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One connection of an NRI plugin, from RegisterPlugin to its end: a state machine that is fed
 * bytes and asked for bytes. It holds no descriptor and reads no clock: time is an argument, and
 * the next deadline an answer. Protocol: containerd/nri api.proto 0.6.1 to 0.12.5 over ttrpc over
 * the NRI mux. Both forms of an event, dedicated calls and StateChange, end in the same
 * handlers. */

enum { NRI_NO_QUOTA = -1 }; /* OCI runtime-spec, config-linux: a negative one */

/* What a running container is set to, as the wire has it: kernel lists; "" leaves as it is. */
struct nri_cpuset {
	const char *container_id, *cpus, *mems;
	int64_t cpu_quota; /* its CFS quota in us; NRI_NO_QUOTA: none; 0: it is left as it is */
};

/* What a handler answers. Strings must live until the handler's caller returns; arena is there for
 * them and is freed once the answer is queued. */
struct nri_reply {
	struct arena *arena;
	bool adjust; /* create only: set what follows, up to the updates, on the new container */
	const char *cpus, *mems;
	int64_t cpu_quota;
	struct key_value annotation; /* key NULL: none */
	const char *self; /* a folder of this machine, by its path, that is mounted at
			     NRI_SELF_MOUNT, read-only; NULL: none */
	const struct key_value *env; /* variables that are added */
	size_t nr_env;
	enum wish_memory memory_policy; /* set for its processes, on the NUMA nodes of mems */
	const char *rdt_class, *blockio_class; /* of the runtime's; NULL: none */
	/* Other containers to set; each at most once, never the one being created. Sent with
	 * ignore_failure, so that one that is just ending fails nobody else. */
	const struct nri_cpuset *updates;
	size_t nr_updates;
	const char
		*refusal; /* update only: the change is refused with this text; NULL: it is not */
};

/* All containers that run, and all pods, with containers or without. */
struct nri_inventory {
	const struct request *containers;
	size_t nr;
	const struct pod *pods;
	size_t nr_pods;
};

/* NRI's numbers for events; event e is asked for with bit e - 1. */
enum nri_event {
	NRI_EVENT_NONE,
	NRI_EVENT_RUN_POD,
	NRI_EVENT_STOP_POD,
	NRI_EVENT_REMOVE_POD,
	NRI_EVENT_CREATE,
	NRI_EVENT_POST_CREATE,
	NRI_EVENT_START,
	NRI_EVENT_POST_START,
	NRI_EVENT_UPDATE,
	NRI_EVENT_POST_UPDATE,
	NRI_EVENT_STOP,
	NRI_EVENT_REMOVE,
	NRI_EVENT_UPDATE_POD,
	NRI_EVENT_POST_UPDATE_POD,
	NRI_EVENT_VALIDATE,
	NR_NRI_EVENTS
};

struct nri_handler {
	void *ctx;
	/* All that runs, once for a connection, before any other event. mandatory */
	void (*synchronize)(void *ctx, const struct nri_inventory *what, struct nri_reply *reply);
	/* A pod's sandbox is being started. 0, or a negative errno: it is refused with e->text.
	 * mandatory */
	int (*run_pod)(void *ctx, const struct pod *pod, struct err *e);
	/* A container is being created. 0, or a negative errno: it is refused with e->text.
	 * mandatory */
	int (*create)(void *ctx, const struct request *req, struct nri_reply *reply, struct err *e);
	/* Somebody changes a container's resources: what req->container_id must keep goes into
	 * reply->updates. mandatory */
	void (*update)(void *ctx, const struct request *req, struct nri_reply *reply);
	/* Its process has ended; req may hold no more than the container's id. mandatory */
	void (*stop)(void *ctx, const struct request *req, struct nri_reply *reply);
	/* It is gone. mandatory */
	void (*remove)(void *ctx, const struct request *req);
	/* It was created. mandatory */
	void (*live)(void *ctx, const struct request *req);
	/* Its process runs; may come after its end. mandatory */
	void (*started)(void *ctx, const struct request *req);
	/* The pod's sandbox was stopped or removed; may come twice. mandatory */
	void (*remove_pod)(void *ctx, const struct pod *pod);
	/* Around each of those above, with NRI_EVENT_NONE for synchronize: for somebody who
	 * takes the time. optional, both or neither */
	void (*began)(void *ctx);
	void (*ended)(void *ctx, enum nri_event event);
	/* The answer has gone out, or the next event has come: what no runtime waits for. The
	 * strings of the event are still there. optional */
	void (*after)(void *ctx);
	/* For the log: the handshake's steps (nri-registered, nri-configured, nri-synchronized or
	 * nri-not-synchronized), one that is late (nri-waiting), what came of the failure policy
	 * (nri-failure-policy), a configuration that nobody reads (nri-config-ignored), and calls
	 * that make no sense (nri-call-refused, nri-odd-resources). optional */
	void (*on_event)(void *ctx, const char *event, const char *text);
	/* Asked before each event but synchronize: whether its answer has to wait. Then the call
	 * is kept, and whatever comes behind it, and comes here again with nri_session_resume().
	 * optional */
	bool (*wait)(void *ctx, enum nri_event event, const struct request *req);
};

/* The key of the annotation that a placed container carries, read back at Synchronize. */
#define NRI_PLACEMENT_ANNOTATION "numafit.io/placement"
/* Where a container has the folder of nri_reply.self. */
#define NRI_SELF_MOUNT "/run/numafit"
/* The key of the one that the kubelet puts on a container for our device plugin (leases.h). */
#define NRI_ALLOCATED_ANNOTATION "numafit.io/allocated"

enum nri_state {
	NRI_REGISTERING,   /* RegisterPlugin is on its way */
	NRI_SYNCHRONIZING, /* configured; the runtime lists what runs */
	NRI_READY,         /* events come in */
	NRI_FAILED         /* the connection must be closed; nri_session_error() says why */
};

/* What a runtime of NRI 0.12.4 or later does when the plugin does not answer in time, in
 * upstream's words (api.proto, FailurePolicy). Zeros: what it did before, drop the plugin and go on
 * without it. A refusal by the plugin is an answer, and so no case for this. */
struct nri_failure_policy {
	bool fail_request, keep_connected;
};

/* How a plugin presents itself. */
struct nri_plugin {
	const char *name;  /* [A-Za-z0-9_.+-]+ */
	const char *index; /* two digits */
	/* The runtime started the plugin itself: it waits for other such plugins before it calls
	 * Synchronize, and up to NRI 0.6.1 it never does (containerd/nri issue 43). So nothing has
	 * a deadline, and there the session is ready at once. */
	bool launched;
	struct nri_failure_policy on_failure;
};

struct nri_session;

/* A session that starts by registering. plugin's strings are borrowed for the call, handler for as
 * long as the session lives; now_ms is any clock that never jumps. */
struct nri_session *nri_session_new(
	const struct nri_plugin *plugin, const struct nri_handler *handler, uint64_t now_ms);
void nri_session_free(struct nri_session *s);

/* Bytes from the runtime. Handlers are called from in here. 0, or -EPROTO and such: the session
 * has failed. */
int nri_session_feed(struct nri_session *s, const void *data, size_t len, uint64_t now_ms);
/* Try the call again whose answer waits, if one does (handler's wait()). 0, or as
 * nri_session_feed(). */
int nri_session_resume(struct nri_session *s, uint64_t now_ms);
/* How long the runtime waits for the answer to an event, as Configure said it. */
uint64_t nri_session_patience_ms(const struct nri_session *s);
/* Whether containers may be set now without being asked: the session is ready, no earlier such call
 * is unanswered, no event's answer waits, and the runtime's NRI is one that can bear it (0.12.1 and
 * later, says Configure). */
bool nri_session_takes_updates(const struct nri_session *s);
/* Whether the runtime may forget, with a restart of its own, what was changed of a container, and
 * then lists it as it was created. containerd writes down each change; CRI-O does not (up
 * to 1.36 at least), and others may not. */
bool nri_session_forgets(const struct nri_session *s);
/* Whether the runtime's NRI shows the CDI devices of a container (0.10.0 and later, says Configure; a
 * runtime that does not give its version may not). */
bool nri_session_shows_cdi(const struct nri_session *s);
/* Whether the runtime's NRI has memory policies (0.12.0 and later, says Configure). Whether what runs
 * containers then sets them is another matter: it skips those that it does not know. */
bool nri_session_sets_memory_policies(const struct nri_session *s);
/* Set containers, each at most once, without being asked (Runtime.UpdateContainers), when
 * nri_session_takes_updates(); never from within a handler, for the runtime answers after its
 * present event only. Sent with ignore_failure, as updates in replies are. updated(the handler's
 * ctx) is called once with the answer: problem is NULL, or why some failed, and nobody knows which;
 * not at all when the session ends before. 0, or -EILSEQ, -ENOMEM with text. */
int nri_session_update(struct nri_session *s, const struct nri_cpuset *updates, size_t nr,
	void (*updated)(void *ctx, const char *problem), struct err *e);
/* Whether no message of the runtime has come in part. */
bool nri_session_is_idle(const struct nri_session *s);

/* Bytes for the runtime: their number, *data valid until the next call; they count as taken. */
size_t nri_session_take(struct nri_session *s, const void **data);
/* They have gone out: the handler's after() may do its work now. */
void nri_session_sent(struct nri_session *s);
/* When to look at the session again if nothing comes (ms, same clock); UINT64_MAX: never; 0: at
 * once, it has failed. */
uint64_t nri_session_deadline(const struct nri_session *s);
/* Look at the deadlines: a handshake that stands still is logged once it takes longer than the
 * runtime's timeouts, and fails the session after ten times as long again. */
void nri_session_tick(struct nri_session *s, uint64_t now_ms);

enum nri_state nri_session_state(const struct nri_session *s);
/* What failed the session; "" while it lives. */
const char *nri_session_error(const struct nri_session *s);
/* The runtime's name and version that Configure gave; "" before. */
const char *nri_session_runtime(const struct nri_session *s);

#endif
