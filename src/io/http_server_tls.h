#ifndef NUMAFIT_IO_HTTP_SERVER_TLS_H
#define NUMAFIT_IO_HTTP_SERVER_TLS_H

#include <gnutls/gnutls.h>
#include <numafit/err.h>

/* A server's identity in TLS, and the clients that it lets in. Connections that began with one hold
 * it. */
struct http_server_tls;

/* PEM texts; client_ca NULL: clients need no certificate, else one by it whose extendedKeyUsage has
 * clientAuth: one that does not say what it is for is a server's as much as a client's. Held once.
 * NULL with text: a text is none, or certificate and key do not belong together (EINVAL). */
struct http_server_tls *http_server_tls_new(
	const char *cert, const char *key, const char *client_ca, struct err *e);
/* What a session is to report, where clients need a certificate. */
struct http_server_proof {
	void (*proven)(void *ctx);                   /* that it has shown one that is right */
	void (*refused)(void *ctx, const char *why); /* or one that is not, and why */
	void *ctx;
};
/* Begin a session with it, before its handshake, and hold it for the session; *proof must outlive
 * that. Returns t. */
struct http_server_tls *http_server_tls_begin(
	struct http_server_tls *t, gnutls_session_t session, struct http_server_proof *proof);
/* One holder less. NULL is fine. */
void http_server_tls_drop(struct http_server_tls *t);

#endif
