#ifndef NUMAFIT_APISERVER_SLICE_PUBLISHER_H
#define NUMAFIT_APISERVER_SLICE_PUBLISHER_H

#include <apiserver/api.h>
#include <apiserver/slice_write_json.h>

/* The ResourceSlice of this node and of driver numafit.io, kept in the API server as it should be.
 * A watch sees the driver's slices of the node, and no others. It is written when it is missing
 * (the kubelet deletes all slices of its node when it starts, and a driver's 30 s after its last
 * connection), when it is another than it should be, whoever changed it, and when what is wanted
 * has changed; the generation is higher then. Slices of the driver's pool beside it are deleted. At
 * most one write an interval; what was not written in time is never sent. A conflict is tried again
 * with what the watch has by then. */
struct slice_publisher;

struct slice_publisher_options {             /* strings are copied */
	const char *node;                    /* the Node's name */
	unsigned interval_ms;                /* between two writes at least; 0: 1 s */
	unsigned retry_min_ms, retry_max_ms; /* after a failure, later and later; 0: 1 s to 60 s */
};

struct slice_publisher_handler {
	void *ctx;
	/* mandatory: the NUMA nodes as they should be now, in the order wanted, into room for
	 * SLICE_DEVICES_MAX; returns their number. 0: there is to be no slice, it is deleted. */
	size_t (*wanted)(void *ctx, struct slice_node *out);
	/* mandatory, for the log, once for what lasts: a reflector's, as "claims-watch-waiting" and
	 * so on; "claims-slice-written" (with its generation); "claims-slice-refused" (with the
	 * server's words: a right is missing, Kubernetes is older than 1.34, or the server keeps
	 * another slice than was written); "claims-slice-without-owner" (the Node cannot be read).
	 */
	void (*on_event)(void *ctx, bool bad, const char *event, const char *text);
};

struct slice_publisher_state {
	bool synced;         /* the watch is there */
	bool current;        /* the server has what was wanted last */
	uint64_t generation; /* of the slice that the server has; 0: none */
	uint64_t written, failed;
};

/* The handler is copied. Reads the Node for its uid first. */
struct slice_publisher *slice_publisher_new(struct loop *l, struct api *a,
	const struct slice_publisher_options *o, const struct slice_publisher_handler *handler);
/* What wanted() gives may be another by now. Any number of calls, from any callback. */
void slice_publisher_changed(struct slice_publisher *p);
void slice_publisher_state(const struct slice_publisher *p, struct slice_publisher_state *out);
/* The slice stays. Not from its callbacks. NULL is fine. */
void slice_publisher_close(struct slice_publisher *p);

#endif
