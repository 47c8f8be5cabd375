#ifndef NUMAFIT_IO_HTTP_SERVER_H
#define NUMAFIT_IO_HTTP_SERVER_H

#include <io/loop.h>
#include <sys/socket.h>

/* An HTTP server on the loop, by libmicrohttpd; HTTPS when it is given a certificate. Connections
 * are kept after an answer.
 *
 * Nobody outside can hold it up. A connection waits in front (io/http_door.h) until it has sent the
 * head of a request, or the first message of a TLS handshake; then it takes one of clients_max
 * places. Places are shared between sources, a part of them is kept for this machine's own
 * addresses, and with all of them taken the oldest that says nothing makes room. Times count
 * from where they begin, however many bytes come or go meanwhile: first_ms for the handshake and
 * the head of the first request, request_ms for a request's body, twice idle_s for the next request
 * and for taking an answer.
 *
 * A request whose path has a control character (as "%00", too), or that has Host, Content-Type,
 * Content-Length or Sec-Fetch-Site twice, is answered with 400 and never handed over. */
struct http_server;
struct http_exchange; /* one request, until it is answered */

struct http_request {
	const char *method, *path; /* "POST", "/filter"; without the query */
	const char *query;         /* what is behind '?', as it came, or "" */
	const char *type;          /* Content-Type, or "" */
	const char *host;          /* Host, or "" */
	const char *site; /* Sec-Fetch-Site, by which browsers say whose page asks, or "" */
	const char *body; /* with a NUL behind it */
	size_t len;
	bool local; /* the client is on this machine (loopback) */
};

struct http_server_options {
	const char *address; /* "127.0.0.1:9465", "[::1]:9465", ":0" (every address, any port) */
	/* PEM texts; NULL: plain HTTP. client_ca: clients must have a certificate by it, with
	 * clientAuth in its extendedKeyUsage, or the handshake fails. */
	const char *cert, *key, *client_ca;
	size_t body_max; /* 0: 64 KiB; a longer one is answered with 413 */
	bool no_body;    /* is expected: one is passed over, and not waited for */
	size_t held_max; /* bytes of all bodies and answers; beyond: 503; 0: 64 MiB, or one body */
	unsigned clients_max; /* places; 0: 64 */
	unsigned waiting_max; /* connections in front of them; 0: 4096, or what descriptors allow */
	unsigned first_ms;    /* 0: 2000 */
	unsigned request_ms;  /* 0: 10,000 */
	unsigned idle_s;      /* 0: 30 */
	/* Whether places are kept for that address; NULL: for this host's own, and those in
	 * also_own (as for own_addresses_new()). */
	const char *also_own;
	bool (*is_own)(const struct sockaddr *address);
	void *ctx;
	/* mandatory: answer now or in a later turn, with http_answer_send(), once. *r is valid
	 * during the call, the body until the answer. */
	void (*handle)(void *ctx, struct http_exchange *x, const struct http_request *r);
	/* optional: a client has shown a certificate that is not taken, and why */
	void (*stranger)(void *ctx, const char *why);
	/* optional: the client is gone, or has closed its side, before it was answered; x is dead
	 */
	void (*gone)(void *ctx, struct http_exchange *x);
};

/* What was turned away, since the start. */
struct http_counts {
	uint64_t crowded; /* connections closed to make room */
	uint64_t slow;    /* connections closed as their time was over */
	uint64_t refused; /* requests answered with 503, as held_max was reached */
};

/* The texts of *o are borrowed for the call. NULL with text: the address is none (EINVAL), is in
 * use, or may not be used; a PEM text is none (EINVAL). */
struct http_server *http_server_new(
	struct loop *l, const struct http_server_options *o, struct err *e);
/* For connections that begin from now on, of a server with a certificate: another one, with its
 * key, and another authority of clients' certificates (as in the options). A client that is
 * connected stays so. -EINVAL with text: a PEM text is none, or they do not belong together; all is
 * as it was. */
int http_server_set_tls(struct http_server *s, const char *cert, const char *key,
	const char *client_ca, struct err *e);
/* Whether a server could have them: 0, or as http_server_set_tls(). */
int http_server_check_tls(const char *cert, const char *key, const char *client_ca, struct err *e);
/* The port that it listens on. */
unsigned http_server_port(const struct http_server *s);
struct http_counts http_server_counts(const struct http_server *s);
/* x is dead afterwards. The body is copied; type is a literal. extra: more headers, such as
 * "Retry-After: 1", each but the last with a newline behind it; or NULL. */
void http_answer_send(struct http_exchange *x, int status, const char *type, const void *body,
	size_t len, const char *extra);
/* What was answered goes out, as far as sockets take it at once; what is not answered yet never
 * will be, and gone() is not called. Before loop_free(), and not from within handle() or gone().
 * NULL is fine. */
void http_server_free(struct http_server *s);

#endif
