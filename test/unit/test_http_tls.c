#include "http_rig.h"

enum { PEM_MAX = 8 << 10 };
#define TLS "test/tls/"

static const struct peer_tls server = {.cert = TLS "server.pem", .key = TLS "server.key"};

/* A file's text, or what is no file's name: itself. Good until the next but seven. */
static const char *pem(const char *name)
{
	static char texts[8][PEM_MAX];
	static unsigned next;
	char *text = texts[next++ % (sizeof texts / sizeof *texts)], path[128];

	if (!name || strchr(name, '-') == name)
		return name;
	(void)snprintf(path, sizeof path, TLS "%s", name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, PEM_MAX - 1, f)] = '\0';
	(void)fclose(f);
	return text;
}

static void say_hello(struct peer_conn *c)
{
	while (peer_hear(c) && peer_say(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
		;
}

/* As servers do that were asked in TLS and do not speak it. */
static void say_bad_request(struct peer_conn *c)
{
	char hello[16];

	if (peer_read(c, hello, sizeof hello) > 0)
		(void)peer_say(c, "HTTP/1.1 400 Bad Request\r\n\r\n");
	(void)peer_hear(c);
}

/* The same trust, with texts where file names are. */
static struct http_trust with_texts(const struct http_trust *t)
{
	struct http_trust texts = *t;

	texts.ca = pem(t->ca);
	texts.cert = pem(t->cert);
	texts.key = pem(t->key);
	return texts;
}

#define BROKEN "-----BEGIN CERTIFICATE-----\nZm9v\n-----END CERTIFICATE-----\n"

static void a_server_without_a_valid_certificate_is_refused(void **state)
{
	static const struct peer_tls expired = {.cert = TLS "expired.pem", .key = TLS "server.key"};
	static const struct peer_tls strict = {
		.cert = TLS "server.pem", .key = TLS "server.key", .client_ca = TLS "ca.pem"};
	static const struct peer_tls strict_12 = {.cert = TLS "server.pem",
		.key = TLS "server.key",
		.client_ca = TLS "ca.pem",
		.priority = "NORMAL:-VERS-ALL:+VERS-TLS1.2"};
	static const struct peer_tls old = {.cert = TLS "server.pem",
		.key = TLS "server.key",
		.priority = "NORMAL:-VERS-ALL:+VERS-TLS1.1"};
	static const struct {
		const struct peer_tls *peer;
		const char *host;
		struct http_trust trust;
		int code; /* 0: it answers with 200 */
		const char *says;
	} cases[] = {
		{&server, "api.test", {.ca = "ca.pem"}, 0, ""},
		{&server, "127.0.0.1", {.ca = "ca.pem"}, 0, ""},
		{&server, "api.test", {.ca = "other-ca.pem"}, -EACCES, "issuer certificate"},
		{&server, "api.test", {.ca = NULL}, -EACCES, "issuer certificate"},
		{&server, "api.test", {.ca = BROKEN}, -EACCES, ""},
		{&server, "wrong.test", {.ca = "ca.pem"}, -EACCES, "wrong.test"},
		{&server, "api.test", {.ca = "ca.pem", .server_name = "10.0.0.1"}, -EACCES,
			"10.0.0.1"},
		{&server, "wrong.test", {.ca = "ca.pem", .server_name = "kubernetes.default.svc"},
			0, ""},
		{&server, "api.test", {.ca = "ca.pem", .server_name = "not.this"}, -EACCES,
			"not.this"},
		{&expired, "api.test", {.ca = "ca.pem"}, -EACCES, "expired"},
		{&expired, "wrong.test", {.insecure = true}, 0, ""},
		{&expired, "wrong.test", {.insecure = true, .ca = "other-ca.pem"}, 0, ""},
		{&old, "api.test", {.ca = "ca.pem"}, -EPROTO, "protocol"},
		{&strict, "api.test", {.ca = "ca.pem"}, -EACCES, "alert"},
		{&strict_12, "api.test", {.ca = "ca.pem"}, -EACCES, "alert"},
		{&strict, "api.test", {.ca = "ca.pem", .cert = "client.pem", .key = "client.key"},
			0, ""},
		{&strict, "api.test", {.ca = "ca.pem", .cert = "client.pem", .key = "server.key"},
			-EACCES, "private key"},
		{&peer_plain, "api.test", {.ca = "ca.pem"}, -EPROTO, "version"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct http_trust trust = with_texts(&cases[i].trust);
		struct rig *r = rig_new(&trust);
		char host[64];

		r->peer = peer_start(
			cases[i].peer->cert ? say_hello : say_bad_request, cases[i].peer, NULL);
		rig_get(r, "https", cases[i].host, r->peer);
		if (r->h.code != cases[i].code || !strstr(r->h.text, cases[i].says))
			fail_msg("%zu: %d %s", i, r->h.code, r->h.text);
		assert_int_equal(r->h.status, cases[i].code ? 0 : 200);
		assert_int_equal(r->peer->nr_requests, cases[i].code ? 0 : 1);
		(void)snprintf(
			host, sizeof host, "\r\nHost: %s:%u\r\n", cases[i].host, r->peer->port);
		assert_true(cases[i].code || strstr(r->peer->request, host));
		rig_free(r);
	}
}

static void hang_up(struct peer_conn *c)
{
	char hello[16];

	(void)peer_read(c, hello, sizeof hello);
}

static void a_broken_handshake_is_not_reported_as_a_wrong_certificate(void **state)
{
	struct rig *r = rig_new(NULL);

	(void)state;
	r->peer = peer_start(hang_up, NULL, NULL);
	rig_get(r, "https", "api.test", r->peer);
	if (r->h.code != -ECONNRESET)
		fail_msg("%d %s", r->h.code, r->h.text);
	rig_free(r);
}

static void a_connection_is_reused(void **state)
{
	const struct http_trust trust = {.ca = pem("ca.pem")};
	struct rig *r = rig_new(&trust);

	(void)state;
	r->peer = peer_start(say_hello, &server, NULL);
	for (unsigned i = 0; i < 3; i++) {
		rig_get(r, "https", "api.test", r->peer);
		assert_int_equal(r->h.status, 200);
	}
	assert_int_equal(r->peer->nr_conns, 1);
	rig_free(r);
}

static void text_that_is_not_pem_is_refused(void **state)
{
	static const struct {
		struct http_trust trust;
		const char *says;
	} cases[] = {
		{{.ca = "-"}, "certificate authority is no PEM"},
		{{.ca = "server.key"}, "certificate authority is no PEM"},
		{{.cert = "-", .key = "client.key"}, "client certificate is no PEM"},
		{{.cert = "client.pem", .key = "-"}, "client key is no PEM"},
		{{.cert = "client.pem"}, "a client certificate without its key"},
		{{.key = "client.key"}, "a client key without its certificate"},
		{{.cert = "client.pem", .key = "client-encrypted.key"},
			"client key is encrypted with a passphrase"},
	};
	struct loop *l = loop_new();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct http_trust trust = with_texts(&cases[i].trust);
		struct err e = {0};

		assert_null(http_client_new(l, &trust, &e));
		if (e.code != EINVAL || !strstr(e.text, cases[i].says))
			fail_msg("%zu: %s", i, e.text);
	}
	loop_free(l);
}

static void the_trusted_certificates_may_change(void **state)
{
	static const struct peer_tls strict = {
		.cert = TLS "server.pem", .key = TLS "server.key", .client_ca = TLS "ca.pem"};
	struct http_trust trust = {.ca = pem("ca.pem")};
	struct rig *r = rig_new(&trust);
	struct err e = {0};

	(void)state;
	r->peer = peer_start(say_hello, &strict, NULL);
	rig_get(r, "https", "api.test", r->peer);
	assert_int_equal(r->h.code, -EACCES);
	trust.cert = pem("client.pem");
	trust.key = pem("client.key");
	assert_int_equal(http_client_trust(r->c, &trust, &e), 0);
	rig_get(r, "https", "api.test", r->peer);
	assert_int_equal(r->h.status, 200);
	/* not to one that is none: all as it was */
	const struct http_trust none = {.ca = "nothing"};
	assert_int_equal(http_client_trust(r->c, &none, &e), -EINVAL);
	rig_get(r, "https", "api.test", r->peer);
	assert_int_equal(r->h.status, 200);
	/* a kept connection does not outlive the trust in it */
	trust.ca = pem("other-ca.pem");
	assert_int_equal(http_client_trust(r->c, &trust, &e), 0);
	rig_get(r, "https", "api.test", r->peer);
	assert_int_equal(r->h.code, -EACCES);
	rig_free(r);
}

static void an_address_of_ipv6_may_have_another_name(void **state)
{
	const struct http_trust trust = {.ca = pem("ca.pem"), .server_name = "api.test"};
	struct rig *r = rig_new(&trust);
	struct peer nobody = {.port = 1};

	(void)state;
	rig_get(r, "https", "[::1]", &nobody);
	/* the second where there is no IPv6 */
	assert_true(r->h.code == -ECONNREFUSED || r->h.code == -EHOSTUNREACH);
	assert_memory_equal(r->h.text, "https://[::1]:1: ", 17);
	rig_free(r);
}

/* What the proxy was asked, before it handed the connection on. */
static char proxy_request[1024];

/* A proxy that plays the server behind it too. */
static void be_proxy(struct peer_conn *c)
{
	if (!peer_hear(c))
		return;
	(void)text_copy(proxy_request, sizeof proxy_request, c->request);
	if (peer_say(c, "HTTP/1.1 200 Go on\r\n\r\n") && peer_begin_tls(c))
		say_hello(c);
}

static void say_no(struct peer_conn *c)
{
	if (peer_hear(c))
		(void)peer_say(c, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n");
}

static const struct peer_tls behind_proxy = {
	.cert = TLS "server.pem", .key = TLS "server.key", .later = true};

/* A rig that has a proxy, r->other; nothing but it listens where the URL says. */
static struct rig *rig_with_proxy(struct http_trust trust, void (*serve)(struct peer_conn *c))
{
	struct peer *proxy = peer_start(serve, &behind_proxy, NULL);
	char url[RIG_URL_MAX];

	(void)snprintf(url, sizeof url, "http://127.0.0.1:%u", proxy->port);
	trust.ca = pem("ca.pem");
	trust.proxy = url;
	struct rig *r = rig_new(&trust);
	r->other = proxy;
	proxy_request[0] = '\0';
	return r;
}

static void ask_behind_proxy(struct rig *r, const char *host)
{
	static const char *const headers[] = {"Authorization: Bearer secret", NULL};
	char url[RIG_URL_MAX];

	(void)snprintf(url, sizeof url, "https://%s:6443/", host);
	const struct http_ask ask = {
		.url = url, .headers = headers, .timeout_ms = RIG_TIMEOUT_MS, .answer_max = 64};
	rig_ask(r, &ask, false);
}

static void the_token_is_not_sent_to_a_proxy(void **state)
{
	struct rig *r = rig_with_proxy((struct http_trust){0}, be_proxy);

	(void)state;
	ask_behind_proxy(r, "api.test");
	if (r->h.status != 200)
		fail_msg("%s", r->h.text);
	assert_memory_equal(proxy_request, "CONNECT api.test:6443 HTTP/1.1\r\n", 32);
	assert_null(strstr(proxy_request, "secret"));
	assert_non_null(strstr(r->other->request, "Bearer secret"));
	rig_free(r);
}

static void a_proxy_gets_the_address_of_the_server_and_not_its_tls_name(void **state)
{
	struct rig *r = rig_with_proxy(
		(struct http_trust){.server_name = "kubernetes.default.svc"}, be_proxy);

	(void)state;
	ask_behind_proxy(r, "10.0.0.1");
	if (r->h.status != 200)
		fail_msg("%s", r->h.text);
	assert_memory_equal(proxy_request, "CONNECT 10.0.0.1:6443 HTTP/1.1\r\n", 32);
	rig_free(r);
}

static void a_proxy_that_is_set_serves_all_hosts(void **state)
{
	struct rig *r = rig_with_proxy((struct http_trust){0}, be_proxy);

	(void)state;
	(void)setenv("NO_PROXY", "*", 1);
	ask_behind_proxy(r, "api.test");
	(void)unsetenv("NO_PROXY");
	assert_int_equal(r->h.status, 200);
	rig_free(r);
}

static void a_refusal_by_a_proxy_is_reported(void **state)
{
	struct rig *r = rig_with_proxy((struct http_trust){0}, say_no);

	(void)state;
	ask_behind_proxy(r, "api.test");
	assert_int_equal(r->h.code, -EHOSTUNREACH);
	assert_non_null(strstr(r->h.text, "403"));
	rig_free(r);
}

static void proxy_settings_come_from_the_environment(void **state)
{
	static const struct {
		const char *no_proxy, *host;
		bool by_proxy;
	} cases[] = {
		{"", "127.0.0.1", true},
		{"127.0.0.0/8", "127.0.0.1", false},
		{"10.0.0.0/8", "127.0.0.1", true},
		{".test", "api.test", false},
		{"other.test", "api.test", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct http_trust trust = {.ca = pem("ca.pem")};
		struct rig *r = rig_new(&trust);
		char url[RIG_URL_MAX];

		r->peer = peer_start(say_hello, &server, NULL);
		r->other = peer_start(be_proxy, &behind_proxy, NULL);
		(void)snprintf(url, sizeof url, "http://127.0.0.1:%u", r->other->port);
		(void)setenv("HTTPS_PROXY", url, 1);
		(void)setenv("NO_PROXY", cases[i].no_proxy, 1);
		rig_get(r, "https", cases[i].host, r->peer);
		(void)unsetenv("HTTPS_PROXY");
		(void)unsetenv("NO_PROXY");
		if (r->h.status != 200)
			fail_msg("%zu: %s", i, r->h.text);
		assert_int_equal(r->other->nr_conns, cases[i].by_proxy);
		assert_int_equal(r->peer->nr_conns, !cases[i].by_proxy);
		rig_free(r);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_without_a_valid_certificate_is_refused),
		cmocka_unit_test(a_broken_handshake_is_not_reported_as_a_wrong_certificate),
		cmocka_unit_test(a_connection_is_reused),
		cmocka_unit_test(text_that_is_not_pem_is_refused),
		cmocka_unit_test(the_trusted_certificates_may_change),
		cmocka_unit_test(an_address_of_ipv6_may_have_another_name),
		cmocka_unit_test(the_token_is_not_sent_to_a_proxy),
		cmocka_unit_test(a_proxy_gets_the_address_of_the_server_and_not_its_tls_name),
		cmocka_unit_test(a_proxy_that_is_set_serves_all_hosts),
		cmocka_unit_test(a_refusal_by_a_proxy_is_reported),
		cmocka_unit_test(proxy_settings_come_from_the_environment),
	};
	static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY",
		"all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"};

	for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++)
		(void)unsetenv(proxies[i]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
