#ifndef NUMAFIT_NRI_MUX_H
#define NUMAFIT_NRI_MUX_H

#include <nri/bytes.h>
#include <numafit/err.h>
#include <stdbool.h>
#include <stdint.h>

/* NRI's lowest layer (containerd/nri pkg/net/multiplex): two byte streams share one socket as
 * frames of connection id (4 bytes), length (4 bytes), both big-endian, and payload. A stream's
 * bytes are cut into frames anywhere; frames of the two streams may alternate. */

enum mux_stream {
	MUX_PLUGIN = 1, /* carries the runtime's calls to the plugin */
	MUX_RUNTIME = 2 /* carries the plugin's calls to the runtime */
};

enum {
	MUX_HEADER_BYTES = 8,
	/* The largest message (ttrpc.h) in one frame, with room for its header. NRI up to 0.6.1
	 * sends frames of up to 16 MiB, later ones of up to 4 MiB. */
	MUX_FRAME_MAX = (32 << 20) + (64 << 10)
};

/* The receiving half. Zeros are its beginning; it owns nothing. */
struct mux {
	unsigned char header[MUX_HEADER_BYTES];
	unsigned have; /* bytes of header */
	uint32_t left; /* bytes of payload still to come */
	uint32_t stream;
};

/* Gets a piece of a stream's bytes, never an empty one. A return below 0 ends mux_feed(). */
typedef int mux_sink(
	void *ctx, enum mux_stream stream, const void *data, size_t len, struct err *e);

/* Take in len bytes from the socket and pass on what they hold, at once: nothing is kept back.
 * Frames of streams that nobody knows are skipped, as the Go side does. 0; -EPROTO: a frame above
 * MUX_FRAME_MAX; else what sink returned. After an error the connection is of no more use. */
int mux_feed(struct mux *m, const void *data, size_t len, mux_sink *sink, void *ctx, struct err *e);

/* Whether no frame has come in part. */
static inline bool mux_is_idle(const struct mux *m)
{
	return !m->have && !m->left;
}

/* Append one message to out as the one shape that every runtime understands: its header as a frame
 * and, unless it is empty, its body as a second one. (The Go side reads the beginning of a message
 * through a buffer of 4,096 bytes and gives the connection up when the frame does not fit; it also
 * gives up on too many frames.) */
void mux_append(struct bytes *out, enum mux_stream stream, struct blob header, struct blob body);

/* Numbers in network order, for the headers of mux and ttrpc. */
uint32_t wire_get_u32(const unsigned char *from);
void wire_put_u32(unsigned char *to, uint32_t value);

#endif
