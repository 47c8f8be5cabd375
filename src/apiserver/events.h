#ifndef NUMAFIT_APISERVER_EVENTS_H
#define NUMAFIT_APISERVER_EVENTS_H

#include <apiserver/api.h>
#include <apiserver/event_json.h>

/* Events on pods. None is emitted more often than people can read, and a cluster's store can bear:
 *
 * what                                 | how often
 * ------------------------------------ | ---------------------------------------------------------
 * the same of a pod and container      | once in 5 minutes, then with how often it was since
 * all of the node                      | 25 at once, then one in 10 s (a node that refuses all its
 *                                      | 110 pods has reported them within 15 minutes)
 * waiting                              | 256; what comes beyond them is dropped, and counted
 */
struct events;

struct events_options {
	const char *node;                  /* its name in Kubernetes; copied */
	unsigned same_ms, burst, every_ms; /* of the table; 0: as it says */
	/* after a failure, later and later; 0: 1 s to 60 s */
	unsigned retry_min_ms, retry_max_ms;
};

struct events_handler {
	void *ctx;
	/* mandatory, for the log, once for what lasts: "events-refused" (with the server's words;
	 * the event is dropped), "events-accepted" afterwards. */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

struct events_counters {
	uint64_t sent, dropped;
	uint64_t failed;  /* attempts that are made again */
	unsigned waiting; /* texts */
};

/* The handler is copied. */
struct events *events_new(struct loop *l, struct api *a, const struct events_options *o,
	const struct events_handler *handler);
/* Copies what is in *event. */
void events_emit(struct events *v, const struct pod_event *event);
void events_counters(const struct events *v, struct events_counters *out);
/* What waits is lost. Before api_free(). NULL is fine. */
void events_close(struct events *v);

#endif
