#include <io/http_server_tls.h>

#include <errno.h>
#include <gnutls/x509.h>
#include <numafit/mem.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct http_server_tls {
	gnutls_certificate_credentials_t credentials;
	bool asks_clients;
	unsigned nr_holders;
};

static gnutls_datum_t datum(const char *pem)
{
	return (gnutls_datum_t){(void *)(uintptr_t)pem, (unsigned)strlen(pem)};
}

static int set_own(struct http_server_tls *t, const char *cert, const char *key, struct err *e)
{
	const gnutls_datum_t c = datum(cert), k = datum(key);
	int rc = gnutls_certificate_set_x509_key_mem(t->credentials, &c, &k, GNUTLS_X509_FMT_PEM);

	return rc >= 0 ? 0
		       : err_set(e, EINVAL, "the server's certificate and key: %s",
				 gnutls_strerror(rc));
}

static int set_clients(struct http_server_tls *t, const char *client_ca, struct err *e)
{
	if (!client_ca)
		return 0;
	const gnutls_datum_t ca = datum(client_ca);
	int rc = gnutls_certificate_set_x509_trust_mem(t->credentials, &ca, GNUTLS_X509_FMT_PEM);

	t->asks_clients = true;
	if (rc > 0)
		return 0;
	return err_set(e, EINVAL, "the authority of clients' certificates: %s",
		gnutls_strerror(rc ? rc : GNUTLS_E_NO_CERTIFICATE_FOUND));
}

struct http_server_tls *http_server_tls_new(
	const char *cert, const char *key, const char *client_ca, struct err *e)
{
	struct http_server_tls *t = xcalloc(1, sizeof *t);

	t->nr_holders = 1;
	if (gnutls_certificate_allocate_credentials(&t->credentials))
		abort(); /* no memory is left, as in mem.h */
	if (!set_own(t, cert, key, e) && !set_clients(t, client_ca, e))
		return t;
	http_server_tls_drop(t);
	return NULL;
}

/* The handshake fails unless the client shows a certificate that is by the authority and for
 * clients. */
static void require_certificate(gnutls_session_t session)
{
	static unsigned char for_clients[] = GNUTLS_KP_TLS_WWW_CLIENT;
	static gnutls_typed_vdata_st purpose = {
		.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = for_clients};

	gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
	gnutls_session_set_verify_cert2(session, &purpose, 1, 0);
}

/* The client's last message of the handshake is there, so that its certificate is right, too. */
static int finished(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
	const gnutls_datum_t *message)
{
	const struct http_server_proof *proof = gnutls_db_get_ptr(session);

	(void)type, (void)when, (void)message;
	if (incoming)
		proof->proven(proof->ctx);
	return 0;
}

/* Sessions are kept in no database here: its pointer is free for us. */
static void await_proof(gnutls_session_t session, struct http_server_proof *proof)
{
	gnutls_db_set_ptr(session, proof);
	gnutls_handshake_set_hook_function(
		session, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST, finished);
}

struct http_server_tls *http_server_tls_begin(
	struct http_server_tls *t, gnutls_session_t session, struct http_server_proof *proof)
{
	if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, t->credentials))
		abort(); /* as above */
	if (t->asks_clients) {
		require_certificate(session);
		await_proof(session, proof);
	}
	t->nr_holders++;
	return t;
}

void http_server_tls_drop(struct http_server_tls *t)
{
	if (!t || --t->nr_holders)
		return;
	gnutls_certificate_free_credentials(t->credentials);
	free(t);
}
