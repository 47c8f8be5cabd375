#include <io/http_server_tls.h>

#include <errno.h>
#include <gnutls/x509.h>
#include <numafit/mem.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OID_MAX = 128 };

struct http_server_tls {
	gnutls_certificate_credentials_t credentials;
	bool asks_clients;
	unsigned nr_holders;
};

static gnutls_datum_t pem_datum(const char *pem)
{
	return (gnutls_datum_t){(void *)(uintptr_t)pem, (unsigned)strlen(pem)};
}

static int set_own_certificate(
	struct http_server_tls *t, const char *cert, const char *key, struct err *e)
{
	const gnutls_datum_t c = pem_datum(cert), k = pem_datum(key);
	int rc = gnutls_certificate_set_x509_key_mem(t->credentials, &c, &k, GNUTLS_X509_FMT_PEM);

	return rc >= 0 ? 0
		       : err_set(e, EINVAL, "the server's certificate and key: %s",
				 gnutls_strerror(rc));
}

/* The handshake fails unless the client shows a certificate that is by the authority and for
 * clients. libgnutls takes one without an extendedKeyUsage for any purpose. */

static bool is_for_clients(const gnutls_datum_t *der)
{
	char purpose[OID_MAX];
	gnutls_x509_crt_t cert;
	size_t size = sizeof purpose;
	bool found = false;
	int rc;

	if (gnutls_x509_crt_init(&cert))
		abort(); /* no memory is left, as in mem.h */
	rc = gnutls_x509_crt_import(cert, der, GNUTLS_X509_FMT_DER);
	for (unsigned i = 0; !rc && !found; i++, size = sizeof purpose) {
		rc = gnutls_x509_crt_get_key_purpose_oid(cert, i, purpose, &size, NULL);
		found = !rc && strcmp(purpose, GNUTLS_KP_TLS_WWW_CLIENT) == 0;
		if (rc == GNUTLS_E_SHORT_MEMORY_BUFFER) /* another one, and long */
			rc = 0;
	}
	gnutls_x509_crt_deinit(cert);
	return found;
}

static void report_refusal(gnutls_session_t session, const char *why)
{
	const struct http_server_proof *proof = gnutls_db_get_ptr(session);

	if (proof->refused)
		proof->refused(proof->ctx, why);
}

/* What libgnutls calls within the handshake. */
static int verify_client(gnutls_session_t session)
{
	unsigned status = 0, nr = 0;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &nr);
	gnutls_datum_t text = {0};
	int rc = gnutls_certificate_verify_peers(session, NULL, 0, &status);

	if (rc || !nr) {
		report_refusal(session, gnutls_strerror(rc ? rc : GNUTLS_E_NO_CERTIFICATE_FOUND));
	} else if (status) {
		(void)gnutls_certificate_verification_status_print(
			status, gnutls_certificate_type_get(session), &text, 0);
		report_refusal(session, text.data ? (const char *)text.data : "it is not trusted");
		gnutls_free(text.data);
	} else if (is_for_clients(&chain[0])) {
		return 0;
	} else {
		report_refusal(session, "its extendedKeyUsage has no clientAuth");
	}
	return GNUTLS_E_CERTIFICATE_ERROR;
}

static int set_client_authority(struct http_server_tls *t, const char *client_ca, struct err *e)
{
	if (!client_ca)
		return 0;
	const gnutls_datum_t ca = pem_datum(client_ca);
	int rc = gnutls_certificate_set_x509_trust_mem(t->credentials, &ca, GNUTLS_X509_FMT_PEM);

	t->asks_clients = true;
	gnutls_certificate_set_verify_function(t->credentials, verify_client);
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
	if (!set_own_certificate(t, cert, key, e) && !set_client_authority(t, client_ca, e))
		return t;
	http_server_tls_drop(t);
	return NULL;
}

/* The client's last message of the handshake is there, so that its certificate is right, too. */
static int handshake_finished(gnutls_session_t session, unsigned type, unsigned when,
	unsigned incoming, const gnutls_datum_t *message)
{
	const struct http_server_proof *proof = gnutls_db_get_ptr(session);

	(void)type, (void)when, (void)message;
	if (incoming)
		proof->proven(proof->ctx);
	return 0;
}

struct http_server_tls *http_server_tls_begin(
	struct http_server_tls *t, gnutls_session_t session, struct http_server_proof *proof)
{
	if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, t->credentials))
		abort(); /* as above */
	if (t->asks_clients) {
		gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
		/* sessions are kept in no database here: its pointer is free for us */
		gnutls_db_set_ptr(session, proof);
		gnutls_handshake_set_hook_function(
			session, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST, handshake_finished);
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
