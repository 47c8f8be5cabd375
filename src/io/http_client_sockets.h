#ifndef NUMAFIT_IO_HTTP_CLIENT_SOCKETS_H
#define NUMAFIT_IO_HTTP_CLIENT_SOCKETS_H

#include <io/http_client_curl.h>
#include <io/loop.h>

/* The sockets and the timer of libcurl's multi handle, on the loop. */
struct http_sockets;

/* ready(): what curl_multi_socket_action() is to be called with, in a turn of its own. */
struct http_sockets *http_sockets_new(struct loop *l, const struct libcurl *curl, CURLM *multi,
	void *ctx, void (*ready)(void *ctx, curl_socket_t fd, int events));
/* After the multi handle, which may speak of sockets to the last. */
void http_sockets_free(struct http_sockets *s);

#endif
