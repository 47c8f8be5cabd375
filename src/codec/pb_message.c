#include <codec/pb_message.h>

#include <errno.h>
#include <numafit/text.h>
#include <string.h>

static void *alloc_in_arena(void *ctx, size_t size)
{
	return arena_alloc_raw(ctx, size);
}

static void leave_to_arena(void *ctx, void *p)
{
	(void)ctx, (void)p; /* the arena takes all of it back at once */
}

/* Walks the whole message; its depth is that of the .proto file, which has no recursive type. */
static int check_strings(const ProtobufCMessage *m, struct err *e)
{
	for (unsigned k = 0; k < m->descriptor->n_fields; k++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[k];
		/* pointers to the field's values */
		const void *at = (const char *)m + f->offset, *value;
		size_t nr = 1;

		if (f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_STRING)
			continue;
		if (f->label == PROTOBUF_C_LABEL_REPEATED) {
			memcpy(&nr, (const char *)m + f->quantifier_offset, sizeof nr);
			memcpy(&at, at, sizeof at);
		}
		for (size_t i = 0; i < nr; i++) {
			memcpy(&value, (const char *)at + i * sizeof value, sizeof value);
			if (value && f->type == PROTOBUF_C_TYPE_MESSAGE) {
				if (check_strings(value, e) < 0)
					return -EILSEQ;
			} else if (value && !text_is_utf8(value, strlen(value))) {
				return err_set(e, EILSEQ, "%s.%s is not UTF-8",
					m->descriptor->short_name, f->name);
			}
		}
	}
	return 0;
}

void *pb_decode(
	const ProtobufCMessageDescriptor *type, struct blob bytes, struct arena *a, struct err *e)
{
	ProtobufCAllocator in_arena = {alloc_in_arena, leave_to_arena, a};
	ProtobufCMessage *m = protobuf_c_message_unpack(type, &in_arena, bytes.len, bytes.data);

	if (!m) {
		(void)err_set(e, EBADMSG, "%zu bytes are no %s", bytes.len, type->short_name);
		return NULL;
	}
	if (check_strings(m, e) == 0)
		return m;
	if (e)
		e->code = EBADMSG; /* to the reader it is no message, as any other that is none */
	return NULL;
}

int pb_encode(const ProtobufCMessage *m, struct arena *a, struct blob *out, struct err *e)
{
	if (check_strings(m, e) < 0)
		return -EILSEQ;
	size_t len = protobuf_c_message_get_packed_size(m);
	void *bytes = arena_alloc(a, len);
	if (!bytes)
		return err_set(
			e, ENOMEM, "%s of %zu bytes is too large", m->descriptor->short_name, len);
	*out = (struct blob){bytes, protobuf_c_message_pack(m, bytes)};
	return 0;
}

/* The wire (protobuf.dev/programming-guides/encoding): a key is a varint of field number and wire
 * type; groups (3, 4) are not in proto3. */
enum { WIRE_VARINT = 0, WIRE_64_BITS = 1, WIRE_LENGTH = 2, WIRE_32_BITS = 5 };
enum { WIRE_TYPE_BITS = 3, WIRE_TYPE_MASK = 7 };
enum { VARINT_BYTES_MAX = 10, VARINT_BITS = 7, VARINT_MORE = 1 << VARINT_BITS };

static bool wire_skip(struct blob *left, uint64_t len)
{
	if (len > left->len)
		return false;
	*left = (struct blob){(const unsigned char *)left->data + len, left->len - (size_t)len};
	return true;
}

static bool wire_take_varint(struct blob *left, uint64_t *value)
{
	const unsigned char *at = left->data;
	uint64_t v = 0;

	for (unsigned i = 0; i < left->len && i < VARINT_BYTES_MAX; i++) {
		v |= (uint64_t)(at[i] & (VARINT_MORE - 1)) << (VARINT_BITS * i);
		if (!(at[i] & VARINT_MORE)) {
			*value = v;
			return wire_skip(left, i + 1);
		}
	}
	return false;
}

/* Takes what follows the key of a field that is no number. */
static bool wire_skip_value(struct blob *left, unsigned wire_type)
{
	uint64_t len;

	switch (wire_type) {
	case WIRE_64_BITS:
		return wire_skip(left, sizeof(uint64_t));
	case WIRE_LENGTH:
		return wire_take_varint(left, &len) && wire_skip(left, len);
	case WIRE_32_BITS:
		return wire_skip(left, sizeof(uint32_t));
	default:
		return false;
	}
}

int pb_peek_number(struct blob message, unsigned field, uint64_t *number)
{
	uint64_t key, value, found = 0;

	while (message.len) {
		if (!wire_take_varint(&message, &key))
			return -EBADMSG;
		unsigned type = key & WIRE_TYPE_MASK;
		if (type == WIRE_VARINT ? !wire_take_varint(&message, &value)
					: !wire_skip_value(&message, type))
			return -EBADMSG;
		if (key >> WIRE_TYPE_BITS != field)
			continue;
		if (type != WIRE_VARINT)
			return -EBADMSG;
		found = value;
	}
	*number = found;
	return 0;
}
