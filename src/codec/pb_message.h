#ifndef NUMAFIT_CODEC_PB_MESSAGE_H
#define NUMAFIT_CODEC_PB_MESSAGE_H

#include <codec/blob.h>
#include <numafit/arena.h>
#include <numafit/err.h>
#include <protobuf-c/protobuf-c.h>

/* protobuf-c on our terms, for the *_pb.c files: messages live in an arena, and a message that
 * holds a string that is not UTF-8 does not exist, in either direction. (proto3 demands it,
 * protobuf-c does not look, and Go fails the whole call.) */

/* The message in bytes, in a. NULL with text and code EBADMSG: not such a message, a string of it
 * is not UTF-8, or the arena's limit. */
void *pb_decode(
	const ProtobufCMessageDescriptor *type, struct blob bytes, struct arena *a, struct err *e);
/* The bytes of the message, in a. 0; -EILSEQ: a string is not UTF-8; -ENOMEM: the arena's limit. */
int pb_encode(const ProtobufCMessage *m, struct arena *a, struct blob *out, struct err *e);

/* The number in a varint field of the message, the last one when there are several, 0 when there is
 * none. Nothing is copied, as decoding does even with fields that nobody knows, and nothing is
 * looked at inside of other fields. 0, or -EBADMSG: not a message. */
int pb_peek_number(struct blob message, unsigned field, uint64_t *number);

/* protobuf-c's structs know no const; what is put into them to be encoded is only read. */
static inline char *pb_string(const char *s)
{
	return (char *)(uintptr_t)(s ? s : "");
}

#endif
