/* io/http_server over TLS: who is let in, and for how long. */
#include "http_server_rig.h"

/* TLS, with openssl as the client */

struct hello {
	char bytes[GOT_MAX];
	size_t len;
};

static const char make_certificates[] =
	"cd %s && exec >log 2>&1 && "
	"ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
	"-subj /CN=$1 -keyout $1.key -out $1.pem; } && "
	"cert() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$2 "
	"-keyout $2.key -out $2.csr && "
	"{ [ -z \"$3\" ] || echo extendedKeyUsage=$3; "
	"echo subjectAltName=IP:127.0.0.1; } >$2.ext && "
	"openssl x509 -req -days 2 -in $2.csr -CA $1.pem -CAkey $1.key -CAcreateserial "
	"-extfile $2.ext -out $2.pem; } && "
	"ca ca && ca other && cert ca server serverAuth && cert ca client clientAuth && "
	"cert other stranger clientAuth && cert ca bare '' && cert ca any anyExtendedKeyUsage && "
	"cert ca both serverAuth,clientAuth && cert ca code codeSigning";

static char *read_file(const struct world *w, const char *name)
{
	char path[128];
	char *text = xcalloc(GOT_MAX, 1);

	(void)snprintf(path, sizeof path, "%s/%s", w->dir, name);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	assert_in_range(fread(text, 1, GOT_MAX - 1, f), 1, GOT_MAX - 1);
	(void)fclose(f);
	return text;
}

static void make_directory(struct world *w)
{
	const char *tmp = getenv("TMPDIR");
	char command[sizeof make_certificates + sizeof w->dir];

	(void)snprintf(w->dir, sizeof w->dir, "%s/test_http.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	(void)snprintf(command, sizeof command, make_certificates, w->dir);
	assert_int_equal(system(command), 0);
}

static const char *client_arguments, *client_path = "/secret"; /* of the script that follows */
static void s_client(struct world *w)
{
	char command[1024];

	(void)snprintf(command, sizeof command,
		"cd %s && printf 'GET %s HTTP/1.1\\r\\n"
		"Host: x\\r\\nConnection: close\\r\\n\\r\\n' | "
		"openssl s_client -quiet -verify_return_error -CAfile ca.pem "
		"-connect 127.0.0.1:%u %s 2>&1",
		w->dir, client_path, w->port, client_arguments);
	FILE *f = popen(command, "re");
	must(f, "openssl");
	w->len = fread(w->got, 1, sizeof w->got - 1, f);
	(void)pclose(f);
}

/* What a client says first, as GnuTLS says it; nobody answers. */
static ssize_t keep_hello(gnutls_transport_ptr_t to, const void *data, size_t len)
{
	struct hello *h = to;

	if (len > sizeof h->bytes - h->len)
		abort();
	memcpy(h->bytes + h->len, data, len);
	h->len += len;
	return (ssize_t)len;
}

static ssize_t hear_nothing(gnutls_transport_ptr_t from, void *data, size_t len)
{
	(void)from, (void)data, (void)len;
	errno = EAGAIN;
	return -1;
}

static void make_hello(struct hello *h)
{
	gnutls_certificate_credentials_t credentials;
	gnutls_session_t session;

	assert_int_equal(gnutls_certificate_allocate_credentials(&credentials), 0);
	assert_int_equal(gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NONBLOCK), 0);
	assert_int_equal(gnutls_set_default_priority(session), 0);
	(void)gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
	gnutls_transport_set_ptr(session, h);
	gnutls_transport_set_push_function(session, keep_hello);
	gnutls_transport_set_pull_function(session, hear_nothing);
	h->len = 0;
	assert_int_equal(gnutls_handshake(session), GNUTLS_E_AGAIN);
	gnutls_deinit(session);
	gnutls_certificate_free_credentials(credentials);
}

static void show_a_certificate_among_slow_ones(struct world *w)
{
	come_slowly(w);
	s_client(w);
	for (unsigned i = 0; i < crowded.nr; i++)
		(void)close(crowded.fd[i]);
}

/* Nothing, half of a hello, and a hello without what follows. */
static void a_connection_without_certificate_gives_way_to_one_with_it(void **state)
{
	struct world *w = *state;
	struct hello hello;

	make_directory(w);
	make_hello(&hello);
	auto_free char *cert = read_file(w, "server.pem"), *key = read_file(w, "server.key"),
		       *ca = read_file(w, "ca.pem");
	const size_t says[] = {0, 1, hello.len / 2, hello.len};
	w->o.cert = cert;
	w->o.key = key;
	w->o.client_ca = ca;
	w->o.clients_max = FEW;
	w->o.is_own = nobody_is_own;
	client_arguments = "-cert client.pem -key client.key";
	serve(w);
	crowded.nr = HUNDRED;
	crowded.from = 2;
	for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
		crowded.says = says[i] ? hello.bytes : NULL;
		crowded.len = says[i];
		const char *got = play(w, show_a_certificate_among_slow_ones);
		if (!strstr(got, "GET /secret query="))
			fail_msg("%zu: %s", i, got);
	}
	crowded.len = 0;
}

static void wait_in_vain(struct world *w)
{
	come_slowly(w);
	for (unsigned i = 0; i < crowded.nr; i++)
		hear_all(w, crowded.fd[i]);
	s_client(w);
}

static void a_tls_handshake_has_a_time_limit(void **state)
{
	struct world *w = *state;
	struct hello hello;

	make_directory(w);
	make_hello(&hello);
	auto_free char *cert = read_file(w, "server.pem"), *key = read_file(w, "server.key"),
		       *ca = read_file(w, "ca.pem");
	w->o.cert = cert;
	w->o.key = key;
	w->o.client_ca = ca;
	client_arguments = "-cert client.pem -key client.key";
	serve(w);
	crowded.nr = FEW;
	crowded.from = 1;
	crowded.says = hello.bytes;
	crowded.len = hello.len;
	assert_non_null(strstr(play(w, wait_in_vain), "GET /secret query="));
	crowded.len = 0;
	assert_int_equal(http_server_counts(w->server).slow, FEW);
}

static void tls_accepts_clients_with_a_certificate(void **state)
{
	static const struct {
		const char *arguments;
		bool asks, want;
	} cases[] = {
		{"", false, true},
		{"-tls1_2", false, true},
		{"-tls1_1 -cipher DEFAULT@SECLEVEL=0", false, false},
		{"", true, false},
		{"-tls1_2", true, false},
		{"-cert client.pem -key client.key", true, true},
		{"-tls1_2 -cert client.pem -key client.key", true, true},
		{"-cert stranger.pem -key stranger.key", true, false},
		{"-cert server.pem -key server.key", true, false}, /* not for clients */
		{"-cert bare.pem -key bare.key", true, false},     /* nor that, in so many words */
		{"-tls1_2 -cert bare.pem -key bare.key", true, false},
		{"-cert any.pem -key any.key", true, false},
		{"-cert code.pem -key code.key", true, false},
		{"-cert both.pem -key both.key", true, true},
		{"-tls1_2 -cert stranger.pem -key stranger.key", true, false},
	};
	struct world *w = *state;

	make_directory(w);
	auto_free char *cert = read_file(w, "server.pem"), *key = read_file(w, "server.key"),
		       *ca = read_file(w, "ca.pem");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		w->o.cert = cert;
		w->o.key = key;
		w->o.client_ca = cases[i].asks ? ca : NULL;
		w->nr_handled = 0;
		serve(w);
		client_arguments = cases[i].arguments;
		const char *got = play(w, s_client);
		bool answered = strstr(got, "GET /secret query=");

		if (answered != cases[i].want || w->nr_handled != cases[i].want)
			fail_msg("%s: %s", cases[i].arguments, got);
		plain_request = "GET /plain HTTP/1.1\r\n" END;
		assert_null(strstr(play(w, one_request), "/plain")); /* not without TLS */
		http_server_free(w->server);
		w->server = NULL;
	}
}

/* Each is answered by what the one before it has changed, and it may change it for the next. */
static void tls_may_change_while_it_serves(void **state)
{
	enum { NR = 7 };
	struct world *w = *state;

	make_directory(w);
	auto_free char *cert = read_file(w, "server.pem"), *key = read_file(w, "server.key"),
		       *ca = read_file(w, "ca.pem"), *others = read_file(w, "other.pem"),
		       *no_server = read_file(w, "client.pem"),
		       *its_key = read_file(w, "client.key");
	const struct {
		const char *name; /* of the client's certificate */
		bool want;
		const char *cert, *key, *client_ca, *says;
	} rows[NR] = {
		{"stranger", false, NULL, NULL, NULL, NULL},
		{"client", true, cert, key, others, ""}, {"client", false, NULL, NULL, NULL, NULL},
		{"stranger", true, cert, its_key, ca, "the server's certificate and key: "},
		{"stranger", true, cert, key, "nonsense", "the authority of clients'"},
		{"stranger", true, no_server, its_key, others, ""},
		{"stranger", false, NULL, NULL, NULL, NULL}, /* which does not trust it now */
	};

	w->o.cert = cert;
	w->o.key = key;
	w->o.client_ca = ca;
	serve(w);
	for (unsigned i = 0; i < NR; i++) {
		char arguments[128];

		(void)snprintf(arguments, sizeof arguments,
			"-purpose sslserver -cert %s.pem -key %s.key", rows[i].name, rows[i].name);
		client_arguments = arguments;
		client_path = rows[i].cert ? "/change" : "/secret";
		change.cert = rows[i].cert;
		change.key = rows[i].key;
		change.client_ca = rows[i].client_ca;
		change.e = (struct err){0};
		const char *got = play(w, s_client);
		client_path = "/secret";
		if (!strstr(got, " query=") == rows[i].want)
			fail_msg("%u: %s", i, got);
		if (rows[i].says &&
			(*rows[i].says ? !strstr(change.e.text, rows[i].says) : change.e.code != 0))
			fail_msg("%u: %s", i, change.e.text);
	}
}

static void an_unusable_certificate_is_an_error(void **state)
{
	struct world *w = *state;
	struct err e = {0};

	make_directory(w);
	auto_free char *cert = read_file(w, "server.pem"), *key = read_file(w, "server.key"),
		       *other = read_file(w, "client.key");
	const struct {
		const char *cert, *key, *client_ca, *want;
	} cases[] = {
		{"nonsense", key, NULL, "the server's certificate and key: "},
		{cert, "nonsense", NULL, "the server's certificate and key: "},
		{cert, other, NULL, "the server's certificate and key: "},
		{cert, key, "nonsense", "the authority of clients' certificates: "},
		{cert, key, "", "the authority of clients' certificates: "},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		w->o.cert = cases[i].cert;
		w->o.key = cases[i].key;
		w->o.client_ca = cases[i].client_ca;
		assert_null(http_server_new(w->l, &w->o, &e));
		assert_int_equal(e.code, EINVAL);
		if (strncmp(e.text, cases[i].want, strlen(cases[i].want)) != 0)
			fail_msg("%s", e.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(tls_accepts_clients_with_a_certificate),
		CASE(tls_may_change_while_it_serves),
		CASE(a_connection_without_certificate_gives_way_to_one_with_it),
		CASE(a_tls_handshake_has_a_time_limit),
		CASE(an_unusable_certificate_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
