#ifndef NUMAFIT_APISERVER_API_PRIVATE_H
#define NUMAFIT_APISERVER_API_PRIVATE_H

#include <apiserver/api.h>

/* For the reflector: answers that go on. */
struct api_stream {
	const char *path; /* of a GET */
	unsigned idle_ms; /* without a byte, then it is broken off */
	void *ctx;
	/* mandatory: of an answer with status 200, as it comes; -errno ends the call */
	int (*data)(void *ctx, const void *data, size_t len);
	/* mandatory, as api_call()'s; the body was data()'s, unless status is another one. After
	 * data()'s -errno and when it broke off status is 0. */
	void (*done)(void *ctx, const struct api_answer *answer);
};
struct api_call *api_stream(struct api *a, const struct api_stream *s);
struct loop *api_loop(const struct api *a);

#endif
