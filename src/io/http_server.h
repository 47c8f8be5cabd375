#ifndef NUMAFIT_IO_HTTP_SERVER_H
#define NUMAFIT_IO_HTTP_SERVER_H

#include <io/loop.h>

/* An HTTP server on the loop, by libmicrohttpd; HTTPS when it is given a certificate. Connections
 * are kept; how many there are, how long they may idle and how much they send is limited: a request
 * must be there within twice idle_s of its connection's begin or last answer, and an answer be
 * taken in that time, however many bytes come or go meanwhile. */
struct http_server;
struct http_exchange; /* one request, until it is answered */

struct http_request {
	const char *method, *path; /* "POST", "/filter"; without the query */
	const char *query;         /* what is behind '?', as it came, or "" */
	const char *type;          /* Content-Type, or "" */
	const char *body;          /* with a NUL behind it */
	size_t len;
	bool local; /* the client is on this machine (loopback) */
};

struct http_server_options {
	const char *address; /* "127.0.0.1:9465", "[::1]:9465", ":0" (every address, any port) */
	/* PEM texts; NULL: plain HTTP. client_ca: clients must have a certificate by it, good for
	 * clients, or the handshake fails. */
	const char *cert, *key, *client_ca;
	size_t body_max;      /* 0: 64 KiB; a longer one is answered with 413 */
	unsigned clients_max; /* connections; for others who is idle or slow goes; 0: 64 */
	unsigned idle_s;      /* 0: 30 */
	void *ctx;
	/* mandatory: answer now or in a later turn, with http_answer_send(), once. *r is valid
	 * during the call, the body until the answer. */
	void (*handle)(void *ctx, struct http_exchange *x, const struct http_request *r);
	/* optional: the client is gone, or has closed its side, before it was answered; x is dead
	 */
	void (*gone)(void *ctx, struct http_exchange *x);
};

/* The texts of *o are borrowed for the call. NULL with text: the address is none (EINVAL), is in
 * use, or may not be used; a PEM text is none (EINVAL). */
struct http_server *http_server_new(
	struct loop *l, const struct http_server_options *o, struct err *e);
/* For connections that begin from now on, of a server with a certificate: another one, with its
 * key, and another authority of clients' certificates (as in the options). Who is connected stays
 * so. -EINVAL with text: a PEM text is none, or they do not belong together; all is as it was. */
int http_server_set_tls(struct http_server *s, const char *cert, const char *key,
	const char *client_ca, struct err *e);
/* The port that it listens on. */
unsigned http_server_port(const struct http_server *s);
/* x is dead afterwards. The body is copied; type is a literal. extra: one header more, such as
 * "Retry-After: 1", or NULL. */
void http_answer_send(struct http_exchange *x, int status, const char *type, const void *body,
	size_t len, const char *extra);
/* What was answered goes out, as far as sockets take it at once; what is not answered yet never
 * will be, and gone() is not called. Before loop_free(), and not from within handle() or gone().
 * NULL is fine. */
void http_server_free(struct http_server *s);

#endif
