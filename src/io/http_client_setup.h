#ifndef NUMAFIT_IO_HTTP_CLIENT_SETUP_H
#define NUMAFIT_IO_HTTP_CLIENT_SETUP_H

#include <io/http_client.h>
#include <io/http_client_curl.h>

/* What libcurl needs to know of a call before it begins. */

/* A handle that is never used itself: the rules that hold for every call, and the trust. 0 and the
 * caller ends it with easy_cleanup(), or -errno with text. */
int http_model_new(
	CURL **model, const struct libcurl *curl, const struct http_trust *trust, struct err *e);

enum { HTTP_PEER_MAX = 320 }; /* a host name has up to 253 characters */

struct http_setup {
	CURL *easy;
	struct curl_slist *headers, *connect_to;
	char peer[HTTP_PEER_MAX]; /* "https://10.0.0.1:443", for error texts */
};

/* A copy of the model that asks for ask. server_name: of http_trust, or NULL. 0, or -EINVAL with
 * text; *s is to be ended with http_setup_fini() in either case. */
int http_setup_init(struct http_setup *s, const struct libcurl *curl, CURL *model,
	const char *server_name, const struct http_ask *ask, struct err *e);
void http_setup_fini(struct http_setup *s, const struct libcurl *curl);

#endif
