#ifndef NUMAFIT_NRI_BYTES_H
#define NUMAFIT_NRI_BYTES_H

#include <codec/blob.h>

/* A growing run of bytes on the heap. Zeros are an empty one. */
struct bytes {
	unsigned char *at;
	size_t len, cap;
};

/* Room for len more bytes at the end, to be filled by the caller; they count as there. */
unsigned char *bytes_extend(struct bytes *b, size_t len);
void bytes_append(struct bytes *b, const void *data, size_t len);
/* Make it empty; memory beyond a small buffer is given back. */
void bytes_clear(struct bytes *b);
void bytes_fini(struct bytes *b);

/* What a protocol engine has to send: one run that fills up while the one handed out last is still
 * being read. */
struct outbox {
	struct bytes filling, taken;
};

/* The number of bytes to send, *data valid until the next call; they count as sent. */
size_t outbox_take(struct outbox *o, const void **data);
void outbox_fini(struct outbox *o);

#endif
