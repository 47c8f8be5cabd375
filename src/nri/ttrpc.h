#ifndef NUMAFIT_NRI_TTRPC_H
#define NUMAFIT_NRI_TTRPC_H

#include <nri/mux.h>
#include <nri/ttrpc_pb.h>
#include <stdbool.h>

/* ttrpc (github.com/containerd/ttrpc) over one stream of the mux, one end of it: a server that
 * answers every call at once, or a client with one call at a time. NRI's calls are unary, so a
 * message is a Request or a Response and nothing else. Header: body length (4 bytes), stream id
 * (4 bytes), type, flags; big-endian. */

enum {
	TTRPC_HEADER_BYTES = 10,
	TTRPC_BODY_IN_MAX = 32 << 20,       /* NRI up to 0.6.1 lists all that runs in one message */
	TTRPC_BODY_OUT_MAX = 4 << 20,       /* what ttrpc accepts */
	TTRPC_MEMORY_MAX = 256 << 20,       /* for decoding one message and making its answer */
	TTRPC_LATER_MAX = TTRPC_BODY_IN_MAX /* what may come while a call is parked */
};

/* The gRPC codes that we send (google.golang.org/grpc/codes). */
enum ttrpc_status {
	TTRPC_OK = 0,
	TTRPC_UNKNOWN = 2,
	TTRPC_INVALID_ARGUMENT = 3,
	TTRPC_RESOURCE_EXHAUSTED = 8,
	TTRPC_FAILED_PRECONDITION = 9,
	TTRPC_UNIMPLEMENTED = 12,
	TTRPC_INTERNAL = 13
};

/* What the owner does with messages. Strings and payloads live in the arena; so may those of a
 * reply. A server's lasts until ttrpc_release(), a client's until answered() returns. A return
 * below 0 ends ttrpc_feed(). */
struct ttrpc_events {
	/* server: one call; *reply is an empty success at first. Services other than the one
	 * served do not get here. TTRPC_PARKED: it is not answered now; it comes here again, as
	 * new, with ttrpc_resume(), and what comes behind it waits until then. */
	int (*serve)(void *ctx, const struct ttrpc_request *req, struct arena *a,
		struct ttrpc_response *reply, struct err *e);
	/* server: what is left to do for the call that was answered last, before its arena is
	 * freed. optional */
	void (*after)(void *ctx);
	/* client: the answer to the call on its way */
	int (*answered)(void *ctx, const struct ttrpc_response *r, struct arena *a, struct err *e);
};

enum { TTRPC_PARKED = 1 };

struct ttrpc {
	enum mux_stream stream;
	const char *service; /* the one served, or the one called */
	const struct ttrpc_events *events;
	void *ctx;
	struct bytes *out;

	unsigned char header[TTRPC_HEADER_BYTES];
	unsigned have; /* bytes of header */
	uint32_t left; /* bytes of body still to come */
	bool too_long; /* the body: it is skipped */
	struct bytes body;
	uint32_t last_stream; /* the highest id seen (server) or used (client) */
	bool waiting;         /* client: for the answer on last_stream */
	bool answered;        /* server: the call that the arena is of */
	bool parked;          /* server: header and body are a call that is still to be answered, */
	struct bytes later;   /* and these have come behind it */
	struct arena call;
};

/* One end on a stream of the mux; what it sends is appended to *out. All is borrowed. The one with
 * events->serve is the server. */
void ttrpc_init(struct ttrpc *t, enum mux_stream stream, const char *service,
	const struct ttrpc_events *events, void *ctx, struct bytes *out);
void ttrpc_fini(struct ttrpc *t);

/* Bytes of the stream, cut anywhere. Faulty calls are answered with a status, faulty or unexpected
 * answers are handed on as one or passed over; so it fails only with what an event returned. */
int ttrpc_feed(struct ttrpc *t, const void *data, size_t len, struct err *e);
/* Server: serve the call that is parked, if one is, and what has come behind it. As ttrpc_feed().
 */
int ttrpc_resume(struct ttrpc *t, struct err *e);
/* Server: the answers have gone out: after() is called for the last one, if it was not yet. The
 * next call does so, too. */
void ttrpc_release(struct ttrpc *t);
/* Whether no message has come in part. */
static inline bool ttrpc_is_idle(const struct ttrpc *t)
{
	return !t->have && !t->left;
}
/* Client: send a call; the one before must have been answered. 0; -EILSEQ, -ENOMEM with text. */
int ttrpc_call(struct ttrpc *t, const char *method, struct blob payload, int64_t timeout_ns,
	struct err *e);

/* Make *reply an error with this status and a copy of text in a. Returns 0, for serve(). */
int ttrpc_refuse(
	struct ttrpc_response *reply, struct arena *a, enum ttrpc_status status, const char *text);

#endif
