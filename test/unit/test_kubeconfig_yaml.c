#include <apiserver/kubeconfig_yaml.h>

#include <errno.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Two of each, as kubectl writes them: the name behind what it names. */
static const char two[] = "apiVersion: v1\n"
			  "kind: Config\n"
			  "clusters:\n"
			  "- cluster:\n"
			  "    certificate-authority-data: Q0E=\n"
			  "    server: https://one:6443\n"
			  "    tls-server-name: kubernetes\n"
			  "    proxy-url: http://proxy:3128\n"
			  "    extensions:\n"
			  "    - extension: {provider: example.com/x, a/b: [[[[[[[[1]]]]]]]]}\n"
			  "      name: e\n"
			  "  name: one\n"
			  "- cluster:\n"
			  "    insecure-skip-tls-verify: true\n"
			  "    server: https://[fd00::1]:6443/prefix/\n"
			  "  name: two\n"
			  "contexts:\n"
			  "- context: {cluster: one, namespace: there, user: cert}\n"
			  "  name: first\n"
			  "- context: {cluster: two, user: word}\n"
			  "  name: second\n"
			  "- context: {cluster: two, user: file}\n"
			  "  name: third\n"
			  "- context: {cluster: two}\n"
			  "  name: nobody\n"
			  "current-context: first\n"
			  "preferences: {}\n"
			  "users:\n"
			  "- name: cert\n"
			  "  user:\n"
			  "    client-certificate: cert.pem\n"
			  "    client-key-data: S0VZ\n"
			  "    token: \"\"\n"
			  "    exec: null\n"
			  "- name: word\n"
			  "  user: {token: secret}\n"
			  "- name: file\n"
			  "  user: {token: secret, tokenFile: /run/token}\n";

static void print(const struct kubeconfig *k, struct text *t)
{
	const struct {
		const char *name, *value;
	} fields[] = {
		{"server", k->server},
		{"name", k->server_name},
		{"proxy", k->proxy},
		{"ca-file", k->ca_file},
		{"ca", k->ca},
		{"cert-file", k->cert_file},
		{"cert", k->cert},
		{"key-file", k->key_file},
		{"key", k->key},
		{"token-file", k->token_file},
		{"token", k->token},
		{"insecure", k->insecure ? "yes" : NULL},
	};

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (fields[i].value)
			text_add(t, "%s%s=%s", t->len ? " " : "", fields[i].name, fields[i].value);
}

static void expect(const char *yaml, const char *context, const char *want)
{
	struct kubeconfig k;
	struct err e = {0};
	char got[1024];
	struct text t;

	if (kubeconfig_yaml_read(&k, yaml, strlen(yaml), context, &e))
		fail_msg("%s: %s", want, e.text);
	text_init(&t, got, sizeof got);
	print(&k, &t);
	assert_string_equal(got, want);
	kubeconfig_fini(&k);
}

static void a_context_gives_its_cluster_and_its_user(void **state)
{
	static const char first[] = "server=https://one:6443 name=kubernetes "
				    "proxy=http://proxy:3128 ca=CA cert-file=cert.pem key=KEY";

	(void)state;
	expect(two, NULL, first);
	expect(two, "", first);
	expect(two, "first", first);
	expect(two, "second", "server=https://[fd00::1]:6443/prefix/ token=secret insecure=yes");
	expect(two, "third",
		"server=https://[fd00::1]:6443/prefix/ token-file=/run/token "
		"insecure=yes");
	expect(two, "nobody", "server=https://[fd00::1]:6443/prefix/ insecure=yes");
}

static void a_kubeconfig_may_be_json(void **state)
{
	(void)state;
	expect("{\n\t\"current-context\": \"a\",\n"
	       "\t\"contexts\":[{\"name\":\"a\",\"context\":{\"cluster\":\"c\",\"user\":\"u\"}}],\n"
	       "\t\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"https:\\/\\/x\","
	       "\"certificate-authority\":\"ca.crt\"}}],\n"
	       "\t\"users\":[{\"name\":\"u\",\"user\":{\"token\":\"t\"}}]}\n",
		NULL, "server=https://x ca-file=ca.crt token=t");
}

static void data_goes_before_a_file(void **state)
{
	(void)state;
	expect("current-context: a\n"
	       "contexts: [{name: a, context: {cluster: c, user: u}}]\n"
	       "clusters: [{name: c, cluster: {server: https://x, certificate-authority: f, "
	       "certificate-authority-data: Q0E=}}]\n"
	       "users:\n- name: u\n  user:\n    client-certificate: f\n"
	       "    client-certificate-data: Q0E=\n    client-key: f\n"
	       "    client-key-data: |\n      S0\n      VZ\n",
		NULL, "server=https://x ca=CA cert=CA key=KEY");
}

#define CONTEXT              "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
#define CLUSTER              "clusters: [{name: c, cluster: {server: https://x}}]\n"
#define USER                 "users: [{name: u, user: {token: t}}]\n"
#define WITH_USER(fields)    CONTEXT CLUSTER "users: [{name: u, user: {" fields "}}]\n"
#define WITH_CLUSTER(fields) CONTEXT "clusters: [{name: c, cluster: {" fields "}}]\n" USER

static void unsupported_credentials_are_refused_with_advice(void **state)
{
	static const struct {
		const char *yaml, *says[2];
	} cases[] = {
		{WITH_USER("exec: {command: aws, args: [a], env: [{name: N, value: V}]}"),
			{"line 4: user u: exec: plugins", "a token"}},
		{WITH_USER("exec: {}"), {"exec", "client certificate"}},
		{WITH_USER("auth-provider: {name: gcp}"), {"auth-provider: plugins", "a token"}},
		{WITH_USER("username: root, password: secret"), {"username", "no passwords"}},
		{WITH_USER("password: secret"), {"password", "no passwords"}},
		{WITH_USER("token: t, as: root"), {"as: impersonation", "itself"}},
		{WITH_USER("token: t, as-groups: [g]"), {"as-groups: impersonation", "itself"}},
		{WITH_USER("token: t, as-uid: x"), {"as-uid: impersonation", "itself"}},
		{WITH_USER("token: t, as-user-extra: {a/b: [c]}"), {"as-user-extra", "itself"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct kubeconfig k;
		struct err e = {0};
		const char *yaml = cases[i].yaml;

		if (kubeconfig_yaml_read(&k, yaml, strlen(yaml), NULL, &e) != -ENOTSUP ||
			!strstr(e.text, cases[i].says[0]) || !strstr(e.text, cases[i].says[1]))
			fail_msg("%s: %d %s", yaml, e.code, e.text);
		assert_null(strstr(e.text, "secret"));
	}
}

static void unknown_keys_are_ignored(void **state)
{
	(void)state;
	expect(CONTEXT CLUSTER
		"users: [{name: x, user: {exec: {}}}, {name: u, user: {token: t}}]\n",
		NULL, "server=https://x token=t");
}

static void mistakes_are_reported_with_their_place(void **state)
{
	static const struct {
		const char *yaml;
		int rc;
		const char *says;
	} cases[] = {
		{"", -ENOENT, "no current-context"},
		{"# nothing\n", -ENOENT, "no current-context"},
		{"current-context: \"\"\n", -ENOENT, "no current-context"},
		{"current-context: b\n", -ENOENT, "no context \"b\", but: none"},
		{"current-context: b\ncontexts: [{name: x}, {}, {name: y}]\n", -ENOENT,
			"no context \"b\", but: x, ?, y"},
		{CONTEXT USER, -ENOENT, "no cluster \"c\""},
		{CONTEXT CLUSTER, -ENOENT, "no user \"u\""},
		{"current-context: a\ncontexts: [{name: a, context: {user: u}}]\n", -EINVAL,
			"line 2: context a has no cluster"},
		{"current-context: a\ncontexts: [{name: a}]\n", -EINVAL, "has no cluster"},
		{WITH_CLUSTER(""), -EINVAL, "line 3: cluster c has no server"},
		{WITH_CLUSTER("server: {}"), -EINVAL, "has no server"},
		{WITH_CLUSTER("server: https://x, insecure-skip-tls-verify: maybe"), -EINVAL,
			"line 3: cluster c: insecure-skip-tls-verify"},
		{WITH_CLUSTER("server: https://x, insecure-skip-tls-verify: true, "
			      "certificate-authority: f"),
			-EINVAL, "take one of them out"},
		{WITH_CLUSTER("server: https://x, certificate-authority-data: Q0E"), -EINVAL,
			"line 3: c: certificate-authority-data is no base64"},
		{WITH_CLUSTER("server: https://x, certificate-authority-data: AAAA"), -EINVAL,
			"is no base64 of a PEM text"},
		{WITH_USER("client-certificate: f"), -EINVAL, "go together"},
		{WITH_USER("client-key-data: S0VZ"), -EINVAL, "go together"},
		{WITH_USER("token: a, token: b"), -EINVAL, "line 4: token is there twice"},
		{"word\n", -EINVAL, "line 1: a map is expected"},
		{"- a\n", -EINVAL, "line 1: a map is expected"},
		{"clusters: {a: b}\n", -EINVAL, "line 1: a list is expected"},
		{"\nclusters: [a]\n", -EINVAL, "line 2: a map is expected"},
		{"clusters: [[a]]\n", -EINVAL, "line 1: a map is expected"},
		{"clusters: [{cluster: [a]}]\n", -EINVAL, "line 1: a map is expected"},
		{"? [a]\n: b\n", -EINVAL, "is no key"},
		{"users: &a []\ncontexts: *a\n", -EINVAL, "line 2: aliases"},
		{"a:\n  [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n",
			-EINVAL, "line 2: more than 32 maps"},
		{"a:\n  [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n",
			-ENOENT, "no current-context"},
		{"a: [\n", -EINVAL, "line 2: "},
		{"\na: \xff\n", -EINVAL, "line 2: "},
		{"current-context: \"a\\0b\"\n", -EINVAL, "line 1: a NUL"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct kubeconfig k;
		struct err e = {0};
		int rc = kubeconfig_yaml_read(&k, cases[i].yaml, strlen(cases[i].yaml), NULL, &e);

		if (rc != cases[i].rc || !strstr(e.text, cases[i].says))
			fail_msg("%s: %d %s", cases[i].yaml, rc, e.text);
	}
}

static void a_file_is_bounded(void **state)
{
	auto_free char *big = xcalloc(KUBECONFIG_BYTES_MAX + 2, 1);
	struct kubeconfig k;
	struct err e = {0};
	char *at = stpcpy(big, CONTEXT CLUSTER "users: [{name: u, user: {token: \"");

	(void)state;
	memset(at, 't', (size_t)(big + KUBECONFIG_BYTES_MAX - at));
	(void)memcpy(big + KUBECONFIG_BYTES_MAX - 4, "\"}}]", 4);
	assert_int_equal(kubeconfig_yaml_read(&k, big, KUBECONFIG_BYTES_MAX, NULL, &e), 0);
	kubeconfig_fini(&k);
	assert_int_equal(kubeconfig_yaml_read(&k, big, KUBECONFIG_BYTES_MAX + 1, NULL, &e), -E2BIG);

	at = stpcpy(big, "users:\n");
	for (unsigned i = 0; i <= KUBECONFIG_ENTRIES_MAX; i++)
		at = stpcpy(at, "- {}\n");
	assert_int_equal(kubeconfig_yaml_read(&k, big, (size_t)(at - big), NULL, &e), -EINVAL);
	assert_non_null(strstr(e.text, "line 1026: more than 1024 users"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_context_gives_its_cluster_and_its_user),
		cmocka_unit_test(a_kubeconfig_may_be_json),
		cmocka_unit_test(data_goes_before_a_file),
		cmocka_unit_test(unsupported_credentials_are_refused_with_advice),
		cmocka_unit_test(unknown_keys_are_ignored),
		cmocka_unit_test(mistakes_are_reported_with_their_place),
		cmocka_unit_test(a_file_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
