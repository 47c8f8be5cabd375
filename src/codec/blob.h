#ifndef NUMAFIT_CODEC_BLOB_H
#define NUMAFIT_CODEC_BLOB_H

#include <stddef.h>

/* Somebody else's bytes: an encoded message. */
struct blob {
	const void *data;
	size_t len;
};

#endif
