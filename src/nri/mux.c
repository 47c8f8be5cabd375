#include <nri/mux.h>

#include <numafit/number.h>

#include <errno.h>
#include <string.h>

enum { LENGTH_OFFSET = 4, BYTE_BITS = 8, U32_BYTES = 4 };

uint32_t wire_get_u32(const unsigned char *from)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < U32_BYTES; i++)
		value = value << BYTE_BITS | from[i];
	return value;
}

void wire_put_u32(unsigned char *to, uint32_t value)
{
	for (unsigned i = U32_BYTES; i-- > 0; value >>= BYTE_BITS)
		to[i] = (unsigned char)value;
}

int mux_feed(struct mux *m, const void *data, size_t len, mux_sink *sink, void *ctx, struct err *e)
{
	const unsigned char *at = data, *end = at + len;

	while (at < end) {
		size_t n;
		int rc = 0;

		if (m->have < MUX_HEADER_BYTES) {
			n = number_min(MUX_HEADER_BYTES - m->have, (size_t)(end - at));
			memcpy(m->header + m->have, at, n);
			at += n;
			m->have += (unsigned)n;
			if (m->have < MUX_HEADER_BYTES)
				return 0;
			m->stream = wire_get_u32(m->header);
			m->left = wire_get_u32(m->header + LENGTH_OFFSET);
			if (m->left > MUX_FRAME_MAX)
				return err_set(e, EPROTO,
					"a frame of %u bytes on stream %u: the limit is %d",
					m->left, m->stream, MUX_FRAME_MAX);
		}
		n = number_min(m->left, (size_t)(end - at));
		if (n && (m->stream == MUX_PLUGIN || m->stream == MUX_RUNTIME))
			rc = sink(ctx, (enum mux_stream)m->stream, at, n, e);
		at += n;
		m->left -= (uint32_t)n;
		if (!m->left)
			m->have = 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void append_frame(struct bytes *out, enum mux_stream stream, struct blob payload)
{
	unsigned char *header = bytes_extend(out, MUX_HEADER_BYTES);

	wire_put_u32(header, stream);
	wire_put_u32(header + LENGTH_OFFSET, (uint32_t)payload.len);
	bytes_append(out, payload.data, payload.len);
}

void mux_append(struct bytes *out, enum mux_stream stream, struct blob header, struct blob body)
{
	append_frame(out, stream, header);
	if (body.len)
		append_frame(out, stream, body);
}
