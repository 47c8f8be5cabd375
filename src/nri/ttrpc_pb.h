#ifndef NUMAFIT_NRI_TTRPC_PB_H
#define NUMAFIT_NRI_TTRPC_PB_H

#include <nri/bytes.h>
#include <numafit/arena.h>
#include <numafit/err.h>
#include <stdint.h>

/* The bodies of ttrpc's messages. All that is decoded lives in the arena, and so do the bytes of
 * what is encoded. */

struct ttrpc_request {
	const char *service, *method;
	struct blob payload;
	int64_t timeout_ns; /* 0: none */
};

struct ttrpc_response {
	int status;          /* 0, or a gRPC code: then there is no payload */
	const char *message; /* why; "" or NULL with status 0 */
	struct blob payload;
};

/* 0, or -EBADMSG with text. */
int ttrpc_request_decode(
	struct blob body, struct arena *a, struct ttrpc_request *out, struct err *e);
int ttrpc_response_decode(
	struct blob body, struct arena *a, struct ttrpc_response *out, struct err *e);
/* 0; -EILSEQ, -ENOMEM with text. A response's message that is not UTF-8 is sent with question
 * marks in it: the text of an error may have been cut anywhere, and must get through. */
int ttrpc_request_encode(
	const struct ttrpc_request *req, struct arena *a, struct blob *out, struct err *e);
int ttrpc_response_encode(
	const struct ttrpc_response *r, struct arena *a, struct blob *out, struct err *e);

#endif
