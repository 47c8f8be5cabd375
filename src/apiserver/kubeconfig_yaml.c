#include <apiserver/kubeconfig_yaml.h>

#include <codec/flat_yaml.h>
#include <errno.h>
#include <numafit/base64.h>
#include <numafit/text.h>
#include <numafit/vec.h>
#include <string.h>
#include <yaml.h>

enum section { CLUSTERS, CONTEXTS, USERS, NR_SECTIONS };

/* A list of the kubeconfig's; its elements are {name: N, INNER: {fields}}. */
static const struct {
	const char *name, *inner;
} sections[NR_SECTIONS] = {
	[CLUSTERS] = {"clusters", "cluster"},
	[CONTEXTS] = {"contexts", "context"},
	[USERS] = {"users", "user"},
};

enum field {
	SERVER,
	SERVER_NAME,
	INSECURE,
	PROXY,
	CA_FILE,
	CA_DATA,
	CONTEXT_CLUSTER,
	CONTEXT_USER,
	CERT_FILE,
	CERT_DATA,
	KEY_FILE,
	KEY_DATA,
	TOKEN,
	TOKEN_FILE,
	EXEC,
	AUTH_PROVIDER,
	USERNAME,
	PASSWORD,
	AS,
	AS_UID,
	AS_GROUPS,
	AS_EXTRA,
	NR_FIELDS
};

#define PLUGIN      "plugins are not supported: give a token, a tokenFile or a client certificate"
#define BASIC       "Kubernetes has no passwords any more: give a token or a client certificate"
#define IMPERSONATE "impersonation is not supported: give a user that may do it itself"

static const struct {
	enum section section;
	const char *name;
	const char *refusal; /* why the field must not be there */
} fields[NR_FIELDS] = {
	[SERVER] = {CLUSTERS, "server", NULL},
	[SERVER_NAME] = {CLUSTERS, "tls-server-name", NULL},
	[INSECURE] = {CLUSTERS, "insecure-skip-tls-verify", NULL},
	[PROXY] = {CLUSTERS, "proxy-url", NULL},
	[CA_FILE] = {CLUSTERS, "certificate-authority", NULL},
	[CA_DATA] = {CLUSTERS, "certificate-authority-data", NULL},
	[CONTEXT_CLUSTER] = {CONTEXTS, "cluster", NULL},
	[CONTEXT_USER] = {CONTEXTS, "user", NULL},
	[CERT_FILE] = {USERS, "client-certificate", NULL},
	[CERT_DATA] = {USERS, "client-certificate-data", NULL},
	[KEY_FILE] = {USERS, "client-key", NULL},
	[KEY_DATA] = {USERS, "client-key-data", NULL},
	[TOKEN] = {USERS, "token", NULL},
	[TOKEN_FILE] = {USERS, "tokenFile", NULL},
	[EXEC] = {USERS, "exec", PLUGIN},
	[AUTH_PROVIDER] = {USERS, "auth-provider", PLUGIN},
	[USERNAME] = {USERS, "username", BASIC},
	[PASSWORD] = {USERS, "password", BASIC},
	[AS] = {USERS, "as", IMPERSONATE},
	[AS_UID] = {USERS, "as-uid", IMPERSONATE},
	[AS_GROUPS] = {USERS, "as-groups", IMPERSONATE},
	[AS_EXTRA] = {USERS, "as-user-extra", IMPERSONATE},
};

/* An element of a list. A value that is a map or a list is "". */
struct entry {
	unsigned line;
	const char *name;
	const char *value[NR_FIELDS];
};
struct entries {
	VEC(struct entry);
};

/* Maps and lists inside each other as far as we follow them: the file, a list, its element, what
 * that holds. Others are skipped whole. */
enum { IN_NOTHING, IN_FILE, IN_LIST, IN_ELEMENT, IN_INNER, NR_DEPTHS };
enum { KEY_MAX = 64, SKIPPED_MAX = 32 /* libyaml's time grows with the square of it */ };

struct reader {
	unsigned depth, skipped; /* how many are open: of those, and within what is skipped */
	bool has_key[NR_DEPTHS];
	char key[NR_DEPTHS][KEY_MAX]; /* cut keys are none of ours */
	enum section section;
	const char *current;
	struct entries entries[NR_SECTIONS];
	struct arena *strings;
};

static struct entry *last_entry(struct reader *r)
{
	struct entries *list = &r->entries[r->section];

	return &list->at[list->nr - 1];
}

/* Where the value goes that comes now; NULL: it is none of ours. */
static const char **slot(struct reader *r)
{
	const char *key = r->key[r->depth];

	if (r->depth == IN_FILE && text_equal(key, "current-context"))
		return &r->current;
	if (r->depth == IN_ELEMENT && text_equal(key, "name"))
		return &last_entry(r)->name;
	for (unsigned i = 0; r->depth == IN_INNER && i < NR_FIELDS; i++)
		if (fields[i].section == r->section && text_equal(key, fields[i].name))
			return &last_entry(r)->value[i];
	return NULL;
}

static int store(struct reader *r, const char *value, unsigned line, struct err *e)
{
	const char **at = slot(r);

	if (!at)
		return 0;
	if (*at)
		return err_set(e, EINVAL, "line %u: %s is there twice", line, r->key[r->depth]);
	*at = arena_strndup(r->strings, value, strlen(value));
	return *at ? 0
		   : err_set(e, E2BIG, "the file is larger than %d bytes", KUBECONFIG_BYTES_MAX);
}

/* What is empty is not there, for client-go too. */
static bool kubeconfig_is_empty(const yaml_event_t *ev)
{
	static const char *const nulls[] = {"~", "null", "Null", "NULL"};
	const char *value = (const char *)ev->data.scalar.value;

	if (!ev->data.scalar.length)
		return true;
	for (unsigned i = 0; i < sizeof nulls / sizeof *nulls; i++)
		if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && text_equal(value, nulls[i]))
			return true;
	return false;
}

static int kubeconfig_on_scalar(
	struct reader *r, const yaml_event_t *ev, unsigned line, struct err *e)
{
	const char *value = (const char *)ev->data.scalar.value;

	if (r->skipped || (r->depth == IN_NOTHING && kubeconfig_is_empty(ev)))
		return 0;
	if (strlen(value) != ev->data.scalar.length)
		return err_set(e, EINVAL, "line %u: a NUL character", line);
	if (r->depth == IN_NOTHING || r->depth == IN_LIST)
		return err_set(e, EINVAL, "line %u: a map is expected", line);
	r->has_key[r->depth] = !r->has_key[r->depth];
	if (!r->has_key[r->depth])
		return kubeconfig_is_empty(ev) ? 0 : store(r, value, line, e);
	if (!text_copy(r->key[r->depth], KEY_MAX, value))
		r->key[r->depth][0] = '\0';
	return 0;
}

/* Whether what opens now is one that we follow. */
static bool is_ours(struct reader *r)
{
	const char *key = r->key[r->depth];

	if (r->depth == IN_FILE) {
		r->section = CLUSTERS;
		while (r->section < NR_SECTIONS && !text_equal(key, sections[r->section].name))
			r->section++;
		return r->section < NR_SECTIONS;
	}
	if (r->depth == IN_ELEMENT)
		return text_equal(key, sections[r->section].inner);
	return r->depth < IN_INNER;
}

static int add_entry(struct reader *r, unsigned line, struct err *e)
{
	struct entries *list = &r->entries[r->section];

	if (list->nr == KUBECONFIG_ENTRIES_MAX)
		return err_set(e, EINVAL, "line %u: more than %d %s", line, KUBECONFIG_ENTRIES_MAX,
			sections[r->section].name);
	vec_push(list)->line = line;
	return 0;
}

static int on_open(struct reader *r, const yaml_event_t *ev, unsigned line, struct err *e)
{
	bool is_list = ev->type == YAML_SEQUENCE_START_EVENT;

	if (r->skipped == SKIPPED_MAX)
		return err_set(e, EINVAL, "line %u: more than %d maps and lists inside each other",
			line, SKIPPED_MAX);
	if (r->skipped) {
		r->skipped++;
		return 0;
	}
	if (r->depth != IN_NOTHING && r->depth != IN_LIST && !r->has_key[r->depth])
		return err_set(e, EINVAL, "line %u: a map or a list is no key", line);
	if (!is_ours(r)) {
		r->skipped = 1;
		return store(r, "", line, e);
	}
	if (is_list != (r->depth == IN_FILE))
		return err_set(
			e, EINVAL, "line %u: a %s is expected", line, is_list ? "map" : "list");
	r->has_key[++r->depth] = false;
	return r->depth == IN_ELEMENT ? add_entry(r, line, e) : 0;
}

static void on_close(struct reader *r)
{
	if (r->skipped)
		r->skipped--;
	else
		r->depth--;
	if (!r->skipped)
		r->has_key[r->depth] = false;
}

static int kubeconfig_on_event(void *ctx, const yaml_event_t *ev, struct err *e)
{
	struct reader *r = ctx;
	unsigned line = (unsigned)ev->start_mark.line + 1;

	if (ev->type == YAML_SCALAR_EVENT)
		return kubeconfig_on_scalar(r, ev, line, e);
	if (ev->type == YAML_MAPPING_START_EVENT || ev->type == YAML_SEQUENCE_START_EVENT)
		return on_open(r, ev, line, e);
	if (ev->type == YAML_MAPPING_END_EVENT || ev->type == YAML_SEQUENCE_END_EVENT)
		on_close(r);
	if (ev->type == YAML_ALIAS_EVENT)
		return err_set(e, EINVAL, "line %u: aliases are not supported", line);
	return ev->type == YAML_DOCUMENT_END_EVENT; /* what comes behind it is not looked at */
}

static const struct entry *kubeconfig_find(
	const struct reader *r, enum section section, const char *name, struct err *e)
{
	const struct entries *list = &r->entries[section];
	char there[sizeof e->text];
	struct text t;

	text_init(&t, there, sizeof there);
	for (size_t i = 0; i < list->nr; i++) {
		if (list->at[i].name && text_equal(list->at[i].name, name))
			return &list->at[i];
		text_add(&t, "%s%s", i ? ", " : "", list->at[i].name ? list->at[i].name : "?");
	}
	(void)err_set(e, ENOENT, "there is no %s \"%s\", but: %s", sections[section].inner, name,
		list->nr ? there : "none");
	return NULL;
}

/* The text of one of two fields, the first as a file's name or the second as data. */
static int take_pem(struct kubeconfig *k, const struct entry *in, enum field file,
	const char **name, const char **out, struct err *e)
{
	const char *data = in->value[file + 1];

	if (!data) {
		*name = in->value[file];
		return 0;
	}
	char *pem = arena_alloc(&k->strings, BASE64_ROOM(strlen(data)));
	long len = pem ? base64_decode(data, strlen(data), pem) : -E2BIG;

	*out = pem;
	return len >= 0 && strlen(pem) == (size_t)len
		       ? 0
		       : err_set(e, EINVAL, "line %u: %s: %s is no base64 of a PEM text", in->line,
				 in->name, fields[file + 1].name);
}

static int take_cluster(struct kubeconfig *k, const struct entry *cluster, struct err *e)
{
	const char *const *v = cluster->value;

	if (!v[SERVER] || !*v[SERVER])
		return err_set(e, EINVAL, "line %u: cluster %s has no server", cluster->line,
			cluster->name);
	if (v[INSECURE] && text_bool(v[INSECURE], &k->insecure, e) < 0)
		return err_add(e, -EINVAL, "line %u: cluster %s: %s", cluster->line, cluster->name,
			fields[INSECURE].name);
	if (k->insecure && (v[CA_FILE] || v[CA_DATA]))
		return err_set(e, EINVAL,
			"line %u: cluster %s: %s leaves the certificate authority without effect: "
			"take one of them out",
			cluster->line, cluster->name, fields[INSECURE].name);
	k->server = v[SERVER];
	k->server_name = v[SERVER_NAME];
	k->proxy = v[PROXY];
	return take_pem(k, cluster, CA_FILE, &k->ca_file, &k->ca, e);
}

static int kubeconfig_take_user(struct kubeconfig *k, const struct entry *user, struct err *e)
{
	const char *const *v = user->value;

	for (unsigned i = 0; i < NR_FIELDS; i++)
		if (v[i] && fields[i].refusal)
			return err_set(e, ENOTSUP, "line %u: user %s: %s: %s", user->line,
				user->name, fields[i].name, fields[i].refusal);
	bool has_cert = v[CERT_FILE] || v[CERT_DATA], has_key = v[KEY_FILE] || v[KEY_DATA];
	if (has_cert != has_key)
		return err_set(e, EINVAL, "line %u: user %s: %s and %s go together", user->line,
			user->name, fields[CERT_FILE].name, fields[KEY_FILE].name);
	k->token_file = v[TOKEN_FILE];
	k->token = v[TOKEN_FILE] ? NULL : v[TOKEN];
	int rc = take_pem(k, user, CERT_FILE, &k->cert_file, &k->cert, e);

	return rc ? rc : take_pem(k, user, KEY_FILE, &k->key_file, &k->key, e);
}

static int take_context(
	struct kubeconfig *k, const struct reader *r, const char *name, struct err *e)
{
	if (!name || !*name)
		name = r->current;
	if (!name || !*name)
		return err_set(e, ENOENT, "there is no current-context, and none is asked for");
	const struct entry *context = kubeconfig_find(r, CONTEXTS, name, e);
	if (!context)
		return -ENOENT;
	if (!context->value[CONTEXT_CLUSTER])
		return err_set(
			e, EINVAL, "line %u: context %s has no cluster", context->line, name);
	const struct entry *cluster =
		kubeconfig_find(r, CLUSTERS, context->value[CONTEXT_CLUSTER], e);
	int rc = cluster ? take_cluster(k, cluster, e) : -ENOENT;

	if (rc || !context->value[CONTEXT_USER])
		return rc;
	const struct entry *user = kubeconfig_find(r, USERS, context->value[CONTEXT_USER], e);
	return user ? kubeconfig_take_user(k, user, e) : -ENOENT;
}

int kubeconfig_yaml_read(
	struct kubeconfig *k, const char *text, size_t len, const char *context, struct err *e)
{
	if (len > KUBECONFIG_BYTES_MAX)
		return err_set(e, E2BIG, "the file is larger than %d bytes", KUBECONFIG_BYTES_MAX);
	*k = (struct kubeconfig){0};
	/* every character once, and once more decoded; some for the alignment */
	arena_init(&k->strings, KUBECONFIG_BYTES_MAX * 4);
	struct reader r = {.strings = &k->strings};
	int rc = yaml_read_events(text, len, kubeconfig_on_event, &r, e);

	if (!rc)
		rc = take_context(k, &r, context, e);
	for (unsigned i = 0; i < NR_SECTIONS; i++)
		vec_fini(&r.entries[i]);
	if (rc)
		kubeconfig_fini(k);
	return rc;
}

void kubeconfig_fini(struct kubeconfig *k)
{
	arena_fini(&k->strings);
	*k = (struct kubeconfig){0};
}
