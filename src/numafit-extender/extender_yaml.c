#include <numafit-extender/extender_yaml.h>

#include <codec/api_json.h>
#include <numafit-extender/extender_args_json.h>
#include <codec/flat_yaml.h>
#include <core/settings_row.h>
#include <errno.h>
#include <numafit/host_kind.h>
#include <numafit/mistakes.h>
#include <numafit/number.h>
#include <string.h>

enum { VALUE_SHOWN = 80, ARENA_BYTES = 16 << 20 };

static const char *const placing_mode_words[] = {"off", "prefer", "require", NULL},
			 *const stale_words[] = {"hold", "pass", NULL},
			 *const level_words[] = {"error", "warn", "info", "debug", NULL},
			 *const format_words[] = {"auto", "text", "json", "journal", NULL};

static int parse_string(const struct row *row, const char *value, void *out, struct err *e)
{
	struct extender_config *c = (void *)((char *)out - row->at);
	char *copy = arena_strndup(&c->arena, value, strlen(value));

	if (!copy)
		return err_set(e, ENOMEM, "too large");
	*(const char **)out = copy;
	return 0;
}

static void print_string(const struct row *row, const void *in, struct text *to)
{
	(void)row;
	text_add(to, "%s", *(const char *const *)in);
}

/* It can only be what it is. */
static int parse_fixed(const struct row *row, const char *value, void *out, struct err *e)
{
	(void)out;
	return text_equal(value, row->fallback) ? 0
						: err_set(e, EINVAL, "\"%.*s\": expected is %s",
							  VALUE_SHOWN, value, row->fallback);
}

static void print_fixed(const struct row *row, const void *in, struct text *to)
{
	(void)in;
	text_add(to, "%s", row->fallback);
}

static const struct kind kind_string = {parse_string, print_string, .type = "text"},
			 kind_fixed = {parse_fixed, print_fixed, .type = "constant"};

#define ROW(key_, type, member, fallback_, help_, ...)                                             \
	{                                                                                          \
		.key = (key_), .kind = &kind_##type,                                               \
		.at = offsetof(struct extender_config, member),                                    \
		.size = sizeof((struct extender_config *)NULL)->member, .fallback = (fallback_),   \
		.help = (help_), ##__VA_ARGS__                                                     \
	}
#define FIXED_ROW(key_, value)                                                                     \
	{                                                                                          \
		.key = (key_), .kind = &kind_fixed, .fallback = (value), .help = "of this file"    \
	}
static const struct row rows[] = {
	FIXED_ROW("apiVersion", "numafit.io/v1"),
	FIXED_ROW("kind", "ExtenderConfiguration"),
	ROW("listen", string, listen, "",
		"address and port to serve at; empty: :9467 for clients with a certificate, and "
		"127.0.0.1:9467 without tls.clientCAFile"),
	ROW("insecure", bool, insecure, "false",
		"serve every client, at any address, though none has to show a certificate: "
		"they may bind any pod to any node"),
	ROW("tls.certFile", string, cert_file, "",
		"serve HTTPS with this certificate (PEM); the files are read again as they change"),
	ROW("tls.keyFile", string, key_file, "", "its key (PEM)"),
	ROW("tls.clientCAFile", string, client_ca_file, "",
		"clients must have a certificate by this authority (PEM)"),
	ROW("metrics.address", string, metrics_address, "",
		"where metrics and health are served over plain HTTP, for clients without a "
		"certificate; "
		"empty: only with the rest"),
	ROW("ui.address", string, ui_address, "",
		"where the page of the cluster is served over HTTP, on a loopback address such as "
		"127.0.0.1:9469; empty: nowhere"),
	ROW("ui.insecure", bool, ui_insecure, "false",
		"take any other address as well: everybody who reaches it sees the names of all "
		"nodes, and of pods that were refused"),
	ROW("ui.poolLabel", string, pool_label, "",
		"label of nodes by whose values the page groups them; empty: it does not"),
	ROW("kubeconfig", string, kubeconfig, "",
		"how to reach the API server; without it, as a pod of the cluster"),
	ROW("context", string, context, "", "of the kubeconfig; without it, its current one"),
	ROW("apiTimeout", duration, api_timeout_ms, "4s",
		"for a call to the API server; the scheduler's httpTimeout counts for its own",
		.min = 100, .max = 10 * S_PER_MIN * MS_PER_S),
	ROW("refusalDelay", duration, refusal_delay_ms, "30ms",
		"a filter that no node passes is answered after that, if none passes then either: "
		"what has ended may be known a moment later; 0: at once",
		.max = MS_PER_S),
	ROW("maxRequestBytes", size, request_bytes_max, "128Mi",
		"of one request; nodeCacheCapable: false needs about 15Ki for each node",
		.min = 64 << 10, .max = 1 << 30),
	ROW("maxHeldBytes", size, held_bytes_max, "192Mi",
		"of all requests and answers together; for more there is 503", .min = 64 << 10,
		.max = UINT64_C(16) << 30),
	ROW("scoreMax", number, score_max, "10",
		"the best node's score: 10 is the contract, and up to 100 is finer", .min = 1,
		.max = SCHED_SCORE_MAX),
	ROW("hint.enabled", bool, advice, "true",
		"bind with the NUMA nodes that a pod was placed on as its annotation"),
	ROW("hint.ttl", duration, advice_ttl_ms, "2m", "for how long the node may follow it",
		.min = MS_PER_S, .max = 24 * MIN_PER_H * S_PER_MIN * UINT64_C(1000)),
	ROW("hint.mode", word, advice_mode, "prefer",
		"what a node does that cannot follow it: place otherwise, or refuse",
		.words = placing_mode_words, .min = ADVICE_PREFER),
	ROW("assumeTTL", duration, assume_ms, "90s",
		"a bound pod counts for so long at least, or until its node's report contains it",
		.min = MS_PER_S, .max = MIN_PER_H * S_PER_MIN * UINT64_C(1000)),
	ROW("staleNodes", word, stale, "hold",
		"nodes whose report cannot be relied upon for now: hold pods back, or let them "
		"pass",
		.words = stale_words),
	ROW("avoid.enabled", bool, avoid, "true",
		"leave out nodes that refused a pod of the same workload a short while ago"),
	ROW("logLevel", word, log_level, "info", "error, warn, info or debug",
		.words = level_words),
	ROW("logFormat", word, log_format, "auto",
		"text: time=, level=, event=, then key=value; json: one object a line; journal: "
		"text with journald's priority in front; auto: journal where systemd has connected "
		"standard error with journald, else text",
		.words = format_words),
	ROW("checkRestricted", bool, profile.check_restricted, "true",
		"a node with the policy restricted refuses what it would refuse; the released "
		"plugin does not look at that policy"),
};
enum { NR_ROWS = sizeof rows / sizeof *rows };

static int set_row(
	const struct row *row, struct extender_config *c, const char *value, struct err *e)
{
	int rc = row->kind->parse(row, value, (char *)c + row->at, e);

	return rc ? err_add(e, rc, "%s", row->key) : 0;
}

bool extender_doc(const struct extender_config *c, unsigned i, struct extender_doc *out)
{
	const struct row *row = &rows[i < NR_ROWS ? i : 0];
	struct text t;

	if (i >= NR_ROWS)
		return false;
	out->key = row->key;
	out->fallback = row->fallback;
	out->help = row->help;
	text_init(&t, out->type, sizeof out->type);
	row_describe(row, &t);
	text_init(&t, out->value, sizeof out->value);
	row->kind->print(row, (const char *)c + row->at, &t);
	return true;
}

/* The file */

/* A plugin as it stands there. */
struct plugin {
	bool there;
	unsigned line;
	char *name;
	uint64_t weight;
	struct json_t *args;
};

struct reader {
	struct extender_config *c;
	struct plugin plugin[SCHED_USES_MAX];
	unsigned nr_plugins;
	struct mistakes *all; /* NULL: the first one ends the reading */
};

/* path: behind "plugins.". */
static int on_plugin(
	struct reader *r, const char *path, const char *value, unsigned line, struct err *e)
{
	size_t len = strcspn(path, ".");
	const char *key = path[len] ? path + len + 1 : "";
	uint64_t i;

	if (text_u64(path, len, SCHED_USES_MAX - 1, &i, NULL) < 0)
		return err_set(e, ERANGE, "plugins: %d at most", SCHED_USES_MAX);
	struct plugin *p = &r->plugin[i];
	if (!p->there)
		*p = (struct plugin){.there = true, .line = line, .weight = 1};
	r->nr_plugins = (unsigned)i + 1;
	if (text_equal(key, "name") && value) {
		p->name = xstrdup(value);
		return 0;
	}
	if (text_equal(key, "weight") && value)
		return text_u64(value, strlen(value), SCHED_WEIGHT_MAX, &p->weight, e) || !p->weight
			       ? err_set(e, ERANGE, "plugins.%s: %.*s is not within 1 and %d", path,
					 VALUE_SHOWN, value, SCHED_WEIGHT_MAX)
			       : 0;
	if (text_equal(key, "args") || strncmp(key, "args.", strlen("args.")) == 0) {
		int rc = extender_args_put(
			&p->args, key[strlen("args")] ? key + strlen("args.") : "", value, e);
		return rc ? err_add(e, rc, "plugins.%s", path) : 0;
	}
	return err_set(e, EINVAL, "plugins.%s: name, weight and args are expected", path);
}

/* Whether keys below it are in the table. */
static bool is_group(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < NR_ROWS; i++)
		if (strncmp(rows[i].key, path, len) == 0 && rows[i].key[len] == '.')
			return true;
	return text_equal(path, "plugins");
}

static int extender_put_value(
	struct reader *r, const char *path, const char *value, unsigned line, struct err *e)
{
	if (strncmp(path, "plugins.", strlen("plugins.")) == 0)
		return on_plugin(r, path + strlen("plugins."), value, line, e);
	for (size_t i = 0; i < NR_ROWS; i++)
		if (text_equal(rows[i].key, path))
			return set_row(&rows[i], r->c, value ? value : "", e);
	if (is_group(path) && (!value || !*value))
		return 0; /* nothing is in it */
	return err_set(e, EINVAL, "unknown key \"%.*s\"", VALUE_SHOWN, path);
}

static int extender_on_scalar(
	void *ctx, const char *path, const char *value, unsigned line, struct err *e)
{
	struct reader *r = ctx;
	int rc = extender_put_value(r, path, value, line, e);

	mistakes_note_key(r->all, path, MISTAKE_IN_FILE, line);
	return rc ? err_add(e, rc, "line %u", line) : 0;
}

/* What was read, as a whole */

static int read_plugin(struct extender_config *c, const struct plugin *p, struct err *e)
{
	static struct args_problems problems;
	char shown[sizeof e->text];
	struct sched_use *use = &c->profile.use[c->profile.nr];
	const struct sched_reader r = {&c->names, &c->arena};

	if (!p->there || !p->name)
		return err_set(e, EINVAL, "line %u: plugins: one has no name", p->line);
	*use = (struct sched_use){
		.plugin = sched_plugin_find(p->name), .weight = (int64_t)p->weight};
	if (!use->plugin)
		return err_set(e, EINVAL, "line %u: plugins: there is no \"%.*s\"", p->line,
			VALUE_SHOWN, p->name);
	for (unsigned i = 0; i < c->profile.nr; i++)
		if (c->profile.use[i].plugin == use->plugin)
			return err_set(
				e, EINVAL, "line %u: plugins: %s is there twice", p->line, p->name);
	problems = (struct args_problems){0};
	int rc = extender_args_json_read(p->args, &r, use, &c->cluster, &problems, e);
	if (rc > 0)
		rc = err_set(e, EINVAL, "%s", args_problems_text(&problems, shown, sizeof shown));
	if (rc)
		return err_add(e, rc, "line %u: %s", p->line, p->name);
	c->profile.nr++;
	return 0;
}

static int add_usual_plugin(struct reader *r, struct err *e)
{
	r->nr_plugins = 1;
	r->plugin[0] = (struct plugin){
		.there = true, .name = xstrdup("NodeResourceTopologyMatch"), .weight = 1};
	return extender_args_put(&r->plugin[0].args, "scoringStrategy.type", "LeastNUMANodes", e);
}

static bool extender_is_loopback(const char *address)
{
	static const char v4[] = "127.", v6[] = "[::1]:";

	return strncmp(address, v4, sizeof v4 - 1) == 0 || strncmp(address, v6, sizeof v6 - 1) == 0;
}

static int check_server_pair(struct extender_config *c, struct err *e)
{
	if (!*c->cert_file != !*c->key_file)
		return err_set(e, EINVAL, "tls: certFile and keyFile go together");
	return 0;
}

static int check_client_ca(struct extender_config *c, struct err *e)
{
	if (*c->client_ca_file && !*c->cert_file)
		return err_set(e, EINVAL, "tls: clientCAFile goes with certFile and keyFile");
	return 0;
}

static int check_held_bytes(struct extender_config *c, struct err *e)
{
	if (c->held_bytes_max < c->request_bytes_max)
		return err_set(e, EINVAL, "maxHeldBytes: less than maxRequestBytes");
	return 0;
}

/* Who may ask may bind any pod to any node. */
static int extender_set_listen(struct extender_config *c, struct err *e)
{
	bool asks = *c->client_ca_file || c->insecure;

	if (!*c->listen)
		c->listen = asks ? ":9467" : "127.0.0.1:9467";
	if (asks || extender_is_loopback(c->listen))
		return 0;
	return err_set(e, EINVAL,
		"listen: at %.*s anybody could bind pods: set tls.clientCAFile, tls.certFile and "
		"tls.keyFile, or an address of the loopback, or insecure: true",
		VALUE_SHOWN, c->listen);
}

static int check_page_address(struct extender_config *c, struct err *e)
{
	if (!*c->ui_address || c->ui_insecure || host_kind_of(c->ui_address) == HOST_LOOPBACK)
		return 0;
	return err_set(e, EINVAL,
		"ui.address: \"%.*s\" is no loopback address, such as 127.0.0.1:9469; another one "
		"takes ui.insecure: true",
		VALUE_SHOWN, c->ui_address);
}

/* What no key alone can show. */
static const struct {
	const char *key; /* where it is to be corrected */
	int (*check)(struct extender_config *c, struct err *e);
} checks[] = {
	{"tls", check_server_pair},
	{"tls.clientCAFile", check_client_ca},
	{"maxHeldBytes", check_held_bytes},
	{"listen", extender_set_listen},
	{"ui.address", check_page_address},
};

static int extender_set_defaults(struct extender_config *c, struct err *e)
{
	*c = (struct extender_config){
		.cluster = {.over_reserve = true, .foreign = FOREIGN_PODS_EXCLUSIVE}};
	arena_init(&c->arena, ARENA_BYTES);
	resource_table_init(&c->names);
	for (size_t i = 0; i < NR_ROWS; i++) {
		int rc = set_row(&rows[i], c, rows[i].fallback, e);

		if (rc)
			return rc;
	}
	return 0;
}

/* What was read, as a whole; with a list to its end. */
static int extender_check_whole(struct reader *r, struct err *e)
{
	struct err next = {0};
	int rc = 0;

	for (size_t i = 0; i < sizeof checks / sizeof *checks && (!rc || r->all); i++) {
		struct err *at = rc ? &next : e;
		int found = checks[i].check(r->c, at);

		if (found)
			mistakes_add_key(r->all, checks[i].key, at);
		rc = rc ? rc : found;
	}
	if (!rc && !r->nr_plugins)
		rc = add_usual_plugin(r, e);
	for (unsigned i = 0; i < r->nr_plugins && (!rc || r->all); i++) {
		struct err *at = rc ? &next : e;
		int found = read_plugin(r->c, &r->plugin[i], at);

		if (found)
			mistakes_add(r->all, MISTAKE_IN_FILE, r->plugin[i].line, at);
		rc = rc ? rc : found;
	}
	return rc;
}

int extender_yaml_read(const char *text, size_t len, struct extender_config *out,
	struct mistakes *all, struct err *e)
{
	struct reader r = {.c = out, .all = all};
	struct err next = {0};
	int rc = extender_set_defaults(out, e);

	if (!rc)
		rc = flat_yaml_read(text, len, extender_on_scalar, &r, all, e);
	if (!rc || (all && !all->unread)) {
		int found = extender_check_whole(&r, rc ? &next : e);

		rc = rc ? rc : found;
	}
	for (unsigned i = 0; i < SCHED_USES_MAX; i++) {
		free(r.plugin[i].name);
		api_json_free(r.plugin[i].args);
	}
	out->cluster.assume_ms = out->assume_ms;
	if (rc && !all)
		extender_config_fini(out);
	return rc;
}

void extender_config_fini(struct extender_config *c)
{
	resource_table_fini(&c->names);
	arena_fini(&c->arena);
	*c = (struct extender_config){0};
}
