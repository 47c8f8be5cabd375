#ifndef NUMAFIT_TEST_DRA_WIRE_H
#define NUMAFIT_TEST_DRA_WIRE_H

#include <kubelet/dra_pb.h>
#include <numafit/arena.h>

#include <string.h>

/* What a kubelet sends to a DRA driver, byte by byte (protobuf.dev/programming-guides/encoding), in
 * an arena. */

static inline size_t put_varint(unsigned char *at, size_t value)
{
	size_t len = 0;

	for (; value > 0x7f; value >>= 7)
		at[len++] = (unsigned char)(value | 0x80);
	at[len++] = (unsigned char)value;
	return len;
}

static inline size_t put_field(unsigned char *at, unsigned field, const void *bytes, size_t nr)
{
	size_t len = put_varint(at + 1, nr) + 1;

	at[0] = (unsigned char)(field << 3 | 2);
	memcpy(at + len, bytes, nr);
	return len + nr;
}

/* The request of NodePrepareResources and of NodeUnprepareResources for these claims. */
static inline struct blob dra_wire_request(
	struct arena *a, const struct dra_claim_ref *ref, size_t nr)
{
	enum { ROOM = 4096 };
	unsigned char *all = arena_array(a, nr + 1, ROOM), one[ROOM];
	size_t len = 0;

	for (size_t i = 0; i < nr; i++) {
		size_t n = put_field(one, 1, ref[i].ns, strlen(ref[i].ns));

		n += put_field(one + n, 2, ref[i].uid, strlen(ref[i].uid));
		n += put_field(one + n, 3, ref[i].name, strlen(ref[i].name));
		len += put_field(all + len, 1, one, n);
	}
	return (struct blob){all, len};
}

#endif
