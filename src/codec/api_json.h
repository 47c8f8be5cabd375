#ifndef NUMAFIT_CODEC_API_JSON_H
#define NUMAFIT_CODEC_API_JSON_H

#include <numafit/arena.h>
#include <numafit/err.h>
#include <numafit/pod.h>
#include <stdbool.h>
#include <stddef.h>

/* JSON of the Kubernetes API machinery (apimachinery's meta/v1 types.go and watch.go): what all
 * kinds of objects have in common. All strings are borrowed from the value they were read from, and
 * none is NULL: what is absent is "". */

struct json_t; /* jansson's */

/* An object, and nothing else. Keeps texts with a \u0000 in them, which anybody may put into an
 * annotation; a C string ends there. 0; -EINVAL: the text says where. */
int api_json_parse(const char *text, size_t len, struct json_t **out, struct err *e);
/* NULL is fine. */
void api_json_free(struct json_t *v);

struct api_meta {
	const char *ns, *name, *uid, *version; /* version: metadata.resourceVersion */
	bool initial_events_end;               /* of a bookmark: all that was there has been sent */
};
void api_json_meta(const struct json_t *object, struct api_meta *out);
/* A Node's status.nodeInfo.kubeletVersion, or "". */
const char *api_json_kubelet_version(const struct json_t *node);
/* metadata.labels, in the object's order; the list is *a's. 0, or -ENOMEM: the arena's limit. */
int api_json_labels(
	const struct json_t *object, struct arena *a, const struct key_value **out, size_t *nr);

struct api_status {
	int code;               /* HTTP's; 0: it does not say */
	const char *reason;     /* "Conflict", "Expired" */
	const char *message;    /* for people */
	unsigned retry_after_s; /* 0: it does not say */
};
/* False: it is no Status. */
bool api_json_status(const struct json_t *v, struct api_status *out);

/* Whether one of the Status' causes is that ("NamespaceTerminating",
 * corev1.NamespaceTerminatingCause). NULL: it has none. */
bool api_json_has_cause(const struct json_t *status, const char *cause);
/* Whether one of them is about that field ("metadata.uid"). */
bool api_json_blames(const struct json_t *status, const char *field);

enum { API_MANAGER_MAX = 128 }; /* bytes of a field manager's name, by the API server */
struct api_conflict {
	const char *field; /* ".zones" */
	char manager[API_MANAGER_MAX + 1];
};
/* The first field of a server-side apply that somebody else has, by the Status that refuses it.
 * False: it does not speak of one. */
bool api_json_conflict(const struct json_t *status, struct api_conflict *out);

struct api_list {
	const char *version; /* where a watch goes on */
	const char *more;    /* what to continue with; "": this was all */
	size_t nr;
};
/* 0; -EINVAL: no list, none with a version, or one with items that are no objects. */
int api_json_list(const struct json_t *v, struct api_list *out, struct err *e);
/* Item i of the list, below nr. Borrowed. */
struct json_t *api_json_item(const struct json_t *list, size_t i);

enum api_event_type { API_ADDED, API_MODIFIED, API_DELETED, API_BOOKMARK, API_ERROR, API_OTHER };
struct api_event {
	enum api_event_type type; /* OTHER: a word that we do not know */
	struct json_t *object;    /* borrowed; of an ERROR: the Status */
	struct api_meta meta;     /* of the object */
	struct api_status status; /* of an ERROR */
};
/* One line of a watch. 0; -EINVAL: no event. */
int api_json_event(const struct json_t *v, struct api_event *out, struct err *e);

#endif
