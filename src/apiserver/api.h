#ifndef NUMAFIT_APISERVER_API_H
#define NUMAFIT_APISERVER_API_H

#include <io/loop.h>

/* The Kubernetes API server: its identity and ours, and single calls. Lists that are kept up
 * to date are reflector.h's. Nothing here blocks but api_new(), which reads files. */
struct api;
struct json_t; /* jansson's */

/* What a pod finds of the cluster: token and ca.crt. */
#define API_SERVICE_DIRECTORY "/var/run/secrets/kubernetes.io/serviceaccount"

struct api_options {
	/* A kubeconfig file, and the context in it (NULL or "": its current one). NULL or "": as a
	 * pod of the cluster, by KUBERNETES_SERVICE_HOST and _PORT and the files under service. */
	const char *kubeconfig, *context;
	const char *service; /* NULL: API_SERVICE_DIRECTORY */
	const char *user_agent;
	unsigned timeout_ms;  /* of a call; 0: 10 s */
	unsigned patience_ms; /* a server that is not there for so long is bad; 0: 60 s */
	void *ctx;
	/* mandatory, for the log, once for what lasts: "apiserver-unreachable", "apiserver-refused"
	 * (401, with its words; a 403, which is about one call, is logged by its caller),
	 * "apiserver-up", "credentials-unreadable" (and we go on with what we have). bad: somebody
	 * must do something about it, and text says what. */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

/* NULL with text: no such file, not in a cluster, exec and auth-provider plugins in the kubeconfig
 * (not supported, says what to use instead), libcurl is not there. */
struct api *api_new(struct loop *l, const struct api_options *o, struct err *e);
/* Cancels all calls. Before loop_free(), after the reflectors. NULL is fine. */
void api_free(struct api *a);
/* Why its credentials could not be read anew the last time, and those before are still used; NULL:
 * they could. *failures: how often that was so. The text is good until the next turn. */
const char *api_unreadable(const struct api *a, uint64_t *failures);

struct api_ask {
	const char *method;       /* NULL: GET */
	const char *path;         /* "/api/v1/nodes/n1?timeout=5s" */
	const char *content_type; /* of the body; NULL: application/json */
	const char *body;         /* copied; NULL: none */
	size_t len;
	size_t answer_max; /* bytes of the answer; 0: API_OBJECT_MAX */
};

/* Bytes: no object is larger as JSON. A server keeps 1.5 MiB of one in etcd (etcd's
 * --max-request-bytes), without the names of fields, and writes a "<" as six bytes in JSON. */
enum { API_OBJECT_MAX = 16 << 20 };

struct api_answer {
	int status;                   /* HTTP's; 0: none came */
	struct json_t *body;          /* an object, or NULL; borrowed */
	const char *reason, *message; /* of a Status ("Conflict"), or in our words; never NULL */
	bool too_large;               /* none came, as it is more than the ask's answer_max */
	bool timed_out;               /* none came in time */
	bool again;                   /* it may pass: no connection, 429, 500, 502, 503, 504 */
	unsigned after_ms;            /* not before that (Retry-After), or 0 */
};

struct api_call;
/* One attempt; after a 401 the credentials are read anew and it is made once more. done() comes
 * once, in a later turn. Never NULL. */
struct api_call *api_call(struct api *a, const struct api_ask *ask, void *ctx,
	void (*done)(void *ctx, const struct api_answer *answer));
/* done() will not be called. NULL is fine. */
void api_cancel(struct api_call *call);

#endif
