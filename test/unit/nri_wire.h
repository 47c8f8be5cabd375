#ifndef TEST_NRI_WIRE_H
#define TEST_NRI_WIRE_H

#include <nri/ttrpc.h>
#include <numafit/mem.h>
#include <stdio.h>
#include <string.h>

/* Bytes for the NRI tests: a recorded conversation, a protobuf encoder that knows no schema, and
 * the other side's framing. */

/* What a plugin and containerd say to each other, as NRI 0.6.1 (configure_0_12: 0.12.2) put it on
 * the socket: frame header, ttrpc header, body. Replies of ours are recorded as one frame. */
#define SERVICE_HEX "0a1b6e72692e706b672e6170692e7631616c706861312e506c7567696e"
#define POD_HEX                                                                                    \
	"0a2a0a0270301204706f64301a027530220764656661756c7442111a0f2f6b756265706f64732f706f647530"
static const char register_hex[] = "0000000200000047 0000003d000000010100 "
				   "0a1c6e72692e706b672e6170692e7631616c706861312e52756e74696d65120"
				   "e5265676973746572506c7567696e"
				   "1a0d0a076e756d6170696e12023130";
static const char registered_hex[] = "000000020000000a 00000000000000010200";
static const char configure_0_6_hex[] =
	"000000010000004f 00000045000000010100 " SERVICE_HEX
	"1209436f6e6669677572651a15120a636f6e7461696e6572641a0776312e372e323420e3b3d3b907";
static const char configure_0_8_hex[] = "0000000100000055 0000004b000000010100 " SERVICE_HEX
					"1209436f6e6669677572651a1b120a636f6e7461696e6572641a077631"
					"2e372e323620882728d00f2080a8d6b907";
static const char configure_0_12_hex[] =
	"0000000100000064 0000005a000000010100 " SERVICE_HEX
	"1209436f6e6669677572651a2a120a636f6e7461696e6572641a0776312e372e323420882728d00f"
	"320d302e302e302d756e6b6e6f776e20bab3d0b907";
static const char all_events_hex[] = "000000010000000f 00000005000000010200 120310ff0f";
static const char configured_hex[] = "000000010000000f 00000005000000010200 120310df0d";
static const char synchronize_hex[] = "0000000100000068 0000005e000000030100 " SERVICE_HEX
				      "120b53796e6368726f6e697a651a2c" POD_HEX "20a19cc9b907";
static const char synchronized_hex[] = "000000010000000a 00000000000000030200";
static const char chunk_taken_hex[] = "000000010000000e 00000004000000030200 12021001";
static const char synchronized_c7_hex[] = "0000000100000023 00000019000000030200 "
					  "12170a150a026337120d0a0b12093204382d31353a01311801";
static const char create_hex[] = "0000000100000095 0000008b000000050100 " SERVICE_HEX
				 "120f437265617465436f6e7461696e65721a55" POD_HEX
				 "12270a026331120270301a02633052005a171a150a0012110a03088010120408c"
				 "09a0c1a0408a08d0620abf6b9b907";
static const char created_hex[] =
	"000000010000001c 00000012000000050200 12100a0e320c120a12083203302d373a0130";
static const char created_c7_hex[] =
	"0000000100000033 00000029000000050200 "
	"12270a0e320c120a12083203302d373a013012150a026337120d0a0b12093204382d31353a01311801";
static const char refused_hex[] = "0000000100000021 00000017000000070200 "
				  "0a15080212116e6f204e554d41206e6f64652066697473";
static const char unimplemented_hex[] =
	"000000010000001a 00000010000000090200 0a0e080c120a6d6574686f6420466f6f";
static const char update_containers_hex[] = "0000000200000053 00000049000000030100 "
					    "0a1c6e72692e706b672e6170692e7631616c706861312e52756e74"
					    "696d651210557064617465436f6e7461696e657273"
					    "1a170a150a026337120d0a0b12093204382d31353a01311801";
static const char update_failed_hex[] =
	"0000000200000034 0000002a000000030200 "
	"0a28080212244e524920757064617465206f6620736f6d6520636f6e7461696e657273206661696c6564";
static const char state_change_hex[] =
	"0000000100000070 000000660000000b0100 " SERVICE_HEX
	"120b53746174654368616e67651a34080b122a0a0270301204706f64301a027530220764656661756c74"
	"42111a0f2f6b756265706f64732f706f6475301a040a0263312080a8d6b907";
static const char remove_hex[] =
	"0000000100000072 000000680000000d0100 " SERVICE_HEX
	"120f52656d6f7665436f6e7461696e65721a32" POD_HEX "12040a0263312080a8d6b907";

static const struct {
	const char *hex;
	const char *name;
} transcript[] = {
	{register_hex, "register"},
	{registered_hex, "registered"},
	{configure_0_6_hex, "configure 0.6"},
	{configure_0_8_hex, "configure 0.8"},
	{configure_0_12_hex, "configure 0.12"},
	{all_events_hex, "all events"},
	{configured_hex, "configured"},
	{synchronize_hex, "synchronize"},
	{synchronized_hex, "synchronized"},
	{chunk_taken_hex, "chunk taken"},
	{synchronized_c7_hex, "synchronized, c7"},
	{create_hex, "create"},
	{created_hex, "created"},
	{created_c7_hex, "created, c7"},
	{refused_hex, "refused"},
	{unimplemented_hex, "unimplemented"},
	{update_containers_hex, "update containers"},
	{update_failed_hex, "update failed"},
	{state_change_hex, "state change"},
	{remove_hex, "remove"},
};
enum { NR_TRANSCRIPT = sizeof transcript / sizeof *transcript };

/* Append the bytes written as hex digits; spaces are passed over. */
static inline void add_hex(struct bytes *out, const char *hex)
{
	for (; *hex; hex += 2) {
		unsigned value;

		while (*hex == ' ')
			hex++;
		if (sscanf(hex, "%2x", &value) != 1)
			abort();
		*bytes_extend(out, 1) = (unsigned char)value;
	}
}

/* The ttrpc body of a transcript line. */
static inline struct blob body_of(struct bytes *line)
{
	size_t skip = MUX_HEADER_BYTES + TTRPC_HEADER_BYTES;

	return (struct blob){line->at + skip, line->len - skip};
}

/* protobuf without a schema */

static inline void put_varint(struct bytes *out, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		*bytes_extend(out, 1) = (unsigned char)(v | 0x80);
	*bytes_extend(out, 1) = (unsigned char)v;
}
static inline void put_number(struct bytes *out, unsigned field, uint64_t v)
{
	put_varint(out, field << 3);
	put_varint(out, v);
}
static inline void put_bytes(struct bytes *out, unsigned field, const void *data, size_t len)
{
	put_varint(out, field << 3 | 2);
	put_varint(out, len);
	bytes_append(out, data, len);
}
static inline void put_text(struct bytes *out, unsigned field, const char *s)
{
	put_bytes(out, field, s, strlen(s));
}
/* inner is emptied and freed */
static inline void put_message(struct bytes *out, unsigned field, struct bytes *inner)
{
	put_bytes(out, field, inner->at, inner->len);
	bytes_fini(inner);
}

/* The other side's framing: as the Go side cuts a message, 4,096 bytes and then the rest. */

enum { GO_BUFFER = 4096, TYPE_REQUEST = 1, TYPE_RESPONSE = 2, TYPE_DATA = 3 };

static inline void put_frame(struct bytes *out, uint32_t stream, const void *data, size_t len)
{
	unsigned char *header = bytes_extend(out, MUX_HEADER_BYTES);

	wire_put_u32(header, stream);
	wire_put_u32(header + 4, (uint32_t)len);
	bytes_append(out, data, len);
}

static inline void put_ttrpc(struct bytes *out, uint32_t id, unsigned type, struct blob body)
{
	unsigned char *header = bytes_extend(out, TTRPC_HEADER_BYTES);

	memset(header, 0, TTRPC_HEADER_BYTES);
	wire_put_u32(header, (uint32_t)body.len);
	wire_put_u32(header + 4, id);
	header[8] = (unsigned char)type;
	bytes_append(out, body.data, body.len);
}

static inline void put_go_message(
	struct bytes *out, uint32_t stream, uint32_t id, unsigned type, struct blob body)
{
	struct bytes m = {0};

	put_ttrpc(&m, id, type, body);
	size_t first = m.len < GO_BUFFER ? m.len : GO_BUFFER;
	put_frame(out, stream, m.at, first);
	if (m.len > first)
		put_frame(out, stream, m.at + first, m.len - first);
	bytes_fini(&m);
}

/* A call of the runtime to the plugin; payload is emptied and freed. */
static inline void put_call(
	struct bytes *out, uint32_t id, const char *method, struct bytes *payload)
{
	struct bytes body = {0};

	put_text(&body, 1, "nri.pkg.api.v1alpha1.Plugin");
	put_text(&body, 2, method);
	put_message(&body, 3, payload);
	put_go_message(out, MUX_PLUGIN, id, TYPE_REQUEST, (struct blob){body.at, body.len});
	bytes_fini(&body);
}

/* What we sent, checked and taken apart. */

struct sent {
	uint32_t stream, id;
	unsigned type;
	struct blob body; /* borrowed from what was sent */
};

/* Take the next message from the bytes that we sent, which must have the one allowed shape: a
 * frame with a header, then, unless the body is empty, a frame with the whole body. */
static inline struct sent next_sent(struct blob *out)
{
	const unsigned char *at = out->data;
	struct sent m;
	size_t used = MUX_HEADER_BYTES + TTRPC_HEADER_BYTES;

	assert_true(out->len >= used);
	assert_int_equal(wire_get_u32(at + 4), TTRPC_HEADER_BYTES);
	m.stream = wire_get_u32(at);
	size_t len = wire_get_u32(at + MUX_HEADER_BYTES);
	m.id = wire_get_u32(at + MUX_HEADER_BYTES + 4);
	m.type = at[MUX_HEADER_BYTES + 8];
	assert_int_equal(at[MUX_HEADER_BYTES + 9], 0);
	assert_true(len <= TTRPC_BODY_OUT_MAX);
	m.body = (struct blob){at + used, len};
	if (len) {
		assert_true(out->len >= used + MUX_HEADER_BYTES + len);
		assert_int_equal(wire_get_u32(at + used), m.stream);
		assert_int_equal(wire_get_u32(at + used + 4), len);
		m.body.data = at + used + MUX_HEADER_BYTES;
		used += MUX_HEADER_BYTES + len;
	}
	*out = (struct blob){at + used, out->len - used};
	return m;
}

/* The next message that we sent is what the transcript's line holds. */
static inline void assert_next_sent_is(struct blob *out, const char *hex)
{
	struct bytes want = {0}, got = {0};
	struct sent m = next_sent(out);

	add_hex(&want, hex);
	put_ttrpc(&got, m.id, m.type, m.body);
	assert_int_equal(m.stream, wire_get_u32(want.at));
	assert_int_equal(got.len, want.len - MUX_HEADER_BYTES);
	assert_memory_equal(got.at, want.at + MUX_HEADER_BYTES, got.len);
	bytes_fini(&want);
	bytes_fini(&got);
}

#endif
