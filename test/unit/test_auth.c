#include <apiserver/auth.h>

#include <errno.h>
#include <numafit/mem.h>
#include <numafit/text.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATH_SIZE = 256 };

/* A folder, and what was made in it. */
struct world {
	char dir[PATH_SIZE / 2];
	struct api_options o;
	char kubeconfig[PATH_SIZE];
};

static const char *path_of(const struct world *w, const char *name)
{
	static char path[PATH_SIZE];

	(void)snprintf(path, sizeof path, "%s/%s", w->dir, name);
	return path;
}

static void put_bytes(const struct world *w, const char *name, const char *data, size_t len)
{
	FILE *f = fopen(path_of(w, name), "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void put(const struct world *w, const char *name, const char *text)
{
	put_bytes(w, name, text, strlen(text));
}

static void no_event(void *ctx, bool bad, const char *event, const char *text)
{
	(void)ctx, (void)bad, (void)event, (void)text;
}

static void set_env(const char *host, const char *port)
{
	if (host)
		(void)setenv("KUBERNETES_SERVICE_HOST", host, 1);
	else
		(void)unsetenv("KUBERNETES_SERVICE_HOST");
	if (port)
		(void)setenv("KUBERNETES_SERVICE_PORT", port, 1);
	else
		(void)unsetenv("KUBERNETES_SERVICE_PORT");
}

static int set_up(void **state)
{
	struct world *w = xcalloc(1, sizeof *w);
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(w->dir, sizeof w->dir, "%s/test_auth.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->dir));
	put(w, "token", "secret-1\n");
	put(w, "ca.crt", "CA 1");
	w->o = (struct api_options){.service = w->dir, .on_event = no_event};
	set_env("10.0.0.1", "443");
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	char command[PATH_SIZE + 16];

	(void)snprintf(command, sizeof command, "rm -rf '%s'", w->dir);
	assert_int_equal(system(command), 0);
	free(w);
	return 0;
}

static struct auth *must_be(const struct world *w)
{
	struct err e = {0};
	struct auth *a = auth_new(&w->o, &e);

	if (!a)
		fail_msg("%s", e.text);
	return a;
}

static void must_not_be(const struct world *w, int code, const char *says)
{
	struct err e = {0};
	struct auth *a = auth_new(&w->o, &e);

	if (a || e.code != code || !strstr(e.text, says))
		fail_msg("\"%s\": %d %s", says, e.code, e.text);
	assert_null(strstr(e.text, "secret"));
}

static void a_pod_finds_the_server_and_itself(void **state)
{
	static const struct {
		const char *host, *port, *url;
	} cases[] = {
		{"10.0.0.1", "443", "https://10.0.0.1:443"},
		{"fd00::1", "6443", "https://[fd00::1]:6443"},
		{"kubernetes.default", "443", "https://kubernetes.default:443"},
	};
	const struct world *w = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		set_env(cases[i].host, cases[i].port);
		struct auth *a = must_be(w);
		assert_string_equal(auth_url(a), cases[i].url);
		assert_string_equal(auth_header(a), "Authorization: Bearer secret-1");
		assert_string_equal(auth_trust(a)->ca, "CA 1");
		assert_null(auth_trust(a)->cert);
		assert_null(auth_trust(a)->server_name);
		assert_false(auth_trust(a)->insecure);
		auth_free(a);
	}
	auth_free(NULL);
}

static void missing_credentials_of_a_pod_are_named(void **state)
{
	const struct world *w = *state;

	set_env(NULL, "443");
	must_not_be(w, ENOENT, "not in a pod");
	set_env("10.0.0.1", "");
	must_not_be(w, ENOENT, "KUBERNETES_SERVICE_PORT");
	set_env("10.0.0.1", "443");
	put(w, "token", " \n");
	must_not_be(w, EINVAL, "/token: not one word");
	put(w, "token", "secret 1\n");
	must_not_be(w, EINVAL, "/token: not one word");
	put(w, "token", "secret\x01");
	must_not_be(w, EINVAL, "/token: a token has no such characters");
	put(w, "token", "secret\xc3\xa9");
	must_not_be(w, EINVAL, "/token: a token has no such characters");
	put_bytes(w, "token", "secret\0x", 8);
	must_not_be(w, EINVAL, "/token: no text");
	assert_int_equal(unlink(path_of(w, "token")), 0);
	must_not_be(w, ENOENT, "/token: No such file");
	assert_int_equal(mkfifo(path_of(w, "token"), 0600), 0);
	must_not_be(w, EINVAL, "/token: not one word"); /* and is not waited for */
	assert_int_equal(unlink(path_of(w, "ca.crt")), 0);
	must_not_be(w, ENOENT, "/ca.crt: No such file");
	assert_int_equal(mkdir(path_of(w, "ca.crt"), 0700), 0);
	must_not_be(w, EISDIR, "/ca.crt: Is a directory");
}

static void a_file_is_bounded(void **state)
{
	enum { TOO_MUCH = (1 << 20) + 1 };
	const struct world *w = *state;
	auto_free char *big = xcalloc(TOO_MUCH, 1);

	memset(big, 's', TOO_MUCH);
	put_bytes(w, "token", big, TOO_MUCH);
	must_not_be(w, EFBIG, "/token: more than");
}

/* As the kubelet rotates them: the files are links into a folder that is a link itself. */
static void a_rotated_token_is_read_at_the_next_refresh(void **state)
{
	static const char *const names[] = {"token", "ca.crt"};
	const struct world *w = *state;

	assert_int_equal(mkdir(path_of(w, "1"), 0700), 0);
	assert_int_equal(mkdir(path_of(w, "2"), 0700), 0);
	put(w, "1/token", "secret-1");
	put(w, "1/ca.crt", "CA 1");
	put(w, "2/token", "secret-2");
	put(w, "2/ca.crt", "CA 1");
	assert_int_equal(symlink("1", path_of(w, "..data")), 0);
	for (unsigned i = 0; i < 2; i++) {
		char target[32];

		(void)snprintf(target, sizeof target, "..data/%s", names[i]);
		assert_int_equal(unlink(path_of(w, names[i])), 0);
		assert_int_equal(symlink(target, path_of(w, names[i])), 0);
	}
	struct auth *a = must_be(w);
	assert_string_equal(auth_header(a), "Authorization: Bearer secret-1");
	assert_false(auth_is_old(a));
	assert_int_equal(symlink("2", path_of(w, "..new")), 0);
	char fresh[PATH_SIZE];
	(void)snprintf(fresh, sizeof fresh, "%s", path_of(w, "..new"));
	assert_int_equal(rename(fresh, path_of(w, "..data")), 0);
	assert_string_equal(auth_header(a), "Authorization: Bearer secret-1");
	assert_int_equal(auth_renew(a, NULL), 0); /* the same trust */
	assert_string_equal(auth_header(a), "Authorization: Bearer secret-2");
	put(w, "2/ca.crt", "CA 2");
	assert_int_equal(auth_renew(a, NULL), 1);
	assert_string_equal(auth_trust(a)->ca, "CA 2");
	auth_free(a);
}

static void credentials_that_became_unreadable_stay_as_they_were(void **state)
{
	const struct world *w = *state;
	struct auth *a = must_be(w);
	struct err e = {0};

	assert_int_equal(unlink(path_of(w, "token")), 0);
	put(w, "ca.crt", "CA 2");
	assert_int_equal(auth_renew(a, &e), -ENOENT);
	assert_non_null(strstr(e.text, "/token"));
	assert_string_equal(auth_header(a), "Authorization: Bearer secret-1");
	assert_string_equal(auth_trust(a)->ca, "CA 1");
	auth_free(a);
}

static void use(struct world *w, const char *cluster, const char *user)
{
	char text[2048];

	(void)snprintf(text, sizeof text,
		"current-context: a\n"
		"contexts: [{name: a, context: {cluster: c, user: u, namespace: n}}]\n"
		"clusters: [{name: c, cluster: {%s}}]\nusers: [{name: u, user: {%s}}]\n",
		cluster, user);
	put(w, "config", text);
	(void)snprintf(w->kubeconfig, sizeof w->kubeconfig, "%s", path_of(w, "config"));
	w->o.kubeconfig = w->kubeconfig;
}

static void a_kubeconfig_names_files_beside_it(void **state)
{
	struct world *w = *state;
	char user[PATH_SIZE * 2];

	put(w, "cert", "CERT");
	(void)snprintf(user, sizeof user,
		"client-certificate: cert, client-key-data: S0VZ, tokenFile: %s",
		path_of(w, "token"));
	use(w,
		"server: https://x:1//, certificate-authority: ca.crt, tls-server-name: s, "
		"proxy-url: http://p",
		user);
	struct auth *a = must_be(w);
	assert_string_equal(auth_url(a), "https://x:1");
	assert_string_equal(auth_header(a), "Authorization: Bearer secret-1");
	const struct http_trust *t = auth_trust(a);
	assert_string_equal(t->ca, "CA 1");
	assert_string_equal(t->cert, "CERT");
	assert_string_equal(t->key, "KEY");
	assert_string_equal(t->server_name, "s");
	assert_string_equal(t->proxy, "http://p");
	/* another file, and then another kubeconfig */
	put(w, "cert", "CERT 2");
	assert_int_equal(auth_renew(a, NULL), 1);
	assert_string_equal(auth_trust(a)->cert, "CERT 2");
	use(w, "server: https://y, insecure-skip-tls-verify: true", "token: secret-3");
	assert_int_equal(auth_renew(a, NULL), 1);
	assert_string_equal(auth_url(a), "https://y");
	assert_string_equal(auth_header(a), "Authorization: Bearer secret-3");
	assert_null(auth_trust(a)->cert);
	assert_true(auth_trust(a)->insecure);
	auth_free(a);
}

static void a_kubeconfig_without_a_folder_names_files_here(void **state)
{
	struct world *w = *state;
	char here[PATH_SIZE * 4];

	use(w, "server: https://x, certificate-authority: ca.crt", "");
	assert_non_null(getcwd(here, sizeof here));
	assert_int_equal(chdir(w->dir), 0);
	w->o.kubeconfig = "config";
	struct auth *a = must_be(w);
	assert_int_equal(chdir(here), 0);
	assert_string_equal(auth_trust(a)->ca, "CA 1");
	assert_null(auth_header(a));
	auth_free(a);
}

static void credentials_are_not_sent_over_plain_http(void **state)
{
	struct world *w = *state;

	use(w, "server: 'http://127.0.0.1:8001/'",
		"token: secret, client-certificate-data: Q0E=, client-key-data: S0VZ");
	struct auth *a = must_be(w);
	assert_string_equal(auth_url(a), "http://127.0.0.1:8001");
	assert_null(auth_header(a));
	assert_null(auth_trust(a)->cert);
	assert_null(auth_trust(a)->key);
	auth_free(a);
}

static void errors_in_a_kubeconfig_are_named(void **state)
{
	static const struct {
		const char *cluster, *user;
		int code;
		const char *says;
	} cases[] = {
		{"server: x", "", EINVAL, "/config: server \"x\" begins with neither"},
		{"server: 'https://a:secret@x'", "", EINVAL, "holds a user name"},
		{"server: https://x, certificate-authority: none", "", ENOENT, "/none: No such"},
		{"server: https://x", "client-certificate: none, client-key: none", ENOENT,
			"/none: No such"},
		{"server: https://x", "tokenFile: none, token: secret", ENOENT, "/none: No such"},
		{"server: https://x", "token: secret word", EINVAL, "the user's token: not one"},
		{"server: https://x", "exec: {command: aws}", ENOTSUP, "/config: line 4: user u"},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		use(w, cases[i].cluster, cases[i].user);
		must_not_be(w, cases[i].code, cases[i].says);
	}
	w->o.kubeconfig = "/nowhere/config";
	must_not_be(w, ENOENT, "/nowhere/config: No such file");
	use(w, "server: https://x", "");
	w->o.context = "other";
	must_not_be(w, ENOENT, "no context \"other\", but: a");
}

/* What it says itself; not the files that it names. */
static void a_kubeconfig_can_be_checked_before_its_files_are_there(void **state)
{
	static const struct {
		const char *cluster, *user;
		int rc;
		const char *says;
	} cases[] = {
		{"server: https://x", "token: t", 0, ""},
		{"server: https://x, certificate-authority: none", "tokenFile: none", 0, ""},
		{"server: x", "", -EINVAL, "/config: server \"x\" begins with neither"},
		{"server: https://x", "exec: {command: aws}", -ENOTSUP, "/config: line 4: user u"},
	};
	struct world *w = *state;
	struct err e = {0};

	assert_int_equal(auth_check("", "", &e), 0);
	assert_int_equal(auth_check("/nowhere/config", "", &e), 1);
	assert_string_equal(e.text, "/nowhere/config: No such file or directory");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		use(w, cases[i].cluster, cases[i].user);
		assert_int_equal(auth_check(w->kubeconfig, "", &e), cases[i].rc);
		if (cases[i].rc && !strstr(e.text, cases[i].says))
			fail_msg("%s", e.text);
	}
	use(w, "server: https://x", "");
	assert_int_equal(auth_check(w->kubeconfig, "other", &e), -ENOENT);
	assert_non_null(strstr(e.text, "no context \"other\", but: a"));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		CASE(a_pod_finds_the_server_and_itself),
		CASE(missing_credentials_of_a_pod_are_named),
		CASE(a_file_is_bounded),
		CASE(a_rotated_token_is_read_at_the_next_refresh),
		CASE(credentials_that_became_unreadable_stay_as_they_were),
		CASE(a_kubeconfig_names_files_beside_it),
		CASE(a_kubeconfig_without_a_folder_names_files_here),
		CASE(credentials_are_not_sent_over_plain_http),
		CASE(errors_in_a_kubeconfig_are_named),
		CASE(a_kubeconfig_can_be_checked_before_its_files_are_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
