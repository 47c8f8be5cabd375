#include <io/http_client_setup.h>

#include <errno.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>

enum { KEEPALIVE_AFTER_S = 30, KEEPALIVE_EVERY_S = 10 };

static const struct {
	CURLoption option;
	long value;
} rules[] = {
	{CURLOPT_NOSIGNAL, 1},
	{CURLOPT_QUICK_EXIT, 1}, /* else the end of a call waits for its name server */
	{CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
	{CURLOPT_HTTP09_ALLOWED, 0},
	{CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
	{CURLOPT_FOLLOWLOCATION, 0},
	{CURLOPT_NETRC, CURL_NETRC_IGNORED},
	{CURLOPT_DISALLOW_USERNAME_IN_URL, 1},
	{CURLOPT_HEADEROPT, CURLHEADER_SEPARATE}, /* a proxy is not given our token */
	{CURLOPT_SUPPRESS_CONNECT_HEADERS, 1},
	{CURLOPT_HTTP_CONTENT_DECODING, 0},
	{CURLOPT_TCP_KEEPALIVE, 1},
	{CURLOPT_TCP_KEEPIDLE, KEEPALIVE_AFTER_S},
	{CURLOPT_TCP_KEEPINTVL, KEEPALIVE_EVERY_S},
};

static int check_pem(const char *what, const char *pem, const char *holds, struct err *e)
{
	if (!pem)
		return 0;
	if (!strstr(pem, "-----BEGIN ") || !strstr(pem, holds))
		return err_set(e, EINVAL, "the %s is no PEM text: it has no \"-----BEGIN %s\"",
			what, holds);
	/* nobody is there to type it, and OpenSSL would wait at the terminal */
	if (strstr(pem, "ENCRYPTED"))
		return err_set(e, EINVAL, "the %s is encrypted with a passphrase", what);
	return 0;
}

static int check_trust(const struct http_trust *trust, struct err *e)
{
	int rc = check_pem("certificate authority", trust->ca, "CERTIFICATE-----", e);

	if (!rc)
		rc = check_pem("client certificate", trust->cert, "CERTIFICATE-----", e);
	if (!rc)
		rc = check_pem("client key", trust->key, "PRIVATE KEY-----", e);
	if (!rc && !trust->cert != !trust->key)
		rc = err_set(e, EINVAL, "a client %s without its %s",
			trust->cert ? "certificate" : "key", trust->cert ? "key" : "certificate");
	return rc;
}

static CURLcode set_pem(const struct libcurl *curl, CURL *easy, CURLoption option, const char *pem)
{
	if (!pem)
		return CURLE_OK;
	struct curl_blob blob = {.data = xstrdup(pem), .len = strlen(pem), .flags = CURL_BLOB_COPY};
	CURLcode rc = curl->easy_setopt(easy, option, &blob);

	free(blob.data);
	return rc;
}

static CURLcode set_trust(const struct libcurl *curl, CURL *easy, const struct http_trust *trust)
{
	CURLcode rc = set_pem(curl, easy, CURLOPT_CAINFO_BLOB, trust->ca);

	if (!rc && trust->ca) /* that one, and not the system's as well */
		rc = curl->easy_setopt(easy, CURLOPT_CAPATH, (char *)NULL);
	if (!rc)
		rc = set_pem(curl, easy, CURLOPT_SSLCERT_BLOB, trust->cert);
	if (!rc)
		rc = set_pem(curl, easy, CURLOPT_SSLKEY_BLOB, trust->key);
	if (!rc && trust->insecure)
		rc = curl->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
	if (!rc && trust->insecure)
		rc = curl->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	if (!rc && trust->proxy)
		rc = curl->easy_setopt(easy, CURLOPT_PROXY, trust->proxy);
	if (!rc && trust->proxy) /* for all hosts, whatever NO_PROXY says */
		rc = curl->easy_setopt(easy, CURLOPT_NOPROXY, "");
	return rc;
}

int http_model_new(
	CURL **model, const struct libcurl *curl, const struct http_trust *trust, struct err *e)
{
	int refused = check_trust(trust, e);

	if (refused)
		return refused;
	CURL *easy = curl->easy_init();
	CURLcode rc = CURLE_OK;
	if (!easy)
		abort(); /* no memory: as mem.h has it */
	for (size_t i = 0; !rc && i < sizeof rules / sizeof *rules; i++)
		rc = curl->easy_setopt(easy, rules[i].option, rules[i].value);
	if (!rc)
		rc = curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	if (!rc)
		rc = set_trust(curl, easy, trust);
	if (!rc) {
		*model = easy;
		return 0;
	}
	curl->easy_cleanup(easy);
	return err_set(e, ENOSYS, "libcurl: %s", curl->easy_strerror(rc));
}

static struct curl_slist *slist_append_line(
	const struct libcurl *curl, struct curl_slist *list, const char *line)
{
	struct curl_slist *longer = curl->slist_append(list, line);

	if (!longer)
		abort();
	return longer;
}

static int add_headers(
	struct http_setup *s, const struct libcurl *curl, const char *const *lines, struct err *e)
{
	for (; lines && *lines; lines++) {
		if (strpbrk(*lines, "\r\n") || !strchr(*lines, ':'))
			return err_set(e, EINVAL, "%s: a header is not one line with a colon",
				s->peer); /* it may be a secret: not its words */
		s->headers = slist_append_line(curl, s->headers, *lines);
	}
	/* libcurl's own are not wanted; the first of a name counts */
	s->headers = slist_append_line(curl, s->headers, "Content-Type:");
	s->headers = slist_append_line(curl, s->headers, "Expect:");
	return 0;
}

/* A URL taken apart, and what we took out of it. */
struct url {
	CURLU *parts;
	char *scheme, *host, *port, *whole;
};

static void url_fini(struct url *u, const struct libcurl *curl)
{
	curl->free(u->scheme);
	curl->free(u->host);
	curl->free(u->port);
	curl->free(u->whole);
	curl->url_cleanup(u->parts);
}

static CURLUcode url_init(struct url *u, const struct libcurl *curl, const char *text)
{
	*u = (struct url){.parts = curl->url()};
	if (!u->parts)
		abort();
	CURLUcode rc = curl->url_set(u->parts, CURLUPART_URL, text, CURLU_DISALLOW_USER);
	if (!rc)
		rc = curl->url_get(u->parts, CURLUPART_SCHEME, &u->scheme, 0);
	if (!rc && !text_equal(u->scheme, "https") && !text_equal(u->scheme, "http"))
		rc = CURLUE_UNSUPPORTED_SCHEME;
	if (!rc)
		rc = curl->url_get(u->parts, CURLUPART_HOST, &u->host, 0);
	if (!rc)
		rc = curl->url_get(u->parts, CURLUPART_PORT, &u->port, CURLU_DEFAULT_PORT);
	return rc;
}

/* To be checked against server_name, but reached where the URL says: libcurl sees that name in the
 * URL, and is given the place where that is. */
static CURLUcode rename_host(
	struct http_setup *s, const struct libcurl *curl, struct url *u, const char *server_name)
{
	char line[HTTP_PEER_MAX * 2];

	(void)snprintf(line, sizeof line, "::%s:%s", u->host, u->port);
	s->connect_to = slist_append_line(curl, s->connect_to, line);
	(void)snprintf(line, sizeof line, "Host: %s:%s", u->host, u->port);
	s->headers = slist_append_line(curl, s->headers, line);
	return curl->url_set(u->parts, CURLUPART_HOST, server_name, 0);
}

static int set_url(struct http_setup *s, const struct libcurl *curl, const char *server_name,
	const char *text, struct err *e)
{
	struct url u;
	CURLUcode rc = url_init(&u, curl, text);
	struct text peer;

	text_init(&peer, s->peer, sizeof s->peer);
	if (!rc)
		text_add(&peer, "%s://%s:%s", u.scheme, u.host, u.port);
	if (!rc && peer.cut)
		rc = CURLUE_BAD_HOSTNAME;
	if (!rc && server_name)
		rc = rename_host(s, curl, &u, server_name);
	if (!rc)
		rc = curl->url_get(u.parts, CURLUPART_URL, &u.whole, 0);
	if (!rc && (curl->easy_setopt(s->easy, CURLOPT_URL, u.whole) ||
			   curl->easy_setopt(s->easy, CURLOPT_CONNECT_TO, s->connect_to)))
		rc = CURLUE_OUT_OF_MEMORY;
	url_fini(&u, curl);
	return rc ? err_set(e, EINVAL, "URL \"%.120s\": %s", text, curl->url_strerror(rc)) : 0;
}

static CURLcode easy_set_method(CURL *easy, const struct libcurl *curl, const struct http_ask *ask)
{
	const char *method = ask->method ? ask->method : "GET";
	CURLcode rc = CURLE_OK;

	if (text_equal(method, "HEAD"))
		return curl->easy_setopt(easy, CURLOPT_NOBODY, 1L);
	if (ask->len || text_equal(method, "POST")) {
		rc = curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->len);
		if (!rc)
			rc = curl->easy_setopt(
				easy, CURLOPT_COPYPOSTFIELDS, ask->len ? ask->body : "");
	}
	return rc ? rc : curl->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
}

int http_setup_init(struct http_setup *s, const struct libcurl *curl, CURL *model,
	const char *server_name, const struct http_ask *ask, struct err *e)
{
	*s = (struct http_setup){.easy = curl->easy_duphandle(model)};
	if (!s->easy)
		abort();
	int rc = set_url(s, curl, server_name, ask->url, e);

	if (!rc)
		rc = add_headers(s, curl, ask->headers, e);
	if (!rc && (curl->easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->headers) ||
			   easy_set_method(s->easy, curl, ask)))
		rc = err_set(e, EINVAL, "%s: libcurl does not take a request of %zu bytes", s->peer,
			ask->len);
	return rc;
}

void http_setup_fini(struct http_setup *s, const struct libcurl *curl)
{
	curl->easy_cleanup(s->easy);
	curl->slist_free_all(s->headers);
	curl->slist_free_all(s->connect_to);
}
