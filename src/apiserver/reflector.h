#ifndef NUMAFIT_APISERVER_REFLECTOR_H
#define NUMAFIT_APISERVER_REFLECTOR_H

#include <apiserver/api.h>

/* A list of the API server's kept up to date: list in pages, watch from there, with bookmarks;
 * resume where a watch broke off, list anew when that is too long ago (410) or the watch says
 * ERROR. For ever, later and later after failures. */
struct reflector;

struct reflector_options {
	/* "/api/v1/pods" and "fieldSelector=spec.nodeName%3Dn1" (NULL: none); each shorter than
	 * API_PATH_MAX (path.h). */
	const char *path, *query;
	unsigned page; /* objects of a list at a time; 0: 500 */
	/* Lists begin with what the server has in memory, perhaps moments old, and the watch goes
	 * on from there. Else its store is read, for a query that finds few objects all the same,
	 * which a large cluster feels when each node does it. */
	bool from_memory;
	/* after failures; 0: 500 ms, 30 s. What is refused (403) or not there (404) is tried again
	 * in the latter. */
	unsigned retry_min_ms, retry_max_ms;
	/* A watch without a byte for so long is dead: bookmarks come about every minute. 0: 150 s
	 */
	unsigned idle_ms;
};

enum reflector_change { REFLECTOR_PUT, REFLECTOR_DELETE };

/* reflector_close() is not for these callbacks. */
struct reflector_handler {
	void *ctx;
	/* optional: a new list begins. What no object() names until synced() is gone. */
	void (*begin)(void *ctx);
	/* mandatory: the object is there, new, changed, or as it was; or it is gone. Borrowed. */
	void (*object)(void *ctx, enum reflector_change change, struct json_t *object);
	/* optional: object() was called for all that there is. */
	void (*synced)(void *ctx);
	/* mandatory, for the log, once for what lasts: "watch-waiting" (with the server's words,
	 * 404: the resource does not exist), "watch-synced", "watch-lost". */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

struct reflector *reflector_new(
	struct api *a, const struct reflector_options *o, const struct reflector_handler *handler);
/* Whether the list is complete and the watch is there: one that broke off, and is not known to have
 * broken off again, still is. */
bool reflector_synced(const struct reflector *r);
/* NULL is fine. */
void reflector_close(struct reflector *r);

#endif
