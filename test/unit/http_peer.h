#ifndef NUMAFIT_TEST_HTTP_PEER_H
#define NUMAFIT_TEST_HTTP_PEER_H

/* A server on 127.0.0.1 that does what a test wants, byte by byte: each connection is served
 * by a function of the test's in a thread of its own. TLS is GnuTLS's, so that libcurl's OpenSSL
 * does not speak with itself. */

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PEER_CONNS_MAX = 256, PEER_READ = 64 << 10 };

struct peer_conn {
	struct peer *peer;
	pthread_t thread;
	int fd;
	gnutls_session_t tls; /* NULL: plain */
	char *request;
};

/* cert NULL: plain. client_ca: clients must have a certificate by it. File names. */
struct peer_tls {
	const char *cert, *key, *client_ca;
	const char *priority; /* GnuTLS's, such as "NORMAL:-VERS-ALL:+VERS-TLS1.1"; or NULL */
	bool later;           /* serve() begins it with peer_begin_tls() */
};

struct peer {
	int fd;
	unsigned port;
	pthread_t thread;
	void (*serve)(struct peer_conn *c);
	void *ctx;
	const struct peer_tls *tls;
	gnutls_certificate_credentials_t credentials;
	struct peer_conn *conn[PEER_CONNS_MAX];
	atomic_uint nr_conns, nr_requests;
	atomic_size_t nr_sent;
	pthread_mutex_t lock;
	char *request; /* the last one; under the lock while it may change */
};

static inline ssize_t peer_read(struct peer_conn *c, void *buf, size_t len)
{
	return c->tls ? gnutls_record_recv(c->tls, buf, len) : recv(c->fd, buf, len, 0);
}

/* False: nobody reads it any more. */
static inline bool peer_write(struct peer_conn *c, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = c->tls ? gnutls_record_send(c->tls, at, len)
				   : send(c->fd, at, len, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
		c->peer->nr_sent += (size_t)n;
	}
	return true;
}

static inline bool peer_say(struct peer_conn *c, const char *text)
{
	return peer_write(c, text, strlen(text));
}

static inline size_t peer_body_length(const char *request)
{
	const char *at = strcasestr(request, "\r\ncontent-length:");

	return at ? strtoul(strchr(at, ':') + 1, NULL, 10) : 0;
}

/* The next request, whole, into c->request and peer->request; false: there is none. */
static inline bool peer_hear(struct peer_conn *c)
{
	size_t len = 0, want = 0;

	while (!want || len < want) {
		c->request = realloc(c->request, len + PEER_READ + 1);
		ssize_t n = peer_read(c, c->request + len, PEER_READ);
		if (n <= 0)
			return false;
		len += (size_t)n;
		c->request[len] = '\0';
		const char *end = want ? NULL : strstr(c->request, "\r\n\r\n");
		if (end)
			want = (size_t)(end - c->request) + 4 + peer_body_length(c->request);
	}
	(void)pthread_mutex_lock(&c->peer->lock);
	free(c->peer->request);
	c->peer->request = strdup(c->request);
	(void)pthread_mutex_unlock(&c->peer->lock);
	c->peer->nr_requests++;
	return true;
}

/* Begin TLS on a connection; false: the handshake failed. */
static inline bool peer_begin_tls(struct peer_conn *c)
{
	const struct peer_tls *tls = c->peer->tls;

	(void)gnutls_init(&c->tls, GNUTLS_SERVER);
	if (tls->priority)
		(void)gnutls_priority_set_direct(c->tls, tls->priority, NULL);
	else
		(void)gnutls_set_default_priority(c->tls);
	(void)gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, c->peer->credentials);
	gnutls_certificate_server_set_request(
		c->tls, tls->client_ca ? GNUTLS_CERT_REQUIRE : GNUTLS_CERT_IGNORE);
	if (tls->client_ca)
		gnutls_session_set_verify_cert(c->tls, NULL, 0);
	gnutls_transport_set_int(c->tls, c->fd);
	int rc;
	do
		rc = gnutls_handshake(c->tls);
	while (rc < 0 && !gnutls_error_is_fatal(rc));
	if (rc < 0) /* a client is answered why */
		(void)gnutls_alert_send_appropriate(c->tls, rc);
	return rc == 0;
}

static const struct peer_tls peer_plain;

static inline void *peer_serve(void *arg)
{
	struct peer_conn *c = arg;

	if (!c->peer->tls->cert || c->peer->tls->later || peer_begin_tls(c))
		c->peer->serve(c);
	if (c->tls)
		gnutls_deinit(c->tls);
	(void)shutdown(c->fd, SHUT_RDWR); /* peer_stop() closes it */
	return NULL;
}

static inline void *peer_accept(void *arg)
{
	struct peer *p = arg;
	int fd;

	while ((fd = accept(p->fd, NULL, NULL)) >= 0) {
		struct peer_conn *c = calloc(1, sizeof *c);

		c->peer = p;
		c->fd = fd;
		if (p->nr_conns == PEER_CONNS_MAX)
			abort();
		p->conn[p->nr_conns] = c;
		p->nr_conns++;
		if (pthread_create(&c->thread, NULL, peer_serve, c))
			abort();
	}
	return NULL;
}

static inline struct peer *peer_start(
	void (*serve)(struct peer_conn *c), const struct peer_tls *tls, void *ctx)
{
	struct peer *p = calloc(1, sizeof *p);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;

	p->serve = serve;
	p->tls = tls ? tls : &peer_plain;
	p->ctx = ctx;
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)gnutls_certificate_allocate_credentials(&p->credentials);
	if (p->tls->cert && gnutls_certificate_set_x509_key_file(p->credentials, p->tls->cert,
				    p->tls->key, GNUTLS_X509_FMT_PEM) < 0)
		abort();
	if (p->tls->client_ca && gnutls_certificate_set_x509_trust_file(p->credentials,
					 p->tls->client_ca, GNUTLS_X509_FMT_PEM) < 0)
		abort();
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(p->fd, (struct sockaddr *)&at, sizeof at) || listen(p->fd, PEER_CONNS_MAX) ||
		getsockname(p->fd, (struct sockaddr *)&at, &len))
		abort();
	p->port = ntohs(at.sin_port);
	if (pthread_create(&p->thread, NULL, peer_accept, p))
		abort();
	return p;
}

/* NULL is fine. */
static inline void peer_stop(struct peer *p)
{
	if (!p)
		return;
	(void)shutdown(p->fd, SHUT_RDWR);
	(void)pthread_join(p->thread, NULL);
	for (unsigned i = 0; i < p->nr_conns; i++) {
		(void)shutdown(p->conn[i]->fd, SHUT_RDWR);
		(void)pthread_join(p->conn[i]->thread, NULL);
		(void)close(p->conn[i]->fd);
		free(p->conn[i]->request);
		free(p->conn[i]);
	}
	(void)close(p->fd);
	gnutls_certificate_free_credentials(p->credentials);
	(void)pthread_mutex_destroy(&p->lock);
	free(p->request);
	free(p);
}

#endif
