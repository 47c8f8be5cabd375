#include <nri/pb_message.h>

#include <errno.h>
#include <numafit/text.h>
#include <string.h>

static void *give(void *ctx, size_t size)
{
	return arena_alloc(ctx, size);
}

static void keep(void *ctx, void *p)
{
	(void)ctx, (void)p; /* the arena takes all of it back at once */
}

/* The i-th value of a string or message field; NULL when there is none. */
static const void *field_value(
	const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, size_t i)
{
	const char *at = (const char *)m + f->offset;
	const void *p;

	memcpy(&p, at, sizeof p);
	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		memcpy(&p, (const char *)p + i * sizeof p, sizeof p);
	return p;
}

static size_t field_count(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	size_t nr = 1;

	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		memcpy(&nr, (const char *)m + f->quantifier_offset, sizeof nr);
	return nr;
}

static int check_strings(const ProtobufCMessage *m, struct err *e);

static int check_value(
	const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, size_t i, struct err *e)
{
	const void *value = field_value(m, f, i);

	if (!value)
		return 0;
	if (f->type == PROTOBUF_C_TYPE_MESSAGE)
		return check_strings(value, e);
	if (!text_is_utf8(value, strlen(value)))
		return err_set(e, EILSEQ, "%s.%s is not UTF-8", m->descriptor->short_name, f->name);
	return 0;
}

/* Walks the whole message; its depth is that of the .proto file, which has no recursive type. */
static int check_strings(const ProtobufCMessage *m, struct err *e)
{
	for (unsigned k = 0; k < m->descriptor->n_fields; k++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[k];

		if (f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_STRING)
			continue;
		for (size_t i = 0, nr = field_count(m, f); i < nr; i++)
			if (check_value(m, f, i, e) < 0)
				return -EILSEQ;
	}
	return 0;
}

void *pb_decode(
	const ProtobufCMessageDescriptor *type, struct blob bytes, struct arena *a, struct err *e)
{
	ProtobufCAllocator in_arena = {give, keep, a};
	ProtobufCMessage *m = protobuf_c_message_unpack(type, &in_arena, bytes.len, bytes.data);

	if (!m) {
		(void)err_set(e, EBADMSG, "%zu bytes are no %s", bytes.len, type->short_name);
		return NULL;
	}
	return check_strings(m, e) < 0 ? NULL : m;
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
