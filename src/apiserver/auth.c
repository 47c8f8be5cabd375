#include <apiserver/auth.h>

#include <apiserver/kubeconfig_yaml.h>
#include <errno.h>
#include <io/file.h>
#include <limits.h>
#include <numafit/mem.h>
#include <numafit/number.h>
#include <numafit/text.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 20, URL_MAX = 512, FIRST_PRINTABLE = 0x21, LAST_PRINTABLE = 0x7e };

/* All that is known at one time. */
struct credentials {
	char *url, *header;
	char *ca, *cert, *key, *server_name, *proxy;
	struct http_trust trust; /* the line above, and insecure */
};

struct auth {
	char *kubeconfig, *context, *service;
	uint64_t read_ns;
	struct credentials now;
};

static void credentials_fini(struct credentials *c)
{
	char *const owned[] = {
		c->url, c->header, c->ca, c->cert, c->key, c->server_name, c->proxy};

	for (unsigned i = 0; i < sizeof owned / sizeof *owned; i++)
		free(owned[i]);
	*c = (struct credentials){0};
}

/* The file as a string, which the caller frees. 0, or -errno with text. */
static int read_text_file(char **out, const char *path, struct err *e)
{
	auto_free char *text = NULL;
	size_t len;
	int rc = file_read(path, TEXT_MAX, &text, &len, e);

	if (rc)
		return rc;
	if (strlen(text) != len)
		return err_set(e, EINVAL, "%s: no text: it has a NUL byte", path);
	*out = steal(text);
	return 0;
}

/* The header of the token, white space around it apart. 0, or -EINVAL with text, which does not
 * show it. */
static int make_header(char **out, const char *token, const char *from, struct err *e)
{
	static const char begin[] = "Authorization: Bearer ", white[] = " \t\r\n";

	token += strspn(token, white);
	size_t len = strcspn(token, white);

	if (!len || token[len + strspn(token + len, white)])
		return err_set(e, EINVAL, "%s: not one word is there, as a token would be", from);
	for (size_t i = 0; i < len; i++)
		if (token[i] < FIRST_PRINTABLE || token[i] > LAST_PRINTABLE)
			return err_set(e, EINVAL, "%s: a token has no such characters", from);
	*out = xcalloc(sizeof begin + len, 1);
	memcpy(stpcpy(*out, begin), token, len);
	return 0;
}

/* An IPv6 address goes into brackets. */
static char *make_url(const char *host, const char *port)
{
	char url[URL_MAX];
	bool is_v6 = strchr(host, ':') != NULL;

	(void)snprintf(url, sizeof url, "https://%s%s%s:%s", is_v6 ? "[" : "", host,
		is_v6 ? "]" : "", port);
	return xstrdup(url);
}

static char *join_path(const char *dir, const char *name)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	return xstrdup(path);
}

/* As client-go's rest.InClusterConfig() does it. */
static int credentials_load_pod(struct credentials *c, const struct auth *a, struct err *e)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	auto_free char *token_file = join_path(a->service, "token");
	auto_free char *ca_file = join_path(a->service, "ca.crt");
	auto_free char *token = NULL;

	if (!host || !*host || !port || !*port)
		return err_set(e, ENOENT,
			"not in a pod of a cluster: KUBERNETES_SERVICE_HOST and "
			"KUBERNETES_SERVICE_PORT are not set; elsewhere a kubeconfig is needed");
	c->url = make_url(host, port);
	int rc = read_text_file(&c->ca, ca_file, e);
	if (!rc)
		rc = read_text_file(&token, token_file, e);
	if (token)
		rc = make_header(&c->header, token, token_file, e);
	return rc;
}

/* text, or what the file holds whose name is relative to the kubeconfig's; both NULL: NULL. */
static int take_text_or_file(
	char **out, const struct auth *a, const char *text, const char *file, struct err *e)
{
	const char *slash = strrchr(a->kubeconfig, '/');

	*out = text ? xstrdup(text) : NULL;
	if (text || !file)
		return 0;
	auto_free char *dir = xstrdup(slash ? a->kubeconfig : ".");
	if (slash)
		dir[slash - a->kubeconfig] = '\0';
	auto_free char *path = *file == '/' ? xstrdup(file) : join_path(dir, file);
	return read_text_file(out, path, e);
}

static int check_url(const char *url, struct err *e)
{
	const char *host = strstr(url, "://");

	if (strncmp(url, "https://", 8) && strncmp(url, "http://", 7))
		return err_set(e, EINVAL,
			"server \"%.80s\" begins with neither https:// nor http://", url);
	host += strlen("://");
	if (memchr(host, '@', strcspn(host, "/")))
		return err_set(
			e, EINVAL, "the server's URL holds a user name, which is not supported");
	return 0;
}

/* All that it says itself. */
static int read_kubeconfig(
	struct kubeconfig *k, const char *path, const char *context, struct err *e)
{
	auto_free char *text = NULL;
	int rc = read_text_file(&text, path, e);

	if (!text)
		return rc;
	rc = kubeconfig_yaml_read(k, text, strlen(text), context, e);
	if (rc)
		return err_add(e, rc, "%s", path);
	rc = check_url(k->server, e);
	if (!rc)
		return 0;
	kubeconfig_fini(k);
	return err_add(e, rc, "%s", path);
}

/* Over plain http we show no credentials: kubectl does the same. */
static int take_kubeconfig_user(
	struct credentials *c, const struct auth *a, const struct kubeconfig *k, struct err *e)
{
	auto_free char *token = NULL;
	int rc;

	if (strncmp(k->server, "https:", strlen("https:")))
		return 0;
	rc = take_text_or_file(&c->cert, a, k->cert, k->cert_file, e);
	if (!rc)
		rc = take_text_or_file(&c->key, a, k->key, k->key_file, e);
	if (!rc)
		rc = take_text_or_file(&token, a, k->token, k->token_file, e);
	if (rc || !token)
		return rc;
	return make_header(
		&c->header, token, k->token_file ? k->token_file : "the user's token", e);
}

static int take_kubeconfig(
	struct credentials *c, const struct auth *a, const struct kubeconfig *k, struct err *e)
{
	int rc = take_text_or_file(&c->ca, a, k->ca, k->ca_file, e);

	if (!rc)
		rc = take_kubeconfig_user(c, a, k, e);
	if (rc)
		return rc;
	c->url = xstrdup(k->server);
	for (size_t len = strlen(c->url); len && c->url[len - 1] == '/'; len--)
		c->url[len - 1] = '\0';
	c->server_name = k->server_name ? xstrdup(k->server_name) : NULL;
	c->proxy = k->proxy ? xstrdup(k->proxy) : NULL;
	c->trust.insecure = k->insecure;
	return 0;
}

static int credentials_load_kubeconfig(struct credentials *c, const struct auth *a, struct err *e)
{
	struct kubeconfig k;
	int rc = read_kubeconfig(&k, a->kubeconfig, a->context, e);

	if (rc)
		return rc;
	rc = take_kubeconfig(c, a, &k, e);
	kubeconfig_fini(&k);
	return rc ? err_add(e, rc, "%s", a->kubeconfig) : 0;
}

static int credentials_load(struct credentials *c, const struct auth *a, struct err *e)
{
	int rc = *a->kubeconfig ? credentials_load_kubeconfig(c, a, e)
				: credentials_load_pod(c, a, e);

	if (rc)
		return rc;
	c->trust.ca = c->ca;
	c->trust.cert = c->cert;
	c->trust.key = c->key;
	c->trust.server_name = c->server_name;
	c->trust.proxy = c->proxy;
	return 0;
}

static bool same_trust(const struct http_trust *a, const struct http_trust *b)
{
	return text_equal(a->ca, b->ca) && text_equal(a->cert, b->cert) &&
	       text_equal(a->key, b->key) && text_equal(a->server_name, b->server_name) &&
	       text_equal(a->proxy, b->proxy) && a->insecure == b->insecure;
}

struct auth *auth_new(const struct api_options *o, struct err *e)
{
	struct auth *a = xcalloc(1, sizeof *a);

	a->kubeconfig = xstrdup(o->kubeconfig);
	a->context = xstrdup(o->context);
	a->service = xstrdup(o->service ? o->service : API_SERVICE_DIRECTORY);
	if (auth_renew(a, e) >= 0)
		return a;
	auth_free(a);
	return NULL;
}

int auth_check(const char *kubeconfig, const char *context, struct err *e)
{
	struct kubeconfig k;

	if (!*kubeconfig)
		return 0;
	int rc = access(kubeconfig, R_OK) < 0 ? 1 : read_kubeconfig(&k, kubeconfig, context, e);
	if (rc > 0)
		(void)err_set(e, errno, "%s: %s", kubeconfig, strerror(errno));
	if (!rc)
		kubeconfig_fini(&k);
	return rc;
}

void auth_free(struct auth *a)
{
	if (!a)
		return;
	credentials_fini(&a->now);
	free(a->kubeconfig);
	free(a->context);
	free(a->service);
	free(a);
}

bool auth_is_old(const struct auth *a)
{
	return loop_monotonic_ns() - a->read_ns >= (uint64_t)AUTH_AGE_MS * NS_PER_MS;
}

int auth_renew(struct auth *a, struct err *e)
{
	struct credentials fresh = {0};
	int rc = credentials_load(&fresh, a, e);

	a->read_ns = loop_monotonic_ns(); /* what fails is not tried at each call either */
	if (rc) {
		credentials_fini(&fresh);
		return rc;
	}
	bool changed = !same_trust(&a->now.trust, &fresh.trust);
	credentials_fini(&a->now);
	a->now = fresh;
	return changed;
}

const char *auth_url(const struct auth *a)
{
	return a->now.url;
}

const struct http_trust *auth_trust(const struct auth *a)
{
	return &a->now.trust;
}

const char *auth_header(const struct auth *a)
{
	return a->now.header;
}
